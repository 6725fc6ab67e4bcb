//! What comes most often, recorded by programs that the kernel runs at the tracepoints: what the traced threads do
//! themselves (system calls, page faults), and switches and wake-ups of the whole machine.
//!
//! ```text
//!  sched_wakeup_new, exec, exit ──► which threads are traced ───┐
//!  sys_enter, sys_exit, page_fault_user ──► one of them? ───────┴─┐
//!  sched_switch, sched_waking, sched_wakeup, sched_wakeup_new ────┴─► buffer of the CPU ──► recorder
//! ```
//! perf can do the same, and does where this is not allowed. But a record takes it about three times as long; and its
//! events of threads are inherited with each thread, cost more at each of its switches, and the first such event of
//! the system takes 10 ms to open ([decision 0049], [decision 0099]).
//!
//! [decision 0049]: https://github.com/hetrace/hetrace/blob/main/docs/decisions/0049-programs-in-the-kernel.md
//! [decision 0099]: https://github.com/hetrace/hetrace/blob/main/docs/decisions/0099-fields-not-records.md

mod arena;
mod block;
mod btf;
mod buffer;
mod buffers;
mod code;
mod copy;
mod counts;
pub mod direct;
mod kernel;
mod long;
mod maps;
mod programs;
mod rare;
mod ring;
mod room;
mod scheduler;
mod shape;
mod state;
mod threads;
mod typed;
mod words;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use crate::layout::Layout;
use crate::perf::open::{self, Pid};
use block::Numbers;
use buffers::Mapped;
use copy::Copying;
use counts::Counts;
use kernel::Kind;
use maps::Maps;
use programs::Registers;
use rare::{Follows, RARE};
use shape::Shape;
use threads::Threads;
use typed::{Others, Typed};
use words::{COPY, FIRST_RARE, HEAD, What};

#[cfg(test)]
pub use buffer::Buffer;
pub use buffers::Buffers;
pub use words::{MOST_WORDS, length};

/// The tracepoint at which a new thread is known, with its parent running and interrupts off.
const NEW: &str = "sched_wakeup_new";
/// Programs that are loaded and not attached yet.
#[derive(Debug)]
pub struct Loaded {
    maps: Maps,
    /// Names of tracepoints, unless the kernel knows that of a program, and what runs there.
    programs: Programs,
    /// Whether switches and wake-ups are among them.
    scheduler: bool,
    /// Programs of what is passed less often, by place among [`RARE`].
    rare: Vec<Option<OwnedFd>>,
    /// What fields of requests are made by.
    numbers: Numbers,
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

/// An event of perf's that is not enabled, at whose tracepoint a program copies the records; and their layout.
pub type Copied<'a> = (OwnedFd, &'a Layout);

/// How programs get at what they record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// By loading it, where the kernel describes its types; else by copies.
    Fields,
    /// By copies of registers and of perf's records.
    Copies,
}

impl Loaded {
    /// Loads the programs for these CPUs: for the threads that descend from some, or for all. Buffers have as many bytes,
    /// where the kernel makes such.
    ///
    /// # Errors
    /// When the kernel does not have what they need, or does not let this user have it.
    pub fn load(
        cpus: &[u32],
        bytes: usize,
        follow: bool,
        calls: &Calls,
        reading: Reading,
    ) -> io::Result<Self> {
        if cfg!(not(target_arch = "x86_64")) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let typed = (reading == Reading::Fields).then(Typed::of_kernel).flatten();
        let loaded = typed.and_then(|typed| Self::typed(cpus, bytes, follow, calls, typed).ok());
        match loaded {
            Some(loaded) => Ok(loaded),
            None => Self::copying(cpus, bytes, follow, calls),
        }
    }

    fn typed(cpus: &[u32], bytes: usize, follow: bool, calls: &Calls, typed: Typed) -> io::Result<Self> {
        let maps = Maps::make(cpus, bytes, follow, true)?;
        let programs = typed_programs(&maps, &typed, calls)?;
        let Others { cast, steps, numbers } = typed.others;
        let rare = rare::load(&maps, cast, &steps);
        Ok(Self { maps, programs, scheduler: true, rare, numbers })
    }

    fn copying(cpus: &[u32], bytes: usize, follow: bool, calls: &Calls) -> io::Result<Self> {
        let maps = Maps::make(cpus, bytes, follow, false)?;
        let programs = raw_programs(&maps, calls)?;
        let (rare, numbers) = (Vec::new(), Numbers::default());
        Ok(Self { maps, programs, scheduler: false, rare, numbers })
    }

