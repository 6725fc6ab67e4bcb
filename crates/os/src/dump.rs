//! What there was when recording began: LTTng's state dump, as far as `/proc` and `/sys` have it.

use std::fs;

use hetrace_ctf::class::{FieldClass, IntegerClass, StructClass};

use crate::proc::numbers;

/// Names of the events around and in the dump.
pub const START: &str = "lttng_statedump_start";
/// See [`START`].
pub const END: &str = "lttng_statedump_end";
/// See [`START`].
pub const PROCESS: &str = "lttng_statedump_process_state";
/// See [`START`].
pub const DISK: &str = "lttng_statedump_block_device";

/// Length of a thread's name with its NUL.
const NAME: usize = 16;
/// LTTng's number of an unknown mode (`lttng-statedump-impl.c`).
const MODE_UNKNOWN: i32 = 5;

/// LTTng's numbers of a thread's state (`lttng-statedump-impl.c`).
mod status {
    pub const WAIT_CPU: i32 = 2;
    pub const ZOMBIE: i32 = 4;
    pub const WAIT: i32 = 5;
    pub const DEAD: i32 = 7;
}

/// A thread as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// The process that began it.
    pub ppid: i32,
    /// Its name.
    pub name: String,
    /// 1 for a thread of the kernel.
    pub kind: i32,
    /// LTTng's number of its state.
    pub status: i32,
    /// The CPU that it ran on last.
    pub cpu: u32,
}

/// Returns the fields of a thread's event.
pub fn thread_fields() -> StructClass {
    let numbers = |fields: StructClass, names: &[&str]| {
        names.iter().fold(fields, |fields, name| fields.field(*name, IntegerClass::signed(32)))
    };
    let fields = numbers(StructClass::default(), &["tid", "vtid", "pid", "vpid", "ppid", "vppid"]);
    let fields = fields.field("name", FieldClass::array(NAME as u64, IntegerClass::character()));
    numbers(fields, &["type", "mode", "submode", "status"]).field("cpu", IntegerClass::unsigned(32))
}

/// Returns the fields of a disk's event.
pub fn disk_fields() -> StructClass {
    StructClass::default().field("dev", IntegerClass::unsigned(32)).field("diskname", FieldClass::string())
}

impl Thread {
    /// Reads `/proc/PID/task/TID/stat`.
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        // The name may have anything in it, also parentheses.
        let (before, rest) = stat.rsplit_once(')')?;
        let (tid, name) = before.split_once(" (")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<i64>().ok();
        // A thread of the kernel has no memory of its own (`PF_KTHREAD`).
        let kernel = number(6)? & 0x0020_0000 != 0;
        let status = match *fields.first()? {
            "R" => status::WAIT_CPU,
            "Z" => status::ZOMBIE,
            "X" => status::DEAD,
            _ => status::WAIT,
        };
        Some(Thread {
            tid: tid.parse().ok()?,
            pid,
            ppid: number(1)? as i32,
            name: name.to_owned(),
            kind: kernel.into(),
            status,
            cpu: number(36).unwrap_or(0) as u32,
        })
    }

    /// Appends the fields of its event.
    pub fn encode(&self, into: &mut Vec<u8>) {
        for number in [self.tid, self.tid, self.pid, self.pid, self.ppid, self.ppid] {
            into.extend_from_slice(&number.to_le_bytes());
        }
        let mut name = [0; NAME];
        for (to, from) in name[..NAME - 1].iter_mut().zip(self.name.bytes()) {
            *to = from;
        }
        into.extend_from_slice(&name);
        for number in [self.kind, MODE_UNKNOWN, 0, self.status] {
            into.extend_from_slice(&number.to_le_bytes());
        }
        into.extend_from_slice(&self.cpu.to_le_bytes());
    }
}

/// Returns the threads of a process, or of all.
pub fn threads(process: Option<u32>) -> Vec<Thread> {
    let processes = process.map_or_else(|| numbers("/proc"), |pid| vec![pid]);
    let of = |pid: u32| {
        let stat = |tid: u32| fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok();
        let read = |bytes: Vec<u8>| Thread::parse(pid.cast_signed(), &String::from_utf8_lossy(&bytes));
        numbers(format!("/proc/{pid}/task")).into_iter().filter_map(stat).filter_map(read).collect::<Vec<_>>()
    };
    processes.into_iter().flat_map(of).collect()
}

/// Returns the number and the name of each disk.
pub fn disks() -> Vec<(u32, String)> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut disks: Vec<_> = entries
        .filter_map(|entry| {
            let text = fs::read_to_string(entry.path().join("dev")).ok()?;
            let (major, minor) = text.trim().split_once(':')?;
            // As the kernel's own `dev_t` has it, which tracepoints show.
            let dev = major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?;
            Some((dev, entry.file_name().to_string_lossy().into_owned()))
        })
        .collect();
    disks.sort();
    disks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_have_anything_in_them() {
        let rest = "S 1 2 2 0 -1 4194304 ".to_owned() + &"0 ".repeat(29) + "3 0";
        let thread = Thread::parse(7, &format!("8 (a (b) c) {rest}")).unwrap();
        let expected = Thread {
            tid: 8,
            pid: 7,
            ppid: 1,
            name: "a (b) c".to_owned(),
            kind: 0,
            status: status::WAIT,
            cpu: 3,
        };
        assert_eq!(thread, expected);
        for wrong in ["", "8", "8 (a", "8 (a)", "8 (a) S", "x (a) S 1 2 2 0 -1 4"] {
            assert_eq!(Thread::parse(7, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_thread_is_as_long_as_its_class() {
        let thread = Thread { name: "a name that is too long".to_owned(), ..Thread::default() };
        let mut bytes = Vec::new();
        thread.encode(&mut bytes);
        assert_eq!(bytes.len(), 11 * 4 + NAME);
        assert_eq!(&bytes[24..40], b"a name that is \0");
        assert_eq!(thread_fields().fields.len(), 12);
    }

    #[test]
    fn this_thread_is_found() {
        let own = std::process::id();
        assert!(threads(Some(own)).iter().any(|t| t.tid == own as i32));
    }
}
