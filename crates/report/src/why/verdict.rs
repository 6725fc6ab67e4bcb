//! The run as a whole, in a sentence: how busy its devices were, what could be saved and by what.

use std::collections::BTreeMap;

use super::causes::Cause;
use super::collect::Collector;
use super::device::{Device, Place};
use super::ledger::{Idle, Slice};
use super::reporter::{Reporter, share};
use super::rows::{BehindRow, CostRow, CpuRow, OnceRow, SavingRow, StartUpRow, SteadyRow, VerdictRow};
use super::savings::{is_once, sums};
use super::steps::{Steady, What};
use super::untimed;
use hetrace_trace::system::{Life, PersonId, State, Stretch};
use hetrace_trace::text::{duration, plural};

/// What saves less of the run is no advice.
const LEAST: f64 = 0.02;
/// A device that is busy for so much of the time has no idle time worth a word.
const BUSY: f64 = 0.95;
/// One that is busy for so much has no time for kernels of which it is not known whether they need each other.
const NEARLY_BUSY: f64 = 0.9;
/// Start-up and the end are worth a word from such a part of the run on.
const EDGE: f64 = 0.25;
/// Commands that the time of devices is listed of.
const COSTS: usize = 8;
/// Names of threads that had a CPU which others waited for.
const BEHIND: usize = 32;

/// All that is said of the run as a whole.
#[derive(Debug, Default)]
pub(super) struct Whole {
    pub verdict: Option<VerdictRow>,
    pub steady: Option<SteadyRow>,
    pub start_up: Option<StartUpRow>,
    pub savings: Vec<SavingRow>,
    pub costs: Vec<CostRow>,
    pub cpu: Option<CpuRow>,
}

/// The time that gains are about.
struct Scope<'a> {
    device: &'a Device,
    steady: Option<Steady>,
    slice: Slice,
}

impl Scope<'_> {
    /// Whether there is next to no idle time.
    fn is_busy(&self) -> bool {
        share(self.slice.totals.busy, self.slice.ns()) >= BUSY
    }

    /// Whether the device is what the run waits for.
    fn is_limit(&self, run: u64) -> bool {
        self.is_busy() && share(self.slice.totals.busy, run) >= 0.5
    }
}

/// Sums up all of the devices with these places, which a report is about.
pub(super) fn whole(reporter: &Reporter<'_, '_>, places: &[usize]) -> Whole {
    let from = reporter.from;
    let chosen: Vec<&Device> = places.iter().filter_map(|place| from.devices.get(*place)).collect();
    if from.first.is_none() || (places.is_empty() && from.options.device.is_some()) {
        return Whole::default();
    }
    let timed = one(from, &chosen).and_then(|all| Some((all, all.first?))).filter(|_| !from.sampled);
    let Some((all, first)) = timed else {
        let run = from.window.of(from.first.unwrap_or(0), from.last);
        return Whole { verdict: Some(untimed::verdict(reporter, run)), ..Whole::default() };
    };
    let steady = from.steps.steady(first.max(from.window.from), all.last_end.min(from.window.to));
    let (begin, end) = steady.as_ref().map_or((0, u64::MAX), |steady| (steady.from, steady.to));
    let scope = Scope { device: all, slice: all.ledger.of(begin, end), steady };
    let run = from.window.of(from.first.unwrap_or(0), from.last);
    let cpu = cpu(reporter, &chosen).filter(|cpu| share(cpu.thread_ns, run) >= LEAST);
    let savings = savings(reporter, &scope, (&chosen, run), cpu.as_ref());
    let costs = costs(reporter, &chosen);
    let start_up = start_up(reporter, &scope);
    let verdict = verdict(reporter, &scope, (&chosen, run), (&savings, &costs, start_up.as_ref()));
    Whole {
        verdict: Some(verdict),
        steady: scope.steady.as_ref().map(|steady| steady_row(reporter, steady)),
        start_up,
        savings,
        costs,
        cpu,
    }
}

/// Who had a CPU, where the operating system's events do not say it.
const NOT_KNOWN: &str = "not known";

