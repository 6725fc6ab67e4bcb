//! Whether an API's commands are to be timed.

use std::sync::atomic::{AtomicU32, Ordering};

use hetrace_ring::abi::option;

use crate::own::pid;
use crate::session;

/// Of an API, of which one process has the devices: to a child that it forks later the driver is dead.
#[derive(Debug)]
pub struct Timing {
    /// The process; 0 if none has used the API yet.
    owner: AtomicU32,
}

impl Timing {
    /// Of an API that was not used yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { owner: AtomicU32::new(0) }
    }

    /// Whether commands of this process are timed. The first that is asked, in a session that wants times, has the devices.
    pub fn is_on(&self) -> bool {
        session().is_some_and(|s| s.option(option::DEVICE)) && self.is_owner()
    }

    fn is_owner(&self) -> bool {
        let (owner, pid) = (self.owner.load(Ordering::Relaxed), pid());
        let order = Ordering::Relaxed;
        owner == pid || (owner == 0 && self.owner.compare_exchange(0, pid, order, order).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_has_no_devices() {
        let timing = Timing::new();
        assert!(timing.is_owner() && timing.is_owner());
        // As a child finds it.
        timing.owner.store(pid() + 1, Ordering::Relaxed);
        assert!(!timing.is_owner());
    }
}
