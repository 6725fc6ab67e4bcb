//! What names and entry points say about where a function comes from.

use super::super::description::{Headers, Suffixes};
use super::snapshot::EntryPoint;

/// `toyCopy_ptds` → (`toyCopy`, `_ptds`).
pub fn variant<'n>(name: &'n str, suffixes: &'n Suffixes) -> (&'n str, &'n str) {
    let mut variants = suffixes.variants.iter();
    let found = variants.find_map(|suffix| Some((name.strip_suffix(suffix.as_str())?, suffix.as_str())));
    found.unwrap_or((name, ""))
}

/// `toyCopy_v2_ptds` → (`toyCopy`, 2, `_ptds`).
pub fn split<'n>(name: &'n str, suffixes: &'n Suffixes) -> (&'n str, u32, &'n str) {
    let (plain, variant) = variant(name, suffixes);
    if let Some((base, number)) = suffixes.version.as_deref().and_then(|v| plain.rsplit_once(v))
        && let Ok(number) = number.parse()
    {
        return (base, number, variant);
    }
    (plain, 1, variant)
}

/// The name without version and variant, when that is another.
pub fn base(name: &str, suffixes: &Suffixes) -> Option<String> {
    let (base, ..) = split(name, suffixes);
    (base != name).then(|| base.to_owned())
}

/// The version that brought a function, by its entry points: the n-th symbol
/// of a base and variant is what the n-th of their versions brought. Nothing is
/// said when there are not as many symbols as versions.
pub fn since(name: &str, symbols: &[&str], points: &[EntryPoint], api: &Headers) -> Option<String> {
    let scheme = api.entry_points.as_ref()?;
    let (base, number, variant) = split(name, &api.suffixes);
    let same = |n: &&&str| {
        let (b, _, v) = split(n, &api.suffixes);
        b == base && v == variant
    };
    let mut numbers: Vec<u32> = symbols.iter().filter(same).map(|n| split(n, &api.suffixes).1).collect();
    let of = points.iter().filter(|p| p.base == base && p.variant == variant);
    let mut versions: Vec<u32> = of.map(|p| p.version).collect();
    numbers.sort_unstable();
    numbers.dedup();
    versions.sort_unstable();
    versions.dedup();
    let place = numbers.iter().position(|n| *n == number)?;
    // `12050` → `12.5`.
    let dotted = |v: u32| format!("{}.{}", v / scheme.major, v % scheme.major / scheme.minor);
    (numbers.len() == versions.len()).then(|| dotted(versions[place]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::toy;
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let suffixes = toy().suffixes;
        assert_eq!(split("toyCopy_v2_ptsz", &suffixes), ("toyCopy", 2, "_ptsz"));
        assert_eq!(split("toyCopy", &suffixes), ("toyCopy", 1, ""));
        assert_eq!(base("toyCopy_ptds", &suffixes).as_deref(), Some("toyCopy"));
        assert_eq!(base("toyCopy", &suffixes), None);
        assert_eq!(base("toyCopy_v2_ptds", &Suffixes::default()), None);
    }

    #[test]
    fn entry_points_date_symbols() {
        let point =
            |version, variant: &str| EntryPoint { base: "toyCopy".into(), version, variant: variant.into() };
        let points = [point(3020, ""), point(2000, ""), point(7000, "_ptds")];
        let symbols = ["toyCopy", "toyCopy_v2", "toyCopy_v2_ptds", "toyOther"];
        let since = |name| since(name, &symbols, &points, &toy());
        assert_eq!(since("toyCopy").as_deref(), Some("2.0"));
        assert_eq!(since("toyCopy_v2").as_deref(), Some("3.2"));
        assert_eq!(since("toyCopy_v2_ptds").as_deref(), Some("7.0"));
        assert_eq!(since("toyOther"), None);
    }
}
