//! `api.json` as text: one type, group or function per line, so that a change
//! of the registry shows as the lines it changed.

use hetrace_model::Extracted;
use serde_json::to_string;

/// The file's text; the same data always gives the same bytes.
pub fn write(e: &Extracted) -> String {
    let one = |value: serde_json::Result<String>| value.expect("plain data always serializes");
    let table = |name: &str, lines: Vec<String>| format!("\"{name}\": [\n{}\n]", lines.join(",\n"));
    let parts = [
        format!("\"api\": {}", one(to_string(&e.api))),
        format!("\"registry\": {}", one(to_string(&e.registry))),
        table("types", e.types.iter().map(|t| one(to_string(t))).collect()),
        table("enums", e.enums.iter().map(|g| one(to_string(g))).collect()),
        table("functions", e.functions.iter().map(|f| one(to_string(f))).collect()),
    ];
    format!("{{\n{}\n}}\n", parts.join(",\n"))
}

#[cfg(test)]
mod tests {
    use hetrace_model::{EnumGroup, Extracted};

    #[test]
    fn reads_back_what_was_written() {
        let group = EnumGroup { name: "g".into(), bits: true, values: vec![("A".into(), -1)] };
        let data = Extracted { api: "toy".into(), enums: vec![group], ..Extracted::default() };
        let text = super::write(&data);
        assert_eq!(serde_json::from_str::<Extracted>(&text).unwrap(), data);
        assert!(text.contains("\n{\"name\":\"g\",\"bits\":true,\"values\":[[\"A\",-1]]}\n"), "{text}");
    }
}
