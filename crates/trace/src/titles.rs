//! What devices and queues are called on a screen, the same in all reports and exports.

use crate::ranges::Ranges;
use crate::spans::Command;
use crate::trace::{Device, Queue, Trace};

/// A device's name; if it has an identity, with the beginning of that.
pub fn device_label(device: &Device) -> String {
    let name = if device.name.is_empty() { format!("{:#x}", device.handle) } else { device.name.clone() };
    // What all have in common says nothing.
    let identity = device.uuid.strip_prefix("GPU-").unwrap_or(&device.uuid);
    let identity: String = identity.chars().take(8).collect();
    if identity.is_empty() { name } else { format!("{name} {identity}") }
}

/// What distinguishes a device from others of its process and API that have the same label: the API's number of it,
/// or where that is no different, its place among them. None if it is the only one.
pub fn device_number(trace: &Trace, device: &Device) -> Option<u64> {
    let label = device_label(device);
    let mut twins = trace.names().devices();
    twins
        .retain(|other| (other.pid, &other.api) == (device.pid, &device.api) && device_label(other) == label);
    if twins.len() < 2 {
        return None;
    }
    let is_numbered = twins.iter().all(|one| twins.iter().filter(|d| d.ordinal == one.ordinal).count() == 1);
    let before = twins.iter().filter(|other| other.id < device.id).count() as u64;
    Some(if is_numbered { device.ordinal.into() } else { before + 1 })
}

/// The name of a device, with its number where the process has others.
pub fn device_title(trace: &Trace, device: Option<&Device>) -> String {
    let Some(device) = device else { return "device".to_owned() };
    let name = if device.name.is_empty() { "device" } else { &device.name };
    let twin = |other: &&Device| other.pid == device.pid && other.id != device.id;
    let alone = !trace.names().devices().iter().any(|d| twin(d) && d.ordinal != device.ordinal);
    match device_number(trace, device) {
        _ if !alone => format!("{name} (device {})", device.ordinal),
        Some(number) => format!("{name} (device {number})"),
        None => name.to_owned(),
    }
}

/// The name of a queue: number or handle, what the program calls it, priority.
pub fn queue_title(trace: &Trace, queue: Option<&Queue>, called: Option<String>) -> String {
    let Some(queue) = queue else { return "unknown queue".to_owned() };
    let word = queue_word(trace, &queue.api);
    let mut name = match (queue.number, queue.handle) {
        (0, handle) => format!("{word} {handle:#x}"),
        (number, _) if queue.default => format!("{word} {number} (default)"),
        (number, _) => format!("{word} {number}"),
    };
    if let Some(called) = called {
        name.push_str(&format!(" {called:?}"));
    }
    if queue.priority != 0 {
        name.push_str(&format!(", priority {}", queue.priority));
    }
    name
}

/// The name of a queue for people: what the program calls it, or its number among those of its context; with its
/// handle, by which calls name it.
pub fn queue_label(trace: &Trace, queue: Option<&Queue>, called: Option<String>) -> String {
    let Some(known) = queue.filter(|queue| queue.number == 0) else {
        return queue_title(trace, queue, called);
    };
    let same = |other: &&Queue| other.pid == known.pid && other.api == known.api;
    let (mut contexts, mut number) = (Vec::new(), 1);
    // By number, in which they were made.
    for other in trace.names().queues().into_iter().filter(same).take_while(|other| other.id != known.id) {
        if !contexts.contains(&other.context) {
            contexts.push(other.context);
        }
        number += usize::from(other.context == known.context);
    }
    let context = contexts.iter().position(|context| *context == known.context).unwrap_or(contexts.len()) + 1;
    let word = queue_word(trace, &known.api);
    let called = called.map_or_else(String::new, |called| format!(" {called:?}"));
    let priority = match known.priority {
        0 => String::new(),
        priority => format!(", priority {priority}"),
    };
    format!("{word} {number} of context {context}{called} ({:#x}){priority}", known.handle)
}

/// Returns what is to be said beside the handle of a default queue, which default queues of other contexts and
/// threads have as well: its number and context. Empty for other queues.
pub fn default_queue_mark(trace: &Trace, queue: &Queue) -> String {
    if !queue.default || queue.number == 0 {
        return String::new();
    }
    format!(" ({} {} of context {:#x})", queue_word(trace, &queue.api), queue.number, queue.context)
}

/// What an API calls a queue: `queue` or `stream`.
pub fn queue_word<'t>(trace: &'t Trace, api: &str) -> &'t str {
    let model = trace.models().iter().find(|m| m.api == api);
    model.map_or("queue", |m| m.queue_word())
}

/// What the program calls a queue.
pub fn queue_name(ranges: &Ranges<'_>, command: &Command<'_>) -> Option<String> {
    let number = command.on_queue.map_or(0, |q| q.id);
    ranges.queue_name(command.pid, number, command.queue).map(str::to_owned)
}
