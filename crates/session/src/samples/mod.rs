//! Samples of what the program's threads do with their CPUs (`--cpu-sample`): taken by the kernel, unwound here, out of the
//! program, and written into streams of their own.
//!
//! ```text
//!  kernel: registers, stack ─┐                      ┌─► stacks ──► `samples-names`: modules, frames, functions
//!          mappings, forks  ─┴─► Sampler ─► unwind ─┴─► samples ─► `samples-1`
//!                        in order of time     └─ space: which code is where in each process
//! ```
//! All of it is done by one thread of the launcher. Which code is where comes from the kernel too, with the samples and in
//! their order: nothing of the program is read, and one that has ended is unwound as well.

pub(crate) mod code;
mod space;
mod unwind;

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hetrace_ctf::account::StreamAccount;
use hetrace_format::Handle;
use hetrace_format::class::DEVICE_STREAM;
use hetrace_format::define::Frame;
use hetrace_format::sample::{self, Sample};
use hetrace_os::perf::record::Who;
use hetrace_os::perf::sampled::{self, Record, What};
use hetrace_os::sampler::{Ability, Sampler, period, refused};
use hetrace_ring::clock;
use rustix::event::{EventfdFlags, eventfd};

use crate::child::inherited::kernel_mask;
use crate::hash;
use crate::manifest::{self, Manifest};
use crate::output::{Identity, Stream, TraceFolder};
use crate::symbols::{Asked, Place as Symbol, Symbols};
use space::{Place, Spaces};
use unwind::{End, walk};

/// What is around a frame where there is none; where there are more; where how to go on is not known.
const NONE: u64 = 0;
const CUT: u64 = 2;
const LOST: u64 = 3;
/// Smallest id of a stack.
const FIRST: u64 = 16;
/// A stack that is not known at all.
const UNKNOWN: u64 = 1;
/// Longest sleep, in nanoseconds.
const NAP: i64 = 100_000_000;
/// How often packets are written that are not full, in nanoseconds.
const FLUSH: u64 = 250_000_000;
/// How long the run waits at its end for names of functions.
const NAMING: Duration = Duration::from_secs(60);
/// The name of the thread in the trace.
const NAME: &[u8] = b"hetrace-cpu";
/// What is said where there are none.
pub const NO_SAMPLES: &str = "no samples of processors";

/// A run's samples. They never fail it: what is missing stands in the manifest.
#[derive(Debug)]
pub struct Samples {
    report: manifest::Samples,
    sampler: Option<Sampler>,
    running: Option<(JoinHandle<Finished>, Arc<OwnedFd>)>,
    notes: Vec<String>,
}

/// What samples leave.
#[derive(Debug, Default)]
pub struct Finished {
    report: manifest::Samples,
    notes: Vec<String>,
    unwritten: u64,
    /// Of the stream files; none if they are not known.
    accounts: Option<Vec<StreamAccount>>,
}

impl Samples {
    /// Opens samples, so many a second of each thread, of the program that this thread starts next.
    pub fn open(hz: u32) -> Self {
        let most = hetrace_os::sampler::most_hz().unwrap_or(u32::MAX).max(1);
        let mut notes = Vec::new();
        if hz > most {
            notes.push(format!(
                "--cpu-sample: {most} samples a second, not {hz}: kernel.perf_event_max_sample_rate allows no more"
            ));
        }
        let hz = hz.min(most);
        let (sampler, ability) = match Sampler::open(hz) {
            Ok(sampler) => {
                let ability = sampler.ability();
                (Some(sampler), ability)
            }
            Err(error) => (None, refused(&error)),
        };
        notes.extend(less(&ability));
        let Ability { refused, kernel, fix, .. } = ability;
        let report = manifest::Samples { hz, kernel, refused, fix, ..manifest::Samples::default() };
        Self { report, sampler, running: None, notes }
    }

    /// Returns what is known so far, for the manifest.
    pub fn report(&self) -> manifest::Samples {
        self.report.clone()
    }

