//! Counts each message and sends it back to where it came from.

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};
use weigh_protocols::server_counts::ServerCounts;

use super::codec;

#[derive(Default)]
pub struct Shard {
    census: ServerCounts,
}

impl Server for Shard {
    fn accepted(&mut self, _peer: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        self.census.note_connection();
    }

    fn receive(
        &mut self,
        peer: ConnectionId,
        input: &[u8],
        _now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        if let Some((number, body)) = codec::read(input) {
            self.census.note(body);
            codec::put(out.stage(peer), number, body);
            out.frame(peer);
        }
        Ok(input.len())
    }

    fn closed(&mut self, _peer: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {}

    fn report(&self) -> ServerReport {
        self.census.report()
    }
}
