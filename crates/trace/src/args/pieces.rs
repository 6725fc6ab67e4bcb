//! The texts of an event's fields.

use std::ops::Range;

use super::plan::Role;

/// A number that is more than its text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Typed {
    /// Without a sign.
    Unsigned(u64),
    /// With one.
    Signed(i64),
    /// An address or a handle.
    Pointer(u64),
    /// A floating-point number.
    Float(f64),
}

/// A field as text.
#[derive(Clone, Debug)]
pub struct Piece<'t> {
    /// What it is of its call.
    pub role: Role,
    /// Its name in the trace.
    pub name: &'t str,
    /// Where its text is in [`Args::text`].
    pub range: Range<usize>,
    /// The value, if it is one number without a name.
    pub typed: Option<Typed>,
}

/// The fields of one event as text. It is made to be used again and again.
#[derive(Clone, Debug, Default)]
pub struct Args<'t> {
    /// The texts of all fields, one behind the other.
    pub text: String,
    /// The fields, in the order of the trace.
    pub pieces: Vec<Piece<'t>>,
}

impl<'t> Args<'t> {
    /// Forgets all fields.
    pub fn clear(&mut self) {
        self.text.clear();
        self.pieces.clear();
    }

    /// The text of a piece.
    pub fn of(&self, piece: &Piece<'_>) -> &str {
        self.text.get(piece.range.clone()).unwrap_or("")
    }

    /// The text of the piece with that role.
    pub fn find(&self, role: Role) -> Option<&str> {
        let piece = self.pieces.iter().find(|p| p.role == role)?;
        Some(self.of(piece))
    }
}
