//! Who may read a trace: it has command lines, arguments and sources in it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Readers of a trace, whatever the umask says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Its owner: folders 0700, files 0600.
    #[default]
    Owner,
    /// The group, too: folders 0750, files 0640.
    Group,
}

/// Bits that a folder inherits from the one above it, and keeps.
const SPECIAL: u32 = 0o7000;

impl Access {
    fn folder_mode(self) -> u32 {
        match self {
            Access::Owner => 0o700,
            Access::Group => 0o750,
        }
    }

    fn file_mode(self) -> u32 {
        match self {
            Access::Owner => 0o600,
            Access::Group => 0o640,
        }
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// When there is something of that name, or the system refuses.
    pub fn make_folder(self, path: &Path) -> io::Result<()> {
        let mode = self.folder_mode();
        DirBuilder::new().mode(mode).create(path)?;
        // The umask may have taken bits away; of nobody else's folder, as this one is new.
        let now = fs::symlink_metadata(path)?.permissions().mode();
        if now & 0o777 != mode {
            fs::set_permissions(path, Permissions::from_mode(now & SPECIAL | mode))?;
        }
        Ok(())
    }

    /// Makes a folder if there is none.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn need_folder(self, path: &Path) -> io::Result<()> {
        match self.make_folder(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            result => result,
        }
    }

    /// Makes a file that is not there yet, to write to.
    ///
    /// # Errors
    /// When there is something of that name, or the system refuses.
    pub fn make_file(self, path: &Path) -> io::Result<File> {
        self.prepare(OpenOptions::new().write(true).create_new(true), path)
    }

    /// Writes a whole file, and replaces one that is there.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write(self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.prepare(OpenOptions::new().write(true).create(true).truncate(true), path)?;
        file.write_all(bytes)
    }

    fn prepare(self, options: &mut OpenOptions, path: &Path) -> io::Result<File> {
        let mode = self.file_mode();
        // Never through a link, and not waiting for the reader of a pipe.
        let file = options.mode(mode).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
        if file.metadata()?.permissions().mode() & 0o777 != mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        Ok(file)
    }
}
