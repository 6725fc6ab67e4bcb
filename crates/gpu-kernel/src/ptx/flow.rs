//! The graph of a function's statements.

use std::collections::HashMap;
use std::ops::Range;

use super::scan::{BadText, Function, Kind, Span, Statement};
use crate::graph::{Block, EXIT, Graph};

/// A function's graph, and where its blocks are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// How blocks follow each other.
    pub graph: Graph,
    /// By block, its statements, by number.
    pub bodies: Vec<Body>,
}

/// The statements of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// All of them.
    pub statements: Range<usize>,
    /// The last one, if it says where to go on.
    pub ends: Option<usize>,
    /// If it goes on by a table: the labels in it.
    pub table: Option<Vec<Span>>,
}

/// How a statement ends its block.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// It goes on at a label.
    Jump(Span),
    /// It goes on at one of a list's labels.
    Table(Span),
    /// The lane ends.
    Exit,
}

/// Makes the graph of a function.
///
/// # Errors
/// Where a branch names a label that there is not.
pub fn flow(text: &str, function: &Function) -> Result<Flow, BadText> {
    let statements = &function.statements;
    let scopes = Scopes::of(text, statements);
    let ends: Vec<Option<End>> = statements.iter().map(|statement| end(text, statement)).collect();
    let mut bodies = bodies(statements, &ends);
    // By statement, its block.
    let mut of = vec![0; statements.len()];
    for (block, body) in bodies.iter().enumerate() {
        of.get_mut(body.statements.clone()).into_iter().flatten().for_each(|place| *place = block);
    }
    let mut successors = Vec::with_capacity(bodies.len());
    let blocks = bodies.len();
    for (block, body) in bodies.iter_mut().enumerate() {
        let next = if block + 1 < blocks { block + 1 } else { EXIT };
        let Some(last) = body.ends else {
            successors.push(vec![next]);
            continue;
        };
        let mut to = match &ends[last] {
            Some(End::Exit) => vec![EXIT],
            Some(End::Jump(label)) => vec![of[scopes.find(text, last, label)?]],
            Some(End::Table(list)) => {
                let first = scopes.find(text, last, list)?;
                let labels = targets(text, statements.get(first + 1));
                let found: Result<Vec<Block>, BadText> =
                    labels.iter().map(|label| scopes.find(text, first, label).map(|at| of[at])).collect();
                body.table = Some(labels);
                found?
            }
            None => vec![],
        };
        if guarded(&statements[last]) {
            to.push(next);
        }
        successors.push(to);
    }
    let bad =
        |_| BadText { line: line(text, function.head.start), what: "a function whose blocks lead nowhere" };
    Ok(Flow { graph: Graph::new(successors).map_err(bad)?, bodies })
}

/// Divides statements into blocks: one begins at each label, and behind each statement that ends one.
fn bodies(statements: &[Statement], ends: &[Option<End>]) -> Vec<Body> {
    let mut bodies = Vec::new();
    let mut begin = 0;
    // Whether the block has something that runs: labels that follow each other are of one block.
    let mut runs = false;
    for (number, statement) in statements.iter().enumerate() {
        if matches!(statement.kind, Kind::Label(_)) && runs {
            bodies.push(Body { statements: begin..number, ends: None, table: None });
            (begin, runs) = (number, false);
        }
        runs |= matches!(statement.kind, Kind::Instruction { .. });
        if ends[number].is_some() {
            bodies.push(Body { statements: begin..number + 1, ends: Some(number), table: None });
            (begin, runs) = (number + 1, false);
        }
    }
    if runs || bodies.is_empty() || statements[begin..].iter().any(|s| matches!(s.kind, Kind::Label(_))) {
        bodies.push(Body { statements: begin..statements.len(), ends: None, table: None });
    }
    bodies
}

fn guarded(statement: &Statement) -> bool {
    matches!(&statement.kind, Kind::Instruction { guard: Some(_), .. })
}

fn end(text: &str, statement: &Statement) -> Option<End> {
    let Kind::Instruction { opcode, operands, .. } = &statement.kind else { return None };
    let operation = text[opcode.clone()].split('.').next()?;
    let last = || {
        let list = &text[operands.clone()];
        let from = list.rfind(',').map_or(0, |comma| comma + 1);
        trimmed(text, operands.start + from..operands.end)
    };
    match operation {
        "bra" => Some(End::Jump(last())),
        "brx" => Some(End::Table(last())),
        "ret" | "exit" | "trap" => Some(End::Exit),
        _ => None,
    }
}

