//! Goes from one part of a run to the next.
//!
//! ```text
//!   1  .0004.tmp   metadata, models, stored contents, a first manifest, what streams need of the time before
//!   2  0004        its name: from here on streams go there, and what is declared
//!   3  ticket      a killed launcher is recovered into it
//!   4  0003        its last manifest, with the account of what is in it
//! ```
//! With events of the operating system each part is a folder of two traces, `0004/hetrace` and `0004/kernel`. These are
//! written some time after they happened, by a thread of their own, which goes over by itself; then the manifest of the
//! part before is written once more, with their account.
//!
//! Where that ends in the middle, the part before goes on, or lacks its account.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hetrace_format::files::{BLOBS, MODELS, OWN};
use hetrace_format::manifest::{Losses, Part, Rotation};
use hetrace_os::{Borders, Passed};
use hetrace_ring::clock;

use super::write::copy;
use crate::access::Access;
use crate::account::account_of_files;
use crate::apis::Found;
use crate::beside::{renew_manifest, write_manifest};
use crate::declare::Declarations;
use crate::manifest::{Manifest, Written};
use crate::os;
use crate::output::TraceFolder;
use crate::recover::ticket::Ticket;
use crate::sink::{Fresh, Left, Series};
use crate::time::ReferencePoint;

/// Manifests that are kept until events of the operating system are written. A part lacks their account if its is gone.
const MOST_UNFINISHED: usize = 256;

/// Divides a run.
#[derive(Debug)]
pub struct Rotating {
    series: Arc<Series>,
    /// The part that is written.
    trace: TraceFolder,
    number: u32,
    session: PathBuf,
    libraries: Vec<Found>,
    started: ReferencePoint,
    /// When the part was begun, on the trace's clock and since 1970; none of the first one.
    since: Option<(u64, u64)>,
    /// What was lost before.
    before: Losses,
    /// Why a part could not be begun.
    failed: Option<String>,
    /// Of the operating system's events, if they are recorded.
    borders: Option<Arc<Borders>>,
    /// Parts of which these are still written, and their manifests.
    unfinished: VecDeque<(u32, TraceFolder, Manifest)>,
}

impl Rotating {
    /// Of a run that begins with the part in `trace`; none if the run is not divided.
    pub fn new(
        trace: &TraceFolder,
        session: &Path,
        libraries: &[Found],
        started: ReferencePoint,
    ) -> Option<Self> {
        let series = Arc::clone(trace.series()?);
        let (session, libraries, before) = (session.to_owned(), libraries.to_vec(), Losses::default());
        let (trace, number) = (trace.clone(), 1);
        let (failed, borders, unfinished) = (None, None, VecDeque::new());
        let since = None;
        Some(Self {
            series,
            trace,
            number,
            session,
            libraries,
            started,
            since,
            before,
            failed,
            borders,
            unfinished,
        })
    }

    /// Divides events of the operating system, too.
    pub fn with(self, borders: Option<Arc<Borders>>) -> Self {
        Self { borders, ..self }
    }

    /// Returns the part that is written.
    pub fn trace(&self) -> &TraceFolder {
        &self.trace
    }

    /// Returns whether it is time for another part.
    pub fn is_due(&self) -> bool {
        self.series.is_due()
    }

