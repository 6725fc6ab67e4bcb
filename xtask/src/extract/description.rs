//! `apis/NAME/extract.toml`: what `cargo xtask extract NAME` reads, and what is special in it.
//!
//! ```toml
//! # Where the files are, one version each, oldest first. A source is one of
//! source = [
//!     { version = "1.0", wheel = "toy-headers==1.0.3" },      # a package of PyPI
//!     { version = "1.1", debian = "libtoy-dev=1.1.2-3" },     # a package of Debian
//!     { version = "1.2", folder = "." },                      # a folder, seen from extract.toml's
//!     { version = "1.3", given = "toy.xml" },                 # lies nowhere: handed in with --from
//! ]                                                           # `version`: with several sources only
//! # A wheel's headers may include those of others: `with = "toy-base==1.0.1"` beside it, or a list.
//!
//! [headers]                            # C headers, read by libclang
//! files = ["toy.h", "toy_ext.h"]       # as programs include them; not every version has all, but the first
//! language = "c++"                     # some functions are declared for C++ only; else "c"
//! own = ["toy_more.h"]                 # read with them; in the folder include/ beside extract.toml
//! modes = [[], ["TOY_PER_THREAD"]]     # macros that are set, a list per reading; the first reading is preferred
//! functions = ["toy"]                  # beginnings of the names of its functions
//! except = ["toyInternal", "*_inner"]  # … and of names that those take by mistake, or patterns with `*` of them
//! except_types = ["toy_*_params_t"]    # types that are left out where no function uses them; `*` stands for anything
//! addresses = ["toyPointer"]           # integer types whose values are addresses or objects
//! handles = ["toy_box"]                # structs of one integer, passed by value, that identify objects
//! objects = ["toy_queue"]              # structs of which programs have the address alone, which identifies the object
//! bits = ["toyMask"]                   # enumerations that are sets of bits, where their values do not show it
//! flag_types = ["_flags_t", "_flag_t"] # an integer type `toy_open_flags_t` has the bits of the enumeration `toy_open_flag_t`
//! not_bits = ["toyKind"]               # … and that look like sets of bits and are none
//! also = { toy_status = ["toy_status_ext"] }   # groups that take the values of others, too
//! deprecations = ["@deprecated"]       # beginnings of lines in a function's comment by which it is deprecated, `since 1.2` or as of the first header with it
//! constants = [                        # macros, or values of enumerations without a name, that are values of a parameter
//!     { group = "toyOpen_flags", bits = true, names = ["TOY_OPEN_*"], except = ["TOY_OPEN_MAX"] },
//! ]
//!
//! [headers.same]                       # handle types that differ in `const` only: the first is called as the second
//! toyConstBox_t = "toyBox_t"
//!
//! [headers.suffixes]                   # of exported names, which the API's lookup function leaves out
//! version = "_v"                       # before a number: `toyOpen_v2`
//! variants = ["_ptds"]                 # at the very end: `toyOpen_v2_ptds`
//!
//! [headers.entry_points]               # `typedef … PFN_toyOpen_v3020`: since when there is a symbol
//! prefix = "PFN_"
//! major = 1000                         # 3020 is 3.2
//! minor = 10
//!
//! [registry]                           # or, in place of `headers`: an XML registry in Khronos' form
//! types = ["toy_"]                     # beginnings of the names of the API's own types
//! groups = "toy_"                      # … and of the groups of values that comments name
//! except_groups = ["toy_uint"]         # … and what begins so and is no group
//! errors = "toy_error"                 # the group of all results, made of …
//! error_blocks = "ErrorCodes."         # … the `<enums>` whose names begin so
//! list_ends = "MiscNumbers"            # the `<enums>` with what ends lists, which is no value of a type
//! title = "Toy"                        # the API's name in comments: "Toy 1.0 toy_info enums that …"
//! except_functions = ["toyInitLayer"]  # functions that no program calls
//! except_types_of = ["toy_layers"]     # extensions whose types are left out
//! except_values = ["TOY_WHOLE"]        # names that stand under a type whose values they are not
//! storage = ["toy_uint"]               # types that give a size and no meaning to what is named after them
//! group_types = [{ name = "toy_status", kind = "int", size = 4 }]   # groups that prototypes name by a plain type
//! foreign = [{ name = "HANDLE", kind = "handle", size = 8 }]        # types of others; the form is that of api.json
//! comments = { "toy_info response" = ["toy_info"] }                 # what comments in other words list
//! values = { toy_info = ["TOY_NAME"] }                              # values that stand under no type
//! also = { toy_info_ext = "toy_info" }                              # types that take another's values, too
//! ```
//! Headers see nothing of this machine: beside their own folder there is `include/` next to
//! extract.toml, with just enough of the headers of others to parse them, and some of C's own
//! (xtask/src/extract/headers/c). Both come before the source's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use hetrace_model::Type;
use serde::Deserialize;

