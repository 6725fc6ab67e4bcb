//! A module's text with twins of its kernels behind it.
//!
//! ```text
//!  text ──scan──► functions ──flow──► graph ──► plan ──► twin: the body, with what is recorded between its statements
//!    └── as it was ─────────────────────────────────────► text + pool's address + twins, description
//! ```

use std::collections::BTreeSet;

use hetrace_pool::Strategy;

use super::scan::{BadText, Function, Kind, Module, scan};
use super::twin::{Sums, Twin};
use super::{Flow, POOL, counts, flow};
use crate::description::{Description, Kernel, Refused, SiteName, Weighted, successors};
use crate::graph::Graph;
use crate::plan::{Mode, Plan};
use crate::ways;
use crate::weights::{KernelWeights, Weights, digest};

/// Sites that a record can name.
const SITES: usize = 65_534;
/// Ways of a choice that a record can name.
const CASES: usize = 4_096;
/// Bytes of constants that a module can have.
const CONSTANTS: u64 = 65_536;
/// The version of PTX that has `activemask`.
const VERSION: (u32, u32) = (6, 2);
/// The first architecture that has `match`, which passes that are added up need, and paths.
const MATCHES: u32 = 70;

/// Where twins find the pool's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Base {
    /// In a variable of the module, which the program's host writes.
    #[default]
    Module,
    /// In a variable that all modules share that are linked with it.
    Linked,
    /// In a parameter behind the kernel's own. The module is loaded beside the program's, whose variables it does not have.
    Parameter,
}

/// What is wanted of a module.
pub struct Request<'a> {
    /// Whether a kernel of this name gets a twin.
    pub wanted: &'a dyn Fn(&str) -> bool,
    /// Where twins record.
    pub mode: Mode,
    /// Passes of loops are added up; in mode branches only.
    pub sums: bool,
    /// Twins record in thread blocks whose number is a multiple of this; 0 and 1 are all.
    pub sample: u32,
    /// Where twins find the pool's address.
    pub base: Base,
    /// How their leaders get room there.
    pub strategy: Strategy,
    /// The number of the first kernel.
    pub first: u32,
    /// The hash of the image, for the description.
    pub image: &'a str,
    /// What lanes did in an earlier run, to choose by where to record.
    pub weights: Option<&'a Weights>,
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { wanted: _, mode, sums, sample, base, strategy, first, image, weights } = self;
        let mut shown = f.debug_struct("Request");
        shown.field("mode", mode).field("sums", sums).field("sample", sample);
        shown
            .field("base", base)
            .field("strategy", strategy)
            .field("first", first)
            .field("image", image)
            .field("weights", weights)
            .finish_non_exhaustive()
    }
}

/// A module with twins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The text. As it was if no kernel has a twin.
    pub text: String,
    /// Its kernels.
    pub description: Description,
}

