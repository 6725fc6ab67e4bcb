//! What people know about an API and no header says: `semantics.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::glob::glob_matches;
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
    /// What OTF2 calls the programming model, where it knows it (`MPI`).
    pub paradigm: Option<String>,
    /// How the API is intercepted.
    pub interpose: Interpose,
    /// The enumeration that names a function's result (`toy_error`).
    pub errors: String,
    /// Defaults for parameters by name and type; the first that fits is taken.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
    /// Type of the value that a query yields, by the query's name:
    /// `TOY_NAME = "string"`, `TOY_SIZES = "size_t[]"`, `TOY_PROPERTIES = "toy_properties{}"`
    /// (pairs of name and value up to a 0), `TOY_HOST_POINTER = "void*"` (an address).
    #[serde(default)]
    pub info: BTreeMap<String, String>,
    /// What the pointer members of structs point at, by struct and member; the
    /// forms are those of parameters without a direction, and lengths are
    /// expressions over the other members. Under the struct `*` stand defaults,
    /// by the member's name or by its C type (`"void *"`).
    #[serde(default, rename = "type")]
    pub types: BTreeMap<String, BTreeMap<String, String>>,
    /// How structs are linked to further ones by their first members.
    pub chain: Option<Chain>,
    /// How types of members of tables name the functions that the API hands out in them.
    pub handed_out: Option<crate::HandedOut>,
    /// Which member of a union is meant, by the union's type.
    #[serde(default, rename = "union")]
    pub unions: BTreeMap<String, crate::Union>,
    /// Results other than success that report a state and no failure
    /// (`TOY_NOT_READY`).
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
    /// Why commands have no times, of an API whose commands nobody times; reports of traces with such commands say it.
    pub untimed: Option<String>,
    /// The parameter through which functions yield an event for their command, where that is
    /// how commands are timed; those without it are not.
    pub event: Option<String>,
    /// Names of the parameters that hold a queue; the first that a function has
    /// is where its command goes.
    #[serde(default)]
    pub queues: Vec<String>,
    /// What the API calls a queue: `stream`; `queue` when absent.
    pub queue_word: Option<String>,
    /// Values in place of a queue's handle that mean the default queue, beside NULL.
    #[serde(default)]
    pub default_queues: Vec<u64>,
    /// Ends of names that make other versions or variants of a function.
    #[serde(default)]
    pub suffixes: Suffixes,
    /// What stands before the names of functions that do the same
    /// (`ptoyReduce`): they need no entry of their own, either.
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
    /// Numbers for values of enumerations, such as bytes for a format, by the table's and the value's name. Sizes
    /// of memory look them up as `table(value)`.
    #[serde(default)]
    pub numbers: BTreeMap<String, BTreeMap<String, u64>>,
    /// Memory that functions make, by the function's name.
    #[serde(default)]
    pub memory: BTreeMap<String, crate::Memory>,
    /// Bytes that functions move or set, by the function's name.
    #[serde(default)]
    pub transfer: BTreeMap<String, crate::Transfer>,
    /// What bits of a parameter say of what a function makes, by the function's name.
    #[serde(default)]
    pub flags: BTreeMap<String, crate::Flags>,
    /// What is known of the objects that functions make, by the function's name.
    #[serde(default)]
    pub made: BTreeMap<String, crate::Made>,
    /// Queries that say which engines a device has, by the function's name.
    #[serde(default)]
    pub engines: BTreeMap<String, crate::Engines>,
    /// What takes the place of a deprecated function, by the function's name.
    #[serde(default)]
    pub replaced: BTreeMap<String, String>,
    /// Types whose values are recorded as a function of the API's `src/measure.rs` returns them, by the type's
    /// name: what the program passes may be narrower than the type, by what the library is. All of it is passed on.
    #[serde(default)]
    pub recorded: BTreeMap<String, crate::Recorded>,
    /// Functions that end objects and memory which they do not name.
    #[serde(default)]
    pub resets: Vec<String>,
    /// Functions for which a hand-written one of the API's folder stands, and why: `--option: …` if it serves that
    /// option only, `always: …` if it must see calls that are not recorded, too.
    #[serde(default)]
    pub hook: BTreeMap<String, String>,
    /// Knowledge about many functions at once, by their names. The first that fits a function is taken,
    /// where that has no entry of its own; parameters that it lacks are passed over.
    #[serde(default, rename = "pattern")]
    pub patterns: Vec<Pattern>,
    /// Knowledge about single functions. It also serves functions that differ
    /// in a suffix only ([`Suffixes`]) and have no entry of their own; of these, parameters
    /// that they lack are passed over.
    #[serde(default)]
    pub function: BTreeMap<String, FunctionSemantics>,
}

impl Semantics {
    /// Returns what is known of a function, and under which name; none of a pattern.
    pub fn of<'s, 'n>(&'s self, name: &'n str) -> Option<(&'n str, &'s FunctionSemantics)> {
        let own = self.names(name).find_map(|n| Some((n, self.function.get(n)?)));
        own.or_else(|| Some(("", &self.patterns.iter().find(|p| p.fits(name))?.is)))
    }

