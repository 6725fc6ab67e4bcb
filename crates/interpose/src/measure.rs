//! Sizes that no API knows better than another; an API's `measure.rs` has them under their names.

/// `n`, or 0 if that is too much to be true: a negative number comes as a very large one.
pub fn if_at_most(n: usize, most: usize) -> usize {
    if n <= most { n } else { 0 }
}
