//! The rules on foreign figures. Each looks for cells that carry what it needs; where none does it
//! was not asked, which is said, and is no finding.

mod backlog;
mod comparing;
mod counting;
mod inverse;
mod loading;
mod omitting;
mod spread;
mod timing;
mod utilisation;
mod wall_clock;

pub(crate) use backlog::rounded_up;
pub(crate) use utilisation::apart;

use std::collections::HashSet;

use weigh_model::Rule;
use weigh_model::doubt::Severity;

use crate::figure::{Evidence, Figure};
use crate::finding::Finding;

/// What the rules found in one body of evidence, and which of them could be asked.
pub(crate) struct Bench<'e> {
    pub(crate) evidence: &'e Evidence,
    pub(crate) findings: Vec<Finding>,
    asked: [bool; Rule::ALL.len()],
    /// What was said already, so that nothing is said twice.
    said: HashSet<(Rule, String, String)>,
}

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
    let unasked = Rule::ALL.into_iter().filter(|rule| !bench.asked[*rule as usize]).collect();
    (bench.findings, unasked)
}

impl Bench<'_> {
    /// Notes that there was something to ask `rule` of.
    fn ask(&mut self, rule: Rule) {
        self.asked[rule as usize] = true;
    }

    /// Notes a finding; further ones of the same rule in the same table stand with the first.
    fn find(&mut self, rule: Rule, at: &Figure, seen: String) {
        self.find_as(rule, rule.severity(), at, seen);
    }

    /// The same with a severity of its own.
    fn find_as(&mut self, rule: Rule, severity: Severity, at: &Figure, seen: String) {
        if !self.said.insert((rule, at.place.table.clone(), seen.clone())) {
            return;
        }
        let is_same = |known: &&mut Finding| {
            known.rule == rule
                && known.severity == severity
                && known.place.table == at.place.table
                && known.place.file == at.place.file
        };
        match self.findings.iter_mut().find(is_same) {
            Some(known) => known.also.push(seen),
            None => {
                let place = at.place.clone();
                let study = self.evidence.name.clone();
                let also = Vec::new();
                self.findings.push(Finding { study, rule, severity, place, seen, also });
            }
        }
    }
}

/// What a rule needs to be asked, for the list of those that were not.
pub fn needs(rule: Rule) -> &'static str {
    match rule {
        Rule::L01 => "throughput, mean latency and clients of one cell",
        Rule::L02 => "throughput and mean latency of one cell",
        Rule::L03 => "throughput and the offered rate (rate, or interval and clients)",
        Rule::L04 => "a ramp, or the least and the most clients of the window",
        Rule::L05 => "six times along an axis, or a stated grid",
        Rule::L06 => "percentages of counts, with their denominator",
        Rule::L07 => "two statistics of one cell",
        Rule::L08 => "what completes on two sides (complete, qos)",
        Rule::L09 => "CPU percentages",
        Rule::L10 => "acceptance along an axis, or a capacity with its trials",
        Rule::L11 => "figures under a background load (load)",
        Rule::L12 => "a share of errors beside a latency",
        Rule::L13 => "two sides that are compared",
        Rule::L14 => "header bytes and payload",
        Rule::L15 => "connections opened beside messages (connection)",
        Rule::L16 => "messages in flight on two sides (in_flight)",
        Rule::L17 => "quantiles with their number of samples",
        Rule::L18 => "the relays on two paths (relays)",
        Rule::L19 => "a figure that is called a capacity, or a load as fast as possible",
        Rule::L20 => "one-way times",
    }
}
