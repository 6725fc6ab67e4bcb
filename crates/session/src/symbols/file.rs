//! One program or library, and its debug information.

use std::fs;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::Loader;
use hetrace_format::define::Module;
use object::elf::{PF_X, PT_LOAD};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ReadCache, ReadRef};

/// Where distributions put debug information.
const DEBUG: &str = "/usr/lib/debug";
/// Functions that were inlined into each other, at most.
const LEVELS: usize = 64;

/// What an address stands for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// As the linker has it.
    pub function: String,
    /// Empty if it is not known.
    pub file: String,
    /// 0 if it is not known.
    pub line: u32,
    /// How far it is from the function's beginning, where the table of symbols alone has that.
    pub offset: Option<u64>,
}

/// What is known of a module: its debug information if there is any apart, and its own.
pub struct File {
    loaders: Vec<Loader>,
    /// Why nothing is known of it, if that is to be said.
    pub unknown: Option<Arc<str>>,
    /// Where its code is, as addresses in the file. Debug information of code that the linker has left out says that it is
    /// at 0 and behind.
    code: Vec<Range<u64>>,
}

impl File {
    /// Opens what there is of a module; nothing of another file that lies there by now.
    pub fn open(module: &Module) -> Self {
        let path = Path::new(&module.path);
        let is_it = |path: &Path| build_id(path).is_some_and(|id| id == module.build_id);
        let mut loaders = Vec::new();
        if let Some(debug) = apart(&module.build_id).filter(|path| is_it(path)) {
            let more = supplement(&debug);
            loaders.extend(Loader::new_with_sup(&debug, more.as_deref()).ok());
        }
        let mut code = Vec::new();
        if is_it(path) {
            code = segments(path).unwrap_or_default();
            loaders.extend(Loader::new(path).ok());
        } else if let Some(debug) = apart(&module.build_id).filter(|_| !loaders.is_empty()) {
            code = segments(&debug).unwrap_or_default();
        }
        let unknown = loaders.is_empty().then(|| why_unknown(path)).flatten();
        Self { loaders, unknown, code }
    }

    /// Returns what an address stands for, the innermost function first, and then what that was inlined into.
    pub fn symbols(&self, address: u64) -> Vec<Found> {
        // A program may write anything.
        if !self.code.iter().any(|code| code.contains(&address)) {
            return Vec::new();
        }
        let all = || self.loaders.iter().map(|loader| of(loader, address));
        let with_line = all().find(|found| found.iter().any(|found| found.line > 0));
        with_line.or_else(|| all().find(|found| !found.is_empty())).unwrap_or_default()
    }
}

/// Why a file with this path says nothing; none of what never was one.
fn why_unknown(path: &Path) -> Option<Arc<str>> {
    if !path.is_absolute() {
        return None;
    }
    let why = match path.symlink_metadata() {
        Ok(_) => "its file is not the one that ran, by its build id",
        Err(_) => "its file is gone",
    };
    Some(format!("no functions and lines of {}: {why}", path.display()).into())
}

fn of(loader: &Loader, address: u64) -> Vec<Found> {
    let mut all = Vec::new();
    if let Ok(mut frames) = loader.find_frames(address) {
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|name| Some(name.raw_name().ok()?.into_owned()));
            let (file, line) = frame.location.map_or((None, None), |place| (place.file, place.line));
            all.push(Found {
                function: name.unwrap_or_default(),
                file: file.unwrap_or_default().to_owned(),
                line: line.unwrap_or(0),
                offset: None,
            });
            if all.len() >= LEVELS {
                break;
            }
        }
    }
    // Debug information may lack a name that the table of symbols has: that of the outermost one.
    let info = loader.find_symbol_info(address);
    let symbol = info.as_ref().map_or("", |info| info.name());
    let offset = info.as_ref().and_then(|info| address.checked_sub(info.address()));
    match all.last_mut() {
        Some(outermost) if outermost.function.is_empty() => {
            symbol.clone_into(&mut outermost.function);
            outermost.offset = offset;
        }
        Some(_) => {}
        None if symbol.is_empty() => {}
        None => all.push(Found { function: symbol.to_owned(), offset, ..Found::default() }),
    }
    all.retain(|found| !found.function.is_empty() || found.line > 0);
    all
}

/// Where the debug information of a build id is.
fn apart(build_id: &str) -> Option<PathBuf> {
    let (first, rest) = build_id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    Some(Path::new(DEBUG).join(".build-id").join(first).join(format!("{rest}.debug")))
}