/// A module that cannot be rewritten at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Its text makes no sense.
    Text(BadText),
    /// It has twins already.
    Twice,
    /// Its addresses have other than 64 bits.
    Addresses,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Text(bad) => bad.fmt(f),
            Refusal::Twice => write!(f, "the module has a name with {POOL} already"),
            Refusal::Addresses => f.write_str("the module's addresses do not have 64 bits"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Makes twins of the kernels that are wanted.
///
/// # Errors
/// If the text makes no sense, was rewritten before, or is for 32 bits. A kernel of which no twin can be made is no error
/// but named in the description.
pub fn rewrite(text: &str, request: &Request) -> Result<Rewritten, Refusal> {
    // In a file of several, a text ends with zeros.
    let text = text.trim_end_matches('\0');
    if text.contains(POOL) {
        return Err(Refusal::Twice);
    }
    let module = scan(text).map_err(Refusal::Text)?;
    let head = Head { base: request.base, ..Head::of(text, &module) };
    if head.bits == Some(32) {
        return Err(Refusal::Addresses);
    }
    let mut description = Description { image: request.image.to_owned(), ..Description::default() };
    let (mut twins, fresh, files) = (String::new(), fresh(text), counts::files(text));
    for function in module.functions.iter().filter(|function| function.entry) {
        let name = &text[function.name.clone()];
        if !(request.wanted)(name) {
            continue;
        }
        let number =
            request.first.saturating_add(u32::try_from(description.kernels.len()).unwrap_or(u32::MAX));
        match kernel(text, function, request, &head, number, &fresh) {
            Ok((twin, mut kernel, flow)) => {
                kernel.blocks = counts::blocks(text, function, &flow, &files);
                twins.push_str(&twin);
                description.kernels.push(kernel);
            }
            Err(reason) => description.refused.push(Refused { name: name.to_owned(), reason }),
        }
    }
    let text = if twins.is_empty() { text.to_owned() } else { head.with(text, &twins) };
    Ok(Rewritten { text, description })
}

/// Makes one twin, or says why not.
fn kernel(
    text: &str,
    function: &Function,
    request: &Request,
    head: &Head,
    number: u32,
    fresh: &str,
) -> Result<(String, Kernel, Flow), String> {
    refuse(text, function)?;
    if let (Base::Parameter, Some(variable)) = (request.base, &head.variable) {
        return Err(format!(
            "its module has a variable in global memory ({variable}): its twin would have another"
        ));
    }
    let flow = flow(text, function).map_err(|bad| bad.to_string())?;
    let graph = &flow.graph;
    let ways = (0..graph.len()).map(|block| graph.successors(block).len()).max().unwrap_or(0);
    if ways > CASES {
        return Err(format!("a choice of {ways} ways: a record has room for {CASES}"));
    }
    let matches = head.target.is_none_or(|sm| sm >= MATCHES);
    // Lanes find those that went the same ways by `match`.
    let mode = if request.mode == Mode::Paths && !matches { Mode::Branches } else { request.mode };
    let sums = request.sums && mode == Mode::Branches && matches;
    let (name, content) =
        (&text[function.name.clone()], digest(&text[function.head.start..function.body.end]));
    let (known, weights) = earlier(request.weights, mode, name, &content, graph);
    let mut plan = known.map_or_else(|| Plan::new(graph, mode), |known| known.plan(graph, mode));
    let sums = if sums { Sums::choose(graph, &mut plan, known) } else { Sums::default() };
    if plan.sites.len() > SITES {
        return Err(format!("{} sites: a record has room for {SITES}", plan.sites.len()));
    }
    let checks = if mode == Mode::Paths { ways::checks(graph) } else { vec![] };
    let base = head.operand(fresh);
    let twin = Twin {
        text,
        function,
        flow: &flow,
        plan: &plan,
        sums: &sums,
        checks: &checks,
        fresh,
        base: &base,
        parameter: (request.base == Base::Parameter).then(|| parameter(fresh)),
        number,
        strategy: request.strategy,
    };
    let twin = twin.write(request.sample)?;
    let kernel = Kernel {
        number,
        name: name.to_owned(),
        mode,
        timed: true,
        successors: successors(graph),
        sites: plan.sites.iter().map(|site| SiteName::from(*site)).collect(),
        summed: plan.summed.clone(),
        blocks: vec![],
        calls: calls(text, function),
        text: content,
        weights,
    };
    Ok((twin, kernel, flow))
}

/// Returns the weights by which it is chosen where a kernel records, and what its description says of those that were given.
fn earlier<'w>(
    given: Option<&'w Weights>,
    mode: Mode,
    name: &str,
    text: &str,
    graph: &Graph,
) -> (Option<&'w KernelWeights>, Option<Weighted>) {
    let Some(given) = given else { return (None, None) };
    let found = match mode {
        Mode::Edges | Mode::Branches => given.of(name, text, graph),
        // All choices, and all blocks.
        Mode::Paths | Mode::Blocks => Err(format!("nothing is chosen by them in mode {}", mode.name())),
    };
    let known = found.as_ref().ok().copied();
    (known, Some(Weighted { trace: given.trace.clone(), unused: found.err() }))
}

/// Returns the functions that a kernel calls: what the compiler did not inline, and what the driver has (`vprintf`).
fn calls(text: &str, function: &Function) -> Vec<String> {
    let mut names = BTreeSet::new();
    for statement in &function.statements {
        let Kind::Instruction { opcode, operands, .. } = &statement.kind else { continue };
        if text[opcode.clone()].split('.').next() != Some("call") {
            continue;
        }
        // Behind what it returns, if that is something: `(result), name, (parameters)`.
        let list = text[operands.clone()].trim_start();
        let rest =
            list.strip_prefix('(').and_then(|list| list.split_once(')')).map_or(list, |(_, rest)| rest);
        let name =
            rest.trim_start_matches([',', ' ', '\t', '\n']).split([',', ';', ' ']).next().unwrap_or_default();
        names.insert(if name.starts_with('%') {
            "a function by its address".to_owned()
        } else {
            name.to_owned()
        });
    }
    names.into_iter().collect()
}

/// Kernels whose warps share out registers among them, or have units that run beside them, break if code comes in between.
fn refuse(text: &str, function: &Function) -> Result<(), String> {
    for statement in &function.statements {
        let Kind::Instruction { opcode, .. } = &statement.kind else { continue };
        let opcode = &text[opcode.clone()];
        let reason = match opcode.split('.').next().unwrap_or_default() {
            "setmaxnreg" => "its warps share out registers among them",
            "wgmma" | "tcgen05" => "its warps compute matrices asynchronously",
            _ => continue,
        };
        return Err(format!("{reason} ({opcode})"));
    }
    Ok(())
}

/// Returns what all new names begin with: nothing in the text has it.
fn fresh(text: &str) -> String {
    let names = std::iter::once("hetrace".to_owned()).chain((2..).map(|n: u32| format!("hetrace{n}")));
    names.into_iter().find(|name| !text.contains(&format!("{name}_"))).unwrap_or_default()
}

