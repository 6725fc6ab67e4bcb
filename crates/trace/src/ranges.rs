//! Ranges and marks that a program sets around what it does, and its counters, matched by role.
//!
//! Feed [`Ranges`] the entries and exits of a walk; it returns what begins and
//! ends. What functions mean, the model's roles say (`range-push`, `range-pop`,
//! `range-start`, `range-end`, `mark`, `name`, `counter-set`, `counter-add`, `counter-subtract`), and parameters are
//! known by name: `domain`, `category`, `color`, `payload_type`, `payload`, `message`,
//! `registered`, `id`, `name`, `string`, `counter`, `value`, `value_type`. A range whose function has no parameter for a
//! text, and a name that ends with `_begin`, is called by what stands before that; and what ends it, by a name with `_end`,
//! ends the innermost range of that name. Those that were pushed inside of it have no end.
//!
//! What lies between two probes in the program's code is a range, too ([`Ranges::border`]).
//!
//! A range begins when the call that begins it has returned, and ends when the
//! call that ends it is entered: what the calls themselves take is outside.
//! Pushed ranges nest by thread and domain. A started range is ended by its id,
//! whichever thread does it.

mod probed;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;
use hetrace_model::{Function, Named};

use crate::owners::{ApiIndex, Owners};
use crate::spans::{At, Call, Open, Orphan, Unfinished};
use crate::stacks::StackId;
use crate::trace::{FunctionId, ThreadId, Trace};

/// How a range was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Style {
    /// Pushed: on one thread, inside those pushed before.
    Pushed,
    /// Started: any thread may end it.
    Started,
    /// Between two probes in the program's code (USDT), on one thread: see [`crate::probes`].
    Probed,
}

impl Style {
    /// Its name: `pushed`, `started` or `probed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pushed => "pushed",
            Self::Started => "started",
            Self::Probed => "probed",
        }
    }

    /// Whether it is of one thread, inside of what that has around it.
    pub fn nests(self) -> bool {
        self != Self::Started
    }
}

/// A value that the program gave a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Payload {
    /// Without a sign.
    Unsigned(u64),
    /// With one.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// Bits of an unknown type, or an address.
    Bits(u64),
}

impl Payload {
    /// Bits as the value that they are, by the words in the name of its type, as NVTX and ITT call types; `None` if that is
    /// not known.
    pub fn typed(ty: &str, bits: u64) -> Option<Self> {
        let ends = |words: &[&str]| words.iter().any(|word| ty.ends_with(word));
        let has = |word: &str| ty.contains(word);
        Some(match () {
            () if ends(&["double"]) || has("DOUBLE") => Self::Float(f64::from_bits(bits)),
            () if ends(&["float"]) || has("FLOAT") => Self::Float(f64::from(f32::from_bits(bits as u32))),
            () if ends(&["u64", "u32", "u16"]) || has("UNSIGNED_INT") => Self::Unsigned(bits),
            () if ends(&["s16"]) => Self::Signed(i64::from(bits as u16 as i16)),
            () if ends(&["s32"]) || has("INT32") => Self::Signed(i64::from(bits as u32 as i32)),
            () if ends(&["s64"]) || has("INT") => Self::Signed(bits as i64),
            () => return None,
        })
    }
}

/// A range, or a mark.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// No other range of the walk has it; those begun later have greater ones.
    pub key: u64,
    /// How it was begun.
    pub style: Style,
    /// Who began it.
    pub thread: ThreadId,
    /// When it began, nanoseconds on the trace's clock.
    pub begin: u64,
    /// The domain's name; empty for the default one, its handle if it has no name.
    pub domain: Arc<str>,
    /// The category's name, or its number; empty if it has none.
    pub category: Arc<str>,
    /// The message; empty if there is none.
    pub message: Arc<str>,
    /// ARGB; 0 if none was given.
    pub color: u32,
    /// A value that the program gave.
    pub payload: Option<Payload>,
    /// The code that began it.
    pub stack: StackId,
}

/// A counter of the program's has another value.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The process, and the API whose functions count.
    pub of: (i64, Option<ApiIndex>),
    /// No other counter of the process and its API has it.
    pub key: u64,
    /// Its name, or its handle if it has none.
    pub name: Arc<str>,
    /// Its domain's name; empty if it is not known or there is none.
    pub domain: Arc<str>,
    /// When the call was made that says so, nanoseconds on the trace's clock.
    pub time: u64,
    /// What it counts now.
    pub value: f64,
}

