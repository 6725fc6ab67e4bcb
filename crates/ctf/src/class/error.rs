//! What can be wrong with a description.

use thiserror::Error;

/// A layout that cannot be decoded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// A length or tag that is not there, or not before what needs it.
    #[error("{place}: no field {reference:?} before it")]
    Unresolved {
        /// The scope, with the event's name where it belongs to one.
        place: String,
        /// The reference.
        reference: String,
    },
    /// A length that is no unsigned integer, or a tag that is no enumeration (in CTF 2 no integer).
    #[error("{place}: {reference:?} cannot serve as a {role}")]
    WrongTarget {
        /// The scope, with the event's name where it belongs to one.
        place: String,
        /// The reference.
        reference: String,
        /// What it should serve as.
        role: &'static str,
    },
    /// An integer of 0 or more than 64 bits, an alignment that is no power of
    /// two, or a float that is neither binary32 nor binary64.
    #[error("{place}: field {field:?} has an impossible size or alignment")]
    BadLayout {
        /// The scope, with the event's name where it belongs to one.
        place: String,
        /// The field.
        field: String,
    },
    /// Fields nested deeper than the decoder follows.
    #[error("{place}: fields nested more than {limit} deep")]
    TooDeep {
        /// The scope, with the event's name where it belongs to one.
        place: String,
        /// How deep it follows.
        limit: u32,
    },
}
