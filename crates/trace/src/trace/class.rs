//! What each event class is, resolved once, so that no event is looked up by name.

use std::collections::HashMap;

use super::sample::Fields;
use crate::stacks::Kind;
use hetrace_ctf::class::{EventClass, Scope, StructClass, TraceClass};
use hetrace_ctf::read::Event;
use hetrace_format::calls;
use hetrace_format::command;
pub use hetrace_format::define::Definition;
use hetrace_model::layout::Phase;
use hetrace_model::{Function, Model, Success};

use super::functions::{FunctionId, Functions};

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// A call begins.
    Entry(FunctionId),
    /// A call ends.
    Exit(FunctionId, Verdict),
    /// Many calls in one: positions of `count`, `first`, `last`, `total`, and of whether they were added up (else they
    /// are a run of equal polls) and of `total_error`.
    Fold(FunctionId, [usize; 4], [Option<usize>; 2]),
    /// A command on a device.
    Command(Box<command::Reader>),
    /// What a number of device events stands for.
    Definition(Definition),
    /// A call of a function that the model does not have: its API's position,
    /// and that of the name among the fields.
    Unknown(usize, usize),
    /// What the tracer did inside of the thread's innermost call: position of the nanoseconds.
    OwnWork(usize),
    /// What the thread records from here on: see [`crate::budget::step_of`].
    BudgetStep,
    /// The Python or native stack of the call that begins next on the thread: positions of its id, and of the number of
    /// the entry of that call.
    Stack(Kind, [usize; 2]),
    /// A sample of a processor.
    Sample(Fields),
    /// Anything else.
    Other,
}

/// How an exit shows whether the call worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did.
    Always,
    /// If this field is 0; else it is the error code.
    Zero(usize),
    /// The same, and these codes are states and no failures.
    ZeroOr(usize, Box<[i64]>),
    /// If this field is not 0.
    NonZero(usize),
}

impl Verdict {
    /// The error code of a call that failed.
    #[inline]
    pub fn error(&self, exit: &Event<'_, '_>) -> Option<i64> {
        number(exit, Some(self.field()?)).and_then(|code| self.error_of(code))
    }

    /// The position of the field that it looks at.
    #[inline]
    pub fn field(&self) -> Option<usize> {
        match self {
            Verdict::Always => None,
            Verdict::Zero(field) | Verdict::ZeroOr(field, _) | Verdict::NonZero(field) => Some(*field),
        }
    }

    /// The error code, if the field has this value.
    #[inline]
    pub fn error_of(&self, value: i64) -> Option<i64> {
        let failed = match self {
            Verdict::Always => false,
            Verdict::Zero(_) => value != 0,
            Verdict::ZeroOr(_, states) => value != 0 && !states.contains(&value),
            Verdict::NonZero(_) => value == 0,
        };
        failed.then_some(value)
    }
}

/// A field of the payload as a number; unsigned ones keep their bits.
#[inline]
pub fn number(event: &Event<'_, '_>, field: Option<usize>) -> Option<i64> {
    event.integer_at(Scope::EventFields, field?)
}

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

    /// The same with other kinds in their places.
    pub(super) fn map(&self, to: impl Fn(&Class) -> Class) -> Self {
        let by_stream = self.by_stream.iter().map(|classes| classes.iter().map(&to).collect());
        Self { by_stream: by_stream.collect() }
    }

    /// Whether there may be an event of such a kind.
    pub(super) fn any(&self, is: impl Fn(&Class) -> bool) -> bool {
        self.by_stream.iter().flatten().any(is)
    }

    /// By function's number, whether the trace has a kind of event of its calls; `functions` is how many there are.
    pub(super) fn occurring(&self, functions: usize) -> Vec<bool> {
        let mut occurring = vec![false; functions];
        for class in self.by_stream.iter().flatten() {
            if let Class::Entry(id) | Class::Exit(id, _) | Class::Fold(id, ..) = class
                && let Some(occurs) = occurring.get_mut(id.index())
            {
                *occurs = true;
            }
        }
        occurring
    }

    /// The kinds of the events of a stream class, by its position.
    pub fn of_stream(&self, stream: usize) -> &[Class] {
        self.by_stream.get(stream).map_or(&[], Vec::as_slice)
    }
}

