//! The one-line description of a parameter in `semantics.toml`.
//!
//! ```text
//! in|out|inout value [as GROUP]     one element behind the pointer; of a parameter
//!                                   passed by value only the group is taken
//! in|out|inout array(LENGTH) [as GROUP]
//!                                   LENGTH elements
//! in string                         NUL-terminated text
//! in string(LENGTH)                 text of LENGTH bytes, NUL-terminated if LENGTH is 0
//! in strings(COUNT [, LENGTHS])     COUNT texts, their lengths or NULL
//! in list                           pairs of name and value up to a 0
//! in list(1)                        single values up to a 0
//! out info(NAME, SIZE, SIZE_RET)    the value that the query NAME yields
//! in|out|inout bytes(LENGTH [, NAME])
//!                                   few bytes, recorded; of the type that `[info]` has for the value of
//!                                   the parameter NAME
//! in|out|inout data(LENGTH)         bulk memory: its size is known, its content
//!                                   is recorded on demand only
//! in|out|inout chain(GROUP)         structs that are linked by their first members, which the values
//!                                   of GROUP distinguish; of members `chain` alone, since the struct
//!                                   around has such a tag itself
//! callback                          a function of the program
//! none: WHY                         not followed, with the reason
//! ```
//! ` always` behind an `out` or `inout` form says that it is filled in by failed
//! calls, too, and is recorded of them.

use crate::expr::{Expr, ExprError};
use crate::param::{Direction, Follow};

/// A parsed description.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamSpec {
    /// Who reads and who writes what the pointer points at.
    pub direction: Direction,
    /// What is recorded of it.
    pub follow: Follow,
    /// The enumeration that names the pointee's values.
    pub values: Option<String>,
    /// Failed calls fill it in, too.
    pub always: bool,
}

/// Why a description could not be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// An expression inside is wrong.
    #[error(transparent)]
    Expr(#[from] ExprError),
    /// The form is none of those above.
    #[error("`{0}` is not a parameter description (see crates/model/src/spec.rs)")]
    Form(String),
}

impl ParamSpec {
    /// Reads a description.
    ///
    /// # Errors
    /// When it has none of the forms above.
    pub fn parse(text: &str) -> Result<ParamSpec, SpecError> {
        let form = || SpecError::Form(text.to_owned());
        let plain = |direction, follow| Ok(ParamSpec { direction, follow, values: None, always: false });
        if let Some(why) = text.strip_prefix("none:") {
            let why = why.trim();
            return if why.is_empty() {
                Err(form())
            } else {
                plain(Direction::None, Follow::Waived { why: why.to_owned() })
            };
        }
        if text == "callback" {
            return plain(Direction::In, Follow::Callback);
        }
        let (direction, rest) = text.split_once(' ').ok_or_else(form)?;
        let direction = match direction {
            "in" => Direction::In,
            "out" => Direction::Out,
            "inout" => Direction::Inout,
            _ => return Err(form()),
        };
        let rest = rest.trim();
        let (rest, always) = rest.strip_suffix(" always").map_or((rest, false), |rest| (rest.trim(), true));
        if always && direction == Direction::In {
            return Err(form());
        }
        let (rest, values) = match rest.rsplit_once(" as ") {
            Some((rest, group)) => (rest.trim(), Some(group.trim().to_owned())),
            None => (rest, None),
        };
        let (how, args) = match rest.split_once('(') {
            Some((how, args)) => (how.trim(), args.strip_suffix(')').ok_or_else(form)?),
            None => (rest, ""),
        };
        let args = split_args(args);
        let expr = |i: usize| args.get(i).map(|a| Expr::parse(a)).transpose();
        let name = |i: usize| args.get(i).map(|s| (*s).to_owned());
        let follow = match (how, args.len()) {
            ("value", 0) => Follow::Pointee,
            ("array", 1) => Follow::Array { length: Expr::parse(args[0])? },
            ("string", 0 | 1) => Follow::String { length: expr(0)? },
            ("strings", 1 | 2) => Follow::Strings { count: Expr::parse(args[0])?, lengths: name(1) },
            ("list", 0) => Follow::List { pairs: true },
            ("list", 1) if args[0] == "1" => Follow::List { pairs: false },
            ("info", 3) => Follow::Info {
                name: args[0].to_owned(),
                size: args[1].to_owned(),
                size_ret: args[2].to_owned(),
            },
            ("bytes", 1 | 2) => Follow::Bytes { length: Expr::parse(args[0])?, kind: name(1) },
            ("data", 1) => Follow::Data { length: Expr::parse(args[0])? },
            ("chain", 0 | 1) => Follow::Chain { tags: args.first().copied().unwrap_or_default().to_owned() },
            _ => return Err(form()),
        };
        let nameable = matches!(follow, Follow::Pointee | Follow::Array { .. });
        if values.is_some() && !nameable {
            return Err(form());
        }
        Ok(ParamSpec { direction, follow, values, always })
    }
}

/// Splits at the commas that stand outside parentheses.
fn split_args(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0i32, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text[start..].trim().is_empty() {
        out.push(text[start..].trim());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
        let follow = |text| ParamSpec::parse(text).unwrap().follow;
        assert_eq!(follow("in value"), Follow::Pointee);
        assert_eq!(
            follow("out array(min(a, *b))"),
            Follow::Array { length: Expr::parse("min(a, *b)").unwrap() }
        );
        assert_eq!(follow("in string"), Follow::String { length: None });
        assert_eq!(follow("in list(1)"), Follow::List { pairs: false });
        let typed = Follow::Bytes { length: Expr::parse("f(n, 4)").unwrap(), kind: Some("t".into()) };
        assert_eq!(follow("in bytes(f(n, 4), t)"), typed);
        assert_eq!(follow("callback"), Follow::Callback);
        assert_eq!(follow("in chain(toy_kind)"), Follow::Chain { tags: "toy_kind".into() });
        assert_eq!(ParamSpec::parse("out value as cl_error").unwrap().values.as_deref(), Some("cl_error"));
        assert_eq!(ParamSpec::parse("out array(n) as e").unwrap().values.as_deref(), Some("e"));
        assert!(ParamSpec::parse("out value as e always").unwrap().always);
        assert_eq!(ParamSpec::parse("none: why").unwrap().direction, Direction::None);
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "in",
            "in array",
            "in array()",
            "sideways value",
            "none:",
            "in info(a)",
            "in string as e",
            "in value always",
        ] {
            assert!(ParamSpec::parse(text).is_err(), "{text}");
        }
    }
}
