//! What a launcher must know of every function before a program starts, and where the rest is.
//!
//! A large model takes milliseconds to understand, and the program waits. So an API's library has an
//! index beside it, by which flags are chosen and by which the text of one function is found in the model's JSON:
//!
//! ```text
//! {"api":"toy","title":"Toy","interpose":{…},"model_bytes":5120,"frame_bytes":1734,"model_sum":…}
//! c  launch,enqueue  device::launch      a kind of functions: command, roles, hook; `-` is none
//! -  query           -
//!
//! 000100                                 the kind of each function, two digits of base 64 from `0` on
//! 585  toyLaunch                         a function: bytes, name
//! ```
//! with tabs between words. There are few kinds, so what is decided by roles is decided once for many functions, and the
//! functions' own lines are not read before one of them is called. The frame is the model up to its first function; each
//! function is a line of its own.

use std::ops::Range;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::function::Function;
use crate::resolved::{Interpose, Model, Timing};

/// In the index, and not in the model, the role of functions whose every call reports need, though they neither make
/// nor end anything themselves.
pub const KEPT: &str = "kept";

/// What is said of the whole API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Its short name.
    pub api: String,
    /// How people spell it.
    #[serde(default)]
    pub title: String,
    /// How it is intercepted.
    pub interpose: Interpose,
    /// How commands are timed.
    #[serde(default)]
    pub timing: Timing,
    /// Bytes of the model's JSON.
    pub model_bytes: usize,
    /// Bytes of it before the first function.
    pub frame_bytes: usize,
    /// A checksum of it, so that what is before the functions' lines distinguishes one build from another.
    pub model_sum: u64,
}

/// What functions have in common that are chosen alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind<'t> {
    /// They enqueue a command.
    pub commands: bool,
    /// The reason for which a hand-written function stands for the real one.
    pub hook: Option<&'t str>,
    /// Their roles, and empty words.
    roles: [&'t str; MOST_ROLES],
}

impl Kind<'_> {
    /// Returns whether the functions have this role.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().take_while(|known| !known.is_empty()).any(|known| *known == role)
    }
}

/// A function's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'t> {
    /// Its name.
    pub name: &'t str,
    /// The number of its kind, in the order of [`Index::kinds`].
    pub kind: usize,
    /// Where its JSON is in the model's.
    pub json: Range<usize>,
}

/// The index of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// What is said of the whole API.
    pub head: Head,
    text: Vec<u8>,
    /// Where each kind's line is in the text.
    kinds: Vec<Range<usize>>,
    /// Where the functions' kinds are.
    numbers: Range<usize>,
    /// Where the functions' lines begin.
    rows_at: usize,
    /// Those lines, once somebody has asked for one.
    rows: OnceLock<Vec<Place>>,
}

/// Where a function's words are in the text: each line is read once, and asked often.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    name: Range<usize>,
    json: Range<usize>,
}

/// Why a text is no index, or does not fit a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct IndexError(String);

/// What stands between two functions in the model's JSON.
const BETWEEN: usize = ",\n".len();
/// What ends a model's JSON behind the functions that are left out.
const END: &[u8] = b"]}";

/// What a digit of a kind's number counts, and how many digits one has.
const BASE: usize = 64;
const DIGITS: usize = 2;
const MOST_KINDS: usize = BASE * BASE;
/// Roles of one function: the most that any API has is four.
const MOST_ROLES: usize = 8;
/// More digits are no number of bytes, and could be too much for a `usize`.
const MOST_DIGITS: usize = 18;

