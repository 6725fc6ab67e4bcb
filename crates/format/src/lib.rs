//! What a hetrace trace contains: the manifest, events of devices, telemetry, objects and calls.
//!
//! Whoever writes a trace and whoever reads one stand on the same types here, so that a new
//! field is one edit, and the compiler names every place that has to follow.
//!
//! ```text
//!  session ──► Command, Device, Sample, Object, Manifest ──► bytes          the writing side
//!  trace, edit ◄── command::Reader, definitions, Manifest ◄── bytes         the reading side
//!                         └── one table of fields for both, and for the metadata
//! ```
//!
//! # Version rule
//!
//! Readers find events by name and fields by name, take what they know, and pass over the rest.
//! Events, fields and members of the manifest may therefore be added at any time, and may be
//! missing in what an older version wrote: every field has a meaning when it is not there.
//! A change of what one means, of a unit, or of a name raises [`SCHEMA`]. How packets and events
//! are laid out is what the metadata says, and may change without notice.
//!
//! Whoever *changes* a trace must not drop silently what it does not know:
//! [`Manifest::parse_strictly`] names such members.

pub mod calls;
pub mod class;
pub mod command;
pub mod define;
mod field;
pub mod files;
pub mod job;
pub mod lasting;
pub mod manifest;
pub mod object;
pub mod sample;
pub mod telemetry;
pub mod window;

use hetrace_ctf::class::{EventClass, StructClass};

pub use field::{Handle, text};
pub use manifest::Manifest;

/// Version of what a trace contains, as `schema` in the manifest.
pub const SCHEMA: u32 = 2;

fn event(id: u16, name: &str, fields: StructClass) -> EventClass {
    EventClass {
        id: u64::from(id),
        name: name.to_owned(),
        log_level: None,
        emf_uri: None,
        context: None,
        fields,
    }
}
