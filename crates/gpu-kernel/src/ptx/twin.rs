//! A kernel's twin: its text, with code that records between its statements.

use hetrace_pool::Strategy;

use super::code::{Coder, Entry, PASS, Pending, Predicate, Summing, word};
use super::flow::Flow;
use super::scan::{Function, Kind, Span, Statement};
use super::{TWIN, pressure};
use crate::graph::{Block, EXIT, Edge, Graph};
use crate::plan::{Mode, Plan, Site};
use crate::ways;
use crate::weights::KernelWeights;

/// Registers for passes that are added up: more would cost more by fewer warps than they save.
const REGISTERS: usize = 8;

/// Registers that a twin needs besides, beyond those that the compiler saves by another order than the text's.
const OWN: u32 = 1;
/// Limits of registers that make a difference to how many warps there are at a time.
const LIMITS: [u32; 4] = [32, 40, 48, 56];

/// The sites whose passes are added up.
#[derive(Default)]
pub(super) struct Sums {
    pending: Vec<Pending>,
    /// By each of them, the blocks in which something may be left to say.
    left: Vec<Vec<bool>>,
}

impl Sums {
    /// Chooses sites in loops, those first that lanes passed most often in an earlier run, if that is known, else the innermost;
    /// those that stay in a loop or leave it before others, while there are registers; and has the plan say so.
    pub(super) fn choose(graph: &Graph, plan: &mut Plan, weights: Option<&KernelWeights>) -> Self {
        let loops = graph.loops();
        let mut found = Vec::new();
        for (site, place) in plan.sites.iter().enumerate() {
            let Site::Branch(block) = *place else { continue };
            let (Some(innermost), [one, other]) = (loops.innermost(block), graph.successors(block)) else {
                continue;
            };
            let stays = |to: &Block| innermost.body.binary_search(to).is_ok();
            let summing = match (stays(one), stays(other)) {
                (true, false) => Summing::Stay(0),
                (false, true) => Summing::Stay(1),
                _ => Summing::Ways,
            };
            let often = (weights.map_or(0, |weights| weights.block(block)), loops.depth(block));
            found.push((std::cmp::Reverse(often), summing.registers(), site, summing, block));
        }
        found.sort_by_key(|(often, registers, site, ..)| (*often, *registers, *site));
        let (mut sums, mut registers) = (Sums::default(), 0);
        for (_, needs, site, summing, block) in found {
            if registers + needs <= REGISTERS {
                registers += needs;
                plan.summed[site] = true;
                sums.pending.push(Pending { site, summing });
                sums.left.push(left(graph, block, summing));
            }
        }
        sums
    }

    fn of(&self, site: usize) -> Option<&Pending> {
        self.pending.iter().find(|pending| pending.site == site)
    }

    /// Returns those that may have something to say at the end of a block.
    fn at(&self, block: Block) -> Vec<&Pending> {
        let both = self.pending.iter().zip(&self.left);
        both.filter(|(_, left)| left.get(block) == Some(&true)).map(|(pending, _)| pending).collect()
    }
}

/// Returns by block whether passes of a site may have been counted there that nobody has said. Who leaves a loop by a site
/// has said all.
fn left(graph: &Graph, site: Block, summing: Summing) -> Vec<bool> {
    let mut left = vec![false; graph.len()];
    let mut open = match summing {
        Summing::Stay(case) => vec![graph.successors(site)[case]],
        Summing::Ways => graph.successors(site).to_vec(),
    };
    left[site] = summing == Summing::Ways;
    while let Some(block) = open.pop() {
        if block != EXIT && block != site && !std::mem::replace(&mut left[block], true) {
            open.extend(graph.successors(block));
        }
    }
    left
}

/// Returns what is behind a kernel's name, up to its body, with one parameter more: the address of a buffer.
fn with_parameter(head: &str, name: &str) -> Result<String, String> {
    if head.contains("//") || head.contains("/*") {
        return Err("there is a comment among its parameters".to_owned());
    }
    let declared = format!(".param .u64 .ptr .global .align 8 {name}");
    let Some((before, rest)) = head.split_once('(').filter(|(before, _)| before.trim().is_empty()) else {
        return Ok(format!("({declared}\n){head}"));
    };
    let (own, behind) = rest.split_once(')').ok_or("its parameters have no end")?;
    let comma = if own.trim().is_empty() { "" } else { ",\n\t" };
    Ok(format!("{before}({}{comma}{declared}\n){behind}", own.trim_end()))
}

