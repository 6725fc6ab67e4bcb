//! Numbers for devices, queues and functions, and their definitions.
//!
//! Programs name them by handles, which come again when something was destroyed
//! and made anew; a command then means what had the handle when it was enqueued.
//! Handles are an API's own: equal ones of two APIs are two things ([`Key`]).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hetrace_format::{Handle, define};
use hetrace_ring::abi::{
    CountRecord, DeviceRecord, FrameRecord, FunctionRecord, ModuleRecord, PyFrameRecord, QueueRecord, stack,
};

use super::codes::Codes;
use super::hash::ByNumber;
use super::key::Key;
use super::{Shared, convert};
use crate::hash;
use crate::symbols::{Asked, Place};

/// So many bearers of one handle are remembered: a command is late by a flush,
/// not by eight lives of its queue.
const REMEMBERED: usize = 8;

/// The last numbers given in a trace.
#[derive(Debug, Default)]
pub struct Numbers {
    devices: AtomicU32,
    queues: AtomicU32,
    functions: AtomicU32,
}

fn next(last: &AtomicU32) -> u32 {
    last.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
}

/// A definition to be written: time, event and fields.
pub type Definition = (u64, u16, Vec<u8>);

/// What one process has.
#[derive(Debug, Default)]
pub struct Names {
    devices: ByNumber<Key, Device>,
    queues: ByNumber<Key, Vec<Bearer<u64>>>,
    functions: ByNumber<Key, Vec<Bearer<Described>>>,
    /// Functions without an id, by API and name.
    by_name: HashMap<(usize, Vec<u8>), u32>,
    properties: HashMap<(Key, Vec<u8>), u64>,
    /// Ids of Python stacks.
    py_frames: HashSet<u64>,
    /// Ids of native stacks.
    frames: HashSet<u64>,
    modules: HashMap<u64, Arc<define::Module>>,
    /// What addresses of modules stand for.
    symbols: Asked,
    /// Where calls are made which say so themselves.
    codes: Codes,
    /// When a native stack was described last.
    last_frame: u64,
    fresh: Vec<Definition>,
}

/// What makes a function another one: its numbers and its name.
type Described = ([u32; 5], Vec<u8>);

#[derive(Debug)]
struct Device {
    number: u32,
    name: Vec<u8>,
    /// The fields last written.
    fields: Vec<u8>,
}

/// Who had a handle since when.
#[derive(Debug)]
struct Bearer<T> {
    since: u64,
    number: u32,
    /// No event defined it, but it was used.
    guessed: bool,
    what: T,
}

impl<T> Bearer<T> {
    /// It was guessed, and is defined at a time: its number, since when it has the handle, and when that is written.
    /// That is not before the guess, which may have been of a later time, of another thread: the last definition holds.
    fn confirmed(&self, time: u64) -> (u32, u64, u64) {
        (self.number, self.since.min(time), self.since.max(time))
    }
}

/// Returns the bearer of a handle at a time: the last made before, or the first if
/// none was, since it may have been defined after its first use.
fn at<T>(bearers: &[Bearer<T>], time: u64, fits: impl Fn(&T) -> bool) -> Option<u32> {
    let mut fitting = bearers.iter().filter(|b| fits(&b.what));
    let first = fitting.next()?;
    let last = std::iter::once(first).chain(fitting).take_while(|b| b.since <= time).last();
    Some(last.unwrap_or(first).number)
}

fn remember<T>(bearers: &mut Vec<Bearer<T>>, bearer: Bearer<T>) {
    let place = bearers.partition_point(|b| b.since <= bearer.since);
    bearers.insert(place, bearer);
    if bearers.len() > REMEMBERED {
        bearers.remove(0);
    }
}

/// Takes what was only guessed out, and gives its number.
fn confirm<T>(bearers: &mut Vec<Bearer<T>>, fits: impl Fn(&T) -> bool) -> Option<Bearer<T>> {
    let place = bearers.iter().position(|b| b.guessed && fits(&b.what))?;
    Some(bearers.remove(place))
}

fn of<T>(map: &mut ByNumber<Key, Vec<T>>, key: Key) -> &mut Vec<T> {
    map.entry(key).or_default()
}

impl Names {
    /// Definitions since the last time, in the order of their times.
    pub fn take_fresh(&mut self) -> Vec<Definition> {
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.sort_by_key(|(time, ..)| *time);
        fresh
    }

    /// Returns the number of a device, which is defined here if no event has defined it.
    pub fn device(&mut self, shared: &Shared, key: Key, time: u64) -> u32 {
        match self.devices.get(&key) {
            Some(device) => device.number,
            None => {
                let record = DeviceRecord { device: key.value, ..DeviceRecord::default() };
                self.define_device(shared, key.api, &record, b"", time)
            }
        }
    }

