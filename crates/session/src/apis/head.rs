//! The head of a model: what stands before its long tables.

use std::fmt;

use hetrace_model::Interpose;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// What must be known of every API.
#[derive(Debug)]
pub(super) struct Head {
    /// Short name.
    pub api: String,
    /// How it is intercepted.
    pub interpose: Interpose,
}

/// Reads a model until its head is known; what follows is not looked at.
pub(super) fn read(json: &[u8]) -> serde_json::Result<Head> {
    let (mut api, mut interpose) = (None, None);
    let fields = Fields { api: &mut api, interpose: &mut interpose };
    let read = serde_json::Deserializer::from_slice(json).deserialize_map(fields);
    match (api, interpose, read) {
        // The rest that is left over is reported as an error, too.
        (Some(api), Some(interpose), _) => Ok(Head { api, interpose }),
        (.., Err(error)) => Err(error),
        _ => Err(serde_json::Error::custom("`api` or `interpose` is missing")),
    }
}

struct Fields<'h> {
    api: &'h mut Option<String>,
    interpose: &'h mut Option<Interpose>,
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a model")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while self.api.is_none() || self.interpose.is_none() {
            match map.next_key::<String>()?.as_deref() {
                None => break,
                Some("api") => *self.api = Some(map.next_value()?),
                Some("interpose") => *self.interpose = Some(map.next_value()?),
                Some(_) => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_not_looked_at() {
        let json = r#"{"title":"T","api":"t","interpose":{"requires":"libt.so.1"},"functions":[ what"#;
        let head = read(json.as_bytes()).expect("a head");
        assert_eq!((head.api.as_str(), head.interpose.requires.as_deref()), ("t", Some("libt.so.1")));
        let other_order = r#"{"functions":[{}],"interpose":{},"api":"t"}"#;
        assert_eq!(read(other_order.as_bytes()).expect("a head").api, "t");
    }

    #[test]
    fn a_head_that_is_missing_or_wrong_is_reported() {
        for wrong in ["", "[]", "{}", r#"{"api":"t"}"#, r#"{"api":1}"#, r#"{"api":"t","interpose":{"x":1}}"#]
        {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
