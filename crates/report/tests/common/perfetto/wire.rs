//! As much of Protocol Buffers as it takes to read.

/// The value of a field.
pub enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// The fields of a message with their numbers, in order.
pub fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (word, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(word.try_into().expect("eight bytes")))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (inner, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(inner)
            }
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, value));
    }
    all
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

/// The first number with this field number.
pub fn number(all: &[(u64, Field<'_>)], field: u64) -> Option<u64> {
    all.iter().find_map(|(f, v)| match v {
        Field::Number(n) if *f == field => Some(*n),
        _ => None,
    })
}

/// The first bytes with this field number.
pub fn bytes<'b>(all: &[(u64, Field<'b>)], field: u64) -> Option<&'b [u8]> {
    all.iter().find_map(|(f, v)| match v {
        Field::Bytes(b) if *f == field => Some(*b),
        _ => None,
    })
}

/// The same as text.
pub fn text(all: &[(u64, Field<'_>)], field: u64) -> String {
    String::from_utf8(bytes(all, field).unwrap_or(b"").to_vec()).expect("UTF-8")
}
