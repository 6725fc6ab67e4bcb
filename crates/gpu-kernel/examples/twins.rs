//! Rewrites a module: `twins MODE IN.ptx OUT.ptx OUT.json`, modes branches, edges, blocks and, without sums, single.

use hetrace_gpu_kernel::Mode;
use hetrace_gpu_kernel::ptx::{Request, rewrite};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, mode, from, to, described] = arguments.as_slice() else {
        return Err("twins MODE IN.ptx OUT.ptx OUT.json".into());
    };
    let text = String::from_utf8_lossy(&std::fs::read(from)?).into_owned();
    let request = Request {
        wanted: &|_| true,
        mode: Mode::named(mode).unwrap_or_default(),
        sums: mode != "single",
        sample: std::env::var("SAMPLE").ok().and_then(|n| n.parse().ok()).unwrap_or(1),
        first: 0,
        image: from,
    };
    let rewritten = rewrite(&text, &request)?;
    std::fs::write(to, rewritten.text)?;
    std::fs::write(described, serde_json::to_string(&rewritten.description)?)?;
    Ok(())
}
