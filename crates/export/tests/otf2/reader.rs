//! A small reader of archives that believes nothing: numbers in range, definitions in order,
//! regions nested, times that do not run backwards.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

/// Bytes of a file, from a position on.
struct Bytes<'b> {
    all: &'b [u8],
    at: usize,
}

impl<'b> Bytes<'b> {
    fn take(&mut self, n: usize) -> &'b [u8] {
        let bytes = self.all.get(self.at..self.at + n).expect("the file goes on");
        self.at += n;
        bytes
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn full(&mut self, n: usize) -> u64 {
        self.take(n).iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    /// A number of as many bytes as it says; all bits of `undefined` for the shortest form.
    fn number(&mut self, undefined: u64) -> u64 {
        match self.byte() {
            0xff => undefined,
            n => {
                assert!(n <= 8, "a number of {n} bytes");
                self.full(n.into())
            }
        }
    }

    fn u32(&mut self) -> u32 {
        u32::try_from(self.number(u32::MAX.into())).expect("a number of 32 bits")
    }

    fn u64(&mut self) -> u64 {
        self.number(u64::MAX)
    }

    fn text(&mut self) -> String {
        let rest = &self.all[self.at..];
        let end = rest.iter().position(|b| *b == 0).expect("a NUL");
        self.at += end + 1;
        String::from_utf8(rest[..end].to_vec()).expect("UTF-8")
    }

    /// A record's data.
    fn data(&mut self) -> Bytes<'b> {
        let n = match self.byte() {
            0xff => self.full(8) as usize,
            n => n.into(),
        };
        Bytes { all: self.take(n), at: 0 }
    }

    fn end(&self) {
        assert_eq!(self.at, self.all.len(), "bytes are left over");
    }
}

/// An archive, as far as tests ask.
#[derive(Debug, Default)]
pub struct Archive {
    pub properties: Vec<(String, String)>,
    pub strings: Vec<String>,
    /// Kinds and names.
    pub locations: Vec<(u8, String)>,
    pub regions: Vec<String>,
    /// Of all locations.
    pub events: u64,
    /// Values of the attribute `bytes`.
    pub bytes: Vec<u64>,
    pub events_by_location: Vec<u64>,
    /// Ends of messages: the location, whether it sends, the communicator, the other rank, the bytes.
    pub messages: Vec<(usize, bool, u32, u32, u64)>,
    /// Events by the kind of their record.
    pub by_kind: HashMap<u8, u64>,
    /// Chunks of event files.
    pub chunks: u64,
    attributes: Vec<u8>,
    groups: Vec<(u8, u8, Vec<u64>)>,
    /// Numbers of ranks.
    communicators: Vec<u64>,
    windows: Vec<u32>,
    members: u32,
    /// Members of each class, and of the class of each instance.
    metrics: Vec<u64>,
    nodes: u32,
    location_groups: u32,
    counts: Vec<u64>,
    clock: (u64, u64),
}

/// What has begun in a location and not ended.
#[derive(Debug, Default)]
struct Open {
    regions: Vec<u32>,
    /// Window and number of each access.
    accesses: Vec<(u32, u64)>,
    collectives: i64,
    requests: BTreeSet<u64>,
}

impl Open {
    /// A request is made, or completed.
    fn request(&mut self, made: bool, number: u64) {
        let good = if made { self.requests.insert(number) } else { self.requests.remove(&number) };
        assert!(good, "request {number} is {}", if made { "made twice" } else { "completed, not made" });
    }

    /// Nothing is open.
    fn end(&self) {
        assert!(self.regions.is_empty() && self.accesses.is_empty() && self.collectives == 0, "{self:?}");
        assert!(self.requests.is_empty(), "a message is in flight at the end: {self:?}");
    }
}

/// Definitions are numbered in order.
fn next(number: u32, count: usize) {
    assert_eq!(number as usize, count, "the number of a definition");
}

/// Reads an archive.
///
/// # Panics
/// If anything is wrong with it.
pub fn read(folder: &Path) -> Archive {
    let mut archive = Archive::default();
    let anchor = fs::read(folder.join("traces.otf2")).expect("an anchor file");
    let [locations, definitions, event_chunk, definition_chunk] = archive.anchor(&anchor);
    let bytes = fs::read(folder.join("traces.def")).expect("definitions");
    let mut count = 0;
    chunks(&bytes, definition_chunk, |first, last, chunk| {
        assert_eq!((first, last), (1, 0));
        while chunk.at < chunk.all.len() && chunk.all[chunk.at] != 0 && chunk.all[chunk.at] != 2 {
            let kind = chunk.byte();
            archive.definition(kind, chunk.data());
            count += 1;
        }
    });
    assert_eq!(count, definitions);
    assert_eq!(archive.locations.len() as u64, locations);
    for location in 0..archive.locations.len() {
        let own = fs::read(folder.join(format!("traces/{location}.def"))).expect("its own definitions");
        chunks(&own, definition_chunk, |_, _, chunk| assert_eq!(chunk.all[chunk.at], 2));
        let bytes = fs::read(folder.join(format!("traces/{location}.evt"))).expect("its events");
        archive.events_of(location, &bytes, event_chunk);
    }
    archive
}

