//! The nodes of a graph: what each does, and which can't be timed.

use hetrace_interpose::commands::sample::{self, Counted};

use super::super::{driver, functions, memory};
use crate::generated::prelude::{P, null_mut};

// Of `CUgraphNodeType`.
const KERNEL: i32 = 0;
const COPY: i32 = 1;
const FILL: i32 = 2;
const CHILD: i32 = 4;
/// Host functions, empty nodes, events: they are there as they are, and take no time on the device that is theirs.
const OTHERS: [i32; 4] = [3, 5, 6, 7];

/// Bytes of parameters: of a kernel with its handle and context, of one without, of a copy, of a fill.
const OF_KERNEL: usize = 72;
const OF_COPY: usize = 200;
const OF_FILL: usize = 40;
/// Where those of any kind begin behind the kind; a copy's own are behind more.
const BEHIND_KIND: usize = 16;
const BEHIND_COPY: usize = 32;

/// `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`.
const DEVICE_UPDATABLE: i32 = 13;
/// Graphs within graphs are followed so deep.
const DEPTH: u32 = 8;
/// Nodes of a graph that is looked at.
const MOST: usize = 1 << 16;

/// Why the nodes of a graph are not timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// There are nodes of a kind that can't be in two graphs: memory, conditions, semaphores, graphs.
    Kind,
    /// The device launches or changes it.
    Device,
    /// It is launched earlier than what is before it ends.
    Edges,
    /// Nodes could run beside each other: an event behind one waits for the others, too.
    Branches,
    /// It would cost more than the budget has.
    Budget,
    /// The driver has refused what timing takes.
    Refused,
    /// There are too many graphs, or nodes of one.
    TooMany,
}

/// Words for people, in the order of [`Left`].
pub const REASONS: [&[u8]; 7] = [
    b"nodes that a second graph can't have (memory, conditional, semaphore, graph)",
    b"launched or updated by the device",
    b"programmatic dependencies",
    b"nodes that may run beside each other",
    b"more than the budget allows",
    b"the driver refused",
    b"too many",
];

/// What a node does.
#[derive(Debug, Clone, Copy)]
pub struct Does {
    /// Index into `COMMAND_KINDS`.
    pub kind: u8,
    /// Id of the function that runs, or of what stands for its kind.
    pub function: u64,
    pub counted: &'static Counted,
    pub memory: [u8; 2],
    pub bytes: u64,
    /// Blocks, and threads of a block.
    pub geometry: [usize; 6],
    /// Bytes of shared memory that the launch asks for.
    pub shared: u32,
}

/// A node of a graph.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// The program's.
    pub own: P,
    /// That of the copy; NULL without one.
    pub copy: P,
    /// What it does on the device, if it does something.
    pub does: Option<Does>,
    pub is_enabled: bool,
}

