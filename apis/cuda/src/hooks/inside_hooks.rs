//! What `--inside` needs besides: twins have what the program gives to their kernels, and are not shown to it.

use crate::generated::prelude::P;
use crate::generated::real;
use crate::inside;

type CUresult = u32;

pub unsafe fn cuLibraryGetModule(_: u64, module: *mut P, library: P) -> CUresult {
    // SAFETY: the program's own arguments; the real function has filled the place in if it returns 0.
    unsafe {
        let error = real::cuLibraryGetModule(module, library);
        if error == 0 && !module.is_null() {
            inside::library_module(module.read(), library);
        }
        error
    }
}

pub unsafe fn cuModuleGetFunctionCount(_: u64, count: *mut u32, module: P) -> CUresult {
    // SAFETY: the program's own arguments.
    unsafe {
        let error = real::cuModuleGetFunctionCount(count, module);
        if error == 0 {
            inside::count_without(count, module);
        }
        error
    }
}

pub unsafe fn cuLibraryGetKernelCount(_: u64, count: *mut u32, library: P) -> CUresult {
    // SAFETY: the program's own arguments.
    unsafe {
        let error = real::cuLibraryGetKernelCount(count, library);
        if error == 0 {
            inside::count_without(count, library);
        }
        error
    }
}

/// Functions that set something of a kernel.
macro_rules! sets {
    ($($name:ident($($before:ident: $is:ty,)* | $handle:ident | $(, $after:ident: $ty:ty)*);)*) => { $(
        pub unsafe fn $name(_: u64, $($before: $is,)* $handle: P $(, $after: $ty)*) -> CUresult {
            // SAFETY: the program's own arguments, and then the same with the twin of its kernel.
            inside::configured($handle, |handle| unsafe { real::$name($($before,)* handle $(, $after)*) })
        }
    )* };
}

sets! {
    cuFuncSetAttribute(|function|, attribute: u32, value: i32);
    cuFuncSetCacheConfig(|function|, config: u32);
    cuFuncSetSharedMemConfig(|function|, config: u32);
    cuKernelSetAttribute(attribute: u32, value: i32, |kernel|, device: i32);
    cuKernelSetCacheConfig(|kernel|, config: u32, device: i32);
}

/// Where a node's parameters have its kernel and its context, where they have these besides its function.
const KERNEL: usize = 56;
const CONTEXT: usize = 64;

/// Returns the parameters of a node with the twin in place of the kernel; none if it is not chosen.
///
/// # Safety
/// NULL or a node's parameters.
unsafe fn node<const N: usize>(parameters: *const [u8; N]) -> Option<[u8; N]> {
    // SAFETY: not NULL, so the program's parameters of a node, of `N` bytes.
    let mut copy = (!parameters.is_null()).then(|| unsafe { parameters.read_unaligned() })?;
    let word = |copy: &[u8; N], at: usize| {
        let bytes = copy.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, usize::from_le_bytes) as P
    };
    let at = if word(&copy, 0).is_null() { KERNEL } else { 0 };
    let twin = inside::chosen_of_node(word(&copy, at), word(&copy, CONTEXT))?;
    copy.get_mut(at..at + 8)?.copy_from_slice(&(twin as usize).to_le_bytes());
    Some(copy)
}

/// Functions that make a node of a graph which launches a kernel.
macro_rules! nodes {
    ($($name:ident: $bytes:literal;)*) => { $(
        pub unsafe fn $name(
            _: u64, made: *mut P, graph: P, dependencies: *const P, count: u64, parameters: *const [u8; $bytes],
        ) -> CUresult {
            // SAFETY: the program's own arguments, or a copy of its parameters with a twin in them.
            unsafe {
                if let Some(ours) = node(parameters)
                    && real::$name(made, graph, dependencies, count, &ours) == 0
                {
                    return 0;
                }
                real::$name(made, graph, dependencies, count, parameters)
            }
        }
    )* };
}

nodes! {
    cuGraphAddKernelNode: 56;
    cuGraphAddKernelNode_v2: 72;
}

pub unsafe fn cuLinkCreate(_: u64, n: u32, options: *mut u32, values: *mut P, state: *mut P) -> CUresult {
    inside::linked();
    // SAFETY: the program's own arguments.
    unsafe { real::cuLinkCreate(n, options, values, state) }
}

pub unsafe fn cuLinkCreate_v2(_: u64, n: u32, options: *mut u32, values: *mut P, state: *mut P) -> CUresult {
    inside::linked();
    // SAFETY: the program's own arguments.
    unsafe { real::cuLinkCreate_v2(n, options, values, state) }
}
