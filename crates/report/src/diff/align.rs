//! Which sums of several runs are of the same thing: those of the same names.

use std::collections::{BTreeSet, HashMap};

use super::cell::Cell;
use super::paths::{REST, ROOT};
use super::profile::{CommandKey, Profile, command_matches};
use super::rows::{Step, What};
use super::{By, Options};
use hetrace_trace::demangle;

/// Sums of one thing, by run: those of A, then those of B.
pub(super) struct Aligned {
    pub what: What,
    /// Of a kernel: as its API reports it. Names that differ in the hash that a compiler
    /// appends are one kernel, so this takes no part; the first in alphabet stands for all.
    pub symbol: String,
    pub cells: Vec<Option<Cell>>,
}

/// Runs whose rows are put side by side.
pub(super) struct Runs<'p> {
    pub all: Vec<&'p Profile>,
    pub options: &'p Options,
    /// Whether devices take part in what is compared with what.
    pub by_device: bool,
}

impl<'p> Runs<'p> {
    pub fn new(a: &'p [Profile], b: &'p [Profile], options: &'p Options) -> Self {
        let names = |side: &[Profile]| -> BTreeSet<String> {
            let known = side.iter().flat_map(|p| &p.about.devices);
            known.map(|d| d.name.clone()).filter(|name| !name.is_empty()).collect()
        };
        // Another device at the same work is what one wants to compare. Two kinds of
        // devices in one run do not do the same work.
        let several = names(a).len() > 1 || names(b).len() > 1;
        let known = a.iter().chain(b).all(|p| !p.about.sums_only);
        Self { all: a.iter().chain(b).collect(), options, by_device: several && known }
    }

    /// The rows of a table; none if it is not known of some run.
    pub fn rows(&self, by: By) -> Option<Vec<Aligned>> {
        match by {
            By::Path => self.paths(),
            By::Site => self.sites(),
            By::Name | By::Api => Some(self.functions(by)),
            By::Kernel | By::Copy => Some(self.commands(by)),
        }
    }

    fn has_name(&self, name: &str) -> bool {
        let globs = &self.options.filter;
        globs.is_empty() || globs.iter().any(|glob| hetrace_model::glob_matches(glob, name))
    }

    fn functions(&self, by: By) -> Vec<Aligned> {
        let mut rows = Rows::new(self.all.len());
        for (run, profile) in self.all.iter().enumerate() {
            for ((api, name), cell) in profile.functions.iter().zip(&profile.calls) {
                if cell.calls == 0 || !self.has_name(name) {
                    continue;
                }
                let name = if by == By::Name { name.clone() } else { String::new() };
                rows.add(What { name, api: api.clone(), ..What::default() }, "", run, cell);
            }
        }
        rows.all
    }

    fn sites(&self) -> Option<Vec<Aligned>> {
        let mut rows = Rows::new(self.all.len());
        for (run, profile) in self.all.iter().enumerate() {
            for ((function, site), cell) in profile.sites.as_ref()? {
                let Some((api, name)) = profile.functions.get(*function) else { continue };
                if cell.calls == 0 || !self.has_name(name) {
                    continue;
                }
                let name = if site.is_empty() { name.clone() } else { format!("{name} ← {site}") };
                rows.add(What { name, api: api.clone(), ..What::default() }, "", run, cell);
            }
        }
        Some(rows.all)
    }

    fn commands(&self, by: By) -> Vec<Aligned> {
        let mut rows = Rows::new(self.all.len());
        let globs = &self.options.filter;
        for (run, profile) in self.all.iter().enumerate() {
            for (key, cell) in &profile.commands {
                let wanted = key.is_copy() == (by == By::Copy);
                if wanted && (globs.is_empty() || command_matches(globs, key)) {
                    rows.add(self.command(key), &key.symbol, run, cell);
                }
            }
        }
        rows.all
    }

    fn command(&self, key: &CommandKey) -> What {
        let name = match key.symbol.as_str() {
            "" => key.kind.clone(),
            symbol => demangle::full(symbol).into_owned(),
        };
        let device = key.device.clone().filter(|_| self.by_device).unwrap_or_default();
        let (from, to) = (key.from.clone(), key.to.clone());
        What { name, kind: key.kind.clone(), from, to, device, ..What::default() }
    }

    fn paths(&self) -> Option<Vec<Aligned>> {
        // Functions and paths are numbered anew over all runs.
        let mut functions: Vec<Step> = Vec::new();
        let mut numbers: HashMap<Step, u32> = HashMap::new();
        let mut nodes: Vec<(u32, u32)> = Vec::new();
        let mut children: HashMap<(u32, u32), u32> = HashMap::new();
        let mut cells: Vec<Vec<Option<Cell>>> = Vec::new();
        for (run, profile) in self.all.iter().enumerate() {
            let own = profile.functions.iter().map(|(api, name)| {
                let step = Step { api: api.clone(), name: name.clone() };
                *numbers.entry(step).or_insert_with_key(|step| {
                    functions.push(step.clone());
                    functions.len() as u32 - 1
                })
            });
            let own: Vec<u32> = own.collect();
            let mut here: Vec<u32> = Vec::new();
            for (node, cell) in profile.paths.as_ref()?.all() {
                let parent = here.get(node.parent as usize).copied().unwrap_or(ROOT);
                let function = own.get(node.function as usize).copied().unwrap_or(REST);
                let id = *children.entry((parent, function)).or_insert_with(|| {
                    nodes.push((parent, function));
                    cells.push(vec![None; self.all.len()]);
                    nodes.len() as u32 - 1
                });
                here.push(id);
                if cell.calls > 0
                    && let Some(slot) = cells.get_mut(id as usize).and_then(|c| c.get_mut(run))
                {
                    slot.get_or_insert_default().add(cell);
                }
            }
        }
        let rest = Step { api: String::new(), name: "…".to_owned() };
        let mut rows = Vec::new();
        for (id, cells) in cells.into_iter().enumerate() {
            let (mut path, mut at) = (Vec::new(), id as u32);
            while let Some((parent, function)) = nodes.get(at as usize) {
                path.push(functions.get(*function as usize).unwrap_or(&rest).clone());
                at = *parent;
            }
            path.reverse();
            let wanted = path.iter().any(|step| self.has_name(&step.name));
            if wanted && cells.iter().any(Option::is_some) {
                let what = What { path, ..What::default() };
                rows.push(Aligned { what, symbol: String::new(), cells });
            }
        }
        Some(rows)
    }
}

/// Rows by what they are.
struct Rows {
    runs: usize,
    all: Vec<Aligned>,
    places: HashMap<What, usize>,
}

impl Rows {
    fn new(runs: usize) -> Self {
        Self { runs, all: Vec::new(), places: HashMap::new() }
    }

    fn add(&mut self, what: What, symbol: &str, run: usize, cell: &Cell) {
        let (runs, all) = (self.runs, &mut self.all);
        let place = *self.places.entry(what).or_insert_with_key(|what| {
            all.push(Aligned { what: what.clone(), symbol: symbol.to_owned(), cells: vec![None; runs] });
            all.len() - 1
        });
        let Some(row) = self.all.get_mut(place) else { return };
        if symbol < row.symbol.as_str() {
            symbol.clone_into(&mut row.symbol);
        }
        if let Some(slot) = row.cells.get_mut(run) {
            slot.get_or_insert_default().add(cell);
        }
    }
}
