//! Events of calls: the functions of an API as its model describes them.
//!
//! Named `API:FUNCTION_PHASE`. Which fields an event has says [`hetrace_model::layout`], which also
//! makes the code that writes them; here they become classes.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::event;
use crate::field::{counted, put_text};
use hetrace_ctf::class::{
    EnumClass, EnumMapping, EventClass, FieldClass, FloatClass, IntegerClass, StructClass,
};
use hetrace_model::layout::{self, Int, Shape};
pub use hetrace_model::layout::{entry_id, function_of};
use hetrace_model::{Function, Kind, Model, Type};

/// Number of the event of a call that the model does not have.
pub const UNKNOWN_ID: u16 = 6;
/// Number of the event of what an API says of an error code.
pub const ERROR_TEXT_ID: u16 = 11;
/// Number of the event of what the tracer did inside of a call that enqueues commands.
pub const OWN_WORK_ID: u16 = 15;
/// Number of the event from which a thread records otherwise, to keep within its budget.
pub const BUDGET_STEP_ID: u16 = 16;
/// Number of the event with the Python stack of the call that begins next.
pub const PY_STACK_ID: u16 = 18;
/// Number of the event with the native stack of the call that begins next.
pub const STACK_ID: u16 = 20;
/// How the names of these events end, behind the API's.
pub const UNKNOWN: &str = ":unknown";
/// See [`UNKNOWN`].
pub const ERROR_TEXT: &str = ":error_text";
/// See [`UNKNOWN`].
pub const OWN_WORK: &str = ":own_work";
/// See [`UNKNOWN`].
pub const BUDGET_STEP: &str = ":budget_step";
/// See [`UNKNOWN`].
pub const PY_STACK: &str = ":py_stack";
/// See [`UNKNOWN`].
pub const STACK: &str = ":stack";

/// Arguments shown of a call that nobody knows: those that stand in registers.
pub const UNKNOWN_ARGUMENTS: usize = 6;

/// Returns all events of an API.
pub fn classes(model: &Model) -> Vec<EventClass> {
    let api = Api::new(model);
    let events = layout::events(model);
    let own = events.iter().map(|e| api.event_class(e));
    own.chain(NO_CALLS.iter().map(|(_, class)| class(&model.api))).collect()
}

/// Makes an event's class for the API of a name.
type OfApi = fn(&str) -> EventClass;

/// The events that are no calls: their numbers, and what they are.
const NO_CALLS: [(u16, OfApi); 6] = [
    (UNKNOWN_ID, unknown_event),
    (ERROR_TEXT_ID, error_text_event),
    (OWN_WORK_ID, own_work_event),
    (BUDGET_STEP_ID, budget_step_event),
    (PY_STACK_ID, py_stack_event),
    (STACK_ID, stack_event),
];

/// Returns the event of a number in the stream of a model's API, whose functions are asked for one by one and
/// need not be in the model; none if there is no such event.
///
/// # Errors
/// That of `function`, which gets a function's position in the whole model.
pub fn class_of<E>(
    model: &Model,
    id: u16,
    function: impl FnOnce(usize) -> Result<Option<Function>, E>,
) -> Result<Option<EventClass>, E> {
    if let Some((_, class)) = NO_CALLS.iter().find(|(known, _)| *known == id) {
        return Ok(Some(class(&model.api)));
    }
    let Some(index) = layout::function_of(id) else { return Ok(None) };
    let Some(function) = function(index)? else { return Ok(None) };
    let events = layout::events_of(model, &function, index);
    let api = Api::new(model);
    Ok(events.iter().find(|event| event.id == id).map(|event| api.event_class(event)))
}

/// Returns what the API itself says of an error code.
fn error_text_event(api: &str) -> EventClass {
    let fields =
        StructClass::default().field("code", IntegerClass::signed(64)).field("text", FieldClass::string());
    event(ERROR_TEXT_ID, &format!("{api}{ERROR_TEXT}"), fields)
}

/// Returns what of the call that ends next the tracer took to time its command, where that is more than in most.
fn own_work_event(api: &str) -> EventClass {
    let fields = StructClass::default().field("ns", IntegerClass::unsigned(64));
    event(OWN_WORK_ID, &format!("{api}{OWN_WORK}"), fields)
}

/// What a thread records from here on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetStep {
    /// One of so many launches of each kernel, and of so many commands of any other kind, is timed; 1: all.
    pub one_in: u32,
    /// Whether calls are added up by function, without arguments and results.
    pub summed: bool,
    /// Whether most of these are only counted: then their time is an estimate.
    pub counted: bool,
    /// What recording took of the thread's time since the last step, in parts per million.
    pub spent_ppm: u32,
    /// What it may take, in parts per million.
    pub budget_ppm: u32,
}

/// Returns the event of a [`BudgetStep`].
fn budget_step_event(api: &str) -> EventClass {
    let fields = StructClass::default()
        .field("one_in", IntegerClass::unsigned(32))
        .field("summed", IntegerClass::unsigned(32))
        .field("spent_ppm", IntegerClass::unsigned(32))
        .field("budget_ppm", IntegerClass::unsigned(32));
    event(BUDGET_STEP_ID, &format!("{api}{BUDGET_STEP}"), fields)
}