    /// Returns what a device is called; empty if nobody said.
    pub fn device_name(&self, key: Key) -> String {
        let name = self.devices.get(&key).map(|d| &*d.name);
        String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
    }

    /// Records the description of a device. What is reported again is written again, under the
    /// same number, if it is new.
    pub fn define_device(
        &mut self,
        shared: &Shared,
        api: usize,
        record: &DeviceRecord,
        name: &[u8],
        time: u64,
    ) -> u32 {
        let key = Key { api, value: record.device };
        let device = self.devices.entry(key).or_insert_with(|| Device {
            number: next(&shared.numbers.devices),
            name: Vec::new(),
            fields: Vec::new(),
        });
        if !name.is_empty() {
            device.name = name.to_vec();
        }
        let fields = convert::device(device.number, &device.name, shared.api(api), record).encode();
        if fields != device.fields {
            device.fields.clone_from(&fields);
            self.fresh.push((time, define::Device::ID, fields));
        }
        device.number
    }

    /// A property of a device was reported.
    pub fn define_property(&mut self, shared: &Shared, key: Key, name: &[u8], value: u64, time: u64) {
        let device = self.device(shared, key, time);
        if self.properties.insert((key, name.to_vec()), value) != Some(value) {
            self.fresh.push((time, define::Property::ID, convert::property(device, name, value).encode()));
        }
    }

    /// A queue was made, on a device of that name.
    pub fn define_queue(
        &mut self,
        shared: &Shared,
        api: usize,
        record: &QueueRecord,
        device_name: &[u8],
        time: u64,
    ) {
        let device = Key { api, value: record.device };
        // A name beside a queue is all that some APIs report of a device.
        if !device_name.is_empty() && self.devices.get(&device).is_none_or(|d| d.name.is_empty()) {
            let record = DeviceRecord { device: record.device, ..DeviceRecord::default() };
            self.define_device(shared, api, &record, device_name, time);
        }
        let key = Key { api, value: record.queue };
        let guessed = confirm(of(&mut self.queues, key), |device| *device == record.device);
        let (number, since, written) =
            guessed.map_or_else(|| (next(&shared.numbers.queues), time, time), |guess| guess.confirmed(time));
        self.add_queue(shared, api, number, record, (since, written), false);
    }

    fn add_queue(
        &mut self,
        shared: &Shared,
        api: usize,
        number: u32,
        record: &QueueRecord,
        (since, time): (u64, u64),
        guessed: bool,
    ) {
        let device = self.device(shared, Key { api, value: record.device }, time);
        let bearer = Bearer { since, number, guessed, what: record.device };
        remember(of(&mut self.queues, Key { api, value: record.queue }), bearer);
        self.fresh.push((
            time,
            define::Queue::ID,
            convert::queue(number, device, shared.api(api), record).encode(),
        ));
    }

    /// Returns the queue that had a handle at a time, if any event defined it. The same
    /// handle may stand for a queue of each device of its API.
    pub fn queue(&self, key: Key, device: u64, time: u64) -> Option<u32> {
        let fits = |other: &u64| device == 0 || *other == 0 || *other == device;
        at(self.queues.get(&key)?, time, fits)
    }

    /// Returns a queue that no event defined.
    pub fn guess_queue(&mut self, shared: &Shared, api: usize, record: &QueueRecord, time: u64) -> u32 {
        let number = next(&shared.numbers.queues);
        self.add_queue(shared, api, number, record, (time, time), true);
        number
    }

    /// A function was described.
    pub fn define_function(
        &mut self,
        shared: &Shared,
        api: usize,
        record: &FunctionRecord,
        name: &[u8],
        time: u64,
    ) {
        let numbers = [record.registers, record.shared, record.local, record.constant, record.max_threads];
        let what = (numbers, name.to_vec());
        let bearers = of(&mut self.functions, Key { api, value: record.function });
        // Every thread that launches it may define it.
        if bearers.last().is_some_and(|b| !b.guessed && b.what == what) {
            return;
        }
        let guess = confirm(bearers, |_| true);
        let (number, since, written) = guess
            .map_or_else(|| (next(&shared.numbers.functions), time, time), |guess| guess.confirmed(time));
        remember(bearers, Bearer { since, number, guessed: false, what });
        self.fresh.push((written, define::Function::ID, convert::function(number, name, record).encode()));
    }

    /// A Python stack was described: once for each API, and again where two threads were at it at a time.
    pub fn define_py_frame(&mut self, record: &PyFrameRecord, texts: &[u8], time: u64) {
        if self.py_frames.insert(record.stack) {
            self.fresh.push((time, define::PyFrame::ID, convert::py_frame(record, texts).encode()));
        }
    }

