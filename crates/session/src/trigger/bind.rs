//! Expressions whose names are found: in the models of the session's APIs, in what telemetry samples.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use hetrace_model::index::Index;
use hetrace_model::layout::{self, Phase, Source};
use hetrace_model::{Function, Model, Success, glob_matches};
use hetrace_ring::abi::flag;

use super::TriggerError;
use super::command::{SETS, meant};
use super::fields::{Form, Place};
use super::lex::Op;
use super::near::hint;
use super::possible::{COMMANDS, When, possible};
use super::rule::{Atom, Check, Functions, Good, Key, Member, Names, Rule, What};
use super::subject::{PROPERTIES, Property, Subject, subject};
use super::syntax::{Expr, Fixed, Literal, Test, Trigger};
use super::units::{Dimension, Number};
use crate::apis::Found;
use crate::manifest;
use crate::select::Selection;
use hetrace_format::command::CommandKind;
use hetrace_format::telemetry::{HOST, Quantity};

/// Triggers that can be watched for.
#[derive(Debug)]
pub struct Bound {
    pub(super) triggers: Vec<BoundTrigger>,
    pub(super) atoms: Vec<Atom>,
    /// Names of the APIs, and what is needed of their functions.
    pub(super) apis: Vec<(Arc<str>, HashMap<usize, Need>)>,
    /// Triggers that commands on devices may fire.
    pub(super) commands: Vec<usize>,
    /// Snapshots that each trigger may ask for.
    pub(super) most: u32,
}

/// An expression.
#[derive(Debug)]
pub struct BoundTrigger {
    /// The expression.
    pub text: String,
    /// What it says.
    pub rule: Rule,
    /// Numbers of its atoms.
    pub atoms: Vec<usize>,
}

/// What triggers need of a function.
#[derive(Debug, Default)]
pub struct Need {
    /// Its name.
    pub name: Arc<str>,
    /// When its calls began.
    pub begin: bool,
    /// What was passed.
    pub entry: bool,
    /// Triggers that each of its calls may fire.
    pub calls: Vec<usize>,
    /// Triggers that are looked at after each of its calls.
    pub states: Vec<usize>,
    /// Atoms that count its calls.
    pub rates: Vec<usize>,
    /// Atoms that note when the last one was.
    pub idle: Vec<usize>,
}

impl Bound {
    /// Returns what is wrong with these triggers for who does not see how programs end; none if nothing is.
    pub fn without_ends(&self) -> Result<(), TriggerError> {
        let is_end = |atom: &&Atom| matches!(atom.what, What::Crash | What::Exit);
        match self.atoms.iter().find(is_end) {
            None => Ok(()),
            Some(Atom { text, at, .. }) => {
                let why = "a session of the service does not see how programs end";
                Err(TriggerError::new(text, at.clone(), why))
            }
        }
    }

    /// Finds what triggers name, in the models of these APIs, of which functions are recorded as selected. Each may
    /// ask for `most` snapshots.
    ///
    /// # Errors
    /// When something is not there, can't be compared so, or can never be true.
    pub fn new(
        triggers: &[Trigger],
        libraries: &[Found],
        selection: &Selection,
        sampling: bool,
        most: u32,
    ) -> Result<Self, TriggerError> {
        let world = World::new(libraries, selection, sampling);
        let (mut bound, mut atoms) = (Vec::new(), Vec::new());
        for trigger in triggers {
            let first = atoms.len();
            let text: Arc<str> = trigger.text.as_str().into();
            let rule = Binder { world: &world, text: &text, atoms: &mut atoms }.expr(&trigger.root)?;
            bound.push(BoundTrigger {
                text: trigger.to_string(),
                rule,
                atoms: (first..atoms.len()).collect(),
            });
        }
        let mut commands = Vec::new();
        let mut needs: Vec<HashMap<usize, Need>> = libraries.iter().map(|_| HashMap::new()).collect();
        for (number, (trigger, written)) in bound.iter().zip(triggers).enumerate() {
            let mut ever = possible(&trigger.rule, &atoms, When::Other).right;
            if needs_commands(trigger, &atoms) {
                commands.push(number);
                ever = true;
            }
            for key in world.all() {
                ever |= need(&mut needs, (number, trigger), &atoms, key, &world);
            }
            if !ever {
                let what = "this can never be true: no call and no command has all of it (a call is of one function)";
                return Err(TriggerError::new(&written.text, 0..written.text.len(), what));
            }
        }
        let apis = libraries.iter().map(|found| (*found.api).into()).zip(needs).collect();
        Ok(Bound { triggers: bound, atoms, apis, commands, most })
    }

