//! Instructions of BPF, and programs made of them.
//!
//! ```text
//!  0 operation u8   1 registers: destination in the lower half, source in the upper   2 offset i16   4 number i32
//! ```
//! A program is a few dozen of them (`Documentation/bpf/standardization/instruction-set.rst` of the kernel), so
//! they are written here rather than compiled: no compiler is needed to build hetrace.

use std::os::fd::{AsRawFd, BorrowedFd};

/// A register: `r0` has results, `r1` to `r5` arguments, `r6` to `r9` outlive calls, `r10` is the stack's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct R(pub u8);

/// A function of the kernel (`enum bpf_func_id`). The license of the programs is as some of them ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Finds the value of a key.
    Lookup = 1,
    /// CLOCK_MONOTONIC in nanoseconds.
    Time = 5,
    /// The number of the CPU.
    Cpu = 8,
    /// The process and the thread that run, in the upper and the lower half.
    Current = 14,
    /// The name of the thread that runs.
    Name = 16,
    /// Copies memory of the kernel.
    Read = 113,
    /// Copies text of the kernel up to its NUL. Returns how many bytes.
    ReadText = 115,
    /// Copies a record of any length into a ring buffer.
    Output = 130,
    /// Makes room in a ring buffer.
    Reserve = 131,
    /// Makes what was written there visible.
    Submit = 132,
    /// Says how many bytes of a ring buffer are not read yet.
    Query = 134,
}

/// A place to jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// How many bytes are loaded or stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// One.
    Byte = 0x10,
    /// Two.
    Half = 0x08,
    /// Four.
    Word = 0x00,
    /// Eight.
    Double = 0x18,
}

/// What a jump depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum If {
    /// Equal.
    Equal = 0x10,
    /// Not equal.
    Differs = 0x50,
    /// Less, of numbers without a sign.
    Less = 0xa0,
    /// Not less, of numbers without a sign.
    NotLess = 0x30,
}

