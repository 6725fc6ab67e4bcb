//! Prototypes and knowledge made into one model, with the coverage gate.

use std::collections::BTreeSet;
use std::fmt;

use crate::command::{Collective, Command};
use crate::ctype::{base_of, is_function, split_ctype};
use crate::expr::{Expr, Numbers};
use crate::extracted::{self, Extracted, Kind, Type};
use crate::function::{Details, Function, Success, Variadic};
use crate::glob::glob_matches;
use crate::memory::HASHED;
use crate::param::{Direction, Follow, Param};
use crate::resolved::{Model, Timing};
use crate::role::is_role;
use crate::semantics::{FunctionSemantics, Semantics};
use crate::spec::ParamSpec;

/// One thing wrong with a model's two inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Function, parameter or table concerned.
    pub place: String,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Joins prototypes and knowledge.
///
/// # Errors
/// All problems found: a pointer parameter without a description (the coverage
/// gate), knowledge about functions or parameters that do not exist, unknown
/// roles, types, enumerations, and expressions over unknown parameters.
pub fn resolve(extracted: &Extracted, semantics: &Semantics) -> Result<Model, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut report = |place: &str, what: String| {
        problems.push(Problem { place: place.to_owned(), what });
    };
    let extracted = &with_values(extracted, semantics, &mut report);
    if extracted.api != semantics.api {
        report("api", format!("`{}` and `{}` differ", extracted.api, semantics.api));
    }
    names(extracted, semantics, &mut report);
    let groups: BTreeSet<&str> = extracted.enums.iter().map(|g| g.name.as_str()).collect();
    if !groups.contains(semantics.errors.as_str()) {
        report("errors", format!("no enumeration `{}`", semantics.errors));
    }
    types(extracted, semantics, &mut report);
    tables(extracted, semantics, &mut report);
    timing(extracted, semantics, &mut report);
    let chains = crate::chains::resolve(extracted, semantics, &mut report);
    let members = crate::members::resolve(extracted, semantics, &chains, &mut report);
    let empty = FunctionSemantics::default();
    let mut functions = Vec::new();
    // An older signature of the same symbol is no function of the model: see
    // `before` in `api.json`, and `changed`.
    for f in extracted.functions.iter().filter(|f| f.before.is_none()) {
        let (under, known) = semantics.of(&f.name).unwrap_or((&f.name, &empty));
        let whole = under == f.name;
        functions.push(function(extracted, semantics, f, known, whole, &groups, &mut report));
        crate::chains::cover(functions.last(), &chains, &mut report);
    }
    crate::members::cover(extracted, &functions, &members, &mut report);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Model {
        api: extracted.api.clone(),
        title: if semantics.title.is_empty() { extracted.api.clone() } else { semantics.title.clone() },
        paradigm: semantics.paradigm.clone(),
        registry: extracted.registry.clone(),
        interpose: semantics.interpose.clone(),
        errors: semantics.errors.clone(),
        recorded: semantics.recorded.clone(),
        types: extracted.types.clone().into(),
        enums: extracted.enums.clone().into(),
        info: semantics.info.clone(),
        members,
        chains,
        handed_out: semantics.handed_out.clone(),
        unions: semantics.unions.clone(),
        states: semantics.states.clone(),
        element_sizes: semantics.element_sizes.clone(),
        timing: semantics.timing,
        untimed: semantics.untimed.clone(),
        event: semantics.event.clone(),
        queue_word: semantics.queue_word.clone(),
        default_queues: semantics.default_queues.clone(),
        context: semantics.context.clone(),
        holders: semantics.holders.clone(),
        functions,
    })
}

/// What was extracted, where types that go through a function before they are recorded have the values which that yields.
fn with_values(
    extracted: &Extracted,
    semantics: &Semantics,
    report: &mut impl FnMut(&str, String),
) -> Extracted {
    let mut all = extracted.clone();
    for (name, recorded) in &semantics.recorded {
        match all.types.iter_mut().find(|t| t.name == *name) {
            Some(ty) => ty.values = recorded.values.clone().or(ty.values.take()),
            None => report("recorded", format!("no type `{name}`")),
        }
        if let Some(group) =
            recorded.values.as_ref().filter(|g| !extracted.enums.iter().any(|e| e.name == **g))
        {
            report("recorded", format!("{name}: no enumeration `{group}`"));
        }
    }
    all
}

