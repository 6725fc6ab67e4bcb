//! How a call of each function is laid out in a trace.
//!
//! A function has three event classes: its *entry* (what the program passed),
//! its *exit* (what it got back), and its *fold* (many calls in one record: equal polls
//! in a row, or calls that were added up). The same list of fields makes the code that writes
//! the bytes and the metadata that describes them, so they cannot disagree.

use crate::extracted::{Kind, Type};
use crate::function::{Function, Success};
use crate::param::{Direction, Follow, Param};
use crate::resolved::Model;

/// Numbers below this are for records that are not calls.
pub const FIRST_FUNCTION_EVENT: u16 = 32;
/// Event classes of a function: entry, exit, fold.
pub const EVENTS_PER_FUNCTION: u16 = 3;

/// Returns the number of a function's entry event; its exit is one more, its fold two.
pub fn entry_id(function: usize) -> u16 {
    FIRST_FUNCTION_EVENT + EVENTS_PER_FUNCTION * function as u16
}

/// Returns the function that an event's number is of, if it can be one's.
pub fn function_of(id: u16) -> Option<usize> {
    Some(usize::from(id.checked_sub(FIRST_FUNCTION_EVENT)? / EVENTS_PER_FUNCTION))
}

/// A part of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before the real function runs.
    Entry,
    /// After it returned.
    Exit,
    /// A run of equal polls.
    Fold,
}

impl Phase {
    /// Returns what stands behind the function's name in the event's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Phase::Entry => "_entry",
            Phase::Exit => "_exit",
            Phase::Fold => "_fold",
        }
    }
}

/// One event class.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its number in the API's stream.
    pub id: u16,
    /// Its name, with the API in front as LTTng has the provider.
    pub name: String,
    /// Which part of a call it is.
    pub phase: Phase,
    /// Index of the function.
    pub function: usize,
    /// Its fields in order.
    pub fields: Vec<Field>,
}

/// One field of an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub shape: Shape,
    /// Where its value comes from.
    pub source: Source,
}

/// How a field is encoded: little-endian, byte-aligned, without padding.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// An integer.
    Int(Int),
    /// An IEEE 754 number of 4 or 8 bytes.
    Float(u8),
    /// An 8-bit count and that many elements.
    Seq(Box<Shape>),
    /// A 16-bit count and that many bytes.
    Bytes,
    /// Text and a NUL.
    Text,
    /// An 8-bit count and that many texts.
    Texts,
    /// A struct of the API, as C lays it out.
    Struct(String),
}

/// An integer's shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Int {
    /// Its size in bytes.
    pub size: u8,
    /// Whether it has a sign.
    pub signed: bool,
    /// Whether it is an address, a handle or a set of bits.
    pub hex: bool,
    /// The enumeration that names its values.
    pub values: Option<String>,
}

/// Where a field's value comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A parameter's own value; its index.
    Param(usize),
    /// What a parameter points at; its index.
    Behind(usize),
    /// What a member of the struct that a parameter points at points at: the
    /// parameter's index, and the members' from the struct inwards.
    Member {
        /// Index of the parameter.
        param: usize,
        /// Indices of the members.
        path: Vec<usize>,
    },
    /// The call's result.
    Return,
    /// The tracer's own bookkeeping.
    Tracer,
}

/// Bytes that are recorded of a struct. One that grew without containing its own
/// size is recorded as far as all versions have it: a program built with an
/// older one has no more.
pub fn recorded_size(ty: &Type) -> u32 {
    if has_own_size(ty) { ty.size } else { least_size(ty) }
}

/// Bytes that a struct has in all versions.
fn least_size(ty: &Type) -> u32 {
    ty.size_before.iter().map(|(_, size)| *size).fold(ty.size, u32::min)
}

/// Returns whether a struct that grew begins with its own size.
pub fn has_own_size(ty: &Type) -> bool {
    !ty.size_before.is_empty() && ty.members.first().is_some_and(|m| m.name == "size" && m.offset == 0)
}

