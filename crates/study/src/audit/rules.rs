//! The rules on foreign figures. Each looks for cells that have what it needs. If there are none,
//! it
//! was not checked; that is reported, and is not a finding.

mod backlog;
mod bench;
mod comparing;
mod counting;
mod inverse;
mod loading;
pub(crate) mod needed;
mod omitting;
mod spread;
mod storing;
mod timing;
mod utilisation;
mod wall_clock;

use std::collections::HashSet;

use weigh_model::Rule;

pub(crate) use backlog::rounded_up;
pub(crate) use utilisation::apart;

use crate::audit::figure::Evidence;
use crate::audit::finding::Finding;
use bench::Bench;

/// Runs all rules on `evidence`: what they found, and those that could not be asked.
pub(crate) fn check(evidence: &Evidence) -> (Vec<Finding>, Vec<Rule>) {
    let asked = [false; Rule::ALL.len()];
    let mut bench = Bench { evidence, findings: Vec::new(), asked, said: HashSet::new() };
    loading::little(&mut bench);
    wall_clock::stated_spans(&mut bench);
    inverse::throughput_from_latency(&mut bench);
    loading::setting(&mut bench);
    loading::ramp(&mut bench);
    timing::grid(&mut bench);
    counting::whole_counts(&mut bench);
    backlog::steady_counts(&mut bench);
    counting::order(&mut bench);
    comparing::completion(&mut bench);
    comparing::silent_errors(&mut bench);
    utilisation::cpu_rate(&mut bench);
    loading::saturation(&mut bench);
    backlog::passed_elsewhere(&mut bench);
    omitting::background(&mut bench);
    counting::errors(&mut bench);
    comparing::repetition(&mut bench);
    spread::within_runs(&mut bench);
    counting::headers(&mut bench);
    omitting::connections(&mut bench);
    omitting::growing_setup(&mut bench);
    comparing::in_flight(&mut bench);
    comparing::clients(&mut bench);
    counting::quantiles(&mut bench);
    comparing::relays(&mut bench);
    omitting::generator(&mut bench);
    omitting::clocks(&mut bench);
    storing::durability(&mut bench);
    let unasked = Rule::ALL.into_iter().filter(|rule| !bench.asked[*rule as usize]).collect();
    (bench.findings, unasked)
}
