//! What people know about an API and no header says: `semantics.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::resolved::Interpose;

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Semantics {
    /// The API's short name; must be that of `api.json`.
    pub api: String,
    /// How people spell it, for headings.
    #[serde(default)]
    pub title: String,
    /// How the API is intercepted.
    pub interpose: Interpose,
    /// The enumeration that names a function's result (`cl_error`).
    pub errors: String,
    /// Defaults for parameters by name and type; the first that fits is taken.
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
    /// Type of the value that a query yields, by the query's name:
    /// `CL_DEVICE_NAME = "string"`, `CL_DEVICE_MAX_WORK_ITEM_SIZES = "size_t[]"`,
    /// `CL_CONTEXT_PROPERTIES = "cl_context_properties{}"` (pairs of name and
    /// value up to a 0), `CL_MEM_HOST_PTR = "void*"` (an address).
    #[serde(default)]
    pub info: BTreeMap<String, String>,
    /// Functions for which a hand-written one of the API's folder stands, and why.
    #[serde(default)]
    pub hook: BTreeMap<String, String>,
    /// Knowledge about single functions.
    #[serde(default)]
    pub function: BTreeMap<String, FunctionSemantics>,
}

/// A default for all parameters of this name and type.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The parameter's name, or `*` for any.
    pub param: String,
    /// The parameter's C type; any when absent.
    #[serde(rename = "type")]
    pub ctype: Option<String>,
    /// Rule applies only if the function also has these parameters.
    #[serde(default)]
    pub with: Vec<String>,
    /// The description, as in [`crate::ParamSpec`].
    pub is: String,
}

impl Rule {
    /// Whether this rule speaks about that parameter of that function.
    pub fn fits(&self, function: &crate::ExtractedFunction, param: &crate::ExtractedParam) -> bool {
        (self.param == "*" || self.param == param.name)
            && self.ctype.as_ref().is_none_or(|t| squeeze(t) == squeeze(&param.ctype))
            && self.with.iter().all(|w| function.params.iter().any(|q| q.name == *w))
    }
}

/// C types differ in their spaces only by taste.
fn squeeze(ctype: &str) -> String {
    ctype.split_whitespace().collect()
}

/// Knowledge about one function.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionSemantics {
    /// What it does; see [`crate::ROLES`].
    #[serde(default)]
    pub roles: Vec<String>,
    /// Parameter descriptions, as in [`crate::ParamSpec`].
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// The enumeration of the result, when it is not the API's `errors`.
    pub returns: Option<String>,
    /// What the function enqueues.
    pub command: Option<crate::Command>,
    /// The parameter whose truth makes the call wait for the device.
    pub blocking: Option<String>,
    /// The handle type that a success creates.
    pub creates: Option<String>,
}