use crate::repo;

/// One API's `extract.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The API's short name, which is its folder's.
    #[serde(skip)]
    pub api: String,
    /// The folder that it lies in.
    #[serde(skip)]
    pub folder: PathBuf,
    /// Where the files are, oldest version first.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
    /// What is special in C headers.
    pub headers: Option<Headers>,
    /// What is special in a registry.
    pub registry: Option<Registry>,
}

/// One version's files.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The version as the model has it; empty if there is only one.
    #[serde(default)]
    pub version: String,
    /// A package of PyPI: `NAME==VERSION`.
    pub wheel: Option<String>,
    /// A package of Debian: `NAME=VERSION`.
    pub debian: Option<String>,
    /// A folder, relative to the API's.
    pub folder: Option<PathBuf>,
    /// A file or folder that a person hands in.
    pub given: Option<String>,
    /// Other packages of PyPI, `NAME==VERSION`, with headers that this one's include.
    #[serde(default, deserialize_with = "hetrace_model::one_or_more::deserialize")]
    pub with: Vec<String>,
}

/// What is special in an API's C headers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headers {
    /// As programs include them; not every version has all.
    pub files: Vec<String>,
    /// What they are read as.
    #[serde(default)]
    pub language: Language,
    /// Headers of the folder `include` that are read with them.
    #[serde(default)]
    pub own: Vec<String>,
    /// Macros that are set, one list per reading. What the first one finds is preferred.
    #[serde(default = "one_mode")]
    pub modes: Vec<Vec<String>>,
    /// Beginnings of the names of its functions.
    pub functions: Vec<String>,
    /// Beginnings of names that the others take and that are not its own, or patterns of such names.
    #[serde(default)]
    pub except: Vec<String>,
    /// Beginnings of lines in a function's comment by which it is deprecated.
    #[serde(default)]
    pub deprecations: Vec<String>,
    /// Types that are left out where no function uses them.
    #[serde(default)]
    pub except_types: Vec<String>,
    /// Integer types whose values are addresses or objects.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Structs that are handles, whatever the headers of some versions show of their inside.
    #[serde(default)]
    pub opaque: Vec<String>,
    /// Structs of one integer, passed by value, that identify objects.
    #[serde(default)]
    pub handles: Vec<String>,
    /// Structs whose addresses identify objects.
    #[serde(default)]
    pub objects: Vec<String>,
    /// Groups of values that take those of others after their own; done in the order of their names.
    #[serde(default)]
    pub also: BTreeMap<String, Vec<String>>,
    /// Macros, or values of enumerations without a name, that are values of a parameter.
    #[serde(default)]
    pub constants: Vec<Constants>,
    /// Enumerations that are sets of bits, where it does not show.
    #[serde(default)]
    pub bits: Vec<String>,
    /// The end of names of integer types whose values are bits, and that of the enumerations which have these bits.
    pub flag_types: Option<[String; 2]>,
    /// Enumerations that look like sets of bits and are not.
    #[serde(default)]
    pub not_bits: Vec<String>,
    /// Handle types of the same objects, and the name that they get.
    #[serde(default)]
    pub same: BTreeMap<String, String>,
    /// What lookups leave out of exported names.
    #[serde(default)]
    pub suffixes: Suffixes,
    /// Types whose names say since when there is a symbol.
    pub entry_points: Option<EntryPoints>,
}

/// The language in which headers are read. What they declare is C's either way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Language {
    /// C.
    #[default]
    #[serde(rename = "c")]
    C,
    /// C++, of headers that declare some functions for it only.
    #[serde(rename = "c++")]
    Cpp,
}

/// Macros whose values belong together.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// The name that their group gets.
    pub group: String,
    /// Whether they are combined with `|`.
    #[serde(default)]
    pub bits: bool,
    /// Their names; a `*` at the end stands for any end.
    pub names: Vec<String>,
    /// Names that the patterns take by mistake.
    #[serde(default)]
    pub except: Vec<String>,
}

/// Ends of exported names that make another function of the same.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Suffixes {
    /// What stands before the number of a version; none if names have no versions.
    pub version: Option<String>,
    /// What stands at the end of variants.
    pub variants: Vec<String>,
}

/// How the names of function pointer types say which version brought a symbol.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryPoints {
    /// What such a name begins with.
    pub prefix: String,
    /// What a number is divided by for the first part of a version.
    pub major: u32,
    /// What the remainder is divided by for the second.
    pub minor: u32,
}

