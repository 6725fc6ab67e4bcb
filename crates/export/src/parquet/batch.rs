//! Rows on their way into a file: gathered column by column, sorted, written as a
//! row group.

use std::collections::HashMap;

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::{SerializedColumnWriter, SerializedRowGroupWriter};

use super::schema::{Table, Type};

/// Rows of a row group. Readers like some 100,000; more would take more memory.
pub(super) const ROWS: usize = 1 << 17;
/// Bytes of texts after which a row group ends before it has all its rows.
const TEXTS: usize = 16 << 20;

/// A value of a row. What does not fit its column's form is null, or 0 where
/// that cannot be; a test looks at every column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Also a number that is as large as an `i64` can be if it is larger.
    Uint(u64),
    Float(f64),
    Text(&'a str),
}

impl From<bool> for Cell<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Cell<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Cell<'_> {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        Self::Uint(value)
    }
}

impl From<u32> for Cell<'_> {
    fn from(value: u32) -> Self {
        Self::Uint(value.into())
    }
}

impl From<f64> for Cell<'_> {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<'a> Cell<'a> {
    /// A text, null if it is empty.
    pub fn text(text: &'a str) -> Self {
        if text.is_empty() { Self::Null } else { Self::Text(text) }
    }

    /// A number, null if it is 0.
    pub fn number(number: impl Into<u64>) -> Self {
        match number.into() {
            0 => Self::Null,
            number => Self::Uint(number),
        }
    }

    fn bits(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            Self::Uint(value) => Some(value as i64),
            _ => None,
        }
    }

    fn long(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            Self::Uint(value) => Some(i64::try_from(value).unwrap_or(i64::MAX)),
            _ => None,
        }
    }

    fn word(self) -> Option<i32> {
        self.long().map(|value| i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX }))
    }
}

/// The values of a column, one for each row; null ones have some value, too, so
/// that rows can be put into another order.
#[derive(Debug)]
enum Values {
    Bool(Vec<bool>),
    Int32(Vec<i32>),
    /// Numbers and their bits if they are unsigned.
    Int64(Vec<i64>),
    Double(Vec<f64>),
    /// Positions among the names.
    Name(Vec<u32>, Vec<String>, HashMap<String, u32>),
    /// Where each text ends.
    Text(Vec<usize>, Vec<u8>),
}

#[derive(Debug)]
struct Column {
    form: Type,
    values: Values,
    /// 1 for a value, 0 for none; of a column that may be null.
    levels: Option<Vec<i16>>,
}

impl Column {
    fn new(form: Type, nullable: bool) -> Self {
        let values = match form {
            Type::Bool => Values::Bool(Vec::new()),
            Type::Int32 => Values::Int32(Vec::new()),
            Type::Int64 | Type::Uint64 => Values::Int64(Vec::new()),
            Type::Double => Values::Double(Vec::new()),
            Type::Name => Values::Name(Vec::new(), Vec::new(), HashMap::new()),
            Type::Text => Values::Text(Vec::new(), Vec::new()),
        };
        Self { form, values, levels: nullable.then(Vec::new) }
    }

    /// Takes the value of one more row; returns how many bytes of text it adds.
    fn push(&mut self, cell: Cell<'_>) -> usize {
        let there;
        let mut bytes = 0;
        macro_rules! put {
            ($to:ident, $value:expr) => {{
                let value = $value;
                there = value.is_some();
                $to.push(value.unwrap_or_default());
            }};
        }
        match &mut self.values {
            Values::Bool(to) => put!(to, if let Cell::Bool(value) = cell { Some(value) } else { None }),
            Values::Int32(to) => put!(to, cell.word()),
            Values::Int64(to) if self.form == Type::Uint64 => put!(to, cell.bits()),
            Values::Int64(to) => put!(to, cell.long()),
            Values::Double(to) => put!(to, if let Cell::Float(value) = cell { Some(value) } else { None }),
            Values::Name(to, texts, places) => {
                let text = if let Cell::Text(text) = cell { Some(text) } else { None };
                // A column that cannot be null needs a name for what is no name.
                let text = text.or(self.levels.is_none().then_some(""));
                let known = texts.len();
                put!(to, text.map(|text| place_of(text, texts, places)));
                bytes = texts.get(known).map_or(0, String::len);
            }
            Values::Text(ends, all) => {
                there = matches!(cell, Cell::Text(_));
                if let Cell::Text(text) = cell {
                    bytes = text.len();
                    all.extend_from_slice(text.as_bytes());
                }
                ends.push(all.len());
            }
        }
        if let Some(levels) = &mut self.levels {
            levels.push(there.into());
        }
        bytes
    }