/// Described functions that the API does not have.
fn names(extracted: &Extracted, semantics: &Semantics, report: &mut impl FnMut(&str, String)) {
    let names: BTreeSet<&str> = extracted.functions.iter().map(|f| f.name.as_str()).collect();
    let all: BTreeSet<&str> = extracted.functions.iter().flat_map(|f| semantics.names(&f.name)).collect();
    let unknown = semantics.function.keys().filter(|n| !all.contains(n.as_str()));
    let tables = semantics.memory.keys().chain(semantics.transfer.keys()).chain(&semantics.resets);
    let tables = tables.chain(semantics.current.keys()).chain(semantics.flags.keys());
    let tables = tables.chain(semantics.replaced.keys());
    let tables = tables.chain(semantics.made.keys()).chain(semantics.engines.keys());
    let in_tables = tables.filter(|n| !all.contains(n.as_str()));
    let hooked = semantics.hook.keys().filter(|n| !names.contains(n.as_str()));
    for name in unknown.chain(hooked).chain(in_tables) {
        report(name, "described, but not a function of this API".to_owned());
    }
    patterns(extracted, semantics, report);
}

/// Globs over names that no function has, and descriptions of parameters that none of their functions has.
fn patterns(extracted: &Extracted, semantics: &Semantics, report: &mut impl FnMut(&str, String)) {
    let some = |glob: &str| extracted.functions.iter().any(|f| glob_matches(glob, &f.name));
    let in_rules = semantics.rules.iter().flat_map(|rule| &rule.functions);
    let in_patterns = semantics.patterns.iter().flat_map(|p| p.names.iter().chain(&p.except));
    for glob in in_rules.chain(in_patterns).filter(|glob| !some(glob)) {
        report(glob, "a pattern that fits no function of this API".to_owned());
    }
    for pattern in &semantics.patterns {
        let taken = |f: &&extracted::Function| {
            semantics.of(&f.name).is_some_and(|(_, known)| std::ptr::eq(known, &raw const pattern.is))
        };
        let taken: Vec<_> = extracted.functions.iter().filter(taken).collect();
        let place = pattern.names.join(", ");
        if taken.is_empty() {
            report(&place, "a pattern all of whose functions are described before it".to_owned());
        }
        for param in pattern.is.params.keys() {
            if !taken.iter().any(|f| f.params.iter().any(|p| p.name == *param)) {
                report(&place, format!("no function of this pattern has a parameter `{param}`"));
            }
        }
    }
}

/// Types of contexts and their holders that the API does not have.
fn types(extracted: &Extracted, semantics: &Semantics, report: &mut impl FnMut(&str, String)) {
    let exists = |name: &str| extracted.types.iter().any(|t| t.name == name);
    if let Some(context) = semantics.context.as_ref().filter(|c| !exists(c)) {
        report("context", format!("no type `{context}`"));
    }
    for name in semantics.holders.iter().flat_map(|h| [&h.context, &h.device]) {
        if !name.is_empty() && !exists(name) {
            report("holders", format!("no type `{name}`"));
        }
    }
}

/// Memory of a size in which no table of numbers is named any more.
fn with_numbers(extracted: &Extracted, semantics: &Semantics, memory: &crate::Memory) -> crate::Memory {
    let bytes = memory.bytes.as_ref();
    let bytes = bytes.map(|bytes| bytes.with_tables(&|name| numbers(extracted, semantics, name)));
    crate::Memory { bytes, ..memory.clone() }
}

/// What a table of numbers has for the values of enumerations.
fn numbers(extracted: &Extracted, semantics: &Semantics, table: &str) -> Option<Numbers> {
    let value = |name: &str| {
        let mut all = extracted.enums.iter().flat_map(|group| &group.values);
        all.find(|(known, _)| known == name).and_then(|(_, value)| u64::try_from(*value).ok())
    };
    let named = semantics.numbers.get(table)?;
    Some(named.iter().filter_map(|(name, number)| Some((value(name)?, *number))).collect())
}

/// Values in tables of numbers that no enumeration has.
fn tables(extracted: &Extracted, semantics: &Semantics, report: &mut impl FnMut(&str, String)) {
    let known = |name: &str| extracted.enums.iter().flat_map(|g| &g.values).any(|(known, _)| known == name);
    for (table, values) in &semantics.numbers {
        for name in values.keys().filter(|name| !known(name)) {
            report(table, format!("no value `{name}`"));
        }
    }
}

/// Commands that are timed by events need the name of the parameter that yields one.
fn timing(extracted: &Extracted, semantics: &Semantics, report: &mut impl FnMut(&str, String)) {
    let commands = semantics.function.values().any(|f| f.command.is_some());
    let has = |name: &str| extracted.functions.iter().any(|f| f.params.iter().any(|p| p.name == name));
    match &semantics.event {
        None if commands && semantics.timing == Timing::Event => {
            report(
                "event",
                "functions enqueue commands, and no parameter is named that yields events".into(),
            );
        }
        Some(name) if !has(name) => report("event", format!("no function has a parameter `{name}`")),
        _ => {}
    }
}

