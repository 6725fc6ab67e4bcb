//! Structs that programs only pass back: the model has them as handles, whose values identify objects.
//!
//! A struct of one integer that is passed by value travels as that integer does. A struct of which programs have the address
//! alone is identified by it, so that address is the handle: `toy_queue *` is the handle `toy_queue`.

use anyhow::{Result, ensure};
use hetrace_model::{Extracted, Kind};

use super::ctype;

/// Makes handles of structs of one integer.
///
/// # Errors
/// When one is something else.
pub fn by_value(api: &mut Extracted, names: &[String]) -> Result<()> {
    for name in names {
        let found = api.types.iter_mut().find(|t| t.name == *name);
        let found = found.filter(|t| t.kind == Kind::Struct && t.size == 8 && t.members.len() == 1);
        ensure!(found.is_some(), "`headers.handles`: no struct of one 64-bit integer is called `{name}`");
        found.into_iter().for_each(|ty| {
            ty.kind = Kind::Handle;
            ty.members.clear();
        });
    }
    Ok(())
}

/// Makes handles of addresses of structs.
///
/// # Errors
/// When one is no struct, or is passed by value.
pub fn by_address(api: &mut Extracted, names: &[String]) -> Result<()> {
    for name in names {
        let found = api.types.iter_mut().find(|t| t.name == *name);
        let found = found.filter(|t| matches!(t.kind, Kind::Struct | Kind::Opaque));
        ensure!(found.is_some(), "`headers.objects`: no struct is called `{name}`");
        found.into_iter().for_each(|ty| {
            (ty.kind, ty.size) = (Kind::Handle, 8);
            ty.members.clear();
            ty.size_before.clear();
        });
        let texts = api.functions.iter_mut().flat_map(|f| {
            let params = f.params.iter_mut().map(|p| &mut p.ctype);
            std::iter::once(&mut f.returns).chain(params)
        });
        for text in texts.filter(|text| !text.contains('(') && ctype::base(text) == name) {
            let Some((before, after)) = text.rsplit_once('*') else {
                anyhow::bail!("`headers.objects`: `{name}` is passed by value");
            };
            *text = format!("{before}{after}").trim_end().to_owned();
        }
        for member in api.types.iter_mut().flat_map(|t| &mut t.members).filter(|m| m.ty == *name) {
            ensure!(member.pointers > 0, "`headers.objects`: `{name}` is part of a struct");
            member.pointers -= 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hetrace_model::{ExtractedFunction, ExtractedParam, Member, Type};

    use super::*;

    fn toy() -> Extracted {
        let member = |name: &str, ty: &str, pointers| Member {
            name: name.into(),
            ty: ty.into(),
            pointers,
            count: 1,
            ..Member::default()
        };
        let ty = |name: &str, size, members| Type {
            name: name.into(),
            kind: Kind::Struct,
            size,
            members,
            ..Type::default()
        };
        let param = |ctype: &str| ExtractedParam { name: "it".into(), ctype: ctype.into() };
        Extracted {
            types: vec![
                ty("toy_box", 8, vec![member("handle", "uint64_t", 0)]),
                ty("toy_queue", 40, vec![member("id", "uint64_t", 0)]),
                ty("toy_use", 16, vec![member("queue", "toy_queue", 1), member("box", "toy_box", 0)]),
            ],
            functions: vec![ExtractedFunction {
                returns: "const toy_queue *".into(),
                params: vec![param("toy_queue **"), param("toy_box"), param("const toy_queue *")],
                ..Default::default()
            }],
            ..Extracted::default()
        }
    }

    #[test]
    fn what_identifies_an_object_is_its_handle() {
        let mut api = toy();
        by_value(&mut api, &["toy_box".into()]).unwrap();
        by_address(&mut api, &["toy_queue".into()]).unwrap();
        let kinds: Vec<_> = api.types.iter().map(|t| (t.kind, t.size, t.members.len())).collect();
        assert_eq!(kinds, [(Kind::Handle, 8, 0), (Kind::Handle, 8, 0), (Kind::Struct, 16, 2)]);
        let params: Vec<&str> = api.functions[0].params.iter().map(|p| p.ctype.as_str()).collect();
        assert_eq!(params, ["toy_queue *", "toy_box", "const toy_queue"]);
        assert_eq!(api.functions[0].returns, "const toy_queue");
        assert_eq!(api.types[2].members[0].pointers, 0);
    }

    #[test]
    fn what_is_none_is_refused() {
        let error = |done: Result<()>| done.unwrap_err().to_string();
        let mut api = toy();
        assert!(error(by_value(&mut api, &["toy_queue".into()])).contains("one 64-bit integer"));
        assert!(error(by_value(&mut api, &["toy_none".into()])).contains("`toy_none`"));
        assert!(error(by_address(&mut api, &["toy_none".into()])).contains("no struct"));
        assert!(error(by_address(&mut api, &["toy_box".into()])).contains("passed by value"));
    }
}
