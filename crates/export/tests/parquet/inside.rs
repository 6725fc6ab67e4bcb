//! Records inside of kernels.

use super::read::{long, number, rows, text};
use super::{common, tables};

#[test]
fn records_of_warps_are_rows() {
    let (_, tables) = tables(&common::inside::trace());
    let records = &tables["inside"];
    assert_eq!(records.len(), 2 * 48 - 7);
    let times = rows(records, "time_ns");
    assert!(times.is_sorted(), "{times:?}");
    // Each lies in its command, which is one of the table of commands.
    let commands: Vec<(i64, i64)> = tables["commands"]
        .iter()
        .filter(|row| text(row, "kernel_symbol").ends_with("__hetrace_inside"))
        .map(|row| (long(&row["start_ns"]).expect("a number"), long(&row["end_ns"]).expect("a number")))
        .collect();
    for (record, time) in records.iter().zip(&times) {
        let start = long(&record["command_start_ns"]);
        let command = commands.iter().find(|(begin, _)| Some(*begin) == start);
        assert!(command.is_some_and(|(begin, end)| (begin..=end).contains(&time)), "{record:?}");
    }
    let sum = records.iter().find(|row| text(row, "kind") == "sum").expect("a sum");
    let of = [
        "grid_id",
        "thread_block_x",
        "multiprocessor",
        "site",
        "basic_block",
        "source_line",
        "lanes",
        "taken",
        "repeats",
    ];
    assert_eq!(of.map(|column| number(sum, column)), ["1", "2", "0", "0", "1", "5", "255", "255", "40"]);
    assert_eq!(
        (text(sum, "kernel_symbol"), text(sum, "kernel_name"), text(sum, "source_file")),
        ("_Z4spinPfi".to_owned(), "spin(float*, int)".to_owned(), "spin.cu".to_owned())
    );
    let begin = records.iter().find(|row| text(row, "kind") == "begin").expect("a begin");
    assert_eq!(["site", "taken", "successor", "repeats"].map(|column| number(begin, column)), ["-"; 4]);
    assert_eq!(number(begin, "lanes"), "4294967295");
}
