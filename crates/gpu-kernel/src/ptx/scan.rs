//! Cuts a module's text into functions and their statements.
//!
//! ```text
//!  .visible .entry add(.param .u64 a) .maxntid 256      Function: name, head, body
//!  {
//!      .reg .b32 %r<4>;                                 Directive
//!      .loc 1 7 3                                       Location, which a line ends
//!  $L1:                                                 Label
//!      @%p1 bra $L2;                                    Instruction: guard, opcode, operands
//!      { .reg .pred p; … }                              Open, …, Close
//!  }
//! ```
//! Comments and what is between statements belong to none. Braces within a statement are operands.

use std::fmt;
use std::ops::Range;

/// What is wrong with a text that ends too early.
const OPEN: &str = "a function that does not end";

/// Where something lies in the text, in bytes.
pub type Span = Range<usize>;

/// A module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its functions that have a body, in order.
    pub functions: Vec<Function>,
}

/// A kernel or a device function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: Span,
    /// Whether it is a kernel.
    pub entry: bool,
    /// From `.entry` or `.func` to before the body.
    pub head: Span,
    /// Between the outermost braces.
    pub body: Span,
    /// What the body is made of.
    pub statements: Vec<Statement>,
}

/// A statement of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// With its `;` or `:`.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
}

/// What a statement is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The name that it defines.
    Label(Span),
    /// An instruction.
    Instruction {
        /// The predicate, and whether lanes run it for which that is false.
        guard: Option<(Span, bool)>,
        /// With all its modifiers.
        opcode: Span,
        /// All behind it, before the `;`.
        operands: Span,
    },
    /// A line of the source: `.loc`.
    Location,
    /// Any other directive: a declaration, a pragma, a list of targets.
    Directive,
    /// A scope begins.
    Open,
    /// And ends.
    Close,
}

/// A text that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadText {
    /// Its line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: &'static str,
}

impl fmt::Display for BadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for BadText {}

/// Cuts a module.
///
/// # Errors
/// Where a comment, a text, a function or a statement does not end, or one has no name.
pub fn scan(text: &str) -> Result<Module, BadText> {
    let mut scanner = Scanner::new(text);
    let mut functions = Vec::new();
    while scanner.skip()? {
        let begin = scanner.at;
        let Some(word) = scanner.word() else {
            scanner.step()?;
            continue;
        };
        let entry = match &text.as_bytes()[word] {
            b".entry" => true,
            b".func" => false,
            _ => continue,
        };
        functions.extend(scanner.function(begin, entry)?);
    }
    Ok(Module { functions })
}

/// Goes through a text, over comments, texts and brackets.
pub(super) struct Scanner<'t> {
    text: &'t [u8],
    pub(super) at: usize,
}

impl<'t> Scanner<'t> {
    /// Begins at the text's begin.
    pub(super) fn new(text: &'t str) -> Self {
        Scanner { text: text.as_bytes(), at: 0 }
    }

    pub(super) fn bad(&self, at: usize, what: &'static str) -> BadText {
        let before = self.text.get(..at).unwrap_or(self.text);
        BadText { line: 1 + before.iter().filter(|byte| **byte == b'\n').count(), what }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn starts(&self, with: &[u8]) -> bool {
        self.text.get(self.at..).is_some_and(|rest| rest.starts_with(with))
    }

    /// Goes to behind the next place of some bytes.
    pub(super) fn behind(&mut self, end: &[u8]) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        self.at += rest.windows(end.len()).position(|bytes| bytes == end)? + end.len();
        Some(())
    }

    /// Passes over white space and comments. Returns whether there is more.
    pub(super) fn skip(&mut self) -> Result<bool, BadText> {
        loop {
            let begin = self.at;
            match self.peek() {
                None => return Ok(false),
                // A text in a file of several ends with it.
                Some(byte) if byte.is_ascii_whitespace() || byte == 0 => self.at += 1,
                Some(b'/') if self.starts(b"//") => {
                    if self.behind(b"\n").is_none() {
                        self.at = self.text.len();
                    }
                }
                Some(b'/') if self.starts(b"/*") => {
                    self.at += 2;
                    self.behind(b"*/").ok_or_else(|| self.bad(begin, "a comment that does not end"))?;
                }
                Some(_) => return Ok(true),
            }
        }
    }

