//! Which OpenCL implementations a program sees.

use std::path::Path;

/// A choice of implementations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// PoCL alone.
    Pocl,
    /// Oclgrind alone.
    Oclgrind,
    /// Both.
    Both,
}

const OCLGRIND: &str = "/usr/lib/oclgrind/liboclgrind-rt-icd.so";

impl Platform {
    /// Environment for a program that shall see these; `scratch` is a folder
    /// for the loader's list.
    pub fn environment(self, scratch: &Path) -> Vec<(String, String)> {
        let vendors = scratch.join(format!("vendors-{self:?}"));
        std::fs::create_dir_all(&vendors).expect("a scratch folder");
        let put = |name: &str, library: &str| {
            std::fs::write(vendors.join(name), format!("{library}\n")).expect("a scratch file");
        };
        if self != Platform::Oclgrind {
            put("a.icd", "libpocl.so.2");
        }
        if self != Platform::Pocl {
            assert!(Path::new(OCLGRIND).exists(), "no {OCLGRIND}: run scripts/install-deps.sh");
            put("b.icd", OCLGRIND);
        }
        vec![("OCL_ICD_VENDORS".to_owned(), vendors.display().to_string())]
    }
}
