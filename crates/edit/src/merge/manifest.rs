//! All manifests as one: lists joined, losses summed, and what became of each trace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};

use super::change::{Change, Clocks};
use super::input::Input;
use super::{Merged, at};
use crate::Error;
use crate::merge::fields::Kind;

/// Members of which the larger counts, the smaller, or the first; other numbers are summed.
const LARGER: [&str; 7] = [
    "end_ns",
    "error_ns",
    "largest_correction_ns",
    "opening_ns",
    "longest_sweep_ns",
    "period_ns",
    "query_max_ns",
];
const SMALLER: [&str; 2] = ["start_ns", "start_realtime_ns"];
const FIRST: [&str; 2] = ["schema", "ticks_per_second"];

/// Commands that are named as that of the whole.
const COMMANDS: usize = 8;
/// Processes that are named in a note.
const NAMED: usize = 4;

/// Refuses traces whose events mean something else.
pub(super) fn check_schemas(inputs: &[Input]) -> Result<(), Error> {
    let schema = |input: &Input| input.member("schema").and_then(Json::as_u64);
    let first = inputs.iter().find_map(|input| Some((input, schema(input)?)));
    let Some((first, expected)) = first else { return Ok(()) };
    match inputs.iter().find(|input| schema(input).is_some_and(|found| found != expected)) {
        None => Ok(()),
        Some(other) => {
            let why = format!(
                "it has form {} (hetrace {}), but {} has form {expected} (hetrace {}); record both with the \
                 same hetrace",
                schema(other).unwrap_or_default(),
                other.version(),
                first.path.display(),
                first.version(),
            );
            Err(Error::Unmergeable { path: other.path.clone(), why })
        }
    }
}

/// What is not as it was, a sentence each.
pub(super) fn notes(inputs: &[Input], changes: &[Change], clocks: &Clocks) -> Vec<String> {
    let mut notes = Vec::new();
    if costs_differ(inputs) {
        notes.push(match cost(inputs) {
            Some(_) => "recording a call did not take the same in all traces: the least is taken off times"
                .to_owned(),
            None => "what recording a call took is not known of all traces: it is taken off none".to_owned(),
        });
    }
    let first = inputs.first().map_or("", |input| input.name.as_str());
    for ((input, change), aligned) in inputs.iter().zip(changes).zip(&clocks.aligned) {
        if *aligned {
            notes.push(format!(
                "times of {} are aligned with those of {first} by the wall clocks of both machines; how far \
                 these were apart is not known",
                input.name
            ));
        }
        if !change.pids.is_empty() {
            let named = change.pids.iter().take(NAMED).map(|(old, new)| format!("{old} is {new} here"));
            let mut named: Vec<_> = named.collect();
            if change.pids.len() > NAMED {
                named.push("and so on".to_owned());
            }
            let named = named.join(", ");
            notes.push(format!(
                "processes of {} have ids that others have, too, and get new ones: {named}",
                input.name
            ));
        }
    }
    notes
}

/// The manifest of the result.
pub(super) fn unite(
    inputs: &[Input],
    changes: &[Change],
    clocks: &Clocks,
    done: &Merged,
) -> Map<String, Json> {
    let mut all = Map::new();
    let mut merged: Vec<Json> = Vec::new();
    let mut exits = Vec::new();
    for ((input, change), aligned) in inputs.iter().zip(changes).zip(&clocks.aligned) {
        merged.extend(origins(input, change, *aligned));
        exits.push(input.member("exit").cloned().unwrap_or(Json::Null));
        let Some(manifest) = &input.manifest else { continue };
        for (name, member) in changed(manifest, change) {
            match all.get_mut(&name) {
                None => _ = all.insert(name, member),
                Some(known) => join(&name, known, member),
            }
        }
    }
    let mut notes: Vec<_> = done.notes.iter().map(|note| json!(note)).collect();
    notes.extend(done.problems.iter().map(|problem| json!(format!("merged: {problem}"))));
    notes.extend(inputs.iter().filter(|input| input.manifest.is_none()).map(|input| {
        json!(format!("{} has no manifest: what it lacks beside the streams is not known", input.name))
    }));
    join("notes", all.entry("notes").or_insert_with(|| json!([])), Json::Array(notes));
    if all.contains_key("schema") {
        all.insert("exit".into(), worst(&exits));
        all.insert("command".into(), command(&merged));
    }
    if let Some(cost) = cost(inputs) {
        all.insert("cost".into(), cost);
    }
    all.insert("merged".into(), Json::Array(merged));
    all.insert("clocks".into(), Json::Array(clocks.known.clone()));
    all
}

