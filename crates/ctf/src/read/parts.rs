//! Parts of a data stream file, for several threads.

use super::data::DataFile;
use super::packet::PacketInfo;
use super::stream::StreamReader;
use super::trace::Trace;

/// Where a part begins.
struct Start {
    offset: u64,
    /// Counters of the packet before.
    before: Option<(Option<u64>, Option<u64>)>,
}

impl Trace {
    /// Readers of parts of a data stream file, at most `most`, of whole packets that
    /// follow each other and of about the same number of bytes. One after the other
    /// they give what [`Trace::stream`] gives, losses included.
    ///
    /// It is one part where packets cannot be read by themselves: where a packet does
    /// not show all bits of the clock at its begin, and in a compressed file whose frames
    /// do not say their sizes or do not begin with packets.
    /// What follows a damaged packet is one part. There is none beyond the last file.
    pub fn parts(&self, index: usize, most: usize) -> Vec<StreamReader<'_>> {
        let Some(file) = self.files.get(index) else {
            return Vec::new();
        };
        let first = Start { offset: 0, before: None };
        let starts = match file.is_compressed() {
            _ if most < 2 => vec![first],
            true => self.frame_starts(file, first, most),
            false => self.packet_starts(file, first, most),
        };
        let ends = starts.iter().skip(1).map(|s| s.offset).chain([u64::MAX]);
        starts
            .iter()
            .zip(ends)
            .map(|(s, end)| StreamReader::part(self, file, s.offset, end, s.before))
            .collect()
    }

    /// Looks at the heads of the packets only.
    fn packet_starts(&self, file: &DataFile, first: Start, most: usize) -> Vec<Start> {
        let mut starts = vec![first];
        let mut heads = StreamReader::new(self, file);
        while starts.len() < most {
            let (offset, before) = (heads.next, heads.before);
            let Some(Ok(())) = heads.open_packet() else {
                break;
            };
            let wanted = file.len() / most as u64 * starts.len() as u64;
            if offset > 0 && offset >= wanted && heads.stands_alone() {
                starts.push(Start { offset, before });
            }
        }
        starts
    }

    /// Looks at the frames, and at the packets around the borders of parts.
    fn frame_starts(&self, file: &DataFile, first: Start, most: usize) -> Vec<Start> {
        let mut starts = vec![first];
        // Only a magic number shows that a frame begins with a packet.
        let magic = self.class().packet_header.as_ref().is_some_and(|h| h.index("magic").is_some());
        let frames = if magic { file.frames() } else { &[] };
        for pair in frames.windows(2) {
            let [(before, _), (offset, at)] = *pair else { break };
            let wanted = file.len() / most as u64 * starts.len() as u64;
            if starts.len() >= most || (at as u64) < wanted || offset <= before {
                continue;
            }
            // The frame before shows the counters, and that packets end with it.
            let mut heads = StreamReader::part(self, file, before, u64::MAX, None);
            let mut sound = true;
            while sound && heads.next < offset {
                sound = matches!(heads.open_packet(), Some(Ok(())));
            }
            let counters = heads.before;
            sound &= heads.next == offset && matches!(heads.open_packet(), Some(Ok(())));
            if sound && heads.stands_alone() {
                starts.push(Start { offset, before: counters });
            }
        }
        starts
    }
}

impl Trace {
    /// Returns the heads of the packets of a data stream file, up to the first that is damaged;
    /// none where a packet cannot be read without those before, as in [`Self::parts`].
    pub fn heads(&self, index: usize) -> Option<impl Iterator<Item = PacketInfo>> {
        let file = self.files.get(index).filter(|file| !file.is_compressed())?;
        let mut reader = StreamReader::new(self, file);
        let mut stands = true;
        let heads = std::iter::from_fn(move || {
            let opened = stands && matches!(reader.open_packet(), Some(Ok(())));
            stands = opened && reader.stands_alone();
            reader.packet().copied().filter(|_| stands)
        });
        Some(heads)
    }

    /// Returns a reader of the packets of a data stream file from `first` on and before the offset
    /// `limit`; `before` is the packet before the first, for what is lost between them. In a
    /// compressed file a frame has to begin with the first.
    pub fn packets(
        &self,
        index: usize,
        first: &PacketInfo,
        limit: u64,
        before: Option<&PacketInfo>,
    ) -> Option<StreamReader<'_>> {
        let file = self.files.get(index)?;
        let begins = |file: &DataFile| file.frames().binary_search_by_key(&first.offset, |f| f.0).is_ok();
        if file.is_compressed() && !begins(file) {
            return None;
        }
        let before = before.map(|packet| (packet.most_discarded.or(packet.events_discarded), packet.seq_num));
        Some(StreamReader::part(self, file, first.offset, limit, before))
    }
}

/// The frames of a compressed data stream file of which each may begin with a packet.
#[derive(Debug)]
pub struct FrameHeads<'t> {
    trace: &'t Trace,
    file: &'t DataFile,
    len: u64,
}

impl Trace {
    /// Returns the frames of a data stream file; none if it is not compressed, if its frames do not
    /// say their sizes, or if nothing would show that one begins with a packet.
    pub fn frame_heads(&self, index: usize) -> Option<FrameHeads<'_>> {
        let file = self.files.get(index).filter(|file| file.is_compressed())?;
        self.class().packet_header.as_ref()?.index("magic")?;
        let starts = file.frames();
        let (len, rising) = (file.plain_len()?, starts.windows(2).all(|pair| pair[0].0 < pair[1].0));
        (rising && !starts.is_empty()).then_some(FrameHeads { trace: self, file, len })
    }
}

impl FrameHeads<'_> {
    /// Returns how many there are; at least one.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.file.frames().len()
    }

    /// Bytes of the plain stream.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// Returns where a frame starts in the plain stream.
    pub fn offset(&self, frame: usize) -> Option<u64> {
        self.file.frames().get(frame).map(|(plain, _)| *plain)
    }

    /// Returns the head of the packet that a frame begins with, which is decompressed for that; none if
    /// it does not begin with one that can be read without those before.
    pub fn head(&self, frame: usize) -> Option<PacketInfo> {
        let mut reader = StreamReader::part(self.trace, self.file, self.offset(frame)?, u64::MAX, None);
        let opened = matches!(reader.open_packet(), Some(Ok(()))) && reader.stands_alone();
        reader.packet().copied().filter(|_| opened)
    }

    /// Returns the head of the last packet of a frame; none if packets do not end where it ends.
    pub fn last(&self, frame: usize) -> Option<PacketInfo> {
        let end = self.offset(frame + 1).unwrap_or(self.len);
        let mut reader = StreamReader::part(self.trace, self.file, self.offset(frame)?, end, None);
        let mut last = None;
        while let Some(packet) = reader.pass_packet() {
            last = Some(packet.ok()?);
        }
        last.filter(|_| reader.next_packet_at() == end)
    }
}
