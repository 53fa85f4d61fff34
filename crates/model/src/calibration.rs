//! What a machine and a build can do at most: the load against our own server, which does as little
//! as a server of its protocol can.

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
}

impl Calibration {
    /// The share of it that this rate is, in percent.
    pub fn percent(&self, per_s: f64) -> f64 {
        100.0 * per_s / self.per_s
    }

    /// As it is told to people.
    pub fn words(&self) -> String {
        let Calibration { load, connections, per_s, generator_us, library, at } = self;
        let day = at.split('T').next().unwrap_or_default();
        let by = library.as_ref().map_or_else(String::new, |name| format!("by {name}, "));
        format!(
            "null path, {load}: {per_s:.0}/s at most over {connections} connections, \
             {generator_us:.1} us of the generator each ({by}measured {day})"
        )
    }
}
