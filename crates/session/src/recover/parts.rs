//! Parts of a run whose launcher was killed, perhaps while it went over from one to the next.
//!
//! ```text
//!   0003     finished, but for its last manifest, or not yet: it is counted, and finished
//!   0004     begun: records go there, also if that is not noted yet
//!   .0005.tmp, .0001.old     begun or removed by half: they go
//! ```

use std::fs;
use std::io;
use std::path::Path;

use hetrace_ctf::account::Account;
use hetrace_ctf::read::{Files, PACKED, Part, Trace};
use hetrace_format::files::MANIFEST;

use super::belonging;
use super::kernel::count;
use super::ticket::Ticket;
use crate::account::account_of_files;
use crate::beside::write_manifest;
use crate::layout::PartPlace;
use crate::manifest::{Manifest, Written};
use crate::output::TraceFolder;

/// Returns the ticket of a session's last part, and its manifest: the launcher may have been killed when that was begun and
/// not noted yet. None if it is finished.
pub(crate) fn last(ticket: Ticket, session: &Path) -> Option<(Manifest, Ticket)> {
    let next = |ticket: &Ticket| {
        let place = PartPlace::of(&ticket.trace)?;
        let trace = place.trace(place.number.checked_add(1)?);
        let mut next = ticket.clone();
        next.trace = trace;
        belonging(&next, session).map(|manifest| (manifest, next))
    };
    let own = belonging(&ticket, session);
    let mut found = None;
    let mut at = ticket.clone();
    while let Some((manifest, ticket)) = next(&at) {
        at = ticket.clone();
        found = Some((manifest, ticket));
    }
    found.or_else(|| own.map(|manifest| (manifest, ticket)))
}

/// Finishes the parts before that of a session which are not, and removes what was begun or removed by half.
pub(super) fn complete(trace: &TraceFolder, session: &Path) {
    let Some(place) = PartPlace::of(trace.path()) else { return };
    for number in (1..place.number).rev() {
        if !finish(&trace.elsewhere(place.trace(number)), session) {
            break;
        }
    }
    for entry in fs::read_dir(&place.series).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_str().and_then(|name| name.strip_prefix('.'));
        let number = |end: &str| name.and_then(|name| name.strip_suffix(end)).and_then(Part::number);
        if number(".old").is_some() || number(".tmp").is_some_and(|number| number > place.number) {
            // What stays is hidden: nobody takes it for a part.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Finishes a part. Returns whether it was not.
fn finish(trace: &TraceFolder, session: &Path) -> bool {
    let text = fs::read(trace.path().join(MANIFEST)).ok();
    let Some(mut manifest) = text.and_then(|text| Manifest::parse(&text).ok()) else { return false };
    if manifest.is_finished() || manifest.session.as_deref() != Some(session) {
        return false;
    }
    match account(trace) {
        Ok(written) => manifest.written = written,
        Err(error) => manifest.notes.push(format!("this part has no account: {error}")),
    }
    (manifest.session, manifest.stopped) = (None, true);
    manifest.notes.push(
        "hetrace was killed when it went over to the next part: what was in this one was counted afterwards, and what was \
         dropped while it was written is not known"
            .to_owned(),
    );
    write_manifest(trace, &manifest).is_ok()
}

/// Counts what is in a part, and cuts off a packet that was not written whole.
fn account(trace: &TraceFolder) -> io::Result<Written> {
    let wrong = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let files = Files::open(trace.path()).map_err(|error| wrong(&error))?;
    let read = Trace::from_files(&files).map_err(|error| wrong(&error))?;
    let part = Part::of(trace.path()).unwrap_or_default();
    let mut account = Account { files: account_of_files(trace.path(), &[])?, ..Account::default() };
    let mut events = 0;
    for stream in read.streams() {
        let plain = stream.name().strip_suffix(PACKED).unwrap_or(stream.name());
        let repeated = part.earlier.get(plain).map_or(0, |repeated| repeated.packets);
        let Some(seen) = count(trace.path(), stream, repeated)? else { continue };
        events += seen.events;
        account.streams.push(seen.account);
    }
    Ok(Written { records: Some(events), ..Written::of(account) })
}
