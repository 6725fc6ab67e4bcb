//! A source whose chosen kernels record.
//!
//! ```text
//!  __kernel void k(int n) {            __kernel void k__hetrace_inside(int n, __global uint *…, ulong …) { …begin(…);
//!    if (n) return;              ──►     if (…choose(&…, (n) ? 1 : 0, 0)) { …end(&…); return; }
//!  }                                   …end(&…); }
//! ```
//! It is built as a program of its own beside the program's, so kernels are changed where they are, and their lines stay.

use std::collections::HashSet;
use std::ops::Range;

use super::DEVICE;
use super::flow::{Flow, Spot, flow};
use super::macros::Macros;
use super::parse::{Parser, Unclear};
use super::tokens::{Kind, Lines, Token, tokens};
use crate::description::{BlockText, Description, Kernel, Refused, SiteName, successors};
use crate::graph::Block;
use crate::plan::{Mode, Plan, Site};
use crate::ptx::TWIN;
use crate::ways;

/// Sites that a record can name.
const SITES: usize = 65_534;
/// Ways of a choice at most.
const CASES: usize = 4_096;
/// What all new names begin with.
const OURS: &str = "__hetrace_";
/// What lines of the source are of.
const FILE: &str = "source";

/// What is wanted of a source.
pub struct Request<'a> {
    /// Whether a kernel of this name gets a twin.
    pub wanted: &'a dyn Fn(&str) -> bool,
    /// Twins record in work-groups whose number is a multiple of this; 0 and 1 are all.
    pub sample: u32,
    /// The number of the first kernel.
    pub first: u32,
    /// The hash of the source, for the description.
    pub image: &'a str,
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { wanted: _, sample, first, image } = self;
        let mut shown = f.debug_struct("Request");
        shown.field("sample", sample).field("first", first).field("image", image).finish_non_exhaustive()
    }
}

/// A source with twins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The source. As it was if no kernel has a twin.
    pub text: String,
    /// Its kernels.
    pub description: Description,
}

/// A source that cannot be rewritten at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It has names that are ours.
    Twice,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Twice => write!(f, "it has names that begin with {OURS}"),
        }
    }
}

impl std::error::Error for Refusal {}

/// A kernel's definition.
struct Found<'a> {
    name: &'a str,
    /// Tokens: of its name, between its parentheses, and of its body between its braces.
    at: usize,
    parameters: Range<usize>,
    body: Range<usize>,
    /// Whether there is a brace that closes it.
    closed: bool,
}

/// Text to insert, in order.
type Inserted = Vec<(usize, String)>;

/// A source that is being rewritten.
struct Source<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    lines: Lines,
    macros: Macros,
}

/// Rewrites a source.
///
/// # Errors
/// If nothing of it can be.
pub fn rewrite(text: &str, request: &Request<'_>) -> Result<Rewritten, Refusal> {
    if text.contains(OURS) {
        return Err(Refusal::Twice);
    }
    let tokens = tokens(text);
    let macros = Macros::of(text, &tokens);
    let source = Source { text, tokens, lines: Lines::of(text), macros };
    let mut description = Description { image: request.image.to_owned(), ..Description::default() };
    let mut inserted = Inserted::new();
    let variable = super::globals::variable(text, &source.tokens, &source.macros);
    for found in source.kernels().into_iter().filter(|found| (request.wanted)(found.name)) {
        let number = request.first + u32::try_from(description.kernels.len()).unwrap_or(u32::MAX);
        if let Some((name, at)) = &variable {
            let (line, name_of) = (source.lines.line(*at), found.name.to_owned());
            let reason = format!(
                "line {line} of its source: {name}, a variable in global memory, would be another one"
            );
            description.refused.push(Refused { name: name_of, reason });
            continue;
        }
        match source.twin(&found, number, request.sample) {
            Ok((kernel, mut here)) => {
                description.kernels.push(kernel);
                inserted.append(&mut here);
            }
            Err(unclear) => {
                let line = source.lines.line(unclear.at);
                let reason = format!("line {line} of its source: {}", unclear.why);
                description.refused.push(Refused { name: found.name.to_owned(), reason });
            }
        }
    }
    let text = if description.kernels.is_empty() {
        text.to_owned()
    } else {
        format!("{DEVICE}#line 1\n{}", source.with(inserted))
    };
    Ok(Rewritten { text, description })
}

