//! Hashes of what calls send to devices from memory of the host (`--hash-copies`).

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;

/// What a call sends, as it was when the call began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentBytes {
    /// The thread that made the call.
    pub cause_tid: i64,
    /// When the call began, in nanoseconds on the trace's clock.
    pub cause: u64,
    /// How many bytes it sends.
    pub bytes: u64,
    /// Of all of them; none where they were not hashed: there were too many, or they could not be read.
    pub hash: Option<u64>,
}

/// Returns what an event says of bytes that are sent; none if it is another event.
pub fn sent_of(event: &Event<'_, '_>) -> Option<SentBytes> {
    if event.class().name != "object:sent" {
        return None;
    }
    let number = |name| event.get(name).and_then(Scalar::as_u64);
    let bytes = number("length")?;
    let hash =
        number("content_hash").filter(|_| number("error") == Some(0) && number("hashed") == Some(bytes));
    let cause_tid = i64::try_from(number("cause_tid")?).ok()?;
    Some(SentBytes { cause_tid, cause: number("cause")?, bytes, hash })
}
