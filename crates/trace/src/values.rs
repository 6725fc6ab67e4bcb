//! What the fields of an event say of a call's parameters.

mod ranges;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::{EventClass, Scope};
use hetrace_ctf::read::{Event, FieldRef, FieldVisitor, Leading, Picker};
use hetrace_model::{Expr, Function};

use self::ranges::Ranges;
use crate::trace::{Class, FunctionId, Trace};

/// Numbers that are kept of one event.
const KEPT: usize = 4096;

/// The hash of nothing.
const NO_HASH: u64 = 0xcbf2_9ce4_8422_2325;

/// Where a value stands in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The result.
    Result,
    /// This parameter, or what is behind it.
    Param(u16),
}

/// Where the values of one event class are: resolved once, so that no field is looked up by name.
#[derive(Debug)]
struct Plan<'t> {
    class: &'t EventClass,
    picker: Picker,
    /// By field.
    fields: Box<[Planned]>,
    /// Of the fields that the picker has as leading ones those that are wanted.
    leading: Box<[Leading]>,
    /// By place, which of these it has: as [`Values::places`] has it.
    places: Ranges,
    /// The leading ones that go into a hash.
    hashed: Box<[Leading]>,
    /// How many fields the picker has as leading ones, and where the last of them ends.
    first: usize,
    first_bytes: usize,
    /// Whether a field behind them is wanted or goes into a hash.
    more: bool,
    /// If all behind them is a list of bytes: the bits of its length, how many bytes that has, and both fields.
    bytes: Option<(u64, usize, [Planned; 2])>,
}

/// What a plan says of a field.
#[derive(Clone, Copy, Debug)]
struct Planned {
    place: Code,
    hashed: Hashed,
    wanted: bool,
    /// It is wanted as a word, if it is a list of bytes.
    packed: bool,
}

impl Planned {
    /// A field of which nothing is wanted.
    const NOTHING: Self = Self { place: Code::NONE, hashed: Hashed::Nothing, wanted: false, packed: false };
}

/// What is wanted of the values of a function's calls, beside whether they are wanted at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The parameters that are handles, if entries are to have a hash of all else: [`Values::hash`].
    pub hashed: Option<&'a [(u16, u32)]>,
    /// What is asked for of entries and of exits; all if there are none.
    pub places: Option<[&'a [Place]; 2]>,
    /// A parameter whose bytes in entries are asked for as [`Values::packed`], and not one by one.
    pub packed: Option<u16>,
}

/// What of a field goes into [`Values::hash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hashed {
    Nothing,
    /// Elements of a list: single values are handles.
    Lists,
    All,
}

/// A place as an index of [`Values::places`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code(u32);

impl Code {
    /// Of no parameter.
    const NONE: Self = Self(u32::MAX);

    #[inline]
    fn of(place: Option<Place>) -> Self {
        match place {
            None => Self::NONE,
            Some(Place::Result) => Self(0),
            Some(Place::Param(at)) => Self(u32::from(at) + 1),
        }
    }

    fn param(self) -> Option<u16> {
        u16::try_from(self.0.checked_sub(1)?).ok()
    }

    /// Puts the numbers from `start` to `end` at its place; none where it has some, or is no place.
    #[inline]
    fn put(self, places: &mut Ranges, range: (usize, usize)) {
        if self != Self::NONE {
            places.put(self.0 as usize, range);
        }
    }

    /// The same, or appends those up to the end of `range` to what it has from its start on.
    #[inline]
    fn add(self, places: &mut Ranges, range: (usize, usize)) {
        if self != Self::NONE {
            places.add(self.0 as usize, range);
        }
    }
}

/// The plans of a trace's entries and exits.
#[derive(Debug, Default)]
pub struct Plans<'t> {
    /// By function. Of event classes that share a function, the first; others are read by name.
    entries: Vec<Option<Plan<'t>>>,
    exits: Vec<Option<Plan<'t>>>,
    /// By function; small, as it is asked for each call.
    wanted: Vec<bool>,
}

