//! The description of a trace: what the metadata says, as data.
//!
//! Reader and writer share it: [`crate::tsdl::parse`] makes it from text,
//! [`crate::tsdl::print`] makes text from it; [`crate::ctf2::parse`] and
//! [`crate::ctf2::print`] do so with the JSON of CTF 2.

use std::collections::BTreeMap;

mod clock;
mod encoding;
mod error;
mod field;
mod path;
pub(crate) mod resolve;
mod role;
pub(crate) mod scopes;
pub(crate) mod shared_enums;

pub use clock::clock_of;
pub use encoding::Encoding;
pub use error::PlanError;
pub use field::{
    ArrayClass, Base, BlobClass, BlobLength, ByteOrder, EnumClass, EnumMapping, Field, FieldClass,
    FloatClass, IntegerClass, IntegerForm, OptionRange, OptionalClass, SequenceClass, StringClass,
    StructClass, VariantClass,
};
pub use path::{FieldPath, Scope};
pub use role::{Role, Roles};

/// The magic number at the start of each packet of a data stream.
pub const PACKET_MAGIC: u32 = 0xC1FC_1FC1;

/// A whole trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceClass {
    /// Major version of the format: 1 or 2.
    pub major: u64,
    /// Minor version of the format: 8, or 0 for CTF 2.
    pub minor: u64,
    /// Identity of the trace, in CTF 2 of its metadata stream; packets repeat it.
    pub uuid: Option<[u8; 16]>,
    /// Its name in CTF 2.
    pub identity: Identity,
    /// The order meant by integers that name none.
    pub byte_order: ByteOrder,
    /// What each packet starts with.
    pub packet_header: Option<StructClass>,
    /// Facts on the environment, in the order written.
    pub env: Vec<(String, EnvValue)>,
    /// Clocks that integers may be mapped to.
    pub clocks: Vec<ClockClass>,
    /// Kinds of data streams.
    pub streams: Vec<StreamClass>,
}

impl TraceClass {
    /// Returns an empty CTF 1.8 trace.
    pub fn new(byte_order: ByteOrder) -> Self {
        Self {
            major: 1,
            minor: 8,
            uuid: None,
            identity: Identity::default(),
            byte_order,
            packet_header: None,
            env: Vec::new(),
            clocks: Vec::new(),
            streams: Vec::new(),
        }
    }

    /// Returns the clock of that name.
    pub fn clock(&self, name: &str) -> Option<&ClockClass> {
        self.clocks.iter().find(|c| c.name == name)
    }

    /// Returns the value of an environment entry.
    pub fn env(&self, name: &str) -> Option<&EnvValue> {
        self.env.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    /// Returns the stream class with that id.
    pub fn stream(&self, id: u64) -> Option<&StreamClass> {
        self.streams.iter().find(|s| s.id == id)
    }
}

/// What CTF 2 names its classes with; each part may be missing, and is in CTF 1.8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Whose names these are.
    pub namespace: Option<String>,
    /// The name, where the class has no other place for it.
    pub name: Option<String>,
    /// What distinguishes it from others of the same name.
    pub uid: Option<String>,
}

/// The value of an environment entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvValue {
    /// A number.
    Int(i64),
    /// A text.
    Str(String),
}

impl EnvValue {
    /// Returns the number, if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Str(_) => None,
        }
    }
}

/// A clock: what its ticks mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockClass {
    /// The name that mappings refer to.
    pub name: String,
    /// Identity; traces with the same one can be merged. LTTng puts the boot id here.
    pub uuid: Option<[u8; 16]>,
    /// For people.
    pub description: Option<String>,
    /// Ticks per second; never 0.
    pub frequency: u64,
    /// Uncertainty in ticks.
    pub precision: Option<u64>,
    /// Seconds from the origin to tick 0.
    pub offset_seconds: i64,
    /// Ticks to be added to `offset_seconds`.
    pub offset: u64,
    /// Whether the origin is the same for all traces with this clock. In CTF 2:
    /// whether it is the Unix epoch.
    pub absolute: bool,
    /// What CTF 2 says of it beyond that.
    pub more: ClockDetails,
}

/// What CTF 2 says of a clock beyond CTF 1.8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClockDetails {
    /// Its id in the metadata, where that is not its name.
    pub id: Option<String>,
    /// Namespace and uid; the name is the clock's.
    pub identity: Identity,
    /// Systematic error in ticks.
    pub accuracy: Option<u64>,
    /// Where its ticks are counted from, if not from the Unix epoch.
    pub origin: Option<Identity>,
}

impl ClockClass {
    /// Returns a clock of a given frequency whose tick 0 is the origin.
    pub fn new(name: impl Into<String>, frequency: u64) -> Self {
        Self {
            name: name.into(),
            uuid: None,
            description: None,
            frequency,
            precision: None,
            offset_seconds: 0,
            offset: 0,
            absolute: false,
            more: ClockDetails::default(),
        }
    }

    /// Nanoseconds from the origin at a tick; none where that exceeds an `i64`.
    #[inline]
    pub fn ns_from_origin(&self, ticks: u64) -> Option<i64> {
        // Nearly always, and for each event of a trace.
        if self.frequency == 1_000_000_000
            && let Some(ns) = self.offset.checked_add(ticks)
            && let Ok(ns) = i64::try_from(ns)
            && let Some(offset) = self.offset_seconds.checked_mul(1_000_000_000)
            && let Some(ns) = offset.checked_add(ns)
        {
            return Some(ns);
        }
        let total = u128::from(self.offset) + u128::from(ticks);
        let ns = if self.frequency == 1_000_000_000 {
            total
        } else {
            // At most 2^65 * 10^9 < 2^96, so this cannot overflow.
            total * 1_000_000_000 / u128::from(self.frequency.max(1))
        };
        let ns = i128::try_from(ns).ok()?;
        i64::try_from(i128::from(self.offset_seconds) * 1_000_000_000 + ns).ok()
    }
}

/// A kind of data stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamClass {
    /// The `stream_id` in packet headers.
    pub id: u64,
    /// Its name in CTF 2.
    pub identity: Identity,
    /// The name of its clock in CTF 2; in CTF 1.8 fields say so.
    pub clock: Option<String>,
    /// What follows the packet header.
    pub packet_context: Option<StructClass>,
    /// What each event starts with.
    pub event_header: Option<StructClass>,
    /// What follows the header of every event of the stream.
    pub event_context: Option<StructClass>,
    /// Kinds of events.
    pub events: Vec<EventClass>,
    /// Namespaces and uids of events in CTF 2, by their ids; only of those that have one.
    pub event_identities: BTreeMap<u64, Identity>,
}

/// A kind of event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventClass {
    /// The `id` in event headers.
    pub id: u64,
    /// The name.
    pub name: String,
    /// The log level, if the source has them.
    pub log_level: Option<i64>,
    /// Where the event's model is described (`model.emf.uri`).
    pub emf_uri: Option<String>,
    /// Context of this kind of event only.
    pub context: Option<StructClass>,
    /// The payload: TSDL's `fields`.
    pub fields: StructClass,
}
