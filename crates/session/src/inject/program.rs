//! Which program will really run, and whether a library can be loaded into it.
//!
//! ```text
//!  script ──#!──► /usr/bin/env ──PATH──► interpreter ──► ELF file: 64-bit, of this
//!                                                        processor, for glibc's loader?
//! ```
//! Only what is certain is an obstacle: a file that can't be read or understood may
//! well be a program that can be traced.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::elf::{self, Elf};

/// As many interpreters after each other as the kernel follows.
const DEPTH: usize = 5;
/// As much of a script's first line as the kernel reads.
const LINE: usize = 256;

/// Why a program can't be traced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// It runs with another user's or group's rights.
    Setuid,
    /// Its file gives it capabilities.
    Capabilities,
    /// It has no dynamic loader.
    Static,
    /// It is for another processor, or for this one's 32-bit mode: its name.
    Foreign(&'static str),
    /// It is for another C library than ours: its dynamic loader.
    Loader(String),
}

impl Obstacle {
    /// Returns the program's loader would complain of our libraries, or stop.
    pub fn forbids_preloading(&self) -> bool {
        matches!(self, Obstacle::Foreign(_) | Obstacle::Loader(_))
    }
}

impl std::fmt::Display for Obstacle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Obstacle::Setuid => f.write_str("it is setuid or setgid, so libraries cannot be injected"),
            Obstacle::Capabilities => {
                f.write_str("its file has capabilities, so libraries cannot be injected")
            }
            Obstacle::Static => f.write_str("it is statically linked, so libraries cannot be injected"),
            Obstacle::Foreign(what) => {
                write!(f, "it is {what}, but hetrace's libraries are for {} only", std::env::consts::ARCH)
            }
            Obstacle::Loader(name) => {
                write!(
                    f,
                    "its dynamic loader is {name}, but hetrace's libraries need the one of the GNU C library"
                )
            }
        }
    }
}

/// What is known of a program before its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// The file that is executed in the end, if it is not the one named.
    pub interpreter: Option<PathBuf>,
    /// Why it can't be traced.
    pub obstacle: Option<Obstacle>,
    /// It needs AddressSanitizer's shared runtime and chooses its options itself.
    pub sets_asan_options: bool,
    /// It is certain never to have an API in its process.
    pub is_closed: bool,
}

/// Finds out about a program by its file, following the interpreters of scripts.
pub fn recognise(path: &Path) -> Program {
    let name = CString::new(path.as_os_str().as_bytes());
    let is_closed = name.is_ok_and(|name| hetrace_closed::is_closed(&name));
    let mut program = Program { is_closed, ..Program::default() };
    let mut at = path.to_owned();
    for _ in 0..DEPTH {
        let Some(file) = open(&at) else { return program };
        let mut line = [0; LINE];
        let length = file.read_at(&mut line, 0).unwrap_or(0);
        let Some(next) = interpreter(&line[..length]) else {
            inspect(&file, &mut program);
            // musl's loader and C library are one file, which may have no name inside.
            if program.obstacle == Some(Obstacle::Static) && is_musl(&at) {
                program.obstacle = Some(Obstacle::Loader(at.display().to_string()));
            }
            return program;
        };
        program.interpreter = Some(next.clone());
        at = next;
    }
    program
}

/// Returns whether a file defines a function that others find there.
pub fn defines(path: &Path, function: &str) -> bool {
    open(path).is_some_and(|file| elf::defines(&file, function))
}

/// Returns the libraries that a program needs, by their names.
pub fn needed(path: &Path) -> Vec<String> {
    open(path).and_then(|file| elf::read(&file)).map(|elf| elf.needed).unwrap_or_default()
}

fn is_musl(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name == b"libc.so" || name.starts_with(b"ld-musl")
}

