//! Several texts as one: what a linker makes of their machine code.
//!
//! Texts are cut at the level of their modules, and put one behind the other. Names that are a module's own get a suffix where
//! another one has them, too; what is declared in one and defined in another is declared once; numbers of source files are
//! counted on. Whatever is no name or number of these stays byte for byte, but for debug information, which is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use super::scan::{BadText, Scanner};

/// Why texts can't be one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unlinkable {
    /// A text makes no sense: which one, from 0, and where.
    Bad(usize, BadText),
    /// A name has two definitions, which the linker would not take, or of which it is not known which one it takes.
    Twice(String),
    /// A name that must get a suffix is also that of an instruction.
    Word(String),
    /// Texts are of different sizes of addresses.
    Addresses,
}

impl fmt::Display for Unlinkable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unlinkable::Bad(which, why) => write!(f, "input {}: {why}", which + 1),
            Unlinkable::Twice(name) => write!(f, "{name} is defined by two inputs"),
            Unlinkable::Word(name) => {
                write!(f, "two inputs have a {name} of their own, and that is also an instruction")
            }
            Unlinkable::Addresses => f.write_str("inputs have addresses of different sizes"),
        }
    }
}

impl std::error::Error for Unlinkable {}

/// Instructions that are one word: a name that is the same can't be replaced word by word.
const INSTRUCTIONS: [&str; 8] = ["ret", "exit", "trap", "brkpt", "bra", "call", "brx", "nanosleep"];

/// Who knows a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linkage {
    /// The module alone.
    Own,
    Visible,
    /// The first of several is taken.
    Weak,
    /// It is defined elsewhere.
    Extern,
}

/// What stands at the level of a module and has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    span: Range<usize>,
    linkage: Linkage,
    name: Range<usize>,
    /// Whether it is more than the declaration of a function.
    defines: bool,
    is_function: bool,
    /// Memory of a thread block whose size is known at the launch: all such names are of the same.
    is_shared: bool,
}

/// A text, cut.
#[derive(Debug, Default)]
struct Part {
    version: (u32, u32),
    target: String,
    address_size: String,
    items: Vec<Item>,
    /// `.file` lines.
    files: Vec<Range<usize>>,
    /// Pragmas, and what else has no name.
    rest: Vec<Range<usize>>,
}

/// Makes one text of several.
///
/// # Errors
/// Why that can't be done, with the name that is in the way.
pub fn link(texts: &[String]) -> Result<String, Unlinkable> {
    let cut_one = |(which, text): (usize, &String)| cut(text).map_err(|bad| Unlinkable::Bad(which, bad));
    let parts = texts.iter().enumerate().map(cut_one).collect::<Result<Vec<Part>, _>>()?;
    let definitions = definitions(texts, &parts)?;
    let mut linked = head(&parts)?;
    let (mut declared, mut files) = (BTreeSet::new(), 0);
    for (which, (text, part)) in texts.iter().zip(&parts).enumerate() {
        let renamed = renamed(which, texts, &parts)?;
        let mut edit = Edit { text, renamed: &renamed, files, most: files, out: &mut linked };
        let bad = |bad| Unlinkable::Bad(which, bad);
        part.files.iter().chain(&part.rest).try_for_each(|span| edit.copy(span.clone())).map_err(bad)?;
        for item in &part.items {
            let name = &text[item.name.clone()];
            let home = definitions.get(name).filter(|_| item.linkage != Linkage::Own);
            let begin = match home {
                // It stands there already.
                Some((defined, _)) if *defined < which => continue,
                Some((_, linkage)) if item.linkage == Linkage::Extern && item.is_function => {
                    edit.out.push_str(if *linkage == Linkage::Weak { ".weak" } else { ".visible" });
                    item.span.start + ".extern".len()
                }
                None if item.linkage == Linkage::Extern && !declared.insert(name) && !item.is_shared => {
                    continue;
                }
                _ => item.span.start,
            };
            edit.copy(begin..item.span.end).map_err(bad)?;
        }
        files = edit.most;
    }
    Ok(linked)
}

/// Returns which module defines a name that others know, and how.
fn definitions<'t>(
    texts: &'t [String],
    parts: &[Part],
) -> Result<BTreeMap<&'t str, (usize, Linkage)>, Unlinkable> {
    let mut found: BTreeMap<&str, (usize, Linkage)> = BTreeMap::new();
    for (which, (text, part)) in texts.iter().zip(parts).enumerate() {
        for item in part.items.iter().filter(|item| item.defines) {
            let name = &text[item.name.clone()];
            match (item.linkage, found.get(name)) {
                (Linkage::Own | Linkage::Extern, _) | (Linkage::Weak, Some(_)) => {}
                (Linkage::Visible, Some(_)) => return Err(Unlinkable::Twice(name.to_owned())),
                (linkage, None) => {
                    found.insert(name, (which, linkage));
                }
            }
        }
    }
    Ok(found)
}

