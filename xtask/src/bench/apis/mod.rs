//! `cargo xtask bench apis`: instructions of a call of each API, side by side: without a session, in a session that does
//! not record it, and recorded.
//!
//! Each API's library is one in which every function does nothing, made from its model; APIs without a library of their own
//! are used by a program that has their static part inside ([`MARKED`]). Calls are comparable where as many values are
//! recorded before them and after them, so each is compared with OpenCL's of the same shape.

mod shapes;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use hetrace_tests::each::{repeated, searched};
use serde_json::json;

use self::shapes::{Chosen, Compared, Shape};
use super::ground::{Ground, make, product};
use super::instructions::per_call;
use super::preloaded::empty_library;
use super::report::{Report, difference, number};
use super::setting::Setting;
use crate::repo;

/// Arguments of `bench apis`.
#[derive(Parser)]
pub struct Args {
    /// Only these APIs, beside OpenCL
    #[arg(value_name = "API")]
    only: Vec<String>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// The hetrace to measure; its libraries lie beside it
    #[arg(long, value_name = "PATH")]
    hetrace: Option<PathBuf>,
}

/// What the others are compared with.
const REFERENCE: &str = "opencl";
/// Calls in a loop: their records fit into a ring.
const CALLS: u32 = 5_000;
/// A recorded call may cost so many times OpenCL's.
const MOST: f64 = 1.10;
/// What a call may cost without a session, and where it is not recorded: a jump, a test of a flag and a jump to the real
/// function are 7 to 9 instructions, which take 1.5 ns.
const DORMANT: f64 = 9.5;

const NOTHING: Setting = Setting::Hetrace(
    "not recorded",
    &["--interpose", "preload", "--buffer", "16384", "--no-device", "--exclude", "*"],
);
const RECORDED: Setting = Setting::Hetrace(
    "recorded",
    &["--interpose", "preload", "--buffer", "16384", "--no-device", "-m", "full"],
);

/// A loop of `bench/programs/marked.c`.
struct Marked {
    /// The function of the loop.
    name: &'static str,
    api: &'static str,
    what: &'static str,
    /// The calls in a round of it: what each records.
    shapes: &'static [Shape],
    /// How its library is found.
    injected: Setting,
}

const MARKED: &[Marked] = &[
    marked("hetmarks", "hetmarks", "push and pop", &PUSH, ("HETRACE_MARKS", "libhetrace_hetmarks.so")),
    marked("nvtx", "nvtx", "push and pop", &PUSH, ("NVTX_INJECTION64_PATH", "libhetrace_nvtx.so")),
    marked("itt", "itt", "task begin and end", &TASK, ("INTEL_LIBITTNOTIFY64", "libhetrace_itt.so")),
    marked("itt_counter", "itt", "counter increment", &ONE, ("INTEL_LIBITTNOTIFY64", "libhetrace_itt.so")),
    marked("ompt", "ompt", "begin and end of a wait", &WAIT, ("OMP_TOOL_LIBRARIES", "libhetrace_ompt.so")),
];

/// A push has a text, a pop nothing.
const PUSH: [Shape; 2] = [Shape::new(0, 0).with_text(), Shape::new(0, 0)];
/// OpenCL has no function of six numbers, which a task's begin records.
const TASK: [Shape; 2] = [Shape::new(4, 0), Shape::new(1, 0)];
const ONE: [Shape; 1] = [Shape::new(1, 0)];
/// Two reports, which are one call.
const WAIT: [Shape; 1] = [Shape::new(4, 0)];

const fn marked(
    name: &'static str,
    api: &'static str,
    what: &'static str,
    shapes: &'static [Shape],
    (variable, library): (&'static str, &'static str),
) -> Marked {
    Marked { name, api, what, shapes, injected: Setting::Injected(variable, library) }
}

/// Instructions that a call of one function costs more than without us.
struct Row {
    api: String,
    function: String,
    /// What its calls record; the costs are means of these calls.
    shapes: Vec<Shape>,
    dormant: f64,
    nothing: f64,
    recorded: f64,
}

/// Counts and prints everything. A missed target is reported and is no failure.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut ground = Ground::make_system(&product(args.hetrace.as_deref()))?;
    make("bench/programs", "build/marked").context("make -C bench/programs build/marked")?;
    let mut report = Report::new(args.json);
    report.title(
        "Instructions that a call costs more than without us (callgrind), on libraries that do nothing",
    );
    let wanted = |api: &str| args.only.is_empty() || api == REFERENCE || args.only.iter().any(|o| o == api);
    let mut apis: Vec<String> = repo::apis()?.into_iter().filter(|api| wanted(api)).collect();
    // Its shapes are those that the others' functions are chosen by.
    apis.sort_by_key(|api| api != REFERENCE);
    let (mut rows, mut known) = (Vec::new(), Vec::new());
    for api in &apis {
        match of_library(&mut ground, api, &known) {
            Ok(Some(found)) => {
                if api == REFERENCE {
                    known = found.iter().flat_map(|row| row.shapes.clone()).collect();
                }
                rows.extend(found);
            }
            Ok(None) => {}
            Err(error) => report.line(&format!("{api} failed: {error:#}")),
        }
    }
    for marked in MARKED.iter().filter(|marked| wanted(marked.api)) {
        match of_marked(&ground, marked) {
            Ok(row) => rows.push(row),
            Err(error) => report.line(&format!("{} failed: {error:#}", marked.name)),
        }
    }
    table(&rows, &mut report);
    report.finish();
    Ok(ExitCode::SUCCESS)
}

