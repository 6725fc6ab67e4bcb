//! What a program pays that reaches the device through layers that stand on each other: a range of its own, a product of
//! cuBLAS, a launch of the runtime, one of the driver. It is to pay for these calls, and no more for their being inside
//! of each other.
//!
//! The same loop is measured with all of them recorded, and with each alone; what the four cost alone is added up.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::ground::Ground;
use super::instructions::per_call;
use super::report::{Report, difference, number};
use super::setting::Setting;

/// The libraries that record the layers.
const LIBRARIES: &[&str] =
    &["libhetrace_cuda.so", "libhetrace_cudart.so", "libhetrace_cublas.so", "libhetrace_hetmarks.so"];
/// Stacks in a loop, and before it.
const LOOP: u32 = 5_000;
const WARM: u32 = 500;

/// A session in which everything is recorded but devices' times, or only what is named.
macro_rules! recorded {
    ($name:literal $(, $option:literal)*) => {
        Setting::Hetrace($name, &["--interpose", "preload", "--buffer", "16384", "--no-device", "-m", "full" $(, $option)*])
    };
}

const NOTHING: Setting = recorded!("nothing", "--exclude", "*");
const ALL: Setting = recorded!("all four");
const ALONE: &[Setting] = &[
    recorded!("the range", "--include", "hetrace_*"),
    recorded!("cublasSgemm", "--include", "cublasSgemm*"),
    recorded!("cudaLaunchKernel", "--include", "cudaLaunchKernel"),
    recorded!("cuLaunchKernel", "--include", "cuLaunchKernel"),
];

/// Counts and prints the table. `product` is the hetrace whose libraries lie beside it.
pub fn run(product: &Path, report: &mut Report) {
    report
        .title("Four layers on each other: instructions per stack (callgrind), on libraries that do nothing");
    if let Err(error) = count(product, report) {
        report.line(&format!("failed: {error:#}"));
    }
}

fn count(product: &Path, report: &mut Report) -> Result<()> {
    let ground = Ground::make_cuda(product, LIBRARIES)?;
    let mut program: Vec<OsString> = vec![ground.program("stacked").into()];
    program.extend(["-n", &LOOP.to_string(), "-r", "1", "-p", "0"].map(OsString::from));
    let stack = |setting: Setting| -> Result<f64> {
        let counts = per_call(&ground, setting, &program, &["stack"], f64::from(LOOP + WARM))?;
        Ok(counts.first().copied().unwrap_or(f64::NAN))
    };
    let (bare, nothing, all) = (stack(Setting::Bare)?, stack(NOTHING)?, stack(ALL)?);
    let mut rows = vec![
        row("bare", bare, f64::NAN),
        row("a session that records none of them", nothing, nothing - bare),
    ];
    let mut sum = 0.0;
    for setting in ALONE {
        let alone = stack(*setting)?;
        sum += alone - nothing;
        rows.push(row(&format!("only {}", setting.name()), alone, alone - nothing));
    }
    rows.push(row("all four", all, all - nothing));
    let more = all - nothing - sum;
    report.table(&["recorded", "instructions", "added"], &rows);
    report.line(&format!(
        "the four alone: {}; on each other: {}; for being on each other: {}",
        difference(sum, 1),
        difference(all - nothing, 1),
        difference(more, 1),
    ));
    report.keep("layers", json!({ "alone": sum, "together": all - nothing, "more": more, "rows": rows }));
    Ok(())
}

fn row(what: &str, instructions: f64, added: f64) -> Vec<String> {
    vec![what.to_owned(), number(instructions, 1), difference(added, 1)]
}
