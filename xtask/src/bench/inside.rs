//! `cargo xtask bench inside`: what `run --inside` costs beside the device: launches on the host, on a driver that does
//! nothing; rewriting a module, and finding it in the cache; and what `ptxas` takes for it, if there is one.
//!
//! What it costs kernels only a device can show: `tests/h200/inside_price.py`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::json;

use super::ground::{Ground, product, succeeds};
use super::instructions::per_call;
use super::report::{Report, difference, number};
use super::setting::Setting;

/// Arguments of `bench inside`.
#[derive(Parser)]
pub struct Args {
    /// Texts of PTX to rewrite, beside those that are made
    #[arg(long, value_name = "FILE")]
    ptx: Vec<PathBuf>,
    /// How often each is rewritten; the least time counts
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// The hetrace to measure; its CUDA libraries lie beside it
    #[arg(long, value_name = "PATH")]
    hetrace: Option<PathBuf>,
}

const LIBRARIES: &[&str] = &["libhetrace_cuda.so"];
/// Launches in a loop, and before it.
const LOOP: u32 = 10_000;
const WARM: u32 = 500;
/// The program's loops: the C functions, and what they launch.
const LOOPS: [(&str, &str); 2] =
    [("launch_wanted", "a kernel that --inside names"), ("launch_other", "another one of its module")];

const BASE: [&str; 5] = ["--interpose", "preload", "--buffer", "8192", "--no-device"];

/// The same with `--inside` and its choice.
const fn inside(chosen: &'static str) -> [&'static str; 11] {
    let [a, b, c, d, e] = BASE;
    [a, b, c, d, e, "--inside", chosen, "--inside-sample", "launches:1", "--inside-buffer", "1M"]
}

const SETTINGS: [Setting; 4] = [
    Setting::Bare,
    Setting::Hetrace("without --inside", &BASE),
    Setting::Hetrace("--inside of none", &inside("nothing")),
    Setting::Hetrace("--inside wanted", &inside("wanted")),
];

/// Kernels of the modules that are made.
const SIZES: [usize; 3] = [2, 50, 200];

/// Measures and prints everything.
pub fn run(args: &Args) -> Result<ExitCode> {
    let product = product(args.hetrace.as_deref());
    let ground = Ground::make_cuda(&product, LIBRARIES)?;
    let mut report = Report::new(args.json);
    launches(&ground, &mut report)?;
    modules(&ground, args, &mut report)?;
    report.finish();
    Ok(ExitCode::SUCCESS)
}

/// A text with so many kernels with a loop and a choice each, of which the first is called `wanted` and the second `other`.
fn module(kernels: usize) -> String {
    let mut text = String::from(".version 8.0\n.target sm_90\n.address_size 64\n");
    for kernel in 0..kernels {
        let name = match kernel {
            0 => "wanted".to_owned(),
            1 => "other".to_owned(),
            _ => format!("kernel{kernel}"),
        };
        let _ = write!(
            text,
            "\n.visible .entry {name}(\n\t.param .u64 {name}_param_0\n)\n{{\n\t.reg .pred %p<3>;\n\t.reg .b32 %r<6>;\n\t\
             .reg .b64 %rd<5>;\n\n\tld.param.u64 %rd1, [{name}_param_0];\n\tmov.u32 %r1, %tid.x;\n\tmov.u32 %r2, 0;\n\n\
             $L__BB{kernel}_1:\n\tand.b32 %r3, %r1, 3;\n\tsetp.eq.s32 %p1, %r3, 0;\n\t@%p1 bra $L__BB{kernel}_3;\n\n\t\
             mul.wide.u32 %rd2, %r1, 4;\n\tadd.s64 %rd3, %rd1, %rd2;\n\tst.global.u32 [%rd3], %r2;\n\n\
             $L__BB{kernel}_3:\n\tadd.s32 %r1, %r1, -1;\n\tadd.s32 %r2, %r2, 1;\n\tsetp.lt.u32 %p2, %r2, 100;\n\t\
             @%p2 bra $L__BB{kernel}_1;\n\n\tret;\n\n}}\n"
        );
    }
    text
}

