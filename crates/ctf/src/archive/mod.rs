//! Tar archives: a whole trace in one file, whose members are read in place.
//!
//! ```text
//! archive   | header | data, filled up to 512 | header | data | ... | 1024 bytes of 0 |
//! member    the bytes of `data`, at a multiple of 512: what is not compressed can be mapped
//! ```
//! The form is POSIX.1-2001's (`ustar` with `pax` records for long names and large
//! sizes), which every `tar` reads. What GNU tar writes is read, too: numbers to base
//! 256 and long names. A packed trace has a list of its files in front ([`List`]). What is a hard link is there under both
//! names. Symbolic links and devices are no part of a trace and passed over.

mod header;
mod list;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use header::{Extended, Header, Kind, pax};
pub use header::{header, header_up_to, link};
pub use list::{List, Listed};

/// How the names of compressed files end, of those in an archive and of those in a folder.
pub const PACKED: &str = ".zst";

/// Bytes of a block: everything begins at a multiple of it.
pub const BLOCK: usize = 512;

/// What an archive ends with.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// Longest record of names and sizes before a member.
const MAX_EXTENSION: usize = 1 << 20;

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its path, as it stands.
    pub name: String,
    /// Its size, as it stands.
    pub size: u64,
    /// Where its bytes are: fewer than `size` if the archive is cut.
    pub range: Range<usize>,
}

/// What is wrong with an archive. Reading goes on behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// No header where one should be.
    Header {
        /// Where.
        offset: usize,
        /// Where the next one is; none if there is none.
        resume: Option<usize>,
    },
    /// The end comes within a member.
    Cut {
        /// Its path.
        name: String,
        /// Its size, as it stands.
        size: u64,
        /// How much of it is there.
        have: u64,
    },
    /// A link to what is not there.
    Link {
        /// Its path.
        name: String,
        /// What it leads to.
        to: String,
    },
    /// The file's end comes without the archive's: members may be missing.
    NoEnd,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { offset, resume: Some(resume) } => {
                write!(f, "damaged at byte {offset}; the next file begins at byte {resume}")
            }
            Self::Header { offset, resume: None } => {
                write!(f, "damaged at byte {offset}; what follows is lost")
            }
            Self::Cut { name, size, have } => {
                write!(f, "cut off: {have} of {size} bytes of {name} are there")
            }
            Self::Link { name, to } => write!(f, "{name} is a link to {to}, which is missing"),
            Self::NoEnd => f.write_str("cut off: files may be missing at its end"),
        }
    }
}

/// Returns whether bytes begin as an archive does.
pub fn is_archive(start: &[u8]) -> bool {
    start.get(..BLOCK).is_some_and(|block| Header::parse(block).is_some())
}

/// Returns the files in an archive, in their order, and what is wrong with it.
pub fn members(bytes: &[u8]) -> (Vec<Member>, Vec<Damage>) {
    let (mut members, mut damages, mut links) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    // What records before a header say of it.
    let mut said = Extended::default();
    loop {
        let Some(block) = bytes.get(at..).and_then(|rest| rest.get(..BLOCK)) else {
            damages.push(Damage::NoEnd);
            break;
        };
        if is_zero(block) {
            let next = &bytes[at + BLOCK..];
            // One block of zeros is an end, too, if nothing follows.
            if next.get(..BLOCK).is_none_or(is_zero) {
                break;
            }
            at += BLOCK;
            continue;
        }
        let Some(header) = Header::parse(block) else {
            let resume = next_header(bytes, at);
            damages.push(Damage::Header { offset: at, resume });
            let Some(resume) = resume else { break };
            (at, said) = (resume, Extended::default());
            continue;
        };
        let data = at + BLOCK;
        let there = bytes.len() - data;
        let (extends, len) = match header.kind {
            Kind::Pax | Kind::LongName | Kind::LongLink | Kind::Other => (true, header.size),
            Kind::Empty | Kind::Link => (false, 0),
            Kind::File => (false, said.size.unwrap_or(header.size)),
        };
        let have = usize::try_from(len).unwrap_or(usize::MAX).min(there);
        let content = &bytes[data..data + have];
        match header.kind {
            Kind::Pax if have <= MAX_EXTENSION => pax(content, &mut said),
            Kind::LongName if have <= MAX_EXTENSION => said.name = Some(long_name(content)),
            Kind::LongLink if have <= MAX_EXTENSION => said.to = Some(long_name(content)),
            Kind::Pax | Kind::LongName | Kind::LongLink | Kind::Other => {}
            Kind::File | Kind::Link | Kind::Empty => {
                let Extended { name, to, .. } = std::mem::take(&mut said);
                let name = name.unwrap_or(header.name);
                if (have as u64) < len {
                    damages.push(Damage::Cut { name: name.clone(), size: len, have: have as u64 });
                }
                match header.kind {
                    Kind::File => members.push(Member { name, size: len, range: data..data + have }),
                    Kind::Link => links.push((name, to.unwrap_or(header.to))),
                    _ => {}
                }
            }
        }
        if (have as u64) < len {
            if extends {
                damages.push(Damage::NoEnd);
            }
            break;
        }
        at = data + have.next_multiple_of(BLOCK);
    }
    damages.extend(follow(links, &mut members));
    (members, damages)
}