/// How long threads of the processes that used the devices were ready and had no CPU.
fn cpu(reporter: &Reporter<'_, '_>, chosen: &[&Device]) -> Option<CpuRow> {
    let (system, window) = (reporter.from.trace.system()?, reporter.from.window);
    let uses = |pid: i64| chosen.iter().any(|device| device.pids.contains(&pid));
    let (mut all, mut most): (u64, Option<(u64, &Life)>) = (0, None);
    let ready = |stretch: &Stretch| match stretch.state {
        State::Ready { behind } => Some((window.of(stretch.start, stretch.end), behind)),
        _ => None,
    };
    for life in system.lives.iter().filter(|life| system.person(life.person).pid.is_some_and(uses)) {
        let ns = life.stretches.iter().filter_map(ready).map(|(ns, _)| ns).fold(0, u64::saturating_add);
        all = all.saturating_add(ns);
        if most.is_none_or(|(most, _)| ns > most) {
            most = Some((ns, life));
        }
    }
    let (ns, life) = most?;
    let mut behind: BTreeMap<Option<PersonId>, u64> = BTreeMap::new();
    for (ns, who) in life.stretches.iter().filter_map(ready) {
        let sum = behind.entry(who.map(|who| system.person(who).namesake)).or_default();
        *sum = sum.saturating_add(ns);
    }
    let who = |who: Option<PersonId>| who.map_or_else(|| NOT_KNOWN.to_owned(), |who| system.namesakes(who));
    let mut behind: Vec<BehindRow> =
        behind.into_iter().map(|(person, ns)| BehindRow { who: who(person), ns }).collect();
    behind.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.who.cmp(&b.who)));
    behind.truncate(BEHIND);
    Some(CpuRow { ready_ns: all, thread: system.who(life.person), thread_ns: ns, behind })
}

/// Who had the CPU for most of the time, if that is known.
fn mostly(behind: &[BehindRow]) -> String {
    match behind.first() {
        Some(most) if most.who != NOT_KNOWN => format!(", mostly {} had it", most.who),
        _ => String::new(),
    }
}

/// The only device, or all as if they were one.
fn one<'a>(from: &'a Collector<'_>, chosen: &[&'a Device]) -> Option<&'a Device> {
    match chosen {
        [] => None,
        [one] => Some(one),
        _ => from.all.as_ref(),
    }
}

fn savings(
    reporter: &Reporter<'_, '_>,
    scope: &Scope<'_>,
    (chosen, run): (&[&Device], u64),
    cpu: Option<&CpuRow>,
) -> Vec<SavingRow> {
    let (words, slice) = (&reporter.words, &scope.slice);
    let totals = &slice.totals;
    let mut found: Vec<SavingRow> = Vec::new();
    if !scope.is_busy() {
        let sums = sums(slice, words, |idle| is_once(words, idle.cause, idle.gaps));
        for sum in sums.iter().filter(|sum| share(sum.idle, run) >= LEAST) {
            let ns = sum.gain(totals.busy).min(slice.ns());
            found.push(SavingRow {
                kind: words.kind_of(sum.group).to_owned(),
                what: words.change(sum),
                ns,
                share: share(ns, run),
                idle_ns: sum.idle,
                cause: Some(words.cause(sum.cause)),
            });
        }
    }
    let known: u64 =
        found.iter().filter(|s| s.kind == "preempted").map(|s| s.ns).fold(0, u64::saturating_add);
    let mut save = |kind: &str, what: String, ns: u64| {
        if share(ns, run) >= LEAST {
            let ns = ns.min(slice.ns());
            let kind = kind.to_owned();
            found.push(SavingRow { kind, what, ns, share: share(ns, run), idle_ns: 0, cause: None });
        }
    };
    if let Some(cpu) = cpu.filter(|cpu| known < cpu.thread_ns / 2) {
        let had = mostly(&cpu.behind);
        let what = format!("CPUs of its own for the program: {} was ready and had none{had}", cpu.thread);
        save("cpu", what, cpu.thread_ns);
    }
    if let Some((what, ns)) = overlap(reporter, scope) {
        save("overlap", what, ns);
    }
    let (several, room) = queues(scope);
    save("queues", several, room);
    if chosen.len() > 1 {
        let busy = |device: &&Device| device.ledger.of(slice.from, slice.to).totals.busy;
        let longest = chosen.iter().map(busy).max().unwrap_or(0);
        let what = "letting the devices work at the same time: they take turns".to_owned();
        save("devices", what, totals.busy.saturating_sub(longest));
    }
    for device in chosen {
        for row in reporter.shared(device) {
            let what = format!(
                "keeping {} off the device: commands of {} were ready while only its own ran",
                row.other, row.process
            );
            save("shared device", what, row.ns);
        }
    }
    found.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| b.idle_ns.cmp(&a.idle_ns)));
    found
}