    /// Goes over to another part, after all that is known by now was sealed. `manifest` is what is known of the run,
    /// `base` what was known at its begin. Returns the new part's folder, unless the old one goes on.
    pub fn go_over(&mut self, manifest: Manifest, base: &Manifest) -> Option<PathBuf> {
        let left = loop {
            match self.next(base) {
                Ok(left) => break left,
                Err((fresh, _)) if self.series.give_up(fresh.as_ref()) => {}
                Err((_, error)) => {
                    self.failed = Some(error.to_string());
                    return None;
                }
            }
        };
        let old = self.trace.clone();
        self.trace = old.elsewhere(self.series.part(self.number + 1));
        // Without a new one a killed launcher's records go into the part before.
        let _ = Ticket::renew(&self.trace, &self.libraries, self.started, &self.session);
        let losses = manifest.losses.clone();
        let since = self.begin_next();
        let last = self.describe(manifest, left);
        // Its events are there; that it is complete is known to nobody then.
        match last.and_then(|last| last_manifest(&old, &last).map(|()| last)) {
            Ok(last) => {
                self.unfinished.push_back((self.number, old, last));
                if self.unfinished.len() > MOST_UNFINISHED {
                    self.unfinished.pop_front();
                }
            }
            Err(error) => self.failed = Some(format!("{}: {error}", old.path().display())),
        }
        self.before = losses;
        self.number += 1;
        self.since = Some(since);
        if self.series.kernel(self.number).is_none() || self.borders.is_none() {
            self.unfinished.clear();
        }
        Some(self.trace.path().to_owned())
    }

    /// Begins the next part now, also for the reader of the operating system's events. Returns when that is, by both clocks.
    fn begin_next(&self) -> (u64, u64) {
        let now = || clock::nanoseconds(libc::CLOCK_MONOTONIC);
        let number = self.number + 1;
        let mut since = None;
        if let Some((borders, folder)) = self.borders.as_ref().zip(self.series.kernel(number)) {
            borders.ask(folder, number, || *since.insert(now()));
        }
        (since.unwrap_or_else(now), clock::nanoseconds(libc::CLOCK_REALTIME))
    }

    /// Finishes the parts of which the operating system's events are written by now. Returns what was recorded of them in
    /// the part that is written, if that is finished, too.
    pub fn settle(&mut self) -> Option<hetrace_os::Report> {
        let mut last = None;
        for Passed { number, report } in self.borders.iter().flat_map(|borders| borders.passed()) {
            if number == self.number {
                last = Some(report);
                continue;
            }
            let Some(at) = self.unfinished.iter().position(|(part, ..)| *part == number) else { continue };
            let Some((_, trace, mut manifest)) = self.unfinished.remove(at) else { continue };
            manifest.notes.extend(os::unwritten(&report));
            manifest.os.iter_mut().for_each(|os| os::fill(os, report.clone()));
            match last_manifest(&trace, &manifest) {
                // It may have been removed meanwhile, as a whole.
                Err(error) if trace.path().exists() => {
                    self.failed = Some(format!("{}: {error}", trace.path().display()));
                }
                _ => {}
            }
        }
        last
    }

    fn next(&self, base: &Manifest) -> Result<Left, (Option<Fresh>, io::Error)> {
        let fresh = self.series.prepare().map_err(|error| (None, error))?;
        match self.fill(&fresh, base) {
            Ok(left) => Ok(left),
            Err(error) => Err((Some(fresh), error)),
        }
    }

    /// Writes all that a part has, and goes over to it.
    fn fill(&self, fresh: &Fresh, base: &Manifest) -> io::Result<Left> {
        let (old, access) = (self.trace.path(), self.trace.access());
        let hidden = self.trace.elsewhere(fresh.program.clone());
        for folder in [OWN, MODELS] {
            access.make_folder(&fresh.program.join(folder))?;
        }
        for folder in [MODELS, BLOBS] {
            again(&old.join(folder), &fresh.program.join(folder), access)?;
        }
        let metadata =
            self.trace.declarations().map(|all| all.begin_elsewhere(&fresh.program)).transpose()?;
        let mut manifest = base.clone();
        manifest.session = Some(self.session.clone());
        manifest.start_ns = Some(clock::nanoseconds(libc::CLOCK_MONOTONIC));
        manifest.start_realtime_ns = Some(clock::nanoseconds(libc::CLOCK_REALTIME));
        manifest.rotation =
            Some(Rotation { part: fresh.number, since_ns: manifest.start_ns, ..Rotation::default() });
        renew_manifest(&hidden, &manifest)?;
        let left = self.series.go_over(fresh)?;
        if let (Some(metadata), Some(all)) = (metadata, self.trace.declarations()) {
            all.go_on(metadata, &self.series.part(fresh.number));
        }
        Ok(left)
    }

