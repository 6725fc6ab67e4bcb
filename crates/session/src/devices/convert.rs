//! Records of a ring as events of the trace. What is taken apart here is taken apart completely: a
//! member that a record gets cannot be forgotten.

use hetrace_format::Handle;
use hetrace_format::command::{CommandKind, Geometry, MemoryKind, Sizes};
use hetrace_format::define::{Device, Frame, Function, Launches, Module, Property, PyFrame, Queue};
use hetrace_format::object::{Object, ObjectKind, PARTS};
use hetrace_ring::abi::{
    COMMAND_KINDS, CommandRecord, CountRecord, DeviceRecord, FrameRecord, FunctionRecord, MEMORY_KINDS,
    ModuleRecord, OBJECT_PARTS, ObjectRecord, PyFrameRecord, QueueRecord, object, special,
};

/// Returns a text of a record. Programs may write anything.
pub fn owned(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Returns the definition of a queue.
pub fn queue(number: u32, device: u32, api: &str, record: &QueueRecord) -> Queue {
    let QueueRecord { queue, context, device: _, properties, resolution: _, priority, number: own, handle } =
        *record;
    Queue {
        queue: number,
        // What the program passes to its calls. Default queues share theirs, so that commands name a queue by its key.
        handle: Handle(if handle == 0 { queue } else { handle }),
        context: Handle(context),
        device,
        api: api.to_owned(),
        properties: Handle(properties),
        priority,
        number: own,
    }
}

/// Returns the definition of a device.
pub fn device(number: u32, name: &[u8], api: &str, record: &DeviceRecord) -> Device {
    let DeviceRecord {
        device,
        ordinal,
        compute_units,
        clock_khz,
        memory_khz,
        bus_bits,
        reserved: _,
        memory_bytes,
        uuid,
    } = *record;
    let uuid = uuid::Uuid::from_bytes(uuid);
    Device {
        device: number,
        handle: Handle(device),
        ordinal,
        name: owned(name),
        uuid: if uuid.is_nil() { String::new() } else { uuid.to_string() },
        compute_units,
        clock_khz,
        memory_khz,
        bus_bits,
        memory_bytes,
        api: api.to_owned(),
    }
}

/// Returns a property of a device.
pub fn property(device: u32, name: &[u8], value: u64) -> Property {
    Property { device, name: owned(name), value }
}

/// Returns the definition of a function.
pub fn function(number: u32, name: &[u8], record: &FunctionRecord) -> Function {
    let FunctionRecord { function: _, registers, shared, local, constant, max_threads, reserved: _ } =
        *record;
    Function { function: number, name: owned(name), registers, shared, local, constant, max_threads }
}

/// Returns how often a function was launched.
pub fn launches(number: u32, record: &CountRecord) -> Launches {
    let CountRecord { function: _, launches, timed, bytes, nodes, nodes_timed, nodes_bytes, .. } = *record;
    let CountRecord { of_graphs, of_graphs_bytes, nodes_off, kind, memory: [from, to], .. } = *record;
    Launches {
        function: number,
        launches,
        timed,
        bytes,
        nodes,
        nodes_timed,
        nodes_bytes,
        of_graphs,
        of_graphs_bytes,
        nodes_off,
        kind: CommandKind::of_number(kind).unwrap_or_default(),
        from: MemoryKind::of_number(from).unwrap_or_default(),
        to: MemoryKind::of_number(to).unwrap_or_default(),
    }
}

/// Returns a frame of a Python stack; behind the record stand the names of its file and its function.
pub fn py_frame(record: &PyFrameRecord, texts: &[u8]) -> PyFrame {
    let PyFrameRecord { stack, around, line, first_line, file, function } = *record;
    let (file, rest) = texts.split_at_checked(file as usize).unwrap_or_default();
    let name = rest.get(..function as usize).unwrap_or_default();
    let (stack, around) = (Handle(stack), Handle(around));
    PyFrame { stack, around, line, first_line, file: owned(file), name: owned(name) }
}

/// Returns a frame of a native stack.
pub fn frame(record: &FrameRecord) -> Frame {
    let FrameRecord { stack, around, module, address } = *record;
    let [stack, around, module, address] = [stack, around, module, address].map(Handle);
    Frame { stack, around, module, address }
}

/// Returns a module; behind the record stand its build id and its path.
pub fn module(record: &ModuleRecord, texts: &[u8]) -> Module {
    let ModuleRecord { module, base, start: _, bytes, build_id, path } = *record;
    let (id, rest) = texts.split_at_checked(build_id as usize).unwrap_or_default();
    let path = rest.get(..path as usize).unwrap_or_default();
    // The kernel's mark behind the name of a program whose file was removed meanwhile: another one may lie there.
    let path = owned(path.strip_suffix(b" (deleted)").unwrap_or(path));
    let build_id = id.iter().fold(String::new(), |id, byte| id + &format!("{byte:02x}"));
    Module { module: Handle(module), base: Handle(base), bytes, build_id, path }
}

/// Returns an object, whose call began at `cause`. None if this version has no such event.
pub fn object<'b>(record: &ObjectRecord, parts: [&'b [u8]; OBJECT_PARTS], cause: u64) -> Option<Object<'b>> {
    let ObjectRecord {
        object,
        other,
        cause: _,
        number,
        length,
        stored,
        hash,
        cause_tid,
        index,
        code,
        what,
        parts: _,
    } = *record;
    let kind = ObjectKind::of_number(what)?;
    Some(Object { kind, cause_tid, cause, object, other, number, length, stored, hash, index, code, parts })
}

