//! The code that made each call: its native stack in traces of `hetrace run --stacks`, its Python stack in those of
//! `--py-stacks`; in one order, where both were recorded.
//!
//! A stack is its innermost frame and the stack around it; an id names it. The recorder writes the ids right before the
//! entry of a call ([`spans`](crate::spans) joins them), and what an id stands for once.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use hetrace_format::define::{self, Definition, Module, PyFrame, Symbol};

use crate::demangle;

/// Libraries of ours begin so.
const OWN: &str = "libhetrace_";

/// Names the stack of a call. 0: there is none, or it was not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId {
    /// Its native frames.
    pub native: u64,
    /// Its Python frames.
    pub python: u64,
}

impl StackId {
    /// No stack was recorded.
    pub const NONE: Self = Self { native: 0, python: 0 };
}

/// Whose code a frame is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Machine code's.
    #[default]
    Native,
    /// Python's.
    Python,
    /// None's: it stands for frames that are not known, and its name says why.
    Missing,
}

/// A frame of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Whose code it is of.
    pub kind: Kind,
    /// The line that it is at; 0 if that is not known.
    pub line: u32,
    /// The first line of its function; 0 if that is not known.
    pub first_line: u32,
    /// Its file, as the code names it; empty if that is not known.
    pub file: Arc<str>,
    /// Its function: of Python the qualified name, before CPython 3.11 the name; of native code the name without
    /// parameters, or, if that is not known, the module and the place in it.
    pub name: Arc<str>,
    /// The program or library of native code, without folders.
    pub module: Arc<str>,
}

impl Frame {
    /// The last part of its file's path.
    pub fn file_name(&self) -> &str {
        last_part(&self.file)
    }

    /// Its file as `files` name it, with the line; of native code without these, its module.
    pub fn place<'a>(&'a self, files: &'a ShortNames<'_>) -> Option<Place<'a>> {
        match (self.file.is_empty(), self.module.is_empty()) {
            (false, _) => Some(Place(files.of(&self.file), (self.line > 0).then_some(self.line))),
            // A name may be a place already.
            (true, false) if !self.name.starts_with(&*self.module) => Some(Place(&self.module, None)),
            _ => None,
        }
    }
}

/// A line of a file, or something that has none.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a>(&'a str, Option<u32>);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(line) => write!(f, "{}:{line}", self.0),
            None => f.write_str(self.0),
        }
    }
}

