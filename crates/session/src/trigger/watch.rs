//! Watches for what triggers are about, while rings are drained.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hetrace_format::manifest::Fired;
use hetrace_format::telemetry::{HOST, Monitored, Quantity, VALUES};
use hetrace_model::{glob_matches, layout};
use hetrace_ring::abi::ADDED_UP;

use super::bind::{Bound, Need};
use super::command::Ran;
use super::fields::Value;
use super::lex::Op;
use super::rule::{Atom, Check, Key, Rule, What};
use super::units::{Dimension, Number};
use super::{Feed, TriggerError};
use crate::apis::Name;
use crate::manifest::{self, Exit};
use crate::output::Identity;

/// Time that a rate is over, in parts of so many nanoseconds.
const PART: u64 = 50_000_000;
/// Parts of a second.
const PARTS: usize = 20;
/// Threads that ended inside of calls with their process, of which it is known in which.
const MOST_LEFT: usize = 8192;
/// `PF_EXITING` of Linux: the task ends.
const EXITING: u64 = 4;
/// Calls that are open at a time on a thread; more are those of a program that never returns from them.
const DEEPEST: usize = 1 << 12;

/// A record of a call, as the drainer finds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallRecord<'r> {
    /// Number of the API in the session.
    pub api: usize,
    /// Number of its event.
    pub id: u16,
    /// Nanoseconds on the trace's clock.
    pub time: u64,
    /// Number of the program image.
    pub image: usize,
    /// The thread.
    pub who: &'r Identity,
    /// Its fields.
    pub body: &'r [u8],
}

/// A call that has not returned.
#[derive(Debug)]
struct OpenCall {
    key: Key,
    begin: u64,
    who: Identity,
    /// What was passed, where that is needed.
    entry: Option<Vec<u8>>,
}

/// Calls in the last second.
#[derive(Debug, Default)]
struct Rate {
    counts: [u64; PARTS],
    /// The part that the last call was in.
    newest: u64,
}

impl Rate {
    fn add(&mut self, time: u64, calls: u64) {
        let part = time / PART;
        for gone in (self.newest + 1..=part).rev().take(PARTS) {
            self.set(gone, |_| 0);
        }
        self.newest = self.newest.max(part);
        if part + PARTS as u64 > self.newest {
            self.set(part, |count| count.saturating_add(calls));
        }
    }

    fn set(&mut self, part: u64, to: impl Fn(u64) -> u64) {
        if let Some(count) = self.counts.get_mut((part % PARTS as u64) as usize) {
            *count = to(*count);
        }
    }

    fn at(&self, now: u64) -> u64 {
        let parts = (0..PARTS as u64).filter_map(|back| self.newest.checked_sub(back));
        let recent = parts.filter(|part| part + PARTS as u64 > now / PART);
        let counts = recent.filter_map(|part| self.counts.get((part % PARTS as u64) as usize));
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// What has become of a trigger.
#[derive(Debug, Default)]
struct State {
    /// It was true when it was looked at last, apart from calls.
    level: bool,
    fired: u64,
    /// How it fired first since its last snapshot.
    pending: Option<Fired>,
    snapshots: u32,
    /// When its last snapshot was begun.
    served: Option<u64>,
}

/// What a trigger has done in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The expression.
    pub trigger: String,
    /// How often it became true.
    pub fired: u64,
    /// Snapshots that it asked for.
    pub snapshots: u32,
    /// No more than these were allowed.
    pub limited: bool,
}

impl Account {
    /// Returns what the user should know at the end: that it was never true, or asked for no more.
    pub fn note(&self) -> Option<String> {
        let Account { trigger, fired, snapshots, limited } = self;
        let many = |number: u64, of: &str| format!("{number} {of}{}", if number == 1 { "" } else { "s" });
        match (fired, limited) {
            (0, _) => Some(format!("trigger `{trigger}`: never true")),
            (fired, true) => Some(format!(
                "trigger `{trigger}`: {}, {} (no more: --trigger-limit)",
                many(*fired, "time"),
                many((*snapshots).into(), "snapshot")
            )),
            _ => None,
        }
    }
}

/// A device that is sampled.
#[derive(Debug)]
struct Device {
    host: bool,
    index: u32,
    name: String,
}

/// When an expression is looked at: the end of a call, or any other moment.
struct Moment<'m> {
    now: u64,
    call: Option<Ended<'m>>,
    /// A command on a device that has ended.
    command: Option<&'m Ran>,
}

