//! The statements of a kernel, as far as they decide which way work-items go.
//!
//! What is no statement of control is passed over up to its `;`. Where the text has no one structure, or may hide a choice, that is
//! [`Unclear`]: nothing is guessed.

use std::ops::Range;

use super::tokens::{Kind, Lines, Token};

/// Statements lie in each other at most so deep.
const DEEPEST: usize = 200;

/// What is known of the names in a text.
pub trait Known: std::fmt::Debug {
    /// Returns why a name must not be in a kernel, if it must not.
    fn hides(&self, name: &str) -> Option<String>;
    /// Returns whether a name stands for nothing, or for what may be before a statement.
    fn is_prefix(&self, name: &str) -> bool;
    /// Returns whether a name stands for whole statements.
    fn is_whole(&self, name: &str) -> bool;
}

/// Why a text is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unclear {
    /// Where, in bytes.
    pub at: usize,
    /// For people.
    pub why: String,
}

/// What is between a statement's parentheses, and decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its bytes.
    pub at: Range<usize>,
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// One that goes on to the next, from this byte.
    Plain(usize),
    /// Statements in braces.
    Block(Vec<Statement>),
    /// `if`.
    If {
        /// Its condition.
        condition: Condition,
        /// If it holds.
        then: Box<Statement>,
        /// If it does not.
        otherwise: Option<Box<Statement>>,
    },
    /// `while`, and `for`.
    Loop {
        /// Where what runs before it begins; none of `while`.
        first: Option<usize>,
        /// The condition; `for` may have none.
        condition: Option<Condition>,
        /// Where it begins.
        at: usize,
        /// Where what runs after each pass begins.
        step: Option<usize>,
        /// What is repeated.
        body: Box<Statement>,
    },
    /// `do`.
    Do {
        /// What is repeated.
        body: Box<Statement>,
        /// Its condition.
        condition: Condition,
    },
    /// `switch`.
    Switch {
        /// From its name to the end of its body.
        at: Range<usize>,
        /// What decides.
        condition: Condition,
        /// The statements, with [`Statement::Case`] among them.
        body: Vec<Statement>,
    },
    /// A label of a `switch`.
    Case {
        /// Where it begins, and where what follows does.
        at: Range<usize>,
        /// It is that of all other values.
        is_default: bool,
    },
    /// `break`.
    Break,
    /// `continue`.
    Continue,
    /// `return`, to behind its `;`.
    Return(Range<usize>),
    /// `goto` a label.
    Goto(String, usize),
    /// A label.
    Label(String, usize),
    /// Alternatives of which the preprocessor takes one: a choice, if any has one.
    Alternatives {
        /// Where each line of the preprocessor ends, and what follows.
        ways: Vec<(usize, Vec<Statement>)>,
        /// Whether there is an `#else`.
        is_complete: bool,
        /// Where the line of `#endif` is.
        end: usize,
    },
}

/// The tokens of a text, of which a part is read.
#[derive(Debug)]
pub struct Parser<'a> {
    source: &'a str,
    tokens: &'a [Token],
    macros: &'a dyn Known,
    lines: &'a Lines,
    /// The next token, and the first that is not read.
    at: usize,
    end: usize,
    depth: usize,
}

/// What ends a list of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The text's end.
    End,
    /// A `}`.
    Brace,
    /// A line of the preprocessor.
    Directive,
}

impl<'a> Parser<'a> {
    /// Reads these tokens of a source.
    pub fn new(
        source: &'a str,
        tokens: &'a [Token],
        range: Range<usize>,
        macros: &'a dyn Known,
        lines: &'a Lines,
    ) -> Self {
        Self { source, tokens, macros, lines, at: range.start, end: range.end, depth: 0 }
    }

