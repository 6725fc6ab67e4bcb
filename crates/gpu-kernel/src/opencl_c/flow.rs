//! The graph of a kernel's statements, and where text is inserted so that each of its choices is said.

use std::collections::HashMap;
use std::ops::Range;

use super::parse::{Condition, Statement, Unclear};
use super::tokens::Lines;
use crate::graph::{Block, EXIT, Graph};

/// Where text is inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// Around a condition: the block's choice, whose first way is that it holds.
    Condition(Range<usize>, Block),
    /// Around a `switch`, and in front of what decides.
    Switch {
        /// All of it.
        at: Range<usize>,
        /// What is between its parentheses.
        condition: Range<usize>,
        /// The way of those whom no label has; none if a label has all.
        other: Option<usize>,
        /// The block that it is the choice of.
        block: Block,
    },
    /// Behind a label of a `switch`: this way, if the work-item has just come from there.
    Case(usize, usize, Block),
    /// Behind a line of the preprocessor: this way.
    Way(usize, usize, Block),
    /// Before the line of an `#endif` without `#else`: this way.
    Missing(usize, usize, Block),
    /// Around a `return`.
    Return(Range<usize>),
}

/// A kernel's graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// Its blocks.
    pub graph: Graph,
    /// By block, the line of the source that it begins in.
    pub lines: Vec<u32>,
    /// Where its choices are.
    pub spots: Vec<Spot>,
}

/// Ways that lead to what comes next.
type Open = Vec<(Block, usize)>;

/// Where `break` and `continue` go.
#[derive(Debug, Default)]
struct Around {
    breaks: Open,
    continues: Open,
    /// `continue` is that of the loop around.
    is_switch: bool,
    /// Labels of a `switch` up to here.
    cases: usize,
    block: Block,
}

#[derive(Debug)]
struct Builder<'a> {
    lines: &'a Lines,
    ways: Vec<Vec<Block>>,
    line: Vec<u32>,
    spots: Vec<Spot>,
    /// What leads to where the builder is. `block` is that, if something is in it already.
    open: Open,
    block: Option<Block>,
    around: Vec<Around>,
    labels: HashMap<String, Block>,
    gotos: Vec<(Block, String, usize)>,
}

/// Makes the graph of a kernel's statements, which begin at `begin`.
///
/// # Errors
/// Where they make no sense.
pub fn flow(statements: &[Statement], begin: usize, lines: &Lines) -> Result<Flow, Unclear> {
    let mut builder = Builder {
        lines,
        ways: vec![vec![]],
        line: vec![lines.line(begin)],
        spots: vec![],
        open: vec![],
        block: Some(0),
        around: vec![],
        labels: HashMap::new(),
        gotos: vec![],
    };
    let first = statements.iter().find_map(start);
    builder.line[0] = lines.line(first.unwrap_or(begin));
    builder.list(statements)?;
    builder.end_at(EXIT);
    for (block, label, at) in std::mem::take(&mut builder.gotos) {
        let why = || Unclear { at, why: format!("no label {label}") };
        let to = *builder.labels.get(&label).ok_or_else(why)?;
        builder.ways[block] = vec![to];
    }
    let graph = Graph::new(builder.ways).map_err(|error| Unclear { at: begin, why: error.to_string() })?;
    Ok(Flow { graph, lines: builder.line, spots: builder.spots })
}

/// Where a statement begins that is something of itself.
fn start(statement: &Statement) -> Option<usize> {
    match statement {
        Statement::Plain(at) | Statement::Label(_, at) | Statement::Goto(_, at) => Some(*at),
        Statement::Block(list) => list.iter().find_map(start),
        Statement::If { condition, .. } => Some(condition.at.start),
        Statement::Loop { first, at, .. } => Some(first.unwrap_or(*at)),
        Statement::Do { body, condition } => start(body).or(Some(condition.at.start)),
        Statement::Switch { at, .. } | Statement::Case { at, .. } | Statement::Return(at) => Some(at.start),
        Statement::Alternatives { ways, .. } => ways.first().map(|(at, _)| *at),
        Statement::Break | Statement::Continue => None,
    }
}

