//! Twins of kernels, by hand.
//!
//! ```text
//!  twins MODE IN.ptx OUT.ptx OUT.json   rewrites a module; modes paths, branches, edges, blocks and, without sums, single
//!  twins read POOL DESCRIPTION.json     decodes a pool, and prints one JSON object for each launch
//!  twins begins POOL WHOLE DESCRIPTION.json
//!                                       whether each lane's path in a pool that was full is the begin of that in another pool,
//!                                       which has all of a launch that did the same
//!  twins counts IN.ptx OUT.ptx OUT.json the kernels themselves with an atomic addition at the begin of each block, which counts
//!                                       the lanes that run it: nothing of what recording is made of
//! ```

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use hetrace_gpu_kernel::ptx::{Base, Kind, Request, flow, rewrite, scan};
use hetrace_gpu_kernel::{Decoder, Description, Ended, Mode, Strategy, pool};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["read", pool, description] => decode(pool, description),
        ["begins", pool, whole, description] => begins(pool, whole, description),
        ["counts", from, to, described] => counts(from, to, described),
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
        weights: None,
    };
    let rewritten = rewrite(&text, &request)?;
    std::fs::write(to, rewritten.text)?;
    std::fs::write(described, serde_json::to_string(&rewritten.description)?)?;
    Ok(())
}

/// What a module calls the counters of its blocks.
const COUNTS: &str = "hetrace_counts";

/// By kernel: where its first counter is, and how many there are.
fn counts(from: &str, to: &str, described: &str) -> Result<(), Failure> {
    let text = String::from_utf8_lossy(&std::fs::read(from)?).into_owned();
    let module = scan(&text)?;
    let (mut inserted, mut kernels, mut next) = (Vec::new(), BTreeMap::new(), 0);
    for function in module.functions.iter().filter(|function| function.entry) {
        let flow = flow(&text, function)?;
        kernels.insert(text[function.name.clone()].to_owned(), [next, flow.bodies.len()]);
        for (block, body) in flow.bodies.iter().enumerate() {
            let statements = function.statements.get(body.statements.clone()).unwrap_or_default();
            let first = statements.iter().find(|one| matches!(one.kind, Kind::Instruction { .. }));
            let Some(first) = first else { continue };
            let at = 8 * (next + block);
            let count = format!(
                "{{ .reg .b64 %{COUNTS}; mov.u64 %{COUNTS}, {COUNTS}; red.global.add.u64 [%{COUNTS}+{at}], 1; }}\n\t"
            );
            inserted.push((first.span.start, count));
        }
        next += flow.bodies.len();
    }
    let functions = module.functions.iter().map(|function| function.head.start);
    let begin = text[..functions.min().unwrap_or(0)].find(".address_size").ok_or("no .address_size")?;
    let line = text[begin..].find('\n').map_or(text.len(), |end| begin + end + 1);
    inserted.push((line, format!(".visible .global .align 8 .b64 {COUNTS}[{}];\n", next.max(1))));
    inserted.sort_by_key(|(at, _)| *at);
    let (mut made, mut end) = (String::new(), 0);
    for (at, what) in inserted {
        made.push_str(&text[end..at]);
        made.push_str(&what);
        end = at;
    }
    made.push_str(&text[end..]);
    std::fs::write(to, made)?;
    std::fs::write(described, serde_json::to_string(&kernels)?)?;
    Ok(())
}

/// A thread block, a warp of it and a lane of that.
type Lane = ([u32; 3], u32, u32);
/// By lane its blocks, and whether it came to its end.
type Paths = BTreeMap<Lane, (Vec<usize>, bool)>;

/// Returns what lanes of a pool's launches did, and how many violations there are.
fn paths(pool: &pool::Pool, description: &Description) -> Result<(Paths, usize), Failure> {
    let (mut paths, mut violations) = (Paths::new(), 0);
    for launch in &pool.launches {
        let of = description.kernels.iter().find(|kernel| kernel.number == launch.kernel);
        let kernel = of.ok_or("a kernel that is not described")?;
        let graph = kernel.graph()?;
        let plan = kernel.plan(&graph)?;
        let decoder = Decoder::new(&graph, &plan);
        for (block, warp) in
            launch.blocks.iter().flat_map(|block| block.warps.iter().map(move |w| (block, w)))
        {
            for lane in (0..32).filter(|lane| warp.lanes() >> lane & 1 != 0) {
                let begin = warp.begin(lane).unwrap_or(0);
                let (path, wrong) = decoder.lane(lane, begin, warp.end(lane), &warp.records);
                violations += wrong.len();
                let blocks = path.steps.iter().map(|step| step.block).collect();
                paths.insert((block.at, warp.number, lane), (blocks, path.ended == Ended::Exit));
            }
        }
    }
    Ok((paths, violations))
}

fn begins(pool: &str, whole: &str, described: &str) -> Result<(), Failure> {
    let description: Description = serde_json::from_slice(&std::fs::read(described)?)?;
    let (pool, whole) = (pool::read(&std::fs::read(pool)?), pool::read(&std::fs::read(whole)?));
    let ((found, violations), (all, _)) = (paths(&pool, &description)?, paths(&whole, &description)?);
    let is_begin = |(lane, (blocks, ended)): (&Lane, &(Vec<usize>, bool))| {
        all.get(lane).is_some_and(|(path, over)| match over {
            true => path.starts_with(blocks) && (!ended || path.len() == blocks.len()),
            // Something is lost in the other one, too.
            false => path.starts_with(blocks) || blocks.starts_with(path),
        })
    };
    let shown = serde_json::json!({
        "lanes": found.len(), "of": all.len(), "ended": found.values().filter(|path| path.1).count(),
        "violations": violations, "wrong": found.iter().filter(|lane| !is_begin(*lane)).count(),
        "full": pool.full, "lost": pool.lost, "left_out": pool.left_out.values().sum::<u64>(),
        "faults": format!("{:?}", pool.faults),
    });
    println!("{shown}");
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
