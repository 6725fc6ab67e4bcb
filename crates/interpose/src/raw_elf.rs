//! A library's tables as they lie in memory, read without calling anything.
//!
//! [`crate::elf::Object`] is the comfortable way; this one serves before the C library
//! may be called ([`crate::direct`]), and knows versions of symbols and functions
//! that are chosen for the processor.
//!
//! ```text
//!  reference ──► symbol ──► name                      definition ──► name
//!     │            └─► DT_VERSYM ─► DT_VERNEED hash ═══ DT_VERDEF hash ◄─┘
//!     └─► place in the table of addresses
//! ```

use std::ffi::c_void;

/// An entry of a library's dynamic section.
#[repr(C)]
pub(crate) struct Dynamic {
    pub(super) tag: i64,
    pub(super) value: usize,
}

/// An entry of a symbol table.
#[repr(C)]
pub(super) struct Symbol {
    pub(super) name: u32,
    pub(super) info: u8,
    pub(super) other: u8,
    pub(super) section: u16,
    pub(super) value: usize,
    pub(super) size: u64,
}

/// A relocation.
#[repr(C)]
pub(super) struct Relocation {
    pub(super) offset: usize,
    pub(super) info: u64,
    pub(super) addend: i64,
}

/// A version that a library needs of another; its names follow.
#[repr(C)]
struct Need {
    version: u16,
    count: u16,
    file: u32,
    first: u32,
    next: u32,
}

/// Such a name.
#[repr(C)]
struct NeedName {
    hash: u32,
    flags: u16,
    number: u16,
    name: u32,
    next: u32,
}

/// A version that a library defines.
#[repr(C)]
struct Version {
    version: u16,
    flags: u16,
    number: u16,
    count: u16,
    hash: u32,
    first: u32,
    next: u32,
}

pub(super) const DT_PLTRELSZ: i64 = 2;
pub(super) const DT_HASH: i64 = 4;
pub(super) const DT_STRTAB: i64 = 5;
pub(super) const DT_SYMTAB: i64 = 6;
pub(super) const DT_RELA: i64 = 7;
pub(super) const DT_RELASZ: i64 = 8;
pub(super) const DT_SONAME: i64 = 14;
pub(super) const DT_JMPREL: i64 = 23;
pub(super) const DT_GNU_HASH: i64 = 0x6fff_fef5;
/// How many relocations at the beginning of `DT_RELA` name no symbol.
pub(super) const DT_RELACOUNT: i64 = 0x6fff_fff9;
pub(super) const DT_VERSYM: i64 = 0x6fff_fff0;
const DT_VERDEF: i64 = 0x6fff_fffc;
const DT_VERNEED: i64 = 0x6fff_fffe;
const STT_FUNC: u8 = 2;
pub(super) const STT_IFUNC: u8 = 10;
/// A version that new programs are not linked to.
pub(super) const HIDDEN_VERSION: u16 = 0x8000;

/// Relocations that put the address of a function somewhere: directly, into
/// the table of addresses, into the table of jumps.
#[cfg(target_arch = "x86_64")]
pub(super) const ADDRESS_KINDS: [u32; 3] = [1, 6, 7];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const ADDRESS_KINDS: [u32; 3] = [257, 1025, 1026];

/// A table of relocations: where it begins, and how many bytes it has.
type Relocations = (*const Relocation, usize);

/// Where a library's tables are.
pub(crate) struct Tables {
    base: usize,
    symbols: *const Symbol,
    texts: *const u8,
    hash: *const u32,
    versions: *const u16,
    needs: *const Need,
    defines: *const Version,
    relocations: Relocations,
    nameless: usize,
    jumps: Relocations,
    soname: usize,
}

/// A place that holds the address of a function of another library.
pub(crate) struct Reference {
    /// The function; NUL-terminated.
    pub(crate) name: *const u8,
    /// The number of its symbol.
    pub(crate) symbol: usize,
    /// The place.
    pub(crate) place: *mut *mut c_void,
}

