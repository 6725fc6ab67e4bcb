//! Structs that begin with a tag and the address of the next one: wrong tags, and addresses that nobody set.

use std::fmt::Write;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::{FieldClass, Scope};
use hetrace_ctf::read::{Event, FieldRef, FieldVisitor};

use crate::lint::duties::Header;
use crate::lint::facts::Facts;
use crate::lint::findings::Hit;
use crate::lint::passed::Passed;
use crate::lint::rules::Severity;

/// Bytes of a tag, and of what begins each struct.
const TAG: usize = 4;
const HEAD: usize = 16;
/// Addresses of programs end here.
const CANONICAL: u64 = 1 << 47;

/// What a call was passed behind one parameter.
#[derive(Debug, Default)]
struct Seen {
    tag: Option<u64>,
    next: Option<u64>,
    /// The first bytes of the struct, as they were in memory.
    bytes: Vec<u8>,
    /// What was read behind it.
    chain: Vec<u8>,
}

struct Reading<'a, 't> {
    header: &'a Header<'t>,
    seen: Seen,
    depth: u32,
    /// In the struct.
    inside: bool,
    /// In what follows it.
    behind: bool,
}

impl Reading<'_, '_> {
    fn enter(&mut self, name: &str) {
        if self.depth == 0 {
            self.inside = name == self.header.param;
            let behind = name.strip_prefix(self.header.param).and_then(|rest| rest.strip_prefix('_'));
            self.behind = behind == Some(self.header.next);
        }
        self.depth += 1;
    }
}

/// The number of a scalar, and how many bytes it has.
fn number(class: &FieldClass, value: Scalar<'_>) -> Option<(u64, usize)> {
    let bits = match class {
        FieldClass::Integer(class) => class.size,
        FieldClass::Enum(class) => class.container.size,
        _ => return None,
    };
    let number = match value {
        Scalar::Unsigned(value) => value,
        Scalar::Signed(value) => value as u64,
        Scalar::Enum { value, .. } => value as u64,
        _ => return None,
    };
    Some((number, (bits as usize).div_ceil(8).min(8)))
}

impl<'e> FieldVisitor<'e> for Reading<'_, '_> {
    fn scalar(&mut self, field: FieldRef<'e>, value: Scalar<'e>) {
        if self.depth == 0 {
            return;
        }
        let Some((number, bytes)) = number(field.class, value) else { return };
        if self.behind {
            self.seen.chain.push(number as u8);
        } else if self.inside && self.seen.bytes.len() < HEAD {
            self.seen.bytes.extend_from_slice(number.to_le_bytes().get(..bytes).unwrap_or_default());
            if field.name == self.header.tag {
                self.seen.tag = Some(number);
            } else if field.name == self.header.next {
                self.seen.next = Some(number);
            }
        }
    }

    fn begin_struct(&mut self, field: FieldRef<'e>) {
        self.enter(field.name);
    }

    fn end_struct(&mut self, _: FieldRef<'e>) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn begin_array(&mut self, field: FieldRef<'e>, _: u64) {
        self.enter(field.name);
    }

    fn end_array(&mut self, _: FieldRef<'e>) {
        self.depth = self.depth.saturating_sub(1);
    }
}

/// `03 00 00 00`.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{}{byte:02x}", if text.is_empty() { "" } else { " " });
        text
    })
}

/// Structs of a call that begin otherwise than they should.
pub(super) fn faults(passed: &mut Passed, facts: &Facts<'_>, headers: &[Header<'_>], event: &Event<'_, '_>) {
    for header in headers {
        let seen = Seen::default();
        let mut reading = Reading { header, seen, depth: 0, inside: false, behind: false };
        // What is damaged has been reported by the walk.
        let _ = event.visit(Scope::EventFields, &mut reading);
        let seen = reading.seen;
        let Some(tag) = seen.tag else { continue };
        passed.faults.extend(wrong_tag(passed, facts, header, (tag, &seen)));
        passed.faults.extend(seen.next.and_then(|next| strange_next(passed, facts, header, (next, &seen))));
    }
}

fn wrong_tag(
    passed: &Passed,
    facts: &Facts<'_>,
    header: &Header<'_>,
    (tag, seen): (u64, &Seen),
) -> Option<Hit> {
    let means = header.tags.iter().find(|(known, _)| u64::from(*known) == tag).map(|(_, ty)| ty.as_str());
    if means == Some(header.base) {
        return None;
    }
    let name = &facts.function.name;
    let means = means.map_or_else(|| "of no struct that is known".to_owned(), |ty| format!("that of {ty}"));
    let bytes = hex(seen.bytes.get(..TAG).unwrap_or(&seen.bytes));
    let what = format!(
        "{name}: {} of {}, a {}, is {tag:#x}, {means} (bytes {bytes})",
        header.tag, header.param, header.base
    );
    let hit = Hit::new("wrong-tag", format!("{name} {}", header.param), what, ("call", passed.call));
    Some(hit)
}

fn strange_next(
    passed: &Passed,
    facts: &Facts<'_>,
    header: &Header<'_>,
    (next, seen): (u64, &Seen),
) -> Option<Hit> {
    if next == 0 {
        return None;
    }
    let first = seen
        .chain
        .get(..TAG)
        .map(|tag| tag.iter().rev().fold(0u32, |all, byte| (all << 8) | u32::from(*byte)));
    let is_known = |tag: u32| header.tags.iter().any(|(known, _)| *known == tag);
    let (severity, doubt, there) = match first {
        Some(tag) if is_known(tag) => return None,
        Some(tag) => {
            let there =
                format!("there is no struct with the tag {tag:#x} (bytes {})", hex(head(&seen.chain)));
            (Severity::Warning, Some("a struct may be newer than the model"), there)
        }
        None if next < CANONICAL && next % 8 == 0 => {
            let doubt = "the system may have refused the tracer to read there";
            (Severity::Error, Some(doubt), "there is nothing that can be read".to_owned())
        }
        None => (Severity::Error, None, "no struct can be there".to_owned()),
    };
    let name = &facts.function.name;
    let tag = seen.tag.unwrap_or(0);
    let what = format!(
        "{name}: {} of {}, a {} with {} {tag:#x}, is {next:#x}: {there}; passed bytes {}",
        header.next,
        header.param,
        header.base,
        header.tag,
        hex(head(&seen.bytes)),
    );
    let hit = Hit::new("uninitialized-next", format!("{name} {}", header.param), what, ("call", passed.call));
    Some(hit.graded(severity, doubt))
}

fn head(bytes: &[u8]) -> &[u8] {
    bytes.get(..HEAD).unwrap_or(bytes)
}
