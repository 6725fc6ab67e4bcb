//! How each field of each event class is shown, decided once.

use hetrace_ctf::class::{
    Base, EventClass, Field, FieldClass, Role as CtfRole, Scope, StreamClass, StructClass,
};
use hetrace_model::{EnumGroup, Follow, Function, Kind, Model, Type};

use super::names::group;
use crate::trace::{Class, Identity, Trace};

/// How a field is shown.
#[derive(Clone, Copy, Debug)]
pub enum How<'t> {
    /// Not at all: a length that its array shows anyway.
    Hidden,
    /// As its class says.
    Plain,
    /// By names that the class does not have, because they can be combined.
    Bits(&'t EnumGroup),
    /// Bytes.
    Bytes,
    /// Bits of a number, of the type that the parameter of this name says by its value's name.
    Number(&'t str),
    /// The value of the query that this parameter names.
    Info(&'t str),
    /// Pairs of a property and its value, of this type.
    Pairs(&'t str),
    /// Structs that are linked by their first members: those that there are, by their tags.
    Chain(&'t [(u32, String)]),
    /// One element behind a pointer, which may be NULL.
    Pointee(Option<&'t EnumGroup>),
    /// A struct or union of this type.
    Typed(&'t str),
    /// Several of them behind a pointer.
    TypedArray(&'t str),
    /// One of them behind a pointer, which may be NULL.
    TypedPointee(&'t str),
}

/// What a field is of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// This parameter.
    Param(u16),
    /// What a member of the struct behind this parameter points at.
    Behind(u16),
    /// A field of an event that is no call, or of a call without a model.
    Field(u16),
    /// The result.
    Return,
}

/// A field's name and how it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'t> {
    pub name: &'t str,
    pub role: Role,
    pub how: How<'t>,
}

/// The fields of one event class.
#[derive(Debug)]
pub struct EventPlan<'t> {
    pub model: Option<&'t Model>,
    pub fields: Vec<Plan<'t>>,
    /// What stands beside the payload, by scope; none in our own streams, whose packets have no more than their thread.
    pub contexts: Vec<(Scope, Vec<Plan<'t>>)>,
}

/// The fields of all event classes.
#[derive(Debug)]
pub struct Plans<'t> {
    trace: &'t Trace,
    /// By position of the stream class and of the event class.
    streams: Vec<Vec<EventPlan<'t>>>,
}

impl<'t> Plans<'t> {
    /// Of a trace, which takes a little while.
    pub fn new(trace: &'t Trace) -> Self {
        let streams = trace.ctf().class().streams.iter().enumerate();
        let plans = streams.map(|(i, stream)| {
            let classes = trace.classes().of_stream(i);
            let events = stream.events.iter().zip(classes);
            let plan =
                |(event, class)| EventPlan { contexts: contexts(stream, event), ..plan(trace, event, class) };
            events.map(plan).collect()
        });
        Self { trace, streams: plans.collect() }
    }

    /// The plan of an event. Stream classes are few, so they are searched.
    pub(super) fn of(&self, event: &hetrace_ctf::read::Event<'_, '_>) -> Option<&EventPlan<'t>> {
        let class = event.stream_class();
        let streams = &self.trace.ctf().class().streams;
        let position = streams.iter().position(|s| std::ptr::eq(s, class))?;
        self.streams.get(position)?.get(event.class_index())
    }
}

fn plan<'t>(trace: &'t Trace, event: &'t EventClass, class: &Class) -> EventPlan<'t> {
    let call = match class {
        Class::Entry(id) | Class::Exit(id, _) => trace.model_of(*id).zip(trace.described(*id)),
        _ => None,
    };
    let exit = matches!(class, Class::Exit(..));
    let fields = event.fields.fields.iter().zip(0u16..).map(|(field, index)| {
        let name = field.name.as_str();
        let plain = |role| Plan { name, role, how: How::Plain };
        if is_length(&event.fields, name) {
            return Plan { how: How::Hidden, ..plain(Role::Field(index)) };
        }
        if exit && name == "result" {
            let bits = call.and_then(|(m, f)| bits_of_result(m, f));
            return Plan { how: bits.map_or(How::Plain, How::Bits), ..plain(Role::Return) };
        }
        // The call's own result has the name already.
        let own = if exit && name == "result_" { "result" } else { name };
        let param = call.and_then(|(_, f)| f.params.iter().position(|p| p.name == own));
        if param.is_none()
            && let Some((model, f)) = call
            && let Some((at, how)) = behind(model, f, name, &field.class)
        {
            let role = Role::Behind(u16::try_from(at).unwrap_or(u16::MAX));
            return Plan { how, ..plain(role) };
        }
        let (Some((model, f)), Some(at)) = (call, param) else {
            let bytes = is_bytes(&field.class);
            let how = if bytes { How::Bytes } else { How::Plain };
            return Plan { how, ..plain(Role::Field(index)) };
        };
        let role = Role::Param(u16::try_from(at).unwrap_or(u16::MAX));
        let number = number_of(f, at).filter(|_| is_scalar(&field.class));
        Plan { how: number.unwrap_or_else(|| how(model, &f.params[at], &field.class)), ..plain(role) }
    });
    EventPlan { model: call.map(|(m, _)| m), fields: fields.collect(), contexts: Vec::new() }
}

/// Fields of packets that the reader itself makes use of.
const OF_PACKETS: [&str; 6] =
    ["timestamp_begin", "timestamp_end", "content_size", "packet_size", "packet_seq_num", "events_discarded"];

/// What another tracer has written beside an event's payload, but for what is the event's process and thread.
fn contexts<'t>(stream: &'t StreamClass, event: &'t EventClass) -> Vec<(Scope, Vec<Plan<'t>>)> {
    let of_packet = |name: &str| stream.packet_context.as_ref().is_some_and(|c| c.index(name).is_some());
    if of_packet("vpid") && of_packet("vtid") {
        return Vec::new();
    }
    let identity = match Identity::of(stream) {
        Identity::Event { pid, tid, .. } => [pid, tid],
        Identity::Packet => [None; 2],
    };
    let scopes = [
        (Scope::PacketContext, stream.packet_context.as_ref()),
        (Scope::StreamEventContext, stream.event_context.as_ref()),
        (Scope::EventContext, event.context.as_ref()),
    ];
    let plans = scopes.into_iter().filter_map(|(scope, class)| {
        let class = class?;
        let plan = |(index, field): (usize, &'t Field)| {
            let known = match scope {
                Scope::PacketContext => OF_PACKETS.contains(&field.name.as_str()) || has_role(&field.class),
                Scope::StreamEventContext => identity.contains(&Some(index)),
                _ => false,
            };
            let how = match known || is_length(class, &field.name) {
                true => How::Hidden,
                false if is_bytes(&field.class) => How::Bytes,
                false => How::Plain,
            };
            Plan { name: &field.name, role: Role::Field(u16::try_from(index).unwrap_or(u16::MAX)), how }
        };
        let fields: Vec<Plan<'_>> = class.fields.iter().enumerate().map(plan).collect();
        fields.iter().any(|plan| !matches!(plan.how, How::Hidden)).then_some((scope, fields))
    });
    plans.collect()
}

/// Whether the metadata of CTF 2 says what the reader makes of a field.
/// How the value of a counter or a payload is shown, if a parameter before it says its type.
fn number_of(f: &Function, at: usize) -> Option<How<'_>> {
    let name = match f.params.get(at)?.name.as_str() {
        "value" if f.has_role("counter-set") => "value_type",
        "payload" => "payload_type",
        _ => return None,
    };
    f.params[..at].iter().find(|param| param.name == name).map(|param| How::Number(&param.name))
}

fn has_role(class: &FieldClass) -> bool {
    matches!(class, FieldClass::Integer(c) if CtfRole::ALL.iter().any(|role| c.roles.has(*role)))
}

fn how<'t>(model: &'t Model, p: &'t hetrace_model::Param, class: &FieldClass) -> How<'t> {
    let named = group(model, p.values.as_ref().or_else(|| type_values(model, &p.base)));
    let bits = named.filter(|g| g.bits);
    let compound = is_compound(model, &p.base);
    match &p.follow {
        Follow::Value if compound && p.pointers == 0 && !is_scalar(class) => How::Typed(&p.base),
        Follow::Pointee if compound && p.pointers == 1 && is_array(class) => How::TypedPointee(&p.base),
        Follow::Array { .. } if compound && p.pointers == 1 && is_array(class) => How::TypedArray(&p.base),
        Follow::Info { name, .. } | Follow::Bytes { kind: Some(name), .. } if is_bytes(class) => {
            How::Info(name)
        }
        Follow::Chain { tags } if is_bytes(class) => How::Chain(linked(model, tags)),
        Follow::List { pairs: true } if is_array(class) => How::Pairs(&p.base),
        Follow::Pointee if is_array(class) => How::Pointee(bits),
        _ if is_bytes(class) => How::Bytes,
        _ => bits.map_or(How::Plain, How::Bits),
    }
}

/// A field for what a member of a struct points at: its parameter, and how it is shown.
fn behind<'t>(model: &'t Model, f: &'t Function, name: &str, class: &FieldClass) -> Option<(usize, How<'t>)> {
    let (at, param) = f.params.iter().enumerate().find(|(_, p)| {
        let rest = name.strip_prefix(p.name.as_str()).and_then(|rest| rest.strip_prefix('_'));
        rest.is_some() && is_compound(model, &p.base)
    })?;
    let rest = name.get(param.name.len() + 1..)?;
    let (member, follow) = pointed_at(model, &param.base, rest, 0)?;
    let compound = member.pointers == 1 && is_compound(model, &member.ty) && is_array(class);
    let how = match follow {
        Follow::Pointee if compound => How::TypedPointee(&member.ty),
        Follow::Array { .. } if compound => How::TypedArray(&member.ty),
        Follow::Pointee if is_array(class) => {
            How::Pointee(group(model, type_values(model, &member.ty)).filter(|g| g.bits))
        }
        Follow::Chain { tags } if is_bytes(class) => How::Chain(linked(model, tags)),
        _ if is_bytes(class) => How::Bytes,
        _ => How::Plain,
    };
    Some((at, how))
}

/// The member that a name with `_` between members means, and what it points at.
fn pointed_at<'t>(
    model: &'t Model,
    base: &str,
    name: &str,
    depth: u32,
) -> Option<(&'t hetrace_model::Member, &'t Follow)> {
    let ty = model.types.get(base).filter(|_| depth < 8)?;
    ty.members.iter().find_map(|member| match name.strip_prefix(member.name.as_str())? {
        "" => Some((member, model.members.get(base)?.get(&member.name)?)),
        rest => pointed_at(model, &member.ty, rest.strip_prefix('_')?, depth + 1),
    })
}

