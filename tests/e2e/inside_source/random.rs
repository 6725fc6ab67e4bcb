//! Random kernels: a little language, printed as OpenCL C with one statement in each line, and run here.
//!
//! A kernel works on `x`, which begins with the work-item's number and the launch's, and leaves it in the buffer. Whatever
//! decides is a condition on `x`, so work-items go different ways.

/// Numbers that follow from a seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `most`.
    fn roll(&mut self, most: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as u32 % most
    }
}

/// `(x >> shift) % divisor < below`.
#[derive(Debug)]
struct Condition {
    shift: u32,
    divisor: u32,
    below: u32,
}

/// A statement, with the line that it begins in.
#[derive(Debug)]
enum Statement {
    Mix(usize, u32),
    If(usize, Condition, Vec<Statement>, Vec<Statement>),
    /// The declaration, the condition, the step.
    For([usize; 3], u32, Vec<Statement>),
    /// The declaration, and the condition.
    While([usize; 2], Condition, Vec<Statement>),
    Do([usize; 2], Condition, Vec<Statement>),
    /// Of `x % divisor`: each label's value, none of `default`, and line, and what follows up to the next.
    Switch(usize, u32, Vec<(Option<u32>, usize, Vec<Statement>)>),
    /// The line of `#if`, which alternative is taken, and all.
    Alternatives(usize, usize, Vec<Vec<Statement>>),
    Break,
    Continue,
    Return(usize),
}

/// A kernel.
pub struct Kernel {
    body: Vec<Statement>,
}

/// Writes kernels.
pub struct Printer {
    pub text: String,
    line: usize,
    names: usize,
    dice: Dice,
}

#[derive(Clone, Copy)]
struct Place {
    depth: u32,
    in_loop: bool,
    in_switch: bool,
}

impl Printer {
    pub fn new(seed: u64) -> Printer {
        Printer { text: String::new(), line: 1, names: 0, dice: Dice::new(seed) }
    }

    /// Writes a line. Returns its number.
    fn say(&mut self, line: &str) -> usize {
        self.text.push_str(line);
        self.text.push('\n');
        self.line += 1;
        self.line - 1
    }

    /// Writes a random kernel.
    pub fn kernel(&mut self, number: usize) -> Kernel {
        self.say(&format!("__kernel void k{number}(__global uint *out, uint launch)"));
        self.say("{ // a } in a comment, and \"");
        self.say("uint x = get_global_id(0) * 2654435761u + launch;");
        let first = Statement::Mix(self.line - 1, 0);
        let mut body = vec![first];
        body.extend(self.list(Place { depth: 0, in_loop: false, in_switch: false }));
        let last = self.say("out[get_global_id(0)] = x;");
        body.push(Statement::Mix(last, 0));
        self.say("}");
        Kernel { body }
    }

    fn mix(&mut self) -> Statement {
        let add = 1 + self.dice.roll(1 << 16);
        Statement::Mix(self.say(&format!("x = x * 1664525u + {add}u; /* if (x) */")), add)
    }

    fn condition(&mut self) -> Condition {
        let divisor = 2 + self.dice.roll(5);
        Condition { shift: self.dice.roll(20), divisor, below: 1 + self.dice.roll(divisor - 1) }
    }

    fn list(&mut self, place: Place) -> Vec<Statement> {
        let mut list = vec![self.mix()];
        for _ in 0..1 + self.dice.roll(3) {
            let one = self.statement(place);
            let leaves = matches!(one, Statement::Break | Statement::Continue | Statement::Return(_));
            list.push(one);
            if leaves {
                return list;
            }
        }
        list
    }

