//! Recording of processes that run already: which they are is said as they are found, and it may pause.
//!
//! ```text
//!   begin ──► open ──► read, write ◄── follow(processes)          a thread of its own
//!                        │    ▲
//!                 pause ─┘    └─ resume: opened anew, with a state dump
//! ```
//! While it pauses nothing is open: the kernel records nothing, and nobody pays for it. An event on each CPU
//! ([`PAUSE`]) says that from there on nothing is known.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use crate::clock::now;
use crate::emptier::READER_ENDED;
use crate::hash::NumberMap;
use crate::order::PATIENCE;
use crate::proc::{descendants, numbers, start_of, ticks_now};
use crate::recorder::{best, unwatched};
use crate::sources::Beside;
use crate::way::Probe;
use crate::worker::{Pace, Source, Worker};
use crate::{Options, Place, Report};

/// Name of the event from which on nothing is recorded of a CPU.
pub const PAUSE: &str = "hetrace_recording_paused";

/// How long the reader may take to pause or to resume.
const PATIENCE_OF_CALLER: Duration = Duration::from_secs(10);
/// Processes that were named are kept without asking whether they live as long as they are no more than this.
const MOST_ROOTS: usize = 1024;
/// Looks at the threads of a process that begins new ones meanwhile.
const LOOKS: u32 = 8;

/// A recording of processes that run already.
#[derive(Debug)]
pub struct Attached {
    probe: Probe,
    orders: Sender<Order>,
    wake: Arc<OwnedFd>,
    /// Bytes that are written.
    bytes: Arc<AtomicU64>,
    thread: Option<JoinHandle<Report>>,
}

/// What the reader is to do.
#[derive(Debug)]
enum Order {
    Follow(Vec<u32>),
    Pause(Sender<()>),
    Resume(Sender<()>),
}

impl Attached {
    /// Opens what the privileges allow, and begins to record. Under [`crate::Scope::Tree`] that is nobody, before
    /// [`Attached::follow`].
    ///
    /// # Errors
    /// When the trace cannot be begun.
    pub fn begin(options: Options, place: Place) -> io::Result<Self> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (orders, taken) = mpsc::channel();
        let (ready, begun) = mpsc::channel();
        let stop = Arc::clone(&wake);
        let bytes = Arc::new(AtomicU64::new(0));
        let progress = Arc::clone(&bytes);
        let work = move || match Attendant::begin(options, place, stop) {
            Ok((probe, mut attendant)) => {
                let _ = ready.send(Ok(probe));
                drop(ready);
                attendant.attend(&taken, &progress)
            }
            Err(error) => {
                let _ = ready.send(Err(error));
                Report::default()
            }
        };
        let thread = thread::Builder::new().name("hetrace-os".to_owned()).spawn(work)?;
        let probe = begun.recv().unwrap_or_else(|_| Err(io::Error::other(READER_ENDED)))?;
        Ok(Self { probe, orders, wake, bytes, thread: Some(thread) })
    }

    /// Returns which way it is, and why no better one.
    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Bytes of the trace's streams so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Follows processes that run, and all that descend from them.
    pub fn follow(&self, processes: Vec<u32>) {
        self.order(Order::Follow(processes));
    }

    /// Records nothing more, until [`Attached::resume`]. Returns when that is so.
    pub fn pause(&self) {
        let (done, wait) = mpsc::channel();
        self.order(Order::Pause(done));
        let _ = wait.recv_timeout(PATIENCE_OF_CALLER);
    }

    /// Records again. Returns when that is so.
    pub fn resume(&self) {
        let (done, wait) = mpsc::channel();
        self.order(Order::Resume(done));
        let _ = wait.recv_timeout(PATIENCE_OF_CALLER);
    }

    fn order(&self, order: Order) {
        // A reader that is gone says so in the report.
        let _ = self.orders.send(order);
        self.wake();
    }

    fn wake(&self) {
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }

    /// Takes what is left, and ends.
    pub fn finish(mut self) -> Report {
        let thread = self.thread.take();
        // The end of the orders is the order to end.
        let wake = Arc::clone(&self.wake);
        drop(self);
        let _ = rustix::io::write(&*wake, &1u64.to_ne_bytes());
        let lost = || Report { error: Some(READER_ENDED.to_owned()), ..Report::default() };
        thread.and_then(|thread| thread.join().ok()).unwrap_or_else(lost)
    }
}

/// The reader's thread.
#[derive(Debug)]
struct Attendant {
    worker: Worker,
    options: Options,
    /// Processes that were named, and when they began.
    roots: NumberMap<u32, u64>,
    /// When recording was paused, in ticks since the machine's start as `/proc` has them.
    paused: Option<u64>,
}

impl Attendant {
    fn begin(options: Options, place: Place, wake: Arc<OwnedFd>) -> io::Result<(Probe, Self)> {
        let opened = now();
        let (probe, source) = best(&options, None, || Beside::prepare(&options));
        let worker = Worker::begin((source, opened), &options, None, place, wake)?;
        let mut attendant = Self { worker, options, roots: NumberMap::default(), paused: None };
        attendant.enable();
        attendant.worker.look();
        Ok((probe, attendant))
    }

