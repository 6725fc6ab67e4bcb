//! How a call of each function is laid out in a trace.
//!
//! A function has three event classes: its *entry* (what the program passed),
//! its *exit* (what it got back), and, if it polls, its *fold* (many equal
//! calls in one record). The same list of fields makes the code that writes
//! the bytes and the metadata that describes them, so they cannot disagree.

use crate::extracted::{Kind, Type};
use crate::resolved::{Direction, Follow, Function, Model, Param, Success};

/// Numbers below this are for records that are not calls.
pub const FIRST_FUNCTION_EVENT: u16 = 16;
/// Event classes of a function: entry, exit, fold.
pub const EVENTS_PER_FUNCTION: u16 = 3;

/// The number of a function's entry event; its exit is one more, its fold two.
pub fn entry_id(function: usize) -> u16 {
    FIRST_FUNCTION_EVENT + EVENTS_PER_FUNCTION * function as u16
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
    /// What stands behind the function's name in the event's name.
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
    /// The call's result.
    Return,
    /// The tracer's own bookkeeping.
    Tracer,
}

/// All event classes of a model, by number.
pub fn events(model: &Model) -> Vec<Event> {
    let functions = model.functions.iter().enumerate();
    functions.flat_map(|(index, _)| function_events(model, index)).collect()
}

/// The event classes of one function.
pub fn function_events(model: &Model, index: usize) -> Vec<Event> {
    let f = &model.functions[index];
    let event = |phase, offset, fields| Event {
        id: entry_id(index) + offset,
        name: format!("{}:{}{}", model.api, f.name, Phase::suffix(phase)),
        phase,
        function: index,
        fields,
    };
    let mut events =
        vec![event(Phase::Entry, 0, entry_fields(model, f)), event(Phase::Exit, 1, exit_fields(model, f))];
    if f.has_role("poll") {
        events.push(event(Phase::Fold, 2, fold_fields()));
    }
    events
}

fn entry_fields(model: &Model, f: &Function) -> Vec<Field> {
    let params = f.params.iter().enumerate();
    params.filter_map(|(i, p)| entry_field(model, i, p)).collect()
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
    let (base, pointers) = crate::resolve::split_ctype(&f.returns);
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
        fields.push(Field { name: p.name.clone(), shape, source: Source::Behind(index) });
    }
    fields
}

/// A run of polls: how many, when the first began and the last ended (as in
/// event headers, but whole), and the time inside them all.
fn fold_fields() -> Vec<Field> {
    let field = |name: &str| Field {
        name: name.to_owned(),
        shape: Shape::Int(Int { size: 8, signed: false, hex: false, values: None }),
        source: Source::Tracer,
    };
    ["count", "first", "last", "total"].map(field).into()
}

fn behind_shape(model: &Model, p: &Param, follow: &Follow) -> Shape {
    match follow {
        Follow::String { .. } => Shape::Text,
        Follow::Strings { .. } => Shape::Texts,
        Follow::Bytes { .. } | Follow::Info { .. } => Shape::Bytes,
        _ => Shape::Seq(Box::new(value_shape(model, p, 1))),
    }
}

/// The shape of a parameter's value after `stars` pointers were followed.
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
    let ty: Option<&Type> = model.types.iter().find(|t| t.name == base);
    let Some(ty) = ty.filter(|_| pointers == 0) else {
        return Shape::Int(address());
    };
    let bits = || {
        let group = ty.values.as_ref()?;
        model.enums.iter().find(|g| g.name == *group).map(|g| g.bits)
    };
    match ty.kind {
        Kind::Struct => Shape::Struct(ty.name.clone()),
        Kind::Float => Shape::Float(ty.size as u8),
        Kind::Uint | Kind::Int => Shape::Int(Int {
            size: ty.size as u8,
            signed: ty.kind == Kind::Int,
            hex: bits().unwrap_or(false),
            values: ty.values.clone(),
        }),
        Kind::Handle | Kind::Callback | Kind::Opaque => Shape::Int(address()),
    }
}
