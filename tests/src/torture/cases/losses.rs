//! Losses that no report showed, and hangs.

use crate::torture::case::{Accounting, Api, Case, Need, PLAIN};

const LIFE: &str = "a process that can still write is never taken for dead";
const MODES: &str = "whatever the umask, what the program records is read";
const JUMPS: &str = "a handler that leaves a call by siglongjmp ends that call only";
const FAMILY: &str = "each child is recorded as itself, and what it loses is counted";
const TWO_NAMESPACES: &str = "unshare -rpf --mount-proc \"$@\" & unshare -rpf --mount-proc \"$@\" & \
                              wait $! ; s=$?; wait; exit $s";

pub const CASES: &[Case] = &[
    Case {
        name: "main-thread-ends",
        line: "life",
        promise: LIFE,
        tried: "main ends by pthread_exit, 4 threads call for another 1.2 s",
        command: "workers threads=4 calls=3000 pause=10000 main=exit",
        accounting: Accounting::Whole,
        ..PLAIN
    },
    Case {
        name: "main-thread-ends-blocking",
        line: "life",
        promise: LIFE,
        tried: "the same with rings of 4 KiB and --on-full block: all recorded, no hang",
        command: "workers threads=4 calls=12000 pause=2000 main=exit",
        options: "-m full --buffer 4 --on-full block",
        accounting: Accounting::Whole,
        ..PLAIN
    },
    Case {
        name: "threads-beyond-descriptors",
        line: "life",
        promise: "threads beyond the limit of open files are recorded",
        tried: "1,030 threads at once, 1,024 open files allowed to launcher and program",
        command: "workers threads=1030 calls=50",
        around: Some("ulimit -n 1024; exec \"$@\""),
        accounting: Accounting::Whole,
        ..PLAIN
    },
    Case {
        name: "pid-namespace",
        line: "life",
        promise: LIFE,
        tried: "the program is pid 1 of its own PID namespace",
        command: "workers threads=4 calls=1500 pause=10000",
        inside: Some("exec unshare -rpf --mount-proc \"$@\""),
        accounting: Accounting::Sum(1),
        needs: &[Need::Namespaces],
        ..PLAIN
    },
    Case {
        name: "two-pid-namespaces",
        line: "life",
        promise: "processes with one id in different PID namespaces are two",
        tried: "two programs at once, each pid 1 of its own namespace",
        command: "workers threads=4 calls=1500 pause=10000",
        inside: Some(TWO_NAMESPACES),
        accounting: Accounting::Sum(2),
        needs: &[Need::Namespaces],
        ..PLAIN
    },
    Case {
        name: "umask-0777",
        line: "modes",
        promise: MODES,
        tried: "started with umask 0777, as an ordinary user",
        command: "workers threads=8 calls=200",
        inside: Some("umask 0777; exec \"$@\""),
        accounting: Accounting::Whole,
        ordinary_only: true,
        ..PLAIN
    },
    Case {
        name: "umask-0400",
        line: "modes",
        promise: MODES,
        tried: "started with umask 0400, as an ordinary user",
        command: "workers threads=8 calls=200",
        inside: Some("umask 0400; exec \"$@\""),
        accounting: Accounting::Whole,
        ordinary_only: true,
        ..PLAIN
    },
    Case {
        name: "umask-set-later",
        line: "modes",
        promise: MODES,
        tried: "the program sets umask 0777 after its first calls, as an ordinary user",
        command: "workers threads=8 calls=200 limit=umask:0777",
        accounting: Accounting::Whole,
        ordinary_only: true,
        ..PLAIN
    },
    Case {
        name: "launcher-short-of-addresses",
        line: "modes",
        promise: "what the launcher can't map is counted",
        tried: "400 threads, the launcher may have 512 MiB of addresses",
        command: "workers threads=400 calls=500",
        inside: Some("ulimit -S -v unlimited; exec \"$@\""),
        around: Some("ulimit -S -v 524288; exec \"$@\""),
        ..PLAIN
    },
    Case {
        name: "jumps",
        line: "jumps",
        promise: JUMPS,
        tried: "200 signals 50 µs apart to each of 2 threads; handlers jump",
        command: "jumps mode=jump threads=2 signals=200",
        options: "--on-full block",
        accounting: Accounting::Jumps,
        ..PLAIN
    },
    Case {
        name: "jumps-other-stack",
        line: "jumps",
        promise: JUMPS,
        tried: "the same on sigaltstack",
        command: "jumps mode=jump stack=alt threads=2 signals=200",
        options: "--on-full block",
        accounting: Accounting::Jumps,
        ..PLAIN
    },
    Case {
        name: "handlers-call",
        line: "jumps",
        promise: "a handler's own calls are recorded or counted",
        tried: "200 signals 50 µs apart to each of 2 threads; handlers call and return",
        command: "jumps mode=call threads=2 signals=200",
        ..PLAIN
    },
    Case {
        name: "handlers-call-blocking",
        line: "jumps",
        promise: "a handler's own calls are recorded or counted",
        tried: "the same with rings of 16 KiB and --on-full block: no hang",
        command: "jumps mode=call threads=2 signals=200",
        options: "--buffer 16 --on-full block",
        ..PLAIN
    },
    Case {
        name: "handlers-call-and-jump",
        line: "jumps",
        promise: JUMPS,
        tried: "handlers call, then jump, on sigaltstack and with rings of 4 KiB",
        command: "jumps mode=both stack=alt threads=2 signals=200",
        options: "--buffer 4",
        ..PLAIN
    },
    Case {
        name: "jumps-cuda",
        line: "jumps",
        promise: JUMPS,
        tried: "handlers call, then jump, on 3 CUDA devices (a fake driver)",
        command: "jumps mode=both threads=2 signals=200",
        api: Api::Cuda,
        ..PLAIN
    },
    Case {
        name: "short-process",
        line: "devices",
        promise: "a queue has one identity and its commands are recorded or counted",
        tried: "one process, 500 buffers written, ended at once",
        command: "brief buffers=500",
        short: 4,
        long: 10,
        ..PLAIN
    },
    Case {
        name: "short-processes",
        line: "devices",
        promise: "a queue has one identity and its commands are recorded or counted",
        tried: "16 such processes at the same time",
        command: "brief buffers=50 processes=16",
        ..PLAIN
    },
    Case {
        name: "shared-thread-storage",
        line: "family",
        promise: "children that share thread-local storage are recorded or counted",
        tried: "32 children by clone(CLONE_VM), eight and their parent calling at once",
        command: "family mode=clone children=32 calls=5000",
        accounting: Accounting::Total,
        short: 2,
        ..PLAIN
    },
    Case {
        name: "vfork-children",
        line: "family",
        promise: FAMILY,
        tried: "64 children by vfork that call, then _exit",
        command: "family mode=vfork children=64 calls=100",
        accounting: Accounting::Total,
        ..PLAIN
    },
    Case {
        name: "fork-storm",
        line: "family",
        promise: FAMILY,
        tried: "64 children with 3 threads each while the parent goes on",
        command: "family mode=fork children=64 threads=2 calls=200",
        ..PLAIN
    },
    Case {
        name: "fork-storm-cuda",
        line: "family",
        promise: FAMILY,
        tried: "the same on 3 CUDA devices (a fake driver)",
        command: "family mode=fork children=64 threads=2 calls=200",
        api: Api::Cuda,
        ..PLAIN
    },
    Case {
        name: "main-thread-ends-cuda",
        line: "life",
        promise: LIFE,
        tried: "main ends by pthread_exit, on 3 CUDA devices (a fake driver)",
        command: "workers threads=4 calls=3000 pause=10000 main=exit",
        accounting: Accounting::Whole,
        api: Api::Cuda,
        ..PLAIN
    },
];
