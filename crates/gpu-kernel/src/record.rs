//! What an instrumented kernel writes at a site.

/// Lanes of a warp, a bit each: the lowest is lane 0.
pub type Lanes = u64;

/// The site of a record that says which ways lanes went: `chosen` is their word ([`crate::plan::Mode::Paths`]), `case` the
/// number of the site where they said it, plus 1, or 0 at their end.
pub const WAYS: u32 = u32::MAX;

/// One execution of a site by lanes that were together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When, in any unit; not before that of earlier records of the same lanes.
    pub time: u64,
    /// The number of the site in its [`crate::Plan`].
    pub site: u32,
    /// The lanes that were there.
    pub active: Lanes,
    /// Of a branch, those that took its `case`-th successor; of other sites `active`.
    pub chosen: Lanes,
    /// See there. Of a branch with two successors always 0, and those that were not chosen took the other one.
    pub case: u16,
    /// How often these lanes have gone through this branch together and this way since the record before, none of which is
    /// recorded; such a record stands for these passes and no other. 0 for a record of a pass.
    pub repeats: u32,
}
