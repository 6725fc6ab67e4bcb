//! Which properties a fragment or a class may have. One that nobody knows may change what the others mean, so
//! metadata with such a property is refused, as babeltrace2 does.

use super::JsonErrorKind as Kind;
use super::json::Json;

/// What any fragment, field class, member and option may have beside its own.
const ALWAYS: [&str; 3] = ["type", "attributes", "extensions"];

const STORED: [&str; 4] = ["length", "byte-order", "bit-order", "alignment"];
const NAMED: [&str; 3] = ["namespace", "name", "uid"];
const NUMBER: [&str; 3] = ["preferred-display-base", "mappings", "roles"];
const MEMBER: [&str; 2] = ["name", "field-class"];
const OPTION: [&str; 3] = ["name", "field-class", "selector-field-ranges"];
const LOCATION: [&str; 2] = ["origin", "path"];
const OFFSET: [&str; 2] = ["seconds", "cycles"];

/// A part of a fragment or class that has no type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    /// Of a structure.
    Member,
    /// Of a variant.
    Option,
    /// Of another field.
    Location,
    /// Of a clock, from its origin.
    Offset,
    /// Of a clock.
    Origin,
}

/// Returns the properties that a fragment or a field class of a type has of its own, in groups. `None` for a type that
/// is not known.
fn of_type(kind: &str) -> Option<[&'static [&'static str]; 3]> {
    const NONE: &[&str] = &[];
    Some(match kind {
        "preamble" => [&["version", "uuid"], NONE, NONE],
        "field-class-alias" => [&MEMBER, NONE, NONE],
        "trace-class" => [&NAMED, &["environment", "packet-header-field-class"], NONE],
        "clock-class" => [
            &NAMED,
            &["id", "frequency", "precision", "accuracy", "description"],
            &["offset-from-origin", "origin"],
        ],
        "data-stream-class" => [
            &NAMED,
            &["id", "default-clock-class-id", "packet-context-field-class"],
            &["event-record-header-field-class", "event-record-common-context-field-class"],
        ],
        "event-record-class" => [
            &NAMED,
            &["id", "data-stream-class-id"],
            &["specific-context-field-class", "payload-field-class"],
        ],
        "fixed-length-bit-array" | "fixed-length-boolean" | "fixed-length-floating-point-number" => {
            [&STORED, NONE, NONE]
        }
        "fixed-length-bit-map" => [&STORED, &["flags"], NONE],
        "fixed-length-unsigned-integer" | "fixed-length-signed-integer" => [&STORED, &NUMBER, NONE],
        "variable-length-unsigned-integer" | "variable-length-signed-integer" => [&NUMBER, NONE, NONE],
        "null-terminated-string" => [&["encoding"], NONE, NONE],
        "static-length-string" => [&["encoding", "length"], NONE, NONE],
        "dynamic-length-string" => [&["encoding", "length-field-location"], NONE, NONE],
        "static-length-blob" => [&["media-type", "roles", "length"], NONE, NONE],
        "dynamic-length-blob" => [&["media-type", "roles", "length-field-location"], NONE, NONE],
        "structure" => [&["member-classes", "minimum-alignment"], NONE, NONE],
        "static-length-array" => [&["element-field-class", "minimum-alignment", "length"], NONE, NONE],
        "dynamic-length-array" => {
            [&["element-field-class", "minimum-alignment", "length-field-location"], NONE, NONE]
        }
        "optional" => [&["field-class", "selector-field-location", "selector-field-ranges"], NONE, NONE],
        "variant" => [&["options", "selector-field-location"], NONE, NONE],
        _ => return None,
    })
}

/// Refuses properties that a fragment or a field class of this type does not have.
pub(super) fn check(json: &Json, kind: &str) -> Result<(), Kind> {
    // That its type is unknown is said elsewhere.
    let Some(own) = of_type(kind) else { return Ok(()) };
    all(json, |name| ALWAYS.contains(&name) || own.iter().any(|group| group.contains(&name)))
}

/// The same for a part.
pub(super) fn check_part(json: &Json, part: Part) -> Result<(), Kind> {
    let (own, attributed): (&[&str], bool) = match part {
        Part::Member => (&MEMBER, true),
        Part::Option => (&OPTION, true),
        Part::Location => (&LOCATION, false),
        Part::Offset => (&OFFSET, false),
        Part::Origin => (&NAMED, false),
    };
    all(json, |name| own.contains(&name) || attributed && name != "type" && ALWAYS.contains(&name))
}

fn all(json: &Json, known: impl Fn(&str) -> bool) -> Result<(), Kind> {
    let Json::Object(members) = json else { return Ok(()) };
    match members.iter().find(|(name, _)| !known(name)) {
        Some((name, _)) => Err(Kind::Unknown { what: "property", name: name.chars().take(60).collect() }),
        None => Ok(()),
    }
}
