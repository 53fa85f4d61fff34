//! Record batches of format 2 (KIP-98), the only one that Kafka has written since 0.11.

use super::crc::crc32c;
use super::flaw::Flaw;
use super::put::{put_i8, put_i16, put_i32, put_i64, put_varlong, set_i32, varlong_bytes};
use super::reader::Reader;

/// Bytes of a batch before its records.
pub const HEAD_BYTES: usize = 61;

/// Bytes before the part that the length counts.
const UNCOUNTED_BYTES: usize = 12;

/// Where the checksum is, and where the part that it covers begins.
const CHECKSUM_AT: usize = 17;
const COVERED_FROM: usize = 21;

/// A batch that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// All its bytes.
    pub bytes: &'a [u8],
    /// Offset of its first record.
    pub base_offset: i64,
    /// Compression, type of timestamps, and whether it is of a transaction or a control batch.
    pub attributes: i16,
    /// Offset of its last record, from the first.
    pub last_offset_delta: i32,
    /// Its producer.
    pub producer: Producer,
    /// Number of its records.
    pub count: i32,
    records: &'a [u8],
}

/// Identity of an idempotent producer, and the number of a batch's first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer {
    /// Number given by InitProducerId; -1 if the producer is not idempotent.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
    /// Number of the first record in its partition.
    pub sequence: i32,
}

impl Producer {
    /// A producer that is not idempotent.
    pub const NONE: Producer = Producer { id: -1, epoch: -1, sequence: -1 };
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its offset, from the first of its batch.
    pub offset_delta: i32,
    /// Its value; `None` if it is null.
    pub value: Option<&'a [u8]>,
}

/// The batch at the start of `input`; `None` if it is incomplete, as the last one of an answer to
/// Fetch may be.
///
/// # Errors
/// If it is not one of format 2, or damaged.
pub fn read(input: &[u8]) -> Result<Option<Batch<'_>>, Flaw> {
    let mut reader = Reader::new(input);
    let Ok(base_offset) = reader.i64() else { return Ok(None) };
    let Ok(length) = reader.i32() else { return Ok(None) };
    let length = usize::try_from(length).map_err(|_| Flaw::Count)?;
    if length < HEAD_BYTES - UNCOUNTED_BYTES {
        return Err(Flaw::Count);
    }
    let Some(bytes) = input.get(..UNCOUNTED_BYTES + length) else { return Ok(None) };
    let mut reader = Reader::new(&bytes[UNCOUNTED_BYTES..]);
    let _leader_epoch = reader.i32()?;
    let magic = reader.i8()?;
    if magic != MAGIC {
        return Err(Flaw::Magic(magic));
    }
    let checksum = reader.i32()? as u32;
    if checksum != crc32c(reader.rest()) {
        return Err(Flaw::Checksum);
    }
    let attributes = reader.i16()?;
    let last_offset_delta = reader.i32()?;
    let _timestamps = (reader.i64()?, reader.i64()?);
    let producer = Producer { id: reader.i64()?, epoch: reader.i16()?, sequence: reader.i32()? };
    let count = reader.i32()?;
    if count < 0 || last_offset_delta < 0 {
        return Err(Flaw::Count);
    }
    let records = reader.rest();
    Ok(Some(Batch { bytes, base_offset, attributes, last_offset_delta, producer, count, records }))
}

impl<'a> Batch<'a> {
    /// Its records, one after the other; the first error is the last element.
    ///
    /// # Errors
    /// If it is compressed.
    pub fn records(&self) -> Result<Records<'a>, Flaw> {
        match self.attributes & COMPRESSION {
            0 => Ok(Records { reader: Reader::new(self.records), left: self.count }),
            codec => Err(Flaw::Compressed(codec)),
        }
    }

    /// True if it holds the marks of transactions and no messages.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// The offset behind its last record.
    pub fn next_offset(&self) -> i64 {
        self.base_offset.saturating_add(i64::from(self.last_offset_delta)).saturating_add(1)
    }
}

/// Records of a batch.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    reader: Reader<'a>,
    left: i32,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Flaw>;

    fn next(&mut self) -> Option<Result<Record<'a>, Flaw>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let record = read_record(&mut self.reader, self.left == 0);
        if record.is_err() {
            self.left = 0;
        }
        Some(record)
    }
}

fn read_record<'a>(reader: &mut Reader<'a>, is_last: bool) -> Result<Record<'a>, Flaw> {
    let length = usize::try_from(reader.varint()?).map_err(|_| Flaw::Count)?;
    let mut own = Reader::new(reader.take(length)?);
    own.i8()?;
    own.varlong()?;
    let offset_delta = own.varint()?;
    own.varint_bytes()?;
    let value = own.varint_bytes()?;
    let headers = own.varint()?;
    if headers < 0 {
        return Err(Flaw::Count);
    }
    for _ in 0..headers {
        own.varint_bytes()?;
        own.varint_bytes()?;
    }
    own.finish()?;
    if is_last {
        reader.finish()?;
    }
    Ok(Record { offset_delta, value })
}

/// Appends a record without a key and without headers.
pub fn put_record(out: &mut Vec<u8>, offset_delta: i32, value: &[u8]) {
    let delta = i64::from(offset_delta);
    put_varlong(out, (record_bytes(delta, value.len())) as i64);
    out.extend_from_slice(&[0, 0]);
    put_varlong(out, delta);
    put_varlong(out, -1);
    put_varlong(out, value.len() as i64);
    out.extend_from_slice(value);
    out.push(0);
}

/// Bytes of a record behind its length: attributes, timestamp, offset, no key, value, no headers.
fn record_bytes(offset_delta: i64, value_bytes: usize) -> usize {
    2 + varlong_bytes(offset_delta) + 1 + varlong_bytes(value_bytes as i64) + value_bytes + 1
}

/// Appends a batch of `count` records that [`put_record`] wrote.
pub fn put(out: &mut Vec<u8>, producer: Producer, count: i32, records: &[u8]) {
    let at = out.len();
    out.reserve(HEAD_BYTES + records.len());
    put_i64(out, 0);
    put_i32(out, (HEAD_BYTES - UNCOUNTED_BYTES + records.len()) as i32);
    put_i32(out, -1);
    put_i8(out, MAGIC);
    put_i32(out, 0);
    put_i16(out, 0);
    put_i32(out, count - 1);
    // No timestamps: a protocol has no clock, and Kafka takes -1 for "none".
    put_i64(out, -1);
    put_i64(out, -1);
    put_i64(out, producer.id);
    put_i16(out, producer.epoch);
    put_i32(out, producer.sequence);
    put_i32(out, count);
    out.extend_from_slice(records);
    let checksum = crc32c(&out[at + COVERED_FROM..]);
    set_i32(out, at + CHECKSUM_AT, checksum as i32);
}

/// Gives a batch its place in a log: its base offset and the epoch of the leader, which the
/// checksum does not cover.
pub fn place(bytes: &mut [u8], base_offset: i64, leader_epoch: i32) {
    if let Some(place) = bytes.get_mut(..8) {
        place.copy_from_slice(&base_offset.to_be_bytes());
    }
    set_i32(bytes, UNCOUNTED_BYTES, leader_epoch);
}

const MAGIC: i8 = 2;

/// Bits of the attributes.
const COMPRESSION: i16 = 0x07;
const CONTROL: i16 = 0x20;
