//! From rings to streams.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hetrace_ring::abi::{RING_PREFIX, special, state};
use hetrace_ring::reader::{Ring, RingError};
use hetrace_ring::{clock, record};

use crate::cost::{Timing, TimingSums};
use crate::devices::{Devices, Shared, Special};
use crate::job;
use crate::manifest::{Losses, Process, ThreadLosses};
use crate::output::{Identity, Stream, TraceFolder};
use crate::schema::api_stream;
use crate::time::HostClock;

mod hand_over;
mod records;

use records::{put_error_text, put_fold, put_unknown, word};

/// Most bytes taken from one ring at a time, so that none waits for long.
const PORTION: usize = 1 << 20;
/// How long before the last look at a ring its oldest record may be, in ticks.
const MARGIN: u64 = 1 << 32;
/// Half a period of the low bits of time in a ring's records.
const HALF_PERIOD: u64 = 1 << (record::TIME_BITS - 1);

/// A ring being drained, and the stream its records go to.
#[derive(Debug)]
struct Source {
    ring: Ring,
    path: PathBuf,
    api: usize,
    pid: u32,
    stream: Stream,
    incarnation: u32,
    /// Time of the last record, in ticks.
    last: u64,
    /// When the ring was last looked at, in ticks.
    looked: u64,
    /// Number in the file's name.
    number: u32,
    /// Number of the ring whose records come before those of the present thread.
    awaits: Option<u32>,
    /// What the stream lost more than this ring, while it was another ring's.
    lost_elsewhere: u64,
    /// Losses told for threads that used the ring before.
    lost_before: (u64, u64),
    threads: Vec<ThreadLosses>,
    damaged: u64,
}

/// What one pass over the rings did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pass {
    /// Bytes taken.
    pub bytes: u64,
    /// Fullest ring found, in percent.
    pub fullest: u64,
}

/// All rings of a session.
#[derive(Debug)]
pub struct Drainer {
    session: PathBuf,
    folder: TraceFolder,
    apis: Vec<String>,
    sources: Vec<Source>,
    seen: HashSet<OsString>,
    devices: HashMap<u32, Devices>,
    shared: Arc<Shared>,
    processes: Vec<Process>,
    /// When each process started, in the kernel's units.
    starts: HashMap<u32, u64>,
    /// Devices of processes that are gone.
    done: Vec<Devices>,
    /// Finished rings' streams, for their counts.
    written: (u64, u64),
    unwritten: u64,
    threads: Vec<ThreadLosses>,
    damaged: u64,
    /// Version of a library that is not ours.
    foreign: Option<u32>,
    /// Rings hold nothing much older than this, in ticks.
    since: u64,
    /// Commands enqueued and reported by threads whose rings are done.
    commands: (u64, u64),
    /// What timing commands took.
    timing: TimingSums,
}

impl Drainer {
    /// A drainer of the session's folder into the trace's.
    pub fn new(session: &Path, folder: TraceFolder, apis: Vec<String>) -> Self {
        Drainer {
            session: session.to_owned(),
            folder,
            shared: Arc::new(Shared::new(apis.clone())),
            apis,
            sources: Vec::new(),
            seen: HashSet::new(),
            devices: HashMap::new(),
            processes: Vec::new(),
            starts: HashMap::new(),
            done: Vec::new(),
            written: (0, 0),
            unwritten: 0,
            threads: Vec::new(),
            damaged: 0,
            foreign: None,
            since: 0,
            commands: (0, 0),
            timing: TimingSums::default(),
        }
    }

    /// Takes rings that somebody else has drained until then, in ticks: times in records are cut
    /// short, so one nearby must be known.
    pub fn since(&mut self, ticks: u64) {
        // Records that were just missed by that look are a little older.
        self.since = ticks.saturating_sub(MARGIN);
    }

