//! Of each call that waits, `why`, the timeline and the tables say the same.

use std::collections::{BTreeMap, BTreeSet};

use hetrace_report::{timeline, why};
use hetrace_trace::trace::Trace;

use super::common::{self, perfetto};
use super::read::{Row, long, text};
use super::tables;

/// A blocking read; a wait for an event of another thread's command, while the thread has one of its own that
/// ended before; a finish of each of several queues; a poll until the state changes.
const SCRIPT: &str = r#"# uses opencl
1    1.1 * device device=1 handle=0xd name="GPU"
1    1.1 * queue queue=1 handle=0xf1 context=0xc1 device=1 api="opencl"
1    1.1 * queue queue=2 handle=0xf2 context=0xc1 device=1 api="opencl"
1    1.1 * function function=1 name="step"

# The kernel ends before the read does; both were waited for in the read, and it ended on its own.
100  1.1 > clEnqueueNDRangeKernel command_queue=0xf1 kernel=0x3 work_dim=1 global_work_size=[64]
110  1.1 < clEnqueueNDRangeKernel result=0
150  1.1 * kernel function=1 queue=1 cause_tid=1 cause_before=50 duration=250
200  1.1 > clEnqueueReadBuffer command_queue=0xf1 buffer=0xb blocking_read=1 size=64
400  1.1 * read queue=1 cause_tid=1 cause_before=200 duration=100 bytes=64
600  1.1 < clEnqueueReadBuffer result=0
# One that does not block waits for nothing.
700  1.1 > clEnqueueReadBuffer command_queue=0xf1 buffer=0xb blocking_read=0 size=64
710  1.1 < clEnqueueReadBuffer result=0
720  1.1 * read queue=1 cause_tid=1 cause_before=20 duration=30 bytes=64

# Thread 2 waits for what thread 1 enqueues; its own kernel has ended before.
800  1.2 > clEnqueueNDRangeKernel command_queue=0xf2 kernel=0x3 work_dim=1 global_work_size=[64]
810  1.2 < clEnqueueNDRangeKernel result=0
820  1.2 * kernel function=1 queue=2 cause_tid=2 cause_before=20 duration=80
1000 1.1 > clEnqueueNDRangeKernel command_queue=0xf1 kernel=0x3 work_dim=1 global_work_size=[64]
1010 1.1 < clEnqueueNDRangeKernel result=0
1100 1.2 > clWaitForEvents num_events=1 event_list=[0xe1]
1200 1.1 * kernel function=1 queue=1 cause_tid=1 cause_before=200 duration=300
1550 1.2 < clWaitForEvents result=0

# Both queues have work; the one that is finished first ends last.
2000 1.1 > clEnqueueNDRangeKernel command_queue=0xf1 kernel=0x3 work_dim=1 global_work_size=[64]
2010 1.1 < clEnqueueNDRangeKernel result=0
2020 1.1 > clEnqueueNDRangeKernel command_queue=0xf2 kernel=0x3 work_dim=1 global_work_size=[64]
2030 1.1 < clEnqueueNDRangeKernel result=0
2050 1.1 * kernel function=1 queue=1 cause_tid=1 cause_before=50 duration=400
2060 1.1 * kernel function=1 queue=2 cause_tid=1 cause_before=40 duration=200
2100 1.1 > clFinish command_queue=0xf1
2500 1.1 < clFinish result=0
2510 1.1 > clFinish command_queue=0xf2
2520 1.1 < clFinish result=0

# The run of polls ends before the command does, and the poll behind it says so.
3000 1.1 > clEnqueueNDRangeKernel command_queue=0xf1 kernel=0x3 work_dim=1 global_work_size=[64]
3010 1.1 < clEnqueueNDRangeKernel result=0
3050 1.1 * kernel function=1 queue=1 cause_tid=1 cause_before=50 duration=400
3100 1.1 > clGetEventInfo event=0xe2 param_name=CL_EVENT_COMMAND_EXECUTION_STATUS param_value_size=4
3110 1.1 < clGetEventInfo result=0
3440 1.1 ~ clGetEventInfo count=20 first=3120 last=3440 total=200
3445 1.1 > clGetEventInfo event=0xe2 param_name=CL_EVENT_COMMAND_EXECUTION_STATUS param_value_size=4
3460 1.1 < clGetEventInfo result=0
manifest {"schema":2,"exit":{"code":0}}
"#;

