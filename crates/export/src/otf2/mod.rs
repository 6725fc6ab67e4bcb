//! OTF2: the Open Trace Format that Score-P writes and Vampir and Scalasca read.
//!
//! ```text
//!  encode    numbers, texts, records ─┬─ events         of a location, as bytes
//!                                     └─ definitions    what their numbers stand for
//!  file      chunks of a file ── archive                the folder and its anchor
//!  lanes     locations side by side, for what overlaps
//!  map/      a walk over a trace to all these: the machine and its groups of locations
//!            (places), threads, queues, ranges, who communicates (ranks), metrics
//! ```
//!
//! `docs/export-otf2.md` says what becomes of what, and `docs/decisions/0022-otf2-writer.md`
//! why the writer is our own.

mod archive;
mod definitions;
mod encode;
mod events;
mod file;
mod lanes;
mod map;

use std::path::Path;

use hetrace_trace::spans::Summary;
use hetrace_trace::trace::Trace;

use crate::{Error, Watch, missing};

/// What was written.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Events of all locations.
    pub events: u64,
    /// Threads, queues and what else has events.
    pub locations: u64,
    /// Records in the file of definitions.
    pub definitions: u64,
    /// Of the events, samples of telemetry.
    pub samples: u64,
    /// In all files.
    pub bytes: u64,
    /// What was left out or changed.
    pub left: Left,
    /// What was read, and what was lost before.
    pub summary: Summary,
}

/// What an archive leaves out, or has otherwise than the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Calls without an end: they end where that became clear, with an attribute.
    pub unfinished: u64,
    /// Ends without a call: left out.
    pub orphans: u64,
    /// Ranges that the program did not end: they end with the trace.
    pub unended: u64,
    /// Regions that ended with what was around them, since they would not have nested.
    pub shortened: u64,
    /// Events that were earlier than others of their location, and are at the same time now.
    pub moved: u64,
    /// Commands, runs and ranges of which too many overlap: left out.
    pub crowded: u64,
    /// Commands whose times are not known: they have no length.
    pub untimed: u64,
    /// Copies that are no communication, since their process has no thread in the trace.
    pub alone: u64,
    /// Events of other kinds: left out.
    pub unplaced: u64,
    /// Sends and receives that are no messages, since their counterparts are not in the trace, or
    /// cannot be identified.
    pub unmatched: u64,
}

impl Written {
    /// Returns what is missing or changed: the name of the archive's property without
    /// `HETRACE::`, what it means, how many. Only what there is.
    pub fn missing(&self) -> Vec<(&'static str, &'static str, u64)> {
        let (lost, left) = (&self.summary, &self.left);
        let all = [
            ("LOST_EVENTS", missing::LOST_EVENTS, lost.lost_events),
            ("LOST_CALLS", "calls that these losses concern", lost.lost_calls),
            ("LOST_COMMANDS", "device commands lost while recording", lost.lost_commands),
            ("LOST_PROCESSES", "processes whose records could not be read", lost.lost_processes),
            ("LOST_OS_EVENTS", "events of the operating system lost while recording", lost.lost_os_events),
            ("UNSEEN_SWITCHES", missing::UNSEEN_SWITCHES, lost.unseen_switches),
            ("LOST_PACKETS", missing::LOST_PACKETS, lost.lost_packets),
            ("DAMAGED_PLACES", "places where a stream is damaged", lost.damaged),
            ("DIFFERENCES", missing::DIFFERENCES, lost.differences),
            ("UNFINISHED_CALLS", "calls without an end, ended where that became clear", left.unfinished),
            ("ORPHANED_ENDS", "ends without a call, left out", left.orphans),
            ("UNENDED_RANGES", "ranges that were never ended, ended with the trace", left.unended),
            ("SHORTENED_REGIONS", "regions ended with what was around them", left.shortened),
            ("MOVED_EVENTS", "events moved to the time of the event before", left.moved),
            ("CROWDED_OUT", "commands, runs and ranges left out, too many at a time", left.crowded),
            ("UNTIMED_COMMANDS", "commands of unknown times, without a length", left.untimed),
            ("COPIES_WITHOUT_THREAD", "copies that are shown as no communication", left.alone),
            (
                "UNMATCHED_MESSAGES",
                "sends and receives that are shown as no messages, without a counterpart",
                left.unmatched,
            ),
            ("OTHER_EVENTS", "events of other kinds, left out", left.unplaced),
        ];
        all.into_iter().filter(|(.., n)| *n > 0).collect()
    }
}

/// Writes a trace as an archive into the folder `out`, which is made if it is not there.
///
/// Memory is bounded: it grows with locations, names and telemetry, not with calls and
/// commands. If it fails or is stopped, nothing is left behind.
///
/// # Errors
/// When a file cannot be written, when the folder has an archive, or when `watch` says so.
pub fn write(trace: &Trace, out: &Path, watch: Watch<'_>) -> Result<Written, Error> {
    map::export(trace, archive::Archive::new(out)?, watch)
}