impl Builder<'_> {
    fn list(&mut self, list: &[Statement]) -> Result<(), Unclear> {
        list.iter().try_for_each(|one| self.statement(one))
    }

    /// Returns the block that the builder is in, a new one at `at` if it is in none.
    fn here(&mut self, at: usize) -> Block {
        if let Some(block) = self.block {
            return block;
        }
        let block = self.ways.len();
        self.ways.push(vec![]);
        self.line.push(self.lines.line(at));
        for (from, case) in std::mem::take(&mut self.open) {
            self.lead(from, case, block);
        }
        self.block = Some(block);
        block
    }

    /// Begins a block at `at` that others can lead to.
    fn fresh(&mut self, at: usize) -> Block {
        self.close();
        self.here(at)
    }

    fn lead(&mut self, from: Block, case: usize, to: Block) {
        let ways = &mut self.ways[from];
        if ways.len() <= case {
            ways.resize(case + 1, EXIT);
        }
        ways[case] = to;
    }

    /// The block ends, and leads to what comes.
    fn close(&mut self) {
        if let Some(block) = self.block.take() {
            self.open.push((block, 0));
        }
    }

    /// The block ends with a choice. Returns it.
    fn choose(&mut self, at: usize) -> Block {
        let block = self.here(at);
        self.block = None;
        block
    }

    /// What is open leads there, and nothing comes here any more.
    fn end_at(&mut self, to: Block) {
        self.close();
        for (from, case) in std::mem::take(&mut self.open) {
            self.lead(from, case, to);
        }
    }

    fn condition(&mut self, condition: &Condition) -> Block {
        let block = self.choose(condition.at.start);
        self.spots.push(Spot::Condition(condition.at.clone(), block));
        block
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Unclear> {
        match statement {
            Statement::Plain(at) => _ = self.here(*at),
            Statement::Block(list) => self.list(list)?,
            Statement::If { condition, then, otherwise } => {
                let block = self.condition(condition);
                self.open.push((block, 0));
                self.statement(then)?;
                self.close();
                let mut behind = std::mem::replace(&mut self.open, vec![(block, 1)]);
                if let Some(otherwise) = otherwise {
                    self.statement(otherwise)?;
                    self.close();
                }
                self.open.append(&mut behind);
            }
            Statement::Loop { first, condition, at, step, body } => {
                if let Some(first) = first {
                    self.here(*first);
                }
                self.loop_(condition.as_ref(), *at, *step, body)?;
            }
            Statement::Do { body, condition } => self.do_(body, condition)?,
            Statement::Switch { at, condition, body } => self.switch(at, condition, body)?,
            Statement::Case { at, .. } => self.case(at)?,
            Statement::Break | Statement::Continue => {
                let is_break = *statement == Statement::Break;
                self.close();
                let open = std::mem::take(&mut self.open);
                let around = self.around.iter_mut().rev().find(|around| is_break || !around.is_switch);
                let Some(around) = around else {
                    return Err(Unclear { at: 0, why: "a jump out of nothing".to_owned() });
                };
                if is_break { &mut around.breaks } else { &mut around.continues }.extend(open);
            }
            Statement::Return(at) => {
                self.here(at.start);
                self.spots.push(Spot::Return(at.clone()));
                self.end_at(EXIT);
            }
            Statement::Goto(label, at) => {
                let block = self.choose(*at);
                self.gotos.push((block, label.clone(), *at));
            }
            Statement::Label(label, at) => {
                let block = self.fresh(*at);
                self.labels.insert(label.clone(), block);
            }
            Statement::Alternatives { ways, is_complete, end } => {
                self.alternatives(ways, *is_complete, *end)?
            }
        }
        Ok(())
    }

    fn loop_(
        &mut self,
        condition: Option<&Condition>,
        at: usize,
        step: Option<usize>,
        body: &Statement,
    ) -> Result<(), Unclear> {
        let header = self.fresh(at);
        let mut behind = Open::new();
        match condition {
            Some(condition) => {
                let block = self.condition(condition);
                self.open.push((block, 0));
                behind.push((block, 1));
            }
            None => self.close(),
        }
        self.around.push(Around::default());
        self.statement(body)?;
        self.close();
        let around = self.around.pop().unwrap_or_default();
        self.open.extend(around.continues);
        if let Some(step) = step.filter(|_| !self.open.is_empty()) {
            self.here(step);
        }
        self.end_at(header);
        behind.extend(around.breaks);
        self.open = behind;
        Ok(())
    }

    fn do_(&mut self, body: &Statement, condition: &Condition) -> Result<(), Unclear> {
        let header = self.fresh(start(body).unwrap_or(condition.at.start));
        self.around.push(Around::default());
        self.statement(body)?;
        let around = self.around.pop().unwrap_or_default();
        if !around.continues.is_empty() {
            self.close();
            self.open.extend(around.continues);
        }
        let block = self.condition(condition);
        self.lead(block, 0, header);
        self.open = around.breaks;
        self.open.push((block, 1));
        Ok(())
    }

    fn switch(
        &mut self,
        at: &Range<usize>,
        condition: &Condition,
        body: &[Statement],
    ) -> Result<(), Unclear> {
        let block = self.choose(at.start);
        let labels = body.iter().filter(|one| matches!(one, Statement::Case { .. })).count();
        let total = body.iter().any(|one| matches!(one, Statement::Case { is_default: true, .. }));
        let spot = Spot::Switch {
            at: at.clone(),
            condition: condition.at.clone(),
            other: (!total).then_some(labels),
            block,
        };
        self.spots.push(spot);
        self.around.push(Around { is_switch: true, block, ..Around::default() });
        self.list(body)?;
        self.close();
        let around = self.around.pop().unwrap_or_default();
        if around.cases != labels {
            let why = "a label within a statement of its `switch`".to_owned();
            return Err(Unclear { at: at.start, why });
        }
        self.open.extend(around.breaks);
        if !total {
            self.open.push((block, labels));
        }
        Ok(())
    }

    fn case(&mut self, at: &Range<usize>) -> Result<(), Unclear> {
        let Some(around) = self.around.last_mut().filter(|around| around.is_switch) else {
            return Err(Unclear {
                at: at.start,
                why: "a label within a statement of its `switch`".to_owned(),
            });
        };
        let (case, block) = (around.cases, around.block);
        around.cases += 1;
        self.close();
        self.open.push((block, case));
        self.spots.push(Spot::Case(at.end, case, block));
        self.here(at.start);
        Ok(())
    }

    fn alternatives(
        &mut self,
        ways: &[(usize, Vec<Statement>)],
        is_complete: bool,
        end: usize,
    ) -> Result<(), Unclear> {
        let block = self.choose(ways.first().map_or(end, |(at, _)| *at));
        let mut behind = Open::new();
        for (way, (at, list)) in ways.iter().enumerate() {
            self.spots.push(Spot::Way(*at, way, block));
            self.open = vec![(block, way)];
            self.list(list)?;
            self.close();
            behind.append(&mut self.open);
        }
        if !is_complete {
            self.spots.push(Spot::Missing(end, ways.len(), block));
            behind.push((block, ways.len()));
        }
        self.open = behind;
        Ok(())
    }
}
