//! Nodes of graphs where recording has a budget, and CUPTI is not used: all are counted, and those of some launches timed.
//!
//! When the program makes an executable graph its nodes are read, and the graph is copied. Before the first launch whose nodes are to be timed
//! ([`pace`]) the copy gets events around each node, and an executable of its own ([`twin`]), which is launched in the program's place
//! then. What the program changes in its executable is changed in the twin. Wherever that can't be, or is in doubt, the
//! program's own is launched, untouched; a graph that was never timed by nodes is timed as a whole, as any command.
//!
//! * *Counts* are of each launch, by a number for all nodes, which becomes counts of kernels when these are reported.
//! * *A graph does not run beside itself*: the driver lets launches of one executable run one after the other. A twin is another
//!   one, so it is launched only in the stream in which the graph was launched last, and a launch in another stream
//!   waits for it.
//! * *One thread at a time* has a graph, as the driver demands it of the program; reports of counts may come in between, for a moment.
//!
//! Threads find graphs in a [`Table`], and have one by turns, by a flag that is taken with Acquire and given back with Release.

mod known;
mod nodes;
mod order;
mod pace;
mod price;
mod twin;

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use hetrace_interpose::commands::sample::{self, Nodes};
use hetrace_interpose::commands::{Mapped, Zeroed};
use hetrace_interpose::table::Table;
use hetrace_interpose::{ErrnoGuard, budget, pid};

use super::record::Note;
use super::{driver, streams};
use crate::generated::prelude::{P, null_mut};
use known::Known;
pub use known::{Here, Ready, Way};
pub use nodes::{Does, any, copy, fill, kernel};
use nodes::{Left, REASONS};
pub use twin::Twin;

/// Graphs that live at the same time; nodes of more are not counted.
const MOST: usize = 1 << 12;
/// How often another thread is waited for that has a graph.
const TURNS: u32 = 2000;

/// An executable graph of the program's.
struct Graph {
    /// Its handle; 0: the place is free.
    executable: AtomicU64,
    taken: AtomicBool,
    /// Launches whose nodes are not in the counts yet: of which some are timed by nodes, and such as are timed as a whole or
    /// not at all.
    sampled: AtomicU64,
    whole: AtomicU64,
    known: AtomicPtr<Known>,
}

// SAFETY: it is made of atomics, for which zeros are values.
unsafe impl Zeroed for Graph {}

static GRAPHS: Mapped<Graph, MOST> = Mapped::new();
/// Handle → its place, counted from 1; 0: it has ended.
static PLACES: Table<16384> = Table::new();
/// How many there are.
static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Numbers that were given away.
static NUMBERS: AtomicU64 = AtomicU64::new(1);
/// Graphs that were left, and their launches, by the reason.
static LEFT: [[AtomicU64; 2]; REASONS.len()] = [const { [const { AtomicU64::new(0) }; 2] }; REASONS.len()];

/// An empty list with room for so many; none if there is no memory.
fn room<T>(count: usize) -> Option<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).ok().map(|()| list)
}

/// A value in memory of its own; none if there is no memory.
fn boxed<T>(value: T) -> Option<Box<T>> {
    let layout = std::alloc::Layout::new::<T>();
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: not of size 0.
    let place = unsafe { std::alloc::alloc(layout) }.cast::<T>();
    if place.is_null() {
        return None;
    }
    // SAFETY: fresh memory of this layout, which is nobody else's.
    unsafe {
        place.write(value);
        Some(Box::from_raw(place))
    }
}

