//! What is opened of the kernel: tracepoints, or the switches of one's own threads.

mod beside;
mod cpus;
mod drivers;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;

use crate::catalog::{Kind, SYSCALL_ENTRY, SYSCALL_EXIT, TRACEPOINTS, Tracepoint};
use crate::decoder::{Decoder, Role};
use crate::emptier::Feed;
use crate::event::Event;
use crate::layout::Layout;
use crate::order::Waiting;
use crate::perf::bpf::direct::Direct;
use crate::perf::bpf::{Buffers, Calls, Loaded, Own, Reading};
use crate::perf::open::{self, Of, Pid};
use crate::perf::ring::Ring;
use crate::perf::user::{self, Hits, MOST};
use crate::syscall;
use crate::tracefs::Tracefs;
use crate::{Options, Scope};

pub use beside::Beside;
pub(crate) use cpus::online;
use drivers::Driver;

/// The number of the first probe's records, from where it goes down: tracepoints have theirs from the other end.
const FIRST_PROBE: u16 = u16::MAX;
/// Where programs record what comes most often, perf's ring buffers are smaller by this.
const RARE: usize = 4;
/// The share of a ring buffer that is filled when its reader wakes.
const WATERMARK: usize = 4;

/// Finds drivers' tracepoints.
type Find = fn(&Tracefs, &mut Vec<String>) -> Vec<Driver>;

/// How much waits, and nanoseconds of processor time that were taken.
pub type Begun = (Arc<Waiting>, Arc<AtomicU64>);

/// Open events, and the ring buffers that they are in.
#[derive(Debug)]
pub struct Sources {
    /// What the kernel writes into, and who empties it.
    pub feed: Feed,
    /// What waits of that, and what emptying it has taken of a processor, if it was begun before there is a reader.
    begun: Option<Begun>,
    /// Leaders of the events of the whole machine, by place among the CPUs: those of the ring buffers.
    machine: Vec<Arc<OwnedFd>>,
    /// Records the program's own events, where programs in the kernel may; otherwise perf does.
    pub own: Option<Own>,
    /// Probes in the program's code.
    hits: Vec<Arc<OwnedFd>>,
    /// Leaders of the program's own events of perf, by place among the CPUs.
    leaders: Vec<Arc<OwnedFd>>,
    /// Members of these groups.
    others: Vec<Arc<OwnedFd>>,
    /// The thread that starts the program; none if processes are followed that run already.
    starter: Option<Pid>,
    /// Threads whose switches could not be opened.
    unfollowed: u64,
    /// Numbers of the CPUs.
    pub cpus: Vec<u32>,
    /// How records of tracepoints are read, by the number that they begin with: up to some thousands, of
    /// which a few are in use.
    decoders: Vec<Option<Box<Decoder>>>,
    /// What could not be opened, and why.
    pub missing: Vec<String>,
}

impl Sources {
    /// Opens tracepoints, for a program that this thread of the process starts later, or for processes that are named
    /// later ([`Sources::follow`]). [`Sources::enable`] begins to record. What the program does itself is recorded by the programs that were loaded `beside`; if
    /// there are none, by perf. Returns the disks, too.
    ///
    /// # Errors
    /// When the first one cannot be opened: why, in the system's words.
    pub fn tracepoints(
        options: &Options,
        starter: Option<Pid>,
        beside: impl FnOnce() -> Beside,
        tracefs: &Tracefs,
    ) -> Result<(Self, Vec<(u32, String)>), String> {
        let Beside { loaded, disks } = beside();
        let Some(loaded) = loaded else {
            return Ok((Self::by_perf(options, starter, tracefs, Driver::of_gpus)?, disks));
        };
        let sources = match Self::by_programs(options, starter, loaded, tracefs, Driver::of_gpus) {
            Some(sources) => sources,
            // Nothing but perf records, then. What is open closes once this is.
            None => Self::by_perf(options, starter, tracefs, Driver::of_gpus)?,
        };
        Ok((sources, disks))
    }

