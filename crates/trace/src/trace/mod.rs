//! An open trace: its streams, the models of its APIs, and its manifest.

mod class;
mod cost;
mod counted;
mod cursor;
mod error;
mod functions;
mod identity;
mod job;
mod models;
mod names;
mod numbered;
mod only;
mod open;
mod present;
mod runs;
mod sample;
mod source;
mod threads;

use crate::inside::Recording;
use crate::probes::Pairs;
use crate::system::System;
use hetrace_ctf::account::Difference;
use hetrace_ctf::read::Pending;
pub use hetrace_format::manifest::{
    DeviceClock, Exit, Fired, HostClock, Losses, Manifest, Process, ThreadLosses, Written,
};
use hetrace_model::Model;

pub use class::{Class, Classes, Definition, Verdict};
pub use cost::{CallCost, Costs, LeafCost};
pub use counted::OnlyCounted;
pub use cursor::{Cursor, Item, Occurrence};
pub use error::OpenError;
pub use functions::{Function, FunctionId, Functions};
pub(crate) use identity::Identity;
pub use job::{Job, Rank};
pub use models::{ReadModel, read_models};
pub(crate) use models::{model, model_names};
pub use names::{Device, Kernel, Launches, Names, Queue};
pub use only::Only;
pub(crate) use open::manifest;
pub use sample::{Fields, Sample};
pub(crate) use source::Source;
pub use source::StepsBack;
pub use threads::{Thread, ThreadId, Threads};

/// A trace, ready to be walked over as often as one likes.
#[derive(Debug)]
pub struct Trace {
    ctf: hetrace_ctf::read::Trace,
    models: Vec<Model>,
    manifest: Manifest,
    functions: Functions,
    classes: Classes,
    names: Names,
    costs: Costs,
    problems: Vec<String>,
    differences: Vec<Difference>,
    /// By API: whether it occurs.
    present: Vec<bool>,
    system: Option<System>,
    inside: Option<Recording>,
}

impl Trace {
    /// Puts a trace together from its parts, and resolves its event classes.
    pub fn new(ctf: hetrace_ctf::read::Trace, models: Vec<Model>, manifest: Manifest) -> Self {
        let mut functions = Functions::new(&models);
        let classes = Classes::resolve(ctf.class(), &models, &mut functions);
        let mut names = Names::read(&ctf, &classes, &models);
        if !manifest.trimmed.is_empty() {
            names.forget_launches();
        }
        let present = present::present(&ctf, &classes, &functions);
        let (costs, problem) = match Costs::read(manifest.cost.as_ref(), &functions, &models) {
            Ok(costs) => (costs, None),
            Err(problem) => (Costs::default(), Some(problem)),
        };
        let problems = problem.into_iter().collect();
        let differences = Vec::new();
        let (system, inside) = (None, None);
        Self {
            present,
            ctf,
            models,
            manifest,
            functions,
            classes,
            names,
            costs,
            problems,
            differences,
            system,
            inside,
        }
    }

    /// Puts a trace together again, of which there is more now: what was defined by numbers stays.
    pub(crate) fn grown(self, ctf: hetrace_ctf::read::Trace, more: Vec<Model>, manifest: Manifest) -> Self {
        let Self { mut models, names, .. } = self;
        // Numbers of functions stay, too, as far as models name them.
        models.extend(more);
        Self { names, ..Self::new(ctf, models, manifest) }
    }

    /// Takes a later manifest. What recording costs stays as it was: it is left out of sums already.
    pub(crate) fn renew(&mut self, manifest: Manifest) {
        self.manifest = manifest;
    }

    /// Puts other streams in the place of its own, see [`hetrace_ctf::read::Trace::exchange`]; what they define is
    /// added to what is known.
    pub(crate) fn exchange(&mut self, streams: Vec<(String, Pending)>) -> Vec<(String, Pending)> {
        let before = self.ctf.exchange(streams);
        self.names.add(&self.ctf, &self.classes, &self.models);
        if !self.manifest.trimmed.is_empty() {
            self.names.forget_launches();
        }
        before
    }

    /// Joins what the operating system did to the program's threads, for all reports: [`os::read`](crate::os::read)
    /// has it from a kernel trace.
    pub fn join_system(&mut self, system: System) {
        self.system = Some(system);
    }

    /// Which probes in programs' code are the beginning and the end of ranges.
    pub fn probe_pairs(&self) -> Pairs {
        Pairs::new(self.manifest.os.as_ref().map_or(&[][..], |os| &os.pairs))
    }

    /// What the operating system did to the program's threads, if that was joined.
    pub fn system(&self) -> Option<&System> {
        self.system.as_ref()
    }

    /// Joins what was recorded inside of kernels, for all reports: [`Recording::read`] has it from the trace's files.
    pub fn join_inside(&mut self, inside: Recording) {
        self.inside = Some(inside).filter(|inside| !inside.is_empty());
    }