impl Index {
    /// Reads an index.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: Vec<u8>) -> Result<Self, IndexError> {
        let index = Self::begin(text)?;
        index.check()?;
        Ok(index)
    }

    /// Reads what is said of the whole API and of the kinds. The functions' lines, which take by far the longest, are read
    /// when one is first asked for; lines behind one that is none are not there ([`Index::check`]).
    ///
    /// # Errors
    /// When it is no index, as far as it is read.
    pub fn begin(text: Vec<u8>) -> Result<Self, IndexError> {
        let (first, mut at) = line(&text, 0);
        let head: Head = serde_json::from_slice(first).map_err(|e| IndexError(e.to_string()))?;
        let mut kinds = Vec::new();
        while let (words, next) = line(&text, at)
            && !words.is_empty()
        {
            if !is_kind(words) {
                return Err(IndexError(format!("`{}` is no kind's line", words.escape_ascii())));
            }
            kinds.push(at..at + words.len());
            at = next;
        }
        let (numbers, rows_at) = line(&text, at + 1);
        if numbers.len() % DIGITS != 0 || at >= text.len() {
            return Err(IndexError("the kinds of its functions are cut off".to_owned()));
        }
        let numbers = at + 1..at + 1 + numbers.len();
        Ok(Index { head, text, kinds, numbers, rows_at, rows: OnceLock::new() })
    }

    /// Reads the functions' lines.
    ///
    /// # Errors
    /// When one of them is none, or has a kind that is none.
    pub fn check(&self) -> Result<(), IndexError> {
        let rows = self.places();
        let next = rows.last().map_or(self.rows_at, |last| last.name.end + 1);
        if let Some(rest) = self.text.get(next..).filter(|rest| !rest.is_empty()) {
            let line = line(rest, 0).0.escape_ascii();
            return Err(IndexError(format!("`{line}` is no function's line")));
        }
        let known = self.functions().filter(|kind| *kind < self.kinds.len()).count();
        match known == rows.len() && known == self.functions().len() {
            true => Ok(()),
            false => Err(IndexError(format!("{known} of {} functions have a kind", rows.len()))),
        }
    }

    /// Returns where functions' words are, up to the first line that is none.
    fn places(&self) -> &[Place] {
        self.rows.get_or_init(|| {
            let (mut at, mut json) = (self.rows_at, self.head.frame_bytes);
            let mut rows = Vec::with_capacity(self.functions().len());
            while at < self.text.len() {
                let Some((bytes, name)) = row(&self.text, at) else { break };
                let end = json.saturating_add(bytes);
                at = name.end + 1;
                rows.push(Place { name, json: json..end });
                json = end.saturating_add(BETWEEN);
            }
            rows
        })
    }

    /// Returns the kinds of functions.
    pub fn kinds(&self) -> impl Iterator<Item = Kind<'_>> {
        self.kinds.iter().filter_map(|place| kind(self.text.get(place.clone())?))
    }

    /// Returns the number of each function's kind in the model's order, without reading the functions' lines.
    pub fn functions(&self) -> impl ExactSizeIterator<Item = usize> {
        let digits = self.text.get(self.numbers.clone()).unwrap_or_default().as_chunks::<DIGITS>().0;
        digits.iter().map(|digits| number(*digits))
    }

    /// Returns what stands for each function's kind in the model's order; 0 for a kind that is none.
    pub fn by_kind(&self, of_kinds: &[u8]) -> Vec<u8> {
        self.functions().map(|kind| of_kinds.get(kind).copied().unwrap_or(0)).collect()
    }

    /// Returns all functions in the model's order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        self.places().iter().zip(self.functions()).filter_map(|(place, kind)| self.at(place, kind))
    }

    /// Returns one function; none beyond the last.
    pub fn row(&self, function: usize) -> Option<Row<'_>> {
        self.at(self.places().get(function)?, self.functions().nth(function)?)
    }

    fn at(&self, Place { name, json }: &Place, kind: usize) -> Option<Row<'_>> {
        let name = std::str::from_utf8(self.text.get(name.clone())?).ok()?;
        Some(Row { name, kind, json: json.clone() })
    }

    /// Returns what is before the functions' lines: two models that differ differ there.
    pub fn before_rows(&self) -> &[u8] {
        self.text.get(..self.rows_at).unwrap_or(&self.text)
    }

    /// Reads the model without its functions.
    ///
    /// # Errors
    /// When the JSON is not that of this index.
    pub fn frame(&self, json: &[u8]) -> Result<Model, IndexError> {
        let fits = json.len() == self.head.model_bytes;
        let frame = json.get(..self.head.frame_bytes).filter(|_| fits);
        let frame = frame.ok_or_else(|| IndexError("the model is not that of its index".to_owned()))?;
        let frame = [frame, END].concat();
        serde_json::from_slice(&frame).map_err(|e| IndexError(e.to_string()))
    }
}

/// Reads one function of a model.
///
/// # Errors
/// When the JSON is not that of the row's index.
pub fn function(json: &[u8], row: &Row<'_>) -> Result<Function, IndexError> {
    let other = || IndexError(format!("the model is not that of its index: {} is not there", row.name));
    let text = json.get(row.json.clone()).ok_or_else(other)?;
    let function: Function = serde_json::from_slice(text).map_err(|_| other())?;
    if function.name == row.name { Ok(function) } else { Err(other()) }
}

/// Returns the line that begins at a place, and where the next one does.
fn line(text: &[u8], at: usize) -> (&[u8], usize) {
    let rest = text.get(at..).unwrap_or_default();
    let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    (rest.get(..length).unwrap_or_default(), at + length + 1)
}

