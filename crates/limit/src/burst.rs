//! Computes how large a burst a queue can take: messages that arrive faster than they are drained
//! must wait, and the queue is finite. The largest burst at a given arrival rate is searched like
//! any other limit ([`crate::AxisKind::Burst`]); the formulas here relate burst, drain rate and
//! queue.
//!
//! Messages arrive one by one, 1 / arrival rate apart, and each takes 1 / drain rate to be drained:
//! the continuous-state leaky bucket of ITU-T I.371 and the ATM Forum's Traffic Management
//! Specification (af-tm-0121, 4.1), whose maximum burst size is 1 + floor(tau / (1 / drain - 1 /
//! arrival)). A queue that holds Q messages, including the one that is being drained, has
//! tau = (Q - 1) / drain, so that the largest burst is 1 + floor((Q - 1) / (1 - drain / arrival)).
//! The inverse is how RFC 9004 (section 6.4) corrects the buffer that a longest burst implies for
//! messages forwarded during it: the factor 1 - drain / arrival.

use weigh_model::protocol::Invalid;

/// A burst's arrival and the consumer's drain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    arrival_per_s: f64,
    drain_per_s: f64,
}

impl Rates {
    /// Both in messages per second, finite and above 0. For a burst that is sent as fast as
    /// possible the arrival rate is the observed one.
    ///
    /// # Errors
    /// If a rate is not finite and above 0.
    pub fn new(arrival_per_s: f64, drain_per_s: f64) -> Result<Rates, Invalid> {
        for (name, rate) in [("arrival", arrival_per_s), ("drain", drain_per_s)] {
            if !(rate.is_finite() && rate > 0.0) {
                let problem = format!("{rate} is not a rate");
                return Err(Invalid::new(format!("burst.{name}"), problem, "give one above 0"));
            }
        }
        Ok(Rates { arrival_per_s, drain_per_s })
    }

    /// The share of a burst that has to wait: 1 - drain / arrival; 0 if it is drained as fast as
    /// it arrives.
    pub fn waiting_share(&self) -> f64 {
        (1.0 - self.drain_per_s / self.arrival_per_s).max(0.0)
    }

    /// The smallest queue that takes a burst of this size without loss.
    pub fn queue_for(&self, burst: u64) -> u64 {
        let waits = burst.saturating_sub(1) as f64 * self.waiting_share();
        1 + (waits * (1.0 - ROUNDING)).ceil() as u64
    }

    /// The queue sizes that bounds of a burst imply: at least the need of the largest burst without
    /// loss, and less than the need of the smallest burst with loss, if there was one.
    pub fn implied_queue(&self, lower: u64, upper: Option<u64>) -> (u64, Option<u64>) {
        (self.queue_for(lower), upper.map(|upper| self.queue_for(upper)))
    }
}

/// Share of a count that rounding may cost.
const ROUNDING: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(arrival: f64, drain: f64) -> Rates {
        Rates::new(arrival, drain).unwrap()
    }

    /// Messages one by one into a queue of whole places: how many of a burst are refused.
    fn refused(burst: u64, queue: u64, arrival: f64, drain: f64) -> u64 {
        let mut waiting = 0.0f64;
        let mut refused = 0;
        for _ in 0..burst {
            waiting = (waiting - drain / arrival).max(0.0);
            match waiting + 1.0 <= queue as f64 + 1e-9 {
                true => waiting += 1.0,
                false => refused += 1,
            }
        }
        refused
    }

    /// The formula is exact: the queue takes the burst, and one place less does not.
    #[test]
    fn the_queue_that_is_implied_takes_the_burst_and_a_smaller_one_does_not() {
        for (burst, arrival, drain) in [
            (1428, 10_000.0, 3000.0),
            (1, 500.0, 499.0),
            (27_010, 3001.0, 3000.0),
            (1000, 1e6, 50.0),
            (19, 3.0, 2.0),
            (20, 3.0, 2.0),
        ] {
            let queue = rates(arrival, drain).queue_for(burst);
            assert_eq!(refused(burst, queue, arrival, drain), 0, "{burst} {arrival} {drain}");
            assert!(
                queue == 1 || refused(burst, queue - 1, arrival, drain) > 0,
                "{burst} {arrival} {drain}"
            );
        }
        assert_eq!(rates(3.0, 2.0).implied_queue(19, Some(20)), (7, Some(8)));
        assert_eq!(rates(3.0, 2.0).implied_queue(19, None), (7, None));
    }

    #[test]
    fn a_drain_as_fast_as_the_burst_needs_no_queue() {
        assert_eq!(rates(100.0, 200.0).queue_for(1_000_000), 1);
        assert!(Rates::new(0.0, 1.0).unwrap_err().to_string().contains("burst.arrival"));
    }
}
