//! Where things lie in the folder of a trace.

/// The metadata: how the streams are laid out, in TSDL.
pub const METADATA: &str = "metadata";
/// The folder of all that CTF has no place for.
pub const OWN: &str = "hetrace";
/// The manifest.
pub const MANIFEST: &str = "hetrace/manifest.json";
/// The next manifest, until it is whole.
pub const FRESH_MANIFEST: &str = "hetrace/manifest.json.new";
/// In a part of a run that was divided: which one, and what of it is repeated ([`hetrace_ctf::read::Part`]).
pub const PART: &str = hetrace_ctf::read::Part::FILE;
/// The folder of the models.
pub const MODELS: &str = "hetrace/model";
/// The folder of stored contents.
pub const BLOBS: &str = "hetrace/blobs";
/// The folder of what went on inside of kernels.
pub const INSIDE: &str = "inside";

/// In the folder of a session with events of the operating system: the trace of the program.
pub const PROGRAM: &str = "hetrace";
/// And that of the operating system.
pub const KERNEL: &str = "kernel";

/// Path of the model of an API.
pub fn model(api: &str) -> String {
    format!("{MODELS}/{api}.json")
}

/// Returns the API whose model is at a path.
pub fn api_of_model(path: &str) -> Option<&str> {
    path.strip_prefix(MODELS)?.strip_prefix('/')?.strip_suffix(".json")
}

/// Name of a stored content, in [`BLOBS`]: its hash.
pub fn blob(hash: u64) -> String {
    format!("{hash:016x}")
}

/// Returns the hash by which a content of that name is stored; none if it is no such name.
pub fn blob_hash(name: &str) -> Option<u64> {
    u64::from_str_radix(name, 16).ok().filter(|hash| blob(*hash) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_named_by_their_api() {
        assert_eq!(api_of_model(&model("toy")), Some("toy"));
        assert_eq!(api_of_model("hetrace/modeltoy.json"), None);
        assert_eq!(api_of_model(MANIFEST), None);
    }

    #[test]
    fn names_of_contents_are_hashes() {
        assert_eq!(blob(0xabc), "0000000000000abc");
        assert_eq!(blob_hash(&blob(u64::MAX)), Some(u64::MAX));
        for name in ["abc", "0000000000000ABC", "+000000000000abc", "0000000000000abc.part"] {
            assert_eq!(blob_hash(name), None, "{name}");
        }
    }
}
