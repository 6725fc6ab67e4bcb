//! A handle in JSON: a text to base 16 (`"0x1000"`), as numbers beyond 2^53 are not safe there.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes a handle.
pub fn serialize<S: Serializer>(handle: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format!("{handle:#x}"))
}

/// Reads a handle, or a number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Handle {
        Text(String),
        Number(u64),
    }
    match Handle::deserialize(deserializer)? {
        Handle::Number(handle) => Ok(handle),
        Handle::Text(text) => {
            let digits = text.strip_prefix("0x");
            let handle = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            handle.ok_or_else(|| D::Error::custom(format!("{text:?} is no handle")))
        }
    }
}
