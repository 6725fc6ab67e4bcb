//! The program and its libraries, and which of them an address is in.
//!
//! The C library says without a lock what an address is in (`_dl_find_object`, glibc 2.35). What is needed of a module is
//! found out once, and kept under its place; another one may be loaded there later, which its build id shows.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::memory;
use crate::elf::{self, Object};
use crate::hash;

/// Places for modules; a power of two.
const PLACES: usize = 1 << 10;
/// So many places are looked at for one module.
const REACH: usize = 16;
/// A place that is being written.
const WRITING: usize = 1;

/// A module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Module {
    /// Its memory, from its beginning to its end.
    pub memory: (usize, usize),
    /// What is added to addresses in its file.
    pub base: usize,
    /// Its `.eh_frame_hdr`; 0 if it has none.
    pub table: usize,
    /// A hash of what it is, wherever it is loaded.
    pub identity: u64,
}

impl Module {
    #[inline(always)]
    pub fn contains(&self, address: usize) -> bool {
        address >= self.memory.0 && address < self.memory.1
    }
}

/// `struct dl_find_object`.
#[repr(C)]
#[derive(Default)]
struct Answer {
    flags: u64,
    start: usize,
    end: usize,
    /// Of `struct link_map`, whose first members are what is added to addresses, and the name.
    link_map: usize,
    table: usize,
    reserved: [u64; 7],
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut Answer) -> libc::c_int;

/// How to find what an address is in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finder {
    find: Option<FindObject>,
    /// Where the stack of the first thread ends; 0 if that is not known.
    pub stack_end: usize,
}

impl Finder {
    /// Looks for what the dynamic loader exports.
    pub fn new() -> Self {
        let (mut find, mut end) = (None, None);
        elf::each_object(|object| {
            find = find.or_else(|| object.definition(c"_dl_find_object"));
            end = end.or_else(|| object.definition(c"__libc_stack_end"));
            find.is_none() || end.is_none()
        });
        Self {
            // SAFETY: the function of this name, which has had this form since it is there.
            find: find.map(|at| unsafe { std::mem::transmute::<*mut c_void, FindObject>(at) }),
            // SAFETY: a variable of the dynamic loader, set before any other code runs.
            stack_end: end.map_or(0, |at| unsafe { at.cast::<usize>().read() }),
        }
    }

    /// As with a C library that does not say what an address is in.
    #[cfg(test)]
    pub fn without_help(&self) -> Self {
        Self { find: None, ..*self }
    }

    /// Returns what is loaded at an address, but for its identity.
    #[inline(always)]
    fn loaded(&self, address: usize) -> Option<(Module, usize)> {
        let Some(find) = self.find else { return listed(address) };
        let mut answer = Answer::default();
        // SAFETY: it may be called at any time, also in a signal handler, with any address.
        if unsafe { find(address as *mut c_void, &raw mut answer) } != 0 {
            return None;
        }
        let Answer { start, end, link_map, table, .. } = answer;
        Some((Module { memory: (start, end), base: 0, table, identity: 0 }, link_map))
    }

    /// Returns the module that an address is in.
    #[inline(always)]
    pub fn module(&self, address: usize) -> Option<Module> {
        let (loaded, link_map) = self.loaded(address)?;
        known(&loaded).or_else(|| self.meet(loaded, link_map))
    }

    #[cold]
    #[inline(never)]
    fn meet(&self, loaded: Module, link_map: usize) -> Option<Module> {
        let base = if link_map == 0 { loaded.base } else { memory::word(link_map)? };
        let mut module = Module { base, ..loaded };
        let about = About::new(&module, link_map);
        module.identity = about.identity(&module);
        keep(&module, &about);
        Some(module)
    }

    /// Returns what is said of the module that an address is in.
    pub fn about(&self, module: &Module) -> Option<About> {
        let (loaded, link_map) = self.loaded(module.memory.0)?;
        (loaded.memory == module.memory).then(|| About::new(module, link_map))
    }
}

/// As [`Finder::loaded`], where the C library does not say it: with the lock of its list.
#[cold]
#[inline(never)]
fn listed(address: usize) -> Option<(Module, usize)> {
    let object = Object::holding(address as *const c_void)?;
    let memory = (object.start(), object.end());
    Some((Module { memory, base: object.base(), table: object.unwind(), identity: 0 }, 0))
}

