//! The time line as Perfetto itself sees it: `check_timeline.sh` runs this with a
//! folder to write to, and asks Perfetto's trace processor about the files.

#[path = "common/mod.rs"]
mod common;

use std::path::Path;

use hetrace_analyze::{tally, timeline};

#[test]
fn every_golden_trace_can_be_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let out = std::env::var_os("HETRACE_TIMELINES");
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let trace = common::build(text.split("\n== ").next().unwrap_or(""));
        let mut bytes = Vec::new();
        let options = timeline::Options::default();
        let summary = timeline::timeline(&trace, &options, &mut bytes).expect("memory takes it");
        let drawn = common::perfetto::read(&bytes);
        let count = |sign: &str| drawn.lines().filter(|l| l.contains(sign)).count() as u64;
        assert_eq!(count(" > ["), count(" < ["), "{}", path.display());
        let rows = tally::tally(&trace, &tally::Options::default()).host;
        let folded: u64 = rows.iter().map(|r| r.folded).sum();
        let runs = count("(folded)");
        let commands = summary.commands - summary.untimed;
        let slices = summary.calls - folded + runs + summary.unfinished + commands;
        assert_eq!(count(" > ["), slices, "{}", path.display());
        if let (Some(out), Some(name)) = (&out, path.file_stem()) {
            let to = Path::new(out).join(name).with_extension("pftrace");
            std::fs::write(&to, bytes).expect("writable");
            let expected = format!("{} slices, {} flows\n", slices + instants(&drawn) as u64, flows(&drawn));
            std::fs::write(to.with_extension("expected"), expected).expect("writable");
        }
    }
}

fn instants(drawn: &str) -> usize {
    drawn.lines().filter(|l| l.contains(" ! [")).count()
}

/// Arrows: each mention of a flow after its first.
fn flows(drawn: &str) -> usize {
    let mut seen = std::collections::HashSet::new();
    let flow = |l: &str| l.split_once("(flow ").map(|(_, rest)| rest.split(')').next().map(str::to_owned));
    drawn.lines().filter_map(flow).filter(|flow| !seen.insert(flow.clone())).count()
}

/// A writer whose other end is closed after some bytes.
struct Closed(usize);

impl std::io::Write for Closed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_ends_it() {
    let mut script = String::new();
    for i in 0..10_000 {
        let (at, end) = (i * 100, i * 100 + 50);
        script += &format!("{at} 1.1 > toyFinish queue=0x1\n{end} 1.1 < toyFinish result=0\n");
    }
    let trace = common::build(&script);
    let kind = |result: std::io::Result<_>| result.map(|_| ()).expect_err("it is closed").kind();
    let drawn = timeline::timeline(&trace, &timeline::Options::default(), &mut Closed(100_000));
    assert_eq!(kind(drawn), std::io::ErrorKind::BrokenPipe);
    let options = hetrace_analyze::print::Options::default();
    let printed = hetrace_analyze::print::print(&trace, &options, &mut Closed(1000));
    assert_eq!(kind(printed), std::io::ErrorKind::BrokenPipe);
}
