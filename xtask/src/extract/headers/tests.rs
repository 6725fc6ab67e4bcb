//! Merging of versions: from types as they would be read, and from headers.

use std::path::{Path, PathBuf};

use hetrace_model::{EnumGroup, ExtractedFunction, ExtractedParam, Kind, Member, Type};

use super::clang;
use super::merge::merge;
use super::snapshot::{EntryPoint, Named, Snapshot};
use crate::extract::Extraction;
use crate::extract::description::{Constants, EntryPoints, Headers, Language, Suffixes};
use crate::repo;

/// An API whose names have versions, variants and entry points.
pub fn toy() -> Headers {
    Headers {
        files: vec!["toy.h".into()],
        functions: vec!["toy".into()],
        suffixes: Suffixes { version: Some("_v".into()), variants: vec!["_ptds".into(), "_ptsz".into()] },
        entry_points: Some(EntryPoints { prefix: "PFN_".into(), major: 1000, minor: 10 }),
        ..Headers::default()
    }
}

fn named(name: &str, kind: Kind, size: u32, members: &[(&str, &str, u32)]) -> Named {
    let member = |&(name, ty, offset): &(&str, &str, u32)| Member {
        name: name.to_owned(),
        ty: ty.to_owned(),
        offset,
        count: 1,
        ..Member::default()
    };
    let members = members.iter().map(member).collect();
    let ty = Type { name: name.to_owned(), kind, size, members, ..Type::default() };
    Named { canonical: name.to_owned(), ty, own: true }
}

fn function(name: &str, params: &[(&str, &str)]) -> ExtractedFunction {
    let param = |&(name, ctype): &(&str, &str)| ExtractedParam { name: name.into(), ctype: ctype.into() };
    let params = params.iter().map(param).collect();
    ExtractedFunction { name: name.into(), returns: "int".into(), params, ..ExtractedFunction::default() }
}

fn version(label: &str, functions: Vec<ExtractedFunction>, mut types: Vec<Named>) -> Snapshot {
    types.push(named("int", Kind::Int, 4, &[]));
    types.push(named("long", Kind::Int, 8, &[]));
    types.push(named("void", Kind::Opaque, 0, &[]));
    Snapshot { label: label.into(), functions, types, ..Snapshot::default() }
}

fn of<'a>(done: &'a Extraction, name: &str) -> Vec<&'a ExtractedFunction> {
    done.extracted.functions.iter().filter(|f| f.name == name).collect()
}

fn ty<'a>(done: &'a Extraction, name: &str) -> &'a Type {
    done.extracted.types.iter().find(|t| t.name == name).unwrap()
}

#[test]
fn functions_come_and_go() {
    let keep = function("toyKeep_v2_ptsz", &[]);
    let one = version("1.0", vec![keep.clone(), function("toyOld", &[])], vec![]);
    let mut two = version("1.1", vec![keep.clone(), function("toyNew", &[])], vec![]);
    let point = EntryPoint { base: "toyKeep".into(), version: 3020, variant: "_ptsz".into() };
    two.entry_points.push(point);
    let done = merge("toy", &toy(), vec![one, two]);
    let (kept, old, new) = (of(&done, "toyKeep_v2_ptsz")[0], of(&done, "toyOld")[0], of(&done, "toyNew")[0]);
    assert_eq!((kept.since.as_str(), kept.base.as_deref()), ("3.2", Some("toyKeep")));
    assert_eq!((old.since.as_str(), old.until.as_deref()), ("1.0", Some("1.0")));
    assert_eq!((new.since.as_str(), &new.until), ("1.1", &None));
    assert_eq!(kept.until, None);
}

#[test]
fn another_signature_is_another_function() {
    let old = || vec![function("toyMove", &[("to", "int"), ("how", "const void *")])];
    let new = vec![function("toyMove", &[("place", "long"), ("how", "void *")])];
    let versions =
        [version("1.0", old(), vec![]), version("1.1", old(), vec![]), version("1.2", new, vec![])];
    let done = merge("toy", &toy(), versions.into());
    let found = of(&done, "toyMove");
    let say = |f: &ExtractedFunction| (f.params[0].ctype.clone(), f.since.clone(), f.before.clone());
    assert_eq!(say(found[0]), ("long".into(), "1.2".into(), None));
    assert_eq!(say(found[1]), ("int".into(), "1.0".into(), Some("1.2".into())));
    assert_eq!((found.len(), found[1].until.as_deref()), (2, None));
    assert_eq!(done.notes, ["`toyMove` had another signature before 1.2"]);
}

