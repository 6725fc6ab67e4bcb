//! Declares in the metadata what is written into streams, before it is written.
//!
//! ```text
//!   Stream ── ids that are new in it ──► Declarations ──► metadata, hetrace/model/API.json
//!      └──── the packet ───────────────────────────────► stream file
//! ```
//! A program uses few of the APIs that a machine has, and few of their functions. So the metadata begins without streams of
//! APIs and without events, and each is added when the first packet comes that is of the stream, or has the event: what is
//! in the streams can be read at any moment, also if this launcher is killed. The same holds for models: that of an API is written when its
//! first record comes ([decision 0041]).
//!
//! [decision 0041]: https://github.com/hetrace/hetrace/blob/main/docs/decisions/0041-what-is-used.md

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hetrace_ctf::account::FileAccount;
use hetrace_ctf::class::{EventClass, TraceClass};
use hetrace_ctf::tsdl::Growing;
use hetrace_ctf::write::form;
use hetrace_format::class::{DEVICE_STREAM, api_stream, device_event};
use hetrace_format::{calls, files, object};
use hetrace_model::Model;
use hetrace_model::index;

use crate::access::Access;
use crate::apis::{Found, Name};

/// What a trace's metadata declares.
#[derive(Debug)]
pub struct Declarations(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The metadata.
    file: File,
    /// Bytes of whole declarations in it.
    length: u64,
    text: Growing,
    done: Done,
    apis: Vec<Api>,
    models: Models,
}

/// What is declared.
#[derive(Debug)]
struct Done {
    streams: HashSet<u32>,
    /// Stream class and event, also of what can't be declared: nobody knows such an event.
    events: HashSet<(u32, u16)>,
}

/// Where models are written to, and which are.
#[derive(Debug)]
struct Models {
    trace: PathBuf,
    access: Access,
    written: Vec<FileAccount>,
}

/// An API of the session.
#[derive(Debug)]
struct Api {
    name: Name,
    /// Its library, or why that is not to be had.
    library: Result<Found, String>,
    /// Its model as the library has it, and without functions, once it is needed.
    model: Option<(Vec<u8>, Model)>,
    /// The trace has it.
    is_there: bool,
}

impl Declarations {
    /// Those of a trace that begins now: all that `class` has is written. The APIs are in the session's order.
    ///
    /// # Errors
    /// When the metadata can't be written.
    pub fn begin(trace: PathBuf, access: Access, class: &TraceClass, apis: &[Found]) -> io::Result<Self> {
        let (text, begin) = Growing::begin(class);
        let file = access.make_file(&trace.join(files::METADATA))?;
        file.write_all_at(begin.as_bytes(), 0)?;
        // Nothing is in the folder yet.
        let apis = apis.iter().map(|found| Api::new(found.api.clone(), Ok(found.clone()), false)).collect();
        let done = declared(class);
        Ok(Self::new(trace, access, (file, begin.len() as u64, text), done, apis))
    }

