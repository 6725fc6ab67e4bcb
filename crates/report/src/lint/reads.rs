//! Which values of a call rules ask for, resolved once per function: calls are many, and names are slow.

use hetrace_model::{Expr, Flags, Follow, Function, Transfer};

use super::kinds::{Handed, KindId};
use super::span::Span;
use hetrace_trace::spans::MemoryKind;
use hetrace_trace::values::{Place, Values};

/// A number that a call is passed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number<'t> {
    Param(u16),
    /// A member of a structure.
    Member(&'t str),
    Computed(&'t Expr),
}

impl<'t> Number<'t> {
    pub fn named(function: &Function, name: &'t str) -> Self {
        position(function, name).map_or(Self::Member(name), Self::Param)
    }

    fn of(function: &Function, expr: &'t Expr) -> Self {
        match expr {
            Expr::Name(name) => Self::named(function, name),
            expr => Self::Computed(expr),
        }
    }

    /// Parameters that it is made of.
    fn params(self, function: &Function) -> Vec<u16> {
        match self {
            Self::Param(at) => vec![at],
            // They are found by their names.
            Self::Member(_) => Vec::new(),
            Self::Computed(expr) => expr.names().iter().filter_map(|name| position(function, name)).collect(),
        }
    }

    #[inline]
    pub fn get(self, values: &Values<'_>) -> Option<u64> {
        match self {
            Self::Param(at) => values.first(Place::Param(at)),
            Self::Member(name) => values.named(name),
            Self::Computed(expr) => values.eval(expr),
        }
    }
}

/// Where a function moves bytes from or to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side<'t> {
    at: u16,
    /// Of an object.
    kind: Option<KindId>,
    offset: Option<Number<'t>>,
}

impl<'t> Side<'t> {
    fn new(
        function: &Function,
        handles: &[(u16, KindId)],
        name: Option<&str>,
        offset: Option<&'t str>,
    ) -> Option<Self> {
        let at = position(function, name?)?;
        let kind = handles.iter().find(|(p, _)| *p == at).map(|(_, kind)| *kind);
        Some(Self { at, kind, offset: offset.map(|name| Number::named(function, name)) })
    }

    fn span(self, values: &Values<'_>, bytes: u64) -> Option<Span> {
        let value = values.first(Place::Param(self.at))?;
        let offset = self.offset.and_then(|offset| offset.get(values)).unwrap_or(0);
        Some(match self.kind {
            Some(kind) => Span { object: Some((kind, value)), start: offset, bytes },
            None => Span { object: None, start: value.saturating_add(offset), bytes },
        })
    }
}

/// What bytes a function moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved<'t> {
    bytes: Number<'t>,
    source: Option<Side<'t>>,
    target: Option<Side<'t>>,
}

impl Moved<'_> {
    /// Where they come from and go to; neither if there are none.
    pub fn spans(&self, values: &Values<'_>) -> (Option<Span>, Option<Span>) {
        let Some(bytes) = self.bytes.get(values).filter(|bytes| *bytes > 0) else { return (None, None) };
        let span = |side: Option<Side<'_>>| side?.span(values, bytes);
        (span(self.source), span(self.target))
    }
}

/// What sets an argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    /// The parameter with the object whose argument it is.
    pub of: u16,
    /// The one that says which argument.
    pub index: u16,
    /// The one with its value.
    pub value: u16,
    /// The value itself is recorded, not its address.
    pub has_bytes: bool,
}

/// Numbers that are read of each call of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reads<'t> {
    pub queue: Option<Number<'t>>,
    /// How much memory it asks for or maps.
    pub size: Option<Number<'t>>,
    pub moved: Option<Moved<'t>>,
    /// Where the bytes that it moves lie before and after, as far as its name says.
    pub memory: [MemoryKind; 2],
    pub argument: Option<Argument>,
    /// The parameter with the kernel that is launched.
    pub kernel: Option<u16>,
    /// Bits that say what is made.
    pub flags: Option<Bits<'t>>,
    /// The parameter with the address whose mapping ends.
    pub unmapped: Option<u16>,
    /// Whether a rule compares all that calls are passed.
    pub hash: bool,
}

