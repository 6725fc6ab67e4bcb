//! Commands that were taken from rings and wait to be put in order: how many a killed drainer takes along.

use std::path::Path;
use std::sync::atomic::Ordering;

use crate::control::LeftPage;

/// A count that outlives the drainer, in the session's control page. It is never too low: it is raised before a ring has
/// room for others, and lowered when commands are in their files.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    page: Option<LeftPage>,
    found: u32,
}

impl Waiting {
    /// Finds what a drainer before has left. A session without a control page has no count.
    pub fn open(session: &Path) -> Self {
        let page = LeftPage::open(session);
        let found = page.as_ref().map_or(0, |left| left.page().commands_waiting.load(Ordering::Relaxed));
        Waiting { page, found }
    }

    /// Returns how many the drainer before had taken and not written.
    pub fn found(&self) -> u64 {
        self.found.into()
    }

    /// A command is taken from a ring.
    pub fn take(&self) {
        if let Some(left) = &self.page {
            left.page().commands_waiting.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// So many wait, after others were written.
    pub fn set(&self, count: usize) {
        if let Some(left) = &self.page {
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            left.page().commands_waiting.store(count, Ordering::Release);
        }
    }
}
