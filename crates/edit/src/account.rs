//! The account of a trace that is made: in its manifest, as `hetrace run` puts it there.

use hetrace_ctf::account::{Account, FileAccount, StreamAccount, differences};
use hetrace_ctf::read::{Files, Trace};
use serde_json::{Map, Value as Json, json};

/// The folder of contents, whose names are hashes of them.
pub(crate) const BLOBS: &str = "hetrace/blobs/";

/// The account in a manifest, if it has one.
pub(crate) fn of_manifest(manifest: &Json) -> Option<Account> {
    let account = manifest.get("written")?.get("account")?;
    serde_json::from_value(account.clone()).ok()
}

/// Puts it there, in place of that of the trace of which this one was made.
pub(crate) fn put(manifest: &mut Map<String, Json>, account: &Account) {
    let bytes = account.streams.iter().map(|stream| stream.stored).fold(0, u64::saturating_add);
    let mut written = json!({ "bytes": bytes, "account": account });
    // Nobody counts the events of packets that are copied as they are.
    if let Some(records) = account.streams.iter().map(|stream| stream.events).sum::<Option<u64>>() {
        written["records"] = json!(records);
    }
    manifest.insert("written".into(), written);
}

/// A file beside the streams, with its content.
pub(crate) fn file(name: &str, content: &[u8]) -> FileAccount {
    let file = FileAccount::of(name, content);
    if name.starts_with(BLOBS) { FileAccount { checksum: None, ..file } } else { file }
}

/// Counts the events of a stream by those of the stream that it is a copy of.
pub(crate) fn count_events(stream: &mut StreamAccount, original: Option<&StreamAccount>) {
    let same =
        |original: &&StreamAccount| (original.packets, original.bytes) == (stream.packets, stream.bytes);
    stream.events = stream.events.or(original.filter(same).and_then(|original| original.events));
}

/// What a trace lacks of what was written, a sentence each: a trace made of it has it no more.
pub(crate) fn lacks(files: &Files, trace: &Trace, account: Option<&Account>) -> Vec<String> {
    let all = account.map(|account| differences(files, trace, account));
    all.into_iter().flatten().map(|difference| difference.to_string()).collect()
}
