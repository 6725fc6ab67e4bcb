//! All manifests as one: lists joined, losses summed, and what became of each trace.
//!
//! Each member has its own rule in [`join`], which takes a manifest apart completely: a member that
//! the format gets cannot be forgotten here. Members that this version does not know are left
//! out, and a note names them: how they are to be joined is not known either.

use std::collections::{BTreeMap, BTreeSet};

use hetrace_format::Manifest;
use hetrace_format::files::INSIDE;
use hetrace_format::manifest::{Cost, Exit, Origin};

use super::Merged;
use super::change::{Change, Clocks};
use super::input::Input;
use crate::Error;
use crate::account::LEFT_OUT;
use crate::merge::fields::Kind;

/// Commands that are named as that of the whole.
const COMMANDS: usize = 8;
/// Processes and members that are named in a note.
const NAMED: usize = 4;

/// Refuses traces whose events mean something else.
pub(super) fn check_schemas(inputs: &[Input]) -> Result<(), Error> {
    let schema = |input: &Input| Some(input.manifest.as_ref()?.schema).filter(|schema| *schema != 0);
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

/// Returns what differs from the inputs, a sentence each.
pub(super) fn notes(inputs: &[Input], changes: &[Change], clocks: &Clocks) -> Vec<String> {
    let mut notes = Vec::new();
    if costs_differ(inputs) {
        notes.push(match cost(inputs) {
            Some(_) => "the tracing overhead per call differs between the traces: the smallest is subtracted from times"
                .to_owned(),
            None => "the tracing overhead per call is not known for all traces: none is subtracted".to_owned(),
        });
    }
    let first = inputs.first().map_or("", |input| input.name.as_str());
    for ((input, change), aligned) in inputs.iter().zip(changes).zip(&clocks.aligned) {
        if *aligned {
            notes.push(format!(
                "times of {} are aligned with those of {first} by the wall clocks of both machines; their \
                 offset is unknown",
                input.name
            ));
        }
        if !input.files.list(INSIDE).is_empty() {
            notes.push(format!("what went on inside of kernels of {}: {LEFT_OUT}", input.name));
        }
        if !input.unknown.is_empty() {
            notes.push(format!(
                "the manifest of {} has members unknown to this version of hetrace; they are left out: {}",
                input.name,
                some(input.unknown.iter().cloned())
            ));
        }
        if !change.pids.is_empty() {
            let named = some(change.pids.iter().map(|(old, new)| format!("{old} → {new}")));
            notes.push(format!(
                "processes of {} have the same ids as others and get new ones: {named}",
                input.name
            ));
            if input.manifest.as_ref().is_some_and(|manifest| manifest.samples.is_some()) {
                notes
                    .push(format!("samples of processors of {} keep the ids that processes had", input.name));
            }
        }
    }
    notes
}

/// Returns some of many, as one text.
fn some(mut all: impl Iterator<Item = String>) -> String {
    let mut named: Vec<String> = all.by_ref().take(NAMED).collect();
    if all.next().is_some() {
        named.push("…".to_owned());
    }
    named.join(", ")
}

/// Returns the manifest of the result.
pub(super) fn unite(inputs: &[Input], changes: &[Change], clocks: &Clocks, done: &Merged) -> Manifest {
    let mut all: Option<Manifest> = None;
    let mut origins: Vec<Origin> = Vec::new();
    let mut exits = Vec::new();
    for ((input, change), aligned) in inputs.iter().zip(changes).zip(&clocks.aligned) {
        origins.extend(self::origins(input, change, *aligned));
        exits.push(input.manifest.as_ref().and_then(|manifest| manifest.exit));
        let Some(manifest) = &input.manifest else { continue };
        let manifest = changed(manifest, change);
        match &mut all {
            None => all = Some(manifest),
            Some(all) => join(all, manifest),
        }
    }
    let mut all = all.unwrap_or_default();
    let problems = done.problems.iter().map(|problem| format!("merged: {problem}"));
    let without = inputs
        .iter()
        .filter(|input| input.manifest.is_none())
        .map(|input| format!("{} has no manifest: its losses are unknown", input.name));
    join_once(&mut all.notes, done.notes.iter().cloned().chain(problems).chain(without));
    all.exit = worst(&exits);
    let finished = |input: &Input| input.manifest.as_ref().is_some_and(Manifest::is_finished);
    all.stopped = all.exit.is_none() && inputs.iter().all(finished);
    all.lifetime_ns = None;
    all.processor_ns = None;
    all.command = command(&origins);
    all.job.clear();
    all.cost = cost(inputs);
    all.merged = Some(origins);
    all.clocks = Some(clocks.known.clone());
    all
}

/// Returns what recording a call took: of several, the least, so that nothing is taken off that was not
/// there; none if it is not known of one.
fn cost(inputs: &[Input]) -> Option<Cost> {
    let mut all = inputs.iter().filter_map(|input| input.manifest.as_ref()).map(|m| m.cost.as_ref());
    let mut least = all.next()??.clone();
    for cost in all {
        let cost = cost?;
        least.at_most(cost);
        cost.timing.iter().for_each(|timing| least.add_timing(timing));
    }
    Some(least)
}

/// Returns whether [`cost`] of a call is another than one of the traces has. What timing commands took is summed,
/// and so another as soon as there are two.
fn costs_differ(inputs: &[Input]) -> bool {
    let of_a_call = |cost: &Cost| Cost { timing: Vec::new(), ..cost.clone() };
    let of_all = cost(inputs).as_ref().map(of_a_call);
    let mut known = inputs.iter().filter_map(|input| input.manifest.as_ref()?.cost.as_ref());
    known.any(|own| Some(of_a_call(own)) != of_all)
}

/// Returns how it ended: not known if one is not, else as the first that did not end well.
fn worst(exits: &[Option<Exit>]) -> Option<Exit> {
    let well = Some(Exit::Code(0));
    let worst = exits.iter().find(|exit| exit.is_none()).or_else(|| exits.iter().find(|exit| **exit != well));
    worst.copied().unwrap_or(well)
}

/// Returns what was run: different commands, with `+` between.
fn command(origins: &[Origin]) -> Vec<String> {
    let mut commands: Vec<&Vec<String>> = Vec::new();
    for command in origins.iter().filter_map(|origin| origin.command.as_ref()) {
        if !command.is_empty() && !commands.contains(&command) {
            commands.push(command);
        }
    }
    let mut words: Vec<String> = Vec::new();
    for command in commands.iter().take(COMMANDS) {
        if !words.is_empty() {
            words.push("+".to_owned());
        }
        words.extend(command.iter().cloned());
    }
    if commands.len() > COMMANDS {
        words.push(format!("+ {} more", commands.len() - COMMANDS));
    }
    words
}

/// Returns what the trace is of: one entry, or those that it has if it was merged itself.
fn origins(input: &Input, change: &Change, aligned: bool) -> Vec<Origin> {
    let manifest = input.manifest.as_ref();
    if let Some(origins) = manifest.and_then(|manifest| manifest.merged.as_ref()) {
        let again = |origin: &Origin| {
            let mut origin = again(origin, change);
            origin.shift_ns = origin.shift_ns.saturating_add(change.shift);
            if aligned {
                origin.clock_error_ns = None;
            }
            origin
        };
        return origins.iter().map(again).collect();
    }
    let pids = input.survey.threads.keys().filter(|&&pid| pid != 0);
    let tids = change.tids.iter().filter(|((pid, tid), _)| pid != tid);
    vec![Origin {
        of: input.name.clone(),
        host: manifest.map(|m| m.host.clone()),
        command: manifest.map(|m| m.command.clone()),
        exit: manifest.and_then(|m| m.exit),
        job: manifest.map(|m| m.job.clone()).filter(|job| !job.is_empty()),
        start_realtime_ns: manifest.and_then(|m| m.start_realtime_ns),
        shift_ns: change.shift,
        // The same clock, or nobody knows.
        clock_error_ns: (!aligned).then_some(0),
        pids: pids.map(|&pid| (change.pid(pid), pid)).collect(),
        tids: tids.map(|((_, tid), new)| (*new, *tid)).collect(),
    }]
}

/// Returns an origin whose ids, which are those of a merged trace already, change again.
fn again(origin: &Origin, change: &Change) -> Origin {
    let known: BTreeSet<u32> = origin.pids.iter().map(|(new, _)| *new).collect();
    let pids = origin.pids.iter().map(|&(new, own)| (change.pid(new), own)).collect();
    // By what they were called until now: only ids that had changed are listed.
    let mut tids: BTreeMap<u32, (u32, u32)> = origin.tids.iter().map(|pair| (pair.0, *pair)).collect();
    for (&(_, tid), &new) in change.tids.iter().filter(|((pid, tid), _)| known.contains(pid) && pid != tid) {
        tids.entry(tid).or_insert((tid, tid)).0 = new;
    }
    Origin { pids, tids: tids.into_values().collect(), ..origin.clone() }
}

/// Returns a manifest with the ids, numbers and times of the result.
fn changed(manifest: &Manifest, change: &Change) -> Manifest {
    let mut manifest = manifest.clone();
    let host = manifest.host.clone();
    for time in [&mut manifest.start_ns, &mut manifest.end_ns] {
        // 0 is what is not known.
        *time = time.filter(|time| *time > 0).map(|time| time.saturating_add(change.shift));
    }
    // The program follows, which is elsewhere.
    let end = manifest.options.iter().position(|option| option == "--");
    manifest.options.truncate(end.unwrap_or(manifest.options.len()));
    let pid = |pid: &mut i64| {
        if let Ok(own) = u32::try_from(*pid) {
            *pid = change.pid(own).into();
        }
    };
    for process in &mut manifest.processes {
        pid(&mut process.pid);
        process.parent.iter_mut().for_each(pid);
        if process.host.is_empty() {
            process.host.clone_from(&host);
        }
    }
    manifest.device_clocks.iter_mut().for_each(|clock| pid(&mut clock.pid));
    manifest.rotation = None;
    // A window is one of a run, and of the other runs it says nothing; its events are in the streams.
    if manifest.flight.take().is_some() {
        manifest.notes.push("one of the merged traces is a snapshot of a flight recording".to_owned());
    }
    if let Some(capture) = manifest.capture.take() {
        manifest
            .notes
            .push(format!("one of the merged traces covers a capture window only ({})", capture.asked));
    }
    for thread in &mut manifest.losses.threads {
        if let (Ok(own), Ok(tid)) = (u32::try_from(thread.pid), u32::try_from(thread.tid)) {
            thread.tid = change.tid(own, tid).into();
        }
        pid(&mut thread.pid);
    }
    for device in manifest.telemetry.iter_mut().flat_map(|telemetry| &mut telemetry.devices) {
        let new = change.number(Kind::Telemetry, device.device.into());
        device.device = u32::try_from(new).unwrap_or(device.device);
    }
    manifest
}

/// Joins the manifest of another trace.
#[allow(clippy::too_many_lines, reason = "a line for each member")]
fn join(all: &mut Manifest, other: Manifest) {
    let Manifest {
        // All are of one schema, see `check_schemas`.
        schema,
        version,
        host,
        start_ns,
        end_ns,
        start_realtime_ns,
        session,
        options,
        max_overhead,
        interposition,
        processes,
        losses,
        device_clocks,
        host_clock,
        notes,
        telemetry,
        samples,
        trimmed,
        // Of all together, in `unite`.
        command: _,
        exit: _,
        stopped: _,
        cost: _,
        merged: _,
        clocks: _,
        // Of one launcher: it is in the origins.
        job: _,
        // Of one program.
        lifetime_ns: _,
        processor_ns: _,
        // Taken by `changed`.
        capture: _,
        flight: _,
        rotation: _,
        // In a trace beside it, which is left out.
        os: _,
        // Of what comes to be written.
        written: _,
    } = other;
    if all.schema == 0 {
        all.schema = schema;
    }
    join_text(&mut all.version, &version);
    join_text(&mut all.host, &host);
    all.start_ns = least(all.start_ns, start_ns);
    all.start_realtime_ns =
        least(all.start_realtime_ns.filter(|t| *t > 0), start_realtime_ns.filter(|t| *t > 0));
    all.end_ns = all.end_ns.max(end_ns);
    all.session = all.session.take().or(session);
    // The one that allowed most: no thread had more.
    all.max_overhead = all.max_overhead.into_iter().chain(max_overhead).reduce(f64::max);
    if all.options != options {
        all.options.extend(options);
    }
    join_once(&mut all.interposition, interposition);
    all.processes.extend(processes);
    all.losses.add(losses);
    all.device_clocks.extend(device_clocks);
    all.host_clock.error_ns = all.host_clock.error_ns.max(host_clock.error_ns);
    if all.host_clock.ticks_per_second == 0.0 {
        all.host_clock.ticks_per_second = host_clock.ticks_per_second;
    }
    join_once(&mut all.notes, notes);
    match (&mut all.telemetry, telemetry) {
        (Some(known), Some(other)) => known.add(other),
        (known, other) => *known = known.take().or(other),
    }
    match (&mut all.samples, samples) {
        (Some(known), Some(other)) => known.add(other),
        (known, other) => *known = known.take().or(other),
    }
    all.trimmed.extend(trimmed);
}

/// Returns the smaller of those that are known.
fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// Adds what a list does not have: texts say the same twice, and so does how an API was reached.
fn join_once<T: PartialEq>(all: &mut Vec<T>, other: impl IntoIterator<Item = T>) {
    for entry in other {
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
}

/// Adds the parts of a text that it does not have, with a comma between.
fn join_text(all: &mut String, other: &str) {
    for part in other.split(',').filter(|part| !part.is_empty()) {
        if !all.split(',').any(|known| known == part) {
            if !all.is_empty() {
                all.push(',');
            }
            all.push_str(part);
        }
    }
}
