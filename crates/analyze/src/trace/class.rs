//! What each event class is, resolved once, so that no event is looked up by name.

use std::collections::HashMap;

use hetrace_ctf::class::{EventClass, Scope, StructClass, TraceClass};
use hetrace_ctf::read::Event;
use hetrace_model::layout::Phase;
use hetrace_model::{Model, Success};

use super::functions::{FunctionId, Functions};

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// A call begins.
    Entry(FunctionId),
    /// A call ends.
    Exit(FunctionId, Verdict),
    /// A run of equal calls: positions of `count`, `first`, `last`, `total`.
    Fold(FunctionId, [usize; 4]),
    /// A command on a device.
    Command(Box<CommandFields>),
    /// A queue was made.
    Queue(Box<QueueFields>),
    /// Anything else.
    Other,
}

/// How an exit tells whether the call worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did.
    Always,
    /// If this field is 0; else it is the error code.
    Zero(usize),
    /// If this field is not 0.
    NonZero(usize),
}

impl Verdict {
    /// The error code of a call that failed.
    #[inline]
    pub fn error(self, exit: &Event<'_, '_>) -> Option<i64> {
        match self {
            Verdict::Always => None,
            Verdict::Zero(field) => number(exit, Some(field)).filter(|&code| code != 0),
            Verdict::NonZero(field) => number(exit, Some(field)).filter(|&code| code == 0),
        }
    }
}

/// A field of the payload as a number; unsigned ones keep their bits.
pub(crate) fn number(event: &Event<'_, '_>, field: Option<usize>) -> Option<i64> {
    let value = event.get_at(Scope::EventFields, field?)?;
    value.as_i64().or_else(|| value.as_u64().map(|v| v as i64))
}

/// Positions of the fields of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandFields {
    /// What it is, by the event's name.
    pub kind: String,
    /// Whether it has no times; then `kind_field` says what it is.
    pub untimed: bool,
    pub(crate) kind_field: Option<usize>,
    pub(crate) name: Option<usize>,
    pub(crate) queue: Option<usize>,
    pub(crate) context: Option<usize>,
    pub(crate) device: Option<usize>,
    pub(crate) cause_tid: Option<usize>,
    pub(crate) cause: Option<usize>,
    pub(crate) queued: Option<usize>,
    pub(crate) submitted: Option<usize>,
    pub(crate) end: Option<usize>,
    pub(crate) bytes: Option<usize>,
    pub(crate) status: Option<usize>,
    pub(crate) times_error: Option<usize>,
}

/// Positions of the fields of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueFields {
    pub(crate) queue: Option<usize>,
    pub(crate) context: Option<usize>,
    pub(crate) device: Option<usize>,
    pub(crate) name: Option<usize>,
}

/// What stands before the names of events that are no calls of an API.
const DEVICE: &str = "device:";

/// The kinds of all event classes, by stream class and event class.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    by_stream: Vec<Vec<Class>>,
}

impl Classes {
    pub(super) fn resolve(trace: &TraceClass, models: &[Model], functions: &mut Functions) -> Self {
        let mut resolver = Resolver::new(models, functions);
        let streams = trace.streams.iter();
        let classes = streams.map(|s| s.events.iter().map(|e| resolver.class(e)).collect());
        Self { by_stream: classes.collect() }
    }

    /// The kinds of the events of a stream class, by its position.
    pub fn of_stream(&self, stream: usize) -> &[Class] {
        self.by_stream.get(stream).map_or(&[], Vec::as_slice)
    }
}

struct Resolver<'a> {
    models: &'a [Model],
    functions: &'a mut Functions,
    /// Model and function by `api:function`.
    by_name: HashMap<String, (usize, usize)>,
}

impl<'a> Resolver<'a> {
    fn new(models: &'a [Model], functions: &'a mut Functions) -> Self {
        let mut by_name = HashMap::new();
        for (api, model) in models.iter().enumerate() {
            for (index, f) in model.functions.iter().enumerate() {
                by_name.insert(format!("{}:{}", model.api, f.name), (api, index));
            }
        }
        Self { models, functions, by_name }
    }

    fn class(&mut self, event: &EventClass) -> Class {
        if let Some(kind) = event.name.strip_prefix(DEVICE) {
            return device(kind, event);
        }
        let phases = [Phase::Entry, Phase::Exit, Phase::Fold];
        let split = |p: Phase| Some((event.name.strip_suffix(p.suffix())?, p));
        let Some((name, phase)) = phases.into_iter().find_map(split) else {
            return Class::Other;
        };
        let Some((api, function)) = name.split_once(':') else {
            return Class::Other;
        };
        let fields = &event.fields;
        let known = self.by_name.get(name).copied();
        let known = known.and_then(|(api, index)| {
            let id = self.functions.of_model(api, index)?;
            Some((id, Some(&self.models[api].functions[index].success)))
        });
        let (id, success) = known.unwrap_or_else(|| (self.functions.by_name(api, function), None));
        match phase {
            Phase::Entry => Class::Entry(id),
            Phase::Exit => Class::Exit(id, verdict(success, fields)),
            Phase::Fold => {
                let position = |name| fields.index(name);
                match ["count", "first", "last", "total"].map(position) {
                    [Some(count), Some(first), Some(last), Some(total)] => {
                        Class::Fold(id, [count, first, last, total])
                    }
                    _ => Class::Other,
                }
            }
        }
    }
}

fn verdict(success: Option<&Success>, fields: &StructClass) -> Verdict {
    let zero = |name: &str| fields.index(name).map_or(Verdict::Always, Verdict::Zero);
    match success {
        Some(Success::ReturnZero) => zero("result"),
        Some(Success::OutZero(name)) => zero(name),
        Some(Success::ReturnNonNull) => {
            let result = fields.index("result");
            result.map_or(Verdict::Always, Verdict::NonZero)
        }
        // Without a model nobody knows what a result means.
        Some(Success::Always) | None => Verdict::Always,
    }
}

fn device(kind: &str, event: &EventClass) -> Class {
    let at = |name: &str| event.fields.index(name);
    if kind == "queue" {
        return Class::Queue(Box::new(QueueFields {
            queue: at("queue"),
            context: at("context"),
            device: at("device"),
            name: at("name"),
        }));
    }
    let untimed = kind == "untimed";
    if !untimed && at("end").is_none() {
        return Class::Other;
    }
    Class::Command(Box::new(CommandFields {
        kind: if untimed { "other" } else { kind }.to_owned(),
        untimed,
        kind_field: at("kind"),
        name: at("name"),
        queue: at("queue"),
        context: at("context"),
        device: at("device"),
        cause_tid: at("cause_tid"),
        cause: at("cause"),
        queued: at("queued"),
        submitted: at("submitted"),
        end: at("end"),
        bytes: at("bytes"),
        status: at("status"),
        times_error: at("times_error"),
    }))
}