/// The bytes of [`BUDGET_STEP`].
pub fn put_budget_step(body: &mut Vec<u8>, step: &BudgetStep) {
    let BudgetStep { one_in, summed, counted, spent_ppm, budget_ppm } = *step;
    // 2: counted; readers that do not know that take it for added up.
    for value in [one_in, u32::from(summed) + u32::from(counted), spent_ppm, budget_ppm] {
        body.extend_from_slice(&value.to_le_bytes());
    }
}

/// Returns the Python stack of the call that begins next on the thread, if its entry has this number: see
/// [`PyFrame`](crate::define::PyFrame).
fn py_stack_event(api: &str) -> EventClass {
    event(PY_STACK_ID, &format!("{api}{PY_STACK}"), stack_fields())
}

/// Returns the native stack of the call that begins next on the thread, if its entry has this number: see
/// [`Frame`](crate::define::Frame).
fn stack_event(api: &str) -> EventClass {
    event(STACK_ID, &format!("{api}{STACK}"), stack_fields())
}

fn stack_fields() -> StructClass {
    StructClass::default()
        .field("stack", IntegerClass::unsigned(64).hex())
        .field("entry", IntegerClass::unsigned(16))
}

/// The bytes of [`PY_STACK`], and of [`STACK`].
pub fn put_stack(body: &mut Vec<u8>, stack: u64, entry: u16) {
    body.extend_from_slice(&stack.to_le_bytes());
    body.extend_from_slice(&entry.to_le_bytes());
}

/// The bytes of [`OWN_WORK`].
pub fn put_own_work(body: &mut Vec<u8>, ns: u64) {
    body.extend_from_slice(&ns.to_le_bytes());
}

/// The bytes of [`ERROR_TEXT`].
pub fn put_error_text(body: &mut Vec<u8>, code: i64, text: &[u8]) {
    body.extend_from_slice(&code.to_le_bytes());
    put_text(body, text);
}

/// The bytes of [`UNKNOWN`].
pub fn put_unknown(body: &mut Vec<u8>, name: &[u8], arguments: [u64; UNKNOWN_ARGUMENTS]) {
    put_text(body, name);
    arguments.iter().for_each(|argument| body.extend_from_slice(&argument.to_le_bytes()));
}

/// Returns a call of a function that the model does not have.
fn unknown_event(api: &str) -> EventClass {
    let word = IntegerClass::unsigned(64).hex();
    let fields = StructClass::default()
        .field("name", FieldClass::string())
        .field("args", FieldClass::array(UNKNOWN_ARGUMENTS as u64, word));
    event(UNKNOWN_ID, &format!("{api}{UNKNOWN}"), fields)
}

/// A model, and the names of its enumerations, which all their uses share.
struct Api<'m> {
    model: &'m Model,
    /// By group, those that were asked for. Sets of bits have none: few of their values have a name.
    names: RefCell<HashMap<String, Option<Arc<[EnumMapping]>>>>,
}

/// Returns the first name of a value is its name.
fn mappings(values: &[(String, i64)]) -> Arc<[EnumMapping]> {
    let mut named = HashSet::new();
    let first = values.iter().filter(|(_, value)| named.insert(*value));
    let mappings = first.map(|(label, value)| {
        let value = i128::from(*value);
        EnumMapping { label: label.clone(), start: value, end: value }
    });
    mappings.collect()
}

impl<'m> Api<'m> {
    fn new(model: &'m Model) -> Self {
        Self { model, names: RefCell::default() }
    }

    /// Returns the names of a group's values.
    fn names(&self, group: &str) -> Option<Arc<[EnumMapping]>> {
        // Of two groups of a name the first counts.
        let found = || self.model.enums.iter().find(|known| !known.bits && known.name == group);
        let mut names = self.names.borrow_mut();
        if let Some(known) = names.get(group) {
            return known.clone();
        }
        let made = found().map(|known| mappings(&known.values));
        names.insert(group.to_owned(), made.clone());
        made
    }

    fn event_class(&self, e: &layout::Event) -> EventClass {
        let mut fields = StructClass::default();
        for field in &e.fields {
            fields = self.push(fields, &field.name, &field.shape);
        }
        event(e.id, &e.name, fields)
    }

    /// Adds a field, and before it the field with its length if it has one.
    fn push(&self, fields: StructClass, name: &str, shape: &Shape) -> StructClass {
        match shape {
            Shape::Seq(element) => counted(fields, name, 8, self.class(element)),
            Shape::Bytes => counted(fields, name, 16, IntegerClass::unsigned(8).hex().into()),
            Shape::Texts => counted(fields, name, 8, FieldClass::string()),
            shape => fields.field(name, self.class(shape)),
        }
    }

