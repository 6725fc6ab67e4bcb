//! The parameters of a function, which a reader of a trace understands when somebody asks for them: a model has those of
//! all functions of its API, a program calls a few.

use std::fmt;
use std::ops::Deref;
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::param::Param;
use crate::resolved::Function;

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

impl Function {
    /// Reads a function's line of a model's text, its parameters when they are asked for: they are taken for what they
    /// should be, so the text must be known to be as it was written. None if the line is not understood.
    pub fn of_line(line: &str) -> Option<Self> {
        let begin = line.find(BEGIN)? + BEGIN.len() - 1;
        let end = begin + list_length(line.get(begin..)?)?;
        let (before, text, behind) = (line.get(..begin)?, line.get(begin..end)?, line.get(end..)?);
        let mut function: Function = serde_json::from_str(&[before, "[]", behind].concat()).ok()?;
        if text.len() > "[]".len() {
            function.params = Params { text: text.into(), list: OnceLock::new() };
        }
        Some(function)
    }
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

    const LINE: &str = concat!(
        r#"{"name":"toyRun","roles":["launch"],"returns":"int","success":"always","params":["#,
        r#"{"name":"n","type":"int"},{"name":"a","type":"int *","follow":{"how":"waived","why":"a \"]\" of [2]"}}],"#,
        r#""creates":"toy"}"#
    );

    #[test]
    fn a_line_is_the_same_function_later() {
        let whole: Function = serde_json::from_str(LINE).expect("a function");
        let lazy = Function::of_line(LINE).expect("a function");
        assert!(lazy.params.list.get().is_none() && lazy.creates.as_deref() == Some("toy"));
        assert_eq!(lazy, whole);
        assert_eq!((lazy.params.len(), lazy.params[1].name.as_str()), (2, "a"));
        let names: Vec<&str> = (&lazy.params).into_iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["n", "a"]);
        let again = serde_json::to_string(&lazy).expect("a text");
        assert_eq!(serde_json::from_str::<Function>(&again).expect("a function"), whole);
    }

    #[test]
    fn one_without_parameters_and_what_is_no_function() {
        let line = r#"{"name":"toyEnd","returns":"int","success":"always","params":[]}"#;
        assert_eq!(Function::of_line(line).expect("a function").params.as_slice(), []);
        for wrong in
            ["", "{}", &LINE[..LINE.len() - 1], &LINE[..LINE.len() - 40], &LINE.replace("params", "p")]
        {
            assert!(Function::of_line(wrong).is_none(), "{wrong}");
        }
    }
}
