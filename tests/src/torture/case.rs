//! What a torture case is.

/// Which API its program calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// OpenCL, on PoCL.
    OpenCl,
    /// A CUDA driver that is a fake with three devices.
    Cuda,
}

/// How hetrace gets in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As a layer of the API's loader.
    Layer,
    /// Preloaded.
    Preload,
}

impl Way {
    /// As `--interpose` has it.
    pub fn name(self) -> &'static str {
        match self {
            Way::Layer => "layer",
            Way::Preload => "preload",
        }
    }
}

/// How exactly calls are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accounting {
    /// By process, and nothing may be lost at all.
    Whole,
    /// By process, and no more may be lost than calls that handlers jumped out of.
    Jumps,
    /// By process: recorded or reported as lost.
    Counted,
    /// All processes together, where their ids are not the same inside and outside; as many
    /// processes as this must be distinguished.
    Sum(u64),
    /// The same, where the number of processes means nothing.
    Total,
    /// Not at all: the program destroys what is recorded.
    None,
}

/// What a machine must allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// User, mount and PID namespaces.
    Namespaces,
    /// A memory control group that can be made.
    MemoryGroup,
}

/// One case.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub subject: &'static str,
    /// What is promised.
    pub promise: &'static str,
    /// How that is tried, in words.
    pub tried: &'static str,
    /// The program and its arguments; `SEED` is replaced, `@workers` is the path of `workers`.
    pub command: &'static str,
    /// Options of `hetrace run`.
    pub options: &'static str,
    /// A shell's text around the program, which is `"$@"`.
    pub inside: Option<&'static str>,
    /// A shell's text around hetrace (around the program in the bare run), which is `"$@"`.
    pub around: Option<&'static str>,
    /// API.
    pub api: Api,
    /// How calls are compared.
    pub accounting: Accounting,
    /// What the machine must allow.
    pub needs: &'static [Need],
    /// Root can open everything, so it tries nothing.
    pub ordinary_only: bool,
    /// The launcher is killed when the program says `ready`.
    pub kills_launcher: bool,
    /// The bound of the memory that the session's folder takes, in bytes.
    pub session_bytes: Option<u64>,
    /// The program's memory is compared with that of the bare program.
    pub memory: bool,
    /// It takes long: the ordinary tests try one way of interposition only.
    pub heavy: bool,
    /// Repetitions in the ordinary tests; 0 if it is left out there.
    pub short: u32,
    /// Repetitions in `--torture`.
    pub long: u32,
}

/// What a case is where it says nothing else.
pub const PLAIN: Case = Case {
    name: "",
    subject: "",
    promise: "",
    tried: "",
    command: "",
    options: "",
    inside: None,
    around: None,
    api: Api::OpenCl,
    accounting: Accounting::Counted,
    needs: &[],
    ordinary_only: false,
    kills_launcher: false,
    session_bytes: None,
    memory: false,
    heavy: false,
    short: 1,
    long: 3,
};

impl Case {
    /// The ways of interposition that its API has.
    pub fn ways(&self) -> &'static [Way] {
        match self.api {
            Api::OpenCl => &[Way::Layer, Way::Preload],
            Api::Cuda => &[Way::Preload],
        }
    }
}
