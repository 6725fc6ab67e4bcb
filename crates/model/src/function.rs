//! A function of an API. A model has hundreds or thousands, and a program calls a few dozen, so who reads a trace
//! understands of most nothing but their names and roles, and which parts they have.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::command::{Collective, Command, Communicator};
use crate::listed::name_of;
use crate::made::{Engines, Made};
use crate::memory::{Current, Flags, Memory, Transfer};
use crate::param::Param;
use crate::params::{self, Params};
use crate::role::Roles;

/// One function: what is asked of all of them, and [`Details`] of those that are looked at.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it does; see [`crate::ROLES`].
    pub roles: Roles,
    later: Later,
    details: OnceLock<Box<Details>>,
}

/// Where details are read from that nobody has asked for yet.
#[derive(Clone, Default)]
struct Later {
    /// The function's line; empty if all was understood at once.
    line: Box<str>,
    /// Where the list of parameters begins in it.
    params: usize,
    /// One bit for each [`Part`] that it may have.
    parts: u8,
    /// Where the name of the type that it creates begins, if it has [`Part::Creates`].
    creates: usize,
}

/// Parts of [`Details`] for which reports look in all functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// [`Details::command`].
    Command,
    /// [`Details::queue`].
    Queue,
    /// [`Details::creates`].
    Creates,
    /// [`Details::memory`].
    Memory,
    /// [`Details::made`].
    Made,
    /// [`Details::collective`].
    Collective,
    /// [`Details::communicator`].
    Communicator,
}

impl Part {
    /// The part of a key.
    fn of(key: &[u8]) -> Option<Self> {
        match key {
            b"command" => Some(Part::Command),
            b"queue" => Some(Part::Queue),
            b"creates" => Some(Part::Creates),
            b"memory" => Some(Part::Memory),
            b"made" => Some(Part::Made),
            b"collective" => Some(Part::Collective),
            b"communicator" => Some(Part::Communicator),
            _ => None,
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What is known of a function beside its name and its roles.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// API version it appeared in, empty for an extension's.
    pub since: String,
    /// API version that deprecated it.
    pub deprecated: Option<String>,
    /// The extension that brings it.
    pub extension: Option<String>,
    /// C type of the result.
    pub returns: String,
    /// The enumeration that names the result.
    pub returns_values: Option<String>,
    /// How success is distinguished from failure.
    pub success: Success,
    /// Its parameters.
    pub params: Params,
    /// What it enqueues.
    pub command: Option<Box<Command>>,
    /// The hand-written function that stands for the real one.
    pub hook: Option<String>,
    /// The parameter whose truth makes the call wait for the device.
    pub blocking: Option<String>,
    /// The handle type that a success creates.
    pub creates: Option<String>,
    /// The API version in which the symbol got this signature; libraries before
    /// it export another one under the same name.
    pub changed: Option<String>,
    /// Equal calls in a row with equal answers may become one record, though the
    /// function is no poll: programs ask it again and again.
    pub folds: bool,
    /// The operation among several processes or devices that it enqueues.
    pub collective: Option<Box<Collective>>,
    /// The communicator that a success makes.
    pub communicator: Option<Box<Communicator>>,
    /// The memory that a success makes.
    pub memory: Option<Memory>,
    /// The bytes that it moves or sets.
    pub transfer: Option<Box<Transfer>>,
    /// What bits of a parameter say of what it makes.
    pub flags: Option<Flags>,
    /// What is known of the object that it makes.
    pub made: Option<Box<Made>>,
    /// Which engines a device has, of a query that says it.
    pub engines: Option<Box<Engines>>,
    /// What takes its place, of a deprecated one.
    pub replaced: Option<String>,
    /// A success ends objects and memory that it does not name.
    pub resets: bool,
    /// What it makes the place of the thread's later calls.
    pub current: Option<Current>,
    /// The parameter with the queue, of a function that enqueues and names no command.
    pub queue: Option<String>,
    /// Its default queue is one of each thread, which serializes with no other.
    pub own_queue: bool,
    /// What it names, of a function with the role `name`.
    pub names: Option<Named>,
    /// How its further arguments are passed on, of one that takes any number of them.
    pub variadic: Option<Variadic>,
}

/// A function as it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    since: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deprecated: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extension: Option<String>,
    #[serde(default, skip_serializing_if = "<[String]>::is_empty")]
    roles: Roles,
    returns: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    returns_values: Option<String>,
    success: Success,
    params: Params,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<Box<Command>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hook: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocking: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    creates: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    folds: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collective: Option<Box<Collective>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    communicator: Option<Box<Communicator>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    transfer: Option<Box<Transfer>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flags: Option<Flags>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made: Option<Box<Made>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    engines: Option<Box<Engines>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replaced: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    resets: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<Current>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    own_queue: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    names: Option<Named>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variadic: Option<Variadic>,
}

impl From<Written> for Function {
    fn from(written: Written) -> Self {
        let (name, roles, details) = written.parts();
        Self::new(name, roles, details)
    }
}

impl From<Function> for Written {
    fn from(function: Function) -> Self {
        let details = (*function).clone();
        let Function { name, roles, .. } = function;
        Self {
            name,
            roles,
            since: details.since,
            deprecated: details.deprecated,
            extension: details.extension,
            returns: details.returns,
            returns_values: details.returns_values,
            success: details.success,
            params: details.params,
            command: details.command,
            hook: details.hook,
            blocking: details.blocking,
            creates: details.creates,
            changed: details.changed,
            folds: details.folds,
            collective: details.collective,
            communicator: details.communicator,
            memory: details.memory,
            transfer: details.transfer,
            flags: details.flags,
            made: details.made,
            engines: details.engines,
            replaced: details.replaced,
            resets: details.resets,
            current: details.current,
            queue: details.queue,
            own_queue: details.own_queue,
            names: details.names,
            variadic: details.variadic,
        }
    }
}

impl Written {
    fn parts(self) -> (String, Roles, Details) {
        let details = Details {
            since: self.since,
            deprecated: self.deprecated,
            extension: self.extension,
            returns: self.returns,
            returns_values: self.returns_values,
            success: self.success,
            params: self.params,
            command: self.command,
            hook: self.hook,
            blocking: self.blocking,
            creates: self.creates,
            changed: self.changed,
            folds: self.folds,
            collective: self.collective,
            communicator: self.communicator,
            memory: self.memory,
            transfer: self.transfer,
            flags: self.flags,
            made: self.made,
            engines: self.engines,
            replaced: self.replaced,
            resets: self.resets,
            current: self.current,
            queue: self.queue,
            own_queue: self.own_queue,
            names: self.names,
            variadic: self.variadic,
        };
        (self.name, self.roles, details)
    }
}

impl Function {
    /// Of all that is known of it.
    pub fn new(name: String, roles: Roles, details: Details) -> Self {
        Self { name, roles, later: Later::default(), details: OnceLock::from(Box::new(details)) }
    }

