//! Archives made with tar: the tarball, the symbols and the Debian package.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use tar::{Builder, EntryType, Header};

use super::{DESCRIPTION, MAINTAINER, Package, SUMMARY, tree};

/// An archive that runs where it is unpacked.
pub fn tarball(package: &Package, out: &Path) -> Result<PathBuf> {
    let name = package.name();
    let files = package.tree.iter().map(|(path, e)| (format!("{name}/{path}"), &*e.bytes, e.program));
    written(out.join(format!("{name}.tar.gz")), &tar(files, package.date)?)
}

/// The symbols, to be unpacked in `/usr`.
pub fn symbols(package: &Package, symbols: &[(String, PathBuf)], out: &Path) -> Result<PathBuf> {
    let read: Result<Vec<_>> =
        symbols.iter().map(|(path, file)| Ok((path.clone(), fs::read(file)?))).collect();
    let read = read?;
    let files = read.iter().map(|(path, bytes)| (path.clone(), &**bytes, false));
    written(out.join(format!("{}-symbols.tar.gz", package.name())), &tar(files, package.date)?)
}

/// A Debian package: an `ar` archive of three members (deb(5)).
pub fn deb(package: &Package, out: &Path) -> Result<PathBuf> {
    let arch = match package.arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let files = tree::of_distribution(&package.tree)?;
    let size: usize = files.iter().map(|(_, bytes, _)| bytes.len().div_ceil(1024)).sum();
    let libgcc = if package.needs_libgcc { ", libgcc-s1 | libgcc1" } else { "" };
    let version = package.version;
    let control = format!(
        "Package: hetrace\nVersion: {version}\nArchitecture: {arch}\nMaintainer: {MAINTAINER}\nInstalled-Size: {size}\n\
         Depends: libc6 (>= {}){libgcc}\nSection: devel\nPriority: optional\nDescription: {SUMMARY}\n {DESCRIPTION}\n",
        package.glibc
    );
    let copyright = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
                     Upstream-Name: hetrace\n\nFiles: *\nCopyright: The hetrace developers\nLicense: Expat or Apache-2.0\n \
                     See LICENSE-MIT and LICENSE-APACHE in this folder; THIRD-PARTY.txt has the licences of the\n \
                     crates that are linked in.\n";
    let mut data: Vec<_> =
        files.iter().map(|(p, bytes, program)| (format!("./{p}"), *bytes, *program)).collect();
    data.push(("./usr/share/doc/hetrace/copyright".to_owned(), copyright.as_bytes(), false));
    data.sort();
    let control = tar([("./control".to_owned(), control.as_bytes(), false)].into_iter(), package.date)?;
    let data = tar(data.into_iter(), package.date)?;
    let mut ar = b"!<arch>\n".to_vec();
    for (name, bytes) in
        [("debian-binary", &b"2.0\n"[..]), ("control.tar.gz", &control), ("data.tar.gz", &data)]
    {
        let head =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", package.date, 0, 0, 100_644, bytes.len());
        ar.extend(head.as_bytes());
        ar.extend(bytes);
        if !bytes.len().is_multiple_of(2) {
            ar.push(b'\n');
        }
    }
    written(out.join(format!("hetrace_{version}_{arch}.deb")), &ar)
}

/// A compressed archive of these files and the folders that they lie in.
fn tar<'f>(files: impl Iterator<Item = (String, &'f [u8], bool)>, date: u32) -> Result<Vec<u8>> {
    let mut archive = Builder::new(Vec::new());
    let mut folders = BTreeSet::new();
    for (path, bytes, program) in files {
        for (end, _) in path.match_indices('/') {
            let folder = &path[..=end];
            if folder != "./" && folders.insert(folder.to_owned()) {
                archive.append_data(&mut header(EntryType::Directory, 0, 0o755, date), folder, &[][..])?;
            }
        }
        let mode = if program { 0o755 } else { 0o644 };
        archive.append_data(&mut header(EntryType::Regular, bytes.len(), mode, date), path, bytes)?;
    }
    tree::gzip(&archive.into_inner()?)
}

fn header(kind: EntryType, size: usize, mode: u32, date: u32) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size as u64);
    header.set_mode(mode);
    header.set_mtime(date.into());
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn written(path: PathBuf, bytes: &[u8]) -> Result<PathBuf> {
    fs::write(&path, bytes)?;
    Ok(path)
}
