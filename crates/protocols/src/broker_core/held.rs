//! Connections whose requests may have to wait: what comes meanwhile is held back, because the
//! requests of a connection are answered in their order.

use weigh_model::connection::Fault;
use weigh_model::server::ConnectionId;

use super::place::{Place, Turn};

/// A connection whose requests may have to wait.
pub(crate) trait Waiting {
    /// True if its next request has to wait.
    fn is_waiting(&self) -> bool;

    /// Input that has to wait.
    fn held(&mut self) -> &mut Vec<u8>;
}

/// The connections of a shard, whose requests may have to wait.
pub(crate) trait Holding {
    type Peer: Waiting;
    type World;

    fn peer(&mut self, of: ConnectionId) -> Option<&mut Self::Peer>;

    /// Executes the requests in `input` until one has to wait; returns how many bytes that took.
    fn run(
        &mut self,
        of: ConnectionId,
        input: &[u8],
        world: &mut Self::World,
        turn: &mut Turn<'_, Vec<Place>>,
    ) -> Result<usize, Fault>;

    /// Executes what a connection held back.
    fn run_held(
        &mut self,
        of: ConnectionId,
        world: &mut Self::World,
        turn: &mut Turn<'_, Vec<Place>>,
    ) -> Result<(), Fault> {
        let Some(peer) = self.peer(of) else { return Ok(()) };
        let mut held = std::mem::take(peer.held());
        let taken = self.run(of, &held, world, turn)?;
        held.drain(..taken);
        let Some(peer) = self.peer(of) else { return Ok(()) };
        *peer.held() = held;
        match peer.is_waiting() && !peer.held().is_empty() {
            true => turn.out.hold(of),
            false => turn.out.release(of),
        }
        Ok(())
    }

    /// Executes the requests in new input, or holds it back; returns how many bytes that took.
    fn run_or_hold(
        &mut self,
        of: ConnectionId,
        input: &[u8],
        world: &mut Self::World,
        turn: &mut Turn<'_, Vec<Place>>,
    ) -> Result<usize, Fault> {
        let Some(peer) = self.peer(of) else { return Ok(input.len()) };
        if !peer.held().is_empty() || peer.is_waiting() {
            // It may complete a request of which the beginning was held.
            peer.held().extend_from_slice(input);
            self.run_held(of, world, turn)?;
            return Ok(input.len());
        }
        let taken = self.run(of, input, world, turn)?;
        match self.peer(of) {
            Some(peer) if peer.is_waiting() && taken < input.len() => {
                peer.held().extend_from_slice(&input[taken..]);
                turn.out.hold(of);
                Ok(input.len())
            }
            _ => Ok(taken),
        }
    }
}