/// Returns whether a line is that of a kind: of each that is, [`kind`] returns one. Words are not cut here, as they are
/// looked at when flags are chosen.
fn is_kind(line: &[u8]) -> bool {
    let count = |wanted: u8| line.iter().filter(|byte| **byte == wanted).count();
    matches!(line, [b'c' | b'-', b'\t', ..])
        && line.is_ascii()
        && count(b'\t') == 2
        && count(b',') < MOST_ROLES
}

/// Reads a kind's line.
fn kind(line: &[u8]) -> Option<Kind<'_>> {
    let line = std::str::from_utf8(line).ok()?;
    // Byte by byte: words are short, and a search for a `char` is prepared anew for each.
    let cut = |text: &'_ str, by| text.bytes().position(|byte| byte == by);
    let (commands, rest) = (line.get(..1)?, line.strip_prefix(['c', '-'])?.strip_prefix('\t')?);
    let end = cut(rest, b'\t')?;
    let (mut words, hook) = (&rest[..end], &rest[end + 1..]);
    let mut roles = [""; MOST_ROLES];
    for place in &mut roles {
        if words.is_empty() {
            break;
        }
        let end = cut(words, b',').unwrap_or(words.len());
        *place = &words[..end];
        words = words.get(end + 1..).unwrap_or_default();
    }
    let hook = Some(hook).filter(|hook| *hook != "-");
    let is_kind = words.is_empty() && !hook.is_some_and(|hook| hook.contains('\t'));
    is_kind.then_some(Kind { commands: commands == "c", hook, roles })
}

/// Reads the number of a kind; one that no kind has where it is none.
#[inline]
fn number(digits: [u8; DIGITS]) -> usize {
    let [high, low] = digits;
    let (high, low) = (usize::from(high.wrapping_sub(b'0')), usize::from(low.wrapping_sub(b'0')));
    if high < BASE && low < BASE { high * BASE + low } else { MOST_KINDS }
}

/// Writes the number of a kind.
fn digits(number: usize) -> [char; DIGITS] {
    [number / BASE, number % BASE].map(|digit| char::from(b'0' + (digit % BASE) as u8))
}

/// Returns what the function's line says that begins at a place: its bytes, and where its name is, which is the rest of
/// the line.
fn row(text: &[u8], at: usize) -> Option<(usize, Range<usize>)> {
    let (begin, mut at, mut bytes) = (at, at, 0_usize);
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        bytes = bytes.wrapping_mul(10).wrapping_add(digit.into());
        at += 1;
    }
    if !(1..=MOST_DIGITS).contains(&(at - begin)) || text.get(at) != Some(&b'\t') {
        return None;
    }
    let name = text.get(at + 1..)?.iter().position(|byte| *byte == b'\n')?;
    (name > 0).then_some((bytes, at + 1..at + 1 + name))
}

/// Returns a checksum (FNV-1a).
fn sum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Makes the index of a model from its JSON, in which each function is a line of its own and the
/// last thing are the functions.
///
/// # Errors
/// When the JSON is laid out otherwise, or a name or hook has a tab or a line's end.
pub fn print(model: &Model, json: &str) -> Result<String, IndexError> {
    let key = "\"functions\":[\n";
    let frame_bytes = json.rfind(key).map(|at| at + key.len());
    let frame_bytes = frame_bytes.ok_or_else(|| IndexError("no functions in the JSON".to_owned()))?;
    let head = Head {
        api: model.api.clone(),
        title: model.title.clone(),
        interpose: model.interpose.clone(),
        timing: model.timing,
        model_bytes: json.len(),
        frame_bytes,
        model_sum: sum(json.as_bytes()),
    };
    let mut text = serde_json::to_string(&head).map_err(|e| IndexError(e.to_string()))? + "\n";
    let (mut kinds, mut numbers, mut rows) = (Vec::new(), String::new(), String::new());
    for (f, line) in model.functions.iter().zip(json[frame_bytes..].lines()) {
        let bytes = line.strip_suffix(',').unwrap_or(line).len();
        let kind = kind_of(model, f);
        let number = kinds.iter().position(|known| *known == kind).unwrap_or(kinds.len());
        if number == kinds.len() {
            kinds.push(kind);
        }
        numbers.extend(digits(number));
        rows.push_str(&format!("{bytes}\t{}\n", f.name));
    }
    if kinds.len() > MOST_KINDS {
        return Err(IndexError(format!("{} kinds of functions", kinds.len())));
    }
    kinds.iter().for_each(|kind| text.extend([kind.as_str(), "\n"]));
    text.extend(["\n", numbers.as_str(), "\n", rows.as_str()]);
    let index = Index::parse(text.clone().into_bytes())?;
    if let Some(row) = index.rows().find(|row| row.name.contains('\t')) {
        return Err(IndexError(format!("`{}` has a tab in it", row.name)));
    }
    let frame = index.frame(json.as_bytes())?;
    let functions = index.rows().map(|row| function(json.as_bytes(), &row)).collect::<Result<_, _>>()?;
    if (Model { functions, ..frame }) != *model {
        return Err(IndexError("the JSON is laid out otherwise than one function a line".to_owned()));
    }
    Ok(text)
}

