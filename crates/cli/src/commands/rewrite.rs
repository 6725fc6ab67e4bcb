//! `hetrace rewrite`: rewrites one image for `run --inside`. Not for users: `run` starts one for each image, so that
//! whatever an image does to it, nothing else suffers.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, Result};
use clap::Args;
use hetrace_gpu_kernel::plan::Mode;
use hetrace_gpu_kernel::ptx;
use hetrace_gpu_kernel::{Ask, Base, Instrumented, Weights, instrument, instrument_source};
use hetrace_session::{INSIDE_KERNELS, INSIDE_WEIGHTS, inside_answer};
use sha2::{Digest, Sha256};

use super::handed;
use crate::args::{Sites, Strategy};

/// Goes up when the same image becomes another.
const VERSION: u32 = 6;
/// Most bytes of the cache; what was used longest ago goes first.
const CACHE: u64 = 1 << 30;

/// Options of `rewrite`.
#[derive(Debug, Args)]
pub struct Rewrite {
    /// Where kernels record.
    #[arg(long, value_enum, default_value_t)]
    pub mode: Sites,
    /// How kernels get room for what they record.
    #[arg(long, value_enum, default_value_t)]
    pub strategy: Strategy,
    /// Only one thread block in so many records.
    #[arg(long, default_value_t = 1)]
    pub blocks: u32,
    /// Globs of the kernels.
    #[arg(long)]
    pub kernel: Vec<String>,
    /// The image; its name is `HASH-FIRST-DEVICE.…`; before the dot `-linked` if it is linked with others,
    /// with `-parameter` if its kernels find the pool by a parameter, with `-source` if it is OpenCL C.
    pub image: PathBuf,
    /// Where the answer goes.
    pub answer: PathBuf,
}

