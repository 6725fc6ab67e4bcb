//! The files of one host and rank, written by a thread of their own.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type as Node};

use super::batch::Batch;
use super::schema::{Table, Type};
use super::tables::{SCHEMA, TABLES};
use crate::Error;

/// Rows of a table, by its place among [`TABLES`].
pub(super) struct Job {
    pub table: usize,
    pub batch: Batch,
}

struct Out {
    path: PathBuf,
    writer: SerializedFileWriter<BufWriter<File>>,
}

/// The files of all tables.
pub(super) struct Files {
    all: Vec<Out>,
}

impl Files {
    /// Begins all files below a folder; `about` is noted in each.
    ///
    /// # Errors
    /// When a folder or file cannot be made.
    pub fn create(folder: &Path, host: &str, rank: u64, about: &[(&str, &str)]) -> Result<Self, Error> {
        let mut all = Vec::new();
        for table in TABLES {
            let below =
                folder.join(table.name).join(format!("host={}", escaped(host))).join(format!("rank={rank}"));
            let path = below.join(format!("{}.parquet", table.name));
            let file = fs::create_dir_all(&below).and_then(|()| File::create_new(&path));
            let file = file.map_err(|source| failed(&path, source))?;
            let schema = node(table).map_err(|e| broken(&path, e))?;
            let properties = Arc::new(properties(table, about).map_err(|e| broken(&path, e))?);
            let writer = SerializedFileWriter::new(BufWriter::new(file), Arc::new(schema), properties);
            all.push(Out { writer: writer.map_err(|e| broken(&path, e))?, path });
        }
        Ok(Self { all })
    }

    /// Writes what comes until nothing comes any more.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn write(&mut self, jobs: &Receiver<Job>) -> Result<(), Error> {
        for Job { table, batch } in jobs {
            let Some(Out { path, writer }) = self.all.get_mut(table) else { continue };
            let group = writer.next_row_group().map_err(|e| broken(path, e))?;
            batch.write(group).map_err(|e| broken(path, e))?;
        }
        Ok(())
    }

    /// Makes them files that can be read.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn close(self) -> Result<(), Error> {
        for Out { path, writer } in self.all {
            let file = writer.into_inner().map_err(|e| broken(&path, e))?;
            file.into_inner().map_err(|e| failed(&path, e.into_error()))?;
        }
        Ok(())
    }
}

fn failed(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.display().to_string(), source }
}

/// An error of the format's crate, which wraps those of the system.
fn broken(path: &Path, error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) => *error,
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other),
    };
    failed(path, source)
}

/// A value of a partition as a name of a folder: as Hive escapes it, which
/// readers undo.
fn escaped(value: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let one = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    value.bytes().map(one).collect()
}

fn node(table: &Table) -> Result<Node, ParquetError> {
    let fields = table.columns.iter().map(|column| {
        let (physical, logical) = match column.form {
            Type::Bool => (Physical::BOOLEAN, None),
            Type::Int32 => (Physical::INT32, None),
            Type::Int64 => (Physical::INT64, None),
            Type::Uint64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Type::Double => (Physical::DOUBLE, None),
            Type::Name | Type::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if column.null.is_some() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let builder = Node::primitive_type_builder(column.name, physical).with_repetition(repetition);
        Ok(Arc::new(builder.with_logical_type(logical).build()?))
    });
    Node::group_type_builder(table.name).with_fields(fields.collect::<Result<_, ParquetError>>()?).build()
}

/// How columns are written: what grows by little steps as differences, names by
/// a dictionary, long texts as they are, all compressed.
fn properties(table: &Table, about: &[(&str, &str)]) -> Result<WriterProperties, ParquetError> {
    let note = |(key, value): &(&str, &str)| KeyValue::new(format!("hetrace.{key}"), (*value).to_owned());
    let mut notes: Vec<KeyValue> = about.iter().map(note).collect();
    notes.push(KeyValue::new("hetrace.table".to_owned(), table.name.to_owned()));
    notes.push(KeyValue::new("hetrace.schema".to_owned(), SCHEMA.to_string()));
    let sorted = table.sorted.and_then(|name| table.position(name)).and_then(|at| i32::try_from(at).ok());
    let sorted =
        sorted.map(|column_idx| vec![SortingColumn { column_idx, descending: false, nulls_first: false }]);
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("hetrace version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(notes))
        .set_sorting_columns(sorted)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?));
    for column in table.columns {
        let path = || ColumnPath::from(column.name);
        let steps = column.name.ends_with("_ns") || column.name.ends_with("_id");
        if steps && column.form == Type::Int64 {
            builder = builder
                .set_column_dictionary_enabled(path(), false)
                .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED);
        }
        if column.form == Type::Text {
            builder = builder
                .set_column_dictionary_enabled(path(), false)
                .set_column_statistics_enabled(path(), EnabledStatistics::None);
        }
    }
    Ok(builder.build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders_are_safe() {
        assert_eq!(escaped("node-12.cluster_a"), "node-12.cluster_a");
        assert_eq!(escaped("../a b=c%é"), "..%2Fa%20b%3Dc%25%C3%A9");
    }

    #[test]
    fn a_full_disk_is_reported_as_the_system_does() {
        let inner = std::io::Error::from_raw_os_error(28);
        let error = broken(Path::new("calls.parquet"), ParquetError::External(Box::new(inner)));
        assert!(error.to_string().starts_with("calls.parquet: No space left"), "{error}");
    }
}
