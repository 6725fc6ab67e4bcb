//! A ring being drained, and the stream its records go to.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_ring::abi::{ADDED_UP, ReaderState, RingHeader, ThreadRecord, special, state};
use hetrace_ring::reader::Ring;
use hetrace_ring::writer::FOLD_RECORD_WORDS;
use hetrace_ring::{clock, record};

use super::Images;
use super::codes::Codes;
use super::image::Image;
use super::limits::{Limits, Thread};
use super::records::{put_budget_step, put_error_text, put_fold, put_own_work, put_stack, put_unknown, word};
use super::turns::{self, Turns};
use super::waiting::Waiting;
use crate::apis::Name;
use crate::devices::{Devices, Shared, Special};
use crate::manifest::ThreadLosses;
use crate::output::{Identity, Stream};
use crate::stream_files::Place;
use crate::time::HostClock;
use crate::trigger::{CallRecord, Watch};

/// Most bytes taken from one ring at a time, so that none waits for long.
const PORTION: usize = 1 << 20;
/// Part of a ring that may be taken and not written, so that the thread has room.
const HELD: u64 = 8;
/// Half a period of the low bits of time in a ring's records.
const HALF_PERIOD: u64 = 1 << (record::TIME_BITS - 1);

/// Returns a count that a program can have come to: years of lost calls. Others are noise.
pub(crate) fn plausible(count: u64) -> Option<u64> {
    Some(count).filter(|count| *count < 1 << 48)
}

/// A ring being drained, and the stream its records go to.
#[derive(Debug)]
pub(super) struct Source {
    pub ring: Arc<Ring>,
    /// Number of the arena that it lies in.
    pub arena: u32,
    /// Number of the program image that records.
    pub image: usize,
    pub api: usize,
    pub stream: Stream,
    /// The thread that records; none before its first record.
    pub identity: Identity,
    /// The thread's id, as the process has it.
    tid: u32,
    /// Records came since the thread's name was read.
    pub active: bool,
    /// Time of the last record, in ticks.
    pub last: u64,
    /// When the ring was last looked at, in ticks.
    looked: u64,
    /// Time of a record that is to come, in ticks, where its low bits say too little.
    earlier: Option<u64>,
    /// Number of the ring whose records come before those that are next here.
    pub awaits: Option<u32>,
    /// What the stream lost more than this ring, while it was another ring's.
    pub lost_elsewhere: u64,
    /// Where a thread's first record is that is not taken, and what the ring had lost until then.
    claim: Option<(u64, u64)>,
    /// Up to where the ring was looked through for such.
    looked_through: u64,
    /// Losses of threads that used the ring before.
    pub lost_before: (u64, u64),
    /// They are what had been lost when this drainer came, which may be more than by the records that it finds first.
    ahead: bool,
    pub threads: Vec<ThreadLosses>,
    pub damaged: u64,
    /// Its process, or the thread that has it now, is beyond a limit of the session: its records are dropped.
    refused: (bool, bool),
    /// Records and calls of the present thread that were dropped for that reason, and records of threads before.
    dropped: (u64, u64),
    pub dropped_before: u64,
}

/// Where records go that are no calls, and what all need.
pub(super) struct Sinks<'d> {
    pub host: &'d HostClock,
    pub devices: &'d mut HashMap<usize, Devices>,
    pub images: &'d mut Images,
    pub shared: &'d Arc<Shared>,
    pub apis: &'d [Name],
    /// How many threads more may be recorded.
    pub limits: &'d mut Limits,
    pub watch: &'d mut Option<Watch>,
    pub waiting: &'d Waiting,
    pub turns: &'d mut Turns,
    pub codes: &'d Codes,
}

impl Sinks<'_> {
    /// The devices of a process, and the process.
    fn devices_of(&mut self, image: usize) -> Option<(&mut Devices, &mut Image)> {
        let number = image;
        let image = self.images.get_mut(&number)?;
        let is_watched = self.watch.as_ref().is_some_and(Watch::is_about_commands);
        let fresh = || Devices::new(image.identity(), image.generation, self.shared).watched(is_watched);
        Some((self.devices.entry(number).or_insert_with(fresh), image))
    }
}

