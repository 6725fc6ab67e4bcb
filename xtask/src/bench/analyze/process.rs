//! One run of a command: how long it took, how long to its first line, how much memory.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::super::setting::command;

/// Clock ticks of a second in /proc, on every Linux that Rust runs on.
const TICKS: f64 = 100.0;

/// Seconds that a command took.
#[derive(Debug, Clone, Copy)]
pub struct Took {
    /// By the clock on the wall.
    pub wall: f64,
    /// Of processors, in user and kernel mode, of all threads.
    pub cpu: f64,
}

/// The largest sizes of a process, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Peak {
    /// Resident, mapped files included, as the kernel kept it (VmHWM).
    pub rss: f64,
    /// Its own memory, the largest that was seen; the rest are pages of files, which
    /// the kernel takes back when it needs them.
    pub anonymous: f64,
    /// Seconds that it ran.
    pub wall: f64,
}

impl Peak {
    /// Takes what a file /proc/PID/status says.
    fn look(&mut self, status: &str) {
        self.rss = self.rss.max(field(status, "VmHWM:").unwrap_or(0.0));
        self.anonymous = self.anonymous.max(field(status, "RssAnon:").unwrap_or(0.0));
    }
}

/// Runs a command to its end; its output goes nowhere.
///
/// # Errors
///
/// If it can't be started or fails; with what it said.
pub fn time(words: &[OsString]) -> Result<Took> {
    let before = children()?;
    let start = Instant::now();
    let out = spawn(words, Stdio::null())?.wait_with_output()?;
    let wall = start.elapsed().as_secs_f64();
    if !out.status.success() {
        bail!("{}: {}", out.status, String::from_utf8_lossy(&out.stderr).trim());
    }
    Ok(Took { wall, cpu: children()? - before })
}

/// Seconds from the start of a command to the end of its first line, which it writes into
/// a pipe. It is killed then.
///
/// # Errors
///
/// If it can't be started, or ends without a line.
pub fn first_line(words: &[OsString]) -> Result<f64> {
    let start = Instant::now();
    let mut child = spawn(words, Stdio::piped())?;
    let mut pipe = child.stdout.take().context("its output")?;
    let mut buffer = vec![0; 1 << 16];
    let took = loop {
        match pipe.read(&mut buffer)? {
            0 => break None,
            n if buffer[..n].contains(&b'\n') => break Some(start.elapsed().as_secs_f64()),
            _ => {}
        }
    };
    let _ = child.kill();
    let said = child.wait_with_output()?;
    took.with_context(|| format!("no line: {}", String::from_utf8_lossy(&said.stderr).trim()))
}

/// Runs a command and looks at its memory every two milliseconds.
///
/// # Errors
///
/// As [`time`].
pub fn peak(words: &[OsString]) -> Result<Peak> {
    let start = Instant::now();
    let mut child = spawn(words, Stdio::null())?;
    let path = format!("/proc/{}/status", child.id());
    let mut peak = Peak::default();
    let status = loop {
        // Once it has ended there is no more to see.
        peak.look(&fs::read_to_string(&path).unwrap_or_default());
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    if !status.success() {
        let mut said = String::new();
        child.stderr.take().map(|mut e| e.read_to_string(&mut said)).transpose()?;
        bail!("{status}: {}", said.trim());
    }
    peak.wall = start.elapsed().as_secs_f64();
    Ok(peak)
}

fn spawn(words: &[OsString], output: Stdio) -> Result<Child> {
    let mut command = command(words)?;
    command.stdin(Stdio::null()).stdout(output).stderr(Stdio::piped());
    command.spawn().with_context(|| format!("starting {}", words[0].display()))
}

/// Seconds that children which have ended took of processors.
fn children() -> Result<f64> {
    seconds_of_children(&fs::read_to_string("/proc/self/stat")?).context("/proc/self/stat")
}

/// The fields cutime and cstime. The second field, a name, may contain anything.
fn seconds_of_children(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: Vec<f64> = fields.split_whitespace().skip(13).take(2).filter_map(|f| f.parse().ok()).collect();
    (ticks.len() == 2).then(|| ticks.iter().sum::<f64>() / TICKS)
}

/// A line `NAME  123 kB`, in bytes.
fn field(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse().ok().map(|kib: f64| kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<OsString> {
        text.iter().map(OsString::from).collect()
    }

    #[test]
    fn children_are_distinguished_from_their_parent() {
        let stat = "12 (a) name) S 1 2 3 4 5 6 7 8 9 10 111 222 333 44 20 0 1 0";
        assert_eq!(seconds_of_children(stat), Some(3.77));
        assert_eq!(seconds_of_children("12 (name) S 1"), None);
    }

    #[test]
    fn sizes_are_bytes() {
        let text = "VmPeak:\t 9 kB\nVmHWM:\t    2048 kB\n";
        assert_eq!((field(text, "VmHWM:"), field(text, "RssAnon:")), (Some(2097152.0), None));
    }

    #[test]
    fn a_failing_command_tells_why() {
        for run in [|w: &[OsString]| time(w).map(drop), |w: &[OsString]| peak(w).map(drop)] {
            let error = run(&words(&["sh", "-c", "echo no such luck >&2; exit 3"])).unwrap_err();
            assert!(error.to_string().contains("no such luck"), "{error}");
        }
        assert!(time(&words(&["true"])).is_ok());
    }

    #[test]
    fn the_first_line_comes_before_the_end() {
        // Would it wait for the end, it would never come back.
        assert!(first_line(&words(&["yes"])).unwrap() > 0.0);
        assert!(first_line(&words(&["true"])).is_err());
    }

    #[test]
    fn memory_that_is_touched_is_seen() {
        let memory = vec![1u8; 40 << 20];
        let mut peak = Peak::default();
        peak.look(&fs::read_to_string("/proc/self/status").unwrap());
        drop(std::hint::black_box(memory));
        assert!(peak.anonymous >= 40e6 && peak.rss >= peak.anonymous, "{peak:?}");
        let before = peak;
        peak.look("VmHWM:\t 4 kB\nRssAnon:\t 4 kB\n");
        assert_eq!((peak.rss, peak.anonymous), (before.rss, before.anonymous));
    }
}
