//! Sizes that only the API itself can tell; named in `semantics.toml`.