impl Counted {
    /// Returns what the counter is called in reports.
    pub fn title(&self) -> String {
        counter_title(&self.domain, &self.name)
    }
}

/// Returns what a counter is called in reports: `DOMAIN: NAME`, or its name if it has no domain.
pub fn counter_title(domain: &str, name: &str) -> String {
    if domain.is_empty() { name.to_owned() } else { format!("{domain}: {name}") }
}

/// What a call turns out to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A range begins, at [`Range::begin`].
    Begun(Range),
    /// A range ends.
    Ended {
        /// Which.
        range: Range,
        /// When.
        end: u64,
        /// Who ended it.
        by: ThreadId,
    },
    /// A moment, [`Range::begin`], with a message.
    Mark(Range),
    /// A counter changes.
    Counted(Counted),
}

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Nothing,
    Push,
    Pop,
    Start,
    End,
    Mark,
    /// Changes a counter by so many times its value.
    Add(f64),
    /// Gives a counter its value.
    Set,
    /// Names what it creates.
    NamesNew,
    /// Names what the parameter at this position identifies.
    Names(usize),
    /// Names the thread that calls.
    NamesCaller,
}

/// The API that gave out a handle or an id.
type Api = Option<ApiIndex>;

/// Names stand under the process, what they are of, and the API of which alone the handle is one.
type Called = HashMap<(i64, Named, Api, u64), Arc<str>>;

/// Matches beginnings with ends.
#[derive(Debug)]
pub struct Ranges<'t> {
    trace: &'t Trace,
    owners: Owners,
    /// By function.
    kinds: Vec<Kind>,
    active: bool,
    texts: HashSet<Arc<str>>,
    /// What ranges are called that functions begin which have no parameter for a text, and by what these are ended.
    own_names: HashMap<FunctionId, Arc<str>>,
    /// What domains, registered texts and the like are called, by process, API and handle.
    created: HashMap<(i64, Api, u64), Arc<str>>,
    /// By process, API, domain and number.
    categories: HashMap<(i64, Api, u64, u64), Arc<str>>,
    named: Called,
    /// Calls that have not returned, of which the entry said what matters; an API's may be inside another's.
    pending: HashMap<(ThreadId, Api), Begin>,
    /// By thread, API and domain.
    pushed: HashMap<(ThreadId, Api, u64), Vec<Range>>,
    /// By process, API and id.
    started: HashMap<(i64, Api, u64), Range>,
    /// Started ones whose id another one got before they were ended: nobody can end them any more.
    replaced: Vec<Range>,
    /// Between probes, by the number of the [border](crate::probes::Border::range).
    probed: HashMap<usize, Range>,
    /// What counters count, by process, API and key.
    counts: HashMap<(i64, Api, u64), f64>,
    next: u64,
    unmatched: u64,
}

/// What an entry said.
#[derive(Debug)]
struct Begin {
    function: FunctionId,
    domain: u64,
    range: Range,
    id: u64,
}

impl<'t> Ranges<'t> {
    /// With nothing seen yet.
    pub fn new(trace: &'t Trace) -> Self {
        let kind = |index: usize| {
            let id = FunctionId(u32::try_from(index).unwrap_or(u32::MAX));
            trace.described(id).filter(|_| trace.has_calls_of(id)).map_or(Kind::Nothing, kind_of)
        };
        let kinds: Vec<Kind> = (0..trace.functions().all().len()).map(kind).collect();
        let own_name = |index: usize| {
            let id = FunctionId(u32::try_from(index).ok()?);
            let is_range = matches!(kinds.get(index)?, Kind::Push | Kind::Start | Kind::Mark);
            trace.described(id).filter(|_| is_range).and_then(own_name).map(|name| (id, name))
        };
        let mut own_names: HashMap<FunctionId, Arc<str>> = (0..kinds.len()).filter_map(own_name).collect();
        let called: HashSet<Arc<str>> = own_names.values().cloned().collect();
        let ended = |index: usize| {
            let id = FunctionId(u32::try_from(index).ok()?);
            let name = &trace.described(id).filter(|_| kinds.get(index) == Some(&Kind::Pop))?.name;
            Some((id, Arc::clone(called.get(name.strip_suffix("_end")?)?)))
        };
        own_names.extend((0..kinds.len()).filter_map(ended));
        Self {
            trace,
            owners: Owners::new(trace),
            active: kinds.iter().any(|k| *k != Kind::Nothing),
            kinds,
            texts: HashSet::new(),
            own_names,
            created: HashMap::new(),
            categories: HashMap::new(),
            named: Called::new(),
            pending: HashMap::new(),
            pushed: HashMap::new(),
            started: HashMap::new(),
            replaced: Vec::new(),
            probed: HashMap::new(),
            counts: HashMap::new(),
            next: 0,
            unmatched: 0,
        }
    }

