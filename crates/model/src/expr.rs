//! Lengths and sizes as expressions over a function's parameters.
//!
//! ```text
//! expr   = term { ("+" | "-") term }
//! term   = factor { ("*" | "/") factor }
//! factor = number | "*" name | name | name "[" number "]"
//!        | name "(" expr { "," expr } ")" | "(" expr ")"
//! ```
//! `*name` is what a pointer parameter points at, `name[i]` its i-th element,
//! and `name.member` a member of the struct that it points at.
//! `before(*name)` is what a pointer parameter pointed at when the call began.
//! `min`, `max` and, in sizes of memory, `choose` are built in; any other call names a hand-written function
//! of the API's own folder, or in sizes of memory a table of numbers, of which a model has a `choose`.
//!
//! `choose(x, k, v, …)` is the `v` of the `k` that equals `x`, else what stands alone at the end; without
//! that, it is not known.

use std::fmt;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// A literal.
    Number(u64),
    /// A parameter's value.
    Name(String),
    /// What a pointer parameter points at.
    Deref(String),
    /// An element of what a pointer parameter points at.
    Index(String, u64),
    /// Two operands and one of `+ - * /`.
    Binary(Box<Expr>, char, Box<Expr>),
    /// A function and its arguments.
    Call(String, Vec<Expr>),
}

/// Why an expression could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expression `{text}`: {what} at byte {at}")]
pub struct ExprError {
    /// The whole expression.
    pub text: String,
    /// What was expected or wrong.
    pub what: &'static str,
    /// Where.
    pub at: usize,
}

/// Deep nesting is a mistake, and would overflow the stack.
const MAX_DEPTH: usize = 16;

impl Expr {
    /// Reads an expression.
    ///
    /// # Errors
    /// When the text does not follow the grammar above.
    pub fn parse(text: &str) -> Result<Expr, ExprError> {
        let mut parser = Parser { text, at: 0 };
        let expr = parser.sum(0)?;
        parser.space();
        if parser.at < text.len() {
            return Err(parser.error("end of text expected"));
        }
        Ok(expr)
    }

    /// Returns every parameter the expression mentions.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Expr::Number(_) => vec![],
            Expr::Name(n) | Expr::Deref(n) | Expr::Index(n, _) => vec![n],
            Expr::Binary(a, _, b) => [a.names(), b.names()].concat(),
            Expr::Call(_, args) => args.iter().flat_map(Expr::names).collect(),
        }
    }
}

impl Expr {
    /// Returns the value, if `leaf` has one for each name, `*name` and `name[i]` that it takes.
    pub fn value(&self, leaf: &dyn Fn(&Expr) -> Option<u64>) -> Option<u64> {
        match self {
            Expr::Number(n) => Some(*n),
            Expr::Name(_) | Expr::Deref(_) | Expr::Index(..) => leaf(self),
            Expr::Binary(a, op, b) => {
                let (a, b) = (a.value(leaf)?, b.value(leaf)?);
                match op {
                    '+' => a.checked_add(b),
                    '-' => a.checked_sub(b),
                    '*' => a.checked_mul(b),
                    '/' => a.checked_div(b),
                    _ => None,
                }
            }
            Expr::Call(name, args) => match (name.as_str(), args.as_slice()) {
                ("min", [a, b]) => Some(a.value(leaf)?.min(b.value(leaf)?)),
                ("max", [a, b]) => Some(a.value(leaf)?.max(b.value(leaf)?)),
                (CHOOSE, [chosen, rest @ ..]) => {
                    let chosen = chosen.value(leaf)?;
                    let (pairs, otherwise) = rest.as_chunks::<2>();
                    let found = pairs.iter().find(|[key, _]| key.value(leaf) == Some(chosen));
                    found.map(|[_, value]| value).or(otherwise.first())?.value(leaf)
                }
                _ => None,
            },
        }
    }

    /// Returns it with calls of tables as `choose`: `table(x)` is what the table has for the value of `x`, and
    /// `table(x, y)` is `y` where it has nothing. Tables are looked up by name.
    pub(crate) fn with_tables(&self, table: &dyn Fn(&str) -> Option<Numbers>) -> Expr {
        match self {
            Expr::Binary(a, op, b) => {
                Expr::Binary(Box::new(a.with_tables(table)), *op, Box::new(b.with_tables(table)))
            }
            Expr::Call(name, args) => {
                let mut args: Vec<Expr> = args.iter().map(|arg| arg.with_tables(table)).collect();
                let Some(pairs) = table(name) else { return Expr::Call(name.clone(), args) };
                let otherwise = args.split_off(1);
                args.extend(pairs.into_iter().flat_map(|(k, v)| [Expr::Number(k), Expr::Number(v)]));
                args.extend(otherwise);
                Expr::Call(CHOOSE.to_owned(), args)
            }
            other => other.clone(),
        }
    }
}

/// Values, each with the number that a table has for it.
pub(crate) type Numbers = Vec<(u64, u64)>;

/// The built-in function that chooses by a value.
pub(crate) const CHOOSE: &str = "choose";

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Number(n) => write!(f, "{n}"),
            Expr::Name(n) => f.write_str(n),
            Expr::Deref(n) => write!(f, "*{n}"),
            Expr::Index(n, i) => write!(f, "{n}[{i}]"),
            Expr::Binary(a, op, b) => {
                // Operators bind to the left, so on the right any needs them.
                let left = matches!((&**a, op), (Expr::Binary(..), '*' | '/'));
                let right = matches!(**b, Expr::Binary(..));
                let side = |e: &Expr, set_off| if set_off { format!("({e})") } else { e.to_string() };
                write!(f, "{} {op} {}", side(a, left), side(b, right))
            }
            Expr::Call(name, args) => {
                let args: Vec<String> = args.iter().map(Expr::to_string).collect();
                write!(f, "{name}({})", args.join(", "))
            }
        }
    }
}

