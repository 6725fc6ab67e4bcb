//! One wrapper per function.

use std::fmt::Write;

use hetrace_model::layout::{self, Phase, Source};
use hetrace_model::{Command, Direction, EXCHANGED, Expr, Follow, Function, Model, Param, Success, Timing};

use crate::expr::{self, Scope, before};
use crate::rust_type::{self, ident};
use crate::{heading, tables};

/// Registers in which numbers with a fraction are passed.
const FLOATS: usize = 8;

/// A prototype's parts as text.
struct Prototype {
    /// `a: T, b: U`
    params: String,
    /// ` -> R`, or empty.
    result: String,
    /// `a, b`
    args: String,
    /// The type of the real function.
    ty: String,
}

fn prototype(model: &Model, f: &Function) -> Result<Prototype, String> {
    let at = |e| format!("{}: {e}", f.name);
    let mut params = Vec::new();
    for p in &f.params {
        params.push(format!("{}: {}", ident(&p.name), rust_type::param(model, p).map_err(at)?));
    }
    let result = rust_type::result(model, &f.returns).map_err(at)?;
    let mut args: Vec<String> = f.params.iter().map(|p| ident(&p.name)).collect();
    let mut fixed = params.join(", ");
    if let Some(variadic) = &f.variadic {
        fixed = format!("{}, ...", params.get(..variadic.named).unwrap_or_default().join(", "));
        // A register that the program has not set has something in it all the same; nobody reads it.
        let rest = (0..variadic.passed).map(|i| (format!("register{i}"), "u64"));
        for (name, ty) in rest.chain((0..FLOATS).map(|i| (format!("float{i}"), "f64"))) {
            params.push(format!("{name}: {ty}"));
            args.push(name);
        }
    }
    let result = result.map(|r| format!(" -> {r}")).unwrap_or_default();
    Ok(Prototype {
        params: params.join(", "),
        args: args.join(", "),
        ty: format!("unsafe extern \"C\" fn({fixed}){result}"),
        result,
    })
}

