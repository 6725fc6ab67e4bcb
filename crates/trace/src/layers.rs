//! Layers of calls: which API called which, and which calls brought a command to its device.
//!
//! A *layer* is an API that was called by another one, or by the program: where a call of the CUDA runtime calls the
//! driver, the driver's part of it is the layer `cudart > cuda`. Calls of one API inside of each other are one layer.
//! What a call hosts ([`Function::hosts`](crate::trace::Function::hosts)) is called by the program.

use std::collections::HashMap;

use crate::history::History;
use crate::spans::{At, Call, Command, Fold, Open, Unfinished};
use crate::trace::{Functions, ThreadId, Trace};

/// Between one layer and the next.
const BELOW: &str = " > ";

/// APIs, each called by the one before: a place in [`Layers::paths`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Path {
    /// The layer that called; its own place if the program did.
    around: u32,
    api: u32,
}

/// How a command came about: a place in [`Layers::chains`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Chain {
    /// The call that the program made.
    top: u32,
    path: u32,
    /// The innermost call, which enqueued.
    bottom: u32,
}

/// A call that is open.
#[derive(Clone, Copy, Debug)]
struct Frame {
    path: u32,
    /// The function of the program's own call around this one, or its own.
    top: u32,
    hosts: bool,
}

/// The layers of a trace.
#[derive(Debug)]
pub struct Layers<'t> {
    functions: &'t Functions,
    paths: Numbered<Path>,
    chains: Numbered<Chain>,
    /// The open calls of each thread, the outermost first.
    open: Vec<Vec<Frame>>,
    /// Calls that the program made itself are in `history`, too.
    keeps_outermost: bool,
    /// The innermost call of each thread, with the time at which it began, when it began.
    history: History<(u64, u32)>,
    /// Names of chains, by number, as far as they were asked for.
    names: Vec<Option<String>>,
}

