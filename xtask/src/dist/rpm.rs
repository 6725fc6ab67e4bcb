//! The RPM.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rpm::{BuildConfig, CompressionType, Dependency, FileOptions, PackageBuilder};

use super::{DESCRIPTION, Package, SUMMARY, tree};

/// Writes it.
pub fn write(package: &Package, out: &Path) -> Result<PathBuf> {
    let (version, arch) = (package.version, package.arch);
    let config = BuildConfig::default().source_date(package.date).compression(CompressionType::Gzip);
    let mut builder = PackageBuilder::new("hetrace", version, "MIT OR Apache-2.0", arch, SUMMARY);
    builder.using_config(config).release("1").build_host("localhost").description(DESCRIPTION);
    builder.requires(Dependency::any(format!("libc.so.6(GLIBC_{})(64bit)", package.glibc)));
    if package.needs_libgcc {
        builder.requires(Dependency::any("libgcc_s.so.1()(64bit)"));
    }
    for (path, bytes, program) in tree::of_distribution(&package.tree)? {
        let mode = if program { 0o755 } else { 0o644 };
        let options = FileOptions::new(format!("/{path}")).permissions(mode);
        let is_text = path.starts_with("usr/share/doc/") || path.starts_with("usr/share/man/");
        builder.with_file_contents(bytes, if is_text { options.doc() } else { options })?;
    }
    builder.with_dir_entry(FileOptions::dir("/usr/lib/hetrace").permissions(0o755))?;
    builder.with_dir_entry(FileOptions::dir("/usr/share/doc/hetrace").permissions(0o755))?;
    let path = out.join(format!("hetrace-{version}-1.{arch}.rpm"));
    builder.build()?.write_file(&path)?;
    Ok(path)
}