/// `train.py:42 in step`, `gemm in libblas.so.3`, or `libblas.so.3+0x1234`.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            return match self.line {
                // The compiler has moved code of several lines to one place.
                0 => write!(f, "{} in {}", self.name, self.file_name()),
                line => write!(f, "{}:{line} in {}", self.file_name(), self.name),
            };
        }
        match self.place(&ShortNames::default()) {
            Some(module) => write!(f, "{} in {module}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A stack without what is around it: a frame, and where functions were inlined several.
#[derive(Clone, Debug, Default)]
struct Inner {
    around: u64,
    /// The code that records calls is on it.
    traced: bool,
    frames: Vec<Frame>,
}

/// Native frames as they are read, until all of them are.
#[derive(Clone, Debug, Default)]
struct Raw {
    frames: Vec<define::Frame>,
    modules: HashMap<u64, Arc<str>>,
    /// By module and address.
    symbols: HashMap<(u64, u64), Vec<Symbol>>,
}

/// The stacks of a trace.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    python: HashMap<u64, Inner>,
    native: HashMap<u64, Inner>,
    /// By process and address, the stacks that addresses of calls stand for, each from a time on.
    codes: HashMap<(i64, u64), Vec<(u64, u64)>>,
    raw: Raw,
    /// The same few files and functions come again and again.
    texts: HashMap<String, Arc<str>>,
    missing: Missing,
}

/// What stands for frames that are not known.
#[derive(Clone, Debug)]
struct Missing {
    python: Frame,
    native: Frame,
    cut: Frame,
    lost: Frame,
}

impl Default for Missing {
    fn default() -> Self {
        let [python, native, cut, lost] = [
            "[Python frames not recorded]",
            "[native frames not recorded]",
            "[deeper than recorded]",
            "[could not be unwound further]",
        ]
        .map(|name| Frame { kind: Kind::Missing, name: name.into(), ..Frame::default() });
        Self { python, native, cut, lost }
    }
}

impl Stacks {
    /// Frames of a stack that are looked at, at most: of a damaged trace, one may be around itself.
    const DEEPEST: usize = 1 << 16;
    /// What is around the outermost frame, where there are more than were recorded.
    const CUT: u64 = 2;
    /// The same where how to unwind further is not known.
    const LOST: u64 = 3;

    pub(crate) fn define(&mut self, frame: PyFrame) {
        let PyFrame { stack, around, line, first_line, file, name } = frame;
        let [file, name] = [file, name].map(|text| self.text(&text));
        let frame = Frame { kind: Kind::Python, line, first_line, file, name, module: "".into() };
        self.python.insert(stack.0, Inner { around: around.0, traced: false, frames: vec![frame] });
    }

    pub(crate) fn define_module(&mut self, module: &Module) {
        let name = self.text(last_part(&module.path));
        self.raw.modules.insert(module.module.0, name);
    }

    pub(crate) fn define_frame(&mut self, frame: define::Frame) {
        self.raw.frames.push(frame);
    }

    pub(crate) fn define_symbol(&mut self, symbol: Symbol) {
        let all = self.raw.symbols.entry((symbol.module.0, symbol.address.0)).or_default();
        // Each process has its own definitions.
        if all.iter().all(|known| known.level != symbol.level) {
            all.push(symbol);
        }
    }

    /// An address of a process's code stands for a stack from a time on.
    pub(crate) fn define_code(&mut self, pid: i64, time: u64, code: &define::Code) {
        let all = self.codes.entry((pid, code.code.0)).or_default();
        if all.last().is_none_or(|last| last.1 != code.stack.0) {
            all.push((time, code.stack.0));
        }
    }

    /// The id of the native stack of a call which says itself by which code it is made: the address of that, in its
    /// process, at a time. It has the innermost frame alone. None if nothing is known of the address.
    pub fn of_code(&self, pid: i64, address: u64, time: u64) -> Option<u64> {
        let all = self.codes.get(&(pid, address))?;
        // Of several threads one may have been before the call by which the address became known.
        let last = all.iter().rev().find(|(since, _)| *since <= time).or_else(|| all.first());
        last.map(|(_, stack)| *stack)
    }

    /// All definitions were read.
    pub(crate) fn finish(&mut self) {
        let Raw { frames, modules, mut symbols } = std::mem::take(&mut self.raw);
        symbols.values_mut().for_each(|all| all.sort_by_key(|symbol| symbol.level));
        for define::Frame { stack, around, module, address } in frames {
            let name = modules.get(&module.0).cloned().unwrap_or_default();
            let frames = match symbols.get(&(module.0, address.0)) {
                // Wrappers of ours are between the program and the API.
                _ if name.starts_with(OWN) => Vec::new(),
                Some(symbols) => symbols.iter().map(|symbol| self.of_symbol(symbol, &name)).collect(),
                None => vec![self.without_symbol(&name, address.0)],
            };
            let traced = name.starts_with(OWN);
            self.native.insert(stack.0, Inner { around: around.0, traced, frames });
        }
    }

    fn of_symbol(&mut self, symbol: &Symbol, module: &Arc<str>) -> Frame {
        // Where no line is known, the place in the function stands behind its name.
        let offset = symbol.function.rfind("+0x").unwrap_or(symbol.function.len());
        let (function, offset) = symbol.function.split_at(offset);
        let function = demangle::bare(function);
        let name = if function.is_empty() { "[unnamed]" } else { &format!("{function}{offset}") };
        let (name, file) = (self.text(name), self.text(&symbol.file));
        let line = if file.is_empty() { 0 } else { symbol.line };
        Frame { line, file, name, module: Arc::clone(module), ..Frame::default() }
    }

    fn without_symbol(&mut self, module: &Arc<str>, address: u64) -> Frame {
        let name = if module.is_empty() { format!("{address:#x}") } else { format!("{module}+{address:#x}") };
        Frame { name: self.text(&name), module: Arc::clone(module), ..Frame::default() }
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.into();
        self.texts.insert(text.to_owned(), Arc::clone(&shared));
        shared
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.python.is_empty() && self.native.is_empty()
    }

    /// Names of all files, each as short as is clear.
    pub fn short_names(&self) -> ShortNames<'_> {
        let frames = self.python.values().chain(self.native.values()).flat_map(|inner| &inner.frames);
        let files: HashSet<&str> = frames.map(|frame| &*frame.file).filter(|file| !file.is_empty()).collect();
        ShortNames::new(&files)
    }

    /// The frame that stands for a stack: the innermost Python frame; else the innermost one whose line is known, or
    /// any.
    pub fn innermost(&self, stack: StackId) -> Option<&Frame> {
        if let Some(python) = self.python.get(&stack.python) {
            return python.frames.first();
        }
        let frames = self.frames(stack);
        let known = frames.iter().find(|frame| frame.line > 0);
        known.or_else(|| frames.iter().find(|frame| frame.kind != Kind::Missing)).copied()
    }

    /// The frames of a stack, the innermost first. Where some are not known, one of [`Kind::Missing`] stands for them.
    ///
    /// Python frames stand where the interpreter's own are on the native stack.
    pub fn frames(&self, stack: StackId) -> Vec<&Frame> {
        let python = Self::chain(&self.python, stack.python, |_| &self.missing.python);
        let native = Self::chain(&self.native, stack.native, |around| match around {
            Self::CUT => &self.missing.cut,
            Self::LOST => &self.missing.lost,
            _ => &self.missing.native,
        });
        if python.is_empty() || native.is_empty() {
            return if python.is_empty() { native } else { python };
        }
        merged(&native, &python)
    }

    /// Whether code of ours is on a native stack: the thread was in a function that is traced, or in what tracing does.
    pub fn is_traced(&self, stack: StackId) -> bool {
        let mut next = stack.native;
        for _ in 0..Self::DEEPEST {
            match self.native.get(&next) {
                Some(inner) if inner.traced => return true,
                Some(inner) => next = inner.around,
                None => return false,
            }
        }
        false
    }

    /// The Python frames alone.
    pub fn python_frames(&self, stack: StackId) -> Vec<&Frame> {
        self.frames(StackId { native: 0, ..stack })
    }

    fn chain<'s>(
        all: &'s HashMap<u64, Inner>,
        stack: u64,
        missing: impl Fn(u64) -> &'s Frame,
    ) -> Vec<&'s Frame> {
        let mut frames = Vec::new();
        let mut next = stack;
        while let Some(inner) = all.get(&next) {
            frames.extend(&inner.frames);
            next = inner.around;
            if frames.len() >= Self::DEEPEST {
                return frames;
            }
        }
        if next != 0 && !frames.is_empty() {
            frames.push(missing(next));
        }
        frames
    }
}