/// What a twin is made of.
pub(super) struct Twin<'a> {
    pub(super) text: &'a str,
    pub(super) function: &'a Function,
    pub(super) flow: &'a Flow,
    pub(super) plan: &'a Plan,
    pub(super) sums: &'a Sums,
    /// By block, the room that lanes need for ways there, or else say them.
    pub(super) checks: &'a [Option<u32>],
    pub(super) fresh: &'a str,
    /// The space in which the pool's address is, and its name there.
    pub(super) base: &'a (&'static str, String),
    /// The parameter that it is in, if it is in one.
    pub(super) parameter: Option<String>,
    pub(super) number: u32,
    /// How leaders get room.
    pub(super) strategy: Strategy,
}

/// Code instead of a part of the text: between two statements, or instead of one.
type Edit = (Span, String);

impl Twin<'_> {
    /// Returns the text of the twin.
    ///
    /// # Errors
    /// If the body has what cannot be copied.
    pub(super) fn write(&self, sample: u32) -> Result<String, String> {
        let Self { text, function, .. } = self;
        let (fresh, base, number) = (self.fresh, self.base, self.number);
        let paths = self.plan.mode == Mode::Paths;
        let strategy = self.strategy;
        let mut coder = Coder { out: String::new(), fresh, base, number, labels: 0, paths, strategy };
        // Thread blocks that do not record run the body as it is. Without a copy of it they cannot be chosen.
        let plain = match self.plain() {
            Ok(copy) => Some((coder.label(), copy)),
            Err(reason) if sample > 1 => return Err(reason),
            Err(_) => None,
        };
        coder.begin(
            &self.sums.pending,
            &Entry { plain: plain.as_ref().map(|(label, _)| label.as_str()), sample },
        );
        let mut edits = vec![(self.beginning(), coder.take())];
        for block in 0..self.flow.graph.len() {
            self.block(&mut coder, block, &mut edits)?;
        }
        if let Some((label, copy)) = plain {
            coder.line("ret;");
            coder.put(&label);
            coder.out.push_str(&copy);
            edits.push((function.body.end..function.body.end, coder.take()));
        }
        // Stable: what was put first at a place stays first.
        edits.sort_by_key(|(span, _)| span.start);
        let (name, head) = (&function.name, &function.head);
        let mut out = format!("\n{}{}{TWIN}", self.linkage(), &text[head.start..name.end]);
        match &self.parameter {
            Some(parameter) => out.push_str(&with_parameter(&text[name.end..head.end], parameter)?),
            None => out.push_str(&text[name.end..head.end]),
        }
        // What is recorded at each choice has more live there, and would be kept in memory.
        if let Some(limit) = self.limit().filter(|_| paths) {
            out.push_str(&format!(".maxnreg {limit}\n"));
        }
        out.push('{');
        let mut at = function.body.start;
        for (span, code) in edits {
            out.push_str(&text[at..span.start]);
            out.push('\n');
            out.push_str(&code);
            at = span.end;
        }
        out.push_str(&text[at..function.body.end]);
        out.push_str("}\n");
        Ok(out)
    }

    /// Returns how many registers the compiler may use: about as many as for the kernel, as fewer warps at a time cost more
    /// than what it keeps in memory where a twin calls. None where the text has limits of its own, or needs many anyway.
    fn limit(&self) -> Option<u32> {
        let head = &self.text[self.function.name.end..self.function.head.end];
        let needs = pressure::live(self.text, self.function, self.flow)? + OWN;
        let has_own = [".maxnreg", ".minnctapersm", ".maxnctapersm"].iter().any(|own| head.contains(own));
        LIMITS.into_iter().find(|limit| needs <= *limit).filter(|_| !has_own)
    }

    /// Returns what is before `.entry`: `.visible`, `.weak`.
    fn linkage(&self) -> &str {
        let before = self.text[..self.function.head.start].trim_end();
        let begin = before.rfind(|c: char| c.is_whitespace() || ";}{/".contains(c)).map_or(0, |at| at + 1);
        match &before[begin..] {
            ".weak" => ".weak ",
            ".visible" => ".visible ",
            _ => "",
        }
    }

    fn statement(&self, number: usize) -> &Statement {
        &self.function.statements[number]
    }

    /// Returns where the body begins to run: behind what it declares.
    fn beginning(&self) -> Span {
        let declares = |s: &&Statement| !matches!(s.kind, Kind::Directive | Kind::Location);
        let at =
            self.function.statements.iter().find(declares).map_or(self.function.body.end, |s| s.span.start);
        at..at
    }

    /// Returns the body once more, without what it declares.
    fn plain(&self) -> Result<String, String> {
        let (mut out, mut at, mut depth) = ("{".to_owned(), self.function.body.start, 0usize);
        for (number, statement) in self.function.statements.iter().enumerate() {
            match statement.kind {
                Kind::Open => depth += 1,
                Kind::Close => depth = depth.saturating_sub(1),
                Kind::Directive => {
                    let words = &self.text[statement.span.clone()];
                    let memory = [".shared", ".local", ".global", ".const"]
                        .iter()
                        .any(|space| words.starts_with(space));
                    if depth == 0 && (memory || words.starts_with(".reg") || words.starts_with(".param")) {
                        out.push_str(&self.text[at..statement.span.start]);
                        at = statement.span.end;
                    } else if memory {
                        return Err(format!(
                            "statement {number} declares memory in an inner scope: not to be sampled"
                        ));
                    }
                }
                _ => {}
            }
        }
        out.push_str(&self.text[at..self.function.body.end]);
        out.push_str("\n\t}\n");
        Ok(out)
    }

    fn site(&self, site: Site) -> Option<usize> {
        self.plan.number(site).map(|number| number as usize)
    }

    /// Puts code into a block, and between it and those behind it.
    fn block(&self, coder: &mut Coder, block: Block, edits: &mut Vec<Edit>) -> Result<(), String> {
        let body = &self.flow.bodies[block];
        if let Some(site) = self.site(Site::Block(block)) {
            coder.place(word(PASS, site, 0));
            let runs = |n: &usize| {
                !matches!(self.statement(*n).kind, Kind::Label(_) | Kind::Location | Kind::Directive)
            };
            let at = match body.statements.clone().find(runs) {
                Some(first) => self.statement(first).span.start,
                None => self.behind(block),
            };
            edits.push((at..at, coder.take()));
        }
        let Some(last) = body.ends else {
            let at = self.behind(block);
            self.edge(coder, block, 0, false);
            if self.flow.graph.successors(block) == [EXIT] {
                coder.end(&self.sums.at(block));
            }
            edits.push((at..at, coder.take()));
            return Ok(());
        };
        self.terminator(coder, block, last)?;
        edits.push((self.statement(last).span.clone(), coder.take()));
        Ok(())
    }

    /// Returns where a block's text ends.
    fn behind(&self, block: Block) -> usize {
        let statements = &self.flow.bodies[block].statements;
        match statements.end.checked_sub(1).filter(|last| *last >= statements.start) {
            Some(last) => self.statement(last).span.end,
            None => self.function.body.end,
        }
    }

    /// Code on an edge. `jumps` if it is written away from the block behind it, which therefore must not be entered if it
    /// is nothing but an end: lanes would wait there for others that wait at a barrier for those that ended. Returns
    /// whether it ends here.
    fn edge(&self, coder: &mut Coder, from: Block, case: usize, jumps: bool) -> Option<Span> {
        let to = self.flow.graph.successors(from).get(case).copied()?;
        if let Some(site) = self.site(Site::Edge(Edge { from, case })) {
            coder.place(word(PASS, site, case));
        }
        let branch = self.site(Site::Branch(from)).and_then(|site| self.sums.of(site));
        if let Some(Pending { site, summing: Summing::Stay(stays) }) = branch
            && *stays != case
        {
            coder.reset(*site);
        }
        let ends = (jumps && to != EXIT).then(|| self.only_ends(to)).flatten()?;
        if let Some(site) = self.site(Site::Block(to)) {
            coder.place(word(PASS, site, 0));
        }
        if let Some(site) = self.site(Site::Edge(Edge { from: to, case: 0 })) {
            coder.place(word(PASS, site, 0));
        }
        coder.end(&self.sums.at(from));
        Some(ends)
    }

    /// Returns the end of a block that is nothing else.
    fn only_ends(&self, block: Block) -> Option<Span> {
        let body = &self.flow.bodies[block];
        let last = body.ends?;
        let runs = |n: &usize| matches!(self.statement(*n).kind, Kind::Instruction { .. });
        let Kind::Instruction { guard: None, opcode, .. } = &self.statement(last).kind else { return None };
        let ends = ["ret", "exit"].contains(&self.text[opcode.clone()].split('.').next()?);
        let opens = |n: &usize| matches!(self.statement(*n).kind, Kind::Open | Kind::Close);
        let alone =
            body.statements.clone().filter(runs).count() == 1 && !body.statements.clone().any(|n| opens(&n));
        (ends && alone).then(|| self.statement(last).span.clone())
    }

    /// The statement that ends a block, with what is before it and on the edges behind it.
    fn terminator(&self, coder: &mut Coder, block: Block, last: usize) -> Result<(), String> {
        let Kind::Instruction { guard, opcode, operands } = &self.statement(last).kind else { return Ok(()) };
        let guard = guard.as_ref().map(|(register, negated)| Predicate {
            register: self.text[register.clone()].to_owned(),
            negated: *negated,
        });
        let operation = self.text[opcode.clone()].split('.').next().unwrap_or_default();
        if operation == "brx" {
            return self.table(coder, block, last, guard, &self.text[operands.clone()]);
        }
        if let (Some(site), Some(guard)) = (self.site(Site::Branch(block)), &guard) {
            self.choice(coder, site, guard);
        }
        let before = coder.take();
        let ends = self.edge(coder, block, 0, true);
        if operation != "bra" {
            coder.end(&self.sums.at(block));
        }
        let on_edge = coder.take();
        coder.out = before;
        let instruction = self.text[opcode.start..self.statement(last).span.end].to_owned();
        let instruction = ends.map_or(instruction, |span| self.text[span].to_owned());
        let Some(guard) = guard else {
            coder.out.push_str(&on_edge);
            coder.raw(&instruction);
            return Ok(());
        };
        if on_edge.is_empty() {
            coder.raw(&self.text[self.statement(last).span.clone()]);
        } else {
            let skip = coder.label();
            coder.line(&format!("@{} bra {skip};", guard.not().text()));
            coder.out.push_str(&on_edge);
            coder.raw(&instruction);
            coder.put(&skip);
        }
        self.edge(coder, block, 1, false);
        Ok(())
    }

    /// A record of a choice between two.
    fn choice(&self, coder: &mut Coder, site: usize, chosen: &Predicate) {
        if coder.paths {
            self.say(coder, site);
            return coder.note(chosen);
        }
        match self.sums.of(site) {
            Some(pending) => coder.summed(site, pending.summing, chosen),
            None => coder.branch(chosen, word(PASS, site, 0)),
        }
    }

    /// Lanes say which ways they went, where their words may be full.
    fn say(&self, coder: &mut Coder, site: usize) {
        if let Some(Site::Branch(block)) = self.plan.sites.get(site)
            && let Some(room) = self.checks.get(*block).copied().flatten()
        {
            coder.say(site, room);
        }
    }

    /// A record of one way of a choice of many.
    fn way(&self, coder: &mut Coder, site: usize, case: usize, ways: usize) {
        if coder.paths {
            self.say(coder, site);
            return coder.note_case(case, ways::bits(ways));
        }
        coder.way(word(PASS, site, case));
    }

    /// A branch through a table: each entry gets a place behind it, from where it goes on.
    fn table(
        &self,
        coder: &mut Coder,
        block: Block,
        last: usize,
        guard: Option<Predicate>,
        operands: &str,
    ) -> Result<(), String> {
        let (Some((index, _)), Some(labels)) = (operands.split_once(','), &self.flow.bodies[block].table)
        else {
            return Err("a branch through a table whose entries are not in the text".to_owned());
        };
        let ways = self.flow.graph.successors(block).len();
        let site = self.site(Site::Branch(block));
        coder.line("{");
        match (site, ways, &guard) {
            (Some(site), 2, Some(guard)) => self.choice(coder, site, guard),
            (Some(site), 2, None) => {
                coder.line(".reg .pred %#_first;");
                coder.line(&format!("setp.eq.u32 %#_first, {index}, 0;"));
                let register = format!("%{}_first", self.fresh);
                self.choice(coder, site, &Predicate { register, negated: false });
            }
            (Some(_), ..) if coder.paths => {}
            (Some(_), ..) => {
                coder.line(".reg .b32 %#_all;");
                coder.line("activemask.b32 %#_all;");
            }
            (None, ..) => {}
        }
        let many = site.filter(|_| ways > 2);
        let places: Vec<String> = labels.iter().map(|_| coder.label()).collect();
        let (table, skip) = (coder.label(), coder.label());
        coder.put(&table);
        coder.line(&format!(".branchtargets {};", places.join(", ")));
        if let Some(guard) = &guard {
            coder.line(&format!("@{} bra {skip};", guard.not().text()));
        }
        let Kind::Instruction { opcode, .. } = &self.statement(last).kind else { return Ok(()) };
        coder.raw(&format!("{} {index}, {table};", &self.text[opcode.clone()]));
        for (case, (place, label)) in places.iter().zip(labels).enumerate() {
            coder.put(place);
            many.iter().for_each(|site| self.way(coder, *site, case, ways));
            let instruction = match self.edge(coder, block, case, true) {
                Some(span) => self.text[span].to_owned(),
                None => format!("bra {};", &self.text[label.clone()]),
            };
            coder.raw(&instruction);
        }
        coder.put(&skip);
        if guard.is_some() {
            many.iter().for_each(|site| self.way(coder, *site, ways - 1, ways));
            self.edge(coder, block, ways - 1, false);
        }
        coder.line("}");
        Ok(())
    }
}
