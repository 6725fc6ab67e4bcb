//! Types of objects.

pub(super) use hetrace_trace::facts::objects::ObjectType as Kind;
use hetrace_trace::values::Place;

/// Number of a type of objects.
pub(super) type KindId = u32;

/// What a function makes or hands out.
pub(super) type Handed = Vec<(Place, KindId)>;
