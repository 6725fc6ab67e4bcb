//! Writes a trace as an OTF2 archive: `cargo run --example otf2 -- TRACE OUT`.

use std::ops::ControlFlow;
use std::process::ExitCode;

use hetrace_trace::trace::Trace;

fn main() -> ExitCode {
    let paths: Vec<_> = std::env::args_os().skip(1).map(std::path::PathBuf::from).collect();
    let [trace, out] = paths.as_slice() else {
        eprintln!("usage: otf2 TRACE OUT");
        return ExitCode::from(2);
    };
    let trace = match Trace::open(trace) {
        Ok(trace) => trace,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let started = std::time::Instant::now();
    match hetrace_export::otf2::write(&trace, out, &|_| ControlFlow::Continue(())) {
        Ok(written) => {
            let seconds = started.elapsed().as_secs_f64();
            println!(
                "{} events read, {} written to {} locations, {} definitions, {} bytes, {seconds:.2} s, {:.2} M events/s",
                written.summary.events,
                written.events,
                written.locations,
                written.definitions,
                written.bytes,
                written.summary.events as f64 / seconds / 1e6,
            );
            for (name, meaning, n) in written.missing() {
                println!("{n} {meaning} ({name})");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
