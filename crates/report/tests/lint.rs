//! What holds for all findings: each rule has a trace with its fault and one without, SARIF has
//! what its schema demands, and no trace makes the search panic.

mod common;

use std::collections::BTreeSet;

use hetrace_report::lint::{self, Options, RULES, Report};
use serde_json::Value;

/// Name and script of the traces that have faults, and of those beside them that have not.
fn scripts() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = std::fs::read_dir(folder).expect("the folder").flatten().map(|e| e.path());
    let mut scripts: Vec<_> = entries
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_prefix("lint_")?.strip_suffix(".txt")?.to_owned();
            let text = std::fs::read_to_string(&path).expect("readable");
            Some((name, text.split("\n== ").next().unwrap_or("").to_owned()))
        })
        .collect();
    scripts.sort();
    scripts
}

fn linted(script: &str) -> Report {
    lint::lint(&common::build(script), &Options::default())
}

#[test]
fn each_rule_has_a_trace_with_its_fault_and_one_without() {
    let has = |report: &Report, rule: &str| report.findings.iter().any(|f| f.rule == rule);
    let scripts = scripts();
    let of = |name: &str| {
        let found = scripts.iter().find(|(known, _)| known == name);
        linted(&found.unwrap_or_else(|| panic!("no lint_{name}.txt")).1)
    };
    for rule in RULES {
        let name = rule.id.replace('-', "_");
        assert!(has(&of(&name), rule.id), "{}", rule.id);
        assert!(!has(&of(&format!("{name}_not")), rule.id), "{}", rule.id);
    }
}

#[test]
fn rules_can_be_chosen() {
    let scripts = scripts();
    let script = &scripts.iter().find(|(name, _)| name == "double_release").expect("it is there").1;
    let trace = common::build(script);
    let with = |only: &[&str], except: &[&str]| {
        let list = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        let options = Options { only: list(only), except: list(except), partial: None };
        lint::lint(&trace, &options).findings.iter().map(|f| f.rule).collect::<BTreeSet<_>>()
    };
    assert_eq!(with(&["leak"], &[]), BTreeSet::new());
    assert!(with(&["double-release"], &[]).contains("double-release"));
    assert!(!with(&[], &["double-release"]).contains("double-release"));
}

#[test]
fn what_was_not_recorded_leaves_doubt() {
    let scripts = scripts();
    let script = &scripts.iter().find(|(name, _)| name == "double_release").expect("it is there").1;
    let options = Options { partial: Some("only a part".to_owned()), ..Options::default() };
    let report = lint::lint(&common::build(script), &options);
    assert_eq!(report.errors, 0);
    assert!(report.findings.iter().all(|f| f.doubt.as_deref() == Some("only a part")));
}

/// The members that SARIF 2.1.0 requires, and those whose values it restricts.
#[test]
fn sarif_has_what_its_schema_demands() {
    for (name, script) in scripts() {
        let log = linted(&script).sarif();
        assert_eq!(log["version"], "2.1.0", "{name}");
        let runs = log["runs"].as_array().expect("runs");
        assert_eq!(runs.len(), 1);
        let driver = &runs[0]["tool"]["driver"];
        assert!(driver["name"].is_string());
        let rules = driver["rules"].as_array().expect("rules");
        let ids: BTreeSet<&str> = rules.iter().map(|rule| rule["id"].as_str().expect("an id")).collect();
        assert_eq!(ids.len(), rules.len(), "ids are unique");
        for rule in rules {
            text(&rule["shortDescription"]);
            text(&rule["help"]);
            level(&rule["defaultConfiguration"]["level"]);
        }
        for invocation in runs[0]["invocations"].as_array().expect("invocations") {
            assert!(invocation["executionSuccessful"].is_boolean());
            for notification in invocation["toolExecutionNotifications"].as_array().expect("notifications") {
                text(&notification["message"]);
            }
        }
        for result in runs[0]["results"].as_array().expect("results") {
            text(&result["message"]);
            level(&result["level"]);
            assert!(result["occurrenceCount"].as_u64() >= Some(1));
            let index = result["ruleIndex"].as_u64().expect("an index") as usize;
            assert_eq!(rules[index]["id"], result["ruleId"]);
            let mut related = BTreeSet::new();
            for list in ["locations", "relatedLocations"] {
                for location in result[list].as_array().expect("locations") {
                    text(&location["message"]);
                    assert!(location["id"].is_null() || related.insert(location["id"].as_u64()));
                    assert!(location["logicalLocations"][0]["fullyQualifiedName"].is_string());
                }
            }
        }
    }
}

fn text(message: &Value) {
    assert!(message["text"].as_str().is_some_and(|text| !text.is_empty()), "{message}");
}

fn level(level: &Value) {
    assert!(["none", "note", "warning", "error"].contains(&level.as_str().unwrap_or("")), "{level}");
}

#[test]
fn damaged_bytes_never_panic() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below.max(1) as u64) as usize
    };
    for (_, script) in scripts() {
        let whole = common::Assembled::new(common::models_of(&script), &script);
        for _ in 0..3 {
            let trace = whole.trace(|bytes| {
                for _ in 0..random(6) {
                    let (at, value) = (random(bytes.len()), random(256) as u8);
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = value;
                    }
                }
                if random(4) == 0 {
                    bytes.truncate(random(bytes.len()));
                }
            });
            let report = lint::lint(&trace, &Options::default());
            let _ = report.render(&lint::TextOptions::default());
            let _ = report.sarif();
        }
    }
}