/// Whose the records are that were taken from rings before this drainer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Past {
    /// This trace's. Losses are counted from where the trace began: nobody else has written them down.
    #[default]
    Ours,
    /// Those of traces that are finished.
    OfOthers,
}

/// What stands in the ring for another reader, once a packet is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Next {
    tail: u64,
    time: u64,
    written: u64,
    tid: u32,
    awaits: Option<u32>,
}

impl Next {
    /// Returns where a packet was being written when a reader was killed, and what stands in the ring with it; none if none
    /// was.
    fn found(reader: &ReaderState) -> Option<(Place, Next)> {
        let next = &reader.next;
        let file = next.file.load(Ordering::Acquire);
        let (begin, end) = (next.begin.load(Ordering::Relaxed), next.length.load(Ordering::Relaxed));
        let found = Next {
            tail: next.tail.load(Ordering::Relaxed),
            time: next.time.load(Ordering::Relaxed),
            written: next.written.load(Ordering::Relaxed),
            tid: next.tid.load(Ordering::Relaxed),
            awaits: next.follows.load(Ordering::Relaxed).checked_sub(1),
        };
        (file != 0).then_some((Place { file, begin, end }, found))
    }

    fn follows(&self) -> u32 {
        self.awaits.map_or(0, |ring| ring + 1)
    }

    /// Says that a packet is being written.
    fn say(&self, place: Place, reader: &ReaderState) {
        let next = &reader.next;
        next.begin.store(place.begin, Ordering::Relaxed);
        next.length.store(place.end, Ordering::Relaxed);
        next.written.store(self.written, Ordering::Relaxed);
        next.tail.store(self.tail, Ordering::Relaxed);
        next.time.store(self.time, Ordering::Relaxed);
        next.tid.store(self.tid, Ordering::Relaxed);
        next.follows.store(self.follows(), Ordering::Relaxed);
        // A kill stops this thread between two stores, so what is stored before is there.
        next.file.store(place.file, Ordering::Release);
    }

    /// The packet is written.
    fn store(&self, reader: &ReaderState) {
        reader.tid.store(self.tid, Ordering::Relaxed);
        reader.follows.store(self.follows(), Ordering::Relaxed);
        reader.time.store(self.time, Ordering::Relaxed);
        reader.written.store(self.written, Ordering::Relaxed);
    }
}

/// What a portion of a ring had.
enum Taken {
    /// All of it.
    All,
    /// Bytes up to a thread's first record.
    UpTo(usize),
    /// Bytes of a thread's first record, which may have come from another ring: see `hand_over`.
    Begun(usize),
}

/// Returns where the first record of a thread is among some, and what its ring had lost until then.
fn claim_in(bytes: &[u8]) -> Option<(usize, u64)> {
    let mut at = 0;
    while let Some(head) = bytes.get(at..at + record::HEAD) {
        let head = u64::from_le_bytes(head.try_into().unwrap_or_default());
        if record::id(head) == special::THREAD {
            let body = bytes.get(at + record::HEAD..).unwrap_or_default();
            return Some((at, plausible(word(body, 2)).unwrap_or(0)));
        }
        at += record::length(head).max(record::HEAD);
    }
    None
}

impl Source {
    /// Returns a ring in which no record is much older than `since`, in ticks.
    pub fn new(ring: Ring, arena: u32, image: usize, api: usize, stream: Stream, since: u64) -> Self {
        Source {
            ring: Arc::new(ring),
            arena,
            image,
            api,
            stream,
            identity: Identity::default(),
            tid: 0,
            active: false,
            last: since,
            // What another drainer has left may be older than half a period by now.
            looked: if since > 0 { since } else { clock::ticks() },
            earlier: None,
            awaits: None,
            lost_elsewhere: 0,
            claim: None,
            looked_through: 0,
            lost_before: (0, 0),
            ahead: false,
            threads: Vec::new(),
            damaged: 0,
            refused: (false, false),
            dropped: (0, 0),
            dropped_before: 0,
        }
    }

    /// Drops what it records: its process is beyond a limit.
    pub fn refuse(&mut self) {
        self.refused.0 = true;
    }

    /// Returns whether what comes is dropped.
    fn is_refused(&self) -> bool {
        self.refused.0 || self.refused.1
    }

