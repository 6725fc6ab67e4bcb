//! The list of files that a packed trace begins with: what was packed, and how.
//!
//! ```text
//! hetrace pack 1
//! SIZE zstd NAME      it is there as NAME.zst and has SIZE bytes without compression
//! SIZE plain NAME     it is there as it was
//! ```

use super::PACKED;

/// The first line.
const TITLE: &str = "hetrace pack 1";

/// A file that was packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its path in the trace's folder, as it was.
    pub name: String,
    /// Its size as it was.
    pub size: u64,
    /// Whether it is compressed now and was not before.
    pub compressed: bool,
}

impl Listed {
    /// Its path in the archive, below the trace's folder.
    pub fn member(&self) -> String {
        if self.compressed { format!("{}{PACKED}", self.name) } else { self.name.clone() }
    }
}

/// All that was packed, in the order in which it follows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// The files.
    pub files: Vec<Listed>,
}

impl List {
    /// Where it is, below the trace's folder.
    pub const NAME: &str = "hetrace/packed";

    /// Its text. Names must not have line feeds.
    pub fn to_text(&self) -> String {
        let line = |f: &Listed| {
            let form = if f.compressed { "zstd" } else { "plain" };
            format!("{} {form} {}\n", f.size, f.name)
        };
        format!("{TITLE}\n{}", self.files.iter().map(line).collect::<String>())
    }

    /// Reads a list; none if this is none, or one of another version.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let mut lines = text.split_terminator('\n');
        (lines.next()? == TITLE).then_some(())?;
        let line = |line: &str| {
            let (size, rest) = line.split_once(' ')?;
            let (form, name) = rest.split_once(' ')?;
            let compressed = match form {
                "zstd" => true,
                "plain" => false,
                _ => return None,
            };
            Some(Listed { name: name.to_owned(), size: size.parse().ok()?, compressed })
        };
        Some(Self { files: lines.map(line).collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_both_ways() {
        let listed = |name: &str, size, compressed| Listed { name: name.into(), size, compressed };
        let files = vec![listed("a b", 7, true), listed("b.zst", u64::MAX, false)];
        let list = List { files };
        assert_eq!(list.to_text(), "hetrace pack 1\n7 zstd a b\n18446744073709551615 plain b.zst\n");
        assert_eq!(List::parse(list.to_text().as_bytes()), Some(list.clone()));
        assert_eq!(list.files[0].member(), "a b.zst");
        for wrong in ["", "hetrace pack 2\n", "hetrace pack 1\nx zstd a\n", "hetrace pack 1\n1 gzip a\n"] {
            assert_eq!(List::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
