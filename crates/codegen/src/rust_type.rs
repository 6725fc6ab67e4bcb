//! C types as Rust sees them at an `extern "C"` boundary.

use hetrace_model::{Kind, Member, Model, Param, Type};

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
        // Numbers with a fraction travel in other registers, several of one size as an array of them does.
        Some(t) if has_float(model, &t.name) => match floats(model, t) {
            Some(float) => Ok(format!("Val<[{float}; {}]>", t.members.len())),
            None => Err(format!("`{base}` has members in float registers, and others")),
        },
        Some(t) if t.size % 8 == 0 => Ok(format!("Val<[u64; {}]>", t.size / 8)),
        Some(t) if t.size % 4 == 0 => Ok(format!("Val<[u32; {}]>", t.size / 4)),
        Some(t) => Ok(format!("Val<[u8; {}]>", t.size)),
        None => element(model, base),
    }
}

/// Returns the type of a struct's members if they are floats of one size, one behind the other.
fn floats(model: &Model, t: &Type) -> Option<String> {
    let size = t.size / u32::try_from(t.members.len()).ok().filter(|n| *n > 0)?;
    let is_one = |m: &Member| {
        let ty = model.types.iter().find(|t| t.name == m.ty);
        ty.is_some_and(|ty| ty.kind == Kind::Float && ty.size == size) && m.pointers == 0 && m.count <= 1
    };
    (t.kind == Kind::Struct && matches!(size, 4 | 8) && t.members.iter().all(is_one))
        .then(|| format!("f{}", size * 8))
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

#[cfg(test)]
mod tests {
    use hetrace_model::Model;

    #[test]
    fn structs_that_are_passed_travel_where_their_members_do() {
        let float =
            |size: u32| serde_json::json!({"name": format!("f{size}"), "kind": "float", "size": size});
        let of = |name: &str, size: u32, members: &[(&str, u32)]| {
            let member =
                |(ty, offset): &(&str, u32)| serde_json::json!({"name": "m", "type": ty, "offset": offset});
            let members: Vec<_> = members.iter().map(member).collect();
            serde_json::json!({"name": name, "kind": "struct", "size": size, "members": members})
        };
        let model = serde_json::json!({
            "api": "toy", "registry": {"file": "", "sha256": ""}, "interpose": {"libraries": []},
            "errors": "", "enums": [], "info": {}, "functions": [],
            "types": [
                float(4), float(8), {"name": "int", "kind": "int", "size": 4},
                of("complex", 8, &[("f4", 0), ("f4", 4)]), of("wide", 16, &[("f8", 0), ("f8", 8)]),
                of("whole", 8, &[("int", 0), ("int", 4)]), of("mixed", 8, &[("f4", 0), ("int", 4)]),
                of("large", 24, &[("f8", 0), ("f8", 8), ("int", 16)]),
            ],
        });
        let model: Model = serde_json::from_value(model).unwrap();
        let by_value = |name| super::by_value(&model, name);
        assert_eq!(by_value("complex").unwrap(), "Val<[f32; 2]>");
        assert_eq!(by_value("wide").unwrap(), "Val<[f64; 2]>");
        assert_eq!(by_value("whole").unwrap(), "Val<[u64; 1]>");
        assert_eq!(by_value("large").unwrap(), "Val<[u64; 3]>", "in memory, whatever it holds");
        assert!(by_value("mixed").unwrap_err().contains("float registers"));
    }
}
