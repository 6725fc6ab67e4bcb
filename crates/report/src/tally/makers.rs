//! What calls that make communicators were called with, for those that never
//! return: which rank waits for whom is then all that is known.

use std::collections::HashMap;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;

use hetrace_trace::spans::{Open, Unfinished};
use hetrace_trace::trace::{FunctionId, ThreadId, Trace};

/// Calls that are remembered of those without an end.
const KEPT: usize = 64;

/// Follows calls that make communicators.
#[derive(Debug)]
pub(super) struct Makers<'t> {
    trace: &'t Trace,
    /// By function.
    makes: Vec<bool>,
    passed: HashMap<(ThreadId, u32), String>,
    open: Vec<(FunctionId, String)>,
}

impl<'t> Makers<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        let functions = (0u32..).zip(trace.functions().all());
        let makes = |(id, _)| trace.described(FunctionId(id)).is_some_and(|f| f.communicator().is_some());
        Self { trace, makes: functions.map(makes).collect(), passed: HashMap::new(), open: Vec::new() }
    }

    /// Whether a function is one of these.
    pub fn needs(&self, function: FunctionId) -> bool {
        self.makes.get(function.index()) == Some(&true)
    }

    #[inline]
    pub fn entry(&mut self, call: &Open, event: &Event<'_, '_>) {
        if self.makes.get(call.function.index()) == Some(&true) {
            self.entered(call, event);
        }
    }

    #[cold]
    fn entered(&mut self, call: &Open, event: &Event<'_, '_>) {
        let about = self.trace.described(call.function).and_then(|f| f.communicator.as_ref());
        let Some(about) = about else { return };
        let named = [("rank", &about.rank), ("of", &about.size), ("from", &about.parent)];
        let number = |name: &Option<String>| {
            let value = event.get(name.as_ref()?)?;
            value.as_u64().or_else(|| value.as_i64().map(|v| v as u64))
        };
        let words = named.iter().filter_map(|(word, name)| Some((*word, number(name)?)));
        let words = words.map(|(word, n)| match word {
            "from" => format!("{word} {n:#x}"),
            word => format!("{word} {n}"),
        });
        let words: Vec<String> = words.collect();
        let context = |name| event.get_in(hetrace_ctf::class::Scope::PacketContext, name);
        let pid = context("vpid").and_then(Scalar::as_i64).unwrap_or(0);
        let whose = if pid == 0 { String::new() } else { format!("process {pid}: ") };
        // What a depth had before is overwritten: only what is open matters.
        self.passed.insert((call.thread, call.depth), whose + &words.join(" "));
    }

    /// A call has no end.
    pub fn unfinished(&mut self, call: &Unfinished) {
        if self.makes.get(call.function.index()) != Some(&true) || self.open.len() >= KEPT {
            return;
        }
        if let Some(text) = self.passed.remove(&(call.thread, call.depth)) {
            self.open.push((call.function, text));
        }
    }

    /// What those without an end were called with.
    pub fn open(&self) -> &[(FunctionId, String)] {
        &self.open
    }
}