/// Calls for each chunk with what its header says and its bytes behind that.
fn chunks(bytes: &[u8], size: u64, mut each: impl FnMut(u64, u64, &mut Bytes<'_>)) {
    let count = bytes.chunks(size as usize).count();
    for (number, chunk) in bytes.chunks(size as usize).enumerate() {
        let mut chunk = Bytes { all: chunk, at: 0 };
        assert_eq!(chunk.take(2), [3, 0x42]);
        let (first, last) = (chunk.full(8), chunk.full(8));
        each(first, last, &mut chunk);
        let rest = &chunk.all[chunk.at..];
        if number + 1 == count {
            assert_eq!(rest, [2, 1], "the end of the file");
        } else {
            assert!(!rest.is_empty() && rest.iter().all(|b| *b == 0), "the end of a chunk");
        }
    }
}

impl Archive {
    /// Numbers of locations and definitions, and sizes of chunks.
    fn anchor(&mut self, bytes: &[u8]) -> [u64; 4] {
        let mut anchor = Bytes { all: bytes, at: 0 };
        assert_eq!(anchor.take(2), [3, 0x42]);
        assert_eq!(anchor.text(), "OTF2");
        assert_eq!(anchor.take(5), [3, 2, 3, 0, 2]);
        let chunks = [anchor.full(8), anchor.full(8)];
        assert_eq!(anchor.take(2), [1, 1]);
        let (locations, definitions) = (anchor.full(8), anchor.full(8));
        let _about = [anchor.text(), anchor.text(), anchor.text()];
        for _ in 0..anchor.full(4) {
            let (name, value) = (anchor.text(), anchor.text());
            let good = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            let parts: Vec<&str> = name.split("::").collect();
            assert!(parts.len() > 1 && parts.iter().all(|p| !p.is_empty() && p.chars().all(good)), "{name}");
            self.properties.push((name, value));
        }
        assert_ne!(anchor.full(8), 0, "an identity");
        assert_eq!((anchor.full(4), anchor.full(4)), (0, 0));
        assert_eq!(anchor.take(3), [2, 1, 0]);
        anchor.end();
        [locations, definitions, chunks[0], chunks[1]]
    }

    fn string(&self, data: &mut Bytes<'_>) -> &str {
        let number = data.u32() as usize;
        self.strings.get(number).unwrap_or_else(|| panic!("no string {number}"))
    }

    fn definition(&mut self, kind: u8, mut data: Bytes<'_>) {
        match kind {
            5 => self.define_clock(&mut data),
            6 => self.define_paradigm(&mut data),
            10 => self.define_string(&mut data),
            11 => self.define_attribute(&mut data),
            12 => self.define_node(&mut data),
            26 => self.define_node_property(&mut data),
            27 => assert!(data.u32() < self.nodes && data.byte() <= 8),
            13 => self.define_location_group(&mut data),
            14 => self.define_location(&mut data),
            15 => self.define_region(&mut data),
            18 => self.define_group(&mut data),
            22 => self.define_communicator(&mut data),
            24 => self.define_window(&mut data),
            19 => self.define_member(&mut data),
            20 => self.define_metric_class(&mut data),
            21 => self.define_metric_instance(&mut data),
            other => panic!("no definition has the number {other}"),
        }
        data.end();
    }

    /// CLOCK_PROPERTIES.
    fn define_clock(&mut self, data: &mut Bytes<'_>) {
        assert_eq!(data.u64(), 1_000_000_000);
        self.clock = (data.u64(), data.u64());
        data.u64();
    }

    /// A PARADIGM.
    fn define_paradigm(&mut self, data: &mut Bytes<'_>) {
        data.byte();
        self.string(data);
        assert!(data.byte() <= 3);
    }

    /// A STRING.
    fn define_string(&mut self, data: &mut Bytes<'_>) {
        next(data.u32(), self.strings.len());
        let text = data.text();
        assert!(!self.strings.contains(&text), "{text:?} is defined twice");
        self.strings.push(text);
    }

    /// An ATTRIBUTE.
    fn define_attribute(&mut self, data: &mut Bytes<'_>) {
        next(data.u32(), self.attributes.len());
        self.string(data);
        self.attributes.push(data.byte());
        self.string(data);
    }

    /// A SYSTEM_TREE_NODE.
    fn define_node(&mut self, data: &mut Bytes<'_>) {
        next(data.u32(), self.nodes as usize);
        self.string(data);
        self.string(data);
        let parent = data.u32();
        assert!(parent < self.nodes || parent == u32::MAX && self.nodes == 0);
        self.nodes += 1;
    }

    /// A SYSTEM_TREE_NODE_PROPERTY.
    fn define_node_property(&mut self, data: &mut Bytes<'_>) {
        assert!(data.u32() < self.nodes);
        let name = self.string(data).to_owned();
        let value = self.string(data).to_owned();
        assert_eq!(data.byte(), 11);
        assert_eq!(self.string(data), value, "{name}");
    }

    /// A LOCATION_GROUP.
    fn define_location_group(&mut self, data: &mut Bytes<'_>) {
        next(data.u32(), self.location_groups as usize);
        self.string(data);
        let kind = data.byte();
        assert!(data.u32() < self.nodes);
        let maker = data.u32();
        assert!(maker < self.location_groups || maker == u32::MAX);
        assert!(kind == 1 && maker == u32::MAX || kind == 2);
        self.location_groups += 1;
    }

    /// A LOCATION.
    fn define_location(&mut self, data: &mut Bytes<'_>) {
        assert_eq!(data.u64(), self.locations.len() as u64);
        let name = self.string(data).to_owned();
        self.locations.push((data.byte(), name));
        self.counts.push(data.u64());
        assert!(data.u32() < self.location_groups);
    }

    /// A REGION.
    fn define_region(&mut self, data: &mut Bytes<'_>) {
        next(data.u32(), self.regions.len());
        let name = self.string(data).to_owned();
        self.string(data);
        assert_eq!((data.byte(), data.u32(), data.u32(), data.u32()), (0, u32::MAX, 0, 0));
        self.string(data);
        assert!(data.byte() <= 38 && data.byte() <= 24);
        assert_eq!(data.u32(), 0);
        self.regions.push(name);
    }

    /// A GROUP.
    fn define_group(&mut self, data: &mut Bytes<'_>) {
        next(data.u32(), self.groups.len());
        self.string(data);
        data.byte();
        let members: Vec<u64> = (0..data.u32()).map(|_| data.u64()).collect();
        let (kind, paradigm) = (data.byte(), data.byte());
        let same = |g: &&(u8, u8, Vec<u64>)| g.0 == 4 && g.1 == paradigm;
        let list = self.groups.iter().find(same);
        let (limit, others) = match kind {
            4 => (self.locations.len(), list.is_some()),
            _ => (list.map_or(0, |g| g.2.len()), false),
        };
        assert!(!others, "two lists of one paradigm");
        assert!(members.iter().all(|m| *m < limit as u64));
        let mut sorted = members.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), members.len(), "a member is there twice");
        assert_eq!(data.u32(), 0);
        self.groups.push((kind, paradigm, members));
    }

    /// A COMM.
    fn define_communicator(&mut self, data: &mut Bytes<'_>) {
        next(data.u32(), self.communicators.len());
        self.string(data);
        let group = self.groups.get(data.u32() as usize).expect("a group");
        assert_eq!(group.0, 5);
        self.communicators.push(group.2.len() as u64);
        assert_eq!((data.u32(), data.u32()), (u32::MAX, 0));
    }

    /// An RMA_WIN.
    fn define_window(&mut self, data: &mut Bytes<'_>) {
        next(data.u32(), self.windows.len());
        self.string(data);
        let communicator = data.u32();
        assert!((communicator as usize) < self.communicators.len());
        self.windows.push(communicator);
        assert_eq!(data.u32(), 0);
    }

    /// A METRIC_MEMBER.
    fn define_member(&mut self, data: &mut Bytes<'_>) {
        next(data.u32(), self.members as usize);
        self.string(data);
        self.string(data);
        let kinds = (data.byte(), [0, 17, 33, 49].contains(&data.byte()), data.byte());
        assert_eq!(kinds, (0, true, 8));
        assert_eq!((data.byte(), data.byte()), (1, 0));
        self.string(data);
        self.members += 1;
    }

    /// A METRIC_CLASS.
    fn define_metric_class(&mut self, data: &mut Bytes<'_>) {
        next(data.u32(), self.metrics.len());
        let count = data.byte();
        (0..count).for_each(|_| assert!(data.u32() < self.members));
        self.metrics.push(count.into());
        assert_eq!((data.byte(), data.byte()), (2, 1));
    }

    /// A METRIC_INSTANCE.
    fn define_metric_instance(&mut self, data: &mut Bytes<'_>) {
        next(data.u32(), self.metrics.len());
        let members = *self.metrics.get(data.u32() as usize).expect("a class");
        let recorder = data.u64() as usize;
        assert_eq!(self.locations.get(recorder).expect("a location").0, 3);
        assert_eq!(data.byte(), 1);
        assert!(data.u64() < self.location_groups.into());
        self.metrics.push(members);
    }

    fn events_of(&mut self, location: usize, bytes: &[u8], chunk_size: u64) {
        let mut open = Open::default();
        let (mut time, mut events) = (None, 0);
        let of_metrics = self.locations[location].0 == 3;
        chunks(bytes, chunk_size, |first, last, chunk| {
            self.chunks += 1;
            assert_eq!(first, events + 1);
            let mut fresh = true;
            loop {
                match chunk.all.get(chunk.at) {
                    None | Some(0 | 2) => break,
                    Some(5) => {
                        chunk.byte();
                        let now = chunk.full(8);
                        assert!(time.is_none_or(|then| now >= then), "time runs backwards");
                        assert!(
                            now >= self.clock.0 && now - self.clock.0 <= self.clock.1,
                            "outside of the span"
                        );
                        time = Some(now);
                        fresh = false;
                    }
                    Some(6) => {
                        chunk.byte();
                        self.attributes_of(chunk.data());
                    }
                    Some(_) => {
                        assert!(!fresh, "an event without a time");
                        let kind = chunk.byte();
                        events += 1;
                        *self.by_kind.entry(kind).or_default() += 1;
                        assert_eq!(of_metrics, kind == 31, "kind {kind}");
                        self.event(kind, location, chunk, &mut open);
                    }
                }
            }
            assert_eq!(last, events);
        });
        open.end();
        assert_eq!(events, self.counts[location], "{:?}", self.locations[location]);
        self.events += events;
        self.events_by_location.push(events);
    }

    fn event(&mut self, kind: u8, location: usize, chunk: &mut Bytes<'_>, open: &mut Open) {
        match kind {
            12 => {
                let region = chunk.u32();
                assert!((region as usize) < self.regions.len());
                open.regions.push(region);
            }
            13 => assert_eq!(open.regions.pop(), Some(chunk.u32()), "regions do not nest"),
            15 | 19 => self.message(kind == 15, location, chunk.data(), open),
            16 | 17 => {
                let mut data = chunk.data();
                open.request(kind == 17, data.u64());
                data.end();
            }
            22 => {
                chunk.data().end();
                open.collectives += 1;
            }
            23 => {
                open.collectives -= 1;
                self.collective(chunk.data());
            }
            31 => self.metric(chunk.data()),
            46 | 47 => {
                let mut data = chunk.data();
                let window = data.u32();
                let ranks = self.communicators[self.windows[window as usize] as usize];
                assert!(u64::from(data.u32()) < ranks);
                data.u64();
                open.accesses.push((window, data.u64()));
                data.end();
            }
            49 => {
                let mut data = chunk.data();
                let over = (data.u32(), data.u64());
                let at = open.accesses.iter().position(|a| *a == over).expect("an access");
                open.accesses.remove(at);
                data.end();
            }
            other => panic!("no event has the number {other}"),
        }
    }

    /// An MPI_ISEND or MPI_IRECV.
    fn message(&mut self, sends: bool, location: usize, mut data: Bytes<'_>, open: &mut Open) {
        let peer = data.u32();
        let communicator = data.u32();
        assert!(u64::from(peer) < self.communicators[communicator as usize]);
        assert_eq!(data.u32(), 0);
        self.messages.push((location, sends, communicator, peer, data.u64()));
        open.request(sends, data.u64());
        data.end();
    }

    /// An MPI_COLLECTIVE_END.
    fn collective(&self, mut data: Bytes<'_>) {
        assert!(data.byte() <= 22);
        let ranks = self.communicators[data.u32() as usize];
        let root = data.u32();
        assert!(root == u32::MAX || u64::from(root) < ranks);
        data.u64();
        data.u64();
        data.end();
    }

    /// A METRIC.
    fn metric(&self, mut data: Bytes<'_>) {
        let values = self.metrics[data.u32() as usize];
        assert_eq!(u64::from(data.byte()), values);
        for _ in 0..values {
            assert_eq!(data.byte(), 8);
            data.u64();
        }
        data.end();
    }

    fn attributes_of(&mut self, mut data: Bytes<'_>) {
        let count = data.u32();
        assert!(count > 0);
        for _ in 0..count {
            let attribute = data.u32();
            let ty = self.attributes[attribute as usize];
            assert_eq!(data.byte(), ty);
            match ty {
                4 if attribute == 1 => {
                    let value = data.u64();
                    self.bytes.push(value);
                }
                4 | 8 => _ = data.u64(),
                10 => _ = data.full(8),
                11 => _ = self.string(&mut data),
                other => panic!("no attribute is of type {other}"),
            }
        }
        data.end();
    }
}