    /// Returns the last manifest of a part out of that of the run by then.
    fn describe(&self, run: Manifest, left: Left) -> io::Result<Manifest> {
        let Left { folder, mut account, unkept, removed, events } = left;
        let mut manifest = run;
        manifest.session = None;
        // It is whole, though the program may live on.
        manifest.stopped = manifest.exit.is_none();
        manifest.losses = manifest.losses.since(&self.before);
        let since_ns = self.since.map(|(monotonic, _)| monotonic);
        manifest.rotation = Some(Rotation { part: self.number, since_ns, removed, unkept });
        if let Some((since, capture)) = since_ns.zip(manifest.capture.as_mut()) {
            capture.windows.retain(|window| window.end_ns.is_none_or(|end| end >= since));
        }
        if let Some((monotonic, realtime)) = self.since {
            (manifest.start_ns, manifest.start_realtime_ns) = (Some(monotonic), Some(realtime));
            manifest.trimmed.push(Part { from_ns: i64::try_from(monotonic).ok(), ..Part::default() });
        }
        if unkept > 0 {
            manifest.notes.push(format!(
                "there was no memory to keep {unkept} records of the time before this part, such as definitions of \
                 queues and kernels: what they would name has numbers in it"
            ));
        }
        let models = self.trace.declarations().map(Declarations::models).unwrap_or_default();
        account.files = account_of_files(&folder, &models)?;
        manifest.written = Written { records: Some(events), ..Written::of(account) };
        Ok(manifest)
    }

    /// The run is over. `manifest` is that of all of it; returns the last part's.
    pub fn finish(mut self, manifest: &mut Manifest) -> (TraceFolder, Manifest) {
        let of_kernel = self.settle();
        let left = self.series.finish();
        let (records, bytes) = self.series.so_far();
        manifest.written = Written { records: Some(records), bytes, account: None };
        manifest.notes.extend(self.notes(left.removed));
        let last = self.describe(manifest.clone(), left).unwrap_or_else(|error| {
            // An account that lacks something would make it seem not to belong there.
            let mut last = manifest.clone();
            last.notes.push(format!("{}: {error}", self.trace.path().display()));
            last
        });
        let last = match (of_kernel, last.os.clone()) {
            (Some(report), Some(mut os)) => {
                os::fill(&mut os, report);
                Manifest { os: Some(os), ..last }
            }
            _ => last,
        };
        (self.trace, last)
    }

    /// Returns what the user should know.
    fn notes(&self, removed: u32) -> Vec<String> {
        let mut notes = Vec::new();
        if removed > 0 {
            notes.push(format!(
                "the oldest {removed} of {} parts were removed, as --keep, --keep-for or --max-disk say",
                self.number
            ));
        }
        if let Some(why) = &self.failed {
            notes.push(format!("a part could not be begun or finished when it was time: {why}"));
        }
        notes
    }
}

/// Writes the last manifest of a trace. Where that is a part, older ones make room if they may be removed.
///
/// # Errors
/// When it can't be written.
pub(crate) fn last_manifest(trace: &TraceFolder, manifest: &Manifest) -> io::Result<()> {
    loop {
        match (write_manifest(trace, manifest), trace.series()) {
            // What somebody removed needs no room.
            (Err(_), Some(series)) if trace.path().exists() && series.make_room() => {}
            (done, _) => return done,
        }
    }
}

/// Puts the files of a folder into another, which may not be there: as links, where that is possible.
fn again(from: &Path, to: &Path, access: Access) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    access.need_folder(to)?;
    for entry in entries {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        // What is not complete has another name then.
        let is_whole = entry.file_type()?.is_file() && from.extension().is_none_or(|end| end != "part");
        if is_whole && fs::hard_link(&from, &to).is_err() {
            copy(&from, &to, access)?;
        }
    }
    Ok(())
}