    fn statement(&mut self, place: Place) -> Statement {
        let deeper = Place { depth: place.depth + 1, ..place };
        let looped = Place { in_loop: true, in_switch: false, ..deeper };
        match self.dice.roll(if place.depth < 4 { 16 } else { 3 }) {
            0 if place.depth > 1 && self.dice.roll(4) == 0 => {
                Statement::Return(self.say("{ out[get_global_id(0)] = x; return; }"))
            }
            1 if place.in_loop || place.in_switch => {
                self.say("break;");
                Statement::Break
            }
            2 if place.in_loop => {
                self.say("continue;");
                Statement::Continue
            }
            3..=6 => self.if_(deeper),
            7 | 8 => self.for_(looped),
            9 | 10 => {
                let name = self.name();
                let declared = self.say(&format!("uint {name} = 7;"));
                let condition = self.condition();
                let at = self.say(&format!("while ({name}-- > 0 && {})", condition.text()));
                let body = self.braces(looped);
                Statement::While([declared, at], condition, body)
            }
            11 => {
                let name = self.name();
                let declared = self.say(&format!("uint {name} = 5;"));
                self.say("do");
                let body = self.braces(looped);
                let condition = self.condition();
                let at = self.say(&format!("while ({name}-- > 0 && {});", condition.text()));
                Statement::Do([declared, at], condition, body)
            }
            12 | 13 => self.switch(Place { in_switch: true, ..deeper }),
            14 => self.alternatives(deeper),
            _ => self.mix(),
        }
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    fn braces(&mut self, place: Place) -> Vec<Statement> {
        self.say("{");
        let body = self.list(place);
        self.say("}");
        body
    }

    fn if_(&mut self, place: Place) -> Statement {
        let condition = self.condition();
        let at = self.say(&format!("if ({})", condition.text()));
        let (then, mut otherwise) = match self.dice.roll(3) {
            0 => (vec![self.mix()], vec![]),
            _ => (self.braces(place), vec![]),
        };
        if self.dice.roll(2) == 0 {
            self.say("else");
            otherwise = self.braces(place);
        }
        Statement::If(at, condition, then, otherwise)
    }

    fn for_(&mut self, place: Place) -> Statement {
        let (name, most) = (self.name(), 1 + self.dice.roll(6));
        let first = self.say(&format!("for (uint {name} = 0;"));
        let condition = self.say(&format!("{name} < {most}u && (x & 7) != 3;"));
        let step = self.say(&format!("{name}++)"));
        Statement::For([first, condition, step], most, self.braces(place))
    }

    fn switch(&mut self, place: Place) -> Statement {
        let divisor = 2 + self.dice.roll(4);
        let at = self.say(&format!("switch (x % {divisor}u)"));
        self.say("{");
        let (labels, default) = (1 + self.dice.roll(divisor), self.dice.roll(4));
        let mut arms = Vec::new();
        for label in 0..labels {
            let is_default = label == default;
            let text = if is_default { "default:".to_owned() } else { format!("case {label}u:") };
            let line = self.say(&text);
            let mut list = self.list(place);
            let leaves =
                matches!(list.last(), Some(Statement::Break | Statement::Continue | Statement::Return(_)));
            if !leaves && self.dice.roll(2) == 0 {
                self.say("break;");
                list.push(Statement::Break);
            }
            arms.push(((!is_default).then_some(label), line, list));
        }
        self.say("}");
        Statement::Switch(at, divisor, arms)
    }

    fn alternatives(&mut self, place: Place) -> Statement {
        let (ways, taken) = (1 + self.dice.roll(3) as usize, self.dice.roll(4) as usize);
        let mut all = Vec::new();
        let mut first = 0;
        for way in 0..ways {
            let line =
                self.say(&format!("#{} {}", if way == 0 { "if" } else { "elif" }, i32::from(way == taken)));
            first = if way == 0 { line } else { first };
            all.push(vec![self.if_(place)]);
        }
        if self.dice.roll(2) == 0 {
            self.say("#else");
            all.push(vec![self.if_(place)]);
        }
        self.say("#endif");
        let taken = if taken < ways { taken } else { ways };
        Statement::Alternatives(first, taken, all)
    }
}

/// How a statement goes on.
#[derive(PartialEq)]
enum Went {
    On,
    Break,
    Continue,
    Return,
}

impl Condition {
    fn text(&self) -> String {
        format!("(x >> {}) % {}u < {}u", self.shift, self.divisor, self.below)
    }

