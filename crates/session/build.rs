//! Collects what the launcher asks of the APIs of this source tree at each start, so that it need not read it from their
//! libraries ([`apis::known`](src/apis/known.rs)): how an API's library gets into programs, what of the machine they need,
//! and the flags of its functions in a run without options.
//!
//! A library that is not in this list, or is another than it was made from, is read: nothing has to be added here for
//! a new API.

#[allow(dead_code, reason = "the launcher uses all of it")]
#[path = "src/flags.rs"]
mod flags;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flags::Choice;
use hetrace_model::index::{Head, Index};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/flags.rs");
    let mut files: Vec<PathBuf> = fs::read_dir("../../apis")?
        .flatten()
        .map(|entry| entry.path().join("src/generated/index.txt"))
        .filter(|file| file.exists())
        .collect();
    files.sort();
    let mut indices = Vec::new();
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        let wrong = |error| io::Error::other(format!("{}: {error}", file.display()));
        indices.push(Index::parse(fs::read(&file)?).map_err(wrong)?);
    }
    indices.sort_by(|one, other| one.head.api.cmp(&other.head.api));
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let names: BTreeSet<&str> = indices.iter().flat_map(|index| needs(&index.head)).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let mut text = format!("const NAMES: [&CStr; {}] = [", names.len());
    names.iter().for_each(|name| _ = write!(text, "c{name:?}, "));
    let _ = write!(text, "];\nstatic APIS: [Known; {}] = [\n", indices.len());
    for index in &indices {
        text += &known(index, &names, &out)?;
    }
    fs::write(out.join("known.rs"), text + "];\n")
}

/// The libraries and files that programs of an API need one of, and its own libraries, by which a program that brings them
/// is known.
fn needs(head: &Head) -> impl Iterator<Item = &str> {
    head.interpose.requires.iter().chain(&head.interpose.libraries).map(String::as_str)
}

/// Returns an API as an element of the list, and writes the files that it names.
fn known(index: &Index, names: &[&str], out: &Path) -> io::Result<String> {
    let Head { api, interpose, model_bytes, .. } = &index.head;
    let beginning = format!("{api}.index");
    let flags = format!("{api}.flags");
    fs::write(out.join(&beginning), index.before_rows())?;
    fs::write(out.join(&flags), usual(index))?;
    let numbers = |needed: &[String]| {
        let numbers: Vec<_> =
            needed.iter().filter_map(|name| names.binary_search(&name.as_str()).ok()).collect();
        format!("{numbers:?}")
    };
    Ok(format!(
        "Known {{ api: {api:?}, file: c\"libhetrace_{api}.so\", requires: &{}, libraries: &{}, entrance: {},
            beginning: include_bytes!({:?}), flags: include_bytes!({:?}), mark: Checksum({:#x}),
            model_bytes: {model_bytes} }},\n",
        numbers(&interpose.requires),
        numbers(&interpose.libraries),
        entrance(&index.head),
        out.join(beginning),
        out.join(flags),
        hetrace_ctf::account::Checksum::of(index.before_rows()).0,
    ))
}

/// Returns the flags of an API's functions in a run without options.
fn usual(index: &Index) -> Vec<u8> {
    let of_kind = |kind| Choice::USUAL.of_kind(index.head.timing, &kind, true);
    index.by_kind(&index.kinds().map(of_kind).collect::<Vec<u8>>())
}

/// Returns how the API's library gets into programs.
fn entrance(head: &Head) -> String {
    let text = |text: &str| format!("Cow::Borrowed({text:?})");
    let maybe = |value: Option<String>| value.map_or("None".to_owned(), |value| format!("Some({value})"));
    let list = |texts: &[String]| {
        let texts: Vec<String> = texts.iter().map(|one| text(one)).collect();
        format!("{{ const TEXTS: &[Cow<'static, str>] = &[{}]; Cow::Borrowed(TEXTS) }}", texts.join(", "))
    };
    let interpose = &head.interpose;
    let word = |value: &Option<String>| maybe(value.as_deref().map(text));
    let tools = interpose.tools.as_ref().map(|tools| {
        let [variable, value] = &tools.refused;
        format!(
            "Tools {{ list: {}, refused: [{}, {}], entry: {}, mute: {} }}",
            text(&tools.list),
            text(variable),
            text(value),
            text(&tools.entry),
            list(&tools.mute),
        )
    });
    format!(
        "Entrance {{ title: {}, layer_variable: {}, layer_marker: {}, injection_variable: {}, tools: {}, code: {},
            libraries: {}, requires: {} }}",
        text(&head.title),
        word(&interpose.layer_variable),
        word(&interpose.layer_marker),
        word(&interpose.injection_variable),
        maybe(tools),
        word(&interpose.code),
        list(&interpose.libraries),
        list(&interpose.requires),
    )
}
