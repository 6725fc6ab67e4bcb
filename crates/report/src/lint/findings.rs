//! Findings as they come together: equal ones are one with a count.

use std::collections::{HashMap, HashSet};

use super::rules::{RULES, Rule, Severity, position};
use hetrace_trace::trace::FunctionId;

/// Different findings that are kept.
const KEPT: usize = 10_000;
/// Occurrences that are kept of each.
const OCCURRENCES: usize = 3;
/// The doubt about what breaks a rule of the API and succeeds.
pub const PASSES: &str = "the call succeeded: this platform lets it pass";

/// A call, by what no other of the trace shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ref {
    pub pid: i64,
    pub tid: i64,
    pub start: u64,
    pub function: FunctionId,
}

/// A rule has something to say.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub rule: &'static str,
    /// Other than the rule's own.
    pub severity: Option<Severity>,
    /// What equal ones have in common, beside the rule and the severity.
    pub about: String,
    /// The fault, in a sentence.
    pub what: String,
    /// The calls that show it, the one at fault first.
    pub calls: Vec<(&'static str, Ref)>,
    /// Nanoseconds that it costs, where that is known.
    pub cost: Option<u64>,
    /// How often.
    pub count: u64,
    /// Why it may be wrong.
    pub doubt: Option<&'static str>,
}

impl Default for Ref {
    /// No call.
    fn default() -> Self {
        Self { pid: 0, tid: 0, start: 0, function: FunctionId(u32::MAX) }
    }
}

impl Hit {
    pub fn new(
        rule: &'static str,
        about: impl Into<String>,
        what: String,
        call: (&'static str, Ref),
    ) -> Self {
        let (about, calls) = (about.into(), vec![call]);
        Self { rule, severity: None, about, what, calls, cost: None, count: 1, doubt: None }
    }

    pub fn with(mut self, call: Option<(&'static str, Ref)>) -> Self {
        self.calls.extend(call);
        self
    }

    pub fn costs(mut self, ns: u64) -> Self {
        self.cost = Some(ns);
        self
    }

    pub fn times(mut self, count: u64) -> Self {
        self.count = count;
        self
    }

    pub fn graded(mut self, severity: Severity, doubt: Option<&'static str>) -> Self {
        (self.severity, self.doubt) = (Some(severity), doubt);
        self
    }
}

/// Equal hits.
#[derive(Clone, Debug)]
pub(super) struct Folded {
    pub rule: usize,
    pub severity: Severity,
    pub what: String,
    pub doubt: Option<&'static str>,
    pub count: u64,
    pub cost: Option<u64>,
    pub occurrences: Vec<Vec<(&'static str, Ref)>>,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// By the rule's position; empty for all.
    selected: Vec<bool>,
    by_key: HashMap<(usize, Severity, String), usize>,
    pub all: Vec<Folded>,
    /// Hits without a place.
    pub dropped: u64,
    /// Processes that have begun to add calls up.
    summing: HashSet<i64>,
    /// Only a part of the run was recorded.
    windowed: bool,
}

impl Findings {
    pub fn new(is_selected: impl Fn(&str) -> bool) -> Self {
        Self { selected: RULES.iter().map(|rule| is_selected(rule.id)).collect(), ..Self::default() }
    }

    pub fn wants(&self, rule: &str) -> bool {
        self.selected.get(position(rule)).copied().unwrap_or(true)
    }

    /// From now on a process adds calls up: what it does is no longer known call by call.
    pub fn sums_up(&mut self, pid: i64) {
        self.summing.insert(pid);
    }

    /// How many processes did.
    pub fn summing(&self) -> u64 {
        self.summing.len() as u64
    }

    /// Outside of capture windows only objects are known.
    pub fn is_windowed(&mut self) {
        self.windowed = true;
    }

    /// A signal ended the program: uses of released objects that the API let pass may be why.
    pub fn convict(&mut self, signal: &str) {
        for folded in self.all.iter_mut().filter(|folded| folded.rule == position("use-after-release")) {
            if folded.severity == Severity::Warning {
                folded.severity = Severity::Error;
                folded.what = format!("{}; later {signal} ended the program", folded.what);
            }
        }
    }

    pub fn add(&mut self, hit: Hit) {
        if !self.wants(hit.rule) {
            return;
        }
        let rule = position(hit.rule);
        let alone = RULES.get(rule).is_some_and(Rule::looks_at_one);
        if self.windowed && !alone && !RULES.get(rule).is_some_and(Rule::looks_at_objects) {
            return;
        }
        if !alone && hit.calls.iter().any(|(_, call)| self.summing.contains(&call.pid)) {
            return;
        }
        let severity = hit.severity.or(RULES.get(rule).map(|r| r.severity)).unwrap_or(Severity::Hint);
        let key = (rule, severity, hit.about);
        if let Some(folded) = self.by_key.get(&key).and_then(|at| self.all.get_mut(*at)) {
            folded.count = folded.count.saturating_add(hit.count);
            folded.cost = match (folded.cost, hit.cost) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (a, b) => a.or(b),
            };
            if folded.occurrences.len() < OCCURRENCES {
                folded.occurrences.push(hit.calls);
            }
            return;
        }
        if self.all.len() >= KEPT {
            self.dropped += 1;
            return;
        }
        self.by_key.insert(key, self.all.len());
        self.all.push(Folded {
            rule,
            severity,
            what: hit.what,
            doubt: hit.doubt,
            count: hit.count,
            cost: hit.cost,
            occurrences: vec![hit.calls],
        });
    }
}