/// What is kept of a module.
struct Place {
    /// 0 if it is free.
    start: AtomicUsize,
    end: AtomicUsize,
    base: AtomicUsize,
    table: AtomicUsize,
    identity: AtomicU64,
    /// Where a part of its build id lies, 0 if it has none; and what stood there.
    mark_at: AtomicUsize,
    mark: AtomicU64,
}

static MODULES: [Place; PLACES] = [const {
    Place {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        base: AtomicUsize::new(0),
        table: AtomicUsize::new(0),
        identity: AtomicU64::new(0),
        mark_at: AtomicUsize::new(0),
        mark: AtomicU64::new(0),
    }
}; PLACES];

fn places(start: usize) -> impl Iterator<Item = &'static Place> {
    let first = (hash::mix(start as u64, 0) >> 40) as usize;
    (first..first + REACH).filter_map(|place| MODULES.get(place % PLACES))
}

/// Returns the module that is loaded there, if it was met.
#[inline(always)]
fn known(loaded: &Module) -> Option<Module> {
    for place in places(loaded.memory.0) {
        // Pairs with the Release store in `keep`.
        let start = place.start.load(Ordering::Acquire);
        if start == 0 {
            return None;
        }
        let [end, table, base, mark_at] =
            [&place.end, &place.table, &place.base, &place.mark_at].map(|word| word.load(Ordering::Relaxed));
        if start != loaded.memory.0 || end != loaded.memory.1 || table != loaded.table {
            continue;
        }
        let read = || {
            // SAFETY: a word of a segment that the module of this size, at this place and with a table at this place, had
            // when it was met; and it is loaded just now, or another one just like it, which has something there, too.
            unsafe { (mark_at as *const u64).read_unaligned() }
        };
        if mark_at != 0 && read() != place.mark.load(Ordering::Relaxed) {
            continue;
        }
        return Some(Module { base, identity: place.identity.load(Ordering::Relaxed), ..*loaded });
    }
    None
}

/// Keeps a module, if there is a place for it.
fn keep(module: &Module, about: &About) {
    for place in places(module.memory.0) {
        let claimed = place.start.compare_exchange(0, WRITING, Ordering::Relaxed, Ordering::Relaxed);
        if claimed.is_err() {
            continue;
        }
        place.end.store(module.memory.1, Ordering::Relaxed);
        place.base.store(module.base, Ordering::Relaxed);
        place.table.store(module.table, Ordering::Relaxed);
        place.identity.store(module.identity, Ordering::Relaxed);
        place.mark_at.store(about.mark_at, Ordering::Relaxed);
        place.mark.store(about.mark, Ordering::Relaxed);
        // Pairs with the Acquire load in `known`.
        place.start.store(module.memory.0, Ordering::Release);
        return;
    }
}

/// Bytes of a name, at most.
const NAME: usize = hetrace_ring::abi::stack::LONGEST_PATH;
/// Bytes of a build id, at most.
const ID: usize = hetrace_ring::abi::stack::LONGEST_BUILD_ID;

/// What is said of a module.
pub(super) struct About {
    id: [u8; ID],
    id_length: usize,
    path: [u8; NAME],
    path_length: usize,
    mark_at: usize,
    mark: u64,
}

impl About {
    fn new(module: &Module, link_map: usize) -> Self {
        let (id, path) = ([0; ID], [0; NAME]);
        let mut about = Self { id, id_length: 0, path, path_length: 0, mark_at: 0, mark: 0 };
        if about.read_build_id(module).is_none() {
            (about.id_length, about.mark_at) = (0, 0);
        }
        if link_map == 0 {
            let object = Object::holding(module.memory.0 as *const c_void);
            let name = object.as_ref().map_or(b"".as_slice(), |object| object.path().to_bytes());
            about.path_length = name.len().min(NAME);
            about.path.iter_mut().zip(name).for_each(|(place, byte)| *place = *byte);
        } else if let Some(name) = memory::word(link_map + 8) {
            about.read_name(name);
        }
        if about.path_length == 0 {
            about.read_program();
        }
        about
    }

