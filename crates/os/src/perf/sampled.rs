//! Records of samples with registers and stack, and of what is mapped.
//!
//! ```text
//! SAMPLE     8 pid u32   12 tid u32   16 time u64   24 abi u64   32 registers u64 each, not if abi is 0
//!              then   length u64   the stack   and, if length is not 0,   how much of it is valid u64
//! MMAP2      8 pid u32   12 tid u32   16 address u64   24 length u64   32 offset u64
//!           40 length of the build id u8   44 build id   64 prot u32   68 flags u32   72 name     then who and when
//! LOST       8 id u64    16 number u64                                                            then who and when
//! FORK       8 pid u32   12 parent's pid u32   16 tid u32   20 parent's tid u32   24 time u64
//! COMM       8 pid u32   12 tid u32   16 name                                                     then who and when
//! ```
//! So it is with the options of [`super::open::samples`]. The build id has the place of a file's numbers, which are of no
//! use here.

use super::record::{COMM_EXEC, HEADER, TRAILER, Who, kind, u16_at, u32_at, u64_at, until_nul};

const MMAP2: u32 = 10;
const THROTTLE: u32 = 5;
const LOST_SAMPLES: u32 = 13;
/// Bits of `misc` that say where the CPU was, and the value for the kernel.
const MODE: u16 = 7;
const MODE_KERNEL: u16 = 1;
/// Bit of `misc`: there is a build id.
const BUILD_ID: u16 = 1 << 14;
/// Longest build id.
const LONGEST_ID: usize = 20;
/// Registers are those of a program of 64 bits.
const ABI_64: u64 = 2;
/// Registers that can be asked for.
const REGISTERS: usize = 24;

/// A record of a sampled program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The thread.
    pub who: Who,
    /// When, in nanoseconds of CLOCK_MONOTONIC.
    pub time: u64,
    /// What happened.
    pub what: What,
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The thread had a CPU.
    Sample(Box<Sample>),
    /// So many records were dropped.
    Lost(u64),
    /// The kernel left out samples, because they took it too long.
    Throttled,
    /// Code was mapped.
    Map(Box<Map>),
    /// A process began another one, or a thread.
    Fork {
        /// The new one.
        child: Who,
    },
    /// Another program is executed.
    Exec,
    /// A thread ended.
    Exit,
}

/// Where a thread was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The kernel worked for it.
    pub in_kernel: bool,
    /// Registers, by the kernel's numbers; those that were not asked for are 0.
    pub registers: [u64; REGISTERS],
    /// The stack from the stack pointer on, as much of it as was copied.
    pub stack: Vec<u8>,
    /// No more than what was asked for was copied: there is more.
    pub cut: bool,
    /// The registers are of a program of 64 bits; else there are none.
    pub is_known: bool,
}

/// Code that was mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map {
    /// Its memory, from its beginning on.
    pub address: u64,
    /// Bytes of it.
    pub length: u64,
    /// Where that is in the file.
    pub offset: u64,
    /// Of the file; empty if it is not known.
    pub build_id: Vec<u8>,
    /// The file's path, or what the kernel has in its place: `[vdso]`, `//anon`.
    pub path: Vec<u8>,
}

/// Reads the records in some bytes of a ring buffer, which begin with one. Registers are those of the mask. Returns how
/// many bytes made no sense.
pub fn read(bytes: &[u8], registers: u64, mut take: impl FnMut(Record)) -> usize {
    let mut damaged = 0;
    let mut rest = bytes;
    while !rest.is_empty() {
        let size = u16_at(rest, 6).map_or(0, usize::from);
        if size < HEADER || size > rest.len() {
            // Where the next one begins is unknown.
            return damaged + rest.len();
        }
        let (record, more) = rest.split_at(size);
        match parse(record, registers) {
            Some(Some(record)) => take(record),
            // A kind of no interest.
            Some(None) => {}
            None => damaged += size,
        }
        rest = more;
    }
    damaged
}

