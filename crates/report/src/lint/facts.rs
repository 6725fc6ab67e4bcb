//! What each function means to the rules and to no other report, resolved once from the models; what it means to all is
//! in [`hetrace_trace::facts`].

use std::collections::HashMap;

use hetrace_model::{Direction, Follow, Function, Model, Param, Success};

use super::duties::{Course, Duties, Known};
use super::kinds::{Handed, Kind, KindId};
use super::reads::{Reads, position};

use hetrace_trace::facts::objects::{self, enqueues, queue_of};
use hetrace_trace::facts::{self, Waits};
use hetrace_trace::trace::{FunctionId, Trace};
use hetrace_trace::values::Place;

/// Memory that a function makes.
#[derive(Clone, Debug)]
pub(super) struct Allocation {
    pub address: Place,
    /// Nobody but the API hands out such addresses.
    pub device: bool,
    /// Freed and made again it costs little.
    pub pooled: bool,
}

/// A function, as far as rules care.
#[derive(Clone, Debug)]
pub(super) struct Facts<'t> {
    pub function: &'t Function,
    /// What it means to all reports.
    pub common: facts::Facts<'t>,
    /// Objects that are passed.
    pub handles: Vec<(u16, KindId)>,
    /// Objects that it makes.
    pub makes: Handed,
    /// Objects that it reports to exist.
    pub mentions: Handed,
    /// Parameters of queries in whose values objects may stand.
    pub answers: Vec<Place>,
    /// Addresses that it reports.
    pub addresses: Vec<Place>,
    pub gives_back: Option<(u16, KindId)>,
    pub retains: Option<(u16, KindId)>,
    /// It counts references in a way that is not followed.
    pub obscure: bool,
    pub queue: Option<&'t str>,
    pub waits: Waits,
    pub allocation: Option<Allocation>,
    /// It says how many bytes the object has that it makes.
    pub has_extent: bool,
    pub frees: Option<u16>,
    /// It moves bytes, and says which.
    pub transfers: bool,
    pub moves: bool,
    /// Makes device memory addressable by the host, in the order of a queue, or ends that.
    pub maps: bool,
    pub unmaps: bool,
    /// Holds back what comes later in its queue.
    pub barrier: bool,
    /// What it enqueues calls the program.
    pub calls_back: bool,
    /// It registers a function of the program to be called.
    pub callback: bool,
    /// What it enqueues is not known.
    pub obscure_command: bool,
    /// May wait for all devices, as freeing memory does.
    pub may_wait: bool,
    /// Only asks.
    pub asks: bool,
    /// What it is passed may change or be read in ways that are not followed.
    pub exposes: bool,
    /// Its API sets arguments of kernels by calls.
    pub has_arguments: bool,
    /// It enqueues, waits, asks, or has something called back.
    pub orders: bool,
    /// It may be passed events.
    pub names_events: bool,
    /// It completes the event that it is passed.
    pub completes: bool,
    /// Reads from a device, and nothing else.
    pub reads: bool,
    /// The parameter with the address of bytes that it reads before it returns.
    pub host: Option<u16>,
    /// It compiles or links.
    pub builds: bool,
    pub marks: bool,
    pub reads_back: bool,
    /// It is passed the address of bytes that it reads.
    pub reads_bytes: bool,
    /// Asks for the error of calls before.
    pub asks_error: bool,
    /// Some rule looks at what its calls return, beside whether they failed.
    pub returns: bool,
    /// Its calls, if they succeed, change nothing that rules follow, but for the use of their objects and what arguments of
    /// kernels are set to: most calls of a program are such.
    pub quiet: bool,
    /// More is read of its calls than their objects and what they set an argument to.
    pub rare: bool,
    /// What is read of each call.
    pub numbers: Reads<'t>,
    /// Parameters that rules ask for of entries, and what they ask for of exits; none if that may be any.
    pub asked: Option<[Vec<Place>; 2]>,
    /// What it does to states, if its API says so.
    pub duties: Option<Box<Duties<'t>>>,
}

/// Whether it compiles or links: what is built is asked of functions that the trace has no calls of, too.
fn builds(function: &Function) -> bool {
    function.has_role("build") && !function.has_role("query")
}

/// All functions that the trace has calls of, and types.
#[derive(Debug)]
pub(super) struct Knowledge<'t> {
    facts: Vec<Option<Facts<'t>>>,
    /// By function.
    apis: Vec<u16>,
    pub kinds: Vec<Kind>,
    /// By the position of an API.
    whole: Vec<Whole<'t>>,
}

/// What is asked of a whole API.
#[derive(Debug, Default)]
struct Whole<'t> {
    /// A call makes it usable.
    init: bool,
    /// Queries answer with handles among other values.
    answers: bool,
    /// The type of devices.
    device: Option<&'t String>,
}

