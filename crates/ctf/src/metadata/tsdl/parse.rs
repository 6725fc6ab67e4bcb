//! Tokens to a syntax tree: blocks, assignments and the means to do it.

use std::rc::Rc;

use super::ast::{Assign, Item, Literal};
use super::lex::{Kind, Punct, Token, Tokens, tokens_of_body};
use super::{ParseError, ParseErrorKind};

pub(super) use crate::metadata::MAX_DEPTH;

/// Returns the top-level items of a text.
pub(super) fn items(tokens: Tokens<'_>) -> Result<Vec<Item>, ParseError> {
    let Tokens { list: tokens, bodies, .. } = tokens;
    let bodies = bodies.into_iter().map(|text| (text, None)).collect();
    let mut parser = Parser { tokens, bodies, at: 0, depth: 0 };
    let mut items = Vec::new();
    while !parser.done() {
        if !parser.eat(";") {
            parser.item(&mut items)?;
        }
    }
    Ok(items)
}

pub(super) struct Parser<'s> {
    tokens: Vec<Token<'s>>,
    /// Attributes of integers, and what they say, once that is known.
    bodies: Vec<(&'s str, Option<Rc<Vec<Assign>>>)>,
    at: usize,
    depth: u32,
}

impl<'s> Parser<'s> {
    pub fn done(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// Returns the line of the next token, or of the last one at the end.
    pub fn line(&self) -> u32 {
        let token = self.tokens.get(self.at).or(self.tokens.last());
        token.map_or(1, |t| t.line)
    }

    pub fn peek(&self) -> Option<&Kind<'s>> {
        self.tokens.get(self.at).map(|t| &t.kind)
    }

