//! Which records are of commands that the tracer itself gave to a device: fills and copies of what kernels record into. They
//! are known by the ids of the calls, and are not among the program's commands.

use std::sync::atomic::{AtomicBool, Ordering};

use hetrace_interpose::table::Table;

/// Whether there was any.
static ANY: AtomicBool = AtomicBool::new(false);
/// Ids of such calls whose record has not come. There are a few for each module and context; of more than fit, records are
/// taken for the program's.
static CALLS: Table<4096> = Table::new();

/// A call of ours with that id begins.
#[cold]
pub fn begun(id: u32) {
    CALLS.set(id.into(), 1);
    // Relaxed: CUPTI, which hands over the record later, orders both.
    ANY.store(true, Ordering::Relaxed);
}

/// Whether a record is of a call of ours. It has one record.
pub fn take(id: u64) -> bool {
    let is_own = ANY.load(Ordering::Relaxed) && CALLS.get(id).is_some();
    if is_own {
        CALLS.remove(id);
    }
    is_own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_record_is_ours_once() {
        assert!(!take(7));
        begun(7);
        assert!(!take(8) && take(7) && !take(7));
    }
}
