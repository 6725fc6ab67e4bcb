//! What `tally --json` prints is what `docs/tally.schema.json` says, nothing less
//! and nothing more: checked as far as the schema goes.

mod common;

use std::path::Path;

use hetrace_report::tally::{
    By, InsideBlockRow, InsideLoopRow, InsideLostRow, InsideRoofline, InsideRow, InsideRows, InsideTakes,
    Options, Query, RefusedRow, Tally, aggregate,
};
use serde_json::Value;

/// What is wrong with a value, by its place.
fn check(schema: &Value, root: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
        return check(&root["$defs"][name], root, value, at, wrong);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let fits = |choice: &Value| {
            let mut inner = Vec::new();
            check(choice, root, value, at, &mut inner);
            inner.is_empty()
        };
        if !choices.iter().any(fits) {
            wrong.push(format!("{at}: fits no choice"));
        }
        return;
    }
    if let Some(expected) = schema.get("const").filter(|expected| *expected != value) {
        wrong.push(format!("{at}: {value} is not {expected}"));
    }
    if let Some(choices) = schema["enum"].as_array().filter(|choices| !choices.contains(value)) {
        wrong.push(format!("{at}: {value} is none of {choices:?}"));
    }
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type {other}"),
    };
    let fits = match &schema["type"] {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    };
    if !fits || (schema["minimum"] == 0 && value.as_f64().is_some_and(|n| n < 0.0)) {
        wrong.push(format!("{at}: {value} is no {}", schema["type"]));
        return;
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(&schema["items"], root, item, &format!("{at}[{index}]"), wrong);
    }
    let Some(members) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            wrong.push(format!("{at}: {name} is missing"));
        }
    }
    for (name, member) in members {
        match schema["properties"].get(name) {
            Some(inner) => check(inner, root, member, &format!("{at}.{name}"), wrong),
            None => wrong.push(format!("{at}: the schema has no {name}")),
        }
    }
}

#[test]
fn json_is_as_the_schema_says() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schema = std::fs::read_to_string(here.join("../../docs/tally.schema.json")).expect("the schema");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in std::fs::read_dir(here.join("tests/golden")).expect("the folder").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let script = text.split("\n== ").next().unwrap_or("");
        let trace = common::build_with(common::models_that_occur(script), script, |_| {});
        let all = By::ALL.to_vec();
        for (extended, by) in [(false, vec![]), (true, vec![]), (false, vec![By::Process]), (false, all)] {
            let query = Query { by, ..Query::default() };
            let sums = aggregate(&trace, &Options { extended }, &query).expect("nobody stops it");
            let json = serde_json::to_value(sums.tally()).expect("JSON");
            let mut here = Vec::new();
            check(&schema, &schema, &json, "", &mut here);
            wrong.extend(here.iter().map(|what| format!("{}: {what}", path.display())));
            seen += 1;
        }
    }
    assert!(seen > 40 && wrong.is_empty(), "{seen}: {}", wrong.join("\n"));
}

#[test]
fn insides_of_kernels_are_as_the_schema_says() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schema = std::fs::read_to_string(here.join("../../docs/tally.schema.json")).expect("the schema");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let known = InsideRow {
        mode: "edges".to_owned(),
        launches_as_they_were: Some(1),
        slowdown: Some(1.5),
        active: Some(0.5),
        imbalance: Some(1.0),
        blocks: vec![InsideBlockRow { source: Some("a.cu:1".to_owned()), ..InsideBlockRow::default() }],
        loops: vec![InsideLoopRow { distribution: vec![1, 2], ..InsideLoopRow::default() }],
        plain: Some(InsideTakes {
            registers: 40,
            occupancy: Some(75.0),
            limited_by: Some("registers".to_owned()),
        }),
        recorded: Some(InsideTakes { registers: 56, ..InsideTakes::default() }),
        roofline: Some(InsideRoofline { below: Some("memory".to_owned()), ..InsideRoofline::default() }),
        tail: Some(0.25),
        ..InsideRow::default()
    };
    let unknown = InsideRow { mode: "blocks".to_owned(), ..InsideRow::default() };
    let rows = InsideRows {
        kernels: vec![known, unknown],
        refused: vec![RefusedRow::default()],
        losses: vec![InsideLostRow::default()],
        problems: vec!["what".to_owned()],
        ..InsideRows::default()
    };
    let tally = Tally { inside: Some(rows), schema: hetrace_report::tally::SCHEMA, ..Tally::default() };
    let json = serde_json::to_value(tally).expect("JSON");
    let mut wrong = Vec::new();
    check(&schema, &schema, &json, "", &mut wrong);
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let schema = serde_json::json!({
        "type": "object", "required": ["a"],
        "properties": {"a": {"type": "integer", "minimum": 0}, "b": {"type": "array", "items": {"const": 1}}}
    });
    for (json, count) in [
        (serde_json::json!({"a": 1, "b": [1]}), 0),
        (serde_json::json!({"a": -1}), 1),
        (serde_json::json!({"b": [2, 1]}), 2),
        (serde_json::json!({"a": 1, "c": 0}), 1),
        (serde_json::json!([]), 1),
    ] {
        let mut wrong = Vec::new();
        check(&schema, &schema, &json, "", &mut wrong);
        assert_eq!(wrong.len(), count, "{json}: {wrong:?}");
    }
}
