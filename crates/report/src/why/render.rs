//! The report as text, what matters most first.

use std::fmt::{self, Write};

use super::rows::{CauseRow, DeviceRow, Distribution, Report};
use crate::text::{Column, Style, Table, more};
use hetrace_trace::text::{bandwidth, count, duration, duration_f, plural};

/// How the text should look.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// ANSI colours.
    pub colour: bool,
    /// Columns of the terminal: the first column of each table gives way to fit in.
    pub width: Option<usize>,
    /// Rows of each table.
    pub top: usize,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { colour: false, width: None, top: 8 }
    }
}

/// Columns when nobody said how many there are.
const WIDTH: usize = 110;
/// Causes that are explained below their table.
const EXPLAINED: usize = 3;
/// What is a smaller part of the run is not worth advice.
const WORTH: f64 = 0.02;

impl Report {
    /// All of it as text.
    pub fn render(&self, options: &TextOptions) -> String {
        let mut text = String::new();
        let style = Style { colour: options.colour };
        // Writing to a string does not fail.
        let _ = Renderer { report: self, out: &mut text, options, style }.write();
        text
    }
}

pub(super) struct Renderer<'a> {
    pub report: &'a Report,
    pub out: &'a mut String,
    pub options: &'a TextOptions,
    pub style: Style,
}

pub(super) fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}

/// A text in lines of so many columns; all but the first begin with `indent`.
pub(super) fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let rest = text.trim_start_matches(' ');
    let mut columns = text.len() - rest.len();
    let mut lines = " ".repeat(columns);
    let mut first = true;
    for word in rest.split(' ') {
        let long = word.chars().count();
        if !std::mem::take(&mut first) && columns + 1 + long > width {
            lines.push('\n');
            lines.push_str(indent);
            columns = indent.len();
        } else if !lines.is_empty() && !lines.ends_with(' ') {
            lines.push(' ');
            columns += 1;
        }
        lines.push_str(word);
        columns += long;
    }
    lines
}

fn of(part: u64, whole: u64) -> String {
    if whole == 0 { String::new() } else { percent(part as f64 / whole as f64) }
}

fn some(n: u64) -> String {
    if n == 0 { String::new() } else { duration(n) }
}