/// Returns what the names of a module become that it has for itself, where another one before it has them, too.
fn renamed<'t>(
    which: usize,
    texts: &'t [String],
    parts: &[Part],
) -> Result<BTreeMap<&'t str, String>, Unlinkable> {
    let is_own = |item: &&Item| item.linkage == Linkage::Own || item.is_shared;
    let named = |(at, item): (usize, &Item)| texts[at][item.name.clone()].to_owned();
    let others = parts.iter().enumerate().filter(|(at, _)| *at != which);
    let all: BTreeSet<String> =
        others.flat_map(|(at, part)| part.items.iter().map(move |item| named((at, item)))).collect();
    let mut renamed = BTreeMap::new();
    for item in parts[which].items.iter().filter(is_own) {
        let name = &texts[which][item.name.clone()];
        if !all.contains(name) {
            continue;
        }
        if INSTRUCTIONS.contains(&name) {
            return Err(Unlinkable::Word(name.to_owned()));
        }
        // No compiler makes such a name.
        renamed.insert(name, format!("{name}$hetrace${which}"));
    }
    Ok(renamed)
}

/// The directives that a text begins with.
fn head(parts: &[Part]) -> Result<String, Unlinkable> {
    let version = parts.iter().map(|part| part.version).max().unwrap_or_default();
    let sizes: BTreeSet<&str> = parts.iter().map(|part| part.address_size.as_str()).collect();
    let (1, Some(size)) = (sizes.len(), sizes.first()) else { return Err(Unlinkable::Addresses) };
    let number = |target: &str| -> u32 {
        target
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .map_while(|c| c.to_digit(10))
            .fold(0, |n, d| n * 10 + d)
    };
    let target = parts.iter().map(|part| &part.target).max_by_key(|target| (number(target), target.len()));
    let target = target.map_or("", String::as_str);
    Ok(format!(".version {}.{}\n.target {target}\n.address_size {size}\n\n", version.0, version.1))
}

/// Cuts a text at the level of its module.
fn cut(text: &str) -> Result<Part, BadText> {
    let mut scanner = Scanner::new(text);
    let mut part = Part::default();
    while scanner.skip()? {
        let begin = scanner.at;
        let Some(word) = scanner.word() else {
            match scanner.peek() {
                // `@@DWARF`, as old compilers write it.
                Some(b'@') => to_end_of_line(&mut scanner, text),
                _ => scanner.step()?,
            }
            continue;
        };
        match &text[word] {
            ".version" => {
                scanner.skip()?;
                let number = scanner.word().map_or("", |word| &text[word]);
                let (major, minor) = number.split_once('.').unwrap_or((number, ""));
                part.version = (major.parse().unwrap_or(0), minor.parse().unwrap_or(0));
            }
            ".target" => {
                let from = scanner.at;
                to_end_of_line(&mut scanner, text);
                let line = &text[from..scanner.at];
                part.target = line.split("//").next().unwrap_or(line).trim().to_owned();
            }
            ".address_size" => {
                scanner.skip()?;
                part.address_size = scanner.word().map_or("", |word| &text[word]).to_owned();
            }
            ".file" => {
                to_end_of_line(&mut scanner, text);
                part.files.push(begin..scanner.at);
            }
            ".section" => {
                scanner.until(b"{", begin, OPEN)?;
                scanner.at += 1;
                scanner.until(b"}", begin, OPEN)?;
                scanner.at += 1;
            }
            ".pragma" => {
                scanner.until(b";", begin, OPEN)?;
                scanner.at += 1;
                part.rest.push(begin..scanner.at);
            }
            _ => {
                scanner.at = begin;
                part.items.push(item(&mut scanner, text)?);
            }
        }
    }
    Ok(part)
}

const OPEN: &str = "a declaration that does not end";

fn to_end_of_line(scanner: &mut Scanner<'_>, text: &str) {
    if scanner.behind(b"\n").is_none() {
        scanner.at = text.len();
    }
}

