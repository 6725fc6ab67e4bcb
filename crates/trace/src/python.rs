//! The Python code that made each call, in traces of `hetrace run --py-stacks`.
//!
//! A stack is its innermost frame and the stack around it ([`Frame::around`]); an id names it. The recorder writes the
//! id right before the entry of a call ([`spans`](crate::spans) joins the two), and what an id stands for once.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

pub use hetrace_format::define::PyFrame;

/// Names a Python stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u64);

impl StackId {
    /// No Python code, or stacks were not recorded.
    pub const NONE: Self = Self(0);
}

/// A frame of a Python stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The stack around it.
    pub around: StackId,
    /// The line that it is at; 0 if it has none.
    pub line: u32,
    /// The first line of its function.
    pub first_line: u32,
    /// Its file, as the code names it.
    pub file: Arc<str>,
    /// Its function's qualified name; before CPython 3.11 its name.
    pub name: Arc<str>,
}

impl Frame {
    /// The last part of its file's path.
    pub fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }
}

/// `train.py:42 in step`.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} in {}", self.file_name(), self.line, self.name)
    }
}

/// The Python stacks of a trace.
#[derive(Clone, Debug, Default)]
pub struct Python {
    frames: HashMap<StackId, Frame>,
    /// The same few files and functions come again and again.
    texts: HashMap<String, Arc<str>>,
}

impl Python {
    /// Frames of a stack that are looked at, at most: of a damaged trace, one may be around itself.
    const DEEPEST: usize = 1 << 16;

    pub(crate) fn define(&mut self, frame: PyFrame) {
        let PyFrame { stack, around, line, first_line, file, name } = frame;
        let [file, name] = [file, name].map(|text| self.text(text));
        self.frames
            .insert(StackId(stack.0), Frame { around: StackId(around.0), line, first_line, file, name });
    }

    fn text(&mut self, text: String) -> Arc<str> {
        if let Some(known) = self.texts.get(&text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.as_str().into();
        self.texts.insert(text, Arc::clone(&shared));
        shared
    }

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Names of all files, each as short as is clear.
    pub fn short_names(&self) -> ShortNames<'_> {
        let files: HashSet<&str> = self.frames.values().map(|frame| &*frame.file).collect();
        ShortNames::new(&files)
    }

    /// The innermost frame of a stack, if it is known.
    pub fn innermost(&self, stack: StackId) -> Option<&Frame> {
        self.frames.get(&stack)
    }

    /// The frames of a stack, the innermost first, as far as they are known.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        self.ids(stack).filter_map(|id| self.frames.get(&id))
    }

    /// The same as ids: the stack, the one around it, and so on.
    pub fn ids(&self, stack: StackId) -> impl Iterator<Item = StackId> {
        let known = move |id: StackId| self.frames.contains_key(&id).then_some(id);
        let around = move |id: &StackId| known(self.frames.get(id)?.around);
        std::iter::successors(known(stack), around).take(Self::DEEPEST)
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

    #[test]
    fn stacks_are_followed_outwards() {
        let mut python = Python::default();
        python.define(frame(10, 0, 90, "<module>"));
        python.define(frame(11, 10, 42, "step"));
        // Damaged: it is around itself.
        python.define(frame(12, 12, 1, "f"));
        let shown = |stack| python.frames(StackId(stack)).map(Frame::to_string).collect::<Vec<_>>();
        assert_eq!(shown(11), ["train.py:42 in step", "train.py:90 in <module>"]);
        assert_eq!(shown(0), [""; 0]);
        assert_eq!(shown(1), [""; 0]);
        assert_eq!(python.frames(StackId(12)).count(), Python::DEEPEST);
        let names: Vec<&str> = ["/a/b/x.py", "/a/c/x.py", "/a/c/y.py", "x.py", "<string>", "a/"].into();
        let short = ShortNames::new(&names.iter().copied().collect());
        let shown: Vec<&str> = names.iter().map(|name| short.of(name)).collect();
        assert_eq!(shown, ["b/x.py", "c/x.py", "y.py", "x.py", "<string>", "a/"]);
        assert_eq!(python.innermost(StackId(11)).map(Frame::file_name), Some("train.py"));
    }
}