    /// Returns the quantities of telemetry that triggers name.
    pub(crate) fn sampled(&self) -> BTreeSet<Quantity> {
        let of = |atom: &Atom| match atom.what {
            What::Sampled(sampled) => Some(sampled.quantity),
            _ => None,
        };
        self.atoms.iter().filter_map(of).collect()
    }

    /// Looks whether there are devices with the values that triggers name.
    ///
    /// # Errors
    /// When there is none for one of them.
    pub(crate) fn check_devices(&self, report: Option<&manifest::Telemetry>) -> Result<(), TriggerError> {
        for atom in &self.atoms {
            let What::Sampled(sampled) = atom.what else { continue };
            let name = sampled.quantity.name();
            let has = |device: &&manifest::TelemetryDevice| {
                (device.source == HOST) == sampled.host
                    && sampled.index.is_none_or(|index| index == device.index)
                    && device.quantities.iter().any(|q| q.quantity == name && q.unavailable.is_none())
            };
            if report.is_none_or(|report| !report.devices.iter().any(|device| has(&device))) {
                let what =
                    format!("nothing here reports `{}`: `hetrace doctor` says what is missing", atom.label);
                return Err(TriggerError::new(&atom.text, atom.at.clone(), what));
            }
        }
        Ok(())
    }
}

/// Returns whether a command on a device can make a trigger true.
fn needs_commands(trigger: &BoundTrigger, atoms: &[Atom]) -> bool {
    let is_about =
        |number: &usize| atoms.get(*number).is_some_and(|atom| matches!(atom.what, What::Command(..)));
    let ever = |kind: &CommandKind| possible(&trigger.rule, atoms, When::Command(*kind)).right;
    trigger.atoms.iter().any(is_about) && COMMANDS.iter().any(ever)
}

/// Notes what a trigger needs of a function. Returns whether a call of it can make it true.
fn need(
    needs: &mut [HashMap<usize, Need>],
    (number, trigger): (usize, &BoundTrigger),
    atoms: &[Atom],
    key: Key,
    world: &World<'_>,
) -> bool {
    let (api, function) = key;
    let Some(needs) = needs.get_mut(api) else { return false };
    let own = || trigger.atoms.iter().filter_map(|number| Some((*number, &atoms.get(*number)?.what)));
    let right = possible(&trigger.rule, atoms, When::Call(key)).right;
    let fires = right && own().any(|(_, what)| what.is_of(key));
    let has = |functions: &Functions| functions.contains(&key);
    let mut need = Need::default();
    if fires {
        need.calls.push(number);
        for (_, what) in own() {
            match what {
                What::Duration(functions) => need.begin |= has(functions),
                What::Field(members) => need.entry |= members.get(&key).is_some_and(|m| !m.at_exit),
                _ => {}
            }
        }
    }
    for (atom, what) in own() {
        match what {
            What::Rate(functions) if has(functions) => {
                need.rates.push(atom);
                need.states.push(number);
            }
            What::Open(functions) if has(functions) => need.begin = true,
            What::Idle(Some(functions)) if has(functions) => need.idle.push(atom),
            _ => {}
        }
    }
    need.states.dedup();
    let Need { begin, entry, calls, states, rates, idle, .. } = need;
    if !begin && calls.is_empty() && rates.is_empty() && idle.is_empty() {
        return right;
    }
    let known = needs.entry(function).or_default();
    known.name = world.name(key).into();
    known.begin |= begin || entry;
    known.entry |= entry;
    known.calls.extend(calls);
    known.states.extend(states);
    known.rates.extend(rates);
    known.idle.extend(idle);
    right
}

/// What names can mean.
struct World<'w> {
    libraries: &'w [Found],
    indices: Vec<Option<&'w Index>>,
    /// Of each API, whether each function is recorded.
    recorded: Vec<Vec<bool>>,
    models: Vec<OnceCell<Result<Model, String>>>,
    sampling: bool,
    /// Commands on devices are timed.
    devices: bool,
}

