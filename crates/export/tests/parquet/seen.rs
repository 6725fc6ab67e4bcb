//! What a walk finds, as lines, and rows of the tables as the same lines.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;
use hetrace_trace::spans::{At, Call, Command, Fold, Open, Orphan, Sizes, Unfinished, Visitor, Why, walk};
use hetrace_trace::trace::{FunctionId, Trace};

use super::read::{Row, number, text};

/// An open call: its depth, who and when, and numbers that were passed.
type Begun = (u32, String, Vec<(String, String)>);

/// Sorted lines.
pub struct Seen<'t> {
    trace: &'t Trace,
    pub calls: Vec<String>,
    pub commands: Vec<String>,
    /// By thread.
    open: HashMap<usize, Vec<Begun>>,
}

type Step = ControlFlow<Infallible>;

/// Walks over a trace.
pub fn seen(trace: &Trace) -> Seen<'_> {
    let mut seen = Seen { trace, calls: Vec::new(), commands: Vec::new(), open: HashMap::new() };
    let ControlFlow::Continue(_) = walk(trace, &mut seen);
    seen.calls.sort();
    seen.commands.sort();
    seen
}

/// Rows of `calls` as lines.
pub fn calls(rows: &[Row]) -> Vec<String> {
    let who = |row: &Row| {
        let [pid, tid, start] = ["pid", "tid", "start_ns"].map(|c| number(row, c));
        format!("{pid}.{tid} {} at {start}", text(row, "name"))
    };
    let by_id: HashMap<String, String> = rows.iter().map(|r| (number(r, "call_id"), who(r))).collect();
    let line = |row: &Row| {
        let [end, duration, own, count, depth, error] =
            ["end_ns", "duration_ns", "self_ns", "count", "depth", "error"].map(|c| number(row, c));
        let parent = by_id.get(&number(row, "parent_id")).map_or("-", String::as_str);
        let (state, missing) = (text(row, "state"), text(row, "missing"));
        let arguments = text(row, "arguments");
        let mut passed = Vec::new();
        if !arguments.is_empty() {
            let json: serde_json::Value = serde_json::from_str(&arguments).expect("JSON");
            for (name, value) in json.as_object().expect("an object") {
                if value.is_number() {
                    passed.push((name.clone(), value.to_string()));
                }
            }
        }
        passed.sort();
        let error_name = text(row, "error_name");
        format!(
            "{} {state}{missing} {end} {duration} {own} {count} {depth} {error} {error_name} in {parent} {passed:?}",
            who(row)
        )
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.sort();
    lines
}

/// Rows of `commands` as lines; `calls` are those that caused them.
pub fn commands(rows: &[Row], calls: &[Row]) -> Vec<String> {
    let by_id: HashMap<String, &Row> = calls.iter().map(|r| (number(r, "call_id"), r)).collect();
    let line = |row: &Row| {
        // A call that is named is the one that the times mean.
        if let Some(call) = by_id.get(&number(row, "cause_call_id")) {
            for (of_call, of_command) in
                [("pid", "pid"), ("tid", "cause_tid"), ("start_ns", "cause_start_ns")]
            {
                assert_eq!(number(call, of_call), number(row, of_command));
            }
        }
        let columns = [
            "pid",
            "device",
            "queue",
            "queue_handle",
            "kernel",
            "start_ns",
            "end_ns",
            "duration_ns",
            "queued_ns",
            "submitted_ns",
            "times_error",
            "weight",
            "bytes",
            "peer",
            "status",
            "global_x",
            "global_y",
            "global_z",
            "local_x",
            "local_y",
            "local_z",
            "offset_x",
            "cluster_x",
            "shared_bytes",
            "graph",
            "node",
            "cause_start_ns",
        ];
        let numbers = columns.map(|c| number(row, c)).join(" ");
        let texts =
            ["kind", "kernel_symbol", "device_name", "from_memory", "to_memory"].map(|c| text(row, c));
        format!("{numbers} {}", texts.join(","))
    };
    let mut lines: Vec<String> = rows.iter().map(line).collect();
    lines.sort();
    lines
}

fn or_dash(n: Option<impl ToString>) -> String {
    n.map_or("-".to_owned(), |n| n.to_string())
}

impl Seen<'_> {
    fn name(&self, function: FunctionId) -> &str {
        &self.trace.functions().get(function).name
    }

    /// A time as tables have it.
    fn time(&self, time: u64) -> i64 {
        time as i64 + self.trace.epoch_offset_ns().unwrap_or(0)
    }

    fn error(&self, function: FunctionId, error: Option<i64>) -> String {
        let name = error.map(|code| self.trace.error_name(function, code));
        format!("{} {}", or_dash(error), name.unwrap_or_default())
    }

    /// Who is the innermost of those less deep, of those that are open.
    fn around(&self, thread: usize, depth: u32) -> &str {
        let open = self.open.get(&thread).map_or(&[][..], Vec::as_slice);
        let around = open.iter().filter(|(d, ..)| *d < depth).max_by_key(|(d, ..)| *d);
        around.map_or("-", |(_, who, _)| who)
    }

    /// Ends an open call: who it is, and what was passed.
    fn end(&mut self, thread: usize, depth: u32) -> (String, Vec<(String, String)>) {
        let open = self.open.get_mut(&thread).expect("an open call");
        let at = open.iter().position(|(d, ..)| *d == depth).expect("an open call");
        let (_, who, passed) = open.remove(at);
        (who, passed)
    }
}

