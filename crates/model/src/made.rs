//! What is known of objects that a call makes, for rules about the states that they go through.

use serde::{Deserialize, Serialize};

/// What the values that a call is passed say of the object that it makes. Values are parameters, or members of structs
/// behind them (`desc.flags`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Made {
    /// Commands that are appended to it run when it is submitted, not at once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
    /// Commands that are appended to it run at once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub immediate: bool,
    /// The value with bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits: Option<String>,
    /// Its commands run one after the other if one of these bits is set.
    #[serde(skip_serializing_if = "is_zero")]
    pub in_order: u64,
    /// What it is made for are other processes as well if one of these is set.
    #[serde(skip_serializing_if = "is_zero")]
    pub shared: u64,
    /// The value that is not 0 if something else says more of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<String>,
    /// Whether calls that enqueue wait: a value, and what it is then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<(String, u64)>,
    /// The number of the group of engines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Which of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// How many of what is made of it have a place in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<String>,
    /// Which place in what it is made of it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    /// An event or a fence that stays signalled until it is reset.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
}

/// A query that says which groups of engines a device has, in the order of their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engines {
    /// The parameter with the device.
    pub of: String,
    /// The parameter with the list.
    pub list: String,
    /// The member with what they can do.
    pub bits: String,
    /// They run kernels if one of these is set.
    pub compute: u64,
    /// The member that says how many there are.
    pub count: String,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes references
fn is_zero(bits: &u64) -> bool {
    *bits == 0
}

impl Made {
    /// Names of the values that it mentions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let named = [&self.bits, &self.more, &self.engine, &self.index, &self.slots, &self.slot];
        let waits = self.waits.iter().map(|(name, _)| name.as_str());
        named.into_iter().filter_map(|name| name.as_deref()).chain(waits)
    }
}