impl Wanted<'_> {
    /// Whether a field's value is asked for, of an entry (0) or an exit (1).
    fn has(&self, phase: usize, place: Option<Place>) -> bool {
        let places = self.places.and_then(|places| places.get(phase).copied());
        places.is_none_or(|places| place.is_some_and(|place| places.contains(&place)))
    }
}

impl<'t> Plans<'t> {
    /// Plans for the functions that `wanted` is true of, without a hash of their values.
    pub fn new(trace: &'t Trace, wanted: impl Fn(FunctionId) -> bool) -> Self {
        Self::of(trace, |function| wanted(function).then(Wanted::default))
    }

    /// Plans for the functions that `wanted` returns something for, and for that.
    pub fn of<'w>(trace: &'t Trace, wanted: impl Fn(FunctionId) -> Option<Wanted<'w>>) -> Self {
        let ids = (0u32..).zip(trace.functions().all()).map(|(id, _)| FunctionId(id));
        let known: Vec<_> = ids.map(|id| wanted(id).filter(|_| trace.described(id).is_some())).collect();
        let none = || std::iter::repeat_with(|| None).take(known.len()).collect();
        let are_wanted = known.iter().map(Option::is_some).collect();
        let mut plans = Self { entries: none(), exits: none(), wanted: are_wanted };
        for (position, stream) in trace.ctf().class().streams.iter().enumerate() {
            for (class, event) in trace.classes().of_stream(position).iter().zip(&stream.events) {
                let (function, phase, to) = match class {
                    Class::Entry(function) => (*function, 0, &mut plans.entries),
                    Class::Exit(function, _) => (*function, 1, &mut plans.exits),
                    _ => continue,
                };
                let wanted = known.get(function.index()).copied().flatten();
                let described = trace.described(function).zip(wanted);
                if let (Some((described, wanted)), Some(slot @ None)) =
                    (described, to.get_mut(function.index()))
                {
                    *slot = Plan::new(described, event, phase, wanted);
                }
            }
        }
        plans
    }

    /// Whether they are for a function.
    #[inline]
    pub fn are_for(&self, function: FunctionId) -> bool {
        self.wanted.get(function.index()) == Some(&true)
    }

    fn entry(&self, function: FunctionId) -> Option<&Plan<'t>> {
        self.entries.get(function.index())?.as_ref()
    }

    fn exit(&self, function: FunctionId) -> Option<&Plan<'t>> {
        self.exits.get(function.index())?.as_ref()
    }
}

impl<'t> Plan<'t> {
    fn new(function: &Function, class: &'t EventClass, phase: usize, asked: Wanted<'_>) -> Option<Self> {
        let handles = asked.hashed.filter(|_| phase == 0);
        let fields = class.fields.fields.iter().map(|field| {
            let place = place(function, &field.name);
            let wanted = asked.has(phase, place);
            let place = Code::of(place);
            let is_handle = |handles: &[(u16, u32)]| handles.iter().any(|(at, _)| Some(*at) == place.param());
            let hashed = match handles.map(is_handle) {
                None => Hashed::Nothing,
                Some(true) => Hashed::Lists,
                Some(false) => Hashed::All,
            };
            let packed = wanted && phase == 0 && place.param().is_some() && place.param() == asked.packed;
            Planned { place, hashed, wanted, packed }
        });
        let (picker, fields) = (Picker::new(&class.fields)?, fields.collect::<Box<[Planned]>>());
        let leading = || fields.iter().zip(picker.leading().iter().copied());
        let wanted = || leading().filter(|(field, _)| field.wanted);
        let hashed = leading().filter(|(field, _)| field.hashed == Hashed::All);
        let first = picker.leading().len();
        let behind = fields.iter().skip(first);
        let mut places = Ranges::default();
        wanted().zip(0..).for_each(|((field, _), at)| field.place.put(&mut places, (at, at + 1)));
        Some(Self {
            class,
            leading: wanted().map(|(_, integer)| integer).collect(),
            places,
            bytes: picker.only_bytes().zip(fields.get(first..)?.first_chunk()).map(|(width, own)| {
                let bits = hetrace_ctf::bits::mask(width as u32 * 8);
                (bits, width, *own)
            }),
            first_bytes: picker.leading().last().map_or(0, |last| last.end()),
            hashed: hashed.map(|(_, integer)| integer).collect(),
            more: behind.clone().any(|field| field.wanted || field.hashed != Hashed::Nothing),
            first,
            picker,
            fields,
        })
    }
}