fn function(
    extracted: &Extracted,
    semantics: &Semantics,
    named: &extracted::Function,
    known: &FunctionSemantics,
    whole: bool,
    groups: &BTreeSet<&str>,
    report: &mut impl FnMut(&str, String),
) -> Function {
    let f = &with_more(named, known, report);
    let params: Vec<Param> =
        f.params.iter().map(|p| param(extracted, semantics, f, known, p, groups, report)).collect();
    let exists = |name: &str| f.params.iter().any(|p| p.name == name);
    if whole {
        named_params(f, known, report);
    }
    memory_params(semantics, f, report);
    for role in known.roles.iter().filter(|role| !is_role(role)) {
        report(&f.name, format!("no role `{role}` (see crates/model/src/role.rs)"));
    }
    let queue = semantics.queues.iter().find(|q| exists(q)).cloned();
    let command = known.command.clone().map(|command| {
        let queue = command.queue.clone().or_else(|| queue.clone());
        Command { queue, ..command }
    });
    command.iter().for_each(|command| command_params(f, command, whole, report));
    let bare = known.command.is_none() && known.roles.iter().any(|role| role == "enqueue");
    let bare_queue = queue.filter(|_| bare);
    let never_fails = known.never_fails || semantics.interpose.reported;
    let success = if never_fails { Success::Always } else { success(extracted, semantics, f, &params) };
    let by_type = || type_values(extracted, &f.returns);
    let error = || (success == Success::ReturnZero).then(|| semantics.errors.clone());
    let returns_values = known.returns.clone().or_else(by_type).or_else(error);
    if let Some(group) = returns_values.as_ref().filter(|group| !groups.contains(group.as_str())) {
        report(&f.name, format!("result: no enumeration `{group}`"));
    }
    let details = Details {
        since: f.since.clone(),
        deprecated: f.deprecated.clone(),
        extension: f.extension.clone(),
        returns: f.returns.clone(),
        returns_values,
        success,
        params: params.into(),
        command: command.map(Box::new),
        hook: hook(semantics, f, report),
        blocking: known.blocking.clone(),
        creates: known.creates.clone(),
        changed: extracted.functions.iter().filter(|o| o.name == f.name).find_map(|o| o.before.clone()),
        folds: known.folds,
        collective: known.collective.clone().map(|c| Box::new(with_type(semantics, f, c, report))),
        communicator: known.communicator.clone().map(Box::new),
        memory: semantics
            .in_table(&semantics.memory, &f.name)
            .map(|memory| with_numbers(extracted, semantics, memory)),
        transfer: semantics.in_table(&semantics.transfer, &f.name).cloned().map(Box::new),
        flags: semantics.in_table(&semantics.flags, &f.name).cloned(),
        made: semantics.in_table(&semantics.made, &f.name).cloned().map(Box::new),
        engines: semantics.in_table(&semantics.engines, &f.name).cloned().map(Box::new),
        replaced: semantics.in_table(&semantics.replaced, &f.name).cloned(),
        resets: semantics.names(&f.name).any(|n| semantics.resets.iter().any(|r| r == n)),
        current: semantics.in_table(&semantics.current, &f.name).cloned(),
        queue: bare_queue,
        own_queue: semantics.has_own_queue(&f.name),
        names: known.names,
        variadic: variadic(named, known),
    };
    Function::new(f.name.clone(), known.roles.clone().into(), details)
}

/// How further arguments are passed on, of a function that takes any number of them.
fn variadic(named: &extracted::Function, known: &FunctionSemantics) -> Option<Variadic> {
    named.variadic.then(|| Variadic {
        named: named.params.len(),
        passed: known.more.iter().filter(|more| *more == "-").count(),
    })
}

/// The function with what follows its named parameters, where that is known.
fn with_more(
    f: &extracted::Function,
    known: &FunctionSemantics,
    report: &mut impl FnMut(&str, String),
) -> extracted::Function {
    /// Integers and addresses that travel in registers.
    const REGISTERS: usize = 6;
    let mut all = f.clone();
    if f.variadic && known.more.is_empty() {
        report(&f.name, "takes any number of arguments: say in `more` which may follow".to_owned());
    }
    if !f.variadic && !known.more.is_empty() {
        report(&f.name, "`more`, and it takes no more arguments than its parameters".to_owned());
    }
    if f.variadic && f.params.len() + known.more.len() > REGISTERS {
        report(&f.name, format!("`more`: with its parameters there are more than {REGISTERS} registers"));
    }
    let mut passed = false;
    for more in &known.more {
        match more.split_once(": ") {
            Some((name, ctype)) if !passed => {
                all.params.push(extracted::Param { name: name.to_owned(), ctype: ctype.to_owned() });
            }
            None if more == "-" => passed = true,
            _ => {
                report(&f.name, format!("`more`: `{more}` is neither \"NAME: TYPE\" before all `-` nor `-`"))
            }
        }
    }
    all
}

