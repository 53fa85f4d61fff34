//! Reads the record of single messages back, a group of rows at a time.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use weigh_model::message::{LossCause, MessageRow, MessageState};

use super::message_header::{MESSAGES_SCHEMA, MessageHeader};
use crate::journal::RecordError;

/// A file of messages.
pub struct MessageReader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    header: MessageHeader,
}

impl MessageReader {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read, or has another format.
    pub fn open(path: &Path) -> Result<MessageReader, RecordError> {
        let file = File::open(path).map_err(|problem| RecordError::unread(path, problem))?;
        let file = SerializedFileReader::new(file).map_err(|error| unreadable(path, &error))?;
        let metadata = file.metadata().file_metadata();
        let value = |key: &str| {
            let entries = metadata.key_value_metadata()?;
            entries.iter().find(|entry| entry.key == key)?.value.clone()
        };
        let number = |key: &str| value(key).and_then(|text| text.parse().ok());
        let schema = value("schema").unwrap_or_default();
        let header = (schema == MESSAGES_SCHEMA)
            .then(|| {
                let (epoch_unix_ns, timeout_ns) = (number("epoch_unix_ns")?, number("timeout_ns")?);
                Some(MessageHeader { trial: value("trial")?, epoch_unix_ns, timeout_ns })
            })
            .flatten();
        let columns = metadata.schema_descr().num_columns();
        let header = header.filter(|_| columns == COLUMNS).ok_or_else(|| {
            let problem = format!("its schema is {schema:?} and not {MESSAGES_SCHEMA}");
            RecordError::saying(path, problem, "read it with the version of weigh that wrote it")
        })?;
        Ok(MessageReader { path: path.to_owned(), file, header })
    }

    /// The file's facts about its trial.
    pub fn header(&self) -> &MessageHeader {
        &self.header
    }

    /// Calls `each` with every row.
    ///
    /// # Errors
    /// If the file is damaged, or the first error of `each`.
    pub fn each<E: From<RecordError>>(
        &self,
        mut each: impl FnMut(&MessageRow) -> Result<(), E>,
    ) -> Result<(), E> {
        for index in 0..self.file.num_row_groups() {
            let rows = self
                .file
                .get_row_group(index)
                .and_then(|group| rows(&*group))
                .map_err(|error| unreadable(&self.path, &error))?;
            rows.iter().try_for_each(&mut each)?;
        }
        Ok(())
    }
}

fn unreadable(path: &Path, error: &ParquetError) -> RecordError {
    let problem = format!("it cannot be read as Parquet: {error}");
    RecordError::saying(path, problem, "measure again with --keep-messages")
}

fn rows(group: &dyn RowGroupReader) -> Result<Vec<MessageRow>, ParquetError> {
    let mut columns = Reading { group, rows: group.metadata().num_rows() as usize };
    let whole = |number: Option<i64>| number.map(i64::cast_unsigned);
    let (producer, sequence) = (columns.i32(1)?, columns.i64(2)?);
    let (connection, consumer) = (columns.i32(3)?, columns.i32(4)?);
    let (due, sent) = (columns.i64(5)?, columns.i64(6)?);
    let (confirmed, delivered) = (columns.i64(7)?, columns.i64(8)?);
    let (state, cause) = (columns.texts(9)?, columns.texts(10)?);
    let body_bytes = columns.i32(11)?;
    let row = |place: usize| {
        let word = |texts: &[Option<ByteArray>]| {
            let text = texts[place].as_ref()?.as_utf8().ok()?;
            Some(text.to_owned())
        };
        let state = word(&state).and_then(|name| MessageState::from_name(&name))?;
        Some(MessageRow {
            producer: producer[place],
            sequence: whole(sequence[place]),
            connection: connection[place],
            consumer: consumer[place],
            due_ns: whole(due[place]),
            sent_ns: whole(sent[place]),
            confirmed_ns: whole(confirmed[place]),
            delivered_ns: whole(delivered[place]),
            state,
            cause: word(&cause).and_then(|name| LossCause::from_name(&name, state)),
            body_bytes: body_bytes[place],
        })
    };
    let unknown = || ParquetError::General("a row has an unknown state".to_owned());
    (0..columns.rows).map(|place| row(place).ok_or_else(unknown)).collect()
}

struct Reading<'g> {
    group: &'g dyn RowGroupReader,
    rows: usize,
}

impl Reading<'_> {
    fn i32(&mut self, index: usize) -> Result<Vec<Option<u32>>, ParquetError> {
        let ColumnReader::Int32ColumnReader(reader) = self.group.get_column_reader(index)? else {
            return Err(other_type(index));
        };
        let values = self.values(reader)?;
        Ok(values.into_iter().map(|value| value.map(i32::cast_unsigned)).collect())
    }

    fn i64(&mut self, index: usize) -> Result<Vec<Option<i64>>, ParquetError> {
        let ColumnReader::Int64ColumnReader(reader) = self.group.get_column_reader(index)? else {
            return Err(other_type(index));
        };
        self.values(reader)
    }

    fn texts(&mut self, index: usize) -> Result<Vec<Option<ByteArray>>, ParquetError> {
        let ColumnReader::ByteArrayColumnReader(reader) = self.group.get_column_reader(index)?
        else {
            return Err(other_type(index));
        };
        self.values(reader)
    }

    /// All values of a column, with the absent ones.
    fn values<T: DataType>(
        &self,
        mut reader: ColumnReaderImpl<T>,
    ) -> Result<Vec<Option<T::T>>, ParquetError> {
        let (mut levels, mut values) = (Vec::new(), Vec::with_capacity(self.rows));
        while levels.len().max(values.len()) < self.rows {
            let left = self.rows - levels.len().max(values.len());
            let (read, ..) = reader.read_records(left, Some(&mut levels), None, &mut values)?;
            if read == 0 {
                let text = "a column is shorter than its group of rows".to_owned();
                return Err(ParquetError::General(text));
            }
        }
        if levels.is_empty() {
            return Ok(values.into_iter().map(Some).collect());
        }
        let mut values = values.into_iter();
        Ok(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
    }
}

fn other_type(index: usize) -> ParquetError {
    ParquetError::General(format!("column {index} has another type"))
}

const COLUMNS: usize = 12;
