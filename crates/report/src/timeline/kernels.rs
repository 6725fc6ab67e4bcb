//! Names of kernels, and what they leave of a processor.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::annotations::Annotations;
use super::names::Fnv;
use hetrace_trace::demangle;
use hetrace_trace::spans::{Command, CommandKind};
use hetrace_trace::trace::Trace;
use hetrace_vendor::occupancy::{self, Needs, Rules};

/// What is known of kernels and worked out once.
#[derive(Debug)]
pub(super) struct Kernels {
    /// By number of the function.
    names: HashMap<u32, Name, BuildHasherDefault<Fnv>>,
    /// By number of the device.
    limits: HashMap<u32, Option<Box<dyn Rules>>, BuildHasherDefault<Fnv>>,
}

#[derive(Debug)]
struct Name {
    short: String,
    /// The whole name, if it is another.
    full: Option<String>,
}

impl Kernels {
    pub fn new(trace: &Trace) -> Self {
        let limits = |d: &&hetrace_trace::trace::Device| (d.id, occupancy::rules(&d.properties));
        let limits = trace.names().devices().iter().map(limits).collect();
        Self { names: HashMap::default(), limits }
    }

    /// Works out the names of a command's function, if that is new.
    pub fn meet(&mut self, command: &Command<'_>) {
        let Some(function) = command.function.filter(|f| !f.name.is_empty()) else { return };
        self.names.entry(function.id).or_insert_with(|| {
            let (short, full) = (demangle::short(&function.name), demangle::full(&function.name));
            let full = (short != full).then(|| full.into_owned());
            Name { short: short.into_owned(), full }
        });
    }

    /// The name of a command's slice.
    pub fn title<'a>(&'a self, command: &Command<'a>) -> Cow<'a, str> {
        if command.kind == CommandKind::Graph && command.graph > 0 {
            return format!("graph {}", command.graph).into();
        }
        let name = command.function.and_then(|f| self.names.get(&f.id));
        name.map_or(command.title(), |name| &name.short).into()
    }

    /// The rest of the name, and the occupancy.
    pub fn annotate(&self, notes: &mut Annotations, command: &Command<'_>) {
        let Some(function) = command.function else { return };
        if let Some(full) = self.names.get(&function.id).and_then(|n| n.full.as_deref()) {
            notes.text("function", full);
        }
        let threads = command.geometry.local.product();
        if command.geometry.local.is_empty() || function.registers == 0 {
            return;
        }
        let device = command.on_device.map_or(0, |d| d.id);
        let shared = u64::from(function.shared).saturating_add(command.shared);
        let needs = Needs { threads, registers: function.registers.into(), shared };
        let limits = self.limits.get(&device).and_then(Option::as_ref);
        if let Some(occupancy) = limits.and_then(|l| l.occupancy(&needs)) {
            notes.float("theoretical_occupancy_percent", occupancy.percent());
            notes.text("occupancy_limited_by", &occupancy.limiter.to_string());
        }
    }
}