impl Moment<'_> {
    /// One at which nothing has ended.
    fn at(now: u64) -> Self {
        Moment { now, call: None, command: None }
    }
}

/// A call that has ended.
struct Ended<'m> {
    key: Key,
    api: &'m str,
    need: &'m Need,
    who: &'m Identity,
    begin: Option<u64>,
    entry: Option<&'m [u8]>,
    exit: &'m [u8],
}

/// Whose a value is.
#[derive(Clone, Copy)]
enum Of<'w> {
    Moment,
    Open(&'w OpenCall),
    Device(&'w Device),
}

/// Triggers of a run, and what they need to know of it.
#[derive(Debug)]
pub(crate) struct Watch {
    bound: Arc<Bound>,
    feed: Arc<Feed>,
    /// By number in the session: the number that the triggers have for an API.
    apis: Vec<Option<usize>>,
    /// By that number and function: whether a trigger is about it.
    wanted: Vec<Vec<bool>>,
    /// After its snapshot a trigger asks for none so long, in nanoseconds.
    rest: u64,
    devices: HashMap<u32, Device>,
    latest: HashMap<(u32, Quantity), [i64; VALUES]>,
    /// By image and thread.
    open: HashMap<(usize, u32), Vec<OpenCall>>,
    /// Those in which a process has ended, the last ones.
    left: VecDeque<((usize, u32), Vec<OpenCall>)>,
    /// By atom.
    rates: HashMap<usize, Rate>,
    idle: HashMap<usize, u64>,
    /// When anything was recorded last.
    last: Option<u64>,
    exit: Option<Exit>,
    states: Vec<State>,
}

impl Watch {
    /// Watches for triggers in a session with APIs of these names. Snapshots reach back for `window`.
    pub fn new(bound: &Arc<Bound>, names: &[Name], window: Duration) -> Self {
        let position = |name: &Name| bound.apis.iter().position(|(api, _)| **api == **name);
        let table = |(_, needs): &(Arc<str>, HashMap<usize, Need>)| {
            let length = needs.keys().max().map_or(0, |most| most + 1);
            (0..length).map(|function| needs.contains_key(&function)).collect()
        };
        // A little less than the window, so that nothing falls between two snapshots.
        let rest = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX) / 4 * 3;
        Watch {
            apis: names.iter().map(position).collect(),
            wanted: bound.apis.iter().map(table).collect(),
            feed: Arc::new(Feed::new(bound.sampled())),
            bound: Arc::clone(bound),
            rest,
            devices: HashMap::new(),
            latest: HashMap::new(),
            open: HashMap::new(),
            left: VecDeque::new(),
            rates: HashMap::new(),
            idle: HashMap::new(),
            last: None,
            exit: None,
            states: bound.triggers.iter().map(|_| State::default()).collect(),
        }
    }

    /// Returns where samples are to go.
    pub fn feed(&self) -> Arc<Feed> {
        Arc::clone(&self.feed)
    }

    /// Takes note of the devices that are sampled.
    ///
    /// # Errors
    /// When none of them has what a trigger names.
    pub fn devices(&mut self, report: Option<&manifest::Telemetry>) -> Result<(), TriggerError> {
        self.bound.check_devices(report)?;
        for device in report.into_iter().flat_map(|report| &report.devices) {
            let name = Monitored::label(&device.source, device.index, &device.name);
            let known = Device { host: device.source == HOST, index: device.index, name };
            self.devices.insert(device.device, known);
        }
        Ok(())
    }

    /// Something was recorded.
    pub fn saw(&mut self, time: u64) {
        self.last = Some(self.last.map_or(time, |last| last.max(time)));
    }

    /// Returns whether a trigger is about the function of an event.
    #[inline]
    pub fn is_about(&self, api: usize, id: u16) -> bool {
        let function = layout::function_of(id);
        let table = self.apis.get(api).copied().flatten().and_then(|api| self.wanted.get(api));
        table.zip(function).is_some_and(|(table, function)| table.get(function).copied().unwrap_or(false))
    }

    /// Takes note of a record of a function that a trigger [is about](Self::is_about).
    pub fn call(&mut self, record: CallRecord<'_>) {
        let bound = Arc::clone(&self.bound);
        let CallRecord { id, time, image, who, body, .. } = record;
        let Some(api) = self.apis.get(record.api).copied().flatten() else { return };
        let Some((name, needs)) = bound.apis.get(api) else { return };
        let Some(function) = layout::function_of(id) else { return };
        let Some(need) = needs.get(&function) else { return };
        let key = (api, function);
        for atom in &need.idle {
            let last = self.idle.entry(*atom).or_default();
            *last = (*last).max(time);
        }
        match id - layout::entry_id(function) {
            0 => {
                if need.begin {
                    let calls = self.open.entry((image, who.tid)).or_default();
                    calls.truncate(DEEPEST);
                    let entry = need.entry.then(|| body.to_vec());
                    calls.push(OpenCall { key, begin: time, who: *who, entry });
                }
            }
            1 => {
                let open = need.begin.then(|| self.close(image, who.tid, key)).flatten();
                self.count(need, time, 1);
                let (begin, entry) =
                    (open.as_ref().map(|open| open.begin), open.as_ref().and_then(|o| o.entry.as_deref()));
                let call = Some(Ended { key, api: name, need, who, begin, entry, exit: body });
                let moment = Moment { now: time, call, command: None };
                for trigger in &need.calls {
                    let level = self.states.get(*trigger).is_some_and(|state| state.level);
                    if !level && self.is_true(&bound, *trigger, &moment) {
                        self.fire(&bound, *trigger, &moment);
                    }
                }
                need.states.iter().for_each(|trigger| self.look(&bound, *trigger, &moment));
            }
            _ => {
                let count = body.first_chunk().map_or(0, |count| u64::from_le_bytes(*count) & !ADDED_UP);
                self.count(need, time, count);
                let moment = Moment::at(time);
                need.states.iter().for_each(|trigger| self.look(&bound, *trigger, &moment));
            }
        }
    }

    fn count(&mut self, need: &Need, time: u64, calls: u64) {
        need.rates.iter().for_each(|atom| self.rates.entry(*atom).or_default().add(time, calls));
    }

    /// Ends a call, and those inside of it, whatever became of their ends.
    fn close(&mut self, image: usize, tid: u32, key: Key) -> Option<OpenCall> {
        let calls = self.open.get_mut(&(image, tid))?;
        let at = calls.iter().rposition(|open| open.key == key)?;
        calls.truncate(at + 1);
        calls.pop()
    }

    /// Returns whether a trigger is about commands on devices.
    pub fn is_about_commands(&self) -> bool {
        !self.bound.commands.is_empty()
    }

    /// Takes note of a command that has ended, if a trigger [is about](Self::is_about_commands) any.
    pub fn command(&mut self, ran: &Ran) {
        let bound = Arc::clone(&self.bound);
        let now = ran.times.map_or(0, |(_, end)| end);
        let moment = Moment { now, call: None, command: Some(ran) };
        for trigger in &bound.commands {
            let level = self.states.get(*trigger).is_some_and(|state| state.level);
            if !level && self.is_true(&bound, *trigger, &moment) {
                self.fire(&bound, *trigger, &moment);
            }
        }
    }

    /// A program image is gone, and its calls with it; unless its process ends, which may be what [`Self::end`] is about to say.
    pub fn is_gone(&mut self, image: usize) {
        for (thread, calls) in self.open.extract_if(|(of, _), _| *of == image) {
            let pid = calls.first().map(|call| call.who.pid);
            if pid.is_some_and(is_ending) {
                self.left.push_back((thread, calls));
            }
        }
        self.left.drain(..self.left.len().saturating_sub(MOST_LEFT));
    }

    /// Looks at what changes with time, and at samples.
    pub fn tick(&mut self, now: u64) {
        let bound = Arc::clone(&self.bound);
        let samples_of = |trigger: &usize, quantity: Quantity| {
            let atoms = bound.triggers.get(*trigger).map_or(&[][..], |trigger| &trigger.atoms);
            let whats = atoms.iter().filter_map(|atom| bound.atoms.get(*atom)).map(|atom| &atom.what);
            whats.into_iter().any(|what| matches!(what, What::Sampled(of) if of.quantity == quantity))
        };
        for taken in self.feed.take() {
            self.latest.insert((taken.device, taken.quantity), taken.sample.values);
            let moment = Moment::at(taken.sample.time);
            for trigger in (0..bound.triggers.len()).filter(|trigger| samples_of(trigger, taken.quantity)) {
                self.look(&bound, trigger, &moment);
            }
        }
        let moment = Moment::at(now);
        (0..bound.triggers.len()).for_each(|trigger| self.look(&bound, trigger, &moment));
    }

    /// The program has ended, whose process this was.
    pub fn end(&mut self, exit: Exit, pid: u32, now: u64) {
        self.exit = Some(exit);
        let left = std::mem::take(&mut self.left);
        self.open.extend(left.into_iter().filter(|(_, calls)| calls.iter().all(|call| call.who.pid == pid)));
        self.tick(now);
    }

    /// Fires a trigger that was not true before, and is now.
    fn look(&mut self, bound: &Bound, trigger: usize, moment: &Moment<'_>) {
        let now = self.is_true(bound, trigger, moment);
        let Some(state) = self.states.get_mut(trigger) else { return };
        if now && !state.level {
            if self.forget_gone(moment.now) && !self.is_true(bound, trigger, moment) {
                return;
            }
            self.fire(bound, trigger, moment);
        }
        if let Some(state) = self.states.get_mut(trigger) {
            state.level = now;
        }
    }

    /// Drops calls of threads that have ended inside of them. Returns whether there were any.
    fn forget_gone(&mut self, now: u64) -> bool {
        let before = self.open.len();
        self.open.retain(|(_, tid), calls| {
            let Some(first) = calls.first() else { return false };
            let process = PathBuf::from(format!("/proc/{}/task", first.who.pid));
            now.saturating_sub(first.begin) < PART
                || !process.is_dir()
                || process.join(tid.to_string()).is_dir()
        });
        self.open.len() < before
    }

    fn is_true(&self, bound: &Bound, trigger: usize, moment: &Moment<'_>) -> bool {
        let rule = bound.triggers.get(trigger).map(|trigger| &trigger.rule);
        rule.and_then(|rule| self.eval(bound, rule, moment)) == Some(true)
    }

    /// Returns whether it is true; none if it says nothing at this moment.
    fn eval(&self, bound: &Bound, rule: &Rule, moment: &Moment<'_>) -> Option<bool> {
        let mut known = true;
        match rule {
            Rule::Any(parts) => {
                for part in parts {
                    match self.eval(bound, part, moment) {
                        Some(true) => return Some(true),
                        part => known &= part.is_some(),
                    }
                }
                known.then_some(false)
            }
            Rule::All(parts) => {
                for part in parts {
                    match self.eval(bound, part, moment) {
                        Some(false) => return Some(false),
                        part => known &= part.is_some(),
                    }
                }
                known.then_some(true)
            }
            Rule::Not(part) => self.eval(bound, part, moment).map(|is| !is),
            Rule::Atom(number) => {
                let atom = bound.atoms.get(*number)?;
                let mut found = None;
                self.visit(*number, atom, moment, &mut |value, _| {
                    let api = moment.call.as_ref().map_or(usize::MAX, |call| call.key.0);
                    found = Some(found == Some(true) || passes(&value, &atom.test, api));
                });
                found
            }
        }
    }

    /// Hands over each value that an atom has at a moment: of a call one at most, of devices that of each.
    fn visit<'w>(
        &'w self,
        number: usize,
        atom: &Atom,
        moment: &Moment<'_>,
        see: &mut dyn FnMut(Value, Of<'w>),
    ) {
        let whole = |number: u64| Value::Number(Number::Int(number.into()));
        match &atom.what {
            What::Open(functions) => {
                for open in self.open.values().flatten().filter(|open| functions.contains(&open.key)) {
                    see(whole(moment.now.saturating_sub(open.begin)), Of::Open(open));
                }
            }
            What::Rate(_) => {
                let rate = self.rates.get(&number).map_or(0, |rate| rate.at(moment.now));
                see(whole(rate), Of::Moment);
            }
            What::Idle(functions) => {
                let last = if functions.is_some() { self.idle.get(&number).copied() } else { self.last };
                if let Some(last) = last {
                    see(whole(moment.now.saturating_sub(last)), Of::Moment);
                }
            }
            What::Sampled(sampled) => {
                let (_, times) = sampled.dimension();
                for ((device, _), values) in self.latest.iter().filter(|((_, q), _)| *q == sampled.quantity) {
                    let Some(device) = self.devices.get(device) else { continue };
                    // Of processors, all of them: those of each are theirs, too.
                    let whole = sampled.quantity != Quantity::Cpu || device.name == HOST;
                    let meant = sampled.index.is_none_or(|index| index == device.index);
                    if device.host == sampled.host && meant && whole {
                        let value = values.get(sampled.field).copied().unwrap_or(0);
                        see(Value::Number(Number::Int(i128::from(value) * times)), Of::Device(device));
                    }
                }
            }
            What::Command(set, of) => {
                let ran = moment.command.filter(|ran| set.has(ran.kind));
                ran.and_then(|ran| ran.value(*of)).into_iter().for_each(|value| see(value, Of::Moment));
            }
            What::Crash => {
                if let Some(exit) = self.exit {
                    let signal = if let Exit::Signal(signal) = exit { signal } else { 0 };
                    see(Value::Number(Number::Int(signal.into())), Of::Moment);
                }
            }
            What::Exit => {
                if let Some(Exit::Code(code)) = self.exit {
                    see(Value::Number(Number::Int(code.into())), Of::Moment);
                }
            }
            _ => {
                let value = moment.call.as_ref().and_then(|call| value_of(&atom.what, call, moment.now));
                value.into_iter().for_each(|value| see(value, Of::Moment));
            }
        }
    }

    fn fire(&mut self, bound: &Bound, trigger: usize, moment: &Moment<'_>) {
        let Some(state) = self.states.get_mut(trigger) else { return };
        state.fired += 1;
        if let Some(pending) = &mut state.pending {
            pending.again += 1;
            return;
        }
        let fired = self.describe(bound, trigger, moment);
        if let Some(state) = self.states.get_mut(trigger) {
            state.pending = Some(fired);
        }
    }

    /// Says what made a trigger true.
    fn describe(&self, bound: &Bound, trigger: usize, moment: &Moment<'_>) -> Fired {
        let mut fired = Fired { time_ns: moment.now, ..Fired::default() };
        let Some(of) = bound.triggers.get(trigger) else { return fired };
        fired.trigger.clone_from(&of.text);
        if let Some(call) = &moment.call {
            name(&mut fired, call.who, call.api, &call.need.name);
        }
        if let Some(ran) = moment.command {
            (fired.pid, fired.tid) = (Some(ran.pid.into()), Some(ran.tid.into()));
            fired.function = ran.name().to_owned();
        }
        let mut said = Vec::new();
        for number in &of.atoms {
            let Some(atom) = bound.atoms.get(*number).filter(|atom| !matches!(atom.what, What::Name { .. }))
            else {
                continue;
            };
            let api = moment.call.as_ref().map_or(usize::MAX, |call| call.key.0);
            let mut done = false;
            self.visit(*number, atom, moment, &mut |value, of| {
                if done || !passes(&value, &atom.test, api) {
                    return;
                }
                done = true;
                let mut text = format!("{} = {}", atom.label, shown(atom, &value, moment));
                match of {
                    Of::Open(open) if moment.call.is_none() => {
                        let (api, needs) = match bound.apis.get(open.key.0) {
                            Some((api, needs)) => (&**api, needs.get(&open.key.1)),
                            None => ("", None),
                        };
                        name(&mut fired, &open.who, api, needs.map_or("", |need| &need.name));
                    }
                    Of::Device(device) => text.push_str(&format!(" ({})", device.name)),
                    Of::Open(_) | Of::Moment => {}
                }
                said.push(text);
            });
        }
        fired.value = said.join(", ");
        fired
    }

    /// Returns whether a trigger that has fired may have its snapshot now.
    pub fn is_due(&self, now: u64) -> bool {
        let rested =
            |state: &State| state.served.is_none_or(|served| now.saturating_sub(served) >= self.rest);
        self.states.iter().any(|s| s.pending.is_some() && s.snapshots < self.bound.most && rested(s))
    }

    /// Returns whether a trigger has fired that has no snapshot of it yet, and may have one.
    pub fn is_pending(&self) -> bool {
        self.states.iter().any(|state| state.pending.is_some() && state.snapshots < self.bound.most)
    }

    /// A snapshot begins now: returns what fired since the one before.
    pub fn take(&mut self, now: u64) -> Vec<Fired> {
        let mut taken = Vec::new();
        for state in self.states.iter_mut().filter(|state| state.pending.is_some()) {
            taken.extend(state.pending.take());
            state.snapshots += 1;
            state.served = Some(now);
        }
        taken
    }

    /// Returns what each trigger has done.
    pub fn accounts(&self) -> Vec<Account> {
        let each = self.bound.triggers.iter().zip(&self.states);
        let account = |(trigger, state): (&super::bind::BoundTrigger, &State)| Account {
            trigger: trigger.text.clone(),
            fired: state.fired,
            snapshots: state.snapshots,
            limited: state.pending.is_some() && state.snapshots >= self.bound.most,
        };
        each.map(account).collect()
    }
}

