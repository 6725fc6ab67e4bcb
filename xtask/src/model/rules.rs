//! A rule that describes no parameter is a mistake, or was left behind.

use hetrace_model::{Extracted, Semantics};

/// Rules that are nowhere the first that fits.
pub fn problems(extracted: &Extracted, semantics: &Semantics) -> Vec<String> {
    let mut used = vec![false; semantics.rules.len()];
    for f in &extracted.functions {
        let known = semantics.of(&f.name).map(|(_, known)| known);
        for p in f.params.iter().filter(|p| p.ctype.contains('*')) {
            let by_hand = known.is_some_and(|k| k.params.contains_key(&p.name));
            let rule = semantics.rules.iter().position(|r| r.fits(f, p));
            if let Some(rule) = rule.filter(|_| !by_hand) {
                used[rule] = true;
            }
        }
    }
    let idle = semantics.rules.iter().zip(used).filter(|(_, used)| !used);
    idle.map(|(r, _)| format!("rule: `{}` = \"{}\" describes no parameter", r.param, r.is)).collect()
}
