//! `hetrace run --inside`: how programs hand code to the launcher's helper, and what comes back.
//!
//! ```text
//!  inside/NAME.ask      the image, put there whole (by rename); NAME is `HASH-FIRST-DEVICE`, or that and `-linked`,
//!                       `-parameter` or `-source`
//!  inside/NAME.answer   [`Answer`], then the new image and a 0; or why it stays as it was
//!  inside/HASH.text      the PTX of machine code, by the content of that: of an API that made it, for one that loads it
//!  inside/HASH.parts     what machine code was linked of, by its content: for each input a line `BYTES NAME`, and its bytes
//!  inside/HASH.why        why there is neither, where it is known
//!  inside/weights       what an earlier run says of kernels, for the helper; there before any program starts
//!  inside/PID-N.pool    what kernels recorded, N from 0 for each context
//!  inside/PID-N.late    launches that came when there was no room any more: a line for each kernel, how many and its name
//!  inside/PID-N.over    launches whose records were overwritten by later ones, in the same way
//! ```
//! The same image is asked for once, whichever process needs it. Whoever asks waits for so long ([`patience_ms`]) and then
//! goes on with what it had.

/// The folder in the session's folder.
pub const FOLDER: &str = "inside";
/// Ends the names of images.
pub const ASK: &str = ".ask";
/// Ends the names of images that are linked with others.
pub const LINKED: &str = "-linked";
/// Ends the names of images whose twins find their pool by a parameter.
pub const PARAMETER: &str = "-parameter";
/// Ends the names of sources of OpenCL C, whose twins find their pool by a parameter.
pub const SOURCE: &str = "-source";
/// Ends the names of texts that were handed over.
pub const TEXT: &str = ".text";
/// Ends the names of what code was linked of.
pub const PARTS: &str = ".parts";
/// Ends the names of reasons for which there is no text.
pub const WHY: &str = ".why";
/// What an earlier run says of kernels.
pub const WEIGHTS: &str = "weights";
/// Ends the names of answers.
pub const ANSWER: &str = ".answer";
/// Ends the names of pools.
pub const POOL: &str = ".pool";
/// Ends the names of lists of launches that came too late.
pub const LATE: &str = ".late";
/// Ends the names of lists of launches whose records were overwritten.
pub const OVER: &str = ".over";
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
    fn answers_come_back_as_they_were() {
        let answer = Answer { magic: ANSWER_MAGIC, twins: 7, reserved: 0, bytes: 1 << 40 };
        assert_eq!(Answer::of_bytes(&answer.to_bytes()), Some(answer));
        assert_eq!(Answer::of_bytes(&answer.to_bytes()[..23]), None);
        assert_eq!(Answer::of_bytes(&[0; 24]), None);
    }
}
