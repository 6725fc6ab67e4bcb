//! Where events of the mapping go, and which attributes they may have.

use super::super::archive::Archive;
use super::super::events::{self, Access, Value, types};
use crate::Error;

/// Attributes of events, by their numbers in the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(in crate::otf2) enum Attribute {
    Error,
    Bytes,
    Unfinished,
    Calls,
    Inside,
    Status,
    TimesError,
    Launches,
    Graph,
    Node,
    Category,
    Payload,
    SignedPayload,
    FloatPayload,
    CalledAt,
    CallStack,
}

impl Attribute {
    /// All with their types and meanings, in the order of their numbers.
    const ALL: [(Self, u8, &'static str, &'static str); 16] = [
        (Self::Error, types::STRING, "error", "the error code with which the call failed"),
        (Self::Bytes, types::UINT64, "bytes", "bytes moved, set or allocated"),
        (Self::Unfinished, types::STRING, "unfinished", "the end is not in the trace, and why"),
        (Self::Calls, types::UINT64, "calls", "how many calls of a run this stands for"),
        (Self::Inside, types::UINT64, "inside", "ns that these calls took in all"),
        (Self::Status, types::INT64, "status", "the device's code for a command that failed"),
        (Self::TimesError, types::INT64, "times error", "why the command's times are not known"),
        (Self::Launches, types::UINT64, "launches", "how many launches this stands for"),
        (Self::Graph, types::UINT64, "graph", "the graph that the command was launched with"),
        (Self::Node, types::UINT64, "node", "its node of the graph"),
        (Self::Category, types::STRING, "category", "the program's category of the range"),
        (Self::Payload, types::UINT64, "payload", "the number that the program gave the range"),
        (Self::SignedPayload, types::INT64, "signed payload", "the same with a sign"),
        (Self::FloatPayload, types::DOUBLE, "floating-point payload", "the same, if it is no integer"),
        (
            Self::CalledAt,
            types::STRING,
            "called at",
            "file, line and function of the code that made the call",
        ),
        (Self::CallStack, types::STRING, "call stack", "all frames of it, the innermost first"),
    ];
}

/// No attributes.
pub(in crate::otf2) static NOTHING: With = With(Vec::new());

/// Attributes of one event.
#[derive(Clone, Debug, Default)]
pub(in crate::otf2) struct With(Vec<(u32, Value)>);

impl With {
    pub fn add(&mut self, attribute: Attribute, value: Value) {
        self.0.push((attribute as u32, value));
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// An archive, and room for the event that is being made.
#[derive(Debug)]
pub(in crate::otf2) struct Output {
    pub archive: Archive,
    record: Vec<u8>,
}

impl Output {
    pub fn new(mut archive: Archive) -> Self {
        for (_, ty, name, meaning) in Attribute::ALL {
            archive.definitions.attribute(name, meaning, ty);
        }
        Self { archive, record: Vec::new() }
    }

    /// The number of a text as the value of an attribute.
    pub fn text(&mut self, text: &str) -> Value {
        Value::Text(self.archive.definitions.string(text))
    }

    /// Any event; `make` makes its bytes.
    pub fn event(&mut self, location: u32, time: u64, make: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        self.record.clear();
        make(&mut self.record);
        self.archive.event(location, time, &self.record)
    }

    #[inline]
    pub fn enter(&mut self, location: u32, time: u64, region: u32, with: &With) -> Result<(), Error> {
        self.event(location, time, |out| events::enter(out, region, &with.0))
    }

    #[inline]
    pub fn leave(&mut self, location: u32, time: u64, region: u32, with: &With) -> Result<(), Error> {
        self.event(location, time, |out| events::leave(out, region, &with.0))
    }

    /// A region from a time to another, and perhaps an access to memory for as long.
    pub fn whole(
        &mut self,
        location: u32,
        (start, end): (u64, u64),
        region: u32,
        with: &With,
        access: Option<Access>,
    ) -> Result<(), Error> {
        self.enter(location, start, region, with)?;
        if let Some(access) = access {
            self.event(location, start, |out| events::rma(out, &access))?;
            self.event(location, end, |out| events::rma_complete(out, &access))?;
        }
        self.leave(location, end, region, &NOTHING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_their_numbers() {
        for (number, (attribute, ..)) in Attribute::ALL.into_iter().enumerate() {
            assert_eq!(attribute as usize, number);
        }
    }
}
