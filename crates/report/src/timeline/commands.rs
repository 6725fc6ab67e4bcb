//! What is written beside a command.

use super::annotations::Annotations;
use hetrace_trace::spans::{Command, MemoryKind, Sizes};

/// Annotates a command; `streams`: its API's words are those of CUDA. Shapes
/// are arguments, which may be left out.
pub(super) fn annotate(notes: &mut Annotations, command: &Command<'_>, arguments: bool, streams: bool) {
    if command.bytes > 0 {
        notes.number("bytes", command.bytes);
    }
    for (name, memory) in [("from", command.from), ("to", command.to)] {
        if memory != MemoryKind::Unknown {
            notes.text(name, memory.name());
        }
    }
    if let Some(peer) = command.peer {
        notes.text("other device", if peer.name.is_empty() { "unnamed" } else { &peer.name });
    }
    if command.failed() {
        notes.signed("failed with", command.status);
    }
    match command.times {
        Some(times) => {
            // What was not reported is the start.
            for (name, since) in
                [("ns from queued to start", times.queued), ("ns from submitted to start", times.submitted)]
            {
                if since != times.start {
                    notes.number(name, times.start.saturating_sub(since));
                }
            }
        }
        None => notes.signed("times not known, error", command.times_error),
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
        notes.number("stands for launches", command.weight);
    }
}

fn shapes(notes: &mut Annotations, command: &Command<'_>, streams: bool) {
    let geometry = &command.geometry;
    let words = if streams { ["offset", "threads", "block"] } else { ["offset", "global", "local"] };
    let groups = groups(&geometry.global, &geometry.local);
    if streams && !groups.is_empty() {
        notes.text("grid", &format!("{groups:?}"));
    }
    for (name, sizes) in words.into_iter().zip([geometry.offset, geometry.global, geometry.local]) {
        // With grid and block, threads are no news.
        if !sizes.is_empty() && (name != "threads" || groups.is_empty()) {
            notes.text(name, &format!("{:?}", sizes.as_slice()));
        }
    }
    if !streams && !groups.is_empty() {
        notes.text("groups", &format!("{groups:?}"));
    }
    if !geometry.cluster.is_empty() {
        notes.text("cluster", &format!("{:?}", geometry.cluster.as_slice()));
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
            ("registers per thread", function.registers),
            ("static shared memory, bytes", function.shared),
            ("local memory per thread, bytes", function.local),
            ("constant memory, bytes", function.constant),
        ] {
            if value > 0 {
                notes.number(name, value.into());
            }
        }
    }
    if command.shared > 0 {
        notes.number("dynamic shared memory, bytes", command.shared);
    }
}