fn parse(record: &[u8], registers: u64) -> Option<Option<Record>> {
    let (number, misc) = (u32_at(record, 0)?, u16_at(record, 4)?);
    let end = record.len().checked_sub(TRAILER).filter(|at| *at >= HEADER)?;
    let who_at = |at: usize| Some(Who { pid: u32_at(record, at)?, tid: u32_at(record, at + 4)? });
    let (who, time) = match number {
        kind::SAMPLE => (who_at(8)?, u64_at(record, 16)?),
        kind::FORK | kind::EXIT => {
            (Who { pid: u32_at(record, 8)?, tid: u32_at(record, 16)? }, u64_at(record, 24)?)
        }
        _ => (who_at(end)?, u64_at(record, end + 8)?),
    };
    let what = match number {
        kind::SAMPLE => What::Sample(Box::new(sample(record, misc, registers)?)),
        kind::LOST => What::Lost(u64_at(record, 16)?),
        LOST_SAMPLES => What::Lost(u64_at(record, 8)?),
        THROTTLE => What::Throttled,
        MMAP2 => {
            let (who, map) = (who_at(8)?, map(record, misc, end)?);
            return Some(Some(Record { who, time, what: What::Map(Box::new(map)) }));
        }
        kind::FORK => {
            let parent = Who { pid: u32_at(record, 12)?, tid: u32_at(record, 20)? };
            return Some(Some(Record { who: parent, time, what: What::Fork { child: who } }));
        }
        kind::COMM if misc & COMM_EXEC != 0 => What::Exec,
        kind::EXIT => What::Exit,
        _ => return Some(None),
    };
    Some(Some(Record { who, time, what }))
}

fn sample(record: &[u8], misc: u16, mask: u64) -> Option<Sample> {
    let mut registers = [0; REGISTERS];
    let abi = u64_at(record, 24)?;
    let mut at = 32;
    if abi != 0 {
        for (number, register) in registers.iter_mut().enumerate() {
            if mask >> number & 1 != 0 {
                *register = u64_at(record, at)?;
                at += 8;
            }
        }
    }
    let length = usize::try_from(u64_at(record, at)?).ok()?;
    let begin = at + 8;
    let mut valid = 0;
    if length > 0 {
        let end = begin.checked_add(length)?;
        valid = usize::try_from(u64_at(record, end)?).ok().filter(|valid| *valid <= length)?;
    }
    let stack = record.get(begin..begin + valid)?.to_vec();
    let in_kernel = misc & MODE == MODE_KERNEL;
    Some(Sample { in_kernel, registers, stack, cut: valid == length, is_known: abi == ABI_64 })
}

