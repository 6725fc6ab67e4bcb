//! The description of the result: the stream classes of all traces, equal ones once.

use std::collections::{BTreeMap, BTreeSet};

use hetrace_ctf::class::{EnvValue, StreamClass, TraceClass};
use hetrace_ctf::read::OpenError;
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
            // All else is the same in every trace of hetrace.
            let is_same = |known: &&StreamClass| known.events == stream.events;
            let id = match class.streams.iter().find(is_same) {
                Some(known) => known.id as u32,
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
