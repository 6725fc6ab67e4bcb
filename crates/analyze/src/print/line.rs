//! Parts of a line.

use std::fmt::Write;

use crate::args::{Args, Role};

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
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(out, "{comma}{}=", param.name);
        let passed = entry.and_then(|args| args.find(role));
        let _ = match (passed, exit.and_then(|args| args.find(role))) {
            (Some(before), Some(after)) if before != after => write!(out, "{before} → {after}"),
            (Some(text), _) | (None, Some(text)) => write!(out, "{text}"),
            // Its event is missing, or has not come.
            (None, None) => write!(out, "?"),
        };
    }
    out.push(')');
}

/// Appends `a=1, b=2`, without the result.
pub(super) fn write_fields(out: &mut String, args: &Args<'_>, first: &mut bool) {
    for piece in args.pieces.iter().filter(|p| p.role != Role::Return) {
        out.push_str(if std::mem::take(first) { "" } else { ", " });
        let _ = write!(out, "{}={}", piece.name, args.of(piece));
    }
}