impl Visitor for Seen<'_> {
    type Break = Infallible;

    fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Step {
        let who = format!(
            "{}.{} {} at {}",
            at.who().pid,
            at.who().tid,
            self.name(call.function),
            self.time(call.start)
        );
        let rows = self.trace.ctf().class().streams.iter().flat_map(|s| &s.events);
        let about = rows.filter(|e| std::ptr::eq(*e, event.class())).flat_map(|e| &e.fields.fields);
        let plain = about.filter(|f| match &f.class {
            hetrace_ctf::class::FieldClass::Integer(c) => c.base == hetrace_ctf::class::Base::Decimal,
            _ => false,
        });
        let described = self.trace.described(call.function);
        // Sets of bits have names, and lengths of arrays are not shown.
        let plain = plain.filter(|f| {
            described.and_then(|d| d.params.iter().find(|p| p.name == f.name)).is_some_and(|p| {
                let named = p.values.is_some() || p.base.contains("flags") || p.base.contains("bits");
                !named
            })
        });
        let is_signed =
            event.get("value_type").and_then(Scalar::as_str).is_some_and(|ty| ty.ends_with("s32"));
        let mut passed: Vec<(String, String)> = plain
            .filter_map(|f| {
                let value = match event.get(&f.name)? {
                    // A counter's value has the bits of its type; the only one with a sign here has 32.
                    Scalar::Unsigned(v) if f.name == "value" && is_signed => (v as u32 as i32).to_string(),
                    Scalar::Unsigned(v) => v.to_string(),
                    Scalar::Signed(v) => v.to_string(),
                    _ => return None,
                };
                Some((f.name.clone(), value))
            })
            .collect();
        passed.sort();
        self.open.entry(call.thread.index()).or_default().push((call.depth, who, passed));
        ControlFlow::Continue(())
    }

    fn exit(&mut self, _: At<'_>, call: &Call, _: &Event<'_, '_>) -> Step {
        let parent = self.around(call.thread.index(), call.depth).to_owned();
        let (who, passed) = self.end(call.thread.index(), call.depth);
        let (end, duration, own, depth) = (self.time(call.end), call.duration(), call.own, call.depth);
        let error = self.error(call.function, call.error);
        self.calls
            .push(format!("{who} finished {end} {duration} {own} 1 {depth} {error} in {parent} {passed:?}"));
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, _: At<'_>, call: &Unfinished) -> Step {
        let parent = self.around(call.thread.index(), call.depth).to_owned();
        let (who, passed) = self.end(call.thread.index(), call.depth);
        let why = match call.why {
            Why::TraceEnds => "trace ends",
            Why::ExitLost => "exit lost",
            Why::ThreadEnded => "thread ended",
        };
        let depth = call.depth;
        self.calls.push(format!("{who} unfinished{why} - - - 1 {depth} -  in {parent} {passed:?}"));
        ControlFlow::Continue(())
    }

    fn orphan(&mut self, at: At<'_>, call: &Orphan, _: &Event<'_, '_>) -> Step {
        let parent = self.around(call.thread.index(), u32::MAX);
        let (who, end, error) = (at.who(), self.time(call.end), self.error(call.function, call.error));
        let (pid, tid, name) = (who.pid, who.tid, self.name(call.function));
        self.calls.push(format!("{pid}.{tid} {name} at {end} orphan {end} - - 1 - {error} in {parent} []"));
        ControlFlow::Continue(())
    }

    fn fold(&mut self, at: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> Step {
        let parent = self.around(fold.thread.index(), fold.depth);
        let (who, name, error) = (at.who(), self.name(fold.function), self.error(fold.function, fold.error));
        let (pid, tid) = (who.pid, who.tid);
        let Fold { total, count, depth, .. } = *fold;
        let (first, last) = (self.time(fold.first), self.time(fold.last));
        let state = if fold.summed { "added up" } else { "folded" };
        self.calls.push(format!(
            "{pid}.{tid} {name} at {first} {state} {last} {total} {total} {count} {depth} {error} in {parent} []"
        ));
        ControlFlow::Continue(())
    }

    fn unknown(&mut self, at: At<'_>, _: &str, function: &str, _: &Event<'_, '_>) -> Step {
        let (who, time) = (at.who(), self.time(at.time));
        let parent = self.around(at.thread.index(), u32::MAX);
        let (pid, tid) = (who.pid, who.tid);
        self.calls.push(format!("{pid}.{tid} {function} at {time} unknown - - - 1 - -  in {parent} []"));
        ControlFlow::Continue(())
    }

    fn command(&mut self, at: At<'_>, c: &Command<'_>, _: &Event<'_, '_>) -> Step {
        let size = |sizes: &Sizes, n: usize| or_dash(sizes.as_slice().get(n));
        let g = &c.geometry;
        let in_graph = c.graph != 0;
        let numbers = [
            c.pid.to_string(),
            or_dash(c.on_device.map(|d| d.id)),
            or_dash(c.on_queue.map(|q| q.id)),
            or_dash(c.on_queue.map(|q| q.handle as i64)),
            or_dash(c.function.map(|f| f.id)),
            self.time(c.times.map_or(at.time, |t| t.start)).to_string(),
            or_dash(c.times.map(|t| self.time(t.end))),
            or_dash(c.times.map(|t| t.duration())),
            or_dash(c.times.map(|t| self.time(t.queued))),
            or_dash(c.times.map(|t| self.time(t.submitted))),
            or_dash(c.times.is_none().then_some(c.times_error)),
            c.weight.to_string(),
            c.bytes.to_string(),
            or_dash(c.peer.map(|d| d.id)),
            c.status.to_string(),
            size(&g.global, 0),
            size(&g.global, 1),
            size(&g.global, 2),
            size(&g.local, 0),
            size(&g.local, 1),
            size(&g.local, 2),
            size(&g.offset, 0),
            size(&g.cluster, 0),
            c.shared.to_string(),
            or_dash(in_graph.then_some(c.graph as i64)),
            or_dash(in_graph.then_some(c.node as i64)),
            or_dash((c.cause != 0).then(|| self.time(c.cause))),
        ];
        let known = |memory: &str| if memory == "unknown" { String::new() } else { memory.to_owned() };
        let texts = [
            c.kind.name().to_owned(),
            c.name.to_owned(),
            c.device_name().to_owned(),
            known(c.from.name()),
            known(c.to.name()),
        ];
        self.commands.push(format!("{} {}", numbers.join(" "), texts.join(",")));
        ControlFlow::Continue(())
    }
}
