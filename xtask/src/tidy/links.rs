//! Relative links in Markdown lead to a file or folder of the tree.

use std::path::Path;

/// Adds the links in one Markdown file that lead nowhere.
///
/// `root` is the repository's folder, `name` the file's path in it.
pub fn check(root: &Path, name: &Path, text: &str, faults: &mut Vec<String>) {
    if name.extension().is_none_or(|e| e != "md") {
        return;
    }
    let folder = root.join(name.parent().unwrap_or(Path::new("")));
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let dead = targets(line).into_iter().filter(|target| !folder.join(target).exists());
            faults.extend(dead.map(|t| format!("{}:{number}: {t} does not exist", name.display())));
        }
    }
}

/// The relative paths that a line links to, without fragments.
fn targets(line: &str) -> Vec<&str> {
    let inline = outside_code(line).flat_map(|text| {
        let links = text.split("](").skip(1);
        links.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
    });
    let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    let all = inline.chain(definition.map(|(_, target)| target));
    all.filter_map(|target| {
        let path = target.split_whitespace().next()?.split('#').next()?;
        let elsewhere = path.contains(':') || path.starts_with('/');
        (!path.is_empty() && !elsewhere).then_some(path)
    })
    .collect()
}

/// The parts of a line between its code spans. A link's text may be a code span: what follows it is
/// a part that begins with `](`.
fn outside_code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo;

    #[test]
    fn targets_are_relative_paths_outside_code() {
        for (line, expected) in [
            ("[a](b.md), [c](../d/e.rs#L3) and [f](g/ \"title\")", &["b.md", "../d/e.rs", "g/"][..]),
            ("[`code`](h.rs), `[i](j.rs)`, ![k](l.png)", &["h.rs", "l.png"]),
            ("[m](https://n.org/o), [p](#q), [r](mailto:s@t.u), (v.md)", &[]),
            ("[w]: x.md", &["x.md"]),
            ("[Unreleased]: https://y.org", &[]),
        ] {
            assert_eq!(targets(line), expected, "{line}");
        }
    }

    #[test]
    fn only_links_to_what_is_not_there_are_faults() {
        let text = "[up](../../README.md)\n[folder](../decisions) [gone](../README.md)\n\
                    ```\n[in a block](nowhere.md)\n```\n[gone, too](nowhere.md#head)\n";
        let faults = |name: &str| {
            let mut faults = Vec::new();
            check(repo::root(), Path::new(name), text, &mut faults);
            faults
        };
        let expected = [
            "docs/decisions/1.md:2: ../README.md does not exist",
            "docs/decisions/1.md:6: nowhere.md does not exist",
        ];
        assert_eq!(faults("docs/decisions/1.md"), expected);
        assert!(faults("docs/decisions/1.rs").is_empty());
    }
}
