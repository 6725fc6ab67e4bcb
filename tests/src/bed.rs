//! The test bed: building the test programs, running them, time limits.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::platform::Platform;
use crate::seen::Seen;

/// No test program takes this long, however busy the machine; one that does hangs.
const LIMIT: Duration = Duration::from_secs(600);

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the root")
}

/// The model of an API.
pub fn model(api: &str) -> Value {
    let text = std::fs::read_to_string(root().join(format!("apis/{api}/api.json"))).expect("the model");
    serde_json::from_str(&text).expect("JSON")
}

/// Writes a file of a program unless it is so already: only what has changed is built again.
pub(crate) fn keep(file: &Path, text: &str) {
    if std::fs::read_to_string(file).ok().as_deref() != Some(text) {
        std::fs::write(file, text).expect("a file");
    }
}

/// The `hetrace` under test.
pub fn hetrace() -> PathBuf {
    let path =
        std::env::var_os("HETRACE_BIN").map_or_else(|| root().join("target/release/hetrace"), PathBuf::from);
    assert!(path.exists(), "{} is not built: run `cargo xtask test`", path.display());
    path
}

/// Returns whether the kernel lets this user have tracepoints; says so if not.
pub fn has_tracepoints() -> bool {
    let said = run(Command::new(hetrace()).args(["doctor", "--json"])).out;
    let findings: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let own = findings.as_array().expect("a list").iter().find(|f| f["what"] == "--os").expect("a finding");
    let has = own["says"].as_str().expect("text").starts_with("tracepoints");
    if !has {
        eprintln!("SKIPPED: no tracepoints here: {own}");
    }
    has
}

/// The folder with the built test programs.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = root().join("target/test-programs");
        let make = Command::new("make")
            .args(["-s", "-C"])
            .arg(root().join("tests/programs"))
            .arg(format!("OUT={}", out.display()))
            .output()
            .expect("make: run scripts/install-deps.sh");
        assert!(make.status.success(), "test programs: {}", String::from_utf8_lossy(&make.stderr));
        out
    })
}

/// How a program ended.
#[derive(Debug)]
pub struct Done {
    /// Its status as a shell shows it: 128 + signal for a signal.
    pub status: i32,
    /// What it wrote to stdout.
    pub out: String,
    /// What it wrote to stderr.
    pub err: String,
}

/// Runs a command to its end, or fails the test.
pub fn run(command: &mut Command) -> Done {
    use std::os::unix::process::ExitStatusExt;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let read = |mut pipe: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).expect("a pipe");
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let out = read(Box::new(child.stdout.take().expect("piped")));
    let err = read(Box::new(child.stderr.take().expect("piped")));
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if started.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("{command:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    Done { status, out: out.join().expect("read"), err: err.join().expect("read") }
}

/// The file of a test program: built, or a script beside the sources.
pub fn program(name: &str) -> PathBuf {
    let script = root().join("tests/programs").join(name);
    if name.ends_with(".py") { script } else { programs().join(name) }
}

/// Runs a program without hetrace.
pub fn bare(platform: Platform, command: &[&str]) -> Done {
    let scratch = TempDir::new().expect("a scratch folder");
    let (name, arguments) = command.split_first().expect("a program");
    run(Command::new(program(name)).args(arguments).envs(platform.environment(scratch.path())))
}

/// A program that was run under trace.
#[derive(Debug)]
pub struct Traced {
    /// How it ended.
    pub done: Done,
    /// Where the trace is, as long as this lives.
    pub folder: PathBuf,
    _scratch: TempDir,
}

impl Traced {
    /// What the trace says.
    pub fn seen(&self) -> Seen {
        Seen::read(&self.folder)
    }

    /// The manifest.
    pub fn manifest(&self) -> serde_json::Value {
        let text = std::fs::read_to_string(self.folder.join("hetrace/manifest.json")).expect("a manifest");
        serde_json::from_str(&text).expect("JSON")
    }
}

/// Runs a program under trace.
pub fn trace(platform: Platform, command: &[&str]) -> Traced {
    trace_with(platform, &[] as &[&str], command)
}

/// Runs any command line of this machine under trace, and bare.
pub fn both_ways(scratch: &Path, line: &[&str]) -> (Done, Done) {
    let (program, arguments) = line.split_first().expect("a program");
    let bare = run(Command::new(program).args(arguments).current_dir(scratch));
    let mut command = Command::new(hetrace());
    // Room for a busy test machine, on which the drainer may have to wait.
    command.args(["run", "-q", "--buffer", "8192", "-o", "trace", "--", program]).args(arguments);
    (bare, run(command.current_dir(scratch)))
}

/// Runs a program under trace with options.
pub fn trace_with(platform: Platform, options: &[impl AsRef<OsStr>], command: &[&str]) -> Traced {
    let scratch = TempDir::new().expect("a scratch folder");
    let folder = scratch.path().join("trace");
    let (name, arguments) = command.split_first().expect("a program");
    let mut line = Command::new(hetrace());
    line.arg("run").arg("-o").arg(&folder).args(options).arg("--").arg(program(name)).args(arguments);
    let done = run(line.envs(platform.environment(scratch.path())));
    Traced { done, folder, _scratch: scratch }
}

/// Copies a folder with all below it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(from, to).expect("copied");
        }
    }
}
