//! Settings in which the recorder once disturbed the program.

use crate::torture::case::{Accounting, Api, Case, Need, PLAIN};

const MEMORY: &str = "a small memory file system is shared fairly: no SIGBUS, losses counted";
const FILTER: &str = "recording makes no system call that the filter of a program does not allow";
const SIZES: &str = "a limit on the size of files ends no program";

macro_rules! on_tmpfs {
    ($size:literal) => {
        Some(concat!(
            "exec unshare -rm sh -c 'mount -t tmpfs -o size=",
            $size,
            " t /dev/shm && exec \"$@\"' sh \"$@\""
        ))
    };
}

/// Makes the group beside all others, in either version of the file system.
const GROUP: &str = "p=/sys/fs/cgroup; l=memory.max; \
    if [ -d $p/memory ]; then p=$p/memory; l=memory.limit_in_bytes; fi; g=$p/torture-$$; \
    mkdir $g && echo 200M > $g/$l && echo $$ > $g/cgroup.procs || exit 96; \
    \"$@\"; s=$?; echo $$ > $p/cgroup.procs; rmdir $g; exit $s";

pub const CASES: &[Case] = &[
    Case {
        name: "memory-256k",
        subject: "memory",
        promise: MEMORY,
        tried: "/dev/shm has 256 KiB, 16 threads",
        command: "workers threads=16 calls=2000",
        around: on_tmpfs!("256k"),
        needs: &[Need::Namespaces],
        ..PLAIN
    },
    Case {
        name: "memory-1m",
        subject: "memory",
        promise: MEMORY,
        tried: "/dev/shm has 1 MiB, 64 threads",
        command: "workers threads=64 calls=2000",
        around: on_tmpfs!("1m"),
        needs: &[Need::Namespaces],
        ..PLAIN
    },
    Case {
        name: "memory-64m",
        subject: "memory",
        promise: MEMORY,
        tried: "/dev/shm has 64 MiB, 400 threads",
        command: "workers threads=400 calls=1000",
        around: on_tmpfs!("64m"),
        needs: &[Need::Namespaces],
        ..PLAIN
    },
    Case {
        name: "memory-of-the-program",
        subject: "memory",
        promise: "the program gets the shared memory that it needs",
        tried: "/dev/shm has 64 MiB; 200 threads record, then the program touches 24 MiB of its own",
        command: "shared mode=own threads=200 calls=2000 bytes=25165824",
        options: "-m full",
        around: on_tmpfs!("64m"),
        needs: &[Need::Namespaces],
        ..PLAIN
    },
    Case {
        name: "memory-fills-up",
        subject: "memory",
        promise: MEMORY,
        tried: "/dev/shm has 8 MiB, and the program fills it before 32 threads begin",
        command: "shared mode=fill threads=32 calls=1000",
        around: on_tmpfs!("8m"),
        needs: &[Need::Namespaces],
        ..PLAIN
    },
    Case {
        name: "memory-group",
        subject: "memory",
        promise: "a memory limit of a control group is kept",
        tried: "400 threads in a group of 200 MB",
        command: "workers threads=400 calls=3000",
        options: "-m full",
        around: Some(GROUP),
        needs: &[Need::MemoryGroup],
        ..PLAIN
    },
    Case {
        name: "file-size-0",
        subject: "limits",
        promise: SIZES,
        tried: "RLIMIT_FSIZE 0 from the shell",
        command: "workers threads=8 calls=500",
        inside: Some("prlimit --pid $$ --fsize=0; exec \"$@\""),
        ..PLAIN
    },
    Case {
        name: "file-size-1-page",
        subject: "limits",
        promise: SIZES,
        tried: "RLIMIT_FSIZE 4096 from the shell",
        command: "workers threads=8 calls=500",
        inside: Some("prlimit --pid $$ --fsize=4096; exec \"$@\""),
        ..PLAIN
    },
    Case {
        name: "file-size-100k",
        subject: "limits",
        promise: SIZES,
        tried: "RLIMIT_FSIZE 102400 from the shell, rings that must grow",
        command: "workers threads=4 calls=50000",
        options: "-m full",
        inside: Some("prlimit --pid $$ --fsize=102400; exec \"$@\""),
        ..PLAIN
    },
    Case {
        name: "file-size-0-later",
        subject: "limits",
        promise: SIZES,
        tried: "RLIMIT_FSIZE 0 set after the first calls; 8 more threads",
        command: "workers threads=8 calls=200 limit=fsize:0",
        accounting: Accounting::Whole,
        ..PLAIN
    },
    Case {
        name: "file-size-100k-later",
        subject: "limits",
        promise: SIZES,
        tried: "RLIMIT_FSIZE 102400 set after the first calls; rings that must grow",
        command: "workers threads=4 calls=50000 limit=fsize:102400",
        options: "-m full",
        ..PLAIN
    },
    Case {
        name: "filter-first-call",
        subject: "filters",
        promise: FILTER,
        tried: "seccomp kills; threads that exist make their first calls",
        command: "filtered phase=first threads=4 calls=100",
        accounting: Accounting::Whole,
        ..PLAIN
    },
    Case {
        name: "filter-new-threads",
        subject: "filters",
        promise: FILTER,
        tried: "seccomp kills; 16 threads are created and call",
        command: "filtered phase=ring threads=16 calls=100",
        accounting: Accounting::Whole,
        ..PLAIN
    },
    Case {
        name: "filter-growth",
        subject: "filters",
        promise: FILTER,
        tried: "seccomp kills; one thread makes 300,000 calls at once",
        command: "filtered phase=grow calls=300000",
        options: "-m full",
        ..PLAIN
    },
    Case {
        name: "descriptors",
        subject: "limits",
        promise: "recording holds no descriptor of the program's",
        tried: "24 open files allowed; the program takes them all, 20 times in each of 20 rounds of 8 new threads",
        command: "workers threads=8 calls=200 files=20 limit=nofile:24",
        accounting: Accounting::Whole,
        ..PLAIN
    },
    Case {
        name: "addresses-of-the-program",
        subject: "limits",
        promise: "a program with little address space runs as without a tracer",
        // One heap for all threads: the C library maps 128 MiB for a moment where it makes another,
        // and whether that falls between two threads' beginnings is a matter of luck. The runtime itself aborts
        // between 244,000 and 256,000 KiB, and returns an error at 296,000; with less or more it runs.
        tried: "RLIMIT_AS 380,000 KiB, some 80 MiB above what the program needs with one heap; 8 threads",
        command: "workers threads=8 calls=500",
        inside: Some("export MALLOC_ARENA_MAX=1; ulimit -v 380000; exec \"$@\""),
        ..PLAIN
    },
    Case {
        name: "threads-in-sequence",
        subject: "reuse",
        promise: "memory of ended threads is used again: at most 64 MiB resident and 1.5 GiB of addresses more",
        tried: "50,000 threads one after the other",
        command: "workers threads=50000 calls=2 order=sequence report=memory",
        memory: true,
        heavy: true,
        long: 1,
        ..PLAIN
    },
    Case {
        name: "images-in-sequence",
        subject: "reuse",
        promise: "memory of images before is given back: at most 16 MiB in the session",
        tried: "one process executes itself 150 times",
        command: "again times=150",
        accounting: Accounting::Whole,
        session_bytes: Some(16 << 20),
        short: 0,
        long: 1,
        ..PLAIN
    },
    Case {
        name: "images-in-sequence-cuda",
        subject: "reuse",
        promise: "memory of images before is given back: at most 16 MiB in the session",
        tried: "the same on 3 CUDA devices (a fake driver)",
        command: "again times=150",
        accounting: Accounting::Whole,
        session_bytes: Some(16 << 20),
        api: Api::Cuda,
        ..PLAIN
    },
];
