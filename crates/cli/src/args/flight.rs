//! Options of `run` that make it a flight recording.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use hetrace_session::apis::Candidate;
use hetrace_session::trigger::{Bound, TriggerError};
use hetrace_session::{FlightAsked, Selection};

use super::window::signal;
use super::{size, time};

/// Options of a flight recording.
#[derive(Debug, Args, Clone, Default, PartialEq, Eq)]
pub struct Flight {
    /// Flight recorder: keep only what was recorded in the last TIME, such as 30s, in memory, and write it as a
    /// snapshot when asked to (`hetrace snapshot`, hetrace_snapshot() of hetrace.h, --snapshot-on), or when the
    /// program crashes or fails. Snapshots are OUTPUT, OUTPUT-2, ...
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        conflicts_with_all = ["delay", "duration", "launches", "range", "toggle_on", "on_calls", "live"],
        env = "HETRACE_FLIGHT"
    )]
    pub flight: Option<u64>,
    /// Memory for --flight in bytes (suffixes K, M, G), with --os half of it for these events; what is older than fits
    /// is dropped, and snapshots say so
    #[arg(long, default_value = "256M", value_name = "SIZE", value_parser = size, env = "HETRACE_FLIGHT_MEMORY")]
    pub flight_memory: u64,
    /// Write a snapshot of --flight when hetrace gets this signal, such as USR1; it does not reach the program
    #[arg(long, value_name = "SIGNAL", value_parser = signal, requires = "flight", env = "HETRACE_SNAPSHOT_ON")]
    pub snapshot_on: Option<i32>,
    /// Write a snapshot of --flight when this becomes true (may be repeated), such as 'clFinish.duration > 2ms',
    /// 'cu*.failed', 'clEnqueueReadBuffer.size > 1MiB', 'clFinish.rate > 1000/s', 'clFinish.open > 10s',
    /// 'idle > 10s', 'gpu.power > 650W', 'crash'; combined by &&, ||, ! and parentheses. docs/triggers.md has all
    #[arg(long, value_name = "EXPR", requires = "flight", env = "HETRACE_TRIGGER", value_delimiter = '\n')]
    pub trigger: Vec<String>,
    /// Snapshots that each --trigger asks for at most
    #[arg(
        long,
        default_value_t = 10,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=100),
        env = "HETRACE_TRIGGER_LIMIT"
    )]
    pub trigger_limit: u32,
    /// Write a last snapshot of --flight also if the program ends well
    #[arg(long, requires = "flight", env = "HETRACE_FLIGHT_AT_END")]
    pub flight_at_end: bool,
}

/// Packets are sealed four times a second; a shorter window would often be empty.
const SHORTEST: Duration = Duration::from_secs(1);
/// A few packets of a few threads.
const LEAST_MEMORY: u64 = 1 << 20;

impl Flight {
    /// Returns what was asked for; none if all is recorded.
    ///
    /// # Errors
    /// When there is too little time or memory.
    pub fn asked(&self) -> Result<Option<FlightAsked>> {
        let Some(window) = self.flight.map(Duration::from_nanos) else { return Ok(None) };
        if window < SHORTEST {
            bail!("--flight: expected at least 1s");
        }
        if self.flight_memory < LEAST_MEMORY {
            bail!("--flight-memory: expected at least 1M");
        }
        let Flight { flight_memory: memory, snapshot_on: signal, flight_at_end: at_end, .. } = *self;
        Ok(Some(FlightAsked { window, memory, signal, at_end }))
    }

    /// Returns the triggers, of names that these APIs have.
    ///
    /// # Errors
    /// When one is wrong; the message shows where.
    pub fn triggers(
        &self,
        candidates: &[Candidate],
        selection: &Selection,
        sampling: bool,
    ) -> Result<Option<Arc<Bound>>> {
        if self.trigger.is_empty() {
            return Ok(None);
        }
        let wrong = |error: TriggerError| anyhow!("--trigger: {error}");
        let triggers = self.trigger.iter().map(|text| text.parse()).collect::<Result<Vec<_>, _>>();
        let libraries = candidates.iter().map(Candidate::open).collect::<Result<Vec<_>, _>>()?;
        let bound =
            Bound::new(&triggers.map_err(wrong)?, &libraries, selection, sampling, self.trigger_limit);
        Ok(Some(Arc::new(bound.map_err(wrong)?)))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::{Cli, Command};

    fn asked(line: &[&str]) -> Result<Option<FlightAsked>, String> {
        let line = ["hetrace", "run"].iter().chain(line).chain(&["app"]);
        match Cli::try_parse_from(line).map(|cli| cli.command) {
            Ok(Command::Run(run)) => run.flight.asked().map_err(|error| error.to_string()),
            Ok(_) => Err("another command".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn options_of_a_flight_recording() {
        assert_eq!(asked(&[]), Ok(None));
        let plain =
            FlightAsked { window: Duration::from_secs(30), memory: 256 << 20, signal: None, at_end: false };
        assert_eq!(asked(&["--flight", "30s"]), Ok(Some(plain.clone())));
        assert_eq!(asked(&["--flight", "30s", "--os", "tree"]), Ok(Some(plain.clone())));
        let line = ["--flight", "30s", "--flight-memory", "2M", "--snapshot-on", "USR1", "--flight-at-end"];
        let all = FlightAsked { memory: 2 << 20, signal: Some(libc::SIGUSR1), at_end: true, ..plain };
        assert_eq!(asked(&line), Ok(Some(all)));
    }

    #[test]
    fn nonsense_says_what_to_do() {
        for (line, words) in [
            (&["--flight", "10ms"][..], "at least 1s"),
            (&["--flight", "30s", "--flight-memory", "10K"], "at least 1M"),
            (&["--flight", "30s", "--delay", "1s"], "cannot be used with"),
            (&["--flight", "30s", "--snapshot-on", "KILL"], "use one of USR1"),
            (&["--snapshot-on", "USR1"], "--flight"),
            (&["--flight-at-end"], "--flight"),
        ] {
            let error = asked(line).expect_err("nonsense");
            assert!(error.contains(words), "{line:?}: {error}");
        }
    }
}
