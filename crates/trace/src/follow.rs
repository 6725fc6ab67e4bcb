//! A trace that is being recorded, followed: each look costs what is new.
//!
//! ```text
//!  Follower::read   metadata and models, if there are more now; new packets of each stream
//!           │       (stream by stream, at most some MiB at a time)
//!  Follower::walk   what of that is before a time goes into sums, which keep what they have
//! ```
//! Whoever writes the trace declares an event before the first packet that has it, and writes a model before that.
//! So streams are looked at first, and then what describes them. A packet that is not whole is left for the next look.
//! Of a series of parts each stream goes on from one part to the next, and what describes them is the last part's.
//! Sums are those of [`fast`](crate::spans::fast), so that a finished trace gives what it gives to a
//! [`walk`](crate::spans::fast::walk).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hetrace_ctf::read::{Files, Gone, Pending, Tails, Trace as Streams};
use hetrace_ctf::tsdl::Growing;
use hetrace_model::Model;

use crate::spans::fast::{CallSink, Ended, Steps};
use crate::trace::{FunctionId, Manifest, OpenError, Trace, manifest, model, model_names};

/// Bytes that a look reads at most, over all streams, and of each stream at least.
const ROOM: usize = 32 << 20;
const LEAST: usize = 512 << 10;

/// Follows the trace in a folder, or the series of parts there.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    files: Files,
    tails: Tails,
    trace: Trace,
    /// The metadata that is understood, in whole declarations.
    metadata: Vec<u8>,
    /// Names of the models that the trace has.
    models: Vec<String>,
    /// Packets of each stream that were not walked to their end.
    streams: Vec<(String, Pending)>,
    steps: Steps,
    /// Bytes that a look reads of a stream.
    room: usize,
    /// The time that all streams have reached of which there is more.
    reached: Option<u64>,
    ended: Option<Ended>,
}

/// What a look has found.
#[derive(Debug, Default)]
pub struct Look {
    /// Bytes of packets that are new.
    pub bytes: u64,
    /// Whether there is more by now than a look reads: then the next one need not wait.
    pub more: bool,
    /// If functions have other numbers now: the new one by the old one. Functions that are new have numbers behind.
    pub renumbered: Option<Vec<FunctionId>>,
    /// Whether there may be new functions.
    pub grown: bool,
}