    /// Reads a function's line of a model's text: its name, its roles and which parts it may have; all else when it is
    /// asked for. It is taken for what it should be, so the text must be known to be as it was written. None if the line
    /// is not of that form.
    pub fn of_line(line: &str) -> Option<Self> {
        // Names and roles are taken as they stand.
        (line.ends_with('}') && memchr::memchr(b'\\', line.as_bytes()).is_none()).then_some(())?;
        let name = line.get(name_of(line)?)?.to_owned();
        let bytes = line.as_bytes();
        let lists = || memchr::memchr_iter(b'[', bytes);
        let is =
            |at: &usize, key: &str| bytes.get(..*at).is_some_and(|before| before.ends_with(key.as_bytes()));
        let params = lists().find(|at| is(at, PARAMS))?;
        let own = match lists().take_while(|at| *at < params).find(|at| is(at, ROLES)) {
            Some(at) => roles(line.get(at + 1..params)?)?,
            None => Roles::default(),
        };
        // The list may be longer than to the first such end: then one part more is looked for.
        let list = bytes.get(params..)?;
        let ends = |at: &usize| *at == 1 || list.get(*at - 1) == Some(&b'}');
        let end = memchr::memchr_iter(b']', list).find(ends)?;
        let behind = list.get(end..)?;
        let (mut parts, mut creates) = (0, 0);
        for at in memchr::memchr_iter(b':', behind) {
            // Behind a key, its quote.
            let Some(before) = behind.get(..at.saturating_sub(1)) else { continue };
            let key = before.get(memchr::memrchr(b'"', before).map_or(0, |at| at + 1)..)?;
            if key == ROLES_KEY {
                return None;
            }
            let Some(part) = Part::of(key) else { continue };
            parts |= part.bit();
            if part == Part::Creates {
                // Behind the colon and the quote.
                creates = params + end + at + 2;
            }
        }
        let later = Later { line: line.into(), params, parts, creates };
        Some(Self { name, roles: own, later, details: OnceLock::new() })
    }

    fn understood(&self) -> Option<&Details> {
        self.details.get().map(|details| &**details)
    }

    /// Returns the details if it may have a part: most have few, and are not understood to know that.
    #[inline]
    fn with(&self, part: Part) -> Option<&Details> {
        (self.understood().is_some() || self.later.parts & part.bit() != 0).then(|| &**self)
    }

