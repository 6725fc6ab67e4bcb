//! The events of one class of commands, to commands.

use hetrace_ctf::Scalar;
use hetrace_ctf::class::{EventClass, FieldClass, IntegerClass, Scope, StructClass};
use hetrace_ctf::read::{Event, FieldRef, FieldVisitor, Gatherer, Known, Varying};

use super::decode::{Decoder, Distances, Holds, slots};
use super::field::CommandField;
use super::{Command, CommandKind, PREFIX, Times, UNTIMED_EVENT};

/// Reads the events of a class. What class that is, is looked at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// What the commands do; a kind of a later version is `other`.
    kind: CommandKind,
    /// Whether they have no times; then a field says what each does.
    untimed: bool,
    /// What each field is, by its position; none of a later version's.
    fields: Vec<Option<CommandField>>,
    quick: Option<Quick>,
}

/// How to read payloads whose fields are as this version writes them, or nearly so.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Quick {
    gatherer: Gatherer,
    /// The distances of times.
    varying: Varying,
    /// Slots of enumerations, and what is to stand there instead of each number of the trace.
    labels: Vec<(usize, Box<[u64; 256]>)>,
}

/// A command that was read, as far as it serves to recognize those that differ from it in nothing but times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    known: Known,
    /// Of the command itself, for those of its distances that others have to have in common with it.
    distances: Distances,
}

/// What a command has of its own that is like another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// See [`Command::cause`].
    pub cause: Option<u64>,
    /// See [`Command::times`].
    pub times: Option<Times>,
    /// How long its payload is.
    pub length: usize,
}

impl Reader {
    /// For the events of a class; none if these are not commands.
    pub fn new(class: &EventClass) -> Option<Self> {
        let kind = class.name.strip_prefix(PREFIX)?;
        let untimed = class.name == UNTIMED_EVENT;
        let fields = class.fields.fields.iter().map(|field| CommandField::of_name(&field.name));
        let fields: Vec<Option<CommandField>> = fields.collect();
        if !untimed && !fields.contains(&Some(CommandField::Duration)) {
            return None;
        }
        let kind = CommandKind::of_name(kind).unwrap_or_default();
        let quick = Quick::new(&class.fields, &fields);
        Some(Self { kind, untimed, fields, quick })
    }

    /// Returns whether [`Self::read_payload`] can read the events.
    pub fn is_quick(&self) -> bool {
        self.quick.is_some()
    }

    /// Reads the command whose event is at `time` and whose payload `data` begins with, and returns it
    /// with the length of the payload. None if that is not possible: then [`Self::read`] is.
    // There are millions: one that is returned is copied twice.
    #[inline(always)]
    pub fn read_payload(&self, data: &[u8], time: u64) -> Option<(Command, usize)> {
        let quick = self.quick.as_ref()?;
        let mut decoder = Decoder::new(self.kind);
        let end = quick.gatherer.gather(data, &mut decoder.slots)?;
        for (slot, numbers) in &quick.labels {
            if let Some(slot) = decoder.slots.get_mut(*slot) {
                *slot = numbers[usize::from(*slot as u8)];
            }
        }
        Some((decoder.command(time, self.untimed), end))
    }

    /// Returns a number that payloads have in common which differ in nothing but distances of times, or behind their
    /// integers; none if it is not known.
    #[inline]
    pub fn common(&self, data: &[u8]) -> Option<u64> {
        self.quick.as_ref()?.varying.common(data)
    }

    /// Keeps what is common to the payload that `data` begins with and to those of commands that differ from it in
    /// nothing but times; none if [`Self::read_payload`] can't read it.
    pub fn pattern(&self, data: &[u8]) -> Option<Pattern> {
        let quick = self.quick.as_ref()?;
        let mut decoder = Decoder::new(self.kind);
        let end = quick.gatherer.gather(data, &mut decoder.slots)?;
        Some(Pattern { known: quick.varying.known(data, end)?, distances: decoder.distances() })
    }

