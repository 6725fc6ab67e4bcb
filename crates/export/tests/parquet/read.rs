//! Tables read back by the format's own reader.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

/// Columns by name; null ones are not there.
pub type Row = BTreeMap<String, Field>;

/// The file of a table.
pub fn path(folder: &Path, table: &str, rank: u32) -> PathBuf {
    let host = "host=unknown";
    folder.join(table).join(host).join(format!("rank={rank}")).join(format!("{table}.parquet"))
}

/// All rows of a table.
pub fn table(folder: &Path, table: &str) -> Vec<Row> {
    table_of(folder, table, 0)
}

/// All rows of a table of this rank.
pub fn table_of(folder: &Path, table: &str, rank: u32) -> Vec<Row> {
    let file = std::fs::File::open(path(folder, table, rank)).expect("a file");
    let reader = SerializedFileReader::new(file).expect("a Parquet file");
    let rows = reader.get_row_iter(None).expect("rows");
    let columns = |row: parquet::record::Row| {
        let there = row.get_column_iter().filter(|(_, field)| **field != Field::Null);
        there.map(|(name, field)| (name.clone(), field.clone())).collect()
    };
    rows.map(|row| columns(row.expect("a row"))).collect()
}

/// A number.
pub fn long(field: &Field) -> Option<i64> {
    match field {
        Field::Int(value) => Some((*value).into()),
        Field::Long(value) => Some(*value),
        Field::ULong(value) => Some(*value as i64),
        _ => None,
    }
}

/// A text; empty if it is null.
pub fn text(row: &Row, column: &str) -> String {
    match row.get(column) {
        Some(Field::Str(text)) => text.clone(),
        _ => String::new(),
    }
}

/// A number, or `-`.
pub fn number(row: &Row, column: &str) -> String {
    row.get(column).and_then(long).map_or("-".to_owned(), |n| n.to_string())
}

/// The numbers of a column.
pub fn rows(rows: &[Row], column: &str) -> Vec<i64> {
    rows.iter().map(|row| long(&row[column]).expect("a number")).collect()
}
