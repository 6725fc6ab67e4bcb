//! What blocks are made of, by count of the instructions in the text, and where in the source they come from.
//!
//! An instruction counts for one lane, whatever its guard. An operation of a fused multiply-add is two, of a vector as many
//! as it has elements; of a matrix multiplication each lane has its 32nd. Comparisons, conversions and moves count as
//! instructions only. Memory counts where the instruction names the global space.

use std::collections::HashMap;

use super::flow::{Body, Flow};
use super::scan::{Function, Kind};
use crate::description::BlockText;

/// Files of the source by number: `.file 1 "name"`.
pub(super) fn files(text: &str) -> HashMap<u32, String> {
    let file = |line: &str| {
        let (number, name) =
            line.trim_start().strip_prefix(".file")?.trim().split_once(char::is_whitespace)?;
        let name = name.trim().strip_prefix('"')?.split('"').next()?;
        Some((number.parse().ok()?, name.to_owned()))
    };
    text.lines().filter_map(file).collect()
}

/// Returns what each block is made of.
pub(super) fn blocks(
    text: &str,
    function: &Function,
    flow: &Flow,
    files: &HashMap<u32, String>,
) -> Vec<BlockText> {
    // The line that holds until the next one is said.
    let mut place = None;
    flow.bodies.iter().map(|body| block(text, function, body, files, &mut place)).collect()
}

type Place = Option<(u32, u32)>;

fn block(
    text: &str,
    function: &Function,
    body: &Body,
    files: &HashMap<u32, String>,
    place: &mut Place,
) -> BlockText {
    let (mut block, mut begins) = (BlockText::default(), None);
    for statement in function.statements.get(body.statements.clone()).unwrap_or_default() {
        match &statement.kind {
            Kind::Location => *place = location(&text[statement.span.clone()]).or(*place),
            Kind::Instruction { opcode, operands, .. } => {
                begins = begins.or(*place);
                count(&mut block, &text[opcode.clone()], &text[operands.clone()]);
            }
            _ => {}
        }
    }
    if let Some((file, line)) = begins {
        (block.file, block.line) = (files.get(&file).cloned(), Some(line));
    }
    block
}

/// `.loc 1 7 3`; line 0 is none.
fn location(statement: &str) -> Place {
    let mut words = statement.strip_prefix(".loc")?.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    let (file, line) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (line > 0).then_some((file, line))
}

fn count(block: &mut BlockText, opcode: &str, operands: &str) {
    let parts: Vec<&str> = opcode.split('.').collect();
    let (operation, kind) = (parts[0], *parts.last().unwrap_or(&""));
    let add = |to: &mut u32, more: u32| *to = to.saturating_add(more);
    add(&mut block.instructions, 1);
    match operation {
        "add" | "sub" | "mul" | "div" | "rem" | "min" | "max" | "abs" | "neg" | "sqrt" | "rsqrt" | "rcp"
        | "sin" | "cos" | "ex2" | "lg2" | "tanh" | "sad" | "mul24" => operations(block, kind, 1),
        "fma" | "mad" | "mad24" => operations(block, kind, 2),
        "and" | "or" | "xor" | "not" | "shl" | "shr" | "shf" | "lop3" | "popc" | "clz" | "bfind" | "brev"
        | "bfe" | "bfi" | "prmt" | "dp4a" | "dp2a" | "cnot" | "addc" | "subc" | "madc" => {
            add(&mut block.integer, 1)
        }
        "mma" | "wmma" => matrices(block, &parts),
        "ld" | "ldu" if parts.contains(&"global") => add(&mut block.loaded, bytes(&parts)),
        "st" if parts.contains(&"global") => add(&mut block.stored, bytes(&parts)),
        "red" if parts.contains(&"global") => add(&mut block.stored, bytes(&parts)),
        "atom" if parts.contains(&"global") => {
            add(&mut block.loaded, bytes(&parts));
            add(&mut block.stored, bytes(&parts));
        }
        "cp" if parts.get(1) == Some(&"async") && parts.ends_with(&["shared", "global"]) => {
            let size = operands.split(',').nth(2).and_then(|size| size.trim().parse().ok());
            add(&mut block.loaded, size.unwrap_or(0));
        }
        "bar" | "barrier" if parts.get(1) != Some(&"warp") => add(&mut block.barriers, 1),
        _ => {}
    }
}

