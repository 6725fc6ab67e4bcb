//! What the tables do not show, and how far to trust them.

use std::fmt;

use super::budget;
use super::device::MAP;
use super::{Form, NOTHING_CHOSEN, Renderer};
use crate::tally::by::NONE;
use crate::tally::energy::LEAST;
use crate::tally::rows::{CaptureRow, ClockError, DeviceRow, SteppedRow, TracingRow, UnknownRow};
use crate::tally::times::average;
use crate::tally::{By, Group, QUANTILE_ERROR, Tally};
use crate::text::wrap;
use hetrace_trace::capture::sentence;
use hetrace_trace::demangle;
use hetrace_trace::text::{bytes, count, duration, duration_f, ended_by, plural};
use hetrace_trace::trace::Exit;

/// In place of an empty name.
const UNNAMED: &str = "(no name)";

impl Renderer<'_> {
    /// What part of the run the tables cover, if not all of it.
    pub fn covered(&mut self) -> fmt::Result {
        let Some(CaptureRow { asked, windows, open_ns, lifetime_ns }) = &self.tally.capture else {
            return Ok(());
        };
        let mut text = String::new();
        sentence(&mut text, asked, *windows, *open_ns, *lifetime_ns)?;
        writeln!(self.out, "{text}\n")
    }

    /// What the tables do not show, and how far to trust them.
    pub fn truth(&mut self) -> fmt::Result {
        let red = self.warnings();
        let notes = self.remarks();
        if red.is_empty() && notes.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        // In Markdown, a line by itself is a part of the one before.
        let bullet = if self.options.form == Form::Markdown { "- " } else { "" };
        let room = self.options.width.filter(|_| self.options.form == Form::Plain);
        for line in red.iter().flat_map(|line| wrap(line, room)) {
            writeln!(self.out, "{bullet}{}", self.style.red(&line))?;
        }
        for line in notes.iter().flat_map(|line| wrap(line, room)) {
            writeln!(self.out, "{bullet}{line}")?;
        }
        Ok(())
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let t = self.tally;
        let mut lines = Vec::new();
        match (t.lost_events, t.lost_calls) {
            (0, 0) => {}
            (0, calls) => {
                lines.push(format!("LOST: {}: no ring buffer to record into", plural(calls, "call")))
            }
            (events, 0) => lines.push(format!("LOST: {}: ring buffer overflow", plural(events, "event"))),
            (events, calls) => lines.push(format!(
                "LOST: {} ({} not, or not wholly, recorded): ring buffer overflow",
                plural(events, "event"),
                plural(calls, "call")
            )),
        }
        if t.lost_processes > 0 {
            let processes = plural(t.lost_processes, "process");
            lines.push(format!("LOST: records of {processes}: shared memory that could not be read"));
        }
        if t.lost_device_commands > 0 {
            lines.push(format!("LOST: {}", plural(t.lost_device_commands, "device command")));
        }
        lines.extend(lost_os(t));
        if t.unwritten_bytes > 0 {
            lines.push(format!("LOST: {} that could not be written", bytes(t.unwritten_bytes)));
        }
        if t.damaged_bytes > 0 {
            lines.push(format!("LOST: {} of damaged records", bytes(t.damaged_bytes)));
        }
        if t.lost_packets > 0 {
            lines.push(format!("LOST: {} of the streams", plural(t.lost_packets, "packet")));
        }
        if let Some(at) = t.cut_at_ns {
            lines.push(format!(
                "CUT: the trace is whole up to {} of {} only",
                duration(at),
                duration(t.duration_ns)
            ));
        }
        lines.extend(t.damages.iter().map(|d| format!("DAMAGED: {d}")));
        let more = t.damaged.saturating_sub(t.damages.len() as u64);
        if more > 0 {
            lines.push(format!("DAMAGED: {more} more places"));
        }
        lines.extend(t.different.iter().map(|d| format!("DIFFERENT: {d}")));
        let more = t.differences.saturating_sub(t.different.len() as u64);
        if more > 0 {
            lines.push(format!("DIFFERENT: {} more; `hetrace check` lists them", plural(more, "file")));
        }
        lines.extend(stepped(t));
        lines.extend(self.open_at_exit());
        if t.manifest_missing {
            lines.push(
                "INCOMPLETE: hetrace has not finished this trace; what else is missing is not known"
                    .to_owned(),
            );
        }
        lines
    }

    /// What was open when the trace ended, and ends of what was open before it.
    fn open_at_exit(&self) -> Vec<String> {
        let t = self.tally;
        let mut lines = Vec::new();
        if t.unfinished_calls > 0 {
            let named = t.unfinished.iter().take(8).map(|r| match (r.calls, r.with.as_slice()) {
                (1, []) => r.name.clone(),
                (n, []) => format!("{} ({n})", r.name),
                (1, with) => format!("{} ({})", r.name, with.join("; ")),
                (n, with) => format!("{} ({n}: {})", r.name, with.join("; ")),
            });
            let mut named: Vec<String> = named.collect();
            if t.unfinished.len() > named.len() {
                named.push("…".to_owned());
            }
            lines.push(unfinished(t.unfinished_calls, "call", &named));
        }
        if !t.open_ranges.is_empty() {
            let named = t.open_ranges.iter().take(8).map(|r| {
                let domain = if r.domain.is_empty() { String::new() } else { format!("{}/", r.domain) };
                let since = duration(r.since_ns);
                let name = if r.name.is_empty() { UNNAMED } else { &r.name };
                format!("{domain}{name} (process {}, thread {}, since {since})", r.pid, r.tid)
            });
            let mut named: Vec<String> = named.collect();
            if t.open_ranges.len() > named.len() {
                named.push("…".to_owned());
            }
            lines.push(unfinished(t.open_ranges.len() as u64, "range", &named));
        }
        if t.unmatched_range_ends > 0 {
            let ends = plural(t.unmatched_range_ends, "end");
            lines.push(format!("INCOMPLETE: {ends} of ranges without a beginning"));
        }
        if t.orphaned_exits > 0 {
            let ends = plural(t.orphaned_exits, "end");
            lines.push(format!("INCOMPLETE: {ends} of calls without a beginning, in no table"));
        }
        lines
    }

    /// What is left out where only a part is counted.
    fn chosen_remarks(&self, lines: &mut Vec<String>) {
        let t = self.tally;
        let Some(chosen) = &t.chosen else { return };
        let nothing = t.host.is_empty() && t.device.is_empty() && t.unfinished.is_empty();
        if nothing && self.blocks > 0 {
            lines.push(NOTHING_CHOSEN.to_owned());
        }
        lines.push(format!(
            "Only a part is counted: {chosen}. Losses and layers' processes are of all; memory is not counted."
        ));
    }

    fn remarks(&self) -> Vec<String> {
        let t = self.tally;
        let mut lines = Vec::new();
        self.chosen_remarks(&mut lines);
        let only_commands = t.by.iter().filter(|by| !by.is_of_calls()).map(|by| by.name());
        let only_commands: Vec<&str> = only_commands.collect();
        if !only_commands.is_empty() {
            lines.push(format!("Calls are not grouped by {}.", only_commands.join(" and ")));
        }
        let unknown = |group: &Group| group.rank.as_deref().is_none_or(|rank| rank == NONE);
        if t.by.contains(&By::Rank) && t.host.iter().all(|row| unknown(&row.group)) {
            lines.push(
                "No process's rank is known: neither a launcher nor a communicator in the trace has it."
                    .to_owned(),
            );
        }
        if self.options.stats {
            lines.push(format!(
                "p50 and p99: relative error ≤ {:.1}%; all else is exact.",
                QUANTILE_ERROR * 100.0
            ));
        }
        if let Some(Exit::Signal(signal)) = t.exit {
            lines.push(format!("The program {}.", ended_by(signal)));
        }
        if t.untimed_commands > 0 {
            let commands = plural(t.untimed_commands, "device command");
            lines.push(format!("{commands} without known times: counted, but not in the times."));
        }
        if t.commands_in_flight > 0 {
            let commands = plural(t.commands_in_flight, "device command");
            lines.push(format!("{commands} in flight when the program ended: not counted."));
        }
        lines.extend(t.tracing.as_ref().map(|row| tracing_remark(row, t.traces.len())));
        lines.extend(budget::remarks(t));
        if t.host_clock_error_ns > 0.0 {
            let error = duration_f(t.host_clock_error_ns);
            lines.push(format!("Host clock error ≤ {error}."));
        }
        lines.extend(clock_remarks(&t.clock_errors));
        if t.commands_without_call > 0 {
            let commands = plural(t.commands_without_call, "device command");
            lines.push(format!("{commands} of which the call is not known."));
        }
        if !t.unknown.is_empty() {
            let named = |row: &UnknownRow| match row.calls {
                1 => row.name.clone(),
                calls => format!("{} ({calls} calls)", row.name),
            };
            let named: Vec<String> = t.unknown.iter().map(named).collect();
            lines.push(format!("Functions the model does not know: {}.", named.join(", ")));
        }
        self.method_remarks(&mut lines);
        lines.extend(t.notes.iter().map(|note| format!("Note: {note}")));
        lines
    }

    /// What holds of the times of collectives.
    fn collective_remarks(&self) -> Vec<String> {
        let t = self.tally;
        let mut lines = Vec::new();
        let mut became: Vec<String> = Vec::new();
        for row in t.collectives.iter().filter(|r| !r.kernels.is_empty()) {
            let kernels: Vec<_> = row.kernels.iter().map(|k| demangle::short(k)).collect();
            let line = format!("{} {}: {}", row.operation, row.element, kernels.join(", "));
            if !became.contains(&line) {
                became.push(line);
            }
        }
        if !became.is_empty() {
            lines.push(format!("Kernels of collectives: {}.", became.join("; ")));
        }
        if t.collectives.iter().any(|r| r.total_ns > 0) {
            lines.push("Collectives: waiting for other ranks is part of the time.".to_owned());
        }
        if t.collectives.iter().any(|r| r.grouped > 0) {
            lines.push(
                "Collectives of a group share commands: time and bandwidth are the group's.".to_owned(),
            );
        }
        lines
    }

    /// How numbers were come by that nobody measured.
    fn method_remarks(&self, lines: &mut Vec<String>) {
        let t = self.tally;
        lines.extend(estimates(t));
        if t.host.iter().any(|row| row.states.is_some()) {
            lines.push(
                "On CPU, Runnable, Blocked: what the calling threads did in successful calls, by the operating system's \
                 events: ran; were ready to run, without a CPU (preempted, or just woken); waited. `hetrace why` has who \
                 had the CPU, and what they waited for."
                    .to_owned(),
            );
        }
        if t.ranges.iter().any(|r| r.commands > 0) {
            let started = t.ranges.iter().any(|r| r.commands > 0 && r.style == "started");
            let whose = if started { "; of started ranges, by the thread that began them" } else { "" };
            lines.push(format!("Ranges: \"On devices\" is the time of what was launched inside{whose}."));
        }
        if t.traffic.iter().any(|r| r.name == MAP && r.bytes > 0) {
            lines.push(
                "Memory traffic: bytes of a map count, though it is not known whether they were moved."
                    .to_owned(),
            );
        }
        self.memory_remarks(lines);
        self.sample_remarks(lines);
        lines.extend(self.collective_remarks());
        let energies = t.device.iter().map(|r| &r.energy).chain(t.ranges.iter().map(|r| &r.energy));
        if energies.flatten().next().is_some() {
            lines.push(format!(
                "Energy: of kernels the average power of readings in which nothing else ran, times their \
                 time, ± by the scatter of the readings; of ranges what devices took meanwhile, ± by the readings \
                 at the ends. ± is for 95%. With fewer than {LEAST} readings nothing is shown."
            ));
        }
        for row in &t.telemetry {
            let reasons = row.throttle.iter().map(|r| format!("{} {:.0}%", r.reason, r.percent));
            let reasons: Vec<String> = reasons.collect();
            if !reasons.is_empty() {
                lines.push(format!(
                    "Clocks of {} {}: {} of the time.",
                    row.index,
                    row.name,
                    reasons.join(", ")
                ));
            }
        }
    }
}

