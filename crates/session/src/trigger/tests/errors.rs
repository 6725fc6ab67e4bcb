//! What is said of expressions that are wrong, word by word.

use super::*;

fn message(text: &str) -> String {
    match bind(&[text]) {
        Ok(_) => panic!("{text} is right"),
        Err(error) => error.to_string(),
    }
}

/// Expected messages, each behind the expression that it is of.
const GOLDEN: &str = include_str!("errors.txt");

#[test]
fn messages_show_the_place() {
    let texts = [
        "toyFinsh.duration > 2ms",
        "toyFinish.durtion > 2ms",
        "toyFinish.duration > 2",
        "toyFinish.duration > 2MiB",
        "toyFinish.duration > 2mss",
        "toyFinish.duration",
        "toyFinish > 2ms",
        "toyFinish.rate > 10",
        "toyRead.sise > 1MiB",
        "toyRead.size > 1ms",
        "toyRead.size == \"x\"",
        "toyRead.label > 3",
        "toyRead.box == 3",
        "toyRead.result == BADD",
        "toyGlue.duration > 1ms",
        "toyFinish.failed == 1",
        "nonsense > 3",
        "name == \"toyFlush\"",
        "name < \"toyFinish\"",
        "gpu.powr > 650W",
        "gpu.power > 650",
        "gpu.clocks > 1GHz",
        "host.memory.usd > 1GiB",
        "toyFinish.duration > 1ms && toyRead.duration > 1ms",
        "toyFinish.duration = 2ms",
        "toyFinish.duration > 2ms && ",
        "(toyFinish.duration > 2ms",
        "toyFinish.duration > 2ms)",
        "toyFinish.duration > 2ms idle > 3s",
        "label == \"open",
        "a.b.c.d > 1",
        "size > 18446744073709551616",
        "",
    ];
    let all: Vec<String> = texts.iter().map(|text| message(text)).collect();
    let all = all.join("\n\n") + "\n";
    if std::env::var_os("BLESS").is_some() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/trigger/tests/errors.txt");
        std::fs::write(path, &all).expect("a file");
        return;
    }
    assert_eq!(all, GOLDEN);
}

#[test]
fn what_is_too_long_or_too_deep_is_refused() {
    for (text, words) in [
        ("(".repeat(65) + "crash" + &")".repeat(65), "deeper than 64"),
        ("!".repeat(100) + "crash", "deeper than 64"),
        ("crash || ".repeat(1000), "at most 4096 bytes"),
    ] {
        let error = message(&text);
        assert!(error.contains(words), "{error}");
    }
    assert!(bind(&[&("!".repeat(60) + "crash")]).is_ok());
}

#[test]
fn telemetry_needs_samples() {
    let error = bind_where(&["gpu.power > 650W"], false, 10).map(drop).expect_err("no samples").to_string();
    assert!(error.contains("add it") && error.contains("--sample"), "{error}");
    let bound = bind(&["gpu.power > 650W"]).expect("right");
    let error = bound.check_devices(None).expect_err("no device").to_string();
    assert!(error.contains("nothing here reports `gpu.power`"), "{error}");
}