    /// Writes all of it, in this order of rows.
    fn write(self, order: &[u32], to: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let levels = self.levels;
        let sorted = levels.as_ref().map(|all| order.iter().map(|&row| level(all, row)).collect::<Vec<_>>());
        let there = |row: &&u32| levels.as_ref().is_none_or(|all| level(all, **row) == 1);
        let rows = order.iter().filter(there).map(|&row| row as usize);
        let defs = sorted.as_deref();
        match self.values {
            Values::Bool(all) => {
                let values: Vec<bool> = rows.filter_map(|row| all.get(row).copied()).collect();
                to.typed::<BoolType>().write_batch(&values, defs, None)?;
            }
            Values::Int32(all) => {
                let values: Vec<i32> = rows.filter_map(|row| all.get(row).copied()).collect();
                to.typed::<Int32Type>().write_batch(&values, defs, None)?;
            }
            Values::Int64(all) => {
                let values: Vec<i64> = rows.filter_map(|row| all.get(row).copied()).collect();
                to.typed::<Int64Type>().write_batch(&values, defs, None)?;
            }
            Values::Double(all) => {
                let values: Vec<f64> = rows.filter_map(|row| all.get(row).copied()).collect();
                to.typed::<DoubleType>().write_batch(&values, defs, None)?;
            }
            Values::Name(all, texts, _) => {
                let texts: Vec<ByteArray> = texts.iter().map(|text| text.as_str().into()).collect();
                let values: Vec<ByteArray> =
                    rows.filter_map(|row| texts.get(*all.get(row)? as usize).cloned()).collect();
                to.typed::<ByteArrayType>().write_batch(&values, defs, None)?;
            }
            Values::Text(ends, all) => {
                let all = ByteArray::from(all);
                let values: Vec<ByteArray> = rows
                    .filter_map(|row| {
                        let begin = row.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
                        Some(all.slice(begin, ends.get(row)? - begin))
                    })
                    .collect();
                to.typed::<ByteArrayType>().write_batch(&values, defs, None)?;
            }
        }
        Ok(())
    }
}

fn level(levels: &[i16], row: u32) -> i16 {
    levels.get(row as usize).copied().unwrap_or(0)
}

fn place_of(text: &str, texts: &mut Vec<String>, places: &mut HashMap<String, u32>) -> u32 {
    if let Some(place) = places.get(text) {
        return *place;
    }
    let place = u32::try_from(texts.len()).unwrap_or(u32::MAX);
    texts.push(text.to_owned());
    places.insert(text.to_owned(), place);
    place
}

/// Rows that become a row group.
#[derive(Debug)]
pub(super) struct Batch {
    table: &'static Table,
    columns: Vec<Column>,
    rows: usize,
    texts: usize,
}

impl Batch {
    /// Without rows.
    pub fn new(table: &'static Table) -> Self {
        let columns = table.columns.iter().map(|c| Column::new(c.form, c.null.is_some())).collect();
        Self { table, columns, rows: 0, texts: 0 }
    }

    /// Takes a row: a cell for each column. Returns whether it is full.
    pub fn push(&mut self, row: &[Cell<'_>]) -> bool {
        debug_assert_eq!(row.len(), self.columns.len(), "{}", self.table.name);
        let cells = row.iter().copied().chain(std::iter::repeat(Cell::Null));
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            self.texts += column.push(cell);
        }
        self.rows += 1;
        self.rows >= ROWS || self.texts >= TEXTS
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The rows in the order in which they are to be.
    fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..u32::try_from(self.rows).unwrap_or(u32::MAX)).collect();
        let key = self.table.sorted.and_then(|name| self.table.position(name));
        if let Some(Values::Int64(keys)) = key.and_then(|at| self.columns.get(at)).map(|c| &c.values) {
            order.sort_by_key(|&row| keys.get(row as usize).copied().unwrap_or(i64::MAX));
        }
        order
    }

    /// Writes them.
    pub fn write<W: std::io::Write + Send>(self, mut to: SerializedRowGroupWriter<'_, W>) -> Result<()> {
        let order = self.order();
        for column in self.columns {
            if let Some(mut writer) = to.next_column()? {
                column.write(&order, &mut writer)?;
                writer.close()?;
            }
        }
        to.close()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::{PROCESSES, TABLES};
    use super::*;

    /// Every form takes what fits and turns the rest into null or 0.
    #[test]
    fn cells_fit_their_columns() {
        let all = [
            Cell::Null,
            Cell::Bool(true),
            Cell::Int(-1),
            Cell::Uint(u64::MAX),
            Cell::Float(0.5),
            Cell::Text("text"),
        ];
        for table in TABLES {
            for cell in all {
                let mut batch = Batch::new(table);
                batch.push(&vec![cell; table.columns.len()]);
                for (column, about) in batch.columns.iter().zip(table.columns) {
                    let there = column.levels.as_ref().is_none_or(|levels| levels == &[1]);
                    let fits = match about.form {
                        Type::Bool => matches!(cell, Cell::Bool(_)),
                        Type::Int32 | Type::Int64 | Type::Uint64 => {
                            matches!(cell, Cell::Int(_) | Cell::Uint(_))
                        }
                        Type::Double => matches!(cell, Cell::Float(_)),
                        Type::Name | Type::Text => matches!(cell, Cell::Text(_)),
                    };
                    assert_eq!(there, fits || about.null.is_none(), "{}.{} {cell:?}", table.name, about.name);
                }
            }
        }
        assert_eq!(
            (Cell::Uint(u64::MAX).long(), Cell::Int(-1 << 40).word()),
            (Some(i64::MAX), Some(i32::MIN))
        );
    }

    #[test]
    fn long_texts_end_a_row_group() {
        let mut batch = Batch::new(&PROCESSES);
        let text = "x".repeat(TEXTS / 4);
        let mut row = [Cell::Null; PROCESSES.columns.len()];
        (row[0], row[2]) = (Cell::Int(1), Cell::Text(&text));
        assert!(!batch.push(&row) && !batch.push(&row) && !batch.push(&row));
        assert!(batch.push(&row));
    }
}