/// Cuts a function or a variable.
fn item(scanner: &mut Scanner<'_>, text: &str) -> Result<Item, BadText> {
    let begin = scanner.at;
    let (mut linkage, mut shared) = (Linkage::Own, false);
    loop {
        scanner.skip()?;
        let Some(word) = scanner.word() else {
            match scanner.peek() {
                // `.attribute(.managed)`
                Some(b'(') => {
                    scanner.at += 1;
                    scanner.until(b")", begin, OPEN)?;
                    scanner.at += 1;
                    continue;
                }
                _ => return Err(scanner.bad(begin, "a declaration without a name")),
            }
        };
        match &text[word.clone()] {
            ".visible" => linkage = Linkage::Visible,
            // Of several the largest is taken; compilers of CUDA make none.
            ".weak" | ".common" => linkage = Linkage::Weak,
            ".extern" => linkage = Linkage::Extern,
            ".shared" => shared = true,
            directive @ (".entry" | ".func") => {
                return function(scanner, text, (begin, word.start), linkage, directive == ".entry");
            }
            name if !name.starts_with(|c: char| c == '.' || c.is_ascii_digit()) => {
                if scanner.until(b";,=", begin, OPEN)? == b',' {
                    return Err(scanner.bad(begin, "several names in one declaration"));
                }
                scanner.until(b";", begin, OPEN)?;
                scanner.at += 1;
                let (is_shared, defines) = (shared && linkage == Linkage::Extern, linkage != Linkage::Extern);
                let span = begin..scanner.at;
                return Ok(Item { span, linkage, name: word, defines, is_function: false, is_shared });
            }
            _ => {}
        }
    }
}

/// Cuts a function, whose words before `.func` or `.entry` were read.
fn function(
    scanner: &mut Scanner<'_>,
    text: &str,
    (begin, word): (usize, usize),
    linkage: Linkage,
    entry: bool,
) -> Result<Item, BadText> {
    let found = scanner.function(word, entry)?;
    let defines = found.is_some();
    let name = match found {
        Some(function) => function.name,
        None => {
            scanner.at += 1;
            declared_name(text, word + if entry { ".entry".len() } else { ".func".len() })?
        }
    };
    // Drivers find kernels by name, whatever their linkage.
    let linkage = if entry && linkage == Linkage::Own { Linkage::Visible } else { linkage };
    let span = begin..scanner.at;
    Ok(Item { span, linkage, name, defines, is_function: true, is_shared: false })
}

/// The name of a function that is declared, of which what comes behind `.func` begins at `from`.
fn declared_name(text: &str, from: usize) -> Result<Range<usize>, BadText> {
    let mut scanner = Scanner::new(text);
    scanner.at = from;
    scanner.skip()?;
    if scanner.peek() == Some(b'(') {
        scanner.at += 1;
        scanner.until(b")", from, OPEN)?;
        scanner.at += 1;
        scanner.skip()?;
    }
    scanner.word().ok_or_else(|| scanner.bad(from, "a function without a name"))
}

/// Copies parts of a text with other names and other numbers of files.
struct Edit<'e> {
    text: &'e str,
    renamed: &'e BTreeMap<&'e str, String>,
    /// What numbers of files are raised by.
    files: u32,
    /// The greatest of them so far.
    most: u32,
    out: &'e mut String,
}

