//! What a consumer reads: its partitions, the next offset of each, and the messages of an answer.

use weigh_model::connection::{Emit, Fault, Signal};

use super::super::codec::answers::Fetched;
use super::super::codec::batch;
use super::super::codec::requests::FetchFrom;
use super::super::errors;

/// State of a consumer.
#[derive(Debug, Default)]
pub(super) struct Consuming {
    /// Its partitions, in rising order.
    places: Vec<Place>,
    /// Where among them the next fetch begins.
    turn: usize,
    /// True if the offsets are those of messages: after the set-up.
    is_placed: bool,
}

/// A partition of a consumer.
#[derive(Debug)]
struct Place {
    from: FetchFrom,
    /// Topic and partition, for the engine.
    label: Box<[u8]>,
}

impl Consuming {
    /// Begins with these partitions; true if the cursor says where.
    pub(super) fn start(
        &mut self,
        topic: &str,
        partitions: &[i32],
        cursor: Option<Vec<i64>>,
    ) -> bool {
        let offsets = cursor.filter(|offsets| offsets.len() == partitions.len());
        self.is_placed = offsets.is_some();
        let offsets = offsets.unwrap_or_else(|| vec![0; partitions.len()]);
        let place = |(partition, offset): (&i32, i64)| Place {
            from: FetchFrom { partition: *partition, offset },
            label: format!("{topic}/{partition}").into_bytes().into(),
        };
        self.places = partitions.iter().zip(offsets).map(place).collect();
        self.is_placed
    }

    pub(super) fn partitions(&self) -> Vec<i32> {
        self.places.iter().map(|place| place.from.partition).collect()
    }

    /// Sets where a partition begins.
    pub(super) fn place(&mut self, partition: i32, offset: i64) {
        self.place_at(partition, offset);
        self.is_placed = true;
    }

    fn place_at(&mut self, partition: i32, offset: i64) {
        if let Some(place) = self.find(partition) {
            place.from.offset = offset;
        }
    }

    /// Sets where a partition begins, if that is not known yet.
    pub(super) fn place_new(&mut self, partition: i32, offset: i64) {
        if let Some(place) = self.find(partition).filter(|place| place.from.offset < 0) {
            place.from.offset = offset;
        }
    }

    /// Its partitions in rising order, and the next offset of each.
    pub(super) fn places(&self) -> Vec<FetchFrom> {
        self.places.iter().map(|place| place.from).collect()
    }

    pub(super) fn has_places(&self) -> bool {
        !self.places.is_empty()
    }

    /// Its partitions and offsets, each time from another one on: a broker fills an answer in their
    /// order, and the last ones would get nothing while the first ones fill it.
    pub(super) fn from(&self) -> impl ExactSizeIterator<Item = FetchFrom> {
        let count = self.places.len();
        (0..count).map(move |step| self.places[(self.turn + step) % count].from)
    }

    /// The next fetch begins one partition later.
    pub(super) fn take_turn(&mut self) {
        self.turn = (self.turn + 1) % self.places.len().max(1);
    }

    fn find(&mut self, partition: i32) -> Option<&mut Place> {
        let at = self.places.binary_search_by_key(&partition, |place| place.from.partition);
        at.ok().and_then(|at| self.places.get_mut(at))
    }

    /// Takes the offsets, if they are known.
    pub(super) fn take_offsets(&mut self) -> Option<Vec<i64>> {
        let is_placed = std::mem::take(&mut self.is_placed);
        is_placed.then(|| self.places.iter().map(|place| place.from.offset).collect())
    }

    /// Emits the messages of a partition; returns their bytes.
    pub(super) fn take(
        &mut self,
        fetched: &Fetched<'_>,
        topic: &str,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let Fetched { partition, error, records } = *fetched;
        if error != errors::NONE {
            if error == errors::OFFSET_OUT_OF_RANGE {
                // The next connection begins at the end.
                self.is_placed = false;
                self.place_at(partition, UNKNOWN);
            }
            let words = errors::words(error as u16);
            let text =
                format!("partition {partition} of {topic}: {}: {}", words.name, words.advice);
            return Err(Fault::Ended(text));
        }
        let Some(place) = self.find(partition) else {
            return Err(Fault::Malformed(format!(
                "partition {partition}, which was not asked for"
            )));
        };
        let (mut rest, mut payload) = (records, 0);
        while let Some(batch) = batch::read(rest)? {
            rest = &rest[batch.bytes.len()..];
            for record in batch.records()?.filter(|_| !batch.is_control()) {
                let record = record?;
                let offset = batch.base_offset.saturating_add(record.offset_delta.into());
                // A batch comes whole, also where its beginning was read before.
                if let (Some(body), true) = (record.value, offset >= place.from.offset) {
                    payload += body.len();
                    emit(Signal::Message { topic: &place.label, body });
                }
            }
            place.from.offset = place.from.offset.max(batch.next_offset());
        }
        match rest.len() == records.len() && !records.is_empty() {
            true => Err(Fault::Malformed("an answer to Fetch without a whole batch".to_owned())),
            false => Ok(payload),
        }
    }
}

/// The offset of a partition of which none is known.
pub(super) const UNKNOWN: i64 = -1;
