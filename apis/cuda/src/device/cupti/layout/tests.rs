//! Records of every version, made from bytes, and such as no version makes.

use std::ffi::CStr;

use super::*;

const NAME: &CStr = c"_Z3addPfS_i";

/// A record of a kind, as long as a version has it.
struct Made(Vec<u8>);

impl Made {
    fn new(kind: u32, length: usize) -> Made {
        Made(vec![0xa5; length]).u32(0, kind)
    }

    fn put(mut self, offset: usize, bytes: &[u8]) -> Made {
        self.0[offset..offset + bytes.len()].copy_from_slice(bytes);
        self
    }

    fn u32(self, offset: usize, value: u32) -> Made {
        self.put(offset, &value.to_ne_bytes())
    }

    fn u64(self, offset: usize, value: u64) -> Made {
        self.put(offset, &value.to_ne_bytes())
    }

    fn words(self, offset: usize, values: &[u32]) -> Made {
        values.iter().enumerate().fold(self, |made, (i, v)| made.u32(offset + 4 * i, *v))
    }

    fn times(self) -> Made {
        self.u64(16, 1000).u64(24, 2500)
    }
}

fn a_kernel(length: usize) -> Made {
    Made::new(kind::CONCURRENT_KERNEL, length)
        .put(6, &40u16.to_ne_bytes())
        .times()
        .words(40, &[1, 2, 7])
        .words(52, &[100, 2, 1])
        .words(64, &[256, 1, 1])
        .words(76, &[4096, 512, 16])
        .u32(92, 77)
        .u64(104, NAME.as_ptr() as u64)
        .u64(144, 0x1234_5678_9abc)
        .u32(156, 5)
        .words(176, &[2, 1, 1])
}

fn a_copy(length: usize, copied: u8, memory: [u8; 2]) -> Made {
    Made::new(kind::MEMCPY, length)
        .put(4, &[copied, memory[0], memory[1]])
        .u64(8, 1 << 33)
        .times()
        .words(32, &[0, 1, 13, 78])
        .u64(64, 0)
        .u32(72, 0)
}

fn a_peer_copy(length: usize, device: u32) -> Made {
    Made::new(kind::MEMCPY2, length)
        .put(4, &[10, 3, 3])
        .u64(8, 4096)
        .times()
        .words(32, &[device, 1, 7, 0, 1, 3, 2, 79])
        .u64(72, 9)
        .u32(80, 4)
}

fn a_fill(length: usize) -> Made {
    Made::new(kind::MEMSET, length)
        .u64(8, 64)
        .times()
        .words(32, &[0, 1, 7, 80])
        .put(50, &7u16.to_ne_bytes())
        .u64(64, 0)
        .u32(72, 0)
}

fn a_counter(length: usize, counted: u32, from: u32, to: u32) -> Made {
    Made::new(kind::UNIFIED_MEMORY_COUNTER, length)
        .u32(4, counted)
        .u64(8, 65536)
        .times()
        .words(40, &[from, to])
}

fn versions() -> impl Iterator<Item = (u32, [usize; 5])> {
    let last = LENGTHS[LENGTHS.len() - 1].1;
    let between = [(20, LENGTHS[0].1), (28, LENGTHS[1].1), (130_001, LENGTHS[2].1), (130_202, LENGTHS[3].1)];
    LENGTHS.into_iter().chain(between).chain([(130_401, last), (130_500, last), (140_000, last)])
}

#[test]
fn kernels_of_all_versions() {
    for (version, [length, ..]) in versions() {
        let activity = read(&a_kernel(length).0, Lengths::of(version).unwrap()).unwrap();
        let command = activity.command;
        assert_eq!((activity.device, activity.context, activity.stream), (1, 2, 7), "{version}");
        assert_eq!((command.kind, command.start, command.end, command.correlation), (1, 1000, 2500, 77));
        assert_eq!(command.dimensions, 2);
        assert_eq!(command.geometry, [[0; 3], [25600, 2, 1], [256, 1, 1]]);
        assert_eq!((command.cluster, command.shared), ([2, 1, 1], 512));
        assert_eq!((command.node, command.graph), (0x1234_5678_9abc, 5));
        assert_eq!(command.flags, command_flag::HOST_CLOCK);
        let kernel = activity.kernel.unwrap();
        assert_eq!((kernel.name, kernel.registers), (NAME.as_ptr(), 40));
        assert_eq!((kernel.static_shared, kernel.local), (4096, 16));
    }
}

#[test]
fn copies_of_all_versions() {
    for (version, [_, length, ..]) in versions() {
        let lengths = Lengths::of(version).unwrap();
        for (copied, memory, expected) in [
            (1, [1, 3], (command::WRITE, 1, 3)),
            (2, [3, 2], (command::READ, 3, 2)),
            (8, [6, 5], (command::COPY, 3, 5)),
            (9, [7, 99], (command::COPY, 5, 0)),
        ] {
            let activity = read(&a_copy(length, copied, memory).0, lengths).unwrap();
            let command = activity.command;
            assert_eq!((command.kind, command.from, command.to), expected, "{version}");
            assert_eq!((activity.context, activity.stream, command.correlation), (1, 13, 78));
            assert_eq!(command.bytes, 1 << 33);
        }
    }
}

