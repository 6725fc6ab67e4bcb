//! The code that made a call, as exports have it.

use std::collections::HashMap;
use std::rc::Rc;

use hetrace_trace::stacks::{Frame, Kind, StackId, Stacks};

/// What stands for a stack.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// The frame that stands for it.
    pub frame: Frame,
    /// The innermost frame, with a line or without.
    pub innermost: Frame,
    /// `solver.cpp:42 in step`.
    pub at: String,
    /// All frames so, the innermost first, with `;` between.
    pub stack: String,
}

/// The stacks that were met.
#[derive(Debug)]
pub(crate) struct Sources<'t> {
    stacks: &'t Stacks,
    known: HashMap<StackId, Option<Rc<Source>>>,
}

impl<'t> Sources<'t> {
    pub fn new(stacks: &'t Stacks) -> Self {
        Self { stacks, known: HashMap::new() }
    }

    /// Returns that of a stack; none if it is not known.
    pub fn of(&mut self, stack: StackId) -> Option<Rc<Source>> {
        if stack == StackId::NONE {
            return None;
        }
        let stacks = self.stacks;
        let known = self.known.entry(stack).or_insert_with(|| {
            let frame = stacks.innermost(stack)?.clone();
            // What separates frames may not be in one.
            let text = |frame: &&Frame| frame.to_string().replace(';', ",");
            let frames = stacks.frames(stack);
            let known = frames.iter().find(|frame| frame.kind != Kind::Missing);
            let innermost = known.map_or_else(|| frame.clone(), |known| (*known).clone());
            let all: Vec<String> = frames.iter().map(text).collect();
            Some(Rc::new(Source { at: frame.to_string(), stack: all.join(";"), frame, innermost }))
        });
        known.clone()
    }
}
