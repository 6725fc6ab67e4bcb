//! Samples of processors: where the program's threads were while they had one.
//!
//! They stand in a stream of the launcher's own, `samples-1`, and only in traces of runs that asked for them. What their
//! stacks are is in `samples-names`, a stream of definitions ([`Frame`](crate::define::Frame)).

use hetrace_ctf::class::{EventClass, StreamClass, StructClass};
use hetrace_ctf::write::form;
use serde::{Deserialize, Serialize};

use crate::define::definitions;
use crate::event;
use crate::field::{Field, Handle};

/// Stream class of these events: behind that of capture windows.
pub const STREAM: u32 = 66;

definitions! { "cpu":
    /// A thread of the program had a CPU.
    Sample = 0, "sample" {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// The CPU.
        cpu: u32,
        /// 1: the kernel worked for the thread, whose stack is that of the system call, fault or interrupt; 0: its own code ran.
        kernel: u32,
        /// Time on a CPU that the sample stands for, in nanoseconds.
        period: u64,
        /// Its native stack, as [`Frame`](crate::define::Frame) defines it; 0 if none was read, 1 if it is not known.
        stack: Handle,
    }
}

/// Returns the stream class.
pub fn stream() -> StreamClass {
    let mut stream = form::stream_class(u64::from(STREAM));
    stream.events.push(Sample::class());
    stream
}

/// What was sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Samples {
    /// Samples a second of each thread while it has a CPU.
    pub hz: u32,
    /// Threads are sampled also while the kernel works for them.
    pub kernel: bool,
    /// Why there are none; none if there may be some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What would give more; none if there is no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Samples in the trace.
    pub samples: u64,
    /// Records that the kernel dropped because a ring buffer was full: samples, or what says where code is.
    pub dropped: u64,
    /// How often the kernel left samples out for a moment, because they took it too long.
    pub throttled: u64,
    /// Samples whose stack is not known to its outermost frame: not unwound further, or longer than what is copied.
    pub incomplete: u64,
    /// Bytes of ring buffers that made no sense.
    pub damaged_bytes: u64,
    /// Bytes of the streams.
    pub bytes: u64,
    /// Processor time of the thread that unwinds, in nanoseconds.
    pub cpu_ns: u64,
}

impl Samples {
    /// Adds those of another trace.
    pub fn add(&mut self, other: Self) {
        let Self {
            hz,
            kernel,
            refused,
            fix,
            samples,
            dropped,
            throttled,
            incomplete,
            damaged_bytes,
            bytes,
            cpu_ns,
        } = other;
        self.hz = self.hz.max(hz);
        self.kernel &= kernel;
        self.refused = self.refused.take().or(refused);
        self.fix = self.fix.take().or(fix);
        for (all, more) in [
            (&mut self.samples, samples),
            (&mut self.dropped, dropped),
            (&mut self.throttled, throttled),
            (&mut self.incomplete, incomplete),
            (&mut self.damaged_bytes, damaged_bytes),
            (&mut self.bytes, bytes),
            (&mut self.cpu_ns, cpu_ns),
        ] {
            *all = all.saturating_add(more);
        }
    }

    /// Whether something is missing that should be there.
    pub fn is_complete(&self) -> bool {
        self.refused.is_none() && self.dropped == 0 && self.throttled == 0 && self.damaged_bytes == 0
    }
}

#[cfg(test)]
mod tests {
    use hetrace_ctf::Scalar;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let sample = Sample { pid: 1, tid: 2, cpu: 3, kernel: 1, period: 5, stack: Handle(6) };
        let value = |name: &str| {
            let all = [("pid", 1), ("tid", 2), ("cpu", 3), ("kernel", 1), ("period", 5), ("stack", 6)];
            all.into_iter().find(|(known, _)| *known == name).map(|(_, value)| Scalar::Unsigned(value))
        };
        assert_eq!(Sample::decode(value), sample);
        assert_eq!(sample.encode().len(), 4 * 4 + 2 * 8);
        assert_eq!(stream().events[0].name, "cpu:sample");
    }

    #[test]
    fn those_of_two_traces_add_up() {
        let mut all = Samples { hz: 100, kernel: true, samples: 1, dropped: 2, ..Samples::default() };
        all.add(Samples { hz: 50, samples: 3, fix: Some("more".to_owned()), ..Samples::default() });
        assert_eq!(
            (all.hz, all.kernel, all.samples, all.dropped, all.fix.is_some()),
            (100, false, 4, 2, true)
        );
    }

    #[test]
    fn losses_are_seen() {
        assert!(Samples::default().is_complete());
        for lossy in [
            Samples { refused: Some(String::new()), ..Samples::default() },
            Samples { dropped: 1, ..Samples::default() },
            Samples { throttled: 1, ..Samples::default() },
            Samples { damaged_bytes: 1, ..Samples::default() },
        ] {
            assert!(!lossy.is_complete());
        }
    }
}
