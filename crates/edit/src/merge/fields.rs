//! Where in an event's bytes stands what means something in its own trace only.

use std::ops::Range;

use hetrace_ctf::class::{ByteOrder, EventClass, FieldClass, IntegerClass, StructClass};
use hetrace_model::layout::Phase;

/// What such a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A number that a definition gives a meaning.
    Number(Kind),
    /// A thread's id; 0 for none.
    Tid,
    /// A time with all its bits; 0 for none.
    Time,
}

/// What is numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Queue,
    Function,
    Device,
    /// Devices of telemetry, whose numbers begin with 0; 0 is nothing elsewhere.
    Telemetry,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Queue, Self::Function, Self::Device, Self::Telemetry];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns whether 0 is a number as any other.
    pub fn has_zero(self) -> bool {
        self == Self::Telemetry
    }
}

/// Returns what a field is, by its name and that of its event.
fn meaning(event: &str, field: &str) -> Option<What> {
    let api = event.split(':').next().unwrap_or("");
    Some(match (api, field) {
        ("device" | "object", "cause_tid") => What::Tid,
        ("device", "queue") => What::Number(Kind::Queue),
        ("device", "function") => What::Number(Kind::Function),
        ("device", "device" | "peer") => What::Number(Kind::Device),
        ("telemetry", "device") => What::Number(Kind::Telemetry),
        ("object", "cause") => What::Time,
        ("device" | "object" | "telemetry", _) => return None,
        (_, "first" | "last") if event.ends_with(Phase::Fold.suffix()) => What::Time,
        _ => return None,
    })
}

/// Lengths that are remembered at a time.
const SLOTS: usize = 8;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many bytes.
    Skip(usize),
    /// A field of so many.
    Take(What, usize),
    /// The length of a later one.
    Length { slot: usize, bytes: usize },
    /// As many elements as a length says.
    Items { slot: usize, bytes: usize, what: Option<What> },
    /// Up to a NUL.
    Text,
}

/// How to find such fields in the payload of an event.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    steps: Vec<Step>,
}

impl Layout {
    /// That of a class; none if fields before them are of no form that hetrace writes.
    pub fn of(event: &EventClass) -> Option<Self> {
        let fields = &event.fields.fields;
        let last = fields.iter().rposition(|field| meaning(&event.name, &field.name).is_some());
        let Some(last) = last else { return Some(Self::default()) };
        let mut lengths: Vec<&str> = Vec::new();
        for field in fields.iter().take(last + 1) {
            if let FieldClass::Sequence(sequence) = &field.class {
                lengths.push(sequence.length.names.last()?);
            }
        }
        lengths.sort_unstable();
        lengths.dedup();
        if lengths.len() > SLOTS {
            return None;
        }
        let slot = |name: &str| lengths.iter().position(|length| *length == name);
        let mut steps = Vec::new();
        for field in fields.iter().take(last + 1) {
            let what = meaning(&event.name, &field.name);
            // A text of such a name is none.
            let word = |bytes: usize| what.filter(|_| matches!(bytes, 4 | 8));
            steps.push(match &field.class {
                FieldClass::String(_) => Step::Text,
                FieldClass::Sequence(sequence) => {
                    let bytes = size(&sequence.element).filter(|&bytes| bytes > 0)?;
                    let slot = slot(sequence.length.names.last()?)?;
                    Step::Items { slot, bytes, what: word(bytes) }
                }
                other => {
                    let bytes = size(other)?;
                    match (word(bytes), slot(&field.name)) {
                        (Some(what), _) => Step::Take(what, bytes),
                        (None, Some(slot)) if bytes <= 8 => Step::Length { slot, bytes },
                        _ => Step::Skip(bytes),
                    }
                }
            });
        }
        Some(Self { steps })
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns whether there are others than times.
    pub fn has_numbers(&self) -> bool {
        let is = |what: &What| !matches!(what, What::Time);
        self.steps.iter().any(|step| match step {
            Step::Take(what, _) => is(what),
            Step::Items { what, .. } => what.as_ref().is_some_and(is),
            _ => false,
        })
    }

    /// Returns where each is in a payload. None if that ends before.
    pub fn places(&self, payload: &[u8], mut each: impl FnMut(What, Range<usize>)) -> Option<()> {
        let (mut at, mut lengths) = (0usize, [0u64; SLOTS]);
        for step in &self.steps {
            match *step {
                Step::Skip(bytes) => at += bytes,
                Step::Take(what, bytes) => {
                    payload.get(at..at + bytes)?;
                    each(what, at..at + bytes);
                    at += bytes;
                }
                Step::Length { slot, bytes } => {
                    *lengths.get_mut(slot)? = word(payload.get(at..at + bytes)?);
                    at += bytes;
                }
                Step::Items { slot, bytes, what } => {
                    let count = usize::try_from(*lengths.get(slot)?).ok()?;
                    let end = at.checked_add(count.checked_mul(bytes)?)?;
                    payload.get(at..end)?;
                    if let Some(what) = what {
                        (0..count).for_each(|n| each(what, at + n * bytes..at + (n + 1) * bytes));
                    }
                    at = end;
                }
                Step::Text => at += payload.get(at..)?.iter().position(|&b| b == 0)? + 1,
            }
        }
        Some(())
    }
}

/// Returns a number of up to 8 bytes.
pub(super) fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
}