/// `real.rs`.
pub fn real(model: &Model) -> Result<String, String> {
    let mut out = heading(model, "use super::prelude::*;");
    let mut known = String::new();
    for (index, f) in model.functions.iter().enumerate() {
        let Prototype { params, result, args, ty } = prototype(model, f)?;
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
    let chosen = model.interpose.shared || model.functions.iter().any(|f| f.changed.is_some());
    let names = if chosen { "\nuse super::tables::NAMES;" } else { "" };
    let mut out = heading(model, &format!("use super::prelude::*;{names}"));
    for index in 0..model.functions.len() {
        wrapper(model, index, &mut out)?;
    }
    Ok(out)
}

fn wrapper(model: &Model, index: usize, out: &mut String) -> Result<(), String> {
    let f = &model.functions[index];
    let Prototype { params, result, args, .. } = prototype(model, f)?;
    let by_loader = tables::by_loader(model, f);
    let mut body = String::new();
    if let Success::OutZero(name) = &f.success {
        let _ = writeln!(body, "    let mut own = 0; let {name} = or_own({name}, &raw mut own);");
    }
    for name in kept(f) {
        let _ = writeln!(body, "    let {} = behind({});", before(name), ident(name));
    }
    let real = if by_loader { format!("real::{}", f.name) } else { format!("real::{}::<I>", f.name) };
    let events = layout::function_events(model, index);
    let fields = |phase| events.iter().find(|e| e.phase == phase).map(|e| &e.fields[..]).unwrap_or(&[]);
    let at = |e: String| format!("{}: {e}", f.name);
    let scope = Scope::of(model, f);
    let entry: Result<Vec<String>, String> =
        fields(Phase::Entry).iter().map(|field| entry_field(&scope, field)).collect();
    let exit: Result<Vec<String>, String> =
        fields(Phase::Exit).iter().map(|field| exit_field(&scope, field)).collect();
    let (entry, exit) = (tuple(entry.map_err(at)?), tuple(exit.map_err(at)?));
    let id = layout::entry_id(index);
    let ok = succeeded(model, f);
    // Read where they are used: what is kept over the call takes room that every call has to save.
    let caps = |fields: &str| if fields.contains("caps") { "let caps = Caps::current(); " } else { "" };
    let entry = match caps(&entry) {
        "" => entry,
        caps => format!("{{ {caps}{entry} }}"),
    };
    let uses_ok = exit.contains("ok");
    let narrowed =
        recorded(model, &f.returns).map_or(String::new(), |by| format!("let result = {by}(result); "));
    let exit = format!(
        "move |result| {{ {narrowed}{}{}{exit} }}",
        caps(&exit),
        if uses_ok { format!("let ok = {ok}; ") } else { "let _ = result; ".to_owned() }
    );
    let call = real_call(&scope, &real, &args, &ok, true).map_err(at)?;
    let after = after(model, f);
    if f.may_fold() {
        let (key, known) = poll_key(f);
        let answer = poll_answer(model, f, known, &ok).map_err(at)?;
        let _ = writeln!(
            body,
            "    poll(on, {id}, {known}, {key}, move || {entry}, {call}, {answer}, {exit}, {after})"
        );
    } else {
        // A hook that serves an option is a detour: the way without it is kept
        // as short as that of any other function.
        if f.command.is_none() && serves_option(f) {
            let plain = real_call(&scope, &real, &args, &ok, false).map_err(at)?;
            let _ = writeln!(
                body,
                "    if on & HOOK == 0 {{ return call(on, {id}, move || {entry}, {plain}, {exit}, {after}); }}"
            );
        }
        let _ = writeln!(body, "    call(on, {id}, move || {entry}, {call}, {exit}, {after})");
    }
    let prototype = (params.as_str(), result.as_str());
    export(model, f, index, by_loader, prototype, &body, out);
    Ok(())
}

/// The condition under which a call has succeeded.
fn succeeded(model: &Model, f: &Function) -> String {
    match &f.success {
        Success::ReturnZero => good_results(model, f),
        Success::ReturnNonNull => "!result.is_null()".to_owned(),
        Success::OutZero(name) => format!("*{name} == 0"),
        Success::Always => "true".to_owned(),
    }
}

/// Writes a wrapper as a symbol of the library, or as a function that the loader does not export.
fn export(
    model: &Model,
    f: &Function,
    index: usize,
    by_loader: bool,
    (params, result): (&str, &str),
    body: &str,
    out: &mut String,
) {
    if by_loader {
        let name = &f.name;
        // A struct that is passed by value is copied for each call in between.
        let kind = match &f.changed {
            Some(_) => format!("changed_wrapper! {{ NAMES, #[unsafe(export_name = \"{name}\")]"),
            None if model.interpose.shared => {
                let by_value = params.contains("Val<") || result.contains("Val<");
                let inner = if by_value { "value_wrapper" } else { "wrapper" };
                format!("shared_wrapper! {{ NAMES, {inner}, #[unsafe(export_name = \"{name}\")]")
            }
            None if params.contains("Val<") || result.contains("Val<") => {
                "value_wrapper! { #[unsafe(no_mangle)]".to_owned()
            }
            None if f.hook.is_some() && (f.has_role("entry-point") || hooks_always(f)) => {
                "handing_wrapper! { #[unsafe(no_mangle)]".to_owned()
            }
            None => "wrapper! { #[unsafe(no_mangle)]".to_owned(),
        };
        let _ = writeln!(out, "{kind} {index} {name}({params}){result}, on, {{\n{body}}} }}");
    } else {
        let _ = writeln!(out, "extension! {{ {index} {}({params}){result}, on, {{\n{body}}} }}", f.name);
    }
}

/// Returns the pointer parameters of which it matters what they pointed at when the call began.
fn kept(f: &Function) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for p in f.params.iter().filter(|p| p.direction != Direction::In) {
        let found = match &p.follow {
            Follow::Array { length } | Follow::Bytes { length, .. } => expr::kept(length),
            Follow::String { length } => length.as_ref().map(expr::kept).unwrap_or_default(),
            Follow::Strings { count, .. } => expr::kept(count),
            _ => Vec::new(),
        };
        names.extend(found);
    }
    names.sort_unstable();
    names.dedup();
    names
}

pub(crate) fn tuple(mut parts: Vec<String>) -> String {
    // Tuples of more than 12 are nested, since Rust gives them no traits.
    if parts.len() > 12 {
        let rest = parts.split_off(11);
        parts.push(tuple(rest));
    }
    format!("({})", parts.iter().map(|p| format!("{p},")).collect::<String>())
}