    /// A program or library was described, whose code is on a stack.
    pub fn define_module(&mut self, shared: &Shared, record: &ModuleRecord, texts: &[u8], time: u64) {
        if let Entry::Vacant(place) = self.modules.entry(record.module) {
            let module = place.insert(Arc::new(convert::module(record, texts)));
            self.fresh.push((time, define::Module::ID, module.encode()));
        }
        // Where it lies is this record's alone: it may be loaded again elsewhere, and a child of this process has its own.
        let Some(known) = self.modules.get(&record.module) else { return };
        let module = Arc::new(define::Module { base: Handle(record.base), ..define::Module::clone(known) });
        let range = record.start..record.start.saturating_add(record.bytes);
        for (code, time) in self.codes.module(range, &module) {
            self.define_code(shared, &module, code, time);
        }
    }

    /// A call says that it returns to an address of the program's code.
    pub fn called_from(&mut self, shared: &Shared, code: u64, time: u64) {
        if let Some(module) = self.codes.meet(code, time) {
            self.define_code(shared, &module, code, time);
        }
    }

    /// An address stands for a stack of one frame.
    fn define_code(&mut self, shared: &Shared, module: &Arc<define::Module>, code: u64, time: u64) {
        // What it returns to may be another line's already: the call ends right before it.
        let address = code.wrapping_sub(module.base.0).wrapping_sub(1);
        let stack = hash::mix(stack::NONE, hash::mix(module.module.0, address)).max(stack::FIRST);
        if self.frames.insert(stack) {
            self.last_frame = self.last_frame.max(time);
            let [stack, around, address] = [stack, stack::NONE, address].map(Handle);
            let frame = define::Frame { stack, around, module: module.module, address };
            self.fresh.push((time, define::Frame::ID, frame.encode()));
            let place = Place { module: Arc::clone(module), address: address.0, with_offset: true };
            self.symbols.ask(&shared.symbols, place);
        }
        let code = define::Code { code: Handle(code), stack: Handle(stack) };
        self.fresh.push((time, define::Code::ID, code.encode()));
    }

    /// A native stack was described.
    pub fn define_frame(&mut self, shared: &Shared, record: &FrameRecord, time: u64) {
        if !self.frames.insert(record.stack) {
            return;
        }
        self.last_frame = self.last_frame.max(time);
        self.fresh.push((time, define::Frame::ID, convert::frame(record).encode()));
        if let Some(module) = self.modules.get(&record.module) {
            let address = record.address;
            let place = Place { module: Arc::clone(module), address, with_offset: false };
            self.symbols.ask(&shared.symbols, place);
        }
    }

    /// Whether something of addresses may still be found out.
    pub fn is_naming(&self) -> bool {
        self.symbols.is_pending()
    }

    /// What was found out of addresses by now, or in so long a time, is to be written.
    pub fn take_symbols(&mut self, patience: Duration) {
        for symbol in self.symbols.take(patience) {
            self.fresh.push((self.last_frame, define::Symbol::ID, symbol.encode()));
        }
    }

    /// What is to be said of names that could not be found out, once.
    pub fn take_notes(&mut self) -> Vec<String> {
        self.symbols.take_notes()
    }

    /// How often a function was launched so far.
    pub fn define_launches(&mut self, shared: &Shared, api: usize, record: &CountRecord, time: u64) {
        let key = Key { api, value: record.function };
        let known = self.function(key, time);
        let number = known.unwrap_or_else(|| self.guess_function(shared, key, time));
        self.fresh.push((time, define::Launches::ID, convert::launches(number, record).encode()));
    }

    /// Returns the function that had an id at a time, if any event defined it.
    pub fn function(&self, key: Key, time: u64) -> Option<u32> {
        at(self.functions.get(&key)?, time, |_| true)
    }

    /// Returns the name of the function of an id that has a number, if it is known.
    pub fn function_name(&self, key: Key, number: u32) -> Option<&[u8]> {
        let bearer = self.functions.get(&key)?.iter().find(|bearer| bearer.number == number)?;
        Some(&bearer.what.1)
    }

    /// Returns a function that no event defined.
    pub fn guess_function(&mut self, shared: &Shared, key: Key, time: u64) -> u32 {
        let number = next(&shared.numbers.functions);
        let bearer = Bearer { since: time, number, guessed: true, what: Default::default() };
        remember(of(&mut self.functions, key), bearer);
        let fields = convert::function(number, b"", &FunctionRecord::default()).encode();
        self.fresh.push((time, define::Function::ID, fields));
        number
    }

    /// Returns the API's function of that name, where there is nothing else to know it by.
    pub fn function_named(&mut self, shared: &Shared, api: usize, name: &[u8], time: u64) -> u32 {
        let key = (api, name.to_vec());
        if let Some(number) = self.by_name.get(&key) {
            return *number;
        }
        let number = next(&shared.numbers.functions);
        self.by_name.insert(key, number);
        let fields = convert::function(number, name, &FunctionRecord::default()).encode();
        self.fresh.push((time, define::Function::ID, fields));
        number
    }
}