impl<'a> Source<'a> {
    fn word(&self, at: usize) -> &'a str {
        match self.tokens.get(at) {
            Some(token) if token.kind == Kind::Word => token.text(self.text),
            _ => "",
        }
    }

    fn is(&self, at: usize, mark: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(mark))
    }

    /// Returns what is behind the mark that closes the one at `at`.
    fn behind(&self, at: usize, open: u8, close: u8) -> Option<usize> {
        let mut depth = 0usize;
        for (number, token) in self.tokens.iter().enumerate().skip(at) {
            if token.is(open) {
                depth += 1;
            } else if token.is(close) {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(number + 1);
                }
            }
        }
        None
    }

    /// Returns the definitions of kernels.
    fn kernels(&self) -> Vec<Found<'a>> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < self.tokens.len() {
            let word = self.word(at);
            at += 1;
            if (matches!(word, "__kernel" | "kernel") || self.macros.is_kernel(word))
                && let Some(kernel) = self.kernel(at)
            {
                at = kernel.body.end;
                found.push(kernel);
            }
        }
        found
    }

    /// Passes over directives and attributes.
    fn pass(&self, mut at: usize) -> Option<usize> {
        loop {
            if self.tokens.get(at)?.kind == Kind::Directive {
                at += 1;
            } else if self.word(at) == "__attribute__" {
                at = self.behind(at + 1, b'(', b')')?;
            } else {
                return Some(at);
            }
        }
    }

    /// Reads a kernel's definition behind what makes it a kernel; none if it is none.
    fn kernel(&self, mut at: usize) -> Option<Found<'a>> {
        loop {
            at = self.pass(at)?;
            let word = self.word(at);
            if word.is_empty() || matches!(word, "__kernel" | "kernel") {
                return None;
            }
            if self.is(at + 1, b'(') {
                break;
            }
            at += 1;
        }
        let behind = self.behind(at + 1, b'(', b')')?;
        let body = self.pass(behind)?;
        if !self.is(body, b'{') {
            return None;
        }
        let end = self.behind(body, b'{', b'}');
        let (closed, end) = (end.is_some(), end.unwrap_or(body + 2));
        Some(Found {
            name: self.word(at),
            at,
            parameters: at + 2..behind - 1,
            body: body + 1..end - 1,
            closed,
        })
    }

    /// Returns a kernel's description, and what is inserted into it.
    fn twin(&self, found: &Found<'_>, number: u32, sample: u32) -> Result<(Kernel, Inserted), Unclear> {
        let start = |token: usize| self.tokens.get(token).map_or(0, |token| token.at.start);
        let unclear = |why: String| Unclear { at: start(found.at), why };
        if !found.closed {
            return Err(unclear("a directive splits a statement, or a brace is missing".to_owned()));
        }
        if self.macros.is_known(found.name) {
            return Err(unclear("its name is a macro".to_owned()));
        }
        self.is_alone(found).map_err(unclear)?;
        let parser = Parser::new(self.text, &self.tokens, found.body.clone(), &self.macros, &self.lines);
        let statements = parser.all()?;
        let Flow { graph, lines, spots } = flow(&statements, start(found.body.start), &self.lines)?;
        let plan = Plan::new(&graph, Mode::Paths);
        let most = (0..graph.len()).map(|block| graph.successors(block).len()).max().unwrap_or(0);
        if plan.sites.len() > SITES || most > CASES {
            return Err(unclear("it has too many choices".to_owned()));
        }
        let mut inserted = Inserted::new();
        let end = self.tokens.get(found.at).map_or(0, |token| token.at.end);
        inserted.push((end, TWIN.to_owned()));
        let comma = if found.parameters.is_empty() { "" } else { ", " };
        inserted.push((
            start(found.parameters.end),
            format!("{comma}__global uint *{OURS}pool, ulong {OURS}launch"),
        ));
        let begin = self.tokens.get(found.body.start - 1).map_or(0, |token| token.at.end);
        inserted.push((
            begin,
            format!(
                " {OURS}item {OURS}i; {OURS}begin(&{OURS}i, {OURS}pool, {OURS}launch, {number}u, {sample}u);"
            ),
        ));
        let ways_of = |block: Block| graph.successors(block).len();
        let site = |block: Block| plan.number(Site::Branch(block));
        for spot in &spots {
            self.insert(spot, &ways_of, &site, &mut inserted)?;
        }
        inserted.push((start(found.body.end), format!("{OURS}end(&{OURS}i); ")));
        let block = |line: &u32| BlockText {
            file: Some(FILE.to_owned()),
            line: Some(*line),
            instructions: 1,
            ..BlockText::default()
        };
        let kernel = Kernel {
            number,
            name: found.name.to_owned(),
            mode: Mode::Paths,
            timed: false,
            successors: successors(&graph),
            sites: plan.sites.iter().map(|site| SiteName::from(*site)).collect(),
            summed: plan.summed.clone(),
            blocks: lines.iter().map(block).collect(),
            // Of functions of its own with a choice in them the compiler decides whether they are calls.
            calls: vec![],
            text: String::new(),
            weights: None,
        };
        Ok((kernel, inserted))
    }

    /// Its name must be nowhere else: it becomes another one. And what its parameters are must be seen.
    fn is_alone(&self, found: &Found<'_>) -> Result<(), String> {
        let called = |at: usize| self.word(at) == found.name && self.is(at + 1, b'(');
        let heads: HashSet<usize> = self.kernels().iter().map(|kernel| kernel.at).collect();
        let is_prototype = |at: usize| {
            let behind = self.behind(at + 1, b'(', b')').and_then(|behind| self.pass(behind));
            behind.is_some_and(|behind| self.is(behind, b';')) && self.word(at.wrapping_sub(1)) == "void"
        };
        if (0..self.tokens.len()).any(|at| called(at) && !heads.contains(&at) && !is_prototype(at)) {
            return Err("other code calls it".to_owned());
        }
        let in_macros = |token: &Token| {
            let body = token.text(self.text);
            token.kind == Kind::Directive
                && tokens(body.trim_start_matches('#'))
                    .iter()
                    .any(|one| body.trim_start_matches('#').get(one.at.clone()) == Some(found.name))
        };
        if self.tokens.iter().any(in_macros) {
            return Err("a macro has its name".to_owned());
        }
        if found.parameters.len() == 1 {
            return Err("its parameters are a macro, or `void`".to_owned());
        }
        Ok(())
    }

    /// Inserts what a spot takes. Choices without a site are never come to.
    fn insert(
        &self,
        spot: &Spot,
        ways_of: &dyn Fn(Block) -> usize,
        site: &dyn Fn(Block) -> Option<u32>,
        inserted: &mut Inserted,
    ) -> Result<(), Unclear> {
        let say = |call: &str, way: usize, block: Block| {
            let (ways, site) = (ways_of(block), site(block)?);
            let bits = ways::bits(ways);
            let way = if ways == 2 { 1 - way.min(1) } else { way };
            Some(format!(" {OURS}{call}(&{OURS}i, {way}u, {bits}u, {site}u);"))
        };
        match spot {
            Spot::Condition(at, block) => {
                if let Some(site) = site(*block) {
                    inserted.push((at.start, format!("{OURS}choose(&{OURS}i, (")));
                    inserted.push((at.end, format!(") ? 1 : 0, {site}u)")));
                }
            }
            Spot::Switch { at, condition, other, block } => {
                if site(*block).is_some() {
                    inserted.push((at.start, "{ ".to_owned()));
                    inserted.push((condition.start, format!("{OURS}switch(&{OURS}i), (")));
                    inserted.push((condition.end, ")".to_owned()));
                    let other = other.and_then(|way| say("case", way, *block)).unwrap_or_default();
                    inserted.push((at.end, format!("{other} }}")));
                }
            }
            Spot::Case(at, way, block) => {
                inserted.extend(say("case", *way, *block).map(|text| (*at, text)));
            }
            Spot::Way(at, way, block) => {
                let next =
                    self.lines.next(*at).ok_or_else(|| Unclear { at: *at, why: "no line".to_owned() })?;
                let line = self.lines.line(next);
                let text = say("way", *way, *block).map(|text| (next, format!("{text}\n#line {line}\n")));
                inserted.extend(text);
            }
            Spot::Missing(end, way, block) => {
                let begin = self.lines.begin(*end);
                if self.text.get(begin..*end).is_some_and(|before| !before.trim().is_empty()) {
                    let why = "something is before a directive in its line".to_owned();
                    return Err(Unclear { at: *end, why });
                }
                let line = self.lines.line(begin);
                let text = say("way", *way, *block);
                let lines = |text: String| (begin, format!("#else\n{text}\n#line {line}\n"));
                inserted.extend(text.map(lines));
            }
            Spot::Return(at) => {
                inserted.push((at.start, format!("{{ {OURS}end(&{OURS}i); ")));
                inserted.push((at.end, " }".to_owned()));
            }
        }
        Ok(())
    }

    /// Returns the source with text inserted. What is inserted at one place stays in order.
    fn with(&self, mut inserted: Inserted) -> String {
        inserted.sort_by_key(|(at, _)| *at);
        let more: usize = inserted.iter().map(|(_, text)| text.len()).sum();
        let (mut out, mut done) = (String::with_capacity(self.text.len() + more), 0);
        for (at, text) in inserted {
            out.push_str(self.text.get(done..at).unwrap_or_default());
            out.push_str(&text);
            done = at;
        }
        out.push_str(self.text.get(done..).unwrap_or_default());
        out
    }
}