/// Streams with handles and numbers of their own, and default streams of two contexts, which have the same.
const STREAMS: &str = r#"# uses cuda
1    1.1 * device device=1 handle=0x1 name="GPU"
1    1.1 * queue queue=1 handle=0x5510 context=0xc1 device=1 api="cuda" number=13
1    1.1 * queue queue=2 handle=0x5520 context=0xc1 device=1 api="cuda" number=14
1    1.1 * queue queue=3 handle=0x1 context=0xc1 device=1 api="cuda" number=7
1    1.1 * queue queue=4 handle=0x1 context=0xc2 device=1 api="cuda" number=7
1    1.1 * function function=1 name="step"

# The first stream is waited for while the second one runs.
100  1.1 > cuLaunchKernel f=0x3 hStream=0x5510
110  1.1 < cuLaunchKernel result=0
120  1.1 > cuLaunchKernel f=0x3 hStream=0x5520
130  1.1 < cuLaunchKernel result=0
150  1.1 * kernel function=1 queue=1 cause_tid=1 cause_before=50 duration=300
160  1.1 * kernel function=1 queue=2 cause_tid=1 cause_before=40 duration=900
200  1.1 > cuStreamSynchronize hStream=0x5510
500  1.1 < cuStreamSynchronize result=0
510  1.1 > cuStreamSynchronize hStream=0x5520
1100 1.1 < cuStreamSynchronize result=0

# NULL and the value of the default stream are one.
1200 1.1 > cuLaunchKernel f=0x3 hStream=0x0
1210 1.1 < cuLaunchKernel result=0
1250 1.1 * kernel function=1 queue=3 cause_tid=1 cause_before=50 duration=100
1300 1.1 > cuStreamSynchronize hStream=0x0
1400 1.1 < cuStreamSynchronize result=0
1500 1.1 > cuLaunchKernel f=0x3 hStream=0x0
1510 1.1 < cuLaunchKernel result=0
1550 1.1 * kernel function=1 queue=4 cause_tid=1 cause_before=50 duration=100
1600 1.1 > cuStreamSynchronize hStream=0x1
1700 1.1 < cuStreamSynchronize result=0
manifest {"schema":2,"exit":{"code":0}}
"#;

/// A wait: function, when it ended, and when the command ended that it ended on.
type Found = BTreeSet<(String, i64, Option<i64>)>;

fn value(row: &Row, column: &str) -> Option<i64> {
    row.get(column).and_then(long)
}

/// A time on the trace's clock.
fn time(trace: &Trace, row: &Row, column: &str) -> Option<i64> {
    Some(value(row, column)? - trace.epoch_offset_ns().unwrap_or(0))
}

/// By the tables: each call that a command was waited for in.
fn of_tables(trace: &Trace) -> (Found, BTreeSet<(i64, i64)>) {
    let (_, tables) = tables(trace);
    let (calls, commands) = (&tables["calls"], &tables["commands"]);
    let ends: BTreeMap<i64, i64> =
        commands.iter().filter_map(|c| Some((value(c, "command_id")?, time(trace, c, "end_ns")?))).collect();
    let waited: BTreeSet<i64> = commands.iter().filter_map(|c| value(c, "wait_call_id")).collect();
    let waits = calls.iter().filter(|c| value(c, "call_id").is_some_and(|id| waited.contains(&id)));
    let found = waits.map(|c| {
        let end = time(trace, c, "end_ns").expect("an end");
        (text(c, "name"), end, value(c, "waited_command_id").map(|id| ends[&id]))
    });
    // Of each queue, what ended last within a wait.
    let mut last: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    for c in commands {
        let times = ["wait_start_ns", "wait_end_ns", "end_ns"].map(|column| time(trace, c, column));
        if let ([Some(start), Some(until), Some(end)], Some(queue)) = (times, value(c, "queue"))
            && end > start
        {
            let known = last.entry((until, queue)).or_insert(end);
            *known = end.max(*known);
        }
    }
    (found.collect(), last.into_iter().map(|((until, _), end)| (until, end)).collect())
}