impl Tables {
    /// Finds them. `None` if the library has no symbols that can be looked up.
    pub(crate) fn of(base: usize, dynamic: *const Dynamic) -> Option<Tables> {
        let mut tables = Tables {
            base,
            symbols: std::ptr::null(),
            texts: std::ptr::null(),
            hash: std::ptr::null(),
            versions: std::ptr::null(),
            needs: std::ptr::null(),
            defines: std::ptr::null(),
            relocations: (std::ptr::null(), 0),
            nameless: 0,
            jumps: (std::ptr::null(), 0),
            soname: 0,
        };
        if dynamic.is_null() {
            return None;
        }
        let mut at = dynamic;
        loop {
            // SAFETY: the section of a loaded library, which ends with a 0.
            let entry = unsafe { &*at };
            // The dynamic loader has moved most addresses.
            let value = entry.value;
            let moved = if value < base { base.wrapping_add(value) } else { value };
            match entry.tag {
                0 => break,
                DT_SYMTAB => tables.symbols = moved as *const Symbol,
                DT_STRTAB => tables.texts = moved as *const u8,
                DT_GNU_HASH => tables.hash = moved as *const u32,
                DT_VERSYM => tables.versions = moved as *const u16,
                DT_VERNEED => tables.needs = moved as *const Need,
                DT_VERDEF => tables.defines = moved as *const Version,
                DT_RELA => tables.relocations.0 = moved as *const Relocation,
                DT_RELASZ => tables.relocations.1 = value,
                DT_RELACOUNT => tables.nameless = value,
                DT_JMPREL => tables.jumps.0 = moved as *const Relocation,
                DT_PLTRELSZ => tables.jumps.1 = value,
                DT_SONAME => tables.soname = value,
                _ => {}
            }
            at = at.wrapping_add(1);
        }
        (!tables.symbols.is_null() && !tables.texts.is_null()).then_some(tables)
    }

    /// Where the library begins.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// The name under which others need it.
    pub(crate) fn soname(&self) -> Option<*const u8> {
        (self.soname != 0).then(|| self.texts.wrapping_add(self.soname))
    }

    /// Where the library ends, by the headers at its beginning; its beginning, if they are not there: they are not in a
    /// library that was linked for another place than 0.
    pub(crate) fn end(&self) -> usize {
        const NEAR: usize = 1 << 20;
        if (self.symbols as usize).wrapping_sub(self.base) > NEAR {
            return self.base;
        }
        // SAFETY: the symbols lie behind the base, so near that they are in the first segment, which begins with the
        // header and is mapped as a whole.
        let header = unsafe { &*(self.base as *const libc::Elf64_Ehdr) };
        let (mut end, first) = (self.base, self.base.wrapping_add(header.e_phoff as usize));
        for i in 0..usize::from(header.e_phnum) {
            // SAFETY: the header says how many there are; they are mapped beside it.
            let segment = unsafe { &*(first as *const libc::Elf64_Phdr).add(i) };
            if segment.p_type == libc::PT_LOAD {
                end = end.max(self.base.wrapping_add((segment.p_vaddr + segment.p_memsz) as usize));
            }
        }
        end
    }

    /// Shows all places that hold the address of a function of another library.
    pub(crate) fn each_reference(&self, mut work: impl FnMut(Reference)) {
        for ((first, bytes), nameless) in [(self.relocations, self.nameless), (self.jumps, 0)] {
            if first.is_null() {
                continue;
            }
            for i in nameless..bytes / size_of::<Relocation>() {
                // SAFETY: the table has that many bytes.
                let relocation = unsafe { &*first.add(i) };
                let (number, kind) = ((relocation.info >> 32) as usize, relocation.info as u32);
                if number == 0 || relocation.addend != 0 || !is_address(kind) {
                    continue;
                }
                // SAFETY: the symbol that the relocation names.
                let symbol = unsafe { &*self.symbols.add(number) };
                let place = self.base.wrapping_add(relocation.offset) as *mut *mut c_void;
                if symbol.section == 0 && place.is_aligned() {
                    let name = self.texts.wrapping_add(symbol.name as usize);
                    work(Reference { name, symbol: number, place });
                }
            }
        }
    }

    /// The hash of the version with which a symbol was linked, if it has one.
    pub(crate) fn version_needed(&self, symbol: usize) -> Option<u32> {
        if self.versions.is_null() || self.needs.is_null() {
            return None;
        }
        // SAFETY: there is a number for every symbol.
        let wanted = unsafe { *self.versions.add(symbol) } & !HIDDEN_VERSION;
        let mut need = self.needs;
        loop {
            // SAFETY: an entry of the library's own list, each of which says where
            // its names and the next one are.
            let Need { count, first, next, .. } = unsafe { need.read() };
            let mut name = need.wrapping_byte_add(first as usize).cast::<NeedName>();
            for _ in 0..count {
                // SAFETY: one of the `count` names of this entry; each says where the next one is.
                let NeedName { hash, number, next, .. } = unsafe { name.read() };
                if number & !HIDDEN_VERSION == wanted {
                    return Some(hash);
                }
                name = name.wrapping_byte_add(next as usize);
            }
            if next == 0 {
                return None;
            }
            need = need.wrapping_byte_add(next as usize);
        }
    }