/// Counts a graph that is left, or a launch of it.
fn count_left(why: Left, launch: bool) {
    if let Some(count) = LEFT.get(why as usize).and_then(|counts| counts.get(usize::from(launch))) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether nodes of graphs are looked at: commands are timed by events, within a budget.
fn is_on() -> bool {
    budget::is_limited() && super::times_by_events() && super::is_owner(pid())
}

impl Graph {
    /// The graph of an executable.
    fn of(executable: P) -> Option<&'static Graph> {
        if LIVE.load(Ordering::Acquire) == 0 {
            return None;
        }
        let place = PLACES.get(executable as u64)?.checked_sub(1)?;
        let graph = GRAPHS.all().get(usize::try_from(place).ok()?)?;
        (graph.executable.load(Ordering::Relaxed) == executable as u64).then_some(graph)
    }

    /// Does something with what is known of it; nothing if another thread has it for too long, or it has ended.
    fn with<R>(&self, work: impl FnOnce(&mut Known) -> R) -> Option<R> {
        // Pairs with the Release below.
        let mut turns = 0;
        while self.taken.swap(true, Ordering::Acquire) {
            turns += 1;
            if turns > TURNS {
                return None;
            }
            if turns > 100 {
                // SAFETY: no preconditions.
                unsafe { libc::sched_yield() };
            }
        }
        let known = self.known.load(Ordering::Relaxed);
        let result = (!known.is_null()).then(|| {
            // SAFETY: made by `boxed`. This thread alone has it as long as the flag is set: also a handler that comes in between
            // finds the flag.
            let mut known = unsafe { Box::from_raw(known) };
            let result = work(&mut known);
            // It stays where it is.
            let _ = Box::into_raw(known);
            result
        });
        self.taken.store(false, Ordering::Release);
        result
    }

    /// Puts the nodes of launches so far into the counts.
    fn count(&self) {
        for (launches, nodes) in [(&self.sampled, Nodes::Sampled), (&self.whole, Nodes::OfGraphs)] {
            if launches.load(Ordering::Relaxed) > 0 {
                self.with(|known| known.count(nodes, launches.swap(0, Ordering::Relaxed)));
            }
        }
    }

    /// A place that is this graph's from now on.
    fn take(executable: P) -> Option<&'static Graph> {
        let free = |graph: &&Graph| {
            graph.executable.load(Ordering::Relaxed) == 0
                && graph.executable.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let place = GRAPHS.or_map().iter().position(|graph| free(&graph))?;
        let graph = GRAPHS.all().get(place)?;
        graph.sampled.store(0, Ordering::Relaxed);
        graph.whole.store(0, Ordering::Relaxed);
        graph.executable.store(executable as u64, Ordering::Relaxed);
        LIVE.fetch_add(1, Ordering::AcqRel);
        if PLACES.set(executable as u64, place as u64 + 1) {
            return Some(graph);
        }
        graph.give_back();
        None
    }

    /// The place is free again.
    fn give_back(&self) {
        LIVE.fetch_sub(1, Ordering::AcqRel);
        // Pairs with the Acquire in `take`.
        self.executable.store(0, Ordering::Release);
    }
}

/// The program has made an executable of a graph.
pub fn made(executable: P, graph: P, flags: u64) {
    if !is_on() {
        return;
    }
    let _errno = ErrnoGuard::new();
    let _relaxed = driver::Relaxed::new();
    twin::bury();
    let read = || Known::read(executable, graph, flags, NUMBERS.fetch_add(1, Ordering::Relaxed));
    let known = known::charged(Known::reading, read);
    let Some(place) = Graph::take(executable) else { return count_left(Left::TooMany, false) };
    match boxed(known) {
        Some(known) => place.known.store(Box::into_raw(known), Ordering::Release),
        None => place.give_back(),
    }
}

/// The program is about to end an executable.
pub fn ends(executable: P) {
    let Some(graph) = Graph::of(executable).filter(|_| super::is_owner(pid())) else { return };
    let _errno = ErrnoGuard::new();
    let _relaxed = driver::Relaxed::new();
    super::synchronized();
    graph.count();
    PLACES.remove(executable as u64);
    let taken = graph.with(|known| {
        known.end();
        graph.known.swap(null_mut(), Ordering::Relaxed)
    });
    if let Some(known) = taken.filter(|known| !known.is_null()) {
        // SAFETY: made by `boxed`; the place does not lead to it any more, and who has the flag is this thread.
        drop(unsafe { Box::from_raw(known) });
        graph.give_back();
    }
    twin::bury();
}

/// The program has changed an executable into another graph, or has tried to.
pub fn updated(executable: P, graph: P, is_done: bool) {
    let Some(place) = Graph::of(executable).filter(|_| is_on()) else { return };
    let _errno = ErrnoGuard::new();
    let _relaxed = driver::Relaxed::new();
    twin::bury();
    place.count();
    place.with(|known| match is_done {
        true => known.update(executable, graph),
        false => known.give_up(Left::Refused),
    });
}

/// Where a change is to be made.
#[derive(Debug, Clone, Copy)]
pub enum To {
    /// In an executable, in the node of its graph.
    Executable(P, P),
    /// In a node of a graph.
    Graph(P),
}

/// The program has changed a node of an executable: what it does now, if that is known, and `apply` changes other executables and
/// nodes likewise; it returns the driver's error.
pub fn changed(executable: P, node: P, does: impl FnOnce() -> Option<Does>, apply: impl Fn(To) -> u32) {
    let Some(graph) = Graph::of(executable).filter(|_| is_on()) else { return };
    let _errno = ErrnoGuard::new();
    graph.count();
    graph.with(|known| known.change(node, does(), apply));
}

