//! Length expressions as Rust. Everything is a `usize`, nothing overflows, and
//! a NULL that is looked through counts as "no limit" or 0.

use hetrace_model::{Expr, Function, Model, Type};

use crate::rust_type::{element, ident};

/// The built-in function for what a pointer parameter pointed at when the call began.
const BEFORE: &str = "before";

/// Returns the variable that keeps what a pointer parameter pointed at when the call began.
pub fn before(param: &str) -> String {
    format!("before_{param}")
}

/// Returns the parameters of which that is kept for an expression.
pub fn kept(expr: &Expr) -> Vec<&str> {
    match expr {
        Expr::Call(name, args) if name == BEFORE => args.iter().flat_map(Expr::names).collect(),
        Expr::Call(_, args) => args.iter().flat_map(kept).collect(),
        Expr::Binary(a, _, b) => [kept(a), kept(b)].concat(),
        Expr::Number(_) | Expr::Name(_) | Expr::Deref(_) | Expr::Index(..) => Vec::new(),
    }
}

/// What the names in an expression mean.
#[derive(Clone, Copy)]
pub struct Scope<'m> {
    /// The model.
    pub model: &'m Model,
    /// The function whose parameters they name.
    pub function: &'m Function,
    /// Inside a struct that a parameter points at they name its members: the
    /// parameter, and the offset and type of the struct.
    pub inside: Option<(&'m str, u32, &'m Type)>,
}

impl<'m> Scope<'m> {
    /// Returns the parameters of a function.
    pub fn of(model: &'m Model, function: &'m Function) -> Self {
        Scope { model, function, inside: None }
    }

    /// Returns the Rust text of a name's value.
    fn name(&self, name: &str) -> Result<String, String> {
        if let Some((param, offset, ty)) = self.inside {
            return self.member(param, offset, ty, name);
        }
        let Some((param, path)) = name.split_once('.') else {
            return Ok(format!("{} as usize", ident(name)));
        };
        let p = self.function.params.iter().find(|p| p.name == param);
        let ty = p.and_then(|p| self.model.types.iter().find(|t| t.name == p.base));
        self.member(param, 0, ty.ok_or_else(|| format!("no struct behind `{param}`"))?, path)
    }

    /// Returns a number in the struct that a parameter points at.
    fn member(&self, param: &str, mut offset: u32, mut ty: &'m Type, path: &str) -> Result<String, String> {
        for step in path.split('.') {
            let member = ty.members.iter().find(|m| m.name == step && m.pointers == 0);
            let member = member.ok_or_else(|| format!("no number `{path}` behind `{param}`"))?;
            offset += member.offset;
            let inner = self.model.types.iter().find(|t| t.name == member.ty);
            ty = inner.ok_or_else(|| format!("no type `{}`", member.ty))?;
        }
        let number = element(self.model, &ty.name)?;
        // A handle is a number, too.
        let number = if number == "P" { "u64" } else { number.as_str() };
        // A struct that is passed by value lies with the arguments.
        let by_value = self.function.params.iter().any(|p| p.name == param && p.pointers == 0);
        let place = if by_value { format!("(&raw const {})", ident(param)) } else { ident(param) };
        Ok(format!("at_num::<{number}>({place}.cast(), {offset})"))
    }

    /// As [`Self::rust`], for what a method is called on: its type must be clear.
    fn receiver(&self, expr: &Expr) -> Result<String, String> {
        Ok(match expr {
            Expr::Number(n) => format!("{n}_usize"),
            expr => self.rust(expr)?,
        })
    }

    /// Returns the Rust text of an expression.
    pub fn rust(&self, expr: &Expr) -> Result<String, String> {
        Ok(match expr {
            Expr::Number(n) => n.to_string(),
            Expr::Name(n) => self.name(n)?,
            Expr::Deref(n) => format!("behind({})", ident(n)),
            Expr::Index(n, i) => format!("element({}, {i})", ident(n)),
            Expr::Binary(a, op, b) => {
                let (a, b) = (self.receiver(a)?, self.rust(b)?);
                match op {
                    '+' => format!("({a}).saturating_add({b})"),
                    '-' => format!("({a}).saturating_sub({b})"),
                    '*' => format!("({a}).saturating_mul({b})"),
                    _ => format!("({a}).checked_div({b}).unwrap_or(0)"),
                }
            }
            Expr::Call(name, args) if name == "min" || name == "max" => {
                let one =
                    |(i, a)| Ok(format!("({})", if i == 0 { self.receiver(a)? } else { self.rust(a)? }));
                let args: Result<Vec<String>, String> = args.iter().enumerate().map(one).collect();
                args?.join(&format!(".{name}"))
            }
            Expr::Call(name, args) if name == BEFORE => match args.as_slice() {
                [Expr::Deref(of)] if self.inside.is_none() => before(of),
                _ => return Err(format!("`{expr}`: write {BEFORE}(*PARAMETER)")),
            },
            Expr::Call(name, args) => {
                let args: Result<Vec<String>, String> = args.iter().map(|a| self.rust(a)).collect();
                format!("crate::measure::{name}({})", args?.join(", "))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn becomes_rust() {
        let model = serde_json::json!({
            "api": "toy", "registry": {"file": "", "sha256": ""}, "interpose": {"libraries": []},
            "errors": "", "enums": [], "info": {},
            "types": [
                {"name": "int", "kind": "int", "size": 4},
                {"name": "in", "kind": "struct", "size": 8, "members": [{"name": "n", "type": "int", "offset": 4}]},
                {"name": "config", "kind": "struct", "size": 16, "members": [{"name": "in", "type": "in", "offset": 8}]},
            ],
            "functions": [{"name": "f", "roles": [], "returns": "int", "success": "always", "params": [
                {"name": "c", "type": "config *", "base": "config", "pointers": 1, "direction": "in",
                 "follow": {"how": "pointee"}},
                {"name": "v", "type": "config", "base": "config", "pointers": 0, "direction": "in",
                 "follow": {"how": "value"}}]}],
        });
        let model: Model = serde_json::from_value(model).unwrap();
        let scope = Scope::of(&model, &model.functions[0]);
        for (text, expected) in [
            ("n", "n as usize"),
            ("min(n, *m)", "(n as usize).min(behind(m))"),
            ("r[0] * 4", "(element(r, 0)).saturating_mul(4)"),
            ("min(before(*n), *n)", "(before_n).min(behind(n))"),
            ("2 - n", "(2_usize).saturating_sub(n as usize)"),
            ("image_bytes(image, region)", "crate::measure::image_bytes(image as usize, region as usize)"),
            ("c.in.n", "at_num::<i32>(c.cast(), 12)"),
            ("v.in.n", "at_num::<i32>((&raw const v).cast(), 12)"),
        ] {
            assert_eq!(scope.rust(&Expr::parse(text).unwrap()).unwrap(), expected);
        }
        assert!(scope.rust(&Expr::parse("c.in.m").unwrap()).is_err());
    }
}
