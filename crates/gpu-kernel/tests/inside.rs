//! Twins of kernels, run by an interpreter that schedules lanes as hardware may; what they write, read and decoded: it is
//! what each lane did.

mod interpreter;
#[path = "random/graphs.rs"]
mod random;
#[path = "inside/weights.rs"]
mod weights;

use std::collections::HashMap;
use std::fmt::Write;

use hetrace_gpu_kernel::description::Kernel;
use hetrace_gpu_kernel::graph::{EXIT, Graph};
use hetrace_gpu_kernel::ptx::{self, Base, Kind, Request, rewrite};
use hetrace_gpu_kernel::{Decoder, Ended, Mode, Step, Strategy, Weights, pool};
use hetrace_pool::Layout;
use interpreter::{Device, Launch, Program, Random, Truth};
use proptest::prelude::*;
use random::graphs;

/// Results of up to this many threads, from the begin of memory; the pool is behind them.
const RESULTS: usize = 4096;
const POOL: usize = 65_536;

/// Writes a kernel with this graph. Each block says its number, and chooses by what all lanes of a thread block have alike,
/// or each lane for itself; when its fuel is spent, forward.
fn text(graph: &Graph, random: &mut Random) -> String {
    let mut out = String::from(
        ".version 6.0\n.target sm_70\n.address_size 64\n.visible .entry k(\n\t.param .u64 k_out,\n\t.param .u64 k_fuel\n)\n{\n\
         \t.reg .pred %p<4>;\n\t.reg .b32 %r<9>, %mark, %us, %ls, %hash;\n\t.reg .b64 %rd<9>, %fuel;\n\
         \tld.param.u64 %rd1, [k_out];\n\tld.param.u64 %fuel, [k_fuel];\n\tmov.u32 %us, %ctaid.x;\n\tmov.u32 %r1, %ntid.x;\n\
         \tmov.u32 %ls, %tid.x;\n\tmad.lo.u32 %ls, %us, %r1, %ls;\n\tmul.wide.u32 %rd2, %ls, 4;\n\tadd.u64 %rd1, %rd1, %rd2;\n\
         \tmad.lo.u32 %ls, %ls, 747796405, 12345;\n\tmov.u32 %hash, 1;\n",
    );
    for block in 0..graph.len() {
        let _ = write!(
            out,
            "$B{block}:\n\tmov.u32 %mark, {block};\n\tmad.lo.u32 %us, %us, 1664525, 1013904223;\n\
             \tmad.lo.u32 %ls, %ls, 1664525, 1013904223;\n\tmad.lo.u32 %hash, %hash, 31, %mark;\n\
             \tst.global.u32 [%rd1], %hash;\n"
        );
        choice(&mut out, graph, block, random);
    }
    out.push_str("$End:\n\tret;\n}\n");
    out
}

fn choice(out: &mut String, graph: &Graph, block: usize, random: &mut Random) {
    let to = graph.successors(block);
    let forward = (0..to.len()).max_by_key(|case| to[*case]).expect("a way");
    let state = ["%us", "%us", "%ls"][random.below(3)];
    let _ = writeln!(out, "\tshr.u32 %r2, {state}, {};", 14 + random.below(6));
    out.push_str("\tsetp.ne.u64 %p2, %fuel, 0;\n\t@%p2 sub.u64 %fuel, %fuel, 1;\n");
    let label = |to: usize| if to == EXIT { "$End".to_owned() } else { format!("$B{to}") };
    let mut last = to[0];
    match to {
        [_] => {}
        [one, other] => {
            let _ = writeln!(out, "\tand.b32 %r2, %r2, {};", [1, 3, 15][random.below(3)]);
            let sign = ["eq", "ne"][random.below(2)];
            let _ = writeln!(out, "\tsetp.{sign}.u32 %p1, %r2, 0;");
            let negated = random.below(2) == 0;
            // Forward, if there is no fuel.
            if (forward == 0) != negated {
                out.push_str("\tsetp.eq.u64 %p3, %fuel, 0;\n\tor.pred %p1, %p1, %p3;\n");
            } else {
                out.push_str("\tand.pred %p1, %p1, %p2;\n");
            }
            let goes = match (*one, random.below(3)) {
                (EXIT, 0) => "ret".to_owned(),
                (EXIT, 1) => "exit".to_owned(),
                (to, _) => format!("bra {}", label(to)),
            };
            let _ = writeln!(out, "\t@{}%p1 {goes};", if negated { "!" } else { "" });
            last = *other;
        }
        _ => {
            let _ = writeln!(out, "\trem.u32 %r2, %r2, {};", to.len());
            let _ = writeln!(out, "\tselp.b32 %r2, %r2, {forward}, %p2;");
            let labels: Vec<String> = to.iter().map(|to| label(*to)).collect();
            let _ =
                writeln!(out, "$T{block}: .branchtargets {};\n\tbrx.idx %r2, $T{block};", labels.join(", "));
            return;
        }
    }
    match last {
        EXIT if random.below(2) == 0 => out.push_str("\tret;\n"),
        to if to == block + 1 => {}
        to => _ = writeln!(out, "\tbra {};", label(to)),
    }
}

