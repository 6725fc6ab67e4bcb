//! What the fuzz targets in `fuzz/` call of this crate's inside: the drainer and the service, on shared memory that
//! a hostile program writes, and what reads the files of programs. It is only there when built for fuzzing, and for tests.

use std::ffi::CString;
use std::fs::{self, File};
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use hetrace_ctf::write::PREAMBLE_LEN;
use hetrace_format::define::Module;
use hetrace_format::window::Capture;
use hetrace_os::perf::sampled::Map;
use hetrace_ring::abi::directory::Entry;
use hetrace_ring::abi::window::reason;
use hetrace_ring::abi::{
    self, ABI_VERSION, ARENA_MAGIC, ARENA_PREFIX, ArenaHeader, CONTROL_BYTES, CONTROL_FILE, FIRST_RING, PAGE,
    REPORTED_BYTES, REPORTED_FILE, RING_MAGIC, RingHeader, WINDOW_OFFSET, ring_bytes,
};
use hetrace_ring::{Mapping, clock, map_file, record};

use crate::control::{Control, Flags, LeftWindow, Settings, open_reported, open_to_write};
use crate::drain::Drainer;
use crate::manifest::Manifest;
use crate::output::TraceFolder;
use crate::recover::ticket::Ticket;
use crate::run_options::RunOptions;
use crate::samples::code::Code;
use crate::settings::settings;
use crate::time::{HostClock, ReferencePoint};
use crate::whom::Whom;
use crate::window::{Asked, Windows, by};
use crate::{inject, symbols, usdt};

/// Rings of the program, and data bytes of each.
const RINGS: usize = 3;
const DATA: u64 = 4 * PAGE as u64;
const ARENA: usize = FIRST_RING as usize + RINGS * ring_bytes(DATA) as usize;
/// Numbers of the APIs that the session has.
const APIS: usize = 2;

/// Bytes that choose what a program does.
struct Choices<'d>(&'d [u8]);

impl<'d> Choices<'d> {
    fn take(&mut self, most: usize) -> &'d [u8] {
        let (now, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        now
    }

    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn number(&mut self) -> usize {
        usize::from(self.byte()) | usize::from(self.byte()) << 8
    }

    /// Up to 255 bytes.
    fn bytes(&mut self) -> &'d [u8] {
        let length = usize::from(self.byte());
        self.take(length)
    }
}

/// An arena, which is written without any care.
struct Program {
    arena: Mapping,
}

impl Program {
    fn new(session: &Path, api: u32) -> Program {
        let name = format!("{ARENA_PREFIX}{api}-{}-0", std::process::id());
        let file = File::options().read(true).write(true).create_new(true).open(session.join(name));
        let file = file.expect("a file");
        file.set_len(ARENA as u64).expect("room");
        let program = Program { arena: map_file(&file, ARENA, true).expect("mapped") };
        // SAFETY: the first page of a mapping that no reference points into yet.
        let header = unsafe { &mut *program.arena.base().cast::<ArenaHeader>() };
        header.version = ABI_VERSION;
        header.api = api;
        header.pid = std::process::id();
        header.used.begin();
        header.used.take(ARENA as u64 - FIRST_RING, ARENA as u64);
        header.rings.store(RINGS as u32, Ordering::Relaxed);
        for number in 0..RINGS {
            let offset = FIRST_RING + number as u64 * ring_bytes(DATA);
            // SAFETY: in the mapping, which has room for all rings.
            let ring = unsafe { &mut *program.arena.base().add(offset as usize).cast::<RingHeader>() };
            ring.data_bytes = DATA;
            ring.number = number as u32;
            ring.state.begin();
            ring.magic.store(RING_MAGIC, Ordering::Relaxed);
            // SAFETY: the directory follows the header's page and has more words than rings.
            let entry = unsafe { &*program.arena.base().add(PAGE).cast::<Entry>().add(number) };
            entry.publish(offset, DATA);
        }
        header.magic.store(ARENA_MAGIC, Ordering::Release);
        program
    }

