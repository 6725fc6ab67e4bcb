//! The operating system's events of a recording whose launcher was killed: what had been written is there, and gets its
//! account.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use hetrace_ctf::account::{Account, Counter, FileAccount, PacketFacts, StreamAccount};
use hetrace_ctf::read::{Files, PACKED, PacketReader, Part, StreamReader, Trace};
use hetrace_format::files::{MANIFEST, METADATA};

use crate::beside::write_manifest;
use crate::layout::{self, above_program};
use crate::manifest::{Manifest, Os};
use crate::output::TraceFolder;

/// Completes what a manifest says of the operating system's events beside a program's trace, and the manifests of parts
/// before, which may lack that if the launcher was killed while these were finished.
pub(super) fn complete(manifest: &mut Manifest, trace: &TraceFolder) {
    let Some(folder) = above_program(trace.path()) else { return };
    if manifest.os.is_none() {
        return;
    }
    let kernel = layout::folders(folder).1;
    match finish(&kernel, manifest) {
        Err(_) if !kernel.join(METADATA).is_file() => manifest.notes.push(
            "events of the operating system are missing in this part: hetrace was killed before it had written any of it"
                .to_owned(),
        ),
        Ok(()) => manifest.notes.push(
            "of the events of the operating system those of the last second or so are missing, which were not written when \
             hetrace was killed"
                .to_owned(),
        ),
        Err(error) => {
            manifest.notes.push(format!("events of the operating system have no account: {error}"));
        }
    }
    for part in before(folder) {
        if !complete_part(&trace.elsewhere(layout::folders(&part).0)) {
            break;
        }
    }
}

/// Returns the folders of the parts before one, the last one first.
fn before(part: &Path) -> impl Iterator<Item = PathBuf> {
    let name = part.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (number, series) = (Part::number(name).unwrap_or(1), part.parent().map(Path::to_owned));
    (1..number).rev().filter_map(move |number| Some(series.as_ref()?.join(Part::name(number))))
}

/// Completes the manifest of a part that is finished but for this. Returns whether there was something to do.
fn complete_part(trace: &TraceFolder) -> bool {
    let text = fs::read(trace.path().join(MANIFEST)).ok();
    let Some(mut manifest) = text.and_then(|text| Manifest::parse(&text).ok()) else { return false };
    let lacks = manifest.os.as_ref().is_some_and(|os| os.account.is_none());
    let kernel = above_program(trace.path()).map(|folder| layout::folders(folder).1);
    let Some(kernel) = kernel.filter(|_| lacks) else { return false };
    finish(&kernel, &mut manifest).and_then(|()| write_manifest(trace, &manifest)).is_ok()
}

/// Counts what is in a trace of the operating system's events, and cuts off a packet that was not written whole.
fn finish(kernel: &Path, manifest: &mut Manifest) -> io::Result<()> {
    let Some(os) = &mut manifest.os else { return Ok(()) };
    let wrong = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let files = Files::open(kernel).map_err(|error| wrong(&error))?;
    let trace = Trace::from_files(&files).map_err(|error| wrong(&error))?;
    let part = Part::of(kernel).unwrap_or_default();
    let mut account = Account::default();
    let (mut events, mut dropped) = (0, 0);
    for stream in trace.streams() {
        let plain = stream.name().strip_suffix(PACKED).unwrap_or(stream.name());
        let repeated = part.earlier.get(plain).map_or(0, |repeated| repeated.packets);
        let Some(seen) = count(kernel, stream, repeated)? else { continue };
        events += seen.events;
        dropped += seen.account.discarded;
        account.streams.push(seen.account);
    }
    for name in [METADATA, Part::FILE] {
        if let Ok(text) = fs::read(kernel.join(name)) {
            account.files.push(FileAccount::of(name, &text));
        }
    }
    let bytes = account.streams.iter().map(|stream| stream.stored).sum();
    let known = std::mem::take(os);
    *os = Os { events, bytes, dropped, account: Some(account), ..known };
    Ok(())
}

/// What is in a stream.
pub(super) struct Seen {
    pub account: StreamAccount,
    /// Without those that are repeated.
    pub events: u64,
}

/// Counts a stream of the trace in a folder; none if there is no whole packet in it.
pub(super) fn count(folder: &Path, stream: StreamReader<'_>, repeated: u64) -> io::Result<Option<Seen>> {
    let name = stream.name().to_owned();
    let path = folder.join(&name);
    let mut reader = PacketReader::new(stream);
    let (mut counter, mut packets, mut fresh) = (Counter::default(), 0, 0);
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(|error| io::Error::other(format!("{name}: {error}")))?;
        if packet.cut && !name.ends_with(PACKED) {
            OpenOptions::new().write(true).open(&path)?.set_len(packet.info.offset)?;
            break;
        }
        let mut events = 0;
        while let Some(event) = reader.next_event() {
            event.map_err(|error| io::Error::other(format!("{name}: {error}")))?;
            events += 1;
        }
        let facts = PacketFacts {
            class: packet.class.id,
            seq_num: packet.info.seq_num.unwrap_or(0),
            discarded: packet.info.events_discarded.unwrap_or(0),
            events: Some(events),
        };
        counter.packet(reader.bytes(), facts);
        fresh += if packets < repeated { 0 } else { events };
        packets += 1;
    }
    let stored = fs::metadata(&path)?.len();
    let plain = name.strip_suffix(PACKED).unwrap_or(&name);
    Ok(counter.account(plain, stored).map(|account| Seen { account, events: fresh }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_before_one_are_those_with_lower_numbers() {
        let all: Vec<PathBuf> = before(Path::new("/job/0003")).collect();
        assert_eq!(all, [PathBuf::from("/job/0002"), PathBuf::from("/job/0001")]);
        assert_eq!(before(Path::new("/job")).count(), 0);
    }
}
