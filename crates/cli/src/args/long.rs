//! Options of `run` for long runs: parts, and what of them stays.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hetrace_session::Rotate;

use super::{size, time};

/// Options of a run that is divided, and of what it may take on disk.
#[derive(Debug, Args, Clone, Default, PartialEq, Eq)]
pub struct Long {
    /// Begin a new trace each time that this one has SIZE bytes, such as 1GiB: OUTPUT/0001, OUTPUT/0002, ... Each is
    /// whole in itself, and OUTPUT is read as one trace
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = size,
        conflicts_with_all = OTHERS,
        env = "HETRACE_ROTATE_SIZE"
    )]
    pub rotate_size: Option<u64>,
    /// The same each time that this one covers TIME, such as 10m; with --rotate-size whichever comes first
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time,
        conflicts_with_all = OTHERS,
        env = "HETRACE_ROTATE_EVERY"
    )]
    pub rotate_every: Option<u64>,
    /// Keep the last N traces of --rotate-size or --rotate-every, with the one that is written; older ones are removed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), env = "HETRACE_KEEP")]
    pub keep: Option<u32>,
    /// Remove those that ended more than TIME ago, such as 24h
    #[arg(long, value_name = "TIME", value_parser = time, env = "HETRACE_KEEP_FOR")]
    pub keep_for: Option<u64>,
    /// Disk space for what is recorded, in bytes: what would exceed it is dropped and counted, or, with --keep or
    /// --keep-for, the oldest trace is removed for it
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "flight", env = "HETRACE_MAX_DISK")]
    pub max_disk: Option<u64>,
}

/// What cannot go with parts: windows are of one trace, a flight recording has none.
const OTHERS: [&str; 7] = ["delay", "duration", "launches", "range", "toggle_on", "on_calls", "flight"];

/// Smaller parts would have little but metadata in them.
const LEAST_SIZE: u64 = 64 << 10;
/// Packets are sealed four times a second.
const SHORTEST: Duration = Duration::from_secs(1);
/// Parts of this share of a disk budget are made if nobody says of what size: removing one leaves enough.
const SHARE: u64 = 4;

impl Long {
    /// Returns how a run is divided; none if it is one trace.
    ///
    /// # Errors
    /// When there is too little time or room, or options contradict each other.
    pub fn asked(&self) -> Result<Option<Rotate>> {
        let time = |ns: Option<u64>| ns.map(Duration::from_nanos);
        let (every, keep_for) = (time(self.rotate_every), time(self.keep_for));
        let retention = self.keep.is_some() || keep_for.is_some();
        if self.rotate_size.is_none() && every.is_none() {
            if retention {
                bail!(
                    "--keep and --keep-for are of runs in several parts: add --rotate-size or --rotate-every"
                );
            }
            return Ok(None);
        }
        if self.rotate_size.is_some_and(|size| size < LEAST_SIZE) {
            bail!("--rotate-size: expected at least 64K");
        }
        if every.is_some_and(|every| every < SHORTEST) {
            bail!("--rotate-every: expected at least 1s");
        }
        let share = self.max_disk.filter(|_| retention).map(|most| (most / SHARE).max(1));
        if let (Some(most), Some(size)) = (self.max_disk, self.rotate_size)
            && retention
            && size >= most
        {
            bail!("--rotate-size: one trace would take all of --max-disk; expected less than {most} bytes");
        }
        let size = self.rotate_size.or(share);
        Ok(Some(Rotate { size, every, keep: self.keep, keep_for }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::{Cli, Command};

    fn asked(line: &[&str]) -> Result<Option<Rotate>, String> {
        let line = ["hetrace", "run"].iter().chain(line).chain(&["app"]);
        match Cli::try_parse_from(line).map(|cli| cli.command) {
            Ok(Command::Run(run)) => run.long.asked().map_err(|error| error.to_string()),
            Ok(_) => Err("another command".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn options_of_long_runs() {
        assert_eq!(asked(&[]), Ok(None));
        assert_eq!(asked(&["--max-disk", "1G"]), Ok(None));
        let size = Rotate { size: Some(1 << 30), ..Rotate::default() };
        assert_eq!(asked(&["--rotate-size", "1GiB"]), Ok(Some(size)));
        assert_eq!(asked(&["--rotate-size", "1GiB", "--os", "tree"]), Ok(Some(size)));
        assert_eq!(asked(&["--rotate-size", "1GiB", "--live"]), Ok(Some(size)));
        let all = Rotate {
            size: Some(1 << 20),
            every: Some(Duration::from_secs(600)),
            keep: Some(10),
            keep_for: Some(Duration::from_secs(86_400)),
        };
        let line = ["--rotate-size", "1M", "--rotate-every", "10m", "--keep", "10", "--keep-for", "24h"];
        assert_eq!(asked(&line), Ok(Some(all)));
        // Without a size, the budget says it.
        let line = ["--rotate-every", "10m", "--keep", "10", "--max-disk", "8M"];
        assert_eq!(asked(&line).map(|all| all.and_then(|all| all.size)), Ok(Some(2 << 20)));
        let line = ["--rotate-every", "10m", "--max-disk", "8M"];
        assert_eq!(asked(&line).map(|all| all.and_then(|all| all.size)), Ok(None));
    }

    #[test]
    fn nonsense_says_what_to_do() {
        for (line, words) in [
            (&["--rotate-size", "1K"][..], "at least 64K"),
            (&["--rotate-every", "10ms"], "at least 1s"),
            (&["--keep", "3"], "add --rotate-size"),
            (&["--keep", "0", "--rotate-every", "1s"], "invalid value"),
            (&["--keep-for", "1h"], "add --rotate-size"),
            (&["--rotate-every", "1m", "--flight", "30s"], "cannot be used with"),
            (&["--rotate-every", "1m", "--delay", "3s"], "cannot be used with"),
            (&["--max-disk", "1G", "--flight", "30s"], "cannot be used with"),
            (&["--rotate-size", "1G", "--keep", "2", "--max-disk", "1G"], "less than 1073741824"),
        ] {
            let error = asked(line).expect_err("nonsense");
            assert!(error.contains(words), "{line:?}: {error}");
        }
    }
}
