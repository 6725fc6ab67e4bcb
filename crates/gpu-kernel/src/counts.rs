//! What blocks did, added up: how often they ran, in how many lanes, for how long, and how often loops went round.
//!
//! Lanes are not replayed for it. What comes into a block leaves it, so the lanes of all blocks follow from those of the
//! edges that are recorded (Knuth and Stevenson 1973), however often passes were added up, in as much time as there are
//! records. How lanes were grouped is known where records are made; between them it is bounded.
//!
//! ```text
//!  records of a warp     t=10 branch 1        t=30 branch 4         t=31 end
//!  time goes to          entry … block 1      blocks behind 1 … 4   blocks behind 4
//! ```
//! A warp runs one group of its lanes at a time. So the time since the record before, whosever that was, is that of the
//! blocks between where these lanes were last and where they are now; among these it is divided by their instructions.

mod walks;

use std::collections::{BTreeMap, HashMap};

use walks::Walks;

use crate::decode::Decoder;
use crate::graph::{Block, EXIT, Edge, Graph};
use crate::plan::{Mode, Plan, Site};
use crate::record::{Lanes, Record, WAYS};

/// Lanes that a group has at most, where groups are not known.
const WARP: u64 = 32;

/// What a warp recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Lanes began.
    Begin {
        /// When.
        time: u64,
        /// Which.
        lanes: Lanes,
    },
    /// A record at a site.
    At(Record),
    /// Lanes ended.
    End {
        /// When.
        time: u64,
        /// Which.
        lanes: Lanes,
    },
}

/// What a block did in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// How often a lane ran it.
    pub lanes: u64,
    /// How often a group of lanes ran it together. Where nothing is recorded for each visit, as many as there are if groups
    /// that meet go on together.
    pub visits: u64,
    /// Whether there is a record for each visit.
    pub exact: bool,
    /// Time of warps in it, in the unit of records.
    pub time: u64,
}

/// How often a loop went round.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoopCounts {
    /// Its header.
    pub header: Block,
    /// How often a lane came in.
    pub entered: u64,
    /// How often a lane went back to the header.
    pub back: u64,
    /// How often lanes went back before they left, where one site decides both: by the number of its binary digits (0 is
    /// none, 1 once, 2 twice or three times, …). Empty where several do.
    pub trips: Vec<u64>,
}

/// Sums of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// By block.
    pub blocks: Vec<BlockCounts>,
    /// By header.
    pub loops: Vec<LoopCounts>,
    /// By edge, how often a lane took it, as far as that follows from what is recorded: in mode blocks not the ends of lanes.
    pub edges: BTreeMap<Edge, u64>,
    /// Lanes that began.
    pub begun: u64,
    /// Lanes that ended. Of those that did not, what they did after their last record is missing.
    pub ended: u64,
    /// Records of sites that there are not, or of lanes that were not there: left out.
    pub faults: u64,
}

/// Where a lane was last: at the beginning, or behind a site's edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Begin,
    Behind(Edge),
    In(Block),
}

/// Lanes and groups of an edge.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    lanes: u64,
    visits: u64,
}

/// Adds up the records of a kernel's warps.
#[derive(Debug)]
pub struct Counter<'a> {
    graph: &'a Graph,
    decoder: Decoder<'a>,
    plan: &'a Plan,
    /// By block, by how much it takes part in time.
    weights: Vec<u64>,
    /// Sums by edges that are recorded; in a plan of branches all of blocks that branch.
    edges: HashMap<Edge, Flow>,
    /// By block, those of its records.
    sites: Vec<Flow>,
    /// By block, whether passes were added up there, of which it is not known who went together to the end.
    added: Vec<bool>,
    begun: Flow,
    ended: Flow,
    faults: u64,
    time: Vec<u64>,
    routes: HashMap<(Place, Option<u32>), Vec<Block>>,
    trips: Vec<Trips>,
    walks: Walks,
}

/// How often lanes went round a loop that one site decides.
#[derive(Debug)]
struct Trips {
    /// The block that decides, and by case whether it goes back.
    site: Option<(Block, Vec<bool>)>,
    histogram: Vec<u64>,
}

/// A warp whose records are being added up.
struct Warp {
    /// By lane.
    places: Vec<Place>,
    /// By loop that is counted, and lane.
    rounds: Vec<[u64; Lanes::BITS as usize]>,
    /// The time of the last record.
    time: Option<u64>,
    /// What ran since, and how often, that has no time of its own.
    open: Vec<(Place, u64)>,
    /// The block that the last record was made in, in a plan of blocks.
    last: Option<Block>,
}