    /// Looks for new rings.
    pub fn discover(&mut self) {
        let Ok(entries) = fs::read_dir(&self.session) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !name.as_bytes().starts_with(RING_PREFIX.as_bytes()) || self.seen.contains(&name) {
                continue;
            }
            // A ring whose maker has not finished is looked at again later.
            match self.open(&entry.path()) {
                Ok(source) => {
                    self.seen.insert(name);
                    self.sources.push(source);
                }
                Err(RingError::Version(version)) => {
                    self.seen.insert(name);
                    self.foreign = Some(version);
                }
                Err(_) => {}
            }
        }
    }

    fn open(&mut self, path: &Path) -> Result<Source, RingError> {
        let gone = |e| RingError::Map(hetrace_ring::MapError::Os(e));
        let file: File = OpenOptions::new().read(true).write(true).open(path).map_err(gone)?;
        let ring = Ring::open(&file)?;
        let header = ring.header();
        let (api, pid) = (header.api as usize, header.pid);
        let Some(name) = self.apis.get(api) else { return Err(RingError::Size(api as u64)) };
        // Process ids come again; when a process started tells them apart.
        if self.starts.insert(pid, header.process_start) != Some(header.process_start) {
            let job = job::of_process(pid, header.process_start);
            let command = arguments(&header.command);
            self.processes.push(Process { pid, parent: header.parent, command, job });
        }
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        let number = file_name.rsplit('-').next().unwrap_or_default().to_owned();
        let instance = u64::from(pid) << 32 | number.parse::<u64>().unwrap_or(0);
        let stream = Stream::new(&self.folder, format!("{name}-{pid}-{number}"), api_stream(api), instance);
        let last = header.claimed_at.load(Ordering::Relaxed).max(self.since);
        Ok(Source {
            ring,
            path: path.to_owned(),
            api,
            pid,
            stream,
            incarnation: 0,
            last,
            looked: last,
            number: number.parse().unwrap_or(u32::MAX),
            awaits: None,
            lost_elsewhere: 0,
            lost_before: (0, 0),
            threads: Vec::new(),
            damaged: 0,
        })
    }

    /// Takes what there is from every ring.
    pub fn pass(&mut self, host: &HostClock) -> Pass {
        let mut pass = Pass::default();
        loop {
            for source in &mut self.sources {
                let waiting = source.ring.waiting().min(source.ring.size());
                pass.fullest = pass.fullest.max(waiting * 100 / source.ring.size().max(1));
                pass.bytes += source.drain(host, &mut self.devices, &self.shared, &self.apis);
            }
            if !hand_over::all(&mut self.sources, &self.apis) {
                return pass;
            }
        }
    }

    /// Writes what waits in memory, and commands that can be ordered by now.
    pub fn flush(&mut self, now: u64, host: &HostClock) {
        for source in &mut self.sources {
            source.stream.flush();
        }
        for devices in self.devices.values_mut() {
            devices.advance(now, &self.folder, host);
        }
        self.retire(host, false);
        self.retire_devices(host);
    }

    /// Processes with a ring that live still.
    pub fn living(&self) -> usize {
        let mut pids: Vec<u32> = self.sources.iter().map(|s| s.pid).filter(|p| alive(*p)).collect();
        pids.sort_unstable();
        pids.dedup();
        pids.len()
    }

    /// Ends the streams of processes that are gone, or of all.
    fn retire(&mut self, host: &HostClock, all: bool) {
        let (mut kept, mut gone) = (Vec::new(), Vec::new());
        for source in self.sources.drain(..) {
            if all || !alive(source.pid) { gone.push(source) } else { kept.push(source) }
        }
        self.sources = kept;
        // What they wrote between the last pass and their end.
        loop {
            for source in &mut gone {
                while source.drain(host, &mut self.devices, &self.shared, &self.apis) > 0 {}
            }
            if !hand_over::all(&mut gone, &self.apis) {
                break;
            }
        }
        for mut source in gone {
            if source.awaits.is_some() {
                // Killed on its way from one ring to the other, and nothing is in there
                // yet; or it says that rings follow each other in a circle.
                source.stream.identify(source.identity());
                source.damaged += source.ring.waiting().min(source.ring.size());
            }
            // A process that lives on may add to the run; the trace ends here.
            source.close_fold(host);
            source.note_losses(&self.apis);
            let header = source.ring.header();
            self.commands.0 += header.commands.load(Ordering::Relaxed);
            self.commands.1 += header.reported.load(Ordering::Relaxed);
            self.timing.add(source.api, header);
            source.stream.set_discarded(source.discarded());
            source.stream.flush();
            let (bytes, records, unwritten) = source.stream.counts();
            self.written.0 += records;
            self.written.1 += bytes;
            self.unwritten += unwritten;
            self.damaged += source.damaged;
            self.threads.append(&mut source.threads);
            if !alive(source.pid) {
                let _ = fs::remove_file(&source.path);
                // Another process may get the number, and the ring the name.
                if let Some(name) = source.path.file_name() {
                    self.seen.remove(name);
                }
            }
        }
    }

    /// Ends the device streams of processes that have no ring any more.
    fn retire_devices(&mut self, host: &HostClock) {
        let kept = |pid: &u32| self.sources.iter().any(|s| s.pid == *pid);
        let gone: Vec<u32> = self.devices.keys().filter(|pid| !kept(pid)).copied().collect();
        for pid in gone {
            let Some(mut devices) = self.devices.remove(&pid) else { continue };
            devices.finish(&self.folder, host);
            for stream in devices.streams() {
                let (bytes, records, unwritten) = stream.counts();
                self.written.0 += records;
                self.written.1 += bytes;
                self.unwritten += unwritten;
            }
            self.done.push(devices);
        }
    }

    /// Takes the rest and ends everything.
    pub fn finish(&mut self, host: &HostClock) {
        self.discover();
        self.retire(host, true);
        self.retire_devices(host);
    }

    /// Records and bytes written.
    pub fn written(&self) -> (u64, u64) {
        self.written
    }

    /// Processes that recorded.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Devices by process.
    pub fn devices(&self) -> impl Iterator<Item = &Devices> {
        self.devices.values().chain(&self.done)
    }

    /// Version of a library found in a program that does not fit this launcher.
    pub fn foreign(&self) -> Option<u32> {
        self.foreign
    }

    /// What timing commands took inside of calls, where it was done there.
    pub fn timing(&self, ns_per_tick: f64) -> Vec<Timing> {
        self.timing.rows(&self.apis, ns_per_tick)
    }

    /// Everything lost that the drainer knows of.
    pub fn losses(&self) -> Losses {
        let mut losses = Losses {
            unwritten_bytes: self.unwritten,
            damaged_bytes: self.damaged,
            threads: self.threads.iter().filter(|t| t.records + t.calls > 0).cloned().collect(),
            ..Losses::default()
        };
        losses.records = losses.threads.iter().map(|t| t.records).sum();
        losses.calls = losses.threads.iter().map(|t| t.calls).sum();
        losses.device_commands = self.devices().map(Devices::lost).fold(0, u64::saturating_add);
        losses.commands_without_call = self.devices().map(Devices::without_call).sum();
        losses.commands_under_way = self.commands.0.saturating_sub(self.commands.1);
        losses
    }
}

