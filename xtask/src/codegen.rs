//! `cargo xtask codegen`: from an API's model to `apis/<API>/src/generated/`.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::{lines, model, repo};

/// Arguments of `codegen`.
#[derive(Parser)]
pub struct Args {
    /// The API; all of them when absent
    api: Option<String>,
    /// Compare with the files that are there, and print what differs
    #[arg(long)]
    check: bool,
}

/// Generates, or compares.
pub fn run(args: &Args) -> Result<ExitCode> {
    let apis = match &args.api {
        Some(api) => vec![api.clone()],
        None => repo::apis()?,
    };
    let mut current = true;
    for api in apis {
        current &= generate(&api, args.check)?;
    }
    Ok(if current { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn generate(api: &str, check: bool) -> Result<bool> {
    let (extracted, semantics) = model::load(api)?;
    let model = match hetrace_model::resolve(&extracted, &semantics) {
        Ok(model) => model,
        Err(problems) => {
            let first = problems.first().map(ToString::to_string).unwrap_or_default();
            bail!("{api}: {} problems, the first: {first} (see `cargo xtask model {api}`)", problems.len())
        }
    };
    let files = hetrace_codegen::generate(&model).map_err(anyhow::Error::msg)?;
    let folder = repo::root().join("apis").join(api).join("src/generated");
    let mut current = true;
    for file in files {
        let path = folder.join(file.name);
        let old = std::fs::read_to_string(&path).unwrap_or_default();
        if old == file.text {
            continue;
        }
        current = false;
        if check {
            println!("{} is not current:", path.display());
            for line in lines::diff(&old, &file.text) {
                println!("{line}");
            }
        } else {
            std::fs::write(&path, &file.text).with_context(|| path.display().to_string())?;
            println!("wrote {}", path.display());
        }
    }
    Ok(current || !check)
}