/// By the timeline: when waits ended to which arrows lead, and when the commands ended that they are from.
fn of_timeline(trace: &Trace) -> BTreeSet<(i64, i64)> {
    let mut file = Vec::new();
    timeline::timeline(trace, &timeline::Options::default(), &mut file).expect("a vector takes all");
    let drawing = perfetto::parse(&file);
    let threads: BTreeSet<u64> = drawing.tracks().filter(|t| t.is_thread).map(|t| t.uuid).collect();
    // Slices by their row: what ends is what began last there.
    let mut open: BTreeMap<u64, Vec<Vec<u64>>> = BTreeMap::new();
    let mut ended: BTreeMap<u64, i64> = BTreeMap::new();
    let mut arrows = BTreeSet::new();
    for event in drawing.events() {
        match event.kind {
            1 => open.entry(event.track).or_default().push(event.flows.clone()),
            2 => {
                let flows = open.entry(event.track).or_default().pop().expect("a beginning");
                // The call that enqueued has the same arrow; a command is on no thread.
                if !threads.contains(&event.track) {
                    ended.extend(flows.into_iter().map(|flow| (flow, event.time as i64)));
                }
            }
            _ => arrows.extend(event.ends.iter().map(|flow| (event.time as i64, *flow))),
        }
    }
    arrows.into_iter().map(|(time, flow)| (time, ended[&flow])).collect()
}

/// Checks that tables, timeline and `why` have these waits. Returns what `why` says.
fn check(trace: &Trace, expected: &[(&str, i64, Option<i64>)]) -> why::Report {
    let (found, arrows) = of_tables(trace);
    let expected: Found = expected.iter().map(|(name, end, on)| ((*name).to_owned(), *end, *on)).collect();
    assert_eq!(found, expected);
    assert_eq!(of_timeline(trace), arrows);
    let report = why::why(trace, &why::Options::default());
    let mut late: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, end, on) in &found {
        *late.entry(name).or_default() += on.map_or(0, |on| (end - on) as u64);
    }
    let of_why: BTreeMap<&str, u64> =
        report.waits.iter().map(|row| (row.name.as_str(), row.after_ns)).collect();
    assert_eq!(of_why, late);
    report
}

#[test]
fn why_timeline_and_tables_agree_on_waits() {
    let expected = [
        ("clEnqueueReadBuffer", 600, Some(500)),
        ("clFinish", 2500, Some(2450)),
        ("clFinish", 2520, None),
        ("clGetEventInfo", 3460, Some(3450)),
        ("clWaitForEvents", 1550, Some(1500)),
    ];
    let report = check(&common::build(SCRIPT), &expected);
    // A finish of what had ended. A run of polls in which nothing ended was no wait that was in vain.
    let immediate: BTreeMap<&str, u64> = report
        .waits
        .iter()
        .filter(|row| row.immediate > 0)
        .map(|row| (row.name.as_str(), row.immediate))
        .collect();
    assert_eq!(immediate, BTreeMap::from([("clFinish", 1)]));
}

#[test]
fn streams_are_waited_for_by_their_handles() {
    let wait = |end, on| ("cuStreamSynchronize", end, Some(on));
    let trace = common::build(STREAMS);
    let report = check(&trace, &[wait(500, 450), wait(1100, 1060), wait(1400, 1350), wait(1700, 1650)]);
    assert_eq!(report.waits.iter().map(|row| (row.calls, row.immediate)).collect::<Vec<_>>(), [(4, 0)]);
}