/// Returns what a command does; a kind that this version does not have is `other`.
pub fn kind(number: u8) -> CommandKind {
    CommandKind::of_number(number).unwrap_or_default()
}

/// Returns a kind of memory; one that this version does not have is not known.
pub fn memory(number: u8) -> MemoryKind {
    MemoryKind::of_number(number).unwrap_or_default()
}

/// Returns how a kernel was launched.
pub fn geometry(record: &CommandRecord) -> Geometry {
    let dimensions = usize::from(record.dimensions).min(3);
    let sizes = |row: &[u64; 3]| Sizes::new(row.get(..dimensions).unwrap_or(row));
    let [offset, global, local] = &record.geometry;
    let cluster = record.cluster.map(u64::from);
    Geometry { offset: sizes(offset), global: sizes(global), local: sizes(local), cluster: sizes(&cluster) }
}

// Programs and the trace have the same numbers for the same things: what a program records becomes
// part of an event as it is.
const _: () = {
    assert!(PARTS == OBJECT_PARTS);
    assert!(hetrace_format::calls::UNKNOWN_ID == special::UNKNOWN);
    assert!(hetrace_format::calls::ERROR_TEXT_ID == special::ERROR_TEXT);
    assert!(hetrace_format::calls::OWN_WORK_ID == special::OWN_WORK);
    assert!(COMMAND_KINDS.len() == CommandKind::ALL.len());
    assert!(MEMORY_KINDS.len() == MemoryKind::ALL.len());
    assert!(object::SENT as usize + 1 == ObjectKind::ALL.len());
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_the_trace_have_the_same_names() {
        assert_eq!(CommandKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>(), COMMAND_KINDS);
        assert_eq!(MemoryKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>(), MEMORY_KINDS);
        for (number, expected) in [
            (object::SOURCE, "source"),
            (object::IL, "il"),
            (object::BINARY, "binary"),
            (object::BUILD_OPTIONS, "build_options"),
            (object::BUILD_LOG, "build_log"),
            (object::KERNEL, "kernel"),
            (object::KERNEL_ARG, "kernel_arg"),
            (object::PROPERTY, "property"),
            (object::BUFFER, "buffer"),
            (object::NOT_CAPTURED, "not_captured"),
            (object::TRUNCATED, "truncated"),
            (object::LAUNCH_ARGS, "launch_args"),
            (object::SENT, "sent"),
        ] {
            assert_eq!(ObjectKind::of_number(number).map(ObjectKind::name), Some(expected));
        }
    }
}
