//! Sizes that only the API itself knows; named in `semantics.toml`.
