//! Types of the running kernel, as it describes them itself: BTF (`Documentation/bpf/btf.rst` of the kernel).
//!
//! ```text
//!  header    0 magic u16 (0xeb9f)   2 version u8   3 flags u8   4 length u32   8 types: offset, length   16 strings
//!  a type    0 name   4 number of what follows (16 bits), kind (bits 24 to 28), flag (bit 31)   8 size or another type
//!    a structure or a union: for each member   0 name   4 type   8 offset in bits, of which with the flag the upper
//!      8 are the length of a bit field
//!    a function: for each argument   0 name   4 type        an array:   0 element   4 index   8 how many
//! ```
//! Types are numbered from 1 in their order, names are offsets into the strings. Only what the programs ask for is read
//! here: where members of a few structures stand, and of what types arguments of a few tracepoints are.

use std::fs::{self, File};
use std::path::Path;

use memmap2::{Mmap, MmapOptions};

/// Where the kernel has it.
const FILE: &str = "/sys/kernel/btf/vmlinux";
const MAGIC: u16 = 0xeb9f;
/// Bytes of a type before what follows it.
const HEAD: usize = 12;
/// Of so many types the place of one is kept: of a hundred thousand few are asked for.
const STRIDE: usize = 32;
/// Types that stand for others are not followed further than this.
const DEEPEST: usize = 16;

/// Kinds of types.
mod kind {
    pub const INTEGER: u32 = 1;
    pub const POINTER: u32 = 2;
    pub const ARRAY: u32 = 3;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const TYPEDEF: u32 = 8;
    pub const VOLATILE: u32 = 9;
    pub const CONST: u32 = 10;
    pub const RESTRICT: u32 = 11;
    pub const FUNCTION: u32 = 12;
    pub const PROTOTYPE: u32 = 13;
    pub const VARIABLE: u32 = 14;
    pub const SECTION: u32 = 15;
    pub const DECLARATION_TAG: u32 = 17;
    pub const TYPE_TAG: u32 = 18;
    pub const ENUM64: u32 = 19;
}

/// What is looked for by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    /// A structure.
    Struct,
    /// Another name of a type.
    Typedef,
    /// A function that has a tag.
    Function,
    /// An enumeration.
    Enum,
}

/// The kernel's file, in memory.
#[derive(Debug)]
pub enum Bytes {
    /// Mapped (Linux 6.16).
    Mapped(Mmap),
    /// Read.
    Read(Vec<u8>),
}

impl Bytes {
    /// Returns the description of the running kernel; none if it has none.
    pub fn of_kernel() -> Option<Self> {
        let file = File::open(Path::new(FILE)).ok()?;
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        // Private, or the kernel refuses. To read it takes a system call for each page.
        // SAFETY: the file is memory of the kernel that nobody can write and that does not get shorter.
        match unsafe { MmapOptions::new().len(length).map_copy_read_only(&file) } {
            Ok(map) => Some(Bytes::Mapped(map)),
            Err(_) => fs::read(FILE).ok().map(Bytes::Read),
        }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Read(bytes) => bytes,
        }
    }
}

/// Types and their names.
#[derive(Debug)]
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Where every so many types one begins, from number 0 on, which has the place of the first.
    places: Vec<u32>,
    /// Types are numbered below this.
    end: usize,
}

/// What a type begins with.
#[derive(Debug, Clone, Copy)]
struct Head {
    kind: u32,
    /// How many members, arguments or the like follow.
    number: usize,
    flag: bool,
    /// Its size, or another type's number.
    other: u32,
}

/// A member of a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Bytes from the structure's beginning.
    pub offset: u32,
    /// Its type.
    pub of: u32,
}

