//! The reader of data streams.
//!
//! A [`Trace`] is the metadata, compiled (`stream_plan.rs`), and the bytes of the files.
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
mod data;
mod decode;
mod ends;
mod error;
mod event_plan;
mod files;
mod frames;
mod gather;
mod integer;
mod map;
mod merge;
mod packet;
mod packets;
mod parts;
mod pending;
mod pick;
mod plan;
mod position;
mod quick;
mod scan;
mod source;
mod steps;
mod stream;
mod stream_plan;
mod tail;
mod trace;
mod visit;

pub use crate::archive::PACKED;
pub use crate::class::{PlanError, clock_of};
pub use alike::{Known, Varying};
pub use data::Repeated;
pub use error::{DecodeError, OpenError, PacketDamage, StreamError};
pub use files::{Content, Files, Member, Part, session};
pub use gather::{Gatherer, Slots};
pub use merge::Merge;
pub use packet::PacketInfo;
pub use packets::{Packet, PacketReader, clock_bits};
pub use parts::FrameHeads;
pub use pending::Pending;
pub use pick::{Leading, Picked, Picker};
pub use scan::{EventView, EventVisitor, Next, Pause, Scanned, Scanner, Want};
pub use stream::{Event, Losses, StreamReader};
pub use tail::{Gone, Grown, Tail, Tails};
pub use trace::Trace;
pub use visit::{FieldRef, FieldVisitor};