    /// Returns the thread that had the ring last, if it is recorded.
    fn last_thread(&self) -> Option<Thread> {
        (self.tid != 0 && !self.is_refused()).then_some((self.image, self.tid))
    }

    /// Returns the thread that has the ring, if it is recorded.
    pub fn thread(&self) -> Option<Thread> {
        let ended = matches!(self.ring.header().state.get(), state::FREE | state::ENDED);
        self.last_thread().filter(|_| !ended)
    }

    /// Goes on with a thread that was beyond a limit, or was not.
    pub fn refused_as(&mut self, before: &Source) {
        self.refused.1 = before.refused.1;
    }

    /// Goes on where another drainer left off, which was killed, or whose trace is finished. `is_written` says whether what
    /// the one before was writing then is in its file.
    pub fn resume(&mut self, image: &mut Image, past: Past, is_written: impl FnOnce(Place) -> bool) {
        let reader = &self.ring.header().reader;
        if let Some((place, next)) = Next::found(reader)
            && past == Past::Ours
            && is_written(place)
            && self.ring.skip_to(next.tail).is_some()
        {
            next.store(reader);
        }
        reader.next.file.store(0, Ordering::Release);
        let tid = reader.tid.load(Ordering::Relaxed);
        if tid == 0 {
            return;
        }
        self.tid = tid;
        self.last = self.last.max(reader.time.load(Ordering::Relaxed).min(clock::ticks()));
        // Behind it: of two records of one time, in two files, readers do not know which comes first.
        let behind = reader.written.load(Ordering::Relaxed).saturating_add(1);
        self.stream.go_on_from(behind.min(clock::nanoseconds(libc::CLOCK_MONOTONIC)));
        self.awaits = reader.follows.load(Ordering::Relaxed).checked_sub(1);
        self.lost_before = match past {
            Past::Ours => (reader.lost.load(Ordering::Relaxed), reader.lost_calls.load(Ordering::Relaxed)),
            Past::OfOthers => {
                let lost = self.lost();
                reader.lost.store(lost.0, Ordering::Relaxed);
                reader.lost_calls.store(lost.1, Ordering::Relaxed);
                lost
            }
        };
        self.ahead = past == Past::OfOthers;
        image.recorded |= past != Past::OfOthers && !self.is_refused();
        self.identity = image.thread(tid);
        if self.awaits.is_none() {
            self.stream.identify(self.identity);
        }
    }

    /// The ring that came before this one is taken: its records, the last of which was at this time in the trace, go on here.
    pub fn awaits_no_more(&mut self, before: u64) {
        self.awaits = None;
        let reader = &self.ring.header().reader;
        reader.written.store(before, Ordering::Relaxed);
        reader.follows.store(0, Ordering::Release);
    }

    /// Takes one portion. Returns how many bytes it had.
    pub fn drain(&mut self, sinks: &mut Sinks<'_>) -> u64 {
        let mut all = 0;
        // Up to a thread's first record, that record, and what is behind it.
        while self.awaits.is_none() && all < PORTION as u64 {
            let offers = sinks.turns.are_offered(self.ring.waiting(), self.ring.size());
            match self.piece(turns::piece(offers), sinks) {
                0 => break,
                bytes => all += bytes,
            }
            if offers {
                sinks.turns.offer();
            }
        }
        // The producer needs room.
        if self.ring.held() > self.ring.size() / HELD {
            self.write();
        }
        all
    }

    /// Writes what was taken, and gives the producer the room: only now, so that whoever goes on if this drainer is killed
    /// finds in the ring what is in no file.
    pub fn write(&mut self) {
        let next = self.write_packet();
        let reader = &self.ring.header().reader;
        next.store(reader);
        self.ring.release();
        reader.next.file.store(0, Ordering::Release);
    }

    /// Writes what was taken. Where its file will end stands in the ring meanwhile, so that whoever goes on does not find there
    /// what is in a file.
    pub fn write_packet(&mut self) -> Next {
        let next = Next {
            tail: self.ring.taken(),
            time: self.last,
            written: self.stream.last(),
            tid: self.tid,
            awaits: self.awaits,
        };
        let reader = &self.ring.header().reader;
        self.stream.flush_saying(&mut |place| next.say(place, reader));
        next
    }

