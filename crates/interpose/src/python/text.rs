//! Texts of the interpreter in UTF-8.

use super::frames::Text;

/// Stands for what is no character, such as half a surrogate pair; and for what was cut off.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();
const CUT: &[u8] = "…".as_bytes();

/// At most `N` bytes of UTF-8.
pub(super) struct Utf8<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Utf8<N> {
    /// Encodes a text; of one that is too long the beginning, with three dots.
    pub fn of(text: Text<'_>) -> Self {
        let mut utf8 = Self { bytes: [0; N], length: 0 };
        for unit in text.bytes.chunks_exact(text.width) {
            let code = unit.iter().rev().fold(0, |code, byte| code << 8 | u32::from(*byte));
            let mut room = [0; 4];
            let encoded = match char::from_u32(code) {
                // A record's texts are of CTF, where NUL is the end.
                Some('\0') | None => REPLACEMENT,
                Some(character) => character.encode_utf8(&mut room).as_bytes(),
            };
            if utf8.length + encoded.len() > N - CUT.len() {
                utf8.push(CUT);
                break;
            }
            utf8.push(encoded);
        }
        utf8
    }

    fn push(&mut self, encoded: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + encoded.len()) {
            place.copy_from_slice(encoded);
            self.length += encoded.len();
        }
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded<const N: usize>(bytes: &[u8], width: usize) -> String {
        String::from_utf8(Utf8::<N>::of(Text { bytes, width }).bytes().to_vec()).expect("UTF-8")
    }

    #[test]
    fn each_width_is_encoded() {
        assert_eq!(encoded::<64>(b"train.py", 1), "train.py");
        assert_eq!(encoded::<64>(&[b'a', 0xe9], 1), "aé");
        assert_eq!(encoded::<64>(&[0x4b, 0x6d, 0x41, 0], 2), "测A");
        assert_eq!(encoded::<64>(&[0x00, 0xf6, 0x01, 0], 4), "😀");
        assert_eq!(encoded::<64>(&[0x00, 0xd8], 2), "\u{fffd}", "half a pair");
        assert_eq!(encoded::<64>(b"a\0b", 1), "a\u{fffd}b");
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        assert_eq!(encoded::<8>(b"abcde", 1), "abcde");
        assert_eq!(encoded::<8>(b"abcdef", 1), "abcde…");
        assert_eq!(encoded::<8>(&[0xe9; 3], 1), "éé…");
    }
}
