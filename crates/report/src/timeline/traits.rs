//! What functions mean to a time line, decided once.

use super::annotations::Annotations;
use hetrace_trace::args::{Args, Role, Typed};
use hetrace_trace::facts::is_mark;
use hetrace_trace::trace::{FunctionId, Trace};

/// What a function means.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traits<'t> {
    /// It begins or ends a range, marks a moment, or changes a counter.
    pub is_range: bool,
    /// It gives something a name.
    pub names: bool,
    /// It starts what was gathered.
    pub flushes: bool,
    pub collective: Option<Collective<'t>>,
}

/// Positions of a collective's parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Collective<'t> {
    operation: &'t str,
    count: Option<u16>,
    element: Option<u16>,
    /// The elements' type, where the function is named after it.
    of: Option<&'t str>,
    communicator: Option<u16>,
}

/// All functions of a trace, by number.
pub(super) fn traits(trace: &Trace) -> Vec<Traits<'_>> {
    let functions =
        (0..trace.functions().all().len()).map(|i| FunctionId(u32::try_from(i).unwrap_or(u32::MAX)));
    functions
        .map(|id| {
            let Some(f) = trace.described(id) else { return Traits::default() };
            let position = |name: &str| {
                let at = f.params.iter().position(|p| p.name == name)?;
                u16::try_from(at).ok()
            };
            let collective = f.collective().map(|c| Collective {
                operation: &c.operation,
                count: position(&c.count),
                element: position(&c.element),
                of: c.of.as_deref(),
                communicator: position(&c.communicator),
            });
            Traits {
                is_range: is_mark(f),
                names: f.has_role("name"),
                flushes: f.has_role("flush"),
                collective,
            }
        })
        .collect()
}

impl Collective<'_> {
    /// Says what the ranks do together, how much of it, and in which group.
    pub fn annotate(&self, notes: &mut Annotations, trace: &Trace, id: FunctionId, args: &Args<'_>) {
        notes.text("collective", self.operation);
        let text = |at: Option<u16>| args.find(Role::Param(at?));
        let typed = |at: Option<u16>| {
            let at = at?;
            args.pieces.iter().find(|p| p.role == Role::Param(at))?.typed
        };
        let element = text(self.element).or(self.of);
        let size = trace.model_of(id).zip(element).and_then(|(m, t)| m.element_sizes.get(t));
        let count = match (self.count, typed(self.count)) {
            (None, _) => Some(1),
            (_, Some(Typed::Unsigned(count))) => Some(count),
            _ => None,
        };
        if let (Some(count), Some(size)) = (count, size) {
            notes.number("bytes of each rank", count.saturating_mul((*size).into()));
        }
        if let Some(Typed::Pointer(handle)) = typed(self.communicator) {
            notes.pointer("communicator", handle);
        }
    }
}
