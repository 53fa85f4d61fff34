//! The null path: the rate that a machine and a build reached against the built-in server, which
//! does as little as a server of its protocol can. It is what was reached, not a maximum.

use serde::{Deserialize, Serialize};

/// The null path of one kind of load, as it was measured before a run or for an earlier one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The kind of load: protocol, settings and pattern, `mqtt qos 1 publish`.
    pub load: String,
    /// Connections that made it.
    pub connections: u32,
    /// Messages per second.
    pub per_s: f64,
    /// Processor time of the generator for a message, microseconds.
    pub generator_us: f64,
    /// The library that spoke at both ends, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// When it was measured, RFC 3339.
    pub at: String,
    /// Processor time that other programs used meanwhile, percent of one core; 0 in records before
    /// this key.
    #[serde(default)]
    pub foreign_cpu_percent: f64,
}

impl Calibration {
    /// The share of it that this rate is, in percent.
    pub fn percent(&self, per_s: f64) -> f64 {
        100.0 * per_s / self.per_s
    }

    /// True if other programs used so much of the processors that the rate is too low.
    pub fn is_disturbed(&self) -> bool {
        self.foreign_cpu_percent >= DISTURBED_PERCENT
    }

    /// One line for people.
    pub fn words(&self) -> String {
        let Calibration { load, connections, per_s, generator_us, library, at, .. } = self;
        let day = at.split('T').next().unwrap_or_default();
        let by = library.as_ref().map_or_else(String::new, |name| format!("by {name}, "));
        let disturbed = match self.is_disturbed() {
            true => format!(
                "; too low, because other programs used {:.0} % of a core: the next run measures \
                 it again",
                self.foreign_cpu_percent
            ),
            false => String::new(),
        };
        format!(
            "null path, {load}: reached {per_s:.0}/s over {connections} connections, \
             {generator_us:.1} us of the generator each ({by}measured {day}){disturbed}"
        )
    }
}

/// Percent of a core from which on other programs disturb it: in a fifth of a second the kernel's
/// account of whole ticks (10 ms) is off by some 10 %.
const DISTURBED_PERCENT: f64 = 25.0;
