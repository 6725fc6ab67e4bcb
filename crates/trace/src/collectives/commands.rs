//! Commands on devices to the collectives that became them.

use super::Collectives;
use super::seen::Seen;
use super::track::{Counted, KEPT};
use crate::spans::{At, Command, CommandKind};

/// Functions that are kept of a row.
const FUNCTIONS: usize = 8;

impl Collectives {
    /// A command on a device.
    #[inline]
    pub fn command(&mut self, at: At<'_>, command: &Command<'_>) {
        if !self.is_active() || command.cause_tid == 0 || command.cause == 0 {
            return;
        }
        let Some(times) = command.times else { return };
        let seen = Seen {
            pid: command.pid,
            tid: command.cause_tid,
            cause: command.cause,
            queue: command.queue,
            on_default: command.on_queue.is_some_and(|q| q.default),
            is_kernel: command.kind == CommandKind::Kernel,
            function: command.function.map_or(0, |f| f.id),
            end: times.end,
            time: times.duration().saturating_mul(command.weight),
            commands: command.weight,
        };
        // Clocks differ a little, and what caused it may come later.
        if command.cause > at.time && self.early.len() < KEPT {
            self.early.push(seen);
        } else {
            self.seen(&seen);
        }
    }

    pub(super) fn seen(&mut self, command: &Seen) {
        let Some((first, count)) = self.history.at(command.pid, command.tid, command.cause) else { return };
        let mut parts = first..first.saturating_add(count.into());
        // NULL stands for a default queue, whose handle is another value.
        let meant = |queue: &u64| *queue == command.queue || (command.on_default && *queue == 0);
        let on_queue = |number: &u64| self.part_of(*number).is_some_and(|p| p.queues.iter().any(meant));
        let Some(number) = parts.clone().find(on_queue).or_else(|| parts.next()) else { return };
        let Some(at) = self.place(number) else { return };
        let Some(part) = self.parts.get_mut(at) else { return };
        let Some(counted) = self.rows.get_mut(part.row as usize) else { return };
        let Counted { row, timed_bytes, functions } = counted;
        let known = &mut self.communicators[part.communicator as usize];
        // The first call in a communicator also makes its buffers ready, with copies and fills
        // that end before the call does. One rank alone has nothing but a copy to do.
        let alone = known.about.size == Some(1);
        if !(command.is_kernel || alone || part.returned != 0 && command.end > part.returned) {
            return;
        }
        known.any_command = true;
        // Of one that becomes a kernel, other commands were no part.
        if command.is_kernel && !std::mem::replace(&mut part.kernel, true) {
            let (commands, time) = std::mem::take(&mut part.others);
            row.commands = row.commands.saturating_sub(commands);
            row.total_ns = row.total_ns.saturating_sub(time);
        } else if !command.is_kernel && part.kernel {
            return;
        }
        if !command.is_kernel {
            part.others.0 = part.others.0.saturating_add(command.commands);
            part.others.1 = part.others.1.saturating_add(command.time);
        }
        if command.function != 0 && functions.len() < FUNCTIONS && !functions.contains(&command.function) {
            functions.push(command.function);
        }
        row.commands = row.commands.saturating_add(command.commands);
        row.total_ns = row.total_ns.saturating_add(command.time);
        if !std::mem::replace(&mut part.timed, true) {
            row.timed_calls += part.calls;
            *timed_bytes = timed_bytes.saturating_add(part.bytes);
        }
        // What a rank does in a communicator is done in order.
        while known.pending.front().is_some_and(|p| p.number <= part.last) {
            known.ended = known.pending.pop_front();
        }
    }
}
