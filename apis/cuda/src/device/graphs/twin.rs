//! The second executable of a graph: the same nodes, with an event behind each that is to be timed.
//!
//! ```text
//!   the program's     A ──► B ──► C          its twin    ⓪ ──► ① ──► A ──► ⓐ ──► B ──► ⓑ ──► C ──► ⓒ ──► ⓧ
//! ```
//! A node runs from the event before it to the one behind it: that of the one node it waits for, one of its own where it waits
//! for several, and ① where it waits for none. What the event behind it takes by itself, which is what is between ⓪ and ①, and
//! between ⓒ and ⓧ, is taken off ([`price`](super::price)). The order of the program's nodes is the same, so results are. Of
//! nodes that could run beside each other that would not be right: such graphs have no twins. When all
//! events have their times is what an event says that is recorded in the stream behind the graph: those in the graph keep what
//! they had until it has come there.
//!
//! A twin has one user more than there are commands whose times are not known yet. Who goes last puts it into a list, as that may
//! be wherever a command's times are asked for; it is ended where the program makes or ends graphs ([`bury`]).

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use hetrace_interpose::commands::sample::Counted;

use super::super::contexts::Context;
use super::super::driver;
use super::nodes::{Left, Node, list};
use super::price::Price;
use super::{boxed, order, room};
use crate::generated::prelude::{P, null_mut};

/// `CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY`: the only flag that says something of how nodes run.
const NODE_PRIORITY: u64 = 8;
/// Events that a twin may have.
const EVENTS: usize = 1 << 13;

/// Events of a twin: before and behind each node (NULL where none is timed), and those with nothing between them.
type Events = (Vec<[P; 2]>, [[P; 2]; 2]);

/// A twin. It is never moved.
#[derive(Debug)]
pub struct Twin {
    executable: P,
    /// Events before and behind each node, in their order; NULL where none is timed.
    around: Vec<[P; 2]>,
    /// Events behind each other with nothing between them.
    bare: [[P; 2]; 2],
    pub price: Price,
    /// The counts of what its nodes do, each once.
    counts: Vec<&'static Counted>,
    /// All events in the graph.
    events: Vec<P>,
    /// Is recorded behind each launch.
    end: P,
    pub context: &'static Context,
    pub generation: u32,
    users: AtomicU32,
    /// How often it was launched.
    launches: AtomicU32,
    /// The next one in [`ENDED`].
    next: AtomicPtr<Twin>,
}

/// Twins without users.
static ENDED: AtomicPtr<Twin> = AtomicPtr::new(std::ptr::null_mut());

// SAFETY: the driver's functions may be called with these handles from any thread, and nothing but the count is changed.
unsafe impl Sync for Twin {}
// SAFETY: the handles are of no thread.
unsafe impl Send for Twin {}

impl Twin {
    /// Whether nothing that it was launched for waits for times.
    pub fn is_idle(&self) -> bool {
        // Pairs with the Release in `leave`: who asked for times has them.
        self.users.load(Ordering::Acquire) == 1
    }

