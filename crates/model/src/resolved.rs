//! The finished model: prototypes and knowledge in one.
//!
//! It is what the code generator reads, what the interposer library carries
//! in its `.hetrace.model` section, and what a trace keeps a copy of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::expr::Expr;
use crate::extracted::{EnumGroup, Kind, Registry, Type};
use crate::made::{Engines, Made};
use crate::memory::{Current, Flags, Holders, Memory, Transfer};
use crate::one_or_more;
use crate::param::Follow;
use crate::params::{self, Params};
use crate::role::Roles;

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
    pub types: Vec<Type>,
    /// Named values.
    pub enums: Vec<EnumGroup>,
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

/// One function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// API version it appeared in, empty for an extension's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// API version that deprecated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// The extension that brings it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<String>,
    /// What it does; see [`crate::ROLES`].
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    pub roles: Roles,
    /// C type of the result.
    pub returns: String,
    /// The enumeration that names the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_values: Option<String>,
    /// How success is distinguished from failure.
    pub success: Success,
    /// Its parameters.
    pub params: Params,
    /// What it enqueues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Box<Command>>,
    /// The hand-written function that stands for the real one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// The parameter whose truth makes the call wait for the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocking: Option<String>,
    /// The handle type that a success creates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creates: Option<String>,
    /// The API version in which the symbol got this signature; libraries before
    /// it export another one under the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
    /// Equal calls in a row with equal answers may become one record, though the
    /// function is no poll: programs ask it again and again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub folds: bool,
    /// The operation among several processes or devices that it enqueues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collective: Option<Box<Collective>>,
    /// The communicator that a success makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub communicator: Option<Box<Communicator>>,
    /// The memory that a success makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The bytes that it moves or sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Box<Transfer>>,
    /// What bits of a parameter say of what it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<Flags>,
    /// What is known of the object that it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Box<Made>>,
    /// Which engines a device has, of a query that says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engines: Option<Box<Engines>>,
    /// What takes its place, of a deprecated one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
    /// A success ends objects and memory that it does not name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resets: bool,
    /// What it makes the place of the thread's later calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Current>,
    /// The parameter with the queue, of a function that enqueues and names no command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Its default queue is one of each thread, which serializes with no other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_queue: bool,
    /// What it names, of a function with the role `name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Named>,
    /// How its further arguments are passed on, of one that takes any number of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variadic: Option<Variadic>,
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

/// How the arguments behind the named parameters of a function are passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variadic {
    /// How many of the parameters the prototype names.
    pub named: usize,
    /// Registers behind all parameters that are passed on, and not recorded.
    pub passed: usize,
}

/// What programs can name in every API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Named {
    /// A thread, by the operating system's number.
    Thread,
    /// A queue, by the handle that its API has for it.
    Queue,
}

/// An operation among the ranks of a communicator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Collective {
    /// `all-reduce`, `broadcast`, `reduce`, `all-gather`, `reduce-scatter`,
    /// `all-to-all`, `gather`, `scatter`, `barrier`, `send` or `receive`; `put` or `get` if the other rank does nothing for
    /// it.
    pub operation: String,
    /// The parameter with the number of elements that each rank gives; empty if it is one, or none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub count: String,
    /// The parameter with the elements' type, whose size is in
    /// [`Model::element_sizes`]; empty if `of` says it, or nothing is moved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub element: String,
    /// The elements' type, by its name in [`Model::element_sizes`], of a function that is named after it. In
    /// `semantics.toml` `*` stands for the one between underscores in the function's name: `toy_float_put`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The parameter with the communicator; empty if it is the one whose handle is 0.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub communicator: String,
    /// The parameter with the root's or the other's rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
}

/// How a communicator comes to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Communicator {
    /// The parameter through which its handle is returned.
    pub handle: String,
    /// The parameter with the number of ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// The parameter with the caller's rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<String>,
    /// The parameter with the id that all ranks share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The parameter with the communicator that it is made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

impl Model {
    /// Returns what the API calls a queue.
    pub fn queue_word(&self) -> &str {
        self.queue_word.as_deref().unwrap_or("queue")
    }