    fn class(&self, shape: &Shape) -> FieldClass {
        match shape {
            Shape::Int(int) => self.integer(int),
            Shape::Float(4) => FieldClass::Float(FloatClass::single()),
            Shape::Float(_) => FieldClass::Float(FloatClass::double()),
            Shape::Text => FieldClass::string(),
            Shape::Struct(name) => match self.model.types.get(name) {
                Some(ty) if ty.kind == Kind::Union => {
                    FieldClass::array(u64::from(layout::recorded_size(ty)), IntegerClass::unsigned(8).hex())
                }
                Some(ty) => FieldClass::Struct(self.structure(ty, layout::recorded_size(ty))),
                None => IntegerClass::unsigned(8).into(),
            },
            // Only elements come here, and these are never counted themselves.
            Shape::Seq(_) | Shape::Bytes | Shape::Texts => IntegerClass::unsigned(8).hex().into(),
        }
    }

    fn integer(&self, int: &Int) -> FieldClass {
        let mut container = IntegerClass::new(u32::from(int.size) * 8, int.signed);
        if int.hex {
            container = container.hex();
        }
        match int.values.as_ref().and_then(|group| self.names(group)) {
            Some(mappings) => FieldClass::Enum(EnumClass { container, mappings }),
            None => container.into(),
        }
    }

    /// Returns the first `whole` bytes of a struct as C lays it out: gaps between members become
    /// fields, too.
    fn structure(&self, ty: &Type, whole: u32) -> StructClass {
        let mut fields = StructClass::default();
        let (mut at, mut gaps) = (0, 0);
        let gap = |fields: StructClass, gaps: &mut u32, bytes: u32| {
            *gaps += 1;
            let padding = FieldClass::array(u64::from(bytes), IntegerClass::unsigned(8));
            fields.field(format!("_padding_{gaps}"), padding)
        };
        for member in ty.members.iter().filter(|m| m.offset < whole) {
            if member.offset > at {
                fields = gap(fields, &mut gaps, member.offset - at);
            }
            let inner = self.model.types.get(&member.ty).filter(|_| member.pointers == 0);
            let room = whole - member.offset;
            let bytes = inner.map_or(8, |t| t.size).saturating_mul(member.count);
            if bytes > room {
                // It grew, and only its beginning is in every version.
                let part = FieldClass::array(u64::from(room), IntegerClass::unsigned(8).hex());
                fields = fields.field(&*member.name, part);
                at = whole;
                continue;
            }
            let (element, size) = match inner {
                Some(t) if t.kind == Kind::Struct => (FieldClass::Struct(self.structure(t, t.size)), t.size),
                Some(t) if t.kind.is_scalar() && t.kind != Kind::Handle && t.kind != Kind::Float => {
                    let (signed, hex) = (t.kind == Kind::Int, t.hex);
                    let int = Int { size: t.size as u8, signed, hex, values: t.values.clone() };
                    let element = if member.count > 1 && t.size == 1 && ty.members.len() == 1 {
                        // A struct of nothing else is no text, but an id or a handle.
                        IntegerClass::unsigned(8).hex().into()
                    } else if member.count > 1 && t.size == 1 {
                        IntegerClass::character().into()
                    } else {
                        self.integer(&int)
                    };
                    (element, t.size)
                }
                Some(t) if t.kind == Kind::Float && t.size == 4 => {
                    (FieldClass::Float(FloatClass::single()), 4)
                }
                Some(t) if t.kind == Kind::Float => (FieldClass::Float(FloatClass::double()), 8),
                // Which member of a union is meant only the model knows.
                Some(t) if t.kind == Kind::Union => {
                    (FieldClass::array(u64::from(t.size), IntegerClass::unsigned(8).hex()), t.size)
                }
                _ => (IntegerClass::unsigned(64).hex().into(), 8),
            };
            fields = if member.count > 1 {
                fields.field(&*member.name, FieldClass::array(u64::from(member.count), element))
            } else {
                fields.field(&*member.name, element)
            };
            at = member.offset + size * member.count;
        }
        if whole > at {
            fields = gap(fields, &mut gaps, whole - at);
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names were copied for each parameter of the type: a third of what `hetrace run -- true` did.
    #[test]
    fn uses_of_an_enumeration_share_its_names() {
        let model = r#"{
            "api": "x", "registry": {"file": "x.h", "sha256": ""}, "interpose": {}, "errors": "e",
            "types": [], "info": {},
            "enums": [{"name": "e", "values": [["OK", 0], ["ALSO_OK", 0], ["BAD", 1]]}],
            "functions": []
        }"#;
        let model: Model = match serde_json::from_str(model) {
            Ok(model) => model,
            Err(error) => panic!("{error}"),
        };
        let api = Api::new(&model);
        let int = Int { size: 4, signed: true, hex: false, values: Some("e".to_owned()) };
        let (FieldClass::Enum(one), FieldClass::Enum(other)) = (api.integer(&int), api.integer(&int)) else {
            panic!("enumerations");
        };
        assert!(Arc::ptr_eq(&one.mappings, &other.mappings));
        let labels: Vec<&str> = one.mappings.iter().map(|mapping| mapping.label.as_str()).collect();
        assert_eq!(labels, ["OK", "BAD"]);
    }
}
