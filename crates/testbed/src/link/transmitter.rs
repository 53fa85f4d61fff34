//! The link itself: packets leave it one after another, each for as long as its bytes take at
//! the rate, and wait in a queue of limited size until then.

use std::collections::VecDeque;

use weigh_model::path::Direction;
use weigh_model::units::Nanos;

/// Position in the schedule of a direction.
pub(crate) type Stage = (Nanos, Direction);

/// Queue and link of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transmitter {
    /// Packets not yet through the link: their bytes, and when they will be through.
    waiting: VecDeque<(Nanos, u64)>,
    waiting_bytes: u64,
    /// Time at which the last of them is through.
    free_at: Nanos,
}

impl Transmitter {
    /// Accepts a packet of `bytes` bytes, overhead included, at `now`. Returns when it is through
    /// the link, or `None` if the queue has no room for it. `stages` is the known future of the
    /// direction, so a rate that changes while a packet waits is met exactly.
    pub(crate) fn send(&mut self, now: Nanos, bytes: u64, stages: &[Stage]) -> Option<Nanos> {
        while let Some((through_at, bytes)) = self.waiting.front().copied()
            && through_at <= now
        {
            self.waiting_bytes -= bytes;
            self.waiting.pop_front();
        }
        let queue = stages[in_force(stages, now)].1.queue;
        if queue.is_some_and(|queue| self.waiting_bytes + bytes > queue.0) {
            return None;
        }
        let through_at = through_at(now.max(self.free_at), bytes, stages);
        self.free_at = through_at;
        if through_at > now {
            self.waiting.push_back((through_at, bytes));
            self.waiting_bytes += bytes;
        }
        Some(through_at)
    }
}

/// Index of the stage in force at this moment.
pub(crate) fn in_force(stages: &[Stage], at: Nanos) -> usize {
    stages.iter().rposition(|(from, _)| *from <= at).unwrap_or(0)
}

/// End of a transmission that begins at `start`.
fn through_at(start: Nanos, bytes: u64, stages: &[Stage]) -> Nanos {
    let mut at = start;
    // In bits times nanoseconds per second, so that nothing is rounded.
    let mut left = u128::from(bytes) * 8 * NANOS_PER_SECOND;
    let first = in_force(stages, start);
    for (index, (_, direction)) in stages.iter().enumerate().skip(first) {
        let Some(rate) = direction.rate else { return at };
        let rate = u128::from(rate.0);
        let until = stages.get(index + 1).map_or(Nanos::NEVER, |(from, _)| *from);
        let room = u128::from(until.since(at).0) * rate;
        if left <= room {
            let nanos = (left + rate / 2) / rate;
            return at + Nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
        left -= room;
        at = until;
    }
    at
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use weigh_model::path::BitRate;
    use weigh_model::units::Bytes;

    use super::*;

    fn at_rate(rate: Option<u64>, queue: u64) -> Direction {
        Direction {
            rate: rate.map(BitRate),
            queue: rate.map(|_| Bytes(queue)),
            ..Direction::free()
        }
    }

    #[test]
    fn packets_follow_each_other_at_the_rate() {
        // 1,000 bytes at 8 Mbit/s take a millisecond.
        let stages = [(Nanos(0), at_rate(Some(8_000_000), 3000))];
        let mut link = Transmitter::default();
        let now = Nanos::from_millis(5);
        let through = [(); 4].map(|()| link.send(now, 1000, &stages));
        let millis = |millis| Some(Nanos::from_millis(millis));
        assert_eq!(through, [millis(6), millis(7), millis(8), None]);
        // At 6 ms one is through, and there is room again; half a millisecond before there is not.
        assert_eq!(link.clone().send(Nanos::from_micros(5_500), 1000, &stages), None);
        assert_eq!(link.send(Nanos::from_millis(6), 1000, &stages), millis(9));
    }

    #[test]
    fn a_rate_may_change_while_a_packet_is_on_the_link() {
        let stages = [
            (Nanos(0), at_rate(Some(8_000_000), 9000)),
            (Nanos::from_millis(1), at_rate(Some(4_000_000), 9000)),
            (Nanos::from_millis(10), at_rate(None, 0)),
        ];
        let mut link = Transmitter::default();
        // Half of it in the half millisecond before the change, the rest at half the rate.
        let through = link.send(Nanos::from_micros(500), 1000, &stages);
        assert_eq!(through, Some(Nanos::from_millis(2)));
        // What is left when the limit ends is through at once.
        let through = [(); 5].map(|()| link.send(Nanos::from_millis(2), 1000, &stages));
        let millis = [4, 6, 8, 10, 10].map(|millis| Some(Nanos::from_millis(millis)));
        assert_eq!(through, millis);
        let later = Nanos::from_millis(11);
        assert_eq!(link.send(later, 1_000_000, &stages), Some(later));
    }
}
