//! One data stream file, event by event.

mod event;

use super::data::DataFile;
use super::decode::{Decoder, State};
use super::error::{DecodeError, PacketDamage, StreamError};
use super::frames::{MAX_PACKET, Stop, TOO_LONG};
use super::packet::{BadHead, Head, PacketInfo, head};
use super::plan::shows_clock;
use super::position::Position;
use super::quick::QuickHeader;
use super::source::Source;
use super::stream_plan::StreamPlan;
use super::trace::Trace;
use crate::bits::align_up;
use crate::class::StreamClass;

pub use event::Event;

/// How much further than to a packet's start one has to look to know it as one.
const GLANCE: usize = 4096;

/// How many events a reader that reads ahead finds at a time: more would not stay in the processor's first cache
/// where there are several readers.
const AHEAD: usize = 64;

/// What a stream says it has lost, up to where it has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that the tracer discarded.
    pub events: u64,
    /// Packets that are missing, by their numbers.
    pub packets: u64,
    /// Packets cut short or damaged here.
    pub damaged: u64,
}

/// What the events of a packet are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds<'t> {
    pub class: &'t StreamClass,
    pub plan: &'t StreamPlan,
}

/// Reads one data stream file.
///
/// It holds the state of one packet, never more; and of a compressed file its
/// bytes. After an error, the next call goes on with the next packet, if the file
/// still shows where that is.
#[derive(Debug)]
pub struct StreamReader<'t> {
    pub(super) trace: &'t Trace,
    file: &'t DataFile,
    source: Source<'t>,
    /// Number of the file that it is of, in a stream of several.
    segment: usize,
    /// Number of the next packet, where that is known without the one before.
    first: Option<u64>,
    /// Where the next packet starts.
    pub(super) next: u64,
    /// Where another reader takes over.
    limit: u64,
    pub(super) packet: Option<Head>,
    /// Of the last packet.
    kind: Option<Kinds<'t>>,
    /// Where its content ends, in whole bytes.
    end: usize,
    pub(super) state: State,
    /// In bits from the start of the packet.
    pos: u64,
    /// The event that was given last is at `at`; those behind it are of the same packet, and were read ahead.
    events: Vec<Position>,
    at: usize,
    /// How many are read at a time.
    most: usize,
    losses: Losses,
    /// Where the last packet starts of which it was said that it has another uuid.
    said: Option<u64>,
    /// Counters of the packet before.
    pub(super) before: Option<(Option<u64>, Option<u64>)>,
}

impl Trace {
    /// Returns a reader of one data stream file; none beyond the last.
    pub fn stream(&self, index: usize) -> Option<StreamReader<'_>> {
        self.files.get(index).map(|file| StreamReader::new(self, file))
    }

    /// Readers of all data stream files.
    pub fn streams(&self) -> impl Iterator<Item = StreamReader<'_>> {
        self.files.iter().map(|file| StreamReader::new(self, file))
    }
}

impl<'t> StreamReader<'t> {
    pub(super) fn new(trace: &'t Trace, file: &'t DataFile) -> Self {
        Self {
            trace,
            file,
            source: file.source(),
            segment: 0,
            first: None,
            next: 0,
            limit: u64::MAX,
            packet: None,
            kind: None,
            end: 0,
            state: State::default(),
            pos: 0,
            events: Vec::new(),
            at: 0,
            most: 1,
            losses: Losses::default(),
            said: None,
            before: None,
        }
    }

    /// Returns a reader of the packets between two offsets.
    pub(super) fn part(
        trace: &'t Trace,
        file: &'t DataFile,
        start: u64,
        limit: u64,
        before: Option<(Option<u64>, Option<u64>)>,
    ) -> Self {
        let (segment, source) = if start > 0 { file.source_at(start) } else { (0, file.source()) };
        // Counters begin anew with each segment.
        let begins = segment > 0 && file.border(segment) == Some(start);
        let (before, first) = if begins { (None, Some(file.first(segment))) } else { (before, None) };
        Self { source, segment, first, next: start, limit, before, ..Self::new(trace, file) }
    }

