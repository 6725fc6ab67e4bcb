//! The files that an API is extracted from: out of packages, folders, or a person's hands.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::description::{Description, Source};
use crate::repo;

/// One version's files.
pub struct Found {
    /// The version.
    pub version: String,
    /// The folder or file in which they are.
    pub place: PathBuf,
    /// The folders with the packages whose headers they include.
    pub with: Vec<PathBuf>,
}

/// Brings the headers of a package, by its name and version, into a folder.
type Download = fn(&str, &Path) -> Result<()>;

/// Finds all sources of an API, oldest first. They are looked for in `from`: the file or
/// folder given, or a folder of unpacked packages. Without it packages are downloaded.
pub fn find(api: &Description, from: Option<&Path>) -> Result<Vec<Found>> {
    let found = api.sources.iter().enumerate().map(|(i, source)| {
        let entry = || format!("{}, `source`, entry {}", shown(&api.folder.join("extract.toml")), i + 1);
        let place = place(api, source, from).with_context(entry)?;
        let with = source.with.iter().map(|wheel| {
            let other = Source { wheel: Some(wheel.clone()), ..Source::default() };
            self::place(api, &other, from)
        });
        Ok(Found {
            version: source.version.clone(),
            place,
            with: with.collect::<Result<_>>().with_context(entry)?,
        })
    });
    found.collect()
}

fn place(api: &Description, source: &Source, from: Option<&Path>) -> Result<PathBuf> {
    if let Some(folder) = &source.folder {
        let place = api.folder.join(folder);
        ensure!(place.is_dir(), "no folder {}: `folder` is seen from the API's own", shown(&place));
        return Ok(place);
    }
    if let Some(name) = &source.given {
        return given(name, from);
    }
    let (stem, download): (String, Download) = match (&source.wheel, &source.debian) {
        (Some(wheel), _) => (wheel.replace('-', "_").replace("==", "-") + "-", wheel_headers),
        (_, Some(package)) => (package.replacen('=', "_", 1) + "_", debian_headers),
        _ => bail!("write one of `wheel`, `debian`, `folder` and `given`"),
    };
    let package = source.wheel.as_ref().or(source.debian.as_ref()).map_or("", String::as_str);
    if let Some(from) = from {
        let there = unpacked(from, &stem)?;
        return there
            .with_context(|| format!("no folder {stem}* in {}; unpack {package} there", shown(from)));
    }
    let cache = cache();
    std::fs::create_dir_all(&cache)?;
    if let Some(there) = unpacked(&cache, &stem)? {
        return Ok(there);
    }
    eprintln!("downloading the headers of {package}");
    let place = cache.join(format!("{stem}headers"));
    let part = cache.join(format!("part-{}-{stem}", std::process::id()));
    download(package, &part).with_context(|| {
        format!("downloading {package}; or unpack it into a folder {stem}… and say --from with the folder around it")
    })?;
    // A folder of this name is whole.
    std::fs::rename(&part, &place)?;
    Ok(place)
}

/// Downloaded headers, kept for the next time.
fn cache() -> PathBuf {
    repo::root().join("target/headers")
}

fn shown(path: &Path) -> std::path::Display<'_> {
    path.strip_prefix(repo::root()).unwrap_or(path).display()
}

/// What a person hands in: the file or folder itself, or one of that name in a folder.
fn given(name: &str, from: Option<&Path>) -> Result<PathBuf> {
    let hand = || format!("`{name}` lies in no package; hand it in with --from PATH");
    let from = match from {
        Some(from) => from.to_owned(),
        None => Some(cache().join(name)).filter(|p| p.exists()).with_context(hand)?,
    };
    let inside = from.join(name);
    let place = if inside.exists() { inside } else { from };
    ensure!(place.exists(), "no {}; {}", place.display(), hand());
    Ok(place)
}

fn unpacked(folder: &Path, stem: &str) -> Result<Option<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(stem) && entry.path().is_dir() {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Reads headers out of wheels.
const WHEEL: &str = include_str!("wheel.py");

fn wheel_headers(requirement: &str, into: &Path) -> Result<()> {
    run(Command::new("python3").args(["-c", WHEEL, requirement]).arg(into))
}

/// Neither installs anything nor needs root.
fn debian_headers(package: &str, into: &Path) -> Result<()> {
    std::fs::create_dir_all(into)?;
    run(Command::new("apt-get").args(["-q", "download", package]).current_dir(into))
        .context("`apt-cache policy` has the versions that there are")?;
    let archives = std::fs::read_dir(into)?.collect::<std::io::Result<Vec<_>>>()?;
    let [archive] = archives.as_slice() else { bail!("{} files came of {package}", archives.len()) };
    run(Command::new("dpkg-deb").arg("-x").arg(archive.path()).arg(into))?;
    Ok(std::fs::remove_file(archive.path())?)
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("starting {program}"))?;
    ensure!(status.success(), "{program}: {status}");
    Ok(())
}

