//! What stands on the left of a comparison.

use std::ops::Range;

use hetrace_format::telemetry::Quantity;

use super::TriggerError;
use super::command::{self, Of, Set, meant};
use super::near::hint;
use super::syntax::Test;
use super::units::Dimension;

/// What of a call is meant, or of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Property {
    /// Its function.
    Name,
    /// The API of its function.
    Api,
    /// The name of its thread.
    Thread,
    /// Its process.
    Pid,
    /// Its thread.
    Tid,
    /// How long it took.
    Duration,
    /// The code by which it says whether it succeeded.
    Result,
    /// What it returned.
    Returned,
    /// It did not succeed.
    Failed,
    /// How many ended in the last second.
    Rate,
    /// How long one has not returned.
    Open,
    /// How long there was none.
    Idle,
    /// An argument, or what was written behind one.
    Argument(String),
}

/// Words that mean a property.
pub const PROPERTIES: &[(&str, Property)] = &[
    ("name", Property::Name),
    ("api", Property::Api),
    ("thread", Property::Thread),
    ("pid", Property::Pid),
    ("tid", Property::Tid),
    ("duration", Property::Duration),
    ("result", Property::Result),
    ("returned", Property::Returned),
    ("failed", Property::Failed),
    ("rate", Property::Rate),
    ("open", Property::Open),
    ("idle", Property::Idle),
];

/// The left side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The program was ended by a signal.
    Crash,
    /// The program's exit status.
    Exit,
    /// What is sampled.
    Sampled(Sampled),
    /// Something of commands on devices.
    Command(Set, Of),
    /// Something of calls of these functions, or of all.
    Call {
        /// A glob, and its bytes.
        glob: Option<(String, Range<usize>)>,
        /// What of them.
        property: Property,
        /// The bytes of that.
        at: Range<usize>,
    },
}

/// A value of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    /// The host's, not a device's.
    pub host: bool,
    /// Of the device with this number only.
    pub index: Option<u32>,
    /// Which.
    pub quantity: Quantity,
    /// Number of the value in it.
    pub field: usize,
}

impl Sampled {
    /// Returns what its values are of, and how many bases one is.
    pub fn dimension(self) -> (Dimension, i128) {
        match self.quantity {
            Quantity::Power => (Dimension::Power, 1),
            Quantity::Energy => (Dimension::Energy, 1),
            Quantity::Clocks => (Dimension::Frequency, 1_000),
            Quantity::Frequency => (Dimension::Frequency, 1),
            Quantity::Utilization => (Dimension::Share, 10),
            Quantity::Pressure | Quantity::Cpu => (Dimension::Share, 1),
            Quantity::Memory | Quantity::HostMemory | Quantity::Resident => (Dimension::Bytes, 1),
            Quantity::Temperature => (Dimension::Temperature, 1),
            Quantity::PerformanceState | Quantity::Throttle => (Dimension::Plain, 1),
            Quantity::Nvlink | Quantity::Pcie | Quantity::Disk | Quantity::Network => (Dimension::Traffic, 1),
        }
    }
}

/// Returns whether a quantity is sampled of the host.
fn is_hosts(quantity: Quantity) -> bool {
    use Quantity::{Cpu, Disk, Frequency, HostMemory, Network, Pressure, Resident};
    matches!(quantity, Cpu | Frequency | HostMemory | Resident | Pressure | Disk | Network)
}

/// Returns the word for a quantity behind `gpu.` or `host.`.
fn word_of(quantity: Quantity) -> &'static str {
    if quantity == Quantity::HostMemory { "memory" } else { quantity.name() }
}

fn property_of(word: &str) -> Option<Property> {
    PROPERTIES.iter().find(|(name, _)| *name == word).map(|(_, property)| property.clone())
}

