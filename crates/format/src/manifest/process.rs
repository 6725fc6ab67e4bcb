//! Processes that recorded, and how their APIs were reached.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// What an environment says of a rank in a job: variables and their values.
pub type Job = BTreeMap<String, u64>;

/// A process that recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its id.
    pub pid: i64,
    /// Its parent's id; none if it is not known.
    pub parent: Option<i64>,
    /// Its command line.
    #[serde(deserialize_with = "words")]
    pub command: Vec<String>,
    /// What its environment says of its rank in a job; none if that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// The machine's name, in a trace that was merged.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
}

impl Process {
    /// Returns the command line as one text.
    pub fn line(&self) -> String {
        self.command.join(" ")
    }

    /// Returns the program's name, without its folder; empty if it is not known.
    pub fn program(&self) -> &str {
        let first = self.command.first().and_then(|line| line.split(' ').next()).unwrap_or("");
        first.rsplit('/').next().unwrap_or("")
    }
}

/// How an API was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interposition {
    /// The API.
    pub api: Cow<'static, str>,
    /// `layer`, `preload`, `layer+preload` or `injection`; `left` to another tool,
    /// or `absent`: no program can use it here.
    pub way: Cow<'static, str>,
}

/// Returns a list of texts, a text, or nothing.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        All(Vec<String>),
        One(String),
        Nothing(()),
    }
    Ok(match Words::deserialize(deserializer)? {
        Words::All(words) => words,
        Words::One(text) => vec![text],
        Words::Nothing(()) => Vec::new(),
    })
}