/// What rewrites an image of one kind.
type Rewriter = fn(&Ask<'_>) -> Result<Instrumented, String>;

/// Rewrites an image. What can't be done is in the answer.
pub fn run(args: &Rewrite) -> Result<ExitCode> {
    let (twins, body) = match done(args) {
        Ok(Instrumented { twins: 0, .. }) => (0, String::new()),
        Ok(done) => (done.twins, done.code),
        Err(error) => (0, format!("{error:#}")),
    };
    inside_answer(&args.answer, twins, &body)?;
    Ok(ExitCode::SUCCESS)
}

fn done(args: &Rewrite) -> Result<Instrumented> {
    let stem = args.image.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let mut parts = stem.split('-');
    let mut part = || parts.next().context("the image has no name of ours");
    let (hash, first, device) = (part()?, part()?.parse()?, part()?.parse()?);
    let use_ = parts.next();
    let (base, rewrites): (Base, Rewriter) = match use_ {
        None => (Base::Module, instrument),
        Some("linked") => (Base::Linked, instrument),
        Some("parameter") => (Base::Parameter, instrument),
        Some("source") => (Base::Parameter, instrument_source),
        Some(_) => anyhow::bail!("the image has no name of ours"),
    };
    let strategy = args.strategy.strategy()?;
    let mut image = fs::read(&args.image)?;
    let mut why = None;
    // Of machine code alone, another API of the program may have handed over what it was made of.
    if use_ != Some("source") && ptx::image::text(&image, device).is_err() {
        match handed::text(&args.image.with_file_name(hash), device) {
            Some(Ok(text)) => image = text,
            Some(Err(reason)) => why = Some(reason),
            None => {}
        }
    }
    // The launcher put it there before the program started.
    let weights = fs::read(args.image.with_file_name(INSIDE_WEIGHTS)).unwrap_or_default();
    // A reason is not of the image alone.
    let cache = if why.is_none() { Cache::of(args, &image, (first, device, use_), &weights) } else { None };
    let done = match cache.as_ref().and_then(Cache::get) {
        Some(done) => done,
        None => {
            let known =
                (!weights.is_empty()).then(|| serde_json::from_slice::<Weights>(&weights)).transpose();
            let known = known.context("what an earlier run says of kernels can't be read")?;
            let done = rewrites(&Ask {
                image: &image,
                why: why.as_deref(),
                hash,
                device,
                wanted: &|name| args.kernel.iter().any(|glob| hetrace_model::glob_matches(glob, name)),
                mode: match args.mode {
                    Sites::Paths => Mode::Paths,
                    Sites::Branches => Mode::Branches,
                    Sites::Edges => Mode::Edges,
                    Sites::Blocks => Mode::Blocks,
                },
                sample: args.blocks,
                base,
                strategy,
                first,
                most: INSIDE_KERNELS,
                weights: known.as_ref(),
            })
            .map_err(anyhow::Error::msg)?;
            // A cache that can't be written is none.
            let _ = cache.as_ref().map(|cache| cache.put(&done));
            done
        }
    };
    // Before the answer: whoever has that finds this. Of an image in which nothing was wanted there is nothing to say.
    if let Some(folder) = args.answer.parent().filter(|_| done.is_news()) {
        write(&folder.join(format!("{hash}-{first}.json")), &[done.description.as_bytes()])?;
    }
    Ok(done)
}

/// Writes a file, which is there whole or not at all.
fn write(path: &Path, parts: &[&[u8]]) -> std::io::Result<()> {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let mut file = fs::File::create(&part)?;
    parts
        .iter()
        .try_for_each(|bytes| file.write_all(bytes))
        .and_then(|()| fs::rename(&part, path))
        .inspect_err(|_| {
            let _ = fs::remove_file(&part);
        })
}

/// The place of one image in the cache: a file with `TWINS BYTES\n`, the description of so many bytes, and the code.
#[derive(Debug)]
struct Cache {
    folder: PathBuf,
    file: PathBuf,
}

impl Cache {
    /// Returns none if there is no place for a cache.
    fn of(args: &Rewrite, image: &[u8], wanted: (u32, u32, Option<&str>), weights: &[u8]) -> Option<Cache> {
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
        let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = base.or_else(home)?.join("hetrace/inside");
        let options = (VERSION, env!("CARGO_PKG_VERSION"), args.mode, args.blocks, &args.kernel, wanted);
        let strategy = (args.strategy != Strategy::default()).then_some(args.strategy);
        let mut key = Sha256::new();
        key.update(format!("{options:?}\n"));
        strategy.iter().for_each(|strategy| key.update(format!("{strategy:?}\n")));
        // Without them the key is what it was before there were any.
        if !weights.is_empty() {
            key.update(format!("weights {:x?}\n", &Sha256::digest(weights)[..]));
        }
        key.update(image);
        let name: String = key.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Some(Cache { file: folder.join(name), folder })
    }

    fn get(&self) -> Option<Instrumented> {
        let text = fs::read_to_string(&self.file).ok()?;
        let (head, rest) = text.split_once('\n')?;
        let (twins, bytes) = head.split_once(' ')?;
        let (description, code) = rest.split_at_checked(bytes.parse().ok()?)?;
        let file = fs::File::options().write(true).open(&self.file).ok()?;
        // What is used stays; if that can't be noted, it goes earlier.
        let _ = file.set_modified(SystemTime::now());
        Some(Instrumented {
            twins: twins.parse().ok()?,
            description: description.to_owned(),
            code: code.to_owned(),
        })
    }

    fn put(&self, done: &Instrumented) -> std::io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let head = format!("{} {}\n", done.twins, done.description.len());
        write(&self.file, &[head.as_bytes(), done.description.as_bytes(), done.code.as_bytes()])?;
        self.bound(CACHE)
    }

    /// Removes what was used longest ago, until there is room.
    fn bound(&self, most: u64) -> std::io::Result<()> {
        let files = fs::read_dir(&self.folder)?.flatten();
        let found = files.filter_map(|entry| {
            let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((about.modified().ok()?, about.len(), entry.path()))
        });
        let mut found: Vec<_> = found.collect();
        found.sort();
        let mut all: u64 = found.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in found {
            if all <= most {
                break;
            }
            fs::remove_file(path)?;
            all -= bytes;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_keeps_what_was_used_last() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = |name: &str| Cache { folder: folder.path().to_owned(), file: folder.path().join(name) };
        let done = Instrumented { code: "x".repeat(100), description: "{\"é\": 1}".to_owned(), twins: 3 };
        assert_eq!(of("a").get(), None);
        for (name, age) in [("a", 30), ("b", 20), ("c", 10)] {
            of(name).put(&done).expect("written");
            let file = fs::File::options().write(true).open(of(name).file).expect("there");
            let then = SystemTime::now() - std::time::Duration::from_secs(age);
            file.set_modified(then).expect("set");
        }
        assert_eq!(of("a").get(), Some(done));
        of("c").bound(250).expect("bounded");
        assert!(of("a").file.exists() && of("c").file.exists() && !of("b").file.exists());
        fs::write(of("a").file, "3 9999\nx").expect("written");
        assert_eq!(of("a").get(), None, "cut short");
    }
}
