//! Runs a kernel's text with lanes in random groups: as much of PTX as kernels of these tests and their twins have.
//!
//! Lanes of a group execute an instruction together. A group parts where its lanes go different ways, and at labels at
//! random; groups at one label join at random. So what comes out holds however hardware schedules lanes.

use std::collections::HashMap;

use hetrace_gpu_kernel::ptx::{Kind, Statement, scan};

/// Where memory begins.
const BASE: u64 = 0x1_0000;

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below.max(1)
    }
}

enum Operand {
    Register(usize),
    Immediate(u64),
    Special(String),
    Memory(Box<Operand>, u64),
    Named(String),
    List(Vec<Operand>),
    /// A predicate that is negated.
    Not(Box<Operand>),
}

enum Step {
    /// A label: where it is in the program is what counts.
    Label,
    Run {
        guard: Option<(usize, bool)>,
        opcode: Vec<String>,
        operands: Vec<Operand>,
    },
    /// Registers of an inner scope hold anything at its begin.
    Forget(Vec<usize>),
}

/// A kernel that can be run.
pub struct Program {
    steps: Vec<Step>,
    registers: HashMap<String, usize>,
    /// By the step that names them, where labels are.
    labels: HashMap<(usize, String), usize>,
    tables: HashMap<usize, Vec<String>>,
    parameters: Vec<String>,
    shared: HashMap<String, u64>,
}

impl Program {
    pub fn new(text: &str, name: &str) -> Self {
        let module = scan(text).expect("a text");
        let function = module.functions.iter().find(|f| &text[f.name.clone()] == name).expect("a kernel");
        let head = &text[function.name.end..function.head.end];
        let parameters = head.split(['(', ',', ')']).filter_map(|part| part.split_whitespace().last());
        let mut program = Program {
            steps: vec![],
            registers: HashMap::new(),
            labels: HashMap::new(),
            tables: HashMap::new(),
            parameters: parameters.map(str::to_owned).collect(),
            shared: HashMap::new(),
        };
        program.body(text, &function.statements);
        program
    }

    /// Adds the statements of a function.
    fn body(&mut self, text: &str, statements: &[Statement]) {
        let begin = self.steps.len();
        let (mut scope, mut scopes, mut around) = (0, vec![], vec![0]);
        let mut labels: HashMap<(usize, String), usize> = HashMap::new();
        for statement in statements {
            match &statement.kind {
                Kind::Open => {
                    around.push(scope);
                    scope = around.len() - 1;
                }
                Kind::Close => scope = around[scope],
                Kind::Label(label) => {
                    let before = labels.insert((scope, text[label.clone()].to_owned()), self.steps.len());
                    assert!(before.is_none(), "a label twice");
                }
                _ => {}
            }
            scopes.resize(self.steps.len() - begin, scope);
            self.statement(text, statement, scope > 0);
            scopes.resize(self.steps.len() - begin, scope);
        }
        let jumps = |at: &usize| match &self.steps[begin + at] {
            Step::Run { opcode, .. } => ["bra", "brx"].contains(&opcode[0].as_str()),
            Step::Label | Step::Forget(_) => false,
        };
        for at in (0..scopes.len()).filter(jumps) {
            let mut scope = scopes[at];
            loop {
                for ((_, name), place) in labels.iter().filter(|((of, _), _)| *of == scope) {
                    self.labels.entry((begin + at, name.clone())).or_insert(*place);
                }
                if scope == 0 {
                    break;
                }
                scope = around[scope];
            }
        }
    }

    fn register(&mut self, name: &str) -> usize {
        let next = self.registers.len();
        *self.registers.entry(name.to_owned()).or_insert(next)
    }

