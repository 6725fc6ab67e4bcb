//! Events of a location, as bytes without their times.

use super::encode::{Encode, record};

const ATTRIBUTES: u8 = 6;
const ENTER: u8 = 12;
const LEAVE: u8 = 13;
const ISEND: u8 = 15;
const ISEND_COMPLETE: u8 = 16;
const IRECV_REQUEST: u8 = 17;
const IRECV: u8 = 19;
const COLLECTIVE_BEGIN: u8 = 22;
const COLLECTIVE_END: u8 = 23;
const METRIC: u8 = 31;
const RMA_PUT: u8 = 46;
const RMA_GET: u8 = 47;
const RMA_COMPLETE_BLOCKING: u8 = 49;

/// Types of values.
pub(super) mod types {
    /// Without a sign, 64 bits.
    pub const UINT64: u8 = 4;
    /// With one.
    pub const INT64: u8 = 8;
    /// A floating-point number.
    pub const DOUBLE: u8 = 10;
    /// A reference to a string.
    pub const STRING: u8 = 11;
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// The number of a string.
    Text(u32),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

impl Value {
    fn put(self, out: &mut Vec<u8>) {
        match self {
            Self::Text(string) => {
                out.byte(types::STRING);
                out.u32(string);
            }
            Self::Unsigned(value) => {
                out.byte(types::UINT64);
                out.u64(value);
            }
            Self::Signed(value) => {
                out.byte(types::INT64);
                out.i64(value);
            }
            Self::Float(value) => {
                out.byte(types::DOUBLE);
                out.full_u64(value.to_bits());
            }
        }
    }
}

/// What stands before an event that has attributes: their numbers and values.
fn attributes(out: &mut Vec<u8>, all: &[(u32, Value)]) {
    if all.is_empty() {
        return;
    }
    record(out, ATTRIBUTES, |data| {
        data.u32(u32::try_from(all.len()).unwrap_or(u32::MAX));
        for (attribute, value) in all {
            data.u32(*attribute);
            value.put(data);
        }
    });
}

/// The location enters a region.
#[inline]
pub(super) fn enter(out: &mut Vec<u8>, region: u32, with: &[(u32, Value)]) {
    attributes(out, with);
    // The number's own length is the record's.
    out.byte(ENTER);
    out.u32(region);
}

/// It leaves the region that it entered last.
#[inline]
pub(super) fn leave(out: &mut Vec<u8>, region: u32, with: &[(u32, Value)]) {
    attributes(out, with);
    out.byte(LEAVE);
    out.u32(region);
}

/// An access to the memory of another location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// Whether bytes come from the other one.
    pub get: bool,
    pub window: u32,
    /// The other one's rank in the window.
    pub remote: u32,
    pub bytes: u64,
    /// What the access and its end have in common.
    pub matching: u64,
}

/// An access begins.
pub(super) fn rma(out: &mut Vec<u8>, access: &Access) {
    record(out, if access.get { RMA_GET } else { RMA_PUT }, |data| {
        data.u32(access.window);
        data.u32(access.remote);
        data.u64(access.bytes);
        data.u64(access.matching);
    });
}

/// It is over.
pub(super) fn rma_complete(out: &mut Vec<u8>, access: &Access) {
    record(out, RMA_COMPLETE_BLOCKING, |data| {
        data.u32(access.window);
        data.u64(access.matching);
    });
}

/// An operation of a communicator's ranks begins.
pub(super) fn collective_begin(out: &mut Vec<u8>) {
    record(out, COLLECTIVE_BEGIN, |_| {});
}

/// What a collective was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Collective {
    pub operation: u8,
    pub communicator: u32,
    /// A rank, or [`super::encode::UNDEFINED`].
    pub root: u32,
    /// Bytes.
    pub sent: u64,
    pub received: u64,
}

/// It is over.
pub(super) fn collective_end(out: &mut Vec<u8>, about: &Collective) {
    record(out, COLLECTIVE_END, |data| {
        data.byte(about.operation);
        data.u32(about.communicator);
        data.u32(about.root);
        data.u64(about.sent);
        data.u64(about.received);
    });
}