    /// Whether perf's tracepoints of switches and wake-ups are needed, for copies.
    pub fn copies(&self) -> bool {
        !self.scheduler
    }

    /// Attaches the programs. What descends from `starter` is recorded from its first `execve` on; without one,
    /// threads are named later ([`Own::follow`]). Where switches and wake-ups are not `copied` ([`Self::copies`]), what is
    /// may be left to perf: [`Own::records`] says so.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(
        self,
        starter: Option<Pid>,
        layouts: &[&Layout],
        copied: Vec<Copied<'_>>,
    ) -> io::Result<(Own, Buffers)> {
        let Self { maps, mut programs, scheduler, rare, numbers } = self;
        let mut shapes: Vec<Option<Shape>> = Shape::all(layouts, &numbers).into();
        programs.extend(chosen_rare(&maps, rare, &mut shapes)?);
        if let Some(threads) = &maps.threads {
            if !scheduler && !copied.iter().any(|(_, layout)| layout.name == NEW) {
                return Err(io::ErrorKind::Unsupported.into());
            }
            if let Some(starter) = starter {
                let number = starter.as_raw_nonzero().get().cast_unsigned();
                threads.set(number, threads::FOLLOWED).ok_or(io::ErrorKind::Unsupported)?;
            }
        }
        let scheduled = [What::Switch, What::Waking, What::Wakeup, What::New];
        if scheduler && scheduled.iter().any(|what| shapes[*what as usize].is_none()) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let copying = copying(&maps, copied, &mut shapes, scheduler)?;
        // What programs write into must be there before they run.
        let (mut own, buffers) = Own::of(maps, shapes)?;
        for (name, program) in programs {
            own.links.push(kernel::attach(program.as_fd(), name)?);
            own.programs.push(program);
        }
        for (kind, event, program) in copying {
            match open::run(&event, program.as_fd()) {
                Err(_) if scheduler => own.shapes[kind] = None,
                run => {
                    run?;
                    own.programs.push(program);
                    own.links.push(event);
                }
            }
        }
        Ok((own, buffers))
    }
}

/// Loads programs that copy what tracepoints of perf's record, and adds the shapes of what they write. Returns them with that
/// one's place. `each`: a tracepoint that there can be no program for is passed over, as perf records it.
fn copying(
    maps: &Maps,
    copied: Vec<Copied<'_>>,
    shapes: &mut Vec<Option<Shape>>,
    each: bool,
) -> io::Result<Vec<(usize, OwnedFd, OwnedFd)>> {
    let mut programs = Vec::new();
    for (event, layout) in copied {
        let kind = shapes.len();
        let load = || {
            let copying = Copying::of(layout).ok_or(io::ErrorKind::Unsupported)?;
            let place = u8::try_from(kind).map_err(io::Error::other)? - COPY;
            let code = copying.program(place, maps, child(layout)?).ok_or(io::ErrorKind::Unsupported)?;
            Ok((Shape::copy(layout, &copying), kernel::program(Kind::Tracepoint, code)?))
        };
        match load() {
            Ok((shape, program)) => {
                shapes.push(Some(shape));
                programs.push((kind, event, program));
            }
            Err(_) if each => {}
            Err(error) => return Err(error),
        }
    }
    Ok(programs)
}

/// Chooses the programs of which records can be read, and loads those that follow threads where there is none. What is not
/// recorded by a program has no shape.
fn chosen_rare(
    maps: &Maps,
    rare: Vec<Option<OwnedFd>>,
    shapes: &mut [Option<Shape>],
) -> io::Result<Programs> {
    let mut programs = Programs::new();
    let rare = rare.into_iter().chain(std::iter::repeat_with(|| None));
    for ((kind, of), program) in (usize::from(FIRST_RARE)..).zip(&RARE).zip(rare) {
        if let Some(program) = program.filter(|_| shapes[kind].is_some()) {
            programs.push((Some(of.name), program));
            continue;
        }
        shapes[kind] = None;
        let Some((follows, threads)) = of.follows().zip(maps.threads.as_ref()) else { continue };
        let code = match follows {
            Follows::Exec => programs::exec(threads),
            Follows::Exit => programs::exit(threads),
        };
        programs.push((Some(of.name), kernel::program(Kind::RawTracepoint, code)?));
    }
    Ok(programs)
}

