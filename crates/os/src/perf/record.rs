//! Records of a perf ring buffer.
//!
//! ```text
//! header       0 type u32   4 misc u16   6 size u16, with the header
//! SAMPLE       8 pid u32   12 tid u32   16 time u64   24 length u32   28 the tracepoint's record
//! LOST         8 id u64    16 number u64                              then who and when
//! SWITCH                                                              then who and when
//! FORK, EXIT   8 pid u32   12 parent's pid u32   16 tid u32   20 parent's tid u32   24 time u64   then …
//! COMM         8 pid u32   12 tid u32   16 name, filled up with NULs to 8 bytes     then …
//! who and when   pid u32      tid u32      time u64
//! ```
//! So it is with the options of [`super::open`]: samples have `TID | TIME | RAW`, and all other records
//! end with the first two of these (`perf_event_open(2)`, "sample_id_all").

/// What [`super::open`] asks for in samples.
pub mod kind {
    /// No record of the kernel's.
    pub const NOTHING: u32 = 0;
    /// Events were dropped because the buffer was full.
    pub const LOST: u32 = 2;
    /// A name was changed.
    pub const COMM: u32 = 3;
    /// A thread ended.
    pub const EXIT: u32 = 4;
    /// A thread began.
    pub const FORK: u32 = 7;
    /// A tracepoint was passed.
    pub const SAMPLE: u32 = 9;
    /// A thread left its CPU or came to one.
    pub const SWITCH: u32 = 14;
}

/// Bit of `misc`: the thread leaves its CPU.
const SWITCH_OUT: u16 = 1 << 13;
/// Bit of `misc`: and would run on.
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Bit of `misc`: the name is that of a new program.
pub(super) const COMM_EXEC: u16 = 1 << 13;

/// Bytes of a header.
pub(super) const HEADER: usize = 8;
/// Bytes of who and when.
pub(super) const TRAILER: usize = 16;

/// A process and a thread of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Who {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

/// A record with its time, in nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The thread that ran.
    pub who: Who,
    /// When.
    pub time: u64,
    /// What happened.
    pub what: What<'a>,
}

/// What a record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
    /// A tracepoint was passed; this is its record.
    Sample(&'a [u8]),
    /// So many events were dropped.
    Lost(u64),
    /// The thread came to this CPU.
    In,
    /// The thread left this CPU; `preempted`: although it would have run on.
    Out {
        /// See there.
        preempted: bool,
    },
    /// The thread began another.
    Fork {
        /// The new one.
        child: Who,
    },
    /// The thread ended.
    Exit,
    /// The thread has another name.
    Comm {
        /// The name.
        name: &'a [u8],
        /// Whether by a new program.
        exec: bool,
    },
}

/// The records in some bytes of a ring buffer.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
    /// Where the last record returned begins, and where the next one does.
    place: std::ops::Range<usize>,
    damaged: usize,
}

impl<'a> Records<'a> {
    /// Reads these bytes, which begin with a record.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, place: 0..0, damaged: 0 }
    }

    /// Returns where the record is that was returned last.
    pub fn place(&self) -> std::ops::Range<usize> {
        self.place.clone()
    }

    /// Returns how many bytes made no sense, so far.
    pub fn damaged(&self) -> usize {
        self.damaged
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            let rest = self.bytes.get(self.place.end..).filter(|rest| !rest.is_empty())?;
            let size = u16_at(rest, 6).map_or(0, usize::from);
            if size < HEADER || size > rest.len() {
                // Where the next one begins is unknown.
                self.damaged += rest.len();
                self.place.end = self.bytes.len();
                return None;
            }
            self.place = self.place.end..self.place.end + size;
            match parse(&rest[..size]) {
                Some(Some(record)) => return Some(record),
                // A kind that nobody asked for.
                Some(None) => {}
                None => self.damaged += size,
            }
        }
    }
}

