//! What records of a buffer say. A record begins with its own size, so one that is smaller than what is read is not ours.

/// `ROCPROFILER_BUFFER_CATEGORY_TRACING`.
const TRACING: u32 = 1;
/// `ROCPROFILER_BUFFER_TRACING_MEMORY_COPY` and `…_KERNEL_DISPATCH`.
pub const COPY: u32 = 10;
pub const DISPATCH: u32 = 11;

/// Where both kinds have the tool's id, and the times.
const EXTERNAL: usize = 24;
const START: usize = 40;
const END: usize = 48;
/// Where a copy has its bytes.
const BYTES: usize = 72;

/// Something that a device did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// The id that was pushed when it was enqueued; 0 if none was.
    pub id: u64,
    /// In nanoseconds of the clock of `rocprofiler_get_timestamp`.
    pub start: u64,
    pub end: u64,
    /// Bytes of a copy.
    pub bytes: u64,
}

/// Reads a record; `None` if it is of another kind, or nothing that can be one.
///
/// # Safety
/// `payload` is NULL, or a record of rocprofiler-sdk's of this category and kind.
pub unsafe fn read(category: u32, kind: u32, payload: *const u8) -> Option<Activity> {
    let needed = match kind {
        COPY => BYTES + 8,
        DISPATCH => END + 8,
        _ => return None,
    };
    if category != TRACING || payload.is_null() {
        return None;
    }
    // SAFETY: `at` is 0, where each record has its size, or below that size, as just tested.
    let word = |at: usize| unsafe { payload.add(at).cast::<u64>().read_unaligned() };
    if word(0) < needed as u64 {
        return None;
    }
    let bytes = if kind == COPY { word(BYTES) } else { 0 };
    let activity = Activity { id: word(EXTERNAL), start: word(START), end: word(END), bytes };
    (activity.start != 0 && activity.start <= activity.end).then_some(activity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(words: &[(usize, u64)]) -> [u64; 24] {
        let mut record = [0; 24];
        record[0] = 192;
        for (at, word) in words {
            record[at / 8] = *word;
        }
        record
    }

    fn of(category: u32, kind: u32, record: &[u64; 24]) -> Option<Activity> {
        // SAFETY: 192 bytes, as the first word says at most.
        unsafe { read(category, kind, record.as_ptr().cast()) }
    }

    #[test]
    fn both_kinds_are_read() {
        let bytes = record(&[(EXTERNAL, 7), (START, 100), (END, 300), (BYTES, 4096)]);
        assert_eq!(of(TRACING, COPY, &bytes), Some(Activity { id: 7, start: 100, end: 300, bytes: 4096 }));
        assert_eq!(of(TRACING, DISPATCH, &bytes), Some(Activity { id: 7, start: 100, end: 300, bytes: 0 }));
    }

    #[test]
    fn what_is_no_record_of_these_is_none() {
        let good = record(&[(START, 1), (END, 2)]);
        assert_eq!([of(0, COPY, &good), of(TRACING, 5, &good)], [None; 2]);
        // SAFETY: NULL is allowed.
        assert_eq!(unsafe { read(TRACING, COPY, std::ptr::null()) }, None);
        let mut small = good;
        small[0] = 56;
        assert!(of(TRACING, DISPATCH, &small).is_some() && of(TRACING, COPY, &small).is_none());
        for times in [[(START, 0), (END, 2)], [(START, 3), (END, 2)]] {
            assert_eq!(of(TRACING, DISPATCH, &record(&times)), None);
        }
    }
}