/// Adds files that are links to others, by their names. Returns those that lead to nothing.
fn follow(links: Vec<(String, String)>, members: &mut Vec<Member>) -> Vec<Damage> {
    let mut damages = Vec::new();
    if links.is_empty() {
        return damages;
    }
    let mut known: HashMap<String, usize> = HashMap::new();
    known.extend(members.iter().enumerate().map(|(at, member)| (member.name.clone(), at)));
    for (name, to) in links {
        let Some((at, of)) = known.get(&to).and_then(|at| Some((*at, members.get(*at)?.clone()))) else {
            damages.push(Damage::Link { name, to });
            continue;
        };
        known.insert(name.clone(), at);
        members.push(Member { name, ..of });
    }
    damages
}

/// Returns where the first block after that at `at` starts which is a header.
fn next_header(bytes: &[u8], at: usize) -> Option<usize> {
    let mut blocks = (at / BLOCK + 1..bytes.len() / BLOCK).map(|block| block * BLOCK);
    blocks.find(|&next| is_archive(&bytes[next..]))
}

/// Returns the name in the content of a long name record, up to its NUL.
fn long_name(content: &[u8]) -> String {
    let end = content.iter().position(|&b| b == 0).unwrap_or(content.len());
    String::from_utf8_lossy(&content[..end]).into_owned()
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|&b| b == 0)
}

/// Returns how many bytes of 0 follow a member of so many bytes.
pub fn padding(size: u64) -> usize {
    (size.wrapping_neg() % BLOCK as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, content) in files {
            bytes.extend(header(name, content.len() as u64, 0));
            bytes.extend_from_slice(content);
            bytes.resize(bytes.len() + padding(content.len() as u64), 0);
        }
        bytes.extend(END);
        bytes
    }

    fn contents(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
        members(bytes).0.into_iter().map(|m| (m.name, bytes[m.range].to_vec())).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        let long = format!("{}/{}", "d".repeat(90), "f".repeat(120));
        let umlaut = "ä".repeat(60);
        let files: [(&str, &[u8]); 5] =
            [("a", b"1"), ("b/c", &[7; 512]), ("empty", b""), (&long, b"2"), (&umlaut, &[0; 1025])];
        let bytes = archive(&files);
        let expected: Vec<_> = files.iter().map(|(n, c)| ((*n).to_owned(), c.to_vec())).collect();
        assert_eq!(contents(&bytes), expected);
        assert_eq!(members(&bytes).1, []);
        for member in members(&bytes).0 {
            assert_eq!(member.range.start % BLOCK, 0);
        }
    }

    #[test]
    fn a_link_has_what_it_leads_to() {
        let long = "d/".repeat(80);
        let mut bytes = archive(&[("a", b"1"), (&long, b"2")]);
        bytes.truncate(bytes.len() - END.len());
        for (name, to) in [("b", "a"), ("c", "b"), (&*format!("{long}x"), &*long), ("e", "none")] {
            bytes.extend(link(name, to, 0));
        }
        bytes.extend(END);
        let expected = [("a", "1"), (&long, "2"), ("b", "1"), ("c", "1"), (&format!("{long}x"), "2")];
        let found: Vec<_> = contents(&bytes);
        let found: Vec<_> =
            found.iter().map(|(name, text)| (name.as_str(), std::str::from_utf8(text).unwrap())).collect();
        assert_eq!(found, expected);
        assert_eq!(members(&bytes).1, [Damage::Link { name: "e".into(), to: "none".into() }]);
    }

    #[test]
    fn truncation_is_reported() {
        let bytes = archive(&[("a", b"1"), ("b", &[7; 700])]);
        assert_eq!(members(&bytes[..1536 + 100]).1, [Damage::Cut { name: "b".into(), size: 700, have: 100 }]);
        assert_eq!(members(&bytes[..1024]).1, [Damage::NoEnd]);
        assert_eq!(members(&bytes[..1100]).1, [Damage::NoEnd]);
        assert_eq!(contents(&bytes[..1600])[0].0, "a");
    }

    #[test]
    fn a_damaged_header_hides_one_file() {
        let mut bytes = archive(&[("a", b"1"), ("b", b"2"), ("c", b"3")]);
        bytes[1024] ^= 1;
        assert_eq!(members(&bytes).1, [Damage::Header { offset: 1024, resume: Some(2048) }]);
        let names: Vec<_> = contents(&bytes).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "c"]);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(
            mut changes in proptest::collection::vec((0usize..6000, proptest::num::u8::ANY), 0..20),
            keep in 0usize..6000,
        ) {
            let long = "x/".repeat(130);
            let mut bytes = archive(&[("a", &[1; 600]), (&long, b"2"), ("c", &[0; 1200])]);
            // A huge size with a valid sum, too.
            bytes.splice(0..0, header("huge", u64::MAX, 0));
            bytes.extend(link("d", "a", 0));
            bytes.truncate(keep);
            changes.retain(|(at, _)| *at < bytes.len());
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            let (members, _) = members(&bytes);
            for member in members {
                proptest::prop_assert!(member.range.end <= bytes.len());
            }
        }
    }
}
