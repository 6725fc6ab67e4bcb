//! The reader of data streams.
//!
//! A [`Trace`] is the metadata, compiled (`plan.rs`), and the bytes of the files.
//! A [`StreamReader`] walks over one file, packet by packet and event by event;
//! a [`Merge`] over all of them in the order of time. Finding the end of an
//! event needs only its lengths and tags; fields are decoded when asked for. Most
//! events take a quick way (`quick.rs`), the others the long one (`decode.rs`).
//! Compressed files are decompressed on the way (`frames.rs`). Who wants only few fields
//! of many events scans them (`scan.rs`), and all of some picks them (`pick.rs`), those that repeat but for their times
//! only once (`alike.rs`).
//! [`Files`] is where all that comes from: a folder, or one packed into a file; [`Tails`] are
//! files that grow meanwhile.

mod alike;
mod clock;
mod compile;
mod decode;
mod ends;
mod error;
mod event;
mod files;
mod frames;
mod gather;
mod map;
mod merge;
mod packet;
mod packets;
mod parts;
mod pick;
mod plan;
mod quick;
mod resolve;
mod scan;
mod scopes;
mod series;
mod source;
mod steps;
mod stream;
mod tail;
mod trace;
mod visit;

/// What the printer of CTF 2 metadata needs to know, too.
pub(crate) mod internal {
    pub(crate) use super::compile::ranges;
    pub(crate) use super::resolve::{ELEMENT, Place, resolve};
    pub(crate) use super::scopes::Scopes;
    pub(crate) use super::trace::clock_of;
}

pub use alike::{Known, Varying};
pub use error::{DecodeError, OpenError, PacketDamage, PlanError, StreamError};
pub use event::Event;
pub use files::{Content, Files, PACKED, session};
pub use gather::{Gatherer, Slots};
pub use merge::Merge;
pub use packet::PacketInfo;
pub use packets::{Packet, PacketReader, clock_bits};
pub use parts::FrameHeads;
pub use pick::{Leading, Picked, Picker};
pub use scan::{EventView, EventVisitor, Next, Pause, Scanned, Scanner, Want};
pub use series::{Member, Part, Repeated};
pub use stream::{Losses, StreamReader};
pub use tail::{Gone, Grown, Pending, Tail, Tails};
pub use trace::{Trace, clock_of};
pub use visit::{FieldRef, FieldVisitor};
