//! Lines of code, of which calls and commands are: that of the frame which stands for the call's stack; of a command, at the
//! call that enqueued it.

use std::collections::HashMap;

use hetrace_trace::history::History;
use hetrace_trace::spans::{At, Command, Open};
use hetrace_trace::stacks::{Frame, ShortNames, StackId, Stacks};
use hetrace_trace::trace::Trace;

/// A place in the program: file or module, line and function.
type Place<'t> = (&'t str, &'t str, u32, &'t str);

/// The lines of a trace.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    known: &'t Stacks,
    files: ShortNames<'t>,
    all: Vec<&'t Frame>,
    numbers: HashMap<Place<'t>, u32>,
    /// Of the stacks that were met.
    stacks: HashMap<StackId, Option<u32>>,
    /// The line of the innermost call of each thread, with the time at which it began, when it began.
    history: History<(u64, Option<u32>)>,
}

impl<'t> Lines<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        let known = trace.names().stacks();
        Self {
            known,
            files: known.short_names(),
            all: Vec::new(),
            numbers: HashMap::new(),
            stacks: HashMap::new(),
            history: History::default(),
        }
    }

    /// A call begins.
    pub fn entry(&mut self, at: At<'_>, call: &Open) {
        let line = self.number(call.stack);
        let who = at.threads.get(call.thread);
        self.history.change(who.pid, who.tid, call.start, (call.start, line));
    }

    /// The number of the line of a stack; none if it is not known.
    pub fn number(&mut self, stack: StackId) -> Option<u32> {
        if let Some(known) = self.stacks.get(&stack) {
            return *known;
        }
        let frame = self.known.innermost(stack);
        let number = frame.map(|frame| {
            let all = &mut self.all;
            *self.numbers.entry((&frame.file, &frame.module, frame.line, &frame.name)).or_insert_with(|| {
                all.push(frame);
                u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
            })
        });
        self.stacks.insert(stack, number);
        number
    }

    /// The line of the call that enqueued a command; the outer one is none if that call is not known.
    pub fn known(&self, command: &Command<'_>) -> Option<Option<u32>> {
        let (start, line) = self.history.at(command.pid, command.cause_tid, command.cause)?;
        (start == command.cause).then_some(line)
    }

    /// `file:line function`.
    pub fn name(&self, line: u32) -> String {
        let frame = self.all.get(line as usize);
        frame.map_or_else(String::new, |frame| match frame.place(&self.files) {
            Some(place) => format!("{place} {}", frame.name),
            None => frame.name.to_string(),
        })
    }
}
