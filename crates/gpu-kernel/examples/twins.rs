//! Twins of kernels, by hand.
//!
//! ```text
//!  twins MODE IN.ptx OUT.ptx OUT.json   rewrites a module; modes paths, branches, edges, blocks and, without sums, single
//!  twins read POOL DESCRIPTION.json     decodes a pool, and prints one JSON object for each launch
//! ```

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use hetrace_gpu_kernel::ptx::{Base, Request, rewrite};
use hetrace_gpu_kernel::{Decoder, Description, Ended, Mode, Strategy, pool};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["read", pool, description] => decode(pool, description),
        [mode, from, to, described] => twins(mode, from, to, described),
        _ => Err("usage: twins MODE IN.ptx OUT.ptx OUT.json, or twins read POOL DESCRIPTION.json".into()),
    }
}

fn twins(mode: &str, from: &str, to: &str, described: &str) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(&std::fs::read(from)?).into_owned();
    let request = Request {
        wanted: &|_| true,
        mode: Mode::named(mode).unwrap_or(Mode::Branches),
        sums: mode != "single",
        sample: std::env::var("SAMPLE").ok().and_then(|n| n.parse().ok()).unwrap_or(1),
        base: if std::env::var_os("PARAMETER").is_some() { Base::Parameter } else { Base::Module },
        strategy: std::env::var("STRATEGY").ok().and_then(|name| Strategy::named(&name)).unwrap_or_default(),
        first: 0,
        image: from,
    };
    let rewritten = rewrite(&text, &request)?;
    std::fs::write(to, rewritten.text)?;
    std::fs::write(described, serde_json::to_string(&rewritten.description)?)?;
    Ok(())
}

/// What all lanes of a launch did. `paths` is the same for the same paths, however they were recorded.
fn decode(from: &str, described: &str) -> Result<(), Failure> {
    let pool = pool::read(&std::fs::read(from)?);
    let description: Description = serde_json::from_slice(&std::fs::read(described)?)?;
    for launch in &pool.launches {
        let Some(kernel) = description.kernels.iter().find(|kernel| kernel.number == launch.kernel) else {
            return Err(format!("a launch of kernel {}, which is not described", launch.kernel).into());
        };
        let graph = kernel.graph()?;
        let plan = kernel.plan(&graph)?;
        let decoder = Decoder::new(&graph, &plan);
        let (mut lanes, mut violations, mut open, mut records, mut paths) = (0u64, 0, 0u64, 0, 0u64);
        let mut visits: BTreeMap<usize, u64> = BTreeMap::new();
        for block in &launch.blocks {
            for warp in &block.warps {
                records += warp.records.len() + warp.began.len() + warp.ended.len();
                let all = warp.lanes();
                for lane in (0..32).filter(|lane| all >> lane & 1 != 0) {
                    let (path, wrong) =
                        decoder.lane(lane, warp.begin(lane).unwrap_or(0), warp.end(lane), &warp.records);
                    lanes += 1;
                    violations += wrong.len();
                    open += u64::from(path.ended != Ended::Exit);
                    let blocks: Vec<usize> = path.steps.iter().map(|step| step.block).collect();
                    blocks.iter().for_each(|block| *visits.entry(*block).or_default() += 1);
                    let mut hash = DefaultHasher::new();
                    (block.at, warp.number, lane, blocks).hash(&mut hash);
                    paths = paths.wrapping_add(hash.finish());
                }
            }
        }
        let shown = serde_json::json!({
            "kernel": kernel.name, "mode": kernel.mode.name(), "blocks": launch.blocks.len(), "lanes": lanes,
            "records": records, "violations": violations, "open": open, "paths": format!("{paths:016x}"),
            "visits": visits, "asked": pool.asked, "chunks": pool.chunks, "lost": pool.lost,
            "faults": format!("{:?}", pool.faults),
        });
        println!("{shown}");
    }
    Ok(())
}