pub(crate) fn entry_field(scope: &Scope<'_>, field: &layout::Field) -> Result<String, String> {
    let f = scope.function;
    Ok(match &field.source {
        Source::Param(i) => {
            let name = ident(&f.params[*i].name);
            recorded(scope.model, &f.params[*i].ctype).map_or(name.clone(), |by| format!("{by}({name})"))
        }
        Source::Behind(i) => behind(scope, &f.params[*i], None)?,
        Source::Member { param, path } => member(scope, &f.params[*param], path, None)?,
        Source::Return | Source::Tracer => "()".to_owned(),
    })
}

pub(crate) fn exit_field(scope: &Scope<'_>, field: &layout::Field) -> Result<String, String> {
    let f = scope.function;
    Ok(match &field.source {
        Source::Return => "result".to_owned(),
        Source::Param(i) => ident(&f.params[*i].name),
        Source::Behind(i) if matches!(&f.success, Success::OutZero(n) if *n == f.params[*i].name) => {
            format!("*{}", ident(&f.params[*i].name))
        }
        Source::Behind(i) => behind(scope, &f.params[*i], Some(filled(&f.params[*i])))?,
        Source::Member { param, path } => {
            member(scope, &f.params[*param], path, Some(filled(&f.params[*param])))?
        }
        Source::Tracer => "()".to_owned(),
    })
}

/// Returns the function that values of a type go through before they are recorded.
fn recorded(model: &Model, ctype: &str) -> Option<String> {
    let ctype = ctype.strip_prefix("const ").unwrap_or(ctype);
    model.recorded.get(ctype).map(|r| format!("crate::measure::{}", r.by))
}

/// Returns when an output is there.
fn filled(p: &Param) -> &'static str {
    if p.always { "true" } else { "ok" }
}

/// Returns a length that is 0 when outputs are not there.
fn guarded(length: String, ok: Option<&str>) -> String {
    match ok {
        Some(ok) => format!("if {ok} {{ {length} }} else {{ 0 }}"),
        None => length,
    }
}

/// Returns what a pointer parameter points at; `ok` guards outputs of failed calls.
fn behind(scope: &Scope<'_>, p: &Param, ok: Option<&str>) -> Result<String, String> {
    let name = ident(&p.name);
    let length = |e: &hetrace_model::Expr| Ok::<_, String>(guarded(scope.rust(e)?, ok));
    Ok(match &p.follow {
        Follow::Pointee if has_own_size(scope, p) => format!("sized({name}, {})", ok.unwrap_or("true")),
        Follow::Pointee => format!("one({name}, {})", ok.unwrap_or("true")),
        Follow::Array { length: n } => format!("seq({name}, {}, caps)", length(n)?),
        Follow::String { length } => {
            let length = length.as_ref().map_or(Ok("0".to_owned()), |n| scope.rust(n))?;
            match ok {
                Some(ok) => format!("text(if {ok} {{ {name} }} else {{ null_mut() }}, {length}, caps)"),
                None => format!("text({name}, {length}, caps)"),
            }
        }
        Follow::Strings { count, lengths } => {
            let lengths = lengths.as_ref().map_or("null()".to_owned(), |l| format!("{}.cast()", ident(l)));
            format!("texts({name}.cast::<*const u8>(), {}, {lengths}, caps)", length(count)?)
        }
        Follow::List { pairs } => format!("list({name}.cast(), {}, caps)", if *pairs { 2 } else { 1 }),
        Follow::Info { size, size_ret, .. } => format!(
            "bytes({name}, {}, caps)",
            guarded(format!("({} as usize).min(behind({}))", ident(size), ident(size_ret)), ok)
        ),
        Follow::Bytes { length: n, .. } if p.pointers == 0 => format!("begin({name}, {}, caps)", length(n)?),
        Follow::Bytes { length: n, .. } => format!("bytes({name}, {}, caps)", length(n)?),
        Follow::Chain { tags } => match ok {
            Some(ok) => format!(
                "chain(if {ok} {{ {name} }} else {{ null_mut() }}.cast(), &{}, caps)",
                chain_table(tags)
            ),
            None => format!("chain({name}.cast(), &{}, caps)", chain_table(tags)),
        },
        Follow::Value | Follow::Data { .. } | Follow::Callback | Follow::Waived { .. } => name,
    })
}

