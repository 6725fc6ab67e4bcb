//! The models that a trace brings along, read by several threads: most of what a reading command does for a small
//! trace is to understand them.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use hetrace_ctf::account::{Account, Checksum};
use hetrace_ctf::read::Files;
use hetrace_format::files::MODELS;
use hetrace_model::{Function, Model};

use super::error::OpenError;

/// What stands before the lines of the functions in a model as `cargo xtask codegen` writes it, and behind them.
const FUNCTIONS: &str = "\"functions\":[\n";
const END: &str = "\n]}\n";
/// Between two functions' lines.
const BETWEEN: &str = "},\n{";
/// How much text one thread takes at a time: half a millisecond's work.
const PIECE: usize = 64 << 10;
/// Bytes of most functions' lines, at least.
const OF_A_LINE: usize = 200;
/// Threads beside the caller's: at most so many, and one for so many pieces that are hardly read.
const HELPERS: usize = 7;
const OF_A_HELPER: usize = 8;

/// Returns the names of the models' files, sorted.
pub(crate) fn model_names(files: &Files) -> Vec<String> {
    files.list(MODELS).into_iter().filter(|name| name.ends_with(".json")).collect()
}

/// Returns the model in a file; none if it is not there.
pub(crate) fn model(files: &Files, name: &str) -> Result<Option<Model>, OpenError> {
    Text::read(files, name, None)?.map(|text| text.whole()).transpose()
}

/// A model, or why there is none.
#[derive(Debug)]
pub struct ReadModel {
    /// The name of its file.
    pub file: String,
    /// None if the file is not there.
    pub model: Result<Option<Model>, OpenError>,
    /// The file is as the trace's account says, byte by byte.
    pub known: bool,
}

impl ReadModel {
    /// Where it is in the trace.
    pub fn path(&self) -> String {
        format!("{MODELS}/{}", self.file)
    }
}

