//! What is beside the streams: the manifest, models, stored contents.

use std::collections::BTreeSet;

use hetrace_ctf::account::Account;
use hetrace_ctf::read::{Files, Trace};
use hetrace_format::files::{self as places, BLOBS, MANIFEST, METADATA, MODELS};
use hetrace_format::manifest::{Losses, Os};
use hetrace_trace::trace::{OpenError, ReadModel, read_models};

use super::{Checked, Finding};
use crate::parallel::in_parallel;
use crate::{Error, Watch, report};

/// How the name of an event ends that begins a call.
const ENTRY: &str = "_entry";

/// What the manifest says that matters here.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    pub account: Option<Account>,
    /// Whether the trace is of hetrace.
    pub is_ours: bool,
    /// Whether streams of hetrace are there from their first packet on.
    pub is_whole: bool,
}

/// What the manifest of a program's trace says of the operating system's beside it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OfKernel {
    /// The account of what was written, if there is one.
    pub account: Option<Account>,
    /// Events that were written.
    events: u64,
    /// Events that the kernel dropped, or that could not be written.
    lost: u64,
}

impl OfKernel {
    /// Reads it; nothing where the manifest says nothing.
    pub fn read(files: &Files) -> Self {
        let text = files.read(MANIFEST).ok().flatten();
        let os = text.and_then(|text| hetrace_format::Manifest::parse(&text).ok()?.os);
        os.map_or_else(Self::default, |os| Self::of(&os))
    }

    fn of(os: &Os) -> Self {
        let lost = os.dropped.saturating_add(os.unwritten);
        Self { account: os.account.clone(), events: os.events, lost }
    }

    /// Returns how many events were dropped of a trace that has so many, of which its streams count so many. A stream to
    /// which nothing more could be written can't count what came afterwards; a trace that was made of this one has lost
    /// what its own streams say.
    pub fn dropped(&self, events: u64, counted: u64) -> u64 {
        if events == self.events { counted.max(self.lost) } else { counted }
    }
}

impl Manifest {
    /// Of a trace of the operating system with this account.
    pub fn of_kernel(account: Option<Account>, done: &mut Checked) -> Self {
        if account.is_none() {
            let why = "there is no account of what was written of the operating system: completeness cannot be verified";
            done.notes.push(why.to_owned());
        }
        Self { account, ..Self::default() }
    }

    /// Reads it, and adds what is wrong with it.
    pub fn read(files: &Files, trace: Option<&Trace>, done: &mut Checked) -> Self {
        let ours = |trace: &Trace| hetrace_format::class::is_of_hetrace(trace.class());
        let is_ours = trace.is_some_and(ours) || !files.list(MODELS).is_empty();
        let mut find = |kind, text: String| {
            done.findings.push(Finding::new(kind, MANIFEST, format!("{MANIFEST}: {text}")));
            Self { is_ours, ..Self::default() }
        };
        let unknown = "so other missing files cannot be detected";
        let read = hetrace_format::manifest::read(files)
            .map(|bytes| bytes.map(|b| hetrace_format::Manifest::parse(&b)));
        let manifest = match read {
            Ok(None) if !is_ours => {
                done.notes.push("there is no account of what was written: only the content of the trace itself was verified".into());
                return Self::default();
            }
            Ok(None) => return find("manifest-missing", format!("the manifest is missing, {unknown}")),
            Err(error) => return find("manifest-damaged", format!("it cannot be read ({error}), {unknown}")),
            Ok(Some(Err(error))) => return find("manifest-damaged", format!("{error}, {unknown}")),
            Ok(Some(Ok(manifest))) => manifest,
        };
        let ended = !is_ours || manifest.is_finished();
        if !ended {
            let text = "the recording is unfinished: hetrace was killed, or is still recording";
            find("unfinished", text.into());
        } else if manifest.written.account.is_none() {
            let why = "there is no account of what was written (an older hetrace made the trace)";
            done.notes.push(format!("{MANIFEST}: {why}: completeness cannot be verified"));
        }
        losses(&manifest.losses, done);
        let fired = manifest.flight.iter().flat_map(|flight| &flight.fired);
        done.notes.extend(fired.map(ToString::to_string));
        let is_whole = is_ours && manifest.trimmed.is_empty();
        Self { account: manifest.written.account, is_ours, is_whole }
    }
}

