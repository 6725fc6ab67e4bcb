//! What the fields of an event say of a call's parameters.

use hetrace_ctf::Scalar;
use hetrace_ctf::class::{EventClass, Scope};
use hetrace_ctf::read::{Event, FieldRef, FieldVisitor, Leading, Picker};
use hetrace_model::{Expr, Function};

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
    /// Whose they are, and the number of each.
    places: Box<[(Code, u32)]>,
    /// The leading ones that go into a hash.
    hashed: Box<[Leading]>,
    /// How many fields the picker has as leading ones.
    first: usize,
    /// Whether a field behind them is wanted or goes into a hash.
    more: bool,
}

/// What a plan says of a field.
#[derive(Clone, Copy, Debug)]
struct Planned {
    place: Code,
    hashed: Hashed,
    wanted: bool,
}

/// What is wanted of the values of a function's calls, beside whether they are wanted at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The parameters that are handles, if entries are to have a hash of all else: [`Values::hash`].
    pub hashed: Option<&'a [(u16, u32)]>,
    /// What is asked for of entries and of exits; all if there are none.
    pub places: Option<[&'a [Place]; 2]>,
}

/// What of a field goes into [`Values::hash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hashed {
    Nothing,
    /// Elements of a list: single values are handles.
    Lists,
    All,
}

/// A place in few bytes, as each event has many and few are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code(u32);

impl Code {
    /// Of no parameter.
    const NONE: Self = Self(u32::MAX);
    const RESULT: Self = Self(1 << 16);

    fn of(place: Option<Place>) -> Self {
        match place {
            None => Self::NONE,
            Some(Place::Result) => Self::RESULT,
            Some(Place::Param(at)) => Self(at.into()),
        }
    }

