//! `--inside`: nodes of graphs that launch a kernel, as they are made, are given another kernel, and are asked for theirs. The
//! driver's node has the twin; the program sees its kernel.

use crate::generated::prelude::P;
use crate::generated::real;
use crate::inside;

type CUresult = u32;

/// Where a kernel's parameters have it and its context, where they have these besides its function.
const KERNEL: usize = 56;
const CONTEXT: usize = 64;
/// Bytes of the parameters of a node of any kind: the kind (0: a kernel), and where those of a kernel begin.
const ANY: usize = 256;
const BEHIND_KIND: usize = 16;

/// Returns a word of parameters; NULL where they have none.
fn word(parameters: &[u8], at: usize) -> P {
    let bytes = parameters.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, usize::from_le_bytes) as P
}

/// Returns a copy of a node's parameters, and where those of its kernel begin; none if it is of another kind.
///
/// # Safety
/// NULL or a node's parameters.
unsafe fn read<const N: usize>(parameters: *const [u8; N]) -> Option<([u8; N], usize)> {
    // SAFETY: not NULL, so the program's parameters of a node, of `N` bytes.
    let copy = (!parameters.is_null()).then(|| unsafe { parameters.read_unaligned() })?;
    match N {
        ANY => copy.starts_with(&[0; 4]).then_some((copy, BEHIND_KIND)),
        _ => Some((copy, 0)),
    }
}

/// Where parameters that begin at `begin` have what they launch: the function, or the kernel if that is NULL.
fn place(parameters: &[u8], begin: usize) -> usize {
    if word(parameters, begin).is_null() { begin + KERNEL } else { begin }
}

/// Returns the parameters of a node with the twin in place of the kernel; none if it is not chosen.
///
/// # Safety
/// NULL or a node's parameters.
unsafe fn with_twin<const N: usize>(parameters: *const [u8; N]) -> Option<[u8; N]> {
    // SAFETY: what the program passes to a call as a node's parameters, or NULL.
    let (mut copy, begin) = unsafe { read(parameters) }?;
    let at = place(&copy, begin);
    // Behind parameters without a context is nothing of theirs.
    let twin = inside::chosen_of_node(word(&copy, at), word(&copy, begin + CONTEXT))?;
    put(&mut copy, at, Some(twin)).then_some(copy)
}

/// Makes a node or sets one, with a twin if this is chosen; if the driver does not want that, as the program says.
///
/// # Safety
/// `parameters` is NULL or a node's, which `call` passes on.
pub unsafe fn with<const N: usize>(
    parameters: *const [u8; N],
    call: impl Fn(*mut [u8; N]) -> CUresult,
) -> CUresult {
    // SAFETY: what the program passes to this very call as a node's parameters, or NULL.
    if let Some(mut ours) = unsafe { with_twin(parameters) }
        && call(&mut ours) == 0
    {
        return 0;
    }
    call(parameters.cast_mut())
}

/// Puts the kernel in place of its twin where the driver has written the parameters of a node: it writes the function and, of a
/// library's kernel, the kernel, too.
///
/// # Safety
/// `parameters` is NULL or was filled in if `error` is 0.
unsafe fn shown<const N: usize>(error: CUresult, parameters: *mut [u8; N]) -> CUresult {
    if error != 0 {
        return error;
    }
    // SAFETY: contract: filled in.
    let Some((mut copy, begin)) = (unsafe { read(parameters) }) else { return 0 };
    let (function, kernel) = (word(&copy, begin), word(&copy, begin + KERNEL));
    let is_changed = put(&mut copy, begin, inside::own_function(function))
        | put(&mut copy, begin + KERNEL, inside::of_twin(kernel));
    if is_changed {
        // SAFETY: not NULL, as `read` has seen; the program's place, of `N` bytes.
        unsafe { parameters.write_unaligned(copy) };
    }
    0
}

/// Writes a handle into parameters, if there is one and they have room for it.
fn put(parameters: &mut [u8], at: usize, handle: Option<P>) -> bool {
    let to = parameters.get_mut(at..at + 8);
    to.zip(handle).map(|(to, handle)| to.copy_from_slice(&(handle as usize).to_le_bytes())).is_some()
}

/// Functions that have a node's parameters as their last argument.
macro_rules! nodes {
    ($($name:ident($($before:ident: $is:ty),*; $parameters:ty);)*) => { $(
        pub unsafe fn $name(_: u64, $($before: $is,)* parameters: $parameters) -> CUresult {
            // SAFETY: the program's own arguments, or a copy of its parameters with a twin in them.
            unsafe { with(parameters, |parameters| real::$name($($before,)* parameters)) }
        }
    )* };
}

nodes! {
    cuGraphAddKernelNode(made: *mut P, graph: P, dependencies: *const P, count: u64; *const [u8; 56]);
    cuGraphAddKernelNode_v2(made: *mut P, graph: P, dependencies: *const P, count: u64; *const [u8; 72]);
    cuGraphAddNode(made: *mut P, graph: P, dependencies: *const P, count: u64; *mut [u8; ANY]);
    cuGraphAddNode_v2(made: *mut P, graph: P, dependencies: *const P, data: *const [u8; 8], count: u64; *mut [u8; ANY]);
    cuGraphAddNode_v3(made: *mut P, graph: P, dependencies: *const P, data: *const [u8; 8], count: u64; *mut [u8; ANY]);
    cuGraphKernelNodeSetParams(node: P; *const [u8; 56]);
    cuGraphKernelNodeSetParams_v2(node: P; *const [u8; 72]);
    cuGraphNodeSetParams(node: P; *mut [u8; ANY]);
    cuGraphNodeSetParams_v2(node: P; *mut [u8; ANY]);
}

/// Functions that write a node's parameters.
macro_rules! asked {
    ($($name:ident: $bytes:expr;)*) => { $(
        pub unsafe fn $name(_: u64, node: P, parameters: *mut [u8; $bytes]) -> CUresult {
            // SAFETY: the program's own arguments; the real function has filled the place in if it returns 0.
            unsafe { shown(real::$name(node, parameters), parameters) }
        }
    )* };
}

asked! {
    cuGraphKernelNodeGetParams: 56;
    cuGraphKernelNodeGetParams_v2: 72;
    cuGraphNodeGetParams: ANY;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_where_parameters_have_them() {
        let mut any = [0u8; ANY];
        any[BEHIND_KIND + KERNEL] = 7;
        // SAFETY: parameters of a node.
        let (copy, begin) = unsafe { read(&any) }.expect("a kernel's");
        assert_eq!((word(&copy, place(&copy, begin)) as usize, begin), (7, 16));
        any[BEHIND_KIND] = 9;
        assert_eq!(word(&any, place(&any, BEHIND_KIND)) as usize, 9);
        any[0] = 1;
        // SAFETY: as before, of another kind; and none.
        unsafe {
            assert!(read(&any).is_none());
            assert!(read(std::ptr::null::<[u8; 56]>()).is_none());
        }
        assert!(word(&[0xff; 56], CONTEXT).is_null());
    }
}
