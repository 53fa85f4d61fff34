//! Counts each message and answers it.

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
    fn accepted(&mut self, _connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        self.census.note_connection();
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while let Some((body, bytes)) = codec::read(&input[taken..])? {
            self.census.note(body);
            codec::put(out.stage(connection), b"");
            taken += bytes;
        }
        Ok(taken)
    }

    fn closed(&mut self, _connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {}

    fn report(&self) -> ServerReport {
        self.census.report()
    }
}
