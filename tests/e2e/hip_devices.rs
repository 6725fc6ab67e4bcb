//! Times of HIP's commands: what was in the time lines of the fake library's streams (`tests/programs/hip/fake_hip.c`)
//! against what the trace has. It is a fake: no AMD GPU has been seen.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::fake_hip::programs;
use hetrace_tests::seen::Command as OnDevice;
use hetrace_tests::{Done, Seen, hetrace, reports};
use tempfile::TempDir;

struct Ran {
    done: Done,
    folder: PathBuf,
    _scratch: TempDir,
}

fn traced(program: &str, variables: &[(&str, &str)], options: &[&str]) -> Ran {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("trace");
    let with = |command: &mut Command| {
        run(command.env("LD_LIBRARY_PATH", programs()).envs(variables.iter().copied()))
    };
    let bare = with(&mut Command::new(programs().join(program)));
    let mut command = Command::new(hetrace());
    command.args(["run", "--buffer", "8192"]).args(options).arg("-o").arg(&folder);
    let done = with(command.arg("--").arg(programs().join(program)));
    let said = |done: &Done| {
        let lines = done.out.lines().filter(|line| !line.starts_with("RAN ")).map(str::to_owned);
        (lines.collect::<Vec<_>>(), done.status)
    };
    assert_eq!(said(&done), said(&bare), "{}", done.err);
    Ran { done, folder, _scratch: scratch }
}

impl Ran {
    /// What the library says of each command.
    fn said(&self) -> Vec<BTreeMap<String, String>> {
        let lines = self.done.out.lines().filter_map(|line| line.strip_prefix("RAN "));
        let pair = |pair: &str| pair.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
        let mut said: Vec<BTreeMap<_, _>> =
            lines.map(|line| line.split(' ').filter_map(pair).collect()).collect();
        said.sort_by_key(|said| said["start"].parse::<u64>().expect("a time"));
        said
    }

    fn seen(&self) -> Vec<OnDevice> {
        let mut commands = Seen::read(&self.folder).commands;
        commands.sort_by_key(|c| c.start);
        commands
    }

    fn tally(&self) -> serde_json::Value {
        reports::tally(&self.folder)
    }
}

/// Each command is in the trace once, with its name, and lasted as long as in its stream's time line: what its events
/// say, which are apart by what it took to record them where the stream had nothing else to do.
fn check(ran: &Ran) {
    let (said, seen) = (ran.said(), ran.seen());
    let names = |commands: &mut dyn Iterator<Item = (String, String)>| {
        let mut names: Vec<_> = commands.map(|(kind, name)| format!("{kind} {name}")).collect();
        names.sort();
        names
    };
    let known = |name: &str| match name {
        "-" => String::new(),
        name => name.to_owned(),
    };
    assert_eq!(
        names(&mut seen.iter().map(|c| (c.kind.clone(), c.name.clone()))),
        names(&mut said.iter().map(|s| (s["kind"].clone(), known(&s["name"])))),
        "{}{}",
        ran.done.out,
        ran.done.err
    );
    assert_eq!(ran.tally()["lost_device_commands"], 0);
    // Commands behind others of their stream begin when these end, and then the events say it to the float's precision.
    let mut behind = 0;
    for kind in ["s", "l", "p"] {
        let line: Vec<_> = said.iter().filter(|s| s["stream"] == kind).collect();
        for pair in line.windows(2).filter(|pair| pair[0]["end"] == pair[1]["start"]) {
            let number = |name: &str| pair[1][name].parse::<u64>().expect("a time");
            let lasted = number("end") - number("start");
            let name = known(&pair[1]["name"]);
            // A copy that the call waits for has ended before the event behind it is recorded.
            let blocks = pair[1]["kind"] == "read";
            let found = seen.iter().filter(|c| c.kind == pair[1]["kind"] && c.name == name).any(|c| {
                let here = c.end - c.start;
                here.abs_diff(lasted) <= 200 + lasted / 1000 || (blocks && here > lasted)
            });
            assert!(found, "{pair:?}\n{seen:#?}");
            behind += 1;
        }
    }
    assert!(behind >= 5, "{}", ran.done.out);
    for command in &seen {
        assert_eq!(command.device_name, "a fake of gfx90a");
    }
}

#[test]
fn commands_have_the_times_of_their_streams() {
    let ran = traced("device", &[], &[]);
    check(&ran);
    let seen = ran.seen();
    let bytes = |kind: &str| seen.iter().filter(|c| c.kind == kind).map(|c| c.bytes).sum::<u64>();
    assert_eq!([bytes("write"), bytes("read"), bytes("copy")], [3 * 4096, 3 * 512 + 64, 3 * 256]);
    let sizes = |name: &str| {
        let mut all: Vec<_> = seen.iter().filter(|c| c.name == name).map(|c| c.global.clone()).collect();
        all.sort();
        all.dedup();
        all
    };
    assert_eq!(sizes("module_kernel"), [vec![32, 3, 1], vec![64, 8, 1]]);
    assert!(ran.done.err.contains("captured commands are timed as part of their graph"), "{}", ran.done.err);
    let tally = ran.tally();
    assert!(tally["utilization"][0]["device"].as_str().expect("a name").starts_with("a fake of gfx90a"));
    // The default streams, of all threads and of the one, and two of the program's.
    let queues: std::collections::BTreeSet<u64> = seen.iter().map(|c| c.queue).collect();
    assert_eq!(queues.len(), 3, "{queues:?}");
}

/// As in versions before 6: every call of ours would be the thread's last error.
#[test]
fn the_last_error_stays_the_programs() {
    for variables in [&[][..], &[("FAKE_HIP_OLD", "1")]] {
        // `traced` compares what the program prints of it with a run without us.
        let ran = traced("device", variables, &[]);
        assert!(ran.done.out.contains("failed: last error 1\n"), "{}", ran.done.out);
    }
}

#[test]
fn samples_are_counted() {
    let ran = traced("device", &[], &["--device-times", "sampled:2"]);
    let launches = Seen::read(&ran.folder).launches;
    let counted: u64 = launches.values().map(|[all, ..]| all).sum();
    let kernels = ran.said().iter().filter(|s| s["kind"] == "kernel").count() as u64;
    assert_eq!(counted, kernels, "{launches:?}");
}
