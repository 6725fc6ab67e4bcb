//! Whether a trace is what was written, and sound in itself.
//!
//! ```text
//! files    manifest, metadata, models, stored contents
//! stream   each packet and event: order, numbers, times, what can be decoded
//! mod      both beside the account in the manifest: names, sizes, counts, checksums
//! ```
//! Nothing is taken for granted but the manifest: it holds the account, and no account of itself.

mod files;
mod finding;
mod stream;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use hetrace_ctf::account::{Account, Difference, StreamAccount, differences, file_differences};
use hetrace_ctf::read::{Files, PACKED, Part, Trace};
use hetrace_format::files::KERNEL;

use crate::parallel::in_parallel;
use crate::{Error, Watch};
pub use finding::Finding;
use stream::{Known, Seen};

/// What was found, and how much was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// What is wrong, by file.
    pub findings: Vec<Finding>,
    /// What one should know besides, a sentence each.
    pub notes: Vec<String>,
    /// Whether the trace says what was written: else it may lack what nobody knows of.
    pub verifiable: bool,
    /// Why nothing in its streams could be looked at; they were, if there is none.
    pub unusable: Option<String>,
    /// Stream files.
    pub streams: u64,
    /// Packets in them.
    pub packets: u64,
    /// Events in these.
    pub events: u64,
    /// Bytes of the packets.
    pub bytes: u64,
    /// Events that were dropped while recording, by the counters of the streams; of the operating system's by the manifest
    /// where that knows of more.
    pub dropped: u64,
}

impl Checked {
    /// Returns whether nothing is missing, changed or damaged, as far as that can be known.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.unusable.is_none()
    }

    /// Adds what was found in a part of a series.
    fn add(&mut self, part: &str, other: Self) {
        let Self { findings, notes, verifiable, unusable, streams, packets, events, bytes, dropped } = other;
        let named = |text: String| format!("{part}: {text}");
        self.findings.extend(findings.into_iter().map(|finding| Finding {
            file: format!("{part}/{}", finding.file),
            text: named(finding.text),
            ..finding
        }));
        self.notes.extend(notes.into_iter().map(named));
        self.verifiable &= verifiable;
        self.unusable = self.unusable.take().or(unusable.map(named));
        self.streams += streams;
        self.packets += packets;
        for (all, more) in
            [(&mut self.events, events), (&mut self.bytes, bytes), (&mut self.dropped, dropped)]
        {
            *all = all.saturating_add(more);
        }
    }
}

/// Verifies a trace: all that can be; of a series each part, and with a trace of the operating system beside it that, too.
///
/// # Errors
/// When there is no trace, a file cannot be read, or `watch` says to stop. What is wrong with
/// the trace itself is no error.
pub fn check(path: &Path, watch: Watch<'_>) -> Result<Checked, Error> {
    let files = Files::open(path)?;
    if files.parts().next().is_none() {
        return with_kernel(&files, watch);
    }
    let mut all = Checked { verifiable: true, ..Checked::default() };
    let code = if files.is_packed() { "packed-damaged" } else { "part-damaged" };
    all.findings.extend(files.problems().iter().map(|problem| Finding::new(code, "", problem.clone())));
    let has_kernel = files.kernel().is_some();
    let mut before = None;
    for part in files.parts() {
        let name = part.name();
        all.add(&name, with_kernel(&part.files, watch)?);
        if has_kernel && part.is_of_two() && part.files.kernel().is_none() {
            let text = format!("{name}: the trace of the operating system is missing");
            all.findings.push(Finding::new("part-missing", &name, text));
        }
        let number = part.part.number;
        match before {
            None if number > 1 => all.notes.push(format!("the parts before {name} were removed")),
            Some(before) if number - before > 1 => {
                let text = format!("{} to {} are missing", Part::name(before + 1), Part::name(number - 1));
                all.findings.push(Finding::new("part-missing", &name, text));
            }
            _ => {}
        }
        before = Some(number);
    }
    Ok(all)
}

/// Verifies a trace, and that of the operating system beside it.
fn with_kernel(files: &Files, watch: Watch<'_>) -> Result<Checked, Error> {
    let mut done = one(files, None, watch)?;
    if let Some(kernel) = files.kernel() {
        let known = files::OfKernel::read(files);
        let seen = one(kernel, Some(known.account.clone()), watch)?;
        let dropped = known.dropped(seen.events, seen.dropped);
        done.add(KERNEL, Checked { dropped, ..seen });
    }
    Ok(done)
}

