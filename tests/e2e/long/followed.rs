//! `hetrace top` and `run --live` of long runs: the picture goes on from part to part.

use std::io::{BufRead, BufReader};

use super::*;

fn pictures(out: &str) -> Vec<serde_json::Value> {
    out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn in_picture(picture: &serde_json::Value, name: &str) -> u64 {
    let rows = picture["picture"]["tally"]["host"].as_array().expect("rows").iter();
    rows.filter(|row| row["name"] == name).map(|row| row["calls"].as_u64().expect("a number")).sum()
}

/// What there is now.
fn now(of: &str) -> serde_json::Value {
    let done = run(Command::new(hetrace()).args(["top", "--once", "--format", "json"]).arg(of));
    assert_eq!(done.status, 0, "{}", done.err);
    pictures(&done.out).pop().expect("a picture")
}

fn number(picture: &serde_json::Value, name: &str) -> u64 {
    picture["picture"][name].as_u64().unwrap_or_else(|| panic!("{name} in {picture:#}"))
}

/// What is counted of calls and commands.
fn counted(tally: &serde_json::Value) -> serde_json::Value {
    let rows = |table: &str, members: &[&str]| -> Vec<serde_json::Value> {
        let rows = tally[table].as_array().expect("rows").iter();
        let mut rows: Vec<serde_json::Value> =
            rows.map(|row| members.iter().map(|m| row[*m].clone()).collect()).collect();
        rows.sort_by_key(serde_json::Value::to_string);
        rows
    };
    serde_json::json!({
        "host": rows("host", &["api", "name", "calls", "errors", "total_ns", "self_ns", "min_ns", "max_ns"]),
        "device": rows("device", &["kind", "name", "calls", "total_ns", "bytes"]),
        "lost": tally["lost_events"], "unfinished": tally["unfinished_calls"], "orphans": tally["orphaned_exits"],
    })
}

#[test]
fn a_picture_goes_on_from_part_to_part() {
    let os: &[&str] = if hetrace_tests::has_tracepoints() { &["--os", "tree"] } else { &[] };
    for options in [&["--rotate-size", "64K"][..], &["--rotate-size=64K", "--compress"]] {
        // A call is open over all borders.
        let script = [
            "launch:3000",
            "touch:a",
            "block:d",
            "launch:3000",
            "touch:c",
            "wait:e",
            "launch:3000",
            "touch:f",
            "wait:g",
        ];
        let mut long = Long::start(&[options, os].concat(), &script);
        long.until("a");
        let id = long.id();
        let mut top = Command::new(hetrace());
        top.args(["top", &id, "--interval", "20ms", "--format", "json"]);
        let top = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hetrace");
        long.go("d");
        long.until("c");
        for of in [id.as_str(), long.trace.to_str().expect("a path")] {
            let picture = now(of);
            assert_eq!(in_picture(&picture, LAUNCH), 6000, "{of}");
            assert_eq!((number(&picture, "unread_parts"), number(&picture, "cut_parts")), (0, 0));
        }
        long.go("e");
        long.until("f");
        assert_eq!(in_picture(&now(&id), LAUNCH), 9000);
        long.go("g");
        let (status, err) = long.end();
        assert_eq!(status, Some(0), "{err}");
        assert!(long.parts().len() > 1);
        let done = top.wait_with_output().expect("a child");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && said.contains("the program has ended with status 0"), "{said}");
        assert!(said.contains(&format!("hetrace tally {}", long.trace.display())), "{said}");
        let pictures = pictures(&String::from_utf8_lossy(&done.stdout));
        let launches: Vec<u64> = pictures.iter().map(|picture| in_picture(picture, LAUNCH)).collect();
        assert!(launches.is_sorted() && launches.last() == Some(&9000), "{launches:?}");
        let last = pictures.last().expect("a picture");
        assert_eq!(counted(&last["picture"]["tally"]), counted(&tally(&long.trace)));
        // A finished series, and one of its parts.
        assert_eq!(
            counted(&now(long.trace.to_str().expect("a path"))["picture"]["tally"]),
            counted(&tally(&long.trace))
        );
        let part = long.parts().swap_remove(1);
        assert_eq!(in_picture(&now(part.to_str().expect("a path")), LAUNCH), launched(&part));
    }
}

