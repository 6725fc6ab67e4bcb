//! Samples of processors as they stand in a trace.

use hetrace_ctf::class::{EventClass, Scope};
use hetrace_ctf::read::Event;
use hetrace_format::sample;

use crate::stacks::StackId;

/// A sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Process.
    pub pid: i64,
    /// Thread.
    pub tid: i64,
    /// The CPU.
    pub cpu: u64,
    /// The kernel worked for the thread.
    pub kernel: bool,
    /// Time on a CPU that it stands for, ns.
    pub period: u64,
    /// Where the thread was.
    pub stack: StackId,
}

/// Where an event of a sample has its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields([usize; 6]);

impl Fields {
    /// Returns that of an event class; none if it is of no samples.
    pub fn of(class: &EventClass) -> Option<Self> {
        if class.name != sample::Sample::EVENT {
            return None;
        }
        let mut places = [0; 6];
        for (place, name) in places.iter_mut().zip(["pid", "tid", "cpu", "kernel", "period", "stack"]) {
            *place = class.fields.index(name)?;
        }
        Some(Self(places))
    }

    /// Reads a sample.
    pub fn read(&self, event: &Event<'_, '_>) -> Sample {
        let [pid, tid, cpu, kernel, period, stack] =
            self.0.map(|field| event.integer_at(Scope::EventFields, field).unwrap_or_default());
        Sample {
            pid,
            tid,
            cpu: cpu.cast_unsigned(),
            kernel: kernel != 0,
            period: period.cast_unsigned(),
            stack: StackId { native: stack.cast_unsigned(), python: 0 },
        }
    }
}