    fn enable(&mut self) {
        if let Source::Tracepoints { sources, .. } = &self.worker.source
            && let Err(error) = sources.enable()
        {
            self.worker.missed.push(unwatched(&error));
        }
    }

    fn attend(&mut self, orders: &Receiver<Order>, bytes: &AtomicU64) -> Report {
        let mut pace = Pace::default();
        loop {
            if self.worker.wait() {
                self.worker.heard();
            }
            loop {
                match orders.try_recv() {
                    Ok(order) => self.obey(order),
                    Err(mpsc::TryRecvError::Empty) => break,
                    Err(mpsc::TryRecvError::Disconnected) => return self.finish(),
                }
            }
            self.worker.step(&mut pace);
            bytes.store(self.worker.bytes(), Ordering::Relaxed);
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Follow(processes) => {
                let mut fresh = Vec::new();
                for (pid, start) in processes.into_iter().filter_map(|pid| Some((pid, start_of(pid)?))) {
                    if self.roots.insert(pid, start) != Some(start) {
                        fresh.push(pid);
                    }
                }
                if self.roots.len() > MOST_ROOTS {
                    self.roots.retain(|pid, start| start_of(*pid) == Some(*start));
                }
                if self.paused.is_none() {
                    self.follow(fresh);
                }
            }
            Order::Pause(done) => {
                if self.paused.is_none() {
                    self.pause();
                }
                let _ = done.send(());
            }
            Order::Resume(done) => {
                if let Some(since) = self.paused.take() {
                    self.resume(since);
                }
                let _ = done.send(());
            }
        }
    }

    /// Follows processes, and what descends from them by now.
    fn follow(&mut self, processes: Vec<u32>) {
        if matches!(self.worker.source, Source::Switches(_)) {
            // What a process inherits from the one that began it is not opened once more: its beginning has to be read.
            thread::sleep(Duration::from_nanos(2 * PATIENCE));
            self.worker.pass(now().saturating_sub(PATIENCE), now(), None);
        }
        let mut all: Vec<u32> = processes.iter().flat_map(|pid| descendants(*pid)).collect();
        all.sort_unstable();
        all.dedup();
        for pid in all {
            if self.worker.known.insert(pid) || !matches!(self.worker.source, Source::Switches(_)) {
                self.follow_one(pid);
            }
        }
    }

    fn follow_one(&mut self, pid: u32) {
        let mut known: Vec<u32> = Vec::new();
        for _ in 0..LOOKS {
            // A thread that one begins that is not followed yet is found by the next look.
            let mut fresh = numbers(format!("/proc/{pid}/task"));
            fresh.retain(|tid| !known.contains(tid));
            if fresh.is_empty() {
                break;
            }
            if let Some(sources) = self.worker.source.sources_mut() {
                sources.follow(&fresh);
            }
            known.extend(fresh);
        }
        self.worker.statistics.add(pid);
        self.worker.writer.follow(pid, &known);
    }

    /// Writes all that has happened, and closes what is open.
    fn pause(&mut self) {
        self.quiesce();
        self.worker.writer.pause(now(), PAUSE);
        self.worker.forget();
        self.paused = Some(ticks_now());
    }

    fn quiesce(&mut self) {
        if let Some(sources) = self.worker.source.sources() {
            sources.disable();
        }
        let at = now();
        self.worker.pass(at, at, None);
        self.worker.writer.dump_before(u64::MAX);
        self.worker.missed = self.worker.missing();
        let source = std::mem::replace(&mut self.worker.source, Source::Paused);
        // The kernel takes long to close tracepoints, one after the other.
        let _ = thread::Builder::new().name("hetrace-os-close".to_owned()).spawn(move || drop(source));
    }

    fn resume(&mut self, since: u64) {
        let (_, source) = best(&self.options, None, || Beside::prepare(&self.options));
        if !self.worker.continues(&source) {
            let what = "events after a pause: processors or privileges are others than before";
            self.worker.missed.push(what.to_owned());
            return;
        }
        self.worker.source = source;
        self.worker.begin_taking();
        self.enable();
        self.worker.look();
        // What was followed and lives: a number may be another process's by now.
        let before = self.worker.writer.followed();
        self.worker.writer.forget();
        let processes = numbers("/proc");
        let lives = |tid: &u32| {
            // Other threads have no place in that list.
            processes.binary_search(tid).is_ok() && start_of(*tid).is_some_and(|start| start <= since)
        };
        self.roots.retain(|pid, start| start_of(*pid) == Some(*start));
        let again = self.roots.keys().copied().chain(before.into_iter().filter(lives)).collect();
        self.worker.known.clear();
        self.follow(again);
    }

    fn finish(&mut self) -> Report {
        self.quiesce();
        let mut report = self.worker.end();
        report.missing.sort();
        report.missing.dedup();
        report
    }
}
