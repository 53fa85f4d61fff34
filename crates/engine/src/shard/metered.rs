//! Counts of the codecs, connection by connection, and a close that loses none of the bytes in
//! transit: both only if packets are captured.

use weigh_model::Nanos;
use weigh_model::protocol::Role;

use super::{Phase, Shard};
use crate::io::Io;
use crate::link::{Link, LinkPhase};

impl Shard {
    /// Closes every session, and the generator's half of each connection. What the other side
    /// still sends, such as Mosquitto's PUBREL, would otherwise reach a closed socket, be answered
    /// by a reset, and not be counted.
    pub(super) fn start_closing(&mut self, io: &mut dyn Io) {
        for role in [Role::Producer, Role::Consumer] {
            for index in self.links.ids() {
                let Link { connection, state } = &mut self.links[index];
                let (Some(connection), Some(token)) = (connection, state.token) else { continue };
                if state.role != role || state.is_lost {
                    continue;
                }
                let mut staged = self.out.spare.lend(state);
                connection.close(&mut staged.out);
                self.out.spare.settle(state, staged);
                state.phase = LinkPhase::Closing;
                self.flush(index, io);
                let Link { connection, state } = &self.links[index];
                let parts = connection.as_ref().is_some_and(|own| own.is_parting());
                if state.out_bytes() == 0 && !parts {
                    io.shutdown(token);
                } else {
                    self.lose(index, String::new(), false);
                }
            }
        }
        let until = io.now() + CLOSE_PATIENCE;
        self.clock.phase = Phase::Closing(until);
        self.drop_lost(io);
        // Without a connection that is still open there is nothing to wait for.
        self.await_closes(until, io);
    }

    /// Ends once every other side has closed its half too, or its time is over.
    pub(super) fn await_closes(&mut self, until: Nanos, io: &mut dyn Io) {
        let is_any_open = self.links.iter().any(|link| link.state.token.is_some());
        if io.now() < until && (is_any_open || !self.parting.is_empty()) {
            return;
        }
        for index in self.links.ids() {
            let state = &self.links[index].state;
            if state.token.is_some() && !state.is_lost {
                self.lose(index, String::new(), false);
            }
        }
        self.drop_lost(io);
        self.parting.end(io);
        self.clock.phase = Phase::Done;
    }
}

/// Time that the other side has to close its half: a round trip on the slowest built-in path.
const CLOSE_PATIENCE: Nanos = Nanos::from_secs(2);