    /// Begins to unwind and to write: the program runs.
    pub fn start(&mut self, folder: &TraceFolder) {
        let Some(sampler) = self.sampler.take() else { return };
        let begun = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(std::io::Error::from)
            .and_then(|stop| {
                let stop = Arc::new(stop);
                let (report, folder, end) = (self.report.clone(), folder.clone(), Arc::clone(&stop));
                let run = move || Writer::new(report, &folder).run(sampler, &end);
                // What is sent to this process is for the main thread, which passes it on.
                let mask = kernel_mask(Some(u64::MAX));
                let begun = thread::Builder::new().name("hetrace-cpu".to_owned()).spawn(run);
                kernel_mask(Some(mask));
                Ok((begun?, stop))
            });
        match begun {
            Ok(running) => self.running = Some(running),
            Err(error) => self.notes.push(format!("{NO_SAMPLES}: {error}")),
        }
    }

    /// Takes what is left, now that the program has ended.
    pub fn finish(mut self) -> Finished {
        let Some((running, stop)) = self.running.take() else {
            let accounts = Some(Vec::new());
            return Finished { report: self.report, notes: self.notes, accounts, unwritten: 0 };
        };
        // A counter that has room for any number of ones.
        _ = rustix::io::write(&*stop, &1u64.to_ne_bytes());
        let mut finished = running.join().unwrap_or_else(|_| Finished {
            report: self.report,
            notes: vec!["samples of processors are incomplete: their reader ended unexpectedly".to_owned()],
            ..Finished::default()
        });
        finished.notes.splice(..0, self.notes);
        finished
    }
}

/// Returns that there are fewer samples than there could be, and what would give more; none if there are all.
fn less(ability: &Ability) -> Option<String> {
    let fix = ability.fix.as_deref()?;
    Some(match &ability.refused {
        Some(why) => format!("{NO_SAMPLES} (--cpu-sample): {why}. For more: {fix}"),
        None => format!(
            "samples of processors are of the program's own code, not of system calls. For more: {fix}"
        ),
    })
}

impl Finished {
    /// Completes the manifest of a run.
    pub fn complete(self, manifest: &mut Manifest) {
        let Self { report, notes, unwritten, accounts } = self;
        manifest.losses.unwritten_bytes += unwritten;
        manifest.notes.extend(notes);
        if report.dropped > 0 || report.throttled > 0 || report.damaged_bytes > 0 {
            manifest.notes.push(format!(
                "samples of processors are incomplete: {} records dropped, sampling throttled {} times, {} bytes damaged; \
                 sample less often (--cpu-sample)",
                report.dropped, report.throttled, report.damaged_bytes
            ));
        }
        match (&mut manifest.written.account, accounts) {
            (Some(account), Some(accounts)) => account.streams.extend(accounts),
            (account, _) => *account = None,
        }
        manifest.samples = Some(report);
    }
}

/// Writes what the sampler gives.
struct Writer {
    report: manifest::Samples,
    spaces: Spaces,
    samples: Stream,
    names: Stream,
    /// Stacks and modules that are in the trace.
    known: HashSet<u64>,
    symbols: Symbols,
    asked: Asked,
}

impl Writer {
    fn new(report: manifest::Samples, folder: &TraceFolder) -> Self {
        let pid = std::process::id();
        let mut name = [0; 16];
        name[..NAME.len()].copy_from_slice(NAME);
        let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let stream = |file: &str, class, instance| {
            let mut stream = Stream::new(folder, file.to_owned(), class, instance);
            stream.identify(Identity { pid, tid, name });
            stream
        };
        Self {
            report,
            spaces: Spaces::default(),
            samples: stream("samples-1", sample::STREAM, 1).in_pages(),
            // Beside the processes' own, which have numbers of 16 bits more.
            names: stream("samples-names", DEVICE_STREAM, u64::MAX),
            known: HashSet::new(),
            symbols: Symbols::default(),
            asked: Asked::default(),
        }
    }

