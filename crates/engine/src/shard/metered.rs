//! Counts of the codecs, connection by connection, and a goodbye that loses none of what is still
//! under way: both only where somebody listens on the wire.

use weigh_model::Nanos;
use weigh_model::protocol::Role;

use super::{Phase, Shard};
use crate::io::Io;
use crate::link::{Link, LinkPhase};

impl Shard {
    /// Says goodbye on every connection and closes our half of each. What the other side has still
    /// to say would come to a closed socket, be answered by a reset, and be counted by nobody:
    /// Mosquitto's PUBREL, for one.
    pub(super) fn say_goodbye(&mut self, io: &mut dyn Io) {
        for role in [Role::Producer, Role::Consumer] {
            for index in 0..self.links.len() as u32 {
                let Link { connection, state } = &mut self.links[index as usize];
                let (Some(connection), Some(token)) = (connection, state.token) else { continue };
                if state.role != role || state.is_lost {
                    continue;
                }
                let mut staged = self.out.spare.lend(state);
                connection.close(&mut staged.out);
                self.out.spare.settle(state, staged);
                state.phase = LinkPhase::Closing;
                self.flush(index, io);
                if self.links[index as usize].state.out_bytes() == 0 {
                    io.shutdown(token);
                } else {
                    self.lose(index, String::new(), false);
                }
            }
        }
        let until = io.now() + GOODBYE_PATIENCE;
        self.clock.phase = Phase::Parting(until);
        self.drop_lost(io);
        // Where every session has had an end of its own nobody is left to say anything.
        self.await_goodbyes(until, io);
    }

    /// Is done once every other side has closed its half too, or has had its time.
    pub(super) fn await_goodbyes(&mut self, until: Nanos, io: &mut dyn Io) {
        if io.now() < until && self.links.iter().any(|link| link.state.token.is_some()) {
            return;
        }
        for index in 0..self.links.len() as u32 {
            let state = &self.links[index as usize].state;
            if state.token.is_some() && !state.is_lost {
                self.lose(index, String::new(), false);
            }
        }
        self.drop_lost(io);
        self.clock.phase = Phase::Done;
    }
}

/// How long the other side has to close its half: a round trip on the slowest of our paths.
const GOODBYE_PATIENCE: Nanos = Nanos::from_secs(2);
