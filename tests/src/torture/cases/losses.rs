//! Losses that no report showed, and hangs.

use crate::torture::case::{Accounting, Api, Case, Need, PLAIN};

const LIFE: &str = "a process that can still write is never taken for dead";
const MODES: &str = "whatever the umask, what the program records is read";
const JUMPS: &str = "a handler that leaves a call by siglongjmp ends that call only";
const FAMILY: &str = "each child is recorded as itself, and what it loses is counted";
const TWO_NAMESPACES: &str = "unshare -rpf --mount-proc \"$@\" & unshare -rpf --mount-proc \"$@\" & \
                              wait $! ; s=$?; wait; exit $s";
/// The id is the next one after the last that the namespace gave out.
const OTHER_ID: &str = "p=30000; while [ -e /proc/$p ]; do p=$((p - 1)); done; export p; \
                        exec unshare -rpf --mount-proc sh -c \
                        'echo $((p - 1)) > /proc/sys/kernel/ns_last_pid && \"$@\"; exit $?' sh \"$@\"";

pub const CASES: &[Case] = &[
    Case {
        name: "main-thread-ends",
        subject: "life",
        promise: LIFE,
        tried: "main ends by pthread_exit, 4 threads call for another 1.2 s",
        command: "workers threads=4 calls=3000 pause=10000 main=exit",
        accounting: Accounting::Whole,
        ..PLAIN
    },
    Case {
        name: "main-thread-ends-blocking",
        subject: "life",
        promise: LIFE,
        tried: "the same with rings of 4 KiB and --on-full block: all recorded, no hang",
        command: "workers threads=4 calls=12000 pause=2000 main=exit",
        options: "-m full --buffer 4 --on-full block",
        accounting: Accounting::Whole,
        ..PLAIN
    },
    Case {
        name: "threads-beyond-descriptors",
        subject: "life",
        promise: "threads beyond the limit of open files are recorded",
        tried: "1,030 threads at once, 1,024 open files allowed to launcher and program",
        command: "workers threads=1030 calls=50",
        around: Some("ulimit -n 1024; exec \"$@\""),
        accounting: Accounting::Whole,
        ..PLAIN
    },
    Case {
        name: "pid-namespace",
        subject: "life",
        promise: LIFE,
        tried: "the program has an id in a PID namespace of its own that no process has outside",
        command: "workers threads=4 calls=1500 pause=10000",
        inside: Some(OTHER_ID),
        accounting: Accounting::Sum(1),
        needs: &[Need::Namespaces],
        ..PLAIN
    },
    Case {
        name: "two-pid-namespaces",
        subject: "life",
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
        subject: "modes",
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
        subject: "modes",
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
        subject: "modes",
        promise: MODES,
        tried: "the program sets umask 0777 after its first calls, as an ordinary user",
        command: "workers threads=8 calls=200 limit=umask:0777",
        accounting: Accounting::Whole,
        ordinary_only: true,
        ..PLAIN
    },
    Case {
        name: "launcher-short-of-addresses",
        subject: "modes",
        promise: "what the launcher can't map is counted",
        tried: "400 threads, the launcher may have 512 MiB of addresses",
        command: "workers threads=400 calls=500",
        inside: Some("ulimit -S -v unlimited; exec \"$@\""),
        around: Some("ulimit -S -v 524288; exec \"$@\""),
        ..PLAIN
    },
    Case {
        name: "jumps",
        subject: "jumps",
        promise: JUMPS,
        tried: "200 signals 50 µs apart to each of 2 threads; handlers jump",
        command: "jumps mode=jump threads=2 signals=200",
        options: "--on-full block",
        accounting: Accounting::Jumps,
        ..PLAIN
    },
    Case {
        name: "jumps-other-stack",
        subject: "jumps",
        promise: JUMPS,
        tried: "the same on sigaltstack",
        command: "jumps mode=jump stack=alt threads=2 signals=200",
        options: "--on-full block",
        accounting: Accounting::Jumps,
        ..PLAIN
    },
    Case {
        name: "handlers-call",
        subject: "jumps",
        promise: "a handler's own calls are recorded or counted",
        tried: "200 signals 50 µs apart to each of 2 threads; handlers call and return",
        command: "jumps mode=call threads=2 signals=200",
        ..PLAIN
    },
    Case {
        name: "handlers-call-blocking",
        subject: "jumps",
        promise: "a handler's own calls are recorded or counted",
        tried: "the same with rings of 16 KiB and --on-full block: no hang",
        command: "jumps mode=call threads=2 signals=200",
        options: "--buffer 16 --on-full block",
        ..PLAIN
    },
    Case {
        name: "handlers-call-and-jump",
        subject: "jumps",
        promise: JUMPS,
        tried: "handlers call, then jump, on sigaltstack and with rings of 4 KiB",
        command: "jumps mode=both stack=alt threads=2 signals=200",
        options: "--buffer 4",
        ..PLAIN
    },
    Case {
        name: "jumps-cuda",
        subject: "jumps",
        promise: JUMPS,
        tried: "handlers call, then jump, on 3 CUDA devices (a fake driver)",
        command: "jumps mode=both threads=2 signals=200",
        api: Api::Cuda,
        ..PLAIN
    },
    Case {
        name: "jumps-while-opening",
        subject: "jumps",
        promise: "a handler that jumps leaves no lock of the dynamic loader's held",
        tried: "handlers jump out of calls by address, and a thread opens and closes a library every millisecond",
        command: "jumps_opened mode=jump threads=3 signals=400 opener=1000",
        options: "--on-full block",
        accounting: Accounting::Jumps,
        ..PLAIN
    },
    Case {
        name: "jumps-while-opening-cuda",
        subject: "jumps",
        promise: "a handler that jumps leaves no lock of the dynamic loader's held",
        tried: "the same out of linked calls of a CUDA driver (a fake)",
        command: "jumps mode=jump threads=3 signals=400 opener=1000",
        options: "--on-full block",
        accounting: Accounting::Jumps,
        api: Api::Cuda,
        ..PLAIN
    },
    Case {
        name: "short-process",
        subject: "devices",
        promise: "a queue has one identity and its commands are recorded or counted",
        tried: "one process, 500 buffers written, ended at once",
        command: "brief buffers=500",
        short: 4,
        long: 10,
        ..PLAIN
    },
    Case {
        name: "short-processes",
        subject: "devices",
        promise: "a queue has one identity and its commands are recorded or counted",
        tried: "16 such processes at the same time, each with 8 threads that begin last",
        command: "brief buffers=64 threads=8 processes=16",
        ..PLAIN
    },
    Case {
        name: "short-processes-end-quickly",
        subject: "devices",
        promise: "a queue has one identity and its commands are recorded or counted",
        tried: "32 processes end by _exit when 8 threads have made their first commands, while 2 threads keep the launcher busy",
        command: "brief buffers=8 threads=8 processes=32 end=quick busy=2",
        heavy: true,
        options: "-m full",
        ..PLAIN
    },
    Case {
        name: "last-rings-of-short-processes",
        subject: "devices",
        promise: "a queue has one identity and its commands are recorded or counted",
        tried: "12 processes end by _exit while the launcher is stopped in the middle of draining, when 4 threads have just begun",
        command: "brief buffers=40 threads=4 processes=12 end=quick stop=1",
        options: "-m full",
        ..PLAIN
    },
    Case {
        name: "shared-thread-storage",
        subject: "family",
        promise: "children that share thread-local storage are recorded or counted",
        tried: "32 children by clone(CLONE_VM), eight and their parent calling at once",
        command: "family mode=clone children=32 calls=5000",
        accounting: Accounting::Total,
        short: 2,
        ..PLAIN
    },
    Case {
        name: "vfork-children",
        subject: "family",
        promise: FAMILY,
        tried: "64 children by vfork that call, then _exit",
        command: "family mode=vfork children=64 calls=100",
        accounting: Accounting::Total,
        ..PLAIN
    },
    Case {
        name: "fork-storm",
        subject: "family",
        promise: FAMILY,
        tried: "64 children with 3 threads each while the parent goes on",
        command: "family mode=fork children=64 threads=2 calls=200",
        ..PLAIN
    },
    Case {
        name: "fork-storm-cuda",
        subject: "family",
        promise: FAMILY,
        tried: "the same on 3 CUDA devices (a fake driver)",
        command: "family mode=fork children=64 threads=2 calls=200",
        api: Api::Cuda,
        ..PLAIN
    },
    Case {
        name: "child-with-neighbour",
        subject: "family",
        promise: FAMILY,
        tried: "a thread forks; in the child one with a stack beside its own calls first, then both",
        command: "forked mode=neighbour calls=200000",
        ..PLAIN
    },
    Case {
        name: "child-with-cancelled-thread",
        subject: "family",
        promise: "a thread that is cancelled in its first call holds no other up",
        tried: "pthread_cancel before a child's first call, then 1,000 calls of another thread",
        command: "forked mode=cancelled calls=1000",
        ..PLAIN
    },
    Case {
        name: "handler-forks",
        subject: "family",
        promise: "a handler may fork in the middle of a call, and return in both",
        tried: "200 forks by a handler of SIGALRM while the thread calls",
        command: "forked mode=handler children=200 calls=200",
        // The interrupted call may be in the trace of both.
        accounting: Accounting::None,
        ..PLAIN
    },
    Case {
        name: "library-reopened",
        subject: "reuse",
        promise: "a program that closes the API's library and opens it again is recorded",
        tried: "20 times dlopen, calls from two threads, dlclose",
        command: "reopened times=20 calls=10",
        ..PLAIN
    },
    Case {
        name: "main-thread-ends-cuda",
        subject: "life",
        promise: LIFE,
        tried: "main ends by pthread_exit, on 3 CUDA devices (a fake driver)",
        command: "workers threads=4 calls=3000 pause=10000 main=exit",
        accounting: Accounting::Whole,
        api: Api::Cuda,
        ..PLAIN
    },
];
