//! A list that is written as its one element where it has no more: `"a"` in place of `["a"]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts")]
enum Written {
    One(String),
    More(Vec<String>),
}

/// Writes a list so.
///
/// # Errors
/// Those of the format.
pub fn serialize<S: Serializer>(list: &[String], to: S) -> Result<S::Ok, S::Error> {
    match list {
        [one] => one.serialize(to),
        more => more.serialize(to),
    }
}

/// Reads either form.
///
/// # Errors
/// When it is neither.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match Written::deserialize(from)? {
        Written::One(one) => vec![one],
        Written::More(more) => more,
    })
}

#[cfg(test)]
mod tests {
    use crate::Interpose;

    #[test]
    fn one_is_written_without_brackets() {
        let read = |text: &str| serde_json::from_str::<Interpose>(text).map_err(|e| e.to_string());
        let requires = |text: &str| read(text).map(|interpose| interpose.requires);
        assert_eq!(requires("{}"), Ok(vec![]));
        assert_eq!(requires(r#"{"requires":"a"}"#), Ok(vec!["a".to_owned()]));
        assert_eq!(requires(r#"{"requires":["a","b"]}"#), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert!(requires(r#"{"requires":7}"#).unwrap_err().contains("a text or a list of texts"));
        for text in [r#""requires":"a""#, r#""requires":["a","b"]"#] {
            let written = serde_json::to_string(&read(&format!("{{{text}}}")).unwrap()).unwrap();
            assert!(written.contains(text), "{written}");
        }
        assert!(!serde_json::to_string(&Interpose::default()).unwrap().contains("requires"));
    }
}
