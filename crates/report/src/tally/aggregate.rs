//! Sums of one or several traces, and the tables that are made of them.

use serde::{Deserialize, Serialize};

use super::by::{By, Group};
use super::cells::{DeviceCell, EnergyCell, HostCell, RangeCell, TrafficCell, merge};
use super::estimate::Samples;
use super::rows::{
    ApiTotals, DeviceRow, ErrorRow, HostRow, MemoryRow, RangeRow, SCHEMA, Tally, TraceRow, TracingRow,
    TrafficRow, UnfinishedRow,
};
use super::times::average;
use hetrace_trace::demangle;
use hetrace_trace::trace::Exit;

/// Damages and notes that are kept.
const KEPT: usize = 16;

/// Sums of one or several traces. They add up: counts and sums exactly, and
/// distributions as exactly as they are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    /// What is no sum over calls or commands; its tables of these are empty.
    pub(super) rest: Tally,
    pub(super) host: Vec<HostCell>,
    pub(super) device: Vec<DeviceCell>,
    pub(super) traffic: Vec<TrafficCell>,
    pub(super) ranges: Vec<RangeCell>,
    pub(super) energy: Vec<EnergyCell>,
    /// What makes each device with commands another one.
    pub(super) devices: Vec<String>,
    /// Of which ranks it is; more than one only if rows are not grouped by it.
    pub(super) ranks: Vec<String>,
}

/// Aggregates that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unlike {
    /// Rows are of other things.
    #[error("rows of one are grouped by {one}, of the other by {other}")]
    By {
        /// What those of one are grouped by.
        one: String,
        /// And those of the other.
        other: String,
    },
    /// Times are with and without what tracing cost.
    #[error("times of one are without the cost of tracing, of the other with it (--gross)")]
    Cost,
}

impl Aggregate {
    /// What rows are grouped by; by API and name if there is nothing.
    pub fn by(&self) -> &[By] {
        &self.rest.by
    }

    /// What was chosen to be counted, in words; everything if there is none.
    pub fn chosen(&self) -> Option<&str> {
        self.rest.chosen.as_deref()
    }

    /// Whether what tracing took is known and left out of times of calls.
    pub fn is_net(&self) -> bool {
        self.rest.tracing.as_ref().is_some_and(|t| t.left_out)
    }

    /// What each trace is of.
    pub fn traces(&self) -> &[TraceRow] {
        &self.rest.traces
    }

    /// Groups rows by the machine or the rank, too: as far as all of them
    /// are of one, which the file knows. Whether that could be done.
    pub fn distinguish(&mut self, by: &[By]) -> bool {
        for by in by.iter().copied().filter(|by| !self.rest.by.contains(by)).collect::<Vec<_>>() {
            let text = match by {
                By::Host => self.rest.traces.iter().map(|t| &t.host).collect::<Vec<_>>(),
                By::Rank => self.ranks.iter().collect(),
                By::Name | By::Api if self.rest.by.is_empty() => continue,
                _ => return false,
            };
            let [text] = text.as_slice() else { return false };
            // A trace of several machines, whose rows are of all of them.
            if by == By::Host && text.contains(',') {
                return false;
            }
            let set = |group: &mut Group| group.set(by, (*text).clone());
            let text = &set;
            self.host.iter_mut().for_each(|c| text(&mut c.group));
            self.device.iter_mut().for_each(|c| text(&mut c.group));
            self.traffic.iter_mut().for_each(|c| text(&mut c.group));
        }
        self.rest.by = by.to_vec();
        true
    }

    /// Adds what other traces have.
    ///
    /// # Errors
    /// When rows are grouped by something else.
    pub fn merge(&mut self, other: Self) -> Result<(), Unlike> {
        if self.rest.by != other.rest.by {
            let text = |by: &[By]| match by {
                [] => "api,name".to_owned(),
                by => by.iter().map(|by| by.name()).collect::<Vec<_>>().join(","),
            };
            return Err(Unlike::By { one: text(&self.rest.by), other: text(&other.rest.by) });
        }
        let left_out = |rest: &Tally| rest.tracing.as_ref().map(|t| t.left_out);
        if left_out(&self.rest).zip(left_out(&other.rest)).is_some_and(|(one, other)| one != other) {
            return Err(Unlike::Cost);
        }
        merge(&mut self.host, other.host);
        merge(&mut self.device, other.device);
        merge(&mut self.traffic, other.traffic);
        merge(&mut self.ranges, other.ranges);
        merge(&mut self.energy, other.energy);
        for (to, from) in [(&mut self.devices, other.devices), (&mut self.ranks, other.ranks)] {
            to.extend(from);
            to.sort();
            to.dedup();
        }
        merge_rest(&mut self.rest, other.rest);
        Ok(())
    }

