//! What a launcher must know of every function before a program starts, and where the rest is.
//!
//! A large model takes milliseconds to understand, and the program waits. So an API's library has an
//! index beside it, one line for each function, by which flags are chosen and by which the text of one
//! function is found in the model's JSON:
//!
//! ```text
//! {"api":"toy","title":"Toy","interpose":{…},"model_bytes":5120,"frame_bytes":1734}
//! 585  c  toyLaunch  launch,enqueue  device::launch      bytes, command, name, roles, hook; `-` is none
//! ```
//! with tabs between words. The frame is the model up to its first function; each function is a line of its own.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::resolved::{Function, Interpose, Model, Timing};

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
}

/// A function's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row<'t> {
    /// Its name.
    pub name: &'t str,
    /// It enqueues a command.
    pub commands: bool,
    /// The hand-written function that stands for the real one.
    pub hook: Option<&'t str>,
    /// Where its JSON is in the model's.
    pub json: Range<usize>,
    roles: &'t str,
}

impl Row<'_> {
    /// Returns whether the function has this role.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.as_bytes().split(|byte| *byte == b',').any(|known| known == role.as_bytes())
    }
}

/// The index of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Index {
    /// What is said of the whole API.
    pub head: Head,
    text: String,
    rows: Vec<Place>,
}

/// Where a function's words are in the text: each line is read once, and asked often.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    name: Range<usize>,
    roles: Range<usize>,
    hook: Option<Range<usize>>,
    commands: bool,
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

impl Index {
    /// Reads an index.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: String) -> Result<Self, IndexError> {
        let mut at = text.find('\n').map_or(text.len(), |end| end + 1);
        let head: Head = serde_json::from_str(&text[..at]).map_err(|e| IndexError(e.to_string()))?;
        let (mut rows, mut json) = (Vec::new(), head.frame_bytes);
        for line in text[at..].lines() {
            let (bytes, row) =
                row(line).ok_or_else(|| IndexError(format!("`{line}` is no function's line")))?;
            let place = |word: &str| {
                let begin = at + (word.as_ptr() as usize - line.as_ptr() as usize);
                begin..begin + word.len()
            };
            let end = json.saturating_add(bytes);
            rows.push(Place {
                name: place(row.name),
                roles: place(row.roles),
                hook: row.hook.map(place),
                commands: row.commands,
                json: json..end,
            });
            at += line.len() + 1;
            json = end.saturating_add(BETWEEN);
        }
        Ok(Index { head, text, rows })
    }

    /// Returns all functions in the model's order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.rows.len()).filter_map(|function| self.row(function))
    }

    /// Returns one function; none beyond the last.
    pub fn row(&self, function: usize) -> Option<Row<'_>> {
        let Place { name, roles, hook, commands, json } = self.rows.get(function)?;
        let word = |place: &Range<usize>| self.text.get(place.clone());
        let hook = hook.as_ref().and_then(word);
        Some(Row { name: word(name)?, commands: *commands, hook, json: json.clone(), roles: word(roles)? })
    }

    /// Returns its text.
    pub fn text(&self) -> &str {
        &self.text
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

/// Returns the bytes that a line says, and the rest of it.
fn row(line: &str) -> Option<(usize, Row<'_>)> {
    let mut rest = line;
    // Byte by byte: the words are short, and a search for a `char` is prepared anew for each.
    let mut word = || {
        let (word, behind) = rest.split_at_checked(rest.bytes().position(|byte| byte == b'\t')?)?;
        rest = behind.get(1..)?;
        Some(word)
    };
    let bytes = word()?.parse().ok()?;
    let commands = word()? == "c";
    let (name, roles) = (word()?, word()?);
    let hook = (!rest.bytes().any(|byte| byte == b'\t')).then_some(rest)?;
    let hook = Some(hook).filter(|hook| *hook != "-");
    Some((bytes, Row { name, commands, hook, json: 0..0, roles }))
}

/// Makes the index of a model from its JSON, in which each function is a line of its own and the
/// last thing are the functions.
///
/// # Errors
/// When the JSON is laid out otherwise, or a name or hook has a tab.
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
    };
    let mut text = serde_json::to_string(&head).map_err(|e| IndexError(e.to_string()))? + "\n";
    for (f, line) in model.functions.iter().zip(json[frame_bytes..].lines()) {
        let bytes = line.strip_suffix(',').unwrap_or(line).len();
        let command = if f.command.is_some() { 'c' } else { '-' };
        let mut roles: Vec<&str> = f.roles.iter().map(String::as_str).collect();
        roles.extend(is_kept(model, f).then_some(KEPT));
        let roles = if roles.is_empty() { "-".to_owned() } else { roles.join(",") };
        let hook = f.hook.as_deref().unwrap_or("-");
        text.push_str(&format!("{bytes}\t{command}\t{}\t{roles}\t{hook}\n", f.name));
    }
    let index = Index::parse(text)?;
    let frame = index.frame(json.as_bytes())?;
    let functions = index.rows().map(|row| function(json.as_bytes(), &row)).collect::<Result<_, _>>()?;
    if (Model { functions, ..frame }) != *model {
        return Err(IndexError("the JSON is laid out otherwise than one function a line".to_owned()));
    }
    Ok(index.text)
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
        let index = Index::parse(print(&model(), JSON).unwrap()).unwrap();
        assert_eq!(index.head.interpose.requires, ["libtoy.so"]);
        let rows: Vec<Row> = index.rows().collect();
        assert_eq!(rows.iter().map(|r| r.name).collect::<Vec<_>>(), ["toyInit", "toyRun"]);
        assert_eq!(rows.iter().map(|r| r.hook).collect::<Vec<_>>(), [None, Some("device::run")]);
        assert_eq!(rows.iter().map(|r| r.commands).collect::<Vec<_>>(), [false, true]);
        assert!(rows[1].has_role("enqueue") && !rows[1].has_role("enq") && !rows[0].has_role("launch"));
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
        let index = Index::parse(print(&model, &json).unwrap()).unwrap();
        let kept: Vec<bool> = index.rows().map(|row| row.has_role(KEPT)).collect();
        assert_eq!(kept, [true, false]);
    }

    #[test]
    fn a_model_of_another_build_is_refused() {
        let index = Index::parse(print(&model(), JSON).unwrap()).unwrap();
        let other = JSON.replace("toyRun", "toyRunX");
        assert!(index.frame(other.as_bytes()).is_err());
        let renamed = JSON.replace("toyRun", "toyGun");
        let rows: Vec<Row> = index.rows().collect();
        assert!(function(renamed.as_bytes(), &rows[1]).is_err());
        assert!(function(b"{}", &rows[0]).is_err());
    }

    #[test]
    fn what_is_no_index_is_refused() {
        let good = print(&model(), JSON).unwrap();
        for wrong in ["", "{}\n", "[]\n", &format!("{good}what is this\n"), &good.replace("\tc\t", "\t")] {
            assert!(Index::parse(wrong.to_owned()).is_err(), "{wrong}");
        }
        assert!(print(&model(), "{}").is_err());
        let mut spaced = model();
        spaced.functions[0].name = "toy\tinit".to_owned();
        assert!(print(&spaced, JSON).is_err());
    }
}