    fn statement(&mut self, text: &str, statement: &Statement, inner: bool) {
        let words = &text[statement.span.clone()];
        match &statement.kind {
            Kind::Label(_) => self.steps.push(Step::Label),
            Kind::Directive if words.starts_with(".branchtargets") => {
                let names = words[".branchtargets".len()..].trim_end_matches(';').split(',');
                self.tables.insert(self.steps.len() - 1, names.map(|name| name.trim().to_owned()).collect());
            }
            Kind::Directive if words.starts_with(".reg") && inner => {
                let names =
                    words.trim_end_matches(';').split([' ', ',']).filter(|word| word.starts_with('%'));
                let registers = names.map(|name| self.register(name)).collect();
                self.steps.push(Step::Forget(registers));
            }
            Kind::Directive if words.starts_with(".shared") => {
                let name = words.split([' ', '[']).rev().nth(1).expect("a name");
                self.shared.insert(name.to_owned(), 0);
            }
            Kind::Instruction { guard, opcode, operands } => {
                let guard =
                    guard.as_ref().map(|(name, negated)| (self.register(&text[name.clone()]), *negated));
                let operands = self.operands(&text[operands.clone()]);
                let opcode = text[opcode.clone()].split('.').map(str::to_owned).collect();
                self.steps.push(Step::Run { guard, opcode, operands });
            }
            _ => {}
        }
    }

    fn operands(&mut self, list: &str) -> Vec<Operand> {
        let (mut parts, mut depth, mut begin) = (vec![], 0, 0);
        for (at, byte) in list.char_indices() {
            match byte {
                '{' | '[' => depth += 1,
                '}' | ']' => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(&list[begin..at]);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        parts.push(&list[begin..]);
        parts
            .into_iter()
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| self.operand(part))
            .collect()
    }

    fn operand(&mut self, part: &str) -> Operand {
        if let Some(list) = part.strip_prefix('{') {
            return Operand::List(self.operands(list.trim_end_matches('}')));
        }
        if let Some(place) = part.strip_prefix('[') {
            let (name, offset) =
                place.trim_end_matches(']').split_once('+').unwrap_or((place.trim_end_matches(']'), "0"));
            return Operand::Memory(
                Box::new(self.operand(name.trim())),
                offset.trim().parse().expect("an offset"),
            );
        }
        let special =
            ["tid.", "ntid.", "ctaid.", "nctaid.", "clock", "globaltimer", "gridid", "smid", "lanemask"];
        match part.strip_prefix('%') {
            Some(name) if special.iter().any(|of| name.starts_with(of)) => Operand::Special(name.to_owned()),
            Some(_) => Operand::Register(self.register(part)),
            None if part.starts_with('!') => Operand::Not(Box::new(self.operand(&part[1..]))),
            None => match part
                .strip_prefix("0x")
                .map_or_else(|| part.parse::<i64>().ok(), |hex| i64::from_str_radix(hex, 16).ok())
            {
                Some(number) => Operand::Immediate(number as u64),
                None => Operand::Named(part.to_owned()),
            },
        }
    }
}

/// A launch.
pub struct Launch<'a> {
    pub grid: u64,
    pub blocks: u32,
    pub threads: u32,
    pub parameters: &'a [u64],
    /// The address of the pool; 0 for none.
    pub pool: u64,
}

/// What a lane did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truth {
    /// What it wrote into `%mark`, and when.
    pub marks: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Waits {
    No,
    Barrier,
    Others,
}

struct Lane {
    registers: Vec<u64>,
    at: usize,
    over: bool,
    thread: u32,
    group: usize,
    waits: Waits,
    truth: Truth,
}

/// A device.
pub struct Device {
    pub memory: Vec<u8>,
    pub clock: u64,
    pub random: Random,
    /// How often a group executed `activemask`.
    pub masks: u64,
}

impl Device {
    pub fn new(bytes: usize, seed: u64) -> Self {
        // The lower half of the clock wraps soon.
        Device { memory: vec![0; bytes], clock: 0x5_ffff_ff00, random: Random(seed), masks: 0 }
    }

    pub fn address(at: usize) -> u64 {
        BASE + at as u64
    }

    fn load(&self, address: u64, bytes: usize) -> u64 {
        let at = (address - BASE) as usize;
        self.memory[at..at + bytes].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
    }

