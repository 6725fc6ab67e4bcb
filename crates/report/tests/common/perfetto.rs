//! A Perfetto file read back: as text, one packet a line, and checked for what
//! Perfetto asks of a file. It is what the time line wrote, not what Perfetto
//! makes of it: `timeline/processor.rs` asks that.

mod check;
mod processor;
mod wire;

pub use check::{Found, check};
pub use processor::Processor;

use std::collections::HashMap;
use std::fmt::Write;

use wire::{Field, bytes, fields, number, text};

/// A row.
#[derive(Clone, Debug)]
pub struct Track {
    pub uuid: u64,
    pub name: String,
    pub parent: Option<u64>,
    pub counter: bool,
    pub is_thread: bool,
}

/// What happens on a row.
#[derive(Clone, Debug)]
pub struct Event {
    pub time: u64,
    /// 1 begin, 2 end, 3 instant, 4 counter.
    pub kind: u64,
    pub track: u64,
    /// `category:name`; empty for ends and counters.
    pub name: String,
    pub flows: Vec<u64>,
    /// Flows that end here.
    pub ends: Vec<u64>,
    pub value: f64,
    /// ` name=value` for each annotation.
    pub notes: String,
}

/// A packet, as far as it matters.
#[derive(Clone, Debug)]
pub enum Item {
    Clock(u64),
    Track(Track),
    Event(Event),
}

/// A file, in its own order.
#[derive(Debug, Default)]
pub struct Drawing {
    pub items: Vec<Item>,
    /// Names by kind (1 category, 2 event, 3 annotation) and number.
    names: HashMap<(u64, u64), String>,
}

impl Drawing {
    pub fn tracks(&self) -> impl Iterator<Item = &Track> {
        self.items.iter().filter_map(|item| if let Item::Track(track) = item { Some(track) } else { None })
    }

    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.items.iter().filter_map(|item| if let Item::Event(event) = item { Some(event) } else { None })
    }
}

/// The file's packets.
pub fn parse(file: &[u8]) -> Drawing {
    let mut drawing = Drawing::default();
    for (field, packet) in fields(file) {
        assert_eq!(field, 1);
        let Field::Bytes(packet) = packet else { panic!("a packet is a message") };
        drawing.packet(&fields(packet));
    }
    drawing
}

/// The file as text.
pub fn read(file: &[u8]) -> String {
    let drawing = parse(file);
    check(&drawing);
    let (mut out, mut names, mut flows) = (String::new(), HashMap::new(), HashMap::new());
    for item in &drawing.items {
        match item {
            Item::Clock(id) => {
                let _ = writeln!(out, "clock {id}");
            }
            Item::Track(track) => {
                let parent = track.parent.map(|p| names.get(&p).expect("a known parent"));
                let parent = parent.map(|p| format!(" of {p}")).unwrap_or_default();
                let sort = if track.counter { "counter" } else { "track" };
                let _ = writeln!(out, "{sort} [{}]{parent}", track.name);
                names.insert(track.uuid, track.name.clone());
            }
            Item::Event(event) => line(&mut out, &names[&event.track], event, &mut flows),
        }
    }
    out
}

fn line(out: &mut String, track: &str, event: &Event, flows: &mut HashMap<u64, usize>) {
    let Event { time, .. } = event;
    if event.kind == 4 {
        let _ = writeln!(out, "{time} = [{track}] {}", event.value);
        return;
    }
    let sign = ["?", ">", "<", "!"][event.kind as usize];
    let _ = write!(out, "{time} {sign} [{track}]");
    if !event.name.is_empty() {
        let _ = write!(out, " {}", event.name);
    }
    for (all, word) in [(&event.flows, ""), (&event.ends, " ends")] {
        for flow in all {
            // Numbered as they appear.
            let next = flows.len() + 1;
            let flow = *flows.entry(*flow).or_insert(next);
            let _ = write!(out, " (flow {flow}{word})");
        }
    }
    let _ = writeln!(out, "{}", event.notes);
}

