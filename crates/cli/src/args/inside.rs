//! Options of `run` for what happens inside kernels.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use hetrace_session::{INSIDE_CHOICES, Inside as Asked};

use super::{Launches, size};

mod earlier;

/// Where kernels record.
#[derive(Debug, Clone, Copy, ValueEnum, Default, PartialEq, Eq)]
pub enum Sites {
    /// Each lane keeps which ways it went, and says it now and then and at its end
    #[default]
    Paths,
    /// At each conditional branch: who was there, and who took which way
    Branches,
    /// On so few edges that the path follows from them
    Edges,
    /// At the beginning of each block
    Blocks,
}

/// How kernels get room for what they record.
#[derive(Debug, Clone, Copy, ValueEnum, Default, PartialEq, Eq)]
pub enum Strategy {
    /// A warp takes chunks, by one of 32 counters
    #[default]
    Chunks,
    /// A warp takes chunks, by the counter of its multiprocessor
    ChunksPerSm,
    /// Each record takes its place from one counter
    GlobalCursor,
    /// Each record takes its place from the counter of its multiprocessor
    SmCursor,
    /// A warp has one chunk of 4 KiB for each lane that leads it, and what does not fit there is lost
    Padded,
    /// A first run counts, a second one records at exact places: not possible, and refused
    TwoRuns,
}

impl Strategy {
    /// Returns the strategy.
    ///
    /// # Errors
    /// If it is not possible, with the reason.
    pub fn strategy(self) -> Result<hetrace_session::Strategy> {
        use hetrace_session::Strategy as Possible;
        Ok(match self {
            Strategy::Chunks => Possible::Chunks,
            Strategy::ChunksPerSm => Possible::ChunksPerSm,
            Strategy::GlobalCursor => Possible::GlobalCursor,
            Strategy::SmCursor => Possible::SmCursor,
            Strategy::Padded => Possible::Padded,
            Strategy::TwoRuns => bail!(
                "--inside-strategy two-runs: not possible, as no kernel is launched twice (what it reads may have changed), and \
                 a second launch would not make as many records as the first: which lanes come to a place together differs; \
                 what is nearest to it is `padded`"
            ),
        })
    }
}

/// What happens when a pool is full.
#[derive(Debug, Clone, Copy, ValueEnum, Default, PartialEq, Eq)]
pub enum Full {
    /// Records are dropped, counted and reported
    #[default]
    Drop,
    /// The pool is two: when one is full and no kernel writes there any more, the other one's records, the oldest, give way.
    /// Kernels of OpenCL drop; kernels in CUDA graphs run as they were
    Ring,
    /// As `drop`; the pool is memory of the host, and what is in it survives a trap and the end of the program
    Spill,
}

/// Which of what was chosen records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// One thread block in so many.
    Blocks(u32),
    /// One launch in so many.
    Launches(u32),
}

impl FromStr for Sample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |n: &str| n.parse().ok().filter(|n| (1..=1_000_000).contains(n));
        let found = match text.split_once(':') {
            Some(("ctas", n)) => number(n).map(Sample::Blocks),
            Some(("launches", n)) => number(n).map(Sample::Launches),
            _ => None,
        };
        found.ok_or_else(|| "expected `ctas:N` or `launches:N` with N from 1 to 1000000".to_owned())
    }
}

/// What is recorded inside kernels.
#[derive(Debug, Args, Clone)]
pub struct Inside {
    /// Record which warps of kernels that match this glob ran which of their blocks, and when. Launches of each
    /// name are counted from 0 (may be repeated); without numbers the second and then one in 16 are left as they are, to
    /// compare with. The kernels must come with PTX, or with line information
    #[arg(
        long,
        value_name = "KERNEL[@FIRST..LAST]",
        value_delimiter = ',',
        conflicts_with_all = OTHERS,
        env = "HETRACE_INSIDE"
    )]
    pub inside: Vec<Launches>,
    /// Where kernels record with --inside
    #[arg(long, value_enum, default_value_t, value_name = "SITES", env = "HETRACE_INSIDE_MODE")]
    pub inside_mode: Sites,
    /// Record only one thread block in N with --inside (`ctas:N`), or one launch in N (`launches:N`; with 1, all)
    #[arg(long, value_name = "SAMPLE", env = "HETRACE_INSIDE_SAMPLE")]
    pub inside_sample: Option<Sample>,
    /// Memory for what kernels of a context record with --inside, in bytes (suffixes K, M, G)
    #[arg(long, default_value = "256M", value_name = "SIZE", value_parser = size, env = "HETRACE_INSIDE_BUFFER")]
    pub inside_buffer: u64,
    /// How kernels get room there, to compare what that costs; kernels of OpenCL have `chunks` only
    #[arg(long, value_enum, default_value_t, value_name = "STRATEGY", env = "HETRACE_INSIDE_STRATEGY")]
    pub inside_strategy: Strategy,
    /// Choose by what an earlier run recorded inside of the same kernels where they record, and not by how deep in loops
    /// their blocks are. For --inside-mode edges and branches; a kernel whose text is another one in that trace is named
    #[arg(long, value_name = "TRACE", env = "HETRACE_INSIDE_WEIGHTS")]
    pub inside_weights: Option<PathBuf>,
    /// What happens when that memory is full
    #[arg(long, value_enum, default_value_t, value_name = "POLICY", env = "HETRACE_INSIDE_ON_FULL")]
    pub inside_on_full: Full,
}