    fn store(&mut self, address: u64, bytes: usize, value: u64) {
        let at = (address - BASE) as usize;
        self.memory[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }

    /// Runs a kernel. Returns what each lane of each thread block did.
    pub fn run(&mut self, program: &Program, launch: &Launch) -> Vec<Vec<Truth>> {
        let mut blocks: Vec<Block> =
            (0..launch.blocks).map(|at| Block::new(program, at, launch.threads)).collect();
        loop {
            let open: Vec<usize> =
                (0..blocks.len()).filter(|at| blocks[*at].lanes.iter().any(|lane| !lane.over)).collect();
            if open.is_empty() {
                break;
            }
            let block = open[self.random.below(open.len())];
            for _ in 0..1 + self.random.below(50) {
                self.step(program, launch, &mut blocks[block]);
            }
        }
        blocks.into_iter().map(|block| block.lanes.into_iter().map(|lane| lane.truth).collect()).collect()
    }

    /// One group executes one instruction.
    fn step(&mut self, program: &Program, launch: &Launch, block: &mut Block) {
        let ready: Vec<usize> = (0..block.lanes.len())
            .filter(|l| !block.lanes[*l].over && block.lanes[*l].waits == Waits::No)
            .collect();
        if ready.is_empty() {
            assert!(block.lanes.iter().all(|lane| lane.over), "lanes wait for each other for ever");
            return;
        }
        let first = ready[self.random.below(ready.len())];
        let (warp, group, at) = (first / 32, block.lanes[first].group, block.lanes[first].at);
        let mut lanes: Vec<usize> =
            ready.into_iter().filter(|l| l / 32 == warp && block.lanes[*l].group == group).collect();
        assert!(lanes.iter().all(|l| block.lanes[*l].at == at), "a group in two places");
        self.clock += 1 + self.random.below(3) as u64;
        match program.steps.get(at) {
            None => block.end(&lanes),
            Some(Step::Label) => self.label(block, &mut lanes, at),
            Some(Step::Forget(registers)) => {
                for lane in lanes {
                    for register in registers {
                        block.lanes[lane].registers[*register] = self.random.below(1 << 31) as u64;
                    }
                    block.lanes[lane].at += 1;
                }
            }
            Some(Step::Run { guard, opcode, operands }) => {
                let (run, pass): (Vec<usize>, Vec<usize>) = lanes.into_iter().partition(|lane| {
                    guard.is_none_or(|(register, negated)| {
                        (block.lanes[*lane].registers[register] & 1 != 0) != negated
                    })
                });
                pass.iter().for_each(|lane| block.lanes[*lane].at += 1);
                if run.is_empty() {
                    return;
                }
                if ["bra", "brx", "ret", "exit", "bar", "match", "shfl"].contains(&opcode[0].as_str()) {
                    // Those who did not go are a group of their own.
                    let own = block.fresh();
                    pass.iter().for_each(|lane| block.lanes[*lane].group = own);
                    self.control(program, block, &run, opcode, operands);
                } else {
                    self.masks += u64::from(opcode[0] == "activemask" && guard.is_none());
                    for lane in &run {
                        block.lanes[*lane].at += 1;
                        self.execute(program, launch, block, *lane, &run, opcode, operands);
                    }
                    self.mark(program, block, &run, operands);
                }
            }
        }
    }

    fn mark(&mut self, program: &Program, block: &mut Block, run: &[usize], operands: &[Operand]) {
        let mark = program.registers.get("%mark");
        if let (Some(Operand::Register(to)), Some(mark)) = (operands.first(), mark)
            && to == mark
        {
            for lane in run {
                let value = block.lanes[*lane].registers[*mark];
                block.lanes[*lane].truth.marks.push((value, self.clock));
            }
        }
    }

    /// Groups part and join.
    fn label(&mut self, block: &mut Block, lanes: &mut Vec<usize>, at: usize) {
        let warp = lanes[0] / 32;
        if self.random.below(8) == 0 {
            let own = block.fresh();
            for lane in lanes.iter() {
                if self.random.below(2) == 0 {
                    block.lanes[*lane].group = own;
                }
            }
            return;
        }
        let group = block.lanes[lanes[0]].group;
        let near = |l: &usize| {
            let lane = &block.lanes[*l];
            l / 32 == warp && lane.at == at && !lane.over && lane.waits == Waits::No && lane.group != group
        };
        let others: Vec<usize> = (0..block.lanes.len()).filter(near).collect();
        if !others.is_empty() && self.random.below(4) > 0 {
            others.iter().for_each(|lane| block.lanes[*lane].group = group);
            lanes.extend(others);
        } else if self.random.below(4) == 0 {
            // It waits for others a little.
            return;
        }
        lanes.iter().for_each(|lane| block.lanes[*lane].at += 1);
    }

    fn control(
        &mut self,
        program: &Program,
        block: &mut Block,
        run: &[usize],
        opcode: &[String],
        operands: &[Operand],
    ) {
        let at = block.lanes[run[0]].at;
        let label = |name: &str| program.labels[&(at, name.to_owned())];
        match (opcode[0].as_str(), operands) {
            ("ret" | "exit", _) => block.end(run),
            ("shfl", [to, value, from, _, mask]) => self.shuffled(block, run, [to, value, from, mask]),
            ("bra", [Operand::Named(name)]) => {
                run.iter().for_each(|lane| block.lanes[*lane].at = label(name))
            }
            ("brx", [index, Operand::Named(table)]) => {
                let targets = &program.tables[&label(table)];
                let mut groups = HashMap::new();
                for lane in run {
                    let index = block.value(*lane, index) as usize;
                    let own = *groups.entry(index).or_insert_with(|| block.next + 1 + index);
                    (block.lanes[*lane].at, block.lanes[*lane].group) = (label(&targets[index]), own);
                }
                block.next += 1 + targets.len();
            }
            ("bar", _) => {
                run.iter().for_each(|lane| block.lanes[*lane].waits = Waits::Barrier);
                block.barrier();
            }
            ("match", [to, value, mask]) => self.matched(block, run, [to, value, mask]),
            _ => panic!("{opcode:?}"),
        }
    }

    /// All lanes of a mask come together. Returns them if they are there; else this lane waits for them.
    fn together(block: &mut Block, lane: usize, mask: u64) -> Option<Vec<usize>> {
        let (warp, at) = (lane / 32, block.lanes[lane].at);
        let there: Vec<usize> =
            (0..32).filter(|bit| mask >> bit & 1 != 0).map(|bit| warp * 32 + bit).collect();
        assert!(there.contains(&lane), "a lane that is not in its mask");
        assert!(there.iter().all(|other| !block.lanes[*other].over), "a lane waits for one that has ended");
        if there.iter().any(|other| block.lanes[*other].at != at) {
            block.lanes[lane].waits = Waits::Others;
            return None;
        }
        let group = block.fresh();
        for lane in &there {
            let lane = &mut block.lanes[*lane];
            (lane.at, lane.waits, lane.group) = (at + 1, Waits::No, group);
        }
        Some(there)
    }

    fn matched(&mut self, block: &mut Block, run: &[usize], [to, value, mask]: [&Operand; 3]) {
        for lane in run {
            let mask = block.value(*lane, mask);
            let Some(there) = Self::together(block, *lane, mask) else { continue };
            let values: Vec<u64> = there.iter().map(|lane| block.value(*lane, value) & 0xffff_ffff).collect();
            for (lane, own) in there.iter().zip(&values) {
                let same = there.iter().zip(&values).filter(|(_, other)| *other == own);
                let found = same.fold(0, |mask, (lane, _)| mask | 1u64 << (lane % 32));
                block.set(*lane, to, found);
            }
            return;
        }
    }

    fn shuffled(&mut self, block: &mut Block, run: &[usize], [to, value, from, mask]: [&Operand; 4]) {
        for lane in run {
            let mask = block.value(*lane, mask);
            let Some(there) = Self::together(block, *lane, mask) else { continue };
            let values: Vec<u64> = there
                .iter()
                .map(|lane| {
                    let source = lane / 32 * 32 + block.value(*lane, from) as usize % 32;
                    assert!(there.contains(&source), "from a lane that is not there");
                    block.value(source, value)
                })
                .collect();
            there.iter().zip(values).for_each(|(lane, value)| block.set(*lane, to, value));
            return;
        }
    }

    #[allow(clippy::too_many_arguments, reason = "a test")]
    fn execute(
        &mut self,
        program: &Program,
        launch: &Launch,
        block: &mut Block,
        lane: usize,
        run: &[usize],
        opcode: &[String],
        operands: &[Operand],
    ) {
        let kind = opcode.last().expect("a type").as_str();
        let short = |value: u64| if kind.ends_with("32") { value & 0xffff_ffff } else { value };
        let get = |device: &Device, block: &Block, at: usize| device.get(block, launch, lane, &operands[at]);
        let value = match opcode[0].as_str() {
            "ld" | "st" | "atom" | "red" => {
                return self.memory(program, launch, block, lane, opcode, operands);
            }
            "activemask" => run.iter().fold(0, |mask, lane| mask | 1u64 << (lane % 32)),
            "setp" => {
                let (a, b) = (get(self, block, 1), get(self, block, 2));
                let (a, b) = (short(a), short(b));
                let signed =
                    |value: u64| if kind == "s32" { i64::from(value as u32 as i32) } else { value as i64 };
                let found = match opcode[1].as_str() {
                    "eq" => a == b,
                    "ne" => a != b,
                    "lt" if kind.starts_with('s') => signed(a) < signed(b),
                    "ge" if kind.starts_with('s') => signed(a) >= signed(b),
                    "lt" => a < b,
                    "ge" => a >= b,
                    other => panic!("setp.{other}"),
                };
                let with = operands.get(3).map(|_| get(self, block, 3) & 1 != 0);
                u64::from(match opcode[2].as_str() {
                    "and" => found && with.expect("an operand"),
                    "or" => found || with.expect("an operand"),
                    _ => found,
                })
            }
            name => {
                let [a, b, c] = [1, 2, 3].map(|at| operands.get(at).map_or(0, |_| get(self, block, at)));
                match name {
                    "mov" | "cvt" => a,
                    "add" => a.wrapping_add(b),
                    "sub" => a.wrapping_sub(b),
                    "not" if kind == "pred" => !a & 1,
                    "not" => !a,
                    "brev" => u64::from((a as u32).reverse_bits()),
                    "clz" => u64::from((a as u32).leading_zeros()),
                    "mul" if opcode[1] == "wide" => (a & 0xffff_ffff) * (b & 0xffff_ffff),
                    "mul" => a.wrapping_mul(b),
                    "mad" => a.wrapping_mul(b).wrapping_add(c),
                    "and" => a & b,
                    "or" => a | b,
                    "xor" => a ^ b,
                    "shl" => a << b,
                    "shr" => a >> b,
                    "min" => a.min(b),
                    "div" => a / b,
                    "rem" => a % b,
                    "selp" => [b, a][(c & 1) as usize],
                    other => panic!("{other}"),
                }
            }
        };
        let wide = opcode[0] == "mul" && opcode[1] == "wide" || opcode[0] == "cvt" && opcode[1] == "u64";
        block.set(lane, &operands[0], if wide { value } else { short(value) });
    }

    fn get(&self, block: &Block, launch: &Launch, lane: usize, operand: &Operand) -> u64 {
        let Operand::Special(name) = operand else { return block.value(lane, operand) };
        let thread = block.lanes[lane].thread;
        match name.as_str() {
            "tid.x" => thread.into(),
            "ntid.x" => launch.threads.into(),
            "ctaid.x" => block.at.into(),
            "nctaid.x" => launch.blocks.into(),
            "ntid.y" | "ntid.z" | "nctaid.y" | "nctaid.z" => 1,
            "tid.y" | "tid.z" | "ctaid.y" | "ctaid.z" => 0,
            "clock" => self.clock & 0xffff_ffff,
            "clock64" => self.clock,
            "globaltimer" => self.clock * 2,
            "gridid" => launch.grid,
            "smid" => u64::from(block.at) + 3 + 32 * launch.grid,
            "lanemask_lt" => (1 << (lane % 32)) - 1,
            other => panic!("%{other}"),
        }
    }

    fn memory(
        &mut self,
        program: &Program,
        launch: &Launch,
        block: &mut Block,
        lane: usize,
        opcode: &[String],
        operands: &[Operand],
    ) {
        let place =
            operands.iter().position(|operand| matches!(operand, Operand::Memory(..))).expect("a place");
        let Operand::Memory(base, offset) = &operands[place] else { unreachable!() };
        let bytes = if opcode.last().expect("a type").ends_with("64") { 8 } else { 4 };
        if let Operand::Named(name) = &**base {
            let value = match opcode[1].as_str() {
                "param" => {
                    launch.parameters[program.parameters.iter().position(|p| p == name).expect("a parameter")]
                }
                "const" | "global" => launch.pool,
                other => panic!("{other}"),
            };
            return block.set(lane, &operands[0], value);
        }
        let address = block.value(lane, base) + offset;
        if opcode[1] == "shared" {
            let at = address as usize / 4;
            match opcode[0].as_str() {
                "ld" => block.set(lane, &operands[0], block.shared[at]),
                _ => block.shared[at] = block.value(lane, &operands[1]),
            }
            return;
        }
        match opcode[0].as_str() {
            "ld" => {
                let single = std::slice::from_ref(&operands[0]);
                let list = if let Operand::List(list) = &operands[0] { list } else { single };
                for (number, operand) in list.iter().enumerate() {
                    block.set(lane, operand, self.load(address + (number * bytes) as u64, bytes));
                }
            }
            "st" => {
                let single = std::slice::from_ref(&operands[1]);
                let list = if let Operand::List(list) = &operands[1] { list } else { single };
                for (number, operand) in list.iter().enumerate() {
                    self.store(address + (number * bytes) as u64, bytes, block.value(lane, operand));
                }
            }
            name => {
                let before = self.load(address, bytes);
                let value = block.value(lane, operands.last().expect("a value"));
                let after = match opcode[2].as_str() {
                    "add" => before.wrapping_add(value),
                    "max" => before.max(value),
                    "min" => before.min(value),
                    "cas" if before == block.value(lane, &operands[2]) => value,
                    "cas" => before,
                    other => panic!("{name}.{other}"),
                };
                self.store(address, bytes, after);
                if name == "atom" {
                    block.set(lane, &operands[0], before);
                }
            }
        }
    }
}

/// A thread block.
struct Block {
    at: u32,
    lanes: Vec<Lane>,
    /// The last group.
    next: usize,
    shared: Vec<u64>,
}

impl Block {
    fn new(program: &Program, at: u32, threads: u32) -> Self {
        let lane = |thread| Lane {
            registers: vec![0xdead; program.registers.len()],
            at: 0,
            over: false,
            thread,
            group: thread as usize / 32,
            waits: Waits::No,
            truth: Truth::default(),
        };
        Block { at, lanes: (0..threads).map(lane).collect(), next: 1000, shared: vec![0; 1024] }
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn end(&mut self, lanes: &[usize]) {
        lanes.iter().for_each(|lane| self.lanes[*lane].over = true);
        self.barrier();
    }

    /// Lanes go on if all that have not ended have come.
    fn barrier(&mut self) {
        if self.lanes.iter().all(|lane| lane.over || lane.waits == Waits::Barrier) {
            for lane in self.lanes.iter_mut().filter(|lane| lane.waits == Waits::Barrier) {
                lane.waits = Waits::No;
                lane.at += 1;
            }
        }
    }

    fn value(&self, lane: usize, operand: &Operand) -> u64 {
        match operand {
            Operand::Register(register) => self.lanes[lane].registers[*register],
            Operand::Immediate(value) => *value,
            Operand::Not(predicate) => !self.value(lane, predicate) & 1,
            Operand::Named(_) => 0,
            _ => panic!("an operand"),
        }
    }

    fn set(&mut self, lane: usize, operand: &Operand, value: u64) {
        let Operand::Register(register) = operand else { panic!("no register") };
        self.lanes[lane].registers[*register] = value;
    }
}
