//! `cargo xtask model`: an API's two files, joined and judged.

mod info;
mod interpose;
mod rules;
mod summary;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use hetrace_model::{Extracted, Model, Semantics};

use crate::repo;

/// Arguments of `model`.
#[derive(Parser)]
pub struct Args {
    /// The API, which is a folder under apis/
    api: String,
}

/// Prints every problem on a line, then a summary.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (extracted, semantics) = load(&args.api)?;
    let (model, problems) = judge(&extracted, &semantics);
    for problem in &problems {
        println!("{problem}");
    }
    if let Some(model) = model {
        print!("{}", summary::of(&model));
    }
    println!("{:<20}{}", "problems", problems.len());
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Applies every gate; the later ones need the model, which the first may refuse.
fn judge(extracted: &Extracted, semantics: &Semantics) -> (Option<Model>, Vec<String>) {
    let mut problems = rules::problems(extracted, semantics);
    match hetrace_model::resolve(extracted, semantics) {
        Ok(model) => {
            problems.extend(interpose::problems(&model));
            problems.extend(info::problems(&model));
            (Some(model), problems)
        }
        Err(found) => {
            problems.extend(found.iter().map(ToString::to_string));
            (None, problems)
        }
    }
}

/// Reads `api.json` and `semantics.toml` of an API.
pub fn load(api: &str) -> Result<(Extracted, Semantics)> {
    let (json, toml) = (repo::api_json(api), repo::semantics_toml(api));
    let read = |path: &std::path::Path| {
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
    };
    let extracted = serde_json::from_str(&read(&json)?).with_context(|| json.display().to_string())?;
    let semantics = toml::from_str(&read(&toml)?).with_context(|| toml.display().to_string())?;
    Ok((extracted, semantics))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function that answers one query, with `[info]` and a rule to vary.
    fn toy(info: &str, rule: &str) -> Vec<String> {
        let known = "toyAsk.params = { out = \"out info(q, n, need)\", need = \"out value\" }";
        let (api, semantics) = toy_inputs(info, rule, known);
        judge(&api, &semantics).1
    }

    fn toy_inputs(info: &str, rule: &str, known: &str) -> (Extracted, Semantics) {
        let api = serde_json::json!({
            "api": "toy", "registry": {"file": "toy.h", "sha256": ""},
            "types": [
                {"name": "void", "kind": "opaque", "size": 0},
                {"name": "int", "kind": "int", "size": 4},
                {"name": "what", "kind": "int", "size": 4, "values": "what"},
            ],
            "enums": [
                {"name": "toy_error", "values": [["OK", 0]]},
                {"name": "what", "values": [["NAME", 1], ["NAME_EXT", 1]]},
            ],
            "functions": [{"name": "toyAsk", "returns": "int", "params": [
                {"name": "q", "type": "what"}, {"name": "n", "type": "int"},
                {"name": "out", "type": "void *"}, {"name": "need", "type": "int *"},
            ]}],
        });
        let semantics = format!(
            "api = \"toy\"\nerrors = \"toy_error\"\nrule = [{rule}]\n[interpose]\n\
             [function]\n{known}\n\
             [info]\n{info}\n"
        );
        (serde_json::from_value(api).unwrap(), toml::from_str(&semantics).unwrap())
    }

    #[test]
    fn every_query_needs_a_type() {
        for (info, says) in [
            ("", "info: no type for NAME of what"),
            ("NAME = \"int\"\nNAME_EXT = \"int\"", "info: NAME_EXT is another name of NAME; give that one"),
            ("NAME = \"int\"\nNOISE = \"int\"", "info: NOISE is no query of this API"),
            ("NAME = \"float[]\"", "info: NAME = \"float[]\": no type `float`"),
            ("NAME = \"void\"", "info: NAME = \"void\": nothing is known of `void`"),
        ] {
            assert_eq!(toy(info, ""), [says]);
        }
        for ty in ["int", "int[]", "int{}", "string", "void*", "void*[]"] {
            assert!(toy(&format!("NAME = \"{ty}\""), "").is_empty(), "{ty}");
        }
    }

    #[test]
    fn types_of_bytes_are_selected_by_names() {
        let rule = |by: &str| format!("{{ param = \"out\", is = \"out bytes(4, {by})\" }}");
        let toy = |info: &str, by: &str| {
            let (api, semantics) = toy_inputs(info, &rule(by), "toyAsk.params = { need = \"out value\" }");
            judge(&api, &semantics).1
        };
        // Not each needs one.
        assert_eq!(toy("", "q"), [""; 0]);
        assert_eq!(toy("NAME = \"int[]\"", "q"), [""; 0]);
        assert_eq!(toy("NOISE = \"int\"", "q"), ["info: NOISE is no query of this API"]);
        assert_eq!(toy("", "n"), ["toyAsk.n: its values have no names, so none selects a type"]);
    }

    #[test]
    fn a_rule_must_describe_something() {
        let idle = toy("NAME = \"int\"", "{ param = \"need\", is = \"out value\" }");
        assert_eq!(idle, ["rule: `need` = \"out value\" describes no parameter"]);
    }

    #[test]
    fn every_api_here_passes_every_gate() {
        for folder in std::fs::read_dir(repo::root().join("apis")).unwrap() {
            let api = folder.unwrap().file_name().into_string().unwrap();
            if repo::api_json(&api).exists() && repo::semantics_toml(&api).exists() {
                let (extracted, semantics) = load(&api).unwrap();
                assert_eq!(judge(&extracted, &semantics).1, [""; 0], "{api}");
            }
        }
    }
}