    /// Opens tracepoints of perf's, and none else.
    fn by_perf(
        options: &Options,
        starter: Option<Pid>,
        tracefs: &Tracefs,
        drivers: Find,
    ) -> Result<Self, String> {
        let mut sources = Self::of(online(), starter);
        // Perf opens events of a thread, then. The descriptor may close at once: the kernel stays prepared for a second.
        let of_thread = options.scope == Scope::Tree && starter.is_some();
        let early = of_thread.then(|| thread::Builder::new().spawn(|| drop(open::nothing())));
        for (of, layout) in sources.catalog(options, tracefs) {
            sources.tracepoint(options, of, &layout)?;
        }
        if sources.machine.is_empty() {
            return Err(sources.missing.swap_remove(0));
        }
        let drivers = drivers(tracefs, &mut sources.missing);
        sources.drivers(options, drivers);
        let own = sources.own_tracepoints(options, tracefs);
        // Without it the kernel prepares itself a little later.
        early.into_iter().flatten().for_each(|early| _ = early.join());
        sources.own_by_perf(options, own);
        sources.user_probes(options);
        Ok(sources)
    }

    /// Attaches programs, and opens what is left for perf; none if the kernel refuses the programs.
    fn by_programs(
        options: &Options,
        starter: Option<Pid>,
        loaded: Loaded,
        tracefs: &Tracefs,
        drivers: Find,
    ) -> Option<Self> {
        let mut sources = Self::of(online(), starter);
        let own = sources.own_tracepoints(options, tracefs);
        let catalog = sources.catalog(options, tracefs);
        let drivers = drivers(tracefs, &mut sources.missing);
        let (attached, buffers) = sources.attach(loaded, &own, &catalog, &drivers).or_else(|| {
            // Fields may be others than those that are known here.
            sources.attach(Self::load(options, Reading::Copies)?, &own, &catalog, &drivers)
        })?;
        // Perf's ring buffers have what is rare, then.
        let part = Options { ring_bytes: options.ring_bytes / RARE, ..options.clone() };
        for (of, layout) in catalog {
            if attached.records(layout.id) {
                sources.decodes(layout.id, Decoder::of(of, &layout));
            } else {
                sources.tracepoint(&part, of, &layout).ok()?;
            }
        }
        own.into_iter().for_each(|(layout, decoder)| sources.decodes(layout.id, decoder));
        sources.feed.intake()?.buffers = Some(buffers);
        sources.own = Some(attached);
        sources.drivers(&part, drivers);
        sources.user_probes(options);
        Some(sources)
    }

    /// Returns the tracepoints of the catalog that are recorded, but those of what the program does itself.
    fn catalog(&mut self, options: &Options, tracefs: &Tracefs) -> Vec<(&'static Tracepoint, Layout)> {
        let wanted = |of: &&Tracepoint| match of.kind {
            Kind::Machine => options.scope == Scope::System,
            kind => kind != Kind::Own,
        };
        let layout = |of: &'static Tracepoint| Some((of, self.layout(tracefs, of.system, of.name)?));
        TRACEPOINTS.iter().filter(wanted).filter_map(layout).collect()
    }

    /// Loads the programs in the kernel that record what the program does itself; none if that is not possible
    /// here, for whatever reason: perf does it, then. The numbers of threads that these programs see are those of
    /// the first PID namespace.
    pub fn load(options: &Options, reading: Reading) -> Option<Loaded> {
        if !crate::proc::first_namespace() {
            return None;
        }
        let follow = options.scope == Scope::Tree;
        let calls = match &options.syscalls {
            None => Calls::None,
            Some(wanted) => syscall::few(&**wanted).map_or(Calls::All, Calls::Some),
        };
        Loaded::load(&online(), options.ring_bytes, follow, &calls, reading).ok()
    }

