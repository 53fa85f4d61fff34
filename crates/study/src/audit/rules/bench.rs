//! What every rule works on: the evidence, and the findings so far.

use std::collections::HashSet;

use weigh_model::Rule;
use weigh_model::warnings::Severity;

use crate::audit::figure::{Evidence, Figure};
use crate::audit::finding::Finding;

/// Findings of the rules in one body of evidence, and which of them could be checked.
pub(crate) struct Bench<'e> {
    pub(crate) evidence: &'e Evidence,
    pub(crate) findings: Vec<Finding>,
    pub(super) asked: [bool; Rule::ALL.len()],
    /// Findings so far, so that none is repeated.
    pub(super) said: HashSet<(Rule, String, String)>,
}

impl Bench<'_> {
    /// Notes that there was something to ask `rule` of.
    pub(super) fn ask(&mut self, rule: Rule) {
        self.asked[rule as usize] = true;
    }

    /// Notes a finding; further ones of the same rule in the same table stand with the first.
    pub(super) fn find(&mut self, rule: Rule, at: &Figure, seen: String) {
        self.find_as(rule, rule.severity(), at, seen);
    }

    /// Notes a finding with a severity of its own.
    pub(super) fn find_as(&mut self, rule: Rule, severity: Severity, at: &Figure, seen: String) {
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
