//! Structs, laid out as the System V ABI for x86-64 does it: each member at
//! the next multiple of its alignment, the whole a multiple of the largest.

use anyhow::{Context, Result, bail};
use hetrace_model::{Kind, Member, Type};
use roxmltree::Node;

use super::Known;
use crate::extract::registry::{children, ctext, text};

/// Reads `<type category="struct">`.
pub fn read(root: Node<'_, '_>, node: Node<'_, '_>, known: &Known) -> Result<Type> {
    let name = node.attribute("name").context("a struct without a name")?;
    let mut members = Vec::new();
    let (mut end, mut largest) = (0, 1);
    for node in children(node, "member") {
        let mut member = declared(root, node).with_context(|| format!("in struct {name}"))?;
        let (size, align) = size_and_align(&member, known)?;
        member.offset = round_up(end, align);
        end = member.offset + size * member.count;
        largest = largest.max(align);
        members.push(member);
    }
    let size = round_up(end, largest);
    Ok(Type { name: name.to_owned(), kind: Kind::Struct, size, members, ..Type::default() })
}

fn declared(root: Node<'_, '_>, node: Node<'_, '_>) -> Result<Member> {
    let whole = text(node);
    let member = |name: &str, ty: &str, pointers, count| Member {
        name: name.to_owned(),
        ty: ty.to_owned(),
        pointers,
        count,
        ..Member::default()
    };
    if let Some(inside) = whole.trim().strip_prefix("union {") {
        // All alternatives of the one union there is have the same type; the
        // last is the one that newer versions use.
        let inside = inside.trim_end_matches(['}', ';', ' ', '\n']);
        let last = inside.rsplit(';').next().unwrap_or("").trim();
        let (ty, name) = last.rsplit_once(' ').with_context(|| format!("union `{inside}`"))?;
        return Ok(member(name, ty.trim(), 0, 1));
    }
    let name = children(node, "name").next().and_then(|n| n.text()).context("no <name>")?;
    let ty = children(node, "type").next().and_then(|n| n.text()).context("no <type>")?;
    let count = match children(node, "enum").next().and_then(|n| n.text()) {
        Some(constant) => constant_value(root, constant)?,
        None => 1,
    };
    Ok(member(name, ty, ctext::pointers(&whole), count))
}

fn constant_value(root: Node<'_, '_>, name: &str) -> Result<u32> {
    let found =
        children(root, "enums").flat_map(|g| children(g, "enum")).find(|e| e.attribute("name") == Some(name));
    let value = found.and_then(|e| e.attribute("value")).with_context(|| format!("no constant {name}"))?;
    value.parse().with_context(|| format!("{name} = {value}"))
}

fn size_and_align(member: &Member, known: &Known) -> Result<(u32, u32)> {
    if member.pointers > 0 {
        return Ok((8, 8));
    }
    let ty = known.get(&member.ty)?;
    if ty.size == 0 {
        bail!("member `{}` of unknown size", member.name);
    }
    Ok((ty.size, align(ty, known)?))
}

fn align(ty: &Type, known: &Known) -> Result<u32> {
    if ty.kind != Kind::Struct {
        return Ok(ty.size);
    }
    let mut aligns = ty.members.iter().map(|m| size_and_align(m, known).map(|(_, a)| a));
    aligns.try_fold(1, |most, a| a.map(|a| most.max(a)))
}

fn round_up(n: u32, to: u32) -> u32 {
    n.div_ceil(to) * to
}
