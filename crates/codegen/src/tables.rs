//! Names, wrappers and the loader's dispatch table.

use std::fmt::Write;

use hetrace_model::layout::recorded_size;
use hetrace_model::{CHAIN_HEAD, Function, Model, Type};

use crate::heading;

/// Returns whether programs reach the function through the API's loader, which has one
/// real function for it; others are handed out by address, one per platform.
pub fn by_loader(model: &Model, f: &Function) -> bool {
    let dispatch = &model.interpose.dispatch;
    if dispatch.is_empty() { f.extension.is_none() } else { dispatch.contains(&f.name) }
}

/// Returns the two numbers of a version.
fn version(text: &str) -> (u32, u32) {
    // What was always there has no version. A third number makes no other signature.
    let mut numbers = text.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// `tables.rs`.
pub fn tables(model: &Model) -> String {
    let mut out = heading(model, "use super::prelude::*;\nuse super::wrappers;");
    let count = model.functions.len();
    let _ = writeln!(out, "/// The API's name.\npub const API: &str = \"{}\";\n", model.api);
    let _ = writeln!(out, "/// Names of all functions with a NUL, in the order of their numbers.");
    let _ = writeln!(out, "pub static NAMES: [&std::ffi::CStr; {count}] = [");
    for f in &model.functions {
        let _ = writeln!(out, "    c\"{}\",", f.name);
    }
    let _ = writeln!(out, "];\n");
    let loader: Vec<(usize, &Function)> =
        model.functions.iter().enumerate().filter(|(_, f)| by_loader(model, f)).collect();
    let _ = writeln!(out, "/// Number and wrapper of each function that the loader exports.");
    let _ = writeln!(out, "pub static LOADER: [(usize, Address); {}] = [", loader.len());
    for (index, f) in &loader {
        let _ = writeln!(out, "    ({index}, Address(wrappers::{} as *const c_void)),", f.name);
    }
    let _ = writeln!(out, "];\n");
    let extensions: Vec<(usize, &Function)> =
        model.functions.iter().enumerate().filter(|(_, f)| !by_loader(model, f)).collect();
    let _ = writeln!(out, "/// Number and wrappers of each function that is handed out by address.");
    let _ = writeln!(out, "pub static HANDED_OUT: [(usize, [Address; INSTANCES]); {}] = [", extensions.len());
    for (index, f) in &extensions {
        let instances: Vec<String> =
            (0..4).map(|i| format!("Address(wrappers::{}::<{i}> as *const c_void)", f.name)).collect();
        let _ = writeln!(out, "    ({index}, [{}]),", instances.join(", "));
    }
    let _ = writeln!(out, "];\n");
    let changed: Vec<(usize, &Function, (u32, u32))> = model
        .functions
        .iter()
        .enumerate()
        .filter_map(|(i, f)| Some((i, f, version(f.changed.as_ref()?))))
        .collect();
    if !changed.is_empty() {
        let _ = writeln!(
            out,
            "/// Functions whose symbol had another signature before a version, and their wrappers."
        );
        let _ = writeln!(out, "pub static CHANGED: [(usize, (u32, u32), Address); {}] = [", changed.len());
        for (index, f, version) in changed {
            let _ =
                writeln!(out, "    ({index}, {version:?}, Address(wrappers::{} as *const c_void)),", f.name);
        }
        let _ = writeln!(out, "];\n");
    }
    let number = |name: &String| model.functions.iter().position(|f| f.name == *name);
    let dispatch: Vec<String> = model
        .interpose
        .dispatch
        .iter()
        .map(|name| number(name).map_or("usize::MAX".to_owned(), |n| n.to_string()))
        .collect();
    let _ = writeln!(out, "/// Numbers of the functions in the order of the loader's dispatch table.");
    let _ = writeln!(out, "pub static DISPATCH: [usize; {}] = [{}];", dispatch.len(), dispatch.join(", "));
    chains(model, &mut out);
    handed_out(model, &mut out);
    out
}

/// Returns the name of the table with the sizes of what may be in a chain.
pub fn chain_name(tags: &str) -> String {
    format!("CHAIN_{}", tags.to_ascii_uppercase())
}

/// Writes how large the structs are that may be in chains, by their tags.
fn chains(model: &Model, out: &mut String) {
    let size = |name: &String| model.types.iter().find(|t| t.name == *name).map_or(CHAIN_HEAD, recorded_size);
    for (tags, structs) in &model.chains {
        let name = chain_name(tags);
        let all: Vec<String> = structs.iter().map(|(value, ty)| format!("({value}, {})", size(ty))).collect();
        let _ = writeln!(out, "\n/// Bytes of the structs in a chain, by values of `{tags}`.");
        let _ = writeln!(out, "pub static {name}: [(u32, u16); {}] = [{}];", all.len(), all.join(", "));
    }
}

/// Writes which functions the API hands out in tables: where each lies, its number, and the version since which a
/// table has it.
fn handed_out(model: &Model, out: &mut String) {
    let Some(form) = &model.handed_out else { return };
    let number = |ty: &str| {
        let name = form.function(ty)?;
        model.functions.iter().position(|f| f.name == name)
    };
    let _ = writeln!(out, "\n/// What the API hands out in tables, by the function that fills one in.");
    let _ =
        writeln!(out, "#[allow(non_upper_case_globals)]\npub mod handed_out {{\n    use super::Handed;\n");
    for f in model.functions.iter().filter(|f| f.has_role("entry-point")) {
        let table = f.params.iter().filter(|p| p.pointers == 1);
        let table = table.filter_map(|p| model.types.iter().find(|t: &&Type| t.name == p.base));
        let since = f.changed.as_deref().map_or((0, 0), version);
        let members = table.flat_map(|t| &t.members).filter_map(|m| Some((m, number(&m.ty)?)));
        let members: Vec<String> = members
            .map(|(m, number)| {
                format!("Handed::new({}, {number}, {:?})", m.offset, since.max(version(&m.since)))
            })
            .collect();
        if !members.is_empty() {
            let (name, count) = (&f.name, members.len());
            let _ = writeln!(out, "    pub static {name}: [Handed; {count}] = [{}];", members.join(", "));
        }
    }
    let _ = writeln!(out, "}}");
}

#[cfg(test)]
mod tests {
    use hetrace_model::Model;

    #[test]
    fn tables_of_functions_are_known_by_the_names_of_types() {
        let model = serde_json::json!({
            "api": "toy", "registry": {"file": "", "sha256": ""}, "interpose": {"libraries": []},
            "errors": "", "enums": [], "info": {},
            "handed_out": {"infix": "_pfn", "suffix": "_t"},
            "chains": {"toy_kind": [[2, "toy_box"], [7, "toy_none"]]},
            "types": [
                {"name": "toy_pfnOpen_t", "kind": "callback", "size": 8},
                {"name": "toy_pfnGone_t", "kind": "callback", "size": 8},
                {"name": "toy_box", "kind": "struct", "size": 40},
                {"name": "toy_table", "kind": "struct", "size": 24, "members": [
                    {"name": "pfnGone", "type": "toy_pfnGone_t", "offset": 0},
                    {"name": "pfnOpen", "type": "toy_pfnOpen_t", "offset": 8, "since": "1.10"}]},
            ],
            "functions": [
                {"name": "toyOpen", "roles": [], "returns": "int", "success": "always", "params": []},
                {"name": "toyGetTable", "roles": ["entry-point"], "returns": "int", "success": "always", "params": [
                    {"name": "table", "type": "toy_table *", "base": "toy_table", "pointers": 1, "direction": "none",
                     "follow": {"how": "waived", "why": "a test"}}]}],
        });
        let model: Model = serde_json::from_value(model).unwrap();
        let text = super::tables(&model);
        assert!(
            text.contains("pub static toyGetTable: [Handed; 1] = [Handed::new(8, 0, (1, 10))];"),
            "{text}"
        );
        // Of a struct that the model does not have there is what each has.
        assert!(text.contains("pub static CHAIN_TOY_KIND: [(u32, u16); 2] = [(2, 40), (7, 16)];"), "{text}");
    }
}
