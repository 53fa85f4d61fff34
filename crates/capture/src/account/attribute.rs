//! Splits content into protocol and payload by the codecs' counts, which alone know the payload.

use serde::{Deserialize, Serialize};
use weigh_model::content::{CodecCount, ContentBytes, Phase, StreamCounts};

use crate::account::connection::Connection;
use crate::account::placed::{move_edges, move_notes};
use crate::account::result::Account;
use crate::account::traffic::Phases;
use crate::stream::tls::{Facts, TLS_1_3};

/// A difference between codec and capture: one of them is wrong, or they count different things.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disagreement {
    /// The connection; absent for all together.
    pub connection: Option<String>,
    /// `sent` or `received`.
    pub direction: String,
    /// Bytes of content by the codec's count.
    pub counted_bytes: u64,
    /// Bytes of content on the wire.
    pub captured_bytes: u64,
}

impl Account {
    /// Splits the content of each connection into protocol and payload as `counts` says. Where the
    /// two do not agree the content stays unsplit. What TLS 1.3 sent beyond the count are its own
    /// messages after the handshake (RFC 8446, section 4.6), and goes there. Without TLS the
    /// packets that carried or acknowledged the protocol's own set-up and tear-down go to these
    /// phases too.
    pub fn attribute(
        &mut self,
        counts: &dyn Fn(&Connection) -> Option<StreamCounts>,
    ) -> Vec<Disagreement> {
        let mut disagreements = Vec::new();
        let mut all = self.connections_folded == 0;
        for connection in &mut self.connections {
            let Some(counts) = counts(connection) else {
                all = false;
                continue;
            };
            let name = format!("{} > {}", connection.initiator, connection.responder);
            let tls = connection.tls;
            let found = split_both([&mut connection.sent, &mut connection.received], &counts, tls);
            all &= found.is_empty();
            if found.is_empty() {
                let counts = [&counts.sent, &counts.received];
                let placed = std::mem::take(&mut connection.placed);
                let phases = [&mut connection.sent, &mut connection.received];
                move_edges(&placed, phases, counts);
                move_notes(&mut connection.notes, counts);
            }
            disagreements.extend(found.into_iter().map(|mut found| {
                found.connection = Some(name.clone());
                found
            }));
        }
        let [mut sent, mut received] = self.folded;
        for connection in &self.connections {
            sent += connection.sent;
            received += connection.received;
        }
        (self.sent, self.received) = (sent, received);
        self.attributed = all;
        disagreements
    }

    /// Splits the content of all connections together; the list of connections stays unsplit.
    pub fn attribute_totals(&mut self, counts: &StreamCounts) -> Vec<Disagreement> {
        let tls = self.connections.iter().find_map(|connection| connection.tls);
        let found = split_both([&mut self.sent, &mut self.received], counts, tls);
        self.attributed = found.is_empty();
        found
    }
}

fn split_both(
    [sent, received]: [&mut Phases; 2],
    counts: &StreamCounts,
    tls: Option<Facts>,
) -> Vec<Disagreement> {
    [("sent", sent, &counts.sent), ("received", received, &counts.received)]
        .into_iter()
        .filter_map(|(direction, phases, count)| {
            let captured_bytes = split(phases, count, tls).err()?;
            let counted_bytes = count.total();
            let direction = direction.to_owned();
            Some(Disagreement { connection: None, direction, counted_bytes, captured_bytes })
        })
        .collect()
}

/// Splits one direction; the error is the number of bytes of content.
fn split(phases: &mut Phases, count: &CodecCount, tls: Option<Facts>) -> Result<(), u64> {
    let captured: u64 = Phase::ALL.iter().map(|phase| phases[*phase].layers.content()).sum();
    let surplus = captured.checked_sub(count.total()).ok_or(captured)?;
    match tls {
        _ if surplus == 0 => {}
        Some(facts) if facts.version == Some(TLS_1_3) => {
            phases.set_up.layers.tls_handshake += surplus;
        }
        Some(facts) if !facts.overhead_exact => phases.messages.layers.tls_record += surplus,
        _ => return Err(captured),
    }
    for phase in Phase::ALL {
        let layers = &mut phases[phase].layers;
        let ContentBytes { protocol, payload } = count.of(phase);
        layers.application = 0;
        layers.protocol = protocol;
        layers.payload = payload;
    }
    Ok(())
}