fn map(record: &[u8], misc: u16, end: usize) -> Option<Map> {
    let mut build_id = Vec::new();
    if misc & BUILD_ID != 0 {
        let length = usize::from(*record.get(40)?).min(LONGEST_ID);
        build_id = record.get(44..44 + length)?.to_vec();
    }
    Some(Map {
        address: u64_at(record, 16)?,
        length: u64_at(record, 24)?,
        offset: u64_at(record, 32)?,
        build_id,
        path: until_nul(record.get(72..end)?).to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MASK: u64 = 1 << 7 | 1 << 8;
    const WHO: Who = Who { pid: 3, tid: 4 };

    fn record(kind: u32, misc: u16, parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        let size = u16::try_from(HEADER + body.len()).unwrap();
        [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &size.to_ne_bytes(), &body].concat()
    }

    fn small(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    fn large(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    fn trailer() -> Vec<u8> {
        [small(&[3, 4]), large(&[99])].concat()
    }

    fn sample(abi: u64, stack: &[u8], valid: u64) -> Vec<u8> {
        let registers = if abi == 0 { vec![] } else { large(&[70, 80]) };
        let length = large(&[stack.len() as u64]);
        let valid = if stack.is_empty() { vec![] } else { large(&[valid]) };
        record(kind::SAMPLE, 2, &[&trailer(), &large(&[abi]), &registers, &length, stack, &valid])
    }

    fn all(bytes: &[u8]) -> (Vec<Record>, usize) {
        let mut all = Vec::new();
        let damaged = read(bytes, MASK, |record| all.push(record));
        (all, damaged)
    }

    #[test]
    fn each_kind_is_read() {
        let map = [large(&[0x1000, 0x2000, 0x3000]), vec![3, 0, 0, 0, 7, 8, 9], vec![0; 17], small(&[5, 2])];
        let bytes = [
            sample(2, b"abcdefgh", 8),
            sample(2, b"abcdefgh", 3),
            sample(0, b"", 0),
            record(MMAP2, BUILD_ID, &[&small(&[3, 4]), &map.concat(), b"/bin/x\0\0", &trailer()]),
            record(MMAP2, 0, &[&small(&[3, 4]), &map.concat(), b"//anon\0\0", &trailer()]),
            record(kind::LOST, 0, &[&large(&[5, 7]), &trailer()]),
            record(LOST_SAMPLES, 0, &[&large(&[6]), &trailer()]),
            record(THROTTLE, 0, &[&large(&[1, 2, 3]), &trailer()]),
            record(kind::FORK, 0, &[&small(&[8, 3, 9, 4]), &large(&[99]), &trailer()]),
            record(kind::EXIT, 0, &[&small(&[3, 1, 4, 1]), &large(&[99]), &trailer()]),
            record(kind::COMM, COMM_EXEC, &[&small(&[3, 4]), b"name\0\0\0\0", &trailer()]),
            record(kind::COMM, 0, &[&small(&[3, 4]), b"name\0\0\0\0", &trailer()]),
        ];
        let (all, damaged) = all(&bytes.concat());
        assert_eq!(damaged, 0);
        assert!(all.iter().all(|r| r.who == WHO && r.time == 99), "{all:?}");
        let mut registers = [0; REGISTERS];
        (registers[7], registers[8]) = (70, 80);
        let whole =
            Sample { in_kernel: false, registers, stack: b"abcdefgh".into(), cut: true, is_known: true };
        let part = Sample { stack: b"abc".into(), cut: false, ..whole.clone() };
        let none = Sample { registers: [0; REGISTERS], stack: vec![], is_known: false, ..whole.clone() };
        let id = vec![7, 8, 9];
        let map =
            Map { address: 0x1000, length: 0x2000, offset: 0x3000, build_id: id, path: b"/bin/x".into() };
        let other = Map { build_id: vec![], path: b"//anon".into(), ..map.clone() };
        let what: Vec<What> = all.into_iter().map(|r| r.what).collect();
        let samples = [whole, part, none].map(|sample| What::Sample(Box::new(sample)));
        let maps = [map, other].map(|map| What::Map(Box::new(map)));
        let child = Who { pid: 8, tid: 9 };
        let rest =
            [What::Lost(7), What::Lost(6), What::Throttled, What::Fork { child }, What::Exit, What::Exec];
        assert_eq!(what, [&samples[..], &maps, &rest].concat());
    }

    #[test]
    fn damage_is_counted() {
        let wrong = sample(2, b"abcdefgh", 9);
        let bytes = [wrong.clone(), sample(2, b"abcdefgh", 8), vec![9, 0, 0, 0, 0, 0, 255, 255]].concat();
        let (all, damaged) = all(&bytes);
        assert_eq!((all.len(), damaged), (1, wrong.len() + 8));
    }

    proptest! {
        /// Nothing beyond the bytes is believed.
        #[test]
        fn noise_does_no_harm(
            noise in prop::collection::vec(any::<u8>(), 0..200),
            kind in 0u32..20,
            flip in any::<prop::sample::Index>(),
        ) {
            let mut bytes = [sample(2, b"abcdefgh", 8), record(kind, BUILD_ID, &[&noise])].concat();
            prop_assert!(all(&bytes).1 <= bytes.len());
            let at = flip.index(bytes.len());
            bytes[at] ^= 0x55;
            prop_assert!(all(&bytes).1 <= bytes.len());
            prop_assert!(all(&noise).1 <= noise.len());
        }
    }
}
