//! Measures a tally of a trace: `cargo run --release --example sums FOLDER [ROUNDS]`.

use std::path::Path;
use std::time::Instant;

use hetrace_report::tally::{Options, tally};
use hetrace_trace::trace::{OpenError, Trace};

fn main() -> Result<(), OpenError> {
    let mut arguments = std::env::args_os().skip(1);
    let Some(folder) = arguments.next() else {
        println!("usage: sums FOLDER [ROUNDS]");
        return Ok(());
    };
    let rounds = arguments.next().and_then(|n| n.to_str()?.parse().ok()).unwrap_or(5);
    let trace = Trace::open(Path::new(&folder))?;
    for _ in 0..rounds {
        let started = Instant::now();
        let calls: u64 = tally(&trace, &Options::default()).apis.iter().map(|api| api.calls).sum();
        let ns = started.elapsed().as_nanos() as f64;
        println!("{calls} calls, {:.2} ns for each", ns / calls.max(1) as f64);
    }
    Ok(())
}