impl<'t> Whole<'t> {
    fn new(model: &'t Model) -> Self {
        let asks = |f: &Function| f.has_role("query") || f.has_role("poll");
        // Only few have such a word, and only these are to be understood.
        let answers = |f: &&Function| asks(f) && f.may_mention("\"info\"") && !answers_of(f).is_empty();
        Self {
            init: model.functions.iter().any(|f| f.has_role("init")),
            answers: model.functions.iter().find(answers).is_some(),
            device: model.holders.as_ref().map(|holders| &holders.device),
        }
    }
}

impl<'t> Knowledge<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        let mut kinds = Vec::new();
        // By API: which of them are its own. There are few.
        let mut own = HashMap::new();
        for model in trace.models() {
            let first = kinds.len();
            kinds.extend(objects::object_types(model));
            own.insert(model.api.as_str(), first..kinds.len());
        }
        let all = trace.functions().all().len();
        let ids = (0..u32::try_from(all).unwrap_or(0)).map(FunctionId);
        let sets = |model: &Model| model.functions.iter().any(|f| f.has_role("set-arg"));
        let setting: Vec<&Model> = trace.models().iter().filter(|model| sets(model)).collect();
        let courses: HashMap<&str, Course<'t>> =
            trace.models().iter().map(|model| (model.api.as_str(), Course::new(model))).collect();
        let (common, occurring) = (facts::facts(trace), trace.occurring());
        let facts = ids.zip(common).map(|(id, common)| {
            let (model, function) = (trace.model_of(id)?, trace.described(id)?);
            (occurring.get(id.index()) == Some(&true) || builds(function)).then_some(())?;
            let own = own.get(model.api.as_str())?.clone();
            let kind = |name: &str| {
                let at = kinds.get(own.clone())?.iter().position(|kind| kind.name == name)?;
                Some((own.start + at) as KindId)
            };
            let mut facts = facts_of(model, (function, common), &kind, &kinds);
            facts.has_arguments = setting.iter().any(|other| std::ptr::eq(*other, model));
            let course = courses.get(model.api.as_str());
            facts.duties = course.and_then(|course| {
                let (handles, queue) = (facts.handles.as_slice(), facts.queue);
                course.of(function, &Known { handles, queue, allocates: facts.allocation.is_some() }, &kinds)
            });
            facts.returns |=
                facts.duties.as_ref().is_some_and(|duties| duties.waits || duties.engines.is_some());
            Some(facts)
        });
        let mut facts: Vec<Option<Facts<'t>>> = facts.collect();
        let built = facts.iter().flatten().filter(|facts| facts.builds);
        let built: Vec<KindId> = built.flat_map(|facts| &facts.handles).map(|(_, kind)| *kind).collect();
        for facts in facts.iter_mut().flatten() {
            facts.numbers.decide_hash(facts.builds, &facts.makes, &built);
            facts.asked = facts.duties.is_none().then(|| facts.asked());
            let is_event =
                |(_, kind): &(u16, KindId)| kinds.get(*kind as usize).is_some_and(|kind| kind.event);
            facts.names_events = facts.handles.iter().any(is_event);
            facts.quiet = facts.is_quiet();
        }
        let apis = trace.functions().all().iter().map(|f| u16::try_from(f.api).unwrap_or(u16::MAX));
        let apis: Vec<u16> = apis.collect();
        let mut whole: Vec<Whole<'t>> = Vec::new();
        for (api, id) in apis.iter().zip(0u32..) {
            let api = usize::from(*api);
            let Some(model) = trace.model_of(FunctionId(id)).filter(|_| api >= whole.len()) else { continue };
            whole.resize_with(api, Whole::default);
            whole.push(Whole::new(model));
        }
        Self { facts, apis, kinds, whole }
    }

    #[inline]
    pub fn of(&self, id: FunctionId) -> Option<&Facts<'t>> {
        self.facts.get(id.index())?.as_ref()
    }

    /// The position of a function's API.
    pub fn api_of(&self, id: FunctionId) -> u16 {
        self.apis.get(id.index()).copied().unwrap_or(u16::MAX)
    }

    fn whole(&self, api: u16) -> Option<&Whole<'t>> {
        self.whole.get(usize::from(api))
    }

    /// Whether an API must be made usable by a call.
    pub fn has_init(&self, api: u16) -> bool {
        self.whole(api).is_some_and(|whole| whole.init)
    }

    /// Whether an API has queries that answer with handles among other values.
    pub fn answers(&self, api: u16) -> bool {
        self.whole(api).is_some_and(|whole| whole.answers)
    }

    /// The type of devices in a function's API.
    pub fn device_of(&self, id: FunctionId) -> Option<&'t String> {
        self.whole(self.api_of(id)).and_then(|whole| whole.device)
    }

    #[inline]
    pub fn kind(&self, id: KindId) -> Option<&Kind> {
        self.kinds.get(id as usize)
    }
}