    /// Files up to form 2 have no own times of failed calls; hardly any of these has other calls inside.
    pub(super) fn without_own_error_times(&mut self) {
        for cell in &mut self.host {
            (cell.error_own, cell.error_own_cost) = (cell.error_ns, cell.error_cost);
        }
    }

    /// In files up to form 3 the times of what moved memory are sums, and never estimates.
    pub(super) fn with_all_traffic_timed(&mut self) {
        for cell in &mut self.traffic {
            (cell.timed, cell.total) = (cell.times.count, cell.times.total);
        }
    }

    /// The tables.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally {
            schema: SCHEMA,
            host: self.host.iter().map(|cell| host_row(cell, self.is_net())).collect(),
            device: self.device.iter().map(|cell| self.device_row(cell)).collect(),
            traffic: self.traffic.iter().map(traffic_row).collect(),
            ranges: self.ranges.iter().map(range_row).collect(),
            devices: self.devices.len() as u64,
            processes: self.rest.traces.iter().map(|t| t.processes).fold(0, u64::saturating_add),
            ..self.rest.clone()
        };
        for api in &mut tally.apis {
            (api.self_ns, api.cost_ns) = split(api.self_ns, api.cost_ns, self.is_net());
            (api.error_self_ns, api.error_cost_ns) =
                split(api.error_self_ns, api.error_cost_ns, self.is_net());
        }
        if let Some(mut budget) = tally.budget.take() {
            budget.complete(&tally);
            tally.budget = Some(budget);
        }
        if tally.traces.len() == 1 {
            tally.traces.clear();
        }
        tally.sort(super::Sort::Time);
        tally
    }

    fn device_row(&self, cell: &DeviceCell) -> DeviceRow {
        let energy = self.energy.iter().find(|e| !e.symbol.is_empty() && e.symbol == cell.symbol);
        let symbol = Some(cell.symbol.clone()).filter(|symbol| !symbol.is_empty());
        DeviceRow {
            name: symbol.as_ref().map_or_else(|| cell.kind.clone(), |s| demangle::full(s).into_owned()),
            symbol,
            kind: cell.kind.clone(),
            api: cell.api.clone(),
            group: cell.group.clone(),
            calls: cell.calls,
            samples: cell.samples.is_estimate().then_some(cell.samples.count),
            unseen: cell.samples.unseen,
            untimed: cell.untimed,
            of_graphs: cell.of_graphs,
            total_ns: cell.total,
            total_error_ns: total_error(&cell.samples, cell.off),
            self_ns: cell.total,
            avg_ns: average(cell.total, cell.timed),
            min_ns: cell.times.min(),
            max_ns: cell.times.max(),
            p50_ns: cell.times.quantile(0.5),
            p99_ns: cell.times.quantile(0.99),
            dev_ns: cell.times.deviation(),
            bytes: cell.bytes,
            in_graph: cell.in_graph,
            errors: cell.errors,
            launch: cell.launches.first().cloned(),
            energy: energy.and_then(|e| e.energy.clone()),
        }
    }
}

/// A time as recorded and what of it is the tracer's: what is reported of it, and what is left out of
/// that (or in it, if it is not `net`).
fn split(recorded: u64, cost: u64, net: bool) -> (u64, u64) {
    let cost = cost.min(recorded);
    (if net { recorded - cost } else { recorded }, cost)
}

/// Standard errors to either side, for 95 %.
const OF_95: f64 = 1.96;

