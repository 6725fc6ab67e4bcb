//! A request of a block device as its tracepoints report it: made of the request's words.

use super::btf::Btf;
use super::words::HEAD;

/// Places of a request's words, and of what is behind them.
const MAJOR: usize = HEAD;
const MINOR: usize = HEAD + 1;
const SECTOR: usize = HEAD + 2;
const BYTES: usize = HEAD + 3;
const FLAGS: usize = HEAD + 5;
const STATUS: usize = HEAD + 6;

/// Bits of flags that say what is to be done (`REQ_OP_MASK`).
const OPERATION: u32 = 0xff;
/// A sector that is none.
const NOWHERE: u64 = u64::MAX;

/// Letters of what is to be done, by the names of `enum req_op`; and from which length of `rwbs` on the kernel has them.
const OPERATIONS: [(&str, &str, usize); 12] = [
    ("REQ_OP_WRITE", "W", 0),
    ("REQ_OP_DISCARD", "D", 0),
    ("REQ_OP_SECURE_ERASE", "DE", 0),
    ("REQ_OP_FLUSH", "F", 0),
    ("REQ_OP_READ", "R", 0),
    ("REQ_OP_ZONE_APPEND", "ZA", 10),
    ("REQ_OP_ZONE_RESET", "ZR", 10),
    ("REQ_OP_ZONE_RESET_ALL", "ZRA", 10),
    ("REQ_OP_ZONE_FINISH", "ZF", 10),
    ("REQ_OP_ZONE_OPEN", "ZO", 10),
    ("REQ_OP_ZONE_CLOSE", "ZC", 10),
    ("REQ_OP_DRV_IN", "N", 0),
];
/// Letters of flags, by the names of `enum req_flag_bits`, in their order; likewise. The first is before what is to be done.
const FLAGS_OF: [(&str, &str, usize); 6] = [
    ("__REQ_PREFLUSH", "F", 0),
    ("__REQ_FUA", "F", 0),
    ("__REQ_RAHEAD", "A", 0),
    ("__REQ_SYNC", "S", 0),
    ("__REQ_META", "M", 0),
    ("__REQ_ATOMIC", "U", 9),
];
/// Errors that statuses stand for, by their number (`blk_status_to_errno`); all others are `EIO`.
const ERRORS: [i32; 20] = [
    0,
    libc::EOPNOTSUPP,
    libc::ETIMEDOUT,
    libc::ENOSPC,
    libc::ENOLINK,
    libc::EREMOTEIO,
    libc::EBADE,
    libc::ENODATA,
    libc::EILSEQ,
    libc::ENOMEM,
    libc::EIO,
    libc::EREMCHG,
    libc::EAGAIN,
    libc::EBUSY,
    libc::ETOOMANYREFS,
    libc::EOVERFLOW,
    libc::ENODEV,
    libc::ETIME,
    libc::EIO,
    libc::EINVAL,
];

/// The running kernel's numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Of [`OPERATIONS`].
    operations: [Option<u32>; OPERATIONS.len()],
    /// Of [`FLAGS_OF`].
    flags: [Option<u32>; FLAGS_OF.len()],
}

/// A field of a request's tracepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The device.
    Device,
    /// Where it begins; 0 of a request for the driver alone.
    Sector,
    /// Where it begins, as it is.
    Position,
    /// How many sectors; 0 of a request for the driver alone.
    Sectors,
    /// How many sectors were completed.
    Completed,
    /// How it ended.
    Error,
}

impl Numbers {
    /// Returns the numbers of two enumerations' names; none if one of them has not even names that all kernels have.
    pub fn of(btf: &Btf<'_>, operations: u32, flags: u32) -> Option<Self> {
        let operations = OPERATIONS.map(|(name, ..)| btf.enumerator(operations, name));
        let flags = FLAGS_OF.map(|(name, ..)| btf.enumerator(flags, name));
        let is_there = |numbers: &[Option<u32>], names: &[(&str, &str, usize)]| {
            numbers.iter().zip(names).all(|(number, (.., since))| number.is_some() || *since > 0)
        };
        let known = is_there(&operations, &OPERATIONS) && is_there(&flags, &FLAGS_OF);
        known.then_some(Self { operations, flags })
    }