/// By block of the text, the mark that it sets.
fn marks(text: &str) -> HashMap<usize, u64> {
    let module = ptx::scan(text).expect("a text");
    let function = &module.functions[0];
    let flow = ptx::flow(text, function).expect("a graph");
    let mut marks = HashMap::new();
    for (block, body) in flow.bodies.iter().enumerate() {
        for statement in &function.statements[body.statements.clone()] {
            if let Kind::Instruction { operands, .. } = &statement.kind
                && let Some(mark) = text[operands.clone()].strip_prefix("%mark, ")
            {
                assert!(marks.insert(block, mark.parse().expect("a number")).is_none());
            }
        }
    }
    marks
}

/// A way to record.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    mode: Mode,
    sums: bool,
    sample: u32,
    base: Base,
    strategy: Strategy,
}

const fn way(mode: Mode, sums: bool, sample: u32, base: Base) -> Way {
    Way { mode, sums, sample, base, strategy: Strategy::Chunks }
}

const WAYS: [Way; 9] = [
    way(Mode::Branches, true, 1, Base::Module),
    way(Mode::Branches, false, 1, Base::Module),
    way(Mode::Edges, false, 1, Base::Module),
    way(Mode::Blocks, false, 1, Base::Module),
    way(Mode::Branches, true, 2, Base::Module),
    way(Mode::Paths, false, 1, Base::Module),
    way(Mode::Paths, false, 2, Base::Module),
    way(Mode::Paths, false, 1, Base::Parameter),
    way(Mode::Branches, true, 2, Base::Parameter),
];
const PATHS: Way = WAYS[5];

/// Ways with which leaders get room by other strategies than the default.
fn strategies() -> impl Iterator<Item = Way> {
    let others = Strategy::ALL.into_iter().filter(|strategy| *strategy != Strategy::Chunks);
    others.flat_map(|strategy| [0, 3, 5, 6].map(|at| Way { strategy, ..WAYS[at] }))
}

/// Multiprocessors of the device; blocks of the launches run on four of them.
const MULTIPROCESSORS: u32 = 7;

fn layout(strategy: Strategy) -> Layout {
    Layout::new(strategy, MULTIPROCESSORS)
}

/// What a pool of a strategy with so many places begins with.
fn header(strategy: Strategy, places: u64) -> Vec<u8> {
    let layout = layout(strategy);
    let mut header = vec![0; layout.header_bytes() as usize];
    layout.begin(places, &mut header);
    header
}

fn twin(text: &str, way: Way) -> (String, Kernel) {
    twin_by(text, way, None)
}

/// The same, where it records by weights of an earlier run.
fn twin_by(text: &str, way: Way, weights: Option<&Weights>) -> (String, Kernel) {
    let Way { mode, sums, sample, base, strategy } = way;
    let wanted = &|name: &str| name == "k";
    let request = Request { wanted, mode, sums, sample, base, strategy, first: 7, image: "x", weights };
    let mut rewritten = rewrite(text, &request).expect("twins");
    assert_eq!(rewritten.description.refused, []);
    (rewritten.text, rewritten.description.kernels.remove(0))
}

/// What launches of a twin did, and the pool.
struct Run {
    launches: Vec<Vec<Vec<Truth>>>,
    memory: Vec<u8>,
    masks: u64,
}

const BLOCKS: u32 = 2;
const LAUNCHES: u64 = 2;

fn run(program: &Program, threads: u32, seed: u64, chunks: u64) -> Run {
    run_in(&hetrace_pool::empty(chunks), program, threads, seed, chunks)
}

/// The same in a pool with this header.
fn run_in(header: &[u8], program: &Program, threads: u32, seed: u64, chunks: u64) -> Run {
    run_fuelled(header, program, threads, seed, chunks, 15 + 15 * u64::from(threads % 4))
}

/// The same with so many choices for each lane, before it goes forward.
fn run_fuelled(header: &[u8], program: &Program, threads: u32, seed: u64, chunks: u64, fuel: u64) -> Run {
    let mut device = Device::new(POOL + header.len() + 4096 * chunks as usize, seed);
    device.memory[POOL..POOL + header.len()].copy_from_slice(header);
    let pool = if chunks == 0 { 0 } else { Device::address(POOL) };
    let launch = |grid| {
        let parameters = &[Device::address(0), fuel, pool];
        device.run(program, &Launch { grid, blocks: BLOCKS, threads, parameters, pool })
    };
    let launches = (0..LAUNCHES).map(|grid| 5 + grid).map(launch).collect();
    Run { launches, memory: device.memory, masks: device.masks }
}