/// Returns a number of the parameters.
fn word(parameters: &[u8], at: usize) -> u64 {
    parameters.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn half(parameters: &[u8], at: usize) -> u32 {
    parameters.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// What a kernel's node does, by its parameters, which may have no handle and context.
pub fn kernel(parameters: &[u8]) -> Option<Does> {
    let (function, kernel) = (word(parameters, 0), word(parameters, 56));
    let handle = if function == 0 { kernel } else { function };
    let function = functions::of(handle as P).filter(|_| handle != 0)?;
    let geometry = [8, 12, 16, 20, 24, 28].map(|at| half(parameters, at) as usize);
    Some(Does {
        kind: 1,
        function: function.id,
        counted: &function.counted,
        memory: [0; 2],
        bytes: 0,
        geometry,
        shared: half(parameters, 32),
    })
}

/// Index into `MEMORY_KINDS` of a `CUmemorytype`, and the address by which more is to be known.
fn side(parameters: &[u8], begin: usize) -> (u8, u64) {
    match half(parameters, begin) {
        1 => (7, word(parameters, begin + 8)),
        2 => (3, 0),
        3 => (4, 0),
        _ => (0, word(parameters, begin + 16)),
    }
}

/// What a copy's node does, by a `CUDA_MEMCPY3D`.
pub fn copy(parameters: &[u8]) -> Option<Does> {
    let ((from, source), (to, target)) = (side(parameters, 32), side(parameters, 120));
    let memory = memory::refine([from, to], [source, target]);
    let bytes = [176, 184, 192].map(|at| word(parameters, at)).into_iter().fold(1, u64::saturating_mul);
    let is_host = |kind: u8| matches!(kind, 1 | 2 | 7);
    let kind = match memory.map(is_host) {
        [true, false] => 3,
        [false, true] => 2,
        _ => 4,
    };
    of_kind(kind, memory, bytes)
}

/// What a fill's node does.
pub fn fill(parameters: &[u8]) -> Option<Does> {
    let memory = memory::refine([0, 0], [0, word(parameters, 0)]);
    let sizes = [u64::from(half(parameters, 20)), word(parameters, 24), word(parameters, 32)];
    of_kind(5, memory, sizes.into_iter().fold(1, u64::saturating_mul))
}

fn of_kind(kind: u8, memory: [u8; 2], bytes: u64) -> Option<Does> {
    let (function, counted) = sample::of_kind(kind, memory)?;
    Some(Does { kind, function, counted, memory, bytes, geometry: [0; 6], shared: 0 })
}

/// What a node does by parameters that may be of any kind, behind which it is.
pub fn any(parameters: &[u8]) -> Option<Does> {
    let behind = |begin: usize| parameters.get(begin..);
    match half(parameters, 0) as i32 {
        KERNEL => kernel(behind(BEHIND_KIND)?),
        COPY => copy(behind(BEHIND_COPY)?),
        FILL => fill(behind(BEHIND_KIND)?),
        _ => None,
    }
}

/// All nodes of a graph, in the driver's order; none if it does not say them.
pub fn list(graph: P) -> Option<Vec<P>> {
    let mut count = 0;
    // SAFETY: a graph that the caller knows to live, and room for the number.
    if unsafe { driver::cuGraphGetNodes(graph, null_mut(), &mut count) } != 0 || count > MOST {
        return None;
    }
    let mut nodes = super::room(count)?;
    nodes.resize(count, null_mut());
    // SAFETY: the same graph, and room for so many.
    let error = unsafe { driver::cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count) };
    nodes.truncate(count);
    (error == 0).then_some(nodes)
}

/// Reads a graph: adds its nodes, and those of graphs in it. Returns why it can't be timed, if it can't.
pub fn read(graph: P, depth: u32, into: &mut Vec<Node>) -> Option<Left> {
    let Some(nodes) = list(graph).filter(|_| depth < DEPTH) else { return Some(Left::TooMany) };
    if into.try_reserve(nodes.len()).is_err() {
        return Some(Left::TooMany);
    }
    let mut left = None;
    for own in nodes {
        let mut kind = -1;
        // SAFETY: a node of a graph that lives, and room for the answer.
        unsafe { driver::cuGraphNodeGetType(own, &mut kind) };
        let does = match kind {
            KERNEL => of_kernel_node(own),
            COPY => of_node(own, OF_COPY, driver::cuGraphMemcpyNodeGetParams, copy),
            FILL => of_node(own, OF_FILL, driver::cuGraphMemsetNodeGetParams, fill),
            _ => None,
        };
        let can = match kind {
            KERNEL if is_updatable(own) => Err(Left::Device),
            KERNEL | COPY | FILL if does.is_none() => Err(Left::Refused),
            KERNEL | COPY | FILL => Ok(()),
            CHILD => {
                let mut inner = null_mut();
                // SAFETY: a node of a graph that lives, of this kind, and room for the answer.
                if unsafe { driver::cuGraphChildGraphNodeGetGraph(own, &mut inner) } == 0 {
                    read(inner, depth + 1, into);
                }
                Err(Left::Kind)
            }
            kind if OTHERS.contains(&kind) => Ok(()),
            _ => Err(Left::Kind),
        };
        left = left.or(can.err());
        into.push(Node { own, copy: null_mut(), does, is_enabled: true });
    }
    left
}

fn of_kernel_node(node: P) -> Option<Does> {
    of_node(node, OF_KERNEL, driver::cuGraphKernelNodeGetParams_v2, kernel)
        .or_else(|| of_node(node, OF_KERNEL, driver::cuGraphKernelNodeGetParams, kernel))
}

/// What a node does, by what the driver says of its parameters, of so many bytes at most.
fn of_node(
    node: P,
    bytes: usize,
    ask: unsafe fn(P, *mut u8) -> i32,
    does: fn(&[u8]) -> Option<Does>,
) -> Option<Does> {
    // Of a multiple of the alignment that structs of the driver have.
    let mut words = [0u64; OF_COPY / 8];
    // SAFETY: a node of a graph that lives, and room for the parameters of each kind.
    if unsafe { ask(node, words.as_mut_ptr().cast()) } != 0 {
        return None;
    }
    // SAFETY: the bytes of the words, all of which have values.
    let all = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(&words)) };
    does(all.get(..bytes)?)
}

/// Whether kernels on the device may change a node.
fn is_updatable(node: P) -> bool {
    let mut value = [0u64; 8];
    // SAFETY: a kernel's node, and room for a value of any attribute. A driver that does not know it has no such nodes.
    let error = unsafe { driver::cuGraphKernelNodeGetAttribute(node, DEVICE_UPDATABLE, &mut value) };
    error == 0 && value.first().is_some_and(|word| *word as u32 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_what_their_sides_say() {
        let mut parameters = [0u8; OF_COPY];
        let mut set = |at: usize, value: u64| parameters[at..at + 8].copy_from_slice(&value.to_le_bytes());
        set(32, 2);
        set(120, 3);
        [176, 184, 192].into_iter().zip([256, 3, 2]).for_each(|(at, value)| set(at, value));
        let found = copy(&parameters).expect("a copy");
        assert_eq!((found.kind, found.memory, found.bytes), (4, [3, 4], 1536));
        // Without a driver each address is the program's own memory.
        parameters[32] = 1;
        parameters[40] = 16;
        let found = copy(&parameters).expect("a copy");
        assert_eq!((found.kind, found.memory), (3, [1, 4]));
        assert_eq!(
            copy(&parameters[..40]).map(|found| found.bytes),
            Some(0),
            "nothing is read behind the end"
        );
    }

    #[test]
    fn fills_have_elements_of_some_size() {
        let mut parameters = [0u8; OF_FILL];
        parameters[20] = 4;
        parameters[24] = 100;
        parameters[32] = 2;
        let found = fill(&parameters).expect("a fill");
        assert_eq!((found.kind, found.bytes), (5, 800));
        let mut of_any = [0u8; 256];
        of_any[0] = 2;
        of_any[16..16 + OF_FILL].copy_from_slice(&parameters);
        assert_eq!(any(&of_any).map(|found| found.bytes), Some(800));
        of_any[0] = 11;
        assert!(any(&of_any).is_none() && any(&[]).is_none());
    }

    #[test]
    fn a_kernel_without_a_handle_is_none() {
        assert!(kernel(&[0; 72]).is_none() && kernel(&[0; 56]).is_none() && kernel(&[]).is_none());
        assert!(list(null_mut()).is_none(), "there is no driver");
    }
}