    /// The build id; empty if there is none.
    pub fn build_id(&self) -> &[u8] {
        self.id.get(..self.id_length).unwrap_or_default()
    }

    /// Where its file is.
    pub fn path(&self) -> &[u8] {
        self.path.get(..self.path_length).unwrap_or_default()
    }

    fn identity(&self, module: &Module) -> u64 {
        let identity = match self.build_id() {
            [] => {
                let [size, table, first] = [
                    module.memory.1.wrapping_sub(module.memory.0),
                    module.table.wrapping_sub(module.memory.0),
                    module.memory.0.wrapping_sub(module.base),
                ];
                let numbers = hash::mix(hash::mix(size as u64, table as u64), first as u64);
                hash::add(numbers, self.path())
            }
            id => hash::add(1, id),
        };
        // 0 is no module.
        identity.max(1)
    }

    /// Reads a text that ends with a NUL.
    fn read_name(&mut self, at: usize) {
        /// Bytes that lie in one page.
        const BLOCK: usize = 64;
        while self.path_length < NAME {
            let from = at.wrapping_add(self.path_length);
            let rest = self.path.get_mut(self.path_length..).unwrap_or_default();
            let length = (BLOCK - from % BLOCK).min(rest.len());
            // SAFETY: room for at least as many bytes as are asked for.
            if unsafe { crate::peek::read(from as *const u8, rest.as_mut_ptr(), length) }.is_err() {
                break;
            }
            let end = rest.iter().take(length).position(|byte| *byte == 0);
            self.path_length += end.unwrap_or(length);
            if end.is_some() {
                break;
            }
        }
    }

    /// The dynamic loader has no name for the program itself.
    fn read_program(&mut self) {
        let (name, room) = (c"/proc/self/exe", self.path.len());
        // SAFETY: a text, and room for as many bytes as said.
        let read = unsafe { libc::readlink(name.as_ptr(), self.path.as_mut_ptr().cast(), room) };
        self.path_length = usize::try_from(read).unwrap_or(0);
    }

    /// Looks for the build id among the notes that the headers at the module's beginning lead to.
    fn read_build_id(&mut self, module: &Module) -> Option<()> {
        const PT_NOTE: u32 = 4;
        let start = module.memory.0;
        let head = memory::read::<64>(start)?;
        let half = |at: usize| Some(u16::from_ne_bytes(head.get(at..at + 2)?.try_into().ok()?));
        if !head.starts_with(b"\x7fELF\x02") || half(54)? != 56 {
            return None;
        }
        let first = usize::from_ne_bytes(head.get(32..40)?.try_into().ok()?);
        for number in 0..usize::from(half(56)?) {
            let header = memory::read::<56>(start.checked_add(first)?.checked_add(56 * number)?)?;
            let word = |at: usize| Some(usize::from_ne_bytes(header.get(at..at + 8)?.try_into().ok()?));
            if *header.first_chunk()? == PT_NOTE.to_ne_bytes()
                && self.read_notes(module.base.wrapping_add(word(16)?), word(40)?).is_some()
            {
                return Some(());
            }
        }
        None
    }

    fn read_notes(&mut self, mut at: usize, length: usize) -> Option<()> {
        const NT_GNU_BUILD_ID: u32 = 3;
        let end = at.checked_add(length)?;
        while at < end {
            let head = memory::read::<16>(at)?;
            let word = |at: usize| Some(u32::from_ne_bytes(head.get(at..at + 4)?.try_into().ok()?));
            let (name, size) = (word(0)?.next_multiple_of(4) as usize, word(4)? as usize);
            if word(8)? == NT_GNU_BUILD_ID && head.ends_with(b"GNU\0") {
                self.id_length = size.min(ID);
                let room = self.id.get_mut(..self.id_length)?;
                // SAFETY: room for as many bytes as are asked for.
                unsafe { crate::peek::read((at + 16) as *const u8, room.as_mut_ptr(), room.len()) }.ok()?;
                if let Some(mark) = self.id.first_chunk::<8>().filter(|_| size >= 8) {
                    (self.mark_at, self.mark) = (at + 16, u64::from_ne_bytes(*mark));
                }
                return Some(());
            }
            at = at.checked_add(12 + name)?.checked_add(size.next_multiple_of(4))?;
        }
        None
    }
}
