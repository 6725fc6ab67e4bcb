//! Headers of members, both ways.

use super::BLOCK;

/// Where the sum over the header stands in it.
const SUM: std::ops::Range<usize> = 148..156;
/// The largest size that fits.
const MAX_OCTAL: u64 = 0o777_7777_7777;
/// Longest name that fits.
const NAME: usize = 100;

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file.
    File,
    /// A file that is there under another name, too.
    Link,
    /// Something without content: a folder, a symbolic link, a device.
    Empty,
    /// Records on the next member.
    Pax,
    /// The name of the next member, as GNU tar writes it.
    LongName,
    /// What the next member leads to, as GNU tar writes it.
    LongLink,
    /// Something with content that is no file.
    Other,
}

/// A header, read.
#[derive(Debug)]
pub(super) struct Header {
    pub name: String,
    /// Of a link, what it leads to.
    pub to: String,
    pub size: u64,
    pub kind: Kind,
}

impl Header {
    /// Reads a block; none if it is no header.
    pub fn parse(block: &[u8]) -> Option<Self> {
        let block: &[u8; BLOCK] = block.try_into().ok()?;
        if &block[257..262] != b"ustar" || number(&block[SUM])? != sum(block) {
            return None;
        }
        let text = |range: std::ops::Range<usize>| {
            let field = &block[range];
            let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
            String::from_utf8_lossy(&field[..end]).into_owned()
        };
        let name = text(0..NAME);
        // GNU's own form has times where POSIX has the begin of a long name.
        let prefix = if block[262] == 0 { text(345..500) } else { String::new() };
        Some(Self {
            name: if prefix.is_empty() { name } else { format!("{prefix}/{name}") },
            to: text(157..257),
            size: number(&block[124..136])?,
            kind: match block[156] {
                0 | b'0' | b'7' => Kind::File,
                b'1' => Kind::Link,
                b'2'..=b'6' => Kind::Empty,
                b'x' => Kind::Pax,
                b'L' => Kind::LongName,
                b'K' => Kind::LongLink,
                _ => Kind::Other,
            },
        })
    }
}

/// Octal digits, or GNU's numbers to base 256.
fn number(field: &[u8]) -> Option<u64> {
    if field.first()? & 0x80 != 0 {
        let (large, small) = field.split_at(field.len().checked_sub(8)?);
        let fits = large.iter().enumerate().all(|(i, &b)| b == if i == 0 { 0x80 } else { 0 });
        return fits.then(|| small.iter().fold(0, |n, &b| n << 8 | u64::from(b)));
    }
    let digits = field.iter().skip_while(|&&b| b == b' ').take_while(|&&b| b != b' ' && b != 0);
    digits
        .map(|&b| u64::from(b).checked_sub(u64::from(b'0')).filter(|&d| d < 8))
        .try_fold(0u64, |n, digit| n.checked_mul(8)?.checked_add(digit?))
}

fn sum(block: &[u8; BLOCK]) -> u64 {
    let byte = |(at, &b): (usize, &u8)| if SUM.contains(&at) { b' ' } else { b };
    block.iter().enumerate().map(|at| u64::from(byte(at))).sum()
}

/// What records before a header say of its member.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Extended {
    pub name: Option<String>,
    pub to: Option<String>,
    pub size: Option<u64>,
}

/// Adds what extended header records say.
pub(super) fn pax(mut records: &[u8], to: &mut Extended) {
    // LENGTH KEY=VALUE NEWLINE, where the length counts all of it.
    while let Some(space) = records.iter().position(|&b| b == b' ') {
        let length = std::str::from_utf8(&records[..space]).ok().and_then(|n| n.parse::<usize>().ok());
        let Some((record, rest)) = length
            .filter(|&n| n > space + 1 && n <= records.len())
            .map(|n| (&records[space + 1..n - 1], &records[n..]))
        else {
            break;
        };
        records = rest;
        if let Some(value) = record.strip_prefix(b"path=") {
            to.name = Some(String::from_utf8_lossy(value).into_owned());
        } else if let Some(value) = record.strip_prefix(b"linkpath=") {
            to.to = Some(String::from_utf8_lossy(value).into_owned());
        } else if let Some(value) = record.strip_prefix(b"size=") {
            to.size = std::str::from_utf8(value).ok().and_then(|n| n.parse().ok()).or(to.size);
        }
    }
}