    /// Takes what belongs together, `most` bytes or one record. Returns how many bytes that were.
    fn piece(&mut self, most: usize, sinks: &mut Sinks<'_>) -> u64 {
        let looked = clock::ticks();
        if self.ring.waiting() > self.ring.size() {
            // The producer overwrote its own header: nothing here can be believed.
            self.damaged += self.ring.size();
            self.ring.discard();
            return 0;
        }
        let ring = Arc::clone(&self.ring);
        let bytes = ring.published(most);
        let waiting = bytes.len();
        if waiting == 0 {
            self.looked = looked;
            return 0;
        }
        self.active = true;
        // A record takes no more in the stream than in the ring.
        if self.stream.fills_up(waiting) {
            self.write();
        }
        let discarded = self.discarded_of_thread();
        self.stream.set_discarded(discarded);
        let taken = self.take(bytes, sinks);
        if !self.is_refused() {
            sinks.images.get_mut(&self.image).into_iter().for_each(|image| image.recorded = true);
        }
        let bytes = match taken {
            Taken::All => {
                self.looked = looked;
                waiting
            }
            Taken::UpTo(bytes) | Taken::Begun(bytes) => bytes,
        };
        if let Some(watch) = sinks.watch {
            watch.saw(sinks.host.to_ns(self.last));
        }
        ring.take(bytes);
        if let Taken::Begun(_) = taken {
            // A stream may have another thread now: what is known of it goes with where it begins.
            self.write();
        }
        bytes as u64
    }

    fn take(&mut self, bytes: &[u8], sinks: &mut Sinks<'_>) -> Taken {
        // Time can't be older than the last look by much, nor than the last record.
        let (mut floor, look) = (self.last, self.looked.saturating_sub(HALF_PERIOD));
        let mut rest = bytes;
        while let Some((head, after)) = rest.split_at_checked(record::HEAD) {
            let head = u64::from_le_bytes(head.try_into().unwrap_or_default());
            let length = record::length(head);
            let Some((body, next)) = length.checked_sub(record::HEAD).and_then(|n| after.split_at_checked(n))
            else {
                break;
            };
            rest = next;
            match record::id(head) {
                special::ABANDONED => continue,
                special::EARLIER => {
                    // Not of the future, whatever the program wrote there: all later records would be, too.
                    self.earlier = Some(word(body, 0).min(clock::ticks()));
                    continue;
                }
                special::THREAD => {
                    let before = bytes.len() - body.len() - record::HEAD - rest.len();
                    self.last = floor;
                    if before > 0 {
                        return Taken::UpTo(before);
                    }
                    self.write();
                    let claimed = self.begin(body, sinks);
                    self.last = floor.max(claimed);
                    return Taken::Begun(bytes.len() - rest.len());
                }
                _ => {}
            }
            // Another processor's counter may be a little behind: not before
            // the last record, and never a whole period later.
            let known = if record::is_fold(record::id(head)) { Some(word(body, 2)) } else { self.earlier };
            let known =
                known.filter(|full| record::is_low(record::time(head), *full) && *full <= clock::ticks());
            if known.is_some() && known == self.earlier {
                self.earlier = None;
            }
            let least = floor.max(look).saturating_sub(HALF_PERIOD / 2);
            let ticks = known.unwrap_or_else(|| record::unwrap_time(record::time(head), least));
            let time = sinks.host.to_ns(floor.max(ticks));
            if self.stream.is_far(time) {
                // The packet is written before it, and only what is in there may be given back then.
                let before = bytes.len() - body.len() - record::HEAD - rest.len();
                self.last = floor;
                if before > 0 {
                    self.earlier = known.or(self.earlier);
                    return Taken::UpTo(before);
                }
                self.write();
            }
            floor = floor.max(ticks);
            if self.is_refused() {
                self.drop_one(record::id(head));
            } else {
                self.put(record::id(head), body, (time, ticks), sinks);
            }
        }
        self.damaged += rest.len() as u64;
        self.last = floor;
        Taken::All
    }

    /// One record that is beyond a limit. A call has two.
    fn drop_one(&mut self, id: u16) {
        self.dropped.0 += 1;
        self.dropped.1 += u64::from(id >= record::FIRST_CALL_ID);
    }