/// What kernels beside each other could save. Of those that may need each other, nothing is said where the device is busy
/// anyway.
fn queues(scope: &Scope<'_>) -> (String, u64) {
    let totals = &scope.slice.totals;
    let queues = scope.device.queue_ends.len();
    let known = totals.room >= totals.room_unknown;
    let idles = share(totals.busy, scope.slice.ns()) < NEARLY_BUSY;
    let room = totals.room.saturating_add(if idles { totals.room_unknown } else { 0 });
    let which = if known {
        "share no memory that they write"
    } else {
        "do not depend on each other (whether there are such is not in the trace)"
    };
    let text = format!(
        "enqueuing kernels that {which} into several queues (there {} {}), or into one that runs them out of order: \
         each alone has too few work-groups to fill the device",
        if queues == 1 { "is" } else { "are" },
        plural(queues as u64, "queue")
    );
    (text, room)
}

/// What copies beside kernels could save, and which queues both are on.
fn overlap(reporter: &Reporter<'_, '_>, scope: &Scope<'_>) -> Option<(String, u64)> {
    let totals = &scope.slice.totals;
    let [compute, rest @ ..] = totals.parts;
    let longest = rest.into_iter().max().unwrap_or(0).max(compute);
    // What is copied once before all else can't be cut into what runs beside it.
    let rounds = totals.rounds.checked_sub(1).filter(|_| compute > 0)?;
    let gain = totals.busy.saturating_sub(longest) as f64 * rounds as f64 / totals.rounds as f64;
    let queues = |computes: bool| {
        let mut of: Vec<(u32, u64)> = scope
            .device
            .by_queue
            .iter()
            .filter(|((_, kind), ns)| *kind == computes && **ns > 0)
            .map(|((queue, _), ns)| (*queue, *ns))
            .collect();
        of.sort_by_key(|(queue, ns)| (std::cmp::Reverse(*ns), *queue));
        let named: Vec<String> = of.iter().take(2).map(|(queue, _)| reporter.queue(*queue)).collect();
        match of.len().saturating_sub(named.len()) {
            0 => named.join(" and "),
            more => format!("{} and {}", named.join(", "), plural(more as u64, "other queue")),
        }
    };
    let (kernels, copies) = (queues(true), queues(false));
    let where_ = if kernels == copies {
        format!("both are on {kernels}: give copies a queue of their own")
    } else {
        format!("kernels are on {kernels}, copies on {copies}, one after the other")
    };
    Some((format!("copying while kernels run, in pieces if they need each other ({where_})"), gain as u64))
}

fn costs(reporter: &Reporter<'_, '_>, chosen: &[&Device]) -> Vec<CostRow> {
    let busy: u64 = chosen.iter().map(|device| device.sweep.commands).fold(0, u64::saturating_add);
    let mut costs: Vec<CostRow> = Vec::new();
    for (kind, function, ns) in reporter.from.steps.costs() {
        // Each process has a number of its own for a function.
        let name = reporter.kernel(kind, function);
        if let Some(cost) = costs.iter_mut().find(|cost| cost.name == name) {
            cost.ns = cost.ns.saturating_add(ns);
        } else if costs.len() < COSTS {
            costs.push(CostRow { name, ns, share: 0.0 });
        }
    }
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.ns));
    costs.iter_mut().for_each(|cost| cost.share = share(cost.ns, busy).min(1.0));
    costs
}

