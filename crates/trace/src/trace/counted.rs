//! Commands that were counted, and of which none is in the trace.

use hetrace_format::command::{CommandKind, MemoryKind};

use super::names::{Device, Names};

/// Commands of a function, or of a kind, of which nothing but their number is known.
#[derive(Clone, Debug)]
pub struct OnlyCounted<'n> {
    /// The number of the function.
    pub function: u32,
    /// The process.
    pub pid: i64,
    /// What they do.
    pub kind: CommandKind,
    /// The function's name; empty of kinds that run none.
    pub symbol: &'n str,
    /// Where their bytes come from.
    pub from: MemoryKind,
    /// Where these go to.
    pub to: MemoryKind,
    /// The device, where the process has used one only.
    pub device: Option<&'n Device>,
    /// The API, where the process has used the queues of one only; else empty.
    pub api: &'n str,
    /// How many.
    pub commands: u64,
    /// Bytes that all of them moved or set.
    pub bytes: u64,
    /// They are nodes of graphs that were timed as a whole, or not at all.
    pub of_graphs: bool,
}

impl Names {
    /// All that were only counted, in the order of functions. `seen`: whether commands of a function are known that are nodes of
    /// graphs, or that are none; these stand for others like them.
    pub fn only_counted(&self, seen: impl Fn(u32, bool) -> bool) -> Vec<OnlyCounted<'_>> {
        let mut all: Vec<_> = self.all_launches().filter(|(_, all)| all.counted() > 0).collect();
        all.sort_unstable_by_key(|(function, _)| *function);
        let mut found = Vec::new();
        for (function, all) in all {
            let [others, nodes] = [false, true].map(|nodes| {
                let part = all.part(nodes);
                if seen(function, nodes) { (0, 0) } else { (part.counted(), part.bytes) }
            });
            let of_graphs =
                (nodes.0.saturating_add(all.of_graphs), nodes.1.saturating_add(all.of_graphs_bytes));
            for ((commands, bytes), of_graphs) in [(others, false), (of_graphs, true)] {
                if commands > 0 {
                    found.push(self.described(
                        function,
                        (all.kind, all.from, all.to),
                        commands,
                        bytes,
                        of_graphs,
                    ));
                }
            }
        }
        found
    }

    fn described(
        &self,
        function: u32,
        (kind, from, to): (CommandKind, MemoryKind, MemoryKind),
        commands: u64,
        bytes: u64,
        of_graphs: bool,
    ) -> OnlyCounted<'_> {
        let known = self.kernel(function);
        let (pid, symbol) = known.map_or((0, ""), |known| (known.pid, &known.name));
        // Older traces have no kind.
        let kind = if kind == CommandKind::Other && !symbol.is_empty() { CommandKind::Kernel } else { kind };
        let queues: Vec<_> = self.queues().into_iter().filter(|queue| queue.pid == pid).collect();
        let first = queues.first().copied();
        let one_api = first.filter(|first| queues.iter().all(|queue| queue.api == first.api));
        let one_device = first.filter(|first| queues.iter().all(|queue| queue.device == first.device));
        OnlyCounted {
            function,
            pid,
            kind,
            symbol,
            from,
            to,
            device: one_device.and_then(|queue| self.device(queue.device)),
            api: one_api.map_or("", |queue| &queue.api),
            commands,
            bytes,
            of_graphs,
        }
    }
}
