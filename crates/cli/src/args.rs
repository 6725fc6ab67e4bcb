//! Options of commands: those that several have, and those of the largest.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

mod flight;
mod inside;
mod kernel;
mod long;
mod read;
mod time;
mod window;

pub use flight::Flight;
pub use inside::{Inside, Sites, Strategy};
pub use kernel::Kernel;
pub use long::Long;
pub use read::{Print, Tally};
pub use time::time;
pub use window::Window;

/// How much is recorded.
#[derive(Debug, Clone, Copy, ValueEnum, Default, PartialEq, Eq)]
pub enum Mode {
    /// Device commands, and the calls that enqueue them, build programs or wait
    Minimal,
    /// Every call; consecutive identical polls are folded into one record, and the calls that
    /// compilers generate around a launch are left out, as are frequent details that other calls imply
    #[default]
    Default,
    /// Every call unfolded, and more of the data that pointers refer to
    Full,
}

/// What happens when a ring buffer is full.
#[derive(Debug, Clone, Copy, ValueEnum, Default, PartialEq, Eq)]
pub enum OnFull {
    /// Records are dropped, counted and reported
    #[default]
    Drop,
    /// The program waits
    Block,
}

/// Who may read a trace.
#[derive(Debug, Clone, Copy, ValueEnum, Default, PartialEq, Eq)]
pub enum Share {
    /// The owner only: folders 0700, files 0600
    #[default]
    Owner,
    /// The owner and the group: folders 0750, files 0640
    Group,
}

/// Whose events of the operating system are recorded.
#[derive(Debug, Clone, Copy, ValueEnum, Default, PartialEq, Eq)]
pub enum Os {
    /// None
    #[default]
    Off,
    /// What this user may record of the program and its descendants
    Auto,
    /// What concerns the program and its descendants: their events, and who ran, woke or interrupted
    Tree,
    /// All events of the machine
    System,
}

/// How calls are intercepted.
#[derive(Debug, Clone, Copy, ValueEnum, Default, PartialEq, Eq)]
pub enum Interpose {
    /// As a layer or injection library if the API supports that, otherwise by LD_PRELOAD
    #[default]
    Auto,
    /// As a layer or injection library
    Layer,
    /// By LD_PRELOAD
    Preload,
}

/// Launches of kernels: `kernel[@first..last]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launches {
    /// Glob of kernels' names.
    pub kernel: String,
    /// Which launches of each.
    pub numbers: RangeInclusive<u64>,
}

/// Longest glob of [`Launches`].
const LONGEST_GLOB: usize = 239;

impl FromStr for Launches {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kernel, numbers) = text.split_once('@').unwrap_or((text, ".."));
        if kernel.is_empty() || kernel.len() > LONGEST_GLOB {
            return Err(format!("expected a kernel name or glob of at most {LONGEST_GLOB} bytes"));
        }
        let number = |n: &str, otherwise| match n {
            "" => Ok(otherwise),
            n => n.parse::<u64>().map_err(|_| format!("`{n}` is not a launch number")),
        };
        let numbers = match numbers.split_once("..") {
            Some((first, last)) => number(first, 0)?..=number(last, u64::MAX)?,
            None if numbers.is_empty() => return Err("expected launch numbers after the @".to_owned()),
            None => number(numbers, 0)?..=number(numbers, 0)?,
        };
        if numbers.is_empty() {
            return Err("the first launch number is greater than the last".to_owned());
        }
        Ok(Launches { kernel: kernel.to_owned(), numbers })
    }
}

/// Source of the times of device commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceTimes {
    /// The best one available.
    Auto,
    /// Events of the API.
    Events,
    /// Events around every so many launches of each kernel.
    Sampled(u32),
    /// None.
    Off,
}

impl std::fmt::Display for DeviceTimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceTimes::Auto => f.write_str("auto"),
            DeviceTimes::Events => f.write_str("events"),
            DeviceTimes::Sampled(every) => write!(f, "sampled:{every}"),
            DeviceTimes::Off => f.write_str("off"),
        }
    }
}