    /// Whether any API of the trace has ranges, marks or names.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// Whether calls of a function have to do with them.
    pub fn needs(&self, function: FunctionId) -> bool {
        self.kinds.get(function.index()).is_some_and(|kind| *kind != Kind::Nothing)
    }

    /// Ends of ranges of which the beginning is not in the trace.
    pub fn unmatched(&self) -> u64 {
        self.unmatched
    }

    /// Returns what the program called a thread.
    pub fn thread_name(&self, pid: i64, tid: i64) -> Option<&str> {
        self.name_of((pid, Named::Thread, None, tid as u64))
    }

    /// Returns what the program called a queue, by its number in the trace and its handle: a name that was given
    /// to a queue of its API, or to one of an API that has no queues of its own.
    pub fn queue_name(&self, pid: i64, number: u32, handle: u64) -> Option<&str> {
        let api = self.owners.of_queue(number);
        let of = |api| self.name_of((pid, Named::Queue, api, handle));
        api.and_then(|api| of(Some(api))).or_else(|| of(None))
    }

    fn name_of(&self, key: (i64, Named, Api, u64)) -> Option<&str> {
        if self.named.is_empty() {
            return None;
        }
        self.named.get(&key).map(|name| &**name)
    }

    /// A call begins.
    #[inline]
    pub fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Option<Step> {
        match self.kinds.get(call.function.index()) {
            None | Some(Kind::Nothing) => None,
            Some(kind) => self.entered(*kind, at, call, event),
        }
    }

    #[cold]
    fn entered(&mut self, kind: Kind, at: At<'_>, call: &Open, event: &Event<'_, '_>) -> Option<Step> {
        let (pid, api) = (at.who().pid, self.owners.api(call.function));
        let number = |name: &str| event.get(name).and_then(Scalar::bits).unwrap_or(0);
        match kind {
            Kind::Pop => return self.pop((call.thread, api, number("domain")), call.function, at.time),
            Kind::End => {
                let range = self.started.remove(&(pid, api, number("id")));
                self.unmatched += u64::from(range.is_none());
                return range.map(|range| Step::Ended { range, end: at.time, by: call.thread });
            }
            Kind::Set | Kind::Add(_) => {
                return Some(Step::Counted(self.counted(kind, (pid, api), at.time, event)));
            }
            _ => {}
        }
        let domain = number("domain");
        let mut id = 0;
        if let Kind::Names(before) = kind {
            let params = self.trace.described(call.function).map_or(&[][..], |f| &f.params);
            id = params.get(before).map_or(0, |p| number(&p.name));
        }
        let category = match number("category") {
            0 => self.text(""),
            number => match self.lookup(pid, |pid| self.categories.get(&(pid, api, domain, number))) {
                Some(name) => name,
                None => self.text(&number.to_string()),
            },
        };
        let range = Range {
            key: 0,
            style: if kind == Kind::Start { Style::Started } else { Style::Pushed },
            thread: call.thread,
            begin: at.time,
            domain: self.handle_name(pid, api, domain),
            category,
            message: self.message((pid, api), call.function, event),
            color: u32::try_from(number("color")).unwrap_or(0),
            payload: payload(event),
            stack: call.stack,
        };
        if kind == Kind::Mark {
            return Some(Step::Mark(Range { key: self.key(), ..range }));
        }
        self.pending.insert((call.thread, api), Begin { function: call.function, domain, range, id });
        None
    }