/// What was lost while recording.
fn losses(losses: &Losses, done: &mut Checked) {
    let Losses {
        records,
        calls_without_ring,
        device_commands,
        unwritten_bytes,
        damaged_bytes,
        processes,
        // Of the records.
        calls: _,
        threads: _,
        // Not of the trace: what the program left behind, and what is there.
        commands_in_flight: _,
        commands_without_call: _,
    } = losses;
    for (n, what) in [
        (records, "records dropped while recording"),
        (calls_without_ring, "calls of threads that could not record"),
        (device_commands, "device commands without a record"),
        (unwritten_bytes, "bytes that could not be written to disk"),
        (damaged_bytes, "damaged bytes of ring buffers"),
        (processes, "processes whose shared memory could not be read"),
    ] {
        if *n > 0 {
            done.notes.push(format!("{n} {what}"));
        }
    }
}

/// Looks at the metadata, which could be understood.
pub(super) fn metadata(files: &Files, done: &mut Checked) {
    let Ok(Some(bytes)) = files.read(METADATA) else { return };
    let unread = hetrace_ctf::metadata::unread(&bytes);
    if unread > 0 {
        let text = format!(
            "{METADATA}: {unread} bytes behind the last packet are no packet: it was cut off, or something was added"
        );
        done.findings.push(Finding::new("metadata-cut", METADATA, text));
    }
}

/// Looks at the models: whether each can be understood, and none is missing.
pub(super) fn models(files: &Files, trace: Option<&Trace>, manifest: &Manifest, done: &mut Checked) {
    let mut there = BTreeSet::new();
    for ReadModel { file, model, .. } in read_models(files, None) {
        there.extend(file.strip_suffix(".json").map(str::to_owned));
        let name = format!("{MODELS}/{file}");
        let why = match model {
            Ok(Some(_)) => continue,
            Ok(None) => "it is not there".to_owned(),
            Err(OpenError::Model { source, .. }) => source.to_string(),
            Err(error) => error.to_string(),
        };
        let text = format!("{name}: invalid model ({why}): the reports cannot read the trace");
        done.findings.push(Finding::new("model-damaged", &name, text));
    }
    // The account lists them. Without one, the names of events say which there were.
    let Some(trace) = trace.filter(|_| manifest.is_ours && manifest.account.is_none()) else { return };
    let events = trace.class().streams.iter().flat_map(|stream| &stream.events);
    let apis = events.filter_map(|e| Some(e.name.strip_suffix(ENTRY)?.split_once(':')?.0.to_owned()));
    for api in apis.collect::<BTreeSet<String>>().difference(&there) {
        let name = places::model(api);
        let text = format!("{name}: the model is missing: errors and arguments of {api} have no names");
        done.findings.push(Finding::new("file-missing", &name, text));
    }
}

/// Looks at stored contents: each is named by its hash.
pub(super) fn blobs(files: &Files, watch: Watch<'_>, done: &mut Checked) -> Result<(), Error> {
    let names = files.list(BLOBS);
    let look = |index: usize| -> Result<Option<Finding>, Error> {
        let Some(name) = names.get(index) else { return Ok(None) };
        let Some(expected) = places::blob_hash(name) else { return Ok(None) };
        let path = format!("{BLOBS}/{name}");
        let plain = files.content(&path).map_err(Error::io(&files.path().join(&path)))?;
        let found = match &plain {
            Some(content) => Some(hash(content)),
            None => files.read(&path).ok().flatten().map(|content| hash(&content)),
        };
        report(watch, plain.map_or(0, |content| content.len() as u64))?;
        let changed = found != Some(expected);
        let text = "the content does not match its hash: it was changed, or stored incompletely";
        Ok(changed.then(|| Finding::new("blob-changed", &path, format!("{path}: {text}"))))
    };
    done.findings.extend(in_parallel(names.len(), &look)?.into_iter().flatten());
    Ok(())
}

/// 64-bit FNV-1a, by which programs name what they store.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_streams_of_the_system_cannot_count_is_known_by_the_manifest() {
        let known = OfKernel::of(&Os { events: 100, dropped: 30, unwritten: 20, ..Os::default() });
        assert_eq!(known.dropped(100, 40), 50, "the disk was full");
        assert_eq!(known.dropped(100, 60), 60, "an older manifest");
        assert_eq!(known.dropped(7, 3), 3, "a part of it");
        assert_eq!(OfKernel::default().dropped(0, 5), 5);
    }
}
