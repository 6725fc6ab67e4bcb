//! Samples of what a program's threads do with their CPUs: registers and stack of each, to be unwound by the caller.
//!
//! [`Sampler::open`] opens what the privileges allow for the program that the calling thread starts next;
//! [`Sampler::take`] gives what has come in the order of time. Unlike tracepoints they are of the program's own threads, so
//! they need no privilege unless the system forbids it.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::clock::now;
use crate::order::PATIENCE;
use crate::perf::open::{self, Of, Sampled};
use crate::perf::record::Who;
use crate::perf::ring::Ring;
use crate::perf::sampled::{self, Record};
use crate::sources::online;
use crate::way::paranoid;

/// The kernel's numbers of the registers that unwinding may begin with, on x86-64: all but flags and segments.
const REGISTERS: u64 = 0x00ff_01ff;
/// Bytes of each stack: most programs' are shorter.
const STACK: u32 = 16 << 10;
/// Bytes of the ring buffer of a CPU, if so much memory may be locked.
const RING: usize = 4 << 20;
/// Bytes after which the reader wakes: some samples.
const WATERMARK: u32 = 128 << 10;
/// What samples a second are at most; of that all events of a thread take part.
const MOST: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// What can be sampled here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    /// Why there are no samples at all; none if there are some.
    pub refused: Option<String>,
    /// Threads are sampled also while the kernel works for them.
    pub kernel: bool,
    /// What would give more; none if there is no more.
    pub fix: Option<String>,
    /// Samples a second of a thread at most, as the system has it.
    pub most_hz: Option<u32>,
}

/// Open samples of a program.
#[derive(Debug)]
pub struct Sampler {
    /// With the numbers of their CPUs.
    rings: Vec<(u32, Ring)>,
    kernel: bool,
    /// What waits for earlier records of other CPUs.
    waiting: Vec<(u32, Record)>,
    bytes: Vec<u8>,
    damaged: u64,
}

/// Tries what is possible. What it opens it closes again.
pub fn ability() -> Ability {
    match Sampler::open(100) {
        Ok(sampler) => sampler.ability(),
        Err(error) => refused(&error),
    }
}

/// Returns what lets users open perf events of this level.
fn allow(level: i32) -> String {
    format!("sudo sysctl kernel.perf_event_paranoid={level}, or run hetrace as root")
}

/// Says why there are no samples, and what would help.
pub fn refused(error: &io::Error) -> Ability {
    let forbidden = matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM));
    let level = paranoid().filter(|level| forbidden && *level > USER);
    let (why, fix) = match level {
        Some(level) => (
            format!("this user may not open perf events ({error}); kernel.perf_event_paranoid is {level}"),
            allow(USER),
        ),
        None if forbidden => (
            format!("perf_event_open is forbidden here ({error})"),
            "allow that system call: in a container it takes a seccomp profile that has it, and CAP_PERFMON"
                .to_owned(),
        ),
        None => (format!("perf_event_open: {error}"), "a kernel with perf events".to_owned()),
    };
    Ability { refused: Some(why), kernel: false, fix: Some(fix), most_hz: most_hz() }
}

/// Of `kernel.perf_event_paranoid` the highest level at which users may sample their own code, and, below, their threads
/// while the kernel works for them.
const USER: i32 = 2;
const KERNEL: i32 = 1;

/// Returns how many samples a second the system allows at most; none if it does not say.
pub fn most_hz() -> Option<u32> {
    fs::read_to_string(MOST).ok()?.trim().parse().ok()
}

impl Sampler {
    /// Opens samples, so many a second of each thread, of the program that this thread starts next and of all that it
    /// starts. Nothing is sampled before.
    ///
    /// # Errors
    /// When the system refuses; [`refused`] says what would help.
    pub fn open(hz: u32) -> io::Result<Self> {
        let whole = Sampled { hz, kernel: true, build_ids: true, stack: STACK, registers: REGISTERS };
        let forms = [(true, true), (false, true), (true, false), (false, false)];
        let mut forms = forms.map(|(kernel, build_ids)| Sampled { kernel, build_ids, ..whole }).into_iter();
        let mut last = None;
        let rings = forms.find_map(|form| match Self::rings(form) {
            Ok(rings) => Some((form, rings)),
            Err(error) => {
                last = Some(error);
                None
            }
        });
        match rings {
            Some((form, rings)) => {
                let kernel = form.kernel;
                Ok(Self { rings, kernel, waiting: Vec::new(), bytes: Vec::new(), damaged: 0 })
            }
            None => Err(last.unwrap_or_else(|| io::ErrorKind::Unsupported.into())),
        }
    }

    fn rings(form: Sampled) -> io::Result<Vec<(u32, Ring)>> {
        let of = Of::Child(rustix::thread::gettid());
        let ring = |cpu| Ok((cpu, Ring::map(open::samples(form, of, cpu, WATERMARK)?, RING)?));
        online().into_iter().map(ring).collect()
    }

    /// Returns what is sampled.
    pub fn ability(&self) -> Ability {
        let fix = (!self.kernel).then(|| allow(KERNEL));
        Ability { refused: None, kernel: self.kernel, fix, most_hz: most_hz() }
    }

    /// Bytes that made no sense so far.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Sleeps until something has come, the other descriptor can be read, or so many nanoseconds have passed.
    pub fn wait(&self, other: BorrowedFd<'_>, most: i64) {
        let rings = self.rings.iter().map(|(_, ring)| PollFd::from_borrowed_fd(ring.event(), PollFlags::IN));
        let mut all: Vec<PollFd<'_>> = rings.collect();
        all.push(PollFd::from_borrowed_fd(other, PollFlags::IN));
        let most = Timespec { tv_sec: most / 1_000_000_000, tv_nsec: most % 1_000_000_000 };
        // A signal wakes it, too; nothing is lost by that.
        let _ = poll(&mut all, Some(&most));
    }

    /// Gives records in the order of time, with the CPU of each; `all` of them, or those that no earlier one can come
    /// before any more.
    pub fn take(&mut self, all: bool, mut give: impl FnMut(u32, Record)) {
        let until = if all { u64::MAX } else { now().saturating_sub(PATIENCE) };
        for (cpu, ring) in &mut self.rings {
            self.bytes.clear();
            ring.take(&mut self.bytes);
            let waiting = &mut self.waiting;
            let damaged = sampled::read(&self.bytes, REGISTERS, |record| waiting.push((*cpu, record)));
            self.damaged += damaged as u64;
            let dropped = ring.dropped();
            if dropped > 0 {
                let what = sampled::What::Lost(dropped);
                self.waiting.push((*cpu, Record { who: Who::default(), time: now(), what }));
            }
        }
        // Of equal times what was first in its ring is first.
        self.waiting.sort_by_key(|(_, record)| record.time);
        let ready = self.waiting.partition_point(|(_, record)| record.time < until);
        let ready = if all { self.waiting.len() } else { ready };
        self.waiting.drain(..ready).for_each(|(cpu, record)| give(cpu, record));
    }
}

/// Nanoseconds that a sample stands for.
pub fn period(hz: u32) -> u64 {
    1_000_000_000 / u64::from(hz.max(1))
}