/// All lanes that were recorded did what they did.
fn check(text: &str, kernel: &Kernel, way: Way, threads: u32, run: &Run) -> Result<(), TestCaseError> {
    let marks = marks(text);
    // What was not used need not be kept.
    let begin = layout(way.strategy).header_bytes();
    let header = &run.memory[POOL..POOL + begin as usize];
    let places = hetrace_pool::used(header, hetrace_pool::places(header));
    let used = (begin + places * hetrace_pool::CHUNK) as usize;
    prop_assert!(run.memory[POOL + used..].iter().all(|byte| *byte == 0));
    let read = pool::read(&run.memory[POOL..POOL + used]);
    prop_assert_eq!(read.faults, pool::Faults::default());
    prop_assert_eq!((read.lost, read.launches.len()), (0, run.launches.len()));
    let graph = kernel.graph().expect("a graph");
    let plan = kernel.plan(&graph).expect("a plan");
    let decoder = Decoder::new(&graph, &plan);
    for (launch, truth) in read.launches.iter().zip(&run.launches) {
        prop_assert_eq!((launch.kernel, launch.threads_in_block), (7, [threads, 1, 1]));
        prop_assert_eq!(
            (launch.blocks_in_grid, launch.blocks.len()),
            ([BLOCKS, 1, 1], BLOCKS.div_ceil(way.sample) as usize)
        );
        for block in &launch.blocks {
            prop_assert_eq!((block.at[0] % way.sample, block.multiprocessor % 32), (0, block.at[0] + 3));
            prop_assert_eq!(block.warps.len() as u32, threads.div_ceil(32));
            for (number, truth) in truth[block.at[0] as usize].iter().enumerate() {
                let (warp, lane) = (&block.warps[number / 32], number as u32 % 32);
                let begin = warp.begin(lane).expect("a begin");
                let (path, violations) = decoder.lane(lane, begin, warp.end(lane), &warp.records);
                prop_assert_eq!(&violations, &[], "{:?}", way);
                prop_assert_eq!(path.ended, Ended::Exit);
                let steps: Vec<(&Step, u64)> = path
                    .steps
                    .iter()
                    .filter_map(|step| marks.get(&step.block).map(|mark| (step, *mark)))
                    .collect();
                let (found, happened): (Vec<u64>, Vec<u64>) = (
                    steps.iter().map(|step| step.1).collect(),
                    truth.marks.iter().map(|mark| mark.0).collect(),
                );
                prop_assert_eq!(found, happened, "{:?}", way);
                for ((step, _), (_, time)) in steps.iter().zip(&truth.marks) {
                    let there = step.recorded || (step.earliest <= *time && *time <= step.latest);
                    prop_assert!(there, "{:?} {:?} {}", way, step, time);
                }
            }
        }
    }
    Ok(())
}

/// The same graph in a loop that lanes leave one time in so many and one.
fn again(graph: &Graph, stays: usize) -> Graph {
    let last = graph.len();
    let to = |to: &usize| if *to == EXIT { last } else { *to };
    let mut blocks: Vec<Vec<usize>> =
        (0..last).map(|block| graph.successors(block).iter().map(to).collect()).collect();
    blocks.push([vec![0; stays], vec![EXIT]].concat());
    Graph::new(blocks).expect("a graph")
}

/// What is decoded of lanes is the begin of what they did; all of it if that comes to the end.
fn begins(text: &str, kernel: &Kernel, way: Way, run: &Run, read: &pool::Pool) -> Result<(), TestCaseError> {
    let (graph, marks) = (kernel.graph().expect("a graph"), marks(text));
    let plan = kernel.plan(&graph).expect("a plan");
    let decoder = Decoder::new(&graph, &plan);
    for launch in &read.launches {
        let truth = &run.launches[launch.grid as usize - 5];
        let warps = launch.blocks.iter().flat_map(|block| block.warps.iter().map(move |warp| (block, warp)));
        for (block, warp) in warps {
            for lane in (0..32).filter(|lane| warp.lanes() >> lane & 1 != 0) {
                let begin = warp.begin(lane).expect("a begin");
                let (path, violations) = decoder.lane(lane, begin, warp.end(lane), &warp.records);
                prop_assert_eq!(&violations, &[], "{:?}", way);
                let did = &truth[block.at[0] as usize][(32 * warp.number + lane) as usize].marks;
                let found: Vec<u64> =
                    path.steps.iter().filter_map(|step| marks.get(&step.block).copied()).collect();
                let did: Vec<u64> = did.iter().map(|mark| mark.0).collect();
                prop_assert!(did.starts_with(&found), "{:?}", way);
                let (whole, ended) = (found.len() == did.len(), warp.end(lane).is_some());
                let exits = path.ended == Ended::Exit;
                if way.mode == Mode::Paths {
                    prop_assert_eq!(exits, whole && ended, "{:?}", way);
                }
                // A last choice may lead to the end although that of the lane is lost.
                prop_assert!(exits || !ended, "{:?}", way);
                prop_assert!(whole || !exits, "{:?}", way);
            }
        }
    }
    Ok(())
}

