//! `hetrace run --inside`: how programs hand code to the launcher's helper, and what comes back.
//!
//! ```text
//!  inside/NAME.ask      the image, put there whole (by rename); NAME is `HASH-FIRST-DEVICE`
//!  inside/NAME.answer   [`Answer`], then the new image and a 0; or why it stays as it was
//!  inside/PID-N.pool    what kernels recorded, N from 0 for each context
//! ```
//! The same image is asked for once, whichever process needs it. Whoever asks waits for so long ([`patience_ms`]) and then
//! goes on with what it had.

/// The folder in the session's folder.
pub const FOLDER: &str = "inside";
/// Ends the names of images.
pub const ASK: &str = ".ask";
/// Ends the names of answers.
pub const ANSWER: &str = ".answer";
/// Ends the names of pools.
pub const POOL: &str = ".pool";
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
/// Counters of chunks that were asked for, in a pool's header, and where they are, 64 bytes apart.
const COUNTERS: u64 = 32;
const ASKED: usize = 2048;

/// How many chunks each counter of a pool's header was asked for.
fn asked_of(header: &[u8]) -> impl Iterator<Item = u64> {
    (0..COUNTERS as usize).map(|counter| {
        let word = header.get(ASKED + 64 * counter..).and_then(|rest| rest.first_chunk());
        word.map_or(0, |word| u32::from_le_bytes(*word).into())
    })
}

/// How many chunks were asked for, according to a pool's header of [`CHUNK`] bytes.
pub fn asked(header: &[u8]) -> u64 {
    asked_of(header).sum()
}

/// How many records found no room, according to a pool's header of [`CHUNK`] bytes.
pub fn lost(header: &[u8]) -> u64 {
    let word = |at: usize| {
        header.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
    };
    (0..COUNTERS as usize).fold(word(16), |sum, counter| sum.saturating_add(word(ASKED + 8 + 64 * counter)))
}

/// How many chunks at a pool's begin may be used, according to its header of [`CHUNK`] bytes; of `there` chunks.
pub fn used(header: &[u8], there: u64) -> u64 {
    // The n-th chunk of counter c has the number 32 n + c.
    let last = asked_of(header).zip(0..).filter(|(asked, _)| *asked > 0);
    last.map(|(asked, counter)| (asked - 1) * COUNTERS + counter + 1).max().unwrap_or(0).min(there)
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
        let mut header = [0; CHUNK as usize];
        assert_eq!((asked(&header), used(&header, 100)), (0, 0));
        header[ASKED + 64 * 5] = 2;
        header[ASKED + 64 * 31] = 1;
        assert_eq!((asked(&header), used(&header, 100)), (3, 38));
        assert_eq!(used(&header, 20), 20);
        assert_eq!(used(&header[..100], 20), 0);
    }

    #[test]
    fn answers_come_back_as_they_were() {
        let answer = Answer { magic: ANSWER_MAGIC, twins: 7, reserved: 0, bytes: 1 << 40 };
        assert_eq!(Answer::of_bytes(&answer.to_bytes()), Some(answer));
        assert_eq!(Answer::of_bytes(&answer.to_bytes()[..23]), None);
        assert_eq!(Answer::of_bytes(&[0; 24]), None);
    }
}