    /// Books what was dropped of the present thread.
    fn note_dropped(&mut self, apis: &[Name]) {
        let (records, halves) = std::mem::take(&mut self.dropped);
        if records > 0 {
            self.dropped_before += records;
            self.lose((records, halves.div_ceil(2)), apis);
        }
    }

    /// One record that is the thread's own; the time that it gets in the stream, in nanoseconds, and its own, in ticks.
    fn put(&mut self, id: u16, body: &[u8], (time, ticks): (u64, u64), sinks: &mut Sinks<'_>) {
        let host = sinks.host;
        let time = time.max(self.stream.last());
        if let Some(watch) = sinks.watch.as_mut().filter(|watch| watch.is_about(self.api, id)) {
            watch.call(CallRecord { api: self.api, id, time, image: self.image, who: &self.identity, body });
        }
        if id == special::UNKNOWN {
            put_unknown(self.stream.record(id, time), body);
        } else if id == special::ERROR_TEXT {
            put_error_text(self.stream.record(id, time), body);
        } else if id == special::OWN_WORK {
            put_own_work(self.stream.record(id, time), (ticks, word(body, 0)), host);
        } else if id == special::BUDGET_STEP {
            put_budget_step(self.stream.record(id, time), body);
        } else if matches!(id, special::PY_STACK | special::STACK) {
            put_stack(self.stream.record(id, time), body);
        } else if id < record::FIRST_CALL_ID {
            if id == special::COMMAND {
                sinks.waiting.take();
            }
            let Some((known, image)) = sinks.devices_of(self.image) else { return };
            let own_time = host.to_ns(ticks);
            let (api, tid) = (self.api, self.identity.tid);
            let outer = |inner| image.outer_tid(inner);
            known.take(Special { id, api, tid, time, own_time, body }, host, outer);
        } else if record::is_fold(id) {
            let words: [u64; FOLD_RECORD_WORDS] = std::array::from_fn(|i| word(body, i));
            if words[0] == ADDED_UP {
                return; // A handler was quicker to make a record of these.
            }
            put_fold(self.stream.record(id, time), words, host);
        } else {
            if let Some(code) = sinks.codes.read(self.api, id, body)
                && let Some((devices, _)) = sinks.devices_of(self.image)
            {
                devices.called_from(code, time);
            }
            self.stream.record(id, time).extend_from_slice(body);
        }
    }

    /// Begins the stream of a thread. Returns when it claimed the ring.
    fn begin(&mut self, body: &[u8], sinks: &mut Sinks<'_>) -> u64 {
        let thread = ThreadRecord {
            tid: word(body, 0) as u32,
            follows: (word(body, 0) >> 32) as u32,
            claimed_at: word(body, 1),
            lost: word(body, 2),
            lost_calls: word(body, 3),
        };
        self.note_losses((thread.lost, thread.lost_calls), sinks.apis);
        self.note_dropped(sinks.apis);
        if thread.follows == 0 && !self.refused.0 {
            let before = self.last_thread();
            self.refused.1 = !sinks.limits.admits_thread(before, (self.image, thread.tid));
        }
        self.awaits = thread.follows.checked_sub(1);
        self.tid = thread.tid;
        if let Some(image) = sinks.images.get_mut(&self.image) {
            image.recorded |= !self.is_refused();
            self.identity = image.thread(thread.tid);
        }
        if self.awaits.is_none() {
            self.stream.identify(self.identity);
        }
        // A time of the future is a broken producer's: all later records would have it.
        thread.claimed_at.min(clock::ticks())
    }

    /// The thread may have another name by now.
    pub fn rename(&mut self, image: &mut Image) {
        if std::mem::take(&mut self.active) && self.tid != 0 && self.awaits.is_none() {
            self.identity = image.thread(self.tid);
            if !self.stream.is_of(&self.identity) {
                self.write();
            }
            self.stream.identify(self.identity);
        }
    }