/// The table with the sizes of what may be in a chain, which `tables.rs` has.
fn chain_table(tags: &str) -> String {
    format!("crate::generated::tables::{}", tables::chain_name(tags))
}

/// Returns whether a parameter points at a struct that contains its own size.
fn has_own_size(scope: &Scope<'_>, p: &Param) -> bool {
    let ty = scope.model.types.iter().find(|t| t.name == p.base);
    p.pointers == 1 && ty.is_some_and(layout::has_own_size)
}

/// Returns what a member of the struct that a parameter points at points at.
fn member(scope: &Scope<'_>, p: &Param, path: &[usize], ok: Option<&str>) -> Result<String, String> {
    let model = scope.model;
    let find = |name: &str| model.types.iter().find(|t| t.name == name).ok_or(format!("no type `{name}`"));
    let mut ty = find(&p.base)?;
    let mut offset = 0;
    let Some((last, outer)) = path.split_last() else { return Err("a path without members".to_owned()) };
    for step in outer {
        let m = ty.members.get(*step).ok_or("no such member")?;
        offset += m.offset;
        ty = find(&m.ty)?;
    }
    let m = ty.members.get(*last).ok_or("no such member")?;
    let inside = Scope { inside: Some((&p.name, offset, ty)), ..*scope };
    let follow = model.members.get(&ty.name).and_then(|k| k.get(&m.name)).ok_or("not described")?;
    let element = match m.pointers {
        1 => rust_type::element(model, &m.ty)?,
        _ => "P".to_owned(),
    };
    let readable = ok.unwrap_or("true");
    let place = |element: &str| {
        format!("at_ptr::<{element}>({}.cast(), {}, {readable})", ident(&p.name), offset + m.offset)
    };
    Ok(match follow {
        Follow::Pointee => format!("one({}, true)", place(&element)),
        Follow::Array { length } => {
            format!("seq({}, {}, caps)", place(&element), guarded(inside.rust(length)?, ok))
        }
        Follow::String { length } => {
            let length = length.as_ref().map_or(Ok("0".to_owned()), |n| inside.rust(n))?;
            format!("text({}, {length}, caps)", place("u8"))
        }
        Follow::Strings { count, .. } => {
            format!("texts({}, {}, null(), caps)", place("*const u8"), guarded(inside.rust(count)?, ok))
        }
        Follow::Bytes { length, .. } => {
            format!("bytes({}, {}, caps)", place("u8"), guarded(inside.rust(length)?, ok))
        }
        Follow::Chain { tags } => format!("chain({}, &{}, caps)", place("u8"), chain_table(tags)),
        other => return Err(format!("{other:?} is no field")),
    })
}

/// Returns whether a function's hook is there for an option only, which its reason names first.
fn serves_option(f: &Function) -> bool {
    f.hook.as_ref().is_some_and(|why| why.starts_with("--"))
}

/// Returns whether a launch's hook may run another kernel than the program asks for.
fn exchanges(f: &Function) -> bool {
    f.hook.as_ref().is_some_and(|why| why.contains(EXCHANGED))
}

/// Returns whether a function's hook has to see calls that are not recorded, too, which its reason says first.
fn hooks_always(f: &Function) -> bool {
    f.hook.as_ref().is_some_and(|why| why.starts_with("always: "))
}

/// Returns the parameter with the memory of the host that a function sends, and how much it is.
fn sent(f: &Function) -> Option<(&str, &Expr)> {
    let transfer = f.transfer.as_ref().filter(|transfer| transfer.from_host)?;
    Some((transfer.source.as_deref()?, &transfer.bytes))
}

/// Returns the closure of a command at which a hook looks first, where that is active.
fn looked_at(scope: &Scope<'_>, inner: &str, args: &str) -> String {
    let f = scope.function;
    let name = &f.name;
    let kernel = f.command.as_ref().and_then(|command| command.kernel.as_ref());
    if let Some(kernel) = kernel.filter(|_| exchanges(f)) {
        // The hook may run another kernel: it gets what launches one. The way without it stays as short as ever.
        let kernel = handle(scope, kernel);
        return format!(
            "move |time| {{ if on & HOOK != 0 {{ return crate::hooks::{name}(time, {args}, move |{kernel}: P| \
             ({inner})(time)); }} ({inner})(time) }}"
        );
    }
    format!("move |time| {{ if on & HOOK != 0 {{ crate::hooks::{name}(time, {args}); }} ({inner})(time) }}")
}

