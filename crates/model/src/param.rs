//! Parameters, and how a model's text has them: without what their types say anyway.

use serde::{Deserialize, Serialize};

use crate::ctype::base_of;
use crate::expr::Expr;

/// One parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its whole C type.
    pub ctype: String,
    /// The named type in it, without `const` and `*`.
    pub base: String,
    /// How many `*` it has.
    pub pointers: u8,
    /// Who reads and writes the pointee.
    pub direction: Direction,
    /// What is recorded.
    pub follow: Follow,
    /// The enumeration that names its values.
    pub values: Option<String>,
    /// Failed calls fill it in, too.
    pub always: bool,
}

/// Who reads and who writes what a pointer parameter points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The library reads it.
    In,
    /// The library writes it.
    Out,
    /// Both.
    Inout,
    /// Neither, or it can't be known; also of parameters passed by value.
    None,
}

/// What is recorded of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "how")]
pub enum Follow {
    /// The parameter's own value.
    Value,
    /// One element behind the pointer.
    Pointee,
    /// Elements behind the pointer.
    Array {
        /// How many.
        length: Expr,
    },
    /// Text.
    String {
        /// Its length; up to the NUL when absent or 0.
        length: Option<Expr>,
    },
    /// Several texts.
    Strings {
        /// How many.
        count: Expr,
        /// The parameter with their lengths, which may be NULL.
        lengths: Option<String>,
    },
    /// Values up to a 0.
    List {
        /// Whether each name is followed by a value.
        pairs: bool,
    },
    /// The value of a query.
    Info {
        /// The parameter that says which query.
        name: String,
        /// The parameter with the room there is, in bytes.
        size: String,
        /// The parameter through which the size needed is returned.
        size_ret: String,
    },
    /// Few bytes.
    Bytes {
        /// How many.
        length: Expr,
        /// The parameter by whose value [`info`](crate::Model::info) has their type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<String>,
    },
    /// Bulk memory, of which only the address is recorded by default.
    Data {
        /// Its size in bytes.
        length: Expr,
    },
    /// Structs that are linked by their first members, see [`chains`](crate::Model::chains).
    Chain {
        /// The enumeration whose values distinguish them.
        tags: String,
    },
    /// A function of the program, of which the address is recorded.
    Callback,
    /// Only the address is recorded.
    Waived {
        /// The reason.
        why: String,
    },
}

impl Follow {
    /// The parameters that it mentions.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Follow::Array { length } | Follow::Data { length } => length.names(),
            Follow::Bytes { length, kind } => {
                let mut names = length.names();
                names.extend(kind.as_deref());
                names
            }
            Follow::String { length } => length.as_ref().map(Expr::names).unwrap_or_default(),
            Follow::Strings { count, lengths } => {
                let mut names = count.names();
                names.extend(lengths.as_deref());
                names
            }
            Follow::Info { name, size, size_ret } => vec![name, size, size_ret],
            _ => vec![],
        }
    }
}

/// A parameter as it is written: most are values, and two thirds of a model were words for that.
#[derive(Serialize, Deserialize)]
struct Written {
    name: String,
    #[serde(rename = "type")]
    ctype: String,
    /// None if it is what [`base_of`] the type says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    /// None, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pointers: Option<u8>,
    /// [`Direction::None`] if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    direction: Option<Direction>,
    /// [`Follow::Value`] if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    follow: Option<Follow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    always: bool,
}

impl From<Written> for Param {
    fn from(written: Written) -> Self {
        let Written { name, ctype, base, pointers, direction, follow, values, always } = written;
        let (said, count) = base_of(&ctype);
        Self {
            base: base.unwrap_or_else(|| said.to_owned()),
            pointers: pointers.unwrap_or(count),
            direction: direction.unwrap_or(Direction::None),
            follow: follow.unwrap_or(Follow::Value),
            name,
            ctype,
            values,
            always,
        }
    }
}

impl From<Param> for Written {
    fn from(param: Param) -> Self {
        let Param { name, ctype, base, pointers, direction, follow, values, always } = param;
        let (said, count) = base_of(&ctype);
        Self {
            base: (base != said).then_some(base),
            pointers: (pointers != count).then_some(pointers),
            direction: (direction != Direction::None).then_some(direction),
            follow: (follow != Follow::Value).then_some(follow),
            name,
            ctype,
            values,
            always,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(ctype: &str, base: &str, pointers: u8) -> Param {
        let (direction, follow) = (Direction::None, Follow::Value);
        let (name, ctype, base) = ("it".to_owned(), ctype.to_owned(), base.to_owned());
        Param { name, ctype, base, pointers, direction, follow, values: None, always: false }
    }

    fn written(param: &Param) -> String {
        let text = serde_json::to_string(param).expect("a parameter is text");
        let read: Param = serde_json::from_str(&text).expect("which is a parameter");
        assert_eq!(read, *param, "{text}");
        text
    }

    #[test]
    fn what_a_type_says_is_not_written() {
        for (ctype, base, pointers) in
            [("int", "int", 0), ("const toy_event * *", "toy_event", 2), ("void (*)(int)", "void", 1)]
        {
            assert_eq!(
                written(&param(ctype, base, pointers)),
                format!(r#"{{"name":"it","type":"{ctype}"}}"#)
            );
        }
    }

    #[test]
    fn what_it_does_not_say_is() {
        let mut other = param("toy_array", "int", 1);
        other.direction = Direction::Out;
        other.follow = Follow::Pointee;
        (other.values, other.always) = (Some("toy".to_owned()), true);
        assert_eq!(
            written(&other),
            r#"{"name":"it","type":"toy_array","base":"int","pointers":1,"direction":"out","follow":{"how":"pointee"},"values":"toy","always":true}"#
        );
    }

    #[test]
    fn older_models_have_every_word() {
        let text = r#"{"name":"it","type":"const int *","base":"int","pointers":1,"direction":"none","follow":{"how":"value"}}"#;
        let read: Param = serde_json::from_str(text).expect("a parameter");
        assert_eq!(read, param("const int *", "int", 1));
    }
}