/// Values with numbers, from 0.
#[derive(Debug)]
struct Numbered<T> {
    all: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T: Copy + Eq + std::hash::Hash> Numbered<T> {
    fn new() -> Self {
        Self { all: Vec::new(), numbers: HashMap::new() }
    }

    /// The number of a value; a new one if it has none.
    fn number(&mut self, value: T) -> u32 {
        let all = &mut self.all;
        *self.numbers.entry(value).or_insert_with(|| {
            all.push(value);
            u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn get(&self, number: u32) -> Option<T> {
        self.all.get(number as usize).copied()
    }
}

/// Around the outermost layer.
const PROGRAM: u32 = u32::MAX;

impl<'t> Layers<'t> {
    /// Those of a trace of which nothing was read yet.
    pub fn new(trace: &'t Trace) -> Self {
        Self {
            functions: trace.functions(),
            paths: Numbered::new(),
            chains: Numbered::new(),
            open: Vec::new(),
            keeps_outermost: true,
            history: History::default(),
            names: Vec::new(),
        }
    }

    /// The same, for [`Self::several`] alone: how commands came about that calls of the program's own enqueued is not kept.
    pub fn between(trace: &'t Trace) -> Self {
        Self { keeps_outermost: false, ..Self::new(trace) }
    }

    /// A call begins.
    pub fn entry(&mut self, at: At<'_>, call: &Open) {
        let path = self.path(call.thread, call.depth, call.function.0);
        if self.open.len() <= call.thread.index() {
            self.open.resize(call.thread.index() + 1, Vec::new());
        }
        let frames = &mut self.open[call.thread.index()];
        frames.truncate(call.depth as usize);
        let around = frames.last().filter(|frame| !frame.hosts);
        let top = around.map_or(call.function.0, |frame| frame.top);
        let own = around.is_none();
        let hosts = self.functions.get(call.function).hosts;
        frames.push(Frame { path, top, hosts });
        if own && !self.keeps_outermost {
            return;
        }
        let chain = self.chains.number(Chain { top, path, bottom: call.function.0 });
        let who = at.threads.get(call.thread);
        self.history.change(who.pid, who.tid, call.start, (call.start, chain));
    }

    /// The layer of a call that ended, and whether another call of that layer was around it.
    pub fn of_call(&mut self, call: &Call) -> (u32, bool) {
        self.layer(call.thread, call.depth, call.function.0)
    }

    /// The layer of a call without an end.
    pub fn of_unfinished(&mut self, call: &Unfinished) -> u32 {
        self.layer(call.thread, call.depth, call.function.0).0
    }

    /// As [`Self::of_call`], of many calls in one record.
    pub fn of_fold(&mut self, fold: &Fold) -> (u32, bool) {
        self.layer(fold.thread, fold.depth, fold.function.0)
    }

    fn layer(&mut self, thread: ThreadId, depth: u32, function: u32) -> (u32, bool) {
        let path = self.path(thread, depth, function);
        (path, self.around(thread, depth).is_some_and(|frame| frame.path == path))
    }

    /// The call around what is so deep.
    fn around(&self, thread: ThreadId, depth: u32) -> Option<&Frame> {
        let frames = self.open.get(thread.index())?;
        frames.get(depth.checked_sub(1)? as usize)
    }

    fn path(&mut self, thread: ThreadId, depth: u32, function: u32) -> u32 {
        let api = self.api(function);
        match self.around(thread, depth).filter(|frame| !frame.hosts).map(|frame| frame.path) {
            Some(around) if self.paths.get(around).is_some_and(|path| path.api == api) => around,
            around => self.paths.number(Path { around: around.unwrap_or(PROGRAM), api }),
        }
    }

    fn api(&self, function: u32) -> u32 {
        let function = self.functions.all().get(function as usize);
        function.and_then(|f| u32::try_from(f.api).ok()).unwrap_or(u32::MAX)
    }

    /// How a command came about, as a number for [`Self::chain_name`]; none if its call is not known.
    pub fn known(&self, command: &Command<'_>) -> Option<u32> {
        let (start, chain) = self.history.at(command.pid, command.cause_tid, command.cause)?;
        (start == command.cause).then_some(chain)
    }

    /// The calls that brought a command about, as [`Self::chain_name`] has them; none if they are of one API, or not known.
    pub fn several(&mut self, command: &Command<'_>) -> Option<&str> {
        let number = self.known(command)?;
        let path = self.paths.get(self.chains.get(number)?.path)?;
        if path.around == PROGRAM {
            return None;
        }
        let at = number as usize;
        if self.names.get(at).is_none_or(Option::is_none) {
            let name = self.chain_name(number);
            self.names.resize(self.names.len().max(at + 1), None);
            self.names[at] = Some(name);
        }
        self.names[at].as_deref()
    }

    /// `api > api`, the outermost first.
    pub fn layer_name(&self, path: u32) -> String {
        self.apis(path).join(BELOW)
    }

    /// `call > api > call`: the one that the program made, the layers between, and the one that enqueued.
    pub fn chain_name(&self, chain: u32) -> String {
        let Some(chain) = self.chains.get(chain) else { return String::new() };
        let name =
            |function: u32| self.functions.all().get(function as usize).map_or("", |f| f.name.as_str());
        if chain.top == chain.bottom {
            return name(chain.top).to_owned();
        }
        let apis = self.apis(chain.path);
        let between = apis.get(1..apis.len().saturating_sub(1)).unwrap_or_default();
        let parts = std::iter::once(name(chain.top)).chain(between.iter().copied());
        parts.chain([name(chain.bottom)]).collect::<Vec<_>>().join(BELOW)
    }

    fn apis(&self, path: u32) -> Vec<&'t str> {
        let mut apis = Vec::new();
        let mut at = path;
        while let Some(path) = self.paths.get(at) {
            apis.push(self.functions.apis().get(path.api as usize).map_or("", String::as_str));
            at = path.around;
        }
        apis.reverse();
        apis
    }
}
