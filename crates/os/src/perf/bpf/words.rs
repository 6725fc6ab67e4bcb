//! What programs write: records, of words of eight bytes, into buffers.
//!
//! ```text
//!  a CPU's buffer, in an array of one value or in an arena, memory that the reader shares
//!    0 head u64    8 busy u64    16 dropped u64    24 mask u64    written by programs, on this CPU alone
//!    64 tail u64   72 wanted u64                                  written by the reader
//!    The mask is the size less one. The reader says which it wants, and the next program that finds the buffer empty
//!    takes it; 0 is no buffer.
//!    128 data: records one behind the other, modulo its size, which is a power of two; the last one goes on behind it
//!
//!  in a ring buffer the number of the CPU is before each record, in a word of its own
//!
//!  a record
//!    0 time u64    8 thread u32    12 process u32    16 what it is u8    17 its words u8    18 …
//!    entry      20 number of the call i32    24 its arguments, six words
//!    registers  an entry: 20 number of the call i32    24 r10 r9 r8 ax cx dx si di
//!    exit       20 number of the call i32    24 result i64
//!    fault      20 error code u32            24 address u64    32 instruction u64
//!    switch     18 preempted u8    19 how the thread ended u8    20 its state u32    24 next thread u32
//!               28 priority i16    30 the next thread's i16      32 name [u8; 16]    48 the next thread's [u8; 16]
//!    waking, wakeup, new    20 CPU u32    24 thread u32    28 priority i32    32 name [u8; 16]
//!    others     24 words that [`super::rare`] lists, of which a name takes two, and a text so many that the record has
//!               255 or more: then 20 has their number u32
//!    copy       24 the tracepoint's record, of which the first eight bytes are of no meaning
//! ```

/// A kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A system call begins.
    Entry = 0,
    /// A system call ends.
    Exit = 1,
    /// A page of the program's memory is missing.
    Fault = 2,
    /// A CPU goes to another thread.
    Switch = 3,
    /// A thread is to be woken.
    Waking = 4,
    /// A thread was woken.
    Wakeup = 5,
    /// A new thread is to run.
    New = 6,
    /// A system call begins, whose registers were copied.
    Registers = 7,
}

/// Whose memory a record is made in: programs that interrupt each other have not the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Of a program at a tracepoint that threads pass.
    Thread = 0,
    /// Of one that interrupts pass.
    Interrupt = 1,
    /// Of programs at tracepoints of perf's, of which the kernel runs one at a time on a CPU.
    Perf = 2,
}

impl Whose {
    /// How many there are.
    pub const ALL: u32 = 3;
}

/// What a record is that only wakes the reader.
pub const MARK: u8 = 8;
/// What a record is of the first, the second and so on of [`super::rare::RARE`].
pub const FIRST_RARE: u8 = 9;
/// What a record is that copies the first, the second and so on of some tracepoints' records.
pub const COPY: u8 = 64;

/// Words of a record before those of its kind.
pub const HEAD: usize = 3;
/// Most words of a record whose length is a byte; with this byte the length is beside the kind.
pub const SHORT_WORDS: usize = 255;
/// Most words of a record.
pub const MOST_WORDS: usize = HEAD + MOST_TEXT / 8 + 2;
/// Bytes of memory that a record with a text is made in, behind the number of its CPU: the kernel takes its length for a word
/// more than it can be.
pub const SCRATCH: usize = 8 * (MOST_WORDS + 2);
/// Most bytes of a text, with its NUL.
pub const MOST_TEXT: usize = 4096;
/// Words of an entry.
pub const ENTRY: usize = 9;
/// Words of an entry with registers.
pub const REGISTERS: usize = 11;
/// Words of an exit.
pub const EXIT: usize = 4;
/// Words of a page fault.
pub const FAULT: usize = 5;
/// Words of a switch.
pub const SWITCH: usize = 8;
/// Words of a wake-up.
pub const WAKE: usize = 6;

/// Where the first byte that is not written yet is, counted from the beginning.
pub const HEAD_AT: i16 = 0;
/// Whether a program is writing.
pub const BUSY_AT: i16 = 8;
/// How many records there was no room for.
pub const DROPPED_AT: i16 = 16;
/// The size of the data that is in use, less one.
pub const MASK_AT: i16 = 24;
/// Where the first byte that is not read yet is.
pub const TAIL_AT: i16 = 64;
/// The mask that is to be in use.
pub const WANTED_AT: i16 = 72;
/// Where data begins.
pub const DATA_AT: i32 = 128;
/// Bytes of a buffer beside its data: what is before it, and room for the longest record behind it.
pub const BESIDE: usize = 4096;
/// Bytes of data of the smallest buffer.
pub const LEAST: usize = 64 << 10;
/// Parts of a buffer, of which each wakes the reader.
pub const PARTS: usize = 1 << PARTS_BITS;
/// As bits.
pub const PARTS_BITS: i32 = 2;

/// Returns how many words the record has that words begin with; 0 if they are too few to know.
pub fn length(words: &[u64]) -> usize {
    let length = |word: &u64| match usize::from(word.to_le_bytes()[1]) {
        SHORT_WORDS => (word >> 32) as usize,
        length => length,
    };
    words.get(HEAD - 1).map_or(0, length)
}