    /// Whether calls name devices by their number, from 0, and not by a handle; none if the API has no
    /// type for devices.
    pub fn numbers_devices(&self) -> Option<bool> {
        let named = &self.holders.as_ref().filter(|holders| !holders.device.is_empty())?.device;
        let kind = self.types.iter().find(|t| t.name == *named)?.kind;
        Some(matches!(kind, Kind::Int | Kind::Uint))
    }

    /// Returns whether this value in place of a queue's handle means the default queue.
    pub fn is_default_queue(&self, handle: u64) -> bool {
        handle == 0 || self.default_queues.contains(&handle)
    }
}

impl Function {
    /// Reads a function's line of a model's text, its parameters when they are asked for: they are taken for what they
    /// should be, so the text must be known to be as it was written. None if the line is not understood.
    pub fn of_line(line: &str) -> Option<Self> {
        let [before, list, behind] = params::cut(line)?;
        let function: Function = serde_json::from_str(&[before, "[]", behind].concat()).ok()?;
        Some(Self { params: Params::later(list), ..function })
    }

    /// Returns whether equal calls in a row may become one record.
    pub fn may_fold(&self) -> bool {
        self.folds || self.has_role("poll")
    }

    /// Returns whether the function has this role.
    #[inline]
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.has(role)
    }
}

/// How a call reports success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Success {
    /// The result is 0.
    ReturnZero,
    /// The result is not NULL.
    ReturnNonNull,
    /// This output parameter is 0.
    OutZero(String),
    /// The call can't fail.
    Always,
}

/// A command that a function enqueues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// `kernel`, `read`, `write`, `copy`, `fill`, `map`, `unmap`, `migrate`,
    /// `marker`, `barrier`, `native`, `free`, `acquire`, `release`, `other`.
    pub kind: String,
    /// What knows kind and memory better than `kind`, `from` and `to`, by the arguments: a function of
    /// `crate::measure` (`toy_direction(kind)`). Of the calls only; no trace has it.
    #[serde(default, skip_serializing)]
    pub known_by: Option<Expr>,
    /// Bytes moved or set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Expr>,
    /// The parameter with the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The parameter with the queue; none if the command goes to the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Groups in three dimensions, then items of a group in three dimensions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub geometry: Vec<Expr>,
    /// Dynamic shared memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Expr>,
    /// Where a copy reads: one of the ring's kinds of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where a copy or fill writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The parameter with the address from which a copy reads, by which an API may
    /// know the memory better than by the function's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The parameter with the address to which a copy writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = concat!(
        r#"{"name":"toyRun","roles":["launch"],"returns":"int","success":"always","params":["#,
        r#"{"name":"n","type":"int"},{"name":"a","type":"int *","follow":{"how":"waived","why":"a \"]\" of [2]"}}],"#,
        r#""creates":"toy"}"#
    );

    #[test]
    fn a_line_is_the_same_function_later() {
        let whole: Function = serde_json::from_str(LINE).expect("a function");
        let lazy = Function::of_line(LINE).expect("a function");
        assert!(lazy.creates.as_deref() == Some("toy"));
        assert_eq!(lazy, whole);
        assert_eq!((lazy.params.len(), lazy.params[1].name.as_str()), (2, "a"));
        let names: Vec<&str> = (&lazy.params).into_iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["n", "a"]);
        let again = serde_json::to_string(&lazy).expect("a text");
        assert_eq!(serde_json::from_str::<Function>(&again).expect("a function"), whole);
    }

    #[test]
    fn one_without_parameters_and_what_is_no_function() {
        let line = r#"{"name":"toyEnd","returns":"int","success":"always","params":[]}"#;
        assert_eq!(Function::of_line(line).expect("a function").params.as_slice(), []);
        for wrong in
            ["", "{}", &LINE[..LINE.len() - 1], &LINE[..LINE.len() - 40], &LINE.replace("params", "p")]
        {
            assert!(Function::of_line(wrong).is_none(), "{wrong}");
        }
    }
}
