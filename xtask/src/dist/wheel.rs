//! The Python wheel: `pip install` puts the command on the PATH, and its libraries into the same environment
//! (the wheel format, PEP 427; the platform's name, PEP 600).

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::{DESCRIPTION, Package, SUMMARY};
use crate::repo;

/// Writes it. One for this machine only does not claim to run with older C libraries.
pub fn write(package: &Package, out: &Path, native: bool) -> Result<PathBuf> {
    let (version, arch) = (package.version, package.arch);
    let tag = if native {
        format!("py3-none-linux_{arch}")
    } else {
        format!("py3-none-manylinux_{}_{}_{arch}", package.glibc.0, package.glibc.1)
    };
    let path = out.join(format!("hetrace-{version}-{tag}.whl"));
    let mut wheel = Wheel { zip: ZipWriter::new(File::create(&path)?), record: String::new() };
    let data = format!("hetrace-{version}.data");
    let info = format!("hetrace-{version}.dist-info");
    for (file, entry) in &package.tree {
        let place = match file.strip_prefix("bin/") {
            Some(program) => format!("{data}/scripts/{program}"),
            None => format!("{data}/data/{file}"),
        };
        wheel.add(&place, &entry.bytes, entry.program)?;
    }
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        wheel.add(
            &format!("{info}/licenses/{licence}"),
            &std::fs::read(repo::root().join(licence))?,
            false,
        )?;
    }
    let metadata = format!(
        "Metadata-Version: 2.4\nName: hetrace\nVersion: {version}\nSummary: {SUMMARY}\n\
         License-Expression: MIT OR Apache-2.0\nLicense-File: LICENSE-MIT\nLicense-File: LICENSE-APACHE\n\
         Classifier: Environment :: GPU\nClassifier: Operating System :: POSIX :: Linux\n\
         Classifier: Topic :: Software Development :: Debuggers\n\n{DESCRIPTION}\n"
    );
    wheel.add(&format!("{info}/METADATA"), metadata.as_bytes(), false)?;
    let about = format!("Wheel-Version: 1.0\nGenerator: hetrace-xtask\nRoot-Is-Purelib: false\nTag: {tag}\n");
    wheel.add(&format!("{info}/WHEEL"), about.as_bytes(), false)?;
    let record = format!("{}{info}/RECORD,,\n", wheel.record);
    wheel.add(&format!("{info}/RECORD"), record.as_bytes(), false)?;
    wheel.zip.finish()?;
    Ok(path)
}

struct Wheel {
    zip: ZipWriter<File>,
    /// One line for each file, as `RECORD` has it.
    record: String,
}

impl Wheel {
    /// All files bear the first date that a zip file can have: installers set their own.
    fn add(&mut self, path: &str, bytes: &[u8], program: bool) -> Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(if program { 0o755 } else { 0o644 });
        self.zip.start_file(path, options)?;
        self.zip.write_all(bytes)?;
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
        self.record += &format!("{path},sha256={digest},{}\n", bytes.len());
        Ok(())
    }
}
