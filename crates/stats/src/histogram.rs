//! A histogram of durations with bounded relative error: three significant digits from 1 ns to
//! one hour, in constant memory, in constant time per value (G. Tene, HdrHistogram).

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram as Buckets;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
use hdrhistogram::serialization::{
    Deserializer, Serializer, V2DeflateSerializeError, V2DeflateSerializer, V2Serializer,
};

/// The largest recorded value, nanoseconds; longer ones count as this.
pub const VALUE_NS_MAX: u64 = 3_600_000_000_000;

/// Counts of values by their size, each kept with three significant digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    buckets: Buckets<u64>,
}

/// A text that is not a histogram of Weighbridge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an HdrHistogram V2 in base64: {0}; use the text of a journal unchanged")]
pub struct Unreadable(String);

/// One interval of a histogram log.
#[derive(Clone, Copy, Debug)]
pub struct LogInterval<'a> {
    /// What the values are: letters, digits and underscores (`response_time_ns`).
    pub tag: &'a str,
    /// From the start of the log to the start of the interval.
    pub start: Duration,
    /// Duration of the interval.
    pub length: Duration,
    /// Its values, nanoseconds.
    pub histogram: &'a Histogram,
}

impl Histogram {
    /// An empty histogram; about 270 KB, of which only touched pages cost memory.
    pub fn new() -> Histogram {
        let buckets = Buckets::new_with_bounds(1, VALUE_NS_MAX, DIGITS)
            .expect("the bounds are constants that the histogram takes");
        Histogram { buckets }
    }