impl FromStr for DeviceTimes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let every = |n: &str| n.parse().ok().filter(|n| (1..=1_000_000).contains(n));
        match text.split_once(':') {
            // Only CUDA has a collector of its own, and `auto` takes it already.
            None if text == "auto" || text == "cupti" => Ok(DeviceTimes::Auto),
            None if text == "events" => Ok(DeviceTimes::Events),
            None if text == "sampled" => Ok(DeviceTimes::Sampled(100)),
            None if text == "off" => Ok(DeviceTimes::Off),
            Some(("sampled", n)) => every(n)
                .map(DeviceTimes::Sampled)
                .ok_or_else(|| format!("`{n}` is not a number of launches from 1 to 1000000")),
            _ => Err("expected `auto`, `events`, `sampled`, `sampled:N` or `off`".to_owned()),
        }
    }
}

/// Returns a share of time in percent, as `2%` or `0.5`.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end();
    let percent = number.parse().ok().filter(|percent| (0.01..=100.0).contains(percent));
    percent.ok_or_else(|| "expected a percentage from 0.01% to 100%, such as 2%".to_owned())
}

/// Returns a number of bytes, as `4096`, `64K`, `16M` or `1GiB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let binary = text.strip_suffix("iB").filter(|text| text.ends_with(['K', 'M', 'G']));
    let text = binary.unwrap_or(text);
    let (digits, shift) = match text.as_bytes().last().map(u8::to_ascii_uppercase) {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    let bytes = number.and_then(|n| n.checked_mul(1 << shift)).filter(|n| *n > 0);
    bytes.ok_or_else(|| "expected a number of bytes above 0, optionally with K, M or G".to_owned())
}

/// Returns a time between samples: a number and `us`, `ms` or `s`.
pub(crate) fn period(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        _ => 0,
    };
    let us = digits.parse().ok().and_then(|n: u64| n.checked_mul(unit));
    let period = us.map(Duration::from_micros).filter(|p| PERIODS.contains(p));
    period.ok_or_else(|| {
        "expected a time from 1ms to 60s with its unit, such as 50ms; put -- before a program that follows".to_owned()
    })
}

/// Supported periods: drivers update the values that they report every few milliseconds at best.
const PERIODS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(60);