    fn holds(&self, x: u32) -> bool {
        (x >> self.shift) % self.divisor < self.below
    }
}

/// A work-item.
pub struct Item {
    pub x: u32,
    /// The lines that it came by.
    pub lines: Vec<u32>,
}

impl Kernel {
    /// Runs it for a work-item of a launch.
    pub fn run(&self, item: u32, launch: u32) -> Item {
        let x = item.wrapping_mul(2_654_435_761).wrapping_add(launch);
        let mut item = Item { x, lines: vec![] };
        item.list(&self.body);
        item
    }
}

impl Item {
    fn at(&mut self, line: usize) {
        self.lines.push(line as u32);
    }

    fn list(&mut self, list: &[Statement]) -> Went {
        for one in list {
            let went = self.one(one);
            if went != Went::On {
                return went;
            }
        }
        Went::On
    }

    fn one(&mut self, statement: &Statement) -> Went {
        match statement {
            Statement::Mix(line, add) => {
                self.at(*line);
                if *add > 0 {
                    self.x = self.x.wrapping_mul(1_664_525).wrapping_add(*add);
                }
                Went::On
            }
            Statement::If(line, condition, then, otherwise) => {
                self.at(*line);
                if condition.holds(self.x) { self.list(then) } else { self.list(otherwise) }
            }
            Statement::For([first, condition, step], most, body) => {
                self.at(*first);
                self.repeat(*condition, *most, |x| x & 7 != 3, body, Some(*step))
            }
            Statement::While([declared, at], condition, body) => {
                self.at(*declared);
                self.repeat(*at, 7, |x| condition.holds(x), body, None)
            }
            Statement::Do([declared, at], condition, body) => {
                self.at(*declared);
                for turn in 0.. {
                    match self.list(body) {
                        Went::Break => break,
                        Went::Return => return Went::Return,
                        Went::On | Went::Continue => self.at(*at),
                    }
                    if turn >= 5 || !condition.holds(self.x) {
                        break;
                    }
                }
                Went::On
            }
            Statement::Switch(at, divisor, arms) => self.switch(*at, self.x % divisor, arms),
            Statement::Alternatives(line, taken, all) => {
                self.at(*line);
                all.get(*taken).map_or(Went::On, |list| self.list(list))
            }
            Statement::Break => Went::Break,
            Statement::Continue => Went::Continue,
            Statement::Return(line) => {
                self.at(*line);
                Went::Return
            }
        }
    }

    /// `while`, and `for` with a line for its step: so many passes at most.
    fn repeat(
        &mut self,
        at: usize,
        most: u32,
        holds: impl Fn(u32) -> bool,
        body: &[Statement],
        step: Option<usize>,
    ) -> Went {
        for turn in 0.. {
            self.at(at);
            if turn >= most || !holds(self.x) {
                break;
            }
            match self.list(body) {
                Went::Break => break,
                Went::Return => return Went::Return,
                Went::On | Went::Continue => step.into_iter().for_each(|step| self.at(step)),
            }
        }
        Went::On
    }

    fn switch(&mut self, at: usize, value: u32, arms: &[(Option<u32>, usize, Vec<Statement>)]) -> Went {
        self.at(at);
        let of = |wanted: Option<u32>| arms.iter().position(|(label, ..)| *label == wanted);
        let Some(first) = of(Some(value)).or_else(|| of(None)) else { return Went::On };
        for (_, line, list) in &arms[first..] {
            self.at(*line);
            match self.list(list) {
                Went::On => {}
                Went::Break => return Went::On,
                went => return went,
            }
        }
        Went::On
    }
}