/// Returns the closure that runs the real function, or what stands for it.
fn real_call(scope: &Scope<'_>, real: &str, args: &str, ok: &str, hooked: bool) -> Result<String, String> {
    let f = scope.function;
    let around = scope.model.timing == Timing::Around;
    if hooked && let Some(sent) = sent(f) {
        // Beside the call, and only where the hook is active.
        let inner = real_call(scope, real, args, ok, false)?;
        let (source, bytes) = (handle(scope, sent.0), scope.rust(sent.1)?);
        return Ok(format!(
            "move |time| {{ if on & HOOK != 0 {{ hash_sent(on, time, {source} as *const u8, {bytes}); }} ({inner})(time) }}"
        ));
    }
    // What serves an option looks at a command before it is enqueued as ever.
    if hooked && around && f.command.is_some() && serves_option(f) {
        let inner = real_call(scope, real, args, ok, false)?;
        return Ok(looked_at(scope, &inner, args));
    }
    if f.hook.is_some() && hooked {
        return Ok(format!("move |time| crate::hooks::{}(time, {args})", f.name));
    }
    let has = |name: &str| f.params.iter().any(|p| p.name == name);
    let event = scope.model.event.as_deref().filter(|e| has(e));
    let Some(command) = f.command.as_ref().filter(|_| around || event.is_some()) else {
        return Ok(format!("move |_| {real}({args})"));
    };
    let kind = hetrace_command_kind(&command.kind);
    let optional = |e: &Option<hetrace_model::Expr>| e.as_ref().map_or(Ok("0".to_owned()), |e| scope.rust(e));
    let bytes = optional(&command.bytes)?;
    let kernel = command.kernel.as_ref().map_or("null_mut()".to_owned(), |k| handle(scope, k));
    let queue = queue(scope, command.queue.as_deref());
    if around {
        let geometry = geometry(scope, command)?.unwrap_or_else(|| "[0; 6]".to_owned());
        let shared = optional(&command.shared)?;
        let memory = |m: &Option<String>| memory_kind(m.as_deref());
        let memory = format!("[{}, {}]", memory(&command.from), memory(&command.to));
        let (kind, memory) = match &command.known_by {
            Some(by) => (format!("{0}.0", scope.rust(by)?), format!("{0}.1", scope.rust(by)?)),
            None => (kind.to_string(), memory),
        };
        let ok = format!("move |result| {{ let _ = result; {ok} }}");
        let per_thread = f.own_queue;
        let address = |name: &Option<String>| name.as_ref().map(|n| format!("{} as u64", handle(scope, n)));
        let addresses = [address(&command.source), address(&command.target)];
        if addresses.iter().any(Option::is_some) {
            let [from, to] = addresses.map(|a| a.unwrap_or_else(|| "0".to_owned()));
            return Ok(format!(
                "move |time| crate::device::copy(time, {queue}, {kind}, {memory}, move || [{from}, {to}], move || {bytes}, move || {real}({args}), {ok}, {per_thread})"
            ));
        }
        return Ok(format!(
            "move |time| crate::device::command(time, {queue}, {kind}, {kernel}, {memory}, move || ({bytes}, {shared}), move || {geometry}, move || {real}({args}), {ok}, {per_thread})"
        ));
    }
    let geometry = geometry(scope, command)?;
    let geometry = geometry.map_or("NO_GEOMETRY".to_owned(), |sizes| format!("geometry({sizes})"));
    let event = ident(event.unwrap_or_default());
    Ok(format!(
        "move |time| crate::device::enqueue(time, {queue}, {kind}, {kernel}, move || {bytes}, {geometry}, {event}, move |{event}| {real}({args}), move |result| {{ let _ = result; {ok} }})"
    ))
}

/// Returns the six sizes of a launch, if the model has them.
fn geometry(scope: &Scope<'_>, command: &Command) -> Result<Option<String>, String> {
    let sizes: Result<Vec<String>, String> = command.geometry.iter().map(|e| scope.rust(e)).collect();
    let sizes = sizes?;
    Ok((!sizes.is_empty()).then(|| format!("[{}]", sizes.join(", "))))
}

/// Returns a handle that a command mentions: a parameter, or a member behind one.
fn handle(scope: &Scope<'_>, name: &str) -> String {
    if name.contains('.') {
        let number = scope.rust(&hetrace_model::Expr::Name(name.to_owned()));
        return number.map_or("null_mut()".to_owned(), |n| format!("({n}) as P"));
    }
    ident(name)
}