/// Options of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// How much is recorded
    #[arg(short, long, value_enum, default_value_t, env = "HETRACE_MODE")]
    pub mode: Mode,
    /// Folder of the trace; must not exist [default: hetrace-<program>-<n>]
    #[arg(short, long, env = "HETRACE_OUTPUT")]
    pub output: Option<PathBuf>,
    /// Who may read the trace, whatever the umask: it contains command lines and arguments
    #[arg(long, value_enum, default_value_t, env = "HETRACE_SHARE")]
    pub share: Share,
    /// APIs to trace, separated by commas, or `auto` for all
    #[arg(short, long, default_value = "auto", value_delimiter = ',', env = "HETRACE_TRACE")]
    pub trace: Vec<String>,
    /// Record only functions that match this glob (may be repeated)
    #[arg(long, value_name = "GLOB", env = "HETRACE_INCLUDE", value_delimiter = ',')]
    pub include: Vec<String>,
    /// Record no function that matches this glob (may be repeated)
    #[arg(long, value_name = "GLOB", env = "HETRACE_EXCLUDE", value_delimiter = ',')]
    pub exclude: Vec<String>,
    /// What happens when a thread records faster than the trace is written
    #[arg(long, value_enum, default_value_t, env = "HETRACE_ON_FULL")]
    pub on_full: OnFull,
    /// Size up to which the ring buffer of each recording thread grows, in KiB; a thread that fills it
    /// gets 4, then 16 times as much. A ring buffer starts with 64 KiB (less if memory is short), or
    /// with the full size under `--on-full block`
    #[arg(long, default_value_t = 1024, value_name = "KIB", env = "HETRACE_BUFFER")]
    pub buffer: u32,
    /// Source of the times of device commands: `auto` takes the best one available, `events` puts
    /// events of the API around each command, `sampled:N` does so for every N-th launch of each
    /// kernel and only counts the others (N is 100 if omitted), `off` records calls only
    #[arg(long, value_name = "SOURCE", default_value = "auto", env = "HETRACE_DEVICE_TIMES")]
    pub device_times: DeviceTimes,
    /// Maximum number of device commands in flight per process and API; further commands are counted
    /// and have no times. Each takes 200 bytes of the program's memory
    #[arg(
        long,
        default_value_t = 1 << 20,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=16 << 20),
        env = "HETRACE_MAX_IN_FLIGHT"
    )]
    pub max_in_flight: u32,
    /// How much of each thread's time recording may take, such as 2%. A thread that needs more times some
    /// commands only, then adds calls up by function, and goes back when it can; counts stay exact
    #[arg(long, value_name = "PERCENT", value_parser = percent, env = "HETRACE_MAX_OVERHEAD")]
    pub max_overhead: Option<f64>,
    /// When it is recorded.
    #[command(flatten)]
    pub window: Window,
    /// What of it is kept.
    #[command(flatten)]
    pub flight: Flight,
    /// Into how many traces it goes.
    #[command(flatten)]
    pub long: Long,
    /// Same as --device-times off
    #[arg(long, env = "HETRACE_NO_DEVICE")]
    pub no_device: bool,
    /// Compress the trace (each packet with zstd)
    #[arg(long, env = "HETRACE_COMPRESS")]
    pub compress: bool,
    /// Store the sources, intermediate code and binaries of device programs
    #[arg(long, env = "HETRACE_SOURCES")]
    pub sources: bool,
    /// Record the options and logs of builds of device programs
    #[arg(long, env = "HETRACE_BUILD_LOGS")]
    pub build_logs: bool,
    /// Record names and types of kernel arguments, where the platform reports them
    #[arg(long, env = "HETRACE_KERNEL_ARGS")]
    pub kernel_args: bool,
    /// Record all properties of the platforms and devices that the program sees
    #[arg(long, env = "HETRACE_PROPERTIES")]
    pub properties: bool,
    /// Store the contents of buffers before and after launches of kernels that match this glob; launches
    /// of each name are counted from 0 (may be repeated). Makes the program wait for each such launch
    #[arg(long, value_name = "KERNEL[@FIRST..LAST]", env = "HETRACE_CAPTURE_BUFFERS", value_delimiter = ',')]
    pub capture_buffers: Vec<Launches>,
    /// Maximum number of bytes stored of one buffer; longer ones are truncated (suffixes K, M, G)
    #[arg(long, default_value = "16M", value_name = "BYTES", value_parser = size, env = "HETRACE_CAPTURE_SIZE")]
    pub capture_size: u64,
    /// Record a hash of the bytes that each copy sends to a device from memory of the host, so that `hetrace lint`
    /// finds what is sent again unchanged. The program waits about 0.5 µs for each copy
    /// and 60 to 100 ns per KiB; copies of more than 64 MiB are not hashed
    #[arg(long, env = "HETRACE_HASH_COPIES")]
    pub hash_copies: bool,
    /// Leave out migrations of CUDA's managed memory: the counters that report them take 36 to 70 ms of a program that has
    /// such memory
    #[arg(long, env = "HETRACE_NO_MIGRATIONS")]
    pub no_migrations: bool,
    /// Record the Python stack (functions, files and lines) of each call, read from the interpreter's own frames:
    /// CPython 3.9 to 3.14. Adds about 1 µs to each call
    #[arg(long, env = "HETRACE_PY_STACKS")]
    pub py_stacks: bool,
    /// Record the native stack (functions, files and lines as far as debug information has them) of each call, of up to
    /// DEPTH frames (1 to 128), by unwind tables and else by frame pointers: x86-64. Adds about 1 µs to each call
    /// [default without a value: 64]
    #[arg(
        long,
        value_name = "DEPTH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "64",
        value_parser = clap::value_parser!(u32).range(1..=128),
        env = "HETRACE_STACKS"
    )]
    pub stacks: Option<u32>,
    /// Sample what the program's threads do with their CPUs, HZ times a second of each: function and native stack, also
    /// outside of calls. Needs no privilege where kernel.perf_event_paranoid is 2 or less; with more than that, and for
    /// time in system calls, CAP_PERFMON or root: x86-64 [default without a value: 1000]
    #[arg(
        long,
        value_name = "HZ",
        num_args = 0..=1,
        default_missing_value = "1000",
        value_parser = clap::value_parser!(u32).range(1..=100_000),
        env = "HETRACE_CPU_SAMPLE"
    )]
    pub cpu_sample: Option<u32>,
    /// What is recorded inside kernels.
    #[command(flatten)]
    pub inside: Inside,
    /// Sample the telemetry of GPUs (power, energy, clocks, utilization, memory, temperature, throttling,
    /// traffic) and of the host (use and frequency of its processors, memory, energy, disks, networks) once
    /// per PERIOD [default without a value: 50ms]
    #[arg(
        long,
        value_name = "PERIOD",
        num_args = 0..=1,
        default_missing_value = "50ms",
        value_parser = period,
        env = "HETRACE_SAMPLE"
    )]
    pub sample: Option<Duration>,
    /// The NVML library for --sample [default: libnvidia-ml.so.1, as the loader finds it]
    #[arg(long, value_name = "FILE", env = "HETRACE_NVML")]
    pub nvml: Option<PathBuf>,
    /// The ROCm SMI library for --sample, also where no GPU of AMD's is seen [default: librocm_smi64.so of ROCm 5 to 7]
    #[arg(long, value_name = "FILE", env = "HETRACE_ROCM_SMI")]
    pub rocm_smi: Option<PathBuf>,
    /// The Level Zero loader for --sample, also where no GPU of Intel's is seen [default: libze_loader.so.1]
    #[arg(long, value_name = "FILE", env = "HETRACE_SYSMAN")]
    pub sysman: Option<PathBuf>,
    /// Record events of the operating system: context switches, wake-ups, interrupts, system calls, page
    /// faults, block I/O, processes. As root or with CAP_PERFMON; other users get the context switches of
    /// their own threads. The trace folder then contains two traces, `hetrace` and `kernel`
    #[arg(long, value_enum, default_value_t, value_name = "SCOPE", env = "HETRACE_OS")]
    pub os: Os,
    /// Record only system calls that match this glob (may be repeated), or `none`
    #[arg(
        long,
        value_name = "GLOB",
        default_value = "*",
        value_delimiter = ',',
        env = "HETRACE_OS_SYSCALLS"
    )]
    pub os_syscalls: Vec<String>,
    /// Record hits of probes in the code of the program and the libraries that it is linked to (USDT, `sys/sdt.h`), with
    /// their arguments: globs of provider and probe (may be repeated); before them the path of a file, for a library
    /// that the program opens later. Two probes become ranges if their names differ in a word (`f__entry`, `f__return`;
    /// `begin`, `end`), or as PROVIDER:BEGIN..END. As root or with CAP_PERFMON. Implies --os=tree
    #[arg(long, value_name = "[FILE:]PROVIDER:PROBE", env = "HETRACE_USDT")]
    pub usdt: Vec<String>,
    /// Size of each of the kernel's ring buffers for --os (one or two of each CPU), in KiB; rounded up to a power of two
    #[arg(
        long,
        default_value_t = 4096,
        value_name = "KIB",
        value_parser = clap::value_parser!(u32).range(4..=1 << 20),
        env = "HETRACE_OS_BUFFER"
    )]
    pub os_buffer: u32,
    /// How calls are intercepted
    #[arg(long, value_enum, default_value_t, env = "HETRACE_INTERPOSE")]
    pub interpose: Interpose,
    /// Show calls and device commands while the program runs: in the last lines of the terminal, or where
    /// stderr is none, a line every 10 seconds
    #[arg(long, env = "HETRACE_LIVE")]
    pub live: bool,
    /// Do not print tables at the end
    #[arg(short, long, env = "HETRACE_QUIET")]
    pub quiet: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Options of `lint`.
