//! How much of an API is covered, in a few lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use hetrace_model::{Expr, Follow, Function, Model, Param};

/// Built into the language of expressions.
const BUILT_IN: [&str; 3] = ["before", "max", "min"];

/// The summary's text.
pub fn of(model: &Model) -> String {
    let params = || model.functions.iter().flat_map(|f| &f.params);
    let pointers: Vec<&Param> = params().filter(|p| p.pointers > 0).collect();
    let mut ways: BTreeMap<&str, usize> = BTreeMap::new();
    for p in &pointers {
        *ways.entry(way(&p.follow)).or_default() += 1;
    }
    let waived = ways.remove("waived").unwrap_or(0);
    let ways: Vec<String> = ways.iter().map(|(way, n)| format!("{n} {way}")).collect();
    let count = |has: fn(&Function) -> bool| model.functions.iter().filter(|f| has(f)).count();
    let roleless = model.functions.iter().filter(|f| f.roles.is_empty());
    let roleless: Vec<&str> = roleless.map(|f| f.name.as_str()).collect();
    let helpers: Vec<&str> = helpers(model).into_iter().collect();
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            writeln!(out, "{name:<20}{value}").expect("writing to a string");
        }
    };
    line("functions", model.functions.len().to_string());
    line("  with a command", count(|f| f.command.is_some()).to_string());
    line("  without a role", roleless.join(" "));
    line("pointer parameters", pointers.len().to_string());
    line("  followed", format!("{} ({})", pointers.len() - waived, ways.join(", ")));
    line("  waived", waived.to_string());
    line("queries with a type", model.info.len().to_string());
    line("helper calls", helpers.join(" "));
    out
}

fn way(follow: &Follow) -> &'static str {
    match follow {
        Follow::Value => "value",
        Follow::Pointee => "single",
        Follow::Array { .. } => "array",
        Follow::String { .. } => "string",
        Follow::Strings { .. } => "strings",
        Follow::List { .. } => "list",
        Follow::Info { .. } => "info",
        Follow::Bytes { .. } => "bytes",
        Follow::Data { .. } => "data",
        Follow::Chain { .. } => "chain",
        Follow::Callback => "callback",
        Follow::Waived { .. } => "waived",
    }
}

/// Names of the hand-written functions that expressions call.
fn helpers(model: &Model) -> BTreeSet<&str> {
    let lengths = model.functions.iter().flat_map(|f| &f.params).filter_map(|p| match &p.follow {
        Follow::Array { length } | Follow::Bytes { length, .. } | Follow::Data { length } => Some(length),
        Follow::String { length } => length.as_ref(),
        Follow::Strings { count, .. } => Some(count),
        _ => None,
    });
    let bytes = model.functions.iter().filter_map(|f| f.command.as_ref()?.bytes.as_ref());
    let mut names = BTreeSet::new();
    lengths.chain(bytes).for_each(|e| calls(e, &mut names));
    names
}

fn calls<'e>(e: &'e Expr, names: &mut BTreeSet<&'e str>) {
    match e {
        Expr::Binary(a, _, b) => {
            calls(a, names);
            calls(b, names);
        }
        Expr::Call(name, args) => {
            if !BUILT_IN.contains(&name.as_str()) {
                names.insert(name);
            }
            args.iter().for_each(|a| calls(a, names));
        }
        _ => {}
    }
}
