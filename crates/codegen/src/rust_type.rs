//! C types as Rust sees them at an `extern "C"` boundary.

use hetrace_model::{Kind, Model, Param};

/// Returns the Rust type of a parameter.
pub fn param(model: &Model, p: &Param) -> Result<String, String> {
    ctype(model, &p.base, p.pointers, p.ctype.starts_with("const")).map_err(|e| format!("{}: {e}", p.name))
}

/// Returns the Rust type of a result, `None` for `void`.
pub fn result(model: &Model, returns: &str) -> Result<Option<String>, String> {
    let stars = returns.bytes().filter(|b| *b == b'*').count();
    let base = returns.trim_start_matches("const ").split('*').next().unwrap_or("").trim();
    if base == "void" && stars == 0 {
        return Ok(None);
    }
    ctype(model, base, stars as u8, false).map(Some)
}

fn ctype(model: &Model, base: &str, pointers: u8, is_const: bool) -> Result<String, String> {
    let mutability = if is_const { "*const" } else { "*mut" };
    match pointers {
        0 => by_value(model, base),
        1 => Ok(format!("{mutability} {}", element(model, base)?)),
        // What stands between is never written by us.
        _ => Ok(format!("{mutability} P")),
    }
}

/// Returns the Rust type of a value that is passed itself.
fn by_value(model: &Model, base: &str) -> Result<String, String> {
    let structure = model.types.iter().find(|t| t.name == base && t.size > 0);
    match structure.filter(|t| matches!(t.kind, Kind::Struct | Kind::Union)) {
        // Numbers with a fraction travel in other registers.
        Some(t) if has_float(model, &t.name) => Err(format!("`{base}` has members in float registers")),
        Some(t) if t.size % 8 == 0 => Ok(format!("Val<[u64; {}]>", t.size / 8)),
        Some(t) if t.size % 4 == 0 => Ok(format!("Val<[u32; {}]>", t.size / 4)),
        Some(t) => Ok(format!("Val<[u8; {}]>", t.size)),
        None => element(model, base),
    }
}

fn has_float(model: &Model, name: &str) -> bool {
    let Some(t) = model.types.iter().find(|t| t.name == name) else { return false };
    // What is larger than two registers travels in memory whatever it holds.
    t.size <= 16
        && (t.kind == Kind::Float || t.members.iter().any(|m| m.pointers == 0 && has_float(model, &m.ty)))
}

/// Returns the Rust type of one element of a named type.
pub fn element(model: &Model, base: &str) -> Result<String, String> {
    let ty = model.types.iter().find(|t| t.name == base);
    let ty = ty.ok_or_else(|| format!("no type `{base}`"))?;
    let name = match (ty.kind, ty.size) {
        (Kind::Uint, 1 | 2 | 4 | 8) => format!("u{}", ty.size * 8),
        (Kind::Int, 1 | 2 | 4 | 8) => format!("i{}", ty.size * 8),
        (Kind::Float, 4 | 8) => format!("f{}", ty.size * 8),
        (Kind::Handle | Kind::Callback, _) => "P".to_owned(),
        (Kind::Struct | Kind::Union, size) if size > 0 => {
            format!("[u8; {}]", hetrace_model::layout::recorded_size(ty))
        }
        (Kind::Opaque | Kind::Struct | Kind::Union, _) => "c_void".to_owned(),
        (kind, size) => return Err(format!("`{base}`: {kind:?} of {size} bytes")),
    };
    Ok(name)
}

/// Returns a parameter's name, when it is not a word of Rust.
pub fn ident(name: &str) -> String {
    const WORDS: &[&str] = &[
        "type", "in", "ref", "mod", "fn", "use", "move", "box", "self", "where", "match", "impl", "trait",
        "loop", "pub", "let", "mut", "priv", "static", "const", "as", "dyn", "async", "await", "result",
        "on", "time", "caps", "f",
    ];
    if WORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}