    /// Writes anywhere; what would leave the arena is cut off.
    fn write(&self, at: usize, bytes: &[u8]) {
        let at = at.min(ARENA);
        let length = bytes.len().min(ARENA - at);
        // SAFETY: within the mapping. The drainer reads it through atomics and copies only.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.arena.base().add(at), length) };
    }

    fn place(number: usize) -> usize {
        FIRST_RING as usize + number % RINGS * ring_bytes(DATA) as usize
    }

    fn ring(&self, number: usize) -> &RingHeader {
        // SAFETY: a header made by `new`, valid for all bit patterns.
        unsafe { &*self.arena.base().add(Self::place(number)).cast::<RingHeader>() }
    }

    /// A record that is well-formed as to its length, of any id and content.
    fn record(&self, choices: &mut Choices<'_>) {
        let number = usize::from(choices.byte());
        let (id, late) = (choices.number() as u16, choices.byte());
        let body = choices.bytes();
        let ring = self.ring(number);
        let length = record::HEAD + body.len();
        let head = ring.head.own();
        let at = Self::place(number) + PAGE + (head % DATA) as usize;
        let ticks = clock::ticks().wrapping_sub(u64::from(late) << 20);
        self.write(at, &record::pack(id, length, ticks).to_le_bytes());
        self.write(at + record::HEAD, body);
        ring.head.publish(head.wrapping_add(length as u64));
    }
}

/// A program that does with its shared memory what the bytes say, while it is drained.
///
/// # Panics
/// When a stream of the trace does not consist of whole packets.
pub fn drain(data: &[u8]) {
    let mut choices = Choices(data);
    let (session, trace) = (scratch(), scratch());
    let programs: Vec<Program> = (0..APIS as u32).map(|api| Program::new(session.path(), api)).collect();
    let compress = choices.byte() & 0x80 != 0;
    let start =
        ReferencePoint { tsc: clock::ticks(), monotonic_ns: 1 << 40, realtime_ns: 0, uncertainty_ns: 0 };
    let host = HostClock::new(start, start);
    let fresh = || {
        let folder = TraceFolder::new(trace.path().to_owned(), [0; 16], compress);
        Drainer::new(session.path(), folder, (0..APIS).map(|n| format!("api{n}").into()).collect())
    };
    let mut drainer = fresh();
    drainer.discover();
    while !choices.0.is_empty() {
        let action = choices.byte();
        let program = &programs[usize::from(action >> 7)];
        match action & 0x0f {
            0..=5 => program.record(&mut choices),
            6 => program.write(choices.number() % PAGE, choices.bytes()),
            7 => program
                .write(Program::place(choices.byte().into()) + choices.number() % PAGE, choices.bytes()),
            8 => program
                .write(Program::place(choices.byte().into()) + PAGE + choices.number(), choices.bytes()),
            9 => program.write(PAGE + 8 * usize::from(choices.byte() % 4), choices.bytes()),
            10 => {
                let state = &raw const program.ring(choices.byte().into()).state;
                // SAFETY: a state is one atomic word, in memory that stays mapped.
                unsafe { &*state.cast::<AtomicU32>() }.store(choices.byte().into(), Ordering::Relaxed);
            }
            11 => drainer.flush(start.monotonic_ns + choices.number() as u64, &host),
            12 => {
                // The launcher is killed, and another goes on.
                drainer = fresh();
                drainer.since(clock::ticks());
                drainer.discover();
            }
            _ => {
                drainer.discover();
                drainer.pass(&host);
            }
        }
    }
    drainer.finish(&host);
    // What a run's end asks of it.
    let _ = (drainer.losses(), drainer.processes(), drainer.unread(), drainer.timing(1.0));
    let _ = (drainer.device_clocks(), drainer.accounts());
    if !compress {
        whole_packets(trace.path());
    }
}

fn scratch() -> tempfile::TempDir {
    // Where sessions are; and no disk makes it slow.
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a scratch folder")
}