    /// Opens the switches of the program that is started next, or of processes that are named later. It needs no
    /// privilege.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn switches(options: &Options, starter: Option<Pid>) -> io::Result<Self> {
        let bytes = options.ring_bytes.min(OWN_RING);
        let mut sources = Self::of(online(), starter);
        for cpu in sources.cpus.clone() {
            let watermark = (bytes / WATERMARK) as u32;
            sources.add_ring(match starter {
                Some(starter) => Ring::map(open::switches(Of::Child(starter), cpu, watermark)?, bytes)?,
                // Those of threads that are followed later go there.
                None => Ring::map(open::anchor(cpu, watermark)?, bytes)?.leaves_counting(),
            });
        }
        Ok(sources)
    }

    fn of(cpus: Vec<u32>, starter: Option<Pid>) -> Self {
        Self {
            feed: Feed::default(),
            begun: None,
            machine: Vec::new(),
            own: None,
            hits: Vec::new(),
            leaders: Vec::new(),
            others: Vec::new(),
            starter,
            unfollowed: 0,
            cpus,
            decoders: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Has what the kernel writes into be emptied from now on: programs record from when they are attached on.
    pub fn begin_taking(&mut self) {
        let (waiting, cpu_ns) = self.begun.insert(Begun::default());
        self.feed.begin(waiting, cpu_ns);
    }

    /// Returns what waits and what was taken so far, for the reader.
    pub fn begun(&mut self) -> Begun {
        self.begun.take().unwrap_or_default()
    }

    /// Follows threads that run already, and what they start from now on.
    pub fn follow(&mut self, threads: &[u32]) {
        match &mut self.own {
            Some(own) => self.unfollowed += own.follow(threads),
            None if self.decoders.is_empty() => threads.iter().for_each(|thread| self.open_switches(*thread)),
            // All of the machine is recorded.
            None => {}
        }
    }

    /// Opens the switches of a thread, in the ring buffers that are there.
    fn open_switches(&mut self, thread: u32) {
        let Some(thread) = Pid::from_raw(thread.cast_signed()) else { return };
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
        if self.others.len() as u64 >= most / OF_DESCRIPTORS {
            self.unfollowed += 1;
            return;
        }
        for (cpu, leader) in self.cpus.iter().zip(&self.machine) {
            let event = open::switches(Of::Thread(thread), *cpu, (OWN_RING / WATERMARK) as u32);
            match event.and_then(|event| open::redirect(&event, leader.as_fd()).map(|()| event)) {
                Ok(event) => self.others.push(Arc::new(event)),
                // It has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return,
                Err(_) => {
                    self.unfollowed += 1;
                    return;
                }
            }
        }
    }

    /// Returns how many threads could not be followed.
    pub fn unfollowed(&self) -> u64 {
        self.unfollowed
    }

    /// Returns how a record of a tracepoint is read.
    pub fn decoder(&mut self, record: &[u8]) -> Option<&mut Decoder> {
        let id = u16::from_ne_bytes(record.get(..2)?.try_into().ok()?);
        self.decoders.get_mut(usize::from(id))?.as_deref_mut()
    }

    /// Returns how words of our programs are read that are a switch or a wake-up with known fields.
    pub fn scheduled(&mut self, words: &[u64]) -> Option<(&mut Decoder, Direct)> {
        let id = self.own.as_ref()?.scheduled(words)?;
        let decoder = self.decoders.get_mut(usize::from(id))?.as_deref_mut()?;
        let direct = decoder.direct.filter(|direct| direct.words() == words.len())?;
        Some((decoder, direct))
    }

    /// Returns whether perf has something open, and not programs alone.
    pub fn of_perf(&self) -> bool {
        !self.machine.is_empty() || !self.hits.is_empty() || self.own.as_ref().is_some_and(Own::copies)
    }

    /// Returns all that is open.
    pub fn events(&self) -> Vec<BorrowedFd<'_>> {
        let links = self.own.iter().flat_map(Own::links);
        let hits = self.hits.iter().map(|hit| hit.as_fd());
        let others = self.others.iter().map(|event| event.as_fd());
        self.leaders().chain(hits).chain(others).chain(links).collect()
    }

    fn leaders(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.machine
            .iter()
            .map(|leader| leader.as_fd())
            .chain(self.leaders.iter().map(|leader| leader.as_fd()))
    }

    /// Begins to record what is of the whole machine. The program's own events begin with it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn enable(&self) -> io::Result<()> {
        self.machine.iter().chain(&self.hits).try_for_each(|event| open::enable(event.as_fd()))
    }

    /// Records nothing more.
    pub fn disable(&self) {
        for event in self.leaders().chain(self.hits.iter().map(|hit| hit.as_fd())) {
            // One that cannot be stopped ends with its descriptor.
            let _ = open::disable(event);
        }
    }

    /// Returns how records of a tracepoint are laid out; none if that is missing, which is noted.
    fn layout(&mut self, tracefs: &Tracefs, system: &str, name: &str) -> Option<Layout> {
        let found = tracefs.layout(system, name).transpose();
        let found = found.unwrap_or_else(|| Err(format!("{system}:{name}: this kernel does not have it")));
        found.map_err(|why| self.missing.push(why)).ok()
    }

    fn tracepoint(&mut self, options: &Options, of: &Tracepoint, layout: &Layout) -> Result<(), String> {
        match self.add(options, layout.id, Of::Machine, Decoder::of(of, layout), None) {
            Err(why) if self.machine.is_empty() => Err(why.to_string()),
            Err(why) => {
                self.missing.push(format!("{}:{}: {why}", of.system, of.name));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Opens the tracepoints of GPU drivers that no program records.
    fn drivers(&mut self, options: &Options, drivers: Vec<Driver>) {
        for driver in drivers {
            let (layout, decoder) = (&driver.layout, driver.decoder());
            if driver.is_recorded(self.own.as_ref()) {
                self.decodes(layout.id, decoder);
            } else if let Err(why) = self.add(options, layout.id, Of::Machine, decoder, None) {
                self.missing.push(format!("{}:{}: {why}", driver.system, layout.name));
            }
        }
    }

    /// Opens the probes in the program's code. Hits of other programs that run the same file are passed over by the reader.
    fn user_probes(&mut self, options: &Options) {
        if options.probes.is_empty() {
            return;
        }
        let hits = Hits::open(&options.probes, &self.cpus, options.ring_bytes, &mut self.missing);
        self.hits = hits.as_ref().map(Hits::events).unwrap_or_default();
        if let Some(intake) = self.feed.intake() {
            intake.hits = hits.map(|hits| (hits, FIRST_PROBE));
        }
        for (at, probe) in (0..).zip(options.probes.iter().take(MOST)) {
            let layout = user::layout(probe, FIRST_PROBE - at);
            let event = Event::new(&probe.event, &layout, &[], &[]);
            self.decodes(layout.id, Decoder::new(Role::Catalog(Kind::Passed), &layout, event));
        }
    }

    /// Returns how records are read of what the program does itself: page faults and system calls.
    fn own_tracepoints(&mut self, options: &Options, tracefs: &Tracefs) -> Vec<(Layout, Decoder)> {
        let mut own: Vec<(Layout, Decoder)> = Vec::new();
        for of in TRACEPOINTS.iter().filter(|of| of.kind == Kind::Own) {
            let Some(layout) = self.layout(tracefs, of.system, of.name) else { continue };
            let decoder = Decoder::of(of, &layout);
            own.push((layout, decoder));
        }
        if options.syscalls.is_some() {
            for (role, (system, name)) in [(Role::Entry, SYSCALL_ENTRY), (Role::Exit, SYSCALL_EXIT)] {
                let Some(layout) = self.layout(tracefs, system, name) else { continue };
                let decoder = Decoder::new(role, &layout, Event::new(name, &layout, &[], &[]));
                own.push((layout, decoder));
            }
        }
        own
    }

    /// Attaches the programs; none if the kernel refuses.
    fn attach(
        &self,
        loaded: Loaded,
        own: &[(Layout, Decoder)],
        catalog: &[(&Tracepoint, Layout)],
        drivers: &[Driver],
    ) -> Option<(Own, Buffers)> {
        let first = *self.cpus.first()?;
        let own = own.iter().map(|(layout, _)| layout);
        let layouts: Vec<&Layout> = own.chain(catalog.iter().map(|(_, layout)| layout)).collect();
        let mut copied = Vec::new();
        for (_, layout) in catalog.iter().filter(|(of, _)| loaded.copies() && is_frequent(of)) {
            // It is not enabled: the program runs nevertheless.
            copied.push((open::tracepoint(layout.id, Of::Machine, first, 0, None).ok()?, layout));
        }
        copied.extend(drivers.iter().filter_map(|driver| driver.copied(&loaded, first)));
        loaded.attach(self.starter, &layouts, copied).ok()
    }

    fn own_by_perf(&mut self, options: &Options, own: Vec<(Layout, Decoder)>) {
        let few = options.syscalls.as_ref().and_then(|wanted| syscall::few(&**wanted));
        let filter = few.and_then(|numbers| CString::new(syscall::filter(&numbers)).ok());
        // Events of a process that runs already would have to be opened for each of its threads: the reader passes over
        // what others do.
        let whose = match (options.scope, self.starter) {
            (Scope::Tree, Some(starter)) => Of::Child(starter),
            (Scope::Tree, None) | (Scope::System, _) => Of::Machine,
        };
        for (layout, decoder) in own {
            let filter = filter.as_ref().filter(|_| decoder.role != Role::Catalog(Kind::Own));
            if let Err(why) = self.add(options, layout.id, whose, decoder, filter) {
                self.missing.push(format!("{}: {why}", layout.name));
            }
        }
    }

    /// Opens a tracepoint on all CPUs.
    fn add(
        &mut self,
        options: &Options,
        id: u16,
        of: Of,
        decoder: Decoder,
        filter: Option<&CString>,
    ) -> io::Result<()> {
        let watermark = (options.ring_bytes / WATERMARK) as u32;
        let mut opened = Vec::new();
        for (place, cpu) in self.cpus.iter().enumerate() {
            let leader = match of {
                Of::Machine => self.machine.get(place).map(|leader| leader.as_fd()),
                Of::Child(_) | Of::Thread(_) => self.leaders.get(place).map(|leader| leader.as_fd()),
            };
            let event = open::tracepoint(id, of, *cpu, watermark, leader)?;
            if let Some(filter) = filter {
                // Without it more comes, and is passed over later.
                let _ = open::filter(&event, filter);
            }
            opened.push(event);
        }
        if self.machine.is_empty() {
            let rings: io::Result<Vec<Ring>> =
                opened.into_iter().map(|event| Ring::map(event, options.ring_bytes)).collect();
            rings?.into_iter().for_each(|ring| self.add_ring(ring));
        } else {
            opened
                .iter()
                .zip(&self.machine)
                .try_for_each(|(event, leader)| open::redirect(event, leader.as_fd()))?;
            let opened: Vec<Arc<OwnedFd>> = opened.into_iter().map(Arc::new).collect();
            let rings = self.feed.intake().map(|intake| &mut intake.rings);
            rings.into_iter().flatten().zip(&opened).for_each(|(ring, event)| ring.counts(Arc::clone(event)));
            let leads = matches!(of, Of::Child(_)) && self.leaders.is_empty();
            if leads { self.leaders = opened } else { self.others.extend(opened) }
        }
        self.decodes(id, decoder);
        Ok(())
    }

    /// Adds the next CPU's ring buffer.
    fn add_ring(&mut self, ring: Ring) {
        self.machine.push(ring.share());
        if let Some(intake) = self.feed.intake() {
            intake.rings.push(ring);
        }
    }

    /// Records that begin with this number are read so.
    fn decodes(&mut self, id: u16, decoder: Decoder) {
        let place = usize::from(id);
        if self.decoders.len() <= place {
            self.decoders.resize_with(place + 1, || None);
        }
        self.decoders[place] = Some(Box::new(decoder));
    }
}

/// Returns whether there are many of a tracepoint's records, for which perf takes long.
fn is_frequent(of: &Tracepoint) -> bool {
    matches!(of.kind, Kind::Switch | Kind::Wake)
}

/// Of the descriptors that this process may have, one in so many is for the switches of threads.
const OF_DESCRIPTORS: u64 = 2;
/// Most bytes of a ring buffer of an ordinary user, who may lock 516 KiB for each CPU.
const OWN_RING: usize = 256 << 10;