impl<'w> World<'w> {
    fn new(libraries: &'w [Found], selection: &Selection, sampling: bool) -> Self {
        // Of an API whose library can't be read any more no function is known: to name one is an error.
        let indices: Vec<Option<&Index>> = libraries.iter().map(|found| found.index().ok()).collect();
        let flags = |index: &Index| selection.flags(index).iter().map(|f| f & flag::RECORD != 0).collect();
        let recorded = indices.iter().map(|index| index.map(flags).unwrap_or_default()).collect();
        let (models, devices) = (libraries.iter().map(|_| OnceCell::new()).collect(), selection.devices);
        World { libraries, indices, recorded, models, sampling, devices }
    }

    /// Returns all functions that are recorded.
    fn all(&self) -> impl Iterator<Item = Key> + '_ {
        let of = |(api, recorded): (usize, &'_ Vec<bool>)| {
            let numbers = recorded.iter().enumerate().filter(|(_, recorded)| **recorded);
            numbers.map(|(function, _)| (api, function)).collect::<Vec<_>>()
        };
        self.recorded.iter().enumerate().flat_map(of)
    }

    fn names(&self) -> impl Iterator<Item = (Key, &str)> {
        let of = |(api, index): (usize, &&'w Index)| {
            index.rows().enumerate().map(move |(function, row)| ((api, function), row.name))
        };
        let known = self.indices.iter().enumerate().filter_map(|(api, index)| Some((api, index.as_ref()?)));
        known.flat_map(of)
    }

    fn name(&self, (api, function): Key) -> &str {
        let index = self.indices.get(api).copied().flatten();
        index.and_then(|index| index.row(function)).map_or("", |row| row.name)
    }

    fn is_recorded(&self, (api, function): Key) -> bool {
        self.recorded.get(api).and_then(|api| api.get(function)).copied().unwrap_or(false)
    }

    fn model(&self, api: usize) -> Result<&Model, String> {
        let Some((found, model)) = self.libraries.get(api).zip(self.models.get(api)) else {
            return Err(String::new());
        };
        let load = || found.load().map(|library| library.model).map_err(|error| error.to_string());
        model.get_or_init(load).as_ref().map_err(Clone::clone)
    }

    fn function(&self, (api, function): Key) -> Result<(&Model, &Function), String> {
        let model = self.model(api)?;
        Ok((model, model.functions.get(function).ok_or("its model lacks a function")?))
    }
}

struct Binder<'b> {
    world: &'b World<'b>,
    text: &'b Arc<str>,
    atoms: &'b mut Vec<Atom>,
}