/// A program.
#[derive(Debug, Default)]
pub struct Code {
    instructions: Vec<[u8; 8]>,
    /// Where labels stand.
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Code {
    fn put(&mut self, operation: u8, to: R, from: R, offset: i16, number: i32) {
        let mut bytes = [operation, from.0 << 4 | to.0, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
        bytes[4..].copy_from_slice(&number.to_ne_bytes());
        self.instructions.push(bytes);
    }

    /// `to = from`.
    pub fn copy(&mut self, to: R, from: R) {
        self.put(0xbf, to, from, 0, 0);
    }

    /// `to =` the lower half of `from`, with zeros above it.
    pub fn copy_half(&mut self, to: R, from: R) {
        self.put(0xbc, to, from, 0, 0);
    }

    /// `to += from`.
    pub fn add_register(&mut self, to: R, from: R) {
        self.put(0x0f, to, from, 0, 0);
    }

    /// `to -= from`.
    pub fn subtract(&mut self, to: R, from: R) {
        self.put(0x1f, to, from, 0, 0);
    }

    /// `to = number`.
    pub fn set(&mut self, to: R, number: i32) {
        self.put(0xb7, to, R(0), 0, number);
    }

    /// `to += number`.
    pub fn add(&mut self, to: R, number: i32) {
        self.put(0x07, to, R(0), 0, number);
    }

    /// `to &= number`, which is not negative.
    pub fn and(&mut self, to: R, number: i32) {
        self.put(0x57, to, R(0), 0, number);
    }

    /// `to >>= bits`, with zeros above.
    pub fn shift_right(&mut self, to: R, bits: i32) {
        self.put(0x77, to, R(0), 0, bits);
    }

    /// `to *= number`, of lower halves, with zeros above.
    pub fn multiply_half(&mut self, to: R, number: i32) {
        self.put(0x24, to, R(0), 0, number);
    }

    /// `to += number`, of lower halves, with zeros above.
    pub fn add_half(&mut self, to: R, number: i32) {
        self.put(0x04, to, R(0), 0, number);
    }

    /// `to &= from`.
    pub fn and_register(&mut self, to: R, from: R) {
        self.put(0x5f, to, from, 0, 0);
    }

    /// `to`, an address of an arena as its user has it, becomes one that can be loaded from and stored to.
    pub fn in_arena(&mut self, to: R) {
        // BPF_ADDR_SPACE_CAST: from address space 1 to 0.
        self.put(0xbf, to, to, 1, 1);
    }

    /// `to = *(from + offset)`.
    pub fn load(&mut self, size: Size, to: R, from: R, offset: i16) {
        self.put(0x61 | size as u8, to, from, offset, 0);
    }

    /// `*(to + offset) = from`.
    pub fn store(&mut self, size: Size, to: R, offset: i16, from: R) {
        self.put(0x63 | size as u8, to, from, offset, 0);
    }

    /// `*(to + offset) = number`.
    pub fn store_number(&mut self, size: Size, to: R, offset: i16, number: i32) {
        self.put(0x62 | size as u8, to, R(0), offset, number);
    }

    /// `*(to + offset) += from`, of eight bytes, also if another CPU does the same.
    pub fn add_atomically(&mut self, to: R, offset: i16, from: R) {
        self.put(0xdb, to, from, offset, 0);
    }

    /// `to` becomes a map, by its descriptor.
    pub fn map(&mut self, to: R, map: BorrowedFd<'_>) {
        // BPF_PSEUDO_MAP_FD: the number is a descriptor.
        self.put(0x18, to, R(1), 0, map.as_raw_fd());
        self.put(0, R(0), R(0), 0, 0);
    }

    /// `to` becomes the address of the only value of an array, by the array's descriptor.
    pub fn map_value(&mut self, to: R, array: BorrowedFd<'_>) {
        // BPF_PSEUDO_MAP_VALUE: the second number is an offset into the value.
        self.put(0x18, to, R(2), 0, array.as_raw_fd());
        self.put(0, R(0), R(0), 0, 0);
    }

    /// Calls a function; its arguments are in `r1` and so on.
    pub fn call(&mut self, function: Function) {
        self.put(0x85, R(0), R(0), 0, function as i32);
    }

    /// Calls a function of the kernel's own, by its number in the kernel's description of types.
    pub fn call_kernel(&mut self, function: u32) {
        // BPF_PSEUDO_KFUNC_CALL
        self.put(0x85, R(0), R(2), 0, function.cast_signed());
    }

    /// Ends the program with what `r0` has.
    pub fn exit(&mut self) {
        self.put(0x95, R(0), R(0), 0, 0);
    }

    /// Makes a label that stands nowhere yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label stands here.
    pub fn here(&mut self, label: Label) {
        self.labels[label.0] = Some(self.instructions.len());
    }

    /// Goes on at a label.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.put(0x05, R(0), R(0), 0, 0);
    }

    /// Goes on at a label if a register compares so with a number.
    pub fn jump_if(&mut self, register: R, how: If, number: i32, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.put(0x05 | how as u8, register, R(0), 0, number);
    }

    /// Goes on at a label if a register is greater than another, of numbers without a sign.
    pub fn jump_if_greater(&mut self, register: R, than: R, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.put(0x2d, register, than, 0, 0);
    }

    /// Returns the instructions; none if a label stands nowhere or too far away.
    pub fn finish(mut self) -> Option<Vec<[u8; 8]>> {
        for (at, label) in &self.jumps {
            let to = (*self.labels.get(label.0)?)?;
            let distance = i16::try_from(to as i64 - *at as i64 - 1).ok()?;
            self.instructions.get_mut(*at)?[2..4].copy_from_slice(&distance.to_ne_bytes());
        }
        Some(self.instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_as_the_kernel_reads_them() {
        let mut code = Code::default();
        let end = code.label();
        code.copy(R(6), R(1));
        code.load(Size::Word, R(1), R(6), 8);
        code.store(Size::Double, R(10), -8, R(1));
        code.jump_if(R(1), If::Equal, 5, end);
        code.call(Function::Lookup);
        code.jump(end);
        code.here(end);
        code.set(R(0), 1);
        code.exit();
        let number = |n: i32| n.to_ne_bytes();
        let expected: Vec<[u8; 8]> = [
            (0xbf, 0x16, 0i16, 0),
            (0x61, 0x61, 8, 0),
            (0x7b, 0x1a, -8, 0),
            (0x15, 0x01, 2, 5),
            (0x85, 0, 0, 1),
            (0x05, 0, 0, 0),
            (0xb7, 0, 0, 1),
            (0x95, 0, 0, 0),
        ]
        .map(|(operation, registers, offset, immediate)| {
            let mut bytes = [operation, registers, 0, 0, 0, 0, 0, 0];
            bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
            bytes[4..].copy_from_slice(&number(immediate));
            bytes
        })
        .to_vec();
        assert_eq!(code.finish(), Some(expected));
    }

    #[test]
    fn a_label_that_stands_nowhere_is_no_program() {
        let mut code = Code::default();
        let nowhere = code.label();
        code.jump(nowhere);
        assert_eq!(code.finish(), None);
    }
}