/// The folder under `place` that has this header, by its path as included.
pub fn include_folder(place: &Path, header: &str) -> Result<PathBuf> {
    let found = search(place, header)?;
    found.with_context(|| format!("no {header}, the first of `headers.files`, in {}", shown(place)))
}

/// The outermost folder under `place` that has any header.
pub fn any_include_folder(place: &Path) -> Result<PathBuf> {
    let mut level = vec![place.to_owned()];
    while !level.is_empty() {
        let mut below = Vec::new();
        for folder in level {
            for entry in
                std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?
            {
                let path = entry?.path();
                if path.extension().is_some_and(|e| e == "h") {
                    return Ok(folder);
                }
                below.extend(Some(path).filter(|p| p.is_dir() && !p.is_symlink()));
            }
        }
        below.sort();
        level = below;
    }
    bail!("no header in {}", shown(place))
}

fn search(folder: &Path, header: &str) -> Result<Option<PathBuf>> {
    if folder.join(header).is_file() {
        return Ok(Some(folder.to_owned()));
    }
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        // A link may lead around in a circle.
        if entry.file_type()?.is_dir() {
            entries.push(entry.path());
        }
    }
    entries.sort();
    for path in entries {
        if let Some(found) = search(&path, header)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::description;

    /// A description of one source, and an empty folder that goes with it.
    fn toy(name: &str, source: &str) -> (Description, PathBuf) {
        let folder = repo::root().join(format!("target/headers/test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("source = [{source}]\n[headers]\nfiles = [\"toy.h\"]\nfunctions = [\"toy\"]\n");
        (description::parse("toy", &folder.join("extract.toml"), &text).unwrap(), folder)
    }

    fn found(api: &Description, from: Option<&Path>) -> Result<PathBuf, String> {
        find(api, from).map(|mut found| found.remove(0).place).map_err(|e| format!("{e:#}"))
    }

    #[test]
    fn packages_are_found_unpacked() {
        for (name, source, unpacked) in [
            ("wheel", "{ wheel = \"toy-headers==1.2\" }", "toy_headers-1.2-py3-none-any"),
            ("debian", "{ debian = \"libtoy-dev=1.2-3\" }", "libtoy-dev_1.2-3_all"),
        ] {
            let (api, folder) = toy(name, source);
            let none = found(&api, Some(&folder)).unwrap_err();
            assert!(none.contains("`source`, entry 1: no folder ") && none.contains("; unpack "), "{none}");
            let deep = folder.join(unpacked).join("usr/include");
            std::fs::create_dir_all(&deep).unwrap();
            let place = found(&api, Some(&folder)).unwrap();
            assert_eq!(place, folder.join(unpacked));
            let none = include_folder(&place, "toy.h").unwrap_err().to_string();
            assert!(none.contains("no toy.h, the first of `headers.files`"), "{none}");
            std::fs::write(deep.join("toy.h"), "").unwrap();
            assert_eq!(include_folder(&place, "toy.h").unwrap(), deep);
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn headers_of_another_package_come_with_them() {
        let (api, folder) = toy("with", "{ wheel = \"toy==1\", with = \"base==2\" }");
        std::fs::create_dir_all(folder.join("toy-1-any")).unwrap();
        let none = found(&api, Some(&folder)).unwrap_err();
        assert!(none.contains("no folder base-2-*"), "{none}");
        let deep = folder.join("base-2-any/vendor/include");
        std::fs::create_dir_all(deep.join("more")).unwrap();
        let other = find(&api, Some(&folder)).unwrap().remove(0).with.remove(0);
        assert_eq!(other, folder.join("base-2-any"));
        assert!(any_include_folder(&other).unwrap_err().to_string().contains("no header in "));
        for header in ["more/a.h", "z.h"] {
            std::fs::write(deep.join(header), "").unwrap();
        }
        assert_eq!(any_include_folder(&other).unwrap(), deep);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_lies_nowhere_is_handed_in() {
        let (api, folder) = toy("given", "{ given = \"toy-1.tar\" }");
        let none = found(&api, None).unwrap_err();
        assert!(none.contains("hand it in with --from"), "{none}");
        std::fs::write(folder.join("toy-1.tar"), "").unwrap();
        let file = folder.join("toy-1.tar");
        assert_eq!(found(&api, Some(&folder)).unwrap(), file);
        assert_eq!(found(&api, Some(&file)).unwrap(), file);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn folders_are_seen_from_the_description() {
        let (api, folder) = toy("folder", "{ folder = \"headers\" }");
        assert!(found(&api, None).unwrap_err().contains("no folder "));
        std::fs::create_dir(folder.join("headers")).unwrap();
        assert_eq!(found(&api, None).unwrap(), folder.join("headers"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
