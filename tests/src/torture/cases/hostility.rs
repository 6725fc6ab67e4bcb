//! Kills, and programs that attack the session they are recorded in.

use crate::torture::case::{Accounting, Api, Case, PLAIN};

const KILLS: &str = "what returned before a SIGKILL is in the trace, or counted";

pub const CASES: &[Case] = &[
    Case {
        name: "hostile-program",
        subject: "hostile",
        promise: "the launcher survives any damage to its session: the program's status, a readable trace",
        tried: "files truncated, grown, overwritten, deleted, replaced by FIFOs, links, folders and devices, at random while three processes record",
        command: "hostile attacks=400 seed=SEED @workers threads=3 calls=2000 pause=1000",
        accounting: Accounting::None,
        short: 2,
        long: 12,
        ..PLAIN
    },
    Case {
        name: "killed-processes",
        subject: "kills",
        promise: KILLS,
        tried: "8 processes of 3 threads killed at random times, in 3 rounds; half of them have just been executed",
        command: "killed rounds=3 children=8 threads=3 seed=SEED",
        long: 10,
        ..PLAIN
    },
    Case {
        name: "killed-processes-blocking",
        subject: "kills",
        promise: KILLS,
        tried: "the same with rings of 4 KiB and --on-full block",
        command: "killed rounds=2 children=8 threads=3 seed=SEED",
        options: "--buffer 4 --on-full block",
        long: 5,
        ..PLAIN
    },
    Case {
        name: "killed-processes-cuda",
        subject: "kills",
        promise: KILLS,
        tried: "the same on 3 CUDA devices (a fake driver)",
        command: "killed rounds=2 children=8 threads=3 seed=SEED",
        api: Api::Cuda,
        long: 5,
        ..PLAIN
    },
    Case {
        name: "killed-launcher",
        subject: "kills",
        promise: "a program that waits for room runs on when the launcher is killed",
        tried: "SIGKILL to the launcher with rings of 4 KiB and --on-full block, in the middle of 800,000 calls",
        command: "workers threads=4 calls=200000 report=ready",
        options: "-m full --buffer 4 --on-full block",
        accounting: Accounting::None,
        kills_launcher: true,
        long: 5,
        ..PLAIN
    },
];
