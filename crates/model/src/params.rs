//! The parameters of a function, which a reader of a trace understands when somebody asks for them: a model has those of
//! all functions of its API, a program calls a few.

use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::param::Param;

/// Parameters, in their order.
#[derive(Clone, Default)]
pub struct Params {
    /// What they are read from when they are asked for.
    text: Box<str>,
    list: OnceLock<Vec<Param>>,
}

/// Where the list of parameters begins in a function's line.
const BEGIN: &str = "\"params\":[";

impl Params {
    /// Returns all of them.
    pub fn as_slice(&self) -> &[Param] {
        // A text that is not read with its line was written by us: it is a list of parameters.
        self.list.get_or_init(|| serde_json::from_str(&self.text).unwrap_or_default())
    }
}

impl Params {
    /// Of a JSON text, which is read when they are asked for.
    pub(crate) fn later(text: &str) -> Self {
        Self { text: text.into(), list: OnceLock::new() }
    }
}

/// Cuts a function's line into what is before the list of its parameters, the list, and what is behind it.
pub(crate) fn cut(line: &str) -> Option<[&str; 3]> {
    let begin = line.find(BEGIN)? + BEGIN.len() - 1;
    let (before, rest) = line.split_at_checked(begin)?;
    let (list, behind) = rest.split_at_checked(list_length(rest)?)?;
    Some([before, list, behind])
}

/// Bytes of the list that a JSON text begins with.
fn list_length(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' => depth += 1,
            b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

impl From<Vec<Param>> for Params {
    fn from(list: Vec<Param>) -> Self {
        Self { text: Box::default(), list: list.into() }
    }
}

impl Deref for Params {
    type Target = [Param];

    fn deref(&self) -> &[Param] {
        self.as_slice()
    }
}

impl<'p> IntoIterator for &'p Params {
    type Item = &'p Param;
    type IntoIter = std::slice::Iter<'p, Param>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.as_slice().serialize(to)
    }
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Vec::deserialize(from).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_its_list_is() {
        let line = r#"{"name":"f","params":[{"name":"a","why":"a \"]\" of [2]"},[]],"creates":["toy"]}"#;
        let [before, list, behind] = cut(line).expect("three parts");
        assert_eq!([before, list, behind].concat(), line);
        assert!(before.ends_with(':') && list.ends_with("[]]") && behind.starts_with(','), "{list}");
        for wrong in ["", "{}", &line[..line.len() - 20], &line.replace("params", "p")] {
            assert_eq!(cut(wrong), None, "{wrong}");
        }
    }
}
