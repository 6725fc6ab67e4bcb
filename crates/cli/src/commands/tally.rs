//! `hetrace tally`.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use hetrace_ctf::read::Files;
use hetrace_report::tally::{
    Aggregate, By, Form, InsideRows, NextStep, Options, Query, Reading, Tally, TextOptions, aggregate,
    is_aggregate, roofs_of,
};
use hetrace_trace::inside::Inside;
use hetrace_trace::spans::Summary;
use hetrace_trace::trace::Trace;

use super::outside::outside;
use super::say;
use super::watch::Watch;
use super::{newest, output, terminal};
use crate::args;

/// Prints the tables, or saves the aggregates that they are made of.
pub fn run(args: &args::Tally) -> Result<ExitCode> {
    let watch = Watch::new(false);
    let seen = |events| watch.seen(events);
    let query = Query {
        by: by(&args.by),
        names: args.filter.clone(),
        apis: args.api.clone(),
        pids: args.pid.clone(),
        tids: args.tid.clone(),
        from: args.from,
        to: args.to,
        gross: args.gross,
        reading: Reading::Fastest,
        watch: Some(&seen),
    };
    if args.kernel.kernel.is_some() && args.traces.len() > 1 {
        bail!("--kernel: a kernel trace belongs to one trace; use --save for each, and tally the files");
    }
    let mut all: Option<Aggregate> = None;
    let mut inside = InsideRows::default();
    let mut single = None;
    let newest = if args.traces.is_empty() { vec![newest::trace(None)?] } else { Vec::new() };
    if let Some(output) = &args.save {
        args.traces.iter().chain(&newest).try_for_each(|trace| outside(trace, output))?;
    }
    for path in args.traces.iter().chain(&newest) {
        let part = match saved(path)? {
            Some(bytes) => from_file(path, &bytes, &query)?,
            None => {
                let path = newest::trace(Some(path))?;
                single = Some(path.clone()).filter(|_| args.traces.len() < 2);
                let mut trace = Trace::open(&path)?;
                super::report_problems(&trace);
                watch.expect(super::events(&trace));
                if args.kernel.join(&path, &mut trace, Some(&seen))?.is_err() {
                    return Ok(watch.stopped());
                }
                if args.inside {
                    let files = Files::open(&path)?;
                    inside.extend(InsideRows::of(&Inside::read(&files), &query, roofs_of(&trace)));
                }
                let Ok(part) = aggregate(&trace, &Options { extended: args.extended }, &query) else {
                    return Ok(watch.stopped());
                };
                super::keep(trace, single.is_some());
                part
            }
        };
        match &mut all {
            None => all = Some(part),
            Some(all) => all.merge(part).with_context(|| path.display().to_string())?,
        }
    }
    watch.end();
    let all = all.unwrap_or_default();
    match &args.save {
        Some(path) => save(&all, path)?,
        None => show(&all, args.inside.then_some(inside), single.as_deref(), args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the keys that were named, without duplicates; none if they are the default keys.
pub(super) fn by(named: &[By]) -> Vec<By> {
    let mut by: Vec<By> = Vec::new();
    named.iter().for_each(|one| {
        if !by.contains(one) {
            by.push(*one);
        }
    });
    let usual = by.contains(&By::Name) && by.iter().all(|by| matches!(by, By::Api | By::Name));
    if usual { Vec::new() } else { by }
}

/// Returns the content of a file written by `--save`; `None` for a trace.
pub(super) fn saved(path: &Path) -> Result<Option<Vec<u8>>> {
    if !path.is_file() || newest::is_packed(path) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.with_context(|| path.display().to_string())?;
    if !is_aggregate(&bytes) {
        bail!("{}: neither a trace nor a file written by `hetrace tally --save`", path.display());
    }
    Ok(Some(bytes))
}

fn from_file(path: &Path, bytes: &[u8], query: &Query<'_>) -> Result<Aggregate> {
    let mut part = Aggregate::from_bytes(bytes).with_context(|| path.display().to_string())?;
    if query.chosen().is_some() {
        bail!(
            "{}: this file contains aggregates only; use filters and time windows together with --save",
            path.display()
        );
    }
    if part.is_net() && query.gross {
        bail!(
            "{}: the tracing overhead is already subtracted in this file; use --gross together with --save",
            path.display()
        );
    }
    if part.by() != query.by && !part.distinguish(&query.by) {
        let wanted: Vec<&str> = query.by.iter().map(|by| by.name()).collect();
        let wanted = if wanted.is_empty() { "api,name".to_owned() } else { wanted.join(",") };
        bail!("{}: this file is not grouped by {wanted}; use --by together with --save", path.display());
    }
    Ok(part)
}

fn save(all: &Aggregate, path: &Path) -> Result<()> {
    let bytes = all.to_bytes()?;
    std::fs::write(path, &bytes).with_context(|| path.display().to_string())?;
    say(format_args!("{} bytes in {}", bytes.len(), path.display()));
    Ok(())
}

/// Reports dropped events for forms whose tables do not show them.
fn report_missing(tables: &Tally) {
    let missing = Summary {
        lost_events: tables.lost_events,
        lost_calls: tables.lost_calls,
        lost_commands: tables.lost_device_commands,
        lost_packets: tables.lost_packets,
        damaged: tables.damaged,
        differences: tables.differences,
        steps_back: tables.steps_back,
        unfinished: tables.unfinished_calls,
        orphans: tables.orphaned_exits,
        ..Summary::default()
    };
    if !missing.is_complete() {
        say(format_args!("{}", missing.what_is_missing()));
    }
}

/// Returns the line that says what to look at next.
fn next(step: &NextStep, trace: &Path) -> String {
    let why = step.reason.as_ref().map_or_else(String::new, |reason| format!("  ({reason})"));
    // `./a` is `a`, as people write it.
    let shown = trace.strip_prefix(".").ok().filter(|path| !path.as_os_str().is_empty()).unwrap_or(trace);
    format!("Next: hetrace {} {}{why}", step.command, shown.display())
}

/// Shows the tables; `trace` is the one that they are of, if it is a single one.
fn show(all: &Aggregate, inside: Option<InsideRows>, trace: Option<&Path>, args: &args::Tally) -> Result<()> {
    let mut tables = all.tally();
    tables.inside = inside.map(|rows| rows.compared(&tables.device));
    tables.sort(args.sort);
    let out = std::io::stdout();
    if args.json || args.csv.is_some() {
        tables.keep(args.top.unwrap_or(usize::MAX));
    }
    if let Some(table) = args.csv {
        let mut text = Vec::new();
        tables.write_csv(table, &mut text)?;
        output::write(&String::from_utf8_lossy(&text))?;
        report_missing(&tables);
        Ok(())
    } else if args.json {
        output::write(&(serde_json::to_string_pretty(&tables)? + "\n"))
    } else {
        let options = TextOptions {
            colour: !args.markdown && terminal::colour(&out),
            extended: args.extended,
            width: terminal::columns(&out),
            max_name: args.max_name,
            full_names: args.full_names,
            stats: args.stats,
            top: args.top,
            form: if args.markdown { Form::Markdown } else { Form::Plain },
        };
        let mut text = tables.render(&options);
        if let Some(trace) = trace.filter(|_| options.form == Form::Plain) {
            text.push_str(&next(&tables.next_step(), trace));
            text.push('\n');
        }
        output::write_text(&text)
    }
}