impl<'a> Counter<'a> {
    /// Returns sums of nothing. `weights` has by block how much of the time between records is its; the number of its
    /// instructions is a good guess.
    pub fn new(graph: &'a Graph, plan: &'a Plan, weights: &[u32]) -> Self {
        let weight = |block: usize| u64::from(weights.get(block).copied().unwrap_or(1).max(1));
        Self {
            graph,
            decoder: Decoder::new(graph, plan),
            plan,
            weights: (0..graph.len()).map(weight).collect(),
            edges: HashMap::new(),
            sites: vec![Flow::default(); graph.len()],
            added: vec![false; graph.len()],
            begun: Flow::default(),
            ended: Flow::default(),
            faults: 0,
            time: vec![0; graph.len()],
            routes: HashMap::new(),
            trips: trips(graph, plan),
            walks: HashMap::new(),
        }
    }

    /// Adds what a warp of a thread block recorded in one launch, in the order of time.
    pub fn warp(&mut self, entries: impl IntoIterator<Item = Entry>) {
        let lanes = Lanes::BITS as usize;
        let rounds = vec![[0; Lanes::BITS as usize]; self.trips.len()];
        let mut warp =
            Warp { places: vec![Place::Begin; lanes], rounds, time: None, open: vec![], last: None };
        for entry in entries {
            match entry {
                Entry::Begin { time, lanes } => {
                    self.begun.add(lanes, 1);
                    each(lanes, |lane| warp.places[lane] = Place::Begin);
                    // What a group that began before has done until now is not known yet.
                    warp.time = Some(warp.time.map_or(time, |before| before.max(time)));
                }
                Entry::At(record) => {
                    if self.record(&mut warp, &record).is_none() {
                        self.faults += 1;
                    }
                }
                Entry::End { time, lanes } => {
                    self.ended.add(lanes, 1);
                    self.pass(&mut warp, time, lanes, None);
                }
            }
        }
    }

    /// Returns nothing for a record that makes no sense.
    fn record(&mut self, warp: &mut Warp, record: &Record) -> Option<()> {
        if record.site == WAYS && self.plan.mode == Mode::Paths {
            return self.walk(warp, record);
        }
        let site = *self.plan.sites.get(record.site as usize)?;
        if record.active == 0 || record.chosen & !record.active != 0 {
            return None;
        }
        let times = u64::from(record.repeats.max(1));
        let mut ways: Vec<(Edge, Lanes)> = Vec::with_capacity(2);
        match site {
            Site::Block(block) => {
                self.sites[block].add(record.active, times);
                let place = warp.places[record.active.trailing_zeros() as usize];
                self.spend(warp, record.time, Some((place, None)));
                self.come(warp, block, record.active);
                warp.last = Some(block);
                return Some(());
            }
            Site::Edge(edge) => ways.push((edge, record.active)),
            Site::Branch(from) => {
                let (case, cases) = (usize::from(record.case), self.graph.successors(from).len());
                if case >= cases || (cases == 2 && case > 0) {
                    return None;
                }
                ways.push((Edge { from, case }, record.chosen));
                if cases == 2 {
                    ways.push((Edge { from, case: 1 }, record.active & !record.chosen));
                }
                // Of a choice between many there is a record for each case that is taken.
                if cases == 2 || record.chosen & lowest(record.active) != 0 {
                    self.sites[from].add(record.active, times);
                }
                self.added[from] |= record.repeats > 0;
            }
        }
        ways.retain(|(_, lanes)| *lanes != 0);
        if record.repeats > 0 {
            warp.open.extend(ways.iter().map(|(edge, _)| (Place::Behind(*edge), times)));
        } else {
            self.pass(warp, record.time, record.active, Some(record.site));
        }
        for (edge, lanes) in ways {
            self.edges.entry(edge).or_default().add(lanes, times);
            self.round(warp, edge, lanes, times);
            each(lanes, |lane| warp.places[lane] = Place::Behind(edge));
        }
        Some(())
    }

    /// Lanes have come to a block from those that they were in.
    fn come(&mut self, warp: &mut Warp, block: Block, lanes: Lanes) {
        each(lanes, |lane| {
            if let Place::In(from) = std::mem::replace(&mut warp.places[lane], Place::In(block)) {
                let case = self.graph.successors(from).iter().position(|to| *to == block);
                if let Some(case) = case {
                    self.edges.entry(Edge { from, case }).or_default().lanes += 1;
                }
            }
        });
    }

