//! As much of Protocol Buffers as it takes to write.

/// A message being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A number; a negative one as its 64 bits.
    pub fn varint(&mut self, field: u32, value: u64) {
        self.raw_varint(u64::from(field) << 3);
        self.raw_varint(value);
    }

    /// A number of eight bytes.
    pub fn fixed64(&mut self, field: u32, value: u64) {
        self.raw_varint(u64::from(field) << 3 | 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    pub fn string(&mut self, field: u32, text: &str) {
        self.raw_varint(u64::from(field) << 3 | 2);
        self.raw_varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Fields that are written already.
    pub fn append(&mut self, fields: &[u8]) {
        self.bytes.extend_from_slice(fields);
    }

    /// A message inside. Most are shorter than 128 bytes, so there is room for
    /// a length of one byte; what is longer moves.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        self.raw_varint(u64::from(field) << 3 | 2);
        let at = self.bytes.len();
        self.bytes.push(0);
        write(self);
        let length = self.bytes.len() - at - 1;
        if length < 0x80 {
            self.bytes[at] = length as u8;
            return;
        }
        let mut head = Message::default();
        head.raw_varint(length as u64);
        self.bytes.splice(at..=at, head.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_the_specification_has_them() {
        let mut m = Message::default();
        m.varint(1, 150);
        assert_eq!(m.bytes(), [0x08, 0x96, 0x01]);
        m.clear();
        m.message(3, |m| m.string(2, "testing"));
        assert_eq!(m.bytes(), b"\x1a\x09\x12\x07testing");
        m.clear();
        m.message(1, |m| m.string(2, &"x".repeat(200)));
        assert_eq!(m.bytes()[..6], [0x0a, 0xcb, 0x01, 0x12, 0xc8, 0x01]);
        assert_eq!(m.bytes().len(), 206);
    }
}
