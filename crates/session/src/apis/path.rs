//! Where an open file is, as a path from the root without links in it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, readlinkat_raw};

/// Longest path that the kernel names, and one byte that shows that it was cut off.
const LONGEST: usize = 4096;
/// What the kernel puts behind the path of a file whose name is gone.
const GONE: &[u8] = b" (deleted)";

/// Returns where an open file is; where the kernel does not say, what is at the path by which it was opened.
///
/// # Errors
/// When neither can be found out.
pub(super) fn of_open(file: &File, opened: &dyn Fn() -> PathBuf) -> io::Result<Arc<Path>> {
    if let Some(path) = by_kernel(file) {
        return Ok(path);
    }
    opened().canonicalize().map(Arc::from)
}

fn by_kernel(file: &File) -> Option<Arc<Path>> {
    let link = link_of(file.as_raw_fd().cast_unsigned());
    let mut room = [MaybeUninit::<u8>::uninit(); LONGEST];
    let (path, _) = readlinkat_raw(CWD, std::ffi::CStr::from_bytes_until_nul(&link).ok()?, &mut room).ok()?;
    let is_one = path.first() == Some(&b'/') && path.len() < LONGEST && !path.ends_with(GONE);
    is_one.then(|| Arc::from(Path::new(OsStr::from_bytes(path))))
}

/// Returns the name of a descriptor's link, with a 0 behind it.
fn link_of(descriptor: u32) -> [u8; 28] {
    const FOLDER: &[u8] = b"/proc/self/fd/";
    let mut link = [0; 28];
    link[..FOLDER.len()].copy_from_slice(FOLDER);
    let (mut rest, digits) = (descriptor, descriptor.checked_ilog10().unwrap_or(0) as usize + 1);
    for place in link[FOLDER.len()..FOLDER.len() + digits].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_is_found_through_links_and_where_its_name_is_gone() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let real = folder.path().canonicalize().expect("a path").join("real");
        let link = folder.path().join("link");
        std::fs::write(&real, "").expect("a file");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        let file = File::open(&link).expect("a file");
        assert_eq!(by_kernel(&file).as_deref(), Some(&*real));
        assert_eq!(*of_open(&file, &|| link.clone()).expect("a path"), *real);
        // Another takes its place, as when it is installed anew.
        std::fs::rename(&real, folder.path().join("old")).expect("renamed");
        std::fs::remove_file(folder.path().join("old")).expect("removed");
        std::fs::write(&real, "new").expect("a file");
        assert_eq!(by_kernel(&file), None);
        assert_eq!(*of_open(&file, &|| link.clone()).expect("a path"), *real);
    }

    #[test]
    fn descriptors_are_named_as_the_kernel_names_them() {
        for descriptor in [0, 7, 10, 99, 100, u32::MAX] {
            let text = String::from_utf8(link_of(descriptor).to_vec()).expect("a text");
            assert_eq!(text.trim_end_matches('\0'), format!("/proc/self/fd/{descriptor}"));
        }
    }
}
