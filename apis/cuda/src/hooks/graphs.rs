//! Executable graphs as they are made, changed and ended: where recording has a budget, nodes are counted and some of them timed
//! (`device/graphs`). Named `hook` in `semantics.toml`.
//!
//! All of them pass the program's own arguments on, and its answers back.

use super::graph_nodes::with;
use crate::device::graphs::{self, Does, To};
use crate::generated::prelude::P;
use crate::generated::real;

type CUresult = u32;

/// The call that makes an executable has returned `error`.
///
/// # Safety
/// `made` is NULL or was filled in if `error` is 0.
unsafe fn made(error: CUresult, made: *mut P, graph: P, flags: u64) -> CUresult {
    if error == 0 && !made.is_null() {
        // SAFETY: contract: filled in.
        graphs::made(unsafe { made.read() }, graph, flags);
    }
    error
}

macro_rules! instantiates {
    ($($name:ident)*) => { $(
        pub unsafe fn $name(_: u64, x: *mut P, graph: P, node: *mut P, log: *mut i8, size: u64) -> CUresult {
            // SAFETY: the program's own arguments; the place is filled in where 0 is returned.
            unsafe { made(real::$name(x, graph, node, log, size), x, graph, 0) }
        }
    )* };
}

instantiates! { cuGraphInstantiate cuGraphInstantiate_v2 }

pub unsafe fn cuGraphInstantiateWithFlags(_: u64, x: *mut P, graph: P, flags: u64) -> CUresult {
    // SAFETY: the program's own arguments; the place is filled in where 0 is returned.
    unsafe { made(real::cuGraphInstantiateWithFlags(x, graph, flags), x, graph, flags) }
}

macro_rules! instantiates_with_params {
    ($($name:ident)*) => { $(
        pub unsafe fn $name(_: u64, x: *mut P, graph: P, parameters: *mut [u8; 32]) -> CUresult {
            // SAFETY: NULL, or the program's parameters, which begin with the flags.
            let flags = if parameters.is_null() { 0 } else { unsafe { parameters.cast::<u64>().read_unaligned() } };
            // SAFETY: the program's own arguments; the place is filled in where 0 is returned.
            unsafe { made(real::$name(x, graph, parameters), x, graph, flags) }
        }
    )* };
}

instantiates_with_params! { cuGraphInstantiateWithParams cuGraphInstantiateWithParams_ptsz }

pub unsafe fn cuGraphExecDestroy(_: u64, x: P) -> CUresult {
    graphs::ends(x);
    // SAFETY: the program's own argument.
    unsafe { real::cuGraphExecDestroy(x) }
}

pub unsafe fn cuGraphExecUpdate(_: u64, x: P, graph: P, node: *mut P, result: *mut u32) -> CUresult {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::cuGraphExecUpdate(x, graph, node, result) };
    graphs::updated(x, graph, error == 0);
    error
}

pub unsafe fn cuGraphExecUpdate_v2(_: u64, x: P, graph: P, result: *mut [u8; 24]) -> CUresult {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::cuGraphExecUpdate_v2(x, graph, result) };
    graphs::updated(x, graph, error == 0);
    error
}

/// What the parameters of a node say that it does.
///
/// # Safety
/// NULL or parameters of a node, of `N` bytes.
unsafe fn read<const N: usize>(parameters: *const [u8; N], does: fn(&[u8]) -> Option<Does>) -> Option<Does> {
    // SAFETY: NULL, or the `N` bytes that the program has passed to a call as a node's parameters, which the driver has just read.
    does(unsafe { parameters.as_ref() }?)
}

/// Functions that change a kernel's node, or one of any kind: `--inside` may exchange the kernel.
macro_rules! sets_kernels {
    ($($name:ident $in_graph:ident $does:path: $parameters:ty;)*) => { $(
        pub unsafe fn $name(_: u64, x: P, node: P, parameters: $parameters) -> CUresult {
            // SAFETY: the program's own arguments, or a copy of its parameters with a twin of the kernel in them.
            unsafe {
                with(parameters, |parameters| {
                    let error = real::$name(x, node, parameters);
                    if error == 0 {
                        graphs::changed(x, node, || read(parameters, $does), |to| match to {
                            To::Executable(x, node) => real::$name(x, node, parameters),
                            To::Graph(node) => real::$in_graph(node, parameters),
                        });
                    }
                    error
                })
            }
        }
    )* };
}