/// Adds operations on a type.
fn operations(block: &mut BlockText, kind: &str, each: u32) {
    let (to, elements) = match kind {
        "f32" => (&mut block.flops32, 1),
        "f32x2" => (&mut block.flops32, 2),
        "f64" => (&mut block.flops64, 1),
        "f16" | "bf16" => (&mut block.flops16, 1),
        "f16x2" | "bf16x2" => (&mut block.flops16, 2),
        _ => (&mut block.integer, 1),
    };
    *to = to.saturating_add(each * elements);
}

/// `mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32`: types of d, a, b, c.
fn matrices(block: &mut BlockText, parts: &[&str]) {
    let is_shape = |part: &&&str| part.starts_with('m') && part.contains('n') && part.contains('k');
    let Some(shape) = parts.iter().skip(1).find(is_shape) else { return };
    if parts[0] == "wmma" && parts.get(1) != Some(&"mma") {
        return;
    }
    let numbers: Option<Vec<u32>> =
        shape.split(['m', 'n', 'k']).skip(1).map(|size| size.parse().ok()).collect();
    let Some([m, n, k]) = numbers.as_deref() else { return };
    let each = m.saturating_mul(*n).saturating_mul(*k) / 32 * 2;
    let to = match parts.iter().rev().nth(2).copied().unwrap_or_default() {
        "f64" => &mut block.flops64,
        "tf32" | "f32" => &mut block.flops32,
        kind if kind.starts_with(['s', 'u', 'b']) && kind != "bf16" => &mut block.integer,
        _ => &mut block.flops16,
    };
    *to = to.saturating_add(each);
}

/// Returns the bytes that one lane loads or stores.
fn bytes(parts: &[&str]) -> u32 {
    let bits = parts.last().map(|kind| kind.trim_start_matches(|c: char| !c.is_ascii_digit()));
    let pairs = parts.last().is_some_and(|kind| kind.ends_with("x2"));
    let bits: u32 = bits.and_then(|bits| bits.trim_end_matches("x2").parse().ok()).unwrap_or(0);
    let elements = parts.iter().find_map(|part| part.strip_prefix('v')?.parse::<u32>().ok()).unwrap_or(1);
    bits / 8 * elements * if pairs { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::super::{flow, scan};
    use super::*;

    #[test]
    fn blocks_are_counted() {
        let text = ".file 1 \"/a b/k.cu\"\n.entry k()\n{\n.loc 1 7 3\nld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];\n\
                    fma.rn.f32 %f1, %f2, %f3, %f1;\nfma.rn.f16x2 %r1, %r1, %r1, %r1;\nadd.f64 %fd1, %fd1, %fd1;\n\
                    @%p1 bra L;\n.loc 1 9 1, function_name $x, inlined_at 1 5 2\nbar.sync 0;\nbar.warp.sync -1;\n\
                    atom.global.add.u64 %rd2, [%rd1], 1;\nst.global.u16 [%rd1], %rs1;\nst.shared.u32 [%r1], %r2;\n\
                    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1};\n\
                    L: cp.async.cg.shared.global [%r1], [%rd1], 16; mad.lo.s32 %r1, %r1, %r1, %r1; ret;\n}\n";
        let module = scan(text).unwrap();
        let flow = flow(text, &module.functions[0]).unwrap();
        let blocks = blocks(text, &module.functions[0], &flow, &files(text));
        let file = Some("/a b/k.cu".to_owned());
        let first = BlockText {
            file: file.clone(),
            line: Some(7),
            instructions: 5,
            flops32: 2,
            flops64: 1,
            flops16: 4,
            loaded: 16,
            ..BlockText::default()
        };
        let second = BlockText {
            file: file.clone(),
            line: Some(9),
            instructions: 6,
            flops16: 128,
            loaded: 8,
            stored: 10,
            barriers: 1,
            ..BlockText::default()
        };
        let third = BlockText {
            file,
            line: Some(9),
            instructions: 3,
            integer: 2,
            loaded: 16,
            ..BlockText::default()
        };
        assert_eq!(blocks, [first, second, third]);
    }
}
