//! `hetrace run --inside`: how programs hand code to the launcher's helper, and what comes back.
//!
//! ```text
//!  inside/NAME.ask      the image, put there whole (by rename); NAME is `HASH-FIRST-DEVICE`, or that and `-linked`
//!  inside/NAME.answer   [`Answer`], then the new image and a 0; or why it stays as it was
//!  inside/PID-N.pool    what kernels recorded, N from 0 for each context
//!  inside/PID-N.late    launches that came when there was no room any more: a line for each kernel, how many and its name
//! ```
//! The same image is asked for once, whichever process needs it. Whoever asks waits for so long ([`patience_ms`]) and then
//! goes on with what it had.

/// The folder in the session's folder.
pub const FOLDER: &str = "inside";
/// Ends the names of images.
pub const ASK: &str = ".ask";
/// Ends the names of images that are linked with others.
pub const LINKED: &str = "-linked";
/// Ends the names of answers.
pub const ANSWER: &str = ".answer";
/// Ends the names of pools.
pub const POOL: &str = ".pool";
/// Ends the names of lists of launches that came too late.
pub const LATE: &str = ".late";
/// Behind a name while its file is being written.
pub const PART: &str = ".part";
/// First bytes of an answer.
pub const ANSWER_MAGIC: u64 = u64::from_le_bytes(*b"HTRINSID");
/// Choices of kernels that a session has room for.
pub const CHOICES: usize = 2;
/// Kernels that an image has at most; their numbers begin at a multiple of it.
pub const KERNELS: u32 = 1 << 12;
/// Numbers of images, each of which has [`KERNELS`].
pub const IMAGES: u32 = 1 << 18;
/// Behind the name of a kernel is that of its twin, which records.
pub const TWIN: &str = "__hetrace_inside";
/// Bytes of a chunk, and of a pool's header.
pub const CHUNK: u64 = 4096;

/// Chunks that a pool has at most: their numbers have to fit into what lanes keep.
pub const CHUNKS: u64 = (1 << 23) - 1;
/// Counters of chunks that were asked for, in a pool's header, and where they are, 64 bytes apart: of large ones of
/// [`CHUNK`] bytes, and of small ones, of which a large one's place has 16.
const COUNTERS: u64 = 32;
const ASKED: usize = 2048;
const ASKED_SMALL: usize = ASKED + 16;
const SMALL: u64 = 16;
/// What counters of small chunks begin with.
const TICKET: u32 = 0x8000_0000;
/// Sums of lost records by kernel: where they are up to [`ASKED`], 16 bytes each, of which the last 8 are the sum.
const LOSSES: usize = 64;
/// Where a pool's header says that there was no room any more.
pub const FULL: usize = 24;

/// Where a pool's header has the address of memory of the host, to which that is written, too; 0: to none.
pub const HOST_FULL: usize = 32;

fn word(header: &[u8], at: usize) -> u32 {
    header.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

/// The header of a pool with so many places of chunks, of which none was asked for.
pub fn header(chunks: u64) -> [u8; CHUNK as usize] {
    let mut header = [0; CHUNK as usize];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(to) = header.get_mut(at..at + bytes.len()) {
            to.copy_from_slice(bytes);
        }
    };
    put(8, &chunks.to_le_bytes());
    (0..COUNTERS as usize).for_each(|counter| put(ASKED_SMALL + 64 * counter, &TICKET.to_le_bytes()));
    header
}

/// How many chunks of both sizes each counter of a pool's header was asked for.
fn asked_of(header: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    (0..COUNTERS as usize).map(|counter| {
        let (large, small) = (word(header, ASKED + 64 * counter), word(header, ASKED_SMALL + 64 * counter));
        (large.into(), small.saturating_sub(TICKET).into())
    })
}

/// Whether there was no room any more, according to a pool's header of [`CHUNK`] bytes.
pub fn is_full(header: &[u8]) -> bool {
    word(header, FULL) != 0
}

