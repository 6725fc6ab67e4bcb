//! Sizes that only the API itself knows; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;

/// Bytes of the numbers that a query of a `cufftXtQueryType` fills in, up to those of another size; 0 of one that is not
/// known.
pub fn factor_bytes(query: usize) -> usize {
    // `cufftXt1dFactors`: ten numbers of 64 bits, then shifts.
    if query == 0 { 80 } else { 0 }
}