/// Returns all event classes of a model, by number.
pub fn events(model: &Model) -> Vec<Event> {
    let functions = model.functions.iter().enumerate();
    functions.flat_map(|(index, _)| function_events(model, index)).collect()
}

/// Returns the event classes of one function of a model.
pub fn function_events(model: &Model, index: usize) -> Vec<Event> {
    events_of(model, &model.functions[index], index)
}

/// The same of a function that the model may lack otherwise.
pub fn events_of(model: &Model, f: &Function, index: usize) -> Vec<Event> {
    let event = |phase, offset, fields| Event {
        id: entry_id(index) + offset,
        name: format!("{}:{}{}", model.api, f.name, Phase::suffix(phase)),
        phase,
        function: index,
        fields,
    };
    vec![
        event(Phase::Entry, 0, entry_fields(model, f)),
        event(Phase::Exit, 1, exit_fields(model, f)),
        // Of any function: calls are added up where recording each would take too long.
        event(Phase::Fold, 2, fold_fields()),
    ]
}

fn entry_fields(model: &Model, f: &Function) -> Vec<Field> {
    let mut fields = Vec::new();
    for (i, p) in f.params.iter().enumerate() {
        fields.extend(entry_field(model, i, p));
        if matches!(p.direction, Direction::In | Direction::Inout) {
            member_fields(model, i, p, &mut fields);
        }
    }
    fields
}

/// What the pointers in a struct point at, when the struct itself is recorded.
fn member_fields(model: &Model, index: usize, p: &Param, fields: &mut Vec<Field>) {
    if p.follow == Follow::Pointee && p.pointers == 1 {
        inner_fields(model, &p.base, &p.name, &mut Vec::new(), index, fields);
    }
}

fn inner_fields(
    model: &Model,
    base: &str,
    prefix: &str,
    path: &mut Vec<usize>,
    param: usize,
    fields: &mut Vec<Field>,
) {
    let ty = model.types.get(base).filter(|t| t.kind == Kind::Struct);
    let Some(ty) = ty.filter(|_| path.len() < 4) else { return };
    let known = model.members.get(base);
    for (i, m) in ty.members.iter().enumerate() {
        let name = format!("{prefix}_{}", m.name);
        path.push(i);
        if m.offset >= least_size(ty) {
            // A program built with an older version has no such member.
        } else if m.pointers == 0 && m.count == 1 {
            inner_fields(model, &m.ty, &name, path, param, fields);
        } else if let Some(follow) = known.and_then(|k| k.get(&m.name))
            && is_behind(follow)
            && m.count == 1
        {
            let shape = match follow {
                Follow::String { .. } => Shape::Text,
                Follow::Strings { .. } => Shape::Texts,
                Follow::Bytes { .. } | Follow::Chain { .. } => Shape::Bytes,
                _ => Shape::Seq(Box::new(scalar_shape(model, &m.ty, m.pointers - 1))),
            };
            fields.push(Field { name, shape, source: Source::Member { param, path: path.clone() } });
        }
        path.pop();
    }
}

/// Returns whether more than the address is recorded.
fn is_behind(follow: &Follow) -> bool {
    matches!(
        follow,
        Follow::Pointee
            | Follow::Array { .. }
            | Follow::String { .. }
            | Follow::Strings { .. }
            | Follow::Bytes { .. }
            | Follow::Chain { .. }
    )
}

fn entry_field(model: &Model, index: usize, p: &Param) -> Option<Field> {
    let field = |shape, source| Some(Field { name: p.name.clone(), shape, source });
    let reads = matches!(p.direction, Direction::In | Direction::Inout);
    match &p.follow {
        Follow::Value => field(value_shape(model, p, 0), Source::Param(index)),
        // An address and nothing behind it: bulk data, callbacks, foreign memory.
        Follow::Data { .. } | Follow::Callback | Follow::Waived { .. } => {
            field(Shape::Int(address()), Source::Param(index))
        }
        _ if !reads => None,
        follow => field(behind_shape(model, p, follow), Source::Behind(index)),
    }
}

