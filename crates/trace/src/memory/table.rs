//! What each function does to memory, resolved once from the models.

use hetrace_model::{Direction, Expr, Follow, Function, Model, Param, Place};

use crate::facts::objects;
use crate::owners::{ApiIndex, Owners};
use crate::trace::{FunctionId, Trace};
use crate::values::{Place as Where, Plans};

/// Memory that a function makes.
#[derive(Clone, Debug)]
pub(super) struct Makes<'t> {
    /// Where its address or handle is returned.
    pub at: Where,
    pub bytes: Option<&'t Expr>,
    /// Whose it is; none of a part of what is counted already.
    pub place: Option<Place>,
}

/// What a function makes the place of the thread's later calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Current {
    /// Where it stands; none where the one before comes back.
    pub at: Option<Where>,
    /// It is a context, and no number of a device.
    pub context: bool,
    pub pushed: bool,
}

/// What a function does to memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Row<'t> {
    /// The API that alone has what its calls name; none if that may be of any.
    pub api: Option<ApiIndex>,
    pub makes: Option<Makes<'t>>,
    /// The parameter with what it gives back.
    pub ends: Option<u16>,
    /// It ends at once, however many references there are.
    pub frees: bool,
    /// The parameter with what it takes one more reference of.
    pub retains: Option<u16>,
    /// It ends what it does not name.
    pub resets: bool,
    pub current: Option<Current>,
    /// The parameter with the context that it is passed.
    pub context: Option<u16>,
    /// Where the context is that it makes.
    pub makes_context: Option<Where>,
    /// The parameter with the device or devices that it is passed.
    pub device: Option<u16>,
}

impl Row<'_> {
    /// Whether memory begins or ends in it.
    pub fn changes(&self) -> bool {
        self.makes.is_some() || self.ends.is_some() || self.retains.is_some() || self.resets
    }
}

/// All functions that have to do with memory.
#[derive(Debug, Default)]
pub struct Table<'t> {
    /// How what their calls were passed is read.
    plans: Plans<'t>,
    /// By function.
    rows: Vec<Option<(&'t Function, Row<'t>)>>,
    /// Whether there is any.
    pub active: bool,
}

impl<'t> Table<'t> {
    /// Of the models that a trace brings along.
    pub fn new(trace: &'t Trace) -> Self {
        let (mut rows, owners) = (Vec::new(), Owners::new(trace));
        let types: Vec<Vec<&str>> = trace.models().iter().map(objects::memory_types).collect();
        let mut active = false;
        for ((id, known), occurs) in (0u32..).zip(trace.functions().all()).zip(trace.occurring()) {
            let model = trace.models().get(known.api).zip(types.get(known.api));
            let row = model.zip(trace.described(FunctionId(id))).and_then(|((model, types), f)| {
                active = active || is_maker(f, types);
                // Of what is not called nothing need be known.
                let row = occurs.then(|| row(model, f, types)).flatten();
                row.map(|row| (f, Row { api: owners.of_calls(FunctionId(id)), ..row }))
            });
            rows.push(row);
        }
        let has_row = |function: FunctionId| matches!(rows.get(function.index()), Some(Some(_)));
        let plans = Plans::new(trace, |function| active && has_row(function));
        Self { plans, rows, active }
    }

    /// Whether anything of a function's calls is wanted.
    #[inline]
    pub fn needs(&self, function: FunctionId) -> bool {
        self.plans.are_for(function)
    }

    /// How what the calls of these functions were passed is read; of none, if no function of
    /// the trace's models makes memory.
    pub fn plans(&self) -> &Plans<'t> {
        &self.plans
    }

    pub(super) fn of(&self, function: FunctionId) -> Option<(&'t Function, &Row<'t>)> {
        let (function, row) = self.rows.get(function.index())?.as_ref()?;
        Some((function, row))
    }
}

fn row<'t>(model: &'t Model, f: &'t Function, types: &[&str]) -> Option<Row<'t>> {
    let has = |role: &str| f.has_role(role);
    let object = |p: &Param| p.pointers == 0 && types.contains(&p.base.as_str());
    let mut row = Row {
        makes: makes(f, types),
        resets: f.resets,
        current: f.current.as_ref().map(|c| {
            let named = c.is.as_deref().and_then(|name| position(f, |p| p.name == name));
            let base = named.and_then(|at| f.params.get(usize::from(at))).map(|p| p.base.as_str());
            let context = model.holders.as_ref().is_some_and(|h| base == Some(&h.context));
            Current { at: named.map(Where::Param), context, pushed: c.pushed }
        }),
        ..Row::default()
    };
    if has("free") || has("release") {
        row.ends = position(f, object).or_else(|| freed(model, f).filter(|_| has("free")));
        row.frees = has("free");
    } else if has("retain") {
        row.retains = position(f, object);
    }
    if let Some(holders) = &model.holders {
        let is = |p: &Param, name: &str| !name.is_empty() && p.base == name;
        row.context = position(f, |p| is(p, &holders.context) && p.pointers == 0).filter(|_| row.changes());
        let made =
            position(f, |p| is(p, &holders.context) && p.pointers == 1 && p.direction == Direction::Out);
        let returned = !holders.context.is_empty() && f.returns.trim() == holders.context;
        row.makes_context = made.map(Where::Param).or(returned.then_some(Where::Result));
        row.device = position(f, |p| is(p, &holders.device) && p.direction != Direction::Out);
        // What neither retains nor creates one only returns it.
        if row.device.is_none() || !(has("create") || has("retain")) {
            row.makes_context = None;
        }
        // One reference of several: who holds the others is not known.
        row.resets &= row.context.is_some() || !has("release");
    }
    (row.changes() || row.current.is_some() || row.makes_context.is_some()).then_some(row)
}

fn position(f: &Function, fits: impl Fn(&Param) -> bool) -> Option<u16> {
    u16::try_from(f.params.iter().position(fits)?).ok()
}

/// Whether it has [`Makes`].
fn is_maker(f: &Function, types: &[&str]) -> bool {
    f.memory().is_some() || f.creates().is_some_and(|created| types.contains(&created))
}

fn makes<'t>(f: &'t Function, types: &[&str]) -> Option<Makes<'t>> {
    let created = f.creates.as_deref().filter(|t| types.contains(t));
    let at = match (created, &f.memory) {
        (None, None) => return None,
        (None, Some(memory)) => {
            let named = memory.address.as_deref().and_then(|name| position(f, |p| p.name == name));
            named.map_or(Where::Result, Where::Param)
        }
        (Some(created), _) => {
            let out = |p: &Param| p.base == created && p.pointers == 1 && p.direction == Direction::Out;
            position(f, out).map_or(Where::Result, Where::Param)
        }
    };
    let memory = f.memory.as_ref();
    Some(Makes { at, bytes: memory.and_then(|m| m.bytes.as_ref()), place: memory.map(|m| m.place) })
}

/// The parameter with the address or the addresses that a function frees.
fn freed(model: &Model, f: &Function) -> Option<u16> {
    let address =
        |p: &Param| p.base == "void" || model.types.get(&p.base).is_some_and(|t| t.hex && t.size >= 4);
    position(f, |p| {
        let (outer, array) = (u8::from(p.base == "void"), matches!(p.follow, Follow::Array { .. }));
        address(p) && p.pointers == outer + u8::from(array) && p.direction != Direction::Out
    })
}