impl Binder<'_> {
    fn error<T>(&self, at: &Range<usize>, what: impl Into<String>) -> Result<T, TriggerError> {
        Err(TriggerError::new(self.text, at.clone(), what))
    }

    fn expr(&mut self, expr: &Expr) -> Result<Rule, TriggerError> {
        let mut each =
            |parts: &[Expr]| parts.iter().map(|part| self.expr(part)).collect::<Result<Vec<_>, _>>();
        Ok(match expr {
            Expr::Any(parts) => Rule::Any(each(parts)?),
            Expr::All(parts) => Rule::All(each(parts)?),
            Expr::Not(part) => Rule::Not(Box::new(self.expr(part)?)),
            Expr::Test(test) => {
                let atom = self.test(test)?;
                self.atoms.push(atom);
                Rule::Atom(self.atoms.len() - 1)
            }
        })
    }

    fn test(&self, test: &Test) -> Result<Atom, TriggerError> {
        let (what, dimension, check) = match subject(self.text, test)? {
            Subject::Crash => (What::Crash, Dimension::Plain, self.truth(test)?),
            Subject::Exit => (What::Exit, Dimension::Plain, self.number(test, Dimension::Plain)?),
            Subject::Sampled(sampled) => {
                if !self.world.sampling {
                    return self.error(&test.subject_at(), "telemetry is sampled with --sample only: add it");
                }
                let (dimension, _) = sampled.dimension();
                (What::Sampled(sampled), dimension, self.number(test, dimension)?)
            }
            Subject::Command(set, of) => {
                if !self.world.devices {
                    return self.error(
                        &test.subject_at(),
                        "commands on devices are not timed: leave out --no-device",
                    );
                }
                match of.dimension() {
                    Some(dimension) => (What::Command(set, of), dimension, self.number(test, dimension)?),
                    None => (What::Command(set, of), Dimension::Plain, self.text(test)?),
                }
            }
            Subject::Call { glob, property: Property::Argument(name), at } => {
                let (what, check) = self.argument(test, glob.as_ref(), &name, &at)?;
                (what, Dimension::Plain, check)
            }
            Subject::Call { glob, property, .. } => self.property(test, glob.as_ref(), &property)?,
        };
        let words: Vec<&str> = test.subject.iter().map(|(word, _)| word.as_str()).collect();
        let (text, at) = (Arc::clone(self.text), test.at.clone());
        Ok(Atom { label: words.join("."), what, dimension, test: check, text, at })
    }

    fn property(
        &self,
        test: &Test,
        glob: Option<&(String, Range<usize>)>,
        property: &Property,
    ) -> Result<(What, Dimension, Check), TriggerError> {
        let functions = self.functions(glob)?;
        let plain = |what| Ok((what, Dimension::Plain, self.number(test, Dimension::Plain)?));
        let text = |what| Ok((what, Dimension::Plain, self.text(test)?));
        let time = |what| Ok((what, Dimension::Time, self.number(test, Dimension::Time)?));
        match property {
            Property::Name => self.name(test, functions),
            Property::Api => text(What::Api(functions)),
            Property::Thread => text(What::Thread(functions)),
            Property::Pid => plain(What::Pid(functions)),
            Property::Tid => plain(What::Tid(functions)),
            Property::Duration => time(What::Duration(functions)),
            Property::Open => time(What::Open(functions)),
            Property::Idle => time(What::Idle(glob.map(|_| functions))),
            Property::Rate => {
                Ok((What::Rate(functions), Dimension::Rate, self.number(test, Dimension::Rate)?))
            }
            Property::Failed => {
                let members = self.members(&functions, |model, f| status(model, f, true), test)?;
                Ok((What::Failed(members), Dimension::Plain, self.truth(test)?))
            }
            Property::Result => {
                let members = self.members(&functions, |model, f| status(model, f, false), test)?;
                self.field(test, members)
            }
            Property::Returned => {
                let members = self.members(&functions, |_, f| returned(f), test)?;
                self.field(test, members)
            }
            // Found elsewhere.
            Property::Argument(_) => self.error(&test.at, "expected a property"),
        }
    }

    /// Returns the functions of a glob, or all, as far as they are recorded.
    fn functions(&self, glob: Option<&(String, Range<usize>)>) -> Result<Functions, TriggerError> {
        let Some((glob, at)) = glob else { return Ok(self.world.all().collect()) };
        let matching: Functions =
            self.world.names().filter(|(_, name)| glob_matches(glob, name)).map(|(key, _)| key).collect();
        if matching.is_empty() {
            let near = hint(
                glob,
                self.world.names().map(|(_, name)| name).chain(["gpu", "host", "arg", "kernel", "copy"]),
            );
            return self.error(at, format!("no traced API has a function `{glob}`{near}"));
        }
        let recorded: Functions = matching.into_iter().filter(|key| self.world.is_recorded(*key)).collect();
        if recorded.is_empty() {
            return self.error(at, format!("`{glob}` is not recorded: see --mode, --include and --exclude"));
        }
        Ok(recorded)
    }

    fn name(&self, test: &Test, among: Functions) -> Result<(What, Dimension, Check), TriggerError> {
        let check = self.text(test)?;
        let (Check::Text(_, glob), Some((_, literal))) = (&check, &test.compared) else {
            return self.error(&test.at, "expected the name of a function");
        };
        // Also those of other functions are wrong if nothing has such a name.
        let matching = self.functions(Some(&(glob.clone(), literal.at.clone())))?;
        Ok((What::Name { matching, among }, Dimension::Plain, check))
    }

    /// Returns a field of each function that has it.
    fn members(
        &self,
        functions: &Functions,
        field: impl Fn(&Model, &Function) -> Option<(Source, Good)>,
        test: &Test,
    ) -> Result<HashMap<Key, Member>, TriggerError> {
        let mut states = Shared::default();
        let mut members = HashMap::new();
        for key in functions {
            let (model, function) = match self.world.function(*key) {
                Ok(known) => known,
                Err(error) => return self.error(&test.at, error),
            };
            let Some((source, good)) = field(model, function) else { continue };
            let events = layout::function_events(model, key.1);
            let Some(exit) = events.iter().find(|event| event.phase == Phase::Exit) else { continue };
            let Some(number) = exit.fields.iter().position(|field| field.source == source) else { continue };
            let Some(place) = Place::of(model, &exit.fields, number) else { continue };
            let names = exit.fields.get(number).and_then(|field| states.names(key.0, model, &field.shape));
            let good = match good {
                Good::Zero(_) => Good::Zero(states.states(key.0, model)),
                good => good,
            };
            members.insert(*key, Member { at_exit: true, place, names, good });
        }
        match members.is_empty() {
            true => {
                self.error(&test.subject_at(), "no such function has that: it returns nothing, or can't fail")
            }
            false => Ok(members),
        }
    }

    fn argument(
        &self,
        test: &Test,
        glob: Option<&(String, Range<usize>)>,
        name: &str,
        at: &Range<usize>,
    ) -> Result<(What, Check), TriggerError> {
        let functions = self.functions(glob)?;
        let mut shared = Shared::default();
        let (mut members, mut there, mut others) = (HashMap::new(), false, BTreeSet::new());
        for key in &functions {
            let model = match self.world.model(key.0) {
                Ok(model) => model,
                Err(error) => return self.error(at, error),
            };
            for event in layout::function_events(model, key.1) {
                if event.phase == Phase::Fold || members.contains_key(key) {
                    continue;
                }
                let is_it = |field: &layout::Field| field.name == name && field.source != Source::Return;
                let Some(number) = event.fields.iter().position(is_it) else {
                    let own = event.fields.into_iter().filter(|field| field.source != Source::Return);
                    others.extend(own.map(|field| field.name));
                    continue;
                };
                there = true;
                let Some(place) = Place::of(model, &event.fields, number) else { continue };
                let names = event.fields.get(number).and_then(|f| shared.names(key.0, model, &f.shape));
                let at_exit = event.phase == Phase::Exit;
                members.insert(*key, Member { at_exit, place, names, good: Good::NonZero });
            }
        }
        if members.is_empty() {
            return self.no_argument((name, at), glob, there, &others);
        }
        let (what, _, check) = self.field(test, members)?;
        Ok((what, check))
    }

    fn no_argument<T>(
        &self,
        (name, at): (&str, &Range<usize>),
        glob: Option<&(String, Range<usize>)>,
        there: bool,
        others: &BTreeSet<String>,
    ) -> Result<T, TriggerError> {
        if there {
            return self
                .error(at, format!("`{name}` is a structure, bytes or a list: a trigger can't compare it"));
        }
        if glob.is_none() && meant(SETS, name).is_some() {
            return self
                .error(at, format!("expected something of `{name}`, such as `{name}.duration > 2ms`"));
        }
        if glob.is_none() && self.world.names().any(|(_, function)| glob_matches(name, function)) {
            let what =
                format!("`{name}` is a function: expected something of it, such as `{name}.duration > 2ms`");
            return self.error(at, what);
        }
        let properties = PROPERTIES.iter().map(|(name, _)| *name).chain(["crash", "exit"]);
        let near = hint(name, properties.chain(others.iter().map(String::as_str)));
        let Some((glob, _)) = glob else {
            return self.error(at, format!("unknown name `{name}`{near}"));
        };
        let list: Vec<&str> = others.iter().map(String::as_str).collect();
        let list = match list.as_slice() {
            [] => "; it has no arguments".to_owned(),
            few if few.len() <= 16 => format!("; there are: {}", few.join(", ")),
            _ => String::new(),
        };
        self.error(at, format!("`{glob}` has no property and no argument `{name}`{near}{list}"))
    }

    /// Compares fields of calls.
    fn field(
        &self,
        test: &Test,
        mut members: HashMap<Key, Member>,
    ) -> Result<(What, Dimension, Check), TriggerError> {
        let (op, literal) = self.compared(test)?;
        let subject = test.subject_at();
        let is_text = |member: &Member| member.place.form() == Form::Text;
        if let Fixed::Text(_) = &literal.value {
            members.retain(|_, member| is_text(member));
            if members.is_empty() {
                return self.error(&literal.at, "this is compared with a number, not with a text");
            }
            return Ok((What::Field(members), Dimension::Plain, self.text(test)?));
        }
        members.retain(|_, member| !is_text(member));
        if members.is_empty() {
            return self.error(&subject, "this is a text: compare it with one in quotes, by `==` or `!=`");
        }
        let Fixed::Word(word) = &literal.value else {
            return Ok((What::Field(members), Dimension::Plain, self.number(test, Dimension::Plain)?));
        };
        let apis: BTreeSet<usize> = members.keys().map(|(api, _)| *api).collect();
        let mut values = HashMap::new();
        let mut known = BTreeSet::new();
        for api in apis {
            let Ok(model) = self.world.model(api) else { continue };
            for (name, value) in model.enums.iter().flat_map(|group| &group.values) {
                known.insert(name.as_str());
                if name == word {
                    values.entry(api).or_insert(Number::Int((*value).into()));
                }
            }
        }
        if values.is_empty() {
            let near = hint(word, known.into_iter());
            return self.error(&literal.at, format!("no value has the name `{word}`{near}"));
        }
        members.retain(|(api, _), _| values.contains_key(api));
        Ok((What::Field(members), Dimension::Plain, Check::Named(op, values)))
    }

    fn compared<'t>(&self, test: &'t Test) -> Result<(Op, &'t Literal), TriggerError> {
        match &test.compared {
            Some((op, literal)) => Ok((*op, literal)),
            None => {
                let shown = self.text.get(test.subject_at()).unwrap_or_default();
                self.error(&test.at, format!("expected a comparison, such as `{shown} > 2`"))
            }
        }
    }

    fn truth(&self, test: &Test) -> Result<Check, TriggerError> {
        match &test.compared {
            None => Ok(Check::Truth),
            Some((_, literal)) => {
                let at = test.subject_at().end..literal.at.end;
                self.error(&at, "this is true or not by itself, and compared with nothing")
            }
        }
    }

    fn text(&self, test: &Test) -> Result<Check, TriggerError> {
        let (op, literal) = self.compared(test)?;
        let (Fixed::Text(text) | Fixed::Word(text)) = &literal.value else {
            return self.error(&literal.at, "this is compared with a text, such as \"cl*\"");
        };
        match op {
            Op::Equal => Ok(Check::Text(true, text.clone())),
            Op::Unequal => Ok(Check::Text(false, text.clone())),
            _ => self.error(&test.at, "texts are compared by `==` and `!=`"),
        }
    }

    fn number(&self, test: &Test, dimension: Dimension) -> Result<Check, TriggerError> {
        let (op, literal) = self.compared(test)?;
        let Fixed::Number(number, unit) = literal.value else {
            return self.error(&literal.at, "this is compared with a number");
        };
        let fits = match unit.map(|unit| unit.dimension) {
            Some(of) => of == dimension || dimension == Dimension::Plain && of == Dimension::Bytes,
            None => {
                matches!(dimension, Dimension::Plain | Dimension::Bytes | Dimension::Temperature)
                    || number.is_zero()
            }
        };
        if !fits {
            let what = match (dimension.units(), unit) {
                (units, None) => format!("the unit is missing: {units}"),
                (_, Some(unit)) if dimension == Dimension::Plain => {
                    format!("this is a number without a unit, not one in {}", unit.name)
                }
                (units, Some(unit)) => format!("this is not counted in {}, but in {units}", unit.name),
            };
            return self.error(&literal.at, what);
        }
        Ok(Check::Number(op, unit.map_or(number, |unit| unit.base(number))))
    }
}

