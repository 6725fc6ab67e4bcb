//! Functions that hand out other functions. Named `hook` in `semantics.toml`.
//!
//! Whatever the driver hands out lies in its own library: the address identifies the
//! function, and so the wrapper that stands for it. The name that the program
//! gave does not: it comes without the suffixes of versions and streams.

mod device;
mod graph_nodes;
mod graphs;
mod inside_hooks;

pub use device::*;
pub use graph_nodes::*;
pub use graphs::*;
pub use inside_hooks::*;

use crate::entry::LIBRARY;
use crate::generated::prelude::P;
use crate::generated::real;
use crate::{inside, kernel_args};

pub unsafe fn cuGetProcAddress(_: u64, symbol: *const i8, pfn: *mut P, version: i32, flags: u64) -> u32 {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::cuGetProcAddress(symbol, pfn, version, flags) };
    // SAFETY: the program's own name and place; `error` says whether the driver filled the place in.
    unsafe { LIBRARY.hand_out_at(error, symbol, pfn) };
    error
}

pub unsafe fn cuGetProcAddress_v2(
    _: u64,
    symbol: *const i8,
    pfn: *mut P,
    version: i32,
    flags: u64,
    status: *mut u32,
) -> u32 {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::cuGetProcAddress_v2(symbol, pfn, version, flags, status) };
    // SAFETY: the program's own name and place, after the call whose `error` this is.
    unsafe { LIBRARY.hand_out_at(error, symbol, pfn) };
    error
}

/// Returns whether a function's default stream is the thread's.
const fn is_per_thread(name: &str) -> bool {
    matches!(name.as_bytes(), [.., b'_', b'p', b't', b's', b'z'])
}

/// `--kernel-args`: what a launch passes is recorded before the launch. `--inside`: the kernel's twin may be launched in its
/// place. `launch` launches what it is given.
macro_rules! launches {
    ($($name:ident)*) => { $(
        #[cold]
        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            time: u64, f: P, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, stream: P, params: *mut P,
            extra: *mut P, launch: impl Fn(P) -> u32,
        ) -> u32 {
            // SAFETY: the program's own arguments.
            unsafe { kernel_args::launch(time, f, params, extra) };
            inside::launch(f, stream, is_per_thread(stringify!($name)), launch)
        }
    )* };
}

launches! { cuLaunchKernel cuLaunchKernel_ptsz }

/// As above, for launches that have no other way to pass them.
macro_rules! cooperative {
    ($($name:ident)*) => { $(
        #[cold]
        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            time: u64, f: P, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, _: u32, stream: P, params: *mut P,
            launch: impl Fn(P) -> u32,
        ) -> u32 {
            // SAFETY: the program's own arguments.
            unsafe { kernel_args::launch(time, f, params, std::ptr::null()) };
            inside::launch(f, stream, is_per_thread(stringify!($name)), launch)
        }
    )* };
}

cooperative! { cuLaunchCooperativeKernel cuLaunchCooperativeKernel_ptsz }

/// Where a launch's configuration has its stream.
const STREAM: usize = 32;

/// As above, for launches with a configuration.
macro_rules! configured {
    ($($name:ident)*) => { $(
        #[cold]
        #[inline(never)]
        pub unsafe fn $name<T>(
            time: u64, config: *const T, f: P, params: *mut P, extra: *mut P, launch: impl Fn(P) -> u32,
        ) -> u32 {
            // SAFETY: the program's own arguments.
            unsafe { kernel_args::launch(time, f, params, extra) };
            let stream = if config.is_null() {
                std::ptr::null_mut()
            } else {
                // SAFETY: a configuration, as the driver wants it.
                unsafe { config.cast::<u8>().add(STREAM).cast::<P>().read_unaligned() }
            };
            inside::launch(f, stream, is_per_thread(stringify!($name)), launch)
        }
    )* };
}

configured! { cuLaunchKernelEx cuLaunchKernelEx_ptsz }
