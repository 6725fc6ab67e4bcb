//! Exports of a real run, read by others: two ranks of a job on a library that meets and
//! launches as NCCL does.

use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::{fake, fake_nccl, hetrace};
use tempfile::TempDir;

/// Runs `tests/programs/nccl/ranks.c` under trace, as a launcher of jobs would start it.
fn record(scratch: &Path) {
    let mut line = Command::new(hetrace());
    line.args(["run", "-q", "--buffer", "8192", "--device-times", "events", "-o"]).arg(scratch.join("job"));
    line.arg("--").arg(fake_nccl::library().join("ranks")).arg("work");
    let folders = [fake_nccl::library(), fake::driver()].map(|f| f.display().to_string());
    line.env("LD_LIBRARY_PATH", folders.join(":")).env("TMPDIR", scratch);
    line.env("FAKE_CUDA_DEVICES", "2").env("PMI_RANK", "6").env("PMI_SIZE", "9");
    let done = run(&mut line);
    assert_eq!(done.status, 0, "{}{}", done.out, done.err);
}

/// Writes it; returns what the program wrote to stderr.
fn export(scratch: &Path, format: &str) -> String {
    let done = run(Command::new(hetrace()).current_dir(scratch).args(["export", "job", "-f", format]));
    assert_eq!(done.status, 0, "{format}: {}", done.err);
    done.err
}

#[test]
fn sends_and_receives_are_messages_in_otf2() {
    let scratch = TempDir::new().expect("a scratch folder");
    record(scratch.path());
    let said = export(scratch.path(), "otf2");
    assert!(!said.contains("counterpart"), "{said}");
    let anchor = scratch.path().join("job.otf2/traces.otf2");
    let printed = Command::new("otf2-print").arg("-A").arg(&anchor).output();
    let Ok(printed) = printed else {
        eprintln!("skipped: otf2-print is not installed (otf2-tools)");
        return;
    };
    assert!(
        printed.status.success() && printed.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&printed.stderr)
    );
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    let events = |kind: &str| text.lines().filter(|line| line.split(' ').next() == Some(kind)).count();
    let kinds = ["MPI_ISEND", "MPI_ISEND_COMPLETE", "MPI_IRECV_REQUEST", "MPI_IRECV"];
    assert_eq!(kinds.map(events), [2; 4], "{text}");
    // 256 floats, between the two ranks of the communicator.
    for rank in ["Receiver: 0", "Receiver: 1", "Sender: 0", "Sender: 1"] {
        let line = text.lines().find(|line| line.starts_with("MPI_I") && line.contains(rank));
        assert!(line.is_some_and(|line| line.contains("Length: 1024")), "{rank}: {line:?}");
    }
    // Both processes inherited the launcher's rank.
    assert!(text.contains("\"rank 6: ranks (process "), "{text}");
}

/// What each operation launched, and which rank called for it.
const QUERY: &str = "
import duckdb, sys
duckdb.sql(f\"CREATE VIEW c AS FROM read_parquet('{sys.argv[1]}/collectives/**/*.parquet', hive_partitioning = true)\")
duckdb.sql(f\"CREATE VIEW d AS FROM read_parquet('{sys.argv[1]}/commands/**/*.parquet', hive_partitioning = true)\")
for row in duckdb.sql('''
  SELECT operation, comm_rank, c.job_rank, peer_rank, c.bytes, count(command_id),
         any_value(regexp_extract(kernel_symbol, 'Kernel_([A-Za-z]+)', 1))
  FROM c LEFT JOIN d USING (host, rank, launch_call_id)
  GROUP BY ALL ORDER BY ALL''').fetchall():
    print(*row)
";

#[test]
fn operations_have_their_commands_in_parquet() {
    let scratch = TempDir::new().expect("a scratch folder");
    record(scratch.path());
    export(scratch.path(), "parquet");
    let folder = scratch.path().join("job.parquet");
    let host = std::fs::read_dir(folder.join("calls")).expect("a table").flatten().next().expect("a host");
    assert!(host.path().join("rank=6/calls.parquet").exists(), "{:?}", host.path());
    let python = python();
    let there = Command::new(&python).args(["-c", "import duckdb"]).output();
    if !there.is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: {python} has no duckdb (pip install duckdb)");
        return;
    }
    let done = run(Command::new(&python).args(["-c", QUERY]).arg(&folder));
    assert_eq!(done.status, 0, "{}", done.err);
    // The half communicator was split off, so that its ranks are not known.
    let expected = [
        "all-gather 0 6 None 2000 1 AllGather",
        "all-gather 1 6 None 2000 1 AllGather",
        "all-reduce 0 6 None 24 1 AllReduce",
        "all-reduce 0 6 None 4000 1 AllReduce",
        "all-reduce 1 6 None 24 1 AllReduce",
        "all-reduce 1 6 None 4000 1 AllReduce",
        "broadcast 0 6 1 64 1 Broadcast",
        "broadcast 1 6 1 64 1 Broadcast",
        "receive 0 6 1 1024 1 SendRecv",
        "receive 1 6 0 1024 1 SendRecv",
        "reduce None 6 0 128 2 Reduce",
        "reduce-scatter 0 6 None 512 1 ReduceScatter",
        "reduce-scatter 1 6 None 512 1 ReduceScatter",
        "send 0 6 1 1024 1 SendRecv",
        "send 1 6 0 1024 1 SendRecv",
    ];
    assert_eq!(done.out.lines().collect::<Vec<_>>(), expected);
}

/// The Python with the packages: the one that is named, that of `scripts/install-deps.sh`, or any.
fn python() -> String {
    let installed = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/python/bin/python");
    let named = std::env::var("HETRACE_PYTHON").ok();
    let installed = || Path::new(installed).exists().then(|| installed.to_owned());
    named.or_else(installed).unwrap_or_else(|| "python3".to_owned())
}