/// What holds of times of commands of which only some were timed.
fn estimates(t: &Tally) -> Vec<String> {
    let sum = |of: fn(&DeviceRow) -> u64| {
        t.device.iter().filter(|r| r.samples.is_some()).map(of).fold(0, u64::saturating_add)
    };
    let (seen, all, unseen) = (sum(|r| r.samples.unwrap_or(0)), sum(|r| r.calls), sum(|r| r.unseen));
    let mut lines = Vec::new();
    if all > 0 {
        lines.push(format!(
            "Times with ± are estimates: {seen} of {all} launches were timed. The truth is within ± with \
             95% probability, as far as launches of a name differ by chance."
        ));
    }
    if unseen > 0 {
        let names = t.device.iter().filter(|r| r.unseen > 0).count() as u64;
        let rows = if names == 1 { "one row".to_owned() } else { format!("{} rows", count(names)) };
        lines.push(format!(
            "±?: {} of {rows} were counted when nothing of the kind was timed any more. Their times are taken to be \
             those of the ones that were timed before: how far that is off is not known.",
            plural(unseen, "launch"),
        ));
    }
    let nodes = t.device.iter().map(|r| r.of_graphs).fold(0, u64::saturating_add);
    if nodes > 0 {
        lines.push(format!(
            "Of graphs: {} of graphs that were timed as a whole (`graph`), or not at all, are counted, and have no times of \
             their own.",
            plural(nodes, "node"),
        ));
    }
    lines
}

