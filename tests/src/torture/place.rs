//! Where a case runs: who runs it, and files which that user can read.

use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use super::case::Api;
use crate::platform::Platform;
use crate::{fake, hetrace};

/// `nobody`, on every Linux.
const NOBODY: u32 = 65534;

/// Who runs the program and its launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Whoever runs this.
    Current,
    /// A user without privileges: whoever runs this, or `nobody` if that is root.
    Ordinary,
}

/// Programs, hetrace and its libraries, readable by the user.
#[derive(Debug)]
pub struct Place {
    /// `root` or `user`.
    pub user: &'static str,
    /// The command before all others that makes it this user.
    pub become_user: Vec<OsString>,
    /// `hetrace`.
    pub hetrace: PathBuf,
    opencl: PathBuf,
    driver: PathBuf,
    switched: bool,
    /// Copies, if this is not who runs this.
    _copies: Option<TempDir>,
}

impl Place {
    /// The place of a user, made once in this process.
    ///
    /// # Errors
    /// Why there is no such user here.
    pub fn shared(user: User) -> Result<&'static Place, String> {
        static CURRENT: OnceLock<Place> = OnceLock::new();
        static ORDINARY: OnceLock<Result<Place, String>> = OnceLock::new();
        match user {
            User::Ordinary if am_root() => ORDINARY.get_or_init(ordinary).as_ref().map_err(Clone::clone),
            _ => Ok(CURRENT.get_or_init(current)),
        }
    }

    /// A scratch folder that the user can write in.
    pub fn scratch(&self) -> TempDir {
        let scratch = TempDir::new().expect("a scratch folder");
        if self.switched {
            chown(scratch.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        scratch
    }

    /// The file of a torture program.
    pub fn program(&self, api: Api, name: &str) -> PathBuf {
        match api {
            Api::OpenCl => self.opencl.join(name),
            Api::Cuda => self.driver.join(name),
        }
    }

    /// Variables of the program and of hetrace.
    pub fn environment(&self, api: Api, scratch: &Path) -> Vec<(String, OsString)> {
        let mut all: Vec<(String, OsString)> = vec![("HOME".to_owned(), scratch.into())];
        match api {
            Api::OpenCl => {
                let variables = Platform::Pocl.environment(scratch);
                all.extend(variables.into_iter().map(|(name, value)| (name, value.into())));
            }
            Api::Cuda => {
                all.push(("LD_LIBRARY_PATH".to_owned(), self.driver.clone().into()));
                all.push(("FAKE_CUDA_DEVICES".to_owned(), "3".into()));
                all.push(("HETRACE_CUPTI".to_owned(), self.driver.join("libcupti.so.13").into()));
            }
        }
        all
    }
}

fn am_root() -> bool {
    // Of a process's own folder in /proc the owner is its effective user.
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

fn current() -> Place {
    let (opencl, driver) = built();
    Place {
        user: if am_root() { "root" } else { "user" },
        become_user: Vec::new(),
        hetrace: hetrace(),
        opencl,
        driver,
        switched: false,
        _copies: None,
    }
}

/// Copies what `nobody` may not reach where it was built.
fn ordinary() -> Result<Place, String> {
    let id = NOBODY.to_string();
    let become_user: Vec<OsString> =
        ["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups", "--"].map(OsString::from).into();
    let done = Command::new(&become_user[0]).args(&become_user[1..]).arg("true").output();
    if !done.is_ok_and(|d| d.status.success()) {
        return Err("setpriv can't start a program as nobody".to_owned());
    }
    let copies = TempDir::new().map_err(|e| e.to_string())?;
    let here = current();
    let from = here.hetrace.parent().expect("it lies in a folder");
    let at = |name: &str| copies.path().join(name);
    let libraries =
        |name: &str| name == "hetrace" || name.starts_with("libhetrace_") && name.ends_with(".so");
    copy(from, &at("bin"), libraries).map_err(|e| e.to_string())?;
    copy(&here.opencl, &at("opencl"), |_| true).map_err(|e| e.to_string())?;
    copy(&here.driver, &at("cuda"), |_| true).map_err(|e| e.to_string())?;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(copies.path(), open).map_err(|e| e.to_string())?;
    Ok(Place {
        user: "user",
        become_user,
        hetrace: at("bin/hetrace"),
        opencl: at("opencl"),
        driver: at("cuda"),
        switched: true,
        _copies: Some(copies),
    })
}

fn copy(from: &Path, to: &Path, chosen: impl Fn(&str) -> bool) -> std::io::Result<()> {
    let mode = std::fs::Permissions::from_mode;
    std::fs::create_dir(to)?;
    std::fs::set_permissions(to, mode(0o755))?;
    for entry in std::fs::read_dir(from)?.flatten() {
        if entry.file_type()?.is_file() && chosen(&entry.file_name().to_string_lossy()) {
            let copied = to.join(entry.file_name());
            std::fs::copy(entry.path(), &copied)?;
            std::fs::set_permissions(&copied, mode(0o755))?;
        }
    }
    Ok(())
}

/// The programs for OpenCL, and those for CUDA in the folder of the driver that they need.
fn built() -> (PathBuf, PathBuf) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Tests that run at the same time build their own: none executes what another one links.
    let driver = fake::driver().to_owned();
    let opencl = driver.join("torture");
    let done = Command::new("make")
        .args(["-s", "-C"])
        .arg(root.join("programs/torture"))
        .arg(format!("OUT={}", opencl.display()))
        .arg(format!("DRIVER={}", driver.display()))
        .output()
        .expect("make: run scripts/install-deps.sh");
    assert!(done.status.success(), "torture programs: {}", String::from_utf8_lossy(&done.stderr));
    (opencl, driver)
}