/// What fields of an API have in common.
#[derive(Default)]
struct Shared {
    names: HashMap<(usize, String), Option<Names>>,
    states: HashMap<usize, Arc<HashSet<i64>>>,
}

impl Shared {
    fn names(&mut self, api: usize, model: &Model, shape: &layout::Shape) -> Option<Names> {
        let layout::Shape::Int(layout::Int { values: Some(group), .. }) = shape else { return None };
        let find = || model.enums.get(group).map(|known| known.values.clone().into());
        self.names.entry((api, group.clone())).or_insert_with(find).clone()
    }

    fn states(&mut self, api: usize, model: &Model) -> Arc<HashSet<i64>> {
        let find = || {
            let all = model.enums.iter().flat_map(|group| &group.values);
            Arc::new(all.filter(|(name, _)| model.states.contains(name)).map(|(_, value)| *value).collect())
        };
        Arc::clone(self.states.entry(api).or_insert_with(find))
    }
}

/// Returns the field by which a function says whether it succeeded; if that may be any value, also one that only says so.
fn status(_: &Model, function: &Function, any: bool) -> Option<(Source, Good)> {
    match &function.success {
        Success::ReturnZero => Some((Source::Return, Good::Zero(Arc::default()))),
        Success::OutZero(name) => {
            let param = function.params.iter().position(|param| param.name == *name)?;
            Some((Source::Behind(param), Good::Zero(Arc::default())))
        }
        Success::ReturnNonNull if any => Some((Source::Return, Good::NonZero)),
        Success::ReturnNonNull | Success::Always => None,
    }
}

fn returned(function: &Function) -> Option<(Source, Good)> {
    (function.returns != "void").then_some((Source::Return, Good::NonZero))
}