    /// Reads statements to the end.
    ///
    /// # Errors
    /// Where they have no one structure, or hide a choice.
    pub fn all(mut self) -> Result<Vec<Statement>, Unclear> {
        self.list(Until::End)
    }

    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at).filter(|_| self.at < self.end)
    }

    fn text(&self) -> &'a str {
        match self.peek() {
            Some(token) if token.kind == Kind::Word => token.text(self.source),
            _ => "",
        }
    }

    /// Where the next token begins; behind the last the end of that.
    fn here(&self) -> usize {
        let last = || self.tokens.get(self.at.saturating_sub(1)).map_or(0, |token| token.at.end);
        self.peek().map_or_else(last, |token| token.at.start)
    }

    fn unclear<T>(&self, why: impl Into<String>) -> Result<T, Unclear> {
        Err(Unclear { at: self.here(), why: why.into() })
    }

    fn take(&mut self, mark: u8) -> Result<usize, Unclear> {
        match self.peek() {
            Some(token) if token.is(mark) => {
                self.at += 1;
                Ok(token.at.end)
            }
            _ => self.unclear(format!("no `{}` where one is expected", char::from(mark))),
        }
    }

    /// Returns the first word of the directive that comes next; none if something else does.
    fn directive(&self) -> Option<&'a str> {
        let token = self.peek().filter(|token| token.kind == Kind::Directive)?;
        Some(super::tokens::command(token.text(self.source)).0)
    }

    /// Passes over directives that change no structure.
    fn pass_directives(&mut self) -> Result<(), Unclear> {
        while let Some(name) = self.directive() {
            match name {
                "if" | "ifdef" | "ifndef" | "elif" | "else" | "endif" => break,
                "include" => return self.unclear("what it includes is not known"),
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    fn list(&mut self, until: Until) -> Result<Vec<Statement>, Unclear> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.unclear("statements lie too deep in each other");
        }
        let mut list = Vec::new();
        loop {
            self.pass_directives()?;
            match (self.directive(), self.peek()) {
                (Some("if" | "ifdef" | "ifndef"), _) => list.push(self.alternatives()?),
                (Some(_), _) if until == Until::Directive => break,
                (Some(_), _) => return self.unclear("a directive splits a statement"),
                (None, None) if until == Until::End => break,
                (None, None) => return self.unclear("it ends within a statement"),
                (None, Some(token)) if token.is(b'}') && until == Until::Brace => break,
                _ => list.push(self.statement()?),
            }
        }
        self.depth -= 1;
        Ok(list)
    }

    fn alternatives(&mut self) -> Result<Statement, Unclear> {
        let begin = self.at;
        let (mut ways, mut is_complete) = (Vec::new(), false);
        loop {
            let line = self.peek().map_or(0, |token| token.at.end);
            self.at += 1;
            ways.push((line, self.list(Until::Directive)?));
            match self.directive() {
                Some("elif") if !is_complete => {}
                Some("else") if !is_complete => is_complete = true,
                Some("endif") => break,
                _ => return self.unclear("a directive splits a statement"),
            }
        }
        let end = self.here();
        self.at += 1;
        let chooses = ways.iter().any(|(_, list)| list.iter().any(|one| !matches!(one, Statement::Plain(_))));
        let first = self.tokens.get(begin).map_or(0, |token| token.at.end);
        Ok(match chooses {
            true => Statement::Alternatives { ways, is_complete, end },
            false => Statement::Plain(self.lines.next(first).unwrap_or(first)),
        })
    }

    fn statement(&mut self) -> Result<Statement, Unclear> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.unclear("statements lie too deep in each other");
        }
        self.pass_directives()?;
        let statement = self.one()?;
        self.depth -= 1;
        Ok(statement)
    }

    fn one(&mut self) -> Result<Statement, Unclear> {
        let begin = self.here();
        loop {
            match self.text() {
                "__attribute__" | "_Pragma" => {
                    self.at += 1;
                    self.group()?;
                }
                word if self.macros.is_prefix(word) => self.at += 1,
                _ => break,
            }
            self.pass_directives()?;
        }
        if self.peek().is_some_and(|token| token.is(b'{')) {
            self.at += 1;
            let list = self.list(Until::Brace)?;
            self.take(b'}')?;
            return Ok(Statement::Block(list));
        }
        let (word, here) = (self.text(), self.here());
        if word.is_empty() {
            return self.plain(begin);
        }
        self.at += 1;
        match word {
            "else" => self.unclear("an `else` without an `if`"),
            _ if is_control(word) => self.control(word, here),
            _ if self.is_label() => {
                self.at += 1;
                Ok(Statement::Label(word.to_owned(), here))
            }
            _ => {
                self.at -= 1;
                self.plain(begin)
            }
        }
    }

    /// Reads a statement of control behind its first word, which is at `here`.
    fn control(&mut self, word: &str, here: usize) -> Result<Statement, Unclear> {
        match word {
            "if" => self.if_(),
            "while" => {
                let condition = self.condition()?;
                let (at, body) = (condition.at.start, Box::new(self.statement()?));
                Ok(Statement::Loop { first: None, condition: Some(condition), at, step: None, body })
            }
            "for" => self.for_(here),
            "do" => {
                let body = Box::new(self.statement()?);
                if self.text() != "while" {
                    return self.unclear("no `while` behind `do`");
                }
                self.at += 1;
                let condition = self.condition()?;
                self.take(b';')?;
                Ok(Statement::Do { body, condition })
            }
            "switch" => {
                let condition = self.condition()?;
                self.pass_directives()?;
                self.take(b'{')?;
                let body = self.list(Until::Brace)?;
                let end = self.take(b'}')?;
                Ok(Statement::Switch { at: here..end, condition, body })
            }
            "case" | "default" => self.case(here, word == "default"),
            "break" | "continue" => {
                self.take(b';')?;
                Ok(if word == "break" { Statement::Break } else { Statement::Continue })
            }
            "return" => {
                let end = self.semicolon()?;
                Ok(Statement::Return(here..end))
            }
            "goto" => {
                let label = self.text().to_owned();
                self.at += 1;
                self.take(b';')?;
                Ok(Statement::Goto(label, here))
            }
            _ => self.unclear("a statement that is not known"),
        }
    }

    /// Whether the word before is a label.
    fn is_label(&self) -> bool {
        self.peek().is_some_and(|token| token.is(b':'))
    }

    fn if_(&mut self) -> Result<Statement, Unclear> {
        let condition = self.condition()?;
        let then = Box::new(self.statement()?);
        let mut otherwise = None;
        let before = self.at;
        self.pass_directives()?;
        if self.text() == "else" {
            self.at += 1;
            otherwise = Some(Box::new(self.statement()?));
        } else {
            self.at = before;
        }
        Ok(Statement::If { condition, then, otherwise })
    }

    fn for_(&mut self, here: usize) -> Result<Statement, Unclear> {
        self.take(b'(')?;
        let empty = |begin: usize, end: usize, source: &str| {
            source.get(begin..end).is_none_or(|text| super::tokens::tokens(text).is_empty())
        };
        self.semicolon()?;
        let begin = self.here();
        let end = self.semicolon()? - 1;
        let step = self.here();
        while !self.peek().is_some_and(|token| token.is(b')')) {
            self.pass_one()?;
        }
        let condition = (!empty(begin, end, self.source)).then_some(Condition { at: begin..end });
        let step = (!empty(step, self.here(), self.source)).then_some(step);
        self.take(b')')?;
        let body = Box::new(self.statement()?);
        Ok(Statement::Loop { first: Some(here), condition, at: begin, step, body })
    }

    fn case(&mut self, here: usize, is_default: bool) -> Result<Statement, Unclear> {
        // Of `a ? b : c` the colon is not the label's.
        let mut open = 0;
        loop {
            match self.peek().map(|token| token.kind) {
                Some(Kind::Mark(b'?')) => open += 1,
                Some(Kind::Mark(b':')) if open == 0 => break,
                Some(Kind::Mark(b':')) => open -= 1,
                Some(Kind::Mark(b';' | b'{' | b'}')) => return self.unclear("a label without an end"),
                _ => {}
            }
            self.pass_one()?;
        }
        let end = self.take(b':')?;
        Ok(Statement::Case { at: here..end, is_default })
    }

    /// Reads what is between parentheses.
    fn condition(&mut self) -> Result<Condition, Unclear> {
        let begin = self.here();
        if !self.peek().is_some_and(|token| token.is(b'(')) {
            return self.unclear("no `(` where one is expected");
        }
        let end = self.group()?;
        Ok(Condition { at: begin + 1..end - 1 })
    }

    /// Passes over what is between parentheses, brackets or braces. Returns where it ends.
    fn group(&mut self) -> Result<usize, Unclear> {
        let close = match self.peek().map(|token| token.kind) {
            Some(Kind::Mark(b'(')) => b')',
            Some(Kind::Mark(b'[')) => b']',
            Some(Kind::Mark(b'{')) => b'}',
            _ => return self.unclear("no `(` where one is expected"),
        };
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.unclear("parentheses lie too deep in each other");
        }
        self.at += 1;
        while !self.peek().is_some_and(|token| token.is(close)) {
            self.pass_one()?;
        }
        self.depth -= 1;
        self.take(close)
    }

    /// Passes over a token, or a group of them.
    fn pass_one(&mut self) -> Result<(), Unclear> {
        let Some(token) = self.peek() else { return self.unclear("it ends within a statement") };
        match token.kind {
            Kind::Mark(b'(' | b'[' | b'{') => {
                self.group()?;
            }
            Kind::Mark(b')' | b']' | b'}') => return self.unclear("a bracket that nothing opened"),
            Kind::Directive => {
                if self.is_conditional() {
                    return self.opaque();
                }
                let before = self.at;
                self.pass_directives()?;
                if self.at == before {
                    return self.unclear("a directive splits a statement");
                }
            }
            Kind::Word if is_control(token.text(self.source)) => {
                return self.unclear(format!("`{}` within a statement", token.text(self.source)));
            }
            Kind::Word => {
                if let Some(why) = self.macros.hides(token.text(self.source)) {
                    return self.unclear(why);
                }
                self.at += 1;
            }
            _ => self.at += 1,
        }
        Ok(())
    }

    /// Passes over all up to a `;`. Returns where that ends.
    fn semicolon(&mut self) -> Result<usize, Unclear> {
        while !self.peek().is_some_and(|token| token.is(b';')) {
            self.pass_one()?;
        }
        self.take(b';')
    }

    /// Passes over a statement that is none of control. A macro may be one without a `;`.
    fn plain(&mut self, begin: usize) -> Result<Statement, Unclear> {
        let first = self.at;
        while let Some(token) = self.peek() {
            match token.kind {
                Kind::Mark(b';') => {
                    self.at += 1;
                    break;
                }
                Kind::Mark(b'}') if self.is_call(first) => break,
                Kind::Mark(b'{') if self.is_call(first) => {
                    return self.unclear("what is before a `{` may be a macro that hides a choice");
                }
                Kind::Word if is_control(token.text(self.source)) && self.is_whole(first) => break,
                Kind::Directive if self.is_whole(first) => break,
                _ => self.pass_one()?,
            }
        }
        Ok(Statement::Plain(begin))
    }

    fn is_conditional(&self) -> bool {
        matches!(self.directive(), Some("if" | "ifdef" | "ifndef"))
    }

    /// Passes over alternatives within a statement, which must leave its brackets as they were.
    fn opaque(&mut self) -> Result<(), Unclear> {
        let mut open = 0;
        loop {
            match self.directive() {
                Some("if" | "ifdef" | "ifndef") => open += 1,
                Some("endif") => open -= 1,
                Some("include") => return self.unclear("what it includes is not known"),
                Some(_) => {}
                None if self.peek().is_some_and(|token| token.is(b';')) => {
                    return self.unclear("a directive splits a statement");
                }
                None => {
                    self.pass_one()?;
                    continue;
                }
            }
            self.at += 1;
            if open == 0 {
                return Ok(());
            }
        }
    }

    /// Whether all since a token is a word, and what is in parentheses behind it.
    fn is_call(&self, first: usize) -> bool {
        let is_word = self.tokens.get(first).is_some_and(|token| {
            token.kind == Kind::Word && !matches!(token.text(self.source), "struct" | "union" | "enum")
        });
        let opens = self.tokens.get(first + 1).is_some_and(|token| token.is(b'('));
        let closes = self.at.checked_sub(1).and_then(|last| self.tokens.get(last));
        is_word
            && (self.at == first + 1
                || (opens && closes.is_some_and(|token| token.is(b')')) && self.closes(first + 1)))
    }

    /// Whether a parenthesis is closed by the last token that was read.
    fn closes(&self, open: usize) -> bool {
        let mut depth = 0usize;
        let tokens = self.tokens.get(open..self.at).unwrap_or_default();
        let closed = tokens.iter().position(|token| {
            match token.kind {
                Kind::Mark(b'(') => depth += 1,
                Kind::Mark(b')') => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        closed == Some(tokens.len().wrapping_sub(1))
    }

    /// Whether what was read since a token is a macro that is known to be whole statements.
    fn is_whole(&self, first: usize) -> bool {
        self.is_call(first)
            && self.tokens.get(first).is_some_and(|token| self.macros.is_whole(token.text(self.source)))
    }
}

/// Whether a word is of a statement of control.
pub fn is_control(word: &str) -> bool {
    matches!(
        word,
        "if" | "else"
            | "for"
            | "while"
            | "do"
            | "switch"
            | "case"
            | "default"
            | "break"
            | "continue"
            | "goto"
            | "return"
    )
}
