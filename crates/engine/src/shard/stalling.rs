//! Consumers that stop reading for a while, as a program that hangs: the kernel's buffers fill, and
//! then the server has to decide about the remaining messages.

use weigh_model::Nanos;
use weigh_model::protocol::Role;

use super::parts::Stall;
use super::{Phase, Shard};
use crate::io::Io;

impl Shard {
    /// Lets consumers stop reading at the beginning of the window, and read again when the stall
    /// is over or the trial is interrupted.
    pub(super) fn stall_consumers(&mut self, io: &mut dyn Io, now: Nanos) {
        match self.stall {
            Stall::Over => {}
            Stall::Ahead => {
                let is_sending = matches!(self.clock.phase, Phase::WarmingUp | Phase::Measuring);
                if is_sending && now >= self.clock.measure_from {
                    let lasts = self.job.load().stall.unwrap_or_default();
                    self.stall = Stall::Until(self.clock.measure_from + lasts);
                    self.each_consumer(|token| io.hold(token));
                }
            }
            Stall::Until(end) if now >= end || self.books.outcome.was_interrupted => {
                self.stall = Stall::Over;
                self.each_consumer(|token| io.release(token));
            }
            Stall::Until(_) => {}
        }
    }

    fn each_consumer(&self, mut act: impl FnMut(crate::io::Token)) {
        let consumers = self.links.iter().filter(|link| link.state.role == Role::Consumer);
        consumers.filter_map(|link| link.state.token).for_each(&mut act);
    }
}
