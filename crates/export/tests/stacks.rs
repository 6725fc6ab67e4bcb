//! Call paths: their text, that they add up to what `tally` says, and the flame graph.

#[path = "../../report/tests/common/mod.rs"]
mod common;

use std::ops::ControlFlow;
use std::path::Path;

use hetrace_export::Error;
use hetrace_export::stacks::{Form, Options, Weight, Written, write};
use hetrace_report::tally;
use hetrace_trace::trace::Trace;

const SCRIPT: &str = "
0    1.1 * device device=1 handle=0xd name=\"Toy GPU\"
0    1.1 * queue queue=1 handle=0x10 context=0x1 device=1 api=\"toy\"
0    1.1 * function function=1 name=\"vecadd\"
100  1.1 > toyLaunch queue=0x10 kernel=0x3 dims=1 global=[64]
110  1.1 > baseSubmit
150  1.1 < baseSubmit result=0
160  1.1 < toyLaunch result=0
200  1.2 > toyFinish queue=0x10
1000 1.1 * kernel function=1 queue=1 cause_tid=1 cause_before=900 duration=400
1500 1.1 * kernel function=1 queue=1 cause_tid=1 cause_before=1390 duration=100
1600 1.1 * copy queue=1 cause_before=-140737488355328 duration=10 bytes=64
1700 1.2 < toyFinish result=0
";

fn written(trace: &Trace, options: Options) -> (String, Written) {
    let mut bytes = Vec::new();
    let written = write(trace, &options, &mut bytes, &|_| ControlFlow::Continue(()));
    (String::from_utf8(bytes).expect("UTF-8"), written.expect("memory takes it"))
}

fn folded(weight: Weight) -> String {
    written(&common::build(SCRIPT), Options { weight, ..Options::default() }).0
}

/// A sample outside of calls, in a call, and one whose stack is not known.
const SAMPLED: &str = "
0    1.1 n module module=1 build_id=\"abcd\" path=\"/home/me/app\"
0    1.1 n frame stack=0x20 around=0 module=1 address=0x10
0    1.1 n symbol module=1 address=0x10 level=0 function=\"main\" file=\"/src/main.c\" line=9
0    1.1 n frame stack=0x21 around=0x20 module=1 address=0x20
0    1.1 n symbol module=1 address=0x20 level=0 function=\"hot\" file=\"/src/main.c\" line=2
50   1.9 q sample pid=1 tid=1 cpu=2 period=1000 stack=0x21
100  1.1 > toyFinish queue=0x10
200  1.9 q sample pid=1 tid=1 cpu=2 period=1000 stack=0x20
300  1.1 < toyFinish result=0
400  1.9 q sample pid=1 tid=5 cpu=2 period=1000 stack=1
";

#[test]
fn samples_are_paths() {
    let of = |weight| written(&common::build(SAMPLED), Options { weight, ..Options::default() }).0;
    let time = "\
app [1];app [1];main (main.c:9);hot (main.c:2) 1000
app [1];app [1];toy:toyFinish 200
app [1];thread [5];[stack not known] 1000
";
    assert_eq!(of(Weight::Time), time);
    let cpu = "\
app [1];app [1];main (main.c:9) 1000
app [1];app [1];main (main.c:9);hot (main.c:2) 1000
app [1];thread [5];[stack not known] 1000
";
    assert_eq!(of(Weight::Cpu), cpu);
    assert_eq!(of(Weight::Calls), "app [1];app [1];toy:toyFinish 1\n");
}

#[test]
fn paths_have_weights() {
    let time = "\
app [1];app [1];toy:toyLaunch 20
app [1];app [1];toy:toyLaunch;base:baseSubmit 40
app [1];app [2];toy:toyFinish 1500
";
    assert_eq!(folded(Weight::Time), time);
    let calls = "\
app [1];app [1];toy:toyLaunch 1
app [1];app [1];toy:toyLaunch;base:baseSubmit 1
app [1];app [2];toy:toyFinish 1
";
    assert_eq!(folded(Weight::Calls), calls);
    // Each below the call that it names; the copy's is not known.
    let device = "\
app [1];[device] copy 10
app [1];app [1];toy:toyLaunch;[device] vecadd 400
app [1];app [1];toy:toyLaunch;base:baseSubmit;[device] vecadd 100
";
    assert_eq!(folded(Weight::Device), device);
    assert_eq!(folded(Weight::Bytes), "app [1];[device] copy 64\n");
}

/// A call that fails after long is no less in the way than one that succeeds.
#[test]
fn time_of_failed_calls_stands_below_them() {
    let script = "
0    1.1 > toyWrite queue=0x10 buffer=0xb size=64 data=0x7fff
10   1.1 < toyWrite result=0
20   1.1 > toyWrite queue=0x10 buffer=0xb size=64 data=0x7fff
1020 1.1 < toyWrite result=-5
";
    let (text, found) = written(&common::build(script), Options::default());
    assert_eq!(text, "app [1];app [1];toy:toyWrite 10\napp [1];app [1];toy:toyWrite;[failed] 1000\n");
    assert_eq!(found.total, 1010);
}

#[test]
fn threads_can_be_put_together() {
    let options = Options { merge_threads: true, ..Options::default() };
    let (text, found) = written(&common::build(SCRIPT), options);
    assert_eq!(
        text,
        "app [1];toy:toyFinish 1500\napp [1];toy:toyLaunch 20\napp [1];toy:toyLaunch;base:baseSubmit 40\n"
    );
    assert_eq!((found.paths, found.total, found.lost_causes), (3, 1560, 0));
}

