//! Lists of the newest readings, which consumers of the pattern `poll` request. All shards share
//! them, since a reading may arrive at one and be requested from another.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use super::list::put_element;

/// The lists of one server.
pub(crate) struct Readings {
    readings_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    lists: HashMap<u32, List>,
}

/// The newest readings of one list, each as it stands in an answer.
#[derive(Default)]
struct List {
    elements: VecDeque<Vec<u8>>,
    held_bytes: usize,
    /// Number of the next one, which is the cursor of later readings.
    next: u64,
    /// Shards with a request that waits for new readings.
    waiting: BTreeSet<u16>,
}

/// A query of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    /// Index of the list.
    pub(crate) list: u32,
    /// Cursor from which to read; `None` from the oldest reading on, or with a limit of 0 from the
    /// end.
    pub(crate) since: Option<u64>,
    /// Most readings in the answer.
    pub(crate) limit: u64,
}

/// Result of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Number of readings in the answer, and of requested ones that were discarded before.
    Readings { count: u64, missed: u64 },
    /// The list never returned this cursor.
    Ahead,
}

impl Readings {
    pub(crate) fn new(readings_max: usize) -> Readings {
        Readings { readings_max, inner: Mutex::default() }
    }

    /// Adds a reading and removes the oldest beyond the bounds. The shards that wait for one are
    /// removed from the list of waiting shards.
    pub(crate) fn put(&self, list: u32, body: &[u8]) -> BTreeSet<u16> {
        let mut inner = self.inner();
        let list = inner.lists.entry(list).or_default();
        list.next += 1;
        let mut element = Vec::new();
        let room = HELD_BYTES_MAX.saturating_sub(body.len());
        while list.elements.len() >= self.readings_max || list.held_bytes > room {
            let Some(oldest) = list.elements.pop_front() else { break };
            list.held_bytes -= oldest.len();
            element = oldest;
        }
        element.clear();
        put_element(&mut element, body);
        list.held_bytes += element.len();
        list.elements.push_back(element);
        std::mem::take(&mut list.waiting)
    }

    /// Appends the answer to `query`. If it is empty, `waits_for` is notified of the next reading.
    pub(crate) fn page(&self, query: &Query, waits_for: Option<u16>, out: &mut Vec<u8>) -> Found {
        let mut inner = self.inner();
        let list = inner.lists.entry(query.list).or_default();
        let oldest = list.next - list.elements.len() as u64;
        let since = match query.since {
            Some(since) if since > list.next => return Found::Ahead,
            Some(since) => since,
            None if query.limit == 0 => list.next,
            None => oldest,
        };
        let first = since.max(oldest);
        let after = if query.limit == 0 { since } else { list.next.min(first + query.limit) };
        out.extend_from_slice(b"{\"readings\":[");
        let mut number = first;
        while number < after {
            if number > first {
                out.push(b',');
            }
            out.extend_from_slice(&list.elements[(number - oldest) as usize]);
            number += 1;
        }
        out.extend_from_slice(b"],\"next\":\"");
        // Nothing fails to be written to memory.
        let _ = write!(out, "{}", number.max(after.min(since)));
        out.extend_from_slice(b"\"}");
        let count = number - first;
        if let Some(shard) = waits_for.filter(|_| count == 0) {
            list.waiting.insert(shard);
        }
        let missed = if query.limit == 0 { 0 } else { first - since };
        Found::Readings { count, missed }
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory that one list may take.
const HELD_BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn page(readings: &Readings, since: Option<u64>, limit: u64) -> (Found, serde_json::Value) {
        let mut out = Vec::new();
        let found = readings.page(&Query { list: 0, since, limit }, None, &mut out);
        (found, serde_json::from_slice(&out).unwrap_or_default())
    }

    #[test]
    fn a_cursor_leads_through_all_of_them_once() {
        let readings = Readings::new(100);
        for body in ["{\"n\":0}", "{\"n\":1}", "{\"n\":2}"] {
            readings.put(0, body.as_bytes());
        }
        readings.put(7, b"of another list");
        let (found, value) = page(&readings, None, 2);
        assert_eq!(found, Found::Readings { count: 2, missed: 0 });
        assert_eq!((&value["readings"][1]["n"], &value["next"]), (&1.into(), &"2".into()));
        let (_, value) = page(&readings, Some(2), 2);
        assert_eq!((&value["readings"][0]["n"], &value["next"]), (&2.into(), &"3".into()));
        let (found, value) = page(&readings, Some(3), 2);
        assert_eq!(found, Found::Readings { count: 0, missed: 0 });
        assert_eq!(value["next"], "3");
        assert_eq!(page(&readings, Some(4), 2).0, Found::Ahead);
    }

    #[test]
    fn without_a_limit_the_cursor_of_the_end_is_told() {
        let readings = Readings::new(100);
        readings.put(0, b"{}");
        let (found, value) = page(&readings, None, 0);
        assert_eq!((found, &value["next"]), (Found::Readings { count: 0, missed: 0 }, &"1".into()));
        assert_eq!(page(&readings, Some(0), 0).1["next"], "0");
    }

    #[test]
    fn what_was_forgotten_is_counted_for_whoever_asks_for_it() {
        let readings = Readings::new(2);
        (0..5).for_each(|_| drop(readings.put(0, b"{}")));
        assert_eq!(page(&readings, Some(1), 10).0, Found::Readings { count: 2, missed: 2 });
        assert_eq!(page(&readings, Some(3), 10).0, Found::Readings { count: 2, missed: 0 });
        assert_eq!(page(&readings, None, 10).0, Found::Readings { count: 2, missed: 0 });
    }

    #[test]
    fn a_shard_that_waits_is_named_once_with_the_next_reading() {
        let readings = Readings::new(2);
        let query = Query { list: 0, since: Some(0), limit: 5 };
        readings.page(&query, Some(3), &mut Vec::new());
        assert_eq!(readings.put(1, b"{}"), BTreeSet::new(), "it waits for another list");
        assert_eq!(readings.put(0, b"{}"), BTreeSet::from([3]));
        assert_eq!(readings.put(0, b"{}"), BTreeSet::new());
        readings.page(&query, Some(3), &mut Vec::new());
        assert_eq!(readings.put(0, b"{}"), BTreeSet::new());
    }
}