    /// A call ends.
    #[inline]
    pub fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) -> Option<Step> {
        match self.kinds.get(call.function.index()) {
            None | Some(Kind::Nothing | Kind::Mark | Kind::Pop | Kind::End | Kind::Add(_) | Kind::Set) => {
                None
            }
            Some(kind) => {
                let result = event.get("result").and_then(Scalar::bits).unwrap_or(0);
                self.returned(*kind, at, call.function, call.thread, result, call.error.is_none())
            }
        }
    }

    /// A call will have no end: what it pushed is taken as pushed.
    pub fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> Option<Step> {
        match self.kinds.get(call.function.index()) {
            Some(Kind::Push) => {
                let at = At { time: call.start, ..at };
                self.returned(Kind::Push, at, call.function, call.thread, 0, true)
            }
            // What a call of another kind has inside of it says nothing of the call.
            None | Some(Kind::Nothing) => None,
            Some(_) => {
                self.pending.remove(&(call.thread, self.owners.api(call.function)));
                None
            }
        }
    }

    /// An exit without its entry: what it popped is taken as popped.
    pub fn orphan(&mut self, call: &Orphan) -> Option<Step> {
        match self.kinds.get(call.function.index()) {
            Some(Kind::Pop) => {
                self.pop((call.thread, self.owners.api(call.function), 0), call.function, call.end)
            }
            _ => None,
        }
    }

    #[cold]
    fn returned(
        &mut self,
        kind: Kind,
        at: At<'_>,
        function: FunctionId,
        thread: ThreadId,
        result: u64,
        good: bool,
    ) -> Option<Step> {
        let (pid, api) = (at.who().pid, self.owners.api(function));
        let begin = self.pending.remove(&(thread, api)).filter(|b| b.function == function && good)?;
        let mut range = Range { begin: at.time, ..begin.range };
        match kind {
            Kind::Push => {
                range.key = self.key();
                self.pushed.entry((thread, api, begin.domain)).or_default().push(range.clone());
                Some(Step::Begun(range))
            }
            Kind::Start => {
                range.key = self.key();
                self.replaced.extend(self.started.insert((pid, api, result), range.clone()));
                Some(Step::Begun(range))
            }
            Kind::NamesNew => {
                self.created.insert((pid, api, result), range.message);
                None
            }
            Kind::Names(before) => {
                let described = self.trace.described(function);
                let param = described.and_then(|f| f.params.get(before));
                if param.is_some_and(|p| p.name == "category") {
                    self.categories.insert((pid, api, begin.domain, begin.id), range.message);
                } else if let Some((what, param)) = described.and_then(|f| f.names).zip(param) {
                    let of_queue = || self.owners.of_type(self.trace.models(), &param.base);
                    let owner = if what == Named::Queue { of_queue() } else { None };
                    self.named.insert((pid, what, owner, begin.id), range.message);
                }
                None
            }
            Kind::NamesCaller => {
                self.named.insert((pid, Named::Thread, None, at.who().tid as u64), range.message);
                None
            }
            Kind::Nothing | Kind::Pop | Kind::End | Kind::Mark | Kind::Add(_) | Kind::Set => None,
        }
    }

    /// What a counter counts behind a call.
    fn counted(&mut self, kind: Kind, of: (i64, Api), time: u64, event: &Event<'_, '_>) -> Counted {
        let (pid, api) = of;
        let number = |name: &str| event.get(name).and_then(Scalar::bits);
        let (counter, domain) = (number("counter").unwrap_or(0), number("domain").unwrap_or(0));
        let handle = if counter == 0 { number("registered").unwrap_or(0) } else { counter };
        // Handles are addresses: those of a text and a domain together are one of no counter.
        let key = handle ^ domain.rotate_left(32);
        let value = match kind {
            Kind::Add(times) => {
                let before = self.lookup_count(pid, api, key);
                before + times * number("value").map_or(1.0, |value| value as f64)
            }
            _ => counter_value(event).unwrap_or(f64::NAN),
        };
        self.counts.insert((pid, api, key), value);
        let (name, domain) = (self.handle_name(pid, api, handle), self.handle_name(pid, api, domain));
        Counted { of, key, name, domain, time, value }
    }

    /// What a counter counted last, in the process or in those that it was forked from.
    fn lookup_count(&self, pid: i64, api: Api, key: u64) -> f64 {
        let processes = &self.trace.manifest().processes;
        let parent = |pid: &i64| processes.iter().find(|p| p.pid == *pid).and_then(|p| p.parent);
        // As many ancestors as make sense: a manifest may have a circle.
        let mut line = std::iter::successors(Some(pid), parent).take(16);
        line.find_map(|pid| self.counts.get(&(pid, api, key)).copied()).unwrap_or(0.0)
    }

    fn pop(&mut self, from: (ThreadId, Api, u64), by: FunctionId, end: u64) -> Option<Step> {
        let pushed = self.pushed.get_mut(&from);
        let range = match self.own_names.get(&by) {
            None => pushed.and_then(Vec::pop),
            Some(name) => pushed.and_then(|pushed| {
                let at = pushed.iter().rposition(|range| range.message == *name)?;
                self.replaced.extend(pushed.drain(at + 1..));
                pushed.pop()
            }),
        };
        self.unmatched += u64::from(range.is_none());
        range.map(|range| Step::Ended { range, end, by: from.0 })
    }

    /// Ranges that have not ended, in the order in which they began.
    pub fn open(&self) -> Vec<&Range> {
        let started = self.started.values().chain(&self.replaced).chain(self.probed.values());
        let mut open: Vec<&Range> = self.pushed.values().flatten().chain(started).collect();
        open.sort_by_key(|range| range.key);
        open
    }

    fn key(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// A text of which there is one only, however often it comes.
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&new));
        new
    }

    /// What is known in a process, or in those that it was forked from.
    fn lookup<'a>(&'a self, pid: i64, find: impl Fn(i64) -> Option<&'a Arc<str>>) -> Option<Arc<str>> {
        let processes = &self.trace.manifest().processes;
        let mut pid = pid;
        // As many ancestors as make sense: a manifest may have a circle.
        for _ in 0..16 {
            if let Some(found) = find(pid) {
                return Some(Arc::clone(found));
            }
            pid = processes.iter().find(|p| p.pid == pid)?.parent?;
        }
        None
    }

    /// The name of a domain or the like; its handle if it has none.
    fn handle_name(&mut self, pid: i64, api: Api, handle: u64) -> Arc<str> {
        if handle == 0 {
            return self.text("");
        }
        match self.lookup(pid, |pid| self.created.get(&(pid, api, handle))) {
            Some(name) => name,
            None => self.text(&format!("{handle:#x}")),
        }
    }

    /// The text that an entry passes, or stands for.
    fn message(&mut self, (pid, api): (i64, Api), function: FunctionId, event: &Event<'_, '_>) -> Arc<str> {
        if let Some(name) = self.own_names.get(&function) {
            return Arc::clone(name);
        }
        let given = TEXTS.iter().find_map(|name| event.get(name)?.as_str());
        if let Some(text) = given.filter(|text| !text.is_empty()) {
            return self.text(text);
        }
        let registered = event.get("registered").and_then(Scalar::bits).unwrap_or(0);
        self.handle_name(pid, api, registered)
    }
}

