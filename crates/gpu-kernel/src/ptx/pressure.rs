//! How many registers a kernel has live at most, about: as many as its compiler will need, or some fewer.

use std::collections::HashMap;

use super::flow::Flow;
use super::scan::{Function, Kind, Statement};
use crate::graph::EXIT;

/// Bits of sets for all blocks; of larger kernels it is not known.
const MOST: usize = 1 << 28;
/// Instructions whose first operand is not written.
const NO_RESULT: [&str; 12] =
    ["st", "red", "bra", "brx", "bar", "barrier", "call", "membar", "fence", "prefetch", "ret", "cp"];

/// Returns the most registers of 32 bits that are live at a place; none if that is not known.
pub(super) fn live(text: &str, function: &Function, flow: &Flow) -> Option<u32> {
    let mut registers = Registers::of(text, function);
    let touched: Vec<Touched> =
        function.statements.iter().map(|statement| registers.touched(text, statement)).collect();
    let (words, blocks) = (registers.widths.len().div_ceil(64), flow.graph.len());
    if words.checked_mul(64 * blocks)? > MOST {
        return None;
    }
    let mut enters = vec![vec![0u64; words]; blocks];
    let (mut most, mut changes) = (0, true);
    while changes {
        (most, changes) = (0, false);
        for block in (0..blocks).rev() {
            let mut live = vec![0u64; words];
            for to in flow.graph.successors(block).iter().filter(|to| **to != EXIT) {
                live.iter_mut().zip(&enters[*to]).for_each(|(all, of)| *all |= of);
            }
            let mut count = registers.count(&live);
            most = most.max(count);
            for statement in touched.get(flow.bodies[block].statements.clone())?.iter().rev() {
                statement.writes.iter().for_each(|one| registers.set(&mut live, *one, false, &mut count));
                statement.reads.iter().for_each(|one| registers.set(&mut live, *one, true, &mut count));
                most = most.max(count);
            }
            if enters[block] != live {
                enters[block] = live;
                changes = true;
            }
        }
    }
    Some(most)
}

/// The registers that a statement reads and writes; one that it writes under a predicate is read, too.
#[derive(Default)]
struct Touched {
    reads: Vec<usize>,
    writes: Vec<usize>,
}

struct Registers {
    /// By what names begin with, or by name.
    declared: HashMap<String, u32>,
    numbers: HashMap<String, usize>,
    /// By number, registers of 32 bits.
    widths: Vec<u32>,
}

impl Registers {
    fn of(text: &str, function: &Function) -> Self {
        let mut declared = HashMap::new();
        for statement in function.statements.iter().filter(|one| matches!(one.kind, Kind::Directive)) {
            let mut words =
                text[statement.span.clone()].split([' ', '\t', '\n', ',', ';']).filter(|w| !w.is_empty());
            if words.next() != Some(".reg") {
                continue;
            }
            let width = match words.next() {
                Some(".pred") => 0,
                Some(kind) if kind.ends_with("128") => 4,
                Some(kind) if kind.ends_with("64") => 2,
                _ => 1,
            };
            declared.extend(words.filter_map(|name| Some((name.split('<').next()?.to_owned(), width))));
        }
        Self { declared, numbers: HashMap::new(), widths: vec![] }
    }

    /// Returns a register's number; none if it is not declared here.
    fn number(&mut self, name: &str) -> Option<usize> {
        if let Some(known) = self.numbers.get(name) {
            return Some(*known);
        }
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let width = *self.declared.get(name).or_else(|| self.declared.get(plain))?;
        self.numbers.insert(name.to_owned(), self.widths.len());
        self.widths.push(width);
        Some(self.widths.len() - 1)
    }

    fn all(&mut self, part: &str) -> Vec<usize> {
        let ends = |c: char| !(c.is_alphanumeric() || "_$%".contains(c));
        part.split(ends).filter(|word| word.starts_with('%')).filter_map(|word| self.number(word)).collect()
    }

    fn touched(&mut self, text: &str, statement: &Statement) -> Touched {
        let Kind::Instruction { guard, opcode, operands } = &statement.kind else {
            return Touched::default();
        };
        let operation = text[opcode.clone()].split('.').next().unwrap_or_default();
        let operands = &text[operands.clone()];
        let first = match operands.strip_prefix('{') {
            Some(list) => list.find('}').map_or(operands.len(), |at| at + 1),
            None => operands.find(',').unwrap_or(operands.len()),
        };
        let (mut writes, mut reads) = (self.all(&operands[..first]), self.all(&operands[first..]));
        if NO_RESULT.contains(&operation) || operands.starts_with('[') {
            reads.append(&mut writes);
        }
        if let Some((register, _)) = guard {
            reads.extend(self.all(&text[register.clone()]));
            reads.extend(&writes);
        }
        Touched { reads, writes }
    }

    fn count(&self, live: &[u64]) -> u32 {
        let is_live = |one: &usize| live[one / 64] >> (one % 64) & 1 != 0;
        (0..self.widths.len()).filter(is_live).map(|one| self.widths[one]).sum()
    }

    fn set(&self, live: &mut [u64], one: usize, to: bool, count: &mut u32) {
        let (word, bit) = (&mut live[one / 64], 1 << (one % 64));
        match (*word & bit != 0, to) {
            (false, true) => *count += self.widths[one],
            (true, false) => *count -= self.widths[one],
            _ => {}
        }
        *word = if to { *word | bit } else { *word & !bit };
    }
}

#[cfg(test)]
mod tests {
    use super::super::{flow, scan};
    use super::*;

    #[test]
    fn what_is_live_is_counted_by_width() {
        let text = ".entry k()\n{\n.reg .pred %p<2>;\n.reg .b32 %r<5>, %one;\n.reg .f64 %fd<3>;\n\
                    mov.u32 %r1, %tid.x;\nmov.u32 %one, 1;\nL:\ncvt.rn.f64.u32 %fd1, %r1;\nadd.u32 %r1, %r1, %one;\n\
                    setp.lt.u32 %p1, %r1, 9;\nst.global.f64 [%r1], %fd1;\n@%p1 bra L;\nret;\n}\n";
        let module = scan(text).unwrap();
        let function = &module.functions[0];
        // In the loop both integers and the double.
        assert_eq!(live(text, function, &flow(text, function).unwrap()), Some(4));
    }
}
