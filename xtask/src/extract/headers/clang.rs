//! libclang's view of one version of the headers, made into a [`Snapshot`].

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clang::diagnostic::Severity;
use clang::{Availability, Clang, Entity, EntityKind, Index, StorageClass, TranslationUnit, Unsaved};
use hetrace_model::{ExtractedFunction, ExtractedParam};

use super::super::description::{EntryPoints, Headers, Language};
use super::ctype;
use super::records::Records;
use super::snapshot::{EntryPoint, Snapshot};
use super::{deprecations, history, values};

/// The file that includes the headers; it exists in libclang's memory only.
const MAIN: &str = "hetrace_extract.c";

/// Finds libclang on this machine.
pub fn load() -> Result<Clang> {
    Clang::new().map_err(|e| anyhow!("{e}; install libclang or set LIBCLANG_PATH to its folder"))
}

/// Reads one version in all the API's modes.
pub fn read(libclang: &Clang, api: &Headers, label: &str, root: &Path, own: &[PathBuf]) -> Result<Snapshot> {
    let text = includes(api, root);
    let mut all = Snapshot { label: label.to_owned(), ..Snapshot::default() };
    for mode in &api.modes {
        let index = Index::new(libclang, true, false);
        let unit = parse(&index, api, mode, root, own, &text)?;
        let mut got = snapshot(api, &unit, root, label);
        if mode == &api.modes[0] {
            let names = values::constants(api, unit.get_entity());
            let text = format!("{text}\n{}", values::program(&names));
            drop(unit);
            let unit = parse(&index, api, mode, root, own, &text)?;
            got.enums.extend(values::groups(api, unit.get_entity()));
        }
        all.absorb(got);
    }
    Ok(all)
}

/// Ours first: some headers expect that others were included before. Versions
/// differ in which headers there are.
fn includes(api: &Headers, root: &Path) -> String {
    let there = api.files.iter().filter(|h| root.join(h).exists());
    api.own.iter().chain(there).map(|h| format!("#include <{h}>\n")).collect()
}

fn parse<'i>(
    index: &'i Index<'i>,
    api: &Headers,
    mode: &[String],
    root: &Path,
    own: &[PathBuf],
    text: &str,
) -> Result<TranslationUnit<'i>> {
    // Nothing of this machine may show in the result: target, dialect and C
    // library are fixed.
    let language = match api.language {
        Language::C => ["-xc", "-std=gnu11"],
        Language::Cpp => ["-xc++", "-std=gnu++17"],
    };
    let fixed = ["-target", "x86_64-unknown-linux-gnu", "-nostdinc", "-ferror-limit=0"];
    let mut arguments: Vec<String> = language.iter().chain(&fixed).map(|a| (*a).to_owned()).collect();
    arguments.extend(mode.iter().map(|define| format!("-D{define}")));
    // Ours come first: they stand in for parts that need a compiler of the vendor's.
    let folders = own.iter().map(PathBuf::as_path).chain([root]);
    arguments.extend(folders.map(|folder| format!("-I{}", folder.display())));
    let unit = index
        .parser(MAIN)
        .arguments(&arguments)
        .unsaved(&[Unsaved::new(MAIN, text)])
        .detailed_preprocessing_record(true)
        .parse()
        .map_err(|e| anyhow!("libclang: {e:?}"))?;
    let errors = unit.get_diagnostics().into_iter().filter(|d| d.get_severity() >= Severity::Error);
    let errors: Vec<String> = errors.take(5).map(|d| d.to_string()).collect();
    if !errors.is_empty() {
        bail!("libclang: {}", errors.join("; "));
    }
    Ok(unit)
}

fn snapshot(api: &Headers, unit: &TranslationUnit<'_>, root: &Path, label: &str) -> Snapshot {
    let top = top(unit.get_entity());
    let mut out = Snapshot::default();
    let mut records = Records::new(api, root, &top);
    for entity in &top {
        let Some(name) = entity.get_name() else { continue };
        match entity.get_kind() {
            EntityKind::InclusionDirective => {
                // One file has many paths (`a/../b.h`), and not all versions say the same.
                let file = entity.get_file().and_then(|f| f.get_path().canonicalize().ok());
                out.inputs.extend(file.filter(|f| f.starts_with(root)));
            }
            EntityKind::FunctionDecl
                if is_public(api, entity, &name) && !out.functions.iter().any(|f| f.name == name) =>
            {
                out.functions.push(function(&mut records, *entity, name, label, &api.deprecations));
            }
            EntityKind::TypedefDecl => {
                if let Some(point) = entry_point(api, &name) {
                    out.entry_points.push(point);
                } else {
                    records.top(*entity);
                }
            }
            EntityKind::StructDecl | EntityKind::UnionDecl | EntityKind::EnumDecl => records.top(*entity),
            _ => {}
        }
    }
    (out.types, out.enums, out.notes) = records.finish();
    out.inputs.sort();
    out.inputs.dedup();
    out
}

/// What a unit declares, also inside of `extern "C" { … }`.
fn top<'tu>(unit: Entity<'tu>) -> Vec<Entity<'tu>> {
    let mut out = Vec::new();
    for entity in unit.get_children() {
        match entity.get_kind() {
            // libclang before version 16 has no name for it.
            EntityKind::LinkageSpec | EntityKind::UnexposedDecl => out.extend(top(entity)),
            _ => out.push(entity),
        }
    }
    out
}

fn is_public(api: &Headers, entity: &Entity<'_>, name: &str) -> bool {
    api.is_function(name)
        && entity.get_storage_class() != Some(StorageClass::Static)
        && !entity.is_inline_function()
        && !entity.is_definition()
}

fn function<'tu>(
    records: &mut Records<'_, 'tu>,
    f: Entity<'tu>,
    name: String,
    label: &str,
    said_by: &[String],
) -> ExtractedFunction {
    let returns = f.get_result_type().map(ctype::text).unwrap_or_default();
    f.get_result_type().into_iter().for_each(|t| records.used(t));
    let mut params = Vec::new();
    for (i, param) in f.get_arguments().unwrap_or_default().into_iter().enumerate() {
        let Some(ty) = param.get_type() else { continue };
        records.used(ty);
        // A prototype need not name its parameters.
        let name = param.get_name().unwrap_or_else(|| format!("arg{i}"));
        params.push(ExtractedParam { name, ctype: ctype::text(ty) });
    }
    let said = f.get_comment().and_then(|comment| deprecations::said(&comment, said_by));
    let deprecated = match (f.get_availability(), said) {
        (_, Some(Some(version))) => Some(version),
        (Availability::Deprecated, _) | (_, Some(None)) => Some(label.to_owned()),
        _ => None,
    };
    let variadic = f.is_variadic();
    ExtractedFunction { name, deprecated, returns, params, variadic, ..ExtractedFunction::default() }
}

/// `PFN_toyCopy_v7000_ptds`.
fn entry_point(api: &Headers, name: &str) -> Option<EntryPoint> {
    let EntryPoints { prefix, .. } = api.entry_points.as_ref()?;
    let (name, variant) = history::variant(name.strip_prefix(prefix.as_str())?, &api.suffixes);
    let (base, version) = name.rsplit_once(api.suffixes.version.as_deref()?)?;
    let version = version.parse().ok()?;
    Some(EntryPoint { base: base.to_owned(), version, variant: variant.to_owned() })
}
