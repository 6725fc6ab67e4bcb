//! What texts are encoded in.

/// What characters are encoded in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// Not a character.
    #[default]
    None,
    /// UTF-8.
    Utf8,
    /// ASCII.
    Ascii,
    /// UTF-16, most significant byte first. CTF 2 only, as are the following.
    Utf16Be,
    /// UTF-16, least significant byte first.
    Utf16Le,
    /// UTF-32, most significant byte first.
    Utf32Be,
    /// UTF-32, least significant byte first.
    Utf32Le,
}

impl Encoding {
    /// Bytes of a code unit, and so of the zero that ends a text.
    pub fn unit(self) -> usize {
        match self {
            Encoding::None | Encoding::Utf8 | Encoding::Ascii => 1,
            Encoding::Utf16Be | Encoding::Utf16Le => 2,
            Encoding::Utf32Be | Encoding::Utf32Le => 4,
        }
    }

    /// Returns the text that these bytes are; none if they are not valid.
    pub fn decode(self, bytes: &[u8]) -> Option<String> {
        if self.unit() == 1 {
            return std::str::from_utf8(bytes).ok().map(str::to_owned);
        }
        if !bytes.len().is_multiple_of(self.unit()) {
            return None;
        }
        let (pairs, quads) = (bytes.as_chunks::<2>().0, bytes.as_chunks::<4>().0);
        match self {
            Encoding::Utf16Be => from_utf16(pairs.iter().map(|&b| u16::from_be_bytes(b))),
            Encoding::Utf16Le => from_utf16(pairs.iter().map(|&b| u16::from_le_bytes(b))),
            Encoding::Utf32Be => quads.iter().map(|&b| char::from_u32(u32::from_be_bytes(b))).collect(),
            _ => quads.iter().map(|&b| char::from_u32(u32::from_le_bytes(b))).collect(),
        }
    }

    /// Returns the bytes of a text, without the zero at its end.
    pub fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Encoding::None | Encoding::Utf8 | Encoding::Ascii => text.as_bytes().to_vec(),
            Encoding::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            Encoding::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Encoding::Utf32Be => text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect(),
            Encoding::Utf32Le => text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect(),
        }
    }
}

fn from_utf16(units: impl Iterator<Item = u16>) -> Option<String> {
    char::decode_utf16(units).collect::<Result<String, _>>().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let all =
            [Encoding::Utf8, Encoding::Utf16Be, Encoding::Utf16Le, Encoding::Utf32Be, Encoding::Utf32Le];
        for encoding in all {
            for text in ["", "a", "é😀\u{7}"] {
                assert_eq!(encoding.decode(&encoding.encode(text)).as_deref(), Some(text));
            }
        }
        assert_eq!(Encoding::Utf16Le.encode("a"), [b'a', 0]);
        assert_eq!(Encoding::Utf32Be.encode("a"), [0, 0, 0, b'a']);
        assert_eq!(Encoding::Utf16Be.decode(&[0xd8, 0]), None, "half a pair");
        assert_eq!(Encoding::Utf16Be.decode(&[0]), None, "half a unit");
        assert_eq!(Encoding::Utf32Le.decode(&[0, 0, 0x11, 0]), None, "beyond Unicode");
    }
}