    /// One more command waits for its times.
    pub fn join(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// A command has its times, or will have none; or the graph is gone. It must not be used any more by whoever has called
    /// this.
    pub fn leave(&'static self) {
        if self.users.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let this = std::ptr::from_ref(self).cast_mut();
        let mut head = ENDED.load(Ordering::Relaxed);
        loop {
            self.next.store(head, Ordering::Relaxed);
            // Pairs with the Acquire in `bury`.
            match ENDED.compare_exchange_weak(head, this, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// The events around a node, by its place; none if it is not timed.
    pub fn around(&self, place: usize) -> Option<[P; 2]> {
        self.around.get(place).copied().filter(|[before, after]| !before.is_null() && !after.is_null())
    }

    /// Its events have times: sees what they take by themselves, once for each launch. `between` says how many nanoseconds are
    /// between two of them.
    pub fn look(&self, between: impl Fn([P; 2]) -> Option<u64>) {
        if !self.price.is_new(self.launches()) {
            return;
        }
        self.bare.iter().filter_map(|pair| between(*pair)).for_each(|ns| self.price.see(ns));
        let off = self.price.may_be_off();
        self.counts.iter().for_each(|counted| counted.may_be_off(off));
    }

    /// The event behind the launch.
    pub fn end(&self) -> P {
        self.end
    }

    /// The executable, for calls that change it.
    pub fn executable(&self) -> P {
        self.executable
    }

    /// How often it was launched: of two equal numbers the event [behind](Self::end) says the same.
    pub fn launches(&self) -> u32 {
        self.launches.load(Ordering::Relaxed)
    }

    /// Launches it. Returns the driver's error.
    pub fn launch(&self, stream: P) -> i32 {
        // Its commands are published after that, and whoever asks about one of them sees it.
        self.launches.fetch_add(1, Ordering::Relaxed);
        // SAFETY: an executable of ours whose context lives, and the stream that the program launches in.
        unsafe { driver::cuGraphLaunch(self.executable, stream) }
    }

    /// Makes the twin of a graph out of a copy of it that nobody else has; `nodes` are those of the copy. It is changed, and
    /// remains the graph that nodes of the twin are named by.
    ///
    /// # Errors
    /// Why there is none. The copy is of no use then.
    pub fn make(
        copy: P,
        nodes: &[Node],
        flags: u64,
        context: &'static Context,
    ) -> Result<&'static Twin, Left> {
        let generation = context.generation();
        let mut plan = Plan { context, graph: copy, events: room(nodes.len() * 2 + 4).ok_or(Left::TooMany)? };
        let counts = counts(nodes).ok_or(Left::TooMany)?;
        let made = plan.instrument(nodes).and_then(|(around, bare)| {
            let (end, mut executable) = (plan.event()?, null_mut());
            // SAFETY: the copy, and room for the answer.
            let error =
                unsafe { driver::cuGraphInstantiateWithFlags(&mut executable, copy, flags & NODE_PRIORITY) };
            (error == 0 && !executable.is_null())
                .then_some((around, bare, end, executable))
                .ok_or(Left::Refused)
        });
        let Plan { events, .. } = plan;
        match made {
            Ok((around, bare, end, executable)) => {
                let events = events.into_iter().filter(|event| *event != end).collect();
                let (users, launches) = (AtomicU32::new(1), AtomicU32::new(0));
                let next = AtomicPtr::new(std::ptr::null_mut());
                let price = Price::new();
                let twin = Twin {
                    executable,
                    around,
                    bare,
                    price,
                    counts,
                    events,
                    end,
                    context,
                    generation,
                    users,
                    launches,
                    next,
                };
                boxed(twin).map_or(Err(Left::TooMany), |twin| Ok(&*Box::leak(twin)))
            }
            Err(left) => {
                for event in events {
                    // SAFETY: of the context, and only in a graph that is never instantiated.
                    unsafe { context.pool.give(event) };
                }
                Err(left)
            }
        }
    }
}

/// Ends the twins that have no users any more. Not in a signal handler, and not where a command is asked about.
pub fn bury() {
    if ENDED.load(Ordering::Relaxed).is_null() {
        return;
    }
    // Pairs with the Release in `leave`. All are taken at once, so none is in the list that another takes.
    let mut next = ENDED.swap(std::ptr::null_mut(), Ordering::Acquire);
    while !next.is_null() {
        // SAFETY: made by `boxed`, and put into the list by its last user, once; we have taken it out.
        let twin = unsafe { Box::from_raw(next) };
        next = twin.next.load(Ordering::Relaxed);
        let Some(_in_use) = twin.context.enter(twin.generation) else { continue };
        // SAFETY: an executable of ours, which nobody launches any more; its context lives.
        unsafe { driver::cuGraphExecDestroy(twin.executable) };
        for event in twin.events.iter().chain([&twin.end]) {
            // SAFETY: events of the context, which no graph and no command refers to any more.
            unsafe { twin.context.pool.give(*event) };
        }
    }
}

/// A graph into which events are put.
struct Plan {
    context: &'static Context,
    graph: P,
    events: Vec<P>,
}

impl Plan {
    /// One more event.
    fn event(&mut self) -> Result<P, Left> {
        // SAFETY: the context lives: the program is using it.
        let event = unsafe { self.context.pool.take(self.context.handle()) };
        if event.is_null() || self.events.len() >= EVENTS {
            return Err(Left::Refused);
        }
        self.events.push(event);
        Ok(event)
    }

    /// Adds a node that records an event behind others. Returns both.
    fn record(&mut self, behind: &[P]) -> Result<(P, P), Left> {
        let (event, mut node) = (self.event()?, null_mut());
        // SAFETY: a graph of ours, nodes of it, an event of its context, and room for the answer.
        let error = unsafe {
            driver::cuGraphAddEventRecordNode(&mut node, self.graph, behind.as_ptr(), behind.len(), event)
        };
        if error == 0 { Ok((node, event)) } else { Err(Left::Refused) }
    }

    /// Puts events around each node that does something. Returns them, in the order of the nodes, and those with nothing between
    /// them.
    fn instrument(&mut self, nodes: &[Node]) -> Result<Events, Left> {
        let (from, to) = edges(self.graph)?;
        let waits = waits(nodes, &from, &to)?;
        let does = |place: usize| nodes.get(place).is_some_and(|node| node.does.is_some());
        let last = order::last_in_row(&waits, does)
            .map_err(|no_memory| if no_memory { Left::TooMany } else { Left::Branches })?;
        // SAFETY: all edges of a graph of ours, as the driver has just said them.
        let error =
            unsafe { driver::cuGraphRemoveDependencies(self.graph, from.as_ptr(), to.as_ptr(), from.len()) };
        if error != 0 && !from.is_empty() {
            return Err(Left::Refused);
        }
        let (begin, at_begin) = self.record(&[])?;
        let first = self.record(&[begin])?;
        let mut behind: Vec<Option<(P, P)>> = room(nodes.len()).ok_or(Left::TooMany)?;
        for node in nodes {
            behind.push(if node.does.is_some() { Some(self.record(&[node.copy])?) } else { None });
        }
        let (end, at_end) = last.and_then(|last| behind.get(last).copied().flatten()).unwrap_or(first);
        let bare = [[at_begin, first.1], [at_end, self.record(&[end])?.1]];
        let mut around = room(nodes.len()).ok_or(Left::TooMany)?;
        let mut wired = Wired::default();
        for (node, waits) in nodes.iter().zip(&waits) {
            let before = self.wire(node, waits, nodes, &behind, first, &mut wired)?;
            around.push([
                before,
                behind.get(around.len()).copied().flatten().map_or(null_mut(), |(_, event)| event),
            ]);
        }
        let Wired { from, to } = wired;
        // SAFETY: a graph of ours, and nodes of it.
        let error =
            unsafe { driver::cuGraphAddDependencies(self.graph, from.as_ptr(), to.as_ptr(), from.len()) };
        if error == 0 || from.is_empty() { Ok((around, bare)) } else { Err(Left::Refused) }
    }

    /// Lets a node wait for what it waits for in the program's graph, and for the events behind these. Returns the event before
    /// it; NULL if it is not timed.
    fn wire(
        &mut self,
        node: &Node,
        waits: &[usize],
        nodes: &[Node],
        behind: &[Option<(P, P)>],
        first: (P, P),
        wired: &mut Wired,
    ) -> Result<P, Left> {
        let event_of = |place: usize| behind.get(place).copied().flatten();
        let mut others: Vec<P> = room(waits.len()).ok_or(Left::TooMany)?;
        for place in waits {
            let own = nodes.get(*place).ok_or(Left::Refused)?.copy;
            others.push(event_of(*place).map_or(own, |(node, _)| node));
        }
        let is_timed = node.does.is_some();
        let before = match (is_timed, waits) {
            (false, _) => None,
            (true, []) => Some(first),
            (true, [one]) if event_of(*one).is_some() => event_of(*one),
            (true, _) => Some(self.record(&others)?),
        };
        match before {
            Some((event, _)) => wired.add(event, node.copy)?,
            None => others.iter().try_for_each(|other| wired.add(*other, node.copy))?,
        }
        Ok(before.map_or(null_mut(), |(_, event)| event))
    }
}

/// Edges to be added.
#[derive(Default)]
struct Wired {
    from: Vec<P>,
    to: Vec<P>,
}

impl Wired {
    fn add(&mut self, from: P, to: P) -> Result<(), Left> {
        if self.from.try_reserve(1).is_err() || self.to.try_reserve(1).is_err() {
            return Err(Left::TooMany);
        }
        self.from.push(from);
        self.to.push(to);
        Ok(())
    }
}

/// For each node of the copy the places of those that it waits for, by the edges.
fn waits(nodes: &[Node], from: &[P], to: &[P]) -> Result<Vec<Vec<usize>>, Left> {
    let place = places(nodes).ok_or(Left::TooMany)?;
    let find = |node: P| place.binary_search_by_key(&node, |(copy, _)| *copy).ok().and_then(|i| place.get(i));
    let mut waits: Vec<Vec<usize>> = room(nodes.len()).ok_or(Left::TooMany)?;
    waits.resize(nodes.len(), Vec::new());
    for (from, to) in from.iter().zip(to) {
        let (Some((_, from)), Some((_, to))) = (find(*from), find(*to)) else { return Err(Left::Refused) };
        let waits = waits.get_mut(*to).ok_or(Left::Refused)?;
        waits.try_reserve(1).map_err(|_| Left::TooMany)?;
        waits.push(*from);
    }
    Ok(waits)
}

/// The counts of what nodes do, each once.
fn counts(nodes: &[Node]) -> Option<Vec<&'static Counted>> {
    let mut counts = room(nodes.len())?;
    counts.extend(nodes.iter().filter_map(|node| node.does).map(|does| does.counted));
    counts.sort_unstable_by_key(|counted| std::ptr::from_ref(*counted));
    counts.dedup_by_key(|counted| std::ptr::from_ref(*counted));
    Some(counts)
}

/// The nodes of the copy, sorted, each with its place.
fn places(nodes: &[Node]) -> Option<Vec<(P, usize)>> {
    let mut places = room(nodes.len())?;
    places.extend(nodes.iter().enumerate().map(|(place, node)| (node.copy, place)));
    places.sort_unstable();
    Some(places)
}

/// All edges of a graph: from where, and where to. The driver refuses to say them where they say more than that.
fn edges(graph: P) -> Result<(Vec<P>, Vec<P>), Left> {
    let mut count = 0;
    // SAFETY: a graph of ours, and room for the number.
    if unsafe { driver::cuGraphGetEdges(graph, null_mut(), null_mut(), &mut count) } != 0 {
        return Err(Left::Edges);
    }
    let (mut from, mut to) = (room(count).ok_or(Left::TooMany)?, room(count).ok_or(Left::TooMany)?);
    from.resize(count, null_mut());
    to.resize(count, null_mut());
    // SAFETY: the same graph, and room for so many.
    let error = unsafe { driver::cuGraphGetEdges(graph, from.as_mut_ptr(), to.as_mut_ptr(), &mut count) };
    from.truncate(count);
    to.truncate(count);
    if error == 0 { Ok((from, to)) } else { Err(Left::Edges) }
}

/// Copies a graph, and finds its nodes in the copy. Returns the copy.
///
/// # Errors
/// Why there is none.
pub fn copy(graph: P, nodes: &mut [Node]) -> Result<P, Left> {
    let mut copy = null_mut();
    // SAFETY: a graph of the program's, which it has just passed to the driver, and room for the answer.
    if unsafe { driver::cuGraphClone(&mut copy, graph) } != 0 || copy.is_null() {
        return Err(Left::Refused);
    }
    let found = nodes.iter_mut().all(|node| {
        // SAFETY: a node of the graph that was copied, the copy, and room for the answer.
        unsafe { driver::cuGraphNodeFindInClone(&mut node.copy, node.own, copy) == 0 && !node.copy.is_null() }
    });
    if found && list(copy).is_some_and(|all| all.len() == nodes.len()) {
        return Ok(copy);
    }
    nodes.iter_mut().for_each(|node| node.copy = null_mut());
    // SAFETY: the copy, which nobody else has.
    unsafe { driver::cuGraphDestroy(copy) };
    Err(Left::Refused)
}