impl<'a> Btf<'a> {
    /// Reads it. Returns also the numbers of the first types of these names; or none if it makes no sense, or has types of a
    /// kind that is not known.
    pub fn parse<const N: usize>(
        bytes: &'a [u8],
        wanted: [(Named, &str); N],
    ) -> Option<(Self, [Option<u32>; N])> {
        let word = |at| word(bytes, at);
        if u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?) != MAGIC {
            return None;
        }
        let body = bytes.get(word(4)? as usize..)?;
        let section = |at: u32, length: u32| body.get(at as usize..)?.get(..length as usize);
        let (types, strings) = (section(word(8)?, word(12)?)?, section(word(16)?, word(20)?)?);
        let mut btf = Btf { types, strings, places: vec![0], end: 1 };
        let names = Names::of(&wanted);
        let (mut at, mut number, mut found, mut tagged) = (0, 1, [None; N], Vec::new());
        // Each step waits for the one before it, so there is nothing in it that need not be.
        while let Some(head) = types.get(at..).and_then(<[u8]>::first_chunk::<HEAD>) {
            if number % STRIDE == 0 {
                btf.places.push(u32::try_from(at).ok()?);
            }
            let [name, info, other] = words(head);
            match info >> 24 & 0x1f {
                kind::DECLARATION_TAG => tagged.push(other),
                kind => {
                    if let Some(place) = named(kind).and_then(|of| names.place(of, name, strings)) {
                        found[place] = found[place].or(u32::try_from(number).ok());
                    }
                }
            }
            number += 1;
            at += HEAD + behind(info)?;
        }
        btf.end = number;
        btf.tagged_functions(&tagged, &names, &mut found);
        // The last one is whole.
        (at == types.len()).then_some((btf, found))
    }

    /// Notes functions that are wanted, of those that have a tag: so has each that programs may call, and to compare the names
    /// of all functions would take longer than all else.
    fn tagged_functions(&self, tagged: &[u32], names: &Names<'_>, found: &mut [Option<u32>]) {
        if !names.has(Named::Function) {
            return;
        }
        for number in tagged {
            let place = self
                .place(*number)
                .filter(|at| self.word(at + 4).is_some_and(|info| info >> 24 & 0x1f == kind::FUNCTION));
            let name = place.and_then(|at| self.word(at));
            if let Some(place) = name.and_then(|name| names.place(Named::Function, name, self.strings)) {
                found[place] = found[place].or(Some(*number));
            }
        }
    }

    /// Returns the member of a structure, or of one without a name in it.
    pub fn member(&self, structure: u32, name: &str) -> Option<Member> {
        self.member_within(structure, name, DEEPEST)
    }

    fn member_within(&self, structure: u32, name: &str, depth: usize) -> Option<Member> {
        let head = self.head(structure).filter(|head| matches!(head.kind, kind::STRUCT | kind::UNION))?;
        let mut at = self.place(structure)? + HEAD;
        for _ in 0..head.number {
            let (called, of, bits) = (self.word(at)?, self.word(at + 4)?, self.word(at + 8)?);
            at += 12;
            let (bits, field) = if head.flag { (bits & 0xff_ffff, bits >> 24) } else { (bits, 0) };
            let offset = bits / 8;
            if self.text(called)?.is_empty() {
                let within = depth.checked_sub(1).and_then(|depth| self.member_within(of, name, depth));
                if let Some(member) = within {
                    return Some(Member { offset: offset.checked_add(member.offset)?, ..member });
                }
            } else if self.text(called)? == name.as_bytes() {
                return (field == 0 && bits.is_multiple_of(8)).then_some(Member { offset, of });
            }
        }
        None
    }

    /// Returns the value of a name of an enumeration.
    pub fn enumerator(&self, of: u32, name: &str) -> Option<u32> {
        let head = self.head(of).filter(|head| head.kind == kind::ENUM)?;
        let first = self.place(of)? + HEAD;
        let named = |at: usize| self.text(self.word(at)?).filter(|text| *text == name.as_bytes());
        let at = (0..head.number).map(|n| first + 8 * n).find(|at| named(*at).is_some())?;
        self.word(at + 4)
    }

    /// Returns the types of the arguments of a function to which a type points, perhaps by another name.
    pub fn arguments(&self, pointer: u32) -> Option<Vec<u32>> {
        let function = self.pointed(pointer)?;
        let head = self.head(function).filter(|head| head.kind == kind::PROTOTYPE)?;
        let first = self.place(function)? + HEAD;
        (0..head.number).map(|n| self.word(first + 8 * n + 4)).collect()
    }

    /// Returns to what a type points; none if it is no pointer.
    pub fn pointed(&self, of: u32) -> Option<u32> {
        let head = self.head(self.meant(of)?)?;
        if head.kind != kind::POINTER {
            return None;
        }
        self.meant(head.other)
    }

    /// Returns the size in bytes of a number or of an array of numbers.
    pub fn size(&self, of: u32) -> Option<u32> {
        let of = self.meant(of)?;
        let head = self.head(of)?;
        match head.kind {
            kind::INTEGER | kind::ENUM => Some(head.other),
            kind::ARRAY => {
                let at = self.place(of)? + HEAD;
                let element = self.head(self.meant(self.word(at)?)?)?;
                let size = (element.kind == kind::INTEGER).then_some(element.other)?;
                size.checked_mul(self.word(at + 8)?)
            }
            _ => None,
        }
    }

    /// Follows other names and qualifiers of a type to what is meant.
    fn meant(&self, mut of: u32) -> Option<u32> {
        for _ in 0..DEEPEST {
            let head = self.head(of)?;
            match head.kind {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    of = head.other
                }
                _ => return Some(of),
            }
        }
        None
    }

    fn place(&self, number: u32) -> Option<usize> {
        let number = Some(number as usize).filter(|number| (1..self.end).contains(number))?;
        let mut at = *self.places.get(number / STRIDE)? as usize;
        // Before the first one there is none.
        for _ in (number / STRIDE * STRIDE).max(1)..number {
            at += HEAD + behind(self.word(at + 4)?)?;
        }
        Some(at)
    }

    fn head(&self, number: u32) -> Option<Head> {
        self.head_at(self.place(number)?)
    }

    fn head_at(&self, at: usize) -> Option<Head> {
        let (info, other) = (self.word(at + 4)?, self.word(at + 8)?);
        let number = (info & 0xffff) as usize;
        Some(Head { kind: info >> 24 & 0x1f, number, flag: info >> 31 == 1, other })
    }

    fn word(&self, at: usize) -> Option<u32> {
        word(self.types, at)
    }

    fn text(&self, at: u32) -> Option<&[u8]> {
        let text = self.strings.get(at as usize..)?;
        text.get(..text.iter().position(|byte| *byte == 0)?)
    }
}

