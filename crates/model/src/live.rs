//! The live file of a running run: its last ten minutes, second by second, in a file of fixed size
//! beside the journal. Intervals of long trials are too long to look at; this file is for looking,
//! and no result is made from it.
//!
//! The file is a ring of [`SLOTS`] slots of [`SLOT_BYTES`] bytes each. A slot is one [`Second`] as
//! a line of JSON, padded with spaces. A reader that meets a half-written slot skips it.

use serde::{Deserialize, Serialize};

use crate::event::Interval;

/// Name of the file in the run's folder. It exists while the run's process does.
pub const LIVE: &str = "live.jsonl";

/// Seconds that the file keeps.
pub const SLOTS: u64 = 600;

/// Bytes of a slot, including the line end.
pub const SLOT_BYTES: usize = 1024;

/// What one second of a trial showed.
///
/// # Examples
///
/// ```
/// use weigh_model::live::{SLOT_BYTES, Second};
///
/// let second = Second { number: 7, end: 7, ..Second::default() };
/// let slot = second.to_slot().expect("it fits");
/// assert_eq!(slot.len(), SLOT_BYTES);
/// assert_eq!(Second::newest_last(&slot), [second]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Number of this second in the file's life, from 1.
    pub number: u64,
    /// Process ID of the generator.
    pub pid: u32,
    /// Wall-clock time of the writer, milliseconds since 1970: a reader computes its age by it.
    pub unix_ms: u64,
    /// The trial in progress.
    pub standing: TrialStanding,
    /// Open connections, and all that the trial opens, while it opens them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<[u64; 2]>,
    /// Counts of the second; absent while connections are opened, and at the start and end of a
    /// trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Interval>,
    /// Quantiles of the times in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantiles: Option<Quantiles>,
    /// `number` again: where both differ, the slot was read while it was written.
    pub end: u64,
}

/// The trial in progress and the run's progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TrialStanding {
    /// Name of the trial.
    pub name: String,
    /// Its number, from 1.
    pub number: u64,
    /// Number of trials of the run, at least and at most; 0 if unknown.
    pub of: [u64; 2],
    /// Time left at the start of the trial, at least and at most, nanoseconds; 0 if unknown.
    pub left_ns: [u64; 2],
    /// Time since the start of the trial, nanoseconds.
    pub passed_ns: u64,
    /// Messages due per second, if the trial has a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
}

/// Quantiles of the response time (due to confirmed; if nothing is confirmed, due to delivered) and
/// of the send lag (due to sent), nanoseconds. At most 0.8 % too large. Each is absent if there are
/// too few values for it: p99 needs 100, p99.9 needs 1,000.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Number of times.
    pub values: u64,
    /// Of the response time, in the order of [`QUANTILES`].
    pub response_ns: [Option<u64>; QUANTILES.len()],
    /// Of the send lag, in the same order.
    pub send_lag_ns: [Option<u64>; QUANTILES.len()],
    /// The longest response time.
    pub response_ns_max: Option<u64>,
}

/// The quantiles of [`Quantiles`] and their names.
pub const QUANTILES: [(f64, &str); 6] =
    [(0.5, "p50"), (0.75, "p75"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9")];

impl Second {
    /// The second as a slot. `None` if it does not fit even with a short name of its trial.
    pub fn to_slot(&self) -> Option<Vec<u8>> {
        let mut slot = serde_json::to_vec(self).ok()?;
        if slot.len() >= SLOT_BYTES {
            let mut short = self.clone();
            short.standing.name = self.standing.name.chars().take(NAME_CHARS_MAX).collect();
            slot = serde_json::to_vec(&short).ok().filter(|slot| slot.len() < SLOT_BYTES)?;
        }
        slot.resize(SLOT_BYTES - 1, b' ');
        slot.push(b'\n');
        Some(slot)
    }

    /// Byte of the file at which the slot of a second begins.
    pub fn slot_at(number: u64) -> u64 {
        (number % SLOTS) * SLOT_BYTES as u64
    }

    /// The seconds in the content of the file, ascending. Slots that are empty or half-written are
    /// left out.
    pub fn newest_last(content: &[u8]) -> Vec<Second> {
        let whole = |slot: &[u8]| {
            let second: Second = serde_json::from_slice(slot.trim_ascii()).ok()?;
            (second.end == second.number).then_some(second)
        };
        let mut seconds: Vec<Second> = content.chunks(SLOT_BYTES).filter_map(whole).collect();
        seconds.sort_by_key(|second| second.number);
        seconds
    }
}

/// Characters of a trial's name in a slot that is too small for all of it: with 4 bytes each they
/// leave room for every number.
const NAME_CHARS_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    /// A second in which every number has all its digits.
    fn widest(name: &str) -> Second {
        let most = u64::MAX;
        Second {
            number: most,
            pid: u32::MAX,
            unix_ms: 1 << 43,
            standing: TrialStanding {
                name: name.to_owned(),
                number: 1 << 40,
                of: [1 << 40; 2],
                left_ns: [1 << 60; 2],
                passed_ns: 1 << 60,
                offered_per_s: Some(1.0 / 3.0),
            },
            opening: Some([1 << 24; 2]),
            counts: None,
            quantiles: Some(Quantiles {
                values: 1 << 40,
                response_ns: [Some(3_600_000_000_000); 6],
                send_lag_ns: [Some(3_600_000_000_000); 6],
                response_ns_max: Some(3_600_000_000_000),
            }),
            end: most,
        }
    }

    #[test]
    fn a_long_name_is_cut_and_every_number_kept() {
        let counts = Interval {
            at_ns: 1 << 60,
            warmup: true,
            draining: true,
            sent: 1 << 30,
            acknowledged: 1 << 30,
            delivered: 1 << 30,
            errors: 1 << 30,
            connections: 1 << 24,
            length_ns: Some(1 << 32),
            generator_cpu_percent: Some(100.0 / 3.0),
            ..Interval::default()
        };
        let second = Second { counts: Some(counts), ..widest(&"é".repeat(2000)) };
        let slot = second.to_slot().expect("a cut name fits");
        assert_eq!(slot.len(), SLOT_BYTES);
        let read = Second::newest_last(&slot);
        assert_eq!(read[0].standing.name, "é".repeat(NAME_CHARS_MAX));
        assert_eq!((&read[0].counts, &read[0].quantiles), (&second.counts, &second.quantiles));
    }

    #[test]
    fn the_ring_is_read_in_order_without_torn_slots() {
        let mut file = vec![0u8; SLOT_BYTES * SLOTS as usize];
        for number in 1..=SLOTS + 5 {
            let slot = Second { number, end: number, ..Second::default() }.to_slot().unwrap();
            let at = Second::slot_at(number) as usize;
            file[at..at + SLOT_BYTES].copy_from_slice(&slot);
        }
        // The head of a new slot over the tail of an old one.
        let new = Second { number: 606, end: 606, ..Second::default() }.to_slot().unwrap();
        let at = Second::slot_at(606) as usize;
        file[at..at + 20].copy_from_slice(&new[..20]);
        let read: Vec<u64> =
            Second::newest_last(&file).into_iter().map(|second| second.number).collect();
        assert_eq!(read, (7..=SLOTS + 5).collect::<Vec<_>>());
    }
}
