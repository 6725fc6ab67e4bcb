//! Roles: what a field says to the reader itself.
//!
//! CTF 2 names them in the class of the field, CTF 1.8 by the name of the field.

/// What a field says to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Role {
    /// That a packet begins here.
    PacketMagicNumber,
    /// Which metadata the packet belongs to.
    MetadataStreamUuid,
    /// The class of the data stream.
    DataStreamClassId,
    /// Which data stream of that class.
    DataStreamId,
    /// Bits up to the next packet.
    PacketTotalLength,
    /// Bits up to the end of the last event.
    PacketContentLength,
    /// The clock, or its low bits.
    DefaultClockTimestamp,
    /// The clock at the packet's end, or its low bits.
    PacketEndDefaultClockTimestamp,
    /// How many events were discarded since the stream began.
    DiscardedEventRecordCounterSnapshot,
    /// The number of the packet.
    PacketSequenceNumber,
    /// The class of the event.
    EventRecordClassId,
}

impl Role {
    /// All roles, in the order of their declaration.
    pub const ALL: [Role; 11] = [
        Role::PacketMagicNumber,
        Role::MetadataStreamUuid,
        Role::DataStreamClassId,
        Role::DataStreamId,
        Role::PacketTotalLength,
        Role::PacketContentLength,
        Role::DefaultClockTimestamp,
        Role::PacketEndDefaultClockTimestamp,
        Role::DiscardedEventRecordCounterSnapshot,
        Role::PacketSequenceNumber,
        Role::EventRecordClassId,
    ];

    /// Returns the role as CTF 2 writes it.
    pub fn name(self) -> &'static str {
        match self {
            Role::PacketMagicNumber => "packet-magic-number",
            Role::MetadataStreamUuid => "metadata-stream-uuid",
            Role::DataStreamClassId => "data-stream-class-id",
            Role::DataStreamId => "data-stream-id",
            Role::PacketTotalLength => "packet-total-length",
            Role::PacketContentLength => "packet-content-length",
            Role::DefaultClockTimestamp => "default-clock-timestamp",
            Role::PacketEndDefaultClockTimestamp => "packet-end-default-clock-timestamp",
            Role::DiscardedEventRecordCounterSnapshot => "discarded-event-record-counter-snapshot",
            Role::PacketSequenceNumber => "packet-sequence-number",
            Role::EventRecordClassId => "event-record-class-id",
        }
    }
}

/// A set of roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Roles(u16);

impl Roles {
    /// Returns whether a role is in the set.
    pub fn has(self, role: Role) -> bool {
        self.0 & 1 << role as u8 != 0
    }

    /// Returns the set with one more role.
    pub fn with(self, role: Role) -> Self {
        Self(self.0 | 1 << role as u8)
    }

    /// Returns whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the roles in the order of their declaration.
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |&role| self.has(role))
    }
}