/// Why a function is hooked: it says so, or it sends memory of the host.
fn hook(
    semantics: &Semantics,
    f: &extracted::Function,
    report: &mut impl FnMut(&str, String),
) -> Option<String> {
    let own = semantics.hook.get(&f.name).cloned();
    let transfer = semantics.in_table(&semantics.transfer, &f.name).filter(|t| t.from_host);
    let Some(transfer) = transfer else { return own };
    if own.is_some() {
        report(&f.name, "what it sends is hashed, and it has another hook".to_owned());
    }
    if transfer.source.is_none() {
        report(&f.name, "`from_host` without a source".to_owned());
    }
    Some(HASHED.to_owned())
}

/// What the tables of memory mention that is not a parameter.
fn memory_params(semantics: &Semantics, f: &extracted::Function, report: &mut impl FnMut(&str, String)) {
    let memory = semantics.in_table(&semantics.memory, &f.name);
    let transfer = semantics.in_table(&semantics.transfer, &f.name);
    let current = semantics.in_table(&semantics.current, &f.name);
    let flags = semantics.in_table(&semantics.flags, &f.name);
    let moved = transfer.iter().flat_map(|t| t.names());
    let made = current.iter().filter_map(|c| c.is.as_deref());
    let made = made.chain(flags.iter().map(|flags| flags.param.as_str()));
    let objects = semantics.in_table(&semantics.made, &f.name);
    let objects = objects.iter().flat_map(|made| made.names());
    let engines = semantics.in_table(&semantics.engines, &f.name);
    let engines = engines.iter().flat_map(|engines| [engines.of.as_str(), engines.list.as_str()]);
    let made = made.chain(objects).chain(engines);
    for name in memory.iter().flat_map(|m| m.names()).chain(moved).chain(made) {
        // Of a struct behind a parameter, a member.
        let param = name.split_once('.').map_or(name, |(param, _)| param);
        if !f.params.iter().any(|p| p.name == param) {
            report(&f.name, format!("its memory mentions `{name}`, not a parameter"));
        }
    }
}

/// A collective with the type that its function is named after.
fn with_type(
    semantics: &Semantics,
    f: &extracted::Function,
    mut about: Collective,
    report: &mut impl FnMut(&str, String),
) -> Collective {
    let Some(of) = &about.of else { return about };
    let fits = |name: &&str| semantics.element_sizes.contains_key(*name);
    let found = match of.as_str() {
        "*" => f.name.split('_').find(fits),
        of => Some(of).filter(fits),
    };
    if found.is_none() {
        report(&f.name, format!("the type of its elements, `{of}`, is not in `element_sizes`"));
    }
    about.of = found.map(str::to_owned);
    about
}

/// Parameters that the description of a function names and the function does not have.
fn named_params(f: &extracted::Function, known: &FunctionSemantics, report: &mut impl FnMut(&str, String)) {
    let c = known.collective.iter();
    let c = c.flat_map(|c| [Some(&c.count), Some(&c.element), Some(&c.communicator), c.peer.as_ref()]);
    let m = known.communicator.iter();
    let m =
        m.flat_map(|m| [Some(&m.handle), m.size.as_ref(), m.rank.as_ref(), m.id.as_ref(), m.parent.as_ref()]);
    let named = known.params.keys().chain(&known.blocking).chain(c.chain(m).flatten());
    for name in named.filter(|name| !name.is_empty()) {
        if !f.params.iter().any(|p| p.name == *name) {
            report(&f.name, format!("no parameter `{name}`"));
        }
    }
}

/// What the description of a command mentions that is not a parameter, if it is of this very
/// function, and a geometry of the wrong length.
fn command_params(
    f: &extracted::Function,
    command: &Command,
    whole: bool,
    report: &mut impl FnMut(&str, String),
) {
    let lengths = command.bytes.iter().chain(&command.geometry).chain(&command.shared);
    let lengths = lengths.chain(&command.known_by);
    let mentioned = lengths.flat_map(Expr::names);
    let handles = [&command.kernel, &command.queue, &command.source, &command.target];
    for name in mentioned.chain(handles.into_iter().filter_map(|h| h.as_deref())) {
        let first = name.split('.').next().unwrap_or(name);
        if whole && !f.params.iter().any(|p| p.name == first) {
            report(&f.name, format!("its command mentions `{name}`, not a parameter"));
        }
    }
    if !matches!(command.geometry.len(), 0 | 6) {
        report(&f.name, "its command's geometry has not six sizes".to_owned());
    }
}