fn whole_packets(trace: &Path) {
    for entry in fs::read_dir(trace).expect("a folder").flatten().filter(|e| e.path().is_file()) {
        let bytes = fs::read(entry.path()).expect("a file");
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            // See the packet header in `docs/trace-format.md`: the packet's size in bits.
            let size = rest.get(48..56).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("8 bytes"))) / 8;
            let whole = size >= PREAMBLE_LEN as u64 && size <= rest.len() as u64;
            assert!(whole, "{}: a packet of {size} bytes, of {}", entry.path().display(), rest.len());
            rest = &rest[size as usize..];
        }
    }
}

/// Files that stand for dormant programs, as a service has them: made once, as such files stay mapped.
struct Standing {
    session: tempfile::TempDir,
    settings: Settings,
    control: Control,
    /// The control file, which only an attacker writes, and the one that all programs do; their bytes when they were made.
    files: [(File, Vec<u8>); 2],
}

impl Standing {
    fn make() -> Standing {
        let session = scratch();
        let settings = settings(&RunOptions::default(), vec![Flags::none("api0".into())]);
        Control::make_standby(session.path(), &settings).expect("a control file");
        let control = Control::adopt(session.path(), &["api0".into()]).expect("taken over");
        let files = [
            (open_to_write(&session.path().join(CONTROL_FILE)), CONTROL_BYTES),
            (open_reported(&session.path().join(REPORTED_FILE)), REPORTED_BYTES),
        ];
        let files = files.map(|(file, bytes)| {
            let (file, mut fresh) = (file.expect("a file"), vec![0; bytes]);
            file.read_exact_at(&mut fresh, 0).expect("its content");
            (file, fresh)
        });
        Standing { session, settings, control, files }
    }

    /// Writes anywhere but to the lock by which the kernel says that the service has ended. Places behind the control file
    /// are those of the other one.
    fn write(&self, at: usize, bytes: &[u8]) {
        let at = at % (CONTROL_BYTES + REPORTED_BYTES);
        let [(control, _), (reported, _)] = &self.files;
        if let Some(at) = at.checked_sub(CONTROL_BYTES) {
            let bytes = &bytes[..bytes.len().min(REPORTED_BYTES - at)];
            reported.write_all_at(bytes, at as u64).expect("written");
            return;
        }
        let bytes = &bytes[..bytes.len().min(CONTROL_BYTES - at)];
        let keeper = offset_of!(abi::Control, keeper);
        let spares = at + bytes.len() <= keeper || at >= keeper + size_of::<[AtomicU32; 16]>();
        if spares {
            control.write_all_at(bytes, at as u64).expect("written");
        }
    }

    /// As they were made.
    fn renew(&self) {
        let [(_, control), (reported, fresh)] = &self.files;
        let keeper = offset_of!(abi::Control, keeper);
        let behind = keeper + size_of::<[AtomicU32; 16]>();
        self.write(0, &control[..keeper]);
        self.write(behind, &control[behind..]);
        reported.write_all_at(fresh, 0).expect("written");
    }
}

thread_local! {
    static STANDING: Standing = Standing::make();
}

/// What a program does with the files that it shares with all others and the service, while the service goes
/// from session to session, and may be killed and followed by another.
///
/// # Panics
/// When a stream of the trace does not consist of whole packets.
pub fn control(data: &[u8]) {
    STANDING.with(|standing| {
        standing.renew();
        attack(standing, data);
    });
}

