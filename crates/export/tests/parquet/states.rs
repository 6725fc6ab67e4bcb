//! What the operating system did to threads, as rows.

use super::read::{Row, number, rows, text};
use super::{script, tables};

#[test]
fn states_are_rows_in_the_order_of_time() {
    let (_, tables) = tables(&script("system"));
    let all = &tables["states"];
    assert!(rows(all, "start_ns").is_sorted());
    let cells = |row: &Row| {
        let [tid, ns, by] = ["tid", "end_ns", "by_tid"].map(|column| number(row, column));
        let ns = ns.parse::<i64>().unwrap_or(0) - rows(std::slice::from_ref(row), "start_ns")[0];
        let address = number(row, "address");
        format!(
            "{tid} {ns} {} {} {by} {} {address}",
            text(row, "state"),
            text(row, "inside"),
            text(row, "by")
        )
    };
    let lines: Vec<String> = all.iter().map(cells).collect();
    for expected in [
        "1 6000 blocked futex 2 builder 2748",
        "1 600 ready  70 hog -",
        "1 3000 blocked clock_nanosleep - a timer -",
        "1 100 interrupted disk -",
        "2 7900 user  -  -",
    ] {
        let has = lines.iter().any(|line| line.starts_with(expected));
        assert!(has, "{expected}: {lines:#?}");
    }
    assert!(all.iter().all(|row| text(row, "state") != "unknown"));
}
