//! What is written beside a command: under names that a query in SQL can use without quotes.

use super::annotations::Annotations;
use hetrace_trace::spans::{Command, MemoryKind, Sizes};

/// Annotates a command; `calls`: those of several APIs that brought it about; `streams`: its API's words are those of
/// CUDA. Shapes are arguments, which may be left out.
pub(super) fn annotate(
    notes: &mut Annotations,
    command: &Command<'_>,
    calls: Option<&str>,
    arguments: bool,
    streams: bool,
) {
    if let Some(calls) = calls {
        notes.text("calls", calls);
    }
    if command.bytes > 0 {
        notes.number("bytes", command.bytes);
    }
    for (name, memory) in [("from", command.from), ("to", command.to)] {
        if memory != MemoryKind::Unknown {
            notes.text(name, memory.name());
        }
    }
    if let Some(peer) = command.peer {
        notes.text("other_device", if peer.name.is_empty() { "unnamed" } else { &peer.name });
    }
    if command.failed() {
        notes.signed("status", command.status);
    }
    match command.times {
        Some(times) => {
            // What was not reported is the start.
            for (name, since) in
                [("queued_to_start_ns", times.queued), ("submitted_to_start_ns", times.submitted)]
            {
                if since != times.start {
                    notes.number(name, times.start.saturating_sub(since));
                }
            }
        }
        None => notes.signed("times_error", command.times_error),
    }
    if arguments {
        shapes(notes, command, streams);
        needs(notes, command);
    }
    if command.graph > 0 {
        notes.number("graph", command.graph);
        notes.number("node", command.node);
    }
    if command.weight > 1 {
        notes.number("launches", command.weight);
    }
}

fn shapes(notes: &mut Annotations, command: &Command<'_>, streams: bool) {
    let geometry = &command.geometry;
    let words = if streams { ["offset", "threads", "block"] } else { ["offset", "global", "local"] };
    let groups = groups(&geometry.global, &geometry.local);
    if streams && !groups.is_empty() {
        notes.numbers("grid", &groups);
    }
    for (name, sizes) in words.into_iter().zip([geometry.offset, geometry.global, geometry.local]) {
        // With grid and block, threads are no news.
        if !sizes.is_empty() && (name != "threads" || groups.is_empty()) {
            notes.numbers(name, sizes.as_slice());
        }
    }
    if !streams && !groups.is_empty() {
        notes.numbers("groups", &groups);
    }
    if !geometry.cluster.is_empty() {
        notes.numbers("cluster", geometry.cluster.as_slice());
    }
}

/// How many groups there are in each dimension; empty if not known.
fn groups(global: &Sizes, local: &Sizes) -> Vec<u64> {
    let (global, local) = (global.as_slice(), local.as_slice());
    if global.is_empty() || local.is_empty() || local.contains(&0) {
        return Vec::new();
    }
    let of_group = local.iter().copied().chain(std::iter::repeat(1));
    global.iter().zip(of_group).map(|(all, group)| all.div_ceil(group)).collect()
}

/// What a kernel needs of a processor.
fn needs(notes: &mut Annotations, command: &Command<'_>) {
    if let Some(function) = command.function {
        for (name, value) in [
            ("registers_per_thread", function.registers),
            ("shared_static_bytes", function.shared),
            ("local_bytes_per_thread", function.local),
            ("constant_bytes", function.constant),
        ] {
            if value > 0 {
                notes.number(name, value.into());
            }
        }
    }
    if command.shared > 0 {
        notes.number("shared_dynamic_bytes", command.shared);
    }
}
