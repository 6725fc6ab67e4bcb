//! The verdict of a run of which no device says where its time went: without commands, or without their times.

use super::reporter::{Reporter, share};
use super::rows::VerdictRow;
use hetrace_trace::text::{duration, plural};

/// Functions that are named.
const NAMED: usize = 3;
/// What takes less of the run is not named.
const LEAST: f64 = 0.02;

/// The verdict where the times of devices say nothing.
pub(super) fn verdict(reporter: &Reporter<'_, '_>, run: u64) -> VerdictRow {
    let (from, host) = (reporter.from, &reporter.from.host);
    let commands: u64 = from.devices.iter().map(|device| device.commands + device.untimed).sum();
    let mut text = match commands {
        _ if from.sampled => {
            "only some launches were timed, so how busy devices were is not known".to_owned()
        }
        // It may be that nobody times commands of this API.
        0 if host.enqueued > host.failed => {
            format!("how busy devices were in {} is not known", duration(run))
        }
        0 => format!("no command ran on a device in {}", duration(run)),
        n => format!(
            "{} in {} have no times, so how busy devices were is not known",
            plural(n, "command"),
            duration(run)
        ),
    };
    if commands == 0 && host.enqueued > 0 {
        let calls = plural(host.enqueued, "call");
        text += &match host.failed {
            0 => format!(": {calls} enqueued commands, and their times are not in the trace"),
            failed if failed == host.enqueued => format!(": all {calls} that enqueue failed"),
            failed => format!(
                ": of {calls} that enqueue, {failed} failed, and no times of the others are in the trace"
            ),
        };
    }
    if host.over {
        return row(text + ".", run);
    }
    let inside = host.inside.total();
    let outside = run.saturating_sub(inside);
    let mut named: Vec<String> = Vec::new();
    for (function, ns) in host.most().into_iter().take(NAMED).filter(|(_, ns)| share(*ns, run) >= LEAST) {
        named.push(format!("{} in {}", duration(ns), reporter.words.function(function)));
    }
    if !named.is_empty() {
        let threads = from.threads.len() as u64;
        let of =
            if threads > 1 { format!(", all {} together", plural(threads, "thread")) } else { String::new() };
        text += &format!(
            ". Calls took {} ({:.0} % of the run): {}{of}",
            duration(inside),
            100.0 * share(inside, run),
            named.join(", ")
        );
    }
    if share(outside, run) >= LEAST {
        let whose = if from.threads.len() > 1 {
            "no thread was in a call"
        } else {
            "the host worked outside of calls"
        };
        text += &format!(". For {} ({:.0} %) {whose}", duration(outside), 100.0 * share(outside, run));
    }
    row(text + ".", run)
}

fn row(text: String, run: u64) -> VerdictRow {
    VerdictRow {
        text,
        run_ns: run,
        busy_ns: 0,
        busy_share: 0.0,
        always_busy: false,
        saving_ns: 0,
        saving_share: 0.0,
        saving_kind: None,
    }
}
