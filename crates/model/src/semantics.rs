//! What people know about an API and no header says: `semantics.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::resolved::Interpose;

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Semantics {
    /// The API's short name; must be that of `api.json`.
    pub api: String,
    /// How people spell it, for headings.
    #[serde(default)]
    pub title: String,
    /// How the API is intercepted.
    pub interpose: Interpose,
    /// The enumeration that names a function's result (`cl_error`).
    pub errors: String,
    /// Defaults for parameters by name and type; the first that fits is taken.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
    /// Type of the value that a query yields, by the query's name:
    /// `CL_DEVICE_NAME = "string"`, `CL_DEVICE_MAX_WORK_ITEM_SIZES = "size_t[]"`,
    /// `CL_CONTEXT_PROPERTIES = "cl_context_properties{}"` (pairs of name and
    /// value up to a 0), `CL_MEM_HOST_PTR = "void*"` (an address).
    #[serde(default)]
    pub info: BTreeMap<String, String>,
    /// What the pointer members of structs point at, by struct and member; the
    /// forms are those of parameters without a direction, and lengths are
    /// expressions over the other members. Under the struct `*` stand defaults,
    /// by the member's name or by its C type (`"void *"`).
    #[serde(default, rename = "type")]
    pub types: BTreeMap<String, BTreeMap<String, String>>,
    /// Which member of a union is meant, by the union's type.
    #[serde(default, rename = "union")]
    pub unions: BTreeMap<String, crate::Union>,
    /// Results other than success that tell a state and no failure
    /// (`CUDA_ERROR_NOT_READY`).
    #[serde(default)]
    pub states: Vec<String>,
    /// Bytes of an element by the name of its type.
    #[serde(default)]
    pub element_sizes: BTreeMap<String, u32>,
    /// How commands are timed: `event` if each function that enqueues one can
    /// yield an event for it, `around` if the whole call is handed to
    /// `crate::device::command`.
    #[serde(default)]
    pub timing: crate::Timing,
    /// Names of the parameters that hold a queue; the first that a function has
    /// is where its command goes.
    #[serde(default = "default_queues")]
    pub queues: Vec<String>,
    /// What stands before the names of functions that do the same
    /// (`pncclReduce`): they need no entry of their own, either.
    #[serde(default)]
    pub prefixes: Vec<String>,
    /// The handle type of what all other objects belong to: those of one may not be
    /// used with those of another.
    pub context: Option<String>,
    /// Which types say where memory is.
    pub holders: Option<crate::Holders>,
    /// What functions make the place of the thread's later calls, by the function's name.
    #[serde(default)]
    pub current: BTreeMap<String, crate::Current>,
    /// Memory that functions make, by the function's name.
    #[serde(default)]
    pub memory: BTreeMap<String, crate::Memory>,
    /// Bytes that functions move or set, by the function's name.
    #[serde(default)]
    pub transfer: BTreeMap<String, crate::Transfer>,
    /// Functions that end objects and memory which they do not name.
    #[serde(default)]
    pub resets: Vec<String>,
    /// Functions for which a hand-written one of the API's folder stands, and why.
    #[serde(default)]
    pub hook: BTreeMap<String, String>,
    /// Knowledge about single functions. It also serves functions that differ
    /// in the suffix of a version or a default stream only (`cuMemAlloc_v2`,
    /// `cuMemcpy_ptds`) and have no entry of their own; of these, parameters
    /// that they lack are passed over.
    #[serde(default)]
    pub function: BTreeMap<String, FunctionSemantics>,
}

impl Semantics {
    /// What is known of a function, and under which name.
    pub fn of<'s, 'n>(&'s self, name: &'n str) -> Option<(&'n str, &'s FunctionSemantics)> {
        self.names(name).find_map(|n| Some((n, self.function.get(n)?)))
    }

    /// What a table has for a function.
    pub(crate) fn in_table<'s, T>(&'s self, table: &'s BTreeMap<String, T>, name: &str) -> Option<&'s T> {
        self.names(name).find_map(|n| table.get(n))
    }

    /// Whether a function's default queue is one of each thread.
    pub(crate) fn has_own_queue(name: &str) -> bool {
        name.ends_with("_ptsz") || name.ends_with("_ptds")
    }

    /// The names under which a function may be described.
    pub(crate) fn names<'s, 'n: 's>(&'s self, name: &'n str) -> impl Iterator<Item = &'n str> + 's {
        let other = self.prefixes.iter().filter_map(|p| name.strip_prefix(p.as_str()));
        std::iter::once(name).chain(other).flat_map(names)
    }
}

/// A function's name, then without the suffix of its default stream, then
/// without that of its version.
fn names(name: &str) -> impl Iterator<Item = &str> {
    let stream = name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds"));
    let bare = stream.unwrap_or(name);
    let version =
        bare.rsplit_once("_v").filter(|(_, v)| v.bytes().all(|b| b.is_ascii_digit()) && !v.is_empty());
    [Some(name), stream, version.map(|(n, _)| n)].into_iter().flatten()
}

/// A default for all parameters of this name and type.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The parameter's name, or `*` for any.
    pub param: String,
    /// The parameter's C type; any when absent.
    #[serde(rename = "type")]
    pub ctype: Option<String>,
    /// Rule applies only if the function also has these parameters.
    #[serde(default)]
    pub with: Vec<String>,
    /// The description, as in [`crate::ParamSpec`].
    pub is: String,
}

impl Rule {
    /// Whether this rule speaks about that parameter of that function.
    pub fn fits(&self, function: &crate::ExtractedFunction, param: &crate::ExtractedParam) -> bool {
        (self.param == "*" || self.param == param.name)
            && self.ctype.as_ref().is_none_or(|t| squeeze(t) == squeeze(&param.ctype))
            && self.with.iter().all(|w| function.params.iter().any(|q| q.name == *w))
    }
}

/// C types differ in their spaces only by taste.
fn squeeze(ctype: &str) -> String {
    ctype.split_whitespace().collect()
}

/// Knowledge about one function.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionSemantics {
    /// What it does; see [`crate::ROLES`].
    #[serde(default)]
    pub roles: Vec<String>,
    /// Parameter descriptions, as in [`crate::ParamSpec`].
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// The enumeration of the result, when it is not the API's `errors`.
    pub returns: Option<String>,
    /// What the function enqueues.
    pub command: Option<crate::Command>,
    /// The parameter whose truth makes the call wait for the device.
    pub blocking: Option<String>,
    /// The handle type that a success creates.
    pub creates: Option<String>,
    /// Equal calls in a row with equal answers may become one record, as those of
    /// polls do.
    #[serde(default)]
    pub folds: bool,
    /// The operation among several ranks that it enqueues.
    pub collective: Option<crate::Collective>,
    /// The communicator that a success makes.
    pub communicator: Option<crate::Communicator>,
    /// The call can't fail, whatever it answers (`cudaGetLastError`).
    #[serde(default)]
    pub never_fails: bool,
}

fn default_queues() -> Vec<String> {
    vec!["command_queue".to_owned()]
}
