//! Regions: functions, kernels and other commands, ranges.

use std::collections::HashMap;

use hetrace_model::{Collective, Expr, Function};
use hetrace_trace::demangle;
use hetrace_trace::ranges::Range;
use hetrace_trace::spans::{Command, CommandKind, MemoryKind};
use hetrace_trace::trace::{FunctionId, Trace};

use super::super::definitions::{Definitions, Region, Role};
use super::paradigms::{self, Paradigm, RANGES};

/// What a function means here.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::otf2) struct Traits<'t> {
    /// It begins or ends a range, or marks a moment: shown as what it says.
    pub is_range: bool,
    pub collective: Option<&'t Collective>,
    /// The bytes that it allocates or moves.
    pub bytes: Option<&'t Expr>,
    region: Option<u32>,
}

/// What distinguishes regions, besides functions.
type Key = (String, String, u8);

/// All regions so far.
#[derive(Debug)]
pub(in crate::otf2) struct Regions<'t> {
    trace: &'t Trace,
    functions: Vec<Traits<'t>>,
    /// Paradigms by the APIs' positions, and those that occur.
    apis: Vec<Paradigm>,
    used: Vec<Paradigm>,
    /// Kernels by number of the function.
    kernels: HashMap<(u32, u8), u32>,
    /// Other commands by kind, from and to.
    commands: Vec<((CommandKind, MemoryKind, MemoryKind), u8, u32)>,
    others: HashMap<Key, u32>,
}