sets_kernels! {
    cuGraphExecKernelNodeSetParams cuGraphKernelNodeSetParams graphs::kernel: *const [u8; 56];
    cuGraphExecKernelNodeSetParams_v2 cuGraphKernelNodeSetParams_v2 graphs::kernel: *const [u8; 72];
    cuGraphExecNodeSetParams cuGraphNodeSetParams graphs::any: *mut [u8; 256];
}

/// Functions that change a copy's or a fill's node, in a context.
macro_rules! sets_memory {
    ($($name:ident $in_graph:ident $does:path: $bytes:literal;)*) => { $(
        pub unsafe fn $name(_: u64, x: P, node: P, parameters: *const [u8; $bytes], context: P) -> CUresult {
            // SAFETY: the program's own arguments.
            let error = unsafe { real::$name(x, node, parameters, context) };
            if error == 0 {
                // SAFETY: the program's parameters, which the driver has just read; and other nodes and executables of ours.
                graphs::changed(x, node, || unsafe { read(parameters, $does) }, |to| unsafe {
                    match to {
                        To::Executable(x, node) => real::$name(x, node, parameters, context),
                        To::Graph(node) => real::$in_graph(node, parameters),
                    }
                });
            }
            error
        }
    )* };
}

sets_memory! {
    cuGraphExecMemcpyNodeSetParams cuGraphMemcpyNodeSetParams graphs::copy: 200;
    cuGraphExecMemsetNodeSetParams cuGraphMemsetNodeSetParams graphs::fill: 40;
}

/// Functions that change a node which does nothing on a device.
macro_rules! sets_others {
    ($($name:ident $in_graph:ident: $parameters:ty;)*) => { $(
        pub unsafe fn $name(_: u64, x: P, node: P, parameters: $parameters) -> CUresult {
            // SAFETY: the program's own arguments.
            let error = unsafe { real::$name(x, node, parameters) };
            if error == 0 {
                // SAFETY: the program's own argument once more, with other nodes and executables of ours.
                graphs::changed(x, node, || None, |to| unsafe {
                    match to {
                        To::Executable(x, node) => real::$name(x, node, parameters),
                        To::Graph(node) => real::$in_graph(node, parameters),
                    }
                });
            }
            error
        }
    )* };
}

sets_others! {
    cuGraphExecHostNodeSetParams cuGraphHostNodeSetParams: *const [u8; 16];
    cuGraphExecEventRecordNodeSetEvent cuGraphEventRecordNodeSetEvent: P;
    cuGraphExecEventWaitNodeSetEvent cuGraphEventWaitNodeSetEvent: P;
}

/// Functions that change a node of a kind that no twin has.
macro_rules! sets_left {
    ($($name:ident: $parameters:ty;)*) => { $(
        pub unsafe fn $name(_: u64, x: P, node: P, parameters: $parameters) -> CUresult {
            // SAFETY: the program's own arguments.
            let error = unsafe { real::$name(x, node, parameters) };
            graphs::changed(x, node, || None, |_| 1);
            error
        }
    )* };
}

sets_left! {
    cuGraphExecChildGraphNodeSetParams: P;
    cuGraphExecExternalSemaphoresSignalNodeSetParams: *const [u8; 24];
    cuGraphExecExternalSemaphoresWaitNodeSetParams: *const [u8; 24];
    cuGraphExecBatchMemOpNodeSetParams: *const [u8; 32];
}

pub unsafe fn cuGraphNodeSetEnabled(_: u64, x: P, node: P, is_enabled: u32) -> CUresult {
    // SAFETY: the program's own arguments.
    let error = unsafe { real::cuGraphNodeSetEnabled(x, node, is_enabled) };
    if error == 0 {
        graphs::enabled(x, node, is_enabled != 0, |to| match to {
            // SAFETY: an executable of ours, and a node of its graph.
            To::Executable(x, node) => unsafe { real::cuGraphNodeSetEnabled(x, node, is_enabled) },
            To::Graph(_) => 1,
        });
    }
    error
}
