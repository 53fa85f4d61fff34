//! The newest bodies that came in, within bounds.

use std::collections::VecDeque;

use crate::http1_core::framing::put_decimal;
use crate::readings_core::put_json_string;

/// A ring of bodies, each with its number.
pub(super) struct Store {
    bodies: VecDeque<Vec<u8>>,
    bodies_max: usize,
    held_bytes: usize,
    /// The number of the next body.
    next: u64,
}

impl Store {
    pub(super) fn new(bodies_max: usize) -> Store {
        Store { bodies: VecDeque::new(), bodies_max, held_bytes: 0, next: 0 }
    }

    /// Keeps a body, and forgets the oldest ones beyond the bounds.
    pub(super) fn put(&mut self, body: &[u8]) {
        if self.bodies_max == 0 || body.len() > HELD_BYTES_MAX {
            return self.pass_over();
        }
        self.next += 1;
        let mut place = Vec::new();
        while self.bodies.len() >= self.bodies_max || self.held_bytes + body.len() > HELD_BYTES_MAX
        {
            let Some(oldest) = self.bodies.pop_front() else { break };
            self.held_bytes -= oldest.len();
            place = oldest;
        }
        // The oldest body's memory serves the newest one, unless it is far too large for it.
        if place.capacity() > 2 * body.len() + SPARE_BYTES_MAX {
            place = Vec::new();
        }
        place.clear();
        place.extend_from_slice(body);
        self.held_bytes += body.len();
        self.bodies.push_back(place);
    }

    /// Counts a body that is not kept. The list has no gaps, so it begins anew behind it.
    pub(super) fn pass_over(&mut self) {
        self.next += 1;
        self.bodies.clear();
        self.held_bytes = 0;
    }

    /// Bodies that ever came in.
    pub(super) fn count(&self) -> u64 {
        self.next
    }

    /// Appends the list from number `since` on, at most `limit` bodies, as JSON. Bodies are JSON
    /// strings; invalid UTF-8 in them is replaced.
    pub(super) fn list(&self, since: u64, limit: u64, count: u64, out: &mut Vec<u8>) {
        let oldest = self.next - self.bodies.len() as u64;
        let first = since.clamp(oldest, self.next);
        let after = self.next.min(first.saturating_add(limit));
        out.extend_from_slice(b"{\"messages\":[");
        for number in first..after {
            let body = &self.bodies[(number - oldest) as usize];
            if number > first {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"id\":");
            put_decimal(out, number);
            out.extend_from_slice(b",\"bytes\":");
            put_decimal(out, body.len() as u64);
            out.extend_from_slice(b",\"body\":");
            put_json_string(out, body);
            out.push(b'}');
        }
        out.extend_from_slice(b"],\"next\":");
        put_decimal(out, after);
        out.extend_from_slice(b",\"count\":");
        put_decimal(out, count);
        out.push(b'}');
    }
}

const HELD_BYTES_MAX: usize = 64 << 20;
const SPARE_BYTES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn list(store: &Store, since: u64, limit: u64) -> serde_json::Value {
        let mut out = Vec::new();
        store.list(since, limit, store.count(), &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn the_newest_bodies_are_listed_from_a_cursor() {
        let mut store = Store::new(3);
        for body in ["a", "b", "{\"c\":\"\n\u{e4}\"}", "d"] {
            store.put(body.as_bytes());
        }
        let all = list(&store, 0, 100);
        assert_eq!((&all["count"], &all["next"]), (&4.into(), &4.into()));
        let bodies: Vec<&str> = all["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["body"].as_str().unwrap())
            .collect();
        assert_eq!(bodies, ["b", "{\"c\":\"\n\u{e4}\"}", "d"]);
        let one = list(&store, 2, 1);
        assert_eq!((&one["messages"][0]["id"], &one["next"]), (&2.into(), &3.into()));
        let none = list(&store, 99, 1);
        assert_eq!((none["messages"].as_array().unwrap().len(), &none["next"]), (0, &4.into()));
    }

    #[test]
    fn memory_is_bounded_by_bytes_too() {
        let mut store = Store::new(1000);
        for _ in 0..10 {
            store.put(&vec![0; 16 << 20]);
        }
        assert_eq!((store.bodies.len(), store.count()), (4, 10));
    }
}
