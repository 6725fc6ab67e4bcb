//! What rows are grouped by.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Something that calls and commands may be grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// The API; of commands, that of their queue.
    Api,
    /// The function, or the kernel or kind of command.
    Name,
    /// The machine.
    Host,
    /// The process.
    Process,
    /// The thread that called; of commands, the one that enqueued them.
    Thread,
    /// The process's rank in its job, or else in the first communicator that it is in.
    Rank,
    /// The device; commands only.
    Device,
    /// The queue; commands only.
    Queue,
    /// The innermost range of the program that is open on the thread.
    Range,
    /// The error.
    Error,
    /// The APIs that the program called to come to this one, and this one; of commands, the call that the program made, the
    /// APIs between, and the call that enqueued.
    Layer,
    /// The line of code that made the call; of commands, the one that enqueued them.
    Line,
}

impl By {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Api,
        Self::Name,
        Self::Host,
        Self::Process,
        Self::Thread,
        Self::Rank,
        Self::Device,
        Self::Queue,
        Self::Range,
        Self::Error,
        Self::Layer,
        Self::Line,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Name => "name",
            Self::Host => "host",
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Rank => "rank",
            Self::Device => "device",
            Self::Queue => "queue",
            Self::Range => "range",
            Self::Error => "error",
            Self::Layer => "layer",
            Self::Line => "line",
        }
    }

    /// The heading of its column.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Api => "API",
            Self::Name => "Name",
            Self::Host => "Host",
            Self::Process => "Process",
            Self::Thread => "Thread",
            Self::Rank => "Rank",
            Self::Device => "Device",
            Self::Queue => "Queue",
            Self::Range => "Range",
            Self::Error => "Error code",
            Self::Layer => "Layer",
            Self::Line => "line",
        }
    }

    /// Whether calls can be grouped by it.
    pub(super) fn is_of_calls(self) -> bool {
        !matches!(self, Self::Device | Self::Queue)
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|by| by.name() == text);
        known.ok_or_else(|| format!("it is one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// What a row is of, beside its name; none of what rows are not grouped by.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    /// The machine's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The process's id, and what it runs if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// `process:thread`, and the thread's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The rank, or `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<String>,
    /// The device's name, and its identity if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The queue's process and handle, and of a default queue its number and context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// `domain/name`, or `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
    /// The error's name or code, or `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// `api > api`, the outermost first; of commands `call > api > call`, or `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// `file:line function`, or `-`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl Group {
    /// What it says of one of its parts; none of the name and the API.
    pub fn get(&self, by: By) -> Option<&str> {
        match by {
            By::Api | By::Name => None,
            By::Host => self.host.as_deref(),
            By::Process => self.process.as_deref(),
            By::Thread => self.thread.as_deref(),
            By::Rank => self.rank.as_deref(),
            By::Device => self.device.as_deref(),
            By::Queue => self.queue.as_deref(),
            By::Range => self.range.as_deref(),
            By::Error => self.error.as_deref(),
            By::Layer => self.layer.as_deref(),
            By::Line => self.line.as_deref(),
        }
    }

    pub(super) fn set(&mut self, by: By, text: String) {
        let place = match by {
            By::Api | By::Name => return,
            By::Host => &mut self.host,
            By::Process => &mut self.process,
            By::Thread => &mut self.thread,
            By::Rank => &mut self.rank,
            By::Device => &mut self.device,
            By::Queue => &mut self.queue,
            By::Range => &mut self.range,
            By::Error => &mut self.error,
            By::Layer => &mut self.layer,
            By::Line => &mut self.line,
        };
        *place = Some(text);
    }
}

/// What stands for what a row is not of.
pub(super) const NONE: &str = "-";
