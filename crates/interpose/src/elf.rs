//! The libraries of the process, read from what the dynamic loader keeps of
//! them.
//!
//! `dlsym` alone does not show which library a function belongs to, what another
//! library would have found, or where `dlsym` itself is when it is hooked. So
//! the tables are read directly, under the lock that the dynamic loader holds
//! only while its list changes: never for as long as a library starts. Signals
//! wait meanwhile: a handler that jumped away would leave the lock locked.

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};

use hetrace_ring::abi::PAGE;

use crate::held::hold;
use crate::raw_elf::{
    ADDRESS_KINDS, DT_GNU_HASH, DT_HASH, DT_JMPREL, DT_PLTRELSZ, DT_RELA, DT_RELACOUNT, DT_RELASZ, DT_SONAME,
    DT_STRTAB, DT_SYMTAB, DT_VERSYM, Dynamic, HIDDEN_VERSION, Relocation, STT_IFUNC, Symbol,
};

const DT_NEEDED: i64 = 1;
const DT_PLTREL: i64 = 20;
const PT_GNU_RELRO: u32 = 0x6474_e552;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
const STB_WEAK: u8 = 2;
const STT_TLS: u8 = 6;
/// A library of the process, or its program.
#[derive(Debug, Clone, Copy)]
pub struct Object {
    base: usize,
    start: usize,
    end: usize,
    dynamic: *const Dynamic,
    name: *const c_char,
    relro: (usize, usize),
    code: (usize, usize),
    unwind: usize,
}

/// Entries of a library's dynamic section by which names are looked up; 0 if there is none.
#[derive(Default)]
struct Lookup {
    symbols: usize,
    texts: usize,
    versions: usize,
    hash: usize,
    older_hash: usize,
}

/// A place in a library that holds the address of a function.
#[derive(Debug)]
pub struct Reference<'a> {
    /// The function's name, in texts of the library. Few references are looked at so closely.
    text: *const c_char,
    texts: PhantomData<&'a Object>,
    /// The library defines the function itself.
    pub defines: bool,
    /// The library does without, if there is none.
    pub weak: bool,
    /// What the place holds.
    pub now: *mut c_void,
}

impl<'a> Reference<'a> {
    /// The first byte of its name, which distinguishes most names.
    pub fn first(&self) -> u8 {
        // SAFETY: an offset that the library's own tables hold, at which there is a NUL-terminated text.
        unsafe { *self.text.cast() }
    }

    /// The function.
    pub fn name(&self) -> &'a CStr {
        // SAFETY: an offset that the library's own tables hold, in its texts, which stay as long as the library.
        unsafe { CStr::from_ptr(self.text) }
    }
}

/// Shows all libraries in the order in which they were loaded, the program
/// first, until `work` returns false. `work` must not call the dynamic loader.
pub fn each_object(mut work: impl FnMut(&Object) -> bool) {
    each(|info| Object::of(info).is_none_or(|o| work(&o)));
}

/// A number that changes when a library is loaded or unloaded.
pub fn generation() -> u64 {
    let mut number = 0;
    each(|info| {
        number = info.dlpi_adds.wrapping_add(info.dlpi_subs);
        false
    });
    number
}

fn each<F: FnMut(&libc::dl_phdr_info) -> bool>(mut work: F) {
    // A sanitizer's interceptor of what is called below may not be ready yet.
    crate::direct::bind();
    unsafe extern "C" fn step<F: FnMut(&libc::dl_phdr_info) -> bool>(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        data: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: the dynamic loader's own description, and the closure below.
        let (info, work) = unsafe { (&*info, &mut *data.cast::<F>()) };
        libc::c_int::from(!work(info))
    }
    let _held = hold();
    // SAFETY: `step` is called only while `work` lives.
    unsafe { libc::dl_iterate_phdr(Some(step::<F>), (&raw mut work).cast()) };
}

