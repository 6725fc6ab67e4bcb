//! Words, numbers and signs of an expression.

use std::ops::Range;

use super::TriggerError;
use super::near::hint;
use super::units::{Number, UNITS, Unit};

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

impl Op {
    /// Returns its sign.
    pub fn sign(self) -> &'static str {
        match self {
            Op::Equal => "==",
            Op::Unequal => "!=",
            Op::Less => "<",
            Op::AtMost => "<=",
            Op::More => ">",
            Op::AtLeast => ">=",
        }
    }
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    /// A name, which may be a glob.
    Word(String),
    /// A number, and its unit if it has one.
    Number(Number, Option<Unit>),
    /// A text in quotes.
    Text(String),
    /// A comparison.
    Op(Op),
    /// `.`
    Dot,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `&&` or `and`
    And,
    /// `||` or `or`
    Or,
    /// `!` or `not`
    Not,
}

/// A token and its bytes.
pub type Placed = (Token, Range<usize>);

/// Splits an expression.
pub fn lex(text: &str) -> Result<Vec<Placed>, TriggerError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

/// Signs, the longer ones first.
const SIGNS: &[(&str, Token)] = &[
    ("&&", Token::And),
    ("||", Token::Or),
    ("==", Token::Op(Op::Equal)),
    ("!=", Token::Op(Op::Unequal)),
    ("<=", Token::Op(Op::AtMost)),
    (">=", Token::Op(Op::AtLeast)),
    ("<", Token::Op(Op::Less)),
    (">", Token::Op(Op::More)),
    ("!", Token::Not),
    ("(", Token::Open),
    (")", Token::Close),
    (".", Token::Dot),
];

/// Returns whether a character can be in a word.
fn in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '*' | '?')
}

/// Returns whether a character can be in the name of a unit.
fn in_unit(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '/' | '%' | '°')
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Takes the characters that `belongs` is true for.
    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn error<T>(&self, at: Range<usize>, what: impl Into<String>) -> Result<T, TriggerError> {
        Err(TriggerError::new(self.text, at, what))
    }

    fn next(&mut self) -> Result<Option<Placed>, TriggerError> {
        self.take(char::is_whitespace);
        let (begin, rest) = (self.at, self.rest());
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let negative = first == '-' && rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
        let token = if first.is_ascii_digit() || negative {
            self.number(negative)?
        } else if matches!(first, '"' | '\'') {
            self.quoted(first)?
        } else if in_word(first) {
            match self.take(in_word) {
                "and" => Token::And,
                "or" => Token::Or,
                "not" => Token::Not,
                word => Token::Word(word.to_owned()),
            }
        } else if let Some((sign, token)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
            self.at += sign.len();
            token.clone()
        } else {
            let at = begin..begin + first.len_utf8();
            let instead = match first {
                '=' => ": two of them compare, `==`",
                '&' => ": `&&` or `and` is meant",
                '|' => ": `||` or `or` is meant",
                _ => "",
            };
            return self.error(at, format!("`{}` has no meaning here{instead}", first.escape_debug()));
        };
        Ok(Some((token, begin..self.at)))
    }

    fn quoted(&mut self, quote: char) -> Result<Token, TriggerError> {
        let begin = self.at;
        let mut text = String::new();
        let mut escaped = false;
        for (at, c) in self.rest().char_indices().skip(1) {
            if !escaped && c == quote {
                self.at += at + 1;
                return Ok(Token::Text(text));
            }
            escaped = !escaped && c == '\\';
            if !escaped {
                text.push(c);
            }
        }
        self.error(begin..self.text.len(), "a text without an end: a quote is missing")
    }

    fn number(&mut self, negative: bool) -> Result<Token, TriggerError> {
        let begin = self.at;
        self.at += usize::from(negative);
        let hex = self.rest().starts_with("0x") || self.rest().starts_with("0X");
        let number = if hex {
            self.at += 2;
            let digits = self.take(|c| c.is_ascii_hexdigit());
            u64::from_str_radix(digits, 16).ok().map(|n| Number::Hex(sign(negative, n.into())))
        } else {
            let whole = self.take(|c| c.is_ascii_digit());
            let point =
                self.rest().strip_prefix('.').is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()));
            if point {
                self.at += 1;
                self.take(|c| c.is_ascii_digit());
                let text = self.text.get(begin..self.at).unwrap_or_default();
                text.parse().ok().filter(|real: &f64| real.is_finite()).map(Number::Float)
            } else {
                whole.parse::<u64>().ok().map(|n| Number::Int(sign(negative, n.into())))
            }
        };
        let Some(number) = number else {
            return self.error(begin..self.at, "no number of at most 64 bits");
        };
        Ok(Token::Number(number, self.unit()?))
    }

    /// Takes the unit of a number, which may stand apart from it.
    fn unit(&mut self) -> Result<Option<Unit>, TriggerError> {
        let (end, begin) = (self.at, {
            self.take(char::is_whitespace);
            self.at
        });
        let name = self.take(in_unit);
        match Unit::of(name) {
            Some(unit) => Ok(Some(unit)),
            None if !name.is_empty() && (end == begin || !matches!(name, "and" | "or")) => {
                let near = hint(name, UNITS.iter().map(|unit| unit.name));
                self.error(begin..self.at, format!("unknown unit `{}`{near}", name.escape_debug()))
            }
            None => {
                self.at = end;
                Ok(None)
            }
        }
    }
}

fn sign(negative: bool, number: i128) -> i128 {
    if negative { -number } else { number }
}