/// Streams whose time goes back.
fn stepped(t: &Tally) -> Option<String> {
    const SHOWN: usize = 4;
    let named = |row: &SteppedRow| {
        let (by, at) = (duration(row.largest_ns), duration(row.at_ns));
        let steps = if row.steps > 1 { format!("{} steps, ", count(row.steps)) } else { String::new() };
        format!("{} ({steps}{by} back at {at})", row.stream)
    };
    let mut streams: Vec<String> = t.stepped_streams.iter().take(SHOWN).map(named).collect();
    if t.stepped_streams.len() > SHOWN {
        streams.push("…".to_owned());
    }
    let events = plural(t.steps_back, "event");
    let of = if streams.is_empty() { String::new() } else { format!(": {}", streams.join(", ")) };
    (t.steps_back > 0).then(|| format!("CLOCK: {events} with a time before that of the event before{of}"))
}

/// What was lost of the operating system's events.
fn lost_os(t: &Tally) -> Option<String> {
    let (lost, unseen) = (t.lost_os_events, t.unseen_switches);
    match (lost, unseen) {
        (0, 0) => None,
        (0, unseen) => {
            let switches = plural(unseen, "context switch");
            Some(format!("LOST: {switches} that the kernel did not deliver"))
        }
        (lost, _) => {
            let events = plural(lost, "event");
            Some(format!(
                "LOST: {events} of the operating system: full ring buffers of the kernel, or not written"
            ))
        }
    }
}

