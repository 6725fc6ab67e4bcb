//! What a walk has seen in all, and what it has not.

use hetrace_ctf::read::StreamError;

use super::commands::Command;
use crate::trace::{Cursor, StepsBack, Thread, Trace};

/// Damages kept with their text, and streams with their names; more are only counted.
const KEPT: usize = 16;

/// Totals of a walk.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Events read.
    pub events: u64,
    /// Calls with entry and exit, folded ones included.
    pub calls: u64,
    /// Calls without an end.
    pub unfinished: u64,
    /// Exits without an entry.
    pub orphans: u64,
    /// Commands on devices.
    pub commands: u64,
    /// Commands whose times are not known.
    pub untimed: u64,
    /// Time of the first event.
    pub first: Option<u64>,
    /// Time of the last event.
    pub last: Option<u64>,
    /// When the part begins to which a trace was cut, on the trace's clock: what is from before it is there because
    /// what follows depends on it.
    pub from: Option<u64>,
    /// Events lost while recording: as the streams or as the manifest counts
    /// them, whichever saw more.
    pub lost_events: u64,
    /// Calls that the losses concern, wholly or in part, as the manifest has it.
    pub lost_calls: u64,
    /// Processes whose records could not be read, all or some.
    pub lost_processes: u64,
    /// Commands lost while recording.
    pub lost_commands: u64,
    /// Events of the operating system that the kernel dropped or that could not be written.
    pub lost_os_events: u64,
    /// Context switches that the kernel did not deliver; of those that it dropped some may be among them.
    pub unseen_switches: u64,
    /// Packets missing from the streams.
    pub lost_packets: u64,
    /// Places where a stream is cut or damaged.
    pub damaged: u64,
    /// The first of these places, in words.
    pub damages: Vec<StreamError>,
    /// For each cut stream the time up to which it is whole; the least.
    pub cut_at: Option<u64>,
    /// Events whose time lies before that of the event before in their stream.
    pub steps_back: u64,
    /// The first of the streams with such events, by file.
    pub stepped: Vec<(String, StepsBack)>,
    /// Files that are missing, or not as they were written.
    pub differences: u64,
    /// The first of these, in words.
    pub different: Vec<String>,
    /// All threads.
    pub threads: Vec<Thread>,
}

impl Summary {
    /// Whether the reports show all that happened.
    pub fn is_complete(&self) -> bool {
        self.unfinished == 0
            && self.orphans == 0
            && self.lost_events == 0
            && self.lost_calls == 0
            && self.lost_commands == 0
            && self.lost_processes == 0
            && self.lost_os_events == 0
            && self.unseen_switches == 0
            && self.lost_packets == 0
            && self.damaged == 0
            && self.steps_back == 0
            && self.differences == 0
    }

    /// From the first event to the last, in nanoseconds; of a part of a trace from where it begins.
    pub fn duration(&self) -> u64 {
        let span = self.first.map(|first| self.from.map_or(first, |from| from.max(first))).zip(self.last);
        span.map_or(0, |(first, last)| last.saturating_sub(first))
    }

    #[inline]
    pub(super) fn see(&mut self, time: u64) {
        self.events += 1;
        if self.first.is_none_or(|first| time < first) {
            self.first = Some(time);
        }
        if self.last.is_none_or(|last| time > last) {
            self.last = Some(time);
        }
    }

    /// A command, whose event is of `time`.
    pub(super) fn command(&mut self, command: &Command<'_>, time: u64) {
        self.commands += 1;
        self.untimed += u64::from(command.times.is_none());
        let end = command.times.map_or(time, |t| t.end);
        self.last = self.last.max(Some(end));
    }

    pub(super) fn damage(&mut self, error: StreamError, whole_until: Option<u64>) {
        if self.damages.len() < KEPT {
            self.damages.push(error);
        }
        if let Some(time) = whole_until {
            self.cut_at = Some(self.cut_at.map_or(time, |at| at.min(time)));
        }
    }

    /// Adds what the streams themselves say.
    pub(super) fn finish(&mut self, cursor: &Cursor<'_>) {
        let streams = cursor.losses();
        self.lost_events = streams.events;
        self.lost_packets = streams.packets;
        self.damaged = streams.damaged;
        self.steps_back = cursor.steps_back().map(|(_, steps)| steps.count).fold(0, u64::saturating_add);
        let stepped = cursor.steps_back().take(KEPT);
        self.stepped = stepped.map(|(stream, steps)| (stream.to_owned(), steps)).collect();
        self.threads = cursor.threads().all().to_vec();
    }

    /// Adds what the launcher has noted.
    pub fn add_manifest(&mut self, trace: &Trace) {
        let manifest = &trace.manifest().losses;
        self.lost_events = self.lost_events.max(manifest.records);
        self.lost_calls = manifest.calls.saturating_add(manifest.calls_without_ring);
        self.lost_commands = manifest.device_commands;
        self.lost_processes = manifest.processes;
        if let Some(os) = &trace.manifest().os {
            self.lost_os_events = os.dropped.saturating_add(os.unwritten);
            self.unseen_switches = os.unseen_switches;
        }
        // Parts of a merged trace may be cut in different places.
        let parts = trace.manifest().trimmed.iter().filter(|_| trace.manifest().merged.is_none());
        self.from = parts.filter_map(|part| u64::try_from(part.from_ns?).ok()).max();
        let differences = trace.differences();
        self.differences = differences.len() as u64;
        self.different = differences.iter().take(KEPT).map(ToString::to_string).collect();
    }

    /// Adds what another part of the trace has; threads are left to the caller.
    pub fn merge(&mut self, other: Summary) {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        self.first = least(self.first, other.first);
        self.last = self.last.max(other.last);
        self.cut_at = least(self.cut_at, other.cut_at);
        for (to, n) in [
            (&mut self.events, other.events),
            (&mut self.calls, other.calls),
            (&mut self.unfinished, other.unfinished),
            (&mut self.orphans, other.orphans),
            (&mut self.commands, other.commands),
            (&mut self.untimed, other.untimed),
            (&mut self.lost_events, other.lost_events),
            (&mut self.lost_packets, other.lost_packets),
            (&mut self.damaged, other.damaged),
            (&mut self.steps_back, other.steps_back),
        ] {
            *to = to.saturating_add(n);
        }
        let room = KEPT.saturating_sub(self.damages.len());
        self.damages.extend(other.damages.into_iter().take(room));
        let room = KEPT.saturating_sub(self.stepped.len());
        self.stepped.extend(other.stepped.into_iter().take(room));
    }
}
