//! The macros of a source, and which of them hide from who reads it which ways there are.

use std::collections::{HashMap, HashSet};

use super::parse::{Known, Parser, Statement};
use super::tokens::{Kind, Lines, Token, command, tokens};

/// What a macro stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// Nothing, or what may be before a statement.
    Prefix,
    /// Something without statements of control.
    Part,
    /// Whole statements.
    Whole,
    /// Parts of statements of control.
    Hides,
    /// Leaves the kernel.
    Returns,
}

/// The macros of a source. Those of options and of files that it includes are not known.
#[derive(Debug, Default)]
pub struct Macros {
    /// By name, each of its texts.
    known: HashMap<String, Vec<String>>,
    stand: HashMap<String, Stands>,
}

impl Macros {
    /// Finds them.
    pub fn of(source: &str, all: &[Token]) -> Self {
        let mut macros = Macros::default();
        for token in all.iter().filter(|token| token.kind == Kind::Directive) {
            let (name, rest) = command(token.text(source));
            let rest = rest.trim_start();
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let (defined, behind) = rest.split_at(end);
            if name == "define" && !defined.is_empty() {
                let body = match behind.strip_prefix('(') {
                    Some(behind) => behind.split_once(')').map_or("", |(_, body)| body),
                    None => behind,
                };
                macros.known.entry(defined.to_owned()).or_default().push(body.to_owned());
            }
        }
        let names: Vec<String> = macros.known.keys().cloned().collect();
        for name in names {
            let stands = macros.judge(&name);
            macros.stand.insert(name, stands);
        }
        macros
    }

    /// Returns whether a name is a macro's.
    pub fn is_known(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// Returns whether a name is a macro's that stands for what makes a function a kernel.
    pub fn is_kernel(&self, name: &str) -> bool {
        let words = |body: &String| {
            let all = tokens(body);
            all.iter().any(|token| matches!(token.text(body), "__kernel" | "kernel"))
                && !all.iter().any(|token| token.is(b'{'))
        };
        self.known.get(name).is_some_and(|bodies| bodies.iter().any(words))
    }

    /// All macros that are in a macro, and in those; itself first.
    fn reached<'m>(&'m self, name: &'m str) -> Vec<&'m str> {
        let (mut all, mut seen, mut at) = (vec![name], HashSet::from([name]), 0);
        while let Some(name) = all.get(at).copied() {
            at += 1;
            for body in self.known.get(name).into_iter().flatten() {
                for token in tokens(body) {
                    let word = body.get(token.at.clone()).unwrap_or_default();
                    if token.kind == Kind::Word && self.known.contains_key(word) && seen.insert(word) {
                        all.push(word);
                    }
                }
            }
        }
        all
    }

    fn judge(&self, name: &str) -> Stands {
        let judged = self.known.get(name).into_iter().flatten().map(|body| judge(body));
        judged.max_by_key(|stands| *stands as u8).unwrap_or(Stands::Part)
    }
}

impl Known for Macros {
    fn hides(&self, name: &str) -> Option<String> {
        self.reached(name).into_iter().find_map(|name| match self.stand.get(name) {
            Some(Stands::Hides) => Some(format!("the macro {name} hides a part of a statement")),
            Some(Stands::Returns) => Some(format!("the macro {name} hides a jump")),
            _ => None,
        })
    }

    fn is_prefix(&self, name: &str) -> bool {
        self.stand.get(name) == Some(&Stands::Prefix)
    }

    fn is_whole(&self, name: &str) -> bool {
        self.stand.get(name) == Some(&Stands::Whole)
    }
}

fn judge(body: &str) -> Stands {
    let all = tokens(body);
    let is_control = |token: &Token| token.kind == Kind::Word && super::parse::is_control(token.text(body));
    let is_brace = |token: &Token| token.is(b'{') || token.is(b'}');
    if all.first().is_none_or(|first| matches!(first.text(body), "__attribute__" | "_Pragma"))
        && !ends_statement(&all)
    {
        return Stands::Prefix;
    }
    let ends = ends_statement(&all);
    if !all.iter().any(|token| is_control(token) || is_brace(token)) {
        return if !balanced(&all) {
            Stands::Hides
        } else if ends {
            Stands::Whole
        } else {
            Stands::Part
        };
    }
    // As it is used: with a `;` behind it, if it has none.
    let text = if ends { body.to_owned() } else { format!("{body};") };
    let all = tokens(&text);
    let macros = Macros::default();
    let lines = Lines::of(&text);
    let Ok(list) = Parser::new(&text, &all, 0..all.len(), &macros, &lines).all() else {
        return Stands::Hides;
    };
    let is_loop = |one: &Statement| matches!(one, Statement::Do { .. } | Statement::Plain(_));
    match list.iter().map(|one| leaves(one, false)).max_by_key(|stands| *stands as u8) {
        Some(stands @ (Stands::Hides | Stands::Returns)) => stands,
        _ if ends => Stands::Whole,
        // `do … while (0)`, or an initialiser. `for (…)` would take what is behind it for its body.
        _ if list.last().is_none_or(is_loop) => Stands::Part,
        _ => Stands::Hides,
    }
}

fn ends_statement(all: &[Token]) -> bool {
    all.last().is_some_and(|token| token.is(b';') || token.is(b'}'))
}

fn balanced(all: &[Token]) -> bool {
    let mut open = Vec::new();
    for token in all {
        match token.kind {
            Kind::Mark(b'(') => open.push(b')'),
            Kind::Mark(b'[') => open.push(b']'),
            Kind::Mark(b'{') => open.push(b'}'),
            Kind::Mark(close @ (b')' | b']' | b'}')) if open.pop() != Some(close) => return false,
            _ => {}
        }
    }
    open.is_empty()
}

/// Whether a statement leaves what it is in.
fn leaves(statement: &Statement, looped: bool) -> Stands {
    let of = |list: &[Statement], looped| {
        list.iter().map(|one| leaves(one, looped)).max_by_key(|stands| *stands as u8).unwrap_or(Stands::Whole)
    };
    match statement {
        Statement::Plain(_) => Stands::Whole,
        Statement::Break | Statement::Continue if looped => Stands::Whole,
        Statement::Break | Statement::Continue | Statement::Case { .. } => Stands::Hides,
        Statement::Return(_) | Statement::Goto(..) | Statement::Label(..) => Stands::Returns,
        Statement::Block(list) => of(list, looped),
        Statement::If { then, otherwise, .. } => {
            let otherwise = otherwise.as_ref().map_or(Stands::Whole, |one| leaves(one, looped));
            of(&[(**then).clone()], looped).max_with(otherwise)
        }
        Statement::Loop { body, .. } | Statement::Do { body, .. } => leaves(body, true),
        Statement::Switch { body, .. } => {
            let inner: Vec<Statement> =
                body.iter().filter(|one| !matches!(one, Statement::Case { .. })).cloned().collect();
            of(&inner, true)
        }
        Statement::Alternatives { .. } => Stands::Hides,
    }
}

impl Stands {
    fn max_with(self, other: Stands) -> Stands {
        if other as u8 > self as u8 { other } else { self }
    }
}
