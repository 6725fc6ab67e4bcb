//! Probes that a program and its libraries have in their code (USDT): which of them the user has named.
//!
//! ```text
//!  .note.stapsdt:  name "stapsdt", kind 3:  instruction u64   base u64   semaphore u64   provider\0 probe\0 arguments\0
//! ```
//! Addresses are those of a file whose section `.stapsdt.base` lies at `base`; in a file that was moved since, all have
//! moved as far. Nothing in a file is believed beyond its bytes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hetrace_model::glob_matches;
use hetrace_os::{UserProbe, user};
use object::Endianness;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

use crate::{inject, ldcache};

/// Most files of a program that are looked into.
const MOST_FILES: usize = 512;
/// The kind of a note that is a probe.
const PROBE: u32 = 3;
/// What names of events begin with that are hits of probes.
const PREFIX: &str = "usdt:";

/// Why probes can't be recorded.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The text is no name of probes.
    #[error(
        "`{0}` names no probes: expected PROVIDER:PROBE or FILE:PROVIDER:PROBE, each of the names a glob, or for ranges PROVIDER:BEGIN..END"
    )]
    Form(String),
    /// No probe has such a name.
    #[error("no probe matches `{asked}`; there {}", listed(.known))]
    Nothing {
        /// What was asked for.
        asked: String,
        /// The probes that there are.
        known: Vec<String>,
    },
}

fn listed(known: &[String]) -> String {
    const SHOWN: usize = 12;
    match known {
        [] => "are none in the program and the libraries that it is linked to; name a library that it opens later as FILE:PROVIDER:PROBE".to_owned(),
        [one] => format!("is {one}"),
        many if many.len() <= SHOWN => format!("are {}", many.join(", ")),
        many => format!("are {} and {} others", many[..SHOWN].join(", "), many.len() - SHOWN),
    }
}

/// The probes that were asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// All of them.
    pub probes: Vec<UserProbe>,
    /// The names of those that were asked for as the beginning and the end of ranges.
    pub pairs: Vec<[String; 2]>,
}

/// Returns the probes of a program and of the libraries that it is linked to which one of the globs names, and those of
/// files that a glob names.
///
/// # Errors
/// When a glob names none.
pub fn find(program: Option<&Path>, globs: &[String]) -> Result<Found, Error> {
    let own: Vec<UserProbe> =
        program.map(files).unwrap_or_default().iter().flat_map(|file| probes(file)).collect();
    let (mut found, mut pairs): (Vec<UserProbe>, _) = (Vec::new(), Vec::new());
    let mut each = Vec::new();
    for asked in globs {
        let pair = pair(asked).ok_or_else(|| Error::Form(asked.clone()))?;
        if let [begin, end] = &pair[..] {
            let name = |text: &str| split(text).map(|(_, name)| name.to_owned());
            pairs.extend(name(begin).zip(name(end)).map(|(begin, end)| [begin, end]));
        }
        each.extend(pair);
    }
    for asked in &each {
        let (file, name) = split(asked).ok_or_else(|| Error::Form(asked.clone()))?;
        let theirs = file.map(probes);
        let of = theirs.as_ref().unwrap_or(&own);
        let glob = format!("{PREFIX}{name}");
        let mut matching = of.iter().filter(|probe| glob_matches(&glob, &probe.event)).peekable();
        if matching.peek().is_none() {
            let names: BTreeSet<&str> = of.iter().filter_map(|p| p.event.strip_prefix(PREFIX)).collect();
            let known = names.into_iter().map(str::to_owned).collect();
            return Err(Error::Nothing { asked: asked.clone(), known });
        }
        for probe in matching {
            if !found.contains(probe) {
                found.push(probe.clone());
            }
        }
    }
    Ok(Found { probes: found, pairs })
}

/// Returns the two that name the beginning and the end of ranges, `PROVIDER:BEGIN..END`, or the one that names probes; none
/// if it is neither.
fn pair(asked: &str) -> Option<Vec<String>> {
    let Some((before, probes)) = asked.rsplit_once(':') else { return Some(vec![asked.to_owned()]) };
    let Some((begin, end)) = probes.split_once("..") else { return Some(vec![asked.to_owned()]) };
    let is_name = |name: &str| !name.is_empty() && !name.contains(['*', '?', '[', '.']);
    let both = || [begin, end].map(|name| format!("{before}:{name}")).to_vec();
    (is_name(begin) && is_name(end) && begin != end).then(both)
}

/// Splits what names probes into a file, if it has one, and the rest.
fn split(text: &str) -> Option<(Option<&Path>, &str)> {
    let (before, probe) = text.rsplit_once(':')?;
    let (file, provider) = match before.rsplit_once(':') {
        Some((file, provider)) => (Some(Path::new(file)), provider),
        None => (None, before),
    };
    let is_file = file.is_none_or(|file| !file.as_os_str().is_empty());
    let rest = text.get(text.len() - provider.len() - probe.len() - 1..)?;
    (is_file && !provider.is_empty() && !probe.is_empty()).then_some((file, rest))
}

/// Returns the file that is executed for a program, and the libraries that it is linked to.
fn files(program: &Path) -> Vec<PathBuf> {
    let first = inject::executed(program);
    let mut seen = BTreeSet::new();
    let mut files = vec![first];
    let mut at = 0;
    while let Some(file) = files.get(at).filter(|_| at < MOST_FILES) {
        let needed = inject::needed(file);
        files.extend(
            needed.iter().filter(|name| seen.insert((*name).clone())).filter_map(|n| ldcache::find(n)),
        );
        at += 1;
    }
    files
}

