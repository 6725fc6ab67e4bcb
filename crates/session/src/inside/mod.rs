//! `--inside`: code that programs load is rewritten outside of them, and what kernels recorded goes into the trace.
//!
//! ```text
//!  program ── NAME.ask ──► [`Desk`]: one helper process for each image ── NAME.answer ──► program
//!          ── PID-N.pool ──────────────► [`collect`] ──► folder `inside` of the trace
//! ```
//! The helper is another process, since it reads what others wrote: if it crashes, hangs or takes too much memory, that
//! image stays as it was, and the report says why.

mod desk;
mod helper;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::Ordering;

use hetrace_pool::{CHUNK, Layout};
use hetrace_ring::abi;
use hetrace_ring::abi::inside::{FOLDER, LATE, OVER, PART, POOL, WEIGHTS};

use crate::access::Access;
use crate::options::Launches;

pub(crate) use desk::Desk;
pub use helper::answer;
pub use hetrace_pool::Strategy;

/// Choices of kernels that a session has room for.
pub const INSIDE_CHOICES: usize = abi::inside::CHOICES;

/// What is recorded inside kernels.
#[derive(Debug, Clone, Default)]
pub struct Inside {
    /// Which kernels, and which launches of each; the first [`INSIDE_CHOICES`] count.
    pub kernels: Vec<Launches>,
    /// Of these launches, one in so many; 0: of those without numbers all but some that are left to compare with.
    pub every: u32,
    /// Bytes of a context's pool.
    pub buffer: u64,
    /// How kernels get room in a pool.
    pub strategy: Strategy,
    /// Pools are memory of the host: what is in them survives the program.
    pub spill: bool,
    /// Pools are emptied when they are full: what was recorded last is kept.
    pub ring: bool,
    /// What an earlier run says of kernels, as the helper reads it; nothing if it was not asked for.
    pub weights: Vec<u8>,
    /// The helper and its arguments. It gets two more: the image, and where the answer goes.
    pub helper: Vec<OsString>,
}

impl Inside {
    /// Writes what programs must know into the control page. No program has started yet.
    pub(crate) fn choose(&self, control: &abi::Control) {
        control.inside_buffer.store(self.buffer, Ordering::Relaxed);
        control.inside_every.store(self.every, Ordering::Relaxed);
        control.inside_strategy.store(self.strategy.number(), Ordering::Relaxed);
        for (choice, launches) in control.inside_choices.iter().zip(&self.kernels) {
            launches.choose(choice);
        }
    }
}

/// Most bytes of a description; no image has so many kernels.
const LONGEST: u64 = 1 << 30;

/// What is in a session's folder of kernels' insides goes into the trace's. Returns what the report must say.
pub(crate) fn collect(session: &Path, trace: &Path, access: Access) -> Vec<String> {
    let (from, to) = (session.join(FOLDER), trace.join(FOLDER));
    let mut notes = Vec::new();
    let (mut pools, mut lost) = (0u64, Loss::default());
    let mut found = Found::default();
    for entry in fs::read_dir(&from).into_iter().flatten().flatten() {
        let file = entry.file_name();
        let Some(name) = file.to_str() else { continue };
        let done = if name.ends_with(POOL) {
            pools += 1;
            pool(&entry.path(), &to.join(name), access, &mut lost)
        } else if name.ends_with(LATE) || name.ends_with(OVER) {
            moved(&entry.path(), &to.join(name), access)
        } else if name.ends_with(".json") {
            description(&entry.path(), &to.join(name), access, &mut found)
        } else {
            continue;
        };
        if let Err(error) = done {
            notes.push(format!("--inside: {name} is missing in the trace: {error}"));
        }
    }
    let Found { refused, kernels, weighted, unweighted } = found;
    if kernels > 0 || pools > 0 {
        let chunks = lost.used;
        notes.push(format!(
            "--inside: {kernels} kernels can record; {pools} pools with {chunks} chunks of 4 KiB"
        ));
    }
    if lost.records > 0 || lost.full {
        // How much would have been enough is not known: who finds a pool full asks for no more.
        let records = lost.records;
        let all = if lost.full { ", and what began behind them did not record" } else { "" };
        notes.push(format!(
            "LOST: {records} records inside kernels found no room{all}: use a larger --inside-buffer, --inside-sample, or fewer \
             launches (KERNEL@FIRST..LAST)"
        ));
    }
    for (reason, kernels) in refused {
        if kernels.len() > SINGLE {
            let names: Vec<_> = kernels.iter().map(String::as_str).collect();
            let (count, names) = (names.len(), names.join(", "));
            notes.push(format!("--inside: {count} kernels are as they were: {reason}: {names}"));
        } else {
            notes.extend(kernels.iter().map(|name| format!("--inside: {name} is as it was: {reason}")));
        }
    }
    notes.extend(weighted.into_iter().map(|(trace, kernels)| {
        format!("--inside-weights: it was chosen by {trace} where {kernels} kernels record")
    }));
    notes.extend(unweighted.into_iter().map(|why| format!("--inside-weights: {why}")));
    notes
}