    /// Reads the times of a command whose event is at `time` and whose payload `data` begins with, if it is like the one
    /// that the pattern is of. All else is as [`Self::read_payload`] read that, but that it was seen then.
    #[inline]
    pub fn read_again(&self, pattern: &Pattern, data: &[u8], time: u64) -> Option<Again> {
        let length = pattern.known.length(data)?;
        let mut distances = pattern.distances;
        self.quick.as_ref()?.varying.read(data, &mut distances.0)?;
        let times = (!self.untimed).then(|| distances.times(time));
        Some(Again { cause: distances.cause(time), times, length })
    }

    /// Reads the command of an event at `time`. What is damaged is 0.
    pub fn read(&self, event: &Event<'_, '_>, time: u64) -> Command {
        let quick = event.payload().and_then(|data| self.read_payload(data, time));
        quick.map_or_else(|| self.visit(event, time), |(command, _)| command)
    }

    fn visit(&self, event: &Event<'_, '_>, time: u64) -> Command {
        let decoder = Decoder::new(self.kind);
        let mut fields = Fields { fields: &self.fields, decoder, at: 0, element: 0, depth: 0 };
        // Who walks over the events reports what is damaged.
        let _ = event.visit(Scope::EventFields, &mut fields);
        fields.decoder.command(time, self.untimed)
    }
}

impl Quick {
    fn new(class: &StructClass, known: &[Option<CommandField>]) -> Option<Self> {
        let (mut places, mut labels) = (Vec::with_capacity(known.len()), Vec::new());
        for (field, known) in class.fields.iter().zip(known) {
            let Some(known) = *known else {
                places.push(None);
                continue;
            };
            let holds = Holds::of(known);
            match (holds.of_label(None), &field.class) {
                (None, FieldClass::Integer(integer)) => fits(holds, integer).then_some(())?,
                (None, FieldClass::Sequence(list)) => match &*list.element {
                    FieldClass::Integer(integer) => fits(holds, integer).then_some(())?,
                    _ => return None,
                },
                (Some(_), FieldClass::Enum(names))
                    if names.container.size == 8 && !names.container.signed =>
                {
                    let label = |number: usize| holds.of_label(names.label(number as i128)).unwrap_or(0);
                    labels.push((slots(known).first, Box::new(std::array::from_fn(label))));
                }
                _ => return None,
            }
            places.push(Some(slots(known)));
        }
        let gatherer = Gatherer::new(class, &places)?;
        let varying = gatherer.varying(&Distances::FIELDS.map(|field| slots(field).first));
        Some(Self { gatherer, varying, labels })
    }
}

/// Whether the bits of such integers mean the same as what [`Decoder::set`] makes of their values.
fn fits(holds: Holds, class: &IntegerClass) -> bool {
    if holds == Holds::Signed { class.signed || class.size < 64 } else { !class.signed }
}

/// Takes the fields of a command as they come, where there is no quick way.
struct Fields<'f> {
    fields: &'f [Option<CommandField>],
    decoder: Decoder,
    /// Position of the field, and of the element in it.
    at: usize,
    element: usize,
    depth: u32,
}

impl Fields<'_> {
    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.at += usize::from(self.depth == 0);
    }
}

impl<'e> FieldVisitor<'e> for Fields<'_> {
    fn scalar(&mut self, _: FieldRef<'e>, value: Scalar<'e>) {
        if self.depth == 0 {
            self.element = 0;
        }
        if let Some(Some(field)) = self.fields.get(self.at) {
            self.decoder.set(*field, self.element, value);
        }
        self.element += 1;
        self.at += usize::from(self.depth == 0);
    }

    fn begin_struct(&mut self, _: FieldRef<'e>) {
        self.depth += 1;
    }

    fn end_struct(&mut self, _: FieldRef<'e>) {
        self.leave();
    }

    fn begin_array(&mut self, _: FieldRef<'e>, _: u64) {
        self.depth += 1;
        self.element = 0;
    }

    fn end_array(&mut self, _: FieldRef<'e>) {
        self.leave();
    }

    fn begin_variant(&mut self, _: FieldRef<'e>, _: &'e str) {
        self.depth += 1;
    }

    fn end_variant(&mut self, _: FieldRef<'e>) {
        self.leave();
    }
}
