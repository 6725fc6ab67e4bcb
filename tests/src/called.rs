//! The calls of a trace with what was recorded of them: arguments, outputs, times.

use std::collections::BTreeMap;
use std::path::Path;

use hetrace_ctf::Value;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Event, Trace};

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// `nccl`, `cuda`.
    pub api: String,
    /// Function.
    pub name: String,
    /// When it began.
    pub begin: u64,
    /// When it ended, if it did.
    pub end: Option<u64>,
    /// Arguments and outputs by name; those of a list carry no length.
    pub fields: BTreeMap<String, Value>,
}

impl Call {
    /// An integer, an enumeration's number, or the one element of a list.
    pub fn number(&self, name: &str) -> Option<i64> {
        fn of(value: &Value) -> Option<i64> {
            match value {
                Value::Unsigned(n) => Some(*n as i64),
                Value::Signed(n) => Some(*n),
                Value::Enum { value, .. } => Some(*value as i64),
                Value::Array(items) if items.len() == 1 => of(&items[0]),
                _ => None,
            }
        }
        self.fields.get(name).and_then(of)
    }

    /// The name of an enumeration's value.
    pub fn label(&self, name: &str) -> Option<&str> {
        match self.fields.get(name) {
            Some(Value::Enum { label, .. }) => label.as_deref(),
            _ => None,
        }
    }

    /// Numbers of a list.
    pub fn list(&self, name: &str) -> Vec<i64> {
        match self.fields.get(name) {
            Some(Value::Array(items)) => items
                .iter()
                .filter_map(|i| match i {
                    Value::Unsigned(n) => Some(*n as i64),
                    Value::Signed(n) => Some(*n),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Whether another call lies inside this one.
    pub fn holds(&self, other: &Call) -> bool {
        (self.pid, self.tid) == (other.pid, other.tid)
            && self.begin <= other.begin
            && self.end.is_none_or(|end| other.end.is_some_and(|e| e <= end))
    }
}

/// All calls, and what APIs say of their error codes: `(API, code)` → text.
#[derive(Debug, Default)]
pub struct Called {
    /// Calls by process, thread and time.
    pub calls: Vec<Call>,
    /// Texts.
    pub errors: BTreeMap<(String, i64), String>,
}

impl Called {
    /// Reads a trace; folded polls are left out.
    pub fn read(folder: &Path) -> Called {
        let trace = Trace::open(folder).expect("a trace that opens");
        let mut called = Called::default();
        let mut open: BTreeMap<(u32, u32, String), Vec<usize>> = BTreeMap::new();
        for mut stream in trace.streams() {
            while let Some(event) = stream.next_event() {
                let event = event.expect("an event");
                let (api, what) = event.class().name.split_once(':').unwrap_or(("", ""));
                if api == "device" {
                    continue;
                }
                let (pid, tid) = (context(&event, "vpid"), context(&event, "vtid"));
                let (time, fields) = (event.timestamp().unwrap_or(0), fields(&event));
                if what == "error_text" {
                    let text = |v: &Value| if let Value::Str(s) = v { s.clone() } else { String::new() };
                    let code = match &fields["code"] {
                        Value::Signed(n) => *n,
                        Value::Unsigned(n) => *n as i64,
                        _ => 0,
                    };
                    called.errors.insert((api.to_owned(), code), text(&fields["text"]));
                } else if let Some(name) = what.strip_suffix("_entry") {
                    let key = (pid, tid, format!("{api}:{name}"));
                    open.entry(key).or_default().push(called.calls.len());
                    let (api, name) = (api.to_owned(), name.to_owned());
                    called.calls.push(Call { pid, tid, api, name, begin: time, end: None, fields });
                } else if let Some(name) = what.strip_suffix("_exit") {
                    let key = (pid, tid, format!("{api}:{name}"));
                    let call = open.get_mut(&key).and_then(Vec::pop).expect("an entry before each exit");
                    called.calls[call].end = Some(time);
                    called.calls[call].fields.extend(fields);
                }
            }
        }
        called.calls.sort_by_key(|c| (c.pid, c.tid, c.begin));
        called
    }

    /// Calls of one API by one process.
    pub fn of(&self, api: &str, pid: u32) -> Vec<&Call> {
        self.calls.iter().filter(|c| c.api == api && c.pid == pid).collect()
    }
}

fn context(event: &Event<'_, '_>, name: &str) -> u32 {
    event.get_in(Scope::PacketContext, name).and_then(|s| s.as_u64()).unwrap_or(0) as u32
}

fn fields(event: &Event<'_, '_>) -> BTreeMap<String, Value> {
    match event.fields().expect("fields") {
        Value::Struct(members) => members.into_iter().filter(|(n, _)| !n.ends_with("_length")).collect(),
        _ => BTreeMap::new(),
    }
}