/// Lanes end before a barrier to which the others of their warp come. The way to the end is one for all in the text, but no
/// lane may wait there for others: they wait for it at the barrier.
const BARRIER: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(
	.param .u64 k_out,
	.param .u64 k_fuel
)
{
	.reg .pred %p<3>;
	.reg .b32 %r<9>, %mark;
	.reg .b64 %rd<4>;
	.shared .align 4 .b8 tile[256];
	mov.u32 %mark, 0;
	mov.u32 %r1, %tid.x;
	and.b32 %r2, %r1, 3;
	mov.u32 %r5, 0;
	setp.eq.u32 %p1, %r2, 1;
	@%p1 bra $Out;
	mov.u32 %r6, tile;
	shl.b32 %r7, %r1, 2;
	add.u32 %r6, %r6, %r7;
	st.shared.u32 [%r6], %r1;
$Again:
	mov.u32 %mark, 2;
	bar.sync 0;
	add.u32 %r5, %r5, 1;
	setp.lt.u32 %p2, %r5, 5;
	@%p2 bra $Again;
	ld.shared.u32 %r8, [%r6];
	ld.param.u64 %rd1, [k_out];
	mul.wide.u32 %rd2, %r1, 4;
	add.u64 %rd1, %rd1, %rd2;
	st.global.u32 [%rd1], %r8;
$Out:
	ret;
}
";

#[test]
fn lanes_that_end_before_a_barrier_do_not_wait_for_it() {
    let ways = || WAYS.into_iter().chain(strategies());
    for (seed, way) in (0..8).flat_map(|seed| ways().map(move |way| (seed, way))) {
        let (twins, kernel) = twin(BARRIER, way);
        let header = header(way.strategy, 3000);
        let run = run_in(&header, &Program::new(&twins, "k__hetrace_inside"), 64, seed, 3000);
        check(BARRIER, &kernel, way, 64, &run).expect("what lanes did");
        for thread in (0..64u8).filter(|thread| thread & 3 != 1) {
            assert_eq!(run.memory[usize::from(thread) * 4], thread);
        }
        // Each place from where lanes end early has its own end: none jumps to where others end.
        let body = &twins[twins.find("k__hetrace_inside(").expect("a twin")..];
        // One is that of the body as it is.
        assert_eq!(body.matches("bra $Out").count(), 1, "{way:?}");
    }
}

/// Losses are the kernel's own while no other one has its place in the pool's header; else they are of any.
#[test]
fn losses_are_of_the_kernel_whose_place_it_is() {
    let graph = Graph::new(vec![vec![1, EXIT], vec![0, EXIT]]).expect("a graph");
    let text = text(&graph, &mut Random(3));
    for way in [WAYS[3], PATHS] {
        let program = Program::new(&twin(&text, way).0, "k__hetrace_inside");
        for (owner, own) in [(0u32, true), (8, true), (7 + 124 + 1, false)] {
            let mut header = hetrace_pool::empty(1);
            header[64 + 16 * 7..][..4].copy_from_slice(&owner.to_le_bytes());
            let read = pool::read(&run_in(&header, &program, 96, 3, 1).memory[POOL..]);
            assert!(read.lost > 0, "{way:?}");
            let of_own = read.lost_by.get(&7).copied();
            assert_eq!(of_own, own.then_some(read.lost), "{way:?} {owner}");
        }
    }
}