#[test]
fn names_and_const_make_no_signature() {
    let versions = [
        version("1.0", vec![function("toySame", &[("a", "const void **")])], vec![]),
        version("1.1", vec![function("toySame", &[("b", "void *const *")])], vec![]),
    ];
    let done = merge("toy", &toy(), versions.into());
    assert_eq!(of(&done, "toySame").len(), 1);
    assert_eq!(of(&done, "toySame")[0].params[0].name, "b");
}

#[test]
fn a_grown_struct_keeps_its_name() {
    let f = || vec![function("toyGet", &[("out", "toy_thing *")])];
    let small = named("toy_thing", Kind::Struct, 8, &[("a", "int", 0), ("reserved", "int", 4)]);
    let large = named("toy_thing", Kind::Struct, 16, &[("a", "int", 0), ("b", "int", 4), ("c", "long", 8)]);
    let done = merge("toy", &toy(), vec![version("1.0", f(), vec![small]), version("1.1", f(), vec![large])]);
    let thing = ty(&done, "toy_thing");
    assert_eq!((thing.size, &thing.size_before), (16, &vec![("1.1".to_owned(), 8)]));
    let since: Vec<&str> = thing.members.iter().map(|m| m.since.as_str()).collect();
    assert_eq!(since, ["", "1.1", "1.1"]);
    assert_eq!(of(&done, "toyGet").len(), 1);
}

#[test]
fn a_changed_struct_gets_a_name_with_its_version() {
    let f = || vec![function("toyGet", &[("out", "const toy_outer *")])];
    let outer = || named("toy_outer", Kind::Struct, 16, &[("inner", "toy_inner", 0)]);
    let before = named("toy_inner", Kind::Struct, 16, &[("a", "long", 0), ("b", "long", 8)]);
    let after = named("toy_inner", Kind::Struct, 16, &[("b", "long", 0), ("c", "long", 8)]);
    let versions = [version("1.0", f(), vec![outer(), before]), version("1.1", f(), vec![outer(), after])];
    let done = merge("toy", &toy(), versions.into());
    assert_eq!(ty(&done, "toy_inner@1.0").members[0].name, "a");
    assert_eq!(ty(&done, "toy_outer@1.0").members[0].ty, "toy_inner@1.0");
    let found = of(&done, "toyGet");
    let types: Vec<&str> = found.iter().map(|f| f.params[0].ctype.as_str()).collect();
    assert_eq!(types, ["const toy_outer *", "const toy_outer@1.0 *"]);
}

#[test]
fn the_newest_value_of_a_name_wins() {
    let group = |values: &[(&str, i64)]| EnumGroup {
        name: "toy_kind".into(),
        bits: false,
        values: values.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
    };
    let mut versions = vec![version("1.0", vec![], vec![]), version("1.1", vec![], vec![])];
    versions[0].enums.push(group(&[("A", 0), ("GONE", 7), ("MAX", 1)]));
    versions[1].enums.push(group(&[("A", 0), ("B", 1), ("MAX", 2)]));
    let done = merge("toy", &toy(), versions);
    assert_eq!(done.extracted.enums, [group(&[("A", 0), ("B", 1), ("MAX", 2), ("GONE", 7)])]);
}

#[test]
fn a_value_that_meant_another_has_both_names() {
    let group = |values: &[(&str, i64)]| EnumGroup {
        name: "toy_kind".into(),
        bits: false,
        values: values.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
    };
    let mut versions =
        vec![version("1.0", vec![], vec![]), version("1.1", vec![], vec![]), version("2.0", vec![], vec![])];
    for old in &mut versions[..2] {
        old.enums.push(group(&[("RED", 0), ("BLUE", 1), ("GREY", 4), ("COUNT", 5)]));
    }
    versions[2].enums.push(group(&[("NONE", 0), ("RED", 1), ("BLUE", 2), ("GREY", 3), ("COUNT", 6)]));
    let done = merge("toy", &toy(), versions);
    let both = [
        ("NONE or RED@1.1", 0),
        ("RED or BLUE@1.1", 1),
        ("BLUE", 2),
        ("GREY", 3),
        ("COUNT", 6),
        ("GREY@1.1", 4),
    ];
    assert_eq!(done.extracted.enums, [group(&both)]);
    assert!(done.notes.contains(&"`RED` was 0 until 1.1 and is 1".to_owned()), "{:?}", done.notes);

    let bits = |all: i64| EnumGroup { bits: true, ..group(&[("ONE", 1), ("ALL", all), ("LAST", 128)]) };
    let mut versions = vec![version("1.0", vec![], vec![]), version("1.1", vec![], vec![])];
    versions[0].enums.push(bits(3));
    versions[1].enums.push(bits(7));
    assert_eq!(merge("toy", &toy(), versions).extracted.enums, [bits(7)], "bits grow");
}

