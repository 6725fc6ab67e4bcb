//! Tokens to a syntax tree: types.

use super::ast::{Declarator, Dim, EnumItem, Spec, TypeSpec};
use super::lex::{Kind, Punct};
use super::parse::Parser;
use super::{ParseError, ParseErrorKind};

/// A type and the names declared with it.
type Declaration = (TypeSpec, Vec<Declarator>);

impl Parser<'_> {
    /// `type a, b[2]`; the names may be missing after a type in braces.
    pub fn declaration(&mut self) -> Result<Declaration, ParseError> {
        let line = self.line();
        if self.begins_braced_type() {
            let spec = self.type_spec()?;
            let mut declarators = Vec::new();
            while self.peek_ident().is_some() {
                let name = self.ident()?.to_owned();
                declarators.push(self.declarator(name)?);
                if !self.eat(",") {
                    break;
                }
            }
            return Ok((spec, declarators));
        }
        // `unsigned long a`: all words but the last are the type.
        let mut words = self.words();
        let name = match words.pop() {
            Some(name) if !words.is_empty() => name,
            _ => return Err(self.unexpected("a type and a name")),
        };
        let spec = TypeSpec { line, kind: Spec::Named(words.join(" ")) };
        let mut declarators = vec![self.declarator(name)?];
        while self.eat(",") {
            let name = self.ident()?.to_owned();
            declarators.push(self.declarator(name)?);
        }
        Ok((spec, declarators))
    }

    /// Words and stars; `const` and `volatile` say nothing on the layout.
    fn words(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        loop {
            match self.peek() {
                Some(Kind::Ident("const" | "volatile")) => {}
                Some(Kind::Ident(word)) => words.push((*word).to_owned()),
                Some(Kind::Punct(p)) if *p == Punct::of("*") => words.push("*".to_owned()),
                _ => return words,
            }
            self.advance();
        }
    }

    /// Returns the name of a type: one or more words.
    pub fn type_name(&mut self) -> Result<String, ParseError> {
        let words = self.words();
        if words.is_empty() { Err(self.unexpected("a type name")) } else { Ok(words.join(" ")) }
    }

    fn declarator(&mut self, name: String) -> Result<Declarator, ParseError> {
        let mut dims = Vec::new();
        while self.eat("[") {
            dims.push(match self.peek() {
                Some(Kind::Ident(_)) => Dim::Path(self.path()?),
                _ => {
                    let line = self.line();
                    let len = self.integer()?;
                    Dim::Fixed(
                        u64::try_from(len)
                            .map_err(|_| ParseError::new(line, ParseErrorKind::Number(len.to_string())))?,
                    )
                }
            });
            self.expect("]")?;
        }
        Ok(Declarator { name, dims })
    }

    fn begins_braced_type(&self) -> bool {
        let is_word = |p: &Self| {
            matches!(
                p.peek_ident(),
                Some("struct" | "variant" | "enum" | "integer" | "floating_point" | "string")
            )
        };
        is_word(self)
    }

    /// Returns a type without a declarator.
    pub fn type_spec(&mut self) -> Result<TypeSpec, ParseError> {
        let line = self.line();
        if !self.begins_braced_type() {
            let kind = Spec::Named(self.type_name()?);
            return Ok(TypeSpec { line, kind });
        }
        let kind = self.nested(|p| match p.ident()? {
            "struct" => p.struct_spec(),
            "variant" => p.variant_spec(),
            "enum" => p.enum_spec(),
            "integer" => p.integer_attributes().map(Spec::Integer),
            "floating_point" => {
                p.expect("{")?;
                p.attributes().map(Spec::Float)
            }
            _ => {
                let attributes = if p.eat("{") { p.attributes()? } else { Vec::new() };
                Ok(Spec::String(attributes))
            }
        })?;
        Ok(TypeSpec { line, kind })
    }

    fn struct_spec(&mut self) -> Result<Spec, ParseError> {
        let name = self.tag_name()?;
        let body = if self.is_punct("{") { Some(self.body()?) } else { None };
        if name.is_none() && body.is_none() {
            return Err(self.unexpected("a name or {"));
        }
        let align = if self.peek_ident() == Some("align") && self.is_punct_at(1, "(") {
            self.advance();
            self.expect("(")?;
            let align = self.integer()?;
            self.expect(")")?;
            Some(align)
        } else {
            None
        };
        Ok(Spec::Struct { name, body, align })
    }

    fn variant_spec(&mut self) -> Result<Spec, ParseError> {
        let name = self.tag_name()?;
        let tag = if self.eat("<") {
            let path = self.path()?;
            self.expect(">")?;
            Some(path)
        } else {
            None
        };
        let body = if self.is_punct("{") { Some(self.body()?) } else { None };
        if name.is_none() && body.is_none() {
            return Err(self.unexpected("a name or {"));
        }
        Ok(Spec::Variant { name, tag, body })
    }

    fn enum_spec(&mut self) -> Result<Spec, ParseError> {
        let name = self.tag_name()?;
        let container = if self.eat(":") { Some(Box::new(self.type_spec()?)) } else { None };
        let body = if self.eat("{") { Some(self.enum_items()?) } else { None };
        if name.is_none() && body.is_none() {
            return Err(self.unexpected("a name or {"));
        }
        Ok(Spec::Enum { name, container, body })
    }

    /// Returns the optional name behind `struct`, `variant` or `enum`.
    fn tag_name(&mut self) -> Result<Option<String>, ParseError> {
        match self.peek_ident() {
            Some(_) => self.ident().map(|name| Some(name.to_owned())),
            None => Ok(None),
        }
    }

    fn enum_items(&mut self) -> Result<Vec<EnumItem>, ParseError> {
        let mut items = Vec::new();
        while !self.eat("}") {
            let label = match self.peek() {
                Some(Kind::Str(text)) => text.clone().into_owned(),
                Some(Kind::Ident(name)) => (*name).to_owned(),
                _ => return Err(self.unexpected("a label")),
            };
            self.advance();
            let range = if self.eat("=") {
                let start = self.integer()?;
                let end = if self.eat("...") { self.integer()? } else { start };
                Some((start, end))
            } else {
                None
            };
            items.push(EnumItem { label, range });
            if !self.is_punct("}") {
                self.expect(",")?;
            }
        }
        Ok(items)
    }
}