impl Edit<'_> {
    fn copy(&mut self, span: Range<usize>) -> Result<(), BadText> {
        let mut scanner = Scanner::new(&self.text[..span.end]);
        scanner.at = span.start;
        let mut done = span.start;
        while scanner.skip()? {
            let Some(word) = scanner.word() else {
                scanner.step()?;
                continue;
            };
            let name = &self.text[word.clone()];
            if name == ".loc" || name == ".file" {
                scanner.skip()?;
                let number = scanner.word().unwrap_or(scanner.at..scanner.at);
                let file = self.text[number.clone()].parse::<u32>().unwrap_or(0).saturating_add(self.files);
                self.most = self.most.max(file);
                self.out.push_str(&self.text[done..number.start]);
                self.out.push_str(&file.to_string());
                done = number.end;
                if name == ".loc" {
                    // What was inlined is said by labels of debug information.
                    let rest = &self.text[done..span.end];
                    let end = done + rest.find('\n').unwrap_or(rest.len());
                    let kept = done + rest.find([',', '\n']).unwrap_or(rest.len());
                    self.out.push_str(&self.text[done..kept]);
                    (done, scanner.at) = (end, end);
                }
            } else if let Some(other) = self.renamed.get(name) {
                self.out.push_str(&self.text[done..word.start]);
                self.out.push_str(other);
                done = word.end;
            }
        }
        self.out.push_str(&self.text[done..span.end]);
        self.out.push('\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

    fn linked(bodies: &[&str]) -> Result<String, Unlinkable> {
        link(&bodies.iter().map(|body| format!("{HEAD}{body}")).collect::<Vec<_>>())
    }

    /// What is behind the head, with spaces for white space.
    fn body(bodies: &[&str]) -> String {
        let text = linked(bodies).expect("linked");
        text.strip_prefix(HEAD).expect("the head").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_is_declared_here_and_defined_there_is_one() {
        let uses = ".extern .func (.param .b32 r) f (.param .b32 f_0);\n.extern .global .u32 x;\n.entry a() { ret; }";
        let has = ".visible .func (.param .b32 r) f (.param .b32 f_0) { ret; }\n.visible .global .u32 x = 1;";
        assert_eq!(
            body(&[uses, has]),
            ".visible .func (.param .b32 r) f (.param .b32 f_0); .extern .global .u32 x; .entry a() { ret; } \
             .visible .func (.param .b32 r) f (.param .b32 f_0) { ret; } .visible .global .u32 x = 1;"
        );
        assert_eq!(
            body(&[has, uses]),
            ".visible .func (.param .b32 r) f (.param .b32 f_0) { ret; } .visible .global .u32 x = 1; \
             .entry a() { ret; }"
        );
        // What nobody here defines is declared once.
        let prints = ".extern .func (.param .b32 r) vprintf (.param .b64 p);";
        assert_eq!(body(&[prints, prints]), prints);
        // Of weak definitions the first is there.
        assert_eq!(
            body(&[".weak .func w() { ret; }", ".weak .func w() { exit; }"]),
            ".weak .func w() { ret; }"
        );
    }

    #[test]
    fn names_of_a_module_alone_stay_apart() {
        let own = |value: u32| {
            format!(
                ".global .align 4 .b8 t[4] = {{{value}, 0, 0, 0}};\n.visible .entry k{value}() {{\n\
                 ld.global.u32 %r1, [t+2]; // t\n mov.u32 %t, \"t\"; }}"
            )
        };
        let text = linked(&[&own(1), &own(2)]).expect("linked");
        assert!(text.contains("t$hetrace$0[4] = {1") && text.contains("t$hetrace$1[4] = {2"), "{text}");
        assert!(text.contains("[t$hetrace$1+2]; // t\n mov.u32 %t, \"t\"; }"), "{text}");
        // A name that others know stays.
        let text = linked(&[".global .u32 t;", ".visible .global .u32 t;"]).expect("linked");
        assert!(text.contains(".global .u32 t$hetrace$0;") && text.contains(".visible .global .u32 t;"));
        let shared = ".extern .shared .align 16 .b8 s[];";
        assert_eq!(linked(&[shared, shared]).expect("linked").matches("s$hetrace$").count(), 2);
    }

    #[test]
    fn files_are_counted_on_and_debug_information_is_left_out() {
        let one = ".file 1 \"a.cu\"\n.file 2 \"b.cu\"\n.visible .entry a() {\n.loc 2 7 1, function_name $L0, inlined_at 1 3 4\nret;\n}\n\
                   .section .debug_str { $L0: .b8 97 }";
        let two = ".file 1 \"c.cu\"\n.visible .entry b() {\n.loc 1 9 2\nret;\n}";
        let text = linked(&[one, two]).expect("linked");
        assert!(text.contains(".file 3 \"c.cu\"") && text.contains("\n.loc 3 9 2\n"), "{text}");
        assert!(text.contains("\n.loc 2 7 1\nret;") && !text.contains("debug_str"), "{text}");
    }

    #[test]
    fn heads_are_those_of_the_newest() {
        let newer = HEAD.replace("8.0", "8.10").replace("sm_90", "sm_100a, debug // x");
        let text = link(&[HEAD.to_owned(), newer]).expect("linked");
        assert!(text.starts_with(".version 8.10\n.target sm_100a, debug\n.address_size 64\n"), "{text}");
    }

    #[test]
    fn what_can_not_be_one_has_a_reason() {
        let says = |bodies: &[&str]| linked(bodies).expect_err("refused").to_string();
        let kernel = ".entry k() { ret; }";
        assert_eq!(says(&[kernel, kernel]), "k is defined by two inputs");
        assert!(says(&[".global .u32 ret;", ".global .u32 ret;"]).contains("also an instruction"));
        assert_eq!(
            says(&[kernel, ".global .u32 a, b;"]),
            "input 2: line 4: several names in one declaration"
        );
        assert_eq!(says(&[".global .u32 a"]), "input 1: line 4: a declaration that does not end");
        let narrow = HEAD.replace("64", "32");
        assert_eq!(link(&[HEAD.to_owned(), narrow]), Err(Unlinkable::Addresses));
    }

    /// Whatever is cut short or spoiled ends in a result.
    #[test]
    fn any_bytes_have_an_end() {
        let text = format!(
            "{HEAD}.extern .func (.param .b32 r) f (.param .b32 q);\n.file 1 \"é\"\n.weak .global .align 4 .b8 t[4] = {{1}};"
        );
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = link(&[text[..end].to_owned(), text.clone()]);
            let spoiled = format!("{}{{(.file .loc{}", &text[..end], &text[end..]);
            let _ = link(&[spoiled, text.clone()]);
        }
    }
}
