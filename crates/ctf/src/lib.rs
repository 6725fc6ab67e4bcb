//! Common Trace Format 1.8 and 2: the reader beside the writer.
//!
//! CTF is a folder with a `metadata` file, which describes in a language of its
//! own (TSDL; JSON in CTF 2) how the bytes of the other files, the data streams,
//! are laid out. This crate has the description as data ([`class`]), the languages
//! in both directions ([`tsdl`], [`ctf2`]), the reader of streams ([`read`]) and the writer
//! ([`mod@write`]); and the form of a trace in one file ([`archive`]) and what was written
//! into one ([`account`]). It knows no tracing API, neither ours nor anybody else's.
//!
//! ```no_run
//! use hetrace_ctf::read::{Merge, Trace};
//!
//! let trace = Trace::open("my-trace".as_ref())?;
//! let mut events = Merge::new(&trace);
//! while let Some(event) = events.next_event() {
//!     match event {
//!         Ok(event) => println!("{:?} {}", event.ns_from_origin(), event.class().name),
//!         Err(damage) => eprintln!("{damage}"),
//!     }
//! }
//! # Ok::<(), hetrace_ctf::read::OpenError>(())
//! ```
//!
//! What binds it:
//! - No bytes whatsoever make it panic, recurse without bound, or loop forever:
//!   a trace is what is left of a crash.
//! - Reading needs memory for the metadata and one decoder state per stream,
//!   never for the events; of a compressed stream for one packet.
//! - What is lost or damaged is said (see [`read::StreamError`] and
//!   [`read::Losses`]), never left out quietly.
//! - The only `unsafe` is the mapping of files, in `read/map.rs`.

pub mod account;
pub mod archive;
pub mod bits;
pub mod class;
pub mod metadata;
pub mod read;
pub mod value;
pub mod write;

pub use metadata::{ctf2, tsdl};
pub use value::{Scalar, Value};
