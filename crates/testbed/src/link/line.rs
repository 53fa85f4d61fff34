//! One direction of a path as a pure function of time: for each packet that arrives, when it
//! leaves, or why it does not.

use weigh_model::path::{Direction, GilbertElliott, Jitter, Loss, Share};
use weigh_model::units::Nanos;
use weigh_stats::random::Random;

use crate::link::transmitter::{Stage, Transmitter, in_force};

/// One direction of a path. Packets arrive in the order of time.
///
/// All chance of a packet is drawn from the seed and the packet's number since the beginning,
/// never from time or from what happened to others: the same seed loses the same packets.
#[derive(Clone, Debug)]
pub struct Line {
    /// Stages of the path: moments since the beginning.
    plan: Vec<Stage>,
    /// Stages on the caller's clock.
    stages: Vec<Stage>,
    seed: u64,
    packets: u64,
    bad: bool,
    link: Transmitter,
    last_arrival: Nanos,
    last_departure: Nanos,
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It leaves the path.
    Leaves {
        /// Time at which it leaves.
        at: Nanos,
        /// Whether a copy follows it.
        twice: bool,
    },
    /// It is dropped.
    Dropped(Cause),
}

/// Why a packet does not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The queue before the link was full.
    QueueFull,
    /// It was lost by chance.
    Lost,
}

impl Line {
    /// A direction that is `plan` over time ([`weigh_model::path::Path::over_time`]). Until it
    /// begins it is what it is at 0.
    pub fn new(plan: Vec<Stage>) -> Line {
        assert!(!plan.is_empty(), "a direction needs a stage at 0");
        Line {
            stages: vec![(Nanos(0), plan[0].1.clone())],
            plan,
            seed: 0,
            packets: 0,
            bad: false,
            link: Transmitter::default(),
            last_arrival: Nanos(0),
            last_departure: Nanos(0),
        }
    }

    /// Begins, or begins anew: steps count from `at`, chance is that of `seed` from its first
    /// packet on. What is under way stays under way.
    pub fn begin(&mut self, at: Nanos, seed: u64) {
        (self.seed, self.packets, self.bad) = (seed, 0, false);
        self.stages = self.plan.clone();
        for (from, _) in &mut self.stages {
            *from = *from + at;
        }
    }

    /// Accepts an IP packet of `bytes` bytes. A moment before that of the last packet counts as
    /// that.
    pub fn offer(&mut self, now: Nanos, ip_bytes: u32) -> Fate {
        let now = now.max(self.last_arrival);
        self.last_arrival = now;
        let mut random = Random::stream(self.seed, self.packets);
        self.packets += 1;
        let overhead = self.stages[in_force(&self.stages, now)].1.overhead;
        let through = self.link.send(now, u64::from(ip_bytes) + overhead.0, &self.stages);
        let on_the_way_at = through.unwrap_or(now);
        let direction = &self.stages[in_force(&self.stages, on_the_way_at)].1;
        // Drawn for dropped packets too: the state of bursts must not depend on the queue.
        let lost = is_lost(&direction.loss, &mut self.bad, &mut random);
        if through.is_none() {
            return Fate::Dropped(Cause::QueueFull);
        }
        if lost {
            return Fate::Dropped(Cause::Lost);
        }
        let twice = happens(direction.duplicate, &mut random);
        let held_back = direction
            .reorder
            .filter(|reorder| happens(reorder.share, &mut random))
            .map(|reorder| reorder.by);
        let at = on_the_way_at + delay(direction, &mut random);
        let at = match held_back {
            Some(by) => at.max(self.last_departure) + by,
            None => {
                self.last_departure = at.max(self.last_departure);
                self.last_departure
            }
        };
        Fate::Leaves { at, twice }
    }
}

fn is_lost(loss: &Loss, bad: &mut bool, random: &mut Random) -> bool {
    match loss {
        Loss::Independent(share) => happens(*share, random),
        Loss::GilbertElliott(two) => {
            let GilbertElliott { to_bad, to_good, in_bad, in_good, .. } = *two;
            let leaves = happens(if *bad { to_good } else { to_bad }, random);
            *bad ^= leaves;
            happens(if *bad { in_bad } else { in_good }, random)
        }
    }
}

/// True with this probability. Draws once in every case. Never true for 0, always for 1.
fn happens(share: Share, random: &mut Random) -> bool {
    random.next_f64() < share.0
}

fn delay(direction: &Direction, random: &mut Random) -> Nanos {
    let nanos = |nanos: Nanos| nanos.0 as f64;
    let added = match direction.jitter {
        Jitter::None => return direction.delay,
        Jitter::Uniform { width } => random.next_f64() * nanos(width),
        Jitter::Normal { deviation } => random.normal() * nanos(deviation),
        Jitter::Exponential { mean } => random.exponential(nanos(mean)),
        Jitter::Pareto { scale, shape, most } => {
            // By inversion of the distribution that the model names.
            let tail = (1.0 - random.next_f64()).powf(-1.0 / shape) - 1.0;
            (tail * nanos(scale)).min(nanos(most))
        }
    };
    Nanos((nanos(direction.delay) + added).round().max(0.0) as u64)
}