/// Warps that do not see that a pool is full go on asking, and what a counter has is not only how often.
#[test]
fn counters_of_small_chunks_are_held_where_there_is_no_room() {
    let graph = Graph::new(vec![vec![1, EXIT], vec![0, EXIT]]).expect("a graph");
    let program = Program::new(&twin(&text(&graph, &mut Random(3)), PATHS).0, "k__hetrace_inside");
    let counter = |number: usize| hetrace_pool::ASKED_SMALL + hetrace_pool::STRIDE * number;
    let mut header = hetrace_pool::empty(1);
    for number in 0..32 {
        let begin = u32::from_le_bytes(header[counter(number)..][..4].try_into().expect("4 bytes"));
        let asked = (begin + (1 << 22) + 1000).to_le_bytes();
        header[counter(number)..][..4].copy_from_slice(&asked);
    }
    let memory = run_in(&header, &program, 96, 3, 1).memory;
    let pool = &memory[POOL..];
    // Two thread blocks of three warps, each of which asks another counter; who begins late sees that the pool is full.
    let held = |number: &usize| {
        let found = hetrace_pool::u32_at(pool, counter(*number));
        assert_eq!(found >> 24, 0x80 + 32 + *number as u32);
        found & 0xff_ffff <= (1 << 22) + 2
    };
    assert!((0..6).filter(held).count() >= 3);
    // Lanes that were no leaders at the begin ask any of the others.
    (6..32).for_each(|number| _ = held(&number));
    assert!(pool::read(pool).full);
}

/// Records in a pool, with begins and ends.
fn records(read: &pool::Pool) -> u64 {
    let warps = read.launches.iter().flat_map(|launch| &launch.blocks).flat_map(|block| &block.warps);
    warps.map(|warp| (warp.records.len() + warp.began.len() + warp.ended.len()) as u64).sum()
}

/// Records that found no room, and those that are left out for that.
fn missing(read: &pool::Pool) -> u64 {
    read.lost + read.left_out.values().sum::<u64>()
}

#[test]
fn kernels_that_would_break_are_refused() {
    let body = |line: &str| {
        format!(".version 8.0\n.target sm_90a\n.address_size 64\n.entry k()\n{{\n{line}\nret;\n}}\n")
    };
    let request = Request {
        wanted: &|_| true,
        mode: Mode::Branches,
        sums: true,
        sample: 1,
        base: Base::Module,
        strategy: Strategy::Chunks,
        first: 0,
        image: "x",
        weights: None,
    };
    for (line, reason) in [
        ("setmaxnreg.inc.sync.aligned.u32 96;", "registers"),
        ("wgmma.fence.sync.aligned;", "matrices"),
        ("bra L;", "label"),
        ("brx.idx %r1, T;\nT: .branchtargets;", "label"),
    ] {
        let text = body(line);
        let rewritten = rewrite(&text, &request).expect("a module");
        assert_eq!(rewritten.text, text);
        let [refused] = rewritten.description.refused.as_slice() else { panic!("{line}") };
        assert!(refused.name == "k" && refused.reason.contains(reason), "{refused:?}");
    }
    // Beside the program's own, a module has variables of its own; those that nobody writes may be twice.
    let apart = Request { base: Base::Parameter, ..request };
    for (variable, reason) in [
        (".visible .global .align 4 .u32 count[2] = {1, 2};", Some("(count)")),
        (".const .align 4 .b8 table[16];", None),
        (".global .samplerref linear = {filter_mode = linear};", None),
    ] {
        let text = body("").replace(".entry", &format!("{variable}\n.entry"));
        let refused = rewrite(&text, &apart).expect("a module").description.refused;
        assert_eq!(refused.first().map(|r| r.reason.contains(reason.unwrap_or("?"))), reason.map(|_| true));
        assert_eq!(rewrite(&text, &request).expect("a module").description.refused, []);
    }
    let refused = |text: &str| rewrite(text, &request).expect_err("a refusal").to_string();
    assert!(refused(&body("ret;").replace("size 64", "size 32")).contains("64 bits"));
    assert!(refused("// __hetrace_inside").contains("already"));
    assert!(refused(".entry k() {").contains("line 1"));
    let none = Request { wanted: &|_| false, ..request };
    assert_eq!(rewrite(&body(""), &none).expect("a module").description.refused, []);
}

#[test]
fn functions_that_a_kernel_calls_are_named() {
    let calls = "call.uni (retval0), _Z1fi, (param0);\ncall.uni g, (param0);\ncall h;\n{ .reg .b32 temp;\n\
                 call.uni (retval0),\nvprintf,\n(param0, param1);\n}\ncall (retval0), %rd3, (param0), proto;\n";
    let text = BARRIER.replace("mov.u32 %mark, 0;", &format!("{calls}mov.u32 %mark, 0;"));
    let kernel = twin(&text, PATHS).1;
    assert_eq!(kernel.calls, ["_Z1fi", "a function by its address", "g", "h", "vprintf"]);
    assert_eq!(twin(BARRIER, PATHS).1.calls, [""; 0]);
}

