//! One stream file, packet by packet and event by event.

use hetrace_ctf::account::{Counter, PacketFacts, StreamAccount};
use hetrace_ctf::read::{PACKED, Packet, PacketReader, StreamError, StreamReader};

use super::Finding;
use crate::{Error, Watch, report};

/// Damages that are named in one stream; more are counted.
const NAMED: usize = 16;

/// What is known of a stream beforehand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known<'a> {
    /// What was written.
    Account(&'a StreamAccount),
    /// It is there from its first packet on.
    FromStart,
    Nothing,
}

/// What was seen of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// What is in it; its name is without the ending of a compressed one.
    pub account: StreamAccount,
    pub dropped: u64,
    /// Whether that is what the account says.
    pub is_as_written: bool,
    pub findings: Vec<Finding>,
    pub notes: Vec<String>,
}

impl Seen {
    /// Returns whether it has the packets of another stream.
    pub fn is_copy_of(&self, other: &StreamAccount) -> bool {
        let what = |a: &StreamAccount| (a.packets, a.bytes, a.checksum);
        self.account.packets > 0 && what(&self.account) == what(other)
    }

    /// Returns what of it is otherwise than it was written, if nothing else says so.
    pub fn differs(&self, written: &StreamAccount) -> Option<Finding> {
        let (name, own) = (&written.name, &self.account);
        let finding = |kind, text| Some(Finding::new(kind, name, format!("{name}: {text}")));
        if own.packets != written.packets {
            return finding(
                "packets-missing",
                format!("{} packets instead of the {} written", own.packets, written.packets),
            );
        }
        let events = own.events.zip(written.events).filter(|(own, written)| own != written);
        if let (Some((own, written)), true) = (events, self.findings.is_empty()) {
            return finding("events-differ", format!("{own} events instead of the {written} written"));
        }
        if self.is_as_written || !self.findings.is_empty() {
            return None;
        }
        finding("stream-changed", "its bytes changed since they were written: its events may be wrong".into())
    }
}

/// Returns so many packets, as text.
fn packets(n: u64) -> String {
    if n == 1 { "1 packet is".to_owned() } else { format!("{n} packets are") }
}

/// What happened so often, and where first.
#[derive(Debug, Default)]
struct Often {
    times: u64,
    first: u64,
}

impl Often {
    fn see(&mut self, at: u64) {
        if self.times == 0 {
            self.first = at;
        }
        self.times += 1;
    }
}

/// A stream on its way through.
#[derive(Debug, Default)]
struct Looker {
    name: String,
    findings: Vec<Finding>,
    damages: u64,
    /// Number, end and loss counter of the packet before.
    seq: Option<u64>,
    end: Option<u64>,
    discarded: u64,
    /// Number of the first packet.
    first: Option<u64>,
    /// Numbers that are left out, first and last of the first such gap.
    gap: Option<(u64, u64)>,
    missing: u64,
    repeated: Often,
    overlapping: Often,
    outside: Often,
    falling: Often,
}

/// Goes over all of a stream.
pub(super) fn look(stream: StreamReader<'_>, known: Known<'_>, watch: Watch<'_>) -> Result<Seen, Error> {
    let name = stream.name();
    let mut looker = Looker { name: name.to_owned(), ..Looker::default() };
    let mut counter = Counter::default();
    let mut reader = PacketReader::new(stream);
    while let Some(packet) = reader.next_packet() {
        let packet = match packet {
            Ok(packet) => packet,
            Err(error) => {
                looker.damage(&error);
                continue;
            }
        };
        report(watch, packet.info.size)?;
        looker.head(&packet);
        let events = looker.events(&packet, &mut reader);
        counter.packet(
            reader.bytes(),
            PacketFacts {
                class: packet.class.id,
                seq_num: packet.info.seq_num.unwrap_or(0),
                discarded: packet.info.events_discarded.unwrap_or(0),
                events: Some(events),
            },
        );
    }
    let plain = name.strip_suffix(PACKED).unwrap_or(name);
    let account = counter.account(plain, 0);
    let account =
        account.unwrap_or_else(|| StreamAccount { name: plain.to_owned(), ..StreamAccount::default() });
    Ok(looker.finish(account, known, reader.losses().events))
}

impl Looker {
    fn find(&mut self, kind: &'static str, text: String) {
        self.findings.push(Finding::new(kind, &self.name, format!("{}: {text}", self.name)));
    }