/// What a field of a function's events is called.
fn place(function: &Function, name: &str) -> Option<Place> {
    match name {
        "result" => Some(Place::Result),
        name => {
            let name = if name == "result_" { "result" } else { name };
            let at = function.params.iter().position(|p| p.name == name);
            at.and_then(|at| u16::try_from(at).ok()).map(Place::Param)
        }
    }
}

/// Memory that the values of one event leave to those of the next.
#[derive(Debug, Default)]
pub struct Room {
    places: Ranges,
    numbers: Vec<u64>,
}

/// The values of one event.
#[derive(Clone, Debug, Default)]
pub struct Values<'f> {
    function: Option<&'f Function>,
    /// By [`Code`]: where its numbers begin and end.
    places: Ranges,
    numbers: Vec<u64>,
    /// Members of structs, by parameter.
    members: Vec<(u16, String, u64)>,
    /// Of all that the event has but single handles; only of entries of which [`Wanted::hashed`] says so.
    pub hash: u64,
    /// The bytes of the parameter that [`Wanted::packed`] says: how many there are, and their number if that may be an
    /// address, as it has eight bytes or is one. None where there are none, or they are to be asked for one by one.
    pub packed: Option<(usize, Option<u64>)>,
    /// Fields that were passed over, as [`Wanted::places`] has them not: nobody may ask for these.
    #[cfg(debug_assertions)]
    withheld: Vec<Code>,
}

impl<'f> Values<'f> {
    fn new(function: &'f Function, room: Room) -> Self {
        let mut values = Self { places: room.places, numbers: room.numbers, ..Self::default() };
        values.clear(function);
        values
    }

    /// The memory, for other values.
    pub fn into_room(self) -> Room {
        Room { places: self.places, numbers: self.numbers }
    }

    /// Forgets all values: an event of a function that nobody looks at.
    #[inline]
    pub fn clear(&mut self, function: &'f Function) {
        self.begin(function);
        self.places.clear();
    }

    /// The same for an event of which it is known where its values are.
    #[inline]
    fn begin(&mut self, function: &'f Function) {
        self.function = Some(function);
        self.numbers.clear();
        if !self.members.is_empty() {
            self.members.clear();
        }
        self.hash = NO_HASH;
        self.packed = None;
        #[cfg(debug_assertions)]
        self.withheld.clear();
    }

