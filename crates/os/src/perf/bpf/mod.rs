//! What the traced threads do themselves (system calls, page faults), recorded by programs that the kernel runs
//! at these tracepoints.
//!
//! ```text
//!  sched_process_fork, exec, exit ──► which threads are traced ─┐
//!  sys_enter, sys_exit, page_fault_user ──► one of them? ───────┴─► ring buffer of the CPU ──► recorder
//! ```
//! perf can do the same, by events that are inherited with each thread, and does where this is not allowed. But a
//! record takes it 2.5 times as long, every switch of these threads costs more, and the first such event of the
//! system takes 10 ms to open.

mod code;
mod kernel;
mod programs;
mod ring;
mod shape;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;

use crate::layout::Layout;
use crate::perf::open::{self, Pid};
use kernel::{Kind, Map};
use programs::{Maps, What};
use ring::Ring;
use shape::Shape;

/// Most threads that are followed at a time.
const MOST_THREADS: u32 = 1 << 16;
/// No kernel that these programs are for has more possible CPUs (`NR_CPUS` of x86-64).
const MOST_CPUS: usize = 8192;
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

/// Events of perf's for the same tracepoint, where programs can be attached, with the layout of its record.
#[derive(Debug)]
pub struct Hooks<'a> {
    /// `sched_process_fork`.
    pub fork: (BorrowedFd<'a>, &'a Layout),
    /// `sched_process_exec`.
    pub exec: (BorrowedFd<'a>, &'a Layout),
    /// `sched_process_exit`.
    pub exit: BorrowedFd<'a>,
}

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
        let threads = follow.then(|| kernel::map(Map::Hash, 4, 4, MOST_THREADS)).transpose()?;
        let dropped = kernel::map(Map::PerCpuArray, 4, 8, 1)?;
        let forgotten = kernel::map(Map::PerCpuArray, 4, 8, 1)?;
        let maps = Maps { threads, dropped, forgotten, rings, size };
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
        Ok(Self { maps, programs })
    }

    /// Attaches the programs. What descends from `starter` is recorded from its first `execve` on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(self, starter: Pid, hooks: &Hooks<'_>, layouts: &Layouts<'_>) -> io::Result<Own> {
        let Self { maps, programs } = self;
        let mut links = Vec::new();
        if let Some(threads) = &maps.threads {
            follow(&maps, threads.as_fd(), hooks)?;
            kernel::update(threads.as_fd(), starter.as_raw_nonzero().get().cast_unsigned(), 0)?;
        }
        for (name, program) in &programs {
            links.push(kernel::attach(program.as_fd(), name)?);
        }
        let wake = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let Maps { dropped, forgotten, rings, size, .. } = maps;
        let rings = rings.into_iter().map(|(_, ring)| Ring::map(ring, size));
        let rings = rings.collect::<io::Result<Vec<_>>>()?;
        for ring in &rings {
            // Edges: else a reader would be woken by each record.
            let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&wake, ring.event(), epoll::EventData::new_u64(0), flags)?;
        }
        let shapes = [
            layouts.entry.and_then(|layout| Shape::of(What::Entry, layout)),
            layouts.exit.and_then(|layout| Shape::of(What::Exit, layout)),
            layouts.fault.and_then(|layout| Shape::of(What::Fault, layout)),
        ];
        Ok(Own { rings, links, wake, shapes, dropped, forgotten, known: Vec::new() })
    }
}

/// Attaches the programs that know which threads are traced.
fn follow(maps: &Maps, threads: BorrowedFd<'_>, hooks: &Hooks<'_>) -> io::Result<()> {
    let offset = |layout: &Layout, name| {
        let field = layout.field(name).filter(|field| field.size == 4);
        field
            .and_then(|field| i16::try_from(field.offset).ok())
            .ok_or(io::Error::from(io::ErrorKind::Unsupported))
    };
    let (parent, child) = (offset(hooks.fork.1, "parent_pid")?, offset(hooks.fork.1, "child_pid")?);
    let old = offset(hooks.exec.1, "old_pid")?;
    for (event, code) in [
        (hooks.fork.0, programs::fork(maps, threads, parent, child)),
        (hooks.exec.0, programs::exec(maps, threads, old)),
        (hooks.exit, programs::exit(threads)),
    ] {
        // The event keeps it.
        open::run(event, kernel::program(Kind::Tracepoint, code)?)?;
    }
    Ok(())
}

/// Attached programs, and what they write.
#[derive(Debug)]
pub struct Own {
    /// By place among the CPUs.
    rings: Vec<Ring>,
    links: Vec<OwnedFd>,
    wake: OwnedFd,
    /// By [`What`].
    shapes: [Option<Shape>; 3],
    dropped: OwnedFd,
    forgotten: OwnedFd,
    /// By number of the CPU: what was dropped when it was last asked for.
    known: Vec<u64>,
}

impl Own {
    /// Returns what can be polled: it is readable when a quarter of a ring buffer has been filled.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Returns what must be closed to end the programs.
    pub fn links(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.links.iter().map(AsFd::as_fd)
    }

    /// Appends all unread records of a CPU, by its place, as records of perf's. Returns how many bytes made no
    /// sense.
    pub fn take(&mut self, cpu: usize, into: &mut Vec<u8>) -> usize {
        let Self { rings, shapes, .. } = self;
        let Some(ring) = rings.get_mut(cpu) else { return 0 };
        let mut senseless = 0;
        let damaged = ring.take(|words| {
            let kind = words.get(programs::HEAD - 1).and_then(|kind| usize::try_from(*kind).ok());
            let shape = kind.and_then(|kind| shapes.get(kind)?.as_ref());
            if shape.and_then(|shape| shape.put(words, into)).is_none() {
                senseless += words.len() * 8;
            }
        });
        damaged + senseless
    }

    /// Forgets that there was something to read.
    pub fn awake(&self) {
        let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 16];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        while matches!(epoll::wait(&self.wake, &mut events, Some(&now)), Ok((some, _)) if !some.is_empty()) {}
    }

    /// Returns how many records each CPU had no room for since it was last asked, by the CPU's number.
    pub fn dropped(&mut self) -> Vec<u64> {
        let Ok(numbers) = kernel::numbers(self.dropped.as_fd(), MOST_CPUS) else { return Vec::new() };
        self.known.resize(numbers.len(), 0);
        let fresh = numbers.iter().zip(&self.known).map(|(now, then)| now.saturating_sub(*then)).collect();
        self.known = numbers;
        fresh
    }

    /// Returns how many threads were too many to be followed.
    pub fn forgotten(&self) -> u64 {
        kernel::numbers(self.forgotten.as_fd(), MOST_CPUS).map_or(0, |numbers| numbers.iter().sum())
    }
}
