//! What a torture program reports on stdout: `MADE` and `FIGURE` lines.

use std::collections::BTreeMap;

/// What one process says that it did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Made {
    /// Calls before they were made.
    pub begun: u64,
    /// Calls after they had returned.
    pub returned: u64,
    /// Threads that called.
    pub threads: u64,
}

/// A program's report.
#[derive(Debug, Clone, Default)]
pub struct Stdout {
    /// By process; lines of one process add up.
    pub made: BTreeMap<u32, Made>,
    /// `MADE` lines of processes that called.
    pub processes: u64,
    /// Figures; those of one name add up.
    pub figures: BTreeMap<String, u64>,
    /// The session's folder.
    pub session: Option<String>,
    /// All other lines: they must be as without a tracer.
    pub text: String,
}

impl Stdout {
    /// Takes a program's output apart.
    pub fn parse(out: &str) -> Stdout {
        let mut all = Stdout::default();
        for line in out.lines() {
            if let Some(rest) = line.strip_prefix("MADE ") {
                all.made(rest);
            } else if let Some(session) = line.strip_prefix("FIGURE session=") {
                all.session = Some(session.to_owned());
            } else if let Some((name, value)) =
                line.strip_prefix("FIGURE ").and_then(|rest| rest.split_once('='))
            {
                *all.figures.entry(name.to_owned()).or_default() += value.parse().unwrap_or(0);
            } else {
                all.text.push_str(line);
                all.text.push('\n');
            }
        }
        all
    }

    /// A figure, 0 if there is none.
    pub fn figure(&self, name: &str) -> u64 {
        self.figures.get(name).copied().unwrap_or(0)
    }

    /// All processes together.
    pub fn total(&self) -> Made {
        self.made.values().fold(Made::default(), |sum, made| Made {
            begun: sum.begun + made.begun,
            returned: sum.returned + made.returned,
            threads: sum.threads + made.threads,
        })
    }

    fn made(&mut self, rest: &str) {
        let pairs: BTreeMap<&str, u64> = rest
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
            .collect();
        let get = |name: &str| pairs.get(name).copied().unwrap_or(0);
        self.processes += u64::from(get("begun") > 0);
        let made = self.made.entry(get("pid") as u32).or_default();
        made.begun += get("begun");
        made.returned += get("returned");
        made.threads += get("threads");
    }
}