/// Returns the probes of a file. What can't be read has none.
fn probes(file: &Path) -> Vec<UserProbe> {
    let path = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let Ok(opened) = std::fs::File::open(&path) else { return Vec::new() };
    // Large files have large parts of no interest.
    read(&object::ReadCache::new(opened), &path).unwrap_or_default()
}

fn read<'d, R: object::ReadRef<'d>>(data: R, file: &Path) -> object::Result<Vec<UserProbe>> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let segments = header.program_headers(endian, data)?;
    let in_file = |address: u64| {
        let holds = |s: &&object::elf::ProgramHeader64<Endianness>| {
            let into = address.checked_sub(s.p_vaddr(endian));
            s.p_type(endian) == PT_LOAD && into.is_some_and(|into| into < s.p_filesz(endian))
        };
        let segment = segments.iter().find(holds)?;
        segment.p_offset(endian).checked_add(address - segment.p_vaddr(endian))
    };
    let base = sections.section_by_name(endian, b".stapsdt.base").map(|(_, s)| s.sh_addr(endian));
    let mut found = Vec::new();
    for section in sections.iter() {
        let Some(mut notes) = section.notes(endian, data)? else { continue };
        while let Some(note) = notes.next()? {
            if note.name() == b"stapsdt" && note.n_type(endian).0 == PROBE {
                found.extend(probe(note.desc(), base, &in_file, file));
            }
        }
    }
    Ok(found)
}

fn probe(
    desc: &[u8],
    base: Option<u64>,
    in_file: &dyn Fn(u64) -> Option<u64>,
    file: &Path,
) -> Option<UserProbe> {
    let number = |at: usize| Some(u64::from_le_bytes(*desc.get(8 * at..)?.first_chunk()?));
    let (instruction, noted, semaphore) = (number(0)?, number(1)?, number(2)?);
    let moved = base.map_or(0, |base| base.wrapping_sub(noted));
    let mut texts = desc.get(24..)?.split(|b| *b == 0).map(|text| String::from_utf8_lossy(text));
    let (provider, name, arguments) = (texts.next()?, texts.next()?, texts.next()?);
    let semaphore = match semaphore {
        0 => 0,
        address => in_file(address.wrapping_add(moved))?,
    };
    Some(UserProbe {
        event: format!("{PREFIX}{provider}:{name}"),
        file: file.to_owned(),
        offset: in_file(instruction.wrapping_add(moved))?,
        semaphore,
        arguments: user::arguments(&arguments),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with notes as `sys/sdt.h` writes them.
    const SOURCE: &str = r#"
#define PROBE(name, number) __asm__ volatile ( \
    "990: nop\n.pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n" \
    "991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte 0\n" \
    ".asciz \"here\"\n.asciz \"" name "\"\n.asciz \"8@$" number "\"\n994: .balign 4\n.popsection\n" \
    ".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
    ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n")
int main(void) { PROBE("begin", "7"); PROBE("end", "8"); return 0; }
"#;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn probes_of_a_program_are_found() {
        let scratch = tempfile::tempdir().expect("scratch");
        let (source, program) = (scratch.path().join("p.c"), scratch.path().join("p"));
        std::fs::write(&source, SOURCE).expect("scratch");
        let built = std::process::Command::new("cc").arg(&source).arg("-o").arg(&program).status();
        assert!(built.expect("a C compiler").success());
        let names = |globs: &[&str]| {
            let globs: Vec<String> = globs.iter().map(|g| (*g).to_owned()).collect();
            find(Some(&program), &globs)
                .map(|found| found.probes.into_iter().map(|p| p.event).collect::<Vec<_>>())
        };
        assert_eq!(names(&["here:*"]).unwrap(), ["usdt:here:begin", "usdt:here:end"]);
        assert_eq!(names(&["here:e*", "*:end"]).unwrap(), ["usdt:here:end"]);
        let by_file = format!("{}:here:begin", program.display());
        assert_eq!(names(&[&by_file]).unwrap(), ["usdt:here:begin"]);
        let wrong = names(&["there:*"]).unwrap_err().to_string();
        assert!(wrong.contains("`there:*`") && wrong.contains("here:begin, here:end"), "{wrong}");
        for form in ["begin", ":begin", "here:", "::a"] {
            assert_eq!(names(&[form]).unwrap_err(), Error::Form(form.to_owned()));
        }
        // Two that are said to be the ends of a range are recorded both, also of a file.
        assert_eq!(names(&["here:begin..end"]).unwrap(), ["usdt:here:begin", "usdt:here:end"]);
        let by_file = format!("{}:here:end..begin", program.display());
        let found = find(Some(&program), &["here:*".to_owned(), by_file]).unwrap();
        assert_eq!(
            (found.probes.len(), found.pairs),
            (2, vec![["here:end", "here:begin"].map(str::to_owned)])
        );
        assert!(matches!(names(&["here:begin..missing"]), Err(Error::Nothing { .. })));
        for form in ["here:begin..", "here:..end", "here:b*..end", "here:begin..begin", "here:a..b..c"] {
            assert_eq!(names(&[form]).unwrap_err(), Error::Form(form.to_owned()));
        }
        // The instruction is there: a nop.
        let bytes = std::fs::read(&program).expect("a program");
        for probe in find(Some(&program), &["here:*".to_owned()]).unwrap().probes {
            assert_eq!((bytes[probe.offset as usize], probe.semaphore, probe.arguments.len()), (0x90, 0, 1));
        }
        // Any damage is survived.
        for at in (0..bytes.len()).step_by(97) {
            let mut broken = bytes.clone();
            broken[at] ^= 0xff;
            let _ = read(broken.as_slice(), &program);
            let _ = read(&bytes[..at], &program);
        }
    }
}
