//! Send times of messages, written to a file while a trial runs and read when the stages have
//! recorded the rest.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use weigh_engine::accounts::Accounts;
use weigh_engine::message_log::MessageEvent;
use weigh_engine::trace::Departure;
use weigh_model::Nanos;
use weigh_model::ledger::Cause;
use weigh_model::tally::Bits;

/// Send times being written, and the generator's knowledge of each message's end.
pub struct SendTimes {
    file: io::Result<BufWriter<File>>,
    /// The hops' clock at the trial's time 0.
    epoch: Nanos,
    confirmed: BTreeMap<u32, Bits>,
    failed: BTreeMap<u32, BTreeMap<u64, Cause>>,
}

impl SendTimes {
    /// Creates the file.
    pub fn create(path: &Path, epoch: Nanos) -> SendTimes {
        let file = File::create(path).map(BufWriter::new);
        SendTimes { file, epoch, confirmed: BTreeMap::new(), failed: BTreeMap::new() }
    }

    /// Records an event of a message. After the first error nothing more is written, and
    /// [`SendTimes::finish`] returns the error.
    pub fn hear(&mut self, event: &MessageEvent) {
        match *event {
            MessageEvent::Sent { producer, number, due, sent, own_lag, .. } => {
                let (due, sent) = (self.epoch + due, self.epoch + sent);
                let record = encode(&Departure { producer, number, due, sent, own_lag });
                if let Ok(file) = &mut self.file
                    && let Err(error) = file.write_all(&record)
                {
                    self.file = Err(error);
                }
            }
            MessageEvent::Confirmed { producer, number, .. } => {
                self.confirmed.entry(producer).or_default().set(number);
            }
            MessageEvent::Failed { producer, number, cause, .. } => {
                self.failed.entry(producer).or_default().insert(number, cause);
            }
            MessageEvent::Arrived { .. } | MessageEvent::NotSent { .. } => {}
        }
    }

    /// Ends the file, and adds the facts of single messages to the generator's accounts.
    ///
    /// # Errors
    /// A file that could not be written.
    pub fn finish(mut self, accounts: &mut Accounts) -> io::Result<()> {
        for producer in &mut accounts.producers {
            let index = producer.index;
            producer.confirmed_bits = self.confirmed.remove(&index).unwrap_or_default();
            producer.failed_numbers = self.failed.remove(&index).unwrap_or_default();
        }
        self.file?.flush()
    }
}

/// Send times of a file, in the order in which they were recorded.
///
/// # Errors
/// A file that cannot be opened.
pub fn read(path: &Path) -> io::Result<impl Iterator<Item = Departure>> {
    let mut file = BufReader::with_capacity(BUFFER_BYTES, File::open(path)?);
    let mut record = [0; RECORD_BYTES];
    Ok(std::iter::from_fn(move || file.read_exact(&mut record).ok().map(|()| decode(&record))))
}

/// Encodes producer, number, due time, send time and send lag, little-endian.
fn encode(departure: &Departure) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[0..4].copy_from_slice(&departure.producer.to_le_bytes());
    record[4..12].copy_from_slice(&departure.number.to_le_bytes());
    record[12..20].copy_from_slice(&departure.due.0.to_le_bytes());
    record[20..28].copy_from_slice(&departure.sent.0.to_le_bytes());
    record[28..36].copy_from_slice(&departure.own_lag.0.to_le_bytes());
    record
}

fn decode(record: &[u8; RECORD_BYTES]) -> Departure {
    let word = |from: usize, count: usize| {
        record[from..from + count].iter().rev().fold(0, |all, byte| (all << 8) | u64::from(*byte))
    };
    Departure {
        producer: word(0, 4) as u32,
        number: word(4, 8),
        due: Nanos(word(12, 8)),
        sent: Nanos(word(20, 8)),
        own_lag: Nanos(word(28, 8)),
    }
}

const RECORD_BYTES: usize = 36;
const BUFFER_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_engine::accounts::ProducerAccount;

    #[test]
    fn what_is_written_is_read_again_and_the_books_know_the_ends() {
        let path = std::env::temp_dir().join(format!("weigh-departures-{}", std::process::id()));
        let mut departures = SendTimes::create(&path, Nanos(1_000));
        for number in 0..3 {
            departures.hear(&MessageEvent::Sent {
                producer: 7,
                connection: 0,
                number,
                due: Nanos(number),
                sent: Nanos(number + 5),
                own_lag: Nanos(5),
                body_bytes: 1,
            });
        }
        departures.hear(&MessageEvent::Confirmed { producer: 7, number: 1, at: Nanos(9) });
        let cause = Cause::Timeout;
        departures.hear(&MessageEvent::Failed { producer: 7, number: 2, at: Nanos(9), cause });
        let account = ProducerAccount { index: 7, sent: 3, ..ProducerAccount::default() };
        let mut accounts = Accounts { producers: vec![account], ..Accounts::default() };
        departures.finish(&mut accounts).unwrap();
        let read: Vec<Departure> = read(&path).unwrap().collect();
        std::fs::remove_file(&path).unwrap();
        let expected = |number: u64| Departure {
            producer: 7,
            number,
            due: Nanos(1_000 + number),
            sent: Nanos(1_005 + number),
            own_lag: Nanos(5),
        };
        assert_eq!(read, [expected(0), expected(1), expected(2)]);
        let account = &accounts.producers[0];
        assert!(account.confirmed_bits.get(1) && !account.confirmed_bits.get(0));
        assert_eq!(account.failed_numbers, [(2, cause)].into());
    }

    #[test]
    fn a_full_disk_is_told() {
        let mut departures = SendTimes::create(Path::new("/dev/full"), Nanos(0));
        for number in 0..10_000 {
            departures.hear(&MessageEvent::Sent {
                producer: 0,
                connection: 0,
                number,
                due: Nanos(0),
                sent: Nanos(0),
                own_lag: Nanos(0),
                body_bytes: 1,
            });
        }
        let error = departures.finish(&mut Accounts::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
