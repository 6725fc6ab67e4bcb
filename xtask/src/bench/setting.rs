//! The settings a program is measured in, and running it in one of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::ground::{Ground, Pin};
use super::numbers::Samples;

/// How a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// Alone.
    Bare,
    /// Our library is loaded, no session.
    Dormant,
    /// As above, for libraries that are preloaded.
    Preloaded,
    /// As above, for a library that a variable names.
    Injected(&'static str, &'static str),
    /// Under `hetrace run` with these options.
    Hetrace(&'static str, &'static [&'static str]),
    /// A library is preloaded that records nothing: it has these variables, by which each call takes some nanoseconds
    /// longer, and the driver notes times of commands.
    Delay(&'static str, &'static [&'static str]),
    /// The peer is loaded, no session records.
    PeerOff,
    /// The peer records, thread and process with each event.
    PeerOn,
}

/// `hetrace run -m default`.
pub const DEFAULT: Setting = Setting::Hetrace("default", &["-m", "default"]);
/// `hetrace run -m full`.
pub const FULL: Setting = Setting::Hetrace("full", &["-m", "full"]);
/// Outside of a capture window, which never opens: only calls about objects are recorded.
pub const OUTSIDE: Setting = Setting::Hetrace("outside a window", &["-m", "default", "--delay", "1000000s"]);
/// A full ring makes the program wait.
pub const BLOCK: Setting =
    Setting::Hetrace("default, on-full block", &["-m", "default", "--on-full", "block"]);
/// What the tables compare.
pub const ALL: &[Setting] =
    &[Setting::Bare, Setting::Dormant, DEFAULT, FULL, BLOCK, Setting::PeerOff, Setting::PeerOn];

impl Setting {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Setting::Bare => "bare",
            Setting::Dormant => "dormant",
            Setting::Preloaded => "preloaded, no session",
            Setting::Injected(..) => "injected, no session",
            Setting::Hetrace(name, _) | Setting::Delay(name, _) => name,
            Setting::PeerOff => "LTTng peer off",
            Setting::PeerOn => "LTTng peer on",
        }
    }

    /// Whether it can be measured here.
    pub fn possible(self, ground: &Ground) -> bool {
        ground.peer.is_ok() || !matches!(self, Setting::PeerOff | Setting::PeerOn)
    }

    /// The words that run `program` in this setting, and where its trace is.
    pub fn words(
        self,
        ground: &Ground,
        pin: Pin,
        program: &[OsString],
    ) -> Result<(Vec<OsString>, Option<PathBuf>)> {
        let mut words = ground.finding();
        let mut trace = None;
        match self {
            Setting::Bare => {}
            Setting::Dormant => {
                words.extend(["env".into(), variable("OPENCL_LAYERS", &ground.libraries)]);
            }
            Setting::Preloaded => {
                words.extend(["env".into(), variable("LD_PRELOAD", &ground.libraries)]);
            }
            Setting::Injected(name, library) => {
                words.extend(["env".into(), variable(name, &[ground.work.join(library)])]);
            }
            Setting::Delay(_, variables) => {
                let library = ground.program("libdelay.so");
                words.extend(["env".into(), variable("LD_PRELOAD", &[library])]);
                words.extend(variables.iter().map(OsString::from));
            }
            Setting::Hetrace(_, options) => {
                let folder = ground.work.join("trace");
                let _ = fs::remove_dir_all(&folder);
                words.extend(if pin == Pin::No { Vec::new() } else { ground.elsewhere() });
                words.extend([ground.hetrace.clone().into(), "run".into(), "-q".into(), "-o".into()]);
                words.push(folder.clone().into());
                words.extend(options.iter().map(OsString::from));
                words.push("--".into());
                trace = Some(folder);
            }
            Setting::PeerOff | Setting::PeerOn => {
                let script = ground.peer.as_ref().map_err(|why| anyhow::anyhow!("no peer: {why}"))?;
                words.extend(if pin == Pin::No { Vec::new() } else { ground.elsewhere() });
                let mode = if self == Setting::PeerOn { "on" } else { "off" };
                words.extend([script.clone().into(), "-c".into(), "-m".into(), mode.into()]);
            }
        }
        words.extend(ground.pinned(pin));
        words.extend_from_slice(program);
        Ok((words, trace))
    }
}

/// `name=path:path`
fn variable(name: &str, paths: &[PathBuf]) -> OsString {
    let mut text = OsString::from(name);
    for (i, path) in paths.iter().enumerate() {
        text.push(if i == 0 { "=" } else { ":" });
        text.push(path);
    }
    text
}

/// A command without what our own surroundings could bring into it.
pub fn command(words: &[OsString]) -> Result<Command> {
    let (program, arguments) = words.split_first().context("nothing to run")?;
    let mut command = Command::new(program);
    command.args(arguments).env_remove("OPENCL_LAYERS").env_remove("LD_PRELOAD");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HETRACE_") {
            command.env_remove(name);
        }
    }
    Ok(command)
}

