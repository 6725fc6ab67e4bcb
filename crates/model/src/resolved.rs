//! The finished model: prototypes and knowledge in one.
//!
//! It is what the code generator reads, what the interposer library carries
//! in its `.hetrace.model` section, and what a trace keeps a copy of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::extracted::{EnumGroup, Kind, Registry, Type};
use crate::function::Function;
use crate::listed::Listed;
use crate::memory::Holders;
use crate::one_or_more;
use crate::param::Follow;

/// One API, ready to use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Short name, which is the name of its folder.
    pub api: String,
    /// How people spell it, for headings.
    #[serde(default)]
    pub title: String,
    /// What OTF2 calls the programming model, where it knows it (`MPI`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paradigm: Option<String>,
    /// Where the prototypes come from.
    pub registry: Registry,
    /// How the API is intercepted.
    pub interpose: Interpose,
    /// The enumeration that names results.
    pub errors: String,
    /// What values of a type go through before they are recorded: functions of the API's folder, by the type's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recorded: BTreeMap<String, Recorded>,
    /// Named types.
    pub types: Listed<Type>,
    /// Named values.
    pub enums: Listed<EnumGroup>,
    /// Type of a query's value by the query's name.
    pub info: BTreeMap<String, String>,
    /// What pointer members of structs point at, by struct and member.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, BTreeMap<String, Follow>>,
    /// Which member of a union is meant, by the union's type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unions: BTreeMap<String, Union>,
    /// Structs that may be linked to others by their first members, by the enumeration that distinguishes them:
    /// value and type, by value. Such a struct begins with a 32-bit tag, and at byte 8 has the address of the next one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub chains: BTreeMap<String, Vec<(u32, String)>>,
    /// How types of members of tables name the functions that the API hands out in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_out: Option<HandedOut>,
    /// Results that report a state and no failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<String>,
    /// Bytes of an element by the name of its type, for collectives.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub element_sizes: BTreeMap<String, u32>,
    /// How commands are timed.
    #[serde(default, skip_serializing_if = "Timing::is_event")]
    pub timing: Timing,
    /// Why commands have no times, if nobody times them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimed: Option<String>,
    /// The parameter through which functions yield an event for their command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// What the API calls a queue; `queue` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_word: Option<String>,
    /// Values in place of a queue's handle that mean the default queue, beside NULL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_queues: Vec<u64>,
    /// The handle type of what all other objects belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Which types say where memory is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holders: Option<Holders>,
    /// All functions; a function's index is its number.
    pub functions: Vec<Function>,
}

/// How commands are timed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timing {
    /// Functions that enqueue a command can yield an event for it.
    #[default]
    Event,
    /// The whole call is handed to the API's own code.
    Around,
}

impl Timing {
    fn is_event(&self) -> bool {
        *self == Timing::Event
    }
}

/// How to determine which member of a union is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Union {
    /// Names of the member beside the union, or of the parameter, whose value
    /// selects it; the first that is present counts.
    pub tag: Vec<String>,
    /// The names of the values for which each member is meant.
    pub members: BTreeMap<String, Vec<String>>,
}

/// How the name of a function pointer's type names the function: `toy_pfnOpen_t` is `toyOpen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandedOut {
    /// What is in the type's name only (`_pfn`).
    pub infix: String,
    /// What stands behind it (`_t`).
    pub suffix: String,
}

impl HandedOut {
    /// Returns the function that a type's name means, if it has this form.
    pub fn function(&self, ty: &str) -> Option<String> {
        let (api, name) = ty.strip_suffix(self.suffix.as_str())?.split_once(self.infix.as_str())?;
        Some(format!("{api}{name}"))
    }
}