    /// Lanes have come from where they were to a site, or to their end.
    fn pass(&mut self, warp: &mut Warp, time: u64, lanes: Lanes, to: Option<u32>) {
        let Some(place) = warp.places.get(lanes.trailing_zeros() as usize).copied() else { return };
        self.spend(warp, time, Some((place, to)));
        if to.is_none() {
            warp.last = None;
        }
    }

    /// Divides the time since the last record among the blocks that ran.
    fn spend(&mut self, warp: &mut Warp, time: u64, way: Option<(Place, Option<u32>)>) {
        let before = warp.time.replace(warp.time.map_or(time, |before| before.max(time)));
        let spent = time.saturating_sub(before.unwrap_or(time));
        let mut open = std::mem::take(&mut warp.open);
        if self.plan.mode == Mode::Blocks {
            // A record is made where a block begins, so the time since the last is that block's; if its lanes have ended,
            // it is that of the block that these come from.
            let from =
                way.and_then(|(place, _)| if let Place::In(block) = place { Some(block) } else { None });
            if let Some(block) = warp.last.or(from) {
                self.time[block] = self.time[block].saturating_add(spent);
            }
            return;
        }
        open.extend(way.map(|(place, _)| (place, 1)));
        let to = way.and_then(|(_, to)| to);
        let mut parts: Vec<(Block, u64)> = Vec::new();
        for (place, times) in open {
            let weights = &self.weights;
            let (graph, plan, decoder) = (self.graph, self.plan, &self.decoder);
            let key = (place, if plan.mode == Mode::Edges { to } else { None });
            let route = self.routes.entry(key).or_insert_with(|| route(graph, plan, decoder, key.0, key.1));
            parts.extend(route.iter().map(|block| (*block, weights[*block].saturating_mul(times))));
        }
        self.divide(spent, parts);
    }

    /// Divides a time among blocks by their weights.
    fn divide(&mut self, spent: u64, parts: Vec<(Block, u64)>) {
        let whole: u64 = parts.iter().fold(0, |sum, (_, weight)| sum.saturating_add(*weight));
        let (mut given, mut weight_of) = (0, 0u64);
        for (block, weight) in parts {
            // By what is given up to here, so that nothing is lost to rounding.
            weight_of = weight_of.saturating_add(weight);
            let until = u128::from(spent) * u128::from(weight_of) / u128::from(whole.max(1));
            let until = u64::try_from(until).unwrap_or(spent);
            self.time[block] = self.time[block].saturating_add(until - given);
            given = until;
        }
    }

    /// Lanes went through an edge so many times.
    fn round(&mut self, warp: &mut Warp, edge: Edge, lanes: Lanes, times: u64) {
        for (trips, rounds) in self.trips.iter_mut().zip(&mut warp.rounds) {
            let Some(back) = trips.site.as_ref().filter(|(site, _)| *site == edge.from) else { continue };
            if back.1[edge.case] {
                each(lanes, |lane| rounds[lane] = rounds[lane].saturating_add(times));
                continue;
            }
            // It leaves; of passes that were added up, once each.
            each(lanes, |lane| {
                let digits = (u64::BITS - std::mem::take(&mut rounds[lane]).leading_zeros()) as usize;
                if trips.histogram.len() <= digits {
                    trips.histogram.resize(digits + 1, 0);
                }
                trips.histogram[digits] += 1;
                trips.histogram[0] += times - 1;
            });
        }
    }

    /// Returns the sums.
    pub fn finish(mut self) -> Counts {
        self.add_walks();
        let (mut blocks, lanes) = match self.plan.mode {
            Mode::Blocks => self.by_blocks(),
            Mode::Paths | Mode::Branches => self.by_branches(),
            Mode::Edges => self.by_edges(),
        };
        for (block, time) in blocks.iter_mut().zip(&self.time) {
            block.time = *time;
        }
        let loops = self.graph.loops();
        let counted = loops.loops.iter().zip(self.trips).map(|(one, trips)| {
            let header = one.header;
            let back = loops.back.iter().filter(|edge| self.graph.target(**edge) == header);
            let back = back.map(|edge| lanes.get(edge).copied().unwrap_or(0)).fold(0, u64::saturating_add);
            let entered = blocks[header].lanes.saturating_sub(back);
            LoopCounts { header, entered, back, trips: trips.histogram }
        });
        let loops = counted.collect();
        let (begun, ended) = (self.begun.lanes, self.ended.lanes);
        Counts { blocks, loops, edges: lanes.into_iter().collect(), begun, ended, faults: self.faults }
    }