    /// Returns the letters of a request in a field of this length.
    pub fn letters(&self, words: &[u64], length: usize) -> Vec<u8> {
        let flags = words[FLAGS] as u32;
        let operation =
            self.operations.iter().zip(OPERATIONS).find(|(number, _)| **number == Some(flags & OPERATION));
        let letters = operation.filter(|(_, (.., since))| *since <= length).map_or("N", |(_, (_, l, _))| l);
        let mut set = self.flags.iter().zip(FLAGS_OF).map(|(bit, (_, letter, since))| {
            let set = bit.is_some_and(|bit| flags >> bit.min(31) & 1 == 1) && since <= length;
            if set { letter } else { "" }
        });
        let first = set.next().unwrap_or_default();
        [first, letters].into_iter().chain(set).flat_map(str::bytes).take(length.saturating_sub(1)).collect()
    }

    /// Returns a field that is a number.
    pub fn number(&self, part: Part, words: &[u64]) -> u64 {
        let operation = words[FLAGS] as u32 & OPERATION;
        // The driver's own have two numbers, one behind the other.
        let passed =
            self.operations.last().copied().flatten().is_some_and(|first| operation.wrapping_sub(first) < 2);
        match part {
            // As in the kernel: 20 bits for the minor number.
            Part::Device => (words[MAJOR] << 20 | words[MINOR]) & u64::from(u32::MAX),
            Part::Sector if passed || words[SECTOR] == NOWHERE => 0,
            Part::Sector | Part::Position => words[SECTOR],
            Part::Sectors if passed => 0,
            Part::Sectors => (words[BYTES] as u32 >> 9).into(),
            Part::Completed => (words[BYTES] as u32 >> 9).into(),
            Part::Error => {
                let status = usize::from(words[STATUS] as u8);
                let error = ERRORS.get(status).copied().unwrap_or(libc::EIO);
                u64::from((-error).cast_unsigned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Numbers {
        let operations = [1, 3, 5, 2, 0, 7, 15, 17, 13, 11, 12, 34].map(Some);
        Numbers { operations, flags: [18, 17, 19, 11, 12, 27].map(Some) }
    }

    fn request(flags: u32) -> [u64; 10] {
        [0, 0, 0, 8, 17, 4096, 1536, 0, flags.into(), 0]
    }

    #[test]
    fn letters_are_the_kernels() {
        let numbers = numbers();
        for (flags, length, expected) in [
            (0, 8, "R"),
            (1 | 1 << 11 | 1 << 12, 8, "WSM"),
            (1 | 1 << 18 | 1 << 17 | 1 << 11, 8, "FWFS"),
            (2 | 1 << 18, 8, "FF"),
            (5, 8, "DE"),
            (34, 10, "N"),
            (35, 10, "N"),
            (17, 10, "ZRA"),
            // Kernels with a shorter field do not have them.
            (17, 9, "N"),
            (1 | 1 << 27, 9, "WU"),
            (1 | 1 << 27, 8, "W"),
        ] {
            let letters = numbers.letters(&request(flags), length);
            assert_eq!(String::from_utf8(letters).unwrap(), expected, "{flags:#x} {length}");
        }
    }

    #[test]
    fn a_request_for_the_driver_alone_is_nowhere() {
        let (numbers, mut words) = (numbers(), request(1));
        let all = |words: &[u64; 10]| {
            [Part::Device, Part::Sector, Part::Sectors, Part::Position, Part::Completed]
                .map(|part| numbers.number(part, words))
        };
        assert_eq!(all(&words), [8 << 20 | 17, 4096, 3, 4096, 3]);
        words[FLAGS] = 35;
        assert_eq!(all(&words), [8 << 20 | 17, 0, 0, 4096, 3]);
        words[STATUS] = 9;
        assert_eq!(numbers.number(Part::Error, &words) as i32, -libc::ENOMEM);
        words[STATUS] = 200;
        assert_eq!(numbers.number(Part::Error, &words) as i32, -libc::EIO);
    }
}
