//! A Perfetto file as text, one packet a line: what the time line wrote, not
//! what Perfetto makes of it.

use std::collections::HashMap;
use std::fmt::Write;

/// A field: its number and its value.
enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// The fields of a message, in order.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (word, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(word.try_into().expect("eight bytes")))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(inner)
            }
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, value));
    }
    all
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

fn number(all: &[(u64, Field<'_>)], field: u64) -> Option<u64> {
    all.iter().find_map(|(f, v)| match v {
        Field::Number(n) if *f == field => Some(*n),
        _ => None,
    })
}

fn bytes<'b>(all: &[(u64, Field<'b>)], field: u64) -> Option<&'b [u8]> {
    all.iter().find_map(|(f, v)| match v {
        Field::Bytes(b) if *f == field => Some(*b),
        _ => None,
    })
}

fn text(all: &[(u64, Field<'_>)], field: u64) -> String {
    String::from_utf8(bytes(all, field).unwrap_or(b"").to_vec()).expect("UTF-8")
}

#[derive(Default)]
struct Reader {
    out: String,
    tracks: HashMap<u64, String>,
    /// By kind (1 category, 2 event, 3 annotation) and number.
    names: HashMap<(u64, u64), String>,
    /// Flows, numbered as they appear.
    flows: HashMap<u64, usize>,
}

/// The file as text.
pub fn read(file: &[u8]) -> String {
    let mut reader = Reader::default();
    for (field, packet) in fields(file) {
        assert_eq!(field, 1);
        let Field::Bytes(packet) = packet else { panic!("a packet is a message") };
        reader.packet(&fields(packet));
    }
    reader.out
}

impl Reader {
    fn packet(&mut self, packet: &[(u64, Field<'_>)]) {
        assert_eq!(number(packet, 10), Some(1), "every packet is of the sequence");
        if let Some(snapshot) = bytes(packet, 6) {
            let snapshot = fields(snapshot);
            let _ = writeln!(self.out, "clock {}", number(&snapshot, 2).unwrap_or(0));
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
            self.track(&fields(track));
        }
        if let Some(event) = bytes(packet, 11) {
            let time = number(packet, 8).expect("a time");
            self.event(time, &fields(event));
        }
    }

    fn track(&mut self, track: &[(u64, Field<'_>)]) {
        let mut name = text(track, 2);
        if let Some(process) = bytes(track, 3).map(fields) {
            let pid = number(&process, 1).unwrap_or(0);
            name = format!("process {pid} {}", text(&process, 6));
        }
        if let Some(thread) = bytes(track, 4).map(fields) {
            let [pid, tid] = [1, 2].map(|f| number(&thread, f).unwrap_or(0));
            name = format!("thread {pid}/{tid} {}", text(&thread, 5));
        }
        let parent = number(track, 5).map(|p| self.tracks.get(&p).expect("a known parent"));
        let parent = parent.map(|p| format!(" of {p}")).unwrap_or_default();
        let _ = writeln!(self.out, "track [{name}]{parent}");
        let uuid = number(track, 1).expect("a number");
        assert!(self.tracks.insert(uuid, name).is_none(), "tracks have numbers of their own");
    }

    fn event(&mut self, time: u64, event: &[(u64, Field<'_>)]) {
        let track = number(event, 11).and_then(|t| self.tracks.get(&t)).expect("a known track");
        let name = |kind, field| {
            let number = number(event, field)?;
            Some(self.names.get(&(kind, number)).expect("a known name").as_str())
        };
        let sign = ["?", ">", "<", "!"][number(event, 9).unwrap_or(0) as usize];
        let _ = write!(self.out, "{time} {sign} [{track}]");
        if let (Some(name), Some(category)) = (name(2, 10), name(1, 3)) {
            let _ = write!(self.out, " {category}:{name}");
        }
        for (field, value) in event {
            match (field, value) {
                (4, Field::Bytes(note)) => {
                    let note = fields(note);
                    let name = self.names.get(&(3, number(&note, 1).expect("a name"))).expect("known");
                    let _ = write!(self.out, " {name}={}", annotation(&note));
                }
                (47, Field::Number(flow)) => {
                    let next = self.flows.len() + 1;
                    let flow = *self.flows.entry(*flow).or_insert(next);
                    let _ = write!(self.out, " (flow {flow})");
                }
                _ => {}
            }
        }
        self.out.push('\n');
    }
}

fn annotation(note: &[(u64, Field<'_>)]) -> String {
    if let Some(n) = number(note, 3) {
        return n.to_string();
    }
    if let Some(n) = number(note, 4) {
        return (n as i64).to_string();
    }
    if let Some(n) = number(note, 7) {
        return format!("{n:#x}");
    }
    text(note, 6)
}
