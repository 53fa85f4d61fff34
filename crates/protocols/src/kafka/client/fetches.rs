//! The fetches of a consumer: one after the other, each from where the last one ended.

use weigh_model::Nanos;
use weigh_model::connection::{Emit, Fault, Outbox};
use weigh_model::content::Phase;

use super::super::codec::answers;
use super::super::codec::requests::put_fetch;
use super::{Awaited, Client, Stage};

impl Client {
    /// Asks for messages.
    pub(super) fn fetch(&mut self, out: &mut Outbox) {
        let before = out.len();
        let number = self.number(Awaited::Fetch);
        let from = self.state.consuming.from();
        let plan = &self.plan;
        put_fetch(out.buffer(), number, &plan.fetch, plan.topic.as_bytes(), from);
        self.state.consuming.take_turn();
        self.meter.wrote(Phase::Messages, out.len() - before, 0);
    }

    /// The answer to a fetch; returns the bytes of the messages in it.
    pub(super) fn fetched(
        &mut self,
        fields: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let (topic, consuming) = (&self.plan.topic, &mut self.state.consuming);
        let mut payload = 0;
        answers::read_fetch::<Fault>(fields, |fetched| {
            payload += consuming.take(&fetched, topic, &mut *emit)?;
            Ok(())
        })?;
        match self.stage {
            Stage::Parting => self.rejoin(now, out)?,
            _ => self.fetch(out),
        }
        Ok(payload)
    }
}
