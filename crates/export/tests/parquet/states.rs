//! What the operating system did to threads, as rows.

use hetrace_trace::system::{Block, Life, Person, State, Stretch, System, Waker};

use super::read::{Row, number, text};
use super::{script, tables};

fn person(tid: i64, pid: Option<i64>, name: &str) -> Person {
    Person { tid, pid, name: name.to_owned(), namesake: 0 }
}

#[test]
fn states_are_rows_in_the_order_of_time() {
    let stretch = |start, end, state| Stretch { start, end, state, cpu: 3 };
    let one = vec![
        stretch(100, 1100, State::User),
        stretch(1100, 1300, State::Ready { behind: Some(1) }),
        stretch(1300, 1400, State::Unknown),
        stretch(1400, 2400, State::Blocked(0)),
    ];
    let two = vec![stretch(1200, 1250, State::User)];
    let (waker, holder) = (Waker::Thread(1), Waker::Thread(2));
    let mut trace = script("stacks");
    trace.join_system(System {
        lives: vec![Life { person: 0, stretches: one }, Life { person: 2, stretches: two }],
        people: vec![person(7, Some(7), "app"), person(9, None, "kworker/3"), person(8, Some(7), "holder")],
        blocks: vec![Block { call: None, address: Some(0x10), is_lock: true, waker, holder }],
        ..System::default()
    });
    let (_, tables) = tables(&trace);
    let cells = |row: &Row| {
        let numbers = ["tid", "cpu", "address", "by_tid"].map(|column| number(row, column));
        [numbers.join(" "), text(row, "thread"), text(row, "state"), text(row, "by")]
    };
    let rows: Vec<[String; 4]> = tables["states"].iter().map(cells).collect();
    let expected = [
        ["7 3 - -", "app", "user", ""],
        ["7 3 - 9", "app", "ready", "kworker/3"],
        ["8 3 - -", "holder", "user", ""],
        ["7 3 16 8", "app", "blocked", "holder"],
    ];
    assert_eq!(rows, expected);
}