impl<'t> Regions<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        let functions = (0..trace.functions().all().len()).map(|index| {
            let described = trace.described(FunctionId(u32::try_from(index).unwrap_or(u32::MAX)));
            described.map_or(Traits::default(), |f| Traits {
                is_range: RANGES.iter().any(|role| f.has_role(role)),
                collective: f.collective.as_deref(),
                bytes: f
                    .memory
                    .as_ref()
                    .and_then(|m| m.bytes.as_ref())
                    .or(f.transfer.as_ref().map(|t| &t.bytes)),
                region: None,
            })
        });
        Self {
            trace,
            functions: functions.collect(),
            apis: trace.functions().apis().iter().map(|api| paradigms::of(trace, api)).collect(),
            used: Vec::new(),
            kernels: HashMap::new(),
            commands: Vec::new(),
            others: HashMap::new(),
        }
    }

    pub fn traits(&self, function: FunctionId) -> Traits<'t> {
        self.functions.get(function.index()).copied().unwrap_or_default()
    }

    /// The region of a function.
    #[inline]
    pub fn function(&mut self, definitions: &mut Definitions, function: FunctionId) -> u32 {
        match self.functions.get(function.index()) {
            Some(Traits { region: Some(region), .. }) => *region,
            _ => self.new_function(definitions, function),
        }
    }

    #[cold]
    fn new_function(&mut self, definitions: &mut Definitions, function: FunctionId) -> u32 {
        let about = self.trace.functions().get(function);
        let paradigm = self.apis.get(about.api).copied().unwrap_or(paradigms::OTHER);
        let name = &about.name;
        let region = definitions.region(&Region {
            name,
            canonical: name,
            description: self.title(about.api),
            role: self.trace.described(function).map_or(Role::Function, role),
            paradigm: self.uses(paradigm),
        });
        if let Some(traits) = self.functions.get_mut(function.index()) {
            traits.region = Some(region);
        }
        region
    }

    /// How people spell an API.
    fn title(&self, api: usize) -> &'t str {
        let title = self.trace.models().get(api).map_or("", |m| m.title.as_str());
        let name = self.trace.functions().apis().get(api).map_or("", String::as_str);
        if title.is_empty() { name } else { title }
    }

    /// The same of a function's API.
    pub fn title_of(&self, function: FunctionId) -> &'t str {
        self.title(self.trace.functions().get(function).api)
    }

    fn uses(&mut self, paradigm: Paradigm) -> u8 {
        if !self.used.contains(&paradigm) {
            self.used.push(paradigm);
        }
        paradigm.number
    }

    /// The paradigms that occur.
    pub fn paradigms(&mut self) -> Vec<Paradigm> {
        self.used.sort_by_key(|p| p.number);
        std::mem::take(&mut self.used)
    }

    /// The paradigm of an API, which occurs.
    pub fn paradigm(&mut self, api: &str) -> Paradigm {
        let at = self.trace.functions().apis().iter().position(|name| name == api);
        let known = at.and_then(|at| self.apis.get(at)).copied();
        let paradigm = known.unwrap_or_else(|| paradigms::of(self.trace, api));
        self.uses(paradigm);
        paradigm
    }

    /// The region of a command on a device.
    pub fn command(&mut self, definitions: &mut Definitions, command: &Command<'_>, paradigm: u8) -> u32 {
        if let Some(function) = command.function.filter(|f| !f.name.is_empty()) {
            if let Some(known) = self.kernels.get(&(function.id, paradigm)) {
                return *known;
            }
            let full = demangle::full(&function.name);
            let region = Region {
                name: &full,
                canonical: &function.name,
                description: command.kind.name(),
                role: kind(command.kind),
                paradigm,
            };
            let region = self.other(definitions, &region);
            self.kernels.insert((function.id, paradigm), region);
            return region;
        }
        if command.kind == CommandKind::Graph && command.graph > 0 {
            let name = format!("graph {}", command.graph);
            let role = Role::Code;
            let region = Region { name: &name, canonical: &name, description: "graph", role, paradigm };
            return self.other(definitions, &region);
        }
        let key = (command.kind, command.from, command.to);
        let known = self.commands.iter().find(|(known, p, _)| (*known, *p) == (key, paradigm));
        if let Some((_, _, region)) = known {
            return *region;
        }
        let name = match (command.from, command.to) {
            (MemoryKind::Unknown, MemoryKind::Unknown) => command.kind.name().to_owned(),
            (MemoryKind::Unknown, to) => format!("{} (to {to})", command.kind),
            (from, MemoryKind::Unknown) => format!("{} (from {from})", command.kind),
            (from, to) => format!("{} ({from} to {to})", command.kind),
        };
        let role = kind(command.kind);
        let region =
            Region { name: &name, canonical: &name, description: command.kind.name(), role, paradigm };
        let region = self.other(definitions, &region);
        self.commands.push((key, paradigm, region));
        region
    }

    /// The region of a range or a mark that the program set.
    pub fn range(&mut self, definitions: &mut Definitions, range: &Range, title: &str) -> u32 {
        let name = if range.message.is_empty() { "(no message)" } else { &range.message };
        let description =
            if range.domain.is_empty() { title.to_owned() } else { format!("{title} {}", range.domain) };
        let paradigm = self.uses(paradigms::USER);
        let role = Role::Code;
        self.other(definitions, &Region { name, canonical: name, description: &description, role, paradigm })
    }

    /// The region of a function that no model has.
    pub fn unknown(&mut self, definitions: &mut Definitions, api: &str, name: &str) -> u32 {
        let paradigm = self.paradigm(api).number;
        let role = Role::Unknown;
        self.other(definitions, &Region { name, canonical: name, description: api, role, paradigm })
    }

    fn other(&mut self, definitions: &mut Definitions, region: &Region<'_>) -> u32 {
        let key = (region.canonical.to_owned(), region.description.to_owned(), region.paradigm);
        *self.others.entry(key).or_insert_with(|| definitions.region(region))
    }
}

/// What a function does, by the model's roles.
fn role(function: &Function) -> Role {
    if let Some(collective) = &function.collective {
        return match collective.operation.as_str() {
            "broadcast" | "scatter" => Role::OneToAll,
            "reduce" | "gather" => Role::AllToOne,
            "all-reduce" | "all-gather" | "reduce-scatter" | "all-to-all" => Role::AllToAll,
            "send" | "receive" | "put" | "get" => Role::PointToPoint,
            "barrier" => Role::Barrier,
            _ => Role::CollectiveOther,
        };
    }
    let roles = [
        ("alloc", Role::Allocate),
        ("free", Role::Deallocate),
        ("read", Role::DataTransfer),
        ("write", Role::DataTransfer),
        ("copy", Role::DataTransfer),
        ("fill", Role::DataTransfer),
        ("migrate", Role::DataTransfer),
    ];
    let known = roles.into_iter().find(|(role, _)| function.has_role(role));
    known.map_or(Role::Function, |(_, role)| role)
}

/// What a command does.
fn kind(kind: CommandKind) -> Role {
    match kind {
        CommandKind::Kernel | CommandKind::Native => Role::Function,
        kind if kind.moves_memory() => Role::DataTransfer,
        CommandKind::Barrier => Role::Barrier,
        CommandKind::Free => Role::Deallocate,
        _ => Role::Code,
    }
}