    fn by_blocks(&self) -> (Vec<BlockCounts>, HashMap<Edge, u64>) {
        let exact =
            |flow: &Flow| BlockCounts { lanes: flow.lanes, visits: flow.visits, exact: true, time: 0 };
        let edges = self.edges.iter().map(|(edge, flow)| (*edge, flow.lanes)).collect();
        (self.sites.iter().map(exact).collect(), edges)
    }

    /// What comes into a block that does not branch goes on to the next.
    fn by_branches(&self) -> (Vec<BlockCounts>, HashMap<Edge, u64>) {
        let graph = self.graph;
        let mut flows = vec![Flow::default(); graph.len()];
        flows[0] = self.begun;
        for (edge, flow) in &self.edges {
            if let Some(into) = flows.get_mut(graph.target(*edge)) {
                into.join(*flow);
            }
        }
        let order = rows(graph);
        let mut lanes: HashMap<Edge, u64> = self.edges.iter().map(|(e, flow)| (*e, flow.lanes)).collect();
        for block in &order {
            let [next] = graph.successors(*block) else { continue };
            lanes.insert(Edge { from: *block, case: 0 }, flows[*block].lanes);
            if *next != EXIT {
                let flow = flows[*block];
                flows[*next].join(flow);
            }
        }
        // Groups that met: as many leave a row of blocks as there are records at its end.
        let all_ended = self.ended.lanes == self.begun.lanes;
        let mut counts = vec![BlockCounts::default(); graph.len()];
        for block in order.into_iter().rev() {
            let Flow { lanes, visits } = flows[block];
            let (visits, exact) = match graph.successors(block) {
                [EXIT] if all_ended => (visits.min(self.ended.visits), false),
                [next] if *next != EXIT => (visits.min(counts[*next].visits), false),
                [_, _, ..] => (self.sites[block].visits, !self.added[block]),
                _ => (visits, false),
            };
            // Of a warp whose records were lost, more came in than went on: no group is larger than a warp.
            let least = lanes.div_ceil(WARP);
            let exact = exact && visits >= least && visits <= lanes;
            counts[block] = BlockCounts { lanes, visits: visits.max(least).min(lanes), exact, time: 0 };
        }
        (counts, lanes)
    }

    /// Of each block that has one edge left that is not known, that edge is what is missing.
    fn by_edges(&self) -> (Vec<BlockCounts>, HashMap<Edge, u64>) {
        let (graph, end) = (self.graph, self.graph.len());
        let reachable = graph.reachable();
        let edges: Vec<Edge> = graph.edges().filter(|edge| reachable[edge.from]).collect();
        let node = |block: Block| if block == EXIT { end } else { block };
        let mut touching = vec![Vec::new(); end + 1];
        let mut known: Vec<Option<i128>> = Vec::with_capacity(edges.len());
        for (number, edge) in edges.iter().enumerate() {
            touching[edge.from].push((number, 1));
            touching[node(graph.target(*edge))].push((number, -1));
            let recorded = self.plan.number(Site::Edge(*edge)).is_some();
            let lanes = || i128::from(self.edges.get(edge).map_or(0, |flow| flow.lanes));
            known.push(recorded.then(lanes));
        }
        // What leaves a node less what comes in.
        let mut balance = vec![0i128; end + 1];
        (balance[0], balance[end]) = (self.begun.lanes.into(), -i128::from(self.ended.lanes));
        let mut open: Vec<usize> = (0..=end).collect();
        while let Some(at) = open.pop() {
            let mut unknown = touching[at].iter().filter(|(number, _)| known[*number].is_none());
            let (Some((number, sign)), None) = (unknown.next().copied(), unknown.next()) else { continue };
            let sum: i128 = touching[at].iter().map(|(n, sign)| sign * known[*n].unwrap_or(0)).sum();
            known[number] = Some(sign * (balance[at] - sum));
            open.extend([edges[number].from, node(graph.target(edges[number]))]);
        }
        let lanes = |lanes: &Option<i128>| u64::try_from(lanes.unwrap_or(0).max(0)).unwrap_or(0);
        let lanes: HashMap<Edge, u64> = edges.iter().copied().zip(known.iter().map(lanes)).collect();
        let mut counts = vec![BlockCounts::default(); end];
        for edge in &edges {
            let count = &mut counts[edge.from];
            count.lanes = count.lanes.saturating_add(lanes[edge]);
            // Each record is of one group; others may have come by where nothing is recorded.
            count.visits = count.visits.saturating_add(self.edges.get(edge).map_or(0, |flow| flow.visits));
        }
        for count in &mut counts {
            count.visits = count.visits.max(count.lanes.div_ceil(WARP)).min(count.lanes);
        }
        (counts, lanes)
    }
}