/// Names of tracepoints, unless the kernel knows that of a program, and what runs there.
type Programs = Vec<(Option<&'static CStr>, OwnedFd)>;

/// Returns the numbers of system calls to choose; none if all are or none is.
fn chosen(calls: &Calls) -> &[i32] {
    if let Calls::Some(numbers) = calls { numbers } else { &[] }
}

/// Loads programs that load what they record.
fn typed_programs(maps: &Maps, typed: &Typed, calls: &Calls) -> io::Result<Programs> {
    let mut programs = Vec::new();
    let mut load = |of, code| -> io::Result<()> {
        programs.push((None, kernel::typed_program(of, code)?));
        Ok(())
    };
    // What a new thread is known by is attached first.
    load(typed.new, scheduler::wake(maps, What::New, typed.task))?;
    load(typed.switch.of, scheduler::switch(maps, typed.switch, typed.task))?;
    load(typed.waking, scheduler::wake(maps, What::Waking, typed.task))?;
    load(typed.wakeup, scheduler::wake(maps, What::Wakeup, typed.task))?;
    let own = |what, chosen| programs::recording(what, Registers::Loaded, maps, chosen);
    load(typed.fault, own(What::Fault, &[]))?;
    if *calls != Calls::None {
        load(typed.entry, own(What::Entry, chosen(calls)))?;
        load(typed.exit, own(What::Exit, chosen(calls)))?;
    }
    Ok(programs)
}

/// Loads programs that copy what they record, but those at perf's tracepoints.
fn raw_programs(maps: &Maps, calls: &Calls) -> io::Result<Programs> {
    let mut programs = Vec::new();
    let mut load = |name, what, chosen| -> io::Result<()> {
        let code = programs::recording(what, Registers::Copied, maps, chosen);
        programs.push((Some(name), kernel::program(Kind::RawTracepoint, code)?));
        Ok(())
    };
    load(c"page_fault_user", What::Fault, &[])?;
    if *calls != Calls::None {
        load(c"sys_enter", What::Entry, chosen(calls))?;
        load(c"sys_exit", What::Exit, chosen(calls))?;
    }
    Ok(programs)
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

/// Attached programs. What they write is in [`Buffers`].
#[derive(Debug)]
pub struct Own {
    links: Vec<OwnedFd>,
    /// Those that are followed; none if all of the machine are.
    threads: Option<Threads>,
    /// By [`What`], and then by place among those that are copied.
    shapes: Vec<Option<Shape>>,
    /// The programs: the kernel counts when it does not run one.
    programs: Vec<OwnedFd>,
    counts: Arc<Counts>,
    /// The place of the number of threads that could not be followed.
    forgotten: usize,
    /// What was skipped when it was last asked for.
    skipped: u64,
}

impl Own {
    fn of(maps: Maps, shapes: Vec<Option<Shape>>) -> io::Result<(Self, Buffers)> {
        let (links, programs) = (Vec::new(), Vec::new());
        let Maps { threads, counts, forgotten, cpus, buffers, size, ring, ring_size, scratch: _ } = maps;
        let forgotten = forgotten as usize;
        let counts = Arc::new(Counts::map(counts, forgotten + 1)?);
        let mapped = Mapped { cpus, buffers, size, ring, ring_size };
        let buffers = Buffers::map(mapped, Arc::clone(&counts))?;
        Ok((Self { links, threads, shapes, programs, counts, forgotten, skipped: 0 }, buffers))
    }

    /// Follows threads that run already, and what they start. Returns how many have no place among those that can be.
    pub fn follow(&self, numbers: &[u32]) -> u64 {
        let Some(threads) = &self.threads else { return 0 };
        let refused = |number: &&u32| threads.set(**number, threads::BEGUN).is_none();
        numbers.iter().filter(refused).count() as u64
    }

    /// Returns whether a program records the tracepoint of this number, so that perf is not needed for it.
    pub fn records(&self, tracepoint: u16) -> bool {
        self.shapes.iter().flatten().any(|shape| shape.id() == tracepoint)
    }

    /// Whether some are at tracepoints of perf's.
    pub fn copies(&self) -> bool {
        self.shapes.iter().skip(usize::from(COPY)).any(Option::is_some)
    }

    /// Returns what must be closed to end the programs.
    pub fn links(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.links.iter().map(AsFd::as_fd)
    }

    /// Appends the record of perf's for the words of one of ours. Returns none if they make no sense.
    pub fn record(&self, words: &[u64], into: &mut Vec<u8>) -> Option<()> {
        let kind = *words.get(HEAD - 1)? as u8;
        self.shapes.get(usize::from(kind))?.as_ref()?.put(words, into)
    }

    /// Returns the number of the tracepoint of which words are a switch or a wake-up as fields; none if they are not.
    pub fn scheduled(&self, words: &[u64]) -> Option<u16> {
        let kind = words.get(HEAD - 1)?.to_le_bytes()[0];
        if !(What::Switch as u8..=What::New as u8).contains(&kind) {
            return None;
        }
        self.shapes.get(usize::from(kind))?.as_ref().map(Shape::id)
    }

    /// Returns how many records there are none of since it was last asked, because the program itself, or at perf's
    /// tracepoints another one, ours or another tool's, was interrupted on a CPU (the kernel runs no second one there).
    pub fn skipped(&mut self) -> u64 {
        let now = self.programs.iter().filter_map(|program| kernel::misses(program.as_fd()).ok()).sum();
        u64::saturating_sub(now, std::mem::replace(&mut self.skipped, now))
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

    /// Where they are refused others record instead, and nobody would notice that the programs are wrong.
    #[test]
    fn the_kernel_takes_the_programs() {
        let some = Calls::Some((0..16).collect());
        for (calls, reading) in
            [Calls::None, some, Calls::All].iter().flat_map(|c| [(c, Reading::Fields), (c, Reading::Copies)])
        {
            for (follow, cpus) in [(true, &[0][..]), (false, &[0, 1, 2, 5]), (true, &[0, 1, 2, 3, 4, 5, 6])] {
                let loaded = Loaded::load(cpus, 64 << 10, follow, calls, reading);
                let not_allowed = |error: &io::Error| {
                    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOSYS))
                        || error.kind() == io::ErrorKind::Unsupported
                };
                match loaded {
                    Ok(loaded) => {
                        let understood = reading == Reading::Fields && Typed::of_kernel().is_some();
                        assert_eq!(loaded.copies(), !understood, "{calls:?}, {} CPUs", cpus.len());
                        let has = |steps: &Option<Vec<rare::Step>>| steps.is_some();
                        let known = Typed::of_kernel().filter(|_| understood).map(|typed| typed.others.steps);
                        let known: Vec<bool> = known.iter().flatten().map(has).collect();
                        let loaded: Vec<bool> = loaded.rare.iter().map(Option::is_some).collect();
                        assert_eq!(loaded, known, "programs of what is rare");
                    }
                    Err(error) if not_allowed(&error) => eprintln!("SKIPPED: not allowed here: {error}"),
                    Err(error) => panic!("{calls:?}, follow: {follow}, {} CPUs: {error}", cpus.len()),
                }
            }
        }
    }

    /// So that a run does not take longer on a machine with more CPUs: nothing is opened or loaded for each of them.
    #[test]
    fn what_is_opened_does_not_grow_with_the_cpus() {
        let Ok(tracefs) = crate::tracefs::Tracefs::open() else {
            eprintln!("SKIPPED: this user may not read the descriptions of tracepoints");
            return;
        };
        let own = [("raw_syscalls", "sys_enter"), ("raw_syscalls", "sys_exit")];
        let names = crate::catalog::TRACEPOINTS.iter().map(|of| (of.system, of.name)).chain(own);
        let layouts: Vec<Layout> =
            names.filter_map(|(system, name)| tracefs.layout(system, name).ok().flatten()).collect();
        let opened = |cpus: u32| {
            let cpus: Vec<u32> = (0..cpus).collect();
            let loaded = Loaded::load(&cpus, 16 << 20, true, &Calls::All, Reading::Fields).ok()?;
            if loaded.copies() || !matches!(loaded.maps.buffers, maps::Kept::Arena(_)) {
                return None;
            }
            let (own, _) = loaded.attach(None, &layouts.iter().collect::<Vec<_>>(), Vec::new()).ok()?;
            let by_perf = layouts.iter().filter(|layout| !own.records(layout.id)).count();
            Some((own.links.len(), own.programs.len(), by_perf))
        };
        let Some(one) = opened(1) else {
            eprintln!("SKIPPED: no programs, or no arenas, in this kernel");
            return;
        };
        assert_eq!(one, (layouts.len(), layouts.len(), 0), "a program for each tracepoint");
        assert_eq!([16, 128].map(opened), [Some(one); 2]);
    }
}
