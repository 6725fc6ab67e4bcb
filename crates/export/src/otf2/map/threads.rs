//! Threads: calls and pushed ranges as regions, one inside the other.
//!
//! Calls of several APIs and ranges of several domains need not end in the order in which
//! OTF2 wants it. What ends first ends all that is inside with it, as the timeline has it.

use std::collections::HashMap;

use hetrace_trace::spans::{At, Fold};
use hetrace_trace::trace::{FunctionId, ThreadId};

use super::super::definitions::LocationKind;
use super::super::events::{self, Collective, Message, Value};
use super::super::lanes::Lanes;
use super::output::{Attribute, NOTHING, Output, With};
use super::places::Places;
use crate::Error;

/// What is open on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::otf2) enum Open {
    /// The call of this depth.
    Call(u32),
    /// The range of this key.
    Range(u64),
}

/// A region that the thread is in.
#[derive(Clone, Copy, Debug)]
struct Frame {
    what: Open,
    region: u32,
    /// The operation of several ranks that it is.
    collective: Option<Collective>,
}

/// A thread.
#[derive(Debug)]
struct Thread {
    pid: i64,
    tid: i64,
    location: u32,
    group: u32,
    frames: Vec<Frame>,
    /// Runs of equal calls that other calls cross.
    runs: Option<Lanes>,
    /// The same of calls that were added up.
    sums: Option<Lanes>,
    /// Messages in flight, those that end first last.
    in_flight: Vec<(u64, Message)>,
}

impl Thread {
    /// Ends the messages that are done at a time.
    #[inline]
    fn settle(&mut self, out: &mut Output, time: u64) -> Result<(), Error> {
        while let Some((until, message)) = self.in_flight.pop_if(|(until, _)| *until <= time) {
            out.event(self.location, until, |bytes| message.end(bytes))?;
        }
        Ok(())
    }
}

/// All threads so far.
#[derive(Debug, Default)]
pub(in crate::otf2) struct Threads {
    all: Vec<Option<Thread>>,
    /// Locations by process and thread.
    by_ids: HashMap<(i64, i64), u32>,
    /// Of the first thread of each process.
    first: HashMap<i64, u32>,
    /// Regions that ended with what was around them.
    pub shortened: u64,
    /// Runs that found no place.
    pub crowded: u64,
}

impl Threads {
    /// The location of a thread.
    #[inline]
    pub fn location(&mut self, out: &mut Output, places: &mut Places<'_>, at: At<'_>) -> u32 {
        self.thread(out, places, at).map_or(0, |t| t.location)
    }

    fn thread(&mut self, out: &mut Output, places: &mut Places<'_>, at: At<'_>) -> Option<&mut Thread> {
        let index = at.thread.index();
        if !matches!(self.all.get(index), Some(Some(_))) {
            if self.all.len() <= index {
                self.all.resize_with(index + 1, || None);
            }
            let who = at.who();
            let group = places.process(&mut out.archive.definitions, who.pid, &who.name);
            // Its name is set at the end, when it is known.
            let location = out.archive.location("", LocationKind::Thread, group);
            self.by_ids.insert((who.pid, who.tid), location);
            self.first.entry(who.pid).or_insert(location);
            let (pid, tid) = (who.pid, who.tid);
            self.all[index] = Some(Thread {
                pid,
                tid,
                location,
                group,
                frames: Vec::new(),
                runs: None,
                sums: None,
                in_flight: Vec::new(),
            });
        }
        self.all.get_mut(index)?.as_mut()
    }

    /// The location of a thread by its ids; if it has none, of any thread of its process.
    pub fn by_ids(&self, pid: i64, tid: i64) -> Option<u32> {
        self.by_ids.get(&(pid, tid)).or_else(|| self.first.get(&pid)).copied()
    }

    /// A region begins.
    #[inline]
    pub fn enter(
        &mut self,
        out: &mut Output,
        places: &mut Places<'_>,
        at: At<'_>,
        (what, time, region): (Open, u64, u32),
        with: &With,
        collective: Option<Collective>,
    ) -> Result<(), Error> {
        let Some(thread) = self.thread(out, places, at) else { return Ok(()) };
        thread.settle(out, time)?;
        thread.frames.push(Frame { what, region, collective });
        let location = thread.location;
        out.enter(location, time, region, with)?;
        if collective.is_some() {
            out.event(location, time, events::collective_begin)?;
        }
        Ok(())
    }

    /// The thread sends or receives, until a time.
    pub fn message(
        &mut self,
        out: &mut Output,
        at: At<'_>,
        (time, until): (u64, u64),
        message: Message,
    ) -> Result<(), Error> {
        let Some(Some(thread)) = self.all.get_mut(at.thread.index()) else { return Ok(()) };
        out.event(thread.location, time, |bytes| message.begin(bytes))?;
        let place = thread.in_flight.partition_point(|(other, _)| *other > until);
        thread.in_flight.insert(place, (until, message));
        Ok(())
    }