/// What recording took, and where it is.
fn tracing_remark(row: &TracingRow, traces: usize) -> String {
    let of = match row.unknown_traces {
        0 => String::new(),
        unknown => format!(" (of {unknown} of {traces} traces it is not known)"),
    };
    // Not `calls_ns`, which sums that were saved before do not have.
    let each =
        average(row.total_ns.saturating_sub(row.besides_ns().saturating_add(row.calibrated_ns())), row.calls);
    let part = |ns: u64, what: &str| match ns {
        0 => String::new(),
        ns => format!(", {} {what}", duration(ns)),
    };
    let timing = part(row.timing_ns, "timing commands");
    let timing = timing + &part(row.collecting_ns, "collecting their times");
    let timing = timing
        + &part(row.driver_ns, "in the driver for timing")
        + &part(row.loading_ns, "starting libraries")
        + &part(row.setup_ns, "making memory for records")
        + &part(row.collector_ns, &collector(row))
        + &part(
            row.collector_once_ns,
            "about in its part of contexts and of the end (calibrated, not measured here)",
        )
        + &part(row.collector_calls_ns, "about in its part of calls (calibrated, not measured here)");
    let inside = duration(row.inside_ns);
    let inside = match row.left_out {
        true => format!("{inside} of it inside calls (subtracted)"),
        false => format!("{inside} of it inside calls (not subtracted)"),
    };
    let (calls, all) = (plural(row.calls, "call"), duration(row.total_ns));
    let each = duration_f(each);
    let range = match row.most_ns > row.least_ns {
        true => format!(" ({} to {})", duration(row.least_ns), duration(row.most_ns)),
        false => String::new(),
    };
    format!(
        "Tracing overhead: about {all}{range}: {calls}, {each} each{timing}{of}; {inside}. Not in it: {}.{} `hetrace cost` \
         measures all.",
        missing(row),
        on_devices(row)
    )
}

