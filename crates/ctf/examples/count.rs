//! Counts the events of a trace by name: `cargo run --release --example count -- FOLDER`.

use std::collections::BTreeMap;
use std::time::Instant;

use hetrace_ctf::read::{Merge, OpenError, Trace};

fn main() -> Result<(), OpenError> {
    let Some(dir) = std::env::args_os().nth(1) else {
        eprintln!("usage: count FOLDER");
        return Ok(());
    };
    let start = Instant::now();
    let trace = Trace::open(dir.as_ref())?;
    let opened = start.elapsed();
    let mut merge = Merge::new(&trace);
    let (mut counts, mut total) = (BTreeMap::<&str, u64>::new(), 0u64);
    while let Some(event) = merge.next_event() {
        match event {
            Ok(event) => {
                *counts.entry(&event.class().name).or_default() += 1;
                total += 1;
            }
            Err(damage) => eprintln!("{damage}"),
        }
    }
    for (name, count) in counts {
        println!("{count:>12} {name}");
    }
    let read = start.elapsed() - opened;
    let each = read.as_nanos() / u128::from(total.max(1));
    println!(
        "{total} events; opened in {opened:.1?}, read in {read:.1?}, {each} ns each; {:?}",
        merge.losses()
    );
    Ok(())
}