    /// A region ends, if it has not ended before.
    #[inline]
    pub fn leave(
        &mut self,
        out: &mut Output,
        thread: ThreadId,
        (what, time): (Open, u64),
        with: &With,
    ) -> Result<bool, Error> {
        let Some(Some(thread)) = self.all.get_mut(thread.index()) else { return Ok(false) };
        let Some(at) = thread.frames.iter().rposition(|f| f.what == what) else { return Ok(false) };
        thread.settle(out, time)?;
        while let Some(frame) = thread.frames.pop() {
            let last = thread.frames.len() == at;
            if let Some(collective) = frame.collective {
                out.event(thread.location, time, |bytes| events::collective_end(bytes, &collective))?;
            }
            out.leave(thread.location, time, frame.region, if last { with } else { &NOTHING })?;
            if last {
                break;
            }
            self.shortened += 1;
        }
        Ok(true)
    }

    /// Something without a length.
    pub fn instant(
        &mut self,
        out: &mut Output,
        places: &mut Places<'_>,
        at: At<'_>,
        region: u32,
        with: &With,
    ) -> Result<(), Error> {
        let Some(thread) = self.thread(out, places, at) else { return Ok(()) };
        thread.settle(out, at.time)?;
        out.whole(thread.location, (at.time, at.time), region, with, None)
    }

    /// A run of equal calls: inside of what is open, if nothing came in between.
    pub fn run(
        &mut self,
        out: &mut Output,
        places: &mut Places<'_>,
        at: At<'_>,
        fold: &Fold,
        region: u32,
        with: &mut With,
    ) -> Result<(), Error> {
        let Some(thread) = self.thread(out, places, at) else { return Ok(()) };
        let first = fold.first.min(at.time);
        let last = fold.last.clamp(first, at.time.max(first));
        with.add(Attribute::Calls, Value::Unsigned(fold.count));
        with.add(Attribute::Inside, Value::Unsigned(fold.total));
        // Others may lie between calls that were added up.
        if fold.summed {
            let group = thread.group;
            let lanes =
                thread.sums.get_or_insert_with(|| Lanes::new(String::new(), LocationKind::Thread, group));
            return match lanes.take(&mut out.archive, first, last) {
                Some(place) => out.whole(place.location, (first, last), region, with, None),
                None => {
                    self.crowded += 1;
                    Ok(())
                }
            };
        }
        thread.settle(out, first)?;
        if out.archive.time_of(thread.location) <= first {
            return out.whole(thread.location, (first, last), region, with, None);
        }
        let group = thread.group;
        let lanes = thread.runs.get_or_insert_with(|| Lanes::new(String::new(), LocationKind::Thread, group));
        match lanes.take(&mut out.archive, first, last) {
            Some(place) => out.whole(place.location, (first, last), region, with, None),
            None => {
                self.crowded += 1;
                Ok(())
            }
        }
    }

    /// Leaves what is still open: nothing, if the walk ended what it began.
    pub fn finish(&mut self, out: &mut Output, end: u64) -> Result<(), Error> {
        for number in 0..self.all.len() {
            let thread = ThreadId(u32::try_from(number).unwrap_or(u32::MAX));
            while let Some(Some(Thread { frames, .. })) = self.all.get(number)
                && let Some(Frame { what, .. }) = frames.first().copied()
            {
                self.leave(out, thread, (what, end), &NOTHING)?;
            }
            if let Some(Some(thread)) = self.all.get_mut(number) {
                thread.settle(out, u64::MAX)?;
            }
        }
        Ok(())
    }

    /// Names all threads; `name` returns the name of one by its number, process and id.
    pub fn name(self, out: &mut Output, name: impl Fn(ThreadId, i64, i64) -> String) {
        for (thread, number) in self.all.into_iter().zip(0..) {
            let Some(thread) = thread else { continue };
            let name = name(ThreadId(number), thread.pid, thread.tid);
            if let Some(mut runs) = thread.runs {
                runs.rename(&mut out.archive, format!("{name}: runs of equal calls"));
            }
            if let Some(mut sums) = thread.sums {
                sums.rename(&mut out.archive, format!("{name}: calls added up"));
            }
            out.archive.rename(thread.location, name);
        }
    }
}

/// The function of a call, whichever way it ended.
#[derive(Clone, Copy, Debug)]
pub(in crate::otf2) struct Ended {
    pub function: FunctionId,
    pub thread: ThreadId,
    pub depth: u32,
    pub time: u64,
}