    fn run(mut self, mut sampler: Sampler, stop: &OwnedFd) -> Finished {
        let mut flushed = now();
        loop {
            sampler.wait(stop.as_fd(), NAP);
            let ended = rustix::io::read(stop, &mut [0; 8][..]).is_ok();
            sampler.take(ended, |cpu, record| self.record(cpu, record));
            if ended {
                break;
            }
            if now().saturating_sub(flushed) >= FLUSH {
                flushed = now();
                self.name(Duration::ZERO);
                self.names.flush();
                self.samples.flush();
            }
        }
        self.report.damaged_bytes = sampler.damaged();
        drop(sampler);
        self.finish()
    }

    fn finish(mut self) -> Finished {
        self.name(NAMING);
        let (mut finished, mut accounts) = (Finished::default(), Vec::new());
        for stream in [&mut self.names, &mut self.samples] {
            stream.flush();
            let (bytes, _, unwritten) = stream.counts();
            self.report.bytes += bytes;
            finished.unwritten += unwritten;
            accounts.extend(stream.account());
        }
        self.report.cpu_ns = clock::nanoseconds(libc::CLOCK_THREAD_CPUTIME_ID);
        Finished { report: self.report, accounts: Some(accounts), ..finished }
    }

    fn record(&mut self, cpu: u32, record: Record) {
        let Record { who, time, what } = record;
        match what {
            What::Sample(sample) => self.sample(cpu, who, time, &sample),
            What::Map(map) => self.spaces.map(who.pid, &map),
            What::Fork { child } => self.spaces.fork(who.pid, child.pid),
            What::Exec => self.spaces.exec(who.pid),
            What::Exit => self.spaces.exit(who.pid),
            What::Lost(number) => {
                self.report.dropped = self.report.dropped.saturating_add(number);
                self.samples.set_discarded(self.report.dropped);
            }
            What::Throttled => self.report.throttled += 1,
        }
    }

    fn sample(&mut self, cpu: u32, who: Who, time: u64, sample: &sampled::Sample) {
        let (frames, end) = match self.spaces.of(who.pid) {
            Some(space) if sample.is_known => walk(space, sample),
            _ => (Vec::new(), End::Lost),
        };
        self.report.samples += 1;
        self.report.incomplete += u64::from(end != End::Outermost);
        let stack = self.stack(time, &frames, end);
        let event = Sample {
            pid: who.pid,
            tid: who.tid,
            cpu,
            kernel: sample.in_kernel.into(),
            period: period(self.report.hz),
            stack: Handle(stack),
        };
        let time = time.max(self.samples.last());
        self.samples.record(Sample::ID, time).extend_from_slice(&event.encode());
    }

    /// Returns the id of a stack, which the trace has then.
    fn stack(&mut self, time: u64, frames: &[Place], end: End) -> u64 {
        if frames.is_empty() {
            return UNKNOWN;
        }
        let mut around = match end {
            End::Outermost => NONE,
            End::Cut => CUT,
            End::Lost => LOST,
        };
        for frame in frames.iter().rev() {
            let module = frame.code.as_ref().map(|code| Arc::clone(&code.borrow().module));
            let identity = module.as_ref().map_or(0, |module| module.module.0);
            let stack = hash::mix(around, hash::mix(identity, frame.address)).max(FIRST);
            if self.known.insert(stack) {
                if let Some(module) = module {
                    if self.known.insert(identity) {
                        self.define(time, hetrace_format::define::Module::ID, &module.encode());
                    }
                    self.asked
                        .ask(&self.symbols, Symbol { module, address: frame.address, with_offset: false });
                }
                let (stack, around) = (Handle(stack), Handle(around));
                let (module, address) = (Handle(identity), Handle(frame.address));
                self.define(time, Frame::ID, &Frame { stack, around, module, address }.encode());
            }
            around = stack;
        }
        around
    }

    fn define(&mut self, time: u64, id: u16, body: &[u8]) {
        let time = time.max(self.names.last());
        self.names.record(id, time).extend_from_slice(body);
    }

    /// Writes what is found out of addresses by now, or in so long a time.
    fn name(&mut self, patience: Duration) {
        for symbol in self.asked.take(patience) {
            self.define(0, hetrace_format::define::Symbol::ID, &symbol.encode());
        }
    }
}

fn now() -> u64 {
    clock::nanoseconds(libc::CLOCK_MONOTONIC)
}

#[cfg(test)]
mod tests;