/// What is special in an API's registry.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Registry {
    /// Beginnings of the names of its own types.
    pub types: Vec<String>,
    /// What the names of groups of values begin with.
    pub groups: String,
    /// What begins so and is no group.
    #[serde(default)]
    pub except_groups: Vec<String>,
    /// The group of all results.
    pub errors: String,
    /// What the names of the blocks with results begin with.
    pub error_blocks: String,
    /// The block of what ends lists.
    #[serde(default)]
    pub list_ends: String,
    /// The API's name in comments.
    pub title: String,
    /// Functions that no program calls.
    #[serde(default)]
    pub except_functions: Vec<String>,
    /// Extensions whose types are left out.
    #[serde(default)]
    pub except_types_of: Vec<String>,
    /// Names that are no values of what they stand under.
    #[serde(default)]
    pub except_values: Vec<String>,
    /// Types that give a size and no meaning.
    #[serde(default)]
    pub storage: Vec<String>,
    /// Groups of values for which prototypes name a plain type.
    #[serde(default)]
    pub group_types: Vec<Type>,
    /// Types of others.
    #[serde(default)]
    pub foreign: Vec<Type>,
    /// Comments in words of their own, and the types whose values they list.
    #[serde(default)]
    pub comments: BTreeMap<String, Vec<String>>,
    /// Values that stand under no type, by type.
    #[serde(default)]
    pub values: BTreeMap<String, Vec<String>>,
    /// Types that take the values of another after their own; done in the order of their names.
    #[serde(default)]
    pub also: BTreeMap<String, String>,
}

impl Headers {
    /// Whether a function of this name belongs to the API.
    pub fn is_function(&self, name: &str) -> bool {
        let starts = |with: &[String]| with.iter().any(|p| name.starts_with(p.as_str()));
        let except = |p: &String| match p.contains('*') {
            true => hetrace_model::glob_matches(p, name),
            false => name.starts_with(p.as_str()),
        };
        starts(&self.functions) && !self.except.iter().any(except)
    }

    /// Whether a struct's inside is nobody's business.
    pub fn is_opaque(&self, name: &str) -> bool {
        self.opaque.iter().any(|o| o == name)
    }
}

fn one_mode() -> Vec<Vec<String>> {
    vec![vec![]]
}

/// The file's path.
pub fn path(api: &str) -> PathBuf {
    repo::root().join("apis").join(api).join("extract.toml")
}

/// Reads an API's description.
///
/// # Errors
/// With file and key, and what to do about it.
pub fn read(api: &str) -> Result<Description> {
    let path = path(api);
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!("{}: write it, in the form that xtask/src/extract/description.rs describes", path.display())
    })?;
    parse(api, &path, &text)
}

/// Reads a description's text, which lies at `path`.
pub fn parse(api: &str, path: &Path, text: &str) -> Result<Description> {
    let form = "see xtask/src/extract/description.rs for the form";
    // The error has line, key and what was expected.
    let mut read: Description =
        toml::from_str(text).with_context(|| format!("{}: {form}", path.display()))?;
    api.clone_into(&mut read.api);
    read.folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    check(&read).with_context(|| format!("{}: {form}", path.display()))?;
    Ok(read)
}

fn check(read: &Description) -> Result<()> {
    match (&read.headers, &read.registry) {
        (Some(headers), None) => check_headers(headers)?,
        (None, Some(_)) => {
            let [source] = read.sources.as_slice() else { bail!("`source`: a registry has one source") };
            ensure!(
                source.given.is_some(),
                "`source`: a registry is handed in: write {{ given = \"FILE\" }}"
            );
        }
        _ => bail!("write one of the tables [headers] and [registry]"),
    }
    ensure!(!read.sources.is_empty(), "`source` is empty: list where the headers are");
    for (i, source) in read.sources.iter().enumerate() {
        check_source(source, read.sources.len() > 1).with_context(|| format!("`source`, entry {}", i + 1))?;
    }
    let mut versions: Vec<&str> = read.sources.iter().map(|s| s.version.as_str()).collect();
    versions.sort_unstable();
    if let Some(pair) = versions.windows(2).find(|w| w[0] == w[1]) {
        bail!("`source`: the version \"{}\" is there twice", pair[0]);
    }
    Ok(())
}

