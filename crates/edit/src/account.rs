//! The account of a trace that is made: in its manifest, as `hetrace run` puts it there.

use hetrace_ctf::account::{Account, FileAccount, StreamAccount, differences};
use hetrace_ctf::read::{Files, Trace};
use hetrace_format::files::BLOBS;

/// What is said of records inside of kernels, which belong to processes as they were.
pub(crate) const LEFT_OUT: &str = "left out; `hetrace tally --inside` of the trace itself has it";

/// Returns a file beside the streams, with its content.
pub(crate) fn file(name: &str, content: &[u8]) -> FileAccount {
    let file = FileAccount::of(name, content);
    // Contents are named by their hash.
    if name.starts_with(BLOBS) { FileAccount { checksum: None, ..file } } else { file }
}

/// Counts the events of a stream by those of the stream that it is a copy of.
pub(crate) fn count_events(stream: &mut StreamAccount, original: Option<&StreamAccount>) {
    let same =
        |original: &&StreamAccount| (original.packets, original.bytes) == (stream.packets, stream.bytes);
    stream.events = stream.events.or(original.filter(same).and_then(|original| original.events));
}

/// Returns what a trace lacks of what was written, a sentence each: a trace made of it has it no more.
pub(crate) fn lacks(files: &Files, trace: &Trace, account: Option<&Account>) -> Vec<String> {
    let all = account.map(|account| differences(files, trace, account));
    all.into_iter().flatten().map(|difference| difference.to_string()).collect()
}
