//! Figures of all tools that a plan asks for.

use std::collections::BTreeMap;

use weigh_model::Emulation;

use crate::emulate::trial_facts::TrialFacts;
use crate::emulate::{autocannon, mqtt_stresser, times};

/// Figures of one tool, by metric name. Empty for a load that the tool cannot make, or without
/// results.
pub fn figures(told: &TrialFacts<'_>, of: Emulation) -> BTreeMap<&'static str, f64> {
    if of.needs(told.load).is_err() {
        return BTreeMap::new();
    }
    match of {
        Emulation::Htop => told.htop.map_or_else(BTreeMap::new, |shown| shown.figures()),
        Emulation::Autocannon => autocannon::figures(told),
        Emulation::MqttStresser => {
            mqtt_stresser::Printed::of(told.clients, mqtt_stresser::pause(told.load)).figures()
        }
        Emulation::SumOfTimes => times::sum_of_times(told),
        Emulation::RampAverage => times::ramp_average(told),
    }
}
