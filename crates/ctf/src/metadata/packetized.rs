//! Metadata in packets, as LTTng writes it.
//!
//! ```text
//!  0  magic u32 = 0x75D11D57    20  checksum u32          28  packet_size u32, bits   34  checksum scheme u8
//!  4  uuid [u8; 16]             24  content_size u32,bits 32  compression u8          35  major u8
//!                                   (header included)     33  encryption u8           36  minor u8
//! ```
//! The magic number determines the byte order; text without it is plain.

use std::borrow::Cow;

use super::MetadataError;
use crate::class::ByteOrder;

const MAGIC: u32 = 0x75D1_1D57;
const HEADER: usize = 37;

/// Returns the text inside metadata, in packets or not.
pub(super) fn text(bytes: &[u8]) -> Result<Cow<'_, [u8]>, MetadataError> {
    let order = match bytes.get(..4) {
        Some(b) if b == MAGIC.to_le_bytes() => ByteOrder::Little,
        Some(b) if b == MAGIC.to_be_bytes() => ByteOrder::Big,
        _ => return Ok(plain(bytes)),
    };
    let mut text = Vec::with_capacity(bytes.len());
    let mut offset = 0;
    while let Some(packet) = bytes.get(offset..).filter(|p| !p.is_empty()) {
        let bad = |content_bits, packet_bits| MetadataError::BadPacket {
            offset,
            content_bits,
            packet_bits,
            available: packet.len(),
        };
        let word = |at: usize| -> Option<u32> {
            let word: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
            Some(match order {
                ByteOrder::Little => u32::from_le_bytes(word),
                ByteOrder::Big => u32::from_be_bytes(word),
            })
        };
        if packet.len() < HEADER {
            // Behind whole packets: one that was only begun, or what somebody added. No text is in it.
            match offset {
                0 => return Err(bad(0, 0)),
                _ => break,
            }
        }
        let found = word(0).unwrap_or(0);
        if found != MAGIC {
            return Err(MetadataError::BadMagic { offset, found });
        }
        let (content_bits, packet_bits) = (word(24).unwrap_or(0), word(28).unwrap_or(0));
        let (compression, encryption) = (packet[32], packet[33]);
        if compression != 0 || encryption != 0 {
            return Err(MetadataError::Encoded { offset, compression, encryption });
        }
        let (content, size) = (content_bits as usize / 8, packet_bits as usize / 8);
        if content < HEADER || size < content {
            return Err(bad(content_bits, packet_bits));
        }
        // The last packet may lack its padding: the text is what counts.
        let Some(body) = packet.get(HEADER..content) else {
            return Err(bad(content_bits, packet_bits));
        };
        text.extend_from_slice(body);
        offset = offset.saturating_add(size);
    }
    Ok(Cow::Owned(text))
}

/// Returns how many bytes behind the last packet are no packet: one that was cut off in its header, or what
/// is not metadata; 0 of text that is not in packets.
pub(super) fn trailing(bytes: &[u8]) -> usize {
    let size_at = |packet: &[u8]| -> Option<[u8; 4]> { packet.get(28..32)?.try_into().ok() };
    let size_of: fn([u8; 4]) -> u32 = match bytes.get(..4) {
        Some(b) if b == MAGIC.to_le_bytes() => u32::from_le_bytes,
        Some(b) if b == MAGIC.to_be_bytes() => u32::from_be_bytes,
        _ => return 0,
    };
    let mut left = bytes;
    while left.len() >= HEADER {
        let size = size_at(left).map_or(0, |size| size_of(size) as usize / 8);
        left = left.get(size.max(HEADER)..).unwrap_or_default();
    }
    left.len()
}

/// Plain text: some writers end it with NULs.
fn plain(bytes: &[u8]) -> Cow<'_, [u8]> {
    let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    Cow::Borrowed(&bytes[..end])
}