/// Opens a regular file, and nothing that may block or act when opened.
fn open(path: &Path) -> Option<File> {
    let options = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let file = OpenOptions::new().read(true).custom_flags(options).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// Returns the interpreter that a script's first line names; that which `env` finds, if it
/// is `env`.
fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let line = line.trim_ascii();
    let end = line.iter().position(|b| *b == b' ' || *b == b'\t').unwrap_or(line.len());
    let (name, argument) = line.split_at(end);
    let name = Path::new(OsStr::from_bytes(name));
    if name.as_os_str().is_empty() {
        return None;
    }
    if name.file_name() == Some(OsStr::new("env"))
        && let Some(wanted) = wanted_of_env(argument.trim_ascii())
        && let Some(found) = in_path(&wanted)
    {
        return Some(found);
    }
    Some(name.to_owned())
}

/// Returns the program that `env` would start. The kernel passes all that follows as one
/// argument, which `-S` splits.
fn wanted_of_env(argument: &[u8]) -> Option<OsString> {
    let split = [b"-S".as_slice(), b"--split-string=", b"--split-string"];
    let rest = split.iter().find_map(|prefix| argument.strip_prefix(*prefix));
    let Some(rest) = rest else {
        return (!argument.is_empty()).then(|| OsString::from_vec(argument.to_vec()));
    };
    let mut words = rest.split(|b| *b == b' ' || *b == b'\t').filter(|w| !w.is_empty());
    let word = words.find(|w| !w.starts_with(b"-") && !w.contains(&b'='))?;
    Some(OsString::from_vec(word.to_vec()))
}

/// Returns the file that a name without a slash means. An empty entry of `PATH` is the
/// current folder; without the variable the system's own folders are searched.
pub fn in_path(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let executable = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(executable)
}

fn inspect(file: &File, program: &mut Program) {
    let Some(elf) = elf::read(file) else { return };
    program.sets_asan_options = elf.sets_asan_options;
    // That the file can't be loaded into comes before whose rights it has.
    program.obstacle = of_elf(&elf).or_else(|| of_rights(file));
}

fn of_rights(file: &File) -> Option<Obstacle> {
    let metadata = file.metadata().ok()?;
    let mode = metadata.permissions().mode();
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let changes =
        mode & 0o4000 != 0 && metadata.uid() != user || mode & 0o2010 == 0o2010 && metadata.gid() != group;
    // What root runs gains nothing by capabilities.
    let mut value = [0; 64];
    let gains = user != 0
        && rustix::fs::fgetxattr(file, "security.capability", &mut value).is_ok_and(|length| length > 0);
    let ignored = rustix::fs::fstatvfs(file)
        .is_ok_and(|s| s.f_flag.contains(rustix::fs::StatVfsMountFlags::NOSUID))
        || rustix::thread::no_new_privs().unwrap_or(false);
    match (changes, gains) {
        _ if ignored => None,
        (true, _) => Some(Obstacle::Setuid),
        (false, true) => Some(Obstacle::Capabilities),
        (false, false) => None,
    }
}

/// `e_machine` of the libraries.
const fn machine() -> u16 {
    if cfg!(target_arch = "x86_64") { 62 } else { 183 }
}

fn of_elf(elf: &Elf) -> Option<Obstacle> {
    if elf.machine != machine() || !elf.wide || !elf.little {
        return Some(Obstacle::Foreign(title(elf)));
    }
    let loader = match (&elf.interpreter, &elf.soname) {
        (Some(path), _) => path,
        // A loader that was started itself, with the program as its argument.
        (None, Some(name))
            if name.starts_with("ld") || name.starts_with("libc.musl") || name == "libc.so" =>
        {
            name
        }
        (None, _) => return Some(Obstacle::Static),
    };
    let name = loader.rsplit('/').next().unwrap_or_default();
    let other = ["musl", "uClibc", "linker64", "libc.so"].iter().any(|word| name.contains(word));
    other.then(|| Obstacle::Loader(loader.clone()))
}

