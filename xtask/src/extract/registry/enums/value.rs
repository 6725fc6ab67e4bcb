//! The numbers behind names.

use std::collections::HashMap;

use roxmltree::Node;

use super::children;

/// Names may stand for names; more steps than this are a circle.
const MAX_STEPS: usize = 8;

/// All enumerants of the registry.
pub struct Values<'a> {
    texts: HashMap<&'a str, Text<'a>>,
}

enum Text<'a> {
    Bit(&'a str),
    Value(&'a str),
}

impl<'a> Values<'a> {
    /// Collects every `<enum>` in an `<enums>`.
    pub fn read<'i>(root: Node<'a, 'i>) -> Values<'a> {
        let enums = children(root, "enums").flat_map(|g| children(g, "enum"));
        let text = |e: Node<'a, 'i>| {
            let text = match e.attribute("bitpos") {
                Some(bit) => Text::Bit(bit),
                None => Text::Value(e.attribute("value")?),
            };
            Some((e.attribute("name")?, text))
        };
        Values { texts: enums.filter_map(text).collect() }
    }

    /// Whether there is an enumerant of this name.
    pub fn has(&self, name: &str) -> bool {
        self.texts.contains_key(name)
    }

    /// Its number.
    pub fn of(&self, name: &str) -> Option<i64> {
        self.number(name, MAX_STEPS)
    }

    fn number(&self, name: &str, steps: usize) -> Option<i64> {
        match self.texts.get(name)? {
            Text::Bit(bit) => 1i64.checked_shl(bit.parse().ok()?),
            Text::Value(text) => literal(text).or_else(|| self.number(text, steps.checked_sub(1)?)),
        }
    }
}

/// `-5`, `0x1F`, `((ty_bitfield)0)`.
fn literal(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
        // A cast in front of the number says nothing about it.
        let inner = inner.trim();
        let uncast = inner.strip_prefix('(').and_then(|t| t.split_once(')')).map_or(inner, |(_, n)| n);
        return literal(uncast);
    }
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |t| (-1, t));
    let magnitude = match digits.strip_prefix("0x") {
        // The upper half of 64 bits is as good as any other.
        Some(hex) => u64::from_str_radix(hex, 16).ok()?.cast_signed(),
        None => digits.parse().ok()?,
    };
    Some(sign * magnitude)
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn reads_the_registrys_ways_to_write_a_number() {
        for (text, value) in [
            ("-5", Some(-5)),
            ("0x1F", Some(31)),
            ("0xFFFFFFFF", Some(0xFFFF_FFFF)),
            ("((ty_layer_properties)0)", Some(0)),
            ("TY_TRUE", None),
            ("SIZE_MAX", None),
        ] {
            assert_eq!(literal(text), value, "{text}");
        }
    }
}