/// Returns the queue a command goes to; the first of several, NULL for the default one.
fn queue(scope: &Scope<'_>, name: Option<&str>) -> String {
    let Some(name) = name else { return "null_mut()".to_owned() };
    let several = scope.function.params.iter().any(|p| p.name == name && p.pointers > 0);
    if several { format!("first({})", ident(name)) } else { handle(scope, name) }
}

/// Position of a kind of memory in the ring's table; kept equal by a test.
fn memory_kind(name: Option<&str>) -> usize {
    name.and_then(|name| MEMORY_KINDS.iter().position(|k| *k == name)).unwrap_or(0)
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
    "native", "free", "acquire", "release", "graph",
];

/// The kinds of memory, as `hetrace_ring::abi::MEMORY_KINDS` has them.
pub const MEMORY_KINDS: &[&str] =
    &["unknown", "pageable", "pinned", "device", "array", "managed", "peer", "host"];

/// Returns what runs when the exit is recorded.
fn after(model: &Model, f: &Function) -> String {
    // An API without commands has no device to look at.
    if !model.functions.iter().any(|f| f.command.is_some()) {
        return "|| ()".to_owned();
    }
    if f.has_role("sync") {
        return "|| crate::device::synchronized()".to_owned();
    }
    match &f.blocking {
        Some(p) => format!("move || if {} != 0 {{ crate::device::synchronized() }}", ident(p)),
        None => "|| ()".to_owned(),
    }
}

/// Returns the words by which equal polls are known, and how many are arguments.
fn poll_key(f: &Function) -> (String, usize) {
    let words: Vec<String> = f.params.iter().map(|p| format!("{} as u64", ident(&p.name))).collect();
    let known = words.len().min(6);
    let mut key: Vec<String> = words.into_iter().take(known).collect();
    key.resize(8, "0".to_owned());
    (format!("[{}]", key.join(", ")), known)
}

/// Returns the closure that adds a poll's answer to its key.
fn poll_answer(model: &Model, f: &Function, known: usize, ok: &str) -> Result<String, String> {
    let mut outputs = f.params.iter().filter_map(|p| match &p.follow {
        Follow::Info { size, .. } => {
            Some(format!("answer_word({}, {} as usize)", ident(&p.name), ident(size)))
        }
        Follow::Pointee if f.folds && p.direction == Direction::Out => {
            let size = match p.pointers {
                1 => model.types.iter().find(|t| t.name == p.base).map_or(0, |t| t.size),
                _ => 8,
            };
            Some(format!("answer_word({}.cast(), {size})", ident(&p.name)))
        }
        _ => None,
    });
    let output = outputs.next().unwrap_or("0".to_owned());
    if f.folds && (outputs.next().is_some() || f.params.len() > 6) {
        return Err("folds, but has more than one answer or six arguments".to_owned());
    }
    Ok(format!(
        "move |result, key| {{ key[{known}] = result as u64; key[{}] = if {ok} {{ {output} }} else {{ 0 }}; }}",
        known + 1
    ))
}

/// Results with which the outputs are there. A communicator that is made in the background
/// has its handle at once, though the call answers a state.
fn good_results(model: &Model, f: &Function) -> String {
    let group = f.returns_values.as_ref().unwrap_or(&model.errors);
    let values = model.enums.iter().filter(|g| g.name == *group).flat_map(|g| &g.values);
    let states = values.filter(|(name, _)| f.communicator.is_some() && model.states.contains(name));
    states.fold("result == 0".to_owned(), |out, (_, code)| format!("{out} || result == {code}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_agree_with_the_ring() {
        assert_eq!(super::COMMAND_KINDS, hetrace_ring::abi::COMMAND_KINDS);
        assert_eq!(super::MEMORY_KINDS, hetrace_ring::abi::MEMORY_KINDS);
        assert_eq!(super::MAX_ID, hetrace_ring::record::MAX_ID);
        assert_eq!(hetrace_model::layout::FIRST_FUNCTION_EVENT, hetrace_ring::record::FIRST_CALL_ID);
        assert_eq!(hetrace_model::layout::EVENTS_PER_FUNCTION, hetrace_ring::record::IDS_PER_CALL);
    }
}
