//! What can be wrong with TSDL.

use thiserror::Error;

/// A mistake in TSDL text.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("metadata line {line}: {kind}")]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: u32,
    /// What is wrong.
    pub kind: ParseErrorKind,
}

impl ParseError {
    pub(in crate::metadata) fn new(line: u32, kind: ParseErrorKind) -> Self {
        Self { line, kind }
    }
}

/// What is wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// A character that begins no token.
    #[error("unexpected character {0:?}")]
    Character(char),
    /// A comment or literal without an end.
    #[error("unterminated {0}")]
    Unterminated(&'static str),
    /// A number that does not fit in 64 bits, or a malformed one.
    #[error("bad number {0:?}")]
    Number(String),
    /// An escape sequence that C does not know.
    #[error("bad escape sequence")]
    Escape,
    /// Another token than the grammar wants.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What the grammar wants.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// Types nested deeper than this reader follows.
    #[error("types nested more than {0} deep")]
    TooDeep(u32),
    /// Types that unfold into more fields than the text could mean.
    #[error("types unfold into more than {0} fields")]
    TooLarge(usize),
    /// A type that is not defined.
    #[error("unknown type {0:?}")]
    UnknownType(String),
    /// A type that was defined before in the same scope.
    #[error("{0:?} is defined twice")]
    Redefined(String),
    /// A stream that is not defined.
    #[error("unknown stream {0}")]
    UnknownStream(u64),
    /// A clock that is not defined.
    #[error("unknown clock {0:?}")]
    UnknownClock(String),
    /// Two things with one id.
    #[error("{what} {id} is defined twice")]
    DuplicateId {
        /// Which kind of thing.
        what: &'static str,
        /// The id.
        id: u64,
    },
    /// An attribute without which nothing can be made.
    #[error("missing attribute {0:?}")]
    Missing(&'static str),
    /// An attribute with a value it cannot have.
    #[error("bad value of attribute {attribute:?}: {value}")]
    BadValue {
        /// The attribute.
        attribute: String,
        /// The value.
        value: String,
    },
    /// Some other class than the place needs.
    #[error("expected {expected} here")]
    WrongClass {
        /// What is needed.
        expected: &'static str,
    },
}
