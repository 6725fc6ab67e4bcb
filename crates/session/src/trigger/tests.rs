//! Expressions of a toy API: what they mean, what is wrong with them, when they fire.

mod commands;
mod errors;
mod firing;
mod grammar;

use std::sync::Arc;
use std::time::Duration;

use super::{Bound, Trigger, TriggerError, Watch};
use crate::apis::Found;
use crate::select::Selection;

const MODEL: &str = concat!(
    r#"{"api":"toy","registry":{"file":"toy.h","sha256":""},"interpose":{},"errors":"toyError","states":["BUSY"],"types":["#,
    r#"{"name":"toyError","kind":"int","size":4,"values":"toyError"},"#,
    r#"{"name":"size_t","kind":"uint","size":8},{"name":"char","kind":"int","size":1},"#,
    r#"{"name":"toyMem","kind":"handle","size":8},{"name":"toyBox","kind":"struct","size":16}],"#,
    r#""enums":[{"name":"toyError","values":[["OK",0],["BAD",-1],["BUSY",2]],"bits":false}],"info":{},"#,
    "\n\"functions\":[\n",
    r#"{"name":"toyFinish","roles":["sync"],"returns":"toyError","success":"return-zero","params":[]},"#,
    "\n",
    r#"{"name":"toyRead","roles":["read"],"returns":"toyError","success":"return-zero","params":["#,
    r#"{"name":"label","type":"const char *","base":"char","pointers":1,"direction":"in","follow":{"how":"string","length":null}},"#,
    r#"{"name":"size","type":"size_t","base":"size_t","pointers":0,"direction":"none","follow":{"how":"value"}},"#,
    r#"{"name":"box","type":"toyBox","base":"toyBox","pointers":0,"direction":"none","follow":{"how":"value"}}]},"#,
    "\n",
    r#"{"name":"toyMake","roles":["create"],"returns":"toyMem","success":{"out-zero":"error"},"params":["#,
    r#"{"name":"error","type":"toyError *","base":"toyError","pointers":1,"direction":"out","follow":{"how":"pointee"}}]},"#,
    "\n",
    r#"{"name":"toyGlue","roles":["glue"],"returns":"void","success":"always","params":[]}"#,
    "\n]}\n"
);

/// Numbers of the functions.
const FINISH: usize = 0;
const READ: usize = 1;
const MAKE: usize = 2;

fn bind(texts: &[&str]) -> Result<Bound, TriggerError> {
    bind_where(texts, true, 10)
}

fn bind_where(texts: &[&str], sampling: bool, most: u32) -> Result<Bound, TriggerError> {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let library = Found::of_model(&scratch.path().join("libtoy.so"), MODEL);
    let triggers = texts.iter().map(|text| text.parse()).collect::<Result<Vec<Trigger>, _>>()?;
    let selection = Selection { devices: true, ..Selection::default() };
    Bound::new(&triggers, &[library], &selection, sampling, most)
}

fn watch(text: &str) -> Watch {
    watch_with(text, 10)
}

fn watch_with(text: &str, most: u32) -> Watch {
    let bound = bind_where(&[text], true, most).unwrap_or_else(|error| panic!("{error}"));
    // The session has another API before it.
    Watch::new(&Arc::new(bound), &["other".into(), "toy".into()], Duration::from_secs(8))
}
