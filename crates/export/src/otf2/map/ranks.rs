//! Who communicates with whom: windows of memory between threads and queues, and
//! communicators of collectives.
//!
//! A copy between host and device is an access of the queue to the memory of the thread
//! that enqueued it: it gets what goes to the device and puts what goes to the host. There
//! is a window for each process and paradigm.
//!
//! A rank of a communicator is the thread that called for it. Ranks that no thread of the
//! trace called for are locations without events, so that ranks are what the program says.

use std::collections::HashMap;

use hetrace_trace::collectives::Communicator;
use hetrace_trace::spans::{Command, CommandKind, Direction};

use super::super::archive::Archive;
use super::super::definitions::{Definitions, LocationKind, Members};
use super::super::encode::UNDEFINED;
use super::super::events::{Access, Collective, Message};
use super::communicators::{MAX_RANKS, name_of};
use super::messages::{Planned, is_send};
use super::places::Places;
use super::threads::Threads;

/// Where a command copies between host and device; none if it does not, or if it is not known.
pub(in crate::otf2) fn between(command: &Command<'_>) -> Option<Direction> {
    if command.bytes == 0 || command.times.is_none() {
        return None;
    }
    match command.direction()? {
        // Mapped memory is not read and written by the command that maps it.
        _ if matches!(command.kind, CommandKind::Map | CommandKind::Unmap) => None,
        direction @ (Direction::ToDevice | Direction::ToHost) => Some(direction),
        Direction::Within | Direction::Peer => None,
    }
}

/// Locations in the order of their ranks.
#[derive(Clone, Debug, Default)]
struct Ranks {
    locations: Vec<u32>,
    by_location: HashMap<u32, u32>,
}