impl Object {
    fn of(info: &libc::dl_phdr_info) -> Option<Object> {
        let base = info.dlpi_addr as usize;
        let mut object = Object {
            base,
            start: usize::MAX,
            end: 0,
            dynamic: std::ptr::null(),
            name: info.dlpi_name,
            relro: (0, 0),
            code: (usize::MAX, 0),
            unwind: 0,
        };
        for i in 0..usize::from(info.dlpi_phnum) {
            // SAFETY: there are `dlpi_phnum` headers.
            let header = unsafe { &*info.dlpi_phdr.add(i) };
            let start = base.wrapping_add(header.p_vaddr as usize);
            let end = start.wrapping_add(header.p_memsz as usize);
            match header.p_type {
                libc::PT_LOAD => {
                    object.start = object.start.min(start);
                    object.end = object.end.max(end);
                    if header.p_flags & libc::PF_X != 0 {
                        object.code = (object.code.0.min(start), object.code.1.max(end));
                    }
                }
                libc::PT_DYNAMIC => object.dynamic = start as *const Dynamic,
                // The dynamic loader protects whole pages only, and so do we.
                PT_GNU_RELRO => object.relro = (start, end & !(PAGE - 1)),
                PT_GNU_EH_FRAME => object.unwind = start,
                _ => {}
            }
        }
        (!object.dynamic.is_null() && object.start < object.end).then_some(object)
    }

    /// How many words there are of it.
    pub(crate) const WORDS: usize = 10;

    /// All that is known of it, for places that other threads read.
    pub(crate) fn words(&self) -> [usize; Self::WORDS] {
        let Object { base, start, end, dynamic, name, relro, code, unwind } = *self;
        [base, start, end, dynamic as usize, name as usize, relro.0, relro.1, code.0, code.1, unwind]
    }

    /// What [`Object::words`] were of.
    ///
    /// # Safety
    /// They are the words of a library that is loaded.
    pub(crate) unsafe fn from_words(words: [usize; Self::WORDS]) -> Object {
        let [base, start, end, dynamic, name, relro, relro_end, code, code_end, unwind] = words;
        let (dynamic, name) = (dynamic as *const Dynamic, name as *const c_char);
        Object { base, start, end, dynamic, name, relro: (relro, relro_end), code: (code, code_end), unwind }
    }

    /// The library in which an address lies.
    pub fn holding(address: *const c_void) -> Option<Object> {
        let mut found = None;
        each_object(|object| {
            if object.contains(address) {
                found = Some(*object);
            }
            found.is_none()
        });
        found
    }

    /// Whether an address lies in the library.
    pub fn contains(&self, address: *const c_void) -> bool {
        (self.start..self.end).contains(&(address as usize))
    }

    /// Whether an address lies among the library's code.
    pub fn executes(&self, address: *const c_void) -> bool {
        (self.code.0..self.code.1).contains(&(address as usize))
    }

    /// The name under which others need it, if it has one.
    pub fn soname(&self) -> Option<&CStr> {
        self.text(self.entry(DT_SONAME)?)
    }

    /// Where it begins: no two libraries begin at the same place.
    pub fn start(&self) -> usize {
        self.start
    }

    /// What is added to addresses in its file.
    pub fn base(&self) -> usize {
        self.base
    }

    /// Its table of how to unwind; 0 if it has none.
    pub(crate) fn unwind(&self) -> usize {
        self.unwind
    }

    /// Where it ends.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Where its file is, as the dynamic loader has it; empty for the program.
    pub fn path(&self) -> &CStr {
        if self.is_program() {
            return c"";
        }
        // SAFETY: not NULL, so the NUL-terminated name of a loaded library.
        unsafe { CStr::from_ptr(self.name) }
    }

    /// The program has no name.
    pub fn is_program(&self) -> bool {
        // SAFETY: NULL or a NUL-terminated name of a loaded library.
        self.name.is_null() || unsafe { *self.name } == 0
    }

