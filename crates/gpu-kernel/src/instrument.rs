//! From an image of code to one whose chosen kernels have twins.

use hetrace_pool::Strategy;

use crate::description::{Description, Refused, Weighted};
use crate::opencl_c;
use crate::plan::Mode;
use crate::ptx::{Base, Request, image, rewrite};
use crate::weights::Weights;

/// What is asked of an image.
#[expect(missing_debug_implementations, reason = "a function has none")]
pub struct Ask<'a> {
    /// As the program hands it to its driver; of a wrapper what it leads to.
    pub image: &'a [u8],
    /// Why no text of it can be had, if more is known of that than that there is none in it.
    pub why: Option<&'a str>,
    /// Its hash, for the description.
    pub hash: &'a str,
    /// Compute capability of the device, ten times the major number and the minor one.
    pub device: u32,
    /// Which kernels get twins.
    pub wanted: &'a dyn Fn(&str) -> bool,
    /// Where they record.
    pub mode: Mode,
    /// They record in thread blocks whose number is a multiple of this.
    pub sample: u32,
    /// Where they find the pool's address.
    pub base: Base,
    /// How their leaders get room there. Only of [`Strategy::Chunks`] are pools that are a parameter.
    pub strategy: Strategy,
    /// Number of the first of them.
    pub first: u32,
    /// How many they may be.
    pub most: u32,
    /// What lanes did in an earlier run, to choose by where to record.
    pub weights: Option<&'a Weights>,
}

/// An image with twins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instrumented {
    /// What the driver is to load instead.
    pub code: String,
    /// Its kernels, as JSON: `docs/inside.md`.
    pub description: String,
    /// How many have a twin.
    pub twins: u32,
}

impl Instrumented {
    /// Returns whether any of its kernels was wanted.
    pub fn is_news(&self) -> bool {
        self.twins > 0 || !self.description.contains("\"refused\":[]")
    }
}

/// Rewrites an image. One in which no kernel is wanted, or of which no twin can be made, comes back with 0 twins.
///
/// # Errors
/// Why it must stay as it is, for people.
pub fn instrument(ask: &Ask<'_>) -> Result<Instrumented, String> {
    let Ask { strategy, base, .. } = *ask;
    if base == Base::Parameter {
        only_chunks(strategy)?;
    }
    let text = match image::text(ask.image, ask.device) {
        Ok(text) => text,
        Err(error) => return without_text(ask, ask.why.unwrap_or(&error.to_string())),
    };
    let Ask { hash, wanted, mode, sample, first, most, weights, .. } = *ask;
    let sums = mode == Mode::Branches;
    let request = Request { wanted, mode, sums, sample, base, strategy, first, image: hash, weights };
    let done = rewrite(&text, &request).map_err(|error| error.to_string())?;
    answered(done.text, &done.description, most)
}

/// Rewrites a source of OpenCL C. Its kernels find their pool by a parameter, and record which ways work-items went, whatever the
/// mode: there are neither clocks nor lanes that are together.
///
/// # Errors
/// Why it must stay as it is, for people.
pub fn instrument_source(ask: &Ask<'_>) -> Result<Instrumented, String> {
    only_chunks(ask.strategy)?;
    let text = ask.image.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| "its source is not UTF-8".to_owned())?;
    let Ask { hash, wanted, sample, first, most, .. } = *ask;
    let request = opencl_c::Request { wanted, sample, first, image: hash };
    let mut done = opencl_c::rewrite(text, &request).map_err(|error| error.to_string())?;
    let unused = || Some("kernels of OpenCL C record paths, in which nothing is chosen by them".to_owned());
    let weights = ask.weights.map(|given| Weighted { trace: given.trace.clone(), unused: unused() });
    done.description.kernels.iter_mut().for_each(|kernel| kernel.weights.clone_from(&weights));
    answered(done.text, &done.description, most)
}

/// Who makes a pool of OpenCL makes one of chunks.
fn only_chunks(strategy: Strategy) -> Result<(), String> {
    match strategy {
        Strategy::Chunks => Ok(()),
        other => Err(format!("strategy {} is not for kernels of OpenCL", other.name())),
    }
}

fn answered(code: String, description: &Description, most: u32) -> Result<Instrumented, String> {
    let twins = u32::try_from(description.kernels.len()).unwrap_or(u32::MAX);
    if twins > most {
        return Err(format!("it has {twins} kernels, more than {most}"));
    }
    let description = serde_json::to_string(description).map_err(|error| error.to_string())?;
    Ok(Instrumented { code, description, twins })
}

/// Kernels that are named where none of an image can be rewritten.
const NAMED: usize = 4096;

/// An image of which no text can be had: the kernels of its machine code that are wanted are named.
///
/// # Errors
/// With the reason, if it is not known which kernels are in it, or if there are more than can be named.
fn without_text(ask: &Ask<'_>, reason: &str) -> Result<Instrumented, String> {
    let kernels = image::kernels(ask.image);
    let refused: Vec<Refused> = kernels
        .iter()
        .filter(|name| (ask.wanted)(name))
        .map(|name| Refused { name: name.clone(), reason: reason.to_owned() })
        .collect();
    if kernels.is_empty() || refused.len() > NAMED {
        return Err(reason.to_owned());
    }
    let description = Description { image: ask.hash.to_owned(), refused, ..Description::default() };
    let description = serde_json::to_string(&description).map_err(|error| error.to_string())?;
    Ok(Instrumented { code: String::new(), description, twins: 0 })
}