/// Roles of what enqueues of which it is known what their commands do and wait for.
const COMMANDS: [&str; 13] = [
    "alloc",
    "barrier",
    "collective",
    "copy",
    "fill",
    "free",
    "launch",
    "map",
    "marker",
    "migrate",
    "read",
    "unmap",
    "write",
];

fn facts_of<'t>(
    model: &'t Model,
    (f, common): (&'t Function, facts::Facts<'t>),
    kind: &impl Fn(&str) -> Option<KindId>,
    kinds: &[Kind],
) -> Facts<'t> {
    let has = |role: &str| f.has_role(role);
    let Objects { handles, makes, mentions } = objects_of(f, kind, kinds);
    let passed = |role| has(role).then(|| objects::counted(model, f).and_then(|p| Some((0, kind(&p.base)?))));
    let (gives_back, retains) = (passed("release").flatten(), passed("retain").flatten());
    let result_is_error = f.returns_values.as_deref() == Some(model.errors.as_str());
    let mut facts = Facts {
        function: f,
        common,
        handles,
        makes,
        mentions,
        answers: answers_of(f),
        addresses: addresses_of(model, f, kind),
        gives_back,
        retains,
        obscure: (has("release") || has("retain")) && gives_back.is_none() && retains.is_none(),
        queue: queue_of(f),
        waits: match common.waits {
            // Memory that is freed, say, may wait for all devices.
            Waits::Always if !common.syncs && !common.enqueues => Waits::Never,
            waits => waits,
        },
        allocation: allocation_of(f),
        has_extent: f.creates.is_some() && f.memory.as_ref().is_some_and(|m| m.bytes.is_some()),
        frees: freed(model, f).filter(|_| has("free") && gives_back.is_none()),
        transfers: f.transfer.is_some(),
        moves: has("copy") || has("read") || has("write"),
        maps: has("map") && enqueues(f),
        unmaps: has("unmap") && enqueues(f),
        barrier: has("barrier"),
        calls_back: enqueues(f) && has("callback"),
        callback: has("callback"),
        obscure_command: enqueues(f) && !COMMANDS.iter().any(|role| has(role)) && f.transfer.is_none(),
        may_wait: has("blocks") && !enqueues(f) && !has("sync") && !has("build"),
        asks: has("query") || has("poll"),
        exposes: has("interop")
            || has("native")
            || !["query", "poll", "retain", "release", "set-arg", "enqueue"].iter().any(|role| has(role)),
        has_arguments: false,
        names_events: false,
        completes: has("state"),
        orders: false,
        reads: has("read"),
        host: host(f).filter(|_| !enqueues(f)),
        builds: builds(f),
        marks: has("marker"),
        reads_back: has("read") || (has("copy") && has("blocks")),
        reads_bytes: reads_bytes(f),
        asks_error: f.success == Success::Always && result_is_error && f.params.is_empty(),
        returns: false,
        quiet: false,
        rare: false,
        numbers: Reads::default(),
        asked: None,
        duties: None,
    };
    facts.numbers = Reads::new(f, &facts.handles, facts.queue);
    facts.rare = facts.numbers.is_rare() || facts.frees.is_some() || facts.host.is_some();
    facts.orders = common.enqueues || common.syncs || facts.asks || facts.may_wait || facts.callback;
    facts.returns = facts.is_looked_at();
    facts
}

/// Objects that a function is passed, makes and reports to exist.
struct Objects {
    handles: Vec<(u16, KindId)>,
    makes: Handed,
    mentions: Handed,
}

fn objects_of(f: &Function, kind: &impl Fn(&str) -> Option<KindId>, kinds: &[Kind]) -> Objects {
    let recorded = |p: &Param| matches!(p.follow, Follow::Pointee | Follow::Array { .. });
    let mut handles = Vec::new();
    let (mut makes, mut mentions) = (Handed::new(), Handed::new());
    for (p, at) in params(f) {
        let Some(id) = kind(&p.base) else { continue };
        let out = p.pointers == 1 && p.direction == Direction::Out && recorded(p);
        if p.pointers == 0 || (p.direction == Direction::In && p.pointers == 1 && recorded(p)) {
            handles.push((at, id));
        } else if out {
            let event = kinds.get(id as usize).is_some_and(|k| k.event);
            let made = f.creates.as_deref() == Some(p.base.as_str()) && f.has_role("create")
                || enqueues(f) && event && f.creates.is_none();
            if made { &mut makes } else { &mut mentions }.push((Place::Param(at), id));
        }
    }
    let returned = f.returns.trim();
    if let Some(id) = kind(returned) {
        let made = f.creates.as_deref() == Some(returned) && f.has_role("create");
        if made { &mut makes } else { &mut mentions }.push((Place::Result, id));
    }
    Objects { handles, makes, mentions }
}

