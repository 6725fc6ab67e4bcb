//! Which lines are printed.

use hetrace_model::glob_matches;

use hetrace_trace::args::Args;
use hetrace_trace::demangle;
use hetrace_trace::spans::Command;
use hetrace_trace::trace::Thread;

/// What is printed: what fits all that is asked for. What is empty, asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Globs; one of them matches the function, the kernel, the kind of command,
    /// or the event.
    pub names: Vec<String>,
    /// Calls of these APIs, and commands on their queues.
    pub apis: Vec<String>,
    /// Processes.
    pub pids: Vec<i64>,
    /// Threads; of commands, those that enqueued them.
    pub tids: Vec<i64>,
    /// Only what failed.
    pub errors: bool,
    /// Only what took so long, ns.
    pub min_duration: Option<u64>,
    /// Only what begins then or later, ns after the first event.
    pub from: Option<u64>,
    /// Only what begins before, ns after the first event.
    pub to: Option<u64>,
    /// Names of arguments with their text as it is printed, without quotes; globs.
    /// All must be there.
    pub args: Vec<(String, String)>,
}

/// What a line is of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line<'a> {
    /// Empty if it is of none.
    pub api: &'a str,
    pub name: &'a str,
    /// ns after the first event
    pub begin: u64,
    /// None if it is not known.
    pub duration: Option<u64>,
    pub failed: bool,
}

impl Filter {
    /// Whether everything is printed.
    pub fn is_of_all(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn has_thread(&self, pid: i64, tid: i64) -> bool {
        (self.pids.is_empty() || self.pids.contains(&pid))
            && (self.tids.is_empty() || self.tids.contains(&tid))
    }

    fn has_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|glob| glob_matches(glob, name))
    }

    /// All but names, threads and arguments.
    fn has_rest(&self, line: &Line<'_>) -> bool {
        (self.apis.is_empty() || self.apis.iter().any(|api| api == line.api))
            && self.from.is_none_or(|from| line.begin >= from)
            && self.to.is_none_or(|to| line.begin < to)
            && (!self.errors || line.failed)
            && self.min_duration.is_none_or(|least| line.duration.is_some_and(|ns| ns >= least))
    }

    /// Whether a call is printed.
    pub(super) fn has_call(&self, who: &Thread, line: &Line<'_>, args: [Option<&Args<'_>>; 2]) -> bool {
        let has = |(name, value): &(String, String)| {
            let pieces =
                args.iter().flatten().flat_map(|args| args.pieces.iter().map(|p| (p.name, args.of(p))));
            let mut own = pieces.filter(|(known, _)| known == name);
            own.any(|(_, text)| glob_matches(value, text) || glob_matches(value, text.trim_matches('"')))
        };
        self.has_thread(who.pid, who.tid)
            && self.has_name(line.name)
            && self.has_rest(line)
            && self.args.iter().all(has)
    }

    /// Whether a command is printed; `line` has no name.
    pub(super) fn has_command(&self, command: &Command<'_>, line: &Line<'_>) -> bool {
        let name = command.name;
        let named = |name: &str| !name.is_empty() && self.has_name(name);
        let has_name = self.names.is_empty()
            || named(command.kind.name())
            || named(name)
            || (!name.is_empty() && (named(&demangle::short(name)) || named(&demangle::full(name))));
        self.args.is_empty()
            && has_name
            && self.has_thread(command.pid, command.cause_tid)
            && self.has_rest(line)
    }

    /// Whether an event is printed that is neither.
    pub(super) fn has_event(&self, who: &Thread, line: &Line<'_>) -> bool {
        // It has no thread of its own, often: only if that is asked for is it asked.
        self.args.is_empty()
            && self.has_thread(who.pid, who.tid)
            && self.has_name(line.name)
            && self.has_rest(line)
    }
}