#[test]
fn copies_between_devices_of_all_versions() {
    for (version, [_, _, length, ..]) in versions() {
        let lengths = Lengths::of(version).unwrap();
        let pushed = read(&a_peer_copy(length, 0).0, lengths).unwrap();
        assert_eq!((pushed.device, pushed.peer), (0, Some(3)), "{version}");
        assert_eq!((pushed.command.from, pushed.command.to), (memory::DEVICE, memory::PEER));
        let pulled = read(&a_peer_copy(length, 3).0, lengths).unwrap();
        assert_eq!((pulled.device, pulled.peer), (3, Some(0)));
        assert_eq!((pulled.command.from, pulled.command.to), (memory::PEER, memory::DEVICE));
        assert_eq!((pulled.command.correlation, pulled.command.node, pulled.command.graph), (79, 9, 4));
    }
}

#[test]
fn fills_and_migrations_of_all_versions() {
    for (version, [.., set, counter]) in versions() {
        let lengths = Lengths::of(version).unwrap();
        let fill = read(&a_fill(set).0, lengths).unwrap().command;
        assert_eq!(
            (fill.kind, fill.to, fill.bytes, fill.correlation),
            (command::FILL, 5, 64, 80),
            "{version}"
        );
        for (counted, from, to, device, peer, memory) in [
            (counter::TO_DEVICE, u32::MAX, 2, 2, None, [memory::HOST, memory::DEVICE]),
            (counter::TO_HOST, 2, u32::MAX, 2, None, [memory::DEVICE, memory::HOST]),
            (counter::BETWEEN_DEVICES, 1, 0, 0, Some(1), [memory::PEER, memory::DEVICE]),
        ] {
            let moved = read(&a_counter(counter, counted, from, to).0, lengths).unwrap();
            assert_eq!((moved.device, moved.stream, moved.peer), (device, device, peer));
            assert_eq!((moved.context, moved.command.correlation), (NO_CONTEXT, 0));
            assert_eq!([moved.command.from, moved.command.to], memory);
            assert_eq!((moved.command.kind, moved.command.bytes), (command::MIGRATE, 65536));
        }
        let faults = a_counter(counter, 4, 0, 0);
        assert_eq!(read(&faults.0, lengths).unwrap_err(), Unread::Other);
    }
}

#[test]
fn what_is_too_short_is_not_read() {
    for (version, [kernel, copy, peer, set, counter]) in versions() {
        let lengths = Lengths::of(version).unwrap();
        let whole = [
            a_kernel(kernel).0,
            a_copy(copy, 1, [1, 3]).0,
            a_peer_copy(peer, 0).0,
            a_fill(set).0,
            a_counter(counter, 1, 0, 0).0,
        ];
        for record in whole {
            for length in 0..record.len() {
                assert_eq!(read(&record[..length], lengths).unwrap_err(), Unread::Unlike, "{version}");
            }
            // A later update may add to it.
            let longer: Vec<u8> = record.iter().copied().chain([0xff; 8]).collect();
            assert!(read(&longer, lengths).is_ok());
        }
    }
}

#[test]
fn records_of_other_kinds_are_passed_over() {
    let lengths = Lengths::of(28).unwrap();
    for kind in [0, 4, 5, 9, 17, 26, 51, 1 << 30] {
        assert_eq!(read(&Made::new(kind, 16).0, lengths).unwrap_err(), Unread::Other);
    }
}

#[test]
fn damage_is_survived() {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for (version, [kernel, ..]) in versions() {
        let lengths = Lengths::of(version).unwrap();
        for _ in 0..20_000 {
            let mut record = a_kernel(kernel).0;
            for _ in 0..random() % 8 {
                let place = random() as usize % record.len();
                record[place] = random() as u8;
            }
            let kinds = [1, 2, 3, 10, 22, 25];
            record[..4].copy_from_slice(&(kinds[random() as usize % 6] as u32).to_ne_bytes());
            record.truncate(random() as usize % (kernel + 1));
            if let Ok(activity) = read(&record, lengths) {
                assert!((activity.command.kind as usize) < 9 && activity.command.dimensions <= 3);
            }
        }
    }
}

#[test]
fn a_newer_version_is_believed_only_if_it_can_be_true() {
    let (known, newer) = (Lengths::of(130_401).unwrap(), Lengths::of(130_600).unwrap());
    assert!(!known.newer && newer.newer);
    let length = LENGTHS[LENGTHS.len() - 1].1[0];
    for impossible in [
        a_kernel(length).words(40, &[1 << 20]),
        a_kernel(length).words(64, &[0, 1, 1]),
        a_kernel(length).words(64, &[1024, 2, 1]),
        a_kernel(length).words(64, &[u32::MAX, u32::MAX, u32::MAX]),
        a_kernel(length).words(52, &[0, 1, 1]),
        a_kernel(length).u64(24, 999),
        a_kernel(length).u64(104, 0),
        a_kernel(length).u64(104, 0xffff_0000_0000_0000),
    ] {
        assert!(read(&impossible.0, known).is_ok());
        assert_eq!(read(&impossible.0, newer).unwrap_err(), Unread::Unlike);
    }
    // Without times it may still be true.
    assert!(read(&a_kernel(length).u64(16, 0).u64(24, 0).0, newer).is_ok());
    assert!(read(&a_kernel(length).0, newer).is_ok());
}

#[test]
fn old_versions_are_refused() {
    assert!(Lengths::of(17).is_none() && Lengths::of(0).is_none());
    assert_eq!(Lengths::of(18).unwrap().kernel, 208);
}