/// Reads the left side of a comparison of an expression.
pub fn subject(text: &str, test: &Test) -> Result<Subject, TriggerError> {
    let words: Vec<(&str, &Range<usize>)> = test.subject.iter().map(|(word, at)| (&**word, at)).collect();
    let call = |glob: Option<(&str, &Range<usize>)>, property, at: &Range<usize>| Subject::Call {
        glob: glob.map(|(word, at)| (word.to_owned(), at.clone())),
        property,
        at: at.clone(),
    };
    let argument = |word: &str| Property::Argument(word.to_owned());
    Ok(match *words.as_slice() {
        [("crash", _)] => Subject::Crash,
        [("exit", _)] => Subject::Exit,
        [(word, at)] => call(None, property_of(word).unwrap_or_else(|| argument(word)), at),
        [(set, _), (word, at)] if meant(command::SETS, set).is_some() => ran(text, set, word, at)?,
        [(device, _), ..] if device_of(device).is_some() => sampled(text, &words)?,
        [("arg", _), (word, at)] => call(None, argument(word), at),
        [glob, ("arg", _), (word, at)] => call(Some(glob), argument(word), at),
        [glob, (word, at)] => call(Some(glob), property_of(word).unwrap_or_else(|| argument(word)), at),
        _ => {
            return Err(TriggerError::new(
                text,
                test.subject_at(),
                "too many names: expected FUNCTION.PROPERTY, FUNCTION.arg.ARGUMENT or gpu.QUANTITY",
            ));
        }
    })
}

/// Says that a part is none of these.
fn lacks(whole: &str, wrong: &str, names: &[&str]) -> String {
    let near = hint(wrong, names.iter().copied());
    format!("`{whole}` has no `{wrong}`{near}; there are: {}", names.join(", "))
}

/// Reads what is compared of commands on devices.
fn ran(text: &str, set: &str, word: &str, at: &Range<usize>) -> Result<Subject, TriggerError> {
    let found = meant(command::SETS, set).zip(meant(command::PROPERTIES, word));
    found.map(|(set, of)| Subject::Command(set, of)).ok_or_else(|| {
        let names: Vec<&str> = command::PROPERTIES.iter().map(|(name, _)| *name).collect();
        TriggerError::new(text, at.clone(), lacks(set, word, &names))
    })
}

/// Returns whether a word means the host, or devices, and which.
fn device_of(word: &str) -> Option<(bool, Option<u32>)> {
    match word.strip_prefix("gpu") {
        Some("") => Some((false, None)),
        Some(number) => number.parse().ok().map(|number| (false, Some(number))),
        None => (word == "host").then_some((true, None)),
    }
}

fn sampled(text: &str, words: &[(&str, &Range<usize>)]) -> Result<Subject, TriggerError> {
    let fail = |at: &Range<usize>, what: String| Err(TriggerError::new(text, at.clone(), what));
    let Some((&(device, whole), rest)) = words.split_first() else { return fail(&(0..0), String::new()) };
    let Some((host, index)) = device_of(device) else { return fail(whole, String::new()) };
    let all = || Quantity::ALL.into_iter().filter(move |quantity| is_hosts(*quantity) == host);
    let Some((&(word, at), rest)) = rest.split_first() else { return fail(whole, String::new()) };
    let Some(quantity) = all().find(|quantity| word_of(*quantity) == word) else {
        let names: Vec<&str> = all().map(word_of).collect();
        return fail(at, lacks(device, word, &names));
    };
    let fields = quantity.fields();
    let field = match (fields, rest) {
        ([_], []) => Some(0),
        (fields, [(word, _)]) => fields.iter().position(|field| field == word),
        _ => None,
    };
    match (field, rest) {
        (Some(field), _) => Ok(Subject::Sampled(Sampled { host, index, quantity, field })),
        (None, []) => {
            let each: Vec<String> = fields.iter().map(|field| format!("{device}.{word}.{field}")).collect();
            fail(at, format!("`{word}` has several values: {}", each.join(", ")))
        }
        (None, [(wrong, at), ..]) => fail(at, lacks(word, wrong, fields)),
    }
}
