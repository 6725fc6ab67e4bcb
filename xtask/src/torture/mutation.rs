//! Rows for the tests that mutate traces.

use anyhow::{Context, Result};
use hetrace_tests::torture::{Figures, Row};

use super::output;
use crate::repo;

/// Property tests that damage traces: crate and test.
const TESTS: &[(&str, &str)] = &[("ctf", "mutation")];

/// One row for each of them.
pub fn rows() -> Result<Vec<Row>> {
    TESTS.iter().map(|(krate, test)| row(krate, test)).collect()
}

fn row(krate: &str, test: &str) -> Result<Row> {
    let path = format!("crates/{krate}/tests/{test}.rs");
    let text = std::fs::read_to_string(repo::root().join(&path)).with_context(|| path.clone())?;
    let out = output("cargo", &["test", "-p", &format!("hetrace-{krate}"), "--test", test])?;
    let kept = out.contains("test result: ok");
    println!("{path}: {}", if kept { "kept" } else { &out });
    Ok(Row {
        subject: "traces".to_owned(),
        test: format!("`{path}`"),
        promise: "whatever the bytes of a trace are, reading it ends, and without a panic".to_owned(),
        tried: "metadata and streams of four tracers changed, cut, extended and shuffled at random"
            .to_owned(),
        figures: Figures { runs: 1, attacks: inputs(&text), ..Figures::default() },
        broken: u64::from(!kept),
        ..Row::default()
    })
}

/// Inputs that the properties of a file are tried with: each has its block's number of cases.
fn inputs(text: &str) -> u64 {
    let (mut cases, mut sum) = (0, 0);
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("with_cases(") {
            cases = rest.split(')').next().and_then(|n| n.replace('_', "").parse().ok()).unwrap_or(0);
        }
        // Within the macro's block; plain tests are not indented.
        if line.starts_with("    #[test]") {
            sum += cases;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_property_has_the_cases_of_its_block() {
        let text = "#[test]\nproptest! {\n    #![x(C::with_cases(1_000))]\n    #[test]\n    #[test]\n}\n\
                    proptest! {\n    #![x(C::with_cases(10))]\n    #[test]\n}";
        assert_eq!(inputs(text), 2010);
    }
}