#[derive(Debug, Args)]
pub struct Lint {
    /// The trace [default: the newest in this folder]
    pub trace: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "sarif")]
    pub json: bool,
    /// Print SARIF 2.1.0
    #[arg(long)]
    pub sarif: bool,
    /// Print the list of rules
    #[arg(long)]
    pub rules: bool,
    /// Check this rule only (may be repeated)
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = rule)]
    pub rule: Vec<String>,
    /// Do not check this rule (may be repeated)
    #[arg(long, value_name = "RULE", value_delimiter = ',', value_parser = rule)]
    pub except: Vec<String>,
    /// Exit with status 1 if there is a finding of at least this severity
    #[arg(long, value_enum, default_value_t)]
    pub fail_on: FailOn,
}

/// What makes `lint` fail.
#[derive(Debug, Clone, Copy, ValueEnum, Default, PartialEq, Eq)]
pub enum FailOn {
    /// Errors
    #[default]
    Error,
    /// Warnings and errors
    Warning,
    /// Any finding
    Hint,
    /// Never fail
    Never,
}

/// Returns the id of a rule.
fn rule(text: &str) -> Result<String, String> {
    let known = hetrace_report::lint::rule_of(text);
    known
        .map(|r| r.id.to_owned())
        .ok_or_else(|| "unknown rule; `hetrace lint --rules` lists all rules".to_owned())
}

