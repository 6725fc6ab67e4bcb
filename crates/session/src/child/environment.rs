//! The program's environment: the caller's, entry by entry, with our variables in it.

use std::ffi::{CStr, CString, OsString, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// This process's environment as it is: in order, with duplicates and malformed entries.
pub fn own() -> Vec<CString> {
    let mut entries = Vec::new();
    // SAFETY: a null-terminated array of C strings, or null, which nothing in this process
    // changes: no code of ours sets variables, and no other thread runs yet that might.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            entries.push(CStr::from_ptr(*at).to_owned());
            at = at.add(1);
        }
    }
    entries
}

/// Sets variables: in place where the name is there, each time it is, else at the end.
pub fn with(mut entries: Vec<CString>, variables: &[(OsString, OsString)]) -> io::Result<Vec<CString>> {
    for (name, value) in variables {
        let mut entry = name.as_bytes().to_vec();
        entry.push(b'=');
        let head = entry.len();
        entry.extend_from_slice(value.as_bytes());
        let entry = CString::new(entry).map_err(io::Error::other)?;
        let is_it = |e: &CString| e.as_bytes().get(..head) == entry.as_bytes().get(..head);
        let mut found = false;
        for old in entries.iter_mut().filter(|e| is_it(e)) {
            old.clone_from(&entry);
            found = true;
        }
        if !found {
            entries.push(entry);
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_duplicates_stay() {
        let c = |text: &str| CString::new(text).unwrap();
        let before = vec![c("Z=1"), c("A=2"), c("Z=3"), c("no equals"), c("=x"), c("AB=4")];
        let set = [("A".into(), "new".into()), ("M".into(), "5".into()), ("Z".into(), "6".into())];
        let after = with(before, &set).unwrap();
        let expected = ["Z=6", "A=new", "Z=6", "no equals", "=x", "AB=4", "M=5"].map(c);
        assert_eq!(after, expected);
        assert!(with(Vec::new(), &[("A".into(), "a\0b".into())]).is_err());
    }
}