impl<'t> Reads<'t> {
    pub fn new(function: &'t Function, handles: &[(u16, KindId)], queue: Option<&'t str>) -> Self {
        let moved = |transfer: &'t Transfer| Moved {
            bytes: Number::of(function, &transfer.bytes),
            source: Side::new(
                function,
                handles,
                transfer.source.as_deref(),
                transfer.source_offset.as_deref(),
            ),
            target: Side::new(
                function,
                handles,
                transfer.target.as_deref(),
                transfer.target_offset.as_deref(),
            ),
        };
        let size = function.memory.as_ref().and_then(|memory| memory.bytes.as_ref());
        let mapped = function.command.as_ref().filter(|_| function.has_role("map"));
        let size = size.or_else(|| mapped.and_then(|command| command.bytes.as_ref()));
        Self {
            queue: queue.map(|name| Number::named(function, name)),
            size: size.map(|bytes| Number::of(function, bytes)),
            moved: function.transfer.as_deref().map(moved),
            memory: function.command.as_ref().map_or_else(Default::default, |command| {
                let kind = |name: &Option<String>| MemoryKind::of_name(name.as_deref()?);
                [&command.from, &command.to].map(|name| kind(name).unwrap_or_default())
            }),
            argument: argument(function, handles).filter(|_| function.has_role("set-arg")),
            kernel: function.command.as_ref().and_then(|c| position(function, c.kernel.as_deref()?)),
            flags: function.flags.as_ref().and_then(|flags| Bits::new(function, flags)),
            unmapped: unmapped(function).filter(|_| function.has_role("unmap")),
            hash: false,
        }
    }

    /// Whether there is more than what sets an argument.
    pub fn is_rare(&self) -> bool {
        let numbers = self.queue.is_some() || self.size.is_some() || self.moved.is_some();
        numbers || self.kernel.is_some() || self.flags.is_some() || self.unmapped.is_some()
    }

    /// Parameters with these numbers.
    pub fn params(&self, function: &Function) -> Vec<u16> {
        let moved = self.moved.iter().flat_map(|moved| {
            let sides = [moved.source, moved.target].into_iter().flatten();
            let offsets = sides.clone().filter_map(|side| side.offset);
            let numbers = offsets.chain([moved.bytes]).flat_map(|number| number.params(function));
            sides.map(|side| side.at).chain(numbers).collect::<Vec<_>>()
        });
        let numbers =
            [self.queue, self.size].into_iter().flatten().flat_map(|number| number.params(function));
        let argument =
            self.argument.iter().flat_map(|argument| [argument.of, argument.index, argument.value]);
        let others = [self.kernel, self.unmapped, self.flags.map(|bits| bits.at)].into_iter().flatten();
        moved.chain(numbers).chain(argument).chain(others).collect()
    }

    /// Decides whether all values are compared: of what sets arguments and builds, and of what makes the
    /// objects that are built `from`.
    pub fn decide_hash(&mut self, builds: bool, makes: &Handed, from: &[KindId]) {
        let is_built_from = makes.iter().any(|(_, kind)| from.contains(kind));
        self.hash = builds || self.argument.is_some() || is_built_from;
    }
}

/// Bits that say what is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits<'t> {
    at: u16,
    pub means: &'t Flags,
}

impl<'t> Bits<'t> {
    fn new(function: &Function, means: &'t Flags) -> Option<Self> {
        Some(Self { at: position(function, &means.param)?, means })
    }

    /// The bits of a call.
    pub fn get(&self, values: &Values<'_>) -> u64 {
        let all = values.all(Place::Param(self.at));
        match self.means.key {
            None => all.first().copied().unwrap_or(0),
            Some(key) => {
                let pair = all.chunks_exact(2).find(|pair| pair.first() == Some(&key));
                pair.and_then(|pair| pair.get(1)).copied().unwrap_or(0)
            }
        }
    }
}

/// The parameter with an address, of what ends a mapping.
fn unmapped(function: &Function) -> Option<u16> {
    let at = function.params.iter().position(|p| p.base == "void" && p.pointers == 1)?;
    u16::try_from(at).ok()
}

fn argument(function: &Function, handles: &[(u16, KindId)]) -> Option<Argument> {
    let (of, _) = *handles.first()?;
    let mut params = function.params.iter().zip(0u16..);
    let (_, index) = params.find(|(p, at)| p.pointers == 0 && *at != of)?;
    let value = u16::try_from(function.params.len().checked_sub(1)?).ok()?;
    let has_bytes = function.params.last().is_some_and(|p| matches!(p.follow, Follow::Bytes { .. }));
    Some(Argument { of, index, value, has_bytes })
}

/// The place of the parameter with this name.
pub(super) fn position(f: &Function, name: &str) -> Option<u16> {
    u16::try_from(f.params.iter().position(|p| p.name == name)?).ok()
}
