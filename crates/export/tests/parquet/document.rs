//! The lists of columns in `docs/export-parquet.md` are those of the tables.
//! `BLESS=1` writes them anew.

use std::fmt::Write;

use hetrace_export::parquet::TABLES;

const BEGIN: &str = "<!-- made from crates/export/src/parquet/tables.rs -->\n";
const END: &str = "<!-- end -->\n";

fn lists() -> String {
    let mut out = String::new();
    for table in TABLES {
        let sorted =
            table.sorted.map_or(String::new(), |by| format!(" Sorted by `{by}` within a row group."));
        let _ = write!(out, "\n### {}\n\nA row is {}.{sorted}\n\n", table.name, table.row);
        out.push_str("| column | type | meaning | null when |\n|---|---|---|---|\n");
        for column in table.columns {
            let null = column.null.unwrap_or("never");
            let _ =
                writeln!(out, "| `{}` | {} | {} | {null} |", column.name, column.form.name(), column.what);
        }
    }
    out.push('\n');
    out
}

#[test]
fn the_document_has_every_column() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/export-parquet.md");
    let text = std::fs::read_to_string(&path).expect("the document");
    let (before, rest) = text.split_once(BEGIN).expect("where lists begin");
    let (_, after) = rest.split_once(END).expect("where lists end");
    let made = format!("{before}{BEGIN}{}{END}{after}", lists());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, made).expect("writable");
        return;
    }
    assert!(made == text, "the lists of columns are old (BLESS=1 to write them)");
}

#[test]
fn columns_say_what_they_are() {
    for table in TABLES {
        for (at, column) in table.columns.iter().enumerate() {
            assert_eq!(
                table.position(column.name),
                Some(at),
                "{}: {} is there twice",
                table.name,
                column.name
            );
            assert!(!column.what.is_empty() && !column.what.contains('\n') && !column.what.contains(" | "));
        }
        // What readers make of the folders' names.
        assert!(!["host", "rank"].iter().any(|p| table.position(p).is_some()));
    }
}
