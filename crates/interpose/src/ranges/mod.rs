//! Ranges that programs mark, for APIs that have them: how deep they are nested, and which open and close a
//! capture window.

pub mod levels;
pub mod named;