    /// Returns [`Details::command`] of one of many functions.
    pub fn command(&self) -> Option<&Command> {
        self.with(Part::Command)?.command.as_deref()
    }

    /// Returns whether it has [`Details::command`], without understanding it.
    #[inline]
    pub fn has_command(&self) -> bool {
        match self.understood() {
            Some(known) => known.command.is_some(),
            // No parameter and no other part has this key.
            None => self.later.parts & Part::Command.bit() != 0,
        }
    }

    /// Returns [`Details::queue`] of one of many functions.
    pub fn queue(&self) -> Option<&str> {
        self.with(Part::Queue)?.queue.as_deref()
    }

    /// Returns [`Details::creates`] of one of many functions.
    pub fn creates(&self) -> Option<&str> {
        self.with(Part::Creates)?.creates.as_deref()
    }

    /// Returns [`Details::memory`] of one of many functions.
    pub fn memory(&self) -> Option<&Memory> {
        self.with(Part::Memory)?.memory.as_ref()
    }

    /// Returns [`Details::made`] of one of many functions.
    pub fn made(&self) -> Option<&Made> {
        self.with(Part::Made)?.made.as_deref()
    }

    /// Returns [`Details::collective`] of one of many functions.
    pub fn collective(&self) -> Option<&Collective> {
        self.with(Part::Collective)?.collective.as_deref()
    }

    /// Returns [`Details::communicator`] of one of many functions.
    pub fn communicator(&self) -> Option<&Communicator> {
        self.with(Part::Communicator)?.communicator.as_deref()
    }

    /// Returns whether it may make an object of a type, or one of its parameters may be of it, without understanding it.
    pub fn may_mention(&self, ty: &str) -> bool {
        self.understood().is_some() || self.later.list().contains(ty)
    }

    /// Returns whether [`Details::creates`] is this type, without understanding it.
    pub fn creates_a(&self, ty: &str) -> bool {
        match self.understood() {
            Some(known) => known.creates.as_deref() == Some(ty),
            // A name has nothing in it that would be written otherwise.
            None if self.later.parts & Part::Creates.bit() == 0 => false,
            None => {
                let value = self.later.line.get(self.later.creates..);
                value.and_then(|value| value.strip_prefix(ty)).is_some_and(|rest| rest.starts_with('"'))
            }
        }
    }

    /// Returns the name of its command's queue, which is a parameter or a member of a structure.
    pub fn queue_of_command(&self) -> Option<Cow<'_, str>> {
        match self.understood() {
            Some(known) => known.command.as_ref()?.queue.as_deref().map(Cow::Borrowed),
            None if self.later.parts & Part::Command.bit() != 0 => {
                let queued: Queued<'_> = self.later.at("\"command\":")?;
                queued.queue
            }
            None => None,
        }
    }

    /// Returns the parameter of a name.
    pub fn param(&self, name: &str) -> Option<Cow<'_, Param>> {
        match self.understood() {
            Some(known) => known.params.iter().find(|param| param.name == name).map(Cow::Borrowed),
            None => self.later.param(name).map(Cow::Owned),
        }
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

/// What stands before the list of a function's roles, and before that of its parameters.
const ROLES: &str = "\"roles\":";
const ROLES_KEY: &[u8] = b"roles";
const PARAMS: &str = "\"params\":";

/// Reads roles up to the end of their list.
fn roles(text: &str) -> Option<Roles> {
    let list = text.get(..memchr::memchr(b']', text.as_bytes())?)?;
    let mut roles = Vec::with_capacity(1 + memchr::memchr_iter(b',', list.as_bytes()).count());
    let mut rest = list.strip_prefix('"')?;
    loop {
        let (role, behind) = rest.split_at_checked(memchr::memchr(b'"', rest.as_bytes())?)?;
        roles.push(role.to_owned());
        match behind.strip_prefix("\",\"") {
            Some(next) => rest = next,
            None => return (behind == "\"").then(|| Roles::from(roles)),
        }
    }
}

/// Of a command only its queue.
#[derive(Deserialize)]
struct Queued<'t> {
    #[serde(borrow, default)]
    queue: Option<Cow<'t, str>>,
}

impl Later {
    /// The list of parameters, and what is behind it.
    fn list(&self) -> &str {
        self.line.get(self.params..).unwrap_or_default()
    }

    /// Reads what stands behind a word that no parameter has.
    fn at<'t, T: Deserialize<'t>>(&'t self, key: &str) -> Option<T> {
        let list = self.list();
        let text = list.get(list.find(key)? + key.len()..)?;
        T::deserialize(&mut serde_json::Deserializer::from_str(text)).ok()
    }