/// Where a file has code, as its program headers say.
fn segments(path: &Path) -> Option<Vec<Range<u64>>> {
    let cache = ReadCache::new(opened(path)?);
    let elf = ElfFile64::parse(&cache).ok()?;
    let code = code(&elf).map(|code| code.address..code.address.saturating_add(code.bytes));
    Some(code.collect())
}

/// A segment that is executed.
pub struct Segment {
    /// Where it is in the file, and how much of it.
    pub stored: Range<u64>,
    /// Its address, as the file has it, and how much is there.
    pub address: u64,
    pub bytes: u64,
}

/// Returns the segments of a program or library that are executed.
pub fn code<'d, R: ReadRef<'d>>(elf: &ElfFile64<'d, Endianness, R>) -> impl Iterator<Item = Segment> {
    let endian = elf.endian();
    elf.elf_program_headers().iter().filter_map(move |header| {
        let is_code = header.p_type(endian) == PT_LOAD && (header.p_flags(endian) & PF_X).0 != 0;
        let start = header.p_offset(endian);
        is_code.then(|| Segment {
            stored: start..start.saturating_add(header.p_filesz(endian)),
            address: header.p_vaddr(endian),
            bytes: header.p_memsz(endian),
        })
    })
}

/// Opens a file, and nothing that one would wait for.
pub fn opened(path: &Path) -> Option<fs::File> {
    let file =
        fs::File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// The build id of a file, to base 16; empty if it has none.
pub fn build_id(path: &Path) -> Option<String> {
    let cache = ReadCache::new(opened(path)?);
    let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    Some(hex(elf.build_id().ok()?.unwrap_or_default()))
}

/// Returns a build id as it is written.
pub fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file with what several files of debug information have in common.
fn supplement(path: &Path) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    opened(path)?.read_to_end(&mut bytes).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let (name, _) = file.gnu_debugaltlink().ok()??;
    let path = path.parent()?.join(std::str::from_utf8(name).ok()?);
    opened(&path).is_some().then_some(path)
}

#[cfg(test)]
pub(super) mod tests {
    use hetrace_format::Handle;
    use object::{ObjectSymbol, SymbolKind};

    use super::*;

    /// An address inside of a function of this program, by a part of its name.
    pub fn address_of(name: &str) -> u64 {
        let bytes = fs::read(std::env::current_exe().expect("a path")).expect("this program");
        let file = object::File::parse(&*bytes).expect("a program");
        let mut functions =
            file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 8);
        let found = functions.find(|symbol| symbol.name().is_ok_and(|found| found.contains(name)));
        found.map(|symbol| symbol.address() + 4).expect("the function")
    }

    fn module(path: &Path, build_id: &str) -> Module {
        let path = path.to_string_lossy().into_owned();
        Module { module: Handle(1), build_id: build_id.to_owned(), path, ..Module::default() }
    }

    #[test]
    fn functions_have_names_and_gaps_have_none() {
        let path = std::env::current_exe().expect("a path");
        let id = build_id(&path).expect("a program");
        let file = File::open(&module(&path, &id));
        let found = file.symbols(address_of("functions_have_names_and_gaps_have_none"));
        let last = found.last().expect("it is known");
        assert!(last.function.contains("functions_have_names_and_gaps_have_none"), "{found:?}");
        assert_eq!(file.symbols(1), []);
        assert_eq!(file.symbols(u64::MAX), []);
    }

    #[test]
    fn another_file_and_what_is_no_file_say_nothing() {
        let path = std::env::current_exe().expect("a path");
        assert!(File::open(&module(&path, "0123456789abcdef")).loaders.is_empty(), "another build");
        for path in
            ["/dev/null", "/dev/zero", "/", "", "linux-vdso.so.1", "/proc/self/cmdline", "/etc/passwd"]
        {
            assert!(File::open(&module(Path::new(path), "")).loaders.is_empty(), "{path}");
        }
        let folder = tempfile::TempDir::new().expect("a folder");
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a pipe");
        assert!(File::open(&module(&pipe, "")).loaders.is_empty(), "nobody waits for a writer");
    }

    #[test]
    fn debug_information_is_where_distributions_put_it() {
        assert_eq!(apart("abcdef"), Some(PathBuf::from("/usr/lib/debug/.build-id/ab/cdef.debug")));
        assert_eq!(apart("ab"), None);
        assert_eq!(apart(""), None);
    }
}