#[test]
fn what_is_opaque_is_a_handle_in_all_versions() {
    let api = Headers { opaque: vec!["toyArray".into()], ..toy() };
    let copy = |member: Member| {
        let ty = Type {
            name: "toy_copy".into(),
            kind: Kind::Struct,
            size: 8,
            members: vec![member],
            ..Type::default()
        };
        Named { canonical: "toy_copy".into(), ty, own: true }
    };
    let member = |ty: &str, pointers| Member {
        name: "from".into(),
        ty: ty.into(),
        pointers,
        count: 1,
        ..Member::default()
    };
    let types = |member| {
        vec![named("toyArray", Kind::Opaque, 0, &[]), named("toyArray_t", Kind::Handle, 8, &[]), copy(member)]
    };
    let functions =
        |ty| vec![function("toyFree", &[("array", ty)]), function("toyCopy", &[("how", "toy_copy *")])];
    let old = version("1.0", functions("toyArray *"), types(member("toyArray", 1)));
    let new = version("2.0", functions("toyArray_t"), types(member("toyArray_t", 0)));
    let done = merge("toy", &api, vec![old.clone(), new.clone()]);
    assert_eq!((of(&done, "toyFree").len(), of(&done, "toyCopy").len()), (1, 1));
    assert_eq!(merge("toy", &toy(), vec![old, new]).extracted.functions.len(), 3, "otherwise they differ");
}

#[test]
fn integers_of_flags_have_the_names_of_their_bits() {
    let mut one = version("1.0", vec![function("toyOpen", &[("flags", "toy_open_flags")])], vec![]);
    one.types.push(named("toy_open_flags", Kind::Uint, 4, &[]));
    one.types.push(named("toy_shut_flags", Kind::Uint, 4, &[]));
    let values = vec![("TOY_OPEN_FAST".to_owned(), 1), ("TOY_OPEN_LOUD".to_owned(), 2)];
    one.enums.push(EnumGroup { name: "toy_open_flag".into(), bits: false, values });
    let api = Headers { flag_types: Some(["_flags".into(), "_flag".into()]), ..toy() };
    let done = merge("toy", &api, vec![one]);
    assert_eq!(ty(&done, "toy_open_flags").values.as_deref(), Some("toy_open_flag"));
    assert!(done.extracted.enums[0].bits);
}

#[test]
fn types_that_nothing_uses_can_be_left_out() {
    let own = |name: &str| named(name, Kind::Struct, 4, &[("n", "int", 0)]);
    let used = vec![function("toyGet", &[("out", "toy_used_params *")])];
    let one = version("1.0", used, vec![own("toy_used_params"), own("toy_open_params"), own("toy_box")]);
    let api = Headers { except_types: vec!["toy_*_params".into()], ..toy() };
    let done = merge("toy", &api, vec![one]);
    let structs = done.extracted.types.iter().filter(|t| t.kind == Kind::Struct);
    assert_eq!(structs.map(|t| t.name.as_str()).collect::<Vec<_>>(), ["toy_used_params", "toy_box"]);
}

const TOY: &str = "
    #include <stddef.h>
    typedef enum { TOY_RED = 1, TOY_GREEN = 2, TOY_BLUE = 4 } toyColor;
    #define TOY_FLAG_FAST 0x1
    #define TOY_FLAG_LOUD (1 << 3)
    #define TOY_FLAG_TOP 0x80000000
    typedef struct toyInner { int private; } toyInner;
    int toyTouch(toyInner *inner);
    typedef struct toy_st *toyHandle;
    typedef void (*toyCallback)(void *);
    typedef struct _toyLid_t { int width; struct _toyLid_t *other; } toyLid_t;
    typedef char toyName[8];
    typedef size_t toySizes[3];
    enum { TOY_FLAG_WILD = 0x40 };
    typedef struct toyBox_st {
        toyColor color;
        union { int number; float *real; };
        struct { toyName name[4]; } tag;
    } toyBox;
    #ifdef TOY_STREAM
    #define toyOpen toyOpen_ptds
    #endif
    int toyOpen(toyHandle *out, const toyBox *box, size_t sizes[3], const toySizes more, toyCallback f, void (*g)(int));
    static inline int toyInside(void) { return 0; }