/// The structs that may be in a chain.
fn linked<'t>(model: &'t Model, tags: &str) -> &'t [(u32, String)] {
    model.chains.get(tags).map(Vec::as_slice).unwrap_or_default()
}

fn is_compound(model: &Model, name: &str) -> bool {
    let ty = model.types.get(name);
    ty.is_some_and(|t| matches!(t.kind, Kind::Struct | Kind::Union) && t.size > 0)
}

fn is_scalar(class: &FieldClass) -> bool {
    matches!(
        class,
        FieldClass::Integer(_) | FieldClass::Enum(_) | FieldClass::Float(_) | FieldClass::String(_)
    )
}

fn type_values<'t>(model: &'t Model, name: &str) -> Option<&'t String> {
    let ty: Option<&Type> = model.types.get(name);
    ty.filter(|t| matches!(t.kind, Kind::Uint | Kind::Int))?.values.as_ref()
}

fn bits_of_result<'t>(model: &'t Model, f: &'t Function) -> Option<&'t EnumGroup> {
    group(model, f.returns_values.as_ref()).filter(|g| g.bits)
}

/// Whether a field is there only to say how long another is.
fn is_length(fields: &StructClass, name: &str) -> bool {
    fields.fields.iter().any(|f| match &f.class {
        FieldClass::Sequence(c) => c.length.scope.is_none() && c.length.names == [name],
        _ => false,
    })
}

fn is_array(class: &FieldClass) -> bool {
    matches!(class, FieldClass::Sequence(_) | FieldClass::Array(_))
}

fn is_bytes(class: &FieldClass) -> bool {
    let element = match class {
        FieldClass::Sequence(c) => &c.element,
        FieldClass::Array(c) => &c.element,
        _ => return false,
    };
    let byte = |class: &FieldClass| match class {
        FieldClass::Integer(c) => c.size == 8 && !c.signed && c.base == Base::Hexadecimal,
        _ => false,
    };
    byte(element) && !element.is_character()
}