/// Returns how people call a kind of program.
fn title(elf: &Elf) -> &'static str {
    match (elf.machine, elf.wide) {
        (62, false) => "an x32 program",
        (3, _) => "a 32-bit x86 program",
        (62, true) => "an x86-64 program",
        (183, _) => "an AArch64 program",
        (40, _) => "a 32-bit Arm program",
        (243, true) => "a 64-bit RISC-V program",
        (243, false) => "a 32-bit RISC-V program",
        (21, _) => "a 64-bit PowerPC program",
        (22, _) => "an IBM Z program",
        (_, false) => "a 32-bit program of another processor",
        (_, true) => "a program of another processor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(machine: u16, wide: bool, interpreter: Option<&str>) -> Elf {
        let interpreter = interpreter.map(str::to_owned);
        Elf { wide, little: true, machine, interpreter, ..Elf::default() }
    }

    #[test]
    fn only_programs_of_glibc_and_this_processor_can_be_traced() {
        let ours = machine();
        assert_eq!(of_elf(&elf(ours, true, Some("/lib64/ld-linux-x86-64.so.2"))), None);
        assert_eq!(of_elf(&elf(ours, true, Some("/nix/store/x-glibc/lib/ld-linux-x86-64.so.2"))), None);
        assert_eq!(of_elf(&elf(ours, true, None)), Some(Obstacle::Static));
        let musl = of_elf(&elf(ours, true, Some("/lib/ld-musl-x86_64.so.1"))).expect("an obstacle");
        assert!(musl.forbids_preloading() && musl.to_string().contains("/lib/ld-musl-x86_64.so.1"), "{musl}");
        for (number, wide) in [(3, false), (62, false), (243, true), (40, false)] {
            let foreign = of_elf(&elf(number, wide, Some("/lib/ld-linux.so.2"))).expect("an obstacle");
            assert!(foreign.forbids_preloading(), "{foreign}");
        }
        let big = Elf { little: false, ..elf(ours, true, None) };
        assert!(matches!(of_elf(&big), Some(Obstacle::Foreign(_))));
    }

    #[test]
    fn a_dynamic_loader_started_itself_is_no_static_program() {
        let named = |name: &str| Elf { soname: Some(name.to_owned()), ..elf(machine(), true, None) };
        assert_eq!(of_elf(&named("ld-linux-x86-64.so.2")), None);
        assert!(matches!(of_elf(&named("libc.so")), Some(Obstacle::Loader(_))));
    }

    #[test]
    fn first_lines_name_interpreters() {
        let sh = Some(PathBuf::from("/bin/sh"));
        assert_eq!(interpreter(b"#!/bin/sh\necho"), sh);
        assert_eq!(interpreter(b"#! /bin/sh -e\n"), sh);
        assert_eq!(interpreter(b"#!/bin/sh"), sh);
        assert_eq!(interpreter(b"#!\n"), None);
        assert_eq!(interpreter(b"echo"), None);
        let found = in_path(OsStr::new("sh"));
        assert!(found.is_some());
        assert_eq!(interpreter(b"#!/usr/bin/env sh\n"), found);
        assert_eq!(interpreter(b"#!/usr/bin/env -S A=b sh -e\n"), found);
        assert_eq!(interpreter(b"#!/usr/bin/env no-such-program\n"), Some(PathBuf::from("/usr/bin/env")));
    }

    #[test]
    fn what_is_no_regular_file_is_left_alone() {
        let folder = tempfile::tempdir().expect("scratch");
        assert_eq!(recognise(folder.path()), Program::default());
        assert_eq!(recognise(Path::new("/dev/zero")), Program::default());
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).expect("a FIFO");
        assert_eq!(recognise(&fifo), Program::default());
    }

    #[test]
    fn scripts_that_name_each_other_end() {
        let folder = tempfile::tempdir().expect("scratch");
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&a, format!("#!{}\n", b.display())).expect("scratch");
        std::fs::write(&b, format!("#!{}\n", a.display())).expect("scratch");
        assert_eq!(recognise(&a).obstacle, None);
    }
}
