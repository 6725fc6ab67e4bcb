//! A trace: its classes, compiled, and its files.

use std::path::Path;

use super::compile::{Compiler, Slots};
use super::data::DataFile;
use super::error::OpenError;
use super::files::Files;
use super::map::Bytes;
use super::pending::Pending;
use super::plan::Node;
use super::stream_plan::StreamPlan;
use crate::class::scopes::Scopes;
use crate::class::{Scope, TraceClass};
use crate::metadata;

/// An open trace.
#[derive(Debug)]
pub struct Trace {
    class: TraceClass,
    pub(super) plans: Vec<StreamPlan>,
    /// The packet header, before it is known of which stream the packet is.
    pub(super) header: Option<Node>,
    pub(super) files: Vec<DataFile>,
}

impl Trace {
    /// Opens a trace: a folder with `metadata` and every other file in it as a data
    /// stream, such a folder packed into one file, or a folder with one trace somewhere
    /// inside (see [`Files`]).
    ///
    /// As with babeltrace2, subfolders, hidden files and empty files are passed
    /// over. Streams are in the order of their names. Those whose name ends in
    /// `.zst` are zstd frames, which are decompressed one after the other as they
    /// are read: a packet of such a file has at most 256 MiB.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::from_files(&Files::open(path)?)
    }

    /// The same for files that are open.
    pub fn from_files(files: &Files) -> Result<Self, OpenError> {
        let metadata = files.metadata()?;
        Self::new(metadata::parse(&metadata)?, files.streams()?)
    }

    /// Returns a trace from bytes in memory: the metadata, and streams by name, where
    /// `.zst` means what it means in [`Self::open`].
    pub fn from_parts(metadata: &[u8], streams: Vec<(String, Vec<u8>)>) -> Result<Self, OpenError> {
        Self::from_class(metadata::parse(metadata)?, streams)
    }

    /// The same with metadata that is already understood.
    pub fn from_class(class: TraceClass, streams: Vec<(String, Vec<u8>)>) -> Result<Self, OpenError> {
        let file = |(name, data)| DataFile::new(name, Bytes::Owned(data));
        Self::new(class, streams.into_iter().map(file).collect())
    }

    fn new(class: TraceClass, files: Vec<DataFile>) -> Result<Self, OpenError> {
        if !matches!((class.major, class.minor), (1, 8) | (2, 0)) {
            return Err(OpenError::Version { major: class.major, minor: class.minor });
        }
        let scopes = Scopes { trace: &class, stream: None, event: None };
        let mut slots = Slots::default();
        let mut compiler = Compiler { scopes, clock: None, slots: &mut slots };
        compiler.collect(Scope::PacketHeader, Scope::PacketHeader)?;
        let header = compiler.scope(Scope::PacketHeader)?;
        let plans: Result<_, _> = class.streams.iter().map(|s| StreamPlan::new(&class, s)).collect();
        Ok(Self { plans: plans?, header, files, class })
    }

    /// Puts other streams in the place of its own, from bytes in memory that are not compressed. Returns those that
    /// such a call has put there before.
    pub fn exchange(&mut self, streams: Vec<(String, Pending)>) -> Vec<(String, Pending)> {
        let files = streams.into_iter().map(|(name, pending)| DataFile::pending(name, pending)).collect();
        std::mem::replace(&mut self.files, files).into_iter().map(DataFile::into_pending).collect()
    }

    /// Returns what the metadata says.
    pub fn class(&self) -> &TraceClass {
        &self.class
    }

    /// Returns how many data stream files there are.
    pub fn stream_count(&self) -> usize {
        self.files.len()
    }

    /// Bytes of one data stream file, as it lies there; none beyond the last.
    pub fn stream_len(&self, index: usize) -> Option<u64> {
        self.files.get(index).map(DataFile::len)
    }

    /// Returns the name of one data stream file; none beyond the last.
    pub fn stream_name(&self, index: usize) -> Option<&str> {
        self.files.get(index).map(|file| file.name.as_str())
    }

    /// Bytes of one data stream, decompressed; none beyond the last, or if the frames of a compressed
    /// one do not all say theirs.
    pub fn plain_len(&self, index: usize) -> Option<u64> {
        let file = self.files.get(index)?;
        if file.is_compressed() { file.plain_len() } else { Some(file.len()) }
    }
}
