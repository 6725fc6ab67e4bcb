//! Handle types that differ in `const` only: objects are of one type, whoever may change them.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use hetrace_model::{Extracted, Kind};

/// Calls each first type as the second.
///
/// # Errors
/// When one of them is no handle.
pub fn unite(api: &mut Extracted, same: &BTreeMap<String, String>) -> Result<()> {
    for (from, to) in same {
        for name in [from, to] {
            let there = api.types.iter().any(|t| t.name == *name && t.kind == Kind::Handle);
            ensure!(there, "`headers.same`: no handle type is called `{name}`");
        }
        api.types.retain(|t| t.name != *from);
        let texts = api.functions.iter_mut().flat_map(|f| {
            let params = f.params.iter_mut().map(|p| &mut p.ctype);
            std::iter::once(&mut f.returns).chain(params)
        });
        let members = api.types.iter_mut().flat_map(|t| t.members.iter_mut().map(|m| &mut m.ty));
        for text in texts.chain(members) {
            *text = renamed(text, from, to);
        }
    }
    Ok(())
}

/// A C type in which one word stands for another.
fn renamed(ctype: &str, from: &str, to: &str) -> String {
    let words = ctype.split(' ').map(|word| if word == from { to } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use hetrace_model::{ExtractedFunction, ExtractedParam, Type};

    use super::*;

    #[test]
    fn objects_have_one_type() {
        let handle = |name: &str| Type { name: name.into(), kind: Kind::Handle, size: 8, ..Type::default() };
        let param = |ctype: &str| ExtractedParam { name: "box".into(), ctype: ctype.into() };
        let mut api = Extracted {
            types: vec![handle("toyBox_t"), handle("toyConstBox_t")],
            functions: vec![ExtractedFunction {
                returns: "toyConstBox_t".into(),
                params: vec![param("toyConstBox_t *"), param("const toyConstBox_tt")],
                ..Default::default()
            }],
            ..Extracted::default()
        };
        let same = |from: &str| BTreeMap::from([(from.to_owned(), "toyBox_t".to_owned())]);
        unite(&mut api, &same("toyConstBox_t")).unwrap();
        let f = &api.functions[0];
        assert_eq!((f.returns.as_str(), f.params[0].ctype.as_str()), ("toyBox_t", "toyBox_t *"));
        assert_eq!((f.params[1].ctype.as_str(), api.types.len()), ("const toyConstBox_tt", 1));
        let gone = unite(&mut api, &same("toyConstBox_t")).unwrap_err().to_string();
        assert!(gone.contains("no handle type is called `toyConstBox_t`"), "{gone}");
    }
}
