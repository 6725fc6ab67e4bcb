//! Which clock a stream has.

use super::{FieldClass, StreamClass, StructClass};

/// Returns the name of a stream's clock: that of its event header, or of its packet context.
pub fn clock_of(stream: &StreamClass) -> Option<&str> {
    if stream.clock.is_some() {
        return stream.clock.as_deref();
    }
    let scopes = [&stream.event_header, &stream.packet_context];
    scopes.into_iter().flatten().find_map(clock_in)
}

fn clock_in(class: &StructClass) -> Option<&str> {
    fn of(class: &FieldClass) -> Option<&str> {
        match class {
            FieldClass::Integer(c) => c.clock.as_deref(),
            FieldClass::Enum(c) => c.container.clock.as_deref(),
            FieldClass::Struct(c) => clock_in(c),
            FieldClass::Array(c) => of(&c.element),
            FieldClass::Sequence(c) => of(&c.element),
            FieldClass::Variant(c) => c.options.iter().find_map(|o| of(&o.class)),
            FieldClass::Optional(c) => of(&c.class),
            FieldClass::Float(_) | FieldClass::String(_) | FieldClass::Blob(_) => None,
        }
    }
    class.fields.iter().find_map(|f| of(&f.class))
}
