//! What is known of an executable graph, and how it is launched.

use hetrace_interpose::commands::sample::{Counted, Nodes};
use hetrace_interpose::ring::clock::ticks;
use hetrace_interpose::{Spent, budget, spend};

use super::super::contexts::Context;
use super::super::driver;
use super::nodes::{self, Does, Left, Node};
use super::pace::{NODE_TICKS, Pace};
use super::{To, Twin, count_left, stream_of, twin};
use crate::generated::prelude::{P, null_mut};

/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`.
const DEVICE_LAUNCH: u64 = 4;
/// Ticks that copying a node takes, and that making its part of a twin takes, as far as is known: some 1 and 7 µs.
const COPY_TICKS: u64 = 2000;
const TWIN_TICKS: u64 = 14_000;
/// Ticks, about a millisecond, until times are asked for again where a twin is to be launched that still has to give some.
const PATIENCE: u64 = 1 << 21;

/// Where, when and by whose step a graph is launched.
pub struct Here {
    pub stream: P,
    /// The stream's context, if it is known.
    pub context: Option<(&'static Context, u32)>,
    /// Counter value.
    pub now: u64,
}

/// How a launch is to be done.
pub enum Way {
    /// As any command: the graph is timed as a whole.
    Whole,
    /// Its nodes are only counted. If true, a launch is to be timed as soon as what is known of the last one's nodes is asked
    /// for.
    Counted(bool),
    /// The twin is to be launched in its place.
    Twin(Ready),
}

/// A twin that is to be launched.
#[derive(Clone, Copy)]
pub struct Ready {
    pub twin: &'static Twin,
    /// Launches that it stands for.
    pub weight: u32,
}

/// What is known of a graph.
#[derive(Debug)]
pub struct Known {
    /// The driver's number of the executable.
    number: u32,
    flags: u64,
    nodes: Vec<Node>,
    /// Nodes of each launch by what they do, and their bytes.
    counts: Vec<(&'static Counted, u64, u64)>,
    pace: Pace,
    /// Its nodes were timed once: from then on it is not timed as a whole, unless it is left.
    by_nodes: bool,
    /// The stream of the last launch.
    last: Option<(P, u32)>,
    /// The copy; NULL if there is none.
    copy: P,
    twin: Option<&'static Twin>,
    /// A twin that is not launched any more, while it may be running.
    old: Option<&'static Twin>,
    /// The context that was current when it was made.
    home: P,
    /// When times were asked for last, to launch the twin again.
    asked: u64,
    left: Option<Left>,
    /// It is among the graphs that were left for a reason.
    is_named: bool,
    /// It was launched since it was changed into another.
    was_launched: bool,
}

/// Does some work on graphs, and charges it to the thread's budget: no more than it is known to take four times, as an
/// interruption is no work.
pub fn charged<R>(most: impl FnOnce(&R) -> u64, work: impl FnOnce() -> R) -> R {
    let began = ticks();
    let result = spend(Spent::Collector, work);
    let took = ticks().wrapping_sub(began).cast_signed().max(0).cast_unsigned();
    budget::charge(took.min(most(&result).saturating_mul(4)));
    result
}

impl Known {
    /// Reads a graph of which the program has made an executable.
    pub fn read(executable: P, graph: P, flags: u64, number: u64) -> Known {
        let mut known = Known {
            number: 0,
            flags,
            nodes: Vec::new(),
            counts: Vec::new(),
            pace: Pace::new(number),
            by_nodes: false,
            last: None,
            copy: null_mut(),
            twin: None,
            old: None,
            home: driver::current(),
            asked: 0,
            left: None,
            is_named: false,
            was_launched: false,
        };
        known.learn(executable, graph, true);
        known
    }

    /// Reads a graph; copies it, if it is to be timed.
    fn learn(&mut self, executable: P, graph: P, copies: bool) {
        // SAFETY: an executable that the program has, and room for the answer.
        let error = unsafe { driver::cuGraphExecGetId(executable, &mut self.number) };
        if error != 0 || self.number == 0 {
            // Drivers before CUDA 13.1 give executables none, and commands with 0 are no nodes.
            self.number = self.pace.number();
        }
        self.nodes.clear();
        let mut left = nodes::read(graph, 0, &mut self.nodes);
        if self.flags & DEVICE_LAUNCH != 0 {
            left = Some(Left::Device);
        }
        if left.is_none() && copies {
            left = match budget::affords(self.nodes.len() as u64 * COPY_TICKS) {
                true => twin::copy(graph, &mut self.nodes).map(|copy| self.copy = copy).err(),
                false => Some(Left::Budget),
            };
        }
        self.leave(left);
        self.sum();
    }

    /// Notes why it is left, if it is.
    fn leave(&mut self, left: Option<Left>) {
        if let Some(why) = left.filter(|_| !self.is_named) {
            self.is_named = true;
            count_left(why, false);
        }
        self.left = left;
    }

    /// Adds up what the nodes do from now on.
    fn sum(&mut self) {
        self.pace.changed();
        self.counts.clear();
        for does in self.nodes.iter().filter(|node| node.is_enabled).filter_map(|node| node.does) {
            let found = self.counts.iter_mut().find(|(counted, ..)| std::ptr::eq(*counted, does.counted));
            if let Some((_, count, bytes)) = found {
                (*count, *bytes) = (*count + 1, bytes.saturating_add(does.bytes));
            } else if self.counts.try_reserve(1).is_ok() {
                self.counts.push((does.counted, 1, does.bytes));
            }
        }
    }

    /// Ticks that reading and copying it takes.
    pub fn reading(&self) -> u64 {
        self.nodes.len() as u64 * COPY_TICKS
    }

    /// How many nodes each launch counts.
    pub fn per_launch(&self) -> u64 {
        self.counts.iter().map(|(_, count, _)| count).sum()
    }

    /// Counts the nodes of so many launches.
    pub fn count(&mut self, nodes: Nodes, launches: u64) {
        for (counted, count, bytes) in &self.counts {
            // Of a launch that the driver did not take after all, less than none.
            counted.add(nodes, launches.wrapping_mul(*count), launches.wrapping_mul(*bytes));
        }
    }

    /// It is launched: how that is to be done.
    pub fn launch(&mut self, here: &Here) -> Way {
        let moved = self.go_to(here.stream);
        self.was_launched = true;
        if self.left.is_some() {
            return self.untimed(here.now);
        }
        let nodes = self.nodes.len() as u64;
        let weight = self.pace.launch(here.now, nodes, budget::one_in(|| true), budget::parts_per_million());
        if weight == 0 || moved {
            return self.untimed(here.now);
        }
        match self.ready(here) {
            Some(twin) => {
                // Until it is launched, and its nodes are kept.
                twin.join();
                // Launches before the first one of it were timed as a whole: nothing has to stand for them.
                let weight = if self.by_nodes { weight } else { 1 };
                Way::Twin(Ready { twin, weight })
            }
            None => self.untimed(here.now),
        }
    }

    /// It is launched in a stream. Returns whether that is another one than before.
    pub fn go_to(&mut self, stream: P) -> bool {
        let to = stream_of(stream);
        let moved = self.last.replace(to).is_some_and(|last| last != to);
        if moved {
            self.wait_for_twin(stream);
        }
        moved
    }

    /// The way of a launch whose nodes are not timed.
    fn untimed(&mut self, now: u64) -> Way {
        if self.by_nodes && self.left.is_none() {
            let is_held_up = self.pace.is_owing() && self.twin.is_some_and(|twin| !twin.is_idle());
            let asks = is_held_up && now.wrapping_sub(self.asked) > PATIENCE;
            if asks {
                self.asked = now;
            }
            return Way::Counted(asks);
        }
        if let Some(why) = self.left {
            count_left(why, true);
        }
        // So it is timed, by which no other has to stand for it.
        self.pace.settled();
        Way::Whole
    }

    /// Lets this launch wait for the last one of the twin, which the driver would let wait for one of the program's executable. A
    /// twin that ran before another one did so in the same stream, or was waited for.
    fn wait_for_twin(&mut self, stream: P) {
        for twin in self.twin.iter().chain(&self.old).filter(|twin| twin.launches() > 0) {
            // SAFETY: the stream that the program launches in, and an event of a twin that is kept.
            unsafe { driver::cuStreamWaitEvent(stream, twin.end(), 0) };
        }
        // SAFETY: an event of a twin that is kept.
        let is_over = |old: &mut &'static Twin| unsafe { driver::cuEventQuery(old.end()) } == 0;
        self.old.take_if(is_over).into_iter().for_each(Twin::leave);
    }

    /// The twin, made if need be, if it can be launched here and now.
    fn ready(&mut self, here: &Here) -> Option<&'static Twin> {
        let (context, generation) = here.context?;
        if self.twin.is_none() && self.left.is_none() && !self.copy.is_null() {
            if !budget::affords(self.nodes.len() as u64 * (TWIN_TICKS + NODE_TICKS)) {
                return None;
            }
            let _relaxed = driver::Relaxed::new();
            twin::bury();
            let most = self.nodes.len() as u64 * TWIN_TICKS;
            match charged(|_| most, || Twin::make(self.copy, &self.nodes, self.flags, context)) {
                Ok(twin) => self.twin = Some(twin),
                Err(why) => self.give_up(why),
            }
        }
        let is_here = |twin: &&Twin| std::ptr::eq(twin.context, context) && twin.generation == generation;
        self.twin.filter(is_here).filter(|twin| twin.is_idle())
    }

    /// The driver did not take the launch.
    pub fn take_back(&mut self) {
        self.pace.take_back();
    }

    /// The twin was launched: shows its nodes.
    pub fn launched(&mut self, ready: Ready, mut keep: impl FnMut(u32, u32, &Does, [P; 2])) {
        self.pace.timed();
        self.by_nodes = true;
        for (place, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.is_enabled) {
            if let (Some(does), Some(around)) = (&node.does, ready.twin.around(place)) {
                does.counted.add_timed();
                keep(self.number, place as u32 + 1, does, around);
            }
        }
    }

    /// It has become another graph.
    pub fn update(&mut self, executable: P, graph: P) {
        self.forget_twin();
        self.left = None;
        // What comes with each launch is copied only where a launch waits for being timed.
        let copies = self.pace.is_owing() || std::mem::replace(&mut self.was_launched, false);
        charged(
            |most| *most,
            || {
                self.learn(executable, graph, copies);
                self.reading()
            },
        );
    }

    /// A node was changed.
    pub fn change(&mut self, node: P, does: Option<Does>, apply: impl Fn(To) -> u32) {
        let Some(node) = self.nodes.iter_mut().find(|known| known.own == node) else {
            return self.give_up(Left::Refused);
        };
        let is_known = node.does.is_some() == does.is_some();
        node.does = does;
        let copy = node.copy;
        self.sum();
        if !is_known || !self.apply(copy, true, apply) {
            self.give_up(Left::Refused);
        }
    }

    /// A node was switched on or off.
    pub fn enable(&mut self, node: P, is_enabled: bool, apply: impl Fn(To) -> u32) {
        let Some(node) = self.nodes.iter_mut().find(|known| known.own == node) else {
            return self.give_up(Left::Refused);
        };
        node.is_enabled = is_enabled;
        let copy = node.copy;
        self.sum();
        // A graph has no such thing: a twin that is not made yet would not have it.
        if self.twin.is_none() || !self.apply(copy, false, apply) {
            self.give_up(Left::Refused);
        }
    }

    /// Changes the node in the copy, and in the twin.
    fn apply(&self, copy: P, in_graph: bool, apply: impl Fn(To) -> u32) -> bool {
        if self.left.is_some() || copy.is_null() {
            return true;
        }
        let graph = !in_graph || apply(To::Graph(copy)) == 0;
        graph && self.twin.is_none_or(|twin| apply(To::Executable(twin.executable(), copy)) == 0)
    }

    /// It is not timed any more.
    pub fn give_up(&mut self, why: Left) {
        self.forget_twin();
        self.leave(Some(why));
    }

    fn forget_twin(&mut self) {
        if let Some(twin) = self.twin.take() {
            // One that may run is remembered: the next launch may be in another stream.
            let over = if twin.launches() == 0 { Some(twin) } else { self.old.replace(twin) };
            over.into_iter().for_each(Twin::leave);
        }
        let copy = std::mem::replace(&mut self.copy, null_mut());
        if !copy.is_null() {
            // SAFETY: the copy, which nobody else has: an executable does not need its graph.
            unsafe { driver::cuGraphDestroy(copy) };
        }
        self.nodes.iter_mut().for_each(|node| node.copy = null_mut());
    }

    /// A context ends, which it may be of.
    pub fn context_ends(&mut self, of: impl Fn(P) -> bool) {
        if of(self.home) || self.twin.is_some_and(|twin| of(twin.context.handle())) {
            self.end();
        }
    }

    /// It is not launched any more.
    pub fn end(&mut self) {
        self.last = None;
        self.forget_twin();
        self.old.take().into_iter().for_each(Twin::leave);
    }
}
