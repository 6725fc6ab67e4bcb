//! Where an event is.

/// Where the parts of an event are, in bits from the start of its packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub index: usize,
    pub timestamp: Option<u64>,
    pub header_at: u64,
    pub common_at: u64,
    pub context_at: u64,
    pub fields_at: u64,
    pub end: u64,
}