/// Parameters that hold a range's text.
const TEXTS: [&str; 3] = ["message", "name", "string"];

/// What ranges of a function are called that has no parameter for a text, nor for what stands for one.
fn own_name(f: &Function) -> Option<Arc<str>> {
    let has_text = f.params.iter().any(|p| TEXTS.contains(&p.name.as_str()) || p.name == "registered");
    f.name.strip_suffix("_begin").filter(|_| !has_text).map(Into::into)
}

fn kind_of(f: &Function) -> Kind {
    let roles = [
        ("range-push", Kind::Push),
        ("range-pop", Kind::Pop),
        ("range-start", Kind::Start),
        ("range-end", Kind::End),
        ("mark", Kind::Mark),
        ("counter-add", Kind::Add(1.0)),
        ("counter-subtract", Kind::Add(-1.0)),
        ("counter-set", Kind::Set),
    ];
    if let Some((_, kind)) = roles.into_iter().find(|(role, _)| f.has_role(role)) {
        return kind;
    }
    if !f.has_role("name") {
        return Kind::Nothing;
    }
    if f.has_role("create") {
        return Kind::NamesNew;
    }
    match f.params.iter().position(|p| p.name == "name") {
        None => Kind::Nothing,
        Some(0) if f.params.len() > 1 => Kind::Names(1),
        Some(0) if f.names == Some(Named::Thread) => Kind::NamesCaller,
        Some(0) => Kind::Nothing,
        Some(at) => Kind::Names(at - 1),
    }
}

/// The value that a counter was given, by its type; `None` if that is not known.
fn counter_value(event: &Event<'_, '_>) -> Option<f64> {
    let (number, ty) = (event.get("value").and_then(Scalar::bits)?, event.get("value_type")?);
    match Payload::typed(ty.as_str()?, number)? {
        Payload::Unsigned(value) => Some(value as f64),
        Payload::Signed(value) => Some(value as f64),
        Payload::Float(value) => Some(value),
        Payload::Bits(_) => None,
    }
}

/// The value that a range was given, by its type.
fn payload(event: &Event<'_, '_>) -> Option<Payload> {
    let (number, ty) = (event.get("payload").and_then(Scalar::bits)?, event.get("payload_type")?);
    if ty.bits() == Some(0) {
        return None;
    }
    Some(Payload::typed(ty.as_str().unwrap_or(""), number).unwrap_or(Payload::Bits(number)))
}
