//! Events that say what a number of other events stands for.
//!
//! Commands name devices, queues and functions by numbers, which are given once in a trace;
//! `device-PID-names` has the definitions. What is written of a number twice replaces what was
//! known, but for [`Property`], which adds to its device.

use hetrace_ctf::class::{EventClass, StructClass};

use crate::command::{CommandKind, MemoryKind};
use crate::event;
use crate::field::{Field, Handle};

/// Makes of one table of fields a struct, its class, its bytes, and what reads it.
macro_rules! definitions {
    ($prefix:literal: $($(#[$about:meta])* $name:ident = $id:literal, $event:literal {
        $($(#[$meaning:meta])* $field:ident: $type:ty,)*
    })*) => { $(
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$meaning])* pub $field: $type,)*
        }

        impl $name {
            /// Number of the event in its stream class.
            pub const ID: u16 = $id;
            /// Its name.
            pub const EVENT: &str = concat!($prefix, ":", $event);

            /// Its class.
            pub fn class() -> EventClass {
                let fields = StructClass::default();
                $(let fields = fields.field(stringify!($field), <$type as Field>::class());)*
                event(Self::ID, Self::EVENT, fields)
            }

            /// Its fields' bytes.
            pub fn encode(&self) -> Vec<u8> {
                let mut body = Vec::with_capacity(128);
                $(self.$field.put(&mut body);)*
                body
            }

            /// From an event whose fields have these values. What is missing is 0 or empty.
            pub fn decode<'v>(value: impl Fn(&str) -> Option<hetrace_ctf::Scalar<'v>>) -> Self {
                $name { $($field: Field::get(value(stringify!($field))),)* }
            }
        }
    )* };
}
pub(crate) use definitions;

definitions! { "device":
    /// A device. What the API did not report is 0 or empty.
    Device = 66, "device" {
        /// Its number in the trace.
        device: u32,
        /// Its handle, or what else the API knows it by.
        handle: Handle,
        /// The API's number of it.
        ordinal: u32,
        /// Its name.
        name: String,
        /// The same in every process and API that sees the device.
        uuid: String,
        /// Compute units.
        compute_units: u32,
        /// Highest clock, kHz.
        clock_khz: u32,
        /// Highest memory clock, kHz.
        memory_khz: u32,
        /// Width of the memory's bus, bits.
        bus_bits: u32,
        /// Bytes of memory.
        memory_bytes: u64,
        /// The API that reported it; empty in older traces.
        api: String,
    }

    /// A property of a device.
    Property = 67, "property" {
        /// The device's number.
        device: u32,
        /// The property's name.
        name: String,
        /// Its value.
        value: u64,
    }

    /// A queue. One made anew at the handle of another is another one.
    Queue = 64, "queue" {
        /// Its number in the trace.
        queue: u32,
        /// Its handle.
        handle: Handle,
        /// Handle of its context.
        context: Handle,
        /// Number of its device.
        device: u32,
        /// The API that reported it.
        api: String,
        /// Properties as the program asked for them.
        properties: Handle,
        /// Its priority, as the API counts; 0 is ordinary.
        priority: i32,
        /// The API's own small number of it; 0 if there is none.
        number: u32,
    }

    /// A function that devices run. What the API did not report is 0.
    Function = 68, "function" {
        /// Its number in the trace.
        function: u32,
        /// Its name as the API reports it, mangled or not.
        name: String,
        /// Registers of each work-item.
        registers: u32,
        /// Bytes of local memory of a work-group that its code asks for.
        shared: u32,
        /// Bytes of private memory of a work-item.
        local: u32,
        /// Bytes of constant memory.
        constant: u32,
        /// Most work-items of a work-group.
        max_threads: u32,
    }

    /// How often a function was launched so far, where only some launches are timed. The last one holds. Commands
    /// that run no function are those of a function without a name: one for each kind, and for each pair of
    /// kinds of memory between which they move bytes.
    Launches = 69, "launches" {
        /// The function's number.
        function: u32,
        /// Launches.
        launches: u64,
        /// Those of them that were timed.
        timed: u64,
        /// Bytes that all of them moved or set; 0 for kernels, and in older traces.
        bytes: u64,
        /// Of `launches`, `timed` and `bytes`: nodes of graphs of whose launches the nodes of some are timed, and stand for
        /// the others. Older traces have none of what follows.
        nodes: u64,
        /// Those that were timed.
        nodes_timed: u64,
        /// Their bytes.
        nodes_bytes: u64,
        /// Of `launches` and `bytes`: nodes of graphs that were timed as a whole, or not at all.
        of_graphs: u64,
        /// Their bytes.
        of_graphs_bytes: u64,
        /// Nanoseconds that the time of a node may be off, with all others in the same way.
        nodes_off: u32,
        /// What the commands do.
        kind: CommandKind,
        /// Where their bytes come from.
        from: MemoryKind,
        /// Where these go to.
        to: MemoryKind,
    }
}