/// Returns the name of the parameter that has the pool's address.
fn parameter(fresh: &str) -> String {
    format!("{fresh}_pool")
}

/// What a module says of itself outside of functions.
struct Head {
    /// Where its version is, and which.
    version: Option<(super::scan::Span, (u32, u32))>,
    /// The number of the architecture that it is for.
    target: Option<u32>,
    /// The width of addresses.
    bits: Option<u32>,
    /// Bytes of its constants.
    constants: u64,
    /// The first of its variables in global memory that kernels may write.
    variable: Option<String>,
    base: Base,
}

impl Head {
    fn of(text: &str, module: &Module) -> Self {
        let mut head = Head {
            version: None,
            target: None,
            bits: None,
            constants: 0,
            variable: None,
            base: Base::Module,
        };
        let mut at = 0;
        let ends =
            module.functions.iter().map(|f| (f.head.start, f.body.end)).chain([(text.len(), text.len())]);
        for (begin, end) in ends {
            head.read(text, at..begin);
            at = end;
        }
        head
    }

    /// Reads a part between functions.
    fn read(&mut self, text: &str, part: super::scan::Span) {
        let mut at = part.start;
        for line in text[part].split_inclusive(['\n', ';']) {
            let (begin, said) = (at, line.split("//").next().unwrap_or_default().trim());
            at += line.len();
            let mut words = said.split_whitespace();
            while let Some(word) = words.next() {
                match word {
                    ".version" => {
                        let Some(number) = words.next() else { continue };
                        let parts = number.split_once('.').map(|(a, b)| (a.parse(), b.parse()));
                        if let (Some((Ok(major), Ok(minor))), Some(offset)) = (parts, line.find(number)) {
                            let span = begin + offset..begin + offset + number.len();
                            self.version = self.version.take().or(Some((span, (major, minor))));
                        }
                    }
                    ".target" => {
                        let digits = |name: &str| -> String {
                            name.trim_start_matches("sm_").chars().take_while(char::is_ascii_digit).collect()
                        };
                        self.target = words.next().and_then(|name| digits(name).parse().ok());
                    }
                    ".address_size" => self.bits = words.next().and_then(|bits| bits.parse().ok()),
                    ".const" => self.constants = self.constants.saturating_add(size(said)),
                    ".global" if self.variable.is_none() => self.variable = variable(said),
                    _ => {}
                }
            }
        }
    }

    /// Returns what twins load the pool's address by, without the register that it goes into.
    fn operand(&self, fresh: &str) -> (&'static str, String) {
        match self.base {
            Base::Parameter => ("param", parameter(fresh)),
            Base::Module | Base::Linked => (self.space(), POOL.to_owned()),
        }
    }

    /// Returns where the variable with the pool's address is.
    fn space(&self) -> &'static str {
        // Those of other modules that are linked with it, and what aligning takes, are not known: half is left.
        if self.base == Base::Linked || self.constants > CONSTANTS / 2 { "global" } else { "const" }
    }

    /// Returns the text with twins.
    fn with(&self, text: &str, twins: &str) -> String {
        let mut out = String::with_capacity(text.len() + twins.len() + 100);
        match &self.version {
            Some((span, version)) if *version < VERSION => {
                out.push_str(&text[..span.start]);
                out.push_str(&format!("{}.{}", VERSION.0, VERSION.1));
                out.push_str(&text[span.end..]);
            }
            _ => out.push_str(text),
        }
        let linking = if self.base == Base::Linked { ".weak " } else { "" };
        if self.base != Base::Parameter {
            out.push_str(&format!("\n{linking}.{} .align 8 .u64 {POOL};\n", self.space()));
        }
        out.push_str(twins);
        out
    }
}

/// Returns the name of a variable in global memory, unless it is of a kind that kernels cannot write.
fn variable(declaration: &str) -> Option<String> {
    let fixed = [".samplerref", ".texref", ".surfref"];
    if declaration.split_whitespace().any(|word| fixed.contains(&word)) {
        return None;
    }
    let declared = declaration.split(['=', '[', ';']).next().unwrap_or_default();
    declared.split_whitespace().last().map(str::to_owned)
}

/// Returns the bytes of a variable's declaration; too many rather than too few.
fn size(declaration: &str) -> u64 {
    let declared = declaration.split('=').next().unwrap_or_default();
    let width = |word: &str| match word {
        ".b8" | ".u8" | ".s8" => Some(1),
        ".b16" | ".u16" | ".s16" | ".f16" => Some(2),
        ".b32" | ".u32" | ".s32" | ".f32" => Some(4),
        ".b64" | ".u64" | ".s64" | ".f64" => Some(8),
        _ => None,
    };
    let width = declared.split_whitespace().find_map(width).unwrap_or(8);
    let sizes = declared.split('[').skip(1).map(|part| part.split(']').next().unwrap_or_default().trim());
    sizes.fold(width, |bytes: u64, size| bytes.saturating_mul(size.parse().unwrap_or(1)))
}
