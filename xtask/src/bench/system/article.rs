//! The CLUST article's Table 5: what tracing adds to an iteration of 14 calls and 2 commands on images of eight
//! sizes, of the program alone and together with the kernel. The article's machine had another driver and other
//! processors, so that what is compared is the share of the bare iteration.

use std::ffi::OsString;

use anyhow::{Context, Result};
use serde_json::{Map, json};

use super::os::{How, rounds};
use super::remains::Mark;
use super::{Args, dormant};
use crate::bench::ground::Pin;
use crate::bench::ground::{self, Ground};
use crate::bench::iterations;
use crate::bench::numbers::Samples;
use crate::bench::report::{Report, difference, number};

/// A row of the article's Tables 4 and 5, in nanoseconds per iteration.
struct Row {
    width: u32,
    height: u32,
    /// Iterations in a loop of ours.
    loops: u32,
    bare: f64,
    /// Added by what is loaded and not used, by CLUST, and by CLUST with LTTng's kernel tracer.
    loaded: f64,
    clust: f64,
    both: f64,
}

const fn row(width: u32, height: u32, loops: u32, bare: u32, [loaded, clust, both]: [u32; 3]) -> Row {
    Row {
        width,
        height,
        loops,
        bare: bare as f64,
        loaded: loaded as f64,
        clust: clust as f64,
        both: both as f64,
    }
}

const ROWS: [Row; 8] = [
    row(1, 1, 300, 35_198, [1_201, 15_692, 23_640]),
    row(10, 1, 300, 35_183, [520, 16_700, 23_082]),
    row(10, 10, 300, 36_031, [859, 14_727, 23_588]),
    row(10, 100, 300, 37_937, [1_131, 17_883, 23_171]),
    row(100, 100, 300, 56_770, [2_939, 18_303, 27_976]),
    row(1000, 100, 50, 250_694, [471, 18_032, 29_605]),
    row(1280, 720, 20, 1_951_826, [139, 25_090, 36_619]),
    row(1920, 1080, 10, 4_466_096, [681, 25_493, 45_298]),
];

/// The article's added time with the kernel, of which ours may be this share.
const GOAL: f64 = 1.0 / 3.0;
/// Loops in a process.
const LOOPS: u32 = 10;

const HOWS: [How; 4] =
    [How::Bare, How::Dormant, How::Hetrace("hetrace run", &[]), How::Hetrace("--os tree", &["--os", "tree"])];

/// Measures and prints the tables.
pub fn run(ground: &Ground, args: &Args, mark: &Mark, report: &mut Report) -> Result<()> {
    for program in ["build/iteration", "build/event_costs"] {
        ground::make("bench/programs", program)
            .with_context(|| format!("make -C bench/programs {program}"))?;
    }
    dormant::words(ground)?;
    for (place, pin) in [("undisturbed on one processor", Pin::Undisturbed), ("as the system likes", Pin::No)]
    {
        report.title(&format!("Table 5, {place}: what is added to an iteration, nanoseconds"));
        report.line(&format!(
            "each sample is the median of {LOOPS} loops in one process; percent of the bare iteration, and the \
             article's beside it; the goal is a third of the article's percentage with the kernel; 'timing' is what the \
             OpenCL implementation itself takes for profiled queues, events and questions about them, without hetrace"
        ));
        let mut rows = Vec::new();
        let mut kept = Map::new();
        for size in &ROWS {
            let key = format!("iteration.{}x{}", size.width, size.height);
            let mut words: Vec<OsString> = ground.pinned(pin);
            words.extend(iterations::program(ground, (size.width, size.height, size.loops), LOOPS));
            let all = rounds(ground, args, mark, &HOWS, &words, Some(&format!("{key}.median ")))?;
            let medians: Vec<f64> = all.iter().map(|(samples, _)| samples.median()).collect();
            let timing = timing(ground, args, mark, size, pin)?;
            let lost: f64 = all.iter().flat_map(|(_, runs)| runs).map(|run| run.lost).sum();
            rows.push(line(size, &medians, timing.median(), lost));
            let hows = HOWS.iter().zip(&all);
            let samples: Map<_, _> = hows.map(|(how, (s, _))| (how.name().to_owned(), s.json())).collect();
            kept.insert(
                key,
                json!({ "ours": samples, "timing": timing.json(), "lost": lost, "article": {
                "bare": size.bare, "loaded": size.loaded, "clust": size.clust, "clust_lttng": size.both } }),
            );
        }
        report.table(&HEADS, &rows);
        report.keep(&format!("table5 {place}"), kept.into());
    }
    Ok(())
}

/// What it takes to time the commands of an iteration, without a tracer.
fn timing(ground: &Ground, args: &Args, mark: &Mark, size: &Row, pin: Pin) -> Result<Samples> {
    let mut words: Vec<OsString> = ground.pinned(pin);
    let image = (size.width, size.height, size.loops.div_ceil(5));
    words.extend(iterations::program_called(ground, "event_costs", image, LOOPS));
    let mut all = rounds(ground, args, mark, &[How::Bare], &words, Some("timing.added "))?;
    Ok(all.remove(0).0)
}

const HEADS: [&str; 14] = [
    "image",
    "bare",
    "dormant",
    "article",
    "timing",
    "run",
    "%",
    "article",
    "%",
    "--os tree",
    "%",
    "article",
    "%",
    "goal, lost",
];

/// A row of the table; `ours` in the order of [`HOWS`].
fn line(size: &Row, ours: &[f64], timing: f64, lost: f64) -> Vec<String> {
    let bare = ours[0];
    let percent = |added: f64, bare: f64| difference(100.0 * added / bare, 1);
    let mut cells = vec![
        format!("{}x{}", size.width, size.height),
        number(bare, 0),
        difference(ours[1] - bare, 0),
        difference(size.loaded, 0),
        difference(timing, 0),
    ];
    for (added, article) in [(ours[2] - bare, size.clust), (ours[3] - bare, size.both)] {
        cells.extend([difference(added, 0), percent(added, bare)]);
        cells.extend([difference(article, 0), percent(article, size.bare)]);
    }
    cells.push(format!("{}, {}", percent(GOAL * size.both, size.bare), number(lost, 0)));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_stand_beside_the_article() {
        let cells = line(&ROWS[0], &[10_000.0, 10_001.0, 11_000.0, 12_000.0], 700.0, 3.0);
        let wanted = [
            "1x1", "10000", "+1", "+1201", "+700", "+1000", "+10.0", "+15692", "+44.6", "+2000", "+20.0",
            "+23640", "+67.2", "+22.4, 3",
        ];
        assert_eq!(cells, wanted);
        assert_eq!(cells.len(), HEADS.len());
    }

    #[test]
    fn the_articles_table_is_its_own_differences() {
        // Table 5 is Table 4 less its base.
        assert!(
            ROWS.iter()
                .all(|row| row.loaded < row.clust && row.clust < row.both && row.both < row.bare * 0.7)
        );
    }
}
