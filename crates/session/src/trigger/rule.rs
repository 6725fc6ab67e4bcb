//! An expression whose names are found: what is compared, with what, and how that goes together.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::command::{Of, Set};
use super::fields::Place;
use super::lex::Op;
use super::subject::Sampled;
use super::units::{Dimension, Number};

/// A function: number of its API among those that were bound to, and its number there.
pub type Key = (usize, usize);
/// Some functions.
pub type Functions = HashSet<Key>;
/// Names of values.
pub type Names = Arc<[(String, i64)]>;

/// A part of an expression.
#[derive(Debug)]
pub enum Rule {
    /// One of them is true.
    Any(Vec<Rule>),
    /// All of them are.
    All(Vec<Rule>),
    /// It is not true.
    Not(Box<Rule>),
    /// The atom of a number.
    Atom(usize),
}

/// A comparison.
#[derive(Debug)]
pub struct Atom {
    /// What stands on its left.
    pub label: String,
    /// What that is.
    pub what: What,
    /// What it is of.
    pub dimension: Dimension,
    /// What it must be.
    pub test: Check,
    /// Where it stands, in its expression.
    pub text: Arc<str>,
    /// The bytes of it that are meant.
    pub at: Range<usize>,
}

/// What is compared.
#[derive(Debug)]
pub enum What {
    /// The function of a call.
    Name {
        /// Those that the text matches.
        matching: Functions,
        /// Those that are meant at all.
        among: Functions,
    },
    /// The API's name.
    Api(Functions),
    /// The thread's name.
    Thread(Functions),
    /// The process.
    Pid(Functions),
    /// The thread.
    Tid(Functions),
    /// How long a call took.
    Duration(Functions),
    /// A field of the record of a call's begin or end.
    Field(HashMap<Key, Member>),
    /// A call failed.
    Failed(HashMap<Key, Member>),
    /// Calls that ended in the last second.
    Rate(Functions),
    /// How long a call has not returned.
    Open(Functions),
    /// How long no call of these began or ended; none: how long nothing was recorded.
    Idle(Option<Functions>),
    /// A value of telemetry.
    Sampled(Sampled),
    /// Something of a command on a device.
    Command(Set, Of),
    /// The program was ended by a signal.
    Crash,
    /// Its exit status.
    Exit,
}

/// A field.
#[derive(Debug, Clone)]
pub struct Member {
    /// Whether the record of the call's end has it.
    pub at_exit: bool,
    /// Where it is there.
    pub place: Place,
    /// What its values are called.
    pub names: Option<Names>,
    /// Values that are no failure.
    pub good: Good,
}

/// Values that are no failure.
#[derive(Debug, Clone)]
pub enum Good {
    /// 0, and these.
    Zero(Arc<HashSet<i64>>),
    /// All but 0.
    NonZero,
}

impl Member {
    /// Returns whether a value says that the call failed.
    pub fn is_failure(&self, value: Number) -> bool {
        match (&self.good, value) {
            (Good::NonZero, value) => value.is_zero(),
            (Good::Zero(states), Number::Int(value) | Number::Hex(value)) => {
                value != 0 && i64::try_from(value).is_ok_and(|value| !states.contains(&value))
            }
            (Good::Zero(_), Number::Float(_)) => false,
        }
    }
}

/// What a value must be.
#[derive(Debug)]
pub enum Check {
    /// True.
    Truth,
    /// A number.
    Number(Op, Number),
    /// A number that each API has another name for.
    Named(Op, HashMap<usize, Number>),
    /// A text that a glob matches, or does not.
    Text(bool, String),
}

impl Check {
    /// Returns whether a text must be that of the glob, not any other.
    pub fn is_equal(&self) -> bool {
        !matches!(self, Check::Text(false, _))
    }
}

impl What {
    /// Returns whether it is something of a call that has ended.
    pub fn is_of_call(&self) -> bool {
        !matches!(
            self,
            What::Rate(_)
                | What::Open(_)
                | What::Idle(_)
                | What::Sampled(_)
                | What::Command(..)
                | What::Crash
                | What::Exit
        )
    }

    /// Returns whether it is something that calls of this function have.
    pub fn is_of(&self, key: Key) -> bool {
        match self {
            What::Name { among: functions, .. }
            | What::Api(functions)
            | What::Thread(functions)
            | What::Pid(functions)
            | What::Tid(functions)
            | What::Duration(functions) => functions.contains(&key),
            What::Field(members) | What::Failed(members) => members.contains_key(&key),
            What::Rate(_)
            | What::Open(_)
            | What::Idle(_)
            | What::Sampled(_)
            | What::Command(..)
            | What::Crash
            | What::Exit => false,
        }
    }
}