/// Returns a result code, an error output, or a pointer shows how a call ended.
///
/// A function that returns an object or an address reports its error through
/// an output parameter of the API's error type, if it has one.
fn success(
    extracted: &Extracted,
    semantics: &Semantics,
    f: &extracted::Function,
    params: &[Param],
) -> Success {
    let (base, pointers) = split_ctype(&f.returns);
    let is_function = f.returns.contains('(');
    let is = |kinds: &[Kind]| extracted.types.iter().any(|t| t.name == base && kinds.contains(&t.kind));
    let handle = is(&[Kind::Handle]);
    if pointers > 0 || is_function || handle {
        let error = params.iter().find(|p| {
            p.direction == Direction::Out
                && p.follow == Follow::Pointee
                && p.values.as_ref() == Some(&semantics.errors)
        });
        error.map_or(Success::ReturnNonNull, |p| Success::OutZero(p.name.clone()))
    } else if base == "void" || is(&[Kind::Struct, Kind::Union, Kind::Float]) {
        Success::Always
    } else {
        Success::ReturnZero
    }
}

fn type_values(extracted: &Extracted, ctype: &str) -> Option<String> {
    let (base, _) = split_ctype(ctype);
    extracted.types.iter().find(|t| t.name == base)?.values.clone()
}

/// Returns the description of a parameter, from its text.
///
/// # Errors
/// What is wrong with it.
fn spec(text: Option<&str>, by_value: bool, size: u32, ctype: &str) -> Result<ParamSpec, String> {
    match text.map(ParamSpec::parse) {
        // Of a large struct there may be only the beginning.
        Some(Ok(spec)) if by_value && size > LARGE && is_begin(&spec) => Ok(spec),
        // A value can be named, but there is nothing behind it to follow.
        Some(Ok(ParamSpec { follow: Follow::Pointee, values: Some(group), .. })) if by_value => {
            Ok(ParamSpec { values: Some(group), ..value_spec() })
        }
        Some(Ok(_)) if by_value => Err("described as a pointer, but passed by value".to_owned()),
        Some(Ok(spec)) => Ok(spec),
        Some(Err(e)) => Err(e.to_string()),
        None if by_value && size > LARGE => Err(format!(
            "`{ctype}` has {size} bytes, too many for a record: write how many of them, `in bytes(LENGTH)`"
        )),
        None if by_value => Ok(value_spec()),
        None => Err(format!("`{ctype}` is a pointer without a description")),
    }
}

/// Structs of more bytes, passed by value, do not fit into a record beside other arguments.
const LARGE: u32 = 2048;

/// Returns whether a description of a struct that is passed by value says how much of its beginning is recorded.
fn is_begin(spec: &ParamSpec) -> bool {
    spec.direction == Direction::In && matches!(spec.follow, Follow::Bytes { .. })
}

fn param(
    extracted: &Extracted,
    semantics: &Semantics,
    f: &extracted::Function,
    known: &FunctionSemantics,
    p: &extracted::Param,
    groups: &BTreeSet<&str>,
    report: &mut impl FnMut(&str, String),
) -> Param {
    let place = format!("{}.{}", f.name, p.name);
    let (base, pointers) = split_ctype(&p.ctype);
    let is_function = is_function(&p.ctype);
    let ty: Option<&Type> = extracted.types.iter().find(|t| t.name == base);
    if ty.is_none() && !is_function {
        report(&place, format!("no type `{base}`"));
    }
    let by_value = pointers == 0 && !is_function;
    let text = known.params.get(&p.name).map(String::as_str).or_else(|| {
        if by_value {
            return None;
        }
        semantics.rules.iter().find(|r| r.fits(f, p)).map(|r| r.is.as_str())
    });
    let spec = spec(text, by_value, ty.map_or(0, |t| t.size), &p.ctype).unwrap_or_else(|what| {
        report(&place, what);
        value_spec()
    });
    for name in spec.follow.names() {
        let first = name.split('.').next().unwrap_or(name);
        if !f.params.iter().any(|q| q.name == first) {
            report(&place, format!("mentions `{name}`, not a parameter"));
        }
    }
    if matches!(spec.follow, Follow::Array { .. })
        && ty.is_some_and(|t| !t.size_before.is_empty())
        && pointers == 1
    {
        report(&place, format!("`{base}` grew, so elements of an array cannot be located"));
    }
    let needs_size = matches!(spec.follow, Follow::Pointee | Follow::Array { .. });
    if needs_size && pointers == 1 && ty.is_some_and(|t| t.size == 0) {
        report(&place, format!("`{base}` has no known size, so it can't be followed"));
    }
    let values = spec.values.clone().or_else(|| ty.and_then(|t| t.values.clone()));
    if let Some(group) = &values
        && !groups.contains(group.as_str())
    {
        report(&place, format!("no enumeration `{group}`"));
    }
    let (base, pointers) = base_of(&p.ctype);
    Param {
        name: p.name.clone(),
        ctype: p.ctype.clone(),
        base: base.to_owned(),
        pointers,
        direction: spec.direction,
        follow: spec.follow,
        values,
        always: spec.always,
    }
}