/// Names the call that fired a trigger.
fn name(fired: &mut Fired, who: &Identity, api: &str, function: &str) {
    let text = who.name.split(|byte| *byte == 0).next().unwrap_or_default();
    fired.pid = Some(who.pid.into());
    fired.tid = Some(who.tid.into());
    fired.thread = String::from_utf8_lossy(text).into_owned();
    api.clone_into(&mut fired.api);
    function.clone_into(&mut fired.function);
}

/// Returns a property of a call that has ended; none if it has none such, or that is not known.
fn value_of(what: &What, call: &Ended<'_>, now: u64) -> Option<Value> {
    if !what.is_of(call.key) {
        return None;
    }
    let whole = |number: u64| Some(Value::Number(Number::Int(number.into())));
    let name = |bytes: &[u8]| {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(Value::Text(String::from_utf8_lossy(text).into_owned()))
    };
    match what {
        What::Name { .. } => Some(Value::Text(call.need.name.to_string())),
        What::Api(_) => Some(Value::Text(call.api.to_owned())),
        What::Thread(_) => name(&call.who.name),
        What::Pid(_) => whole(call.who.pid.into()),
        What::Tid(_) => whole(call.who.tid.into()),
        What::Duration(_) => whole(now.saturating_sub(call.begin?)),
        What::Field(members) => {
            let member = members.get(&call.key)?;
            member.place.read(if member.at_exit { call.exit } else { call.entry? })
        }
        What::Failed(members) => {
            let member = members.get(&call.key)?;
            match member.place.read(call.exit)? {
                Value::Number(code) => whole(member.is_failure(code).into()),
                Value::Text(_) => None,
            }
        }
        _ => None,
    }
}

