//! Requests of consumers that wait for a reading: a long poll costs a place here, and nothing while
//! it waits.

use std::collections::{BTreeMap, BTreeSet};

use weigh_model::Nanos;
use weigh_model::server::ConnectionId;

use super::codec::Intake;
use crate::readings_core::Query;

/// The requests that one shard holds.
#[derive(Default)]
pub(super) struct Held {
    requests: BTreeMap<ConnectionId, (Intake, Query, Nanos)>,
    /// When the wait of which is over.
    ends: BTreeSet<(Nanos, ConnectionId)>,
}

/// A waiting request: its connection, its query, and its deadline.
pub(super) type Waiting = (ConnectionId, Intake, Query, Nanos);

impl Held {
    /// Holds a request; a connection has one at most.
    pub(super) fn put(&mut self, of: ConnectionId, intake: Intake, query: Query, until: Nanos) {
        self.requests.insert(of, (intake, query, until));
        self.ends.insert((until, of));
    }

    /// Takes the request of a connection back, if it has one.
    pub(super) fn take(&mut self, of: ConnectionId) -> Option<(Intake, Query)> {
        if self.requests.is_empty() {
            return None;
        }
        let (intake, query, until) = self.requests.remove(&of)?;
        self.ends.remove(&(until, of));
        Some((intake, query))
    }

    /// Takes all requests for one list.
    pub(super) fn take_list(&mut self, list: u32) -> Vec<Waiting> {
        if self.requests.is_empty() {
            return Vec::new();
        }
        let is_of_list = |_: &ConnectionId, held: &mut (Intake, Query, Nanos)| held.1.list == list;
        let taken = self.requests.extract_if(.., is_of_list);
        let taken = taken.map(|(of, (intake, query, until))| (of, intake, query, until));
        let taken: Vec<Waiting> = taken.collect();
        for (of, .., until) in &taken {
            self.ends.remove(&(*until, *of));
        }
        taken
    }

    /// Takes those whose wait is over.
    pub(super) fn take_due(&mut self, now: Nanos) -> Vec<Waiting> {
        let mut due = Vec::new();
        while let Some((until, of)) = self.ends.first().copied().filter(|(until, _)| *until <= now)
        {
            self.ends.pop_first();
            if let Some((intake, query, _)) = self.requests.remove(&of) {
                due.push((of, intake, query, until));
            }
        }
        due
    }

    /// When the next wait is over.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.ends.first().map(|(until, _)| *until)
    }

    /// The lists for which requests wait.
    pub(super) fn lists(&self) -> BTreeSet<u32> {
        self.requests.values().map(|(_, query, _)| query.list).collect()
    }
}
