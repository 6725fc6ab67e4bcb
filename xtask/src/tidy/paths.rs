//! The paths within its own crate that a source file names, and the modules that it declares.

use super::tokens::{Token, tokens};

/// A module's path, or an item's, from the root of its crate.
pub type Path = Vec<String>;

/// What a source file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Paths that it names, outside of tests; each with the module that names it.
    pub named: Vec<(Path, Path)>,
    /// Names that `use` brings in, by the module that they are in, each with what it stands for; of
    /// a path that begins with a name, what it stands for if that is a module inside.
    pub aliases: Vec<(Path, String, Path)>,
    /// Modules of its own that are compiled for tests only.
    pub tests: Vec<Path>,
}

struct Reader<'s> {
    tokens: &'s [Token],
    at: usize,
    said: Said,
}

/// Returns what the source of a module says.
pub fn said(module: &[String], source: &str) -> Said {
    let tokens = tokens(source);
    let mut reader = Reader { tokens: &tokens, at: 0, said: Said::default() };
    reader.block(module);
    reader.said
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    fn word(&self, ahead: usize) -> Option<&str> {
        match self.peek(ahead) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn is(&self, ahead: usize, sign: char) -> bool {
        self.peek(ahead) == Some(&Token::Sign(sign))
    }

    /// Reads up to the bracket that ends the module.
    fn block(&mut self, module: &[String]) {
        let (mut depth, mut test) = (0_u32, false);
        while let Some(token) = self.peek(0) {
            match token {
                Token::Sign('#') if self.is_test_attribute() => {
                    test = true;
                    self.at += 6;
                }
                Token::Sign('{') if std::mem::take(&mut test) => {
                    self.skip();
                    continue;
                }
                Token::Sign('{') => depth += 1,
                Token::Sign('}') if depth == 0 => return,
                Token::Sign('}') => depth -= 1,
                Token::Sign(';') => test = false,
                Token::Word(word) if word == "mod" => {
                    self.module(module, std::mem::take(&mut test));
                    continue;
                }
                Token::Word(word) if word == "use" => {
                    self.at += 1;
                    if std::mem::take(&mut test) {
                        self.skip_to(';');
                    } else {
                        self.tree(module, &[], true);
                    }
                    continue;
                }
                // `pub(in crate::a)` says who may look, and names nothing.
                Token::Word(word) if word == "in" && self.is_behind(&Token::Sign('(')) => self.skip_to(')'),
                // What follows `::` is within another path.
                Token::Word(word)
                    if is_anchor(word)
                        && self.peek(1) == Some(&Token::Path)
                        && !self.is_behind(&Token::Path) =>
                {
                    self.tree(module, &[], false);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Returns whether the last word was this one.
    fn is_behind(&self, token: &Token) -> bool {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)) == Some(token)
    }

    fn skip_to(&mut self, sign: char) {
        while self.peek(0).is_some() && !self.is(0, sign) {
            self.at += 1;
        }
    }

    /// `#[cfg(test)]`
    fn is_test_attribute(&self) -> bool {
        self.is(1, '[')
            && self.word(2) == Some("cfg")
            && self.is(3, '(')
            && self.word(4) == Some("test")
            && self.is(5, ')')
            && self.is(6, ']')
    }

    fn module(&mut self, module: &[String], test: bool) {
        let name = self.word(1).unwrap_or_default().to_owned();
        let inner = [module, &[name]].concat();
        self.at += 2;
        if self.is(0, '{') {
            if test {
                self.skip();
            } else {
                self.at += 1;
                self.block(&inner);
                self.at += 1;
            }
        } else if test {
            self.said.tests.push(inner);
        }
    }

    /// Passes over a block with all that is in it.
    fn skip(&mut self) {
        let mut depth = 0_u32;
        while let Some(token) = self.peek(0) {
            match token {
                Token::Sign('{') => depth += 1,
                Token::Sign('}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Reads a path, or several with a common beginning in braces. A `use` brings in names.
    fn tree(&mut self, module: &[String], before: &[String], brings_in: bool) {
        let mut path = before.to_vec();
        loop {
            match self.peek(0) {
                Some(Token::Word(word)) => path.push(word.clone()),
                Some(Token::Sign('{')) => {
                    self.at += 1;
                    while self.peek(0).is_some() && !self.is(0, '}') {
                        let start = self.at;
                        self.tree(module, &path, brings_in);
                        if self.is(0, ',') || self.at == start {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                Some(Token::Sign('*')) => {
                    self.at += 1;
                    break;
                }
                _ => break,
            }
            self.at += 1;
            if self.peek(0) == Some(&Token::Path) {
                self.at += 1;
            } else {
                break;
            }
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if name == "self" && path.len() > 1 {
            path.pop();
            name = path.last().cloned().unwrap_or_default();
        }
        if self.word(0) == Some("as") {
            name = self.word(1).unwrap_or_default().to_owned();
            self.at += 2;
        }
        let anchored = from_root(module, &path);
        if brings_in {
            // It may begin with a module inside of this one.
            let path = anchored.clone().unwrap_or_else(|| [module, &path].concat());
            self.said.aliases.push((module.to_vec(), name, path));
        }
        self.said.named.extend(anchored.map(|path| (module.to_vec(), path)));
    }
}

fn is_anchor(word: &str) -> bool {
    matches!(word, "crate" | "super" | "self")
}

/// Returns a path from the root of the crate; none if it may lead out of the crate.
fn from_root(module: &[String], path: &[String]) -> Option<Path> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module, rest].concat()),
        "super" => {
            let ups = path.iter().take_while(|word| *word == "super").count();
            let base = module.get(..module.len().checked_sub(ups)?)?;
            Some([base, &path[ups..]].concat())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(module: &str, source: &str) -> Vec<String> {
        let module: Path = module.split("::").filter(|s| !s.is_empty()).map(str::to_owned).collect();
        said(&module, source).named.into_iter().map(|(_, path)| path.join("::")).collect()
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        let source = "
            use crate::a::{self, b::{C, D as E}, f::*};
            use super::{g, h::I};
            pub(in crate::no) fn x(y: &crate::j::K) -> super::l { self::m::n(crate::o) }
            pub use super::super::p::Q; // crate::no
            use other::crate_::no;
        ";
        let expected =
            ["a", "a::b::C", "a::b::D", "a::f", "x::g", "x::h::I", "j::K", "x::l", "x::y::m::n", "o", "p::Q"];
        assert_eq!(named("x::y", source), expected);
    }

    #[test]
    fn tests_may_name_what_they_like() {
        let source = "
            #[cfg(test)]
            mod tests { use crate::no; fn f() { super::no() } }
            #[cfg(test)]
            mod apart;
            mod inside { fn f() { super::a(); super::super::b() } }
            #[cfg(test)]
            use crate::no::{N, M};
            #[cfg(test)]
            fn g() { crate::no() }
            fn h() { crate::c() }
        ";
        assert_eq!(named("x", source), ["x::a", "b", "c"]);
        assert_eq!(said(&["x".to_owned()], source).tests, [["x", "apart"].map(str::to_owned).to_vec()]);
    }

    #[test]
    fn names_that_are_brought_in_stand_for_others() {
        let said = said(&["x".to_owned()], "pub use self::y::{Z, W as V}; use super::u; pub use t::S;");
        let shown = said.aliases.iter().map(|(_, name, path)| format!("{name}={}", path.join("::")));
        assert_eq!(shown.collect::<Vec<_>>(), ["Z=x::y::Z", "V=x::y::W", "u=u", "S=x::t::S"]);
    }
}
