//! What a trace holds, in numbers, read by our reader without any analysis.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Event, Trace};

/// Calls of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Entries, folded calls included.
    pub begun: u64,
    /// Exits, folded calls included.
    pub ended: u64,
    /// Calls that the manifest reports as lost by this process's threads.
    pub lost: u64,
}

/// Numbers of a trace.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// By process.
    pub calls: BTreeMap<u32, Calls>,
    /// Calls that the manifest reports as lost without a process.
    pub lost_elsewhere: u64,
    /// What each process in the manifest runs.
    pub programs: Vec<String>,
    /// Commands of devices.
    pub commands: u64,
    /// Commands that the manifest reports as lost or without times.
    pub commands_lost: u64,
    /// Queues that are defined.
    pub queues: u64,
    /// Queues whose device has no name or is not defined.
    pub nameless_queues: u64,
    /// Damage, disorder.
    pub damage: Vec<String>,
    /// The manifest's own words on losses.
    pub losses: serde_json::Value,
}

/// Queues and devices as streams define them.
#[derive(Default)]
struct Definitions {
    devices: BTreeMap<u64, String>,
    /// One for each definition: of one queue there must be one.
    queues: Vec<u64>,
}

impl Definitions {
    /// Takes an event of devices; returns whether it is a command.
    fn take(&mut self, kind: &str, event: &Event<'_, '_>) -> bool {
        let number = |name: &str| event.get(name).and_then(Scalar::as_u64).unwrap_or(0);
        match kind {
            "device" => {
                let text = event.get("name").and_then(Scalar::as_str).unwrap_or_default();
                self.devices.insert(number("device"), text.to_owned());
            }
            "queue" => self.queues.push(number("device")),
            "function" | "property" | "launches" => {}
            _ => return true,
        }
        false
    }
}

impl Counted {
    /// Reads a trace.
    ///
    /// # Errors
    /// When it can't be read at all.
    pub fn read(folder: &Path) -> Result<Counted, String> {
        let trace = Trace::open(folder).map_err(|e| format!("the trace does not open: {e}"))?;
        let mut counted = Counted::default();
        let mut definitions = Definitions::default();
        for mut stream in trace.streams() {
            let mut last = 0;
            while let Some(event) = stream.next_event() {
                let event = match event {
                    Ok(event) => event,
                    Err(error) => {
                        counted.damage.push(error.to_string());
                        continue;
                    }
                };
                let number = |name: &str| event.get(name).and_then(Scalar::as_u64).unwrap_or(0);
                let time = event.timestamp().unwrap_or(0);
                if time < last {
                    counted.damage.push(format!("time goes back by {} ns", last - time));
                }
                last = time;
                let name = event.class().name.as_str();
                if let Some(kind) = name.strip_prefix("device:") {
                    counted.commands += u64::from(definitions.take(kind, &event));
                    continue;
                }
                let pid = event.get_in(Scope::PacketContext, "vpid").and_then(Scalar::as_u64);
                let calls = counted.calls.entry(pid.unwrap_or(0) as u32).or_default();
                if name.ends_with("_entry") {
                    calls.begun += 1;
                } else if name.ends_with("_exit") {
                    calls.ended += 1;
                } else if name.ends_with("_fold") {
                    calls.begun += number("count");
                    calls.ended += number("count");
                }
            }
        }
        counted.queues = definitions.queues.len() as u64;
        let nameless = |device: &u64| definitions.devices.get(device).is_none_or(String::is_empty);
        counted.nameless_queues = definitions.queues.iter().filter(|d| nameless(d)).count() as u64;
        counted.manifest(folder)?;
        Ok(counted)
    }

    /// Calls of all processes together.
    pub fn total(&self) -> Calls {
        self.calls.values().fold(Calls { lost: self.lost_elsewhere, ..Calls::default() }, |sum, calls| {
            Calls {
                begun: sum.begun + calls.begun,
                ended: sum.ended + calls.ended,
                lost: sum.lost + calls.lost,
            }
        })
    }

    fn manifest(&mut self, folder: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(folder.join("hetrace/manifest.json"))
            .map_err(|e| format!("no manifest: {e}"))?;
        let manifest: serde_json::Value =
            serde_json::from_str(&text).map_err(|e| format!("manifest: {e}"))?;
        let losses = &manifest["losses"];
        let count = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
        let mut by_thread = 0;
        for thread in losses["threads"].as_array().into_iter().flatten() {
            let pid = count(&thread["pid"]) as u32;
            self.calls.entry(pid).or_default().lost += count(&thread["calls"]);
            by_thread += count(&thread["calls"]);
        }
        let all: BTreeSet<&str> = ["calls", "calls_without_ring"].into();
        let reported: u64 = all.iter().map(|name| count(&losses[*name])).sum();
        self.lost_elsewhere = reported.saturating_sub(by_thread);
        self.commands_lost = count(&losses["device_commands"]) + count(&losses["commands_in_flight"]);
        for process in manifest["processes"].as_array().into_iter().flatten() {
            self.programs.push(process["command"][0].as_str().unwrap_or_default().to_owned());
        }
        for what in ["damaged_bytes", "unwritten_bytes"] {
            if count(&losses[what]) > 0 {
                self.damage.push(format!("{what} {}", losses[what]));
            }
        }
        self.losses = losses.clone();
        Ok(())
    }
}
