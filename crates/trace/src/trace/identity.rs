//! Where the process and the thread of an event stand.

use hetrace_ctf::class::StreamClass;

/// Where a stream says which thread an event is of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Identity {
    /// In the packet: hetrace.
    #[default]
    Packet,
    /// In each event: LTTng.
    Event { pid: Option<usize>, tid: Option<usize>, name: Option<usize> },
}

impl Identity {
    /// Returns that of the streams of a class.
    pub fn of(class: &StreamClass) -> Self {
        let field = |name| class.event_context.as_ref().and_then(|c| c.index(name));
        let (pid, tid) = (field("vpid").or_else(|| field("pid")), field("vtid").or_else(|| field("tid")));
        // Either may have been asked for without the other.
        match pid.or(tid) {
            Some(_) => Self::Event { pid, tid, name: field("procname") },
            None => Self::Packet,
        }
    }
}