#[test]
fn a_module_stays_as_it_was_before_its_twins() {
    let request = |mode| Request {
        wanted: &|_| true,
        mode,
        sums: true,
        sample: 1,
        base: Base::Module,
        strategy: Strategy::Chunks,
        first: 3,
        image: "hash",
        weights: None,
    };
    let text = BARRIER.replace(".visible .entry", ".const .align 4 .b8 big[40000];\n.weak .entry");
    let rewritten = rewrite(&format!("{text}\0\0"), &request(Mode::Branches)).expect("twins");
    assert!(rewritten.text.starts_with(&text));
    // Constants are nearly used up.
    let has = |text: &str, parts: [&str; 2]| parts.iter().all(|part| text.contains(part));
    assert!(has(
        &rewritten.text,
        ["\n.global .align 8 .u64 __hetrace_inside;\n", "\n.weak .entry k__hetrace_inside("]
    ));
    let small = rewrite(BARRIER, &request(Mode::Edges)).expect("twins");
    assert!(has(
        &small.text,
        ["\n.const .align 8 .u64 __hetrace_inside;\n", "\n.visible .entry k__hetrace_inside("]
    ));
    assert_eq!((small.description.image.as_str(), small.description.kernels[0].number), ("hash", 3));
    // Linked with others, all have one variable, wherever their constants leave room.
    let linked = rewrite(BARRIER, &Request { base: Base::Linked, ..request(Mode::Paths) }).expect("twins");
    assert!(has(
        &linked.text,
        [
            "\n.weak .global .align 8 .u64 __hetrace_inside;\n",
            "ld.global.u64 %hetrace_b, [__hetrace_inside];"
        ]
    ));
    // In a program of its own the buffer is a parameter.
    let apart = Request { base: Base::Parameter, ..request(Mode::Paths) };
    let own = rewrite(BARRIER, &apart).expect("twins").text;
    assert!(own.contains(
        "k__hetrace_inside(\n\t.param .u64 k_out,\n\t.param .u64 k_fuel,\n\t.param .u64 .ptr .global .align 8 hetrace_pool\n)"
    ));
    assert!(own.contains("ld.param.u64 %hetrace_b, [hetrace_pool];") && !own.contains("[__hetrace_inside]"));
    for head in ["k()", "k"] {
        let text = format!(".version 8.0\n.target sm_90\n.address_size 64\n.entry {head}\n{{\nret;\n}}\n");
        let twins = rewrite(&text, &apart).expect("twins").text;
        assert!(
            twins.contains(".entry k__hetrace_inside(.param .u64 .ptr .global .align 8 hetrace_pool\n)"),
            "{twins}"
        );
    }
    // Names that the module has are not taken.
    let taken = rewrite(&BARRIER.replace("%mark", "%hetrace_m"), &request(Mode::Blocks)).expect("twins");
    assert!(taken.text.contains("%hetrace2_m"));
}