    /// Keeps the library loaded for ever.
    pub fn keep(&self) {
        if !self.is_program() {
            // SAFETY: the NUL-terminated path of a loaded library.
            unsafe { libc::dlopen(self.name, libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
        }
    }

    fn entries(&self) -> impl Iterator<Item = (i64, usize)> {
        let first = self.dynamic;
        (0..).map_while(move |i| {
            // SAFETY: the section of a loaded library, which ends with a 0.
            let entry = unsafe { &*first.add(i) };
            (entry.tag != 0).then_some((entry.tag, entry.value))
        })
    }

    fn entry(&self, tag: i64) -> Option<usize> {
        self.entries().find(|(t, _)| *t == tag).map(|(_, v)| v)
    }

    /// An entry that is an address: the dynamic loader has moved most of them.
    fn table<T>(&self, tag: i64) -> Option<*const T> {
        self.moved(self.entry(tag)?)
    }

    /// What such an entry says; `None` if it is 0.
    fn moved<T>(&self, value: usize) -> Option<*const T> {
        let moved = if value < self.base { self.base.wrapping_add(value) } else { value };
        (value != 0).then_some(moved as *const T)
    }

    fn text(&self, offset: usize) -> Option<&CStr> {
        let texts: *const c_char = self.table(DT_STRTAB)?;
        // SAFETY: an offset that the library's own tables hold.
        Some(unsafe { CStr::from_ptr(texts.add(offset)) })
    }

    /// Whether another library's list of what it needs can mean this one.
    fn is_called(&self, needed: &CStr) -> bool {
        if self.soname() == Some(needed) {
            return true;
        }
        if self.name.is_null() {
            return false;
        }
        // SAFETY: the NUL-terminated path of a loaded library.
        let path = unsafe { CStr::from_ptr(self.name) }.to_bytes();
        path == needed.to_bytes() || path.rsplit(|b| *b == b'/').next() == Some(needed.to_bytes())
    }

    /// What a lookup of names needs, found in one pass: this is asked of each library of the process.
    fn lookup(&self) -> Lookup {
        let mut lookup = Lookup::default();
        for (tag, value) in self.entries() {
            match tag {
                DT_SYMTAB => lookup.symbols = value,
                DT_STRTAB => lookup.texts = value,
                DT_VERSYM => lookup.versions = value,
                DT_GNU_HASH => lookup.hash = value,
                DT_HASH => lookup.older_hash = value,
                _ => {}
            }
        }
        lookup
    }

    /// The library's own definition of a function.
    pub fn definition(&self, name: &CStr) -> Option<*mut c_void> {
        let lookup = self.lookup();
        let symbols: *const Symbol = self.moved(lookup.symbols)?;
        let texts: *const c_char = self.moved(lookup.texts)?;
        let versions: Option<*const u16> = self.moved(lookup.versions);
        let mut older = None;
        let mut found = None;
        let mut candidate = |index: usize| {
            // SAFETY: an index from the library's own hash table.
            let symbol = unsafe { &*symbols.add(index) };
            let kind = symbol.info & 15;
            if symbol.section == 0 || symbol.value == 0 || kind == STT_TLS || kind == STT_IFUNC {
                return false;
            }
            // SAFETY: an offset that the library's own tables hold.
            if unsafe { CStr::from_ptr(texts.add(symbol.name as usize)) } != name {
                return false;
            }
            let address = self.base.wrapping_add(symbol.value) as *mut c_void;
            // SAFETY: there is a version for every symbol.
            let hidden = versions.is_some_and(|v| unsafe { *v.add(index) } & HIDDEN_VERSION != 0);
            if hidden {
                older = Some(address);
            } else {
                found = Some(address);
            }
            !hidden
        };
        if let Some(table) = self.moved::<u32>(lookup.hash) {
            // SAFETY: the hash table of a loaded library.
            unsafe { in_gnu_hash(table, name, &mut candidate) };
        } else if let Some(table) = self.moved::<u32>(lookup.older_hash) {
            // SAFETY: DT_HASH is the address of the older hash table of a loaded library.
            unsafe { in_hash(table, name, &mut candidate) };
        }
        found.or(older)
    }

    /// The first library among those that this one needs, and those that they
    /// need, that defines a function: what a lookup would find that begins
    /// here.
    pub fn provider(&self, name: &CStr) -> Option<Object> {
        self.first(|object| object.definition(name).is_some())
    }

    /// The first library in the order of such a lookup that is wanted.
    pub fn first(&self, wanted: impl Fn(&Object) -> bool) -> Option<Object> {
        const MOST: usize = 128;
        // Where they begin, and no more: this may be the small stack of a coroutine.
        let mut list = [self.start; MOST];
        let (mut length, mut at) = (1, 0);
        while at < length {
            let next = Object::holding(list[at] as *const c_void);
            at += 1;
            let Some(object) = next else { continue };
            if wanted(&object) {
                return Some(object);
            }
            for needed in
                object.entries().filter(|(t, _)| *t == DT_NEEDED).filter_map(|(_, o)| object.text(o))
            {
                let mut fresh = None;
                each_object(|o| {
                    if o.is_called(needed) {
                        fresh = Some(*o);
                    }
                    fresh.is_none()
                });
                if let Some(fresh) = fresh
                    && length < MOST
                    && list.iter().take(length).all(|start| *start != fresh.start)
                {
                    list[length] = fresh.start;
                    length += 1;
                }
            }
        }
        None
    }

    /// Shows the places where the library keeps addresses of functions it
    /// takes from elsewhere; what `wanted` returns is put there.
    pub fn rebind(&self, mut wanted: impl FnMut(&Reference<'_>) -> Option<*mut c_void>) {
        const SIZE: usize = size_of::<Relocation>();
        let Some(symbols) = self.table::<Symbol>(DT_SYMTAB) else { return };
        let Some(texts) = self.table::<c_char>(DT_STRTAB) else { return };
        let jumps = if self.entry(DT_PLTREL) == Some(DT_RELA as usize) { DT_JMPREL } else { DT_RELA };
        for (table, size) in [(DT_RELA, DT_RELASZ), (jumps, DT_PLTRELSZ)] {
            let (Some(first), Some(size)) = (self.table::<Relocation>(table), self.entry(size)) else {
                continue;
            };
            // Those that only move an address come first.
            let nameless = if table == DT_RELA { self.entry(DT_RELACOUNT).unwrap_or(0) } else { 0 };
            for i in nameless..size / SIZE {
                // SAFETY: the table has that many bytes.
                let relocation = unsafe { &*first.add(i) };
                let (symbol, kind) = ((relocation.info >> 32) as usize, relocation.info as u32);
                if symbol == 0 || !ADDRESS_KINDS.contains(&kind) || relocation.addend != 0 {
                    continue;
                }
                // SAFETY: the symbol that the relocation names.
                let symbol = unsafe { &*symbols.add(symbol) };
                let place = self.base.wrapping_add(relocation.offset) as *mut *mut c_void;
                if !self.contains(place.cast()) || !place.is_aligned() {
                    continue;
                }
                let reference = Reference {
                    // SAFETY: an offset that the library's own tables hold.
                    text: unsafe { texts.add(symbol.name as usize) },
                    texts: PhantomData,
                    defines: symbol.section != 0,
                    weak: symbol.info >> 4 == STB_WEAK,
                    // SAFETY: a place of the library that the dynamic loader has filled.
                    now: unsafe { *place },
                };
                if let Some(address) = wanted(&reference).filter(|a| *a != reference.now) {
                    self.write(place, address);
                }
            }
        }
    }

    /// Puts an address into a place that may be protected since it was filled.
    fn write(&self, place: *mut *mut c_void, address: *mut c_void) {
        let guarded = (self.relro.0..self.relro.1).contains(&(place as usize));
        let start = (place as usize & !(PAGE - 1)) as *mut c_void;
        // SAFETY: the page of a place of a loaded library. An aligned word is
        // written at once, as the dynamic loader itself does with lazy binding.
        unsafe {
            if guarded && libc::mprotect(start, PAGE, libc::PROT_READ | libc::PROT_WRITE) != 0 {
                return;
            }
            AtomicPtr::from_ptr(place).store(address, Ordering::Release);
            if guarded {
                libc::mprotect(start, PAGE, libc::PROT_READ);
            }
        }
    }
}

/// Shows the indices that a GNU hash table has for a name, until one is taken.
///
/// # Safety
/// `table` is the `DT_GNU_HASH` of a library that stays loaded meanwhile.
unsafe fn in_gnu_hash(table: *const u32, name: &CStr, taken: &mut impl FnMut(usize) -> bool) {
    let hash = name.to_bytes().iter().fold(5381u32, |h, b| h.wrapping_mul(33).wrapping_add(u32::from(*b)));
    // SAFETY: the layout of the table: four words, a filter of `words` 64-bit
    // words, `buckets` words, and chains whose last entry is odd.
    unsafe {
        let (buckets, first, words) = (*table as usize, *table.add(1) as usize, *table.add(2) as usize);
        if buckets == 0 {
            return;
        }
        // Nearly all names that are not there end here, as for the dynamic loader.
        if words > 0 {
            let (word, shift) = ((hash >> 6) as usize % words, *table.add(3) & 31);
            let filter = table.add(4).cast::<u64>().add(word).read_unaligned();
            if filter >> (hash & 63) & filter >> (hash >> shift & 63) & 1 == 0 {
                return;
            }
        }
        let bucket = table.add(4 + 2 * words);
        let mut index = *bucket.add(hash as usize % buckets) as usize;
        if index < first {
            return;
        }
        loop {
            let there = *bucket.add(buckets + index - first);
            if there | 1 == hash | 1 && taken(index) || there & 1 != 0 {
                return;
            }
            index += 1;
        }
    }
}

/// Shows the indices that a hash table of the older kind (`DT_HASH`) has for a name, until one is taken.
///
/// # Safety
/// `table` is the `DT_HASH` of a library that stays loaded meanwhile: two words, as many buckets as the
/// first says, and chains that end with 0.
unsafe fn in_hash(table: *const u32, name: &CStr, taken: &mut impl FnMut(usize) -> bool) {
    let hash = name.to_bytes().iter().fold(0u32, |h, b| {
        let h = (h << 4).wrapping_add(u32::from(*b));
        (h ^ (h >> 24 & 0xf0)) & 0x0fff_ffff
    });
    // SAFETY: the layout of the table: two words, the buckets, the chains.
    unsafe {
        let buckets = *table as usize;
        if buckets == 0 {
            return;
        }
        let mut index = *table.add(2 + hash as usize % buckets) as usize;
        while index != 0 && !taken(index) {
            index = *table.add(2 + buckets + index) as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::is_ours;

    #[test]
    fn libraries_are_read_as_the_dynamic_loader_reads_them() {
        // SAFETY: NUL-terminated names.
        let known = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"getppid".as_ptr()) };
        let library = Object::holding(known).expect("the C library");
        assert!(!library.is_program() && !is_ours(known));
        assert_eq!(library.definition(c"getppid"), Some(known));
        assert_eq!(library.definition(c"no_such_function"), None);
        let own = Object::holding(is_ours as *const c_void).expect("this program");
        assert!(own.is_program() && is_ours(is_ours as *const c_void));
        assert_eq!(own.provider(c"getppid").map(|l| l.start()), Some(library.start()));
        assert!(own.provider(c"no_such_function").is_none());
        let mut all = 0;
        each_object(|_| {
            all += 1;
            true
        });
        assert!(all >= 3, "{all}");
    }

    #[test]
    fn references_are_found_and_left_alone_unless_wanted() {
        let own = Object::holding(is_ours as *const c_void).expect("this program");
        // A function that no sanitizer's runtime defines, and a reference to it.
        // SAFETY: it only returns a number, and the name is NUL-terminated.
        let (parent, known) =
            unsafe { (libc::getppid(), libc::dlsym(libc::RTLD_DEFAULT, c"getppid".as_ptr())) };
        assert!(parent > 0);
        let mut seen = 0;
        own.rebind(|r| {
            seen += usize::from(r.name() == c"getppid" && r.now == known && !r.defines);
            None
        });
        assert!(seen > 0);
    }
}
