//! One wrapper per function.

use std::fmt::Write;

use hetrace_model::layout::{self, Phase, Shape, Source};
use hetrace_model::{Follow, Function, Model, Param, Success};

use crate::expr::rust;
use crate::rust_type::{self, ident};
use crate::{heading, tables};

/// A prototype's parts as text.
struct Prototype {
    /// `a: T, b: U`
    params: String,
    /// ` -> R`, or empty.
    result: String,
    /// `a, b`
    args: String,
}

fn prototype(model: &Model, f: &Function) -> Result<Prototype, String> {
    let at = |e| format!("{}: {e}", f.name);
    let mut params = Vec::new();
    for p in &f.params {
        params.push(format!("{}: {}", ident(&p.name), rust_type::param(model, p).map_err(at)?));
    }
    let result = rust_type::result(model, &f.returns).map_err(at)?;
    Ok(Prototype {
        params: params.join(", "),
        result: result.map(|r| format!(" -> {r}")).unwrap_or_default(),
        args: f.params.iter().map(|p| ident(&p.name)).collect::<Vec<_>>().join(", "),
    })
}

/// `real.rs`.
pub fn real(model: &Model) -> Result<String, String> {
    let mut out = heading(model, "use super::prelude::*;");
    let mut known = String::new();
    for (index, f) in model.functions.iter().enumerate() {
        let Prototype { params, result, args } = prototype(model, f)?;
        let ty = format!("unsafe extern \"C\" fn({params}){result}");
        let name = &f.name;
        let (generic, instance, table) = if tables::by_loader(model, f) {
            ("", "", format!("REAL[{index}]"))
        } else {
            ("<const I: usize>", "::<I>", format!("EXTENSIONS[{index}][I]"))
        };
        let _ = writeln!(
            out,
            "#[inline(always)] pub unsafe fn {name}{generic}({params}){result} {{ match known::{name}{instance}() {{ Some(f) => unsafe {{ f({args}) }}, None => match look_up(&{table}, {index}) {{ Some(f) => unsafe {{ transmute::<P, {ty}>(f)({args}) }}, None => missing() }} }} }}"
        );
        let _ = writeln!(
            known,
            "    #[inline(always)] pub fn {name}{generic}() -> Option<{ty}> {{ unsafe {{ transmute::<P, Option<{ty}>>({table}.get()) }} }}"
        );
    }
    let _ = writeln!(
        out,
        "\n/// The real functions whose address is known already.\npub mod known {{\n    use super::super::prelude::*;\n{known}}}"
    );
    Ok(out)
}

/// `wrappers.rs`.
pub fn wrappers(model: &Model) -> Result<String, String> {
    let most = usize::from((MAX_ID - layout::FIRST_FUNCTION_EVENT) / layout::EVENTS_PER_FUNCTION);
    if model.functions.len() > most {
        return Err(format!("{} functions; a ring's records can name {most}", model.functions.len()));
    }
    let mut out = heading(model, "use super::prelude::*;");
    for index in 0..model.functions.len() {
        wrapper(model, index, &mut out)?;
    }
    Ok(out)
}

