//! Manifests of this version, of older ones and of ones to come.

use super::*;

#[test]
fn every_member_may_be_missing() {
    assert_eq!(Manifest::parse(b"{}").unwrap(), Manifest::default());
}

#[test]
fn members_are_read() {
    let text = br#"{"schema":1,"command":["./app","-n"],"exit":{"signal":9},
        "processes":[{"pid":7,"parent":1,"command":["./app","-n"],"job":{"PMI_RANK":2}},
                     {"pid":8,"command":"./app -n"},{"pid":9,"command":null}],
        "losses":{"records":3,"threads":[{"pid":7,"tid":8,"name":"w","api":"toy","records":3}]},
        "device_clocks":[{"pid":7,"device":4096,"error_ns":120,"epochs":2},{"device":"0xd"}], "later":true}"#;
    let manifest = Manifest::parse(text).unwrap();
    assert_eq!(manifest.exit, Some(Exit::Signal(9)));
    assert_eq!(manifest.processes[0].line(), "./app -n");
    assert_eq!(manifest.processes[1].line(), "./app -n");
    assert_eq!(manifest.processes[2].line(), "");
    assert_eq!(manifest.losses.threads[0].tid, 8);
    assert_eq!(manifest.device_clocks[0].title(), "0x1000");
    assert_eq!(manifest.device_clocks[1].handle, 0xd);
    assert!(manifest.is_present());
}

#[test]
fn members_that_are_not_known_are_named() {
    let text = br#"{"schema":2,"later":{"a":1},"losses":{"records":1,"lemons":2},
        "processes":[{"pid":1},{"pid":2,"colour":"red"}],"cost":{"call_ns":1.5}}"#;
    let (manifest, unknown) = Manifest::parse_strictly(text).unwrap();
    assert_eq!(unknown, ["later", "losses.lemons", "processes.1.colour"]);
    assert_eq!(manifest, Manifest::parse(text).unwrap());
    assert!(Manifest::parse_strictly(b"{} 1").is_err());
}

#[test]
fn what_is_written_is_read_again() {
    let clock = DeviceClock { pid: 7, api: "toy".to_owned(), handle: 0xd, ..DeviceClock::default() };
    let origin = Origin { of: "a".to_owned(), pids: vec![(1, 2)], ..Origin::default() };
    let manifest = Manifest {
        schema: crate::SCHEMA,
        exit: Some(Exit::Code(3)),
        start_ns: Some(5),
        device_clocks: vec![clock],
        processes: vec![Process { pid: 7, command: vec!["a b".to_owned()], ..Process::default() }],
        written: Written { records: Some(1), bytes: 2, account: None },
        merged: Some(vec![origin]),
        clocks: Some(vec![Boot { boot: "b".to_owned(), shift_ns: -3 }]),
        trimmed: vec![Part { to_ns: Some(-1), ..Part::default() }],
        ..Manifest::default()
    };
    let text = serde_json::to_vec(&manifest).unwrap();
    let (again, unknown) = Manifest::parse_strictly(&text).unwrap();
    assert_eq!((again, unknown), (manifest, vec![]));
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(r#""device":"0xd""#) && text.contains(r#""pids":[[1,2]]"#), "{text}");
}

#[test]
fn members_of_other_types_are_errors() {
    for text in [
        &br#"{"device_clocks":[{"device":"d"}]}"#[..],
        br#"{"processes":[{"command":7}]}"#,
        br#"{"cost":{"call_ns":"NaN"}}"#,
        br#"{"cost":7}"#,
        br#"[]"#,
    ] {
        assert!(Manifest::parse(text).is_err(), "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn what_is_not_changed_stays_as_it_is() {
    let old = br#"{"later":{"a":[1]},"schema":2,"losses":{"lemons":2},"start_ns":7,"notes":["one"]}"#;
    let change = |manifest: &mut Manifest| {
        assert_eq!(manifest.start_ns, Some(7));
        manifest.notes.push("two".to_owned());
        manifest.start_ns = None;
    };
    let new: Value = serde_json::from_slice(&Manifest::rewrite(Some(old), change).unwrap()).unwrap();
    let expected = serde_json::json!({
        "later": {"a": [1]}, "schema": 2, "losses": {"lemons": 2}, "notes": ["one", "two"],
    });
    assert_eq!(new, expected);
    // Where it can't be read, what is JSON stays.
    let new = Manifest::rewrite(Some(br#"{"cost":7}"#), |m| m.schema = 2).unwrap();
    assert_eq!(String::from_utf8(new).unwrap(), r#"{"cost":7,"schema":2}"#);
    let new = Manifest::rewrite(Some(b"damaged"), |m| m.schema = 2).unwrap();
    assert_eq!(String::from_utf8(new).unwrap(), r#"{"schema":2}"#);
}

proptest::proptest! {
    /// To the last bit: reports of the same trace agree, whoever has written its manifest again.
    #[test]
    fn numbers_with_fractions_are_read_as_they_were_written(number in proptest::num::f64::NORMAL) {
        let host_clock = HostClock { ticks_per_second: number, ..HostClock::default() };
        let manifest = Manifest { host_clock, ..Manifest::default() };
        let text = serde_json::to_vec(&manifest).unwrap();
        proptest::prop_assert_eq!(Manifest::parse(&text).unwrap(), manifest);
    }
}
