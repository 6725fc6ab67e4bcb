//! Records of a launch, one after the other.

use super::{Clocks, Described, Entry, Lanes, Launch, Record, Site, Warp};

/// What a warp recorded at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, by the device's timer, ns.
    pub ns: u64,
    /// When, by the multiprocessor's clock, in cycles.
    pub clock: u64,
    /// The thread block.
    pub block: [u32; 3],
    /// The warp in it.
    pub warp: u32,
    /// Where it ran.
    pub multiprocessor: u32,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Lanes began.
    Begin(Lanes),
    /// Lanes came to a site, or passes of it were added up ([`Record::repeats`]).
    At(Record),
    /// Lanes ended.
    End(Lanes),
}

impl What {
    /// Its name in reports and exports: `begin`, `branch`, `edge`, `block`, `sum`, `end`.
    pub fn name(&self, kernel: &Described) -> &'static str {
        match self {
            What::Begin(_) => "begin",
            What::End(_) => "end",
            What::At(record) if record.repeats > 0 => "sum",
            What::At(record) => match site(kernel, record.site) {
                Some(Site::Edge(_)) => "edge",
                Some(Site::Block(_)) => "block",
                Some(Site::Branch(_)) | None => "branch",
            },
        }
    }

    /// The lanes that were there.
    pub fn lanes(&self) -> Lanes {
        match self {
            What::Begin(lanes) | What::End(lanes) => *lanes,
            What::At(record) => record.active,
        }
    }
}

fn site(kernel: &Described, number: u32) -> Option<Site> {
    kernel.sites.get(number as usize)?.site()
}

impl Event {
    /// The basic block that it is of: where the site is, or leads from; the first of lanes that begin; none of lanes that end.
    pub fn basic_block(&self, kernel: &Described) -> Option<usize> {
        match &self.what {
            What::Begin(_) => Some(0),
            What::End(_) => None,
            What::At(record) => match site(kernel, record.site)? {
                Site::Branch(block) | Site::Block(block) => Some(block),
                Site::Edge(edge) => Some(edge.from),
            },
        }
    }
}

/// Returns when an entry was made.
pub(super) fn time(entry: &Entry) -> u64 {
    match entry {
        Entry::Begin { time, .. } | Entry::End { time, .. } => *time,
        Entry::At(record) => record.time,
    }
}

/// Returns all that a warp recorded in order: of one time, those that begin come first and those that end last. Each lane that has
/// a count to say at its end writes who ends with it, so ends of one time are one.
pub(super) fn entries(warp: &Warp) -> Vec<Entry> {
    let begins = warp.began.iter().map(|(time, lanes)| Entry::Begin { time: *time, lanes: *lanes });
    let ends = warp.ended.chunk_by(|a, b| a.0 == b.0).map(|ends| Entry::End {
        time: ends.first().map_or(0, |end| end.0),
        lanes: ends.iter().fold(0, |all, (_, lanes)| all | lanes),
    });
    let records = warp.records.iter().map(|record| Entry::At(*record));
    let mut entries: Vec<Entry> = begins.chain(records).chain(ends).collect();
    // Stable: what is of one time stays in the order above.
    entries.sort_by_key(time);
    entries
}

/// Returns all that a launch recorded, in order of time. Memory is in proportion to that.
pub fn events(launch: &Launch, clocks: &Clocks) -> Vec<Event> {
    let mut all = Vec::new();
    for block in &launch.blocks {
        for warp in &block.warps {
            for entry in entries(warp) {
                let clock = time(&entry);
                let what = match entry {
                    Entry::Begin { lanes, .. } => What::Begin(lanes),
                    Entry::End { lanes, .. } => What::End(lanes),
                    Entry::At(record) => What::At(record),
                };
                all.push(Event {
                    ns: clocks.ns(block.multiprocessor, clock),
                    clock,
                    block: block.at,
                    warp: warp.number,
                    multiprocessor: block.multiprocessor,
                    what,
                });
            }
        }
    }
    // Stable: those of a warp stay in their order.
    all.sort_by_key(|event| event.ns);
    all
}
