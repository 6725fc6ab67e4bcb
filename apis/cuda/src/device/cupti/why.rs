//! Why CUPTI cannot be used.

/// The functions that can refuse.
const CALLS: [&str; 4] =
    ["cuptiGetVersion", "cuptiSubscribe", "cuptiActivityRegisterCallbacks", "cuptiActivityEnable"];

/// Why CUPTI cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unavailable {
    /// There is no driver by the name by which CUPTI looks for it.
    NoDriver,
    /// There is no libcupti, or none that can be loaded.
    NotFound,
    /// A function of CUPTI returned an error.
    Refused {
        /// Which one.
        call: &'static str,
        /// Its `CUptiResult`; -1: the library does not have the function.
        error: i32,
    },
    /// A version whose records are not known.
    TooOld {
        /// As `cuptiGetVersion` says it.
        version: u32,
    },
    /// The process is a child of one that uses CUDA, and cannot use it.
    Forked,
    /// Another thread is at it, or this one itself.
    Starting,
    /// It was used, and given up.
    GivenUp,
}

impl Unavailable {
    /// All of it in a word, never 0.
    pub(super) fn pack(self) -> u64 {
        let (kind, call, number) = match self {
            Unavailable::NotFound => (1, 0, 0),
            Unavailable::Refused { call, error } => {
                (2, CALLS.iter().position(|c| *c == call).unwrap_or(0) as u64, error as u32)
            }
            Unavailable::TooOld { version } => (3, 0, version),
            Unavailable::Forked => (4, 0, 0),
            Unavailable::Starting => (5, 0, 0),
            Unavailable::GivenUp => (6, 0, 0),
            Unavailable::NoDriver => (7, 0, 0),
        };
        u64::from(number) << 32 | call << 8 | kind
    }

    pub(super) fn unpack(word: u64) -> Unavailable {
        let number = (word >> 32) as u32;
        let call = CALLS.get((word >> 8) as usize & 0xff).copied().unwrap_or_default();
        match word & 0xff {
            2 => Unavailable::Refused { call, error: number as i32 },
            3 => Unavailable::TooOld { version: number },
            4 => Unavailable::Forked,
            5 => Unavailable::Starting,
            6 => Unavailable::GivenUp,
            7 => Unavailable::NoDriver,
            _ => Unavailable::NotFound,
        }
    }

    /// Writes the reason as a part of a sentence, as far as there is room, and
    /// returns how many bytes.
    pub fn text(&self, place: &mut [u8]) -> usize {
        let mut text = Text { place, length: 0 };
        match self {
            Unavailable::NoDriver => text.push("the driver is not loaded as libcuda.so.1"),
            Unavailable::NotFound => text.push("there is no libcupti (HETRACE_CUPTI=path names one)"),
            Unavailable::Refused { error: super::api::TAKEN, .. } => {
                text.push("another tool uses CUPTI already");
            }
            Unavailable::Refused { error: super::api::NOT_ALLOWED, .. } => {
                text.push("the driver lets only administrators use CUPTI");
            }
            Unavailable::Refused { call, error } => {
                text.push(call);
                text.push(" returned error ");
                text.number(*error);
            }
            Unavailable::TooOld { version } => {
                text.push("CUPTI's version ");
                text.number(*version as i32);
                text.push(" is older than CUDA 12");
            }
            Unavailable::Forked => text.push("the process was forked from one that uses CUDA"),
            Unavailable::Starting => text.push("CUPTI is being started by another call"),
            Unavailable::GivenUp => text.push("CUPTI was given up"),
        }
        text.length
    }
}

/// A text in the making.
struct Text<'p> {
    place: &'p mut [u8],
    length: usize,
}

impl Text<'_> {
    fn push(&mut self, text: &str) {
        for byte in text.bytes() {
            if let Some(place) = self.place.get_mut(self.length) {
                *place = byte;
                self.length += 1;
            }
        }
    }

    fn number(&mut self, number: i32) {
        let mut digits = [0u8; 10];
        let mut rest = number.unsigned_abs();
        let mut count = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            count += 1;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            self.push("-");
        }
        self.push(std::str::from_utf8(digits.get(10 - count..).unwrap_or_default()).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(why: Unavailable) -> String {
        let mut place = [0; 128];
        let length = why.text(&mut place);
        String::from_utf8(place[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_reason_survives_the_word() {
        let all = [
            Unavailable::NoDriver,
            Unavailable::NotFound,
            Unavailable::Refused { call: "cuptiActivityEnable", error: -1 },
            Unavailable::Refused { call: "cuptiGetVersion", error: 999 },
            Unavailable::TooOld { version: 17 },
            Unavailable::Forked,
            Unavailable::Starting,
            Unavailable::GivenUp,
        ];
        for why in all {
            assert_ne!(why.pack(), 0);
            assert_eq!(Unavailable::unpack(why.pack()), why);
        }
    }

    #[test]
    fn reasons_are_written_as_far_as_there_is_room() {
        let refused = Unavailable::Refused { call: "cuptiSubscribe", error: 15 };
        assert_eq!(text(refused), "cuptiSubscribe returned error 15");
        assert_eq!(
            text(Unavailable::Refused { call: "cuptiActivityEnable", error: -1 }),
            "cuptiActivityEnable returned error -1"
        );
        assert_eq!(
            text(Unavailable::Refused { call: "cuptiSubscribe", error: 39 }),
            "another tool uses CUPTI already"
        );
        assert_eq!(text(Unavailable::TooOld { version: 17 }), "CUPTI's version 17 is older than CUDA 12");
        assert_eq!(refused.text(&mut [0; 5]), 5);
    }
}
