//! The honest client: the generator, from a moment on.

use std::sync::Arc;

use weigh_engine::io::Io;
use weigh_engine::io::sim::{Party, SimIo};
use weigh_engine::job::{Failure, Job};
use weigh_engine::outcome::{Outcome, ShardOutcome};
use weigh_engine::shard::Shard;
use weigh_model::Nanos;

/// A generator of one shard in the simulated world.
pub struct Guest {
    job: Arc<Job>,
    shard: Shard,
    io: SimIo,
    at: Nanos,
    pub steps: u64,
    pub is_over: bool,
}

impl Guest {
    /// Begins at `at`.
    pub fn new(job: Arc<Job>, io: SimIo, at: Nanos) -> Guest {
        let shard = Shard::new(Arc::clone(&job), 0, Box::new(|_| {}));
        Guest { job, shard, io, at, steps: 0, is_over: false }
    }

    /// What it came to, or why it could not continue.
    pub fn outcome(self) -> Result<Outcome, Failure> {
        let (ended, bytes) = (Nanos(0), self.io.bytes());
        let shard = ShardOutcome { ended, bytes, ..self.shard.outcome() };
        if let Some(failure) = &shard.failure {
            return Err(failure.clone());
        }
        let marked = self.job.composer.is_marked();
        Ok(Outcome::merge(vec![shard], self.job.load(), self.job.dial.confirms, marked))
    }
}

impl Party for Guest {
    fn step(&mut self) -> bool {
        if self.io.now() < self.at {
            self.io.turn(self.at, &mut |_, _| {});
            return true;
        }
        self.steps += 1;
        let continues = self.shard.step(&mut self.io);
        self.is_over |= !continues;
        continues
    }
}