    /// The hash of the version that the library gives a number.
    fn version_defined(&self, number: u16) -> Option<u32> {
        let mut at = self.defines;
        while !at.is_null() {
            // SAFETY: an entry of the library's own list.
            let version = unsafe { &*at };
            if version.number == number {
                return Some(version.hash);
            }
            if version.next == 0 {
                break;
            }
            at = at.wrapping_byte_add(version.next as usize);
        }
        None
    }

    /// The library's own definition of a function, in the version with this hash
    /// or in that which new programs are linked to.
    pub(crate) fn definition(&self, name: &[u8], version: Option<u32>) -> Option<*mut c_void> {
        let mut hash = 5381u32;
        for byte in name {
            hash = hash.wrapping_mul(33).wrapping_add(u32::from(*byte));
        }
        if self.hash.is_null() {
            return None;
        }
        // SAFETY: the layout of the table: four words, a filter of `words` 64-bit
        // words, `buckets` words, and chains whose last entry is odd.
        unsafe {
            let table = self.hash;
            let (buckets, first, words) = (*table as usize, *table.add(1) as usize, *table.add(2) as usize);
            if buckets == 0 {
                return None;
            }
            let bucket = table.add(4 + 2 * words);
            let mut index = *bucket.add(hash as usize % buckets) as usize;
            while index >= first {
                let there = *bucket.add(buckets + index - first);
                if there | 1 == hash | 1
                    && let Some(address) = self.candidate(index, name, version)
                {
                    return Some(address);
                }
                if there & 1 != 0 {
                    break;
                }
                index += 1;
            }
        }
        None
    }

    /// A symbol, if it is the function.
    fn candidate(&self, index: usize, name: &[u8], version: Option<u32>) -> Option<*mut c_void> {
        // SAFETY: an index from the library's own hash table.
        let symbol = unsafe { &*self.symbols.add(index) };
        let kind = symbol.info & 15;
        if symbol.section == 0 || symbol.value == 0 || !(kind == STT_FUNC || kind == STT_IFUNC) {
            return None;
        }
        if !equals(self.texts.wrapping_add(symbol.name as usize), name) {
            return None;
        }
        if !self.versions.is_null() {
            // SAFETY: there is a number for every symbol.
            let number = unsafe { *self.versions.add(index) };
            let suits = match version {
                Some(hash) => self.version_defined(number & !HIDDEN_VERSION) == Some(hash),
                None => number & HIDDEN_VERSION == 0,
            };
            if !suits {
                return None;
            }
        }
        let address = self.base.wrapping_add(symbol.value) as *mut c_void;
        if kind == STT_IFUNC { chosen(address) } else { Some(address) }
    }
}

fn is_address(kind: u32) -> bool {
    let [a, b, c] = ADDRESS_KINDS;
    kind == a || kind == b || kind == c
}

/// What a function that chooses for the processor chooses.
#[cfg(target_arch = "x86_64")]
fn chosen(resolver: *mut c_void) -> Option<*mut c_void> {
    type Resolver = unsafe extern "C" fn() -> *mut c_void;
    // SAFETY: the resolver of a library that is relocated: it takes nothing here,
    // and the dynamic loader calls it in the same way whenever it is asked.
    let address = unsafe { std::mem::transmute::<*mut c_void, Resolver>(resolver)() };
    (!address.is_null()).then_some(address)
}

/// Elsewhere resolvers take arguments that only the dynamic loader has.
#[cfg(not(target_arch = "x86_64"))]
fn chosen(_: *mut c_void) -> Option<*mut c_void> {
    None
}

/// The bytes of a text.
///
/// # Safety
/// NUL-terminated, and there as long as the bytes are used.
pub(crate) unsafe fn bytes<'a>(text: *const u8) -> &'a [u8] {
    let mut length = 0;
    // Volatile: the compiler would make it a call of `strlen`.
    // SAFETY: no 0 has been read yet, so the text goes on to here.
    while unsafe { text.add(length).read_volatile() } != 0 {
        length += 1;
    }
    // SAFETY: that many bytes were read.
    unsafe { std::slice::from_raw_parts(text, length) }
}

/// Whether a NUL-terminated text of a library's table is this one.
pub(crate) fn equals(text: *const u8, name: &[u8]) -> bool {
    // SAFETY: the caller's table has a NUL behind each text.
    same(unsafe { bytes(text) }, name)
}

/// Whether two texts are the same, without `memcmp`.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let (mut i, mut equal) = (0, true);
    while i < a.len() {
        // SAFETY: both have that many bytes.
        equal &= unsafe { a.as_ptr().add(i).read_volatile() == b.as_ptr().add(i).read_volatile() };
        i += 1;
    }
    equal
}