    /// The same reader, which finds several events of a packet at a time. What it gives is the same; it takes less time
    /// for who goes over all events, and more for who scans between them.
    pub fn reading_ahead(self) -> Self {
        Self { most: AHEAD, ..self }
    }

    /// Returns whether the packet that was opened last can be read without those before.
    pub(super) fn stands_alone(&self) -> bool {
        self.kind.is_some_and(|kind| kind.plan.clock.is_none() || shows_clock(kind.plan.context.as_ref()))
    }

    /// Returns the name of the file.
    pub fn name(&self) -> &'t str {
        &self.file.name
    }

    /// Returns the packet that the last event is of; none before the first and after the last.
    #[inline]
    pub fn packet(&self) -> Option<&PacketInfo> {
        self.packet.as_ref().map(|p| &p.info)
    }

    /// Returns whether all bytes of the packet are there.
    pub fn is_whole(&self) -> bool {
        self.packet.as_ref().is_some_and(|packet| !packet.cut)
    }

    /// Returns where in the stream the next packet starts, as far as is known.
    pub fn next_packet_at(&self) -> u64 {
        self.next
    }

    /// Passes over the rest of the packet, and gives the head of the next one.
    pub fn pass_packet(&mut self) -> Option<Result<PacketInfo, StreamError>> {
        self.leave_packet();
        match self.open_packet()? {
            Ok(()) => self.packet().copied().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    /// Returns what is lost so far. Complete once the stream has been read to its end.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Returns the next event; none at the end.
    #[inline]
    pub fn next_event(&mut self) -> Option<Result<Event<'_, 't>, StreamError>> {
        match self.advance()? {
            Ok(()) => self.current().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    /// Returns the event that the last call of [`Self::next_event`] gave.
    #[inline]
    pub fn current(&self) -> Option<Event<'_, 't>> {
        Some(Event::new(self, self.kind?, self.position()?))
    }

    /// Returns where that event is.
    #[inline]
    pub(super) fn position(&self) -> Option<&Position> {
        self.events.get(self.at)
    }

    /// Returns the time of the next event in ticks, if that was read ahead: it is of the same packet.
    #[inline]
    pub fn time_ahead(&self) -> Option<u64> {
        self.events.get(self.at + 1)?.timestamp
    }

    /// Goes to the next event if that was read ahead. Returns whether it was.
    #[inline]
    pub fn go_ahead(&mut self) -> bool {
        let is_there = self.at + 1 < self.events.len();
        self.at += usize::from(is_there);
        is_there
    }

    /// There is no event any more. What was read ahead is to be read again.
    pub(super) fn forget_events(&mut self) {
        if self.at + 1 < self.events.len()
            && let Some(last) = self.events.get(self.at)
        {
            self.pos = last.end;
            self.state.clock.set(last.timestamp.unwrap_or_else(|| self.state.clock.get()));
        }
        self.events.clear();
        self.at = 0;
    }

    /// Leaves the packet, and what was read of it.
    pub(super) fn leave_packet(&mut self) {
        self.packet = None;
        self.events.clear();
        self.at = 0;
    }

    /// Returns the bytes of the packet and behind it.
    #[inline]
    pub(super) fn data(&self) -> &[u8] {
        self.source.window()
    }

    /// Goes to the next event.
    #[inline]
    pub(super) fn advance(&mut self) -> Option<Result<(), StreamError>> {
        if self.go_ahead() {
            return Some(Ok(()));
        }
        self.events.clear();
        self.at = 0;
        match self.quick() {
            Some(()) => Some(Ok(())),
            None => self.advance_slowly(),
        }
    }

    /// Goes to the next event of the packet, and reads those behind it; none, and nothing done, where that
    /// takes the long way.
    fn quick(&mut self) -> Option<()> {
        self.packet.as_ref()?;
        let plan = self.kind?.plan;
        let header = plan.quick_header.as_ref()?;
        let data = self.source.window().get(..self.end)?;
        if !self.pos.is_multiple_of(8) {
            return None;
        }
        let mut at = usize::try_from(self.pos / 8).ok()?;
        if let Some(ends) = &plan.ends {
            let from = (at, self.state.clock.get());
            let (end, clock) = ends.find(data, from, (&mut self.events, self.most));
            self.state.clock.set(clock);
            at = end;
        }
        if self.events.is_empty() {
            // What a tag in another header leaves behind is of the last event that was read: so there is one.
            let (position, end) = quick_event(plan, header, data, at, &self.state)?;
            self.events.push(position);
            at = end;
        }
        self.pos = at as u64 * 8;
        Some(())
    }

    /// Returns where in the window the next event starts and the content ends, in bytes, if the
    /// packet is of this stream class.
    pub(super) fn scannable(&self, stream: usize) -> Option<(usize, usize)> {
        let packet = self.packet.as_ref().filter(|packet| packet.stream == stream)?;
        // What does not end at a byte, or in the file, is for the long way.
        let whole = packet.end.is_multiple_of(8) && self.pos.is_multiple_of(8);
        let at = usize::try_from(self.pos / 8).ok()?;
        whole.then_some((at, self.end))
    }

    /// The next event starts at this byte of the packet.
    pub(super) fn go_to(&mut self, at: usize) {
        self.pos = at as u64 * 8;
    }

    /// Each turn of the loop consumes a packet or returns.
    fn advance_slowly(&mut self) -> Option<Result<(), StreamError>> {
        loop {
            let Some(packet) = &self.packet else {
                if let Err(error) = self.open_packet()? {
                    self.losses.damaged += 1;
                    return Some(Err(error));
                }
                continue;
            };
            let (plan, end) = (self.kind?.plan, packet.end);
            let align = plan.event_header.as_ref().map_or(1, |h| h.align);
            if align_up(self.pos, align).is_none_or(|pos| pos >= end) {
                let packet = self.packet.take()?;
                if packet.cut {
                    self.losses.damaged += 1;
                    return Some(Err(self.cut_off(packet.info.size)));
                }
                continue;
            }
            match self.decode_event(plan, end) {
                Ok(()) => return Some(Ok(())),
                Err(source) => return self.lose_packet(source).map(Err),
            }
        }
    }

    /// Gives up the rest of the packet.
    #[cold]
    fn lose_packet(&mut self, source: DecodeError) -> Option<StreamError> {
        let packet = self.packet.take()?;
        self.losses.damaged += 1;
        let ends = matches!(source, DecodeError::PastEnd { .. } | DecodeError::Unterminated { .. });
        Some(if packet.cut && ends {
            self.cut_off(packet.info.size)
        } else {
            StreamError::Event {
                file: self.file.name.clone(),
                packet: packet.info.offset,
                offset: packet.info.offset + self.pos / 8,
                source,
            }
        })
    }

    /// Returns what ends the window too early. Drops it, and goes on behind if possible.
    #[cold]
    fn cut_off(&mut self, size: u64) -> StreamError {
        let (file, have) = (self.file.name.clone(), self.data().len() as u64);
        let offset = self.source.offset();
        let error = match &mut self.source {
            Source::Frames(frames) => {
                let reason = match frames.stop() {
                    Some(Stop::Broken(reason)) => Some(reason),
                    Some(Stop::TooLong) => Some(TOO_LONG),
                    Some(Stop::End | Stop::Cut) | None => None,
                };
                let (frame, resume) = (frames.frame(), frames.resume());
                reason.map(|reason| StreamError::Frame { file: file.clone(), offset: frame, reason, resume })
            }
            Source::Plain { .. } => None,
        };
        self.skip_window();
        error.unwrap_or(StreamError::Truncated { file, offset, have, size })
    }

    fn skip_window(&mut self) {
        self.next = self.source.offset() + self.data().len() as u64;
    }

    /// Goes to the end; or as far as it is known what stops the window there,
    /// which is still to be said.
    fn skip_rest(&mut self) {
        if let Source::Frames(frames) = &mut self.source
            && frames.stop().is_none()
        {
            frames.resume();
        }
        self.skip_window();
    }

    /// Opens the next packet; none at the end.
    pub(super) fn open_packet(&mut self) -> Option<Result<(), StreamError>> {
        if self.next >= self.limit {
            return None;
        }
        loop {
            self.source.seek(self.next);
            self.source.fill(1);
            if !self.data().is_empty() {
                return Some(self.read_head());
            }
            match self.source.stop() {
                Some(Stop::End) | None => self.go_on()?,
                Some(_) => return Some(Err(self.cut_off(0))),
            }
        }
    }

    /// Goes on with the next file of a stream of several, whose counters begin anew; none at the end.
    fn go_on(&mut self) -> Option<()> {
        let next = self.file.border(self.segment + 1)?;
        if next >= self.limit {
            return None;
        }
        (self.segment, self.source) = self.file.source_at(next);
        (self.next, self.before, self.first) = (next, None, Some(self.file.first(self.segment)));
        Some(())
    }

    /// Returns which of the files of a stream the last packet is of, from 0: in a series of traces each part has one.
    pub fn segment(&self) -> usize {
        self.segment
    }

    fn read_head(&mut self) -> Result<(), StreamError> {
        let offset = self.next;
        let packet = loop {
            let (data, complete) = (self.source.window(), self.source.stop().is_some());
            let more = data.len().saturating_mul(2);
            let need = match head(self.trace, data, offset, complete, &mut self.state) {
                Ok(packet) if packet.cut && !complete => {
                    usize::try_from(packet.info.size).unwrap_or(usize::MAX)
                }
                Err(bad) if bad.cut && !complete => more,
                packet => break packet,
            };
            self.source.fill(need);
        };
        if self.source.stop() == Some(Stop::TooLong) {
            return Err(self.cut_off(0));
        }
        let mut packet = packet.map_err(|bad| self.bad_head(offset, bad))?;
        if let Some(found) = packet.foreign
            && self.said.replace(offset) != Some(offset)
        {
            // Asked again, it is read.
            let (file, damage) = (self.file.name.clone(), PacketDamage::Uuid { found });
            return Err(StreamError::Packet { file, offset, damage, resume: Some(offset) });
        }
        let size = packet.info.size.min(self.data().len() as u64);
        self.next = offset + size;
        self.count_losses(&mut packet);
        self.pos = packet.events_at;
        self.end = usize::try_from(packet.end / 8).unwrap_or(usize::MAX);
        self.kind = Some(Kinds {
            class: &self.trace.class().streams[packet.stream],
            plan: &self.trace.plans[packet.stream],
        });
        self.packet = Some(packet);
        Ok(())
    }

    #[cold]
    fn bad_head(&mut self, offset: u64, bad: BadHead) -> StreamError {
        if bad.cut {
            return self.cut_off(0);
        }
        // A damaged head may have a damaged size too: trust it only where it
        // leads to the end of the file or to a packet.
        let border = self.source.frame_border();
        let claimed = bad.size.and_then(|size| offset.checked_add(size));
        let next = [claimed, border].into_iter().flatten().find(|&next| self.leads_on(next));
        match next {
            Some(next) => self.next = next,
            None => self.skip_rest(),
        }
        let on = |next: &u64| *next < self.source.offset() + self.data().len() as u64;
        StreamError::Packet {
            file: self.file.name.clone(),
            offset,
            damage: bad.damage,
            resume: next.filter(on),
        }
    }

    /// Returns whether at an offset there is a packet, or the end.
    fn leads_on(&mut self, offset: u64) -> bool {
        let forward = offset - self.source.offset();
        let Some(at) = usize::try_from(forward).ok().filter(|&at| at > 0) else {
            return false;
        };
        if at < MAX_PACKET - GLANCE {
            self.source.fill(at + GLANCE);
        }
        let Some(data) = self.data().get(at..) else {
            return false;
        };
        let stop = self.source.stop();
        if data.is_empty() {
            return stop.is_some();
        }
        let mut state = State::default();
        match head(self.trace, data, offset, stop.is_some(), &mut state) {
            Ok(_) => true,
            Err(bad) => !matches!(
                bad.damage,
                PacketDamage::Magic { .. } | PacketDamage::Decode(_) | PacketDamage::UnknownStream { .. }
            ),
        }
    }

    fn count_losses(&mut self, packet: &mut Head) {
        let info = &mut packet.info;
        let (most, seq) = self.before.unwrap_or((None, None));
        let goes_on = info.seq_num.zip(seq).is_some_and(|(now, last)| now > last);
        if let Some(now) = info.events_discarded {
            // The counter starts at 0 with the stream. Below that, it was read too early if the packets' numbers go
            // on, and else it starts anew.
            let most = most.unwrap_or(0);
            let anew = now < most && !goes_on;
            info.discarded_before = now.saturating_sub(if anew { 0 } else { most });
            info.most_discarded = Some(if anew { now } else { now.max(most) });
            self.losses.events = self.losses.events.saturating_add(info.discarded_before);
        }
        let expected = self.first.take().or_else(|| seq.map(|last| last.saturating_add(1)));
        if let (Some(now), Some(expected)) = (info.seq_num, expected) {
            info.missing_before = now.saturating_sub(expected);
            self.losses.packets = self.losses.packets.saturating_add(info.missing_before);
        }
        self.before = Some((info.most_discarded, info.seq_num));
    }

    fn decode_event(&mut self, plan: &StreamPlan, end: u64) -> Result<(), DecodeError> {
        let start = self.pos;
        let mut decoder =
            Decoder { data: self.source.window(), pos: start, end, state: &self.state, live: true, empty: 0 };
        self.state.event_id.set(None);
        if let Some(header) = &plan.event_header {
            decoder.skip(header)?;
        }
        let timestamp = plan.clock.map(|_| self.state.clock.get());
        let index = match self.state.event_id.get() {
            Some(id) => plan.by_id.get(id).ok_or(DecodeError::UnknownEvent { id })?,
            // Without ids there is one kind of event.
            None if plan.events.len() == 1 => 0,
            None => return Err(DecodeError::UnknownEvent { id: 0 }),
        };
        let event = &plan.events[index];
        let common_at = decoder.pos;
        if let Some(node) = &plan.event_context {
            decoder.skip(node)?;
        }
        let context_at = decoder.pos;
        if let Some(node) = &event.context {
            decoder.skip(node)?;
        }
        let fields_at = decoder.pos;
        decoder.skip(&event.fields)?;
        if decoder.pos == start {
            return Err(DecodeError::EmptyEvent { at: start });
        }
        self.pos = decoder.pos;
        self.events.push(Position {
            index,
            timestamp,
            header_at: start,
            common_at,
            context_at,
            fields_at,
            end: self.pos,
        });
        Ok(())
    }
}

/// Returns where the event is that has its header at byte `at`, and the byte where it ends; none, and nothing done
/// that counts, where that takes the long way.
#[inline(always)]
fn quick_event(
    plan: &StreamPlan,
    header: &QuickHeader,
    data: &[u8],
    at: usize,
    state: &State,
) -> Option<(Position, usize)> {
    let (id, clock, bytes) = header.read(data, at, state)?;
    let index = plan.by_id.get(id)?;
    let body = plan.events.get(index)?.quick.as_ref()?;
    let common = at + bytes;
    let fields = common + body.fields;
    let end = body.end(data, fields, state)?;
    state.clock.set(clock);
    let position = Position {
        index,
        timestamp: plan.clock.map(|_| clock),
        header_at: at as u64 * 8,
        common_at: common as u64 * 8,
        context_at: (common + body.context) as u64 * 8,
        fields_at: fields as u64 * 8,
        end: end as u64 * 8,
    };
    Some((position, end))
}
