//! A recorded time that takes its memory when it is needed: a histogram is 270 KB, a shard has
//! eight, and one that only holds connections fills a single one of them.

use std::ops::Deref;
use std::sync::LazyLock;

use weigh_model::portable::{Portable, Reader, Unreadable};
use weigh_stats::histogram::Histogram;

use crate::recorded;

/// A histogram, empty until the first value. It reads as a [`Histogram`].
#[derive(Clone, Debug, Default)]
pub struct Times(Option<Box<Histogram>>);

impl Times {
    /// Takes the memory now, so that the first value need not.
    pub fn prepare(&mut self) {
        self.histogram();
    }

    /// Counts one value, nanoseconds.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.histogram().record(value_ns);
    }

    /// Counts the same value `count` times.
    #[inline]
    pub fn record_n(&mut self, value_ns: u64, count: u64) {
        self.histogram().record_n(value_ns, count);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Times) {
        match (&mut self.0, &other.0) {
            (Some(own), Some(other)) => own.merge(other),
            (own @ None, Some(other)) => *own = Some(other.clone()),
            (_, None) => {}
        }
    }

    #[inline]
    fn histogram(&mut self) -> &mut Histogram {
        self.0.get_or_insert_with(taken)
    }
}

/// Two are equal if their values are, whether memory was taken for them or not.
impl PartialEq for Times {
    fn eq(&self, other: &Times) -> bool {
        **self == **other
    }
}

impl Portable for Times {
    fn put(&self, out: &mut Vec<u8>) {
        recorded::put(self.recorded(), out);
    }

    fn take(from: &mut Reader<'_>) -> Result<Times, Unreadable> {
        let mut times = Times::default();
        recorded::take(from, |value_ns, count| {
            times.record_n(value_ns, count);
            Ok(())
        })?;
        Ok(times)
    }
}

/// Separate so that the function that records a value stays small enough to be inlined.
#[cold]
fn taken() -> Box<Histogram> {
    Box::default()
}

impl Deref for Times {
    type Target = Histogram;

    fn deref(&self) -> &Histogram {
        static EMPTY: LazyLock<Histogram> = LazyLock::new(Histogram::new);
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_histogram_of_their_values() {
        let (mut left, mut right) = (Times::default(), Times::default());
        assert_eq!((left.count(), left.max()), (0, None));
        left.merge(&right);
        right.prepare();
        left.merge(&right);
        assert_eq!(left.count(), 0);
        right.record(5);
        left.merge(&right);
        left.record(7);
        right.merge(&left);
        assert_eq!((left.count(), left.min(), left.max()), (2, Some(5), Some(7)));
        assert_eq!((right.count(), right.quantile(0.5)), (3, Some(5)));
        right.record_n(9, 4);
        assert_eq!((right.count(), right.quantile(0.5)), (7, Some(9)));
    }
}
