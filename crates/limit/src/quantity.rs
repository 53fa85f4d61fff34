//! The trial duration that a goal's quantile needs.

use serde::{Deserialize, Serialize};
use weigh_model::units::Nanos;

/// The number of messages that a trial needs, and messages per second at a load: `per_s` plus
/// `per_s_of_load` for each unit of the axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// Number of messages that a trial needs; above 0.
    pub messages: u64,
    /// Messages per second independent of the load.
    pub per_s: f64,
    /// Messages per second for each unit of load: 1 on an axis of rates.
    pub per_s_of_load: f64,
}

impl Quantity {
    /// The duration of a trial at this load, in whole milliseconds, with a margin for losses and
    /// chance; the longest possible time if there are no messages.
    pub fn duration(&self, load: f64) -> Nanos {
        let per_s = self.per_s + self.per_s_of_load * load;
        let messages = self.messages as f64 * (1.0 + SPARE) + 1.0;
        let milliseconds = (messages / per_s * 1e3).ceil();
        if milliseconds.is_finite() && milliseconds < MILLISECONDS_MAX {
            Nanos::from_millis(milliseconds as u64)
        } else {
            Nanos::NEVER
        }
    }
}

/// The share by which a trial may have fewer messages than its rate implies.
const SPARE: f64 = 0.02;

/// A hundred years.
const MILLISECONDS_MAX: f64 = 3.2e12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_as_long_as_its_messages_take() {
        let of_rate = Quantity { messages: 368, per_s: 0.0, per_s_of_load: 1.0 };
        assert_eq!(of_rate.duration(100.0), Nanos::from_millis(3_764));
        assert_eq!(of_rate.duration(376_360.0), Nanos::from_millis(1));
        let of_clients = Quantity { per_s_of_load: 0.02, ..of_rate };
        assert_eq!(of_clients.duration(1.0), Nanos::from_millis(18_818_000));
        let never = Quantity { per_s_of_load: 0.0, ..of_rate };
        assert_eq!(never.duration(1e9), Nanos::NEVER);
    }
}