/// Returns the line of a function's kind.
fn kind_of(model: &Model, f: &Function) -> String {
    let command = if f.command.is_some() { 'c' } else { '-' };
    let mut roles: Vec<&str> = f.roles.iter().map(String::as_str).collect();
    roles.extend(is_kept(model, f).then_some(KEPT));
    let roles = if roles.is_empty() { "-".to_owned() } else { roles.join(",") };
    format!("{command}\t{roles}\t{}", f.hook.as_deref().unwrap_or("-"))
}

/// Returns whether reports need each call: of what ends all objects, of what makes a device or a context the one that
/// memory belongs to, and of what ends a group of collectives.
fn is_kept(model: &Model, f: &Function) -> bool {
    let groups = || f.has_role("flush") && model.functions.iter().any(|f| f.collective.is_some());
    f.resets || f.current.is_some() || groups()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = concat!(
        r#"{"api":"toy","registry":{"file":"toy.h","sha256":""},"interpose":{"requires":"libtoy.so"},"#,
        r#""errors":"toyError","types":[],"enums":[],"info":{},"#,
        "\n\"functions\":[\n",
        r#"{"name":"toyInit","roles":[],"returns":"int","success":"always","params":[]},"#,
        "\n",
        r#"{"name":"toyRun","roles":["launch","enqueue"],"returns":"int","success":"return-zero","params":[],"#,
        r#""command":{"kind":"kernel"},"hook":"device::run"}"#,
        "\n]}\n"
    );

    fn model() -> Model {
        serde_json::from_str(JSON).unwrap()
    }

    #[test]
    fn functions_are_found_one_by_one() {
        let index = Index::parse(print(&model(), JSON).unwrap().into_bytes()).unwrap();
        assert_eq!(index.head.interpose.requires, ["libtoy.so"]);
        let rows: Vec<Row> = index.rows().collect();
        assert_eq!(rows.iter().map(|r| r.name).collect::<Vec<_>>(), ["toyInit", "toyRun"]);
        let kinds: Vec<Kind> = index.kinds().collect();
        let of = |row: &Row<'_>| kinds[row.kind];
        assert_eq!(rows.iter().map(|r| of(r).hook).collect::<Vec<_>>(), [None, Some("device::run")]);
        assert_eq!(rows.iter().map(|r| of(r).commands).collect::<Vec<_>>(), [false, true]);
        let [init, run] = [&rows[0], &rows[1]].map(of);
        assert!(run.has_role("enqueue") && !run.has_role("enq") && !init.has_role("launch"));
        let read: Vec<Function> = rows.iter().map(|row| function(JSON.as_bytes(), row).unwrap()).collect();
        assert_eq!(read, model().functions);
        assert!(index.frame(JSON.as_bytes()).unwrap().functions.is_empty());
    }

    #[test]
    fn what_reports_need_each_call_of_is_kept() {
        let json = JSON.replace(
            r#""success":"always","params":[]}"#,
            r#""success":"always","params":[],"resets":true}"#,
        );
        assert_ne!(json, JSON);
        let model: Model = serde_json::from_str(&json).unwrap();
        let index = Index::parse(print(&model, &json).unwrap().into_bytes()).unwrap();
        let kinds: Vec<Kind> = index.kinds().collect();
        let kept: Vec<bool> = index.rows().map(|row| kinds[row.kind].has_role(KEPT)).collect();
        assert_eq!(kept, [true, false]);
    }

    #[test]
    fn functions_of_a_kind_share_its_line() {
        let again = r#"{"name":"toyAgain","roles":[],"returns":"int","success":"always","params":[]},"#;
        let json = JSON.replace("\n{\"name\":\"toyRun\"", &format!("\n{again}\n{{\"name\":\"toyRun\""));
        let model: Model = serde_json::from_str(&json).unwrap();
        let index = Index::parse(print(&model, &json).unwrap().into_bytes()).unwrap();
        assert_eq!(index.kinds().count(), 2);
        let rows: Vec<(&str, usize)> = index.rows().map(|row| (row.name, row.kind)).collect();
        assert_eq!(rows, [("toyInit", 0), ("toyAgain", 0), ("toyRun", 1)]);
    }

    #[test]
    fn numbers_of_kinds_have_two_digits() {
        for kind in [0, 1, 63, 64, 65, MOST_KINDS - 1] {
            let text = String::from_iter(digits(kind));
            assert!(text.is_ascii() && !text.contains(['\t', '\n']), "{text:?}");
            assert_eq!(text.as_bytes().try_into().ok().map(number), Some(kind));
        }
        for wrong in [*b"\t0", *b"0\t", *b"p0", *b"0p", [0xff; 2]] {
            assert!(number(wrong) >= MOST_KINDS, "no kind's: {wrong:?}");
        }
    }

    #[test]
    fn what_passes_for_a_kinds_line_is_one() {
        let many = |roles: usize| format!("c\t{}\t-", vec!["role"; roles].join(","));
        for line in ["-\t-\t-", "c\tlaunch,enqueue\tdevice::launch", "-\t\t-", "-\t,\t", &many(MOST_ROLES)] {
            assert!(is_kind(line.as_bytes()) && kind(line.as_bytes()).is_some(), "{line}");
        }
        for line in ["", "c", "c\t-", "x\t-\t-", "c\t-\t-\t-", "c\té\t-", &many(MOST_ROLES + 1)] {
            assert!(!is_kind(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn what_is_before_the_functions_differs_where_a_model_does() {
        let before = |json: &str| {
            let model = serde_json::from_str(json).unwrap();
            let index = Index::begin(print(&model, json).unwrap().into_bytes()).unwrap();
            index.before_rows().to_vec()
        };
        assert!(before(JSON).ends_with(b"\n0001\n"));
        assert_ne!(before(JSON), before(&JSON.replace("toyRun", "toyRan")));
    }

    #[test]
    fn a_model_of_another_build_is_refused() {
        let index = Index::parse(print(&model(), JSON).unwrap().into_bytes()).unwrap();
        let other = JSON.replace("toyRun", "toyRunX");
        assert!(index.frame(other.as_bytes()).is_err());
        let renamed = JSON.replace("toyRun", "toyGun");
        let rows: Vec<Row> = index.rows().collect();
        assert!(function(renamed.as_bytes(), &rows[1]).is_err());
        assert!(function(b"{}", &rows[0]).is_err());
    }

    #[test]
    fn lines_of_functions_are_read_when_they_are_asked_for() {
        let good = print(&model(), JSON).unwrap();
        let index = Index::begin(good.clone().into_bytes()).unwrap();
        assert_eq!(index.kinds().count(), 2);
        assert_eq!(index.functions().collect::<Vec<_>>(), [0, 1]);
        assert_eq!((index.by_kind(&[7, 9]), index.by_kind(&[7])), (vec![7, 9], vec![7, 0]));
        assert!(index.rows.get().is_none(), "nobody has asked for a line");
        assert_eq!(index.row(1).map(|row| row.name), Some("toyRun"));
        assert_eq!(index, Index::parse(good.clone().into_bytes()).unwrap());
        let torn = Index::begin(format!("{good}12\n12\ttoyMore\n").into_bytes()).unwrap();
        assert_eq!(torn.check().unwrap_err().to_string(), "`12` is no function's line");
        assert_eq!(torn.rows().count(), 2, "those before it");
    }

    #[test]
    fn what_is_no_index_is_refused() {
        let good = print(&model(), JSON).unwrap();
        let without = |words: &str, others: &str| {
            assert!(good.contains(words), "{words:?} in {good}");
            good.replace(words, others)
        };
        for wrong in [
            "",
            "{}\n",
            "[]\n",
            &format!("{good}what is this\n"),
            &format!("{good}12\n"),
            &format!("{good}12\ttoyOfNoKind\n"),
            &format!("{good}1x\ttoyOfNoLength\n"),
            &format!("{good}99999999999999999999\ttoyLong\n"),
            &without("\n0001\n", "\n0009\n"),
            &without("\n0001\n", "\n00\n"),
            &without("\n0001\n", "\n000\n"),
            &without("\n0001\n", "\n00\t1\n"),
            &without("\nc\tlaunch", "\nlaunch"),
            &without("\nc\tlaunch", "\nd\tlaunch"),
            &without("\n\n", "\n"),
        ] {
            assert!(Index::parse(wrong.as_bytes().to_vec()).is_err(), "{wrong}");
        }
        assert!(print(&model(), "{}").is_err());
        let mut spaced = model();
        spaced.functions[0].name = "toy\tinit".to_owned();
        assert!(print(&spaced, JSON).is_err());
    }
}
