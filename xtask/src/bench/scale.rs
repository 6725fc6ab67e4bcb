//! How much a benchmark measures.

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Processes per setting.
    pub rounds: usize,
    /// Only what is needed.
    pub quick: bool,
}