/// Bytes behind a type's head, by its kind: so many, and so many for each that it says to follow; none if the kind is not
/// known. Nothing is behind pointers, forward declarations, other names, qualifiers, functions, floating-point numbers
/// and tags.
const BEHIND: [Option<(u8, u8)>; 32] = {
    let mut behind = [None; 32];
    let mut kind = 2;
    while kind <= 18 {
        behind[kind] = Some((0, 0));
        kind += 1;
    }
    behind[kind::INTEGER as usize] = Some((4, 0));
    behind[kind::VARIABLE as usize] = Some((4, 0));
    behind[kind::DECLARATION_TAG as usize] = Some((4, 0));
    behind[kind::ARRAY as usize] = Some((12, 0));
    behind[kind::STRUCT as usize] = Some((0, 12));
    behind[kind::UNION as usize] = Some((0, 12));
    behind[kind::SECTION as usize] = Some((0, 12));
    behind[kind::ENUM64 as usize] = Some((0, 12));
    behind[kind::ENUM as usize] = Some((0, 8));
    behind[kind::PROTOTYPE as usize] = Some((0, 8));
    behind
};

/// Returns the words of a type's head.
#[inline]
fn words(head: &[u8; HEAD]) -> [u32; 3] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *head;
    let word = u32::from_ne_bytes;
    [word([a, b, c, d]), word([e, f, g, h]), word([i, j, k, l])]
}

/// Returns how many bytes follow a head with this second word; none if its kind is not known.
#[inline]
fn behind(info: u32) -> Option<usize> {
    let (once, each) = BEHIND[(info >> 24 & 0x1f) as usize]?;
    Some(usize::from(once) + usize::from(each) * (info & 0xffff) as usize)
}

/// Returns what a type of a kind is that is found by its name while all types are walked.
#[inline]
fn named(kind: u32) -> Option<Named> {
    match kind {
        kind::STRUCT => Some(Named::Struct),
        kind::TYPEDEF => Some(Named::Typedef),
        kind::ENUM => Some(Named::Enum),
        _ => None,
    }
}

/// Names that are looked for.
struct Names<'w> {
    /// With their places among the wanted ones, sorted.
    sorted: Vec<(Named, &'w [u8], usize)>,
    /// Which first letters they have, by what they name.
    begins: [[bool; 256]; 4],
    /// Length of the longest.
    longest: usize,
}