    /// Passes over a text, or over one byte.
    pub(super) fn step(&mut self) -> Result<(), BadText> {
        let begin = self.at;
        self.at += 1;
        if self.text.get(begin) != Some(&b'"') {
            return Ok(());
        }
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => return Ok(()),
                b'\\' => self.at += 1,
                _ => {}
            }
        }
        Err(self.bad(begin, "a text that does not end"))
    }

    /// Passes over a name, a directive or a number, if there is one.
    pub(super) fn word(&mut self) -> Option<Span> {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$%.".contains(byte);
        let length = self.text.get(self.at..)?.iter().take_while(|byte| is_part(byte)).count();
        let begin = self.at;
        self.at += length;
        (length > 0).then_some(begin..self.at)
    }

    /// Goes to one of these bytes that is in no brackets.
    pub(super) fn until(&mut self, ends: &[u8], begin: usize, what: &'static str) -> Result<u8, BadText> {
        let mut depth = 0usize;
        while self.skip()? {
            let byte = self.text[self.at];
            if depth == 0 && ends.contains(&byte) {
                return Ok(byte);
            }
            match byte {
                b'(' | b'{' | b'[' => depth += 1,
                b')' | b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.step()?;
        }
        Err(self.bad(begin, what))
    }

    /// Passes over a function behind `.entry` or `.func`. Nothing if it is declared only.
    pub(super) fn function(&mut self, begin: usize, entry: bool) -> Result<Option<Function>, BadText> {
        self.skip()?;
        if self.peek() == Some(b'(') {
            // What it returns.
            self.at += 1;
            self.until(b")", begin, OPEN)?;
            self.at += 1;
            self.skip()?;
        }
        let name = self.word().ok_or_else(|| self.bad(begin, "a function without a name"))?;
        if self.until(b";{", begin, OPEN)? == b';' {
            return Ok(None);
        }
        let head = begin..self.at;
        self.at += 1;
        let inside = self.at;
        let statements = self.statements(begin)?;
        let body = inside..self.at;
        self.at += 1;
        Ok(Some(Function { name, entry, head, body, statements }))
    }

    /// Cuts a body up to the brace that ends it.
    fn statements(&mut self, function: usize) -> Result<Vec<Statement>, BadText> {
        let (mut statements, mut depth) = (Vec::new(), 0usize);
        while self.skip()? {
            let begin = self.at;
            let kind = match self.text[begin] {
                b'}' if depth == 0 => return Ok(statements),
                b'}' => {
                    depth -= 1;
                    self.at += 1;
                    Kind::Close
                }
                b'{' => {
                    depth += 1;
                    self.at += 1;
                    Kind::Open
                }
                b';' => {
                    self.at += 1;
                    continue;
                }
                _ => self.statement(begin)?,
            };
            statements.push(Statement { span: begin..self.at, kind });
        }
        Err(self.bad(function, OPEN))
    }

    fn statement(&mut self, begin: usize) -> Result<Kind, BadText> {
        const OPEN: &str = "a statement that does not end";
        let guard = self.guard(begin)?;
        let Some(opcode) = self.word() else {
            return Err(self.bad(begin, "a statement that begins with no word"));
        };
        let word = &self.text[opcode.clone()];
        if guard.is_none() && word.starts_with(b".") {
            if word == b".loc" || word == b".file" {
                // It has no `;`.
                if self.behind(b"\n").is_none() {
                    self.at = self.text.len();
                }
                return Ok(Kind::Location);
            }
            self.until(b";", begin, OPEN)?;
            self.at += 1;
            return Ok(Kind::Directive);
        }
        self.skip()?;
        if guard.is_none() && self.peek() == Some(b':') && !self.starts(b"::") {
            self.at += 1;
            return Ok(Kind::Label(opcode));
        }
        let first = self.at;
        self.until(b";", begin, OPEN)?;
        let operands = first..self.at;
        self.at += 1;
        Ok(Kind::Instruction { guard, opcode, operands })
    }

    fn guard(&mut self, begin: usize) -> Result<Option<(Span, bool)>, BadText> {
        if self.peek() != Some(b'@') {
            return Ok(None);
        }
        self.at += 1;
        self.skip()?;
        let negated = self.peek() == Some(b'!');
        self.at += usize::from(negated);
        self.skip()?;
        let name = self.word().ok_or_else(|| self.bad(begin, "a guard without a predicate"))?;
        self.skip()?;
        Ok(Some((name, negated)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// a module\n.version 8.3\n.target sm_90\n.address_size 64\n\
        .extern .func (.param .b32 r) declared (.param .b64 a);\n\
        .global .align 4 .b8 s[6] = {1, 2, 3, 4, 5, 6};\n\
        .visible .entry add(\n\t.param .u64 a /* { */\n)\n.maxntid 256, 1, 1\n{\n\
        \t.reg .pred %p<2>;\n\
        \t.loc 1 7 3\n\
        $L1:\n\
        \t@!%p1 bra.uni $L2; // }\n\
        \t{ .reg .b32 t; mov.b32 t, {%rs1, %rs2}; }\n\
        \tts: .branchtargets $L1, $L2;\n\
        \tld.global.v2.u32 {%r1, %r2}, [%rd1+8];\n\
        \t.pragma \"no;unroll\";\n\
        $L2: ret;\n}\n\
        .func (.param .b32 r) twice(.param .b32 x) { exit; }\n";

    #[test]
    fn statements_are_where_they_are() {
        let module = scan(TEXT).unwrap();
        let [add, twice] = &module.functions[..] else { panic!("{module:?}") };
        assert_eq!((&TEXT[add.name.clone()], add.entry), ("add", true));
        assert_eq!((&TEXT[twice.name.clone()], twice.entry), ("twice", false));
        let shown: Vec<(&str, String)> = add
            .statements
            .iter()
            .map(|statement| {
                let of = |span: &Span| TEXT[span.clone()].to_owned();
                match &statement.kind {
                    Kind::Label(name) => ("label", of(name)),
                    Kind::Instruction { guard, opcode, operands } => {
                        let guard = guard
                            .as_ref()
                            .map(|(name, not)| format!("{}{} ", if *not { "!" } else { "" }, of(name)));
                        ("run", format!("{}{} | {}", guard.unwrap_or_default(), of(opcode), of(operands)))
                    }
                    Kind::Location => ("loc", of(&statement.span).trim().to_owned()),
                    Kind::Directive => ("directive", of(&statement.span)),
                    Kind::Open => ("open", of(&statement.span)),
                    Kind::Close => ("close", of(&statement.span)),
                }
            })
            .collect();
        let expected = [
            ("directive", ".reg .pred %p<2>;"),
            ("loc", ".loc 1 7 3"),
            ("label", "$L1"),
            ("run", "!%p1 bra.uni | $L2"),
            ("open", "{"),
            ("directive", ".reg .b32 t;"),
            ("run", "mov.b32 | t, {%rs1, %rs2}"),
            ("close", "}"),
            ("label", "ts"),
            ("directive", ".branchtargets $L1, $L2;"),
            ("run", "ld.global.v2.u32 | {%r1, %r2}, [%rd1+8]"),
            ("directive", ".pragma \"no;unroll\";"),
            ("label", "$L2"),
            ("run", "ret | "),
        ];
        let shown: Vec<(&str, &str)> = shown.iter().map(|(kind, text)| (*kind, &**text)).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_does_not_end_is_named_with_its_line() {
        let of = |text: &str| scan(text).unwrap_err().to_string();
        assert_eq!(of("\n/* a"), "line 2: a comment that does not end");
        assert_eq!(of(".entry a() {\n ret;"), "line 1: a function that does not end");
        assert_eq!(of(".entry a() {\n ret }"), "line 2: a statement that does not end");
        assert_eq!(of(".entry a() {\n @; }"), "line 2: a guard without a predicate");
        assert_eq!(of(".entry ("), "line 1: a function that does not end");
        assert_eq!(of(".pragma \"a"), "line 1: a text that does not end");
        assert_eq!(scan("").unwrap(), Module { functions: vec![] });
    }
}