fn wrapper(model: &Model, index: usize, out: &mut String) -> Result<(), String> {
    let f = &model.functions[index];
    let Prototype { params, result, args } = prototype(model, f)?;
    let by_loader = tables::by_loader(model, f);
    let mut body = String::new();
    if let Success::OutZero(name) = &f.success {
        let _ = writeln!(body, "    let mut own = 0; let {name} = or_own({name}, &raw mut own);");
    }
    let real = if by_loader { format!("real::{}", f.name) } else { format!("real::{}::<I>", f.name) };
    let events = layout::function_events(model, index);
    let fields = |phase| events.iter().find(|e| e.phase == phase).map(|e| &e.fields[..]).unwrap_or(&[]);
    let entry = tuple(fields(Phase::Entry).iter().map(|field| entry_field(model, f, field)));
    let exit = tuple(fields(Phase::Exit).iter().map(|field| exit_field(f, field)));
    let id = layout::entry_id(index);
    let ok = match &f.success {
        Success::ReturnZero => "result == 0".to_owned(),
        Success::ReturnNonNull => "!result.is_null()".to_owned(),
        Success::OutZero(name) => format!("*{name} == 0"),
        Success::Always => "true".to_owned(),
    };
    let uses_ok = exit.contains("ok");
    let exit = format!(
        "move |result| {{ {}{exit} }}",
        if uses_ok { format!("let ok = {ok}; ") } else { "let _ = result; ".to_owned() }
    );
    let call = real_call(f, &real, &args, &ok, true);
    let after = after(f);
    if entry.contains("caps") || exit.contains("caps") {
        body.push_str("    let caps = Caps::current();\n");
    }
    if f.has_role("poll") {
        let (key, known) = poll_key(f);
        let answer = poll_answer(f, known, &ok);
        let _ = writeln!(
            body,
            "    poll(on, {id}, {known}, {key}, move || {entry}, {call}, {answer}, {exit}, {after})"
        );
    } else {
        // A hook that serves an option is a detour: the way without it is kept
        // as short as that of any other function.
        if f.command.is_none() && f.hook.as_ref().is_some_and(|why| why.starts_with("--")) {
            let plain = real_call(f, &real, &args, &ok, false);
            let _ = writeln!(
                body,
                "    if on & HOOK == 0 {{ return call(on, {id}, move || {entry}, {plain}, {exit}, {after}); }}"
            );
        }
        let _ = writeln!(body, "    call(on, {id}, move || {entry}, {call}, {exit}, {after})");
    }
    if by_loader {
        let _ = writeln!(
            out,
            "wrapper! {{ #[unsafe(no_mangle)] {index} {}({params}){result}, on, {{\n{body}}} }}",
            f.name
        );
    } else {
        let _ = writeln!(out, "extension! {{ {index} {}({params}){result}, on, {{\n{body}}} }}", f.name);
    }
    Ok(())
}

fn tuple(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = parts.collect();
    // Tuples of more than 12 are nested, since Rust gives them no traits.
    if parts.len() > 12 {
        let rest = parts.split_off(11);
        parts.push(tuple(rest.into_iter()));
    }
    format!("({})", parts.iter().map(|p| format!("{p},")).collect::<String>())
}

fn entry_field(_: &Model, f: &Function, field: &layout::Field) -> String {
    match field.source {
        Source::Param(i) => param_value(&f.params[i], &field.shape),
        Source::Behind(i) => behind(&f.params[i], None),
        Source::Return | Source::Tracer => "()".to_owned(),
    }
}

fn exit_field(f: &Function, field: &layout::Field) -> String {
    match field.source {
        Source::Return => "result".to_owned(),
        Source::Param(i) => param_value(&f.params[i], &field.shape),
        Source::Behind(i) if matches!(&f.success, Success::OutZero(n) if *n == f.params[i].name) => {
            format!("*{}", ident(&f.params[i].name))
        }
        Source::Behind(i) => behind(&f.params[i], Some("ok")),
        Source::Tracer => "()".to_owned(),
    }
}

fn param_value(p: &Param, _: &Shape) -> String {
    ident(&p.name)
}

/// What a pointer parameter points at; `ok` guards outputs of failed calls.
fn behind(p: &Param, ok: Option<&str>) -> String {
    let name = ident(&p.name);
    let guarded = |length: String| match ok {
        Some(ok) => format!("if {ok} {{ {length} }} else {{ 0 }}"),
        None => length,
    };
    match &p.follow {
        Follow::Pointee => format!("one({name}, {})", ok.unwrap_or("true")),
        Follow::Array { length } => format!("seq({name}, {}, caps)", guarded(rust(length))),
        Follow::String { length } => {
            let length = length.as_ref().map_or("0".to_owned(), rust);
            match ok {
                Some(ok) => format!("text(if {ok} {{ {name} }} else {{ null_mut() }}, {length}, caps)"),
                None => format!("text({name}, {length}, caps)"),
            }
        }
        Follow::Strings { count, lengths } => {
            let lengths = lengths.as_ref().map_or("null()".to_owned(), |l| format!("{}.cast()", ident(l)));
            format!("texts({name}.cast::<*const u8>(), {}, {lengths}, caps)", guarded(rust(count)))
        }
        Follow::List { pairs } => format!("list({name}.cast(), {}, caps)", if *pairs { 2 } else { 1 }),
        Follow::Info { size, size_ret, .. } => format!(
            "bytes({name}, {}, caps)",
            guarded(format!("({} as usize).min(behind({}))", ident(size), ident(size_ret)))
        ),
        Follow::Bytes { length } => format!("bytes({name}, {}, caps)", guarded(rust(length))),
        Follow::Value | Follow::Data { .. } | Follow::Callback | Follow::Waived { .. } => name,
    }
}

