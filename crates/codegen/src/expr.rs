//! Length expressions as Rust. Everything is a `usize`, nothing overflows, and
//! a NULL that is looked through counts as "no limit" or 0.

use hetrace_model::Expr;

use crate::rust_type::ident;

/// The Rust text of an expression.
pub fn rust(expr: &Expr) -> String {
    match expr {
        Expr::Number(n) => n.to_string(),
        Expr::Name(n) => format!("{} as usize", ident(n)),
        Expr::Deref(n) => format!("behind({})", ident(n)),
        Expr::Index(n, i) => format!("element({}, {i})", ident(n)),
        Expr::Binary(a, op, b) => {
            let (a, b) = (rust(a), rust(b));
            match op {
                '+' => format!("({a}).saturating_add({b})"),
                '-' => format!("({a}).saturating_sub({b})"),
                '*' => format!("({a}).saturating_mul({b})"),
                _ => format!("({a}).checked_div({b}).unwrap_or(0)"),
            }
        }
        Expr::Call(name, args) if name == "min" || name == "max" => {
            let args: Vec<String> = args.iter().map(|a| format!("({})", rust(a))).collect();
            args.join(&format!(".{name}"))
        }
        Expr::Call(name, args) => {
            let args: Vec<String> = args.iter().map(rust).collect();
            format!("crate::measure::{name}({})", args.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn becomes_rust() {
        for (text, expected) in [
            ("n", "n as usize"),
            ("min(n, *m)", "(n as usize).min(behind(m))"),
            ("r[0] * 4", "(element(r, 0)).saturating_mul(4)"),
            ("image_bytes(image, region)", "crate::measure::image_bytes(image as usize, region as usize)"),
        ] {
            assert_eq!(rust(&Expr::parse(text).unwrap()), expected);
        }
    }
}