/// Returns all blocks so that each comes behind those without a choice that lead to it. A ring of such is never left, and is
/// not among them.
fn rows(graph: &Graph) -> Vec<Block> {
    let next = |block: Block| match graph.successors(block) {
        [next] if *next != EXIT => Some(*next),
        _ => None,
    };
    let mut before = vec![0usize; graph.len()];
    (0..graph.len()).filter_map(next).for_each(|to| before[to] += 1);
    let mut order: Vec<Block> = (0..graph.len()).filter(|block| before[*block] == 0).collect();
    let mut at = 0;
    while let Some(block) = order.get(at).copied() {
        at += 1;
        if let Some(to) = next(block) {
            before[to] -= 1;
            if before[to] == 0 {
                order.push(to);
            }
        }
    }
    order
}

/// Returns the blocks that lanes run from a place to a site, or to their end.
fn route(graph: &Graph, plan: &Plan, decoder: &Decoder<'_>, place: Place, to: Option<u32>) -> Vec<Block> {
    let mut at = match place {
        Place::Begin => 0,
        // Behind the last block there is none.
        Place::Behind(edge) if graph.target(edge) == EXIT => return vec![edge.from],
        Place::Behind(edge) => graph.target(edge),
        Place::In(block) => block,
    };
    let mut blocks = vec![at];
    if plan.mode == Mode::Edges {
        let site = to.and_then(|number| plan.sites.get(number as usize));
        let to = if let Some(Site::Edge(edge)) = site { edge.from } else { EXIT };
        if at != to {
            blocks.extend(decoder.way(at, to).unwrap_or_default());
        }
        return blocks;
    }
    while let [next] = graph.successors(at) {
        if *next == EXIT || blocks.len() > graph.len() {
            break;
        }
        at = *next;
        blocks.push(at);
    }
    blocks
}

/// By loop, the site by whose records its rounds can be counted: all that leaves leaves there, and each round comes by once.
fn trips(graph: &Graph, plan: &Plan) -> Vec<Trips> {
    let found = graph.loops().loops.into_iter().map(|one| {
        let inside = |block: Block| one.body.binary_search(&block).is_ok();
        let leaves = |block: &Block| graph.successors(*block).iter().any(|to| !inside(*to));
        let mut leaving = one.body.iter().copied().filter(leaves);
        let (site, other) = (leaving.next(), leaving.next());
        let once = |site: &Block| {
            // Which blocks of the loop are reached without passing one of them.
            let reached = |from: Vec<Block>, without: Block| {
                let (mut seen, mut open) = (Vec::new(), from);
                while let Some(block) = open.pop() {
                    if block != without && inside(block) && !seen.contains(&block) {
                        seen.push(block);
                        open.extend(graph.successors(block));
                    }
                }
                seen
            };
            let goes_back = |block: &Block| graph.successors(*block).contains(&one.header);
            let around = *site != one.header && reached(vec![one.header], *site).iter().any(goes_back);
            let again = reached(graph.successors(*site).to_vec(), one.header).contains(site);
            let recorded = plan.number(Site::Branch(*site)).is_some();
            recorded && !around && (!again || *site == one.header)
        };
        let site = site.filter(|site| other.is_none() && once(site));
        let back = |site: Block| (site, graph.successors(site).iter().map(|to| inside(*to)).collect());
        Trips { site: site.map(back), histogram: vec![] }
    });
    found.collect()
}

impl Flow {
    fn add(&mut self, lanes: Lanes, times: u64) {
        self.lanes = self.lanes.saturating_add(times.saturating_mul(u64::from(lanes.count_ones())));
        self.visits = self.visits.saturating_add(times);
    }

    fn join(&mut self, other: Flow) {
        self.lanes = self.lanes.saturating_add(other.lanes);
        self.visits = self.visits.saturating_add(other.visits);
    }
}

fn lowest(lanes: Lanes) -> Lanes {
    lanes & lanes.wrapping_neg()
}

fn each(mut lanes: Lanes, mut of: impl FnMut(usize)) {
    while lanes != 0 {
        of(lanes.trailing_zeros() as usize);
        lanes &= lanes - 1;
    }
}
