//! What comes most often, recorded by programs that the kernel runs at the tracepoints: what the traced threads do
//! themselves (system calls, page faults), and switches and wake-ups of the whole machine.
//!
//! ```text
//!  sched_wakeup_new, exec, exit ──► which threads are traced ───┐
//!  sys_enter, sys_exit, page_fault_user ──► one of them? ───────┴─┐
//!  sched_switch, sched_waking, sched_wakeup, sched_wakeup_new ────┴─► ring buffer of the CPU ──► recorder
//! ```
//! perf can do the same, and does where this is not allowed. But a record takes it 2.5 times as long; and its
//! events of threads are inherited with each thread, cost more at each of its switches, and the first such event of
//! the system takes 10 ms to open ([decision 0049]).
//!
//! [decision 0049]: https://github.com/hetrace/hetrace/blob/main/docs/decisions/0049-programs-in-the-kernel.md

mod code;
mod counts;
mod kernel;
mod programs;
mod ring;
mod shape;
mod threads;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;

use crate::layout::Layout;
use crate::perf::open::{self, Pid};
use counts::Counts;
use kernel::{Kind, Map};
use programs::{Maps, What};
use ring::Ring;
use shape::Shape;
use threads::Threads;

/// The tracepoint at which a new thread is known, with its parent running and interrupts off.
const NEW: &str = "sched_wakeup_new";
/// The smallest ring buffer, in bytes.
const LEAST: usize = 64 << 10;

/// Programs that are loaded and not attached yet.
#[derive(Debug)]
pub struct Loaded {
    maps: Maps,
    /// Names of tracepoints, and what runs there.
    programs: Vec<(&'static CStr, OwnedFd)>,
}

/// What is recorded of system calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Calls {
    /// None.
    None,
    /// Those of these numbers.
    Some(Vec<i32>),
    /// All.
    All,
}

/// Layouts of the tracepoints' records.
#[derive(Debug)]
pub struct Layouts<'a> {
    /// Of `sys_enter`.
    pub entry: Option<&'a Layout>,
    /// Of `sys_exit`.
    pub exit: Option<&'a Layout>,
    /// Of `page_fault_user`.
    pub fault: Option<&'a Layout>,
}

/// An event of perf's that is not enabled, at whose tracepoint a program copies the records; and their layout.
pub type Copied<'a> = (OwnedFd, &'a Layout);

impl Loaded {
    /// Loads the programs for these CPUs: for the threads that descend from some, or for all.
    ///
    /// # Errors
    /// When the kernel does not have what they need, or does not let this user have it.
    pub fn load(cpus: &[u32], ring_bytes: usize, follow: bool, calls: &Calls) -> io::Result<Self> {
        if cfg!(not(target_arch = "x86_64")) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let size = ring_bytes.max(LEAST).next_power_of_two();
        let bytes = u32::try_from(size).map_err(io::Error::other)?;
        let ring = |cpu: &u32| Ok((*cpu, kernel::map(Map::Ring, 0, 0, bytes)?));
        let mut rings = cpus.iter().map(ring).collect::<io::Result<Vec<_>>>()?;
        rings.sort_unstable_by_key(|(cpu, _)| *cpu);
        let threads = follow.then(Threads::new).transpose()?;
        let forgotten = rings.last().map_or(0, |(cpu, _)| cpu + 1);
        let counts = kernel::map(Map::Array, 4, 8, forgotten + 1)?;
        let maps = Maps { threads, counts, forgotten, rings, size };
        let mut programs = Vec::new();
        let mut load = |name, what, calls: &[i32]| -> io::Result<()> {
            let code = programs::recording(what, &maps, calls);
            programs.push((name, kernel::program(Kind::RawTracepoint, code)?));
            Ok(())
        };
        load(c"page_fault_user", What::Fault, &[])?;
        let chosen: &[i32] = if let Calls::Some(numbers) = calls { numbers } else { &[] };
        if *calls != Calls::None {
            load(c"sys_enter", What::Entry, chosen)?;
            load(c"sys_exit", What::Exit, chosen)?;
        }
        if let Some(threads) = &maps.threads {
            for (name, code) in [
                (c"sched_process_exec", programs::exec(threads)),
                (c"sched_process_exit", programs::exit(threads)),
            ] {
                programs.push((name, kernel::program(Kind::RawTracepoint, code)?));
            }
        }
        Ok(Self { maps, programs })
    }

    /// Attaches the programs. What descends from `starter` is recorded from its first `execve` on; without one,
    /// threads are named later ([`Own::follow`]).
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(
        self,
        starter: Option<Pid>,
        layouts: &Layouts<'_>,
        copied: Vec<Copied<'_>>,
    ) -> io::Result<Own> {
        let Self { maps, programs } = self;
        let (mut links, mut copying) = (Vec::new(), Vec::new());
        let mut shapes = vec![
            layouts.entry.and_then(|layout| Shape::of(What::Entry, layout)),
            layouts.exit.and_then(|layout| Shape::of(What::Exit, layout)),
            layouts.fault.and_then(|layout| Shape::of(What::Fault, layout)),
        ];
        if let Some(threads) = &maps.threads {
            if !copied.iter().any(|(_, layout)| layout.name == NEW) {
                return Err(io::ErrorKind::Unsupported.into());
            }
            if let Some(starter) = starter {
                let number = starter.as_raw_nonzero().get().cast_unsigned();
                threads.set(number, threads::FOLLOWED).ok_or(io::ErrorKind::Unsupported)?;
            }
        }
        for (name, program) in &programs {
            links.push(kernel::attach(program.as_fd(), name)?);
        }
        for (place, (event, layout)) in copied.into_iter().enumerate() {
            let (shape, bytes) = Shape::copy(layout).ok_or(io::ErrorKind::Unsupported)?;
            shapes.push(Some(shape));
            let code = programs::copying(place, bytes, &maps, child(layout)?);
            let program = kernel::program(Kind::Tracepoint, code)?;
            open::run(&event, program.as_fd())?;
            copying.push(program);
            links.push(event);
        }
        let wake = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let Maps { threads, counts, forgotten, rings, size } = maps;
        let counts = Counts::map(counts, forgotten as usize + 1)?;
        let rings = rings.into_iter().map(|(_, ring)| Ring::map(ring, size));
        let rings = rings.collect::<io::Result<Vec<_>>>()?;
        for ring in &rings {
            // Edges: else a reader would be woken by each record.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&wake, ring.event(), epoll::EventData::new_u64(0), flags)?;
        }
        let forgotten = forgotten as usize;
        Ok(Own {
            rings,
            links,
            threads,
            wake,
            shapes,
            counts,
            forgotten,
            known: vec![0; forgotten],
            skipped: 0,
            copying,
        })
    }
}

