//! The option for a trace of the operating system.

use std::path::PathBuf;

use clap::Args;

/// Where it is.
#[derive(Debug, Default, Args)]
pub struct Kernel {
    /// A kernel trace of the same time, recorded by LTTng or by `hetrace run --os` [default: the one
    /// that `hetrace run --os` wrote beside the program's]
    #[arg(long, value_name = "TRACE")]
    pub kernel: Option<PathBuf>,
}