";

/// Of one function there is more for C++ only, and another is for it alone.
const TOY_CPP: &str = "
    #include <stddef.h>
    #ifdef __cplusplus
    extern \"C\" {
    #endif
    int toyBoth(wchar_t *text);
    #ifdef __cplusplus
    int toyHalf(size_t n);
    }
    static inline int toyBoth(size_t n) { return toyHalf(n); }
    #endif
";

fn read_as_cpp(libclang: &::clang::Clang, root: &Path, others: &[PathBuf]) {
    std::fs::write(root.join("toy.h"), TOY_CPP).unwrap();
    let cpp = Headers { language: Language::Cpp, modes: vec![vec![]], ..toy() };
    let more = clang::read(libclang, &cpp, "1.0", root, others).unwrap();
    let names: Vec<&str> = more.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["toyBoth", "toyHalf"], "without what is not C's");
}

/// Clang can be loaded once at a time, so this is the only test that does.
#[test]
fn headers_are_read() {
    let Ok(libclang) = clang::load() else {
        eprintln!("no libclang: not tested");
        return;
    };
    let flags = Constants {
        group: "toyOpen_flags".into(),
        bits: true,
        names: vec!["TOY_FLAG_*".into()],
        except: vec![],
    };
    let api = Headers {
        modes: vec![vec![], vec!["TOY_STREAM".into()]],
        constants: vec![flags],
        opaque: vec!["toyInner".into()],
        ..toy()
    };
    let root = repo::root().join(format!("target/headers/test-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("toy.h"), TOY).unwrap();
    let c = repo::root().join("xtask/src/extract/headers/c");
    let others = std::slice::from_ref(&c);
    let snapshot = clang::read(&libclang, &api, "1.0", &root, others).unwrap();
    read_as_cpp(&libclang, &root, others);
    std::fs::remove_dir_all(&root).unwrap();
    let done = merge("toy", &api, vec![snapshot]);
    let functions: Vec<&str> = done.extracted.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(functions, ["toyTouch", "toyOpen", "toyOpen_ptds"]);
    let params: Vec<&str> = done.extracted.functions[2].params.iter().map(|p| p.ctype.as_str()).collect();
    let expected =
        ["toyHandle *", "const toyBox *", "size_t *", "const size_t *", "toyCallback", "void (*)(int)"];
    assert_eq!(params, expected);
    assert_eq!(ty(&done, "toyHandle").kind, Kind::Handle);
    assert_eq!(ty(&done, "toyCallback").kind, Kind::Callback);
    assert_eq!((ty(&done, "toyInner").kind, ty(&done, "toyInner").size), (Kind::Opaque, 0));
    let members = |name: &str| -> Vec<(String, String, u8, u32, u32)> {
        let members = ty(&done, name).members.iter();
        members.map(|m| (m.name.clone(), m.ty.clone(), m.pointers, m.offset, m.count)).collect()
    };
    let member =
        |name: &str, ty: &str, pointers, offset, count| (name.into(), ty.into(), pointers, offset, count);
    let expected = [
        member("color", "toyColor", 0, 0, 1),
        member("_0", "toyBox._0", 0, 8, 1),
        member("tag", "toyBox.tag", 0, 16, 1),
    ];
    assert_eq!(members("toyBox"), expected);
    assert_eq!((ty(&done, "toyBox").size, ty(&done, "toyBox._0").kind), (48, Kind::Union));
    assert_eq!(members("toyBox._0"), [member("number", "int", 0, 0, 1), member("real", "float", 1, 0, 1)]);
    assert_eq!(members("toyBox.tag"), [member("name", "char", 0, 0, 32)]);
    // An underscore makes no other type.
    assert_eq!(members("toyLid_t"), [member("width", "int", 0, 0, 1), member("other", "toyLid_t", 1, 8, 1)]);
    assert!(!done.extracted.types.iter().any(|t| t.name.starts_with('_')));
    let groups: Vec<_> =
        done.extracted.enums.iter().map(|g| (g.name.as_str(), g.bits, g.values[1].1)).collect();
    assert_eq!(groups, [("toyColor", true, 2), ("toyOpen_flags", true, 8)]);
    assert_eq!(
        done.extracted.enums[1].values[2],
        ("TOY_FLAG_TOP".to_owned(), 0x8000_0000),
        "not a negative number"
    );
    assert!(done.extracted.enums[1].values.contains(&("TOY_FLAG_WILD".to_owned(), 0x40)));
}