/// Returns where the record of new threads has their number; none if it is of another tracepoint.
fn child(layout: &Layout) -> io::Result<Option<i16>> {
    if layout.name != NEW {
        return Ok(None);
    }
    let field = layout.field("pid").filter(|field| field.size == 4);
    let offset = field.and_then(|field| i16::try_from(field.offset).ok());
    offset.map(Some).ok_or(io::ErrorKind::Unsupported.into())
}

/// Attached programs, and what they write.
#[derive(Debug)]
pub struct Own {
    /// By place among the CPUs.
    rings: Vec<Ring>,
    links: Vec<OwnedFd>,
    /// Those that are followed; none if all of the machine are.
    threads: Option<Threads>,
    wake: OwnedFd,
    /// By [`What`], and then by place among those that are copied.
    shapes: Vec<Option<Shape>>,
    /// The programs that copy.
    copying: Vec<OwnedFd>,
    counts: Counts,
    /// The place of the number of threads that could not be followed.
    forgotten: usize,
    /// What was skipped when it was last asked for.
    skipped: u64,
    /// By number of the CPU: what was dropped when it was last asked for.
    known: Vec<u64>,
}

impl Own {
    /// Returns what can be polled: it is readable when a quarter of a ring buffer has been filled.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Follows threads that run already, and what they start. Returns how many have no place among those that can be.
    pub fn follow(&self, numbers: &[u32]) -> u64 {
        let Some(threads) = &self.threads else { return 0 };
        let refused = |number: &&u32| threads.set(**number, threads::BEGUN).is_none();
        numbers.iter().filter(refused).count() as u64
    }

    /// Returns what must be closed to end the programs.
    pub fn links(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.links.iter().map(AsFd::as_fd)
    }

    /// Hands over the words of all unread records of a CPU, by its place. Returns how many bytes made no sense.
    pub fn take(&mut self, cpu: usize, put: &mut dyn FnMut(&[u64])) -> usize {
        self.rings.get_mut(cpu).map_or(0, |ring| ring.take(put))
    }

    /// Appends the record of perf's for the words of one of ours. Returns none if they make no sense.
    pub fn record(&self, words: &[u64], into: &mut Vec<u8>) -> Option<()> {
        let kind = usize::try_from(*words.get(programs::HEAD - 1)?).ok()?;
        self.shapes.get(kind)?.as_ref()?.put(words, into)
    }

    /// Forgets that there was something to read.
    pub fn awake(&self) {
        let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 16];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        while matches!(epoll::wait(&self.wake, &mut events, Some(&now)), Ok((some, _)) if !some.is_empty()) {}
    }

    /// Returns how many records were dropped since it was last asked, by the CPU's number: for want of room, and,
    /// with those of the first CPU, because another program of this kind, ours or another tool's, was interrupted on
    /// a CPU (the kernel runs no second one there).
    pub fn dropped(&mut self) -> Vec<u64> {
        let fresh = |now: u64, then: &mut u64| now.saturating_sub(std::mem::replace(then, now));
        let mut dropped: Vec<u64> =
            self.known.iter_mut().enumerate().map(|(cpu, then)| fresh(self.counts.get(cpu), then)).collect();
        let skipped = self.copying.iter().filter_map(|program| kernel::misses(program.as_fd()).ok()).sum();
        if let Some(first) = dropped.first_mut() {
            *first += fresh(skipped, &mut self.skipped);
        }
        dropped
    }

    /// Returns how many threads could not be followed, as their numbers are higher than any could be when recording
    /// began.
    pub fn forgotten(&self) -> u64 {
        self.counts.get(self.forgotten)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where they are refused perf records instead, and nobody would notice that the programs are wrong.
    #[test]
    fn the_kernel_takes_the_programs() {
        let some = Calls::Some((0..16).collect());
        for calls in [Calls::None, some, Calls::All] {
            for (follow, cpus) in [(true, &[0][..]), (false, &[0, 1, 2, 5]), (true, &[0, 1, 2, 3, 4, 5, 6])] {
                let refused = Loaded::load(cpus, LEAST, follow, &calls).err();
                let not_allowed = |error: &io::Error| {
                    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS))
                        || error.kind() == io::ErrorKind::Unsupported
                };
                match refused {
                    None => {}
                    Some(error) if not_allowed(&error) => eprintln!("SKIPPED: not allowed here: {error}"),
                    Some(error) => panic!("{calls:?}, follow: {follow}, {} CPUs: {error}", cpus.len()),
                }
            }
        }
    }
}
