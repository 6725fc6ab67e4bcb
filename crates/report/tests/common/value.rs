//! `key=value` of the scripts to CTF values.

use hetrace_ctf::Value;
use hetrace_ctf::class::{FieldClass, IntegerClass, StructClass};

/// The fields of an event; those that are not given are 0 or empty.
pub fn fields(class: &StructClass, given: &[(String, String)]) -> Value {
    for (key, _) in given {
        assert!(class.index(key).is_some(), "no field {key}");
    }
    let text = |name: &str| given.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str());
    let mut values = Vec::new();
    for field in &class.fields {
        let of = field.name.strip_prefix('_').and_then(|n| n.strip_suffix("_length"));
        let value = match of {
            Some(of) => Value::Unsigned(elements(text(of).unwrap_or("[]")).len() as u64),
            None => value(&field.class, text(&field.name)),
        };
        values.push((field.name.clone(), value));
    }
    Value::Struct(values)
}

fn value(class: &FieldClass, text: Option<&str>) -> Value {
    match class {
        FieldClass::Integer(c) => integer(c, text.map_or(0, number)),
        FieldClass::Enum(c) => {
            let label = |m: &&hetrace_ctf::class::EnumMapping| Some(m.label.as_str()) == text;
            let named = c.mappings.iter().find(label).map(|m| m.start as i64);
            integer(&c.container, named.unwrap_or_else(|| text.map_or(0, number)))
        }
        FieldClass::Float(_) => Value::Float(text.map_or(0.0, |t| t.parse().expect("a number"))),
        FieldClass::String(_) => Value::Str(text.unwrap_or("").trim_matches('"').to_owned()),
        FieldClass::Struct(c) => {
            let inner = text.unwrap_or("{}");
            let inner = inner.strip_prefix('{').and_then(|t| t.strip_suffix('}')).expect("a {struct}");
            let pair = |part: String| {
                let (key, value) = part.split_once('=').unwrap_or_else(|| panic!("{part}: key=value"));
                (key.to_owned(), value.to_owned())
            };
            fields(c, &parts(inner).into_iter().map(pair).collect::<Vec<_>>())
        }
        FieldClass::Sequence(c) => {
            let items = elements(text.unwrap_or("[]"));
            Value::Array(items.iter().map(|t| value(&c.element, Some(t))).collect())
        }
        FieldClass::Array(c) if c.element.is_character() => {
            Value::Str(text.unwrap_or("").trim_matches('"').to_owned())
        }
        FieldClass::Array(c) => {
            let items = elements(text.unwrap_or("[]"));
            let padded = items.iter().map(|t| Some(t.as_str())).chain(std::iter::repeat(None));
            Value::Array(padded.take(c.len as usize).map(|t| value(&c.element, t)).collect())
        }
        other => panic!("no value of {other:?}"),
    }
}

fn integer(class: &IntegerClass, n: i64) -> Value {
    if class.signed { Value::Signed(n) } else { Value::Unsigned(n as u64) }
}

/// `[1,2]`, or bytes in hexadecimal: `x00ff`; a single text has its bytes and a NUL.
fn elements(text: &str) -> Vec<String> {
    if let Some(hex) = text.strip_prefix('x') {
        let digits: Vec<char> = hex.chars().collect();
        return digits.chunks(2).map(|d| format!("0x{}", String::from_iter(d))).collect();
    }
    if let Some(quoted) = text.strip_prefix('"') {
        let bytes = quoted.trim_end_matches('"').bytes().chain([0]);
        return bytes.map(|b| b.to_string()).collect();
    }
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).expect("a [list]");
    parts(inner)
}

/// Splits at commas outside of brackets.
fn parts(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            _ => {}
        }
        match parts.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// `12`, `-3`, `0x1f`, `7us`, `2ms`.
pub fn number(text: &str) -> i64 {
    let parse = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as i64),
        None => text.parse().ok(),
    };
    let scaled = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    for (unit, scale) in scaled {
        if let Some(n) = text.strip_suffix(unit).and_then(parse) {
            return n * scale;
        }
    }
    parse(text).unwrap_or_else(|| panic!("{text:?} is no number"))
}
