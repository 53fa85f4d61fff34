//! Figures of the account under their names in a summary.

use weigh_model::content::Phase;

use crate::account::connection::{Connection, Transport};
use crate::account::result::Account;
use crate::account::traffic::{Phases, Traffic};

/// A metric: its name, its unit last, and its value.
pub type Metric = (String, f64);

impl Account {
    /// The figures under their names in `summary.json`. `messages` are the load's count of
    /// messages;
    /// without them there are no figures per message. What was not measured is absent: protocol
    /// and payload are, until codecs have said which is which.
    ///
    /// Sums are those of all that was captured, both directions; a session is a connection.
    pub fn metrics(&self, messages: Option<u64>) -> Vec<Metric> {
        let both = self.sent.total() + self.received.total();
        let is_split = both.layers.application == 0;
        let mut found: Vec<Metric> = figures([&self.sent, &self.received], is_split)
            .into_iter()
            .map(|(name, value)| (format!("wire.{name}"), value as f64))
            .collect();
        found.push(("wire.dropped_packets".to_owned(), self.packets_dropped as f64));
        found.push(("wire.connections".to_owned(), self.sessions() as f64));
        found.extend(messages.map(|count| ("wire.messages".to_owned(), count as f64)));
        for (what, count) in [("message", messages), ("session", Some(self.sessions()))] {
            if let Some(count) = count.filter(|count| *count > 0) {
                found.extend(self.shares(both, what, count as f64, is_split));
            }
        }
        found
    }

    /// TCP connections, including those that are not in the list.
    pub fn sessions(&self) -> u64 {
        let listed = self.connections.iter().filter(|found| found.transport == Transport::Tcp);
        listed.count() as u64 + self.connections_folded
    }

    fn shares(&self, both: Traffic, what: &str, count: f64, is_split: bool) -> Vec<Metric> {
        let mut found = Vec::new();
        let mut add = |name: &str, value: u64| {
            found.push((format!("wire.{name}_per_{what}"), value as f64 / count));
        };
        add("bytes", both.bytes());
        add("packets", both.packets);
        add("ack_only_packets", both.ack_only_packets);
        for (layer, bytes) in both.layers.named(is_split) {
            add(&format!("{layer}.bytes"), bytes);
        }
        add("tls.bytes", both.layers.tls_handshake + both.layers.tls_record);
        if is_split {
            add("application.bytes", both.layers.content());
        }
        for phase in Phase::ALL {
            let traffic = self.sent[phase] + self.received[phase];
            add(&format!("phases.{}.bytes", phase.name()), traffic.bytes());
        }
        found
    }
}

impl Connection {
    /// Its figures under their names in a summary without `wire.`; zeros are left out.
    pub fn figures(&self) -> impl Iterator<Item = (String, u64)> {
        let is_split = self.total().layers.application == 0;
        let all = figures([&self.sent, &self.received], is_split);
        all.into_iter().filter(|(_, value)| *value > 0)
    }
}

/// Packets and bytes of both directions, by layer and phase.
pub(crate) fn figures([sent, received]: [&Phases; 2], is_split: bool) -> Vec<(String, u64)> {
    let both = sent.total() + received.total();
    let mut found = Vec::new();
    let mut add = |name: String, value: u64| found.push((name, value));
    add("packets".to_owned(), both.packets);
    add("bytes".to_owned(), both.bytes());
    for (direction, traffic) in [("sent", sent.total()), ("received", received.total())] {
        add(format!("{direction}.packets"), traffic.packets);
        add(format!("{direction}.bytes"), traffic.bytes());
        add(format!("{direction}.data_packets"), traffic.data_packets);
        add(format!("{direction}.ack_only_packets"), traffic.ack_only_packets);
        add(format!("{direction}.retransmitted_packets"), traffic.retransmitted_packets);
        add(format!("{direction}.keep_alive_packets"), traffic.keep_alive_packets);
        for (layer, bytes) in traffic.layers.named(is_split) {
            add(format!("{direction}.layers.{layer}_bytes"), bytes);
        }
    }
    add("header_bytes".to_owned(), both.layers.header());
    for (layer, bytes) in both.layers.named(is_split) {
        add(format!("layers.{layer}_bytes"), bytes);
    }
    add("ack_only_packets".to_owned(), both.ack_only_packets);
    add("retransmitted_packets".to_owned(), both.retransmitted_packets);
    add("keep_alive_packets".to_owned(), both.keep_alive_packets);
    for phase in Phase::ALL {
        let name = phase.name();
        let traffic = sent[phase] + received[phase];
        add(format!("phases.{name}.packets"), traffic.packets);
        add(format!("phases.{name}.bytes"), traffic.bytes());
        for (direction, one) in [("sent", sent[phase]), ("received", received[phase])] {
            add(format!("phases.{name}.{direction}_bytes"), one.bytes());
        }
        for (layer, bytes) in traffic.layers.named(is_split) {
            add(format!("phases.{name}.layers.{layer}_bytes"), bytes);
        }
    }
    found
}
