//! What of a packet must be kept when the packet goes: found while its records are written, as only then their bounds
//! and numbers are known.

use std::collections::HashMap;

use hetrace_format::lasting::{CallPart, call_part, is_lasting};

/// A record in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Its time in nanoseconds.
    pub time: u64,
    /// Where it begins, in bytes of the packet.
    pub start: u32,
    /// Where it ends.
    pub end: u32,
}

/// What is to be known of a packet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Records that later ones need.
    pub lasting: Vec<Piece>,
    /// Functions whose calls ended in the packet and began before it, in this order.
    pub closed: Vec<usize>,
    /// Entries of calls that are open where it ends, the outermost first.
    pub opened: Vec<(usize, Piece)>,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Lasting,
    Entry(usize),
}

/// Takes notes of one stream.
#[derive(Debug)]
pub struct Noting {
    class: u32,
    /// Numbers that came, and whether their events last.
    lasting: HashMap<u16, bool>,
    /// The record that is being written: its time, where it begins.
    pending: Option<(What, u64, u32)>,
    notes: Notes,
}

impl Noting {
    /// For a stream of a class.
    pub fn new(class: u32) -> Self {
        Noting { class, lasting: HashMap::new(), pending: None, notes: Notes::default() }
    }

    /// A record begins here, and the one before ends.
    pub fn record(&mut self, id: u16, time: u64, at: usize) {
        self.settle(at);
        let what = match call_part(self.class, id) {
            Some(CallPart::Entry(function)) => What::Entry(function),
            Some(CallPart::Exit(function)) => return self.exit(function),
            None => {
                let class = self.class;
                match *self.lasting.entry(id).or_insert_with(|| is_lasting(class, id)) {
                    true => What::Lasting,
                    false => return,
                }
            }
        };
        self.pending = Some((what, time, at as u32));
    }

    fn exit(&mut self, function: usize) {
        let opened = &mut self.notes.opened;
        // Calls inside of one that ended have ended, too, whatever became of their exits.
        match opened.iter().rposition(|(open, _)| *open == function) {
            Some(at) => opened.truncate(at),
            None => {
                opened.clear();
                self.notes.closed.push(function);
            }
        }
    }

    fn settle(&mut self, at: usize) {
        let Some((what, time, start)) = self.pending.take() else { return };
        let piece = Piece { time, start, end: at as u32 };
        match what {
            What::Lasting => self.notes.lasting.push(piece),
            What::Entry(function) => self.notes.opened.push((function, piece)),
        }
    }

    /// The packet ends here. Returns what is to be known of it.
    pub fn take(&mut self, at: usize) -> Notes {
        self.settle(at);
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use hetrace_format::calls::{ERROR_TEXT_ID, entry_id};

    use super::*;

    #[test]
    fn what_is_open_and_what_lasts_is_known() {
        let mut noting = Noting::new(1);
        noting.record(entry_id(1) + 1, 5, 10); // began before
        noting.record(entry_id(2), 6, 20);
        noting.record(ERROR_TEXT_ID, 7, 30);
        noting.record(entry_id(3), 8, 40);
        noting.record(entry_id(3) + 1, 9, 50);
        noting.record(entry_id(4), 10, 60);
        let notes = noting.take(70);
        let piece = |time, start, end| Piece { time, start, end };
        assert_eq!(notes.closed, [1]);
        assert_eq!(notes.lasting, [piece(7, 30, 40)]);
        assert_eq!(notes.opened, [(2, piece(6, 20, 30)), (4, piece(10, 60, 70))]);
        // 4 ends, and so does 2, though the exit of what was called last was lost.
        noting.record(entry_id(5), 11, 10);
        noting.record(entry_id(2) + 1, 12, 20);
        assert_eq!(noting.take(30), Notes { closed: vec![2], ..Notes::default() });
        assert_eq!(noting.take(0), Notes::default());
    }
}
