//! Made by `cargo xtask codegen onemkl`, except this file and `prelude.rs`.
//!
//! One safety argument stands for all `unsafe` in the made files: the
//! arguments are those that the program passes to the very function that is
//! called with them, and pointers are followed only as far as the model says
//! that function reads or writes them.
#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    unused_variables,
    unused_mut,
    unused_unsafe,
    reason = "made code is as uniform as its model, not as short as could be"
)]

pub mod prelude;
#[rustfmt::skip]
pub mod real;
#[rustfmt::skip]
pub mod tables;
#[rustfmt::skip]
pub mod wrappers;