    /// Returns what a table has for a function.
    pub(crate) fn in_table<'s, T>(&'s self, table: &'s BTreeMap<String, T>, name: &str) -> Option<&'s T> {
        self.names(name).find_map(|n| table.get(n))
    }

    /// Returns whether a function's default queue is one of each thread.
    pub(crate) fn has_own_queue(&self, name: &str) -> bool {
        self.suffixes.variant(name).is_some()
    }

    /// Returns the names under which a function may be described.
    pub(crate) fn names<'s, 'n: 's>(&'s self, name: &'n str) -> impl Iterator<Item = &'n str> + 's {
        let other = self.prefixes.iter().filter_map(|p| name.strip_prefix(p.as_str()));
        std::iter::once(name).chain(other).flat_map(|n| self.suffixes.names(n))
    }
}

/// Structs that begin with a tag and the address of the next one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// The first member: a value of an enumeration, which says what struct it is.
    pub tag: String,
    /// The second member: the next struct's address, or NULL.
    pub next: String,
    /// What is in the name of a value only: `TOY_KIND_BOX` is the struct `toy_box`.
    pub infix: String,
    /// What stands behind the struct's name.
    #[serde(default)]
    pub suffix: String,
    /// Structs of values that are named otherwise, by value.
    #[serde(default)]
    pub types: BTreeMap<String, String>,
}

impl Chain {
    /// Returns the name that the struct of a value has.
    pub fn type_of(&self, value: &str) -> String {
        let named = || value.replacen(&self.infix, "", 1).to_ascii_lowercase() + &self.suffix;
        self.types.get(value).cloned().unwrap_or_else(named)
    }
}

/// Ends of names that make other versions or variants of a function: `toyCopy_v2_ptsz`
/// does what `toyCopy` does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Suffixes {
    /// What stands before the number of a version (`_v`); none if names have no versions.
    pub version: Option<String>,
    /// What stands at the very end of variants whose default queue is one of each thread.
    pub own_queue: Vec<String>,
}

impl Suffixes {
    /// Returns the name without the suffix of a variant, if it has one.
    fn variant<'n>(&self, name: &'n str) -> Option<&'n str> {
        self.own_queue.iter().find_map(|suffix| name.strip_suffix(suffix.as_str()))
    }

    /// Returns a function's name, then without the suffix of its variant, then without that of its
    /// version.
    fn names<'n>(&self, name: &'n str) -> impl Iterator<Item = &'n str> + use<'n> {
        let variant = self.variant(name);
        let bare = variant.unwrap_or(name);
        let version = self.version.as_deref().and_then(|v| bare.rsplit_once(v));
        let version = version.filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()) && !n.is_empty());
        [Some(name), variant, version.map(|(n, _)| n)].into_iter().flatten()
    }
}

/// What is known of all functions that are named alike.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// Globs of `*` and `?` over whole names.
    pub names: Vec<String>,
    /// … and over those that `names` take by mistake.
    #[serde(default)]
    pub except: Vec<String>,
    /// The knowledge.
    pub is: FunctionSemantics,
}

impl Pattern {
    fn fits(&self, name: &str) -> bool {
        let any = |globs: &[String]| globs.iter().any(|glob| glob_matches(glob, name));
        any(&self.names) && !any(&self.except)
    }
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
    /// Globs over the names of the functions that it is for; all when absent.
    #[serde(default)]
    pub functions: Vec<String>,
    /// Rule applies only if the function also has these parameters.
    #[serde(default)]
    pub with: Vec<String>,
    /// The description, as in [`crate::ParamSpec`].
    pub is: String,
}

impl Rule {
    /// Returns whether this rule speaks about that parameter of that function.
    pub fn fits(&self, function: &crate::ExtractedFunction, param: &crate::ExtractedParam) -> bool {
        (self.param == "*" || self.param == param.name)
            && (self.functions.is_empty() || self.functions.iter().any(|g| glob_matches(g, &function.name)))
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
    /// What it names, of a function with the role `name`, where that is known in all APIs.
    pub names: Option<crate::Named>,
    /// Arguments that may follow the named parameters of a function which takes any number of them: each is one
    /// register, passed on whether it is there or not. `"size: long int"` is recorded as a parameter is, `"-"` is not.
    #[serde(default)]
    pub more: Vec<String>,
    /// The call can't fail, whatever it answers (`toyLastError`); as no call of an API that reports its calls itself.
    #[serde(default)]
    pub never_fails: bool,
}

#[cfg(test)]
mod tests {
    use super::Suffixes;

    #[test]
    fn one_entry_serves_versions_and_variants() {
        let suffixes = Suffixes { version: Some("_v".into()), own_queue: vec!["_ptsz".into()] };
        let names = |suffixes: &Suffixes, name| suffixes.names(name).collect::<Vec<_>>();
        assert_eq!(names(&suffixes, "toyCopy_v2_ptsz"), ["toyCopy_v2_ptsz", "toyCopy_v2", "toyCopy"]);
        assert_eq!(names(&suffixes, "toyCopy_v"), ["toyCopy_v"]);
        assert_eq!(names(&suffixes, "toyCopy_ptds"), ["toyCopy_ptds"]);
        assert_eq!(names(&Suffixes::default(), "toyCopy_v2_ptsz"), ["toyCopy_v2_ptsz"]);
    }
}