    /// The entry of a call.
    pub fn of_entry(
        function: &'f Function,
        handles: &[(u16, u32)],
        known: (FunctionId, &Plans<'_>),
        event: &Event<'_, '_>,
        room: Room,
    ) -> Self {
        let mut values = Self::new(function, room);
        values.read_entry(function, handles, known, event);
        values
    }

    /// Its exit.
    pub fn of_exit(
        function: &'f Function,
        known: (FunctionId, &Plans<'_>),
        event: &Event<'_, '_>,
        room: Room,
    ) -> Self {
        let mut values = Self::new(function, room);
        values.read_exit(function, known, event);
        values
    }

    /// Reads the entry of a call in the place of what was read before.
    pub fn read_entry(
        &mut self,
        function: &'f Function,
        handles: &[(u16, u32)],
        (id, plans): (FunctionId, &Plans<'_>),
        event: &Event<'_, '_>,
    ) {
        self.read(function, handles, plans.entry(id), event);
    }

    /// The same for its exit.
    pub fn read_exit(
        &mut self,
        function: &'f Function,
        (id, plans): (FunctionId, &Plans<'_>),
        event: &Event<'_, '_>,
    ) {
        self.read(function, &[], plans.exit(id), event);
    }

    fn read(
        &mut self,
        function: &'f Function,
        handles: &[(u16, u32)],
        plan: Option<&Plan<'_>>,
        event: &Event<'_, '_>,
    ) {
        if let Some(plan) = plan
            && std::ptr::eq(plan.class, event.class())
            && let Some(payload) = event.payload()
        {
            self.begin(function);
            if self.pick(plan, payload) {
                return;
            }
        }
        self.visit(function, handles, event);
    }

    /// Reads the payload of an event of `class`.
    ///
    /// # Errors
    /// If there is no plan for it: gives the room back.
    pub fn of_payload(
        function: &'f Function,
        (id, plans): (FunctionId, &Plans<'_>),
        class: &EventClass,
        payload: &[u8],
        room: Room,
    ) -> Result<Self, Room> {
        let mut values = Self::new(function, room);
        let both = [plans.entry(id), plans.exit(id)].into_iter().flatten();
        let plan = both.into_iter().find(|plan| std::ptr::eq(plan.class, class));
        if plan.is_some_and(|plan| values.pick(plan, payload)) { Ok(values) } else { Err(values.into_room()) }
    }

    /// False if the payload ends too early. All places are those that the plan says.
    #[inline]
    fn pick(&mut self, plan: &Plan<'_>, payload: &[u8]) -> bool {
        #[cfg(debug_assertions)]
        self.withheld.extend(plan.fields.iter().filter(|field| !field.wanted).map(|field| field.place));
        match plan.picker.has_leading(payload) {
            true => self.pick_fields(plan, payload, payload),
            false => self.pick_last(plan, payload),
        }
    }

    /// The same for a payload whose first fields are so near to the end of the data that there is no whole word.
    #[cold]
    fn pick_last(&mut self, plan: &Plan<'_>, payload: &[u8]) -> bool {
        let longer = [payload, &[0; size_of::<u64>()]].concat();
        payload.len() >= plan.first_bytes && self.pick_fields(plan, &longer, payload)
    }

    /// Reads the first fields from `first`, which is the payload with a word behind them, and all others.
    #[inline(always)]
    fn pick_fields(&mut self, plan: &Plan<'_>, first: &[u8], payload: &[u8]) -> bool {
        self.places.copy(&plan.places);
        for integer in &plan.leading {
            self.numbers.push(integer.get(first));
        }
        let mut hash = self.hash;
        for integer in &plan.hashed {
            hash = with_number(hash, integer.get(first));
        }
        self.hash = hash;
        !plan.more || self.pick_bytes(plan, payload).is_some() || self.pick_behind(plan, payload)
    }

    /// Reads the list of bytes that is all behind the first fields, as of most calls that have anything there. None, and
    /// nothing done, if there is something else, or `payload` ends too early.
    #[inline]
    fn pick_bytes(&mut self, plan: &Plan<'_>, payload: &[u8]) -> Option<()> {
        let (bits, width, [length, list]) = plan.bytes.as_ref()?;
        let number = hetrace_ctf::bits::word(payload, plan.first_bytes)? & bits;
        let bytes = payload.get(plan.first_bytes + width..)?.get(..usize::try_from(number).ok()?)?;
        self.add_number(length, false, number, self.numbers.len());
        if !bytes.is_empty() {
            self.add_bytes(list, bytes);
        }
        Some(())
    }

    /// Reads all fields behind the first ones.
    fn pick_behind(&mut self, plan: &Plan<'_>, payload: &[u8]) -> bool {
        let (mut now, mut start) = (&Planned::NOTHING, 0);
        plan.picker.pick_behind(plan.first, payload, |position, element, value| {
            if element == 0 {
                now = plan.fields.get(position).unwrap_or(&Planned::NOTHING);
                start = self.numbers.len();
            }
            if let Some(bytes) = value.bytes() {
                self.add_bytes(now, bytes);
            } else if let Some(number) = value.bits() {
                self.add_number(now, value.in_list(), number, start);
            } else if now.hashed != Hashed::Nothing {
                self.hash = with_text(self.hash, value.text().unwrap_or_default());
            }
        })
    }

    /// A list of bytes.
    #[inline]
    fn add_bytes(&mut self, field: &Planned, bytes: &[u8]) {
        if field.hashed != Hashed::Nothing {
            self.hash = with_bytes(self.hash, bytes);
        }
        let start = self.numbers.len();
        let most = KEPT.saturating_sub(start);
        if field.packed {
            let bytes = bytes.get(..most).unwrap_or(bytes);
            self.packed = Some((bytes.len(), number_of(bytes)));
        } else if field.wanted {
            self.numbers.extend(bytes.iter().take(most).map(|byte| u64::from(*byte)));
            field.place.put(&mut self.places, (start, self.numbers.len()));
        }
    }

    /// A number of a field whose numbers begin at `start`.
    #[inline]
    fn add_number(&mut self, field: &Planned, in_list: bool, number: u64, start: usize) {
        if field.hashed == Hashed::All || (field.hashed == Hashed::Lists && in_list) {
            self.hash = with_number(self.hash, number);
        }
        if field.wanted && self.numbers.len() < KEPT {
            self.numbers.push(number);
            field.place.add(&mut self.places, (start, self.numbers.len()));
        }
    }

    /// Reads an event for which there is no plan.
    #[cold]
    fn visit(&mut self, function: &'f Function, handles: &[(u16, u32)], event: &Event<'_, '_>) {
        self.clear(function);
        // What is damaged has been reported by the walk.
        let now = (Code::NONE, 0);
        let _ =
            event.visit(Scope::EventFields, &mut Reading { function, handles, values: self, depth: 0, now });
    }

    /// All numbers of a place.
    #[inline]
    pub fn all(&self, place: Place) -> &[u64] {
        let code = Code::of(Some(place));
        #[cfg(debug_assertions)]
        assert!(
            !self.withheld.contains(&code),
            "{place:?} of {:?} is not wanted",
            self.function.map(|f| &f.name)
        );
        let (start, end) = self.places.get(code.0 as usize);
        self.numbers.get(start..end).unwrap_or_default()
    }

    /// The first number of a place.
    #[inline]
    pub fn first(&self, place: Place) -> Option<u64> {
        self.all(place).first().copied()
    }

    /// All members of this name of the structs of a place.
    pub fn members(&self, place: Place, name: &str) -> impl Iterator<Item = u64> {
        let of = Code::of(Some(place)).param();
        let named =
            self.members.iter().filter(move |(param, member, _)| Some(*param) == of && member == name);
        named.map(|(_, _, value)| *value)
    }

    fn param(&self, name: &str) -> Option<u16> {
        u16::try_from(self.function?.params.iter().position(|p| p.name == name)?).ok()
    }

    /// A parameter by its name, or `parameter.member`.
    pub fn named(&self, name: &str) -> Option<u64> {
        match name.split_once('.') {
            None => self.first(Place::Param(self.param(name)?)),
            Some((param, member)) => {
                let param = self.param(param)?;
                let found = self.members.iter().find(|(p, m, _)| *p == param && *m == member);
                found.map(|(_, _, value)| *value)
            }
        }
    }

    /// The value of an expression, if the event has all that is in it.
    pub fn eval(&self, expr: &Expr) -> Option<u64> {
        expr.value(&|leaf| match leaf {
            Expr::Name(name) => self.named(name),
            Expr::Index(name, at) => {
                let all = self.all(Place::Param(self.param(name)?));
                all.get(usize::try_from(*at).ok()?).copied()
            }
            _ => None,
        })
    }
}

/// A hash and a text.
fn with_text(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(hash, step)
}

/// A hash and bytes, whose number has been hashed as that of a field.
#[inline]
fn with_bytes(hash: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let hash = words.iter().fold(hash, |hash, word| with_number(hash, u64::from_le_bytes(*word)));
    if rest.is_empty() { hash } else { with_number(hash, little(rest)) }
}

/// The number that up to eight bytes are.
#[inline]
fn little(bytes: &[u8]) -> u64 {
    match bytes.split_first_chunk() {
        Some((four, rest)) => little(rest) << 32 | u64::from(u32::from_le_bytes(*four)),
        None => bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// The number that bytes are, if there are eight of them or one.
#[inline]
fn number_of(bytes: &[u8]) -> Option<u64> {
    match *bytes {
        [byte] => Some(byte.into()),
        _ => bytes.try_into().ok().map(u64::from_le_bytes),
    }
}

/// A hash and a number.
#[inline]
fn with_number(hash: u64, number: u64) -> u64 {
    // All bits of the number and of what was before go into all bits of the product.
    let mixed = u128::from(hash ^ number ^ 0x2545_f491_4f6c_dd1d) * 0x9e37_79b9_7f4a_7c15;
    (mixed as u64) ^ ((mixed >> 64) as u64).rotate_left(23)
}

/// Reads the fields of an event by their names.
struct Reading<'a, 'f> {
    function: &'f Function,
    /// Parameters of which a single value is a handle.
    handles: &'a [(u16, u32)],
    values: &'a mut Values<'f>,
    depth: u32,
    /// The field, and where its numbers begin.
    now: (Code, usize),
}

impl Reading<'_, '_> {
    fn begin(&mut self, name: &str) {
        self.now = (Code::of(place(self.function, name)), self.values.numbers.len());
    }
}

impl<'e> FieldVisitor<'e> for Reading<'_, '_> {
    fn scalar(&mut self, field: FieldRef<'e>, value: Scalar<'e>) {
        if self.depth == 0 {
            self.begin(field.name);
        }
        let values = &mut *self.values;
        let number = match value {
            Scalar::Str(text) => return values.hash = with_text(values.hash, text.as_bytes()),
            Scalar::Bytes(bytes) => return values.hash = with_text(values.hash, bytes),
            Scalar::Float(v) => v.to_bits(),
            Scalar::Unsigned(v) => v,
            Scalar::Signed(v) => v as u64,
            Scalar::Enum { value, .. } => value as u64,
        };
        let (place, start) = self.now;
        let param = place.param();
        if self.depth > 0 || !self.handles.iter().any(|(at, _)| param == Some(*at)) {
            values.hash = with_number(values.hash, number);
        }
        if values.numbers.len() < KEPT {
            values.numbers.push(number);
            place.add(&mut values.places, (start, values.numbers.len()));
            if let Some(param) = param
                && self.depth > 0
                && !field.name.is_empty()
            {
                values.members.push((param, field.name.to_owned(), number));
            }
        }
    }

    fn begin_struct(&mut self, field: FieldRef<'e>) {
        if self.depth == 0 {
            self.begin(field.name);
        }
        self.depth += 1;
    }

    fn end_struct(&mut self, _: FieldRef<'e>) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn begin_array(&mut self, field: FieldRef<'e>, _: u64) {
        self.begin_struct(field);
    }

    fn end_array(&mut self, field: FieldRef<'e>) {
        self.end_struct(field);
    }

    fn begin_variant(&mut self, field: FieldRef<'e>, _: &'e str) {
        self.begin_struct(field);
    }

    fn end_variant(&mut self, field: FieldRef<'e>) {
        self.end_struct(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_number_that_they_lie_in_memory_as() {
        let all: Vec<u8> = (1..=9).collect();
        for length in 0..=8 {
            let mut word = [0; 8];
            word[..length].copy_from_slice(&all[..length]);
            assert_eq!(little(&all[..length]), u64::from_le_bytes(word), "{length}");
        }
        let numbers = [0, 1, 2, 4, 8, 9].map(|length| number_of(&all[..length]));
        assert_eq!(numbers, [None, Some(1), None, None, Some(0x0807_0605_0403_0201), None]);
    }

    #[test]
    fn each_byte_is_in_the_hash() {
        let all = [7; 19];
        let hash = |at: usize| {
            let mut bytes = all;
            bytes[at] = 8;
            with_bytes(NO_HASH, &bytes)
        };
        let mut hashes: Vec<u64> = (0..all.len()).map(hash).chain([with_bytes(NO_HASH, &all)]).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), all.len() + 1);
    }

    #[test]
    fn no_place_has_no_numbers() {
        let (mut places, at) = (Ranges::default(), Code::of(Some(Place::Param(2))));
        at.add(&mut places, (5, 6));
        Code::NONE.put(&mut places, (0, 4));
        Code::NONE.add(&mut places, (0, 4));
        assert_eq!((places.get(3), places.get(0)), ((5, 6), (0, 0)));
        assert_eq!((at.param(), Code::of(Some(Place::Result)).param()), (Some(2), None));
    }
}