    /// Records one value; values above [`VALUE_NS_MAX`] count as that.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.buckets.saturating_record(value_ns.min(VALUE_NS_MAX));
    }

    /// Records the same value `count` times.
    #[inline]
    pub fn record_n(&mut self, value_ns: u64, count: u64) {
        self.buckets.saturating_record_n(value_ns.min(VALUE_NS_MAX), count);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        self.buckets.add(&other.buckets).expect("all histograms have the same bounds");
    }

    /// Removes all values of `other`, every one of which must be recorded here too.
    ///
    /// # Panics
    /// If a value is not.
    pub fn subtract(&mut self, other: &Histogram) {
        self.buckets.subtract(&other.buckets).expect("all values of the other were recorded here");
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Number of values that are not above `value_ns`, including all of its bucket.
    pub fn count_up_to(&self, value_ns: u64) -> u64 {
        self.buckets.count_between(0, value_ns.min(VALUE_NS_MAX))
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// The value that a share `q` (0 to 1) of all values does not exceed, at the upper end of
    /// its bucket (at most 0.1 % too large); `None` without values.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        (!self.is_empty()).then(|| self.buckets.value_at_quantile(q))
    }

    /// The arithmetic mean of the buckets' middles; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.buckets.mean())
    }

    /// The largest value, at the upper end of its bucket; `None` without values.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.buckets.max())
    }

    /// The smallest value, at the lower end of its bucket; `None` without values.
    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.buckets.min())
    }

    /// Every recorded value at the upper end of its bucket, ascending, and its count.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }

    /// Clears all values and keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.reset();
    }

    /// The histogram as HdrHistogram V2, uncompressed, in base64 (RFC 4648, section 4).
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&self.buckets, &mut bytes)
            .expect("writing to memory does not fail, and the counts fit their encoding");
        STANDARD.encode(bytes)
    }

    /// Reads what [`Histogram::to_base64`] wrote, or the compressed form of histogram logs.
    /// Histograms with other bounds are converted value by value.
    ///
    /// # Errors
    /// If the text is not a histogram.
    pub fn from_base64(text: &str) -> Result<Histogram, Unreadable> {
        let bytes = STANDARD.decode(text.trim()).map_err(|error| Unreadable(error.to_string()))?;
        let read: Buckets<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| Unreadable(error.to_string()))?;
        let mut histogram = Histogram::new();
        for value in read.iter_recorded() {
            let value_ns = value.value_iterated_to().min(VALUE_NS_MAX);
            histogram.buckets.saturating_record_n(value_ns, value.count_at_value());
        }
        Ok(histogram)
    }

    /// The percentile table that HdrHistogram's plotters read (`.hgrm`), values divided by
    /// `divisor` (1e6 turns nanoseconds into milliseconds).
    pub fn percentile_table(&self, divisor: f64) -> String {
        let mut text = format!(
            "{:>12} {:>14} {:>10} {:>14}\n\n",
            "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
        );
        for (value_ns, percentile, count) in self.percentile_rows() {
            let (value, share) = (value_ns as f64 / divisor, percentile / 100.0);
            let _ = write!(text, "{value:12.3} {share:2.12} {count:10}");
            if percentile < 100.0 {
                let _ = write!(text, " {:14.2}", 1.0 / (1.0 - share));
            }
            text.push('\n');
        }
        let (mean, deviation) = (self.buckets.mean() / divisor, self.buckets.stdev() / divisor);
        let max = self.buckets.max() as f64 / divisor;
        let count = self.count();
        let _ = writeln!(text, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
        let _ = writeln!(text, "#[Max     = {max:12.3}, Total count    = {count:12}]");
        let _ = writeln!(
            text,
            "#[Buckets = {:12}, SubBuckets     = {SUB_BUCKETS:12}]",
            self.buckets.buckets()
        );
        text
    }

    /// Values, percentiles and counts of a percentile table: levels approach 100 %, five for each
    /// halving of the distance. The arithmetic is that of HdrHistogram 2.2.2
    /// (`PercentileIterator.java`), in percent: levels in shares of 1 have other last bits, and a
    /// level that is exactly the share of a number of values would give the next row.
    fn percentile_rows(&self) -> Vec<(u64, f64, u64)> {
        let (total, mut count, mut level) = (self.count(), 0, 0.0);
        let mut rows = Vec::new();
        for step in self.buckets.iter_recorded() {
            let value_ns = step.value_iterated_to();
            count += step.count_at_value();
            while 100.0 * count as f64 / total as f64 >= level {
                rows.push((value_ns, level, count));
                let halvings = ((100.0 / (100.0 - level)).ln() / 2_f64.ln()) as i32 + 1;
                level += 100.0 / (f64::from(TICKS_PER_HALF_DISTANCE) * 2_f64.powi(halvings));
                if count == total {
                    rows.push((value_ns, 100.0, total));
                    return rows;
                }
            }
        }
        rows
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

/// Writes a histogram log (`.hlog`): a header, then one line an interval with the histogram
/// compressed, as HdrHistogram's log readers expect it. The interval's maximum is written in
/// milliseconds, times in seconds.
///
/// # Errors
/// If `out` cannot be written, or a tag contains commas or blanks.
pub fn write_interval_log(
    out: &mut impl io::Write,
    started: SystemTime,
    intervals: &[LogInterval<'_>],
) -> io::Result<()> {
    writeln!(out, "#[Histogram log format version 1.3]")?;
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .with_start_time(started)
        .with_base_time(started)
        .with_max_value_divisor(1e6)
        .begin_log_with(out, &mut serializer)?;
    for interval in intervals {
        let tag = Tag::new(interval.tag).ok_or_else(|| {
            let text = format!("the tag {:?} must be without commas and blanks", interval.tag);
            io::Error::new(io::ErrorKind::InvalidInput, text)
        })?;
        log.write_histogram(
            &interval.histogram.buckets,
            interval.start,
            interval.length,
            Some(tag),
        )
        .map_err(into_io)?;
    }
    Ok(())
}

fn into_io(error: IntervalLogWriterError<V2DeflateSerializeError>) -> io::Error {
    match error {
        IntervalLogWriterError::IoError(error) => error,
        IntervalLogWriterError::SerializeError(error) => io::Error::other(error.to_string()),
    }
}

const DIGITS: u8 = 3;
const SUB_BUCKETS: u32 = 2048;
const TICKS_PER_HALF_DISTANCE: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use proptest::prelude::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }

    #[test]
    fn an_empty_histogram_has_no_figures() {
        let empty = Histogram::new();
        assert_eq!((empty.count(), empty.quantile(0.5), empty.mean()), (0, None, None));
        assert_eq!((empty.max(), empty.min()), (None, None));
        assert_eq!(Histogram::from_base64(&empty.to_base64()), Ok(empty));
    }

    #[test]
    fn values_beyond_the_range_are_counted_at_its_end() {
        let histogram = of([0, u64::MAX, VALUE_NS_MAX + 1]);
        assert_eq!(histogram.count(), 3);
        assert_eq!(histogram.min(), Some(0));
        assert!(histogram.max().unwrap() >= VALUE_NS_MAX);
        assert!(histogram.max().unwrap() < VALUE_NS_MAX / 1000 * 1001);
    }

    #[test]
    fn what_is_taken_away_leaves_the_others_exactly() {
        let mut all = of([5, 70, 70, 9_000, 123_456_789, u64::MAX]);
        all.subtract(&of([70, 123_456_789, u64::MAX]));
        assert_eq!(all, of([5, 70, 9_000]));
        all.subtract(&Histogram::new());
        assert_eq!((all.count(), all.max(), all.min()), (3, Some(9_007), Some(5)));
        all.subtract(&of([5, 70, 9_000]));
        assert!(all.is_empty());
    }

    #[test]
    fn garbage_is_refused_with_the_fix() {
        for text in ["", "no base64!", "AAAA", "HISTFAAAA", "HAAAAQ=="] {
            let error = Histogram::from_base64(text).unwrap_err().to_string();
            assert!(error.contains("base64"), "{error}");
        }
    }

    #[test]
    fn the_percentile_table_has_the_plotters_columns() {
        let table = of((1..=1000).map(|i| i * 1_000_000)).percentile_table(1e6);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "       Value     Percentile TotalCount 1/(1-Percentile)");
        assert_eq!(lines[1], "");
        assert!(lines[2].ends_with("0.000000000000          1           1.00"), "{}", lines[2]);
        let last = lines[lines.len() - 4];
        assert!(last.ends_with("1.000000000000       1000"), "{last}");
        let footer = lines[lines.len() - 2];
        assert!(footer.starts_with("#[Max     =     1000."), "{footer}");
        assert!(footer.ends_with("Total count    =         1000]"), "{footer}");
    }

    /// 875 of 1,000 values are 87.5 %: the row of that level is the 875th value's and not that of
    /// the one after it, as in HdrHistogram's own tables.
    #[test]
    fn a_level_that_is_exactly_reached_is_that_values_row() {
        let rows = of(1..=1000).percentile_rows();
        for (level, value) in [(50.0, 500), (87.5, 875), (95.0, 950), (100.0, 1000)] {
            let row = rows.iter().find(|row| row.1 == level).unwrap();
            assert_eq!((row.0, row.2), (value, value), "{level}");
        }
        assert_eq!(rows.last().map(|row| row.2), Some(1000));
        assert_eq!(Histogram::new().percentile_rows(), []);
    }

    #[test]
    fn an_interval_log_is_read_back_by_the_reference_reader() {
        let (first, second) = (of([1_000, 2_000]), of([5_000_000]));
        let intervals = [(0, &first), (1, &second)].map(|(second, histogram)| LogInterval {
            tag: "response_time_ns",
            start: Duration::from_secs(second),
            length: Duration::from_secs(1),
            histogram,
        });
        let mut log = Vec::new();
        let started = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_500);
        write_interval_log(&mut log, started, &intervals).unwrap();
        assert!(log.starts_with(b"#[Histogram log format version 1.3]\n"));
        let entries: Vec<LogEntry<'_>> =
            IntervalLogIterator::new(&log).collect::<Result<_, _>>().unwrap();
        let read: Vec<Histogram> = entries
            .iter()
            .filter_map(|entry| match entry {
                LogEntry::Interval(interval) => Some(interval.encoded_histogram()),
                _ => None,
            })
            .map(|text| Histogram::from_base64(text).unwrap())
            .collect();
        assert_eq!(read, [first.clone(), second.clone()]);
        let bad = [LogInterval { tag: "a b", ..intervals[0] }];
        assert!(write_interval_log(&mut Vec::new(), started, &bad).is_err());
    }

    proptest! {
        #[test]
        fn quantiles_are_within_three_digits_and_text_keeps_everything(
            mut values in prop::collection::vec(1u64..VALUE_NS_MAX, 1..200),
            split in 0usize..200,
        ) {
            let mut histogram = of(values[..split.min(values.len())].iter().copied());
            histogram.merge(&of(values[split.min(values.len())..].iter().copied()));
            values.sort_unstable();
            prop_assert_eq!(histogram.count(), values.len() as u64);
            for q in [0.5, 0.9, 0.99, 1.0] {
                let rank = (q * values.len() as f64).ceil() as usize;
                let exact = values[rank - 1] as f64;
                let shown = histogram.quantile(q).unwrap() as f64;
                prop_assert!(shown >= exact && shown <= exact * 1.001 + 1.0);
            }
            prop_assert_eq!(Histogram::from_base64(&histogram.to_base64()), Ok(histogram));
        }
    }
}