/// How many records found no room, according to a pool's header of [`CHUNK`] bytes.
pub fn lost(header: &[u8]) -> u64 {
    let word = |at: usize| {
        header.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
    };
    let of_any = (0..COUNTERS as usize).map(|counter| word(ASKED + 8 + 64 * counter));
    let by_kernel = (LOSSES..ASKED).step_by(16).map(|at| word(at + 8));
    of_any.chain(by_kernel).fold(word(16), u64::saturating_add)
}

/// How many places of chunks at a pool's begin may be used, according to its header of [`CHUNK`] bytes; of `there` places.
pub fn used(header: &[u8], there: u64) -> u64 {
    // Rows of as many places as there are counters are of large chunks and of small ones in turn.
    let behind = asked_of(header).zip(0..).map(|((large, small), counter)| {
        let large = large.checked_sub(1).map_or(0, |last| 2 * last * COUNTERS + counter + 1);
        let small = small.checked_sub(1).map_or(0, |last| (2 * (last / SMALL) + 1) * COUNTERS + counter + 1);
        large.max(small)
    });
    behind.max().unwrap_or(0).min(there)
}

/// Start of an answer.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// [`ANSWER_MAGIC`].
    pub magic: u64,
    /// How many kernels have a twin; 0: the image stays as it was.
    pub twins: u32,
    /// Not used.
    pub reserved: u32,
    /// Bytes behind this, with the 0 at their end.
    pub bytes: u64,
}

impl Answer {
    /// As it stands in the file.
    pub fn to_bytes(self) -> [u8; size_of::<Answer>()] {
        let mut bytes = [0; size_of::<Answer>()];
        bytes[..8].copy_from_slice(&self.magic.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.twins.to_le_bytes());
        bytes[16..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    /// Of a file's first bytes; none if it is none.
    pub fn of_bytes(bytes: &[u8]) -> Option<Answer> {
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let twins = u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?);
        let answer = Answer { magic: long(0)?, twins, reserved: 0, bytes: long(16)? };
        (answer.magic == ANSWER_MAGIC).then_some(answer)
    }
}

/// How long the launcher lets its helper work on an image of so many bytes, in milliseconds.
pub const fn helper_ms(bytes: u64) -> u64 {
    10_000 + (bytes >> 20) * 1_000
}

/// How long a program waits for an image of so many bytes, in milliseconds: for the helper, and for the launcher to end it.
pub const fn patience_ms(bytes: u64) -> u64 {
    helper_ms(bytes) + 5_000
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_used_up_to_its_last_chunk() {
        let mut header = super::header(100);
        assert_eq!((used(&header, 100), is_full(&header), lost(&header)), (0, false, 0));
        header[ASKED + 64 * 5] = 2;
        header[ASKED + 64 * 31] = 1;
        assert_eq!(used(&header, 100), 64 + 6);
        assert_eq!(used(&header, 20), 20);
        // Small ones are in the rows between.
        header[ASKED_SMALL + 64 * 9] = 33;
        assert_eq!(used(&header, 1000), 5 * 32 + 10);
        assert_eq!(used(&header[..100], 20), 0);
        header[FULL] = 1;
        assert!(is_full(&header));
        (header[16], header[ASKED + 8 + 64], header[LOSSES + 8], header[ASKED - 8]) = (1, 2, 3, 4);
        assert_eq!(lost(&header), 10);
    }

    #[test]
    fn answers_come_back_as_they_were() {
        let answer = Answer { magic: ANSWER_MAGIC, twins: 7, reserved: 0, bytes: 1 << 40 };
        assert_eq!(Answer::of_bytes(&answer.to_bytes()), Some(answer));
        assert_eq!(Answer::of_bytes(&answer.to_bytes()[..23]), None);
        assert_eq!(Answer::of_bytes(&[0; 24]), None);
    }
}
