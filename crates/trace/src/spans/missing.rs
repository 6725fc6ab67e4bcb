//! What a trace lacks, in a line.

use super::summary::Summary;
use crate::text::plural;

impl Summary {
    /// What is missing, as labels with counts: of those only that there are.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = [
            ("events lost", self.lost_events),
            ("device commands lost", self.lost_commands),
            ("processes that could not be read", self.lost_processes),
            ("events of the operating system lost", self.lost_os_events),
            ("context switches not delivered", self.unseen_switches),
            ("packets lost", self.lost_packets),
            ("damaged places", self.damaged),
            ("differences from what was written", self.differences),
            ("steps back of a clock", self.steps_back),
            ("calls without an end", self.unfinished),
            ("ends without a call", self.orphans),
        ];
        all.into_iter().filter(|(_, n)| *n > 0)
    }

    /// What the reports do not show, in words; empty if they show all that happened.
    pub fn what_is_missing(&self) -> String {
        let parts = [
            (self.lost_events, "event", "lost while recording"),
            (self.lost_calls, "call", "not, or not wholly, recorded"),
            (self.lost_commands, "device command", "lost"),
            (self.lost_processes, "process", "whose records could not be read"),
            (self.lost_os_events, "event", "of the operating system lost"),
            (self.unseen_switches, "context switch", "not delivered by the kernel"),
            (self.lost_packets, "packet", "missing from the streams"),
            (self.damaged, "place", "damaged or cut"),
            (self.differences, "difference", "from what was written"),
            (self.steps_back, "event", "earlier than the one before (a clock stepped back)"),
            (self.unfinished, "call", "without an end"),
            (self.orphans, "end", "of calls without a beginning"),
        ];
        let missing = parts.iter().filter(|(n, ..)| *n > 0);
        let missing: Vec<String> =
            missing.map(|(n, one, what)| format!("{} {what}", plural(*n, one))).collect();
        missing.join(", ")
    }
}
