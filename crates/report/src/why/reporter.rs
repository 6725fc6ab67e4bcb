//! Sums in words: rows of devices, causes, waits and the path.

use std::collections::HashMap;

use super::bounds::bounds;
use super::causes::{Cause, Words};
use super::collect::Collector;
use super::device::{CauseSum, Device, Evidence, Place, Title};
use super::path::Step;
use super::rows::{
    Around, BoundRow, CauseRow, DeviceRow, GapPart, GapRow, PathRow, PathShare, SharedRow, SiteRow,
    TransferRow, WaitRow, WorkRow,
};
use super::sampled::most;
use super::savings::is_once;
use super::sharing::Delayed;
use hetrace_trace::demangle;
use hetrace_trace::spans::CommandKind;
use hetrace_trace::titles::queue_title;
use hetrace_trace::trace::{FunctionId, Process, Queue};

/// Makes rows of what has been collected.
pub(super) struct Reporter<'a, 't> {
    pub from: &'a Collector<'t>,
    pub words: Words<'a, 't>,
    /// The trace's first event.
    pub zero: u64,
    /// Names of threads.
    pub names: &'a HashMap<(i64, i64), &'a str>,
    /// What shares of the run are of.
    pub run: u64,
}

/// A part of a whole, from 0 to 1.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Reporter<'_, '_> {
    pub fn since(&self, time: u64) -> u64 {
        time.saturating_sub(self.zero)
    }

    /// The name of a function, or what a command without one does.
    pub fn kernel(&self, kind: CommandKind, function: u32) -> String {
        match self.from.trace.names().kernel(function).map_or("", |k| k.name.as_str()) {
            "" => kind.name().to_owned(),
            name => demangle::short(name).into_owned(),
        }
    }

    /// A queue by its number.
    pub fn queue(&self, number: u32) -> String {
        let queue = self.from.trace.names().queue(number).map(|queue| Queue { priority: 0, ..queue.clone() });
        queue_title(self.from.trace, queue.as_ref(), None)
    }

    fn title(&self, title: Title) -> String {
        let name = self.kernel(title.kind, title.function);
        let queue = match self.from.trace.names().queue(title.queue_number) {
            Some(_) => self.queue(title.queue_number),
            None => format!("queue {:#x}", title.queue),
        };
        format!("{name} on {queue} of process {}", title.pid)
    }

    fn thread(&self, place: Option<usize>) -> Option<String> {
        let thread = self.from.threads.get(place?)?;
        let name = self.names.get(&(thread.pid, thread.tid)).copied().unwrap_or("");
        let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
        Some(format!("{}.{}{name}", thread.pid, thread.tid))
    }

    fn around(&self, evidence: &Evidence) -> Around {
        Around {
            thread: self.thread(evidence.thread),
            command_before: evidence.before.map(|t| self.title(t)),
            command_after: evidence.after.map(|t| self.title(t)),
        }
    }

    pub fn device(&self, device: &Device) -> DeviceRow {
        let (window, sweep) = (self.from.window, &device.sweep);
        let number = device.numbers.iter().copied().min().unwrap_or(0);
        let about = self.from.trace.names().device(number);
        let name = about.map(|d| d.name.clone()).filter(|n| !n.is_empty());
        let first = device.first.unwrap_or(0);
        let total = window.of(first, device.last_end);
        let mut listed: Vec<GapRow> = Vec::new();
        for gap in &device.listed {
            let part = |(cause, ns): &(Cause, u64)| GapPart { ns: *ns, cause: self.words.cause(*cause) };
            let (start, end) = window.clip(gap.evidence.start, gap.evidence.end);
            listed.push(GapRow {
                at_ns: self.since(start),
                ns: end - start,
                around: self.around(&gap.evidence),
                parts: gap.causes.iter().map(part).collect(),
            });
        }
        DeviceRow {
            number,
            name: name.unwrap_or_else(|| "unnamed".to_owned()),
            uuid: about.map_or(String::new(), |d| d.uuid.clone()),
            processes: device.pids.len() as u64,
            queues: device.queue_ends.len() as u64,
            commands: device.commands,
            untimed: device.untimed,
            first_ns: self.since(window.clip(first, device.last_end).0),
            total_ns: total,
            busy_ns: sweep.busy,
            computing_ns: sweep.busy.saturating_sub(sweep.copying),
            copying_ns: sweep.copying.saturating_sub(sweep.both),
            both_ns: sweep.both,
            idle_ns: total.saturating_sub(sweep.busy),
            utilization: share(sweep.busy, total),
            concurrency: share(sweep.commands, sweep.busy),
            most_at_a_time: sweep.peak,
            queue_depth: share(device.waiting_ns, total),
            queue_empty: 1.0 - share(device.waiting.total(), total).min(1.0),
            launch_latency: device.launch.distribution(),
            enqueue_to_start: device.queued.distribution(),
            gaps: device.gaps,
            longest_gap_ns: device.longest_gap,
            causes: self.causes(device, Place::Between),
            before: self.causes(device, Place::Before),
            after: self.causes(device, Place::After),
            shared: self.shared(device),
            bounds: if self.from.sampled { Vec::new() } else { self.bounds(device) },
            listed,
            not_listed: device.not_listed,
        }
    }

    pub fn shared(&self, device: &Device) -> Vec<SharedRow> {
        let processes = &self.from.trace.manifest().processes;
        let name = |pid: i64| {
            let program = processes.iter().find(|p| p.pid == pid).map(Process::program);
            program.filter(|p| !p.is_empty()).map_or_else(|| pid.to_string(), |p| format!("{pid} ({p})"))
        };
        let row = |(&(process, other), delayed): (&(i64, i64), &Delayed)| SharedRow {
            process: name(process),
            other: name(other),
            commands: delayed.commands,
            ns: delayed.ns,
            longest_ns: delayed.longest,
            longest_at_ns: self.since(delayed.longest_at),
        };
        let mut rows: Vec<SharedRow> = device.sharing.delayed.iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
        rows
    }

    fn causes(&self, device: &Device, place: Place) -> Vec<CauseRow> {
        let of_place = device.causes.iter().filter(|((p, _), _)| *p == place);
        let mut causes: Vec<(Cause, CauseSum)> = of_place.map(|((_, c), sum)| (*c, *sum)).collect();
        causes.sort_by_key(|(cause, sum)| (std::cmp::Reverse(sum.ns), *cause));
        let whole = causes.iter().map(|(_, sum)| sum.ns).fold(0, u64::saturating_add);
        let row = |(cause, sum): &(Cause, CauseSum)| {
            let Evidence { start, end, .. } = sum.longest;
            let start_up = place == Place::Between && is_once(&self.words, *cause, sum.gaps);
            CauseRow {
                kind: self.words.kind(*cause).to_owned(),
                cause: self.words.cause(*cause),
                call: self.words.call(*cause),
                ns: sum.ns,
                share: share(sum.ns, whole),
                run_share: share(sum.ns, self.run),
                by_thread: self.words.by(*cause).and_then(|by| self.thread(Some(by as usize))),
                start_up,
                sites: self.sites(device, place, *cause),
                functions: self.functions(device, place, *cause),
                gaps: sum.gaps,
                longest_ns: end - start,
                longest_at_ns: self.since(start),
                around: self.around(&sum.longest),
                remedy: if start_up { self.words.remedy_once(*cause) } else { self.words.remedy(*cause) },
            }
        };
        causes.iter().map(row).collect()
    }

    /// Where the calls were made that a cause names.
    fn sites(&self, device: &Device, place: Place, cause: Cause) -> Vec<SiteRow> {
        let sums = device.sites.get(&(place, cause));
        let most =
            sums.map(|sums| most(sums, |site| self.from.sites.name(site).to_owned())).unwrap_or_default();
        most.into_iter().map(|(site, share)| SiteRow { site, share }).collect()
    }

    /// What the thread did, of a cause that is work of its own.
    fn functions(&self, device: &Device, place: Place, cause: Cause) -> Vec<WorkRow> {
        let sums = device.sampled.get(&place).and_then(|causes| causes.get(&cause));
        let most = sums.map(|sums| self.from.samples.most(sums)).unwrap_or_default();
        most.into_iter().map(|(function, share)| WorkRow { function, share }).collect()
    }

    fn bounds(&self, device: &Device) -> Vec<BoundRow> {
        let (slice, bounds) = bounds(self.from, device);
        let total = slice.ns();
        let row = |(what, ns): (String, u64)| BoundRow {
            what,
            ns,
            speedup: total as f64 / ns as f64,
            saved_ns: total - ns,
            saved_share: share(total - ns, self.run),
        };
        bounds.into_iter().map(row).collect()
    }

    fn function(&self, id: FunctionId) -> (String, String) {
        let functions = self.from.trace.functions();
        let Some(function) = functions.all().get(id.index()) else {
            return ("?".to_owned(), String::new());
        };
        let api = functions.apis().get(function.api).cloned().unwrap_or_default();
        (function.name.clone(), api)
    }

    pub fn waits(&self) -> Vec<WaitRow> {
        let row = |(id, sum): (&FunctionId, &super::waits::WaitSum)| {
            let (name, api) = self.function(*id);
            WaitRow {
                name,
                api,
                threads: sum.threads.len() as u64,
                polling: self.from.facts.get(id.index()).is_some_and(|facts| facts.polls),
                calls: sum.calls,
                ns: sum.ns,
                busy_ns: sum.busy,
                before_ns: sum.before,
                after_ns: sum.after,
                immediate: sum.immediate,
                immediate_ns: sum.immediate_ns,
            }
        };
        let mut rows: Vec<WaitRow> = self.from.waits.sums.iter().map(row).collect();
        rows.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
        rows
    }

    pub fn transfers(&self) -> Vec<TransferRow> {
        let row = |(kind, sum): (&CommandKind, &super::waits::TransferSum)| TransferRow {
            kind: kind.name().to_owned(),
            count: sum.count,
            measured: sum.measured,
            measured_bytes: sum.measured_bytes,
            seen_ns: sum.seen_ns,
            device_ns: sum.device_ns,
            hidden: sum.hidden,
            other_work_ns: sum.other_work_ns,
        };
        let mut rows: Vec<TransferRow> = self.from.waits.transfers.iter().map(row).collect();
        rows.sort_by(|a, b| a.kind.cmp(&b.kind));
        rows
    }

    pub fn path(&self) -> Option<PathRow> {
        let (end, node) = self.from.end;
        if end == 0 {
            return None;
        }
        let ns = self.from.window.of(self.zero, end);
        let mut shares: Vec<PathShare> = Vec::new();
        for (step, ns_of) in self.from.paths.sums(node) {
            let (kind, name) = self.step(step);
            shares.push(PathShare { kind: kind.to_owned(), name, ns: ns_of, share: share(ns_of, ns) });
        }
        shares.sort_by(|a, b| {
            b.ns.cmp(&a.ns).then_with(|| a.kind.cmp(&b.kind)).then_with(|| a.name.cmp(&b.name))
        });
        Some(PathRow { ns, shares, cut: self.from.paths.is_cut(node) })
    }

    fn step(&self, step: Step) -> (&'static str, String) {
        let function = |id| self.function(FunctionId(id)).0;
        match step {
            Step::Host(place) => ("host", self.thread(Some(place as usize)).unwrap_or_default()),
            Step::Blocked(place) => ("blocked", self.thread(Some(place as usize)).unwrap_or_default()),
            Step::Call(id) => ("call", function(id)),
            Step::Launch(id) => ("launch", function(id)),
            Step::Kernel(id) => {
                let name = self.from.trace.names().kernel(id).map_or("?", |k| k.name.as_str());
                ("kernel", demangle::short(name).into_owned())
            }
            Step::Command(kind) => {
                (if kind.moves_memory() { "copy" } else { "kernel" }, kind.name().to_owned())
            }
            Step::Latency => ("device latency", String::new()),
            Step::WakeUp(id) => ("wake-up", function(id)),
            Step::Unknown => ("unknown", String::new()),
        }
    }
}
