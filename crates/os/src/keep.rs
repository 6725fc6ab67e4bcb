//! What was recorded last, in memory: for snapshots of a flight recording.
//!
//! ```text
//!   Channel ──► Keep::put ──► packets of all CPUs, in the order in which they were sealed
//!                                 │ too old, or too many bytes: the oldest goes, but not the state dump
//!   press, is_sealed ──► write ──► the folder of a whole trace
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hetrace_ctf::account::{Account, Counter, FileAccount, PacketFacts};

use crate::files::{METADATA, MakeFile, file_name, stored};
use crate::form::{PREAMBLE, Preamble, STREAM};

/// The part of the memory that state dumps may take. Of a recording that pauses, and of processes that are found while
/// it runs, there are many: the oldest go then.
const LASTING: u64 = 4;
/// What a packet takes of memory beside its bytes, about.
const OVERHEAD: u64 = 160;

/// Packets that were sealed within some time.
#[derive(Debug)]
pub struct Keep {
    window: u64,
    most: u64,
    compress: bool,
    /// Until when all is to be sealed, and is, in nanoseconds.
    asked: AtomicU64,
    sealed: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    metadata: String,
    /// State dumps, and what they take.
    lasting: VecDeque<Arc<Packet>>,
    lasting_bytes: u64,
    packets: VecDeque<Arc<Packet>>,
    bytes: u64,
    since: Option<u64>,
    /// By CPU: what had been discarded where the packets that are there begin.
    discarded: BTreeMap<u32, u64>,
}

#[derive(Debug)]
struct Packet {
    preamble: Preamble,
    sealed: u64,
    events: u64,
    /// What follows the head.
    body: Vec<u8>,
}

impl Packet {
    fn cost(&self) -> u64 {
        self.body.len() as u64 + OVERHEAD
    }
}

/// What a snapshot has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Events.
    pub events: u64,
    /// Bytes of the streams.
    pub bytes: u64,
    /// All that happened since then is there; none if nothing was dropped.
    pub since: Option<u64>,
    /// Events that the kernel dropped since then.
    pub dropped: u64,
    /// What is in its files.
    pub account: Account,
}