impl Renderer<'_> {
    fn write(&mut self) -> fmt::Result {
        self.missing()?;
        if let Some(covers) = &self.report.covers {
            let text = format!("{covers} What is between two windows counts as idle.\n");
            self.text(&text)?;
        }
        if let Some((from, to)) = self.report.window_ns {
            writeln!(self.out, "Only from {} to {} of {}.\n", duration(from), duration(to), {
                duration(self.report.duration_ns)
            })?;
        }
        if self.report.devices.is_empty() && self.report.verdict.is_none() {
            writeln!(self.out, "The trace has no command on a device that was asked for.\n")?;
        }
        self.whole()?;
        match &self.report.devices[..] {
            [] => {}
            [device] => self.device(device)?,
            _ => self.devices()?,
        }
        self.costs()?;
        self.insides()?;
        self.waits()?;
        self.transfers()?;
        self.path()?;
        match self.report.missing.call_cost_ns {
            None => Ok(()),
            Some(ns) => self.text(&format!(
                "Times of the host are as they were recorded; of each call in them {} are tracing's.",
                duration(ns.into())
            )),
        }
    }

    pub(super) fn heading(&mut self, text: &str) -> fmt::Result {
        let lines = wrapped(text, self.width(), "   ");
        writeln!(self.out, "{}", self.style.bold(&lines))
    }

    /// A text that may be longer than a line.
    pub(super) fn text(&mut self, text: &str) -> fmt::Result {
        writeln!(self.out, "{}", wrapped(text, self.width(), "   "))
    }

    pub(super) fn width(&self) -> usize {
        self.options.width.unwrap_or(WIDTH)
    }

    pub(super) fn table(&mut self, table: &Table) -> fmt::Result {
        let width = self.width();
        table.write(self.out, self.style, Some(width), None)
    }

    /// Says how many rows were left out.
    fn more(&mut self, all: usize) -> fmt::Result {
        let left = all.saturating_sub(self.options.top);
        if left > 0 { writeln!(self.out, "{}", more(left, all)) } else { Ok(()) }
    }

    /// Returns what is missing of calls and commands.
    fn missing_events(&self) -> Vec<String> {
        let m = &self.report.missing;
        let mut lines = Vec::new();
        if m.sampled {
            lines.push(
                "SAMPLED: only some launches were timed, so busy and idle times are not known".to_owned(),
            );
        }
        if m.lost_commands > 0 {
            let commands = plural(m.lost_commands, "device command");
            lines.push(format!("LOST: {commands}: a device may have been busy where it seems idle"));
        }
        if m.lost_events > 0 {
            let by = m.lost_by.iter().take(4).map(|(pid, tid, _)| format!("{pid}.{tid}"));
            let by: Vec<String> = by.collect();
            let by = if by.is_empty() { String::new() } else { format!(" of threads {}", by.join(", ")) };
            let events = plural(m.lost_events, "event");
            lines.push(format!("LOST: {events}{by}: what seems host work there may have been calls"));
        }
        if m.lost_calls > m.lost_events {
            let calls = plural(m.lost_calls, "call");
            lines.push(format!("LOST: {calls}, wholly or in part: what seems host work may have been calls"));
        }
        if m.lost_processes > 0 {
            let processes = plural(m.lost_processes, "process");
            lines.push(format!(
                "LOST: records of {processes}: devices may have been busy, and threads in calls"
            ));
        }
        if m.lost_os_events > 0 || m.unseen_switches > 0 {
            let lost = match m.lost_os_events {
                0 => plural(m.unseen_switches, "context switch"),
                events => plural(events, "event"),
            };
            lines
                .push(format!("LOST: {lost} of the operating system: who had a CPU is not known everywhere"));
        }
        if m.unfinished_calls > 0 {
            lines.push(format!("UNFINISHED: {}", plural(m.unfinished_calls, "call")));
        }
        if m.commands_in_flight > 0 {
            let commands = plural(m.commands_in_flight, "device command");
            lines.push(format!(
                "UNFINISHED: {commands} in flight when the program ended: a device may have been busy where it seems idle"
            ));
        }
        if m.untimed_commands > 0 {
            let commands = plural(m.untimed_commands, "device command");
            lines.push(format!("UNTIMED: {commands}: a device may have been busy where it seems idle"));
        }
        lines
    }

    /// Returns what is missing of the trace as a whole.
    fn missing_parts(&self) -> Vec<String> {
        let m = &self.report.missing;
        let mut lines = Vec::new();
        if m.lost_packets > 0 {
            let packets = plural(m.lost_packets, "packet");
            lines.push(format!(
                "LOST: {packets} of the streams: what seems idle or host work may not have been"
            ));
        }
        if m.damaged > 0 {
            lines.push(format!("DAMAGED: {}", plural(m.damaged, "place")));
        }
        if m.differences > 0 {
            let differences = plural(m.differences, "difference");
            lines.push(format!(
                "DIFFERENT: {differences} from what was written (`hetrace check` lists them): what seems idle or \
                 host work may not have been"
            ));
        }
        if m.steps_back > 0 {
            let steps = plural(m.steps_back, "step");
            lines.push(format!("CLOCK: {steps} back in time: what is reported around there is not certain"));
        }
        if m.given_up > 0 {
            lines.push(format!("INCOMPLETE: {} too many at a time", plural(m.given_up, "command")));
        }
        if m.manifest_missing {
            lines.push(
                "INCOMPLETE: hetrace has not finished this trace; what is missing is not known".to_owned(),
            );
        }
        lines
    }

    fn missing(&mut self) -> fmt::Result {
        let lines = [self.missing_events(), self.missing_parts()].concat();
        for line in &lines {
            let line = wrapped(line, self.width(), "   ");
            writeln!(self.out, "{}", self.style.red(&line))?;
        }
        if lines.is_empty() { Ok(()) } else { writeln!(self.out) }
    }

    fn device(&mut self, d: &DeviceRow) -> fmt::Result {
        let mut heading = format!("{} (device {}) | {}", d.name, d.number, plural(d.queues, "queue"));
        if d.processes > 1 {
            let _ = write!(heading, " | {}", plural(d.processes, "process"));
        }
        let _ = write!(heading, " | {}", plural(d.commands, "command"));
        self.heading(&heading)?;
        if d.total_ns == 0 {
            return writeln!(self.out, "No command with known times.\n");
        }
        writeln!(
            self.out,
            "{} from first to last use: {} busy, {} idle",
            duration(d.total_ns),
            percent(d.utilization),
            percent(1.0 - d.utilization)
        )?;
        let mut table =
            Table::new(vec![Column::left("Time went to"), Column::right("Time"), Column::right("Time(%)")]);
        for (what, ns) in [
            ("computing", d.computing_ns),
            ("copying", d.copying_ns),
            ("both at once", d.both_ns),
            ("idle", d.idle_ns),
        ] {
            table.row(vec![what.to_owned(), duration(ns), of(ns, d.total_ns)]);
        }
        self.table(&table)?;
        self.causes("Why it was idle", d.gaps, &d.causes)?;
        self.shared(d)?;
        self.bounds(d)?;
        self.listed(d)?;
        self.edges(d)?;
        self.figures(d)?;
        writeln!(self.out)
    }

    pub(super) fn causes(&mut self, heading: &str, gaps: u64, causes: &[CauseRow]) -> fmt::Result {
        if causes.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        self.heading(&format!("{heading} | {}", plural(gaps, "gap")))?;
        let mut columns = vec![Column::left("Cause")];
        columns.extend(["Time", "Run(%)", "Gaps", "Longest", "at"].map(Column::right));
        let mut table = Table::new(columns);
        for cause in causes.iter().take(self.options.top) {
            let once = if cause.start_up { " (start-up)" } else { "" };
            table.row(vec![
                format!("{}{once}", cause.cause),
                duration(cause.ns),
                percent(cause.run_share),
                count(cause.gaps),
                duration(cause.longest_ns),
                duration(cause.longest_at_ns),
            ]);
        }
        self.table(&table)?;
        self.more(causes.len())?;
        // Of a device that is all but always busy there is nothing to gain.
        let busy = self.report.verdict.as_ref().is_some_and(|verdict| verdict.always_busy);
        let worth = causes.iter().filter(|cause| cause.run_share >= WORTH && !busy);
        for (n, cause) in worth.take(self.options.top.min(EXPLAINED)).enumerate() {
            self.evidence(n + 1, cause)?;
        }
        Ok(())
    }

    fn evidence(&mut self, n: usize, cause: &CauseRow) -> fmt::Result {
        let thread = cause.around.thread.as_ref().map_or(String::new(), |t| format!(" by thread {t}"));
        let unknown = || "?".to_owned();
        let before = cause.around.command_before.clone().unwrap_or_else(unknown);
        let after = cause.around.command_after.clone().unwrap_or_else(unknown);
        let advice = format!("{n}. {}: {}", cause.cause, cause.remedy);
        writeln!(self.out, "{}", wrapped(&advice, self.width(), "   "))?;
        if !cause.sites.is_empty() {
            let most = cause.sites.iter().map(|row| format!("{} {:.0}%", row.site, row.share * 100.0));
            let line = format!("called at: {}", most.collect::<Vec<_>>().join(", "));
            writeln!(self.out, "   {}", wrapped(&line, self.width().saturating_sub(3), "   "))?;
        }
        if !cause.functions.is_empty() {
            let most =
                cause.functions.iter().map(|row| format!("{} {:.0}%", row.function, row.share * 100.0));
            let line = format!("CPU samples of it: {}", most.collect::<Vec<_>>().join(", "));
            writeln!(self.out, "   {}", wrapped(&line, self.width().saturating_sub(3), "   "))?;
        }
        let line = format!("longest: after {before}, before {after}{thread}");
        let line = wrapped(&line, self.width().saturating_sub(3), "   ");
        writeln!(self.out, "   {}", self.style.dim(&line))
    }

    pub(super) fn shared(&mut self, d: &DeviceRow) -> fmt::Result {
        if d.shared.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        self.heading("Shared by processes | commands that were ready while only another process's ran")?;
        let mut columns = vec![Column::left("Process"), Column::left("The device was of")];
        columns.extend(["Commands", "Time", "Longest", "at"].map(Column::right));
        let mut table = Table::new(columns);
        for row in d.shared.iter().take(self.options.top) {
            table.row(vec![
                row.process.clone(),
                row.other.clone(),
                count(row.commands),
                duration(row.ns),
                duration(row.longest_ns),
                duration(row.longest_at_ns),
            ]);
        }
        self.table(&table)
    }

    fn bounds(&mut self, d: &DeviceRow) -> fmt::Result {
        // Of what is done once, nothing can be said to be gained.
        if d.bounds.is_empty() || (self.report.steady.is_none() && d.utilization < 0.5) {
            return Ok(());
        }
        writeln!(self.out)?;
        let part = if self.report.steady.is_some() { " of the steady part" } else { "" };
        self.heading(&format!("What overlap could save{part} at most, if nothing depended on anything"))?;
        let columns = ["Time", "Saved", "Run(%)"].map(Column::right).into_iter();
        let mut table = Table::new([Column::left("If")].into_iter().chain(columns).collect());
        for bound in &d.bounds {
            table.row(vec![
                bound.what.clone(),
                duration(bound.ns),
                duration(bound.saved_ns),
                percent(bound.saved_share),
            ]);
        }
        self.table(&table)
    }

    pub(super) fn listed(&mut self, d: &DeviceRow) -> fmt::Result {
        if d.listed.is_empty() {
            return Ok(());
        }
        writeln!(self.out)?;
        self.heading("Gaps in the order of time")?;
        for gap in &d.listed {
            let around = match (&gap.around.command_before, &gap.around.command_after) {
                (Some(before), Some(after)) => format!("after {before}, before {after}"),
                _ => String::new(),
            };
            let thread = gap.around.thread.as_ref().map_or(String::new(), |t| format!(" by thread {t}"));
            let line = format!("{:>10} at {}: {around}{thread}", duration(gap.ns), duration(gap.at_ns));
            self.text(&line)?;
            for part in gap.parts.iter().take(self.options.top) {
                let line = format!("{:>14} {}", duration(part.ns), part.cause);
                self.text(&line)?;
            }
            if let Some(more) = gap.parts.len().checked_sub(self.options.top).filter(|n| *n > 0) {
                writeln!(self.out, "{:>14} {}", "", plural(more as u64, "other cause"))?;
            }
        }
        if d.not_listed > 0 {
            writeln!(self.out, "({} more)", count(d.not_listed))?;
        }
        Ok(())
    }

    fn edges(&mut self, d: &DeviceRow) -> fmt::Result {
        let before = if self.report.start_up.is_some() { &[][..] } else { &d.before };
        let edges = [("Before the first command", before), ("After the last command", &d.after[..])];
        let mut first = true;
        for (what, causes) in edges {
            if causes.is_empty() {
                continue;
            }
            if std::mem::take(&mut first) {
                writeln!(self.out)?;
            }
            let whole = causes.iter().map(|c| c.ns).fold(0, u64::saturating_add);
            let named = causes.iter().take(4).map(|c| format!("{} {}", duration(c.ns), c.cause));
            let named: Vec<String> = named.collect();
            self.text(&format!("{what}: {}: {}", duration(whole), named.join("; ")))?;
        }
        Ok(())
    }

    fn figures(&mut self, d: &DeviceRow) -> fmt::Result {
        let times = |d: &Distribution| {
            format!("median {}, 99% {}, most {}", duration(d.p50_ns), duration(d.p99_ns), duration(d.max_ns))
        };
        writeln!(
            self.out,
            "Commands at a time while busy: {:.2} on average, {} at most",
            d.concurrency, d.most_at_a_time
        )?;
        writeln!(
            self.out,
            "Queue depth: {:.2} on average, empty {} of the time",
            d.queue_depth,
            percent(d.queue_empty)
        )?;
        if let Some(latency) = &d.launch_latency {
            let commands = plural(latency.count, "command");
            self.text(&format!("Launch latency on an empty queue: {} ({commands})", times(latency)))?;
        }
        if let Some(waited) = &d.enqueue_to_start {
            self.text(&format!("From enqueuing to the start, of all: {}", times(waited)))?;
        }
        Ok(())
    }

    fn waits(&mut self) -> fmt::Result {
        let waits = &self.report.waits;
        if waits.is_empty() {
            return Ok(());
        }
        self.heading("Waits | what was waited for")?;
        let mut columns = vec![Column::left("Name")];
        columns.extend(
            [
                ("Time", 0),
                ("Calls", 0),
                ("Executing", 0),
                ("Before start", 2),
                ("Wake-up latency", 1),
                ("Returned immediately", 3),
                ("Time(immediate)", 4),
            ]
            .map(|(heading, spare)| Column::right(heading).spare(spare)),
        );
        let mut table = Table::new(columns);
        for w in waits.iter().take(self.options.top) {
            table.row(vec![
                if w.polling { format!("{} (polling)", w.name) } else { w.name.clone() },
                duration(w.ns),
                count(w.calls),
                some(w.busy_ns),
                some(w.before_ns),
                some(w.after_ns),
                if w.immediate == 0 { String::new() } else { count(w.immediate) },
                some(w.immediate_ns),
            ]);
        }
        self.table(&table)?;
        self.more(waits.len())?;
        writeln!(self.out)
    }

    fn transfers(&mut self) -> fmt::Result {
        let transfers = &self.report.transfers;
        if transfers.is_empty() {
            return Ok(());
        }
        self.heading("Asynchronous transfers | t0 enqueued, t1 waited, t2 returned")?;
        let mut columns = vec![Column::left("Kind")];
        columns.extend(
            [
                ("Transfers", 0),
                ("t1-t0", 2),
                ("Done at t1", 3),
                ("Measured", 4),
                ("t2-t0", 1),
                ("Bytes/(t2-t0)", 0),
                ("On the device", 0),
            ]
            .map(|(heading, spare)| Column::right(heading).spare(spare)),
        );
        let mut table = Table::new(columns);
        for t in transfers {
            let of_zero = |n: u64| if n == 0 { String::new() } else { count(n) };
            table.row(vec![
                t.kind.clone(),
                count(t.count),
                some(t.other_work_ns),
                of_zero(t.hidden),
                of_zero(t.measured),
                some(t.seen_ns),
                bandwidth(t.measured_bytes, t.seen_ns),
                bandwidth(t.measured_bytes, t.device_ns),
            ]);
        }
        self.table(&table)?;
        writeln!(self.out)
    }

    fn path(&mut self) -> fmt::Result {
        let Some(path) = &self.report.path else { return Ok(()) };
        let until = duration_f(path.ns as f64);
        let what =
            if self.report.devices.iter().any(|d| d.total_ns > 0) { " of the last command" } else { "" };
        self.heading(&format!("Critical path to the end{what} | {until}"))?;
        let columns = ["Kind", "Name"].map(Column::left).into_iter();
        let mut table = Table::new(columns.chain(["Time", "Path(%)"].map(Column::right)).collect());
        for share in path.shares.iter().take(self.options.top) {
            table.row(vec![share.kind.clone(), share.name.clone(), duration(share.ns), percent(share.share)]);
        }
        self.table(&table)?;
        self.more(path.shares.len())?;
        if path.cut {
            writeln!(
                self.out,
                "Part of the path is not remembered: look at a part of the time (--from, --to)."
            )?;
        }
        Ok(())
    }
}
