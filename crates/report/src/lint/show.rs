//! The calls that findings name, as text: a second walk writes those and no others.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::hash::BuildHasherDefault;
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use super::findings::{Findings, Ref};
use hetrace_trace::args::{Args, Plans, Role};
use hetrace_trace::hash::Mix;
use hetrace_trace::spans::{At, Call, Fold, Open, Summary, Unfinished, Visitor, walk_part};
use hetrace_trace::stacks::StackId;
use hetrace_trace::text::duration;
use hetrace_trace::trace::{FunctionId, Only, Trace};
use hetrace_trace::watch::{Pace, Stopped};

/// Longest text of one argument, in characters.
const LONGEST: usize = 80;

/// A call that a finding names: process, thread and when it began.
pub(super) type Key = (i64, i64, u64);

/// How such a call is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// With its arguments.
    pub text: String,
    /// The code that made it.
    pub stack: StackId,
}

type Keys = HashSet<Key, BuildHasherDefault<Mix>>;

/// The text of every call that a finding names.
///
/// Where nothing is missing and all named calls are known by their functions, the walk passes over
/// the calls of others: these show nothing then about where a call ends. Where time never goes back, it
/// ends as soon as it has met all.
pub(super) fn calls<'t>(
    trace: &'t Trace,
    findings: &Findings,
    summary: &Summary,
    pace: Pace<'t>,
) -> Result<HashMap<Key, Shown>, Stopped> {
    let occurrences = findings.all.iter().flat_map(|folded| &folded.occurrences);
    let refs: Vec<Ref> = occurrences.flatten().map(|(_, call)| *call).collect();
    let wanted: Keys = refs.iter().map(|call| (call.pid, call.tid, call.start)).collect();
    if wanted.is_empty() {
        return Ok(HashMap::new());
    }
    let plans = Plans::new(trace);
    let last = refs.iter().map(|call| call.start).max().filter(|_| summary.steps_back == 0);
    let last = last.unwrap_or(u64::MAX);
    let (open, texts) = (HashMap::new(), HashMap::new());
    let mut shower = Shower { pace, trace, plans, wanted, last, pending: 0, open, texts };
    let functions: HashSet<FunctionId> = refs.iter().map(|call| call.function).collect();
    let walked = if summary.is_complete() && !functions.contains(&FunctionId(u32::MAX)) {
        let only = Only::new(trace, |function| functions.contains(&function));
        walk_part(trace.cursor_of_only(&only), &mut shower)
    } else {
        hetrace_trace::spans::walk(trace, &mut shower)
    };
    match walked {
        ControlFlow::Break(End::Stopped(stopped)) => Err(stopped),
        ControlFlow::Break(End::Found) | ControlFlow::Continue(_) => Ok(shower.texts),
    }
}

/// Why the walk ends early.
enum End {
    Stopped(Stopped),
    /// All wanted calls have been met.
    Found,
}

struct Shower<'t> {
    pace: Pace<'t>,
    trace: &'t Trace,
    plans: Plans<'t>,
    wanted: Keys,
    /// When the last of them began; if events may come later that are not later, the end of time.
    last: u64,
    /// How many of them have begun and not ended.
    pending: usize,
    open: HashMap<Key, Args<'t>>,
    texts: HashMap<Key, Shown>,
}

impl Shower<'_> {
    fn write(
        &mut self,
        key: Key,
        (function, stack): (FunctionId, StackId),
        exit: Option<&Args<'_>>,
        end: &str,
    ) {
        let mut out = self.trace.functions().get(function).name.clone();
        out.push('(');
        let entry = self.open.remove(&key);
        let params = self.trace.described(function).map_or(&[][..], |f| f.params.as_slice());
        for (param, index) in params.iter().zip(0u16..) {
            let role = Role::Param(index);
            let passed = entry.as_ref().and_then(|args| args.find(role));
            let returned = exit.and_then(|args| args.find(role));
            let comma = if index > 0 { ", " } else { "" };
            let _ = write!(out, "{comma}{}=", param.name);
            match (passed, returned) {
                (Some(before), Some(after)) if before != after => {
                    let _ = write!(out, "{} → {}", cut(before), cut(after));
                }
                (Some(text), _) | (None, Some(text)) => out.push_str(&cut(text)),
                (None, None) => out.push('?'),
            }
        }
        out.push(')');
        if let Some(result) = exit.and_then(|args| args.find(Role::Return)) {
            let _ = write!(out, " = {}", cut(result));
        }
        out.push_str(end);
        self.texts.insert(key, Shown { text: out, stack });
    }
}

/// The text, or its start and an ellipsis.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or("")),
    }
}

type Step = ControlFlow<End>;

impl Visitor for Shower<'_> {
    type Break = End;

    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> Step {
        // A run of calls is met after its time.
        if at.time > self.last && self.pending == 0 && self.texts.len() == self.wanted.len() {
            return ControlFlow::Break(End::Found);
        }
        self.pace.step().map_break(End::Stopped)
    }

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Step {
        let who = at.who();
        let key = (who.pid, who.tid, call.start);
        if self.wanted.contains(&key) {
            let mut args = Args::default();
            args.read(&self.plans, event, None);
            self.pending += 1;
            self.open.insert(key, args);
        }
        ControlFlow::Continue(())
    }

    fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Step {
        let who = at.who();
        let key = (who.pid, who.tid, call.start);
        if self.wanted.contains(&key) {
            let mut exit = Args::default();
            exit.read(&self.plans, event, self.open.get(&key));
            self.pending = self.pending.saturating_sub(1);
            self.write(
                key,
                (call.function, call.stack),
                Some(&exit),
                &format!("  ({})", duration(call.duration())),
            );
        }
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Step {
        let who = at.who();
        let key = (who.pid, who.tid, call.start);
        if self.wanted.contains(&key) {
            self.pending = self.pending.saturating_sub(1);
            self.write(key, (call.function, call.stack), None, "  <no end>");
        }
        ControlFlow::Continue(())
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> Step {
        let who = at.who();
        let key = (who.pid, who.tid, fold.first);
        if self.wanted.contains(&key) && !self.texts.contains_key(&key) {
            let name = &self.trace.functions().get(fold.function).name;
            let what = if fold.summed { "calls added up" } else { "equal calls" };
            let span = duration(fold.last.saturating_sub(fold.first));
            let text = format!("{name}: {} {} in {span}", fold.count, what);
            self.texts.insert(key, Shown { text, stack: StackId::NONE });
        }
        ControlFlow::Continue(())
    }
}