/// Whether events of a name say what stacks are.
pub fn is_definition(event: &str) -> bool {
    use Definition::{Code, Frame, Module, PyFrame, Symbol};
    [PyFrame, Module, Frame, Symbol, Code].iter().any(|definition| definition.event() == event)
}

/// Whether a frame is of the interpreter itself.
fn is_interpreter(frame: &Frame) -> bool {
    let module = &*frame.module;
    let rest = module.strip_prefix("libpython").or_else(|| module.strip_prefix("python"));
    rest.is_some_and(|rest| rest.bytes().next().is_none_or(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// The function that runs Python code. Since CPython 3.11 one call of it may run several frames.
const EVALUATES: &str = "_PyEval_EvalFrameDefault";

/// Python frames among native ones, the innermost first.
fn merged<'s>(native: &[&'s Frame], python: &[&'s Frame]) -> Vec<&'s Frame> {
    let evaluates = |frame: &&&Frame| *frame.name == *EVALUATES;
    let each = native.iter().filter(evaluates).count() == python.len();
    let mut left = python.iter().copied();
    let mut frames = Vec::with_capacity(native.len() + python.len());
    for frame in native {
        if !is_interpreter(frame) {
            frames.push(*frame);
        } else if !each {
            // All of them at the innermost place that they can be at.
            frames.extend(left.by_ref());
        } else if evaluates(&frame) {
            frames.extend(left.next());
        }
    }
    // The walk did not come so far.
    frames.extend(left);
    frames
}

/// Places in the code that make calls, by numbers; 0: it is not known.
#[derive(Clone, Debug)]
pub struct Sites<'t> {
    stacks: &'t Stacks,
    name: fn(&Frame) -> String,
    known: HashMap<StackId, u32>,
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl<'t> Sites<'t> {
    /// Those of these stacks. `name` says which frames are one place.
    pub fn new(stacks: &'t Stacks, name: fn(&Frame) -> String) -> Self {
        let names = vec![String::new()];
        Self { stacks, name, known: HashMap::new(), numbers: HashMap::new(), names }
    }

    /// The number of the place that stands for a stack.
    pub fn number(&mut self, stack: StackId) -> u32 {
        if stack == StackId::NONE {
            return 0;
        }
        if let Some(known) = self.known.get(&stack) {
            return *known;
        }
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let number = self.stacks.innermost(stack).map_or(0, |frame| {
            *self.numbers.entry((self.name)(frame)).or_insert_with_key(|name| {
                self.names.push(name.clone());
                next
            })
        });
        self.known.insert(stack, number);
        number
    }

    /// What a place is called; empty if it is not known.
    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }
}

/// Of each file the last parts of its path by which no other file is meant.
#[derive(Clone, Debug, Default)]
pub struct ShortNames<'p> {
    names: HashMap<&'p str, &'p str>,
}

impl<'p> ShortNames<'p> {
    fn new(files: &HashSet<&'p str>) -> Self {
        let mut names = HashMap::new();
        let mut left: Vec<&str> = files.iter().copied().collect();
        let mut parts = 1;
        while !left.is_empty() {
            let mut by_end: HashMap<&str, Vec<&str>> = HashMap::new();
            left.iter().for_each(|file| by_end.entry(end(file, parts)).or_default().push(file));
            left.clear();
            for (end, files) in by_end {
                match files[..] {
                    [file] => _ = names.insert(file, end),
                    // Those that are that short have no longer name.
                    _ => files.into_iter().for_each(|file| match end.len() == file.len() {
                        true => _ = names.insert(file, file),
                        false => left.push(file),
                    }),
                }
            }
            parts += 1;
        }
        Self { names }
    }

    /// The name of a file.
    pub fn of<'n>(&'n self, file: &'n str) -> &'n str {
        self.names.get(file).copied().unwrap_or(file)
    }
}

/// So many last parts of a path.
fn end(path: &str, parts: usize) -> &str {
    let before = path.rmatch_indices('/').nth(parts - 1);
    before.and_then(|(at, _)| path.get(at + 1..)).filter(|end| !end.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use hetrace_format::Handle;

    use super::*;

    fn frame(stack: u64, around: u64, line: u32, name: &str) -> PyFrame {
        let (stack, around) = (Handle(stack), Handle(around));
        PyFrame { stack, around, line, first_line: 1, file: "/a/train.py".to_owned(), name: name.to_owned() }
    }

    fn shown(stacks: &Stacks, native: u64, python: u64) -> Vec<String> {
        stacks.frames(StackId { native, python }).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn stacks_are_followed_outwards() {
        let mut stacks = Stacks::default();
        stacks.define(frame(10, 0, 90, "<module>"));
        stacks.define(frame(11, 10, 42, "step"));
        // Damaged: it is around itself; what is around another was lost.
        stacks.define(frame(12, 12, 1, "f"));
        stacks.define(frame(13, 99, 1, "g"));
        assert_eq!(shown(&stacks, 0, 11), ["train.py:42 in step", "train.py:90 in <module>"]);
        assert_eq!(shown(&stacks, 0, 0), [""; 0]);
        assert_eq!(shown(&stacks, 0, 1), [""; 0]);
        assert_eq!(shown(&stacks, 0, 12).len(), Stacks::DEEPEST);
        assert_eq!(shown(&stacks, 0, 13), ["train.py:1 in g", "[Python frames not recorded]"]);
        let names: Vec<&str> = ["/a/b/x.py", "/a/c/x.py", "/a/c/y.py", "x.py", "<string>", "a/"].into();
        let short = ShortNames::new(&names.iter().copied().collect());
        let shown: Vec<&str> = names.iter().map(|name| short.of(name)).collect();
        assert_eq!(shown, ["b/x.py", "c/x.py", "y.py", "x.py", "<string>", "a/"]);
        let innermost = stacks.innermost(StackId { native: 0, python: 11 });
        assert_eq!(innermost.map(Frame::file_name), Some("train.py"));
    }

    /// A frame of a module at an address, which is called so: functions with a file and a line, the innermost first.
    fn native(stacks: &mut Stacks, [stack, around, module]: [u64; 3], symbols: &[(&str, &str, u32)]) {
        let (module, address) = (Handle(module), Handle(0x100 + stack));
        let (id, around) = (Handle(stack), Handle(around));
        stacks.define_frame(define::Frame { stack: id, around, module, address });
        // Twice, as each process has its own, and in any order.
        for _ in 0..2 {
            for (level, (function, file, line)) in symbols.iter().enumerate().rev() {
                let level = level as u32;
                let (function, file) = ((*function).to_owned(), (*file).to_owned());
                stacks.define_symbol(Symbol { module, address, level, function, file, line: *line });
            }
        }
    }

    fn module(stacks: &mut Stacks, id: u64, path: &str) {
        stacks.define_module(&Module { module: Handle(id), path: path.to_owned(), ..Module::default() });
    }

    #[test]
    fn what_stacks_are_is_no_event_of_the_program() {
        assert!(is_definition("python:frame") && is_definition("native:symbol"));
        assert!(!is_definition("device:queue") && !is_definition("toy:frame"));
    }

    #[test]
    fn native_frames_are_named_as_far_as_they_are_known() {
        let mut stacks = Stacks::default();
        module(&mut stacks, 1, "/home/me/app");
        module(&mut stacks, 2, "/lib/libblas.so.3");
        module(&mut stacks, 3, "/opt/libhetrace_toy.so");
        native(&mut stacks, [20, 2, 1], &[("main", "/src/main.c", 9)]);
        native(&mut stacks, [21, 20, 1], &[("_ZN3app5innerEi", "/src/in.h", 3), ("outer", "/src/main.c", 7)]);
        native(&mut stacks, [22, 21, 3], &[("wrapper", "", 0)]);
        native(&mut stacks, [23, 22, 2], &[("gemm", "", 0)]);
        native(&mut stacks, [24, 23, 2], &[]);
        native(&mut stacks, [25, 3, 0], &[]);
        stacks.finish();
        let expected = [
            "libblas.so.3+0x118",
            "gemm in libblas.so.3",
            "in.h:3 in app::inner",
            "main.c:7 in outer",
            "main.c:9 in main",
            "[deeper than recorded]",
        ];
        assert_eq!(shown(&stacks, 24, 0), expected);
        let innermost = stacks.innermost(StackId { native: 24, python: 0 });
        assert_eq!(innermost.map(|frame| frame.line), Some(3), "the innermost line that is known");
        assert_eq!(shown(&stacks, 25, 0), ["0x119", "[could not be unwound further]"]);
        assert!(stacks.innermost(StackId { native: 25, python: 0 }).is_some());
    }

    #[test]
    fn addresses_of_code_are_stacks_of_one_frame_each_from_a_time_on() {
        let mut stacks = Stacks::default();
        module(&mut stacks, 1, "/home/me/heat");
        native(&mut stacks, [20, 0, 1], &[("solve", "/src/heat.c", 42)]);
        native(&mut stacks, [21, 0, 1], &[("_ZN3app5innerEi+0x1f", "", 0)]);
        let mut define = |pid, time, code, stack| {
            let (code, stack) = (Handle(code), Handle(stack));
            stacks.define_code(pid, time, &define::Code { code, stack });
        };
        define(7, 100, 0x1000, 20);
        define(7, 150, 0x1000, 20);
        define(7, 200, 0x1000, 21);
        define(8, 100, 0x1000, 21);
        stacks.finish();
        let at = |pid, time| stacks.of_code(pid, 0x1000, time);
        assert_eq!([at(7, 50), at(7, 100), at(7, 199), at(7, 200)], [Some(20), Some(20), Some(20), Some(21)]);
        assert_eq!((at(8, 100), at(9, 100), stacks.of_code(7, 0x1001, 100)), (Some(21), None, None));
        assert_eq!(shown(&stacks, 20, 0), ["heat.c:42 in solve"]);
        assert_eq!(shown(&stacks, 21, 0), ["app::inner+0x1f in heat"]);
    }

    #[test]
    fn places_have_numbers_by_their_names() {
        let mut stacks = Stacks::default();
        stacks.define(frame(10, 0, 90, "main"));
        stacks.define(frame(11, 10, 42, "step"));
        stacks.define(frame(12, 11, 42, "step"));
        let mut sites = Sites::new(&stacks, ToString::to_string);
        let numbers = [0, 12, 11, 10, 99].map(|python| sites.number(StackId { native: 0, python }));
        assert_eq!(numbers, [0, 1, 1, 2, 0]);
        assert_eq!(
            [0, 1, 2, 9].map(|n| sites.name(n)),
            ["", "train.py:42 in step", "train.py:90 in main", ""]
        );
    }

    #[test]
    fn python_frames_stand_where_the_interpreter_runs_them() {
        let mut stacks = Stacks::default();
        module(&mut stacks, 1, "/usr/bin/python3.11");
        module(&mut stacks, 2, "/lib/libffi.so.8");
        module(&mut stacks, 3, "/lib/libc.so.6");
        let evaluates = [(EVALUATES, "", 0)];
        native(&mut stacks, [20, 0, 3], &[("__libc_start_main", "", 0)]);
        native(&mut stacks, [21, 20, 1], &[("Py_RunMain", "", 0)]);
        native(&mut stacks, [22, 21, 1], &evaluates);
        native(&mut stacks, [23, 22, 2], &[("ffi_call", "", 0)]);
        native(&mut stacks, [24, 23, 3], &[("qsort", "", 0)]);
        native(&mut stacks, [25, 24, 1], &evaluates);
        native(&mut stacks, [26, 25, 2], &[("ffi_call_again", "", 0)]);
        stacks.define(frame(10, 0, 1, "outer"));
        stacks.define(frame(11, 10, 2, "inner"));
        stacks.define(frame(12, 11, 3, "innermost"));
        stacks.finish();
        let names = |native, python| -> Vec<String> {
            stacks.frames(StackId { native, python }).iter().map(|frame| frame.name.to_string()).collect()
        };
        // As many frames as calls of what evaluates them.
        let each = ["ffi_call_again", "inner", "qsort", "ffi_call", "outer", "__libc_start_main"];
        assert_eq!(names(26, 11), each);
        let innermost = stacks.innermost(StackId { native: 26, python: 11 });
        assert_eq!(
            innermost.map(|frame| &*frame.name),
            Some("inner"),
            "Python's, though native ones are further in"
        );
        // One call of that for all.
        assert_eq!(names(23, 12), ["ffi_call", "innermost", "inner", "outer", "__libc_start_main"]);
        // The stack ends before it comes to the interpreter.
        assert_eq!(names(20, 10), ["__libc_start_main", "outer"]);
    }
}
