//! Short texts on the stack.

/// At most `N` bytes; what does not fit is left out.
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Text<N> {
    pub(crate) fn new() -> Self {
        Text { bytes: [0; N], length: 0 }
    }

    pub(crate) fn push(&mut self, text: &[u8]) {
        for byte in text {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    pub(crate) fn number(&mut self, number: u64) {
        let mut divisor = 1u64;
        while number / divisor >= 10 {
            divisor *= 10;
        }
        while divisor > 0 {
            self.push(&[b'0' + (number / divisor % 10) as u8]);
            divisor /= 10;
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    fn shown<const N: usize>(parts: &[&[u8]], number: u64) -> Vec<u8> {
        let mut text = Text::<N>::new();
        parts.iter().for_each(|part| text.push(part));
        text.number(number);
        text.bytes().to_vec()
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 9, 10, 100, 1_234_567_890, u64::MAX - 1, u64::MAX] {
            assert_eq!(shown::<20>(&[], number), number.to_string().into_bytes());
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        assert_eq!(shown::<8>(&[b"arena-"], 12345), b"arena-12");
        assert_eq!(shown::<0>(&[b"arena-"], 1), b"");
        assert_eq!(shown::<6>(&[b"", b"arena-", b"x"], 1), b"arena-");
    }
}