fn attack(standing: &Standing, data: &[u8]) {
    let Standing { session, settings, control, .. } = standing;
    let mut choices = Choices(data);
    let trace = scratch();
    let folder = TraceFolder::new(trace.path().to_owned(), [0; 16], false);
    let start =
        ReferencePoint { tsc: clock::ticks(), monotonic_ns: 1 << 40, realtime_ns: 0, uncertainty_ns: 0 };
    let host = HostClock::new(start, start);
    let begin = || Windows::new(&folder, &Asked::Commands, control.switch(), start.tsc, Capture::default());
    let mut windows = begin();
    while !choices.0.is_empty() {
        match choices.byte() & 0x0f {
            0..=3 => standing.write(choices.number(), choices.bytes()),
            4 | 5 => standing.write(CONTROL_BYTES + choices.number() % REPORTED_BYTES, choices.bytes()),
            6 | 7 => standing.write(WINDOW_OFFSET + choices.number() % PAGE, choices.bytes()),
            8 => {
                let whom = Whom { comm: Some("a*".to_owned()), ..Whom::default() };
                control.begin(settings, &whom);
            }
            9 => control.end(),
            10 => {
                let open = control.switch().is_open();
                control.switch().set_open(!open, clock::ticks(), by(reason::COMMAND));
            }
            11 => {
                control.hear();
                drop((control.notes(), control.overwritten(), control.snapshot_asked()));
            }
            12 => {
                // The service is killed, and another goes on.
                let Some(left) = LeftWindow::open(session.path()) else { continue };
                windows = Windows::recover(&folder, left.pages().switch(), &host, Capture::default());
                control.renumber();
            }
            13 => {
                windows.finish(control.pages(), &host, &mut Manifest::default());
                windows = begin();
            }
            14 => {
                control.limit_budget(Some(choices.number() as u64));
                control.renew_budget(session.path(), choices.number() as u64, choices.number());
            }
            _ => drop(windows.look(control.switch(), &host)),
        }
    }
    windows.finish(control.pages(), &host, &mut Manifest::default());
    whole_packets(trace.path());
}

/// Any bytes as the ticket of a session that is to be recovered.
pub fn ticket(data: &[u8]) {
    let session = scratch();
    let (looked, text) = data.split_at(data.len().min(8));
    fs::write(session.path().join("looked"), looked).expect("written");
    fs::write(session.path().join("trace"), text).expect("written");
    if let Some(ticket) = Ticket::of(session.path()) {
        let _ = (ticket.looked(session.path()), ticket.started(), ticket.folder());
    }
}

/// Any bytes as a program or library: what the launcher looks up in files that programs are made of.
pub fn elf(data: &[u8]) {
    let folder = scratch();
    let path = folder.path().join("file");
    fs::write(&path, data).expect("written");
    let _ = inject::needed(&path);
    let _ = usdt::find(None, &[format!("{}:*:*", path.display())]);
    let name = CString::new(path.as_os_str().as_bytes()).expect("a path");
    let _ = hetrace_closed::is_closed(&name);
    let build_id = symbols::file::build_id(&path).unwrap_or_default();
    let path = path.to_string_lossy().into_owned();
    // The bytes choose addresses, too.
    let (words, _) = data.as_chunks();
    let addresses = || words.iter().step_by(7).take(8).map(|word| u64::from_le_bytes(*word));
    let known = symbols::file::File::open(&Module { build_id, path: path.clone(), ..Module::default() });
    addresses().for_each(|address| drop(known.symbols(address)));
    let map = Map { address: 0, length: u64::MAX, offset: 0, build_id: Vec::new(), path: path.into_bytes() };
    let mut code = Code::open(&map);
    for address in addresses() {
        let place = code.address(address);
        let _ = code.row(place);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a fuzz target found.
    #[test]
    fn an_index_that_names_places_in_front_of_its_table_is_none() {
        elf(include_bytes!("../../../fuzz/corpus/elf/index_before_table"));
    }

    proptest! {
        /// The fuzz targets go further; this is always run.
        #[test]
        fn shared_memory_of_hostile_programs_is_read_without_harm(data in prop::collection::vec(any::<u8>(), 0..600)) {
            control(&data);
            drain(&data);
        }

        /// Those that are as an ELF file begins, too.
        #[test]
        fn files_of_programs_are_read_without_harm(data in prop::collection::vec(any::<u8>(), 0..600)) {
            elf(&data);
            let head = [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 9], &[3, 0, 62, 0, 1, 0, 0, 0]].concat();
            elf(&[head, data].concat());
        }
    }
}