/// Options of `recover`.
#[derive(Debug, Args)]
pub struct Recover {
    /// The trace [default: all unfinished traces of this user whose programs have ended]
    pub trace: Option<PathBuf>,
}

/// Options of `model`.
#[derive(Debug, Args)]
pub struct Model {
    /// The API [default: a list of all]
    pub api: Option<String>,
    /// The function
    pub function: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::{Cli, Command};

    #[test]
    fn launches_are_a_name_and_numbers() {
        let numbers = |text: &str| text.parse::<Launches>().map(|l| (l.kernel, l.numbers));
        let of = |kernel: &str, numbers| Ok((kernel.to_owned(), numbers));
        assert_eq!(numbers("add*"), of("add*", 0..=u64::MAX));
        assert_eq!(numbers("add@3"), of("add", 3..=3));
        assert_eq!(numbers("add@1..2"), of("add", 1..=2));
        assert_eq!(numbers("add@..2"), of("add", 0..=2));
        assert_eq!(numbers("add@2.."), of("add", 2..=u64::MAX));
        for wrong in ["", "@1", "add@", "add@x", "add@3..1", "add@-1"] {
            assert!(numbers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn device_times_have_a_source() {
        for (text, source) in [
            ("auto", DeviceTimes::Auto),
            ("cupti", DeviceTimes::Auto),
            ("events", DeviceTimes::Events),
            ("sampled", DeviceTimes::Sampled(100)),
            ("sampled:7", DeviceTimes::Sampled(7)),
            ("off", DeviceTimes::Off),
        ] {
            assert_eq!(text.parse(), Ok(source), "{text}");
        }
        for wrong in ["", "sampled:0", "sampled:", "sampled:x", "events:2", "on"] {
            assert!(wrong.parse::<DeviceTimes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64k"), Ok(65536));
        assert_eq!(size("1G"), Ok(1 << 30));
        assert_eq!(size("2MiB"), Ok(2 << 20));
        for wrong in ["", "K", "0", "-1", "1T", "99999999999G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn periods_have_units_and_limits() {
        assert_eq!(period("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(period("2500us"), Ok(Duration::from_micros(2500)));
        assert_eq!(period("60s"), Ok(Duration::from_secs(60)));
        for wrong in ["", "50", "ms", "-1ms", "999us", "61s", "1h", "1.5s", "./app", "99999999999999999999s"]
        {
            assert!(period(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sampling_has_a_default_period_but_is_off_by_default() {
        let sample = |line: &[&str]| {
            let line = ["hetrace", "run"].iter().chain(line);
            match Cli::try_parse_from(line).map(|c| c.command) {
                Ok(Command::Run(run)) => Some(run.sample),
                _ => None,
            }
        };
        assert_eq!(sample(&["--", "app"]), Some(None));
        assert_eq!(sample(&["--sample", "--", "app"]), Some(Some(Duration::from_millis(50))));
        assert_eq!(sample(&["--sample", "-q", "app"]), Some(Some(Duration::from_millis(50))));
        assert_eq!(sample(&["--sample", "10ms", "app"]), Some(Some(Duration::from_millis(10))));
        assert_eq!(sample(&["--sample=1s", "app"]), Some(Some(Duration::from_secs(1))));
        assert_eq!(sample(&["--sample", "./app"]), None);
    }

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
