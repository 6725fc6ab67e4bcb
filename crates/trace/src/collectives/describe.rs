//! What functions of collectives are, resolved once.

use std::collections::HashMap;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Event, FieldRef, FieldVisitor};
use hetrace_model::{Collective, Communicator, Function, Model};

use crate::facts::objects::queues_of_collective;
use crate::trace::{FunctionId, Trace};

/// What a function means here.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Nothing,
    /// Of another API: enqueues something.
    Enqueues,
    /// Of another API: waits for all that a device has to do.
    Waits,
    /// Enqueues what was grouped.
    Flush,
    /// Of an API with collectives, and of no other kind.
    Other,
    Operation(Box<Operation>),
    Makes(Box<Communicator>),
}

/// A function that enqueues a collective.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub about: Collective,
    /// Names of the parameters that may be the queue.
    pub queues: Vec<String>,
    /// Bytes of an element by its type's value; of a function that is named after the type, by 0.
    pub sizes: HashMap<i64, u32>,
}

/// The kinds of all functions; empty if no API has collectives.
pub(super) fn kinds(trace: &Trace) -> Vec<Kind> {
    let operates = |m: &Model| m.functions.iter().any(|f| f.collective().is_some());
    let with: Vec<bool> = trace.models().iter().map(operates).collect();
    let functions = || trace.functions().all().iter().zip(0u32..);
    let has = |api: usize| with.get(api) == Some(&true);
    if !functions().any(|(function, id)| has(function.api) && trace.has_calls_of(FunctionId(id))) {
        return Vec::new();
    }
    let kinds = functions().map(|(function, id)| {
        let described = trace.model_of(FunctionId(id)).zip(trace.described(FunctionId(id)));
        match described {
            Some((model, f)) if has(function.api) => kind(model, f),
            _ if function.enqueues => Kind::Enqueues,
            Some((_, f)) if f.has_role("sync") && f.has_role("blocks") && f.params.is_empty() => Kind::Waits,
            _ => Kind::Nothing,
        }
    });
    kinds.collect()
}

fn kind(model: &Model, f: &Function) -> Kind {
    if let Some(about) = f.collective() {
        return Kind::Operation(Box::new(operation(model, f, about)));
    }
    match f.communicator() {
        Some(communicator) => Kind::Makes(Box::new(communicator.clone())),
        None if f.has_role("flush") => Kind::Flush,
        None => Kind::Other,
    }
}

fn operation(model: &Model, f: &Function, about: &Collective) -> Operation {
    let element = f.params.iter().find(|p| p.name == about.element);
    let group = element.and_then(|p| {
        let by_type = || model.types.get(&p.base)?.values.as_ref();
        let name = p.values.as_ref().or_else(by_type)?;
        model.enums.get(name)
    });
    let values = group.map_or(&[][..], |g| &g.values).iter();
    let sizes = values.filter_map(|(name, value)| Some((*value, *model.element_sizes.get(name)?)));
    let fixed = about.of.as_ref().and_then(|of| Some((0, *model.element_sizes.get(of)?)));
    let sizes = sizes.chain(fixed);
    Operation {
        about: about.clone(),
        queues: queues_of_collective(model, f, about).map(str::to_owned).collect(),
        sizes: sizes.collect(),
    }
}

/// A field that may have parts: its numbers, and a number for all that is in it.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub numbers: Vec<u64>,
    /// 64-bit FNV-1a; 0 if there is nothing but zeros.
    pub hash: u64,
}

/// Numbers that are kept of a field.
const KEPT_NUMBERS: usize = 1024;

impl Content {
    /// Reads a field by its name.
    pub fn of(event: &Event<'_, '_>, name: &str) -> Self {
        let mut reader = Reader { name, depth: 0, inside: false, content: Self::default(), something: false };
        // What is damaged has been reported by the walk.
        let _ = event.visit(Scope::EventFields, &mut reader);
        let mut content = reader.content;
        if !reader.something {
            content.hash = 0;
        }
        content
    }
}

struct Reader<'n> {
    name: &'n str,
    depth: u32,
    inside: bool,
    content: Content,
    something: bool,
}

impl Reader<'_> {
    fn open(&mut self, field: FieldRef<'_>) {
        if self.depth == 0 {
            self.inside = field.name == self.name;
        }
        self.depth += 1;
    }

    fn add(&mut self, bytes: &[u8]) {
        self.something |= bytes.iter().any(|b| *b != 0);
        let start = if self.content.hash == 0 { 0xcbf2_9ce4_8422_2325 } else { self.content.hash };
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        self.content.hash = bytes.iter().fold(start, step);
    }
}

impl<'e> FieldVisitor<'e> for Reader<'_> {
    fn scalar(&mut self, field: FieldRef<'e>, value: Scalar<'e>) {
        if self.depth == 0 {
            self.inside = field.name == self.name;
        }
        if !self.inside {
            return;
        }
        match value {
            Scalar::Str(text) => self.add(text.as_bytes()),
            Scalar::Bytes(bytes) => self.add(bytes),
            value => {
                let Some(number) = value.bits() else { return };
                self.add(&number.to_le_bytes());
                if self.content.numbers.len() < KEPT_NUMBERS {
                    self.content.numbers.push(number);
                }
            }
        }
    }

    fn begin_struct(&mut self, field: FieldRef<'e>) {
        self.open(field);
    }

    fn end_struct(&mut self, _: FieldRef<'e>) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn begin_array(&mut self, field: FieldRef<'e>, _: u64) {
        self.open(field);
    }

    fn end_array(&mut self, _: FieldRef<'e>) {
        self.depth = self.depth.saturating_sub(1);
    }
}
