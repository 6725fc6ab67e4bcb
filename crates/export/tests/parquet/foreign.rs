//! DuckDB and pyarrow read what is written, where Python has them
//! (`HETRACE_PYTHON` names another one than `python3`).

use std::path::Path;
use std::process::Command;

use hetrace_export::parquet::export;

use super::{ALL, GO_ON, Options, common, script};

#[test]
fn duckdb_and_pyarrow_read_it() {
    let python = python();
    let there = Command::new(&python).args(["-c", "import duckdb, pyarrow.dataset"]).output();
    if !there.is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: {python} has no duckdb and pyarrow (pip install duckdb pyarrow)");
        return;
    }
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check_parquet.py");
    // Several traces in one folder, as ranks are: what one has not, another has.
    let folder = tempfile::tempdir().expect("a folder");
    let golden = [
        "device",
        "ranges",
        "telemetry",
        "arguments",
        "errors",
        "folds",
        "orphan",
        "unfinished",
        "lost",
        "collectives",
        "ranks",
    ];
    let traces = golden.iter().map(|name| script(name)).chain([common::long(common::models(), 2, 70_000)]);
    for (trace, rank) in traces.zip(0..) {
        export(&trace, &Options { rank: Some(rank), ..ALL }, GO_ON, folder.path()).expect("an export");
    }
    let done = Command::new(&python).arg(check).arg(folder.path()).output().expect("python");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.contains("queries"), "{said}");
}

/// The Python with the packages: the one that is named, that of `scripts/install-deps.sh`, or any.
fn python() -> String {
    let installed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/bin/python");
    let named = std::env::var("HETRACE_PYTHON").ok();
    let installed = || std::path::Path::new(installed).exists().then(|| installed.to_owned());
    named.or_else(installed).unwrap_or_else(|| "python3".to_owned())
}
