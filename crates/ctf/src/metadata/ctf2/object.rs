//! An object of JSON that is being made.

use super::json::Json;
use crate::class::Identity;

/// An object that is being made.
#[derive(Default)]
pub(super) struct Object(Vec<(String, Json)>);

impl Object {
    /// One with the property that all have.
    pub fn new(kind: &str) -> Self {
        Object::default().with("type", kind)
    }

    pub fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.0.push((name.into(), value.into()));
        self
    }

    /// The same with a property that may be missing.
    pub fn maybe(self, name: &str, value: Option<impl Into<Json>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The same with the parts of an identity.
    pub fn identity(self, of: &Identity) -> Self {
        self.maybe("namespace", of.namespace.as_deref())
            .maybe("name", of.name.as_deref())
            .maybe("uid", of.uid.as_deref())
    }

    /// Whether it has no property.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Self {
        Json::Object(object.0)
    }
}
