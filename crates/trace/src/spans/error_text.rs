//! What APIs say of their error codes, as processes report it.

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;

/// How events end by which an API says what a code means.
const SUFFIX: &str = ":error_text";

/// A code of an API, and what it says of it.
#[derive(Clone, Copy, Debug)]
pub struct ErrorText<'e> {
    /// The API.
    pub api: &'e str,
    /// The code, as calls answer it.
    pub code: i64,
    /// The text; none if the API has none.
    pub text: Option<&'e str>,
}

impl<'e> ErrorText<'e> {
    /// What an event says, if it is such a one.
    pub fn of(event: &'e Event<'_, '_>) -> Option<Self> {
        let api = event.class().name.strip_suffix(SUFFIX)?;
        let code = event.get("code").and_then(Scalar::as_i64)?;
        let text = event.get("text").and_then(Scalar::as_str).filter(|text| *text != "-");
        Some(Self { api, code, text })
    }
}
