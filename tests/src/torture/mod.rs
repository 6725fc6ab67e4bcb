//! Torture: programs that end, fork, jump, starve and attack in ways that once made the
//! recorder lose calls silently, hang, or disturb the program.
//!
//! One table, [`cases`], serves two readers: the tests `e2e/torture_*.rs` run each case once or
//! twice, and `cargo xtask test --torture` runs all of them in every way and as every user, and
//! writes the table of `docs/reliability.md`. The rule that each case is measured by:
//! calls that the program made are in the trace, or reported as lost; and the program writes
//! and ends as without a tracer.

mod case;
mod cases;
mod counted;
mod outcome;
mod place;
mod run;
mod stdout;
mod table;

pub use case::{Accounting, Api, Case, Need, Way};
pub use cases::cases;
pub use outcome::{Figures, Outcome};
pub use place::{Place, User};
pub use run::run;
pub use table::{Row, markdown};

/// Runs a case in the short form, in every way of interposition unless that takes long, and fails the test with all
/// that was not as promised.
///
/// # Panics
/// When a promise was broken, or there is no such case.
pub fn check(name: &str) {
    let case = cases().iter().find(|c| c.name == name).unwrap_or_else(|| panic!("no case {name}"));
    let user = if case.ordinary_only { User::Ordinary } else { User::Current };
    let place = match Place::shared(user) {
        Ok(place) => place,
        Err(reason) => {
            eprintln!("{name}: skipped: {reason}");
            return;
        }
    };
    let mut faults = Vec::new();
    let ways = if case.heavy { &case.ways()[..1] } else { case.ways() };
    for way in ways {
        for repeat in 0..case.short {
            let outcome = run(case, place, *way, seed(name, repeat));
            eprintln!("{outcome}");
            faults.extend(outcome.faults.iter().map(|fault| format!("{}: {fault}", way.name())));
        }
    }
    assert!(faults.is_empty(), "{name}: {}\n  {}", case.promise, faults.join("\n  "));
}

/// A seed for one repetition: the same in every session, so that what fails can be repeated.
pub fn seed(name: &str, repeat: u32) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ u64::from(repeat);
    name.bytes().fold(start, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)) % 1_000_000
}
