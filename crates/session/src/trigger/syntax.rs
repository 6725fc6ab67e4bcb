//! An expression as a tree, and as text again.

use std::fmt;
use std::ops::Range;

use super::lex::Op;
use super::units::{Number, Unit};

/// An expression that was understood, of names that may not exist.
#[derive(Debug, Clone)]
pub struct Trigger {
    pub(super) text: String,
    pub(super) root: Expr,
}

/// Whoever writes the same expression otherwise means the same.
impl PartialEq for Trigger {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Trigger {}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.root)
    }
}

/// A part of an expression.
#[derive(Debug, Clone)]
pub enum Expr {
    /// One of them is true.
    Any(Vec<Expr>),
    /// All of them are.
    All(Vec<Expr>),
    /// It is not true.
    Not(Box<Expr>),
    /// A comparison, or what is true or not by itself.
    Test(Test),
}

/// A comparison.
#[derive(Debug, Clone)]
pub struct Test {
    /// The words of its left side, each with its bytes.
    pub subject: Vec<(String, Range<usize>)>,
    /// Its sign and its right side.
    pub compared: Option<(Op, Literal)>,
    /// All its bytes.
    pub at: Range<usize>,
}

/// A right side, and its bytes.
#[derive(Debug, Clone)]
pub struct Literal {
    /// What it is.
    pub value: Fixed,
    /// Its bytes.
    pub at: Range<usize>,
}

/// What a value is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Fixed {
    /// A number.
    Number(Number, Option<Unit>),
    /// A text in quotes.
    Text(String),
    /// A word: the name of a value, or a text.
    Word(String),
}

impl Test {
    /// Returns all bytes of the left side.
    pub fn subject_at(&self) -> Range<usize> {
        let ends = self.subject.first().zip(self.subject.last());
        ends.map_or(self.at.clone(), |((_, first), (_, last))| first.start..last.end)
    }
}

impl Expr {
    fn joined(f: &mut fmt::Formatter<'_>, parts: &[Expr], sign: &str) -> fmt::Result {
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                f.write_str(sign)?;
            }
            match part {
                Expr::Any(_) => write!(f, "({part})")?,
                part => write!(f, "{part}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Any(parts) => Self::joined(f, parts, " || "),
            Expr::All(parts) => Self::joined(f, parts, " && "),
            Expr::Not(part) => match &**part {
                Expr::Not(_) => write!(f, "!{part}"),
                // `!a == b` would be read as it is meant, and not by people.
                _ => write!(f, "!({part})"),
            },
            Expr::Test(test) => write!(f, "{test}"),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.subject.iter().map(|(word, _)| word.as_str()).collect();
        f.write_str(&words.join("."))?;
        let Some((op, literal)) = &self.compared else { return Ok(()) };
        write!(f, " {} ", op.sign())?;
        match &literal.value {
            // Behind digits of base 16 a unit that begins with one would be lost.
            Fixed::Number(number @ Number::Hex(_), Some(unit)) => write!(f, "{number} {}", unit.name),
            Fixed::Number(number, unit) => write!(f, "{number}{}", unit.map_or("", |unit| unit.name)),
            Fixed::Text(text) => {
                write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
            }
            Fixed::Word(word) => f.write_str(word),
        }
    }
}