    pub fn peek_ident(&self) -> Option<&'s str> {
        match self.peek() {
            Some(Kind::Ident(name)) => Some(name),
            _ => None,
        }
    }

    /// Returns whether the token `ahead` of the next one is this punctuation.
    #[inline]
    pub fn is_punct_at(&self, ahead: usize, punct: &str) -> bool {
        let punct = Punct::of(punct);
        matches!(self.tokens.get(self.at + ahead), Some(t) if matches!(t.kind, Kind::Punct(p) if p == punct))
    }

    #[inline]
    pub fn is_punct(&self, punct: &str) -> bool {
        self.is_punct_at(0, punct)
    }

    pub fn advance(&mut self) {
        self.at += 1;
    }

    #[inline]
    pub fn eat(&mut self, punct: &str) -> bool {
        let there = self.is_punct(punct);
        self.at += usize::from(there);
        there
    }

    pub fn expect(&mut self, punct: &'static str) -> Result<(), ParseError> {
        if self.eat(punct) { Ok(()) } else { Err(self.unexpected(punct)) }
    }

    pub fn unexpected(&self, expected: &'static str) -> ParseError {
        let found = self.peek().map_or("the end".into(), |kind| kind.to_string());
        ParseError::new(self.line(), ParseErrorKind::Expected { expected, found })
    }

    pub fn ident(&mut self) -> Result<&'s str, ParseError> {
        let name = self.peek_ident().ok_or_else(|| self.unexpected("a name"))?;
        self.at += 1;
        Ok(name)
    }

    /// Runs `inner` one level deeper, if that is allowed.
    pub fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth >= MAX_DEPTH {
            return Err(ParseError::new(self.line(), ParseErrorKind::TooDeep(MAX_DEPTH)));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// `{ item… }`
    pub fn body(&mut self) -> Result<Vec<Item>, ParseError> {
        self.expect("{")?;
        self.nested(|p| {
            let mut items = Vec::new();
            while !p.eat("}") {
                if !p.eat(";") {
                    p.item(&mut items)?;
                }
            }
            Ok(items)
        })
    }

    /// One item, with the `;` at its end.
    fn item(&mut self, items: &mut Vec<Item>) -> Result<(), ParseError> {
        let line = self.line();
        let Some(word) = self.peek_ident() else {
            return Err(self.unexpected("a declaration"));
        };
        match word {
            "typedef" => {
                self.advance();
                let (spec, declarators) = self.declaration()?;
                items.push(Item::Typedef { spec, declarators });
            }
            "typealias" => {
                self.advance();
                let spec = self.type_spec()?;
                // An alias may look like a declarator, `:= unsigned long *`.
                self.expect(":=")?;
                let name = self.type_name()?;
                items.push(Item::TypeAlias { spec, name });
            }
            _ if self.is_block(word) => {
                self.advance();
                if word == "callsite" {
                    self.skip_braces()?;
                } else {
                    let body = self.body()?;
                    items.push(Item::Block { line, kind: word.into(), items: body });
                }
            }
            _ if self.is_assignment() => {
                let path = self.path()?;
                if self.eat(":=") {
                    let spec = self.type_spec()?;
                    items.push(Item::TypeAssign { path, spec });
                } else {
                    self.expect("=")?;
                    let value = self.literal()?;
                    items.push(Item::Assign(Assign { line, path, value }));
                }
            }
            _ => {
                let (spec, declarators) = self.declaration()?;
                items.push(if declarators.is_empty() {
                    Item::Type(spec)
                } else {
                    Item::Field { spec, declarators }
                });
            }
        }
        // babeltrace2 wants a `;` after every item, but nothing is gained by
        // refusing a block without one.
        if self.done() && matches!(items.last(), Some(Item::Block { .. })) {
            return Ok(());
        }
        self.expect(";")
    }

    /// `word {`, where the word does not begin a type.
    fn is_block(&self, word: &str) -> bool {
        let is_type = matches!(word, "struct" | "variant" | "enum" | "integer" | "floating_point" | "string");
        !is_type && self.is_punct_at(1, "{")
    }

    /// `a.b.c =` or `a.b.c :=`
    fn is_assignment(&self) -> bool {
        let mut ahead = 1;
        while self.is_punct_at(ahead, ".") || self.is_punct_at(ahead, "->") {
            ahead += 2;
        }
        self.is_punct_at(ahead, "=") || self.is_punct_at(ahead, ":=")
    }

    /// Passes over `{ … }`, whatever is in it.
    fn skip_braces(&mut self) -> Result<(), ParseError> {
        self.expect("{")?;
        let mut open = 1;
        while open > 0 {
            match self.peek() {
                None => return Err(self.unexpected("}")),
                Some(Kind::Punct(p)) if *p == Punct::of("{") => open += 1,
                Some(Kind::Punct(p)) if *p == Punct::of("}") => open -= 1,
                Some(_) => {}
            }
            self.advance();
        }
        Ok(())
    }

    /// `a.b.c`
    pub fn path(&mut self) -> Result<Vec<String>, ParseError> {
        let mut path = vec![self.ident()?.to_owned()];
        while self.eat(".") || self.eat("->") {
            path.push(self.ident()?.to_owned());
        }
        Ok(path)
    }

    /// `name = value;` … `}`; the opening brace has been taken.
    pub fn attributes(&mut self) -> Result<Vec<Assign>, ParseError> {
        let mut attributes = Vec::new();
        while !self.eat("}") {
            if self.eat(";") {
                continue;
            }
            let line = self.line();
            let path = self.path()?;
            self.expect("=")?;
            let value = self.literal()?;
            if !self.is_punct("}") {
                self.expect(";")?;
            }
            attributes.push(Assign { line, path, value });
        }
        Ok(attributes)
    }

    /// The attributes of an integer with their braces.
    pub fn integer_attributes(&mut self) -> Result<Rc<Vec<Assign>>, ParseError> {
        let Some(&Kind::Body(number)) = self.peek() else {
            self.expect("{")?;
            return self.attributes().map(Rc::new);
        };
        let line = self.line();
        self.advance();
        let Some((text, known)) = self.bodies.get_mut(number) else { return Err(self.unexpected("{")) };
        if let Some(known) = known {
            return Ok(Rc::clone(known));
        }
        let tokens = tokens_of_body(text, line)?;
        let mut inside = Parser { tokens, bodies: Vec::new(), at: 0, depth: self.depth };
        let attributes = inside.attributes().map(Rc::new)?;
        if let Some((_, known)) = self.bodies.get_mut(number) {
            *known = Some(Rc::clone(&attributes));
        }
        Ok(attributes)
    }

    pub fn literal(&mut self) -> Result<Literal, ParseError> {
        match self.peek() {
            Some(Kind::Str(text)) => {
                let text = text.clone().into_owned();
                self.advance();
                Ok(Literal::Str(text))
            }
            Some(Kind::Ident(_)) => self.path().map(Literal::Path),
            _ => self.integer().map(Literal::Int),
        }
    }

    /// Returns a number with signs, perhaps in parentheses.
    pub fn integer(&mut self) -> Result<i128, ParseError> {
        let mut negative = false;
        loop {
            match self.peek() {
                Some(Kind::Punct(p)) if *p == Punct::of("-") => negative = !negative,
                Some(Kind::Punct(p)) if *p == Punct::of("+") => {}
                Some(Kind::Punct(p)) if *p == Punct::of("(") => {
                    self.advance();
                    let value = self.nested(Self::integer)?;
                    self.expect(")")?;
                    return Ok(if negative { -value } else { value });
                }
                Some(&Kind::Int(value)) => {
                    self.advance();
                    let value = i128::from(value);
                    return Ok(if negative { -value } else { value });
                }
                _ => return Err(self.unexpected("a number")),
            }
            self.advance();
        }
    }
}