    fn param(&self, name: &str) -> Option<Param> {
        let begin = [crate::listed::NAME, name, "\",\"type\":"].concat();
        let list = self.list();
        let text = list.get(list.find(&begin)?..)?;
        Param::deserialize(&mut serde_json::Deserializer::from_str(text)).ok()
    }

    fn details(&self) -> Option<Details> {
        let [before, list, behind] = params::cut(&self.line)?;
        let written: Written = serde_json::from_str(&[before, "[]", behind].concat()).ok()?;
        let (_, _, details) = written.parts();
        Some(Details { params: Params::later(list), ..details })
    }
}

impl Deref for Function {
    type Target = Details;

    fn deref(&self) -> &Details {
        // A line that is not read at once was written by us: it is a function's.
        self.details.get_or_init(|| Box::new(self.later.details().unwrap_or_default()))
    }
}

impl DerefMut for Function {
    fn deref_mut(&mut self) -> &mut Details {
        if self.details.get().is_none() {
            self.details = OnceLock::from(Box::new(self.later.details().unwrap_or_default()));
        }
        self.details.get_mut().unwrap_or_else(|| unreachable!("it is understood"))
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.roles, &**self) == (&other.name, &other.roles, &**other)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, roles, .. } = self;
        f.debug_struct("Function")
            .field("name", name)
            .field("roles", roles)
            .field("details", &**self)
            .finish()
    }
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

/// How the arguments behind the named parameters of a function are passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variadic {
    /// How many of the parameters the prototype names.
    pub named: usize,
    /// Registers behind all parameters that are passed on, and not recorded.
    pub passed: usize,
}

/// How a call reports success.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Success {
    /// The result is 0.
    ReturnZero,
    /// The result is not NULL.
    ReturnNonNull,
    /// This output parameter is 0.
    OutZero(String),
    /// The call can't fail.
    #[default]
    Always,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = concat!(
        r#"{"name":"toyRun","roles":["launch"],"returns":"int","success":"always","params":["#,
        r#"{"name":"n","type":"int"},{"name":"a","type":"int *","follow":{"how":"waived","why":"[{}]],"}}],"#,
        r#""command":{"kind":"kernel","queue":"n"},"creates":"toy"}"#
    );

    #[test]
    fn a_line_is_the_same_function_later() {
        let whole: Function = serde_json::from_str(LINE).expect("a function");
        let lazy = Function::of_line(LINE).expect("a function");
        assert!(lazy.has_role("launch") && lazy.queue_of_command().as_deref() == Some("n"));
        assert_eq!((lazy.memory(), lazy.collective()), (None, None));
        assert_eq!(lazy.param("a").expect("a parameter").pointers, 1);
        assert!(lazy.understood().is_none() && lazy.may_mention("toy") && !lazy.may_mention("float"));
        assert_eq!(lazy.creates(), Some("toy"));
        assert!(lazy.understood().is_some());
        assert_eq!(lazy, whole);
        assert_eq!((lazy.params.len(), lazy.params[1].name.as_str()), (2, "a"));
        let names: Vec<&str> = (&lazy.params).into_iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["n", "a"]);
        let again = serde_json::to_string(&lazy).expect("a text");
        assert_eq!(serde_json::from_str::<Function>(&again).expect("a function"), whole);
    }

    #[test]
    fn what_is_changed_is_asked_of_what_is_changed() {
        let mut lazy = Function::of_line(LINE).expect("a function");
        lazy.creates = None;
        assert_eq!((lazy.creates(), lazy.queue_of_command().as_deref()), (None, Some("n")));
        lazy.command = None;
        assert_eq!((lazy.command(), lazy.queue_of_command()), (None, None));
    }

    #[test]
    fn one_without_parameters_and_what_is_no_function() {
        let line = r#"{"name":"toyEnd","returns":"int","success":"always","params":[]}"#;
        assert_eq!(Function::of_line(line).expect("a function").params.as_slice(), []);
        for wrong in [
            "",
            "{}",
            &LINE[..LINE.len() - 1],
            &LINE[..LINE.len() - 60],
            &LINE.replace("params", "p"),
            // What else is it, but not as we write it.
            &LINE.replace("kernel", "\\u006b"),
            &LINE.replace("[\"launch\"]", "[ \"launch\" ]"),
            &LINE.replace(",\"creates\"", ",\"roles\":[\"launch\"],\"creates\""),
        ] {
            assert!(Function::of_line(wrong).is_none(), "{wrong}");
        }
    }
}
