//! By which way calls and commands came about, where rows are grouped by that: through which layers of APIs, and by
//! which line of code.

use hetrace_trace::layers::Layers;
use hetrace_trace::spans::{At, Call, Command, Fold, Open, Unfinished};
use hetrace_trace::trace::{Names, Trace};

use super::labels::Labels;
use super::lines::Lines;

/// Commands that are kept until the call that caused them comes.
const KEPT: usize = 1 << 20;

/// The way of a call or of a command, in numbers of [`Ways`]; none of what is not distinguished or not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Way {
    /// See [`Layers`].
    pub layer: Option<u32>,
    /// See [`Lines`].
    pub line: Option<u32>,
}

/// The ways of a trace.
#[derive(Debug)]
pub(super) struct Ways<'t> {
    names: &'t Names,
    layers: Option<Layers<'t>>,
    lines: Option<Lines<'t>>,
    early: Vec<Late<'t>>,
}

/// A command that came before its call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late<'t> {
    pub command: Command<'t>,
    /// The range in which it was enqueued.
    pub range: Option<u32>,
    pub way: Way,
}

impl<'t> Ways<'t> {
    pub fn new(trace: &'t Trace, labels: &Labels<'_>) -> Self {
        Self {
            names: trace.names(),
            layers: labels.by_layer.then(|| Layers::new(trace)),
            lines: labels.by_line.then(|| Lines::new(trace)),
            early: Vec::new(),
        }
    }

    /// Whether any are distinguished.
    #[inline]
    pub fn any(&self) -> bool {
        self.layers.is_some() || self.lines.is_some()
    }

    /// A call begins.
    #[inline]
    pub fn entry(&mut self, at: At<'_>, call: &Open) {
        if let Some(layers) = &mut self.layers {
            layers.entry(at, call);
        }
        if let Some(lines) = &mut self.lines {
            lines.entry(at, call);
        }
    }

    /// The way of a call that ended, and whether another call of its layer was around it.
    #[inline]
    pub fn of_call(&mut self, call: &Call) -> (Way, bool) {
        let (layer, again) = self.layers.as_mut().map(|layers| layers.of_call(call)).unzip();
        let line = self.lines.as_mut().and_then(|lines| lines.number(call.stack));
        (Way { layer, line }, again == Some(true))
    }

    /// The way of a call without an end.
    pub fn of_unfinished(&mut self, call: &Unfinished) -> Way {
        Way {
            layer: self.layers.as_mut().map(|layers| layers.of_unfinished(call)),
            line: self.lines.as_mut().and_then(|lines| lines.number(call.stack)),
        }
    }

    /// As [`Self::of_call`], of many calls in one record. They may come from several lines.
    pub fn of_fold(&mut self, fold: &Fold) -> (Way, bool) {
        let (layer, again) = self.layers.as_mut().map(|layers| layers.of_fold(fold)).unzip();
        (Way { layer, line: None }, again == Some(true))
    }

    /// How a command came about. None if its call may yet come: the command is kept for [`Self::late`].
    #[inline]
    pub fn of_command(&mut self, at: At<'_>, command: &Command<'_>, range: Option<u32>) -> Option<Way> {
        if !self.any() {
            return Some(Way::default());
        }
        if let Some(way) = self.known(command) {
            return Some(way);
        }
        // Clocks differ a little, and what caused it may come later.
        if command.cause <= at.time || command.cause_tid == 0 || self.early.len() >= KEPT {
            return Some(Way::default());
        }
        self.early.push(Late { command: command.of(self.names), range, way: Way::default() });
        None
    }

    /// None if its call is not known.
    fn known(&self, command: &Command<'_>) -> Option<Way> {
        let layer = self.layers.as_ref().map(|layers| layers.known(command));
        let line = self.lines.as_ref().map(|lines| lines.known(command));
        match (layer, line) {
            (Some(None), _) | (_, Some(None)) => None,
            (layer, line) => Some(Way { layer: layer.flatten(), line: line.flatten().flatten() }),
        }
    }

    /// The commands that were kept, each with how it came about.
    pub fn late(&mut self) -> Vec<Late<'t>> {
        let early = std::mem::take(&mut self.early);
        early
            .into_iter()
            .map(|late| Late { way: self.known(&late.command).unwrap_or_default(), ..late })
            .collect()
    }

    /// The layer of calls.
    pub fn layer_name(&self, layer: u32) -> String {
        self.layers.as_ref().map_or_else(String::new, |layers| layers.layer_name(layer))
    }

    /// The calls that brought a command about.
    pub fn chain_name(&self, chain: u32) -> String {
        self.layers.as_ref().map_or_else(String::new, |layers| layers.chain_name(chain))
    }

    /// The line of code.
    pub fn line_name(&self, line: u32) -> String {
        self.lines.as_ref().map_or_else(String::new, |lines| lines.name(line))
    }
}
