//! What the launcher knows of the APIs of its source tree since it was built.
//!
//! A library is opened for each API that a machine has, and the program waits. So of a library that begins its index as the
//! launcher knows it nothing else is read: all that is asked at a start follows from these bytes, and was made with
//! the launcher by its build script. A library of another build, or of an API that the launcher does not know, is read.

use std::borrow::Cow;
use std::ffi::CStr;

use hetrace_ctf::account::Checksum;

use super::entrance::{Entrance, Tools};

/// An API of the launcher's source tree.
#[derive(Debug)]
pub(super) struct Known {
    /// Its short name.
    pub api: &'static str,
    /// The name of its library's file.
    pub file: &'static CStr,
    /// The libraries and files of which a program needs one, as numbers of [`names`].
    pub requires: &'static [u16],
    /// The API's own libraries, as numbers of [`names`].
    pub libraries: &'static [u16],
    /// How its library gets into programs.
    pub entrance: Entrance,
    /// Its index up to the functions' lines; in it is a checksum of the model.
    pub beginning: &'static [u8],
    /// The flags of its functions in a run without options.
    pub flags: &'static [u8],
    /// The checksum of `beginning`.
    pub mark: Checksum,
    /// Bytes of its model.
    pub model_bytes: u64,
}

include!(concat!(env!("OUT_DIR"), "/known.rs"));

/// The libraries and files that any API requires or is exported by, in order.
pub(super) fn names() -> &'static [&'static CStr] {
    &NAMES
}

/// Returns an API by the name of its library's file.
pub(super) fn by_file(name: &CStr) -> Option<&'static Known> {
    APIS.binary_search_by(|known| known.file.to_bytes().cmp(name.to_bytes())).ok().map(|number| &APIS[number])
}

/// Returns all of them.
#[cfg(test)]
pub(super) fn all() -> &'static [Known] {
    &APIS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_of_the_source_is_found_by_its_file() {
        assert!(APIS.len() > 20);
        for known in &APIS {
            let found = by_file(known.file).expect("it is there");
            assert_eq!(found.api, known.api);
        }
        assert!(by_file(c"libhetrace_cud.so").is_none() && by_file(c"libhetrace_cudaa.so").is_none());
        assert!(NAMES.is_sorted());
    }

    /// What was made with the launcher is what it would find in the index.
    #[test]
    fn what_is_known_is_what_the_index_says() {
        use hetrace_model::index::Index;

        use crate::flags::Choice;

        for known in &APIS {
            let index = Index::begin(known.beginning.to_vec()).expect("an index");
            assert_eq!(index.before_rows(), known.beginning);
            let of_kind = |kind| Choice::USUAL.of_kind(index.head.timing, &kind, true);
            let flags = index.by_kind(&index.kinds().map(of_kind).collect::<Vec<u8>>());
            assert_eq!(flags, known.flags, "{}", known.api);
            assert!(!known.flags.is_empty() && known.flags.iter().any(|flags| *flags != 0), "{}", known.api);
            assert_eq!(index.head.model_bytes as u64, known.model_bytes);
            assert_eq!(Checksum::of(known.beginning), known.mark);
            let interpose = &index.head.interpose;
            let named = |numbers: &[u16]| {
                let name = |number: &u16| NAMES[usize::from(*number)].to_str().expect("a text").to_owned();
                numbers.iter().map(name).collect::<Vec<_>>()
            };
            assert_eq!(named(known.requires), interpose.requires);
            assert_eq!(named(known.libraries), interpose.libraries);
            assert_eq!(Entrance::of(index.head), known.entrance);
        }
    }
}