fn host_row(cell: &HostCell, net: bool) -> HostRow {
    let times = &cell.times;
    let recorded = times.total.saturating_add(cell.summed_ns).saturating_add(cell.taken);
    let (total_ns, cost_ns) = split(recorded, cell.cost, net);
    let (self_ns, self_cost_ns) = split(cell.own, cell.own_cost, net);
    // Where calls inside took less than recording them is said to take.
    let beyond = self_ns.saturating_sub(total_ns);
    let (error_ns, error_cost_ns) = split(cell.error_ns, cell.error_cost, net);
    let good = times.count.saturating_add(cell.summed);
    // What took the average of some, or less, is among them; so is what took as long, or longer.
    let (mut min_ns, mut max_ns) = (times.min(), times.max());
    if let Some(average) = cell.summed_ns.checked_div(cell.summed) {
        min_ns = if times.count == 0 { average } else { min_ns.min(average) };
        max_ns = max_ns.max(cell.summed_ns.div_ceil(cell.summed));
    }
    HostRow {
        name: cell.name.clone(),
        api: cell.api.clone(),
        group: cell.group.clone(),
        calls: good.saturating_add(cell.errors),
        folded: cell.folded,
        added_up: cell.summed,
        added_up_error_ns: ((cell.summed_variance as f64).sqrt() * OF_95).round() as u64,
        total_ns,
        self_ns: self_ns - beyond,
        cost_ns,
        self_cost_ns: self_cost_ns.saturating_add(beyond),
        avg_ns: average(total_ns, good),
        min_ns,
        max_ns,
        p50_ns: times.quantile(0.5),
        p99_ns: times.quantile(0.99),
        dev_ns: times.deviation(),
        nested_calls: cell.again,
        nested_ns: cell.again_ns.min(total_ns),
        errors: cell.errors,
        error_ns,
        error_cost_ns,
        error_self_ns: split(cell.error_own, cell.error_own_cost, net).0.min(error_ns),
        states: (!cell.states.is_unknown()).then_some(cell.states),
    }
}

/// How far a total may be from the truth: by chance, and by what times of nodes are off.
fn total_error(samples: &Samples, off: u64) -> Option<f64> {
    match samples.total_error() {
        None if samples.is_estimate() || off == 0 => None,
        by_chance => Some(by_chance.unwrap_or(0.0) + off as f64),
    }
}

fn traffic_row(cell: &TrafficCell) -> TrafficRow {
    let times = &cell.times;
    TrafficRow {
        name: cell.kind.clone(),
        from: cell.from.clone(),
        to: cell.to.clone(),
        group: cell.group.clone(),
        calls: cell.calls,
        bytes: cell.bytes,
        errors: cell.errors,
        failed_bytes: cell.failed_bytes,
        samples: cell.samples.is_estimate().then_some(cell.samples.count),
        unseen: cell.samples.unseen,
        of_graphs: cell.of_graphs,
        total_ns: cell.total,
        total_error_ns: total_error(&cell.samples, cell.off),
        self_ns: cell.total,
        avg_ns: average(cell.total, cell.timed),
        min_ns: times.min(),
        max_ns: times.max(),
        p50_ns: times.quantile(0.5),
        p99_ns: times.quantile(0.99),
        dev_ns: times.deviation(),
        bytes_per_second: (times.total > 0).then(|| cell.timed_bytes as f64 * 1e9 / times.total as f64),
    }
}

fn range_row(cell: &RangeCell) -> RangeRow {
    let times = &cell.times;
    RangeRow {
        domain: cell.domain.clone(),
        name: cell.name.clone(),
        category: cell.category.clone(),
        style: cell.style.clone(),
        calls: times.count,
        total_ns: times.total,
        avg_ns: times.average(),
        min_ns: times.min(),
        max_ns: times.max(),
        p50_ns: times.quantile(0.5),
        p99_ns: times.quantile(0.99),
        dev_ns: times.deviation(),
        commands: cell.commands,
        device_ns: cell.device_ns,
        energy: cell.energy.clone(),
    }
}