/// What has no one folder that pools could go to.
const OTHERS: [&str; 3] = ["flight", "rotate_size", "rotate_every"];
/// Least bytes of a pool: a header and a few chunks.
const LEAST: u64 = 64 << 10;
/// So many chunks have numbers.
const MOST: u64 = 32 << 30;

impl Inside {
    /// Returns what is recorded inside kernels; none if that was not asked for.
    ///
    /// # Errors
    /// When options can't be served.
    pub fn asked(&self) -> Result<Option<Asked>> {
        if self.inside.is_empty() {
            return Ok(None);
        }
        if self.inside.len() > INSIDE_CHOICES {
            bail!("--inside accepts at most {INSIDE_CHOICES} globs");
        }
        let strategy = self.inside_strategy.strategy()?;
        if !(LEAST..=MOST).contains(&self.inside_buffer) {
            bail!("--inside-buffer accepts 64K to 32G");
        }
        // 0: all but those that are left as they are, to compare with.
        let every = match self.inside_sample {
            Some(Sample::Launches(every)) => every,
            _ => 0,
        };
        let kernels = self.inside.iter();
        let kernels = kernels
            .map(|l| hetrace_session::Launches { kernel: l.kernel.clone(), numbers: l.numbers.clone() });
        Ok(Some(Asked {
            kernels: kernels.collect(),
            every,
            buffer: self.inside_buffer,
            strategy,
            spill: self.inside_on_full == Full::Spill,
            ring: self.inside_on_full == Full::Ring,
            weights: self.weights()?,
            helper: self.helper()?,
        }))
    }

    /// Returns what an earlier trace says of kernels, as the helper reads it; nothing if that was not asked for.
    fn weights(&self) -> Result<Vec<u8>> {
        let Some(trace) = &self.inside_weights else { return Ok(Vec::new()) };
        if matches!(self.inside_mode, Sites::Paths | Sites::Blocks) {
            bail!(
                "--inside-weights: in mode {} nothing is chosen by weights: all choices, or all blocks, have their place; use \
                 --inside-mode edges or branches",
                self.mode()
            );
        }
        let weights =
            earlier::weights(trace).with_context(|| format!("--inside-weights {}", trace.display()))?;
        Ok(serde_json::to_vec(&weights)?)
    }

    /// Returns the name of the mode.
    fn mode(&self) -> String {
        self.inside_mode.to_possible_value().map_or_else(String::new, |mode| mode.get_name().to_owned())
    }

    /// Returns the command that rewrites an image: `hetrace rewrite`, or what `HETRACE_INSIDE_HELPER` names.
    fn helper(&self) -> Result<Vec<OsString>> {
        let own = || std::env::current_exe().context("--inside: this program's own file can't be found");
        let program = std::env::var_os("HETRACE_INSIDE_HELPER").map(PathBuf::from).map_or_else(own, Ok)?;
        let mode = format!("--mode={}", self.mode());
        let mut command = vec![program.into_os_string(), "rewrite".into(), mode.into()];
        if let Some(Sample::Blocks(blocks)) = self.inside_sample {
            command.push(format!("--blocks={blocks}").into());
        }
        // The default is not said, so that what caches have of it stays.
        if let Some(strategy) = self.inside_strategy.to_possible_value()
            && self.inside_strategy != Strategy::default()
        {
            command.push(format!("--strategy={}", strategy.get_name()).into());
        }
        command.extend(self.inside.iter().map(|launches| format!("--kernel={}", launches.kernel).into()));
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_of_thread_blocks_or_launches() {
        assert_eq!("ctas:8".parse(), Ok(Sample::Blocks(8)));
        assert_eq!("launches:100".parse(), Ok(Sample::Launches(100)));
        for wrong in ["ctas", "ctas:0", "launches:x", "8", "warps:3", "ctas:1000001"] {
            assert!(wrong.parse::<Sample>().is_err(), "{wrong}");
        }
    }
}
