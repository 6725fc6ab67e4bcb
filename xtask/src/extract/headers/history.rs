//! What names and entry points say about where a function comes from.

use super::snapshot::EntryPoint;

/// `cuMemcpy_ptds` → (`cuMemcpy`, `ptds`): the streams that a null stream means.
pub fn flavour(name: &str) -> (&str, &str) {
    for flavour in ["ptds", "ptsz"] {
        if let Some(rest) = name.strip_suffix(flavour).and_then(|n| n.strip_suffix('_')) {
            return (rest, flavour);
        }
    }
    (name, "")
}

/// `cuMemcpyHtoD_v2_ptds` → (`cuMemcpyHtoD`, 2, `ptds`).
pub fn split(name: &str) -> (&str, u32, &str) {
    let (plain, flavour) = flavour(name);
    if let Some((base, number)) = plain.rsplit_once("_v")
        && let Ok(number) = number.parse()
    {
        return (base, number, flavour);
    }
    (plain, 1, flavour)
}

/// The name without version and flavour, when that is another.
pub fn base(name: &str) -> Option<String> {
    let (base, ..) = split(name);
    (base != name).then(|| base.to_owned())
}

/// `12050` → `12.5`.
fn dotted(version: u32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The version that brought a function, by its entry points: the n-th symbol
/// of a base and flavour is what the n-th of their versions brought. Nothing is
/// said when there are not as many symbols as versions.
pub fn since(name: &str, symbols: &[&str], points: &[EntryPoint]) -> Option<String> {
    let (base, number, flavour) = split(name);
    let same = |n: &&&str| {
        let (b, _, f) = split(n);
        b == base && f == flavour
    };
    let mut numbers: Vec<u32> = symbols.iter().filter(same).map(|n| split(n).1).collect();
    let of = points.iter().filter(|p| p.base == base && p.flavour == flavour);
    let mut versions: Vec<u32> = of.map(|p| p.version).collect();
    numbers.sort_unstable();
    numbers.dedup();
    versions.sort_unstable();
    versions.dedup();
    let place = numbers.iter().position(|n| *n == number)?;
    (numbers.len() == versions.len()).then(|| dotted(versions[place]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(split("toyCopy_v2_ptsz"), ("toyCopy", 2, "ptsz"));
        assert_eq!(split("toyCopy"), ("toyCopy", 1, ""));
        assert_eq!(base("toyCopy_ptds").as_deref(), Some("toyCopy"));
        assert_eq!(base("toyCopy"), None);
    }

    #[test]
    fn entry_points_date_symbols() {
        let point =
            |version, flavour: &str| EntryPoint { base: "toyCopy".into(), version, flavour: flavour.into() };
        let points = [point(3020, ""), point(2000, ""), point(7000, "ptds")];
        let symbols = ["toyCopy", "toyCopy_v2", "toyCopy_v2_ptds", "toyOther"];
        let since = |name| since(name, &symbols, &points);
        assert_eq!(since("toyCopy").as_deref(), Some("2.0"));
        assert_eq!(since("toyCopy_v2").as_deref(), Some("3.2"));
        assert_eq!(since("toyCopy_v2_ptds").as_deref(), Some("7.0"));
        assert_eq!(since("toyOther"), None);
    }
}
