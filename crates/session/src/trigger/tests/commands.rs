//! Triggers about commands on devices.

use hetrace_format::command::CommandKind;

use super::*;
use crate::trigger::Ran;

fn kernel(name: &str, ns: u64) -> Ran {
    Ran {
        kind: CommandKind::Kernel,
        function: name.to_owned(),
        times: Some((1_000, 1_000 + ns)),
        cause: Some(400),
        bytes: 0,
        pid: 7,
        tid: 8,
    }
}

fn copy(kind: CommandKind, bytes: u64) -> Ran {
    Ran { kind, function: String::new(), bytes, ..kernel("", 50) }
}

/// How often a trigger fires for some commands.
fn fired(text: &str, commands: &[Ran]) -> u64 {
    let mut watch = watch(text);
    assert!(watch.is_about_commands(), "{text}");
    commands.iter().for_each(|ran| watch.command(ran));
    watch.accounts()[0].fired
}

#[test]
fn each_command_is_compared_by_itself() {
    let all = [
        kernel("gemm_32", 5_000),
        kernel("gemm_64", 9_000),
        kernel("relu", 9_000),
        copy(CommandKind::Read, 4096),
        copy(CommandKind::Fill, 1 << 20),
    ];
    for (text, times) in [
        ("kernel.duration > 6us", 2),
        ("kernel.name == \"gemm*\" && kernel.duration > 6us", 1),
        ("kernel.name != \"gemm*\"", 1),
        ("copy.size >= 4KiB", 1),
        ("command.size >= 4KiB", 2),
        ("command.name == \"fill\"", 1),
        ("copy.name == read", 1),
        ("!(kernel.duration > 6us)", 1),
        ("kernel.wait == 600ns && kernel.pid == 7 && kernel.tid == 8", 3),
        ("kernel.duration > 6us || copy.size > 1KiB", 3),
        ("kernel.duration > 1s", 0),
    ] {
        assert_eq!(fired(text, &all), times, "{text}");
    }
}

#[test]
fn what_is_not_known_says_nothing() {
    let untimed = Ran { times: None, cause: None, ..kernel("gemm", 0) };
    for text in ["kernel.duration > 0ns", "!(kernel.duration > 0ns)", "kernel.wait >= 0ns"] {
        assert_eq!(fired(text, std::slice::from_ref(&untimed)), 0, "{text}");
    }
}

#[test]
fn who_fired_is_named() {
    let mut watch = watch("kernel.duration > 6us");
    watch.command(&kernel("gemm", 9_000));
    let fired = watch.take(20_000).remove(0);
    assert_eq!((fired.function.as_str(), fired.pid, fired.tid), ("gemm", Some(7), Some(8)));
    assert_eq!(fired.value, "kernel.duration = 9 us");
    assert_eq!(fired.time_ns, 10_000);
}

#[test]
fn calls_and_commands_are_compared_apart() {
    assert!(!watch("toyFinish.duration > 1ms").is_about_commands());
    // Either of both.
    assert!(watch("toyFinish.duration > 1ms || kernel.duration > 1ms").is_about_commands());
    for (text, why) in [
        ("kernel.duration > 1ms && toyFinish.duration > 1ms", "can never be true"),
        ("kernel.duration > 1ms && copy.size > 1", "can never be true"),
        ("kernel.colour == 3", "there are: name, duration, wait, size, pid, tid"),
        ("kernel.duraton > 1ms", "did you mean `duration`"),
        ("kernel.duration > 5", "unit"),
        ("kernel > 5", "such as `kernel.duration > 2ms`"),
    ] {
        let error = bind(&[text]).expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}