fn value_spec() -> ParamSpec {
    ParamSpec { direction: Direction::None, follow: Follow::Value, values: None, always: false }
}

impl Kind {
    /// Returns whether a value of this kind fits into one machine word.
    pub fn is_scalar(self) -> bool {
        matches!(self, Kind::Uint | Kind::Int | Kind::Float | Kind::Handle | Kind::Callback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(rule: &str, params: &str) -> (Extracted, Semantics) {
        let extracted = serde_json::json!({
            "api": "toy", "registry": {"file": "toy.h", "sha256": ""},
            "types": [{"name": "int", "kind": "int", "size": 4}, {"name": "void", "kind": "opaque", "size": 0}],
            "enums": [{"name": "toy_error", "values": [["OK", 0]]}],
            "functions": [{"name": "toyGet", "returns": "int",
                           "params": [{"name": "n", "type": "int"}, {"name": "out", "type": "int *"}]}],
        });
        let semantics = format!(
            "api = \"toy\"\nerrors = \"toy_error\"\n[interpose]\n{rule}\n[function.toyGet]\n{params}\n"
        );
        (serde_json::from_value(extracted).unwrap(), toml::from_str(&semantics).unwrap())
    }

    fn problems(rule: &str, params: &str) -> String {
        let (e, s) = inputs(rule, params);
        match resolve(&e, &s) {
            Ok(_) => String::new(),
            Err(p) => p.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "),
        }
    }

    #[test]
    fn what_follows_the_named_arguments_must_be_known() {
        let of = |variadic: bool, more: &str| {
            let (mut e, s) = inputs("", &format!("params.out = \"out value\"\n{more}"));
            e.functions[0].variadic = variadic;
            resolve(&e, &s)
                .map(|model| {
                    let f = &model.functions[0];
                    (f.params.iter().map(|p| p.name.clone()).collect::<Vec<_>>(), f.variadic)
                })
                .map_err(|p| p.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))
        };
        let (names, variadic) = of(true, "more = [\"size: int\", \"-\", \"-\"]").unwrap();
        assert_eq!(
            (names.join(" ").as_str(), variadic),
            ("n out size", Some(Variadic { named: 2, passed: 2 }))
        );
        assert_eq!(of(false, "").unwrap().1, None);
        for (variadic, more, says) in [
            (true, "", "takes any number of arguments"),
            (false, "more = [\"-\"]", "no more arguments than its parameters"),
            (true, "more = [\"-\", \"-\", \"-\", \"-\", \"-\"]", "more than 6 registers"),
            (true, "more = [\"-\", \"size: int\"]", "neither"),
        ] {
            let problem = of(variadic, more).unwrap_err();
            assert!(problem.contains(says), "{more}: {problem}");
        }
    }

    #[test]
    fn values_of_a_type_may_stand_for_something_else() {
        let described = "params.out = \"out value\"\n";
        let (mut e, s) =
            inputs("", &format!("{described}[recorded]\nint = {{ by = \"low\", values = \"special\" }}"));
        let problem = resolve(&e, &s).unwrap_err();
        assert!(problem[0].to_string().contains("no enumeration `special`"), "{problem:?}");
        let values = vec![("UNKNOWN".to_owned(), i64::MIN)];
        e.enums.push(extracted::EnumGroup { name: "special".into(), bits: false, values });
        let model = resolve(&e, &s).unwrap();
        assert_eq!(model.functions[0].params[0].values.as_deref(), Some("special"));
        let (e, s) = inputs("", &format!("{described}[recorded]\nlong = {{ by = \"low\" }}"));
        assert!(resolve(&e, &s).unwrap_err()[0].to_string().contains("no type `long`"));
    }

    #[test]
    fn coverage_gate_refuses_an_undescribed_pointer() {
        assert_eq!(problems("", ""), "toyGet.out: `int *` is a pointer without a description");
        assert_eq!(problems("", "params.out = \"out array(n)\""), "");
        assert_eq!(problems("[[rule]]\nparam = \"out\"\nis = \"none: a test\"", ""), "");
        assert_ne!(problems("[[rule]]\nparam = \"out\"\ntype = \"char*\"\nis = \"none: x\"", ""), "");
    }

    #[test]
    fn knowledge_that_fits_nothing_is_an_error() {
        for (params, says) in [
            ("params.out = \"out array(m)\"", "mentions `m`"),
            ("params.out = \"out value\"\nparams.zz = \"in value\"", "no parameter `zz`"),
            ("roles = [\"dances\"]\nparams.out = \"out value\"", "no role `dances`"),
            ("params.out = \"out value as nobody\"", "no enumeration `nobody`"),
        ] {
            assert!(problems("", params).contains(says), "{params}");
        }
    }

    #[test]
    fn a_function_may_be_named_after_the_type_of_its_elements() {
        let of = |name: &str, of: &str| {
            let known = "roles = [\"collective\"]\nparams.out = \"none: x\"\ncollective = ";
            let known = format!("{known}{{ operation = \"put\", count = \"n\", of = \"{of}\" }}");
            let (mut e, mut s) = inputs("", &known);
            s.element_sizes = [("float".to_owned(), 4), ("long".to_owned(), 8)].into();
            name.clone_into(&mut e.functions[0].name);
            let known = s.function.remove("toyGet").unwrap();
            s.function.insert(name.to_owned(), known);
            let model = resolve(&e, &s).map_err(|p| p[0].to_string())?;
            Ok::<_, String>(model.functions[0].collective.clone().unwrap().of.unwrap())
        };
        assert_eq!(of("toy_long_put", "*").unwrap(), "long");
        assert_eq!(of("toy_put", "float").unwrap(), "float");
        assert!(of("toy_longer_put", "*").unwrap_err().contains("`element_sizes`"));
        assert!(of("toy_put", "double").unwrap_err().contains("`double`"));
    }

    #[test]
    fn one_description_serves_all_functions_of_a_pattern() {
        let known = |pattern: &str| {
            let (e, s) = inputs("", pattern);
            resolve(&e, &s).map(|model| model.functions[0].clone())
        };
        let pattern =
            "[[pattern]]\nnames = [\"toyG*\"]\nis = { roles = [\"query\"], params.out = \"out value\" }";
        // An entry of its own comes before all patterns.
        assert!(known(&format!("roles = [\"sync\"]\n{pattern}")).is_err());
        let (e, mut s) = inputs("", pattern);
        s.function.clear();
        let get = resolve(&e, &s).unwrap().functions.remove(0);
        assert_eq!((get.roles.to_vec(), &get.params[1].follow), (vec!["query".to_owned()], &Follow::Pointee));
        s.patterns[0].except = vec!["toyGet".to_owned()];
        let none = resolve(&e, &s).unwrap_err();
        assert!(none.iter().any(|p| p.what.contains("described before it")), "{none:?}");
        s.patterns[0].except = vec!["toySet".to_owned()];
        let none = resolve(&e, &s).unwrap_err();
        assert_eq!(none[0].to_string(), "toySet: a pattern that fits no function of this API");
        s.patterns[0].except.clear();
        s.patterns[0].is.params.insert("zz".to_owned(), "in value".to_owned());
        let none = resolve(&e, &s).unwrap_err();
        assert_eq!(none[0].to_string(), "toyG*: no function of this pattern has a parameter `zz`");
    }

    #[test]
    fn rules_may_be_of_some_functions_only() {
        let rule = |glob: &str| {
            format!("[[rule]]\nfunctions = [\"{glob}\"]\nparam = \"out\"\nis = \"none: a test\"")
        };
        assert_eq!(problems(&rule("toyG?t"), ""), "");
        let none = problems(&rule("toyS*"), "");
        assert!(
            none.contains("toyS*: a pattern that fits no function") && none.contains("without a description")
        );
    }

    #[test]
    fn bytes_may_have_a_type_by_another_parameter() {
        assert_eq!(problems("", "params.out = \"out bytes(4, n)\""), "");
        assert_eq!(
            problems("", "params.out = \"out bytes(4, zz)\""),
            "toyGet.out: mentions `zz`, not a parameter"
        );
    }

    #[test]
    fn of_a_large_struct_only_the_beginning_is_recorded() {
        let resolved = |size: u32, described: &str| {
            let (mut e, s) = inputs("", &format!("params.out = \"out value\"\n{described}"));
            let large = serde_json::json!({"name": "toy_large", "kind": "struct", "size": size});
            e.types.push(serde_json::from_value(large).unwrap());
            let n = e.functions[0].params.iter_mut().find(|p| p.name == "n").expect("a parameter");
            n.ctype = "toy_large".to_owned();
            resolve(&e, &s).map(|m| m.functions[0].params.iter().find(|p| p.name == "n").cloned())
        };
        let refused = |size, described| resolved(size, described).unwrap_err()[0].to_string();
        assert!(refused(4096, "").contains("4096 bytes, too many for a record"));
        let n = resolved(4096, "params.n = \"in bytes(64)\"").unwrap().expect("it is there");
        assert!(matches!(n.follow, Follow::Bytes { .. }) && n.pointers == 0);
        assert!(refused(4096, "params.n = \"out bytes(64)\"").contains("passed by value"));
        assert!(refused(64, "params.n = \"in bytes(64)\"").contains("passed by value"));
        assert!(resolved(64, "").is_ok());
    }

    #[test]
    fn a_value_can_be_named_but_not_followed() {
        let (e, s) = inputs("", "params.out = \"out value\"\nparams.n = \"in value as toy_error\"");
        let model = resolve(&e, &s).unwrap();
        let n = &model.functions[0].params[0];
        assert_eq!((&n.follow, n.values.as_deref()), (&Follow::Value, Some("toy_error")));
        let wrong = problems("", "params.out = \"out value\"\nparams.n = \"in string\"");
        assert_eq!(wrong, "toyGet.n: described as a pointer, but passed by value");
    }

    #[test]
    fn events_come_through_a_parameter() {
        let out = "params.out = \"out value\"\ncommand = { kind = \"kernel\" }";
        assert!(problems("", out).starts_with("event: functions enqueue commands"), "{}", problems("", out));
        let (e, mut s) = inputs("", out);
        s.event = Some("event".to_owned());
        let none = resolve(&e, &s).unwrap_err();
        assert_eq!(none[0].to_string(), "event: no function has a parameter `event`");
        s.event = Some("out".to_owned());
        assert_eq!(resolve(&e, &s).unwrap().event.as_deref(), Some("out"));
    }

    #[test]
    fn a_default_queue_has_several_values() {
        let (e, mut s) = inputs("", "params.out = \"out value\"");
        let queues = |s: &Semantics| {
            let model = resolve(&e, s).unwrap();
            (model.queue_word().to_owned(), [0, 1, 2].map(|handle| model.is_default_queue(handle)))
        };
        assert_eq!(queues(&s), ("queue".to_owned(), [true, false, false]));
        s.default_queues = vec![1];
        s.queue_word = Some("stream".to_owned());
        assert_eq!(queues(&s), ("stream".to_owned(), [true, true, false]));
    }

    #[test]
    fn an_object_comes_with_an_error_or_with_null() {
        let (mut e, s) = inputs("", "params.out = \"out value as toy_error\"");
        let success = |e: &Extracted| resolve(e, &s).unwrap().functions[0].success.clone();
        assert_eq!(success(&e), Success::ReturnZero, "the result is the error");
        e.functions[0].returns = "void *".to_owned();
        assert_eq!(success(&e), Success::OutZero("out".to_owned()));
        e.functions[0].returns = "void (*)(int)".to_owned();
        assert_eq!(success(&e), Success::OutZero("out".to_owned()));
    }

    #[test]
    fn c_types_are_taken_apart() {
        assert_eq!(split_ctype("const toy_event *"), ("toy_event", 1));
        assert_eq!(split_ctype("const unsigned char **"), ("unsigned char", 2));
        assert_eq!(split_ctype("toy_uint"), ("toy_uint", 0));
        assert_eq!(split_ctype("void *const *"), ("void", 2));
    }

    #[test]
    fn what_is_sent_from_the_host_is_hooked() {
        let known = |source: &str, more: &str| {
            format!(
                "params.out = \"out value\"\n{more}\n[transfer]\ntoyGet = {{ {source} bytes = \"n\", from_host = true }}"
            )
        };
        let (extracted, semantics) = inputs("", &known("source = \"out\",", ""));
        let model = resolve(&extracted, &semantics).unwrap();
        assert_eq!(model.functions[0].hook.as_deref(), Some(HASHED));
        assert_eq!(problems("", &known("", "")), "toyGet: `from_host` without a source");
        let twice = known("source = \"out\",", "[hook]\ntoyGet = \"something else\"");
        assert_eq!(problems("", &twice), "toyGet: what it sends is hashed, and it has another hook");
    }

    #[test]
    fn tables_of_numbers_become_choices() {
        let known = |table: &str| {
            format!(
                "params.out = \"out value\"\n[numbers.size]\n{table}\n[memory]\ntoyGet = {{ bytes = \"size(n) * size(n, 3)\" }}"
            )
        };
        assert_eq!(problems("", &known("NOBODY = 1")), "size: no value `NOBODY`");
        let (extracted, semantics) = inputs("", &known("OK = 4"));
        let model = resolve(&extracted, &semantics).unwrap();
        let memory = model.functions[0].memory.as_ref().unwrap();
        assert_eq!(memory.bytes.as_ref().unwrap().to_string(), "choose(n, 0, 4) * choose(n, 0, 4, 3)");
    }
}
