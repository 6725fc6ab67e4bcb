//! Files of the kernel that are read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Size of a buffer at first; it grows to what the file has.
const FIRST: usize = 4096;
/// A file of the kernel that has more than this is none that we know.
const MOST: usize = 16 << 20;

/// A file that stays open and is read from its beginning each time, by one system call if it is small.
#[derive(Debug)]
pub(super) struct Reread {
    path: PathBuf,
    file: Option<File>,
    keep: bool,
    buffer: Vec<u8>,
}

impl Reread {
    /// Returns a file that is opened when it is read. With `keep` it stays open.
    pub fn new(path: PathBuf, keep: bool) -> Self {
        Reread { path, file: None, keep, buffer: Vec::new() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all of it. A file that can't be read is opened anew the next time: a processor that comes back
    /// has new files at the old places.
    ///
    /// # Errors
    /// When it can't be opened or read, or does not end.
    pub fn read(&mut self) -> io::Result<&str> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        let mut filled = 0;
        loop {
            if filled == self.buffer.len() {
                if filled >= MOST {
                    return Err(io::Error::other("has no end"));
                }
                self.buffer.resize((filled * 2).max(FIRST), 0);
            }
            let rest = self.buffer.get_mut(filled..).unwrap_or_default();
            match file.read_at(rest, filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.file = self.keep.then_some(file);
        let text = std::str::from_utf8(self.buffer.get(..filled).unwrap_or_default());
        text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is no text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_and_again_however_long_it_is() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("stat");
        let mut file = Reread::new(path.clone(), true);
        assert_eq!(file.read().unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, "one").unwrap();
        assert_eq!(file.read().unwrap(), "one");
        let long = "x".repeat(3 * FIRST + 1);
        std::fs::write(&path, &long).unwrap();
        assert_eq!(file.read().unwrap(), long);
        std::fs::write(&path, "").unwrap();
        assert_eq!(file.read().unwrap(), "");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(file.read().is_err());
    }

    #[test]
    fn one_that_is_not_kept_is_opened_each_time() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("frequency");
        std::fs::write(&path, "1").unwrap();
        let (mut kept, mut opened) = (Reread::new(path.clone(), true), Reread::new(path.clone(), false));
        assert_eq!((kept.read().unwrap(), opened.read().unwrap()), ("1", "1"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(kept.read().unwrap(), "1");
        assert!(opened.read().is_err());
    }
}