impl Source {
    /// Takes one portion. Answers how many bytes it had.
    fn drain(
        &mut self,
        host: &HostClock,
        devices: &mut HashMap<u32, Devices>,
        shared: &Arc<Shared>,
        apis: &[String],
    ) -> u64 {
        let header = self.ring.header();
        // Pairs with the Release store of a thread that claims or ends.
        let now_state = header.state.load(Ordering::Acquire);
        if now_state == state::CLAIMED || now_state == state::FREE {
            return 0;
        }
        let incarnation = header.incarnation.load(Ordering::Relaxed);
        if incarnation != self.incarnation {
            self.incarnation = incarnation;
            self.awaits = header.follows.load(Ordering::Relaxed).checked_sub(1);
            self.last = self.last.max(header.claimed_at.load(Ordering::Relaxed));
            if self.awaits.is_none() {
                self.stream.identify(self.identity());
            }
        }
        if self.awaits.is_some() {
            return 0; // See `hand_over`.
        }
        let looked = clock::ticks();
        if self.ring.waiting() > self.ring.size() {
            // The producer overwrote its own header: nothing here can be believed.
            self.damaged += self.ring.size();
            self.ring.discard();
            return 0;
        }
        let bytes = self.ring.published(PORTION);
        let taken = bytes.len();
        if taken > 0 {
            self.stream.set_discarded(self.discarded());
        }
        // Time can't be older than the last look by much, nor than the last record.
        let mut floor = self.last.max(self.looked.saturating_sub(HALF_PERIOD));
        let identity = self.identity();
        let mut rest = bytes;
        while let Some((head, after)) = rest.split_at_checked(record::HEAD) {
            let head = u64::from_le_bytes(head.try_into().unwrap_or_default());
            let length = record::length(head);
            let Some((body, next)) = length.checked_sub(record::HEAD).and_then(|n| after.split_at_checked(n))
            else {
                self.damaged += rest.len() as u64;
                break;
            };
            rest = next;
            // Another processor's counter may be a little behind: not before
            // the last record, and never a whole period later.
            let ticks = record::unwrap_time(record::time(head), floor.saturating_sub(HALF_PERIOD / 2));
            floor = floor.max(ticks);
            let time = host.to_ns(floor).max(self.stream.last());
            let id = record::id(head);
            if id == special::UNKNOWN {
                put_unknown(self.stream.record(id, time), body);
            } else if id == special::ERROR_TEXT {
                put_error_text(self.stream.record(id, time), body);
            } else if id < record::FIRST_CALL_ID {
                let known = devices.entry(identity.pid).or_insert_with(|| Devices::new(identity, shared));
                let own_time = host.to_ns(ticks);
                let (api, tid) = (self.api, identity.tid);
                known.take(Special { id, api, tid, time, own_time, body }, host);
            } else if record::is_fold(id) {
                let words: [u64; 4] = std::array::from_fn(|i| word(body, i));
                put_fold(self.stream.record(id, time), words, host);
            } else {
                self.stream.record(id, time).extend_from_slice(body);
            }
        }
        self.last = floor;
        self.looked = looked;
        self.ring.release(taken);
        // Its thread ended, and everything is taken: another may have it.
        if now_state == state::ENDED && self.ring.waiting() == 0 {
            self.note_losses(apis);
            self.stream.flush();
            self.ring.recycle();
        }
        taken as u64
    }