#[test]
fn parts_that_were_seen_stay_in_the_sums_when_they_are_removed() {
    let script = [
        "launch:10",
        "touch:a",
        "wait:b",
        "launch:5000",
        "touch:c",
        "wait:d",
        "launch:5000",
        "touch:e",
        "wait:f",
    ];
    let mut long = Long::start(&["--rotate-size", "64K", "--keep", "1"], &script);
    long.until("a");
    let id = long.id();
    let mut top = Command::new(hetrace());
    top.args(["top", &id, "--interval", "10ms", "--format", "json"]);
    let mut top = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hetrace");
    // It has seen the first part, before that goes.
    let mut lines = BufReader::new(top.stdout.take().expect("a pipe")).lines();
    let mut shown = Vec::new();
    while shown.last().is_none_or(|picture| in_picture(picture, LAUNCH) < 10) {
        let line = lines.next().expect("a picture").expect("a line");
        shown.extend(pictures(&line));
    }
    let first = long.trace.join("0001");
    for (go, until) in [("b", "c"), ("d", "e")] {
        long.go(go);
        long.until(until);
    }
    wait_for("a removal", || !first.exists());
    // Whoever comes now knows that there was more.
    let late = now(&id);
    assert!(number(&late, "unread_parts") > 0, "{late:#}");
    assert!(in_picture(&late, LAUNCH) < 10_010);
    let text = run(Command::new(hetrace()).args(["top", "--once", &id]));
    assert!(
        text.out.contains("NOT READ:") && text.out.contains("removed before"),
        "{}{}",
        text.out,
        text.err
    );
    long.go("f");
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    shown.extend(lines.flat_map(|line| pictures(&line.expect("a line"))));
    let done = top.wait_with_output().expect("a child");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let launches: Vec<u64> = shown.iter().map(|picture| in_picture(picture, LAUNCH)).collect();
    let last = shown.last().expect("a picture");
    // Nothing twice and nothing forgotten; what was too quick for it is said, and then something may be missing.
    assert!(launches.is_sorted(), "{launches:?}");
    let seen = in_picture(last, LAUNCH);
    assert!(seen <= 10_010 && seen >= launched(&long.trace) + 10, "{seen}");
    let unread = number(last, "unread_parts") + number(last, "cut_parts");
    assert!(seen == 10_010 || unread > 0, "{seen} of 10010 launches, and nothing said: {last:#}");
}

#[test]
fn run_live_goes_on_from_part_to_part() {
    let mut long = Long::start(&["--live", "--rotate-size", "64K"], &["launch:9000", "touch:a", "wait:b"]);
    long.until("a");
    wait_for("a part", || long.trace.join("0002").exists());
    // Where there is no terminal it writes a line every ten seconds.
    let stderr = long.child.as_mut().and_then(|child| child.stderr.take()).expect("a pipe");
    let mut lines = BufReader::new(stderr).lines().map(|line| line.expect("a line"));
    let line = lines.find(|line| line.contains("live:")).expect("a line of what is recorded");
    long.go("b");
    let rest: Vec<String> = lines.collect();
    let (status, _) = long.end();
    assert_eq!(status, Some(0), "{rest:?}");
    let calls: u64 = (line.split_whitespace().collect::<Vec<_>>().windows(2))
        .find(|two| two[1].starts_with("call"))
        .and_then(|two| two[0].replace(['\u{2009}', ',', '\''], "").parse().ok())
        .unwrap_or_else(|| panic!("{line}"));
    assert!(calls > 9000 && !line.contains("NOT READ"), "{line}");
    is_sound(&long.trace);
    assert_eq!(launched(&long.trace), 9000);
}
