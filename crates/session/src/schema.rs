//! The trace's metadata: models and device records as CTF classes.
//!
//! Events `object:…` stand in the device stream. Each begins with the fields
//! `cause_tid` and `cause` (the call that showed it, as commands have them).
//! `length` counts the bytes of the whole content; `hash` names the file under
//! `hetrace/blobs` that has it. Texts are never empty: `-` stands for none.
//! Without a `hash` the content stands in the event.
//!
//! | event                  | option              | fields |
//! |---|---|---|
//! | `object:source`        | `--sources`         | `program`, `pieces` (texts it was given in), `length`, `hash` |
//! | `object:il`            | `--sources`         | `program`, `length`, `hash` |
//! | `object:binary`        | `--sources`         | `program`, `device`, `index` (in the list of devices), `length`, `hash` |
//! | `object:build_options` | `--build-logs`      | `program`, `step` (`build`, `compile`, `link`), `length`, `hash`, `text` |
//! | `object:build_log`     | `--build-logs`      | `program`, `device`, `step`, `result` (of the call; 0 from a callback), `status` (`success`, `error`, `none`, `in progress`, `unknown`), `length`, `hash`, `text` |
//! | `object:kernel`        | `--kernel-args`     | `kernel`, `program`, `name`, `arguments` (how many) |
//! | `object:kernel_arg`    | `--kernel-args`     | `kernel`, `kernel_name`, `index`, `name`, `type`, `address`, `access`, `qualifiers`; each text may be `unknown` |
//! | `object:property`      | `--properties`      | `object`, `kind` (`platform`, `device`), `query`, `length`, `hash`, `text` (when the value is one, or a number), `value` (its bytes) |
//! | `object:buffer`        | `--capture-buffers` | `kernel`, `kernel_name`, `launch` (from 0 for each name), `argument`, `when` (`before`, `after`), `mem`, `size`, `stored`, `hash`, `waited` (0: other commands may have come between, if the queue has no order) |
//! | `object:not_captured`  | `--capture-buffers` | `kernel`, `kernel_name`, `launch`, `argument`, `value` (handle or address), `reason`, `code` (an error, or 0) |
//! | `object:launch_args`   | `--kernel-args`     | `kernel`, `kernel_name`, `arguments` (how many), `values` (those that fit, in order: numbers by their size, longer ones as bytes), `bytes` (the same, one after the other) |
//! | `object:truncated`     |                     | `object`, `what` (the event before), `length`, `stored`, `hash` |

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hetrace_ctf::class::{
    ClockClass, EnumClass, EnumMapping, EnvValue, EventClass, FieldClass, FieldPath, FloatClass,
    IntegerClass, StreamClass, StructClass, TraceClass,
};
use hetrace_ctf::write::form;
use hetrace_model::layout::{self, Int, Shape};
use hetrace_model::{Kind, Model, Type};
use hetrace_ring::abi::special;

pub mod devices;
pub mod objects;

/// Stream class of commands on devices.
pub const DEVICE_STREAM: u32 = 0;

/// Arguments shown of a call that nobody knows: those that stand in registers.
const UNKNOWN_ARGUMENTS: u64 = 6;

/// Stream class of an API, by its number in the session.
pub fn api_stream(api: usize) -> u32 {
    api as u32 + 1
}

/// The whole trace.
pub fn trace(
    uuid: [u8; 16],
    clock: ClockClass,
    env: Vec<(String, EnvValue)>,
    models: &[&Model],
) -> TraceClass {
    let mut trace = form::trace_class(uuid, clock);
    trace.env = env;
    trace.streams.push(devices::stream(models));
    for (number, model) in models.iter().enumerate() {
        let mut stream: StreamClass = form::stream_class(u64::from(api_stream(number)));
        let api = Api::new(model);
        stream.events = layout::events(model).iter().map(|e| api.event_class(e)).collect();
        stream.events.push(unknown_event(&model.api));
        stream.events.push(error_text_event(&model.api));
        trace.streams.push(stream);
    }
    trace
}

fn event(id: u16, name: &str, fields: StructClass) -> EventClass {
    EventClass {
        id: u64::from(id),
        name: name.to_owned(),
        log_level: None,
        emf_uri: None,
        context: None,
        fields,
    }
}

/// What the API itself says of an error code.
fn error_text_event(api: &str) -> EventClass {
    let fields =
        StructClass::default().field("code", IntegerClass::signed(64)).field("text", FieldClass::string());
    event(special::ERROR_TEXT, &format!("{api}:error_text"), fields)
}

/// A call of a function that the model does not have.
fn unknown_event(api: &str) -> EventClass {
    let word = IntegerClass::unsigned(64).hex();
    let fields = StructClass::default()
        .field("name", FieldClass::string())
        .field("args", FieldClass::array(UNKNOWN_ARGUMENTS, word));
    event(special::UNKNOWN, &format!("{api}:unknown"), fields)
}

/// A model, and the names of its enumerations, which all their uses share.
struct Api<'m> {
    model: &'m Model,
    /// By group. Sets of bits are none: few of their values have a name.
    names: HashMap<&'m str, Arc<[EnumMapping]>>,
}

/// The first name of a value is its name.
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
        let groups = model.enums.iter().filter(|group| !group.bits);
        // Of two groups of a name the first counts.
        let names = groups.rev().map(|group| (group.name.as_str(), mappings(&group.values)));
        Self { model, names: names.collect() }
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
        let length = format!("_{name}_length");
        let counted = |fields: StructClass, bits: u32, element: FieldClass| {
            fields
                .field(length.clone(), IntegerClass::unsigned(bits))
                .field(name, FieldClass::sequence(FieldPath::relative(length.clone()), element))
        };
        match shape {
            Shape::Seq(element) => counted(fields, 8, self.class(element)),
            Shape::Bytes => counted(fields, 16, IntegerClass::unsigned(8).hex().into()),
            Shape::Texts => counted(fields, 8, FieldClass::string()),
            shape => fields.field(name, self.class(shape)),
        }
    }

    fn class(&self, shape: &Shape) -> FieldClass {
        match shape {
            Shape::Int(int) => self.integer(int),
            Shape::Float(4) => FieldClass::Float(FloatClass::single()),
            Shape::Float(_) => FieldClass::Float(FloatClass::double()),
            Shape::Text => FieldClass::string(),
            Shape::Struct(name) => match self.model.types.iter().find(|t| t.name == *name) {
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
        match int.values.as_ref().and_then(|group| self.names.get(group.as_str())) {
            Some(mappings) => FieldClass::Enum(EnumClass { container, mappings: Arc::clone(mappings) }),
            None => container.into(),
        }
    }

    /// The first `whole` bytes of a struct as C lays it out: gaps between members become fields, too.
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
            let inner =
                self.model.types.iter().find(|t| t.name == member.ty).filter(|_| member.pointers == 0);
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
                // Which member of a union is meant only the model can tell.
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