/// Kernels that are named one by one if they stay as they were for the same reason; more are in one list.
const SINGLE: usize = 8;

/// What descriptions say of kernels.
#[derive(Debug, Default)]
struct Found {
    /// Those that stay as they were, by the reason.
    refused: BTreeMap<String, BTreeSet<String>>,
    /// How many can record.
    kernels: usize,
    /// How many of them do so by weights of an earlier trace, by that.
    weighted: BTreeMap<String, usize>,
    /// Those that do not although there were some, and why.
    unweighted: BTreeSet<String>,
}

impl Found {
    fn add(&mut self, said: &serde_json::Value) {
        let of = |value: &serde_json::Value, name: &str| value[name].as_str().unwrap_or("?").to_owned();
        let all = |name: &str| said[name].as_array().cloned().unwrap_or_default();
        self.kernels += all("kernels").len();
        for one in all("refused") {
            self.refused.entry(of(&one, "reason")).or_default().insert(of(&one, "name"));
        }
        for one in all("kernels") {
            let weights = &one["weights"];
            if weights.is_null() {
                continue;
            }
            match weights["unused"].as_str() {
                Some(why) => _ = self.unweighted.insert(format!("not used for {}: {why}", of(&one, "name"))),
                None => *self.weighted.entry(of(weights, "trace")).or_default() += 1,
            }
        }
    }
}

/// What found no room.
#[derive(Debug, Default, PartialEq, Eq)]
struct Loss {
    used: u64,
    records: u64,
    /// There was no room any more for a chunk.
    full: bool,
}

/// Opens what a program or the helper left: a plain file, and nothing that a link leads to.
fn open(path: &Path, most: u64) -> io::Result<(fs::File, u64)> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    let fits = found.is_file() && found.len() <= most;
    fits.then_some((file, found.len())).ok_or_else(|| io::Error::other("not a plain file, or too large"))
}

/// Moves a pool: its header, and the chunks that were begun.
fn pool(from: &Path, to: &Path, access: Access, lost: &mut Loss) -> io::Result<()> {
    let (mut file, size) = open(from, u64::MAX)?;
    let mut header = vec![0u8; CHUNK as usize];
    file.read_exact(&mut header)?;
    let layout = Layout::of(&header);
    let begin = layout.header_bytes();
    header.resize(usize::try_from(begin).unwrap_or(usize::MAX), 0);
    file.read_exact(header.get_mut(CHUNK as usize..).unwrap_or_default())?;
    let used = layout.used(&header, hetrace_pool::places(&header).min(layout.places_in(size)));
    lost.full |= hetrace_pool::is_full(&header);
    lost.used += used;
    lost.records = lost.records.saturating_add(hetrace_pool::lost(&header));
    access.need_folder(to.parent().unwrap_or(Path::new(".")))?;
    let mut out = access.make_file(to)?;
    io::Write::write_all(&mut out, &header)?;
    let rest = size.min(used.saturating_mul(CHUNK).saturating_add(begin)).saturating_sub(begin);
    io::copy(&mut file.take(rest), &mut out)?;
    fs::remove_file(from)
}

/// Moves a list.
fn moved(from: &Path, to: &Path, access: Access) -> io::Result<()> {
    let (mut file, _) = open(from, LONGEST)?;
    access.need_folder(to.parent().unwrap_or(Path::new(".")))?;
    io::copy(&mut file, &mut access.make_file(to)?)?;
    fs::remove_file(from)
}

/// Moves the description of an image, and notes the kernels that stay as they were.
fn description(from: &Path, to: &Path, access: Access, found: &mut Found) -> io::Result<()> {
    let (file, size) = open(from, LONGEST)?;
    let mut text = Vec::new();
    file.take(size).read_to_end(&mut text)?;
    let said: serde_json::Value = serde_json::from_slice(&text).map_err(io::Error::other)?;
    found.add(&said);
    access.need_folder(to.parent().unwrap_or(Path::new(".")))?;
    io::Write::write_all(&mut access.make_file(to)?, &text)?;
    fs::remove_file(from)
}

/// Makes the folder in which programs and launcher meet.
pub(crate) fn make(session: &Path, inside: &Inside) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let folder = session.join(FOLDER);
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    if inside.weights.is_empty() {
        return Ok(());
    }
    fs::write(folder.join(WEIGHTS), &inside.weights)
}

/// Returns whether a file is still being written.
fn is_part(name: &str) -> bool {
    name.ends_with(PART)
}

#[cfg(test)]
mod tests;