/// A message between two ranks, as one of them has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub sends: bool,
    pub communicator: u32,
    /// The other one's rank.
    pub peer: u32,
    pub bytes: u64,
    /// What its beginning and its end have in common.
    pub request: u64,
}

impl Message {
    fn put(&self, out: &mut Vec<u8>, kind: u8) {
        record(out, kind, |data| {
            data.u32(self.peer);
            data.u32(self.communicator);
            // Without a tag: messages are distinguished by their order.
            data.u32(0);
            data.u64(self.bytes);
            data.u64(self.request);
        });
    }

    /// It is asked for.
    pub fn begin(&self, out: &mut Vec<u8>) {
        match self.sends {
            true => self.put(out, ISEND),
            false => record(out, IRECV_REQUEST, |data| data.u64(self.request)),
        }
    }

    /// It is done.
    pub fn end(&self, out: &mut Vec<u8>) {
        match self.sends {
            true => record(out, ISEND_COMPLETE, |data| data.u64(self.request)),
            false => self.put(out, IRECV),
        }
    }
}

/// Values of a metric, all with a sign.
pub(super) fn metric(out: &mut Vec<u8>, metric: u32, values: &[i64]) {
    record(out, METRIC, |data| {
        data.u32(metric);
        data.byte(values.len() as u8);
        for value in values {
            data.byte(types::INT64);
            // Its bits, as those of a number without a sign.
            data.u64(*value as u64);
        }
    });
}

/// The value of a metric that is a floating-point number.
pub(super) fn metric_of(out: &mut Vec<u8>, metric: u32, value: f64) {
    record(out, METRIC, |data| {
        data.u32(metric);
        data.byte(1);
        data.byte(types::DOUBLE);
        // Its bits, as those of a number without a sign.
        data.u64(value.to_bits());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out);
        out
    }

    /// What the OTF2 library 3.0.2 wrote for these.
    #[test]
    fn events_are_those_of_the_library() {
        assert_eq!(bytes(|out| enter(out, 0, &[])), [12, 0]);
        assert_eq!(bytes(|out| leave(out, 258, &[])), [13, 2, 2, 1]);
        let with = [(1, Value::Unsigned(70_000)), (0, Value::Text(3)), (2, Value::Signed(-5))];
        let list = [1, 3, 1, 1, 4, 3, 0x70, 0x11, 1, 0, 11, 1, 3, 1, 2, 8];
        let minus = [8, 0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let expected = [&[6, 25][..], &list, &minus, &[12, 2, 2, 1]].concat();
        assert_eq!(bytes(|out| enter(out, 258, &with)), expected);
        let access = Access { get: false, window: 1, remote: 2, bytes: 4096, matching: 9 };
        let data = [9, 1, 1, 1, 2, 2, 0, 16, 1, 9];
        assert_eq!(bytes(|out| rma(out, &access)), [&[46][..], &data].concat());
        assert_eq!(bytes(|out| rma(out, &Access { get: true, ..access })), [&[47][..], &data].concat());
        assert_eq!(bytes(|out| rma_complete(out, &access)), [49, 4, 1, 1, 1, 9]);
        assert_eq!(bytes(collective_begin), [22, 0]);
        let about = Collective { operation: 11, communicator: 4, root: u32::MAX, sent: 100, received: 200 };
        assert_eq!(bytes(|out| collective_end(out, &about)), [23, 8, 11, 1, 4, 0xff, 1, 100, 1, 200]);
        let message = Message { sends: true, communicator: 4, peer: 1, bytes: 300, request: 7 };
        let data = [10, 1, 1, 1, 4, 0, 2, 44, 1, 1, 7];
        assert_eq!(bytes(|out| message.begin(out)), [&[15][..], &data].concat());
        assert_eq!(bytes(|out| message.end(out)), [16, 2, 1, 7]);
        let message = Message { sends: false, ..message };
        assert_eq!(bytes(|out| message.begin(out)), [17, 2, 1, 7]);
        assert_eq!(bytes(|out| message.end(out)), [&[19][..], &data].concat());
        let two = bytes(|out| metric(out, 6, &[-3, 4]));
        let minus = [8, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(two, [&[31, 16, 1, 6, 2, 8][..], &minus, &[8, 1, 4]].concat());
    }
}
