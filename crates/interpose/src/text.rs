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
