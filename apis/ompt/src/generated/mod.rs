//! Made by `cargo xtask codegen ompt`, except this file and `prelude.rs`.
//!
//! One safety argument stands for all `unsafe` in the made files: the
//! arguments are those that the runtime passes to the very callback that
//! reports them, and pointers are followed only as far as the model says.
#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    unused_variables,
    unused_mut,
    unused_unsafe,
    unused_imports,
    unsafe_op_in_unsafe_fn,
    reason = "made code is as uniform as its model, not as short as could be"
)]

pub mod prelude;
#[rustfmt::skip]
pub mod tables;
#[rustfmt::skip]
pub mod wrappers;