/// The closure that runs the real function, or what stands for it.
fn real_call(f: &Function, real: &str, args: &str, ok: &str, hooked: bool) -> String {
    if f.hook.is_some() && hooked {
        return format!("move |time| crate::hooks::{}(time, {args})", f.name);
    }
    let has = |name: &str| f.params.iter().any(|p| p.name == name);
    let Some(command) = f.command.as_ref().filter(|_| has("event")) else {
        return format!("move |_| {real}({args})");
    };
    let kind = hetrace_command_kind(&command.kind);
    let bytes = command.bytes.as_ref().map_or("0".to_owned(), rust);
    let kernel = command.kernel.as_ref().map_or("null_mut()".to_owned(), |k| ident(k));
    let geometry = if has("work_dim") && has("global_work_size") {
        "geometry(work_dim, global_work_offset, global_work_size, local_work_size)"
    } else {
        "NO_GEOMETRY"
    };
    format!(
        "move |time| crate::device::enqueue(time, {}, {kind}, {kernel}, move || {bytes}, {geometry}, event, move |event| {real}({args}), move |result| {{ let _ = result; {ok} }})",
        queue(f, &command.queue)
    )
}

/// The queue a command goes to; the first of several.
fn queue(f: &Function, name: &str) -> String {
    let several = f.params.iter().any(|p| p.name == name && p.pointers > 0);
    if several { format!("first({})", ident(name)) } else { ident(name) }
}

/// Position of a command's kind in the ring's table; kept equal by a test.
fn hetrace_command_kind(kind: &str) -> usize {
    COMMAND_KINDS.iter().position(|k| *k == kind).unwrap_or(0)
}

/// The largest event number of a ring, as `hetrace_ring::record` has it.
const MAX_ID: u16 = (1 << 14) - 1;

/// The kinds of commands, as `hetrace_ring::abi::COMMAND_KINDS` has them.
pub const COMMAND_KINDS: &[&str] = &[
    "other", "kernel", "read", "write", "copy", "fill", "map", "unmap", "migrate", "marker", "barrier",
    "native", "free", "acquire", "release",
];

/// What runs when the exit is recorded.
fn after(f: &Function) -> String {
    if f.has_role("sync") {
        return "|| crate::device::synchronized()".to_owned();
    }
    match &f.blocking {
        Some(p) => format!("move || if {} != 0 {{ crate::device::synchronized() }}", ident(p)),
        None => "|| ()".to_owned(),
    }
}

/// The words by which equal polls are known, and how many are arguments.
fn poll_key(f: &Function) -> (String, usize) {
    let words: Vec<String> = f.params.iter().map(|p| format!("{} as u64", ident(&p.name))).collect();
    let known = words.len().min(6);
    let mut key: Vec<String> = words.into_iter().take(known).collect();
    key.resize(8, "0".to_owned());
    (format!("[{}]", key.join(", ")), known)
}

/// The closure that adds a poll's answer to its key.
fn poll_answer(f: &Function, known: usize, ok: &str) -> String {
    let outputs = f.params.iter().filter_map(|p| match &p.follow {
        Follow::Info { size, .. } => {
            Some(format!("answer_word({}, {} as usize)", ident(&p.name), ident(size)))
        }
        _ => None,
    });
    let output = outputs.into_iter().next().unwrap_or("0".to_owned());
    format!(
        "move |result, key| {{ key[{known}] = result as u64; key[{}] = if {ok} {{ {output} }} else {{ 0 }}; }}",
        known + 1
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_agree_with_the_ring() {
        assert_eq!(super::COMMAND_KINDS, hetrace_ring::abi::COMMAND_KINDS);
        assert_eq!(super::MAX_ID, hetrace_ring::record::MAX_ID);
        assert_eq!(hetrace_model::layout::FIRST_FUNCTION_EVENT, hetrace_ring::record::FIRST_CALL_ID);
        assert_eq!(hetrace_model::layout::EVENTS_PER_FUNCTION, hetrace_ring::record::IDS_PER_CALL);
    }
}
