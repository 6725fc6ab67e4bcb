//! What can be wrong with CTF 2 metadata.

use thiserror::Error;

/// A mistake in a fragment.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("metadata fragment {fragment}: {kind}")]
pub struct JsonError {
    /// The fragment, counted from 1.
    pub fragment: usize,
    /// What is wrong.
    pub kind: JsonErrorKind,
}

/// What is wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// No JSON.
    #[error("expected {expected} at byte {offset}")]
    Syntax {
        /// What should be there.
        expected: &'static str,
        /// Where, from the fragment's first byte.
        offset: usize,
    },
    /// JSON or classes nested deeper than this reader follows.
    #[error("nested more than {0} deep")]
    TooDeep(u32),
    /// Classes that unfold into more fields than the text could mean.
    #[error("classes unfold into more than {0} fields")]
    TooLarge(usize),
    /// A fragment before the preamble, a second one, or another version than 2.
    #[error("not a preamble of CTF 2")]
    Preamble,
    /// An extension: what the metadata means is not known without it.
    #[error("unknown extension {0:?}")]
    Extension(String),
    /// A property without which nothing can be made.
    #[error("missing property {0:?}")]
    Missing(&'static str),
    /// A property with a value it cannot have.
    #[error("bad value of property {property:?}: {value}")]
    BadValue {
        /// The property.
        property: &'static str,
        /// The value, cut if it is long.
        value: String,
    },
    /// A field class alias, stream class or clock class that is not defined before.
    #[error("unknown {what} {name:?}")]
    Unknown {
        /// Which kind of thing.
        what: &'static str,
        /// Its name or id.
        name: String,
    },
    /// Two things with one name or id.
    #[error("{what} {name:?} is defined twice")]
    Redefined {
        /// Which kind of thing.
        what: &'static str,
        /// Its name or id.
        name: String,
    },
}
