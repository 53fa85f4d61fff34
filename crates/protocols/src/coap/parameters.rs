//! Transmission parameters (RFC 7252, section 4.8) and the times that follow from them.

use weigh_model::Nanos;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Settings;

/// The parameters of one end; both ends of a trial have the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parameters {
    /// Shortest wait for an acknowledgement before the first repetition.
    pub(super) ack_timeout: Nanos,
    /// The wait is up to this many times longer, at random; at least 1.
    pub(super) ack_random_factor: f64,
    /// Repetitions of a confirmable message.
    pub(super) max_retransmit: u32,
    /// Most exchanges in progress with one peer (section 4.7).
    pub(super) nstart: u32,
    /// Longest time that a datagram may be in transit.
    pub(super) max_latency: Nanos,
}

impl Parameters {
    /// Reads the keys.
    ///
    /// # Errors
    /// A value that RFC 7252 does not allow.
    pub(super) fn read(settings: &Settings) -> Result<Parameters, Invalid> {
        let text = settings.text("ack_random_factor");
        let text = if text.is_empty() { "1.5" } else { text };
        let factor = text.parse().ok().filter(|factor| (1.0..=100.0).contains(factor));
        let ack_random_factor = factor.ok_or_else(|| {
            let problem = format!("{text:?} is not a factor (RFC 7252, section 4.8.1)");
            Invalid::new("coap.ack_random_factor", problem, "type a number from 1 to 100")
        })?;
        let ack_timeout = settings.duration("ack_timeout");
        if ack_timeout.0 == 0 {
            return Err(Invalid::new(
                "coap.ack_timeout",
                "messages would be repeated without a pause",
                "type a duration above 0s",
            ));
        }
        Ok(Parameters {
            ack_timeout,
            ack_random_factor,
            max_retransmit: settings.integer("max_retransmit") as u32,
            nstart: settings.integer("nstart").max(1) as u32,
            max_latency: settings.duration("max_latency"),
        })
    }

    /// MAX_TRANSMIT_SPAN (section 4.8.2): from the first transmission of a confirmable message to
    /// its last, 45 s by default.
    pub(super) fn max_transmit_span(&self) -> Nanos {
        let waits = (1u64 << self.max_retransmit) - 1;
        Nanos((self.ack_timeout.0 as f64 * waits as f64 * self.ack_random_factor) as u64)
    }

    /// EXCHANGE_LIFETIME (section 4.8.2): as long as this the ID of a confirmable message is not
    /// used again, 247 s by default.
    pub(super) fn exchange_lifetime(&self) -> Nanos {
        self.max_transmit_span() + Nanos(2 * self.max_latency.0) + self.ack_timeout
    }

    /// NON_LIFETIME (section 4.8.2): as long as this the ID of a non-confirmable message is not
    /// used again, 145 s by default.
    pub(super) fn non_lifetime(&self) -> Nanos {
        self.max_transmit_span() + self.max_latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_give_the_times_of_section_4_8_2() {
        let settings = Settings::new("coap", super::super::settings::SETTINGS, None).unwrap();
        let parameters = Parameters::read(&settings).unwrap();
        assert_eq!(parameters.max_transmit_span(), Nanos::from_secs(45));
        assert_eq!(parameters.exchange_lifetime(), Nanos::from_secs(247));
        assert_eq!(parameters.non_lifetime(), Nanos::from_secs(145));
    }

    #[test]
    fn factors_below_one_and_timers_of_zero_are_refused() {
        let read = |key, value| {
            let known = super::super::settings::SETTINGS;
            let settings = Settings::new("coap", known, [(key, value)]).unwrap();
            Parameters::read(&settings).unwrap_err().to_string()
        };
        assert!(read("ack_random_factor", "0.5").contains("from 1 to 100"));
        assert!(read("ack_random_factor", "x").contains("coap.ack_random_factor"));
        assert!(read("ack_timeout", "0s").contains("above 0s"));
    }
}