/// Returns the names in a `.branchtargets`.
fn targets(text: &str, statement: Option<&Statement>) -> Vec<Span> {
    const LIST: &str = ".branchtargets";
    let Some(span) = statement.map(|s| s.span.clone()).filter(|s| text[s.clone()].starts_with(LIST)) else {
        return vec![];
    };
    let mut at = span.start + LIST.len();
    let names = text[at..span.end].trim_end_matches(';').split(',').map(|name| {
        let part = at..at + name.len();
        at += name.len() + 1;
        trimmed(text, part)
    });
    names.collect()
}

fn trimmed(text: &str, span: Span) -> Span {
    let part = &text[span.clone()];
    let begin = span.start + (part.len() - part.trim_start().len());
    begin..begin + part.trim().len()
}

fn line(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// Labels by the scope that they are in.
struct Scopes<'t> {
    /// By statement, its scope.
    scope: Vec<usize>,
    /// By scope, the one around it; the outermost is around itself.
    around: Vec<usize>,
    /// By scope and name, the statement.
    labels: HashMap<(usize, &'t str), usize>,
    begins: Vec<usize>,
}

impl<'t> Scopes<'t> {
    fn of(text: &'t str, statements: &[Statement]) -> Self {
        let mut scopes = Scopes { scope: vec![], around: vec![0], labels: HashMap::new(), begins: vec![] };
        let mut inside = 0;
        for (number, statement) in statements.iter().enumerate() {
            match &statement.kind {
                Kind::Open => {
                    scopes.around.push(inside);
                    inside = scopes.around.len() - 1;
                }
                Kind::Close => inside = scopes.around[inside],
                Kind::Label(name) => _ = scopes.labels.entry((inside, &text[name.clone()])).or_insert(number),
                _ => {}
            }
            scopes.scope.push(inside);
            scopes.begins.push(statement.span.start);
        }
        scopes
    }

    /// Returns the statement of a label that is named by another.
    fn find(&self, text: &str, by: usize, label: &Span) -> Result<usize, BadText> {
        let mut scope = self.scope[by];
        loop {
            if let Some(found) = self.labels.get(&(scope, &text[label.clone()])) {
                return Ok(*found);
            }
            if scope == 0 {
                let line = line(text, self.begins[by]);
                return Err(BadText { line, what: "a branch to a label that there is not" });
            }
            scope = self.around[scope];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan::scan;
    use super::*;

    fn graph(body: &str) -> Result<Vec<Vec<Block>>, String> {
        let text = format!(".entry k()\n{{\n{body}\n}}\n");
        let module = scan(&text).map_err(|e| e.to_string())?;
        let flow = flow(&text, &module.functions[0]).map_err(|e| e.to_string())?;
        Ok((0..flow.graph.len()).map(|block| flow.graph.successors(block).to_vec()).collect())
    }

    #[test]
    fn blocks_follow_each_other_as_the_text_says() {
        let body = "mov.u32 %r1, %tid.x; @%p1 bra $B;\n$A: add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, 9;\n@%p2 bra $A;\n$B: $C: ret;";
        assert_eq!(graph(body), Ok(vec![vec![2, 1], vec![1, 2], vec![EXIT]]));
        // A lane ends in the middle; the end of the text is the end of the lane.
        assert_eq!(graph("@%p1 ret; add.s32 %r1, %r1, 1;"), Ok(vec![vec![EXIT, 1], vec![EXIT]]));
        assert_eq!(graph("@!%p1 trap; bra.uni L; L: exit;"), Ok(vec![vec![EXIT, 1], vec![2], vec![EXIT]]));
        assert_eq!(graph(""), Ok(vec![vec![EXIT]]));
        // A label at the end.
        assert_eq!(graph("@%p1 bra L; nanosleep.u32 1; L:"), Ok(vec![vec![2, 1], vec![2], vec![EXIT]]));
    }

    #[test]
    fn tables_have_many_targets() {
        let body = "ts: .branchtargets A, B, A;\nbrx.idx %r1, ts;\nA: ret;\nB: bra A;";
        assert_eq!(graph(body), Ok(vec![vec![1, 2, 1], vec![EXIT], vec![1]]));
    }

    #[test]
    fn labels_are_of_their_scope() {
        // As inline assembly has it twice in a kernel.
        let part = "{ L: @%p1 bra L; }";
        assert_eq!(graph(&format!("L: {part} {part} bra L;")), Ok(vec![vec![0, 1], vec![1, 2], vec![0]]));
        assert_eq!(graph("{ bra L; }\nL: ret;"), Ok(vec![vec![1], vec![EXIT]]));
        assert_eq!(graph("\nbra M;").unwrap_err(), "line 4: a branch to a label that there is not");
    }
}
