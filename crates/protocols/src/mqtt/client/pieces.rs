//! A client's messages in pieces: those being sent, while nothing else may be sent, and those that
//! arrive without being complete in memory.

use weigh_model::connection::{Emit, Fault, Outbox, Signal};
use weigh_model::content::Phase;

use super::super::codec;
use super::super::codec::Limits;
use super::partial::Incoming;
use super::{Client, State};

impl Client {
    /// Handles the available part of a message that arrives in pieces. Returns its number of bytes.
    pub(super) fn take_pieces(
        &mut self,
        input: &[u8],
        limits: &Limits,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        if !self.is_in_message() {
            if self.state != State::Ready {
                return Ok(0);
            }
            let head = codec::decode_head(input, self.plan.version, limits);
            let head = head.map_err(|fault| Fault::Malformed(fault.to_string()))?;
            let Some((publish, head_bytes, left)) = head else { return Ok(0) };
            let (is_new, topic) = self.admit(&publish)?;
            if is_new {
                emit(Signal::Head { topic: topic.as_bytes(), bytes: left as u64 });
            }
            let (qos, packet_id) = (publish.qos, publish.packet_id);
            self.flow().incoming = Some(Box::new(Incoming { left, qos, packet_id, is_new }));
            taken = head_bytes;
        }
        let known = self.flow.as_mut().and_then(|flow| flow.incoming.as_mut());
        let Some(incoming) = known else { return Ok(taken) };
        let piece = &input[taken..];
        let piece = &piece[..piece.len().min(incoming.left)];
        incoming.left -= piece.len();
        self.meter.read(Phase::Messages, taken + piece.len(), piece.len());
        if incoming.is_new && !piece.is_empty() {
            emit(Signal::Piece(piece));
        }
        if let Some(whole) = self.flow().incoming.take_if(|incoming| incoming.left == 0) {
            let before = out.len();
            self.acknowledge(whole.qos, whole.packet_id, out);
            self.meter.wrote(Phase::Messages, out.len() - before, 0);
        }
        Ok(taken + piece.len())
    }
}