    fn param(self) -> Option<u16> {
        u16::try_from(self.0).ok()
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
    fn new(function: &Function, class: &'t EventClass, phase: usize, wanted: Wanted<'_>) -> Option<Self> {
        let handles = wanted.hashed.filter(|_| phase == 0);
        let fields = class.fields.fields.iter().map(|field| {
            let place = place(function, &field.name);
            let wanted = wanted.has(phase, place);
            let place = Code::of(place);
            let is_handle = |handles: &[(u16, u32)]| handles.iter().any(|(at, _)| Some(*at) == place.param());
            let hashed = match handles.map(is_handle) {
                None => Hashed::Nothing,
                Some(true) => Hashed::Lists,
                Some(false) => Hashed::All,
            };
            Planned { place, hashed, wanted }
        });
        let (picker, fields) = (Picker::new(&class.fields)?, fields.collect::<Box<[Planned]>>());
        let leading = || fields.iter().zip(picker.leading().iter().copied());
        let wanted = || leading().filter(|(field, _)| field.wanted);
        let hashed = leading().filter(|(field, _)| field.hashed == Hashed::All);
        let first = picker.leading().len();
        let behind = fields.iter().skip(first);
        Some(Self {
            class,
            leading: wanted().map(|(_, integer)| integer).collect(),
            places: wanted().zip(0u32..).map(|((field, _), at)| (field.place, at)).collect(),
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
    fields: Vec<(Code, u32)>,
    numbers: Vec<u64>,
}

/// The values of one event.
#[derive(Clone, Debug, Default)]
pub struct Values<'f> {
    function: Option<&'f Function>,
    /// By field: whose it is and where its numbers begin.
    fields: Vec<(Code, u32)>,
    numbers: Vec<u64>,
    /// Members of structs, by parameter.
    members: Vec<(u16, String, u64)>,
    /// Of all that the event has but single handles; only of entries of which [`Wanted::hashed`] says so.
    pub hash: u64,
    /// Fields that were passed over, as [`Wanted::places`] has them not: nobody may ask for these.
    #[cfg(debug_assertions)]
    withheld: Vec<Code>,
}

impl<'f> Values<'f> {
    fn new(function: &'f Function, room: Room) -> Self {
        let mut values = Self { fields: room.fields, numbers: room.numbers, ..Self::default() };
        values.clear(function);
        values
    }

    /// The memory, for other values.
    pub fn into_room(self) -> Room {
        Room { fields: self.fields, numbers: self.numbers }
    }

    /// Forgets all values: an event of a function that nobody looks at.
    #[inline]
    pub fn clear(&mut self, function: &'f Function) {
        self.function = Some(function);
        self.fields.clear();
        self.numbers.clear();
        self.members.clear();
        self.hash = NO_HASH;
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
        self.clear(function);
        let plan = plan.filter(|plan| std::ptr::eq(plan.class, event.class()));
        let both = plan.zip(event.payload());
        if !both.is_some_and(|(plan, payload)| self.pick(plan, payload)) {
            self.visit(function, handles, event);
        }
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

    /// False if the payload ends too early.
    fn pick(&mut self, plan: &Plan<'_>, payload: &[u8]) -> bool {
        #[cfg(debug_assertions)]
        self.withheld.extend(plan.fields.iter().filter(|field| !field.wanted).map(|field| field.place));
        let first = if plan.picker.has_leading(payload) { plan.first } else { 0 };
        if first > 0 {
            // They begin at 0, as nothing is there yet.
            self.fields.extend_from_slice(&plan.places);
            self.numbers.extend(plan.leading.iter().map(|integer| integer.get(payload)));
            let hashed = plan.hashed.iter().map(|integer| integer.get(payload));
            self.hash = hashed.fold(self.hash, with_number);
        }
        if first == plan.first && !plan.more {
            return true;
        }
        self.pick_behind(first, plan, payload)
    }

    /// The same for the fields behind the first so many.
    fn pick_behind(&mut self, first: usize, plan: &Plan<'_>, payload: &[u8]) -> bool {
        let Self { fields, numbers, hash, .. } = self;
        let mut now = Planned { place: Code::NONE, hashed: Hashed::Nothing, wanted: false };
        plan.picker.pick_behind(first, payload, |position, element, value| {
            if element == 0 {
                let nothing = Planned { place: Code::NONE, hashed: Hashed::Nothing, wanted: false };
                now = plan.fields.get(position).copied().unwrap_or(nothing);
                if now.wanted {
                    // There are at most KEPT.
                    fields.push((now.place, numbers.len() as u32));
                }
            }
            if let Some(bytes) = value.bytes() {
                let all = || bytes.iter().map(|byte| u64::from(*byte));
                if now.hashed != Hashed::Nothing {
                    *hash = all().fold(*hash, with_number);
                }
                if now.wanted {
                    numbers.extend(all().take(KEPT.saturating_sub(numbers.len())));
                }
                return;
            }
            let Some(number) = value.bits() else {
                if now.hashed != Hashed::Nothing {
                    *hash = with_text(*hash, value.text().unwrap_or_default());
                }
                return;
            };
            if now.hashed == Hashed::All || (now.hashed == Hashed::Lists && value.in_list()) {
                *hash = with_number(*hash, number);
            }
            if now.wanted && numbers.len() < KEPT {
                numbers.push(number);
            }
        })
    }

    /// Reads an event for which there is no plan.
    #[cold]
    fn visit(&mut self, function: &'f Function, handles: &[(u16, u32)], event: &Event<'_, '_>) {
        self.clear(function);
        // What is damaged has been reported by the walk.
        let _ = event.visit(Scope::EventFields, &mut Reading { function, handles, values: self, depth: 0 });
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
        let is_it = |(known, _): &(Code, u32)| *known == code;
        // Mostly there is a field for each parameter.
        let at = match self.fields.get(code.0 as usize) {
            Some(field) if is_it(field) => code.0 as usize,
            _ => match self.fields.iter().position(is_it) {
                Some(at) => at,
                None => return &[],
            },
        };
        let start = |at: usize| self.fields.get(at).map_or(self.numbers.len(), |(_, start)| *start as usize);
        self.numbers.get(start(at)..start(at + 1)).unwrap_or(&[])
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
}

impl Reading<'_, '_> {
    fn begin(&mut self, name: &str) {
        let start = self.values.numbers.len() as u32;
        self.values.fields.push((Code::of(place(self.function, name)), start));
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
        let param = values.fields.last().and_then(|(place, _)| place.param());
        if self.depth > 0 || !self.handles.iter().any(|(at, _)| param == Some(*at)) {
            values.hash = with_number(values.hash, number);
        }
        if values.numbers.len() < KEPT {
            values.numbers.push(number);
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