impl Drawing {
    fn packet(&mut self, packet: &[(u64, Field<'_>)]) {
        assert_eq!(number(packet, 10), Some(1), "every packet is of the sequence");
        if let Some(snapshot) = bytes(packet, 6) {
            self.items.push(Item::Clock(number(&fields(snapshot), 2).unwrap_or(0)));
        }
        if let Some(data) = bytes(packet, 12) {
            for (kind, name) in fields(data) {
                let Field::Bytes(name) = name else { panic!("a name is a message") };
                let name = fields(name);
                let key = (kind, number(&name, 1).expect("a number"));
                let old = self.names.insert(key, text(&name, 2));
                assert!(old.is_none(), "a name is written once");
            }
        }
        if let Some(track) = bytes(packet, 60) {
            self.items.push(Item::Track(track_of(&fields(track))));
        }
        if let Some(event) = bytes(packet, 11) {
            let time = number(packet, 8).expect("a time");
            let event = self.event(time, &fields(event));
            self.items.push(Item::Event(event));
        }
    }

    fn event(&self, time: u64, event: &[(u64, Field<'_>)]) -> Event {
        let name = |kind, field| {
            let number = number(event, field)?;
            Some(self.names.get(&(kind, number)).expect("a known name").as_str())
        };
        let double = number(event, 44).map(f64::from_bits);
        let mut found = Event {
            time,
            kind: number(event, 9).expect("a type"),
            track: number(event, 11).expect("a track"),
            name: String::new(),
            flows: Vec::new(),
            ends: Vec::new(),
            value: double.unwrap_or_else(|| number(event, 30).unwrap_or(0) as i64 as f64),
            notes: String::new(),
        };
        if let (Some(name), Some(category)) = (name(2, 10), name(1, 3)) {
            found.name = format!("{category}:{name}");
        }
        for (field, value) in event {
            match (field, value) {
                (4, Field::Bytes(note)) => {
                    let note = fields(note);
                    let name = self.names.get(&(3, number(&note, 1).expect("a name"))).expect("known");
                    let _ = write!(found.notes, " {name}={}", annotation(&note));
                }
                (47, Field::Number(flow)) => found.flows.push(*flow),
                (48, Field::Number(flow)) => found.ends.push(*flow),
                _ => {}
            }
        }
        found
    }
}

fn track_of(track: &[(u64, Field<'_>)]) -> Track {
    let mut name = text(track, 2);
    let (process, thread) = (bytes(track, 3).map(fields), bytes(track, 4).map(fields));
    if let Some(process) = &process {
        let pid = number(process, 1).unwrap_or(0);
        name = format!("process {pid} {}", text(process, 6));
    }
    if let Some(thread) = &thread {
        let [pid, tid] = [1, 2].map(|f| number(thread, f).unwrap_or(0));
        name = format!("thread {pid}/{tid} {}", text(thread, 5));
    }
    let counter = bytes(track, 8).map(fields);
    if let Some(unit) = counter.as_ref().map(|c| text(c, 6)).filter(|unit| !unit.is_empty()) {
        name = format!("{name}, {unit}");
    }
    Track {
        uuid: number(track, 1).expect("a number"),
        name,
        parent: number(track, 5),
        counter: counter.is_some(),
        is_thread: thread.is_some(),
    }
}

fn annotation(note: &[(u64, Field<'_>)]) -> String {
    if let Some(n) = number(note, 3) {
        return n.to_string();
    }
    if let Some(n) = number(note, 4) {
        return (n as i64).to_string();
    }
    if let Some(n) = number(note, 5) {
        return f64::from_bits(n).to_string();
    }
    if let Some(n) = number(note, 7) {
        return format!("{n:#x}");
    }
    let elements = note.iter().filter_map(|(field, value)| match (field, value) {
        (12, Field::Bytes(element)) => Some(annotation(&fields(element))),
        _ => None,
    });
    let elements: Vec<String> = elements.collect();
    if elements.is_empty() { text(note, 6) } else { format!("[{}]", elements.join(", ")) }
}