/// How programs reach the API, and so how the tracer gets between.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interpose {
    /// Environment variable to which the library's path is appended, when the
    /// API's loader has a layer mechanism.
    pub layer_variable: Option<String>,
    /// Text found in the loader's file when it honours that variable.
    pub layer_marker: Option<String>,
    /// Environment variable that names the one tool which programs load by
    /// themselves when they use the API: the library is never preloaded, and a
    /// tool that the user has named there stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injection_variable: Option<String>,
    /// How the API's runtime finds tools, where it takes the first of a list: the library is never preloaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Tools>,
    /// The API calls the library, and not the other way round: it reports a call's begin and its end apart, so
    /// there are no functions to wrap.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reported: bool,
    /// The parameter by which functions say where in the program they are called: the address that is returned to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Sonames of the libraries that export the API.
    pub libraries: Vec<String>,
    /// A function's address looked up by name is exchanged only if the library
    /// it lies in also exports this one.
    pub signature: Option<String>,
    /// Libraries of others export functions of the same names: a call is the API's only if what it reaches is in
    /// a library that exports `signature`, and goes on unrecorded elsewhere.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Libraries, or files by their absolute paths, of which a program needs one
    /// to use the API: where none is on the machine or the program's search path,
    /// the API's library is not loaded. Empty if it always is.
    #[serde(with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// Names of the loader's dispatch table in order, for a layer.
    pub dispatch: Vec<String>,
}

/// How a runtime finds the one tool that it reports to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Environment variable with the paths of tools, separated by colons, of which the runtime takes the first that
    /// wants to be one. Our library stands before the user's, and hands on to them what it is reported.
    pub list: String,
    /// Environment variable and the value by which the user wants no tool at all.
    pub refused: [String; 2],
    /// The function that makes a tool of a library. The runtime asks the program's own before it reads the list, so a
    /// program with one can't be traced.
    pub entry: String,
    /// Libraries that are such a runtime and have no tools: what they execute is not traced.
    #[serde(default)]
    pub mute: Vec<String>,
}

/// How values of a type are recorded that are not all what is in the register.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The function of the API's `src/measure.rs` that they go through.
    pub by: String,
    /// The enumeration with those that stand for something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<String>,
}

/// Where types and enumerations begin in a model's text, and where they end.
const TYPES: &str = "\n\"types\":[\n";
const ENUMS: &str = "\n],\n\"enums\":[\n";
const BEHIND: &str = "\n],\n";

impl Model {
    /// Reads what is before the functions' lines in a model's text, up to the bracket that they begin behind: types and
    /// enumerations when they are asked for. They are taken for what they should be, so the text must be known to be as it
    /// was written. None if it is not of that form.
    pub fn of_frame(text: &str) -> Option<Self> {
        let cut = |text: &str, by: &str| memchr::memmem::find(text.as_bytes(), by.as_bytes());
        let (head, rest) = text.split_at_checked(cut(text, TYPES)?)?;
        let rest = rest.get(TYPES.len()..)?;
        let (types, rest) = rest.split_at_checked(cut(rest, ENUMS)?)?;
        let rest = rest.get(ENUMS.len()..)?;
        let (enums, rest) = rest.split_at_checked(cut(rest, BEHIND)?)?;
        let rest = rest.get(BEHIND.len()..)?;
        let others = [head, TYPES, ENUMS, BEHIND, rest, "]}"].concat();
        let model: Self = serde_json::from_str(&others).ok()?;
        Some(Self { types: Listed::later(types)?, enums: Listed::later(enums)?, ..model })
    }

    /// Returns what the API calls a queue.
    pub fn queue_word(&self) -> &str {
        self.queue_word.as_deref().unwrap_or("queue")
    }

    /// Whether calls name devices by their number, from 0, and not by a handle; none if the API has no
    /// type for devices.
    pub fn numbers_devices(&self) -> Option<bool> {
        let named = &self.holders.as_ref().filter(|holders| !holders.device.is_empty())?.device;
        let kind = self.types.get(named)?.kind;
        Some(matches!(kind, Kind::Int | Kind::Uint))
    }

    /// Returns whether this value in place of a queue's handle means the default queue.
    pub fn is_default_queue(&self, handle: u64) -> bool {
        handle == 0 || self.default_queues.contains(&handle)
    }
}
