//! What a benchmark stands on: the machine, the products, a folder, and how
//! programs are kept on one processor.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::repo;

/// Which processors a program may use, and at which priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// As the system likes.
    No,
    /// On the last processor, tracers on the others.
    Processor,
    /// As above, and nothing of ordinary priority interrupts the program, if the system lets us.
    Undisturbed,
}

/// Everything a benchmark needs of its surroundings.
#[derive(Debug)]
pub struct Ground {
    /// A copy of hetrace, which a build beside us can't replace.
    pub hetrace: PathBuf,
    /// The libraries beside it.
    pub libraries: Vec<PathBuf>,
    /// Script that runs programs under the LTTng peer, or why there is none.
    pub peer: Result<PathBuf, String>,
    /// Folder for traces; removed at the end.
    pub work: PathBuf,
    /// Where programs find libraries first; none if as ever.
    pub search: Option<PathBuf>,
    /// Real-time scheduling is allowed.
    pub fifo: bool,
    processors: usize,
}

impl Ground {
    /// Builds the programs for OpenCL, copies the product and looks what there is.
    pub fn make(product: &Path) -> Result<Self> {
        for folder in ["bench/programs", "tests/programs"] {
            make(folder, "all").with_context(|| format!("make -C {folder}"))?;
        }
        let mut ground = Ground::with(product, &["libhetrace_opencl.so"])?;
        ground.peer = peer();
        Ok(ground)
    }

    /// As above, without the peer.
    pub fn make_programs(product: &Path) -> Result<Self> {
        make("bench/programs", "all").context("make -C bench/programs")?;
        Ground::with(product, &["libhetrace_opencl.so"])
    }

    /// As above, for CUDA, which needs nothing on the machine: its libraries that do nothing are where the loader looks
    /// first. Without them a launcher would leave the APIs out, as it starts valgrind, which is linked to none of them.
    pub fn make_cuda(product: &Path, libraries: &[&str]) -> Result<Self> {
        make("bench/programs", "cuda").context("make -C bench/programs cuda")?;
        let mut ground = Ground::with(product, libraries)?;
        ground.search = Some(repo::root().join("bench/programs/build"));
        Ok(ground)
    }

    /// As above, to read traces; the libraries are needed only to record them.
    pub fn make_analyze(product: &Path) -> Result<Self> {
        let libraries = ["libhetrace_opencl.so"];
        let there = product.with_file_name(libraries[0]).exists();
        Ground::with(product, if there { &libraries } else { &[] })
    }

    /// As above, with all libraries that lie beside the product; each benchmark makes its programs.
    pub fn make_system(product: &Path) -> Result<Self> {
        let folder = product.parent().context("the product lies in no folder")?;
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with("libhetrace_") && name.ends_with(".so") {
                names.push(name);
            }
        }
        names.sort();
        Ground::with(product, &names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn with(product: &Path, libraries: &[&str]) -> Result<Self> {
        let folder = product.parent().context("the product lies in no folder")?;
        // One benchmark may stand on several.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let work = std::env::temp_dir().join(format!("hetrace-bench-{}-{number}", std::process::id()));
        fs::create_dir_all(&work).with_context(|| format!("{}", work.display()))?;
        for name in ["hetrace"].iter().chain(libraries) {
            let from = folder.join(name);
            fs::copy(&from, work.join(name))
                .with_context(|| format!("{}: build it first (cargo build --release)", from.display()))?;
        }
        let gate = folder.join(repo::GATE);
        if gate.exists() {
            fs::copy(&gate, work.join(repo::GATE)).with_context(|| gate.display().to_string())?;
        }
        Ok(Ground {
            hetrace: work.join("hetrace"),
            libraries: libraries.iter().map(|name| work.join(name)).collect(),
            peer: Err("it traces OpenCL only".to_owned()),
            work,
            search: None,
            fifo: succeeds("chrt", &["-f", "1", "true"]),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    /// A program of the benchmark.
    pub fn program(&self, name: &str) -> PathBuf {
        repo::root().join("bench/programs/build").join(name)
    }

    /// What to put before everything so that libraries are found where they are to be.
    pub fn finding(&self) -> Vec<OsString> {
        let Some(folder) = &self.search else { return Vec::new() };
        let mut path = OsString::from("LD_LIBRARY_PATH=");
        path.push(folder);
        if let Some(others) = std::env::var_os("LD_LIBRARY_PATH").filter(|others| !others.is_empty()) {
            path.push(":");
            path.push(others);
        }
        vec!["env".into(), path]
    }

    /// What to put before a program so that it runs as said.
    pub fn pinned(&self, pin: Pin) -> Vec<OsString> {
        let last = (self.processors - 1).to_string();
        let mut words = if pin == Pin::No { Vec::new() } else { vec!["taskset", "-c", &last] };
        if self.fifo && pin == Pin::Undisturbed {
            words.extend(["chrt", "-f", "1"]);
        }
        words.into_iter().map(OsString::from).collect()
    }

    /// What to put before a program so that it is not interrupted, on any processor.
    pub fn undisturbed(&self) -> Vec<OsString> {
        let words: &[&str] = if self.fifo { &["chrt", "-f", "1"] } else { &[] };
        words.iter().map(OsString::from).collect()
    }

    /// What to put before a tracer so that it stays off that processor.
    pub fn elsewhere(&self) -> Vec<OsString> {
        if self.processors < 2 {
            return Vec::new();
        }
        let others = format!("0-{}", self.processors - 2);
        ["taskset", "-c", &others].into_iter().map(OsString::from).collect()
    }

    /// The machine, in words.
    pub fn machine(&self) -> Value {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or_default();
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        json!({
            "processor": model.trim_start_matches([' ', '\t', ':']),
            "processors": self.processors,
            "kernel": read("/proc/sys/kernel/osrelease"),
            "clocksource": read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            "load": read("/proc/loadavg"),
            "time": output("date", &["-u", "+%Y-%m-%d %H:%M UTC"]).unwrap_or_default(),
            "pinning": if self.fifo { "taskset and chrt -f 1" } else { "taskset" },
            "hetrace": output(&self.hetrace.to_string_lossy(), &["--version"]).unwrap_or_default(),
        })
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.work);
    }
}

fn peer() -> Result<PathBuf, String> {
    for tool in ["lttng", "lttng-sessiond", "babeltrace2"] {
        if !succeeds(tool, &["--version"]) {
            return Err(format!("{tool} is not installed"));
        }
    }
    make("bench/lttng-peer", "all").map_err(|e| format!("it can't be built ({e:#})"))?;
    Ok(repo::root().join("bench/lttng-peer/run.sh"))
}

/// The hetrace to measure: the one that was named, or that of a release build.
pub fn product(named: Option<&Path>) -> PathBuf {
    named.map_or_else(|| repo::root().join("target/release/hetrace"), Path::to_owned)
}

/// Runs make in a folder of the repository.
pub fn make(folder: &str, what: &str) -> Result<()> {
    let out = Command::new("make").args(["-s", "-C", folder, what]).current_dir(repo::root()).output()?;
    if !out.status.success() {
        bail!("{}", String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(())
}

/// Whether a program is there and ends well.
pub fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|s| s.success())
}

/// What a program prints; nothing if it is not there.
pub fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let out = Command::new(program).args(arguments).output().ok()?;
    Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}