/// Adds what another trace has beside sums over calls and commands.
fn merge_rest(to: &mut Tally, mut from: Tally) {
    merge_counts(to, &from);
    merge_runs(to, &mut from);
    to.traces.extend(from.traces);
    to.utilization.extend(from.utilization);
    to.clock_errors.extend(from.clock_errors);
    to.open_ranges.extend(from.open_ranges);
    // Each is of one process, so none of them is another's.
    to.counters.extend(from.counters);
    for row in from.probes {
        match to.probes.iter_mut().find(|probe| probe.name == row.name) {
            Some(probe) => {
                probe.hits = probe.hits.saturating_add(row.hits);
                probe.threads = probe.threads.saturating_add(row.threads);
            }
            None => to.probes.push(row),
        }
    }
    for row in from.probe_ranges {
        match to.probe_ranges.iter_mut().find(|known| known.name == row.name) {
            Some(known) => known.add(&row),
            None => to.probe_ranges.push(row),
        }
    }
    to.communicators.extend(from.communicators);
    to.unfinished_collectives.extend(from.unfinished_collectives);
    to.telemetry.extend(from.telemetry);
    to.host_telemetry.extend(from.host_telemetry);
    to.damages.extend(from.damages);
    to.damages.truncate(KEPT);
    to.different.extend(from.different);
    to.different.truncate(KEPT);
    to.stepped_streams.extend(from.stepped_streams);
    to.stepped_streams.truncate(KEPT);
    to.notes.extend(from.notes);
    let mut seen = std::collections::HashSet::new();
    to.notes.retain(|note| seen.insert(note.clone()));
    add(&mut to.apis, from.apis, |a, b| a.api == b.api, add_api);
    let like = |a: &ErrorRow, b: &ErrorRow| (&a.name, &a.api, a.code) == (&b.name, &b.api, b.code);
    add(&mut to.errors, from.errors, like, add_error);
    add(&mut to.unfinished, from.unfinished, |a, b| (&a.name, &a.api) == (&b.name, &b.api), add_unfinished);
    add(
        &mut to.unknown,
        from.unknown,
        |a, b| (&a.name, &a.api) == (&b.name, &b.api),
        |a, b| a.calls = a.calls.saturating_add(b.calls),
    );
    add(&mut to.memory, from.memory, |a, b| a.is_like(b), MemoryRow::add);
    to.memory_releases.add(&from.memory_releases);
    match (&mut to.sampled, from.sampled) {
        (Some(all), Some(more)) => all.add(more),
        (all @ None, more) => *all = more,
        (Some(_), None) => {}
    }
    add(&mut to.collectives, from.collectives, |a, b| a.is_like(b), |a, b| a.add(&b));
}

/// Adds up counts of losses, damages and what is unfinished.
fn merge_counts(to: &mut Tally, from: &Tally) {
    for (to, n) in [
        (&mut to.lost_events, from.lost_events),
        (&mut to.lost_calls, from.lost_calls),
        (&mut to.lost_device_commands, from.lost_device_commands),
        (&mut to.commands_in_flight, from.commands_in_flight),
        (&mut to.unwritten_bytes, from.unwritten_bytes),
        (&mut to.damaged_bytes, from.damaged_bytes),
        (&mut to.lost_processes, from.lost_processes),
        (&mut to.lost_os_events, from.lost_os_events),
        (&mut to.unseen_switches, from.unseen_switches),
        (&mut to.lost_packets, from.lost_packets),
        (&mut to.damaged, from.damaged),
        (&mut to.differences, from.differences),
        (&mut to.steps_back, from.steps_back),
        (&mut to.unfinished_calls, from.unfinished_calls),
        (&mut to.orphaned_exits, from.orphaned_exits),
        (&mut to.untimed_commands, from.untimed_commands),
        (&mut to.commands_without_call, from.commands_without_call),
        (&mut to.impossible_orders, from.impossible_orders),
        (&mut to.queues, from.queues),
        (&mut to.unmatched_range_ends, from.unmatched_range_ends),
    ] {
        *to = to.saturating_add(n);
    }
}

/// Merges what is known of each run as a whole: command, end, choice, duration, clocks.
fn merge_runs(to: &mut Tally, from: &mut Tally) {
    to.exit = worse(to.exit, from.exit);
    let traces = [&to.traces, &from.traces].map(|traces| traces.len() as u64);
    to.tracing = match (to.tracing.take(), from.tracing.take()) {
        (Some(one), Some(other)) => Some(one.and(&other)),
        (Some(known), None) => Some(known.without(traces[1])),
        (None, Some(known)) => Some(known.without(traces[0])),
        (None, None) => None,
    };
    to.budget = match (to.budget.take(), from.budget.take()) {
        (Some(mut one), Some(other)) => {
            one.add(&other);
            Some(one)
        }
        (one, other) => one.or(other),
    };
    to.capture = match (to.capture.take(), from.capture.take()) {
        (Some(mut one), Some(other)) => {
            one.add(&other);
            Some(one)
        }
        (one, other) => one.or(other),
    };
    if to.command != from.command {
        to.command.clear();
    }
    if to.chosen != from.chosen {
        let all = || "everything".to_owned();
        let both = [to.chosen.take(), from.chosen.take()].map(|chosen| chosen.unwrap_or_else(all));
        to.chosen = Some(both.join("; elsewhere "));
    }
    to.duration_ns = to.duration_ns.max(from.duration_ns);
    to.host_clock_error_ns = to.host_clock_error_ns.max(from.host_clock_error_ns);
    to.cut_at_ns = to.cut_at_ns.into_iter().chain(from.cut_at_ns).min();
    to.manifest_missing |= from.manifest_missing;
}

