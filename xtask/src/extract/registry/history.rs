//! Which version or extension brought a function, and which version retired it.

use std::collections::HashMap;

use roxmltree::Node;

use super::{children, requirers};

/// Where a function comes from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origin {
    /// The API version, empty for an extension's.
    pub since: String,
    /// The extension, when no version has it.
    pub extension: Option<String>,
    /// The version that deprecated it.
    pub deprecated: Option<String>,
}

/// The origin of every function that a feature or an extension requires; a
/// feature wins over an extension, the first over the later ones.
pub fn read(root: Node<'_, '_>, title: &str) -> HashMap<String, Origin> {
    let mut origins = HashMap::new();
    for requirer in requirers(root) {
        for require in children(requirer, "require") {
            let origin = Origin {
                since: requirer.attribute("number").unwrap_or_default().to_owned(),
                extension: match requirer.has_tag_name("extension") {
                    true => requirer.attribute("name").map(str::to_owned),
                    false => None,
                },
                deprecated: deprecated(require.attribute("comment").unwrap_or_default(), title),
            };
            for command in children(require, "command") {
                let name = command.attribute("name").unwrap_or_default();
                origins.entry(name.to_owned()).or_insert_with(|| origin.clone());
            }
        }
    }
    origins
}

/// `Toy 1.0 APIs that were deprecated in Toy 1.2` → `1.2`; `title` is `Toy`.
fn deprecated(comment: &str, title: &str) -> Option<String> {
    let (_, version) = comment.split_once(&format!("deprecated in {title} "))?;
    Some(version.trim().to_owned())
}