impl serde::Serialize for Expr {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Expr {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str> as serde::Deserialize>::deserialize(d)?;
        Expr::parse(&text).map_err(serde::de::Error::custom)
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn error(&self, what: &'static str) -> ExprError {
        ExprError { text: self.text.to_owned(), what, at: self.at }
    }

    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while self.peek() == b' ' {
            self.at += 1;
        }
    }

    fn eat(&mut self, c: u8) -> bool {
        self.space();
        let found = self.peek() == c;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, c: u8, what: &'static str) -> Result<(), ExprError> {
        if self.eat(c) { Ok(()) } else { Err(self.error(what)) }
    }

    fn word(&mut self) -> &str {
        self.space();
        let start = self.at;
        while self.peek().is_ascii_alphanumeric() || matches!(self.peek(), b'_' | b'.') {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn sum(&mut self, depth: usize) -> Result<Expr, ExprError> {
        if depth > MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        let mut left = self.product(depth)?;
        loop {
            let op = if self.eat(b'+') {
                '+'
            } else if self.eat(b'-') {
                '-'
            } else {
                return Ok(left);
            };
            left = Expr::Binary(Box::new(left), op, Box::new(self.product(depth)?));
        }
    }

    fn product(&mut self, depth: usize) -> Result<Expr, ExprError> {
        let mut left = self.factor(depth)?;
        loop {
            let op = if self.eat(b'*') {
                '*'
            } else if self.eat(b'/') {
                '/'
            } else {
                return Ok(left);
            };
            left = Expr::Binary(Box::new(left), op, Box::new(self.factor(depth)?));
        }
    }

    fn number(&mut self) -> Result<u64, ExprError> {
        let word = self.word().to_owned();
        word.parse().map_err(|_| self.error("number expected"))
    }

    fn factor(&mut self, depth: usize) -> Result<Expr, ExprError> {
        if self.eat(b'(') {
            let inner = self.sum(depth + 1)?;
            self.expect(b')', "`)` expected")?;
            return Ok(inner);
        }
        if self.eat(b'*') {
            let name = self.word().to_owned();
            return if name.is_empty() { Err(self.error("name expected")) } else { Ok(Expr::Deref(name)) };
        }
        self.space();
        if self.peek().is_ascii_digit() {
            return Ok(Expr::Number(self.number()?));
        }
        let name = self.word().to_owned();
        if name.is_empty() {
            return Err(self.error("name or number expected"));
        }
        if self.eat(b'[') {
            let index = self.number()?;
            self.expect(b']', "`]` expected")?;
            return Ok(Expr::Index(name, index));
        }
        if self.eat(b'(') {
            let mut args = vec![self.sum(depth + 1)?];
            while self.eat(b',') {
                args.push(self.sum(depth + 1)?);
            }
            self.expect(b')', "`)` expected")?;
            return Ok(Expr::Call(name, args));
        }
        Ok(Expr::Name(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_semantics_files_use() {
        for (text, shown) in [
            ("num_events", "num_events"),
            ("min(num_entries,*num_devices)", "min(num_entries, *num_devices)"),
            ("region[0]*region[1] * region[2]", "(region[0] * region[1]) * region[2]"),
            ("2 * (n + 1)", "2 * (n + 1)"),
            ("a + (b - c) - d", "a + (b - c) - d"),
            ("min(config.count, 4)", "min(config.count, 4)"),
        ] {
            let expr = Expr::parse(text).unwrap();
            assert_eq!(expr.to_string(), shown);
            assert_eq!(Expr::parse(shown).unwrap(), expr, "printing and reading is the identity");
        }
    }

    #[test]
    fn values_are_chosen_and_tables_are_lists_of_choices() {
        let leaf = |expr: &Expr| match expr {
            Expr::Name(name) if name == "desc.levels" => Some(1),
            Expr::Name(name) if name == "format" => Some(7),
            Expr::Index(name, at) if name == "region" => Some(10 + at),
            _ => None,
        };
        let value = |text: &str| Expr::parse(text).unwrap().value(&leaf);
        assert_eq!(value("choose(desc.levels, 0, 1, 1, 1) * region[1]"), Some(11));
        assert_eq!(value("choose(format, 0, 1, 1, 1)"), None, "nothing is said of 7");
        assert_eq!(value("choose(format, 0, 1, max(3, 2))"), Some(3));
        assert_eq!(value("min(format, unknown)"), None);
        assert_eq!(value("1 - format"), None, "sizes are not negative");
        let table = |name: &str| (name == "bytes").then(|| vec![(7, 2), (8, 4)]);
        let resolved = Expr::parse("bytes(format) * bytes(desc.levels, 5)").unwrap().with_tables(&table);
        assert_eq!(resolved.to_string(), "choose(format, 7, 2, 8, 4) * choose(desc.levels, 7, 2, 8, 4, 5)");
        assert_eq!(Expr::parse(&resolved.to_string()).unwrap(), resolved);
        assert_eq!(resolved.value(&leaf), Some(10));
    }

    #[test]
    fn says_where_it_is_wrong() {
        for (text, at) in [("", 0), ("a b", 2), ("f(", 2), ("a[x]", 3), ("*", 1)] {
            assert_eq!(Expr::parse(text).unwrap_err().at, at, "{text}");
        }
        assert!(Expr::parse(&"(".repeat(100)).is_err());
    }
}
