//! Parts of a line.

use std::fmt::Write;

use crate::text::Style;
use hetrace_trace::args::{Args, Role};
use hetrace_trace::spans::{At, Command, MemoryKind, notable};
use hetrace_trace::text::digits;

/// Processes and threads as lines begin with them, by the thread's number.
#[derive(Debug, Default)]
pub(super) struct Who(Vec<String>);

impl Who {
    /// Appends `PID:TID `.
    #[inline]
    pub fn write(&mut self, out: &mut String, at: At<'_>) {
        match self.0.get(at.thread.index()).filter(|known| !known.is_empty()) {
            Some(known) => out.push_str(known),
            None => self.meet(out, at),
        }
    }

    #[cold]
    fn meet(&mut self, out: &mut String, at: At<'_>) {
        let index = at.thread.index();
        if self.0.len() <= index {
            self.0.resize(index + 1, String::new());
        }
        let who = at.who();
        self.0[index] = format!("{}:{} ", who.pid, who.tid);
        out.push_str(&self.0[index]);
    }
}

/// Appends a time as it was recorded, and what of it tracing took, where that matters.
#[inline]
pub(super) fn write_duration(out: &mut String, time: u64, cost: u64) {
    digits::duration(out, time);
    if let Some(cost) = notable(cost, time) {
        out.push_str(", of which ");
        digits::duration(out, cost);
        out.push_str(" tracing");
    }
}

/// Appends the arguments of a call: what was passed and what came back, in the
/// order of the parameters.
pub(super) fn write_call(
    out: &mut String,
    params: Option<&[hetrace_model::Param]>,
    entry: Option<&Args<'_>>,
    exit: Option<&Args<'_>>,
) {
    out.push('(');
    let Some(params) = params else {
        let mut first = true;
        for args in [entry, exit].into_iter().flatten() {
            write_fields(out, args, &mut first);
        }
        out.push(')');
        return;
    };
    for (param, index) in params.iter().zip(0u16..) {
        let role = Role::Param(index);
        out.push_str(if index > 0 { ", " } else { "" });
        out.push_str(&param.name);
        out.push('=');
        let passed = entry.and_then(|args| args.find(role));
        let returned = exit.and_then(|args| args.find(role));
        match (passed, returned) {
            (Some(before), Some(after)) if before != after => {
                [before, " → ", after].iter().for_each(|text| out.push_str(text));
            }
            (Some(text), _) | (None, Some(text)) => out.push_str(text),
            // Its event is missing, or has not come.
            (None, None) => out.push('?'),
        }
        // What members of the struct point at.
        let sides = [(entry, passed), (exit, returned)];
        let there = sides.into_iter().filter(|(_, param)| *param != Some("NULL"));
        for args in there.filter_map(|(args, _)| args) {
            for piece in args.pieces.iter().filter(|piece| piece.role == Role::Behind(index)) {
                let member = piece.name.strip_prefix(param.name.as_str()).unwrap_or("");
                let member = member.strip_prefix('_').unwrap_or(piece.name);
                let _ = write!(out, ", {}.{member}={}", param.name, args.of(piece));
            }
        }
    }
    out.push(')');
}

/// Appends `a=1, b=2`, without the result.
pub(super) fn write_fields(out: &mut String, args: &Args<'_>, first: &mut bool) {
    for piece in args.pieces.iter().filter(|p| p.role != Role::Return) {
        out.push_str(if std::mem::take(first) { "" } else { ", " });
        out.push_str(piece.name);
        out.push('=');
        out.push_str(args.of(piece));
    }
}

/// Appends what is known of a command beside its name and its times.
pub(super) fn write_command(out: &mut String, command: &Command<'_>) {
    let mut first = true;
    let mut add = |name: &str, value: std::fmt::Arguments<'_>| {
        out.push_str(if std::mem::take(&mut first) { "" } else { ", " });
        let _ = write!(out, "{name}={value}");
    };
    if command.bytes > 0 {
        add("bytes", format_args!("{}", command.bytes));
    }
    for (name, memory) in [("from", command.from), ("to", command.to)] {
        if memory != MemoryKind::Unknown {
            add(name, format_args!("{memory}"));
        }
    }
    if let Some(peer) = command.peer {
        add("peer", format_args!("{}", peer.name));
    }
    let geometry = &command.geometry;
    for (name, sizes) in [
        ("offset", geometry.offset),
        ("global", geometry.global),
        ("local", geometry.local),
        ("cluster", geometry.cluster),
    ] {
        if !sizes.is_empty() {
            add(name, format_args!("{:?}", sizes.as_slice()));
        } else if name == "local" && !geometry.global.is_empty() {
            // The program left it to the API.
            add(name, format_args!("auto"));
        }
    }
    if command.shared > 0 {
        add("shared", format_args!("{}", command.shared));
    }
    if command.graph > 0 || command.node > 0 {
        add("graph", format_args!("{}", command.graph));
        add("node", format_args!("{}", command.node));
    }
    if command.weight > 1 {
        add("launches", format_args!("{}", command.weight));
    }
}

/// Appends what a call answered.
pub(super) fn write_result(out: &mut String, style: Style, exit: &Args<'_>, failed: bool) {
    if let Some(result) = exit.find(Role::Return) {
        out.push_str(" = ");
        if failed { out.push_str(&style.red(result)) } else { out.push_str(result) }
    }
}