/// Returns whether one of the records in these bytes says that some were lost.
pub fn says_lost(bytes: &[u8]) -> bool {
    places(bytes).any(|at| u32_at(bytes, at) == Some(kind::LOST))
}

/// Makes such records say nothing.
pub fn unsay_lost(bytes: &mut [u8]) {
    let lost: Vec<usize> = places(bytes).filter(|at| u32_at(bytes, *at) == Some(kind::LOST)).collect();
    for at in lost {
        bytes[at..at + size_of::<u32>()].copy_from_slice(&kind::NOTHING.to_ne_bytes());
    }
}

/// Where whole records begin.
fn places(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut next = 0usize;
    std::iter::from_fn(move || {
        let size = usize::from(u16_at(bytes, next.checked_add(6)?)?);
        let at = next;
        next += size;
        (size >= HEADER && next <= bytes.len()).then_some(at)
    })
}

/// Reads one whole record. Returns none if it is too short for its kind; and no record if the kind
/// is unknown.
fn parse(record: &[u8]) -> Option<Option<Record<'_>>> {
    let (kind, misc) = (u32_at(record, 0)?, u16_at(record, 4)?);
    let body = record.len().checked_sub(TRAILER);
    let trailer = || {
        let at = body.filter(|at| *at >= HEADER)?;
        Some((Who { pid: u32_at(record, at)?, tid: u32_at(record, at + 4)? }, u64_at(record, at + 8)?))
    };
    let (what, (who, time)) = match kind {
        kind::SAMPLE => {
            let who = Who { pid: u32_at(record, 8)?, tid: u32_at(record, 12)? };
            let length = u32_at(record, 24)? as usize;
            let raw = record.get(28..28usize.checked_add(length)?)?;
            (What::Sample(raw), (who, u64_at(record, 16)?))
        }
        kind::LOST => (What::Lost(u64_at(record, 16)?), trailer()?),
        kind::SWITCH if misc & SWITCH_OUT == 0 => (What::In, trailer()?),
        kind::SWITCH => (What::Out { preempted: misc & SWITCH_OUT_PREEMPT != 0 }, trailer()?),
        kind::FORK => {
            let child = Who { pid: u32_at(record, 8)?, tid: u32_at(record, 16)? };
            let parent = Who { pid: u32_at(record, 12)?, tid: u32_at(record, 20)? };
            (What::Fork { child }, (parent, u64_at(record, 24)?))
        }
        kind::EXIT => {
            let who = Who { pid: u32_at(record, 8)?, tid: u32_at(record, 16)? };
            (What::Exit, (who, u64_at(record, 24)?))
        }
        kind::COMM => {
            let name = record.get(16..body?)?;
            (What::Comm { name: until_nul(name), exec: misc & COMM_EXEC != 0 }, trailer()?)
        }
        _ => return Some(None),
    };
    Some(Some(Record { who, time, what }))
}

