//! Which calls an expression can be true for, found before any is made.

use hetrace_format::command::CommandKind;

use super::rule::{Atom, Key, Rule, What};

/// A moment at which an expression is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// A call of a function has ended.
    Call(Key),
    /// A command on a device has.
    Command(CommandKind),
    /// Any other.
    Other,
}

/// Kinds of commands that differ in what can be true of them.
pub const COMMANDS: [CommandKind; 3] = [CommandKind::Kernel, CommandKind::Copy, CommandKind::Other];

/// What an expression can come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Possible {
    /// It can be true.
    pub right: bool,
    /// It can be false. If it can be neither, it says nothing.
    pub wrong: bool,
}

const NEITHER: Possible = Possible { right: false, wrong: false };
const BOTH: Possible = Possible { right: true, wrong: true };

/// Returns what an expression can come to at a moment.
pub fn possible(rule: &Rule, atoms: &[Atom], of: When) -> Possible {
    let each =
        |parts: &[Rule]| -> Vec<Possible> { parts.iter().map(|part| possible(part, atoms, of)).collect() };
    match rule {
        Rule::Any(parts) => {
            let parts = each(parts);
            Possible { right: parts.iter().any(|p| p.right), wrong: parts.iter().all(|p| p.wrong) }
        }
        Rule::All(parts) => {
            let parts = each(parts);
            Possible { right: parts.iter().all(|p| p.right), wrong: parts.iter().any(|p| p.wrong) }
        }
        Rule::Not(part) => {
            let Possible { right, wrong } = possible(part, atoms, of);
            Possible { right: wrong, wrong: right }
        }
        Rule::Atom(number) => atoms.get(*number).map_or(NEITHER, |atom| of_atom(atom, of)),
    }
}

fn of_atom(atom: &Atom, of: When) -> Possible {
    match (&atom.what, of) {
        (What::Command(set, _), When::Command(kind)) if set.has(kind) => BOTH,
        (What::Command(..), _) => NEITHER,
        (What::Name { matching, among }, When::Call(key)) if among.contains(&key) => {
            let right = matching.contains(&key) == atom.test.is_equal();
            Possible { right, wrong: !right }
        }
        (what, When::Call(key)) if what.is_of(key) => BOTH,
        (what, _) if what.is_of_call() => NEITHER,
        _ => BOTH,
    }
}