    fn damage(&mut self, error: &StreamError) {
        self.damages += 1;
        if self.damages <= NAMED as u64 {
            let kind = match error {
                StreamError::Truncated { .. } => "truncated",
                StreamError::Event { .. } => "event-damaged",
                _ => "packet-damaged",
            };
            self.findings.push(Finding::new(kind, &self.name, error.to_string()));
        }
    }

    fn head(&mut self, packet: &Packet<'_>) {
        let info = &packet.info;
        if let Some(now) = info.seq_num {
            self.first.get_or_insert(now);
            match self.seq {
                Some(last) if now <= last => self.repeated.see(now),
                Some(last) if now - last > 1 => {
                    self.missing = self.missing.saturating_add(now - last - 1);
                    self.gap.get_or_insert((last + 1, now - 1));
                }
                _ => {}
            }
            self.seq = Some(now);
        }
        if let Some(now) = info.events_discarded {
            if now < self.discarded {
                self.falling.see(info.offset);
            }
            self.discarded = now;
        }
        let (begin, end) = (info.timestamp_begin, info.timestamp_end);
        let before = |a: Option<u64>, b: Option<u64>| a.zip(b).is_some_and(|(a, b)| a < b);
        if before(begin, self.end) || before(end, begin) {
            self.overlapping.see(info.offset);
        }
        self.end = end;
    }

    /// Looks at the events of a packet; gives their number.
    fn events(&mut self, packet: &Packet<'_>, reader: &mut PacketReader<'_>) -> u64 {
        let (begin, end) = (packet.info.timestamp_begin, packet.info.timestamp_end);
        let (mut last, end) = (begin.unwrap_or(0), end.unwrap_or(u64::MAX));
        let mut events = 0;
        while let Some(event) = reader.next_event() {
            match event {
                Ok((event, _)) => {
                    events += 1;
                    let Some(time) = event.timestamp() else { continue };
                    if time < last || time > end {
                        self.outside.see(event.offset());
                    }
                    last = time;
                }
                Err(error) => self.damage(&error),
            }
        }
        events
    }

    fn finish(mut self, account: StreamAccount, known: Known<'_>, dropped: u64) -> Seen {
        let mut notes = Vec::new();
        let as_written = match known {
            Known::Account(written) => {
                let what = |a: &StreamAccount| (a.packets, a.bytes, a.checksum);
                what(written) == what(&account)
            }
            _ => false,
        };
        let expected = match known {
            Known::Account(written) => Some(written.first),
            Known::FromStart => Some(0),
            Known::Nothing => None,
        };
        if let (Some(first), Some(expected)) = (self.first, expected)
            && first > expected
        {
            let missing = first - expected;
            self.find("packets-missing", format!("{} missing at its beginning", packets(missing)));
        }
        if let Some((first, last)) = self.gap {
            let which = if first == last { format!("number {first}") } else { format!("{first} to {last}") };
            let text = format!("{} missing in between, first {which}", packets(self.missing));
            // What never came to disk is no damage: the manifest counts it.
            match as_written {
                true => notes.push(format!("{}: {text}: they were not written", self.name)),
                false => self.find("packets-missing", text),
            }
        }
        if let Known::Account(written) = known
            && let Some(last) = self.seq
            && let Some(missing) = written.packets.checked_sub(account.packets)
            && let gone = self.missing.saturating_add(self.first.unwrap_or(0).saturating_sub(written.first))
            && missing > gone
        {
            let text = format!("{} missing at its end, after number {last}", packets(missing - gone));
            self.find("packets-missing", text);
        }
        self.often();
        Seen { account, dropped, is_as_written: as_written, findings: self.findings, notes }
    }

    /// What may be wrong many times.
    fn often(&mut self) {
        let more = self.damages.saturating_sub(NAMED as u64);
        if more > 0 {
            self.find("packet-damaged", format!("{more} more damaged places"));
        }
        let all = [
            (
                "packet-repeated",
                "packets are repeated or out of order, first number",
                std::mem::take(&mut self.repeated),
            ),
            (
                "time-order",
                "packets start before the end of the previous one, or end before they start, first at byte",
                std::mem::take(&mut self.overlapping),
            ),
            (
                "time-order",
                "events are outside the time of their packet or before the previous event, first at byte",
                std::mem::take(&mut self.outside),
            ),
            (
                "counter",
                "times the counter of dropped events decreased, first at byte",
                std::mem::take(&mut self.falling),
            ),
        ];
        for (kind, what, often) in all {
            if often.times > 0 {
                self.find(kind, format!("{} {what} {}", often.times, often.first));
            }
        }
    }
}