/// Returns the bytes before the first NUL.
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a record with its header.
    fn record(kind: u32, misc: u16, parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        let size = u16::try_from(HEADER + body.len()).unwrap();
        [&kind.to_ne_bytes()[..], &misc.to_ne_bytes(), &size.to_ne_bytes(), &body].concat()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    fn trailer() -> Vec<u8> {
        [words(&[3, 4]), 99u64.to_ne_bytes().into()].concat()
    }

    fn sample(raw: &[u8]) -> Vec<u8> {
        let length = (raw.len() as u32).to_ne_bytes();
        record(kind::SAMPLE, 2, &[&trailer(), &length, raw])
    }

    const WHO: Who = Who { pid: 3, tid: 4 };

    #[test]
    fn each_kind_is_read() {
        let twice = [5u64.to_ne_bytes(), 7u64.to_ne_bytes()].concat();
        let bytes = [
            sample(b"abcd"),
            record(kind::LOST, 0, &[&twice, &trailer()]),
            record(1, 0, &[b"of no interest.."]),
            record(kind::SWITCH, 0, &[&trailer()]),
            record(kind::SWITCH, SWITCH_OUT, &[&trailer()]),
            record(kind::SWITCH, SWITCH_OUT | SWITCH_OUT_PREEMPT, &[&trailer()]),
            record(kind::FORK, 0, &[&words(&[8, 3, 9, 4]), &99u64.to_ne_bytes(), &trailer()]),
            record(kind::EXIT, 0, &[&words(&[3, 1, 4, 1]), &99u64.to_ne_bytes(), &trailer()]),
            record(kind::COMM, COMM_EXEC, &[&words(&[3, 4]), b"name\0\0\0\0", &trailer()]),
        ]
        .concat();
        let mut records = Records::new(&bytes);
        let all: Vec<_> = records.by_ref().collect();
        assert!(all.iter().all(|r| r.who == WHO && r.time == 99), "{all:?}");
        let what: Vec<_> = all.iter().map(|r| r.what).collect();
        let expected = [
            What::Sample(b"abcd"),
            What::Lost(7),
            What::In,
            What::Out { preempted: false },
            What::Out { preempted: true },
            What::Fork { child: Who { pid: 8, tid: 9 } },
            What::Exit,
            What::Comm { name: b"name", exec: true },
        ];
        assert_eq!(what, expected);
        assert_eq!(records.damaged(), 0);
    }

    #[test]
    fn what_says_that_some_were_lost_can_be_unsaid() {
        let twice = [5u64.to_ne_bytes(), 7u64.to_ne_bytes()].concat();
        let mut bytes =
            [sample(b"abcd"), record(kind::LOST, 0, &[&twice, &trailer()]), sample(b"efgh")].concat();
        assert!(says_lost(&bytes));
        unsay_lost(&mut bytes);
        assert!(!says_lost(&bytes) && !says_lost(&bytes[..bytes.len() - 1]));
        let mut records = Records::new(&bytes);
        let what: Vec<_> = records.by_ref().map(|r| r.what).collect();
        assert_eq!((what, records.damaged()), (vec![What::Sample(b"abcd"), What::Sample(b"efgh")], 0));
        // A length of nothing, and one beyond the end.
        assert!(!says_lost(&[2, 0, 0, 0, 0, 0, 0, 0]) && !says_lost(&[2, 0, 0, 0, 0, 0, 9, 0]));
    }

    #[test]
    fn damage_is_counted() {
        // A length beyond the end of its record, and a header beyond the end of all.
        let mut wrong = sample(b"abcdefgh");
        wrong[24] = 200;
        let bytes = [wrong.clone(), sample(b"abcd"), vec![9, 0, 0, 0, 0, 0, 255, 255]].concat();
        let mut records = Records::new(&bytes);
        assert_eq!(records.by_ref().map(|r| r.what).collect::<Vec<_>>(), [What::Sample(b"abcd")]);
        assert_eq!(records.damaged(), wrong.len() + 8);
    }

    proptest! {
        /// Noise between records, and none at all that is a record.
        #[test]
        fn noise_is_never_believed_beyond_its_bytes(
            noise in prop::collection::vec(any::<u8>(), 0..200),
            kind in 0u32..20,
            flip in any::<prop::sample::Index>(),
        ) {
            let mut bytes = [sample(b"abcdefgh"), record(kind, 0, &[&noise])].concat();
            let read = |bytes: &[u8]| {
                let mut records = Records::new(bytes);
                let read: usize = records.by_ref().map(|r| match r.what {
                    What::Sample(raw) => raw.len(),
                    What::Comm { name, .. } => name.len(),
                    _ => 1,
                }).sum();
                (read, records.damaged())
            };
            let (len, damaged) = read(&bytes);
            prop_assert!((8..=bytes.len()).contains(&len) && damaged <= bytes.len());
            let at = flip.index(bytes.len());
            bytes[at] ^= 0x55;
            let (len, damaged) = read(&bytes);
            prop_assert!(len <= bytes.len() && damaged <= bytes.len());
            prop_assert!(read(&noise).0 <= noise.len());
        }
    }
}