/// What a run left.
#[derive(Debug, Default)]
pub struct Ran {
    /// `key value` lines of the program.
    pub values: BTreeMap<String, f64>,
    /// Records written.
    pub records: f64,
    /// Bytes of these records.
    pub bytes: f64,
    /// Records lost.
    pub lost: f64,
}

/// Runs a program once; its trace is removed unless `look` keeps something of it.
pub fn run(
    ground: &Ground,
    setting: Setting,
    pin: Pin,
    program: &[OsString],
    look: impl FnOnce(&Path) -> Result<()>,
) -> Result<Ran> {
    let (words, trace) = setting.words(ground, pin, program)?;
    let out = output(&words)?;
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if !out.status.success() {
        bail!("{}: {}: {}", setting.name(), out.status, stderr.trim());
    }
    let mut ran = Ran { values: pairs(&stdout), ..Ran::default() };
    if let Some(folder) = trace {
        let manifest: Value = serde_json::from_slice(&fs::read(folder.join("hetrace/manifest.json"))?)?;
        let number = |at: &str| manifest.pointer(at).and_then(Value::as_f64).unwrap_or(f64::NAN);
        ran.records = number("/written/records");
        ran.bytes = number("/written/bytes");
        ran.lost = number("/losses/records") + number("/losses/device_commands");
        let done = look(&folder);
        fs::remove_dir_all(&folder)?;
        done?;
    } else if setting == Setting::PeerOn {
        let said = pairs(&stderr);
        let number = |key: &str| said.get(key).copied().unwrap_or(f64::NAN);
        ran.records = number("events_recorded");
        ran.bytes = number("trace_bytes");
        ran.lost = number("events_discarded");
    }
    Ok(ran)
}

/// Runs a command to its end. A machine has room for one session daemon of
/// root's: while another is there, the peer has to wait.
fn output(words: &[OsString]) -> Result<Output> {
    let mut patience = 60;
    loop {
        let out = command(words)?.output().context("starting the program")?;
        let busy = out.status.code() == Some(125)
            && String::from_utf8_lossy(&out.stderr).contains("another lttng-sessiond");
        if !busy || patience == 0 {
            return Ok(out);
        }
        patience -= 1;
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn pairs(text: &str) -> BTreeMap<String, f64> {
    let pair = |line: &str| {
        let (key, value) = line.split_once(' ')?;
        Some((key.to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// The same program in several settings, in rounds.
#[derive(Debug, Default)]
pub struct Measured {
    samples: BTreeMap<(Setting, String), Samples>,
    lost: BTreeMap<Setting, f64>,
    records: BTreeMap<Setting, f64>,
    /// Settings that failed, and why.
    pub failed: BTreeMap<Setting, String>,
}

impl Measured {
    /// Runs the program in each setting, and that `rounds` times; `keys` names
    /// what is kept of its output.
    pub fn new(
        ground: &Ground,
        settings: &[Setting],
        rounds: usize,
        program: &[OsString],
        keys: &[String],
    ) -> Self {
        let mut all = Measured::default();
        for _ in 0..rounds {
            for setting in settings.iter().copied().filter(|s| s.possible(ground)) {
                match run(ground, setting, Pin::Undisturbed, program, |_| Ok(())) {
                    Ok(ran) => all.take(setting, &ran, keys),
                    Err(error) => {
                        all.failed.insert(setting, format!("{error:#}"));
                    }
                }
            }
        }
        all
    }

    fn take(&mut self, setting: Setting, ran: &Ran, keys: &[String]) {
        *self.lost.entry(setting).or_default() += ran.lost;
        *self.records.entry(setting).or_default() += ran.records;
        for key in keys {
            let value = |what: &str| ran.values.get(&format!("{key}.{what}")).copied();
            if let (Some(median), Some(least)) = (value("median"), value("min")) {
                self.samples.entry((setting, key.clone())).or_default().add_with_least(median, least);
            }
        }
    }

    /// What was measured of a key; nothing of it if it was not.
    pub fn of(&self, setting: Setting, key: &str) -> Samples {
        self.samples.get(&(setting, key.to_owned())).cloned().unwrap_or_default()
    }

    /// The median a setting adds to bare.
    pub fn added(&self, setting: Setting, key: &str) -> f64 {
        self.of(setting, key).median() - self.of(Setting::Bare, key).median()
    }

    /// Records lost in all rounds; nothing where nothing records.
    pub fn lost(&self, setting: Setting) -> Option<f64> {
        let records = matches!(setting, Setting::Hetrace(..) | Setting::PeerOn);
        self.lost.get(&setting).copied().filter(|_| records)
    }

    /// Records written in all rounds.
    pub fn records(&self, setting: Setting) -> f64 {
        self.records.get(&setting).copied().unwrap_or(f64::NAN)
    }

    /// All of it, for programs.
    pub fn json(&self) -> Value {
        let mut settings = BTreeMap::<&str, BTreeMap<&str, Value>>::new();
        for ((setting, key), samples) in &self.samples {
            settings.entry(setting.name()).or_default().insert(key, samples.json());
        }
        let lost: BTreeMap<_, _> =
            self.lost.keys().filter_map(|s| Some((s.name(), self.lost(*s)?))).collect();
        json!({ "settings": settings, "lost": lost })
    }
}
