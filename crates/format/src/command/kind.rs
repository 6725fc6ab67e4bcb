//! What a command does, and between which kinds of memory.

use std::fmt;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::FieldClass;

use crate::field::{Field, names};

/// Makes of one table of names an enumeration, whose values in the trace are positions.
macro_rules! named {
    ($(#[$about:meta])* $type:ident { $($(#[$meaning:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type { $($(#[$meaning])* $variant,)* }

        impl $type {
            /// All of them, by their numbers in the trace.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its name in the trace.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Its number in the trace.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// That of a number; none if it has none.
            pub fn of_number(number: u8) -> Option<Self> {
                Self::ALL.get(usize::from(number)).copied()
            }

            /// That of a name; none if this version does not know it.
            pub fn of_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

named! {
    /// What a command does.
    CommandKind {
        /// What has no kind of its own.
        #[default]
        Other = "other",
        /// Runs a function.
        Kernel = "kernel",
        /// Moves bytes from a device to the host.
        Read = "read",
        /// Moves bytes from the host to a device.
        Write = "write",
        /// Copies, wherever to: the kinds of memory say.
        Copy = "copy",
        /// Fills memory with a pattern.
        Fill = "fill",
        /// Makes device memory addressable by the host.
        Map = "map",
        /// Ends that.
        Unmap = "unmap",
        /// Moves memory between devices.
        Migrate = "migrate",
        /// Marks a place in a queue.
        Marker = "marker",
        /// Holds what follows back.
        Barrier = "barrier",
        /// Runs a function of the host.
        Native = "native",
        /// Frees memory in the order of a queue.
        Free = "free",
        /// Takes an object of another API.
        Acquire = "acquire",
        /// Gives it back.
        Release = "release",
        /// Runs a whole graph whose nodes are not distinguished.
        Graph = "graph",
    }
}

named! {
    /// Where bytes of a command lie.
    MemoryKind {
        /// Not reported.
        #[default]
        Unknown = "unknown",
        /// Of the host, and may be paged out.
        Pageable = "pageable",
        /// Of the host, and stays where it is.
        Pinned = "pinned",
        /// Of the device.
        Device = "device",
        /// An array or image of the device.
        Array = "array",
        /// Moves between host and device by itself.
        Managed = "managed",
        /// Of another device.
        Peer = "peer",
        /// Of the host, without saying of which kind.
        Host = "host",
    }
}

macro_rules! of_names {
    ($($type:ty),*) => { $(
        impl Field for $type {
            fn class() -> FieldClass {
                names(Self::ALL.iter().map(|one| one.name()))
            }

            fn put(&self, body: &mut Vec<u8>) {
                body.push(self.number());
            }

            fn get(value: Option<Scalar<'_>>) -> Self {
                // Names hold, whatever numbers a trace gives them.
                match value {
                    Some(Scalar::Enum { label: Some(name), .. }) => Self::of_name(name).unwrap_or_default(),
                    _ => Self::default(),
                }
            }
        }
    )* };
}

of_names! { CommandKind, MemoryKind }

impl MemoryKind {
    /// Returns whether it is memory of the host.
    pub const fn is_of_host(self) -> bool {
        match self {
            Self::Pageable | Self::Pinned | Self::Host => true,
            Self::Unknown | Self::Device | Self::Array | Self::Managed | Self::Peer => false,
        }
    }

    /// Returns whether it is known to be memory that a device has, or managed memory, which it has when
    /// it uses it.
    pub const fn is_of_device(self) -> bool {
        match self {
            Self::Device | Self::Array | Self::Managed | Self::Peer => true,
            Self::Unknown | Self::Pageable | Self::Pinned | Self::Host => false,
        }
    }
}

impl CommandKind {
    /// Returns whether a command of this kind keeps its device busy while it runs.
    pub const fn keeps_busy(self) -> bool {
        match self {
            Self::Marker | Self::Barrier | Self::Acquire | Self::Release | Self::Free => false,
            Self::Other
            | Self::Kernel
            | Self::Read
            | Self::Write
            | Self::Copy
            | Self::Fill
            | Self::Map
            | Self::Unmap
            | Self::Migrate
            | Self::Native
            | Self::Graph => true,
        }
    }
}

impl CommandKind {
    /// Returns whether commands of this kind move or set memory.
    pub const fn moves_memory(self) -> bool {
        match self {
            Self::Read | Self::Write | Self::Copy | Self::Fill | Self::Map | Self::Unmap | Self::Migrate => {
                true
            }
            Self::Other
            | Self::Kernel
            | Self::Marker
            | Self::Barrier
            | Self::Native
            | Self::Free
            | Self::Acquire
            | Self::Release
            | Self::Graph => false,
        }
    }

    /// Returns whether this is the name of a kind that moves or sets memory.
    pub fn name_moves_memory(name: &str) -> bool {
        Self::of_name(name).is_some_and(Self::moves_memory)
    }
}

/// Where a command moves bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the host to a device.
    ToDevice,
    /// From a device to the host.
    ToHost,
    /// Within a device's memory.
    Within,
    /// Between two devices.
    Peer,
}

impl Direction {
    /// That of a command; none if it moves nothing, or if it is not known where. `peer`: it
    /// names a second device.
    pub const fn of(kind: CommandKind, from: MemoryKind, to: MemoryKind, peer: bool) -> Option<Self> {
        match kind {
            CommandKind::Read => Some(Self::ToHost),
            CommandKind::Write => Some(Self::ToDevice),
            CommandKind::Copy | CommandKind::Migrate | CommandKind::Map | CommandKind::Unmap => {
                if peer || matches!(from, MemoryKind::Peer) || matches!(to, MemoryKind::Peer) {
                    return Some(Self::Peer);
                }
                // Of a device's command one side is the device's, whatever is not said of it.
                match (from.is_of_host(), to.is_of_host()) {
                    (true, true) => None,
                    (true, false) => Some(Self::ToDevice),
                    (false, true) => Some(Self::ToHost),
                    // A copy is one between objects of the device unless it says something else.
                    (false, false) if matches!(kind, CommandKind::Copy) => Some(Self::Within),
                    (false, false) if from.is_of_device() && to.is_of_device() => Some(Self::Within),
                    (false, false) => None,
                }
            }
            CommandKind::Other
            | CommandKind::Kernel
            | CommandKind::Fill
            | CommandKind::Marker
            | CommandKind::Barrier
            | CommandKind::Native
            | CommandKind::Free
            | CommandKind::Acquire
            | CommandKind::Release
            | CommandKind::Graph => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_lead_to_each_other() {
        for (number, kind) in (0u8..).zip(CommandKind::ALL) {
            assert_eq!((kind.number(), CommandKind::of_number(number)), (number, Some(*kind)));
            assert_eq!(CommandKind::of_name(kind.name()), Some(*kind));
        }
        for (number, kind) in (0u8..).zip(MemoryKind::ALL) {
            assert_eq!((kind.number(), MemoryKind::of_number(number)), (number, Some(*kind)));
            assert_eq!(MemoryKind::of_name(kind.name()), Some(*kind));
        }
        assert_eq!(CommandKind::of_number(200), None);
        assert_eq!(MemoryKind::of_name("card"), None);
    }

    #[test]
    fn directions_are_those_of_the_memory() {
        use CommandKind::{Copy, Fill, Kernel, Migrate, Read, Write};
        use MemoryKind::{Array, Device, Host, Managed, Pageable, Peer, Pinned, Unknown};
        for (kind, from, to, expected) in [
            (Read, Unknown, Unknown, Some(Direction::ToHost)),
            (Write, Unknown, Unknown, Some(Direction::ToDevice)),
            (Copy, Pageable, Device, Some(Direction::ToDevice)),
            (Copy, Pinned, Unknown, Some(Direction::ToDevice)),
            (Copy, Array, Host, Some(Direction::ToHost)),
            (Copy, Device, Managed, Some(Direction::Within)),
            (Copy, Unknown, Unknown, Some(Direction::Within)),
            (Copy, Device, Peer, Some(Direction::Peer)),
            (Copy, Pageable, Pinned, None),
            (Migrate, Unknown, Unknown, None),
            (Migrate, Host, Device, Some(Direction::ToDevice)),
            (Fill, Unknown, Device, None),
            (Kernel, Host, Device, None),
        ] {
            assert_eq!(Direction::of(kind, from, to, false), expected, "{kind} {from} {to}");
        }
        assert_eq!(Direction::of(Copy, Device, Device, true), Some(Direction::Peer));
    }
}