/// What the tracer itself gave to devices.
fn on_devices(row: &TracingRow) -> String {
    let time = Some(row.own_device_ns).filter(|ns| *ns > 0).map(|ns| format!(" in {}", duration(ns)));
    let time = time.unwrap_or_default();
    match row.own_commands {
        0 => String::new(),
        commands => format!(
            " On devices: {} of the tracer's own (fills, copies), {}{time} (in no table).",
            plural(commands, "command"),
            bytes(row.own_bytes)
        ),
    }
}

/// Where a collector of device times took what was measured of it.
fn collector(row: &TracingRow) -> String {
    let parts = [(row.collector_start_ns, "to start"), (row.collector_end_ns, "to end")];
    let parts =
        parts.into_iter().filter(|(ns, _)| *ns > 0).map(|(ns, what)| format!("{} {what}", duration(ns)));
    match parts.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "in the collector of device times".to_owned(),
        parts => format!("in the collector of device times ({parts})"),
    }
}

/// What is not in the statement, as it can't be distinguished from the program's own time.
fn missing(row: &TracingRow) -> String {
    let mut missing = vec!["the dynamic loader's work", "caches beyond the nearest"];
    if row.timing_ns > 0 && row.driver_ns == 0 {
        missing.push("what drivers do more for commands that are timed");
    }
    if row.collector_ns > 0 && row.collector_calls_ns == 0 {
        missing.push("the collector's work in each launch");
    }
    missing.join(", ")
}

/// How far to trust devices' times: those of a name in a line.
fn clock_remarks(clocks: &[ClockError]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for clock in clocks {
        if !names.contains(&clock.device.as_str()) {
            names.push(&clock.device);
        }
    }
    for name in names {
        let of_name: Vec<&ClockError> = clocks.iter().filter(|c| c.device == name).collect();
        let whose = match of_name.as_slice() {
            [one] => format!("{name} (process {})", one.pid),
            several => {
                let mut pids: Vec<i64> = several.iter().map(|c| c.pid).collect();
                pids.sort_unstable();
                pids.dedup();
                format!("{name} ({})", plural(pids.len() as u64, "process"))
            }
        };
        let errors = of_name.iter().filter_map(|c| c.error_ns);
        if let Some(worst) = errors.clone().max_by(f64::total_cmp) {
            lines.push(format!("Clock error of {whose} ≤ {}.", duration_f(worst)));
        }
        let known = errors.count();
        let by_api = of_name.iter().filter(|c| c.error_ns.is_none() && c.host_clock).count();
        let unknown = of_name.len() - known - by_api;
        // Of several, those that the line before is not of.
        let some = |n: usize| match n == of_name.len() {
            true => whose.clone(),
            false => format!("{name} (in {n} of {} cases)", of_name.len()),
        };
        if by_api > 0 {
            lines.push(format!("Times of {} are as the API reports them.", some(by_api)));
        }
        if unknown > 0 {
            lines.push(format!("Times of {} are of unknown error.", some(unknown)));
        }
        let corrected = of_name.iter().map(|c| c.corrected).fold(0, u64::saturating_add);
        if corrected > 0 {
            let largest = of_name.iter().map(|c| c.largest_correction_ns).max().unwrap_or(0);
            lines.push(format!(
                "{} of {whose} began up to {} before the call as reported: moved to its beginning.",
                plural(corrected, "command"),
                duration(largest)
            ));
        }
        let impossible = of_name.iter().map(|c| c.impossible_order).fold(0, u64::saturating_add);
        if impossible > 0 {
            let commands = plural(impossible, "command");
            lines.push(format!("{commands} of {whose} began long before the call as reported: left there."));
        }
    }
    lines
}

/// Says how many have no end, and which.
fn unfinished(n: u64, one: &str, named: &[String]) -> String {
    format!("UNFINISHED: {} without an end: {}", plural(n, one), named.join(", "))
}