impl Ranks {
    /// The rank of a location, a new one if it has none.
    fn of(&mut self, location: u32) -> u32 {
        *self.by_location.entry(location).or_insert_with(|| {
            self.locations.push(location);
            u32::try_from(self.locations.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

/// A window: whose, and who is in it.
#[derive(Debug)]
struct Window {
    pid: i64,
    paradigm: u8,
    ranks: Ranks,
    accesses: u64,
}

/// All windows so far.
#[derive(Debug, Default)]
pub(in crate::otf2) struct Windows {
    all: Vec<Window>,
    /// Copies of a process without a thread.
    pub alone: u64,
}

impl Windows {
    /// What a copy is.
    pub fn access(
        &mut self,
        command: &Command<'_>,
        (to, paradigm): (Direction, u8),
        location: u32,
        threads: &Threads,
    ) -> Option<Access> {
        let Some(thread) = threads.by_ids(command.pid, command.cause_tid) else {
            self.alone += 1;
            return None;
        };
        let same = |w: &Window| w.pid == command.pid && w.paradigm == paradigm;
        let at = self.all.iter().position(same).unwrap_or_else(|| {
            let ranks = Ranks::default();
            self.all.push(Window { pid: command.pid, paradigm, ranks, accesses: 0 });
            self.all.len() - 1
        });
        let window = self.all.get_mut(at)?;
        let remote = window.ranks.of(thread);
        window.ranks.of(location);
        window.accesses += 1;
        Some(Access {
            get: to == Direction::ToDevice,
            window: u32::try_from(at).ok()?,
            remote,
            bytes: command.bytes,
            matching: window.accesses,
        })
    }
}

/// A communicator of the program.
#[derive(Debug)]
struct Known {
    name: String,
    size: Option<u64>,
    paradigm: u8,
    /// Locations by rank; by order of their calls where ranks are not recorded.
    ranks: Vec<(u64, u32)>,
}

/// All communicators so far.
#[derive(Debug, Default)]
pub(in crate::otf2) struct Communicators {
    all: Vec<Known>,
    by_name: HashMap<String, usize>,
}

/// What a thread does together with other ranks.
#[derive(Clone, Copy, Debug)]
pub(in crate::otf2) struct Operation<'a> {
    pub name: &'a str,
    pub communicator: &'a Communicator,
    pub paradigm: u8,
    /// The root's rank, or the other one's of a send or receive.
    pub root: Option<u64>,
    /// What the count of elements makes.
    pub bytes: u64,
}

impl Communicators {
    /// The place of a communicator, of which a location stands for the caller's rank if none does.
    fn member(&mut self, about: &Communicator, paradigm: u8, location: u32) -> Option<usize> {
        let name = name_of(about);
        let at = match self.by_name.get(&name) {
            Some(at) => *at,
            None => {
                self.all.push(Known { name: name.clone(), size: about.size, paradigm, ranks: Vec::new() });
                self.by_name.insert(name, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        let known = self.all.get_mut(at)?;
        let next = known.ranks.len() as u64;
        if !known.ranks.iter().any(|(rank, l)| about.rank.map_or(*l == location, |r| *rank == r)) {
            known.ranks.push((about.rank.unwrap_or(next), location));
        }
        Some(at)
    }

    /// What a send or receive that has its counterpart is in the archive; none of an operation of
    /// all ranks.
    pub fn message(
        &mut self,
        operation: &Operation<'_>,
        location: u32,
        planned: Option<Planned>,
    ) -> Option<Message> {
        let sends = is_send(operation.name)?;
        let at = self.member(operation.communicator, operation.paradigm, location)?;
        Some(Message {
            sends,
            communicator: u32::try_from(at).ok()?,
            peer: u32::try_from(operation.root?).ok()?,
            bytes: operation.bytes,
            request: planned?.request,
        })
    }

    /// What an operation is in the archive; none of those that OTF2 has no word for.
    pub fn collective(&mut self, operation: &Operation<'_>, location: u32) -> Option<Collective> {
        let number = match operation.name {
            "barrier" => 0,
            "broadcast" => 1,
            "gather" => 2,
            "scatter" => 4,
            "all-gather" => 6,
            "all-to-all" => 8,
            "all-reduce" => 11,
            "reduce" => 12,
            "reduce-scatter" => 16,
            _ => return None,
        };
        let about = operation.communicator;
        let at = self.member(about, operation.paradigm, location)?;
        let known = self.all.get(at)?;
        let ranks = known.size.filter(|n| *n <= MAX_RANKS);
        let root = operation.root.filter(|root| ranks.is_some_and(|n| *root < n));
        let (one, n) = (operation.bytes, about.size.unwrap_or(1));
        let (all, is_root) =
            (one.saturating_mul(n), operation.root.is_some() && operation.root == about.rank);
        let at_root = |bytes: u64| if is_root { bytes } else { 0 };
        let (sent, received) = match operation.name {
            "barrier" => (0, 0),
            "broadcast" => (at_root(one), one),
            "gather" => (one, at_root(all)),
            "scatter" => (at_root(all), one),
            "all-gather" => (one, all),
            "all-to-all" => (all, all),
            "reduce" => (one, at_root(one)),
            "reduce-scatter" => (all, one),
            _ => (one, one),
        };
        Some(Collective {
            operation: number,
            communicator: u32::try_from(at).ok()?,
            root: root.and_then(|r| u32::try_from(r).ok()).unwrap_or(UNDEFINED),
            sent,
            received,
        })
    }
}

/// Defines all that was communicated in.
pub(in crate::otf2) fn define(
    archive: &mut Archive,
    places: &mut Places<'_>,
    communicators: Communicators,
    windows: &Windows,
) {
    let mut absent = Absent { group: None, locations: Vec::new() };
    let all = communicators.all.into_iter();
    let communicators: Vec<_> = all.map(|c| c.members(archive, places, &mut absent)).collect();
    let windows = windows.all.iter().map(|w| {
        let name = format!("copies of process {}", w.pid);
        (name, w.paradigm, w.ranks.locations.clone())
    });
    let windows: Vec<_> = windows.collect();
    let definitions = &mut archive.definitions;
    // One list of locations for each paradigm, and where each is in it.
    let mut lists: Vec<(u8, Ranks)> = Vec::new();
    for (_, paradigm, members) in communicators.iter().chain(&windows) {
        if !lists.iter().any(|(p, _)| p == paradigm) {
            lists.push((*paradigm, Ranks::default()));
        }
        for (_, ranks) in lists.iter_mut().filter(|(p, _)| p == paradigm) {
            members.iter().for_each(|location| _ = ranks.of(*location));
        }
    }
    for (paradigm, ranks) in &lists {
        definitions.group("locations that communicate", Members::Locations, *paradigm, &ranks.locations);
    }
    let communicator = |definitions: &mut Definitions, (name, paradigm, members): &_| {
        let list = lists.iter().find(|(p, _)| p == paradigm).map(|(_, ranks)| &ranks.by_location);
        let members: &Vec<u32> = members;
        let positions = members.iter().filter_map(|location| list?.get(location).copied());
        let positions: Vec<u32> = positions.collect();
        let name: &String = name;
        let group = definitions.group(name, Members::Positions, *paradigm, &positions);
        definitions.communicator(name, group)
    };
    for one in &communicators {
        communicator(definitions, one);
    }
    for one in &windows {
        let number = communicator(definitions, one);
        definitions.window(&one.0, number);
    }
}

/// Locations of ranks that are not in the trace.
struct Absent {
    group: Option<u32>,
    locations: Vec<u32>,
}

impl Absent {
    fn location(&mut self, archive: &mut Archive, places: &mut Places<'_>, rank: usize) -> u32 {
        while self.locations.len() <= rank {
            let group = *self.group.get_or_insert_with(|| places.absent(&mut archive.definitions));
            let name = format!("rank {}", self.locations.len());
            self.locations.push(archive.location(&name, LocationKind::Thread, group));
        }
        self.locations.get(rank).copied().unwrap_or(0)
    }
}

impl Known {
    /// Its locations by rank.
    fn members(
        mut self,
        archive: &mut Archive,
        places: &mut Places<'_>,
        absent: &mut Absent,
    ) -> (String, u8, Vec<u32>) {
        self.ranks.sort_unstable();
        let mut members = Vec::new();
        let size = self.size.filter(|n| *n <= MAX_RANKS);
        match size {
            Some(size) => {
                for rank in 0..size {
                    let known = self.ranks.iter().find(|(r, _)| *r == rank).map(|(_, location)| *location);
                    // A thread that calls for several ranks is the first of them.
                    let own = known.filter(|location| !members.contains(location));
                    members.push(own.unwrap_or_else(|| absent.location(archive, places, rank as usize)));
                }
            }
            None => {
                for (_, location) in &self.ranks {
                    if !members.contains(location) {
                        members.push(*location);
                    }
                }
            }
        }
        (self.name, self.paradigm, members)
    }
}
