//! Sizes, and directions of copies, that take knowledge of the API; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;

/// Sizes of the types that attributes have.
const INT: usize = 4;
const LONG: usize = 8;
/// A truth value, of which programs give room for one byte or four. The lowest byte says it all.
const TRUTH: usize = 1;

/// Bytes of the value of a `hipPointer_attribute`; 0 for one that is not known.
pub fn pointer_attribute_bytes(attribute: usize) -> usize {
    match attribute {
        // Context, addresses, buffer, range, pool.
        1 | 3 | 4 | 7 | 11 | 12 | 17 => LONG,
        // P2P tokens: a struct.
        5 => 16,
        // Memory type, device, handle types, access; and the one that can be set.
        2 | 6 | 9 | 14 | 16 => INT,
        // Managed, IPC capable, mapped, RDMA capable.
        8 | 10 | 13 | 15 => TRUTH,
        _ => 0,
    }
}

/// Bytes of the value of a `hipMemPoolAttr`; 0 for one that is not known.
pub fn pool_attribute_bytes(attribute: usize) -> usize {
    match attribute {
        // What may be reused.
        1..=3 => INT,
        // Sizes.
        4..=8 => LONG,
        _ => 0,
    }
}

/// Bytes of what an allocation or pool of a `hipMemAllocationHandleType` is exported to: a file descriptor.
pub fn exported_bytes(handle_type: usize) -> usize {
    if handle_type == 1 { INT } else { 0 }
}

/// 1 for a `hipStreamCaptureStatus` that says the stream is capturing, else 0: of an invalid capture HIP returns
/// nothing more.
pub fn if_capturing(status: usize) -> usize {
    usize::from(status == 1)
}

/// What a copy of a `hipMemcpyKind` is, as an index into `COMMAND_KINDS`, and where its bytes come from and go to, as
/// indexes into `MEMORY_KINDS`. Where HIP looks at the addresses itself, the kind does not say.
pub fn copied(kind: usize) -> (u8, [u8; 2]) {
    const READ: u8 = 2;
    const WRITE: u8 = 3;
    const COPY: u8 = 4;
    const DEVICE: u8 = 3;
    const HOST: u8 = 7;
    match kind {
        0 => (COPY, [HOST, HOST]),
        1 => (WRITE, [HOST, DEVICE]),
        2 => (READ, [DEVICE, HOST]),
        3 => (COPY, [DEVICE, DEVICE]),
        _ => (COPY, [0, 0]),
    }
}
