//! What the threads of a kernel trace did, in milliseconds: to compare with other analyses of such traces.
//!
//! `cargo run --release -p hetrace-trace --example states -- KERNEL-TRACE [PID…]`

use std::path::Path;

use hetrace_trace::os;
use hetrace_trace::system::Shares;
use hetrace_trace::trace::Trace;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which trace?")?;
    let pids: Vec<i64> = arguments.map(|pid| pid.parse()).collect::<Result<_, _>>()?;
    let kernel = Trace::open(Path::new(&path))?;
    let system = os::read(&kernel, |pid| pids.is_empty() || pids.contains(&pid), None)??;
    let mut rows: Vec<(Shares, String)> = Vec::new();
    for life in &system.lives {
        let mut shares = Shares::default();
        for stretch in &life.stretches {
            shares.spend(stretch.state, stretch.end - stretch.start);
        }
        rows.push((shares, system.who(life.person)));
    }
    rows.sort_by_key(|(shares, _)| std::cmp::Reverse(shares.on_cpu_ns()));
    for heading in ["on a CPU", "user", "system", "interrupted", "ready", "blocked", "unknown"] {
        print!("{heading:>13}");
    }
    println!();
    for (s, who) in rows {
        let parts = [s.user_ns, s.system_ns, s.interrupted_ns, s.ready_ns, s.blocked_ns, s.unknown_ns];
        for ns in [s.on_cpu_ns()].iter().chain(&parts) {
            print!("{:>13.6}", *ns as f64 / 1e6);
        }
        println!("  {who}");
    }
    eprintln!(
        "{} dropped, {} packets missing, {} damaged, {} switches not recorded",
        system.dropped, system.missing_packets, system.damaged, system.torn
    );
    Ok(())
}
