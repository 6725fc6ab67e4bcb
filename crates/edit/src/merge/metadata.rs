//! The description of the result: the stream classes of all traces, equal ones once.

use std::collections::{BTreeMap, BTreeSet};

use hetrace_ctf::class::{EnvValue, EventClass, StreamClass, TraceClass};
use hetrace_ctf::read::OpenError;
use hetrace_format::class::DEVICE_STREAM;
use hetrace_format::files;
use serde_json::Value as Json;

use super::change::Change;
use super::input::Input;
use crate::Error;

/// Refuses APIs that not all traces describe alike: reports could not decide which of two
/// models an event is of.
pub(super) fn check_models(inputs: &[Input]) -> Result<(), Error> {
    let mut known: BTreeMap<String, (&Input, Json)> = BTreeMap::new();
    for input in inputs {
        for name in input.others()? {
            let Some(api) = files::api_of_model(&name) else {
                continue;
            };
            let path = input.files.path().join(&name);
            let bytes = input.files.read(&name).map_err(Error::io(&path))?.unwrap_or_default();
            let model: Json = serde_json::from_slice(&bytes)
                .map_err(|source| Error::Open(OpenError::Io { path: path.clone(), source: source.into() }))?;
            match known.get(api) {
                None => _ = known.insert(api.to_owned(), (input, model)),
                Some((_, first)) if *first == model => {}
                Some((first, _)) => {
                    let why = format!(
                        "its model of {api} is not that of {} (hetrace {} and {}), so the events of one mean \
                         something else than those of the other; record both with the same hetrace, or look \
                         at each by itself",
                        first.path.display(),
                        input.version(),
                        first.version(),
                    );
                    return Err(Error::Unmergeable { path: input.path.clone(), why });
                }
            }
        }
    }
    Ok(())
}

/// Returns the description, without clock and identity; and in `changes` the ids that stream
/// classes get.
pub(super) fn unite(inputs: &[Input], changes: &mut [Change]) -> TraceClass {
    let mut class = match inputs.first() {
        Some(first) => first.trace.class().clone(),
        None => TraceClass::new(hetrace_ctf::class::ByteOrder::Little),
    };
    class.streams.clear();
    class.env = environment(inputs);
    let mut used: BTreeSet<u32> = BTreeSet::new();
    for (input, change) in inputs.iter().zip(changes) {
        for stream in &input.trace.class().streams {
            let one = class.streams.iter_mut().find(|known| are_one(known, stream));
            let id = match one {
                Some(known) => {
                    add_events(known, stream);
                    known.id as u32
                }
                None => {
                    let own = u32::try_from(stream.id).ok().filter(|id| !used.contains(id));
                    let id = own.or_else(|| (0..u32::MAX).find(|id| !used.contains(id))).unwrap_or(0);
                    used.insert(id);
                    class.streams.push(StreamClass { id: id.into(), ..stream.clone() });
                    id
                }
            };
            change.streams.push(id);
        }
    }
    class
}

/// Returns whether two stream classes are of the same things: a trace declares of an API only the events that it
/// has. All but events is the same in every trace of hetrace.
fn are_one(known: &StreamClass, other: &StreamClass) -> bool {
    if known.events == other.events {
        return true;
    }
    let agrees = |event: &EventClass| {
        let mut same = known.events.iter().filter(|k| k.id == event.id || k.name == event.name);
        same.all(|known| known == event)
    };
    let about = about(known);
    about.is_some() && about == self::about(other) && other.events.iter().all(agrees)
}

/// Returns what the events of a stream class are about: devices, or the API that stands before their names.
fn about(stream: &StreamClass) -> Option<&str> {
    if stream.id == u64::from(DEVICE_STREAM) {
        return Some("");
    }
    Some(stream.events.first()?.name.split_once(':')?.0)
}

fn add_events(known: &mut StreamClass, other: &StreamClass) {
    for event in &other.events {
        if known.events.iter().all(|k| k.id != event.id) {
            known.events.push(event.clone());
        }
    }
}

/// Facts on the environment: texts that differ one after the other.
fn environment(inputs: &[Input]) -> Vec<(String, EnvValue)> {
    let mut all: Vec<(String, EnvValue)> = Vec::new();
    for (name, value) in inputs.iter().flat_map(|input| &input.trace.class().env) {
        match all.iter_mut().find(|(known, _)| known == name) {
            None => all.push((name.clone(), value.clone())),
            Some((_, EnvValue::Str(known))) => {
                let EnvValue::Str(text) = value else { continue };
                for part in text.split(',') {
                    if !known.split(',').any(|known| known == part) {
                        known.push(',');
                        known.push_str(part);
                    }
                }
            }
            Some(_) => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(id: u64, events: &[(u64, &str)]) -> StreamClass {
        let event =
            |(id, name): &(u64, &str)| EventClass { id: *id, name: (*name).into(), ..EventClass::default() };
        StreamClass { id, events: events.iter().map(event).collect(), ..StreamClass::default() }
    }

    #[test]
    fn what_two_traces_use_of_an_api_becomes_one() {
        let mut known = stream(1, &[(16, "toy:a_entry"), (17, "toy:a_exit")]);
        let other = stream(2, &[(17, "toy:a_exit"), (19, "toy:b_entry")]);
        assert!(are_one(&known, &other));
        add_events(&mut known, &other);
        assert_eq!(known, stream(1, &[(16, "toy:a_entry"), (17, "toy:a_exit"), (19, "toy:b_entry")]));
    }

    #[test]
    fn what_differs_stays_apart() {
        let known = stream(1, &[(16, "toy:a_entry")]);
        for other in [
            stream(1, &[(16, "toy:b_entry")]),
            stream(1, &[(19, "toy:a_entry")]),
            stream(1, &[(19, "joy:a_entry")]),
            stream(1, &[]),
        ] {
            assert!(!are_one(&known, &other), "{other:?}");
        }
        assert!(are_one(&stream(0, &[(64, "device:queue")]), &stream(0, &[(80, "object:source")])));
        assert!(are_one(&stream(3, &[]), &stream(4, &[])));
    }
}
