//! What an earlier trace says of kernels, for `--inside-weights`.

use std::path::Path;

use anyhow::{Result, bail};
use hetrace_ctf::read::Files;
use hetrace_gpu_kernel::Weights;
use hetrace_trace::inside::{Inside, Recording};

/// Reads a trace and adds up how often lanes took each edge of its kernels. Takes as much memory as all of its pools.
///
/// # Errors
/// If it is no trace, or nothing of it says what kernels did.
pub fn weights(path: &Path) -> Result<Weights> {
    let recording = Recording::read(&Files::open(path)?);
    if recording.is_empty() {
        bail!("nothing was recorded inside kernels there: record that trace with --inside");
    }
    let inside = Inside::of(&recording);
    let trace = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut weights = Weights { trace: trace.display().to_string(), kernels: vec![] };
    for kernel in &inside.kernels {
        // What makes no sense in a description is in no kernel.
        if let Ok(graph) = kernel.description.graph() {
            weights.add(&kernel.description, &graph, &kernel.counts);
        }
    }
    // One order, whichever process came first, so that the same trace is the same code in the cache.
    weights.kernels.sort_by(|a, b| (&a.name, &a.text).cmp(&(&b.name, &b.text)));
    if !weights.kernels.is_empty() {
        return Ok(weights);
    }
    let old =
        inside.kernels.iter().any(|kernel| kernel.description.timed && kernel.description.text.is_empty());
    let untimed = inside.kernels.iter().any(|kernel| !kernel.description.timed);
    bail!(match (inside.kernels.is_empty(), old, untimed) {
        (true, ..) => "no kernel recorded anything there (`hetrace tally --inside` says why)",
        (_, true, _) => "its kernels can't be recognised: it was recorded by an older version of hetrace",
        (_, _, true) => "all of its kernels record paths, without times: nothing is chosen by weights there",
        _ => "no lane of its kernels has begun there",
    })
}