    /// Goes on with the metadata of another launcher, which was killed.
    ///
    /// # Errors
    /// When the metadata can't be read or written.
    pub fn resume(
        trace: PathBuf,
        access: Access,
        apis: impl Iterator<Item = (Name, Result<Found, String>)>,
    ) -> io::Result<Self> {
        let path = trace.join(files::METADATA);
        if !path.symlink_metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "metadata is no plain file"));
        }
        let mut text = std::fs::read_to_string(&path)?;
        // It may have been killed while it wrote.
        text.truncate(Growing::whole(&text));
        let class = hetrace_ctf::tsdl::parse(text.as_bytes()).map_err(io::Error::other)?;
        let file = File::options().write(true).open(&path)?;
        file.set_len(text.len() as u64)?;
        let growing = Growing::resume(class.byte_order, &text);
        let api = |(name, library): (Name, _)| {
            let is_there = trace.join(files::model(&name)).exists();
            Api::new(name, library, is_there)
        };
        let apis = apis.map(api).collect();
        Ok(Self::new(trace, access, (file, text.len() as u64, growing), declared(&class), apis))
    }

    fn new(
        trace: PathBuf,
        access: Access,
        (file, length, text): (File, u64, Growing),
        done: Done,
        apis: Vec<Api>,
    ) -> Self {
        let models = Models { trace, access, written: Vec::new() };
        Self(Mutex::new(State { file, length, text, done, apis, models }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Declares a stream class and events of it, if they are not yet.
    ///
    /// # Errors
    /// When the metadata or a model can't be written, or a library can't be read: what has these events
    /// can't be read, either.
    pub fn declare(&self, class: u32, ids: &[u16]) -> io::Result<()> {
        self.state().declare(class, ids)
    }

    /// Writes the model of an API that has something in the trace, by its number in the session, if it is
    /// not there yet.
    ///
    /// # Errors
    /// When that is not possible. It is tried again when its first event is declared.
    pub fn need_model(&self, api: usize) -> io::Result<()> {
        let State { apis, models, .. } = &mut *self.state();
        apis.get_mut(api).map_or(Ok(()), |api| models.need(api))
    }

    /// Returns the library of an API, by its number in the session.
    pub fn library(&self, api: usize) -> Option<Found> {
        self.state().apis.get(api).and_then(|api| api.library.as_ref().ok().cloned())
    }

    /// Begins another metadata with all that is declared by now, in the folder of another part of the run.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn begin_elsewhere(&self, folder: &Path) -> io::Result<Elsewhere> {
        let state = self.state();
        let file = state.models.access.make_file(&folder.join(files::METADATA))?;
        let text = state.whole()?;
        file.write_all_at(&text, 0)?;
        Ok(Elsewhere { file, length: text.len() as u64 })
    }

    /// Goes on with it, now that its folder has its name.
    pub fn go_on(&self, elsewhere: Elsewhere, folder: &Path) {
        let mut state = self.state();
        let Elsewhere { file, length } = elsewhere;
        if length != state.length {
            // Nobody declares meanwhile but who goes over; what was declared nevertheless is not to be lost.
            let _ = state.whole().and_then(|text| file.write_all_at(&text, 0));
        }
        state.file = file;
        state.models.trace = folder.to_owned();
    }

    /// Returns what is in the models that were written.
    pub fn models(&self) -> Vec<FileAccount> {
        self.state().models.written.clone()
    }
}

/// Returns all streams and events of a class.
fn declared(class: &TraceClass) -> Done {
    let events = |stream: &hetrace_ctf::class::StreamClass| {
        let id = u32::try_from(stream.id).ok();
        let events = stream.events.iter().filter_map(|event| u16::try_from(event.id).ok());
        events.filter_map(move |event| Some((id?, event))).collect::<Vec<_>>()
    };
    Done {
        streams: class.streams.iter().filter_map(|stream| u32::try_from(stream.id).ok()).collect(),
        events: class.streams.iter().flat_map(events).collect(),
    }
}

/// Another metadata.
#[derive(Debug)]
pub struct Elsewhere {
    file: File,
    length: u64,
}

impl State {
    /// Returns all whole declarations.
    fn whole(&self) -> io::Result<Vec<u8>> {
        let mut text = std::fs::read(self.models.trace.join(files::METADATA))?;
        text.truncate(usize::try_from(self.length).unwrap_or(usize::MAX));
        Ok(text)
    }

    fn declare(&mut self, class: u32, ids: &[u16]) -> io::Result<()> {
        let is_known = |id: &u16| self.done.events.contains(&(class, *id));
        let fresh: Vec<u16> = ids.iter().copied().filter(|id| !is_known(id)).collect();
        let stream = !self.done.streams.contains(&class) && self.api_of(class).is_some();
        if fresh.is_empty() && !stream {
            return Ok(());
        }
        // Names that are not written must not be referred to.
        let before = self.text.clone();
        let mut text = String::new();
        if stream {
            text += &self.text.stream(&form::stream_class(class.into()));
        }
        let events = self.texts(class, &fresh);
        if let Err(error) = events.and_then(|events| self.append((text + &events).as_bytes())) {
            self.text = before;
            return Err(error);
        }
        self.done.streams.extend(stream.then_some(class));
        self.done.events.extend(fresh.into_iter().map(|id| (class, id)));
        Ok(())
    }

    /// Returns the number of the API whose stream class this is.
    fn api_of(&self, class: u32) -> Option<usize> {
        (0..self.apis.len()).find(|number| api_stream(*number) == class)
    }

    fn texts(&mut self, class: u32, ids: &[u16]) -> io::Result<String> {
        let mut text = String::new();
        for id in ids {
            if let Some(event) = self.event(class, *id)? {
                text += &self.text.event(class.into(), &event);
            }
        }
        Ok(text)
    }

    /// All or nothing.
    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        match self.file.write_all_at(text, self.length) {
            Ok(()) => {
                self.length += text.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.file.set_len(self.length)?;
                Err(error)
            }
        }
    }

    /// Returns the class of an event; none if nobody knows it.
    fn event(&mut self, class: u32, id: u16) -> io::Result<Option<EventClass>> {
        if class == DEVICE_STREAM {
            let models = if object::needs_models(id) { self.all_models()? } else { Vec::new() };
            return Ok(device_event(id, &models));
        }
        let Some(api) = self.api_of(class).and_then(|number| self.apis.get_mut(number)) else {
            return Ok(None);
        };
        self.models.need(api)?;
        api.event(id)
    }

    /// Returns the models of all APIs, without functions.
    fn all_models(&mut self) -> io::Result<Vec<&Model>> {
        for api in &mut self.apis {
            // An API whose library is gone has nothing that could be named.
            if api.library.is_ok() {
                api.read()?;
            }
        }
        Ok(self.apis.iter().filter_map(|api| Some(&api.model.as_ref()?.1)).collect())
    }
}

impl Models {
    fn need(&mut self, api: &mut Api) -> io::Result<()> {
        if api.is_there {
            return Ok(());
        }
        let name = files::model(&api.name);
        let (json, _) = api.read()?;
        self.access.write(&self.trace.join(&name), json)?;
        self.written.push(FileAccount::of(&name, json));
        api.is_there = true;
        Ok(())
    }
}

impl Api {
    fn new(name: Name, library: Result<Found, String>, is_there: bool) -> Self {
        Api { name, library, model: None, is_there }
    }

    fn library(&self) -> io::Result<&Found> {
        self.library.as_ref().map_err(|why| io::Error::other(why.clone()))
    }

    /// Returns the model's text, and the model without functions.
    fn read(&mut self) -> io::Result<&(Vec<u8>, Model)> {
        if self.model.is_none() {
            let library = self.library()?;
            let json = library.model_json().map_err(io::Error::other)?;
            let index = library.index().map_err(io::Error::other)?;
            let frame = index.check().and_then(|()| index.frame(&json));
            let frame = frame.map_err(|e| io::Error::other(library.wrong(&e)))?;
            self.model = Some((json, frame));
        }
        self.model.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn event(&mut self, id: u16) -> io::Result<Option<EventClass>> {
        self.read()?;
        let library = self.library()?;
        let Some((json, frame)) = &self.model else { return Ok(None) };
        let index = library.index().map_err(io::Error::other)?;
        calls::class_of(frame, id, |function| {
            let row = index.row(function);
            let function = row.map(|row| index::function(json, &row)).transpose();
            function.map_err(|e| io::Error::other(library.wrong(&e)))
        })
    }
}

#[cfg(test)]
mod tests;