    /// Runs of polls, and calls that were added up, of which the program could make no records itself.
    pub fn close_folds(&mut self, host: &HostClock) {
        // These stand beside the records, and may be long after them.
        self.write();
        let ring = Arc::clone(&self.ring);
        for run in ring.open_folds().filter(|run| record::is_fold(run.id)) {
            if self.is_refused() {
                self.drop_one(run.id);
                continue;
            }
            let time = host.to_ns(run.words[2]).max(self.stream.last());
            put_fold(self.stream.record(run.id, time), run.words, host);
        }
    }

    /// Records that the stream lost up to the end of the thread whose records are next. Another may have taken the ring since,
    /// and have lost more.
    fn discarded_of_thread(&mut self) -> u64 {
        let now = self.lost().0;
        let of_others = if now == self.lost_before.0 {
            0
        } else {
            self.next_claim().map_or(0, |(_, lost)| now.saturating_sub(lost))
        };
        self.discarded().wrapping_sub(of_others)
    }

    /// Returns where a thread's first record is in the ring, and what the ring had lost until then.
    fn next_claim(&mut self) -> Option<(u64, u64)> {
        let (ring, taken) = (Arc::clone(&self.ring), self.ring.taken());
        // Nothing is looked at twice.
        let is_ahead = |position: u64| position.wrapping_sub(taken) <= ring.size();
        self.claim = self.claim.filter(|(at, _)| is_ahead(*at));
        let mut at = if is_ahead(self.looked_through) { self.looked_through } else { taken };
        while self.claim.is_none() {
            let bytes = ring.published_from(at, PORTION);
            if bytes.is_empty() {
                break;
            }
            let found = claim_in(bytes);
            at = at.wrapping_add(found.map_or(bytes.len(), |(offset, _)| offset) as u64);
            self.claim = found.map(|(_, lost)| (at, lost));
        }
        self.looked_through = at;
        self.claim
    }

    /// Records that the stream lost in all.
    pub fn discarded(&self) -> u64 {
        self.lost().0.wrapping_add(self.lost_elsewhere).wrapping_add(self.dropped_before)
    }

    /// Returns what the ring lost so far: records and calls.
    pub fn lost(&self) -> (u64, u64) {
        let header = self.ring.header();
        let count = |word: &AtomicU64| plausible(word.load(Ordering::Relaxed)).unwrap_or(0);
        (count(&header.lost), count(&header.lost_calls))
    }

    /// What the ring lost, of this trace.
    pub fn lost_here(&self) -> (u64, u64) {
        let (now, before) = (self.lost(), self.lost_before);
        let done = self.threads.iter().map(|t| (t.records, t.calls));
        let (dropped, halves) = self.dropped;
        let now = (now.0.saturating_add(dropped), now.1.saturating_add(halves.div_ceil(2)));
        done.fold((now.0.saturating_sub(before.0), now.1.saturating_sub(before.1)), |sum, (r, c)| {
            (sum.0 + r, sum.1 + c)
        })
    }

    /// Books what the present thread lost, when the ring has lost `now` in all.
    pub fn note_losses(&mut self, now: (u64, u64), apis: &[Name]) {
        if self.ahead && (now.0 < self.lost_before.0 || now.1 < self.lost_before.1) {
            return; // A thread that took the ring before this drainer came. Nothing of what was lost until then is this trace's.
        }
        let since = |now: u64, before: u64| plausible(now.wrapping_sub(before));
        let found = (since(now.0, self.lost_before.0), since(now.1, self.lost_before.1));
        self.lost_before = now;
        let (Some(records), Some(calls)) = found else {
            self.damaged += size_of::<RingHeader>() as u64;
            return;
        };
        self.lose((records, calls), apis);
    }

    /// What is left of the present thread is booked.
    pub fn end(&mut self, apis: &[Name]) {
        self.note_dropped(apis);
    }

    fn lose(&mut self, (records, calls): (u64, u64), apis: &[Name]) {
        if (records, calls) == (0, 0) {
            return;
        }
        let name = self.identity.name.split(|b| *b == 0).next().unwrap_or_default();
        self.threads.push(ThreadLosses {
            pid: self.identity.pid.into(),
            tid: self.identity.tid.into(),
            name: String::from_utf8_lossy(name).into_owned(),
            api: apis.get(self.api).cloned().unwrap_or_default().into(),
            records,
            calls,
        });
    }
}
