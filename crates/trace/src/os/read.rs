//! A kernel trace to states of threads.

use hetrace_ctf::class::EnvValue;

use super::event::{Classes, Names};
use super::join::NotJoined;
use super::machine::{At, Machine};
use crate::system::System;
use crate::trace::{Item, Trace};
use crate::watch::{Pace, Stopped, Watch};

/// Reads what the threads of some processes did. `wanted` says which processes; numbers are the kernel
/// trace's. Of a trace of one program and its descendants, all of them are.
///
/// # Errors
/// When the watch says so.
pub fn read(
    kernel: &Trace,
    wanted: impl Fn(i64) -> bool,
    watch: Option<Watch<'_>>,
) -> Result<Result<System, NotJoined>, Stopped> {
    let mut names = Names::default();
    let class = kernel.ctf().class();
    let classes = Classes::new(class, &mut names);
    if !classes.has_switches && !classes.has_own_switches {
        return Ok(Err(NotJoined::NoEvents));
    }
    let scope = class.env("recorded_scope").and_then(|value| match value {
        EnvValue::Str(text) => Some(text.as_str()),
        EnvValue::Int(_) => None,
    });
    let is_tree = scope == Some("tree");
    // All that such a trace knows the process of belongs to the program.
    let wanted = |pid| is_tree || wanted(pid);
    let mut machine = Machine::new(wanted, is_tree, names);
    machine.system.has_calls = classes.has_calls;
    machine.system.has_others = classes.has_switches;
    let mut pace = Pace::new(watch);
    let mut cursor = kernel.cursor_as_recorded();
    let (mut last, mut damaged) = (0, 0);
    // By stream: the packet of its last event, its CPU, and the number of its class.
    let mut streams: Vec<Option<(u32, u32, usize)>> = Vec::new();
    loop {
        let occurrence = match cursor.next_item() {
            None => break,
            Some(Item::Damage { .. }) => {
                damaged += 1;
                continue;
            }
            Some(Item::Event(occurrence)) => occurrence,
        };
        if let std::ops::ControlFlow::Break(stopped) = pace.step() {
            return Err(stopped);
        }
        let (event, place) = (&occurrence.event, occurrence.stream as usize);
        if place >= streams.len() {
            streams.resize(place + 1, None);
        }
        let known = streams[place].filter(|(packet, ..)| *packet == occurrence.packet());
        let (_, cpu, of) = known.unwrap_or_else(|| {
            let of = class.streams.iter().position(|s| std::ptr::eq(s, event.stream_class()));
            let cpu = event.packet().cpu_id.and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or(0);
            (occurrence.packet(), cpu, of.unwrap_or(usize::MAX))
        });
        let tid = classes.who(of, event);
        let at = At { time: occurrence.time, cpu, tid };
        if known.is_none() {
            streams[place] = Some((occurrence.packet(), cpu, of));
            if occurrence.lossy() || occurrence.after_gap {
                machine.lost(at);
            }
        }
        last = last.max(occurrence.time);
        if let Some(what) = classes.decode(of, event, &mut machine.names) {
            machine.take(at, &what);
        }
    }
    let losses = cursor.losses();
    let mut system = machine.finish(last);
    system.dropped = losses.events;
    system.missing_packets = losses.packets;
    system.damaged = system.damaged.saturating_add(damaged);
    Ok(Ok(system))
}
