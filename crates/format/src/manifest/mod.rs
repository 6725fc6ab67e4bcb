//! `hetrace/manifest.json`: what the trace is of, and what it lacks.
//!
//! One set of types for the launcher, which writes it, for the reports, which read it, and for
//! what makes traces of traces. Every member may be missing: older versions had fewer, and a
//! trace may have been made by hand. Members that this version does not know are passed over
//! ([`Manifest::parse`]) or named to the caller ([`Manifest::parse_strictly`]).

mod clocks;
mod cost;
mod exit;
mod flight;
mod handle;
mod losses;
mod origin;
mod os;
mod process;
mod rotation;
mod telemetry;

use std::path::PathBuf;

use hetrace_ctf::account::Account;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::sample::Samples;
pub use crate::window::{Capture, Window};

pub use clocks::{DeviceClock, HostClock};
pub use cost::{Cost, Timing};
pub use exit::Exit;
pub use flight::{Fired, Flight};
pub use losses::{Losses, ThreadLosses};
pub use origin::{Boot, Origin, Part};
pub use os::Os;
pub use process::{Interposition, Job, Process};
pub use rotation::{Rotation, read};
pub use telemetry::{QuantityReport, SamplerReport, SourceReport, Telemetry, TelemetryDevice};

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// [`SCHEMA`](crate::SCHEMA) of the version that wrote it; 0 when there is no manifest.
    #[serde(skip_serializing_if = "is_default")]
    pub schema: u32,
    /// Version of hetrace.
    pub version: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Name of the machine.
    pub host: String,
    /// What the environment of the launcher says of its rank in a job.
    #[serde(skip_serializing_if = "Job::is_empty")]
    pub job: Job,
    /// Beginning, on the trace's clock; none if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<u64>,
    /// End, on the trace's clock; 0 or none if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// From the program's exec to its end, without what the launcher did before and after; none if it
    /// is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime_ns: Option<u64>,
    /// Processor time of the program and of those children of it that it waited for, user's and system's; none if it
    /// is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor_ns: Option<u64>,
    /// Beginning, nanoseconds since 1970; none if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_realtime_ns: Option<u64>,
    /// How the program ended; none while it runs, and if the launcher did not see it.
    pub exit: Option<Exit>,
    /// It is of a session of the service that was ended, with programs that may live on: there is no one exit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// The session's folder, as long as the trace is not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<PathBuf>,
    /// Options as given.
    pub options: Vec<String>,
    /// How the API was intercepted, by API.
    pub interposition: Vec<Interposition>,
    /// Processes that recorded.
    pub processes: Vec<Process>,
    /// What was lost.
    pub losses: Losses,
    /// Clocks of devices.
    pub device_clocks: Vec<DeviceClock>,
    /// The host's clock.
    pub host_clock: HostClock,
    /// How much of each thread's time recording was allowed to take, in percent; none if there was no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_overhead: Option<f64>,
    /// The capture windows, if the run had some: outside of them only objects and ranges were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// What it is a snapshot of, if the run was a flight recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flight: Option<Flight>,
    /// Which part of the run it is, if the run was divided into several traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
    /// What recording itself costs, if that could be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Bytes and records written.
    pub written: Written,
    /// Remarks: functions not traced and the like.
    pub notes: Vec<String>,
    /// Telemetry, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
    /// Events of the operating system, if they were recorded: in the folder beside this trace's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os: Option<Os>,
    /// Samples of processors, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
    /// The parts to which the trace was cut, in the order in which that was done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trimmed: Vec<Part>,
    /// The traces of which it was made; none if it was recorded as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<Vec<Origin>>,
    /// The boots whose clocks are in a merged trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Vec<Boot>>,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Written {
    /// Records; none if packets were copied without counting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Bytes.
    pub bytes: u64,
    /// What is in each file, so that readers can say what is missing; none while the program
    /// runs, if the launcher was killed, and from older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

impl Written {
    /// Returns what an account says was written.
    pub fn of(account: Account) -> Self {
        let bytes = account.streams.iter().map(|stream| stream.stored).fold(0, u64::saturating_add);
        let records = account.streams.iter().map(|stream| stream.events).sum();
        Written { records, bytes, account: Some(account) }
    }
}

impl Manifest {
    /// Reads a manifest. Members that this version does not know are passed over.
    ///
    /// # Errors
    /// When it is no JSON or its members have other types than these.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        must_be_object(json)?;
        serde_json::from_slice(json)
    }

    /// Reads a manifest, and returns the paths of members that this version does not know
    /// (`losses.later`): whoever writes a new one would drop them.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_strictly(json: &[u8]) -> Result<(Self, Vec<String>), serde_json::Error> {
        must_be_object(json)?;
        let mut unknown = Vec::new();
        let mut reader = serde_json::Deserializer::from_slice(json);
        let manifest = serde_ignored::deserialize(&mut reader, |path| unknown.push(path.to_string()))?;
        reader.end()?;
        Ok((manifest, unknown))
    }

    /// Changes a manifest, if there is one and it can be read, else a new one. Members that this
    /// version does not know stay, and so does what `change` leaves alone, to the letter.
    ///
    /// # Errors
    /// When a path in it is no text.
    pub fn rewrite(
        json: Option<&[u8]>,
        change: impl FnOnce(&mut Self),
    ) -> Result<Vec<u8>, serde_json::Error> {
        let json = json.unwrap_or(b"{}");
        let before = Self::parse(json).unwrap_or_default();
        let mut after = before.clone();
        change(&mut after);
        let mut members: Map<String, Value> = serde_json::from_slice(json).unwrap_or_default();
        let (before, after) = (serde_json::to_value(before)?, serde_json::to_value(after)?);
        for (name, value) in after.as_object().into_iter().flatten() {
            if before.get(name) != Some(value) {
                members.insert(name.clone(), value.clone());
            }
        }
        for (name, _) in before.as_object().into_iter().flatten().filter(|(n, _)| after.get(n).is_none()) {
            members.remove(name);
        }
        serde_json::to_vec(&members)
    }

    /// As it stands in its file.
    ///
    /// # Errors
    /// When a path in it is no text.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Largest error of a device's clock, in nanoseconds; none if no clock's is known.
    pub fn device_error_ns(&self) -> Option<u64> {
        self.device_clocks.iter().filter_map(|clock| clock.error_ns).max()
    }

    /// Returns whether the launcher lived to write it.
    pub fn is_present(&self) -> bool {
        // The first one, written while the program runs, says of no end.
        self.schema != 0 && self.is_finished()
    }

    /// Returns whether what was recorded is known to be whole: the program ended, or the service was asked to stop.
    pub fn is_finished(&self) -> bool {
        self.exit.is_some() || self.stopped
    }
}

/// Refuses a list, whose elements would be taken for the members in their order.
fn must_be_object(json: &[u8]) -> Result<(), serde_json::Error> {
    match json.trim_ascii_start() {
        [b'[', ..] => Err(serde::de::Error::custom("it is a list, not an object")),
        _ => Ok(()),
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[cfg(test)]
mod tests;
