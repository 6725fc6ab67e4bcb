//! Traces as machines of several boots and clocks would have made them.

use std::fs;
use std::path::Path;

use hetrace_ctf::class::EnvValue;
use serde_json::{Value as Json, json};

use crate::scripts;

/// Where and when a trace was made.
#[derive(Clone, Debug)]
pub struct Machine {
    pub boot: u8,
    /// Nanoseconds from its boot to that of others.
    pub offset: i64,
}

pub const HERE: Machine = Machine { boot: 7, offset: 0 };
/// UTC of tick 0.
pub const ORIGIN: i64 = 1_700_000_000_000_000_000;

/// Writes the trace of a script.
pub fn write(folder: &Path, text: &str, machine: &Machine) {
    let models = scripts::models_of(text);
    let (mut class, streams) = scripts::parts(&models, text);
    let clock = &mut class.clocks[0];
    clock.uuid = Some([machine.boot; 16]);
    let origin = ORIGIN + machine.offset;
    (clock.offset_seconds, clock.offset) =
        (origin.div_euclid(1_000_000_000), origin.rem_euclid(1_000_000_000) as u64);
    let host = format!("host{}", machine.boot);
    class.env = vec![("hostname".into(), EnvValue::Str(host.clone()))];
    fs::create_dir_all(folder.join("hetrace/model")).unwrap();
    fs::write(folder.join("metadata"), hetrace_ctf::tsdl::print(&class)).unwrap();
    for (number, (name, mut bytes)) in (1u64..).zip(streams) {
        // Each file is a stream of its own, else babeltrace2 takes them for one.
        let mut at = 0;
        while let Some(packet) = bytes.get_mut(at..).filter(|rest| rest.len() >= 104) {
            packet[24..32].copy_from_slice(&number.to_le_bytes());
            at += u64::from_le_bytes(packet[56..64].try_into().unwrap()) as usize / 8;
        }
        fs::write(folder.join(name), bytes).unwrap();
    }
    for model in models {
        let path = folder.join(format!("hetrace/model/{}.json", model.api));
        fs::write(path, serde_json::to_vec(&model).unwrap()).unwrap();
    }
    let given = text.lines().find_map(|line| line.trim().strip_prefix("manifest "));
    let mut manifest: Json = given.map_or_else(|| json!({}), |text| serde_json::from_str(text).unwrap());
    for (name, value) in [
        ("schema", json!(2)),
        ("host", json!(host)),
        ("exit", json!({ "code": 0 })),
        ("command", json!(["./app"])),
        ("start_ns", json!(5)),
    ] {
        manifest.as_object_mut().unwrap().entry(name).or_insert(value);
    }
    fs::write(folder.join("hetrace/manifest.json"), manifest.to_string()).unwrap();
}