/// Verifies one trace. One of the operating system has its account in the manifest of the program's, if it has one.
fn one(files: &Files, kernel: Option<Option<Account>>, watch: Watch<'_>) -> Result<Checked, Error> {
    let mut done = Checked::default();
    let packed = files.problems().iter().map(|problem| Finding::new("packed-damaged", "", problem.clone()));
    done.findings.extend(packed);
    let trace = Trace::from_files(files);
    let manifest = match kernel {
        Some(account) => files::Manifest::of_kernel(account, &mut done),
        None => files::Manifest::read(files, trace.as_ref().ok(), &mut done),
    };
    let account = manifest.account.as_ref();
    done.verifiable = account.is_some();
    match &trace {
        Ok(trace) => {
            files::metadata(files, &mut done);
            streams(files, trace, &manifest, watch, &mut done)?;
        }
        Err(error) => {
            let all = account.map(|account| file_differences(files, account));
            done.findings.extend(all.into_iter().flatten().map(Finding::from));
            done.unusable = Some(error.to_string());
        }
    }
    files::models(files, trace.as_ref().ok(), &manifest, &mut done);
    files::blobs(files, watch, &mut done)?;
    Ok(done)
}

/// Looks at all streams, and compares them with the account.
fn streams(
    files: &Files,
    trace: &Trace,
    manifest: &files::Manifest,
    watch: Watch<'_>,
    done: &mut Checked,
) -> Result<(), Error> {
    let account = manifest.account.as_ref();
    let by_name = |a: &'_ Account| a.streams.iter().map(|s| (s.name.clone(), s.clone())).collect();
    let accounts: HashMap<String, StreamAccount> = account.map(by_name).unwrap_or_default();
    let known = |name: &str| match accounts.get(name.strip_suffix(PACKED).unwrap_or(name)) {
        Some(account) => Known::Account(account),
        None if manifest.is_whole => Known::FromStart,
        None => Known::Nothing,
    };
    let look = |index: usize| match trace.stream(index) {
        Some(reader) => {
            let known = known(reader.name());
            stream::look(reader, known, watch)
        }
        None => Ok(Seen::default()),
    };
    let seen = in_parallel(trace.stream_count(), &look)?;
    for one in &seen {
        done.streams += 1;
        done.packets += one.account.packets;
        done.events = done.events.saturating_add(one.account.events.unwrap_or(0));
        done.bytes = done.bytes.saturating_add(one.account.bytes);
        done.dropped = done.dropped.saturating_add(one.dropped);
        done.notes.extend(one.notes.iter().cloned());
    }
    let found = account.map(|account| differences(files, trace, account)).unwrap_or_default();
    match account {
        Some(_) => compare(found, &seen, &accounts, done),
        None => done.findings.extend(copies(&seen)),
    }
    done.findings.extend(seen.into_iter().flat_map(|one| one.findings));
    Ok(())
}

/// Streams that have the packets of another, where nobody knows which of them were written.
fn copies(seen: &[Seen]) -> Vec<Finding> {
    let mut known: HashMap<_, &str> = HashMap::new();
    let mut all = Vec::new();
    for one in seen.iter().map(|one| &one.account).filter(|one| one.packets > 0) {
        let first = *known.entry((one.packets, one.bytes, one.checksum.0)).or_insert(&one.name);
        if first != one.name {
            all.push(copied(&one.name, first));
        }
    }
    all
}

/// Says that a stream is there twice.
fn copied(name: &str, original: &str) -> Finding {
    Finding::new("stream-copied", name, format!("{name}: a copy of {original}: its events count twice"))
}

/// What names and sizes show, beside what was read: that knows better what is a copy, and what
/// is the same in another form.
fn compare(
    found: Vec<Difference>,
    seen: &[Seen],
    accounts: &HashMap<String, StreamAccount>,
    done: &mut Checked,
) {
    let by_name: HashMap<&str, &Seen> = seen.iter().map(|one| (one.account.name.as_str(), one)).collect();
    let mut sizes = HashSet::new();
    for difference in found {
        let read = by_name.get(difference.name().strip_suffix(PACKED).unwrap_or(difference.name()));
        match &difference {
            Difference::Size { .. } if read.is_some_and(|one| one.is_as_written) => continue,
            Difference::Size { name, .. } => _ = sizes.insert(name.clone()),
            Difference::Unlisted { name, .. } => {
                let same = |one: &&StreamAccount| read.is_some_and(|read| read.is_copy_of(one));
                if let Some(original) = accounts.values().find(same) {
                    done.findings.push(copied(name, &original.name));
                    continue;
                }
            }
            _ => {}
        }
        done.findings.push(difference.into());
    }
    for one in seen.iter().filter(|one| !sizes.contains(&one.account.name)) {
        done.findings.extend(accounts.get(&one.account.name).and_then(|account| one.differs(account)));
    }
}
