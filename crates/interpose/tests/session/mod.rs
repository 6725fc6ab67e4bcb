//! A session made here, which this process joins, and its arenas read as the drainer does.
#![allow(dead_code, reason = "not all who use it need all of it")]

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use hetrace_interpose::{call, start, thread_id};
use hetrace_ring::abi::{
    ABI_VERSION, CONTROL_BYTES, CONTROL_FILE, CONTROL_MAGIC, Control, REPORTED_BYTES, REPORTED_FILE,
    Reported, SESSION_VARIABLE, ThreadRecord, flag, option, special,
};
use hetrace_ring::reader::{Arena, Ring};
use hetrace_ring::{map_file, record};

pub const RELAXED: Ordering = Ordering::Relaxed;
/// Data bytes of the session's rings. A thread begins with 64 KiB.
pub const RING: u32 = 1 << 20;
/// Numbers of a function: entry, exit, run of polls.
pub const ENTRY: u16 = 16;
pub const EXIT: u16 = 17;
pub const FOLD: u16 = 18;

/// A session that this process has joined.
pub struct Joined {
    pub folder: PathBuf,
    pub control: &'static Control,
    pub reported: &'static Reported,
}

pub fn joined() -> &'static Joined {
    static JOINED: OnceLock<Joined> = OnceLock::new();
    JOINED.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("hetrace-session-{}", std::process::id()));
        fs::create_dir(&folder).expect("a folder");
        let made = |name: &str, bytes: usize| {
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(folder.join(name));
            let file = file.expect("a file");
            file.set_len(bytes as u64).expect("room");
            map_file(&file, bytes, true).expect("mapped").leak()
        };
        let base = made(CONTROL_FILE, CONTROL_BYTES).cast::<Control>();
        // SAFETY: a mapping of zeros that stays, and is made of atomics.
        let reported = unsafe { &*made(REPORTED_FILE, REPORTED_BYTES).cast::<Reported>() };
        // SAFETY: a mapping of zeros that stays; nobody else has the file yet.
        unsafe {
            (&raw mut (*base).version).write(ABI_VERSION);
            (&raw mut (*base).ring_bytes).write(RING);
            (&raw mut (*base).text_cap).write(100);
            (&raw mut (*base).bytes_cap).write(100);
            (&raw mut (*base).seq_cap).write(16);
            (&raw mut (*base).api_count).write(1);
            (&raw mut (*base).apis[0]).cast::<[u8; 4]>().write(*b"test");
        }
        // SAFETY: the members that change from now on are atomics.
        let control = unsafe { &*base };
        control.options.store(option::FOLD, RELAXED);
        control.budget.store(1 << 30, RELAXED);
        control.room.store(1 << 30, RELAXED);
        control.drainer_alive.store(1, RELAXED);
        control.magic.store(CONTROL_MAGIC, Ordering::Release);
        // SAFETY: nobody reads the environment meanwhile: all tests wait for this.
        unsafe { std::env::set_var(SESSION_VARIABLE, &folder) };
        start("test");
        assert!(hetrace_interpose::session().is_some(), "joined");
        extern "C" fn remove() {
            _ = fs::remove_dir_all(&joined().folder);
        }
        // SAFETY: a function that may run at the end of a process.
        assert_eq!(unsafe { libc::atexit(remove) }, 0);
        Joined { folder, control, reported }
    })
}

/// The arenas of a process.
pub fn arenas(pid: u32) -> Vec<(File, Arena)> {
    let prefix = format!("arena-0-{pid}-");
    let files = fs::read_dir(&joined().folder).expect("a folder").flatten();
    let named = files.filter(|f| f.file_name().to_string_lossy().starts_with(&prefix));
    let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path).expect("an arena");
    named
        .map(|f| open(&f.path()))
        .map(|f| Arena::open(&f).map(|arena| (f, arena)).expect("an arena"))
        .collect()
}

/// A record: the number of its ring, its id, the low bits of its time, and its body.
pub type Record = (u32, u16, u64, Vec<u8>);

/// What a thread recorded, ring after ring, and its losses: records, calls. Nothing is released, so no
/// ring goes over its end.
pub fn recorded(pid: u32, tid: u32) -> (Vec<Record>, [u64; 2]) {
    let (mut records, mut lost) = (Vec::new(), [0; 2]);
    for (file, arena) in arenas(pid) {
        for number in 0..arena.rings() {
            let Some(ring) = arena.ring(&file, number).expect("a ring") else { continue };
            let (found, missing) = records_of(&ring, tid);
            lost = [lost[0] + missing[0], lost[1] + missing[1]];
            records.extend(found);
        }
    }
    (records, lost)
}

pub fn records_of(ring: &Ring, tid: u32) -> (Vec<Record>, [u64; 2]) {
    let (mut bytes, mut whose, mut records) = (ring.published(usize::MAX), 0, Vec::new());
    let header = ring.header();
    let (mut before, mut lost) = ([0; 2], [0; 2]);
    let mut count = |whose: u32, now: [u64; 2]| {
        if whose == tid {
            lost = [lost[0] + now[0] - before[0], lost[1] + now[1] - before[1]];
        }
        before = now;
    };
    while let Some((head, rest)) = bytes.split_at_checked(record::HEAD) {
        let head = u64::from_le_bytes(head.try_into().expect("eight"));
        let (body, rest) = rest.split_at(record::length(head) - record::HEAD);
        let id = record::id(head);
        if id == special::THREAD {
            assert_eq!(body.len(), size_of::<ThreadRecord>());
            let word = |at: usize| u64::from_le_bytes(*body[at..].first_chunk().expect("a word"));
            count(whose, [word(16), word(24)]);
            whose = u32::from_le_bytes(*body.first_chunk().expect("its tid"));
        }
        if whose == tid {
            records.push((ring.number(), id, record::time(head), body.to_vec()));
        }
        bytes = rest;
    }
    count(whose, [&header.lost, &header.lost_calls].map(|word| word.load(RELAXED)));
    (records, lost)
}

/// Runs it in a thread of its own, and returns what that recorded, but for who it is.
pub fn in_thread(work: impl FnOnce() + Send) -> (Vec<Record>, [u64; 2]) {
    joined();
    let tid = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            work();
            thread_id()
        });
        thread.join().expect("no panic")
    });
    let (records, lost) = recorded(std::process::id(), tid);
    (records.into_iter().filter(|(_, id, ..)| *id != special::THREAD).collect(), lost)
}

pub fn ids(records: &[Record]) -> Vec<u16> {
    records.iter().map(|(_, id, ..)| *id).collect()
}

/// A call of a function that returns its argument plus 1; `inside` runs in it.
pub fn add(argument: u32, inside: impl FnOnce(u64)) -> u32 {
    let real = |time| {
        inside(time);
        argument + 1
    };
    // SAFETY: plain numbers are recorded.
    unsafe { call(flag::RECORD, ENTRY, || (argument,), real, |result: u32| (result,), || ()) }
}