/// Returns whether a value is as it must be. `api` is that of its call.
fn passes(value: &Value, check: &Check, api: usize) -> bool {
    match (value, check) {
        (Value::Number(number), Check::Truth) => !number.is_zero(),
        (Value::Number(number), Check::Number(op, limit)) => holds(*number, *op, *limit),
        (Value::Number(number), Check::Named(op, limits)) => {
            limits.get(&api).is_some_and(|limit| holds(*number, *op, *limit))
        }
        (Value::Text(text), Check::Text(equal, glob)) => glob_matches(glob, text) == *equal,
        _ => false,
    }
}

fn holds(value: Number, op: Op, limit: Number) -> bool {
    let Some(order) = value.compare(limit) else { return false };
    match op {
        Op::Equal => order.is_eq(),
        Op::Unequal => order.is_ne(),
        Op::Less => order.is_lt(),
        Op::AtMost => order.is_le(),
        Op::More => order.is_gt(),
        Op::AtLeast => order.is_ge(),
    }
}

/// Returns a value as people read it.
fn shown(atom: &Atom, value: &Value, moment: &Moment<'_>) -> String {
    let number = match value {
        Value::Text(text) => return format!("{text:?}"),
        Value::Number(number) => *number,
    };
    let members = match &atom.what {
        What::Crash => return format!("signal {number}"),
        What::Failed(members) => {
            let code = moment.call.as_ref().and_then(|call| members.get(&call.key)?.place.read(call.exit));
            return match code {
                Some(Value::Number(code)) => named(members, code, moment),
                _ => "true".to_owned(),
            };
        }
        What::Field(members) => members,
        _ => return atom.dimension.show(number),
    };
    named(members, number, moment)
}

/// Returns the name of a field's value, if it has one, and the value.
fn named(members: &HashMap<Key, super::rule::Member>, value: Number, moment: &Moment<'_>) -> String {
    let names = moment.call.as_ref().and_then(|call| members.get(&call.key)?.names.as_ref());
    let name = |names: &super::rule::Names| {
        let found = names.iter().find(|(_, known)| Number::Int((*known).into()) == value)?;
        Some(format!("{} ({value})", found.0))
    };
    names.and_then(name).unwrap_or_else(|| Dimension::Plain.show(value))
}

/// Whether a process has ended, or does: not where it goes on as another program.
fn is_ending(pid: u32) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{pid}/stat")) else { return true };
    let text = String::from_utf8_lossy(&stat);
    // The name is in parentheses, and may have some itself; behind it are the state and, as the seventh word, the flags.
    let mut words = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let is_dead = words.next().is_some_and(|state| matches!(state, "Z" | "X"));
    let flags = words.nth(5).and_then(|word| word.parse::<u64>().ok());
    is_dead || flags.is_some_and(|flags| flags & EXITING != 0)
}