/// What a launch takes on the host.
fn launches(ground: &Ground, report: &mut Report) -> Result<()> {
    report
        .title("Instructions of a launch on the host (callgrind; with the loop around it), no device times");
    if !succeeds("valgrind", &["--version"]) {
        report.line("skipped: valgrind is not installed");
        return Ok(());
    }
    let text = ground.work.join("module.ptx");
    fs::write(&text, module(2))?;
    let mut program: Vec<OsString> = vec![ground.program("inside_loop").into(), text.into()];
    program.extend(["-n", &LOOP.to_string(), "-r", "1", "-p", "0"].map(OsString::from));
    let functions = LOOPS.map(|(function, _)| function);
    let (mut head, mut columns) = (vec!["launch of"], Vec::new());
    for setting in SETTINGS {
        match per_call(ground, setting, &program, &functions, f64::from(LOOP + WARM)) {
            Ok(counts) => {
                head.push(setting.name());
                columns.push(counts);
            }
            Err(error) => report.line(&format!("{} failed: {error:#}", setting.name())),
        }
    }
    let rows: Vec<Vec<String>> = LOOPS
        .iter()
        .enumerate()
        .map(|(at, (_, what))| {
            let cells = columns.iter().map(|counts| number(counts.get(at).copied().unwrap_or(f64::NAN), 1));
            std::iter::once((*what).to_owned()).chain(cells).collect()
        })
        .collect();
    report.table(&head, &rows);
    let of = |at: usize| columns.get(at).and_then(|counts| counts.first()).copied().unwrap_or(f64::NAN);
    if of(1) <= of(0) {
        report.line("nothing was recorded: these figures say nothing of hetrace");
    }
    report.keep("inside_launches", json!({ "settings": head, "rows": rows }));
    Ok(())
}

/// What a module takes before it can be loaded.
fn modules(ground: &Ground, args: &Args, report: &mut Report) -> Result<()> {
    report.title("Seconds for a module, the least of some: `hetrace rewrite` (its process and all), and ptxas -arch=sm_90");
    let assembles = succeeds("ptxas", &["--version"]);
    if !assembles {
        report.line("ptxas: not on the path");
    }
    let made = SIZES.map(|kernels| (format!("{kernels} kernels, made"), module(kernels)));
    let mut all = made.to_vec();
    for path in &args.ptx {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        all.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text));
    }
    let mut rows = Vec::new();
    for (number_of, (name, text)) in all.iter().enumerate() {
        rows.push(one(ground, args.rounds.max(1), number_of, name, text, assembles)?);
    }
    let head = [
        "module",
        "KB",
        "KB with twins",
        "rewritten",
        "from the cache",
        "ptxas, as it was",
        "with twins",
        "times",
    ];
    report.table(&head, &rows);
    report.keep("inside_modules", json!({ "head": head, "rows": rows }));
    Ok(())
}

fn one(
    ground: &Ground,
    rounds: u32,
    number_of: usize,
    name: &str,
    text: &str,
    assembles: bool,
) -> Result<Vec<String>> {
    let (image, answer) = (ground.work.join(format!("{number_of:x}-0-90.ask")), ground.work.join("0.answer"));
    fs::write(&image, text)?;
    let rewrite = |fresh: bool| -> Result<f64> {
        let cache = ground.work.join("cache");
        if fresh {
            let _ = fs::remove_dir_all(&cache);
        }
        let mut command = Command::new(&ground.hetrace);
        command.args(["rewrite", "--kernel=*"]).arg(&image).arg(&answer).env("XDG_CACHE_HOME", &cache);
        seconds(&mut command)
    };
    let least = |fresh: bool| {
        (0..rounds).map(|_| rewrite(fresh)).try_fold(f64::MAX, |least, s| s.map(|s| least.min(s)))
    };
    let (rewritten, cached) = (least(true)?, least(false)?);
    // Behind the head of 24 bytes stands the text, and a 0.
    let bytes = fs::read(&answer)?;
    let twins = bytes.get(24..bytes.len().saturating_sub(1)).unwrap_or_default();
    if twins.is_empty() {
        bail!("{name}: no twins in it");
    }
    let mut row =
        vec![name.to_owned(), kb(text.len()), kb(twins.len()), number(rewritten, 3), number(cached, 3)];
    if assembles {
        let file = ground.work.join("twins.ptx");
        fs::write(&file, twins)?;
        let [plain, with] = [&image, &file].map(|file| assembled(ground, rounds, file));
        let (plain, with) = (plain?, with?);
        row.extend([number(plain, 3), number(with, 3), difference(with / plain, 2)]);
    }
    row.resize(8, "-".to_owned());
    Ok(row)
}

fn kb(bytes: usize) -> String {
    number(bytes as f64 / 1e3, 1)
}

/// Seconds that `ptxas` takes for a text, the least of some.
fn assembled(ground: &Ground, rounds: u32, text: &Path) -> Result<f64> {
    let once = || {
        let mut command = Command::new("ptxas");
        command.args(["-arch=sm_90", "-o"]).arg(ground.work.join("out.cubin")).arg(text);
        seconds(&mut command)
    };
    (0..rounds.min(2)).map(|_| once()).try_fold(f64::MAX, |least, s| s.map(|s| least.min(s)))
}

fn seconds(command: &mut Command) -> Result<f64> {
    let begin = Instant::now();
    let done =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).output().context("it can't be started")?;
    if !done.status.success() {
        bail!("{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    Ok(begin.elapsed().as_secs_f64())
}