impl Keep {
    /// Keeps what was sealed within `window`, as far as `most` bytes go.
    pub fn new(window: Duration, most: u64, compress: bool) -> Self {
        let window = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        let (asked, sealed) = (AtomicU64::new(0), AtomicU64::new(0));
        Keep { window, most, compress, asked, sealed, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for all to be sealed that happened until `now`.
    pub fn press(&self, now: u64) {
        self.asked.fetch_max(now, Ordering::Relaxed);
    }

    /// Returns whether all is sealed that happened until a time.
    pub fn is_sealed(&self, time: u64) -> bool {
        self.sealed.load(Ordering::Acquire) >= time
    }

    pub(crate) fn is_pressed(&self) -> bool {
        !self.is_sealed(self.asked.load(Ordering::Relaxed))
    }

    /// All is sealed that happened until a time.
    pub(crate) fn seal(&self, until: u64) {
        self.sealed.fetch_max(until, Ordering::Release);
    }

    pub(crate) fn declare(&self, text: &str) {
        self.state().metadata.push_str(text);
    }

    /// Takes a packet. One that is `lasting` stays.
    pub(crate) fn put(&self, preamble: Preamble, packet: &[u8], events: u64, lasting: bool, now: u64) {
        let body = packet.get(PREAMBLE..).unwrap_or_default().to_vec();
        let packet = Arc::new(Packet { preamble, sealed: now, events, body });
        let mut state = self.state();
        if lasting {
            state.lasting_bytes += packet.cost();
            state.lasting.push_back(packet);
            while state.lasting_bytes > self.most / LASTING && state.lasting.len() > 1 {
                let Some(first) = state.lasting.pop_front() else { break };
                state.lasting_bytes = state.lasting_bytes.saturating_sub(first.cost());
            }
            return;
        }
        state.bytes += packet.cost();
        state.packets.push_back(packet);
        self.shrink(&mut state, now);
    }

    fn shrink(&self, state: &mut State, now: u64) {
        let oldest = now.saturating_sub(self.window);
        while state.packets.front().is_some_and(|first| first.sealed < oldest || state.bytes > self.most) {
            let Some(packet) = state.packets.pop_front() else { break };
            state.bytes = state.bytes.saturating_sub(packet.cost());
            // It was sealed after the last of it happened.
            state.since = Some(state.since.unwrap_or(0).max(packet.sealed));
            state.discarded.insert(packet.preamble.cpu, packet.preamble.discarded);
        }
    }

    /// Writes the folder of a trace of what is there `now`; it is there already, and empty.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn write(&self, folder: &Path, make: &MakeFile, now: u64) -> io::Result<Kept> {
        let mut state = self.state();
        self.shrink(&mut state, now);
        let (metadata, since, discarded) = (state.metadata.clone(), state.since, state.discarded.clone());
        let mut cpus: BTreeMap<u32, Vec<Arc<Packet>>> = BTreeMap::new();
        for packet in state.lasting.iter().chain(&state.packets) {
            cpus.entry(packet.preamble.cpu).or_default().push(Arc::clone(packet));
        }
        drop(state);
        let mut kept = Kept { since, ..Kept::default() };
        make(&folder.join(METADATA))?.write_all(metadata.as_bytes())?;
        kept.account.files.push(FileAccount::of(METADATA, metadata.as_bytes()));
        for (cpu, mut packets) in cpus {
            // What was recorded while the state was looked at comes before the state dump.
            packets.sort_by_key(|packet| packet.preamble.number);
            let before = discarded.get(&cpu).copied().unwrap_or(0);
            let (name, mut counter, mut bytes) = (file_name(cpu), Counter::default(), 0);
            let mut file = make(&folder.join(stored(&name, self.compress)))?;
            for (number, packet) in (0..).zip(&packets) {
                let discarded = packet.preamble.discarded.saturating_sub(before);
                let preamble = Preamble { number, discarded, ..packet.preamble };
                let plain = [&preamble.pack()[..], &packet.body].concat();
                let facts =
                    PacketFacts { class: STREAM, seq_num: number, discarded, events: Some(packet.events) };
                counter.packet(&plain, facts);
                let out = if self.compress { zstd::bulk::compress(&plain, 3)? } else { plain };
                file.write_all(&out)?;
                bytes += out.len() as u64;
                kept.events += packet.events;
            }
            kept.bytes += bytes;
            kept.dropped += packets.last().map_or(0, |last| last.preamble.discarded.saturating_sub(before));
            kept.account.streams.extend(counter.account(&name, bytes));
        }
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn packet(cpu: u32, discarded: u64) -> (Preamble, Vec<u8>) {
        let packet = vec![7; PREAMBLE + 100];
        (Preamble { cpu, discarded, bytes: packet.len() as u64, number: 9, ..Preamble::default() }, packet)
    }

    #[test]
    fn what_is_old_goes_and_the_state_dump_stays() {
        let keep = Keep::new(Duration::from_nanos(50), 1 << 20, false);
        keep.declare("metadata");
        for (lasting, discarded, now) in [(true, 0, 10), (false, 1, 20), (false, 3, 30), (false, 4, 100)] {
            let (preamble, bytes) = packet(2, discarded);
            keep.put(preamble, &bytes, 1, lasting, now);
        }
        let folder = tempfile::tempdir().unwrap();
        let make: MakeFile = Arc::new(|path: &Path| File::create_new(path));
        let kept = keep.write(folder.path(), &make, 100).unwrap();
        assert_eq!((kept.events, kept.since, kept.dropped), (2, Some(30), 1));
        assert_eq!(kept.bytes, 2 * (PREAMBLE as u64 + 100));
        assert_eq!(std::fs::read(folder.path().join("metadata")).unwrap(), b"metadata");
        let stream = std::fs::read(folder.path().join("channel0_2")).unwrap();
        let (first, _) = packet(2, 0);
        assert_eq!(stream[..PREAMBLE], Preamble { number: 0, ..first }.pack());
    }

    #[test]
    fn state_dumps_have_a_limit() {
        let keep = Keep::new(Duration::from_secs(1), 4 * 5 * (100 + OVERHEAD), false);
        for now in 1..=50 {
            let (preamble, bytes) = packet(0, 0);
            keep.put(preamble, &bytes, 1, true, now);
        }
        let state = keep.state();
        assert_eq!((state.lasting.len(), state.lasting_bytes), (5, 5 * (100 + OVERHEAD)));
    }

    #[test]
    fn packets_are_in_the_order_of_their_stream() {
        let keep = Keep::new(Duration::from_secs(1), 1 << 20, false);
        for (number, lasting) in [(0, false), (1, true), (2, false)] {
            let (preamble, bytes) = packet(0, 0);
            keep.put(Preamble { number, begin: number * 10, ..preamble }, &bytes, 1, lasting, 1);
        }
        let folder = tempfile::tempdir().unwrap();
        let make: MakeFile = Arc::new(|path: &Path| File::create_new(path));
        keep.write(folder.path(), &make, 1).unwrap();
        let stream = std::fs::read(folder.path().join("channel0_0")).unwrap();
        let (first, _) = packet(0, 0);
        for (number, packet) in (0..).zip(stream.chunks(PREAMBLE + 100)) {
            assert_eq!(packet[..PREAMBLE], Preamble { number, begin: number * 10, ..first }.pack());
        }
    }

    #[test]
    fn memory_is_a_limit() {
        let keep = Keep::new(Duration::from_secs(1), 3 * (100 + OVERHEAD), false);
        for now in 1..=10 {
            let (preamble, bytes) = packet(0, 0);
            keep.put(preamble, &bytes, 1, false, now);
        }
        let state = keep.state();
        assert_eq!((state.packets.len(), state.since), (3, Some(7)));
    }

    #[test]
    fn what_is_asked_for_is_sealed() {
        let keep = Keep::new(Duration::from_secs(1), 1, false);
        assert!(!keep.is_pressed());
        keep.press(10);
        keep.seal(9);
        assert!(keep.is_pressed() && !keep.is_sealed(10));
        keep.seal(10);
        assert!(!keep.is_pressed() && keep.is_sealed(10));
    }
}