struct Resolver<'a> {
    models: &'a [Model],
    functions: &'a mut Functions,
    /// Function by its model's position and its name.
    by_name: HashMap<(usize, &'a str), usize>,
}

impl<'a> Resolver<'a> {
    fn new(models: &'a [Model], functions: &'a mut Functions) -> Self {
        let functions_of_models = models.iter().map(|model| model.functions.len()).sum();
        let mut by_name = HashMap::with_capacity(functions_of_models);
        for (api, model) in models.iter().enumerate() {
            for (index, f) in model.functions.iter().enumerate() {
                by_name.insert((api, f.name.as_str()), index);
            }
        }
        Self { models, functions, by_name }
    }

    fn class(&mut self, event: &EventClass) -> Class {
        if let Some(definition) = Definition::of_event(&event.name) {
            return Class::Definition(definition);
        }
        if event.name.starts_with(command::PREFIX) {
            let reader = command::Reader::new(event);
            return reader.map_or(Class::Other, |reader| Class::Command(Box::new(reader)));
        }
        if let Some(fields) = Fields::of(event) {
            return Class::Sample(fields);
        }
        if let Some(api) = event.name.strip_suffix(calls::UNKNOWN)
            && let (Some(api), Some(name)) = (self.functions.api(api), event.fields.index("name"))
        {
            return Class::Unknown(api, name);
        }
        if event.name.ends_with(calls::OWN_WORK)
            && let Some(ns) = event.fields.index("ns")
        {
            return Class::OwnWork(ns);
        }
        if event.name.ends_with(calls::BUDGET_STEP) && event.fields.index("summed").is_some() {
            return Class::BudgetStep;
        }
        let kinds = [(calls::PY_STACK, Kind::Python), (calls::STACK, Kind::Native)];
        if let Some((_, kind)) = kinds.into_iter().find(|(end, _)| event.name.ends_with(end))
            && let (Some(stack), Some(entry)) = (event.fields.index("stack"), event.fields.index("entry"))
        {
            return Class::Stack(kind, [stack, entry]);
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
        let known = self.models.iter().position(|model| model.api == api).and_then(|api| {
            let index = *self.by_name.get(&(api, function))?;
            let id = self.functions.of_model(api, index)?;
            let model = &self.models[api];
            Some((id, Some((model, &model.functions[index]))))
        });
        let (id, described) = known.unwrap_or_else(|| (self.functions.by_name(api, function), None));
        match phase {
            Phase::Entry => self.entry(id, described, fields),
            Phase::Exit => Class::Exit(id, verdict(described, fields)),
            Phase::Fold => {
                let position = |name| fields.index(name);
                match ["count", "first", "last", "total"].map(position) {
                    [Some(count), Some(first), Some(last), Some(total)] => {
                        let more = ["added_up", "total_error"].map(position);
                        Class::Fold(id, [count, first, last, total], more)
                    }
                    _ => Class::Other,
                }
            }
        }
    }

    fn entry(
        &mut self,
        id: FunctionId,
        described: Option<(&Model, &Function)>,
        fields: &StructClass,
    ) -> Class {
        let code = described.and_then(|(model, _)| fields.index(model.interpose.code.as_deref()?));
        code.into_iter().for_each(|field| self.functions.says_code(id, field));
        Class::Entry(id)
    }
}

fn verdict(described: Option<(&Model, &Function)>, fields: &StructClass) -> Verdict {
    // Without a model nobody knows what a result means.
    let Some((model, f)) = described else { return Verdict::Always };
    let zero = |name: &str, group: &String| {
        let Some(field) = fields.index(name) else { return Verdict::Always };
        let group = model.enums.get(group);
        let values = group.map_or(&[][..], |g| &g.values).iter();
        let states = values.filter(|(name, _)| model.states.contains(name)).map(|(_, code)| *code);
        let states: Box<[i64]> = states.collect();
        if states.is_empty() { Verdict::Zero(field) } else { Verdict::ZeroOr(field, states) }
    };
    match &f.success {
        Success::ReturnZero => zero("result", f.returns_values.as_ref().unwrap_or(&model.errors)),
        Success::OutZero(name) => zero(name, &model.errors),
        Success::ReturnNonNull => fields.index("result").map_or(Verdict::Always, Verdict::NonZero),
        Success::Always => Verdict::Always,
    }
}