/// The program has switched a node of an executable on or off.
pub fn enabled(executable: P, node: P, is_enabled: bool, apply: impl Fn(To) -> u32) {
    let Some(graph) = Graph::of(executable).filter(|_| is_on()) else { return };
    let _errno = ErrnoGuard::new();
    graph.count();
    graph.with(|known| known.enable(node, is_enabled, apply));
}

/// A graph that is about to be launched.
#[derive(Clone, Copy)]
pub struct Launching {
    graph: &'static Graph,
    /// How many nodes are counted, and how.
    count: u64,
    nodes: Nodes,
}

/// Counts a launch of an executable in a stream, and decides how it is done; none if nothing is known of it.
pub fn launching(executable: P, here: &Here) -> Option<(Launching, Way)> {
    let graph = Graph::of(executable).filter(|_| is_on())?;
    let (way, count) = graph.with(|known| (known.launch(here), known.per_launch()))?;
    // One launch is in one sum of times: that of its graph, or those of its nodes.
    let nodes = if matches!(way, Way::Whole) { Nodes::OfGraphs } else { Nodes::Sampled };
    let launching = Launching { graph, count, nodes };
    launching.launches().fetch_add(1, Ordering::Relaxed);
    sample::count(count.cast_signed());
    Some((launching, way))
}

/// Whether nodes of an executable are counted.
pub fn is_known(executable: P) -> bool {
    Graph::of(executable).is_some_and(|_| is_on())
}

/// An executable is launched in a stream, and nothing of that is recorded.
pub fn unseen(executable: P, stream: P) {
    if let Some(graph) = Graph::of(executable) {
        graph.with(|known| known.go_to(stream));
    }
}

impl Launching {
    fn launches(self) -> &'static AtomicU64 {
        match self.nodes {
            Nodes::Sampled => &self.graph.sampled,
            Nodes::OfGraphs => &self.graph.whole,
        }
    }

    /// The driver did not take it.
    #[cold]
    pub fn failed(self) {
        self.launches().fetch_sub(1, Ordering::Relaxed);
        sample::count(-self.count.cast_signed());
        self.graph.with(Known::take_back);
    }

    /// The twin can't be launched: it never is again.
    #[cold]
    pub fn refused(self, ready: Ready) {
        ready.twin.leave();
        self.graph.with(|known| known.give_up(Left::Refused));
    }

    /// The twin was launched: shows each of its nodes, with the driver's number of the graph, its own, and the events around it.
    pub fn each(self, ready: Ready, keep: impl FnMut(u32, u32, &Does, [P; 2])) {
        if self.graph.with(|known| known.launched(ready, keep)).is_some() {
            ready.twin.leave();
        }
        // Else it stays in use: nobody knows when it is through.
    }
}

/// Whether the stream is the same as before: default streams of threads have one handle.
fn stream_of(handle: P) -> (P, u32) {
    (handle, if streams::is_own(handle, false) { hetrace_interpose::thread_id() } else { 0 })
}

/// Puts all nodes of launches into the counts, which are about to be reported.
pub fn count_all() {
    if LIVE.load(Ordering::Acquire) > 0 && super::is_owner(pid()) {
        GRAPHS
            .all()
            .iter()
            .filter(|graph| graph.executable.load(Ordering::Relaxed) > 1)
            .for_each(Graph::count);
    }
}

/// A context is about to end: there is nothing to be launched in it any more.
pub fn context_ends(context: P) {
    if LIVE.load(Ordering::Acquire) == 0 || !super::is_owner(pid()) {
        return;
    }
    let of = |other: P| context.is_null() || other == context;
    for graph in GRAPHS.all().iter().filter(|graph| graph.executable.load(Ordering::Relaxed) > 1) {
        graph.with(|known| known.context_ends(of));
    }
    twin::bury();
}

/// Says which graphs were left, once, when the process ends.
pub fn say_left() {
    for (why, [graphs, launches]) in REASONS.iter().zip(&LEFT) {
        let (graphs, launches) = (graphs.swap(0, Ordering::Relaxed), launches.swap(0, Ordering::Relaxed));
        if graphs > 0 {
            let note = Note::new()
                .text(b"device times: nodes of ")
                .number(graphs)
                .text(b" graphs are counted and not timed, with ");
            note.number(launches).text(b" launches timed as a whole: ").text(why).leave();
        }
    }
}