#[test]
fn twins_assemble() {
    let found = std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path).map(|folder| folder.join("ptxas")).find(|file| file.exists())
    });
    let Some(ptxas) = found else {
        println!("SKIPPED: no ptxas on the path");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let forward =
        Graph::new(vec![vec![1, EXIT], vec![0, 2, 1, EXIT], vec![1, 2], vec![EXIT, 3]]).expect("a graph");
    let ways = || WAYS.into_iter().chain(strategies());
    for (number, way) in (0..4).flat_map(|number| ways().map(move |way| (number, way))) {
        let text = if number == 0 { BARRIER.to_owned() } else { text(&forward, &mut Random(number)) };
        let file = folder.path().join("twins.ptx");
        std::fs::write(&file, twin(&text, way).0).expect("a file");
        for architecture in ["-arch=sm_90", "-arch=sm_100"] {
            let mut command = std::process::Command::new(&ptxas);
            let out = command.arg(architecture).arg(&file).arg("-o").arg(folder.path().join("out")).output();
            let out = out.expect("ptxas");
            assert!(out.status.success(), "{way:?}: {}", String::from_utf8_lossy(&out.stderr));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn what_is_decoded_is_what_lanes_did(graph in graphs(12), threads in 1u32..=40, seed: u64) {
        let text = text(&graph, &mut Random(seed));
        let plain = run(&Program::new(&text, "k"), threads, seed, 1);
        for way in WAYS {
            let (twins, kernel) = twin(&text, way);
            prop_assert!(twins.contains(".version 6.2") && twins.contains(&text[text.find(".target").unwrap()..]));
            let run = run(&Program::new(&twins, "k__hetrace_inside"), threads, seed ^ 1, 3000);
            prop_assert!(run.memory[..RESULTS] == plain.memory[..RESULTS], "results differ: {:?}", way);
            check(&text, &kernel, way, threads, &run)?;
        }
    }

    #[test]
    fn each_strategy_has_what_lanes_did(graph in graphs(12), threads in 1u32..=40, seed: u64) {
        let text = text(&graph, &mut Random(seed));
        let plain = run(&Program::new(&text, "k"), threads, seed, 1);
        for way in strategies() {
            let (twins, kernel) = twin(&text, way);
            let (header, program) = (header(way.strategy, 3000), Program::new(&twins, "k__hetrace_inside"));
            let run = run_in(&header, &program, threads, seed ^ 1, 3000);
            prop_assert!(run.memory[..RESULTS] == plain.memory[..RESULTS], "results differ: {:?}", way);
            check(&text, &kernel, way, threads, &run)?;
        }
    }

    #[test]
    fn each_strategy_counts_what_finds_no_room(
        graph in graphs(12), threads in 1u32..=40, seed: u64, places in 1u64..40, long: bool,
    ) {
        let text = text(&graph, &mut Random(seed));
        for way in strategies().filter(|way| way.mode == Mode::Blocks) {
            let (twins, _) = twin(&text, way);
            let (header, program) = (header(way.strategy, places), Program::new(&twins, "k__hetrace_inside"));
            // So long that a leader's place is full with what is padded.
            let run = run_fuelled(&header, &program, threads, seed, places, if long { 400 } else { 15 });
            let read = pool::read(&run.memory[POOL..]);
            let full = run.memory[POOL + 24] == 1;
            prop_assert_eq!((read.full, read.faults.records, read.faults.gaps), (full, 0, 0), "{:?}", way);
            prop_assert_eq!(records(&read) + missing(&read), run.masks, "{:?}", way);
            prop_assert!(read.lost > 0 || !full, "{:?}", way);
            prop_assert!(full || read.lost == 0 || (way.strategy == Strategy::Padded && long), "{:?}", way);
            prop_assert_eq!(read.lost_by.get(&7).copied().unwrap_or(0), read.lost);
        }
    }

    #[test]
    fn a_place_that_is_full_ends_its_warp_and_contradicts_nothing(
        graph in graphs(6), threads in 2u32..=8, seed: u64, fuel in 280u64..400,
    ) {
        let graph = again(&graph, 40);
        let text = text(&graph, &mut Random(seed));
        for way in [0, 1, 2, 3].map(|at| Way { strategy: Strategy::Padded, ..WAYS[at] }) {
            let (twins, kernel) = twin(&text, way);
            let (header, program) = (header(way.strategy, 2000), Program::new(&twins, "k__hetrace_inside"));
            let run = run_fuelled(&header, &program, threads, seed, 2000, fuel);
            let read = pool::read(&run.memory[POOL..]);
            prop_assert_eq!((read.full, read.faults), (false, pool::Faults::default()), "{:?}", way);
            prop_assert_eq!(read.lost_by.get(&7).copied().unwrap_or(0), read.lost);
            if way.mode == Mode::Blocks {
                prop_assert_eq!(records(&read) + missing(&read), run.masks);
            }
            begins(&text, &kernel, way, &run, &read)?;
        }
    }

    #[test]
    fn a_pool_that_is_full_ends_lanes_and_contradicts_nothing(
        graph in graphs(6), threads in 2u32..=40, seed: u64, fuel in 20u64..120, places in 1u64..80,
        strategy in 0..Strategy::ALL.len(),
    ) {
        let graph = again(&graph, 5);
        let text = text(&graph, &mut Random(seed));
        for way in WAYS[..5].iter().map(|way| Way { strategy: Strategy::ALL[strategy], ..*way }) {
            let (twins, kernel) = twin(&text, way);
            let (header, program) = (header(way.strategy, places), Program::new(&twins, "k__hetrace_inside"));
            let run = run_fuelled(&header, &program, threads, seed, places, fuel);
            let read = pool::read(&run.memory[POOL..]);
            prop_assert_eq!(read.faults, pool::Faults::default(), "{:?}", way);
            prop_assert!(read.lost > 0 || !read.full && read.left_out.is_empty(), "{:?}", way);
            // What the launcher says, which counts by the header alone.
            prop_assert_eq!(read.lost, hetrace_pool::lost(&run.memory[POOL..]));
            prop_assert_eq!(read.lost_by.get(&7).copied().unwrap_or(0), read.lost);
            if way.mode == Mode::Blocks {
                prop_assert_eq!(records(&read) + missing(&read), run.masks, "{:?}", way);
            }
            begins(&text, &kernel, way, &run, &read)?;
        }
    }

    #[test]
    fn what_finds_no_room_is_counted(graph in graphs(12), threads in 1u32..=40, seed: u64, chunks in 0u64..40) {
        let text = text(&graph, &mut Random(seed));
        let (twins, kernel) = twin(&text, WAYS[3]);
        let run = run(&Program::new(&twins, "k__hetrace_inside"), threads, seed, chunks);
        if chunks == 0 {
            // No pool: nothing is written.
            prop_assert!(run.memory[POOL..].starts_with(&hetrace_pool::empty(0)));
            prop_assert!(run.memory[POOL + 4096..].iter().all(|byte| *byte == 0));
            return Ok(());
        }
        let read = pool::read(&run.memory[POOL..]);
        // Each group of lanes makes one record at each site.
        prop_assert_eq!(missing(&read) + records(&read), run.masks);
        prop_assert_eq!(read.lost > 0, run.memory[POOL + 24] == 1);
        prop_assert_eq!(read.lost_by.get(&7).copied().unwrap_or(0), read.lost);
        let graph = kernel.graph().expect("a graph");
        let plan = kernel.plan(&graph).expect("a plan");
        let decoder = Decoder::new(&graph, &plan);
        for warp in read.launches.iter().flat_map(|launch| &launch.blocks).flat_map(|block| &block.warps) {
            (0..32).for_each(|lane| _ = decoder.lane(lane, 0, warp.end(lane), &warp.records));
        }
    }

    #[test]
    fn what_lanes_say_of_their_ways_before_the_pool_is_full_is_what_they_did_first(
        graph in graphs(12), threads in 1u32..=40, seed: u64, chunks in 1u64..40, other in 0..Strategy::ALL.len(),
    ) {
        let text = text(&graph, &mut Random(seed));
        // The default, and another one.
        let strategy = Strategy::ALL[other];
        let (twins, kernel) = twin(&text, Way { strategy, ..PATHS });
        let program = Program::new(&twins, "k__hetrace_inside");
        let run = run_in(&header(strategy, chunks), &program, threads, seed, chunks);
        let plain = self::run(&Program::new(&text, "k"), threads, seed, 1);
        prop_assert!(run.memory[..RESULTS] == plain.memory[..RESULTS]);
        let read = pool::read(&run.memory[POOL..]);
        prop_assert_eq!(read.full, read.lost > 0);
        prop_assert_eq!(read.lost_by.get(&7).copied().unwrap_or(0), read.lost);
        begins(&text, &kernel, PATHS, &run, &read)?;
    }

    #[test]
    fn any_pool_can_be_read(
        graph in graphs(12),
        seed: u64,
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
        length: prop::sample::Index,
    ) {
        let text = text(&graph, &mut Random(seed));
        let strategy = Strategy::ALL[(seed / 2 % 5) as usize];
        let way = Way { strategy, ..if seed % 2 == 0 { WAYS[0] } else { PATHS } };
        let (twins, kernel) = twin(&text, way);
        let run = run_in(&header(strategy, 60), &Program::new(&twins, "k__hetrace_inside"), 33, seed, 60);
        let mut bytes = run.memory[POOL..].to_vec();
        for (place, byte) in noise {
            let place = place.index(bytes.len());
            // Not what says how often: paths would be as long as that.
            bytes[place] = if place % 16 < 4 { bytes[place] } else { byte };
        }
        bytes.truncate(length.index(bytes.len() + 1));
        let read = pool::read(&bytes);
        let graph = kernel.graph().expect("a graph");
        let plan = kernel.plan(&graph).expect("a plan");
        let decoder = Decoder::new(&graph, &plan);
        for warp in read.launches.iter().flat_map(|launch| &launch.blocks).flat_map(|block| &block.warps) {
            if warp.records.iter().all(|record| record.repeats < 1000) {
                (0..32).for_each(|lane| _ = decoder.lane(lane, 0, warp.end(lane), &warp.records));
            }
        }
    }

    #[test]
    fn any_text_is_rewritten_or_refused(
        graph in graphs(12),
        seed: u64,
        noise in prop::collection::vec((any::<prop::sample::Index>(), "[ -~\n]{0,3}"), 1..6),
        way in 0..WAYS.len(),
    ) {
        let mut text = text(&graph, &mut Random(seed));
        for (place, with) in noise {
            let at = place.index(text.len());
            text.replace_range(at..at + 1, &with);
        }
        let Way { mode, sums, sample, base, strategy } = WAYS[way];
        let wanted = &|_: &str| true;
        let request =
            Request { wanted, mode, sums, sample, base, strategy, first: 0, image: "x", weights: None };
        if let Ok(rewritten) = rewrite(&text, &request) {
            for kernel in &rewritten.description.kernels {
                kernel.plan(&kernel.graph().expect("a graph")).expect("a plan");
                prop_assert_eq!(kernel.blocks.len(), kernel.successors.len());
            }
        }
    }
}
