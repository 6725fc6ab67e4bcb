//! A part of a long run, and the manifests of all parts as one.

use std::io;

use hetrace_ctf::read::Files;
use serde::{Deserialize, Serialize};

use super::{Manifest, Written};
use crate::files::MANIFEST;

/// Which part of a run a trace is that was begun anew from time to time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rotation {
    /// Its number, from 1.
    pub part: u32,
    /// When it was begun, on the trace's clock; none of the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<u64>,
    /// Parts that were removed by the time this one was finished: the oldest ones.
    #[serde(skip_serializing_if = "is_zero")]
    pub removed: u32,
    /// Records from before, such as definitions, that there was no memory for.
    #[serde(skip_serializing_if = "is_zero_of_many")]
    pub unkept: u64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_zero_of_many(number: &u64) -> bool {
    *number == 0
}

/// Returns the text of a trace's manifest; of a series of parts that of all of them as one. None if there is none.
///
/// # Errors
/// When it can't be read. What can't be understood of a part of a series is left out.
pub fn read(files: &Files) -> io::Result<Option<Vec<u8>>> {
    let last = files.read(MANIFEST)?;
    let mut before = Vec::new();
    let parts = files.parts().count();
    for part in files.parts().take(parts.saturating_sub(1)) {
        before.extend(part.files.read(MANIFEST)?.map(|text| Manifest::parse(&text)).and_then(Result::ok));
    }
    match last.as_deref().map(Manifest::parse) {
        Some(Ok(last)) if files.parts().next().is_some() => {
            join(&before, last).to_json().map(Some).map_err(io::Error::other)
        }
        _ => Ok(last),
    }
}

/// Returns the manifest of a series: the last one's, with what is counted by part added up.
fn join(before: &[Manifest], last: Manifest) -> Manifest {
    let mut all = last;
    all.written.account = None;
    let Some(first) = before.first() else { return all };
    (all.start_ns, all.start_realtime_ns) = (first.start_ns, first.start_realtime_ns);
    all.trimmed.clone_from(&first.trimmed);
    let parts = before.iter().filter_map(|part| part.os.as_ref());
    if let Some(os) = &mut all.os {
        parts.for_each(|part| os.add(part));
        os.account = None;
    }
    join_windows(before, &mut all);
    let mut losses = super::Losses::default();
    let mut notes: Vec<String> = Vec::new();
    let own = (std::mem::take(&mut all.losses), std::mem::take(&mut all.notes));
    let lists = before.iter().map(|part| (part.losses.clone(), part.notes.clone())).chain([own]);
    for (lost, said) in lists {
        losses.add(lost);
        let fresh: Vec<String> = said.into_iter().filter(|note| !notes.contains(note)).collect();
        notes.extend(fresh);
    }
    (all.losses, all.notes) = (losses, notes);
    let written = |part: &Manifest| (part.written.records, part.written.bytes);
    let (records, bytes) = before
        .iter()
        .map(written)
        .fold((all.written.records, all.written.bytes), |(records, bytes), (more, size)| {
            (records.zip(more).map(|(a, b)| a + b), bytes.saturating_add(size))
        });
    all.written = Written { records, bytes, account: None };
    all
}

/// Each part has the capture windows of its time: of one that is in several the last knows most.
fn join_windows(before: &[Manifest], all: &mut Manifest) {
    let Some(last) = &mut all.capture else { return };
    let own = std::mem::take(&mut last.windows);
    let of_parts =
        before.iter().filter_map(|part| part.capture.as_ref()).flat_map(|capture| &capture.windows);
    for window in of_parts.chain(&own) {
        match last.windows.iter_mut().find(|known| known.begin_ns == window.begin_ns) {
            Some(known) => known.clone_from(window),
            None => last.windows.push(window.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Capture, Exit, Losses, Os, Part, Window};

    #[test]
    fn windows_of_parts_are_those_of_the_run() {
        let window = |begin_ns, end_ns| Window { begin_ns, end_ns, ..Window::default() };
        let part = |windows: Vec<Window>| Manifest {
            capture: Some(Capture { windows, ..Capture::default() }),
            ..Manifest::default()
        };
        let parts = [part(vec![window(1, Some(2)), window(3, None)]), part(vec![window(3, None)])];
        let all = join(&parts, part(vec![window(3, Some(9)), window(10, Some(11))]));
        let expected = [window(1, Some(2)), window(3, Some(9)), window(10, Some(11))];
        assert_eq!(all.capture.expect("windows").windows, expected);
    }

    #[test]
    fn parts_are_one() {
        let part = |number: u32, records: u64| Manifest {
            schema: crate::SCHEMA,
            start_ns: Some(u64::from(number) * 10),
            end_ns: Some(u64::from(number) * 10 + 10),
            stopped: number < 3,
            exit: (number == 3).then_some(Exit::Code(0)),
            losses: Losses { records, ..Losses::default() },
            written: Written {
                records: Some(records * 2),
                bytes: records,
                account: Some(Default::default()),
            },
            notes: vec!["all".to_owned(), format!("{number}")],
            trimmed: vec![Part { from_ns: Some(number.into()), ..Part::default() }],
            os: Some(Os { events: records, dropped: 1, account: Some(Default::default()), ..Os::default() }),
            ..Manifest::default()
        };
        let all = join(&[part(1, 5), part(2, 7)], part(3, 1));
        assert_eq!((all.start_ns, all.end_ns, all.exit), (Some(10), Some(40), Some(Exit::Code(0))));
        assert_eq!((all.losses.records, all.written.records, all.written.bytes), (13, Some(26), 13));
        assert_eq!(all.notes, ["all", "1", "2", "3"]);
        assert_eq!(all.trimmed, [Part { from_ns: Some(1), ..Part::default() }]);
        let os = all.os.expect("events of the operating system");
        assert_eq!((os.events, os.dropped, os.account), (13, 3, None));
        assert!(all.written.account.is_none() && !all.stopped);
    }
}