impl<'w> Names<'w> {
    fn of(wanted: &[(Named, &'w str)]) -> Self {
        let mut names = Self { sorted: Vec::new(), begins: [[false; 256]; 4], longest: 0 };
        for (place, (of, name)) in wanted.iter().enumerate() {
            let name = name.as_bytes();
            names.sorted.push((*of, name, place));
            name.first().into_iter().for_each(|byte| names.begins[*of as usize][usize::from(*byte)] = true);
            names.longest = names.longest.max(name.len());
        }
        names.sorted.sort_unstable();
        names
    }

    fn has(&self, of: Named) -> bool {
        self.sorted.iter().any(|(named, ..)| *named == of)
    }

    /// Returns the place of the name at an offset; none if it is not wanted.
    #[inline]
    fn place(&self, of: Named, name: u32, strings: &[u8]) -> Option<usize> {
        let text = strings.get(name as usize..)?;
        if !self.begins[of as usize][usize::from(*text.first()?)] {
            return None;
        }
        self.whole(of, text)
    }

    #[cold]
    fn whole(&self, of: Named, text: &[u8]) -> Option<usize> {
        let text = &text[..text.len().min(self.longest + 1)];
        let text = &text[..text.iter().position(|byte| *byte == 0)?];
        let at = self.sorted.binary_search_by(|(named, wanted, _)| (*named, *wanted).cmp(&(of, text)));
        Some(self.sorted[at.ok()?].2)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STRINGS: &[u8] = b"\0int\0task\0pid\0comm\0trace\0state\0bits\0";

    fn head(name: u32, kind: u32, number: u32, flag: bool, other: u32) -> Vec<u32> {
        vec![name, kind << 24 | number | u32::from(flag) << 31, other]
    }

    /// ```text
    /// typedef void (*trace)(void *, const struct task *);
    /// struct task { int bits : 4; int pid; struct { char comm[16]; int state; }; };
    /// ```
    fn types() -> Vec<u8> {
        let words = [
            head(1, kind::INTEGER, 0, false, 4),
            vec![32],
            head(0, kind::INTEGER, 0, false, 1),
            vec![8],
            head(0, kind::ARRAY, 0, false, 0),
            vec![2, 1, 16],
            head(0, kind::STRUCT, 2, false, 20),
            vec![14, 3, 0, 25, 1, 128],
            head(5, kind::STRUCT, 3, true, 28),
            vec![31, 1, 4 << 24, 10, 6, 32, 0, 4, 64],
            head(0, kind::VOLATILE, 0, false, 1),
            head(0, kind::CONST, 0, false, 5),
            head(0, kind::POINTER, 0, false, 7),
            head(0, kind::POINTER, 0, false, 0),
            head(0, kind::PROTOTYPE, 2, false, 0),
            vec![0, 9, 0, 8],
            head(0, kind::POINTER, 0, false, 10),
            head(19, kind::TYPEDEF, 0, false, 11),
        ];
        words.concat().iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn whole(types: &[u8]) -> Vec<u8> {
        let length = types.len() as u32;
        let head = [24, 0, length, length, STRINGS.len() as u32].map(u32::to_ne_bytes);
        [&MAGIC.to_ne_bytes()[..], &[1, 0], head.as_flattened(), types, STRINGS].concat()
    }

    #[test]
    fn members_and_arguments_are_found() {
        let bytes = whole(&types());
        let wanted = [
            (Named::Struct, "task"),
            (Named::Typedef, "trace"),
            (Named::Struct, "trace"),
            (Named::Typedef, "tra"),
        ];
        let (btf, found) = Btf::parse(&bytes, wanted).unwrap();
        assert_eq!(found, [Some(5), Some(12), None, None]);
        assert_eq!(btf.member(5, "pid"), Some(Member { offset: 4, of: 6 }));
        assert_eq!(btf.member(5, "comm"), Some(Member { offset: 8, of: 3 }));
        assert_eq!(btf.member(5, "state"), Some(Member { offset: 24, of: 1 }));
        // A bit field, one that is not there, and a type that has none.
        assert_eq!(["bits", "int"].map(|name| btf.member(5, name)), [None, None]);
        assert_eq!(btf.member(1, "pid"), None);
        assert_eq!(btf.arguments(12), Some(vec![9, 8]));
        assert_eq!((btf.pointed(8), btf.pointed(1), btf.pointed(9)), (Some(5), None, None));
        assert_eq!([6, 3, 5].map(|of| btf.size(of)), [Some(4), Some(16), None]);
    }

    #[test]
    fn a_kind_that_is_not_known_is_refused() {
        let types: Vec<u8> = head(0, 20, 0, false, 0).iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert!(Btf::parse(&whole(&types), []).is_none());
    }

    proptest! {
        #[test]
        fn noise_is_never_believed(
            noise in prop::collection::vec(any::<u8>(), 0..60),
            flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let mut bytes = whole(&types());
            for (at, to) in flips {
                let at = at.index(bytes.len());
                bytes[at] = to;
            }
            for bytes in [whole(&noise), noise, bytes] {
                let wanted = [(Named::Struct, "task"), (Named::Typedef, "trace")];
                let Some((btf, _)) = Btf::parse(&bytes, wanted) else { continue };
                for number in 0..20 {
                    let _ = (btf.member(number, "state"), btf.arguments(number), btf.size(number));
                }
            }
        }
    }
}
