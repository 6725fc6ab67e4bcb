//! What a run's time went to where no device says it: of a trace without commands, or without their times.

use super::Window;
use super::coverage::Union;
use super::threads::Span;
use hetrace_trace::trace::FunctionId;

/// Sums of outermost calls.
#[derive(Debug, Default)]
pub(super) struct Host {
    /// Time in calls, by function.
    calls: Vec<u64>,
    /// At least one thread was in a call.
    pub inside: Union,
    /// Calls that enqueue, and those of them that failed.
    pub enqueued: u64,
    pub failed: u64,
    /// A device's times say it.
    pub over: bool,
}

impl Host {
    /// From now on a device's times say where time went.
    pub fn stop(&mut self) {
        self.over = true;
    }

    /// A call has ended; there are so many functions.
    pub fn call(&mut self, span: &Span, window: Window, functions: usize) {
        if self.over {
            return;
        }
        if self.calls.is_empty() {
            self.calls.resize(functions, 0);
        }
        let (start, end) = window.clip(span.start, span.end);
        if let Some(sum) = self.calls.get_mut(span.function.index()) {
            *sum = sum.saturating_add(end - start);
        }
        self.inside.add(start, end);
        self.enqueued += u64::from(span.enqueues);
        self.failed += u64::from(span.enqueues && span.failed);
    }

    /// Functions by their time, the most first.
    pub fn most(&self) -> Vec<(FunctionId, u64)> {
        let ids = (0u32..).map(FunctionId);
        let mut most: Vec<_> = ids.zip(self.calls.iter().copied()).filter(|(_, ns)| *ns > 0).collect();
        most.sort_by_key(|(function, ns)| (std::cmp::Reverse(*ns), *function));
        most
    }
}
