//! The writer: hetrace's own form of a stream, and values of any class.
//!
//! hetrace's streams all have the same packet header, packet context and event
//! header ([`mod@form`]); [`PacketWriter`] makes packets of events whose payloads
//! somebody else has laid out. [`Encoder`] lays out a [`crate::Value`] by its class.

mod encode;
pub mod form;
mod packet;

pub use encode::{EncodeError, Encoder};
pub use form::{
    EventHeader, HEADER_LEN, MAX_GAP, PREAMBLE_LEN, PacketPreamble, clock_class, event_header_class,
    packet_context_class, packet_header_class, stream_class, stream_preamble, trace_class,
};
pub use packet::{PacketError, PacketWriter, StreamIdentity};
