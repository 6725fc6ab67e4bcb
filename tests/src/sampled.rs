//! What telemetry left in a trace, as babeltrace2 and the manifest have it.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bed::run;

/// One event as babeltrace2 shows it.
#[derive(Debug)]
pub struct Event {
    /// With its prefix: `telemetry:power`.
    pub name: String,
    /// Nanoseconds since 1970.
    pub time: u64,
    /// As text.
    pub fields: HashMap<String, String>,
}

impl Event {
    /// A field that is a number.
    pub fn number(&self, field: &str) -> u64 {
        self.fields[field].parse().unwrap_or_else(|_| panic!("{field} in {self:?}"))
    }
}

/// A trace, read by babeltrace2, which must have nothing to complain about.
pub fn babeltrace(folder: &Path) -> Vec<Event> {
    let done = run(Command::new("babeltrace2").args(["--clock-seconds", "--no-delta"]).arg(folder));
    assert_eq!((done.status, &*done.err), (0, ""), "babeltrace2 has something to say");
    done.out.lines().map(event).collect()
}

/// `[seconds.nanoseconds] host:program telemetry:NAME: { context }, { fields }`
fn event(line: &str) -> Event {
    let parts = || {
        let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
        let (head, rest) = rest.split_once(": { ")?;
        let (_, fields) = rest.split_once(" }, { ")?;
        let name = head.rsplit(' ').next()?.to_owned();
        let time = time.replace('.', "").parse().ok()?;
        let fields = fields.trim_end_matches(" }").split(", ").filter_map(|f| f.split_once(" = "));
        let fields = fields.map(|(k, v)| (k.to_owned(), v.trim_matches('"').to_owned())).collect();
        Some(Event { name, time, fields })
    };
    parts().unwrap_or_else(|| panic!("not an event: {line}"))
}

/// The manifest of a trace.
pub fn manifest(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("hetrace/manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

/// Events of one kind and device, in order.
pub fn of<'e>(events: &'e [Event], name: &str, device: u64) -> Vec<&'e Event> {
    let wanted = |e: &&Event| e.name == name && e.number("device") == device;
    events.iter().filter(wanted).collect()
}
