//! What a function does to the states of objects, resolved once from the model: roles, and its tables `made` and `engines`.

use hetrace_model::{Engines, Follow, Function, Kind as TypeKind, Made, Model, Param};

use super::kinds::{Kind, KindId};
use super::reads::{Number, position};
use hetrace_trace::values::{Place, Values};

/// What a function does to states, as far as rules care.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // one for each role
pub(super) struct Duties<'t> {
    pub made: Option<MadeBy<'t>>,
    pub engines: Option<(u16, u16, &'t Engines)>,
    pub close: bool,
    pub reopen: bool,
    pub submit: bool,
    pub idle: bool,
    pub owner: bool,
    pub exclusive: bool,
    pub reset: bool,
    pub signal: bool,
    pub init: bool,
    /// It waits, or asks for a state, in an API with command buffers.
    pub waits: bool,
    /// The parameter with the command buffer that it changes, executes, or appends to.
    pub list: Option<u16>,
    /// It appends a command to it.
    pub appends: bool,
    /// The parameter with the event or fence that is signalled or reset.
    pub event: Option<u16>,
    /// Parameters with events that are waited for.
    pub awaits: Vec<u16>,
    /// The parameter with the kernel whose argument it sets.
    pub sets: bool,
    /// Parameters with owners of what it makes.
    pub parents: Vec<u16>,
    /// Structs that begin with a tag and the address of the next one.
    pub headers: Vec<Header<'t>>,
    /// The parameter with a context, of what makes memory.
    pub context: Option<u16>,
    /// Its other context.
    pub has_two_contexts: bool,
}

/// A struct behind a parameter that begins with a tag and an address.
#[derive(Clone, Debug)]
pub(super) struct Header<'t> {
    pub param: &'t str,
    pub base: &'t str,
    pub tag: &'t str,
    pub next: &'t str,
    /// Tags that there are, with the structs that they mean.
    pub tags: &'t [(u32, String)],
}

/// Values that say what is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct MadeBy<'t> {
    pub means: &'t Made,
    bits: Option<Number<'t>>,
    more: Option<Number<'t>>,
    waits: Option<Number<'t>>,
    engine: Option<Number<'t>>,
    index: Option<Number<'t>>,
    slots: Option<Number<'t>>,
    slot: Option<Number<'t>>,
}

/// The same of a call.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // facts of their own
pub(super) struct MadeNow {
    pub in_order: bool,
    pub shared: bool,
    pub more: bool,
    pub waits: bool,
    pub engine: Option<u64>,
    pub index: Option<u64>,
    pub slots: Option<u64>,
    pub slot: Option<u64>,
}

impl<'t> MadeBy<'t> {
    fn new(f: &Function, means: &'t Made) -> Self {
        let number = |name: &'t Option<String>| name.as_deref().map(|name| Number::named(f, name));
        Self {
            means,
            bits: number(&means.bits),
            more: number(&means.more),
            waits: means.waits.as_ref().map(|(name, _)| Number::named(f, name)),
            engine: number(&means.engine),
            index: number(&means.index),
            slots: number(&means.slots),
            slot: number(&means.slot),
        }
    }

    /// What a call is passed.
    pub fn of(&self, values: &Values<'_>) -> MadeNow {
        let get = |number: Option<Number<'_>>| number.and_then(|number| number.get(values));
        let bits = get(self.bits).unwrap_or(0);
        let waiting = self.means.waits.as_ref().map(|(_, value)| *value);
        MadeNow {
            in_order: bits & self.means.in_order != 0,
            shared: bits & self.means.shared != 0,
            more: get(self.more).is_some_and(|more| more != 0),
            waits: waiting.is_some() && get(self.waits) == waiting,
            engine: get(self.engine),
            index: get(self.index),
            slots: get(self.slots),
            slot: get(self.slot),
        }
    }
}

/// What is known of a function already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// Objects that are passed.
    pub handles: &'a [(u16, KindId)],
    /// The parameter with a queue.
    pub queue: Option<&'a str>,
    pub allocates: bool,
}

/// What rules about states ask of a whole model.
#[derive(Debug)]
pub(super) struct Course<'t> {
    model: &'t Model,
    /// Types of command buffers.
    lists: Vec<&'t str>,
    /// Types of events and fences that stay signalled.
    stays: Vec<&'t str>,
    /// Types of owners.
    owners: Vec<&'t str>,
}

impl<'t> Course<'t> {
    pub fn new(model: &'t Model) -> Self {
        let made = |is: fn(&Made) -> bool| {
            let functions = model.functions.iter().filter(|f| f.made().is_some_and(is));
            functions.filter_map(|f| f.creates.as_deref()).collect::<Vec<_>>()
        };
        let owners = model.functions.iter().filter(|f| f.has_role("owner"));
        Self {
            model,
            lists: made(|made| made.recorded || made.immediate),
            stays: made(|made| made.stays),
            owners: owners.filter_map(|f| Some(f.params.first()?.base.as_str())).collect(),
        }
    }

