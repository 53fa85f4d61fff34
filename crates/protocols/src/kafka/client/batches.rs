//! When batches of a producer leave, and what their answers mean for the connection.

use weigh_model::Nanos;
use weigh_model::connection::{Emit, Fault, Outbox, Signal};
use weigh_model::content::Phase;

use super::super::codec::answers;
use super::super::settings::Acks;
use super::{Awaited, Client};

impl Client {
    /// Sends the open batch if it is full or its time has come, and a request may be in flight.
    /// With acks=0 none ever is, so that only linger and size make batches.
    pub(super) fn send_if_due(&mut self, now: Nanos, out: &mut Outbox) {
        let (plan, producing) = (&self.plan, &self.state.producing);
        if !producing.has_messages() {
            return;
        }
        match (producing.is_due(plan), producing.has_slot(plan)) {
            (true, true) => self.send_batch(out),
            (true, false) => {}
            (false, _) if self.wake_at == Nanos::NEVER => self.wake_at = now + plan.linger,
            (false, _) => {}
        }
    }

    /// Sends the open batch.
    pub(super) fn send_batch(&mut self, out: &mut Outbox) {
        let before = out.len();
        let number = match self.plan.acks {
            Acks::Nothing => self.next_number(),
            _ => {
                let messages = self.state.producing.begin();
                self.number(Awaited::Batch(messages))
            }
        };
        let payload = self.state.producing.write(number, &self.plan, out);
        self.wake_at = Nanos::NEVER;
        self.meter.wrote(Phase::Messages, out.len() - before, payload);
    }

    /// The answer to a batch.
    pub(super) fn confirmed(
        &mut self,
        fields: &[u8],
        messages: u32,
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let (error, _) = answers::read_produce(fields)?;
        let producing = &mut self.state.producing;
        producing.answered(error, messages, self.plan.acks, emit);
        if !producing.is_broken() {
            self.send_if_due(now, out);
            return Ok(());
        }
        self.wake_at = Nanos::NEVER;
        // Another connection gets another number, and begins at 0.
        if producing.has_ended(emit) {
            emit(Signal::Closing);
        }
        Ok(())
    }
}