/// Parameters with their positions.
fn params(f: &Function) -> impl Iterator<Item = (&Param, u16)> {
    f.params.iter().zip(0u16..)
}

/// Parameters of queries in whose values objects may stand.
fn answers_of(f: &Function) -> Vec<Place> {
    let answers =
        params(f).filter(|(p, _)| matches!(p.follow, Follow::Info { .. }) && p.direction == Direction::Out);
    answers.map(|(_, at)| Place::Param(at)).collect()
}

/// Whether values of a parameter's type are addresses.
fn is_address(model: &Model, p: &Param) -> bool {
    p.base == "void" || model.types.get(&p.base).is_some_and(|t| t.hex && t.size >= 4)
}

/// Addresses that a function reports.
fn addresses_of(model: &Model, f: &Function, kind: &impl Fn(&str) -> Option<KindId>) -> Vec<Place> {
    let addresses = params(f).filter(|(p, _)| {
        let outer = if p.base == "void" { 2 } else { 1 };
        p.pointers == outer
            && p.direction == Direction::Out
            && is_address(model, p)
            && kind(&p.base).is_none()
    });
    addresses.map(|(_, at)| Place::Param(at)).collect()
}

fn allocation_of(f: &Function) -> Option<Allocation> {
    let memory = f.memory.as_ref().filter(|_| f.creates.is_none())?;
    Some(Allocation {
        address: memory.address.as_deref().and_then(|n| position(f, n)).map_or(Place::Result, Place::Param),
        device: memory.place == hetrace_model::Place::Device,
        pooled: enqueues(f),
    })
}

/// The parameter with the address that a function frees, if it frees any.
fn freed(model: &Model, f: &Function) -> Option<u16> {
    let mut addresses = params(f).filter(|(p, _)| {
        let outer = u8::from(p.base == "void");
        let array = matches!(p.follow, Follow::Array { .. });
        is_address(model, p) && p.pointers == outer + u8::from(array) && p.direction != Direction::Out
    });
    addresses.next().map(|(_, at)| at)
}

/// The parameter with the address of bytes that a call reads.
fn host(f: &Function) -> Option<u16> {
    let mut bytes =
        params(f).filter(|(p, _)| p.direction == Direction::In && matches!(p.follow, Follow::Data { .. }));
    bytes.next().map(|(_, at)| at)
}

impl Facts<'_> {
    /// Whether some rule looks at what its calls return, beside whether they failed.
    fn is_looked_at(&self) -> bool {
        self.allocation.is_some()
            || self.builds
            || [&self.makes, &self.mentions].iter().any(|handed| !handed.is_empty())
            || [&self.answers, &self.addresses].iter().any(|places| !places.is_empty())
    }

    /// See [`Self::quiet`]: each rule that looks at more than what is asked here has to be asked for here.
    fn is_quiet(&self) -> bool {
        let numbers = &self.numbers;
        let counts = self.gives_back.is_some() || self.retains.is_some() || self.obscure;
        let moves = self.transfers || self.moves || self.maps || self.unmaps || numbers.moved.is_some();
        let runs = self.common.launches || self.common.records || self.builds || numbers.kernel.is_some();
        let memory = self.allocation.is_some() || self.frees.is_some() || self.host.is_some();
        let ends = self.function.resets || self.asks_error || self.reads_back || self.completes;
        let about = self.function.replaced.is_some() || self.duties.is_some();
        let waits = self.orders || self.waits != Waits::Never || self.common.polls || self.names_events;
        !(self.returns || counts || moves || runs || memory || ends || about || waits)
    }

    /// What rules ask for of entries and of exits, but for those about states.
    fn asked(&self) -> [Vec<Place>; 2] {
        let waits = match self.waits {
            Waits::If(at) => Some(at),
            Waits::Never | Waits::Always => None,
        };
        let handles = self.handles.iter().map(|(at, _)| *at);
        let others = [waits, self.frees, self.host].into_iter().flatten();
        let numbers = self.numbers.params(self.function);
        let entry = handles.chain(others).chain(numbers).map(Place::Param).collect();
        let handed = self.makes.iter().chain(&self.mentions).map(|(place, _)| *place);
        let exit = handed.chain(self.answers.iter().copied()).chain(self.addresses.iter().copied());
        let address = self.allocation.as_ref().map(|allocation| allocation.address);
        [entry, exit.chain(address).chain(self.maps.then_some(Place::Result)).collect()]
    }
}

/// Whether a function is passed the address of bytes that it reads.
fn reads_bytes(f: &Function) -> bool {
    f.params.iter().any(|p| {
        let waived = matches!(p.follow, Follow::Array { .. }) && p.pointers > 1;
        p.direction == Direction::In && (matches!(p.follow, Follow::Data { .. }) || waived)
    })
}