/// What recording a call took: of several, the least, so that nothing is taken off that was not
/// there; nothing if it is not known of one.
fn cost(inputs: &[Input]) -> Option<Json> {
    let told = inputs.iter().filter(|input| input.manifest.is_some());
    let mut all = told.map(|input| input.member("cost").and_then(Json::as_object));
    let mut least = all.next()??.clone();
    for cost in all {
        let cost = cost?;
        for (name, known) in least.iter_mut().filter(|(name, _)| *name != "timing") {
            let other = cost.get(name).and_then(Json::as_f64);
            *known = json!(known.as_f64()?.min(other.unwrap_or(0.0)));
        }
        // Sums over calls are what they are.
        for timing in cost.get("timing").and_then(Json::as_array).into_iter().flatten() {
            let all = least.entry("timing").or_insert_with(|| json!([])).as_array_mut()?;
            match all.iter_mut().find(|known| known.get("api") == timing.get("api")) {
                None => all.push(timing.clone()),
                Some(known) => {
                    for name in ["calls", "ns", "collecting_ns"] {
                        if let Some((known, other)) = known.get_mut(name).zip(timing.get(name)) {
                            number(name, known, other);
                        }
                    }
                }
            }
        }
    }
    Some(Json::Object(least))
}

/// Whether [`cost`] is another than one of the traces has.
fn costs_differ(inputs: &[Input]) -> bool {
    let (of_all, known) = (cost(inputs), |input: &Input| input.member("cost").cloned());
    inputs
        .iter()
        .any(|input| known(input).is_some_and(|own| own.is_object() && Some(&own) != of_all.as_ref()))
}

/// How it ended: not known if one is not, else as the first that did not end well.
fn worst(exits: &[Json]) -> Json {
    let well = json!({ "code": 0 });
    let worst = exits.iter().find(|exit| exit.is_null()).or_else(|| exits.iter().find(|exit| **exit != well));
    worst.unwrap_or(&well).clone()
}

/// What was run: different commands, with `+` between.
fn command(merged: &[Json]) -> Json {
    let mut commands: Vec<&Vec<Json>> = Vec::new();
    for command in merged.iter().filter_map(|entry| entry.get("command")?.as_array()) {
        if !command.is_empty() && !commands.contains(&command) {
            commands.push(command);
        }
    }
    let mut words: Vec<Json> = Vec::new();
    for command in commands.iter().take(COMMANDS) {
        if !words.is_empty() {
            words.push(json!("+"));
        }
        words.extend(command.iter().cloned());
    }
    if commands.len() > COMMANDS {
        words.push(json!(format!("+ {} more", commands.len() - COMMANDS)));
    }
    Json::Array(words)
}

/// What the trace is of: one entry, or those that it has if it was merged itself.
fn origins(input: &Input, change: &Change, aligned: bool) -> Vec<Json> {
    let pair = |new: u32, own: u32| json!([new, own]);
    if let Some(Json::Array(entries)) = input.member("merged") {
        let mut entries = entries.clone();
        for entry in entries.iter_mut().filter_map(Json::as_object_mut) {
            again(entry, change);
            add(entry.get_mut("shift_ns"), change.shift);
            if aligned {
                entry.insert("clock_error_ns".into(), Json::Null);
            }
        }
        return entries;
    }
    let member = |name: &str| input.member(name).cloned().unwrap_or(Json::Null);
    let pids = input.survey.threads.keys().filter(|&&pid| pid != 0);
    let tids = change.tids.iter().filter(|((pid, tid), _)| pid != tid);
    vec![json!({
        "of": input.name,
        "host": member("host"),
        "command": member("command"),
        "exit": member("exit"),
        "job": member("job"),
        "start_realtime_ns": member("start_realtime_ns"),
        "shift_ns": change.shift,
        // The same clock, or nobody knows.
        "clock_error_ns": if aligned { Json::Null } else { json!(0) },
        "pids": pids.map(|&pid| pair(change.pid(pid), pid)).collect::<Vec<_>>(),
        "tids": tids.map(|((_, tid), new)| pair(*new, *tid)).collect::<Vec<_>>(),
    })]
}

/// Ids of an entry, which is there already, change again.
fn again(entry: &mut Map<String, Json>, change: &Change) {
    let id = |id: Option<&Json>| id.and_then(Json::as_u64).and_then(|id| u32::try_from(id).ok());
    let mut pids = BTreeSet::new();
    let pairs = entry.get_mut("pids").and_then(Json::as_array_mut);
    for new in pairs.into_iter().flatten().filter_map(|pair| pair.get_mut(0)) {
        let Some(pid) = id(Some(new)) else { continue };
        pids.insert(pid);
        *new = json!(change.pid(pid));
    }
    // By what they were called until now: only ids that had changed are listed.
    let mut tids: BTreeMap<u32, Json> = BTreeMap::new();
    let pairs = entry.get("tids").and_then(Json::as_array).into_iter().flatten();
    tids.extend(pairs.filter_map(|pair| Some((id(pair.get(0))?, pair.clone()))));
    for (&(_, tid), &new) in change.tids.iter().filter(|((pid, tid), _)| pids.contains(pid) && pid != tid) {
        let pair = tids.entry(tid).or_insert_with(|| json!([tid, tid]));
        if let Some(changed) = pair.get_mut(0) {
            *changed = json!(new);
        }
    }
    entry.insert("tids".into(), tids.into_values().collect());
}

