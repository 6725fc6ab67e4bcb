//! Sizes that only the API itself knows; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;

/// Dimensions of `n` behind the first two, those of images and channels. There are 12 at most.
pub fn spatial(n: usize) -> usize {
    if_at_most(n, 12).saturating_sub(2)
}
