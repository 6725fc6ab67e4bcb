//! Packets of hetrace's form, event after event.

use thiserror::Error;

use super::form::{EventHeader, MAX_GAP, PREAMBLE_LEN, PROCNAME_LEN, PacketPreamble, stream_preamble};

/// What all packets of a stream have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamIdentity {
    /// Identity of the trace.
    pub uuid: [u8; 16],
    /// The stream class.
    pub stream_id: u32,
    /// Which stream of that class.
    pub stream_instance_id: u64,
    /// Process id.
    pub vpid: i32,
    /// Thread id.
    pub vtid: i32,
    /// Name of the process, filled up with NULs.
    pub procname: [u8; PROCNAME_LEN],
}

/// An event that does not fit.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketError {
    /// Before the event before it, which no reader takes; or [`MAX_GAP`] after it
    /// or more, in which case the packet has to be finished first.
    #[error("event at {timestamp} cannot follow one at {last} in the same packet")]
    Clock {
        /// The event's time.
        timestamp: u64,
        /// The time of the event before.
        last: u64,
    },
}

/// Collects events to packets.
///
/// ```
/// use hetrace_ctf::write::{PacketWriter, StreamIdentity};
///
/// let mut writer = PacketWriter::new(StreamIdentity::default());
/// writer.event(3, 1_000_000, &42u32.to_le_bytes())?;
/// let packet = writer.finish(4096);
/// assert_eq!(packet.len(), 4096);
/// # Ok::<(), hetrace_ctf::write::PacketError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PacketWriter {
    identity: StreamIdentity,
    /// The packet, with room for the preamble.
    packet: Vec<u8>,
    /// Time of the first and the last event.
    times: Option<(u64, u64)>,
    /// Time of the last event of the packets before.
    before: u64,
    seq_num: u64,
    discarded: u64,
    /// Whether `packet` was handed out and starts anew.
    finished: bool,
}

impl PacketWriter {
    /// Returns a stream without packets.
    pub fn new(identity: StreamIdentity) -> Self {
        Self {
            identity,
            packet: vec![0; PREAMBLE_LEN],
            times: None,
            before: 0,
            seq_num: 0,
            discarded: 0,
            finished: false,
        }
    }

    fn restart(&mut self) {
        if self.finished {
            self.packet.truncate(PREAMBLE_LEN);
            self.times = None;
            self.finished = false;
        }
    }

    /// Appends an event whose payload is laid out already, from a byte boundary.
    pub fn event(&mut self, id: u16, timestamp: u64, payload: &[u8]) -> Result<(), PacketError> {
        self.restart();
        // A packet's begin shows all bits of the clock: its first event may be late.
        let (first, last) = self.times.unwrap_or((timestamp, timestamp.max(self.before)));
        if timestamp.checked_sub(last).is_none_or(|gap| gap >= MAX_GAP) {
            return Err(PacketError::Clock { timestamp, last });
        }
        self.times = Some((first, timestamp));
        let header = EventHeader { id, timestamp };
        self.packet.extend_from_slice(&header.pack());
        self.packet.extend_from_slice(payload);
        Ok(())
    }

    /// Counts events that were lost before they came here.
    pub fn discard(&mut self, events: u64) {
        self.discarded = self.discarded.saturating_add(events);
    }

    /// Bytes of the packet up to now.
    pub fn len(&self) -> usize {
        if self.finished { PREAMBLE_LEN } else { self.packet.len() }
    }

    /// Returns whether the packet has no event yet.
    pub fn is_empty(&self) -> bool {
        self.len() == PREAMBLE_LEN
    }

    /// Ends the packet and gives its bytes, padded to a multiple of `align`
    /// bytes; the next event starts another.
    pub fn finish(&mut self, align: usize) -> &[u8] {
        self.restart();
        let content = self.packet.len();
        self.packet.resize(content.next_multiple_of(align.max(1)), 0);
        let (timestamp_begin, timestamp_end) = self.times.unwrap_or((self.before, self.before));
        self.before = timestamp_end;
        let id = &self.identity;
        let preamble = PacketPreamble {
            uuid: id.uuid,
            stream_id: id.stream_id,
            stream_instance_id: id.stream_instance_id,
            timestamp_begin,
            timestamp_end,
            content_bits: content as u64 * 8,
            packet_bits: self.packet.len() as u64 * 8,
            seq_num: self.seq_num,
            events_discarded: self.discarded,
            vpid: id.vpid,
            vtid: id.vtid,
            procname: id.procname,
        };
        self.packet[..PREAMBLE_LEN].copy_from_slice(&stream_preamble(&preamble));
        self.seq_num += 1;
        self.finished = true;
        &self.packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut writer = PacketWriter::new(StreamIdentity::default());
        assert_eq!(writer.event(u16::MAX, 100, &[0; 70_000]), Ok(()));
        let clock = |timestamp| Err(PacketError::Clock { timestamp, last: 100 });
        assert_eq!(writer.event(0, 99, &[]), clock(99));
        let late = 100 + (1 << 31);
        assert_eq!(writer.event(0, late, &[]), clock(late));
        assert_eq!(writer.event(0, late - 1, &[]), Ok(()));
        writer.finish(1);
        let early = writer.event(0, 99, &[]);
        let last = late - 1;
        assert_eq!(early, Err(PacketError::Clock { timestamp: 99, last }));
        assert_eq!(writer.event(0, 9 * late, &[]), Ok(()));
    }

    #[test]
    fn an_empty_packet_keeps_the_time() {
        let mut writer = PacketWriter::new(StreamIdentity::default());
        writer.event(0, 100, &[]).unwrap();
        writer.finish(1);
        assert!(writer.is_empty());
        let packet = writer.finish(64);
        assert_eq!(packet.len(), 128);
        assert_eq!(packet[32..40], 100u64.to_le_bytes());
        assert_eq!(packet[40..48], 100u64.to_le_bytes());
    }
}
