//! `hetrace model`: what is recorded of each function.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use hetrace_model::{Follow, Function, Model, Param};
use hetrace_session::{Found, apis};
use serde_json::{Value, json};

use crate::args;

/// Prints the models, or a part of one.
pub fn run(args: &args::Model) -> Result<ExitCode> {
    let libraries = apis::find()?.iter().map(Found::load).collect::<Result<Vec<_>, _>>()?;
    let mut out = std::io::stdout().lock();
    let Some(api) = &args.api else {
        if args.json {
            let all: Vec<Value> = libraries.iter().map(|l| api_json(&l.model, None)).collect();
            writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        } else {
            for l in &libraries {
                writeln!(
                    out,
                    "{:<10} {:>4} functions  {}",
                    l.model.api,
                    l.model.functions.len(),
                    l.path.display()
                )?;
            }
            writeln!(out, "`hetrace model API` lists the functions of an API")?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let library = libraries.iter().find(|l| l.model.api == *api);
    let model = &library.with_context(|| format!("no API `{api}` (see `hetrace model`)"))?.model;
    if let Some(name) = &args.function {
        model
            .functions
            .iter()
            .find(|f| f.name == *name)
            .with_context(|| format!("{api} has no function `{name}`"))?;
    }
    let chosen = |f: &&Function| args.function.as_ref().is_none_or(|n| *n == f.name);
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&api_json(model, args.function.as_deref()))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for f in model.functions.iter().filter(chosen) {
        let origin = f.extension.as_deref().unwrap_or(&f.since);
        writeln!(out, "{} {}  [{}] {origin}", f.returns, f.name, f.roles.join(" "))?;
        if args.function.is_some() {
            for p in &f.params {
                writeln!(out, "    {:<28} {:<24} {}", p.ctype, p.name, words(p))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn api_json(model: &Model, only: Option<&str>) -> Value {
    let functions: Vec<Value> = model
        .functions
        .iter()
        .filter(|f| only.is_none_or(|n| n == f.name))
        .map(|f| {
            let params: Vec<Value> = f.params.iter().map(param_json).collect();
            json!({ "name": f.name, "roles": f.roles, "params": params })
        })
        .collect();
    json!({ "api": model.api, "functions": functions })
}

fn param_json(p: &Param) -> Value {
    let mut value = json!({ "name": p.name, "type": p.ctype, "direction": p.direction });
    match &p.follow {
        Follow::Waived { why } => value["waived"] = json!(why),
        _ => value["followed"] = json!(words(p)),
    }
    value
}

/// Returns what is recorded of a parameter, in words.
fn words(p: &Param) -> String {
    let length = |e: &Option<_>| {
        e.as_ref().map(|e: &hetrace_model::Expr| format!(" of {e} bytes")).unwrap_or_default()
    };
    match &p.follow {
        Follow::Value => "value".to_owned(),
        Follow::Pointee => "the value pointed to".to_owned(),
        Follow::Array { length } => format!("array of {length}"),
        Follow::String { length: l } => format!("string{}", length(l)),
        Follow::Strings { count, .. } => format!("{count} strings"),
        Follow::List { pairs: true } => "zero-terminated list of names and values".to_owned(),
        Follow::List { pairs: false } => "zero-terminated list of values".to_owned(),
        Follow::Info { name, .. } => format!("the value that {name} selects"),
        Follow::Bytes { length, kind: None } => format!("{length} bytes"),
        Follow::Bytes { length, kind: Some(name) } => {
            format!("{length} bytes of the type that {name} selects")
        }
        Follow::Data { length } => format!("address, and {length} bytes on demand"),
        Follow::Chain { tags } => format!("linked structs, by the tags of {tags}"),
        Follow::Callback => "address of a function".to_owned(),
        Follow::Waived { why } => format!("address only: {why}"),
    }
}