fn add(member: Option<&mut Json>, shift: u64) {
    if let Some(member) = member
        && let Some(time) = member.as_u64()
    {
        *member = json!(time.saturating_add(shift));
    }
}

/// The members that are joined, with the ids, numbers and times of the result.
fn changed(manifest: &Map<String, Json>, change: &Change) -> Map<String, Json> {
    let mut manifest = manifest.clone();
    for name in ["exit", "command", "job", "cost", "merged", "clocks", "written"] {
        manifest.remove(name);
    }
    let host = at(Some(&manifest), "/host").cloned();
    for time in ["start_ns", "end_ns"] {
        // 0 is what is not known.
        let known = manifest.get(time).and_then(Json::as_u64).is_some_and(|time| time > 0);
        if known { add(manifest.get_mut(time), change.shift) } else { _ = manifest.remove(time) }
    }
    if let Some(Json::Array(options)) = manifest.get_mut("options") {
        // The program follows, which is elsewhere.
        let end = options.iter().position(|option| option == "--").unwrap_or(options.len());
        options.truncate(end);
    }
    let id = |entry: &Map<String, Json>, name: &str| {
        entry.get(name).and_then(Json::as_u64).and_then(|id| u32::try_from(id).ok())
    };
    for pointer in ["processes", "device_clocks", "losses/threads", "telemetry/devices"] {
        let (first, second) = pointer.split_once('/').unwrap_or((pointer, ""));
        let list = manifest.get_mut(first);
        let list = if second.is_empty() { list } else { list.and_then(|list| list.get_mut(second)) };
        for entry in list.and_then(Json::as_array_mut).into_iter().flatten() {
            let Some(entry) = entry.as_object_mut() else { continue };
            if let Some(pid) = id(entry, "pid") {
                if let Some(tid) = id(entry, "tid") {
                    entry.insert("tid".into(), json!(change.tid(pid, tid)));
                }
                entry.insert("pid".into(), json!(change.pid(pid)));
            }
            if let Some(parent) = id(entry, "parent") {
                entry.insert("parent".into(), json!(change.pid(parent)));
            }
            if pointer == "telemetry/devices"
                && let Some(device) = id(entry, "device")
            {
                entry.insert("device".into(), json!(change.number(Kind::Telemetry, device.into())));
            }
            if pointer == "processes"
                && let Some(host) = &host
                && !entry.contains_key("host")
            {
                entry.insert("host".into(), host.clone());
            }
        }
    }
    manifest
}

/// Joins two members of one name.
fn join(name: &str, known: &mut Json, other: Json) {
    match (known, other) {
        (Json::Object(known), Json::Object(other)) => {
            for (name, member) in other {
                match known.get_mut(&name) {
                    None => _ = known.insert(name, member),
                    Some(known) => join(&name, known, member),
                }
            }
        }
        (Json::Array(known), Json::Array(other)) => {
            // Texts say the same twice, and so does how an API was reached; losses do not.
            let once = matches!(name, "notes" | "interposition" | "sources");
            if name == "options" && *known == other {
                return;
            }
            for entry in other {
                if !(once && known.contains(&entry)) {
                    known.push(entry);
                }
            }
        }
        (Json::String(known), Json::String(other)) => {
            for part in other.split(',') {
                if !known.split(',').any(|known| known == part) {
                    known.push(',');
                    known.push_str(part);
                }
            }
        }
        (known @ Json::Null, other) => *known = other,
        (known @ Json::Number(_), Json::Number(other)) => number(name, known, &Json::Number(other)),
        _ => {}
    }
}

fn number(name: &str, known: &mut Json, other: &Json) {
    if FIRST.contains(&name) {
        return;
    }
    let (is_larger, is_smaller) = (LARGER.contains(&name), SMALLER.contains(&name));
    *known = match (known.as_u64(), other.as_u64()) {
        (Some(a), Some(b)) if is_larger => json!(a.max(b)),
        (Some(a), Some(b)) if is_smaller => json!(if a == 0 || b == 0 { a.max(b) } else { a.min(b) }),
        (Some(a), Some(b)) => json!(a.saturating_add(b)),
        _ => {
            let (a, b) = (known.as_f64().unwrap_or(0.0), other.as_f64().unwrap_or(0.0));
            json!(if is_larger {
                a.max(b)
            } else if is_smaller {
                a.min(b)
            } else {
                a + b
            })
        }
    };
}