definitions! { "python":
    /// A Python stack: its innermost frame, and the stack around it. Equal ones have equal ids in all threads, processes
    /// and APIs, and may be defined more than once.
    PyFrame = 70, "frame" {
        /// Its id, by which `API:py_stack` names it.
        stack: Handle,
        /// The id of the stack without the innermost frame; 0 if there is no other.
        around: Handle,
        /// The line that the frame is at; 0 if it has none.
        line: u32,
        /// The first line of its function.
        first_line: u32,
        /// Its file, as the code names it.
        file: String,
        /// Its function's qualified name; before CPython 3.11 its name.
        name: String,
    }
}

definitions! { "native":
    /// A program or library whose code is on a stack. Equal ones have equal ids, and may be defined more than once.
    Module = 71, "module" {
        /// Its id, by which [`Frame`] names it.
        module: Handle,
        /// What is added to addresses of its file, in the process that defines it.
        base: Handle,
        /// Bytes of memory from its beginning to its end.
        bytes: u64,
        /// Its build id, to base 16; empty if it has none.
        build_id: String,
        /// Where its file is, as the process knows it.
        path: String,
    }

    /// A native stack: its innermost frame, and the stack around it. Equal ones have equal ids in all threads, processes
    /// and APIs, and may be defined more than once.
    Frame = 72, "frame" {
        /// Its id, by which `API:stack` names it.
        stack: Handle,
        /// The id of the stack without the innermost frame; 0 if there is no other, 2 if there are more than were
        /// recorded, 3 if how to unwind further is not known.
        around: Handle,
        /// The module that it is in; 0 if none.
        module: Handle,
        /// An address inside of the instruction that it is at, which most often is a call, as the module's file has it;
        /// without a module, in memory.
        address: Handle,
    }

    /// What an address of a module stands for, by its debug information or symbols. Where functions were inlined there
    /// are several.
    Symbol = 73, "symbol" {
        /// The module.
        module: Handle,
        /// The address.
        address: Handle,
        /// 0: the innermost function; each further one is what that was inlined into.
        level: u32,
        /// The function's name, as the linker has it.
        function: String,
        /// Its file; empty if that is not known.
        file: String,
        /// The line; 0 if that is not known.
        line: u32,
    }

    /// Where in the program calls are made which say so themselves, by the address that they return to. Addresses are a
    /// process's own, and hold from this event's time on.
    Code = 74, "code" {
        /// The address in memory, as the call has it.
        code: Handle,
        /// The id of the [`Frame`] that it stands for.
        stack: Handle,
    }
}

/// What a definition is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Definition {
    /// A [`Device`].
    Device,
    /// A [`Property`] of one.
    Property,
    /// A [`Queue`].
    Queue,
    /// A [`Function`].
    Function,
    /// [`Launches`] of one.
    Launches,
    /// A [`PyFrame`].
    PyFrame,
    /// A [`Module`].
    Module,
    /// A [`Frame`].
    Frame,
    /// A [`Symbol`].
    Symbol,
    /// A [`Code`].
    Code,
}

impl Definition {
    /// All of them, in the order in which the metadata has them.
    pub const ALL: [Self; 10] = [
        Self::Queue,
        Self::Device,
        Self::Property,
        Self::Function,
        Self::Launches,
        Self::PyFrame,
        Self::Module,
        Self::Frame,
        Self::Symbol,
        Self::Code,
    ];