fn steady_row(reporter: &Reporter<'_, '_>, steady: &Steady) -> SteadyRow {
    let what = match &steady.what {
        What::Range(name) => format!("range {name}"),
        What::Command((.., kind, function)) => reporter.kernel(*kind, *function),
    };
    let middle = steady.period.max(1) as f64;
    SteadyRow {
        what,
        by: if matches!(steady.what, What::Range(_)) { "range" } else { "command" }.to_owned(),
        from_ns: reporter.since(steady.from),
        to_ns: reporter.since(steady.to),
        steps: steady.steps,
        period_ns: steady.period,
        p5_ns: steady.low,
        p95_ns: steady.high,
        variation: steady.high.saturating_sub(steady.low) as f64 / middle,
        outliers: steady.outliers,
        longest_ns: steady.longest,
        longest_at_ns: reporter.since(steady.longest_at),
    }
}

/// What came before the steady part, and what happened once in it.
fn start_up(reporter: &Reporter<'_, '_>, scope: &Scope<'_>) -> Option<StartUpRow> {
    let (from, words) = (reporter.from, &reporter.words);
    let zero = from.window.from.max(reporter.zero);
    let first = scope.device.first?.max(zero);
    let mut causes: Vec<(String, u64)> = Vec::new();
    let mut add = |cause: Cause, ns: u64| {
        let text = words.cause(cause);
        match causes.iter_mut().find(|(known, _)| *known == text) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None => causes.push((text, ns)),
        }
    };
    for ((place, cause), sum) in &scope.device.causes {
        if *place == Place::Before {
            add(*cause, sum.ns);
        }
    }
    let mut idle = 0;
    let warm_up = scope.steady.as_ref().map(|steady| scope.device.ledger.of(0, steady.from));
    for cause in warm_up.iter().flat_map(|slice| &slice.causes) {
        add(cause.cause, cause.ns);
        idle = u64::saturating_add(idle, cause.ns);
    }
    for cause in scope.slice.causes.iter().filter(|cause| is_once(words, cause.cause, cause.gaps)) {
        add(cause.cause, cause.ns);
        idle = u64::saturating_add(idle, cause.ns);
    }
    causes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let before = first.saturating_sub(zero);
    (before > 0 || idle > 0).then(|| StartUpRow {
        ns: before.saturating_add(idle),
        before_ns: before,
        between_ns: idle,
        causes: causes.into_iter().map(|(cause, ns)| OnceRow { cause, ns }).collect(),
    })
}