impl Follower {
    /// Begins with a trace, of which nothing is read yet.
    ///
    /// # Errors
    /// When there is none, when it is packed into one file, or when it cannot be understood.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let files = Files::open(path)?;
        let none = || hetrace_ctf::read::OpenError::NoTrace { path: path.to_owned() };
        if files.is_packed() {
            return Err(none().into());
        }
        let metadata = whole(files.read("metadata").ok().flatten().ok_or_else(none)?);
        let ctf = Streams::from_parts(&metadata, Vec::new())?;
        let manifest = manifest(&files, false, &mut Vec::new())?;
        let in_parts = files.parts().next().is_some();
        let tails = Tails::new(if in_parts { path } else { files.path() });
        let mut follower = Self {
            path: path.to_owned(),
            trace: Trace::new(ctf, Vec::new(), manifest),
            files,
            tails,
            metadata,
            models: Vec::new(),
            streams: Vec::new(),
            steps: Steps::default(),
            room: LEAST,
            reached: None,
            ended: None,
        };
        let more = follower.new_models();
        if !more.is_empty() {
            follower.rebuild(more)?;
        }
        Ok(follower)
    }

    /// Reads what is new, at most some MiB.
    ///
    /// # Errors
    /// When the folder, or what describes the streams, cannot be read or understood.
    pub fn read(&mut self) -> Result<Look, OpenError> {
        let io = |source| hetrace_ctf::read::OpenError::Io { path: self.files.path().to_owned(), source };
        if self.tails.look().map_err(io)? {
            self.look_again();
        }
        let mut look = Look::default();
        let share = (ROOM / self.tails.all().len().max(1)).clamp(LEAST, ROOM).max(self.room);
        let mut reached = None::<u64>;
        let known = self.streams.len();
        self.streams.extend(
            self.tails.all().iter().skip(known).map(|tail| (tail.name().to_owned(), Pending::default())),
        );
        // A stream is declared before its first packet is written, so by now that of each file is; what is read below may
        // have events that are declared later, which are described afterwards.
        let fresh = match self.streams.len() > known {
            true => Some(Streams::from_parts(&self.declared(), Vec::new())?),
            false => None,
        };
        let ctf = fresh.as_ref().unwrap_or(self.trace.ctf());
        for (tail, (_, bytes)) in self.tails.all_mut().iter_mut().zip(&mut self.streams) {
            let grown = tail.read(ctf, share, bytes);
            look.bytes += grown.bytes;
            if let Some(end) = grown.more {
                look.more = true;
                // Of what does not say when it ends, nothing can be waited for.
                reached = end.into_iter().chain(reached).min();
            }
        }
        self.reached = reached;
        self.describe(&mut look)?;
        Ok(look)
    }

    /// Reads what describes the streams, if there is more of it.
    fn describe(&mut self, look: &mut Look) -> Result<(), OpenError> {
        let metadata = self.declared();
        if metadata.len() <= self.metadata.len() {
            return Ok(());
        }
        self.metadata = metadata;
        let more = self.new_models();
        let before = self.rebuild(more)?;
        look.grown = true;
        let functions = self.trace.functions();
        let name = |f: &crate::trace::Function| (functions.apis().get(f.api).cloned(), f.name.clone());
        let now: HashMap<_, _> =
            (0u32..).zip(functions.all()).map(|(id, f)| (name(f), FunctionId(id))).collect();
        // A function that is gone has no number: none is, as metadata only grows.
        let new: Vec<FunctionId> = before.iter().map(|f| now.get(f).copied().unwrap_or_default()).collect();
        if (0u32..).zip(&new).any(|(old, new)| FunctionId(old) != *new) {
            self.steps.renumber(|id| new.get(id.index()).copied().unwrap_or_default());
            look.renumbered = Some(new);
        }
        Ok(())
    }

    /// Returns what describes the streams by now: never less than what is understood already.
    fn declared(&self) -> Vec<u8> {
        let now = self.files.read("metadata").ok().flatten().map(whole);
        now.filter(|now| now.len() > self.metadata.len()).unwrap_or_else(|| self.metadata.clone())
    }

    /// Puts the trace together anew. Returns the API and the name of each function as it was before.
    fn rebuild(&mut self, more: Vec<Model>) -> Result<Vec<(Option<String>, String)>, OpenError> {
        let ctf = Streams::from_parts(&self.metadata, Vec::new())?;
        let functions = self.trace.functions();
        let name = |f: &crate::trace::Function| (functions.apis().get(f.api).cloned(), f.name.clone());
        let before = functions.all().iter().map(name).collect();
        let empty = Streams::from_parts(&self.metadata, Vec::new())?;
        let trace = std::mem::replace(&mut self.trace, Trace::new(empty, Vec::new(), Manifest::default()));
        let manifest = trace.manifest().clone();
        self.trace = trace.grown(ctf, more, manifest);
        Ok(before)
    }

    /// Reads the models that are new; one that is not whole yet is read when the metadata grow again.
    fn new_models(&mut self) -> Vec<Model> {
        let names = model_names(&self.files);
        let fresh: Vec<String> = names.into_iter().filter(|name| !self.models.contains(name)).collect();
        let mut more = Vec::new();
        for name in fresh {
            if let Ok(Some(model)) = model(&self.files, &name) {
                more.push(model);
                self.models.push(name);
            }
        }
        more
    }

    /// Walks over what was read and is before the time `until`; over all of it if there is none. Whoever says a time
    /// knows that nothing of an earlier one comes any more.
    ///
    /// # Errors
    /// When the time of a stream goes back: such a trace can't be followed.
    pub fn walk<B: CallSink>(&mut self, until: Option<u64>, sums: &mut B) -> Result<(), Ended> {
        if self.ended.is_some() {
            return Err(Ended::Unfit);
        }
        let until = until.into_iter().chain(self.reached).min();
        let events = self.steps.summary().events;
        self.trace.exchange(std::mem::take(&mut self.streams));
        let done = self.steps.step(&self.trace, until, sums);
        self.streams = self.trace.exchange(Vec::new());
        if let Err(error) = done {
            self.ended = Some(Ended::Unfit);
            return Err(error);
        }
        for ((_, bytes), offset) in self.streams.iter_mut().zip(self.steps.offsets()) {
            bytes.forget(usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len()));
        }
        // All of one time: it takes more room to see one that is later.
        let stuck = self.reached.is_some() && self.steps.summary().events == events;
        self.room = if stuck { self.room.saturating_mul(2) } else { LEAST };
        Ok(())
    }

    /// Reads the manifest again: the last one, say, when recording has ended.
    ///
    /// # Errors
    /// When it is of another form.
    pub fn read_manifest(&mut self) -> Result<(), OpenError> {
        self.look_again();
        self.trace.renew(manifest(&self.files, false, &mut Vec::new())?);
        Ok(())
    }

    /// Finds the parts of a series again.
    fn look_again(&mut self) {
        if self.files.parts().next().is_none() {
            return;
        }
        // Where that is not possible now, what is known is good enough.
        if let Ok(files) = Files::open(&self.path) {
            self.files = files;
        }
    }

    /// Parts of a series that were removed before they were read.
    pub fn gone(&self) -> Gone {
        self.tails.gone()
    }

    /// Whether all that was read can be read again.
    pub fn is_there(&self) -> bool {
        self.tails.are_there()
    }

    /// The trace, without streams: what numbers stand for.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// What is kept between looks: threads, totals and open calls.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// The same, to finish the walk.
    pub fn steps_mut(&mut self) -> &mut Steps {
        &mut self.steps
    }

    /// Bytes of the stream files that were read so far.
    pub fn read_bytes(&self) -> u64 {
        self.tails.all().iter().map(hetrace_ctf::read::Tail::read_bytes).fold(0, u64::saturating_add)
    }

    /// Bytes that are kept for the next look: of each stream, the packets that were not walked to their end.
    pub fn kept_bytes(&self) -> usize {
        self.streams.iter().map(|(_, pending)| pending.len()).sum()
    }

    /// The streams that could not be read any further, and why.
    pub fn broken(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tails.all().iter().filter_map(|tail| Some((tail.name(), tail.broken()?)))
    }
}

/// Returns the whole declarations of metadata; whoever writes them may be in the middle of one.
fn whole(mut metadata: Vec<u8>) -> Vec<u8> {
    if let Ok(text) = std::str::from_utf8(&metadata) {
        let whole = Growing::whole(text);
        // Of another tracer, or of one that ends otherwise, all counts.
        if whole > 0 {
            metadata.truncate(whole);
        }
    }
    metadata
}
