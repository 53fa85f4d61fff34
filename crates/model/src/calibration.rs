//! The baseline: the rate that a machine and a build reached against the built-in server, which
//! does the minimum for its protocol. It is a rate that was reached, not a maximum.

use serde::{Deserialize, Serialize};

use crate::numbers::{count, percent, rate, time};

/// The baseline of one kind of load, measured before this run or an earlier one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The kind of load: protocol, settings and pattern, `mqtt qos 1 publish`.
    pub load: String,
    /// Number of connections.
    pub connections: u32,
    /// Messages per second.
    pub per_s: f64,
    /// Processor time of the generator per message, microseconds.
    pub generator_us: f64,
    /// The library used at both ends, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Time of the measurement, RFC 3339.
    pub at: String,
    /// Processor time that other programs used during it, percent of one core; 0 in records before
    /// this key.
    #[serde(default)]
    pub foreign_cpu_percent: f64,
}

impl Calibration {
    /// Share of the baseline that this rate is, in percent.
    pub fn percent(&self, per_s: f64) -> f64 {
        100.0 * per_s / self.per_s
    }

    /// True if the baseline is too low, because other programs used the processors.
    pub fn is_disturbed(&self) -> bool {
        self.foreign_cpu_percent >= DISTURBED_PERCENT
    }

    /// Returns one line for people.
    pub fn words(&self) -> String {
        let Calibration { load, connections, per_s, generator_us, library, at, .. } = self;
        let day = at.split('T').next().unwrap_or_default();
        let by = library.as_ref().map_or_else(String::new, |name| format!("by {name}, "));
        let disturbed = match self.is_disturbed() {
            true => format!(
                ". Other programs used {} of a core, so this baseline is too low; the next run \
                 measures it again",
                percent(self.foreign_cpu_percent)
            ),
            false => String::new(),
        };
        format!(
            "baseline of this machine, to see when the generator is the limit: {} to the built-in \
             server ({load}, one message in flight on each of {} connections, {} of the \
             generator's CPU time per message; {by}measured {day}){disturbed}",
            rate(*per_s),
            count(u64::from(*connections)),
            time(generator_us * 1e3, false),
        )
    }
}

/// Percent of a core from which on other programs disturb it: in a fifth of a second the kernel's
/// account of whole ticks (10 ms) is off by some 10 %.
const DISTURBED_PERCENT: f64 = 25.0;