    /// What a function does; none if that is nothing.
    pub fn of(&self, f: &'t Function, known: &Known<'_>, kinds: &[Kind]) -> Option<Box<Duties<'t>>> {
        let has = |role: &str| f.has_role(role);
        let is = |kind: KindId, types: &[&str]| {
            kinds.get(kind as usize).is_some_and(|kind| types.contains(&kind.name.as_str()))
        };
        let param = |at: u16| f.params.get(usize::from(at));
        let by_value = |at: u16| param(at).is_some_and(|p| p.pointers == 0);
        let handles = || known.handles.iter().copied();
        let lists = !self.lists.is_empty();
        let mut list = handles().filter(|(_, kind)| is(*kind, &self.lists));
        let list = if has("submit") {
            // What it submits, and not where to.
            list.rfind(|(at, _)| !by_value(*at) || known.queue != param(*at).map(|p| p.name.as_str()))
        } else {
            list.next()
        };
        let events = || handles().filter(|(_, kind)| is(*kind, &self.stays));
        let mut duties = Duties {
            made: f.made.as_ref().map(|made| MadeBy::new(f, made)),
            engines: f.engines.as_deref().and_then(|e| Some((position(f, &e.of)?, position(f, &e.list)?, e))),
            close: has("close"),
            reopen: has("reopen"),
            submit: has("submit"),
            idle: has("idle"),
            owner: has("owner"),
            exclusive: has("exclusive"),
            reset: has("reset"),
            signal: has("signal"),
            init: has("init"),
            waits: lists && (has("sync") || has("poll")),
            list: list.map(|(at, _)| at),
            event: events().filter(|(at, _)| by_value(*at)).map(|(at, _)| at).next(),
            sets: lists && has("set-arg"),
            headers: self.headers(f),
            ..Duties::default()
        };
        duties.appends = duties.list.is_some() && (has("enqueue") || has("record")) && !duties.submit;
        if has("enqueue") {
            duties.awaits = events().filter(|(at, _)| !by_value(*at)).map(|(at, _)| at).collect();
        }
        if has("create") {
            let owned = handles().filter(|(at, kind)| by_value(*at) && is(*kind, &self.owners));
            duties.parents = owned.map(|(at, _)| at).collect();
        }
        let contexts = || handles().filter(|(_, kind)| kinds.get(*kind as usize).is_some_and(|k| k.context));
        if known.allocates || duties.appends {
            duties.context = contexts().next().map(|(at, _)| at);
            duties.has_two_contexts = duties.appends && duties.context.is_some();
        }
        duties.is_some(known).then(|| Box::new(duties))
    }

    fn headers(&self, f: &'t Function) -> Vec<Header<'t>> {
        let header = |p: &'t Param| {
            let is_one = matches!(p.follow, Follow::Pointee | Follow::Array { .. }) && p.pointers == 1;
            let ty = self.model.types.get(&p.base).filter(|_| is_one)?;
            let [tag, next, ..] = ty.members.as_slice() else { return None };
            let tags = self.model.types.get(&tag.ty)?.values.as_ref()?;
            let tags = self.model.chains.get(tags)?;
            let known = ty.kind == TypeKind::Struct && tags.iter().any(|(_, known)| *known == p.base);
            let (param, base) = (p.name.as_str(), p.base.as_str());
            known.then(|| Header { param, base, tag: &tag.name, next: &next.name, tags })
        };
        f.params.iter().filter_map(header).collect()
    }
}

impl Duties<'_> {
    fn is_some(&self, known: &Known<'_>) -> bool {
        let roles = [self.close, self.reopen, self.submit, self.idle, self.owner, self.exclusive, self.reset];
        roles.contains(&true)
            || self.signal
            || self.init
            || self.waits
            || self.appends
            || self.sets
            || self.list.is_some()
            || self.made.is_some()
            || self.engines.is_some()
            || !self.parents.is_empty()
            || !self.headers.is_empty()
            || (self.context.is_some() && known.allocates)
    }
}

/// The handles of a parameter.
pub(super) fn handles_of(
    handles: &[(u16, KindId, u64)],
    at: u16,
) -> impl Iterator<Item = (KindId, u64)> + '_ {
    let there = handles.iter().filter(move |(param, _, handle)| *param == at && *handle != 0);
    there.map(|(_, kind, handle)| (*kind, *handle))
}

/// The first number of a parameter.
pub(super) fn number(values: &Values<'_>, at: u16) -> Option<u64> {
    values.first(Place::Param(at))
}