fn add_api(to: &mut ApiTotals, from: ApiTotals) {
    to.processes = to.processes.saturating_add(from.processes);
    to.threads = to.threads.saturating_add(from.threads);
    to.calls = to.calls.saturating_add(from.calls);
    to.errors = to.errors.saturating_add(from.errors);
    to.self_ns = to.self_ns.saturating_add(from.self_ns);
    to.cost_ns = to.cost_ns.saturating_add(from.cost_ns);
    to.error_self_ns = to.error_self_ns.saturating_add(from.error_self_ns);
    to.error_cost_ns = to.error_cost_ns.saturating_add(from.error_cost_ns);
}

fn add_error(to: &mut ErrorRow, from: ErrorRow) {
    to.calls = to.calls.saturating_add(from.calls);
    to.total_ns = to.total_ns.saturating_add(from.total_ns);
    to.text = to.text.take().or(from.text);
}

fn add_unfinished(to: &mut UnfinishedRow, from: UnfinishedRow) {
    to.calls = to.calls.saturating_add(from.calls);
    to.running = to.running.saturating_add(from.running);
    to.lost = to.lost.saturating_add(from.lost);
    to.with.extend(from.with);
    to.with.truncate(KEPT);
}

/// Adds rows to those that are like them.
fn add<T>(to: &mut Vec<T>, from: Vec<T>, like: impl Fn(&T, &T) -> bool, sum: impl Fn(&mut T, T)) {
    for row in from {
        match to.iter_mut().find(|known| like(known, &row)) {
            Some(known) => sum(known, row),
            None => to.push(row),
        }
    }
}

/// The end that more should be said of.
fn worse(one: Option<Exit>, other: Option<Exit>) -> Option<Exit> {
    let rank = |exit: &Option<Exit>| match exit {
        Some(Exit::Code(0)) => 0,
        None => 1,
        Some(Exit::Code(_)) => 2,
        Some(Exit::Signal(_)) => 3,
    };
    if rank(&other) > rank(&one) { other } else { one }
}

impl TracingRow {
    /// That of both.
    fn and(self, other: &Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            total_ns: self.total_ns.saturating_add(other.total_ns),
            least_ns: self.least_ns.saturating_add(other.least_ns),
            most_ns: self.most_ns.saturating_add(other.most_ns),
            calls_ns: self.calls_ns.saturating_add(other.calls_ns),
            timing_ns: self.timing_ns.saturating_add(other.timing_ns),
            collecting_ns: self.collecting_ns.saturating_add(other.collecting_ns),
            driver_ns: self.driver_ns.saturating_add(other.driver_ns),
            loading_ns: self.loading_ns.saturating_add(other.loading_ns),
            setup_ns: self.setup_ns.saturating_add(other.setup_ns),
            collector_ns: self.collector_ns.saturating_add(other.collector_ns),
            collector_start_ns: self.collector_start_ns.saturating_add(other.collector_start_ns),
            collector_end_ns: self.collector_end_ns.saturating_add(other.collector_end_ns),
            collector_calls_ns: self.collector_calls_ns.saturating_add(other.collector_calls_ns),
            collector_once_ns: self.collector_once_ns.saturating_add(other.collector_once_ns),
            collector_apart_ns: self.collector_apart_ns.saturating_add(other.collector_apart_ns),
            own_commands: self.own_commands.saturating_add(other.own_commands),
            own_bytes: self.own_bytes.saturating_add(other.own_bytes),
            own_device_ns: self.own_device_ns.saturating_add(other.own_device_ns),
            inside_ns: self.inside_ns.saturating_add(other.inside_ns),
            left_out: self.left_out,
            lifetime_ns: self.lifetime_ns.saturating_add(other.lifetime_ns),
            unknown_traces: self.unknown_traces.saturating_add(other.unknown_traces),
        }
    }

    /// With traces of which it is not known.
    fn without(self, traces: u64) -> Self {
        Self { unknown_traces: self.unknown_traces.saturating_add(traces), ..self }
    }
}

impl TraceRow {
    /// In a few words.
    pub(super) fn title(&self) -> String {
        let command = self.command.join(" ");
        let host = if self.host.is_empty() || self.host == "-" {
            String::new()
        } else {
            format!(" on {}", self.host)
        };
        if command.is_empty() { format!("a program{host}") } else { format!("{command}{host}") }
    }
}