fn exit_fields(model: &Model, f: &Function) -> Vec<Field> {
    let mut fields = Vec::new();
    let (base, pointers) = crate::ctype::split_ctype(&f.returns);
    if !(base == "void" && pointers == 0) {
        let mut shape = scalar_shape(model, base, pointers);
        if let (Shape::Int(int), Some(values)) = (&mut shape, &f.returns_values) {
            int.values = Some(values.clone());
        }
        fields.push(Field { name: "result".to_owned(), shape, source: Source::Return });
    }
    for (index, p) in f.params.iter().enumerate() {
        let writes = matches!(p.direction, Direction::Out | Direction::Inout);
        if !writes || matches!(p.follow, Follow::Data { .. }) {
            continue;
        }
        let shape = if f.success == Success::OutZero(p.name.clone()) {
            // Always there: the wrapper passes a place of its own for NULL.
            value_shape(model, p, 1)
        } else {
            behind_shape(model, p, &p.follow)
        };
        // The call's own result has that name already.
        let name = if p.name == "result" { "result_".to_owned() } else { p.name.clone() };
        fields.push(Field { name, shape, source: Source::Behind(index) });
        member_fields(model, index, p, &mut fields);
    }
    fields
}

/// Returns what is known of many calls: how many, when the first began and the last ended (as in
/// event headers, but whole), the time inside them all, and its standard error.
fn fold_fields() -> Vec<Field> {
    let field = |(name, size): (&str, u8)| Field {
        name: name.to_owned(),
        shape: Shape::Int(Int { size, signed: false, hex: false, values: None }),
        source: Source::Tracer,
    };
    // `added_up` is 1 if the calls were added up: they succeeded, and others may lie between them. A run of polls
    // has nothing between, and the result of the call before. `total_error` is not 0 where only some calls were timed.
    let fields = [("count", 8), ("first", 8), ("last", 8), ("total", 8), ("added_up", 1), ("total_error", 8)];
    fields.map(field).into()
}

fn behind_shape(model: &Model, p: &Param, follow: &Follow) -> Shape {
    match follow {
        Follow::String { .. } => Shape::Text,
        Follow::Strings { .. } => Shape::Texts,
        Follow::Bytes { .. } | Follow::Info { .. } | Follow::Chain { .. } => Shape::Bytes,
        _ => Shape::Seq(Box::new(value_shape(model, p, 1))),
    }
}

/// Returns the shape of a parameter's value after `stars` pointers were followed.
fn value_shape(model: &Model, p: &Param, stars: u8) -> Shape {
    let mut shape = scalar_shape(model, &p.base, p.pointers.saturating_sub(stars));
    if let (Shape::Int(int), Some(values)) = (&mut shape, &p.values) {
        int.values = Some(values.clone());
    }
    shape
}

fn address() -> Int {
    Int { size: 8, signed: false, hex: true, values: None }
}

fn scalar_shape(model: &Model, base: &str, pointers: u8) -> Shape {
    let ty: Option<&Type> = model.types.get(base);
    let Some(ty) = ty.filter(|_| pointers == 0) else {
        return Shape::Int(address());
    };
    let bits = || {
        let group = ty.values.as_ref()?;
        model.enums.get(group).map(|g| g.bits)
    };
    match ty.kind {
        Kind::Struct | Kind::Union => Shape::Struct(ty.name.clone()),
        Kind::Float => Shape::Float(ty.size as u8),
        Kind::Uint | Kind::Int => Shape::Int(Int {
            size: ty.size as u8,
            signed: ty.kind == Kind::Int,
            hex: ty.hex || bits().unwrap_or(false),
            values: ty.values.clone(),
        }),
        Kind::Handle | Kind::Callback | Kind::Opaque => Shape::Int(address()),
    }
}