/// Reads all models of a trace, in the order of their files' names. Of a model that is as the `account` says, functions,
/// types and enumerations are understood when somebody asks for them.
pub fn read_models(files: &Files, account: Option<&Account>) -> Vec<ReadModel> {
    let texts = model_names(files).into_iter().map(|name| (Text::read(files, &name, account), name));
    let texts: Vec<(Result<Option<Text>, OpenError>, String)> = texts.collect();
    let known = texts.iter().filter_map(|(text, _)| text.as_ref().ok()?.as_ref());
    let pieces = known.flat_map(|text| text.pieces.iter().map(move |range| Piece::of(text, range)));
    let pieces: Vec<Piece<'_>> = pieces.collect();
    let next = AtomicUsize::new(0);
    let work = || {
        // Relaxed: the number is all that is shared; results are handed over by their locks.
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            piece.read.get_or_init(|| piece.text.part(piece.range.clone()));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..helpers(&pieces) {
            // Where there can be no more threads, those that are there do all.
            drop(std::thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
    let results: Vec<_> = pieces.into_iter().map(|piece| piece.read.into_inner().flatten()).collect();
    let mut results = results.into_iter();
    let mut join = |text: Text| {
        let own = results.by_ref().take(text.pieces.len()).collect();
        text.join(own)
    };
    let models = texts.into_iter().map(|(text, file)| {
        let known = matches!(&text, Ok(Some(text)) if text.known);
        ReadModel { file, known, model: text.and_then(|text| text.map(&mut join).transpose()) }
    });
    models.collect()
}

/// How many threads are worth their start beside the caller's.
fn helpers(pieces: &[Piece<'_>]) -> usize {
    let whole = pieces.iter().filter(|piece| !piece.text.known).count();
    let hardly = (pieces.len() - whole) / OF_A_HELPER;
    (whole.saturating_sub(1) + hardly).min(HELPERS)
}

/// A part of a text, for one thread.
#[derive(Debug)]
struct Piece<'t> {
    text: &'t Text,
    range: Range<usize>,
    /// What it has, once it was read; none if it is not what it seems.
    read: OnceLock<Option<Part>>,
}

/// What a piece has.
#[derive(Debug)]
enum Part {
    /// What is before the functions' lines.
    Frame(Box<Model>),
    Functions(Vec<Function>),
}

impl<'t> Piece<'t> {
    fn of(text: &'t Text, range: &Range<usize>) -> Self {
        Self { text, range: range.clone(), read: OnceLock::new() }
    }
}

/// A model's text.
#[derive(Debug)]
struct Text {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Pieces that can each be understood alone: what is before the functions' lines, and these. None if the text has
    /// another form.
    pieces: Vec<Range<usize>>,
    /// It is as it was written.
    known: bool,
}

impl Text {
    fn read(files: &Files, name: &str, account: Option<&Account>) -> Result<Option<Self>, OpenError> {
        let name = format!("{MODELS}/{name}");
        let path = files.path().join(&name);
        let io = |source| OpenError::Ctf(hetrace_ctf::read::OpenError::Io { path: path.clone(), source });
        let Some(bytes) = files.read(&name).map_err(io)? else { return Ok(None) };
        let pieces = std::str::from_utf8(&bytes).map(pieces).unwrap_or_default();
        let written = account.and_then(|account| account.files.iter().find(|file| file.name == name));
        let checksum = written.and_then(|file| file.checksum);
        let known = checksum.is_some_and(|written| Checksum::of(&bytes) == written);
        Ok(Some(Self { path, bytes, pieces, known }))
    }

    fn whole(&self) -> Result<Model, OpenError> {
        // Its many short texts need not be looked at one by one for UTF-8 if all of it is.
        let text = std::str::from_utf8(&self.bytes);
        let read = text.map_or_else(|_| serde_json::from_slice(&self.bytes), serde_json::from_str);
        read.map_err(|source| OpenError::Model { path: self.path.clone(), source })
    }

    /// Reads a piece; none if it is not what it seems.
    fn part(&self, piece: Range<usize>) -> Option<Part> {
        let is_frame = piece.start == 0;
        let text = std::str::from_utf8(self.bytes.get(piece)?).ok()?;
        if is_frame {
            let later = self.known.then(|| Model::of_frame(text)).flatten();
            let read = later.or_else(|| serde_json::from_str(&[text, "]}"].concat()).ok());
            return read.map(|model| Part::Frame(Box::new(model)));
        }
        let mut functions = Vec::with_capacity(text.len() / OF_A_LINE + 1);
        for line in text.split('\n') {
            let line = line.strip_suffix(',').unwrap_or(line);
            let later = self.known.then(|| Function::of_line(line)).flatten();
            functions.push(later.or_else(|| serde_json::from_str(line).ok())?);
        }
        Some(Part::Functions(functions))
    }

    /// Puts the functions of all pieces into the model; reads it as a whole, and says what is wrong with it, if one of
    /// them could not be read.
    fn join(&self, parts: Vec<Option<Part>>) -> Result<Model, OpenError> {
        let mut parts = parts.into_iter();
        let Some(Some(Part::Frame(mut model))) = parts.next() else { return self.whole() };
        let all = parts.as_slice().iter().map(|part| match part {
            Some(Part::Functions(functions)) => functions.len(),
            _ => 0,
        });
        model.functions.reserve_exact(all.sum());
        for part in parts {
            let Some(Part::Functions(functions)) = part else { return self.whole() };
            model.functions.extend(functions);
        }
        Ok(*model)
    }
}

/// Returns where a model can be cut: before its functions' lines, and between some of these.
fn pieces(text: &str) -> Vec<Range<usize>> {
    let Some(mut at) = text.find(FUNCTIONS).map(|at| at + FUNCTIONS.len()) else { return Vec::new() };
    let Some(end) = text.strip_suffix(END).map(str::len).filter(|end| at < *end) else { return Vec::new() };
    // To the end of the bracket, without the end of its line.
    let mut pieces = Vec::new();
    pieces.push(0..at - 1);
    while at < end {
        // Not the middle of a character: it is looked for in bytes.
        let rest = text.as_bytes().get(at + PIECE..end).unwrap_or_default();
        let cut = rest.windows(BETWEEN.len()).position(|bytes| bytes == BETWEEN.as_bytes());
        let stop = cut.map_or(end, |cut| at + PIECE + cut + 1);
        pieces.push(at..stop);
        // Behind the comma and the end of the line.
        at = if cut.is_some() { stop + BETWEEN.len() - 2 } else { end };
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(functions: &[String]) -> Text {
        let lines = functions.join(",\n");
        let frame = r#"{"api":"toy","registry":{"file":"","sha256":"","versions":[]},"interpose":{},"errors":"","types":[],"enums":[],"info":{},"#;
        let bytes = format!("{frame}{FUNCTIONS}{lines}{END}").into_bytes();
        let pieces = pieces(std::str::from_utf8(&bytes).expect("a text"));
        Text { path: PathBuf::from("toy.json"), bytes, pieces, known: functions.len().is_multiple_of(2) }
    }

    fn function(name: &str) -> String {
        format!(r#"{{"name":"{name}","returns":"int","success":"always","params":[]}}"#)
    }

    fn joined(text: &Text) -> Result<Model, OpenError> {
        text.join(text.pieces.iter().map(|piece| text.part(piece.clone())).collect())
    }

    #[test]
    fn pieces_are_the_whole() {
        for count in [1_usize, 2, 100, 3_000] {
            let functions: Vec<String> = (0..count).map(|i| function(&format!("toyNumber{i}"))).collect();
            let text = text(&functions);
            let whole = text.whole().expect("a model");
            assert_eq!(whole.functions.len(), count);
            assert_eq!(joined(&text).expect("the same"), whole);
            assert_eq!(text.pieces.len() > 3, count == 3_000, "{:?}", text.pieces);
        }
    }

    #[test]
    fn one_without_functions_and_one_of_another_form_are_read_as_a_whole() {
        assert_eq!(joined(&text(&[])).expect("a model").functions, []);
        let mut other = text(&[function("toy")]);
        other.bytes = String::from_utf8(other.bytes).expect("text").replace('\n', " ").into_bytes();
        other.pieces = pieces(std::str::from_utf8(&other.bytes).expect("text"));
        assert_eq!(other.pieces, []);
        assert_eq!(joined(&other).expect("a model").functions.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_said_of_the_whole() {
        let mut functions: Vec<String> = (0..3_000).map(|i| function(&format!("toyNumber{i}"))).collect();
        functions[2_000] = r#"{"name":"toy"}"#.to_owned();
        let error = joined(&text(&functions)).expect_err("a function without a result").to_string();
        assert!(error.contains("missing field `returns` at line 2002"), "{error}");
    }

    #[test]
    fn braces_within_texts_cut_nothing_wrongly() {
        let mut functions: Vec<String> = (0..3_000).map(|i| function(&format!("toyNumber{i}"))).collect();
        // Lines end within no text of JSON, so this can only be a cut that is not one in bytes that are no JSON at all.
        functions.push(function("toy},{ä"));
        let text = text(&functions);
        assert_eq!(joined(&text).expect("a model"), text.whole().expect("the same"));
    }
}