    /// What was recorded inside of kernels, if that was joined and there is any.
    pub fn inside(&self) -> Option<&Recording> {
        self.inside.as_ref()
    }

    /// The streams and their description.
    pub fn ctf(&self) -> &hetrace_ctf::read::Trace {
        &self.ctf
    }

    /// The models that the trace brings along.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// What the launcher noted; empty when it was killed.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Whether hetrace made the trace and left no manifest, so that nothing is known of losses: one without
    /// records has no models.
    pub fn lacks_manifest(&self) -> bool {
        let is_ours = !self.models.is_empty() || hetrace_format::class::is_of_hetrace(self.ctf.class());
        is_ours && !self.manifest.is_present()
    }

    /// The ranks of the processes in their job.
    pub fn job(&self) -> Job {
        Job::new(&self.manifest)
    }

    /// All functions that may occur.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Whether calls of a function's API are in the trace.
    pub fn has_calls_of(&self, id: FunctionId) -> bool {
        self.present.get(self.functions.get(id).api) == Some(&true)
    }

    /// By function's number, whether there may be calls of it: their events are declared.
    pub fn occurring(&self) -> Vec<bool> {
        self.classes.occurring(self.functions.all().len())
    }

    /// The model of a function's API.
    pub fn model_of(&self, id: FunctionId) -> Option<&Model> {
        self.models.get(self.functions.get(id).api)
    }

    /// What a function is in its model.
    pub fn described(&self, id: FunctionId) -> Option<&hetrace_model::Function> {
        let function = self.functions.get(id);
        self.models.get(function.api)?.functions.get(function.index?)
    }

    /// What an error code of a function means, or the code itself.
    pub fn error_name(&self, id: FunctionId, code: i64) -> String {
        let name = || {
            let (model, function) = (self.model_of(id)?, self.described(id)?);
            if function.success == hetrace_model::Success::ReturnNonNull {
                return Some("NULL".to_owned());
            }
            let group = function.returns_values.as_ref();
            // An error that comes through a parameter is of the API's own kind.
            let through_result = function.success == hetrace_model::Success::ReturnZero;
            let group = group.filter(|_| through_result).unwrap_or(&model.errors);
            let group = model.enums.get(group)?;
            let named = group.values.iter().find(|(_, value)| *value == code)?;
            Some(named.0.clone())
        };
        name().unwrap_or_else(|| code.to_string())
    }

    /// What the event classes are, for reports that show events as they are.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Whether threads may have recorded less for a part of their time, to keep within a budget.
    pub fn has_budget_steps(&self) -> bool {
        self.classes.any(|class| matches!(class, Class::BudgetStep))
    }

    /// Whether processors were sampled.
    pub fn has_samples(&self) -> bool {
        self.classes.any(|class| matches!(class, Class::Sample(_)))
    }

    /// Devices, queues, and functions that devices run.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What recording the calls has cost.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// What was wrong with files that the analyses can do without.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// What is otherwise than the manifest says that it was written, as far as names and sizes of the
    /// files show it.
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// Nanoseconds to be added to the trace's clock for the time since the Unix
    /// epoch; none if the trace does not say.
    pub fn epoch_offset_ns(&self) -> Option<i64> {
        let clock = self.ctf.class().clocks.first()?;
        clock.ns_from_origin(0).filter(|&ns| ns != 0)
    }

    /// A walk over all events in the order of time.
    pub fn cursor(&self) -> Cursor<'_> {
        let streams = (0..self.ctf.stream_count()).map(|index| runs::readers(self, index));
        let sources = streams.flat_map(|(readers, steps)| {
            let sources = readers.into_iter().map(|reader| Source::new(reader, None));
            // What is known of the steps between its runs, the first one has it.
            sources.enumerate().map(move |(run, source)| if run == 0 { source.with(steps) } else { source })
        });
        Cursor::new(self, sources.collect())
    }

    /// The same, but for commands whose stream's time goes back: they come as they were recorded. It
    /// begins at once, without a look at the packets.
    pub fn cursor_as_recorded(&self) -> Cursor<'_> {
        Cursor::new(self, self.ctf.streams().map(|reader| Source::new(reader, None)).collect())
    }

    /// The same for one stream.
    pub fn cursor_of(&self, stream: usize) -> Cursor<'_> {
        Cursor::new(
            self,
            self.ctf.stream(stream).map(|reader| Source::new(reader, None)).into_iter().collect(),
        )
    }

    /// A walk over some calls only.
    pub fn cursor_of_only<'t>(&'t self, only: &'t Only<'t>) -> Cursor<'t> {
        Cursor::new(self, self.ctf.streams().map(|reader| Source::new(reader, Some(only))).collect())
    }
}