fn check_headers(headers: &Headers) -> Result<()> {
    ensure!(!headers.files.is_empty(), "`headers.files` is empty: name at least one header");
    ensure!(
        !headers.modes.is_empty(),
        "`headers.modes` is empty: leave it out, or write [[]] for one reading"
    );
    ensure!(
        headers.functions.iter().any(|f| !f.is_empty()),
        "`headers.functions` is empty: say with what the names of the API's functions begin"
    );
    if let Some(points) = &headers.entry_points {
        ensure!(
            points.major > 0 && points.minor > 0,
            "`headers.entry_points`: numbers of versions are divided by `major` and `minor`, so neither can be 0"
        );
        ensure!(
            headers.suffixes.version.is_some(),
            "`headers.entry_points` needs `headers.suffixes.version`, which stands before their numbers"
        );
    }
    Ok(())
}

fn check_source(source: &Source, several: bool) -> Result<()> {
    let kinds =
        [source.wheel.is_some(), source.debian.is_some(), source.folder.is_some(), source.given.is_some()];
    ensure!(
        kinds.iter().filter(|there| **there).count() == 1,
        "write one of `wheel`, `debian`, `folder` and `given`"
    );
    ensure!(!several || !source.version.is_empty(), "with several sources each needs a `version`");
    ensure!(source.with.is_empty() || source.wheel.is_some(), "`with` goes with a `wheel`");
    let with = source.with.iter().map(|text| ("with", text, "=="));
    let wheel = source.wheel.iter().map(|text| ("wheel", text, "=="));
    let debian = source.debian.iter().map(|text| ("debian", text, "="));
    for (key, text, between) in wheel.chain(with).chain(debian) {
        let parts = text.split_once(between);
        ensure!(
            parts.is_some_and(|(name, version)| !name.is_empty() && !version.is_empty()),
            "`{key}`: write NAME{between}VERSION in place of \"{text}\", so that the result is always the same"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Description> {
        parse("toy", Path::new("apis/toy/extract.toml"), text)
    }

    #[test]
    fn the_least_is_enough() {
        let toy =
            read("source = [{ folder = \".\" }]\n[headers]\nfiles = [\"toy.h\"]\nfunctions = [\"toy\"]\n");
        let toy = toy.unwrap();
        let headers = toy.headers.unwrap();
        assert_eq!((toy.api.as_str(), toy.folder.as_path()), ("toy", Path::new("apis/toy")));
        assert_eq!(headers.modes, [[""; 0]]);
        assert!(headers.is_function("toyOpen") && !headers.is_function("Toy"));
        let headers = super::Headers { except: vec!["toyIn".into(), "*_inner".into()], ..headers };
        assert!(headers.is_function("toyOpen") && headers.is_function("toy_inner2"));
        assert!(!headers.is_function("toyInside") && !headers.is_function("toyOpen_inner"));
    }

    #[test]
    fn errors_say_file_key_and_what_to_do() {
        let headers = "[headers]\nfiles = [\"toy.h\"]\nfunctions = [\"toy\"]\n";
        let two = "source = [{ folder = \".\" }, { folder = \"x\" }]\n";
        let points = "[headers.entry_points]\nprefix = \"P\"\nmajor = 0\nminor = 1\n";
        for (text, says) in [
            ("source = []\n".to_owned(), "write one of the tables"),
            (format!("source = []\n{headers}"), "`source` is empty"),
            (format!("source = [{{}}]\n{headers}"), "`source`, entry 1: write one of `wheel`"),
            (format!("{two}{headers}"), "`source`, entry 1: with several sources each needs a `version`"),
            (
                format!("source = [{{ wheel = \"toy\" }}]\n{headers}"),
                "`wheel`: write NAME==VERSION in place of \"toy\"",
            ),
            (format!("source = [{{ debian = \"libtoy-dev\" }}]\n{headers}"), "`debian`: write NAME=VERSION"),
            (
                format!("source = [{{ wheel = \"toy==1\", with = \"base\" }}]\n{headers}"),
                "`with`: write NAME==VERSION",
            ),
            (
                format!("source = [{{ folder = \".\", with = \"base==1\" }}]\n{headers}"),
                "`with` goes with a `wheel`",
            ),
            (format!("source = [{{ folder = \".\" }}]\n{headers}{points}"), "neither can be 0"),
            (
                format!("source = [{{ folder = \".\" }}]\n{headers}prefixes = []\n"),
                "unknown field `prefixes`",
            ),
            (
                "source = [{ folder = \".\" }]\n[headers]\nfiles = []\nfunctions = []\n".to_owned(),
                "`headers.files`",
            ),
        ] {
            let error = format!("{:#}", read(&text).unwrap_err());
            assert!(error.contains(says), "{text}: {error}");
            assert!(error.starts_with("apis/toy/extract.toml: "), "{error}");
        }
    }

    #[test]
    fn every_api_here_is_described() {
        for api in repo::apis().unwrap() {
            super::read(&api).unwrap();
        }
    }
}
