//! What records the calls of an API that reports them itself, a call's begin and its end apart: three functions for
//! each of its functions.
//!
//! ```text
//! begin(arguments)            its entry
//! end(results)                its exit
//! at(arguments, results)      both, of what has no duration
//! ```

use std::fmt::Write;

use hetrace_model::layout::{self, Phase};
use hetrace_model::{Direction, Function, Model, Param, Success};

use crate::expr::Scope;
use crate::rust_type::{self, ident};
use crate::{heading, wrappers};

/// `wrappers.rs`.
pub fn reports(model: &Model) -> Result<String, String> {
    let mut out = heading(model, "use super::prelude::*;");
    for (index, f) in model.functions.iter().enumerate() {
        report(model, index, f, &mut out).map_err(|e| format!("{}: {e}", f.name))?;
    }
    Ok(out)
}

fn report(model: &Model, index: usize, f: &Function, out: &mut String) -> Result<(), String> {
    if f.success != Success::Always || f.returns != "void" || f.hook.is_some() || f.command.is_some() {
        return Err("is reported: it returns nothing, never fails, and has no hook and no command".to_owned());
    }
    let typed = |p: &&Param| Ok(format!("{}: {}", ident(&p.name), rust_type::param(model, p)?));
    let is_result = |p: &&Param| p.direction == Direction::Out;
    let arguments: Result<Vec<String>, String> =
        f.params.iter().filter(|p| !is_result(p)).map(|p| typed(&p)).collect();
    let results: Result<Vec<String>, String> = f.params.iter().filter(is_result).map(|p| typed(&p)).collect();
    let (arguments, results) = (arguments?, results?);
    let scope = Scope::of(model, f);
    let events = layout::function_events(model, index);
    let fields = |phase| events.iter().find(|e| e.phase == phase).map(|e| &e.fields[..]).unwrap_or(&[]);
    let entry: Result<Vec<String>, String> =
        fields(Phase::Entry).iter().map(|field| wrappers::entry_field(&scope, field)).collect();
    let exit: Result<Vec<String>, String> =
        fields(Phase::Exit).iter().map(|field| wrappers::exit_field(&scope, field)).collect();
    let (entry, exit) = (closure(&entry?), closure(&exit?));
    let id = layout::entry_id(index);
    let name = &f.name;
    let (first, last, all) =
        (arguments.join(", "), results.join(", "), [&arguments[..], &results[..]].concat().join(", "));
    let _ = writeln!(
        out,
        "pub mod {name} {{\n    use super::*;\n    pub const INDEX: usize = {index};\n    #[inline(always)] pub unsafe fn begin({first}) {{ halves::begin(entering(INDEX), {id}, {entry}) }}\n    #[inline(always)] pub unsafe fn end({last}) {{ halves::end({id}, {exit}) }}\n    #[inline(always)] pub unsafe fn at({all}) {{ halves::moment(entering(INDEX), {id}, {entry}, {exit}) }}\n}}"
    );
    Ok(())
}

/// Returns a closure with these fields.
fn closure(fields: &[String]) -> String {
    let fields = wrappers::tuple(fields.to_vec());
    let caps = if fields.contains("caps") { "let caps = Caps::current(); " } else { "" };
    let ok = if fields.contains("ok") { "let ok = true; " } else { "" };
    format!("move || {{ {caps}{ok}{fields} }}")
}

/// `tables.rs`.
pub fn tables(model: &Model) -> String {
    let mut out = heading(model, "/// The API's name.");
    out.truncate(out.trim_end().len());
    let _ = writeln!(out, "\npub const API: &str = \"{}\";\n", model.api);
    let _ = writeln!(
        out,
        "/// How many functions there are.\npub const FUNCTIONS: usize = {};",
        model.functions.len()
    );
    out
}