/// The functions of an API that has a library, measured; none of one that has not.
fn of_library(ground: &mut Ground, api: &str, known: &[Shape]) -> Result<Option<Vec<Row>>> {
    let Some(compared) = shapes::choose(api, known)? else { return Ok(None) };
    let Compared { soname, requires, functions: chosen } = compared;
    let names: Vec<&str> = chosen.iter().map(|c| c.function.as_str()).collect();
    let program = repeated(api, &soname, &names);
    let folder = program.parent().context("the program lies in no folder")?;
    if let Some(name) = requires.first().filter(|_| !requires.contains(&soname)) {
        empty_library(&folder.join(name))?;
    }
    ground.search = Some(folder.to_owned());
    let words: Vec<OsString> = vec![program.into(), CALLS.to_string().into()];
    let loops: Vec<String> = names.iter().map(|name| searched(name)).collect();
    let loops: Vec<&str> = loops.iter().map(String::as_str).collect();
    let count = |setting| per_call(ground, setting, &words, &loops, f64::from(CALLS));
    let bare = count(Setting::Bare)?;
    let [dormant, nothing, recorded] = [count(Setting::Preloaded)?, count(NOTHING)?, count(RECORDED)?];
    let row = |(i, chosen): (usize, Chosen)| {
        let more = |counts: &[f64]| counts.get(i).zip(bare.get(i)).map_or(f64::NAN, |(c, b)| c - b);
        Row {
            api: api.to_owned(),
            function: chosen.function,
            shapes: vec![chosen.shape],
            dormant: more(&dormant),
            nothing: more(&nothing),
            recorded: more(&recorded),
        }
    };
    let rows: Vec<Row> = chosen.into_iter().enumerate().map(row).collect();
    ensure!(rows.iter().all(|row| row.recorded > 2.0 * DORMANT), "its calls were not recorded");
    Ok(Some(rows))
}

/// A loop of the program with static parts, measured.
fn of_marked(ground: &Ground, marked: &Marked) -> Result<Row> {
    let words: Vec<OsString> =
        vec![ground.program("marked").into(), CALLS.to_string().into(), marked.name.into()];
    let count = |setting| -> Result<f64> {
        let counts =
            per_call(ground, setting, &words, &[marked.name], f64::from(CALLS) * marked.shapes.len() as f64)?;
        counts.first().copied().context("no count")
    };
    let bare = count(Setting::Bare)?;
    Ok(Row {
        api: marked.api.to_owned(),
        function: marked.what.to_owned(),
        shapes: marked.shapes.to_vec(),
        dormant: count(marked.injected)? - bare,
        nothing: count(NOTHING)? - bare,
        recorded: count(RECORDED)? - bare,
    })
}

/// What a call of OpenCL's of this shape costs. Of one that it has no function of, by what each value more costs.
fn reference(of_shape: &BTreeMap<Shape, f64>, shape: Shape) -> f64 {
    let known = |before, after| of_shape.get(&Shape::new(before, after)).copied().unwrap_or(f64::NAN);
    let (none, four) = (known(0, 0), known(4, 0));
    let (value, result) = ((four - none) / 4.0, known(4, 1) - four);
    let more = f64::from(shape.before) * value + f64::from(shape.after) * result;
    let text = if shape.texts == 0 { 0.0 } else { f64::NAN };
    of_shape.get(&shape).copied().unwrap_or(none + more + text)
}

fn table(rows: &[Row], report: &mut Report) {
    let mut of_shape: BTreeMap<Shape, f64> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.api == REFERENCE) {
        of_shape.extend(row.shapes.iter().map(|shape| (*shape, row.recorded)));
    }
    let (mut cells, mut missed) = (Vec::new(), Vec::new());
    for row in rows {
        let references = row.shapes.iter().map(|shape| reference(&of_shape, *shape));
        let ratio = row.recorded / (references.sum::<f64>() / row.shapes.len() as f64);
        cells.push(vec![
            row.api.clone(),
            row.function.clone(),
            row.shapes.iter().map(Shape::text).collect::<Vec<_>>().join(", "),
            difference(row.dormant, 1),
            difference(row.nothing, 1),
            difference(row.recorded, 1),
            number(ratio, 2),
        ]);
        if ratio > MOST {
            missed.push(format!("{} {}: {} times OpenCL's", row.api, row.function, number(ratio, 2)));
        }
        for (what, value) in [("without a session", row.dormant), ("not recorded", row.nothing)] {
            if value > DORMANT {
                missed.push(format!("{} {} {what}: {}", row.api, row.function, difference(value, 1)));
            }
        }
    }
    let head = ["API", "call", "values", "no session", "not recorded", "recorded", "of OpenCL's"];
    report.table(&head, &cells);
    report.line("values: recorded before + after the call, the result not counted; t: a text; several: the mean of these calls. What OpenCL has no function of is compared with what its values cost");
    for line in &missed {
        report.line(&format!("missed: {line}"));
    }
    report.keep("apis", json!({ "head": head, "rows": cells, "missed": missed }));
}
