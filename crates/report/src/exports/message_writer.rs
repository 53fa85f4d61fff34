//! The record of single messages of one trial, as Parquet. Rows are collected column by column and
//! written in groups of [`GROUP_ROWS`]; nothing else is kept, so memory does not grow with rows.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use weigh_model::message::{LossCause, MessageRow, MessageState};

use super::message_header::{MESSAGES_SCHEMA, MessageHeader};
use crate::journal::RecordError;

/// Writes one file. It gets its name once it is complete.
pub struct MessageWriter {
    path: PathBuf,
    partial: PathBuf,
    file: SerializedFileWriter<BufWriter<File>>,
    columns: Columns,
    words: Words,
}

impl MessageWriter {
    /// Begins the file `path`, and its folder if there is none; an existing file is replaced at the
    /// end.
    ///
    /// # Errors
    /// If the folder or the file cannot be written.
    pub fn create(path: &Path, header: &MessageHeader) -> Result<MessageWriter, RecordError> {
        let failed = |problem| RecordError::new(path, problem);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let file = BufWriter::new(File::create(&partial).map_err(failed)?);
        let schema = parse_message_type(SCHEMA).expect("the schema is a constant that parses");
        let file = SerializedFileWriter::new(file, Arc::new(schema), properties(header))
            .map_err(|error| failed(into_io(error)))?;
        let (columns, words) = (Columns::default(), Words::new(&header.trial));
        Ok(MessageWriter { path: path.to_owned(), partial, file, columns, words })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If a group was full and cannot be written.
    pub fn push(&mut self, row: &MessageRow) -> Result<(), RecordError> {
        self.columns.push(row);
        if self.columns.rows() == GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// If the remaining rows cannot be written.
    pub fn close(mut self) -> Result<(), RecordError> {
        if self.columns.rows() > 0 {
            self.write_group()?;
        }
        let MessageWriter { path, partial, file, .. } = self;
        let end = || -> io::Result<()> {
            let mut file = file.into_inner().map_err(into_io)?;
            file.flush()?;
            file.get_ref().sync_data()?;
            fs::rename(&partial, &path)
        };
        end().map_err(|problem| {
            let _ = fs::remove_file(&partial);
            RecordError::new(&path, problem)
        })
    }

    /// Deletes the unfinished file.
    pub fn abandon(self) {
        // It may be gone already, after an error.
        let _ = fs::remove_file(&self.partial);
    }

    fn write_group(&mut self) -> Result<(), RecordError> {
        let write = |writer: &mut MessageWriter| -> Result<(), ParquetError> {
            let MessageWriter { file, columns, words, .. } = writer;
            let mut group = file.next_row_group()?;
            columns.write(&mut group, words)?;
            group.close()?;
            Ok(())
        };
        let written = write(self);
        self.columns.clear();
        written.map_err(|error| {
            let _ = fs::remove_file(&self.partial);
            RecordError::new(&self.path, into_io(error))
        })
    }
}

/// A column of optional numbers: presence and values.
#[derive(Default)]
struct Numbers<T> {
    levels: Vec<i16>,
    values: Vec<T>,
}

impl<T> Numbers<T> {
    fn push(&mut self, value: Option<T>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn clear(&mut self) {
        self.levels.clear();
        self.values.clear();
    }
}

/// The rows of one group.
#[derive(Default)]
struct Columns {
    producer: Numbers<i32>,
    sequence: Numbers<i64>,
    connection: Numbers<i32>,
    consumer: Numbers<i32>,
    times: [Numbers<i64>; 4],
    state: Vec<MessageState>,
    cause: Vec<Option<LossCause>>,
    body_bytes: Numbers<i32>,
}

impl Columns {
    fn rows(&self) -> usize {
        self.state.len()
    }

    // Parquet's numbers have a sign; the schema marks those that are unsigned.
    fn push(&mut self, row: &MessageRow) {
        self.producer.push(row.producer.map(u32::cast_signed));
        self.sequence.push(row.sequence.map(u64::cast_signed));
        self.connection.push(row.connection.map(u32::cast_signed));
        self.consumer.push(row.consumer.map(u32::cast_signed));
        let times = [row.due_ns, row.sent_ns, row.confirmed_ns, row.delivered_ns];
        for (column, time) in self.times.iter_mut().zip(times) {
            column.push(time.map(u64::cast_signed));
        }
        self.state.push(row.state);
        self.cause.push(row.cause);
        self.body_bytes.push(row.body_bytes.map(u32::cast_signed));
    }

    fn clear(&mut self) {
        self.producer.clear();
        self.sequence.clear();
        self.connection.clear();
        self.consumer.clear();
        self.times.iter_mut().for_each(Numbers::clear);
        self.state.clear();
        self.cause.clear();
        self.body_bytes.clear();
    }

    /// Writes the columns in the order of the schema.
    fn write(&self, group: &mut Group<'_>, words: &Words) -> Result<(), ParquetError> {
        write_texts(group, &vec![words.trial.clone(); self.rows()], None)?;
        write_i32(group, &self.producer)?;
        write_i64(group, &self.sequence)?;
        write_i32(group, &self.connection)?;
        write_i32(group, &self.consumer)?;
        self.times.iter().try_for_each(|column| write_i64(group, column))?;
        let states: Vec<ByteArray> = self.state.iter().map(|state| words.state(*state)).collect();
        write_texts(group, &states, None)?;
        let levels: Vec<i16> = self.cause.iter().map(|cause| i16::from(cause.is_some())).collect();
        let causes: Vec<ByteArray> =
            self.cause.iter().flatten().map(|cause| words.cause(*cause)).collect();
        write_texts(group, &causes, Some(&levels))?;
        write_i32(group, &self.body_bytes)
    }
}

type Group<'g> = SerializedRowGroupWriter<'g, BufWriter<File>>;

fn write_i32(group: &mut Group<'_>, column: &Numbers<i32>) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else { return Err(too_few()) };
    writer.typed::<Int32Type>().write_batch(&column.values, Some(&column.levels), None)?;
    writer.close()
}

fn write_i64(group: &mut Group<'_>, column: &Numbers<i64>) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else { return Err(too_few()) };
    writer.typed::<Int64Type>().write_batch(&column.values, Some(&column.levels), None)?;
    writer.close()
}

fn write_texts(
    group: &mut Group<'_>,
    values: &[ByteArray],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut writer) = group.next_column()? else { return Err(too_few()) };
    writer.typed::<ByteArrayType>().write_batch(values, levels, None)?;
    writer.close()
}

fn too_few() -> ParquetError {
    ParquetError::General("the schema has fewer columns than a row".to_owned())
}

/// The words of the file, created once.
struct Words {
    trial: ByteArray,
    states: Vec<(MessageState, ByteArray)>,
    causes: Vec<(LossCause, ByteArray)>,
}

impl Words {
    fn new(trial: &str) -> Words {
        Words {
            trial: trial.into(),
            states: MessageState::ALL.map(|state| (state, state.name().into())).into(),
            causes: LossCause::ALL.map(|cause| (cause, cause.name().into())).into(),
        }
    }

    fn state(&self, state: MessageState) -> ByteArray {
        let found = self.states.iter().find(|(known, _)| *known == state);
        found.map(|(_, word)| word.clone()).unwrap_or_default()
    }

    fn cause(&self, cause: LossCause) -> ByteArray {
        let found = self.causes.iter().find(|(known, _)| *known == cause);
        found.map(|(_, word)| word.clone()).unwrap_or_default()
    }
}

fn properties(header: &MessageHeader) -> Arc<WriterProperties> {
    let entry = |key: &str, value: String| KeyValue::new(key.to_owned(), Some(value));
    let metadata = vec![
        entry("schema", MESSAGES_SCHEMA.to_owned()),
        entry("trial", header.trial.clone()),
        entry("epoch_unix_ns", header.epoch_unix_ns.to_string()),
        entry("timeout_ns", header.timeout_ns.to_string()),
    ];
    let mut builder = WriterProperties::builder()
        .set_created_by(format!("weigh {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(metadata))
        .set_compression(Compression::SNAPPY)
        // Statistics of a group are enough to skip it; more would make the footer grow.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    // Numbers that grow: their differences are small, and a dictionary would not help.
    for name in GROWING {
        let column = ColumnPath::from(*name);
        builder = builder
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    Arc::new(builder.build())
}

/// The error of the operating system in `error`, if there is one.
pub(super) fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

/// The columns of the file; `docs/guide/exports.md` describes them.
pub(super) const SCHEMA: &str = "
message messages {
    REQUIRED BYTE_ARRAY trial (STRING);
    OPTIONAL INT32 producer (INTEGER(32,false));
    OPTIONAL INT64 sequence;
    OPTIONAL INT32 connection (INTEGER(32,false));
    OPTIONAL INT32 consumer (INTEGER(32,false));
    OPTIONAL INT64 due_ns;
    OPTIONAL INT64 sent_ns;
    OPTIONAL INT64 confirmed_ns;
    OPTIONAL INT64 delivered_ns;
    REQUIRED BYTE_ARRAY state (STRING);
    OPTIONAL BYTE_ARRAY cause (STRING);
    OPTIONAL INT32 body_bytes (INTEGER(32,false));
}";

const GROWING: &[&str] = &["sequence", "due_ns", "sent_ns", "confirmed_ns", "delivered_ns"];

/// Rows that are written at once: some 10 MB in memory. The footer has about 1 KB for each group, 3
/// MB in ten hours of 10,000 messages a second.
pub const GROUP_ROWS: usize = 1 << 17;
