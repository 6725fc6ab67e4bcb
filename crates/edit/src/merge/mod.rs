//! Several traces as one.
//!
//! ```text
//! input      each trace: whether it is hetrace's; a first reading finds its ids and numbers
//! metadata   stream classes of all, equal ones once; models must be equal
//! change     what changes in each: clock, ids of processes and streams, numbers
//! fields     where in an event that stands
//! stream     packets are copied, and changed in place; their sizes stay
//! manifest   all manifests as one, and who was called what
//! kernel     traces of the operating system beside them stay as they are
//! ```

mod change;
mod fields;
mod input;
mod kernel;
mod manifest;
mod metadata;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hetrace_ctf::account::Account;
use hetrace_ctf::read::PACKED;
use hetrace_ctf::tsdl;
use hetrace_format::files::{self, MANIFEST};
use hetrace_format::manifest::Written;

use crate::output::Output;
use crate::parallel::in_parallel;
use crate::{Error, Form, Watch, account};
use change::Change;
use input::Input;
use stream::Copier;

/// Where fields stand in a packet; see `hetrace_ctf::write::form`.
const UUID: usize = 4;
const STREAM_ID: usize = 20;
const INSTANCE: usize = 24;
const TIME_BEGIN: usize = 32;
const TIME_END: usize = 40;
const SEQ_NUM: usize = 64;
const DISCARDED: usize = 72;
const VPID: usize = 80;
const VTID: usize = 84;

/// What was merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Stream files.
    pub streams: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes of the streams.
    pub bytes: u64,
    /// What is not as it was in one of the traces, a sentence each.
    pub notes: Vec<String>,
    /// Damage of the traces, a sentence each.
    pub problems: Vec<String>,
}

/// Makes one trace of several, in a folder that must not exist.
///
/// All must be traces of hetrace. Times of different machines, or boots, are aligned by
/// their wall clocks; processes with equal ids stay apart.
///
/// # Errors
/// When one is no trace of hetrace, they describe an API differently, something cannot
/// be read or written, or `watch` says to stop; then there is no folder.
pub fn merge(paths: &[PathBuf], folder: &Path, form: Form, watch: Watch<'_>) -> Result<Merged, Error> {
    let output = Output::new(folder)?;
    let mut inputs = paths.iter().map(|path| Input::open(path)).collect::<Result<Vec<_>, _>>()?;
    input::check_parts(&inputs)?;
    metadata::check_models(&inputs)?;
    manifest::check_schemas(&inputs)?;
    for input in &mut inputs {
        input.survey(watch)?;
    }
    let uuid = *uuid::Uuid::new_v4().as_bytes();
    let mut changes: Vec<_> = inputs.iter().map(|_| Change { uuid, ..Change::default() }).collect();
    let mut class = metadata::unite(&inputs, &mut changes);
    let clocks = change::clocks(&inputs, &mut changes)?;
    change::numbers(&inputs, &mut changes)?;
    change::processes(&inputs, &mut changes)?;
    change::streams(&inputs, &mut changes);
    class.uuid = Some(uuid);
    class.clocks = vec![clocks.class.clone()];

    output.folder()?;
    let program = output.scratch().join(kernel::program(&inputs));
    let mut account = Account::default();
    let put = |name: &str, bytes: &[u8]| {
        let path = program.join(name);
        let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
        parent.and_then(|()| fs::write(&path, bytes)).map_err(Error::io(&path))
    };
    let mut write = |name: &str, bytes: &[u8]| {
        account.files.push(account::file(name, bytes));
        put(name, bytes)
    };
    write("metadata", tsdl::print(&class).as_bytes())?;
    let streams = names(&inputs);
    let copy = |index: usize| {
        let nothing = || Ok((Merged::default(), None));
        let Some((input, stream, name)) = streams.get(index) else { return nothing() };
        let (Some(input), Some(change)) = (inputs.get(*input), changes.get(*input)) else {
            return nothing();
        };
        let Some(stream) = input.trace.stream(*stream) else { return nothing() };
        let own = stream.name();
        let original = input.accounts.get(own.strip_suffix(PACKED).unwrap_or(own));
        Copier { input, change, path: program.join(name), form, watch, original }.run(stream)
    };
    let problems = inputs.iter().flat_map(|input| input.problems.iter().cloned()).collect();
    let mut done = Merged { problems, ..Merged::default() };
    for (part, stream) in in_parallel(streams.len(), &copy)? {
        account.streams.extend(stream);
        done.streams += part.streams;
        done.packets += part.packets;
        done.bytes += part.bytes;
        done.problems.extend(part.problems);
    }
    others(&inputs, &mut done.problems, &mut write)?;
    done.notes = manifest::notes(&inputs, &changes, &clocks);
    let os = kernel::copy(&inputs, output.scratch(), (form, watch), &mut done)?;
    let mut manifest = manifest::unite(&inputs, &changes, &clocks, &done);
    manifest.written = Written::of(account);
    manifest.os = os;
    put(MANIFEST, &manifest.to_json().map_err(io::Error::other).map_err(Error::io(folder))?)?;
    output.finish()?;
    Ok(done)
}

/// Returns what each stream file is called: as it was, or with a number behind.
fn names(inputs: &[Input]) -> Vec<(usize, usize, String)> {
    let mut used: BTreeSet<String> = ["metadata", "hetrace"].map(str::to_owned).into();
    let mut all = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        for (index, stream) in input.trace.streams().enumerate() {
            let name = stream.name();
            let name = name.strip_suffix(PACKED).unwrap_or(name);
            let mut new = name.to_owned();
            for n in 2u64.. {
                if used.insert(new.clone()) {
                    break;
                }
                new = format!("{name}-{n}");
            }
            all.push((number, index, new));
        }
    }
    all
}

/// Copies models, blobs, and what else there is beside the streams.
fn others(
    inputs: &[Input],
    problems: &mut Vec<String>,
    write: &mut impl FnMut(&str, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut from: BTreeMap<String, &Input> = BTreeMap::new();
    for input in inputs {
        for name in input.others()? {
            if [MANIFEST, files::PART, hetrace_ctf::archive::List::NAME].contains(&&*name) {
                continue;
            }
            let read = |input: &Input| {
                let path = input.files.path().join(&name);
                input.files.read(&name).map_err(Error::io(&path)).map(Option::unwrap_or_default)
            };
            match from.get(&name) {
                None => {
                    write(&name, &read(input)?)?;
                    from.insert(name, input);
                }
                // Two texts of one model may differ in spaces.
                Some(_) if files::api_of_model(&name).is_some() => {}
                Some(first) => {
                    if read(first)? != read(input)? {
                        let (first, second) = (&first.name, &input.name);
                        problems.push(format!(
                            "{name} differs between {second} and {first}; that of {first} is kept"
                        ));
                    }
                }
            }
        }
    }
    Ok(())
}
