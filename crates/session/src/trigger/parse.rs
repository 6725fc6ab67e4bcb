//! From text to a tree. The grammar is that of [docs/triggers.md].
//!
//! [docs/triggers.md]: https://github.com/hetrace/hetrace/blob/main/docs/triggers.md

use std::ops::Range;
use std::str::FromStr;

use super::TriggerError;
use super::lex::{Op, Placed, Token, lex};
use super::syntax::{Expr, Fixed, Literal, Test, Trigger};

/// Bytes of an expression.
const LONGEST: usize = 4096;
/// How deep parentheses and negations may be.
const DEEPEST: usize = 64;

impl FromStr for Trigger {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Self, TriggerError> {
        Ok(Trigger { text: text.to_owned(), root: parse(text)? })
    }
}

/// Reads an expression.
fn parse(text: &str) -> Result<Expr, TriggerError> {
    if text.len() > LONGEST {
        let shown: String = text.chars().take(40).collect();
        let end = shown.len();
        return Err(TriggerError::new(&shown, 0..end, format!("an expression has at most {LONGEST} bytes")));
    }
    let mut parser = Parser { text, tokens: lex(text)?, at: 0, depth: 0 };
    let expr = parser.any()?;
    match parser.tokens.get(parser.at) {
        None => Ok(expr),
        Some((Token::Close, at)) => parser.error(at.clone(), "a `)` without a `(`"),
        Some((_, at)) => parser.error(at.clone(), "expected `&&`, `||` or the end"),
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Placed>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn error<T>(&self, at: Range<usize>, what: impl Into<String>) -> Result<T, TriggerError> {
        Err(TriggerError::new(self.text, at, what))
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    /// Returns the bytes of what comes next; behind the end, those of nothing.
    fn here(&self) -> Range<usize> {
        let end = self.text.trim_end().len();
        self.tokens.get(self.at).map_or(end..end, |(_, at)| at.clone())
    }

    fn take(&mut self, token: &Token) -> bool {
        let there = self.peek() == Some(token);
        self.at += usize::from(there);
        there
    }

    fn any(&mut self) -> Result<Expr, TriggerError> {
        let mut parts = Vec::new();
        loop {
            match self.all()? {
                Expr::Any(inner) => parts.extend(inner),
                part => parts.push(part),
            }
            if !self.take(&Token::Or) {
                return Ok(single(parts, Expr::Any));
            }
        }
    }

    fn all(&mut self) -> Result<Expr, TriggerError> {
        let mut parts = Vec::new();
        loop {
            match self.not()? {
                Expr::All(inner) => parts.extend(inner),
                part => parts.push(part),
            }
            if !self.take(&Token::And) {
                return Ok(single(parts, Expr::All));
            }
        }
    }

    fn not(&mut self) -> Result<Expr, TriggerError> {
        let at = self.here();
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.error(at, format!("parentheses and negations are deeper than {DEEPEST}"));
        }
        let expr = if self.take(&Token::Not) {
            Expr::Not(Box::new(self.not()?))
        } else if self.take(&Token::Open) {
            let inner = self.any()?;
            if !self.take(&Token::Close) {
                return match self.peek() {
                    None => self.error(at, "this `(` has no `)`"),
                    Some(_) => self.error(self.here(), "expected `&&`, `||` or `)`"),
                };
            }
            inner
        } else {
            Expr::Test(self.test()?)
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn test(&mut self) -> Result<Test, TriggerError> {
        let mut subject = vec![self.word("expected a condition, such as `FUNCTION.duration > 2ms`")?];
        while self.take(&Token::Dot) {
            subject.push(self.word("expected a name behind the `.`")?);
        }
        let compared = match self.peek() {
            Some(Token::Op(op)) => {
                let op: Op = *op;
                self.at += 1;
                Some((op, self.literal()?))
            }
            _ => None,
        };
        let begin = subject.first().map_or(0, |(_, at)| at.start);
        let end = match &compared {
            Some((_, literal)) => literal.at.end,
            None => subject.last().map_or(0, |(_, at)| at.end),
        };
        Ok(Test { subject, compared, at: begin..end })
    }

    fn word(&mut self, expected: &str) -> Result<(String, Range<usize>), TriggerError> {
        match self.tokens.get(self.at) {
            Some((Token::Word(word), at)) => {
                self.at += 1;
                Ok((word.clone(), at.clone()))
            }
            _ => self.error(self.here(), expected),
        }
    }

    fn literal(&mut self) -> Result<Literal, TriggerError> {
        let value = match self.peek() {
            Some(Token::Number(number, unit)) => Fixed::Number(*number, *unit),
            Some(Token::Text(text)) => Fixed::Text(text.clone()),
            Some(Token::Word(word)) => Fixed::Word(word.clone()),
            _ => return self.error(self.here(), "expected a number, a text in quotes or a name"),
        };
        let at = self.here();
        self.at += 1;
        Ok(Literal { value, at })
    }
}

/// Returns the only part, or all of them as one.
fn single(mut parts: Vec<Expr>, several: fn(Vec<Expr>) -> Expr) -> Expr {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => {
            parts.extend(last);
            several(parts)
        }
    }
}