/// Replaces a number of up to 8 bytes.
pub(super) fn set_word(bytes: &mut [u8], number: u64) {
    for (byte, new) in bytes.iter_mut().zip(number.to_le_bytes()) {
        *byte = new;
    }
}

/// Returns the bytes of a field that always has as many.
fn size(class: &FieldClass) -> Option<usize> {
    let integer = |c: &IntegerClass| {
        let plain = !c.variable && !c.reversed && c.byte_order == ByteOrder::Little;
        (plain && c.size.is_multiple_of(8) && c.align <= 8).then_some(c.size as usize / 8)
    };
    let structure =
        |c: &StructClass| c.fields.iter().try_fold(0usize, |all, f| all.checked_add(size(&f.class)?));
    if class.align() > 8 {
        return None;
    }
    match class {
        FieldClass::Integer(c) => integer(c),
        FieldClass::Enum(c) => integer(&c.container),
        FieldClass::Float(c) => Some(c.size() as usize / 8),
        FieldClass::Struct(c) => structure(c),
        FieldClass::Array(c) => size(&c.element)?.checked_mul(usize::try_from(c.len).ok()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hetrace_ctf::class::FieldPath;

    use super::*;

    fn list(fields: StructClass, name: &str, bits: u32) -> StructClass {
        let length = format!("_{name}_length");
        fields
            .field(length.clone(), IntegerClass::unsigned(8))
            .field(name, FieldClass::sequence(FieldPath::relative(length), IntegerClass::unsigned(bits)))
    }

    fn event(name: &str, fields: StructClass) -> EventClass {
        EventClass { name: name.into(), fields, ..EventClass::default() }
    }

    fn found(layout: &Layout, payload: &[u8]) -> Option<Vec<(What, Range<usize>)>> {
        let mut found = Vec::new();
        layout.places(payload, |what, range| found.push((what, range)))?;
        Some(found)
    }

    #[test]
    fn fields_behind_lists_and_texts_are_found() {
        let fields = StructClass::default()
            .field("queue", IntegerClass::unsigned(32))
            .field("api", FieldClass::string())
            .field("bytes", IntegerClass::unsigned(48));
        let fields = list(list(list(fields, "status", 32), "peer", 32), "later", 16);
        let layout = Layout::of(&event("device:copy", fields)).unwrap();
        let payload = [&[1, 0, 0, 0][..], b"cl\0", &[0; 6], &[1, 9, 9, 9, 9], &[2], &[5; 8], &[0]].concat();
        let peer = What::Number(Kind::Device);
        let expected = vec![(What::Number(Kind::Queue), 0..4), (peer, 19..23), (peer, 23..27)];
        assert_eq!(found(&layout, &payload), Some(expected));
        assert!(layout.has_numbers());
        for cut in 0..27 {
            assert_eq!(found(&layout, &payload[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn names_mean_something_in_their_events_only() {
        let fields = || StructClass::default().field("first", IntegerClass::unsigned(64));
        let fold = Layout::of(&event("cl:clPoll_fold", fields())).unwrap();
        assert_eq!(found(&fold, &[0; 8]), Some(vec![(What::Time, 0..8)]));
        assert!(!fold.has_numbers() && !fold.is_empty());
        assert!(Layout::of(&event("cl:clPoll_entry", fields())).unwrap().is_empty());
        let handle = StructClass::default().field("device", IntegerClass::unsigned(64));
        assert!(Layout::of(&event("object:binary", handle.clone())).unwrap().is_empty());
        // What is not of bytes cannot be passed over.
        let bits = StructClass::default()
            .field("flag", IntegerClass::unsigned(1).align(1))
            .field("device", IntegerClass::unsigned(32));
        assert!(Layout::of(&event("device:queue", bits)).is_none());
    }
}