    /// A run of polls that the program could not end itself.
    fn close_fold(&mut self, host: &HostClock) {
        let Some(run) = self.ring.open_fold() else { return };
        if !record::is_fold(run.id) {
            return;
        }
        let time = host.to_ns(run.words[2]).max(self.stream.last());
        put_fold(self.stream.record(run.id, time), run.words, host);
    }

    fn identity(&self) -> Identity {
        let header = self.ring.header();
        Identity {
            pid: header.pid,
            tid: header.tid.load(Ordering::Relaxed),
            name: std::array::from_fn(|i| header.comm[i].load(Ordering::Relaxed)),
        }
    }

    /// Records that the stream lost in all.
    fn discarded(&self) -> u64 {
        self.ring.header().lost.load(Ordering::Relaxed).wrapping_add(self.lost_elsewhere)
    }

    /// Books what the present thread lost.
    fn note_losses(&mut self, apis: &[String]) {
        let header = self.ring.header();
        let now = (header.lost.load(Ordering::Relaxed), header.lost_calls.load(Ordering::Relaxed));
        let identity = self.identity();
        let name = identity.name.split(|b| *b == 0).next().unwrap_or_default();
        self.threads.push(ThreadLosses {
            pid: identity.pid,
            tid: identity.tid,
            name: String::from_utf8_lossy(name).into_owned(),
            api: apis.get(self.api).cloned().unwrap_or_default(),
            records: now.0.wrapping_sub(self.lost_before.0),
            calls: now.1.wrapping_sub(self.lost_before.1),
        });
        self.lost_before = now;
    }
}

fn arguments(command: &[u8]) -> Vec<String> {
    let end = command.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
    let text = command.get(..end).unwrap_or_default();
    text.split(|b| *b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect()
}

/// Whether a process is there and not merely waiting to be buried.
fn alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes().first().copied());
    !matches!(state.flatten(), None | Some(b'Z' | b'X'))
}

#[cfg(test)]
mod tests;