    /// Returns the name of its event.
    pub const fn event(self) -> &'static str {
        match self {
            Self::Device => Device::EVENT,
            Self::Property => Property::EVENT,
            Self::Queue => Queue::EVENT,
            Self::Function => Function::EVENT,
            Self::Launches => Launches::EVENT,
            Self::PyFrame => PyFrame::EVENT,
            Self::Module => Module::EVENT,
            Self::Frame => Frame::EVENT,
            Self::Symbol => Symbol::EVENT,
            Self::Code => Code::EVENT,
        }
    }

    /// That of an event's name.
    pub fn of_event(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.event() == name)
    }

    /// Returns the class of its event.
    pub fn class(self) -> EventClass {
        match self {
            Self::Device => Device::class(),
            Self::Property => Property::class(),
            Self::Queue => Queue::class(),
            Self::Function => Function::class(),
            Self::Launches => Launches::class(),
            Self::PyFrame => PyFrame::class(),
            Self::Module => Module::class(),
            Self::Frame => Frame::class(),
            Self::Symbol => Symbol::class(),
            Self::Code => Code::class(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hetrace_ctf::write::Encoder;
    use hetrace_ctf::{Scalar, Value, class::FieldClass};

    use super::*;

    fn device() -> Device {
        Device {
            device: 3,
            handle: Handle(0xd),
            ordinal: 1,
            name: "GPU".to_owned(),
            uuid: String::new(),
            compute_units: 132,
            clock_khz: 4,
            memory_khz: 5,
            bus_bits: 6,
            memory_bytes: 1 << 40,
            api: "toy".to_owned(),
        }
    }

    /// The bytes are those that the class describes.
    #[test]
    fn bytes_are_as_the_class_says() {
        let class = Device::class().fields;
        let text = |text: &str| Value::Str(text.to_owned());
        let numbers = [132, 4, 5, 6, 1 << 40].map(Value::Unsigned);
        let mut values = vec![Value::Unsigned(3), Value::Unsigned(0xd), Value::Unsigned(1)];
        values.extend([text("GPU"), text("-")]);
        values.extend(numbers);
        values.push(text("toy"));
        let named = class.fields.iter().map(|f| f.name.clone()).zip(values).collect();
        let mut encoder = Encoder::new();
        encoder.structure(&class, &Value::Struct(named)).expect("values that fit");
        assert_eq!(device().encode(), encoder.into_bytes());
        assert!(matches!(&class.fields[1].class, FieldClass::Integer(_)));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let device = device();
        let value = |name: &str| {
            Some(match name {
                "device" => Scalar::Unsigned(3),
                "handle" => Scalar::Unsigned(0xd),
                "ordinal" => Scalar::Unsigned(1),
                "name" => Scalar::Str("GPU"),
                "uuid" => Scalar::Str("-"),
                "compute_units" => Scalar::Unsigned(132),
                "clock_khz" => Scalar::Unsigned(4),
                "memory_khz" => Scalar::Unsigned(5),
                "bus_bits" => Scalar::Unsigned(6),
                "memory_bytes" => Scalar::Unsigned(1 << 40),
                "api" => Scalar::Str("toy"),
                _ => return None,
            })
        };
        assert_eq!(Device::decode(value), device);
        // An older version wrote no API, and what is no number is none.
        let older = |name: &str| match name {
            "api" => None,
            "ordinal" => Some(Scalar::Str("one")),
            name => value(name),
        };
        assert_eq!(Device::decode(older), Device { api: String::new(), ordinal: 0, ..device });
    }

    #[test]
    fn events_have_their_numbers_and_names() {
        let all = Definition::ALL.map(|one| (one.class().id, one.event()));
        assert_eq!(
            all,
            [
                (64, "device:queue"),
                (66, "device:device"),
                (67, "device:property"),
                (68, "device:function"),
                (69, "device:launches"),
                (70, "python:frame"),
                (71, "native:module"),
                (72, "native:frame"),
                (73, "native:symbol"),
                (74, "native:code"),
            ]
        );
        for one in Definition::ALL {
            assert_eq!(Definition::of_event(one.event()), Some(one));
        }
        assert_eq!(Definition::of_event("device:kernel"), None);
    }
}
