//! What APIs of the program handed over of machine code, for `hetrace rewrite`: the text that it was made of, what it was linked
//! of, or why there is neither.

use std::fs;
use std::path::Path;

use hetrace_gpu_kernel::ptx::{image, link};
use hetrace_session::{INSIDE_PARTS, INSIDE_TEXT, INSIDE_WHY};

/// Longest name of an input in a reason.
const NAME: usize = 80;

/// Returns the text of code whose files are called `base` and an end, or why there is none; none if nothing is known.
pub fn text(base: &Path, device: u32) -> Option<Result<Vec<u8>, String>> {
    let read = |end: &str| fs::read(format!("{}{end}", base.display())).ok();
    if let Some(text) = read(INSIDE_TEXT) {
        return Some(Ok(text));
    }
    if let Some(parts) = read(INSIDE_PARTS) {
        return Some(linked(&parts, device).map(String::into_bytes));
    }
    read(INSIDE_WHY).map(|why| Err(String::from_utf8_lossy(&why).into_owned()))
}

/// Makes one text of what code was linked of.
fn linked(parts: &[u8], device: u32) -> Result<String, String> {
    let (mut texts, mut rest, mut number) = (Vec::new(), parts, 0);
    while !rest.is_empty() {
        number += 1;
        let (name, part, behind) = next(rest).ok_or("what it was linked of is cut short")?;
        let name: String = name.chars().take(NAME).collect();
        let text = image::text(part, device).map_err(|error| match part {
            [] => format!("linked with {name} (input {number}), in which no PTX is looked for"),
            _ => format!("linked of {name} (input {number}): {error}"),
        })?;
        texts.push(text);
        rest = behind;
    }
    match texts.as_slice() {
        [] => Err("linked of nothing".to_owned()),
        [one] => Ok(one.clone()),
        _ => link::link(&texts).map_err(|error| format!("linked of {number} inputs: {error}")),
    }
}

/// The next input, its name, and what is behind it.
fn next(parts: &[u8]) -> Option<(String, &[u8], &[u8])> {
    let end = parts.iter().position(|byte| *byte == b'\n')?;
    let (head, rest) = (parts.get(..end)?, parts.get(end + 1..)?);
    let head = String::from_utf8_lossy(head);
    let (bytes, name) = head.split_once(' ')?;
    let (part, behind) = rest.split_at_checked(bytes.parse().ok()?)?;
    Some((if name.is_empty() { "an input without a name".to_owned() } else { name.to_owned() }, part, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry a() { ret; }\n";
    const B: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry b() { ret; }\n";

    fn parts(parts: &[(&str, &str)]) -> Vec<u8> {
        parts.iter().flat_map(|(name, part)| format!("{} {name}\n{part}", part.len()).into_bytes()).collect()
    }

    fn why(found: &[(&str, &str)]) -> String {
        linked(&parts(found), 90).expect_err("a reason")
    }

    #[test]
    fn what_was_linked_is_one_text_or_has_a_reason() {
        assert_eq!(linked(&parts(&[("a.ptx", A)]), 90).as_deref(), Ok(A));
        let both = linked(&parts(&[("a.ptx", A), ("", B)]), 90).expect("linked");
        assert_eq!((both.matches(".version").count(), both.matches(".entry").count()), (1, 2));
        assert_eq!(
            why(&[("a.ptx", A), ("libcudadevrt.a", "")]),
            "linked with libcudadevrt.a (input 2), in which no PTX is looked for"
        );
        assert_eq!(why(&[("a.ptx", A), ("b.ptx", A)]), "linked of 2 inputs: a is defined by two inputs");
        assert!(why(&[("", "x")]).starts_with("linked of an input without a name (input 1): not a kind"));
        assert!(why(&[("a.ptx", &A.replace("sm_90", "sm_100"))]).contains("its PTX is for sm_100"));
        assert_eq!(why(&[]), "linked of nothing");
        let all = parts(&[("a.ptx", A)]);
        assert!((1..all.len()).all(|end| linked(&all[..end], 90).is_err()));
    }

    #[test]
    fn the_text_comes_before_what_it_was_linked_of() {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().join("00ff");
        let put = |end: &str, bytes: &[u8]| fs::write(format!("{}{end}", base.display()), bytes);
        assert_eq!(text(&base, 90), None);
        put(INSIDE_WHY, b"no").expect("written");
        assert_eq!(text(&base, 90), Some(Err("no".to_owned())));
        put(INSIDE_PARTS, &parts(&[("a", A)])).expect("written");
        assert_eq!(text(&base, 90), Some(Ok(A.into())));
        put(INSIDE_TEXT, B.as_bytes()).expect("written");
        assert_eq!(text(&base, 90), Some(Ok(B.into())));
    }
}