fn percent(part: u64, whole: u64) -> String {
    let percent = 100.0 * share(part, whole);
    match percent {
        p if p > 0.0 && p < 0.05 => "under 0.1 %".to_owned(),
        p if p > 0.0 && p < 9.95 => format!("{p:.1} %"),
        p if p > 99.0 && p < 100.0 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

fn verdict(
    reporter: &Reporter<'_, '_>,
    scope: &Scope<'_>,
    (chosen, run): (&[&Device], u64),
    (savings, costs, start_up): (&[SavingRow], &[CostRow], Option<&StartUpRow>),
) -> VerdictRow {
    let busy = scope.device.sweep.busy;
    let mut text = match chosen {
        [_] => format!("device busy {} of {}", percent(busy, run), duration(run)),
        _ => {
            let each: Vec<String> = chosen.iter().map(|device| percent(device.sweep.busy, run)).collect();
            let each = match each.split_at_checked(8) {
                Some((some, rest)) if !rest.is_empty() => format!("{}, …", some.join(", ")),
                _ => each.join(", "),
            };
            format!(
                "{} busy {each} of {}, at least one of them {}",
                plural(chosen.len() as u64, "device"),
                duration(run),
                percent(busy, run)
            )
        }
    };
    let best = savings.iter().find(|saving| saving.share >= LEAST);
    // Overlap can't hide what there is too much of: then the cause is named all the same.
    let idlest =
        savings.iter().max_by_key(|saving| saving.idle_ns).filter(|s| share(s.idle_ns, run) >= LEAST);
    match best {
        Some(best) => {
            let ns = duration(best.ns);
            text += &format!("; {ns} ({} of the run) could be saved by {}", percent(best.ns, run), best.what);
        }
        None => text += &nothing(reporter, scope, run, (idlest, costs, start_up)),
    }
    if let Some(idlest) = idlest.filter(|idlest| best.is_none_or(|best| best.what != idlest.what)) {
        let cause = idlest.cause.as_deref().unwrap_or_default();
        let (ns, part) = (duration(idlest.idle_ns), percent(idlest.idle_ns, run));
        text += &format!(". Most idle time, {ns} ({part} of the run): {cause}");
    }
    if best.is_some() || scope.is_limit(run) {
        text += &once(run, start_up, best.map_or(EDGE, |best| best.share.max(EDGE)), ". ");
    }
    text += &after(reporter, scope, run);
    text += ".";
    VerdictRow {
        text,
        run_ns: run,
        busy_ns: busy,
        busy_share: share(busy, run),
        always_busy: scope.is_busy(),
        saving_ns: best.map_or(0, |best| best.ns),
        saving_share: best.map_or(0.0, |best| best.share),
        saving_kind: best.map(|best| best.kind.clone()),
    }
}

/// What start-up takes, if that is so much of the run.
fn once(run: u64, start_up: Option<&StartUpRow>, least: f64, between: &str) -> String {
    let Some(start_up) = start_up.filter(|start_up| share(start_up.ns, run) >= least) else {
        return String::new();
    };
    let mut text =
        format!("{between}{} ({} of the run) is start-up", duration(start_up.ns), percent(start_up.ns, run));
    if let Some(most) = start_up.causes.first() {
        text += &format!(", mostly {}", most.cause);
    }
    text
}

/// What comes after the last command, if it is much of the run.
fn after(reporter: &Reporter<'_, '_>, scope: &Scope<'_>, run: u64) -> String {
    let after = scope.device.causes.iter().filter(|((place, _), _)| *place == Place::After);
    let after: Vec<(Cause, u64)> = after.map(|((_, cause), sum)| (*cause, sum.ns)).collect();
    let whole = after.iter().map(|(_, ns)| *ns).fold(0, u64::saturating_add);
    let Some((most, _)) = after.iter().max_by_key(|(cause, ns)| (*ns, std::cmp::Reverse(*cause))) else {
        return String::new();
    };
    if share(whole, run) < EDGE {
        return String::new();
    }
    let most = reporter.words.cause(*most);
    format!(
        ". {} ({} of the run) is after the last command, mostly {most}",
        duration(whole),
        percent(whole, run)
    )
}

/// Why nothing is worth a change.
fn nothing(
    reporter: &Reporter<'_, '_>,
    scope: &Scope<'_>,
    run: u64,
    (idlest, costs, start_up): (Option<&SavingRow>, &[CostRow], Option<&StartUpRow>),
) -> String {
    let slice = &scope.slice;
    if scope.is_limit(run) {
        return costs.first().map_or_else(String::new, |most| {
            let part = 100.0 * most.share;
            format!("; the device is the limit, and {} takes {part:.0} % of its time", most.name)
        });
    }
    let mut text = once(run, start_up, EDGE, "; ");
    let unknown = |idle: &&Idle| reporter.words.kind(idle.cause) == "unknown";
    let unknown: u64 = slice.causes.iter().filter(unknown).map(|idle| idle.ns).fold(0, u64::saturating_add);
    if share(unknown, run) >= LEAST {
        text += &format!("; why it was idle for {} is not known", duration(unknown));
    } else if idlest.is_none() {
        text += "; nothing was found that would save 2 % of the run";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_had_a_cpu_is_named_only_if_it_is_known() {
        let row = |who: &str, ns| BehindRow { who: who.to_owned(), ns };
        assert_eq!(mostly(&[row("hog (7)", 9), row(NOT_KNOWN, 4)]), ", mostly hog (7) had it");
        assert_eq!(mostly(&[row(NOT_KNOWN, 9), row("hog (7)", 4)]), "");
        assert_eq!(mostly(&[]), "");
    }
}