/// What all paths add up to is what `tally` says, whatever the trace.
#[test]
fn sums_are_those_of_tally() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let trace = common::build(text.split("\n== ").next().unwrap_or(""));
        let tables = tally::tally(&trace, &tally::Options::default());
        let sum = |weight| {
            let (text, found) = written(&trace, Options { weight, ..Options::default() });
            let lines: u128 = text
                .lines()
                .map(|line| line.rsplit_once(' ').expect("a weight").1.parse::<u128>().expect("a number"))
                .sum();
            assert_eq!(lines, found.total);
            lines
        };
        let host = |f: fn(&tally::HostRow) -> u64| tables.host.iter().map(|r| u128::from(f(r))).sum::<u128>();
        let [outside, inside] =
            tables.sampled.as_ref().map_or([0; 2], |s| [s.outside_ns, s.inside_ns].map(u128::from));
        let time = host(|r| r.self_ns + r.error_self_ns) + outside;
        assert_eq!(sum(Weight::Time), time, "{}: time", path.display());
        assert_eq!(sum(Weight::Cpu), outside + inside, "{}: cpu", path.display());
        let unfinished: u64 = tables.unfinished.iter().map(|r| r.calls).sum();
        assert_eq!(
            sum(Weight::Calls),
            host(|r| r.calls) + u128::from(unfinished),
            "{}: calls",
            path.display()
        );
        // Of a sample, the other launches' times are an estimate.
        if tables.device.iter().all(|r| r.samples.is_none()) {
            let device: u128 = tables.device.iter().map(|r| u128::from(r.total_ns)).sum();
            assert_eq!(sum(Weight::Device), device, "{}: device", path.display());
        }
        seen += 1;
    }
    assert!(seen > 20);
}

/// The program's ranges are frames around outermost calls, commands and samples: two domains that end in another order than
/// they begin, and the range that a call is in when it begins.
#[test]
fn ranges_are_frames() {
    let script = "
0    1.1 * device device=1 handle=0xd name=\"Toy GPU\"
0    1.1 * queue queue=1 handle=0x10 context=0x1 device=1 api=\"toy\"
0    1.1 * function function=1 name=\"vecadd\"
10   1.1 > zonePush message=\"step\"
20   1.1 < zonePush result=0
30   1.1 > toyLaunch queue=0x10 kernel=0x3 dims=1 global=[64]
70   1.1 < toyLaunch result=0
80   1.1 > zonePop
80   1.1 < zonePop result=0
90   1.1 > toyFinish queue=0x10
1000 1.1 * kernel function=1 queue=1 cause_tid=1 cause_before=970 duration=400
1100 1.1 < toyFinish result=0
";
    let options = Options { ranges: true, ..Options::default() };
    let time = "\
app [1];app [1];[range] step;toy:toyLaunch 40
app [1];app [1];toy:toyFinish 1010
app [1];app [1];zone:zonePush 10
";
    assert_eq!(written(&common::build(script), options).0, time);
    let device = "app [1];app [1];[range] step;toy:toyLaunch;[device] vecadd 400\n";
    assert_eq!(written(&common::build(script), Options { weight: Weight::Device, ..options }).0, device);
    let without = written(&common::build(script), Options::default()).0;
    assert!(!without.contains("[range]"), "{without}");
}

#[test]
fn ranges_between_probes_are_frames() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden/probe_ranges.txt");
    let text = std::fs::read_to_string(path).expect("readable");
    let trace = common::build(text.split("\n== ").next().unwrap_or(""));
    // Without a manifest the process is called as the first thread that is met.
    let calls = "\
reader [1];app [1];[range] app:step (entry..return);toy:toyFinish 13
reader [1];app [1];[range] app:step (entry..return);toy:toyLaunch 12
";
    let options = Options { ranges: true, weight: Weight::Calls, ..Options::default() };
    assert_eq!(written(&trace, options).0, calls);
}

#[test]
fn a_flame_graph_has_a_box_for_each_path() {
    let options = Options { form: Form::Flame, ..Options::default() };
    let (svg, _) = written(&common::build(SCRIPT), options);
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
    for title in [
        "<title>app [1] (1.56 µs, 100.00 %)</title>",
        "<title>app [2] (1.50 µs, 96.15 %)</title>",
        "<title>toy:toyLaunch (60 ns, 3.85 %)</title>",
        "<title>base:baseSubmit (40 ns, 2.56 %)</title>",
    ] {
        assert!(svg.contains(title), "{title}\n{svg}");
    }
    assert!(
        svg.contains("app [1]: 1.56 µs") || svg.contains(": 1.56 µs</text>"),
        "the sum has a unit: {svg}"
    );
    assert!(svg.contains("id=\"search\"") && svg.contains("function zoom("), "{svg}");
    assert!(!svg.contains("src=") && !svg.contains("href="), "nothing comes from elsewhere");
    assert_eq!(svg.matches("<g>").count(), 6);
    assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    // Children lie within what is around them: 40 of 1200 pixels are 1560 / 39 ns.
    assert!(svg.contains("width=\"1200.0000\"") && svg.contains("width=\"46.1538\""), "{svg}");
    let empty = written(&common::build("0 1.1 * device device=1 handle=0xd name=\"a\""), options).0;
    assert!(empty.ends_with("</svg>\n"));
}

#[test]
fn it_can_be_stopped() {
    let mut script = String::new();
    for i in 0..40_000 {
        let (at, end) = (i * 100, i * 100 + 50);
        script += &format!("{at} 1.1 > toyFinish queue=0x1\n{end} 1.1 < toyFinish result=0\n");
    }
    let mut bytes = Vec::new();
    let stopped =
        write(&common::build(&script), &Options::default(), &mut bytes, &|_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Stopped)) && bytes.is_empty());
}

#[test]
fn weights_have_names() {
    for weight in Weight::ALL {
        assert_eq!(weight.name().parse(), Ok(weight));
    }
    assert!("speed".parse::<Weight>().is_err());
}
