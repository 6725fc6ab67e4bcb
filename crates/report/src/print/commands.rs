//! Commands as lines have them.

use std::collections::HashMap;
use std::fmt::Write;

use super::line::write_command;
use super::shared::Shared;
use crate::text::Style;
use hetrace_trace::demangle;
use hetrace_trace::spans::Command;
use hetrace_trace::text::digits;

/// Writes commands.
#[derive(Debug, Default)]
pub(super) struct Commands {
    pub style: Style,
    pub full_names: bool,
    /// Names as they are shown, by the function's number.
    kernels: HashMap<u32, String>,
}

impl Commands {
    pub fn new(style: Style, full_names: bool) -> Self {
        Self { style, full_names, ..Self::default() }
    }

    /// Appends what a command did; `number` is that of the call that enqueued it.
    pub fn write(&mut self, out: &mut String, shared: &Shared, command: &Command<'_>, number: Option<u64>) {
        if let Some(queue) = command.on_queue.filter(|q| shared.queue(q.id)) {
            out.push_str(&queue.api);
            out.push(' ');
        }
        out.push_str("queue ");
        digits::hexadecimal(out, command.queue);
        out.push_str(command.on_queue.map_or("", |q| shared.mark(q.id)));
        out.push_str(": ");
        out.push_str(command.kind.name());
        if let Some(function) = command.function.filter(|f| !f.name.is_empty()) {
            let full = self.full_names;
            let name = self.kernels.entry(function.id).or_insert_with(|| {
                let shown =
                    if full { demangle::full(&function.name) } else { demangle::short(&function.name) };
                shown.into_owned()
            });
            out.push(' ');
            out.push_str(name);
        }
        out.push('(');
        write_command(out, command);
        out.push(')');
        if command.failed() {
            let failed = self.style.red(&format!("failed: {}", command.status));
            let _ = write!(out, " = {failed}");
        }
        out.push_str("  ");
        write_number(out, number);
        match command.times {
            Some(times) => {
                out.push('(');
                digits::duration(out, times.duration());
                // What was not reported is the start.
                if times.queued != times.start {
                    out.push_str(", queued ");
                    digits::duration(out, times.start.saturating_sub(times.queued));
                    out.push_str(" before");
                }
                out.push(')');
            }
            None => {
                let _ = write!(out, "(times not known: {})", command.times_error);
            }
        }
    }
}

/// Appends the number that a call shares with its commands, and a space.
pub(super) fn write_number(out: &mut String, number: Option<u64>) {
    if let Some(number) = number {
        out.push('#');
        digits::unsigned(out, number);
        out.push(' ');
    }
}
