//! What several APIs of a trace have in common: names of functions, and handles of queues. Lines
//! that show one say whose it is.

use std::collections::{HashMap, HashSet};

use hetrace_trace::titles::default_queue_mark;
use hetrace_trace::trace::{FunctionId, Trace};

/// Names and queues that are ambiguous without their API.
#[derive(Debug, Default)]
pub struct Shared {
    /// By function, its name with the API before it.
    names: HashMap<usize, String>,
    /// Numbers of queues.
    queues: HashSet<u32>,
    /// By number of a default queue, what is said beside its handle.
    marks: HashMap<u32, String>,
}

impl Shared {
    /// Returns what is shared in a trace.
    pub fn of(trace: &Trace) -> Shared {
        let functions = trace.functions();
        let mut first: HashMap<&str, usize> = HashMap::new();
        let mut names = HashMap::new();
        for (number, function) in functions.all().iter().enumerate() {
            let other = *first.entry(&function.name).or_insert(number);
            let full = |f: usize| {
                let api = functions.all().get(f).and_then(|f| functions.apis().get(f.api));
                format!("{}:{}", api.map_or("", String::as_str), function.name)
            };
            if functions.all().get(other).is_some_and(|f| f.api != function.api) {
                names.insert(other, full(other));
                names.insert(number, full(number));
            }
        }
        let mut handles: HashMap<(i64, u64), &str> = HashMap::new();
        let all = trace.names().queues();
        let several: HashSet<(i64, u64)> = all
            .iter()
            .filter(|q| *handles.entry((q.pid, q.handle)).or_insert(&q.api) != q.api)
            .map(|q| (q.pid, q.handle))
            .collect();
        let queues = all.iter().filter(|q| several.contains(&(q.pid, q.handle))).map(|q| q.id).collect();
        let marks = all.iter().map(|q| (q.id, default_queue_mark(trace, q)));
        let marks = marks.filter(|(_, mark)| !mark.is_empty()).collect();
        Shared { names, queues, marks }
    }

    /// Returns the name of a function with its API, if another API has a function of that name.
    pub fn name(&self, function: FunctionId) -> Option<&str> {
        if self.names.is_empty() { None } else { self.names.get(&function.index()).map(String::as_str) }
    }

    /// Returns what is said beside the handle of a default queue; empty for other queues.
    pub fn mark(&self, queue: u32) -> &str {
        self.marks.get(&queue).map_or("", String::as_str)
    }

    /// Returns whether a queue of another API has its handle.
    pub fn queue(&self, number: u32) -> bool {
        self.queues.contains(&number)
    }
}