/// Returns what stands before the content of a file: its header, and before that records
/// of what does not fit in there. `mtime` is in seconds since 1970.
pub fn header(name: &str, size: u64, mtime: u64) -> Vec<u8> {
    header_up_to(name, size, mtime, size)
}

/// The same, as long as for any size of at most `most`: to be written before the size
/// is known, and over itself then.
pub fn header_up_to(name: &str, size: u64, mtime: u64, most: u64) -> Vec<u8> {
    let mut records = Vec::new();
    if name.len() > NAME {
        records.extend(record("path", name));
    }
    if size.max(most) > MAX_OCTAL {
        // All lengths must be equal, so all have the digits of the longest.
        records.extend(record("size", &format!("{size:020}")));
    }
    let mut bytes = extended(&records, mtime);
    bytes.extend(block((name, ""), size, mtime, b'0'));
    bytes
}

/// Returns what stands for a file that is there under the name `to` before.
pub fn link(name: &str, to: &str, mtime: u64) -> Vec<u8> {
    let mut records = Vec::new();
    for (key, value) in [("path", name), ("linkpath", to)] {
        if value.len() > NAME {
            records.extend(record(key, value));
        }
    }
    let mut bytes = extended(&records, mtime);
    bytes.extend(block((name, to), 0, mtime, b'1'));
    bytes
}

/// Returns the member that has records; nothing if there are none.
fn extended(records: &[u8], mtime: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if !records.is_empty() {
        bytes.extend(block(("pax-records", ""), records.len() as u64, mtime, b'x'));
        bytes.extend_from_slice(records);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    }
    bytes
}

fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    // The length counts its own digits.
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    format!("{length} {key}={value}\n").into_bytes()
}

fn block((name, to): (&str, &str), size: u64, mtime: u64, kind: u8) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, field: &[u8]| block[at..at + field.len()].copy_from_slice(field);
    put(0, &name.as_bytes()[..name.len().min(NAME)]);
    put(100, b"0000644");
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{:011o}", size.min(MAX_OCTAL)).as_bytes());
    put(136, format!("{:011o}", mtime.min(MAX_OCTAL)).as_bytes());
    put(156, &[kind]);
    put(157, &to.as_bytes()[..to.len().min(NAME)]);
    put(257, b"ustar\x0000");
    let sum = format!("{:06o}\0 ", sum(&block));
    block[SUM].copy_from_slice(sum.as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_kinds() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"  17 \0"), Some(15));
        assert_eq!(number(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]), Some(258));
        assert_eq!(number(b"00008"), None);
        assert_eq!(number(&[0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]), None);
    }

    #[test]
    fn records_count_their_own_length() {
        for n in 80..120 {
            let name = "n".repeat(n);
            let bytes = record("path", &name);
            let mut said = Extended::default();
            pax(&bytes, &mut said);
            assert_eq!(said, Extended { name: Some(name), ..Extended::default() });
            assert!(bytes.starts_with(bytes.len().to_string().as_bytes()));
        }
    }

    #[test]
    fn large_files_have_a_record() {
        let bytes = header("a", 1 << 40, 0);
        let records = &bytes[BLOCK..2 * BLOCK];
        let end = records.iter().position(|&b| b == 0).unwrap();
        let mut said = Extended::default();
        pax(&records[..end], &mut said);
        assert_eq!(said, Extended { size: Some(1 << 40), ..Extended::default() });
        assert_eq!(bytes.len(), header_up_to("a", 1, 0, 1 << 40).len());
    }
}
