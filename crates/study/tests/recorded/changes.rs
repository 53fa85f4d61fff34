//! Changes of single figures in recorded runs: of each cell that a condition of a claim looks at.

use std::fmt;

use weigh_report::Summary;
use weigh_study::outcome::{ClaimOutcome, Link};
use weigh_study::quantity::{Quantity, Source};
use weigh_study::study::Claim;
use weigh_study::{RunState, Runs};

/// One figure of one cell, changed.
pub struct Change<'a> {
    quantity: &'a Quantity,
    link: &'a Link,
    is_larger: bool,
}

/// Every change of a figure that the claim was judged by.
pub fn all<'a>(claim: &'a Claim, judged: &'a ClaimOutcome) -> Vec<Change<'a>> {
    let quantities = judged.conditions.iter().flat_map(|condition| &condition.quantities);
    let mut changes = Vec::new();
    for shown in quantities {
        for link in shown.links.iter().filter(|link| !link.run.is_empty()) {
            let quantity = &claim.quantities[&shown.name];
            let change = |is_larger| Change { quantity, link, is_larger };
            changes.extend([true, false].map(change));
        }
    }
    changes
}

impl Change<'_> {
    /// The runs as they would be with it.
    pub fn of(&self, runs: &Runs) -> Runs {
        let mut runs = runs.clone();
        match (runs.get_mut(&self.link.run), self.quantity) {
            (Some(RunState::Made(made)), _) => self.make(&mut made.summary),
            (Some(RunState::Tool(made)), Quantity::Tool { figure, .. }) => {
                let values = made.repetitions.iter_mut();
                let values = values.filter_map(|one| one.figures.get_mut(figure));
                values.for_each(|value| *value = self.other(*value));
            }
            _ => {}
        }
        runs
    }

    fn make(&self, summary: &mut Summary) {
        let cells = summary.cells.iter_mut().filter(|cell| cell.name == self.link.cell);
        match self.quantity {
            Quantity::Cell { source: Source::Metric(name), .. }
            | Quantity::Along { source: Source::Metric(name), .. }
            | Quantity::Interference { metric: name, .. } => {
                let values = cells.filter_map(|cell| cell.metrics.get_mut(name));
                let values = values.flat_map(|metric| metric.values.iter_mut().flatten());
                values.for_each(|value| *value = self.other(*value));
            }
            Quantity::Cell { source: Source::Ledger(name), .. }
            | Quantity::Along { source: Source::Ledger(name), .. } => {
                for cell in cells {
                    let mut ledger = serde_json::to_value(&cell.ledger).expect("it is plain");
                    let place = format!("/{}", name.replace('.', "/"));
                    if let Some(count) = ledger.pointer_mut(&place) {
                        *count = (self.other(count.as_f64().unwrap_or(0.0)) as u64).into();
                    }
                    cell.ledger = serde_json::from_value(ledger).expect("it still is one");
                }
            }
            Quantity::Limit { name, .. } => {
                let lanes = summary.limits.iter_mut().filter(|own| own.title() == self.link.cell);
                let goals = lanes.flat_map(|lane| &mut lane.goals);
                for capacity in goals.filter_map(|goal| goal.metrics.get_mut(name)) {
                    capacity.low = self.other(capacity.low);
                    capacity.high = capacity.high.map(|high| self.other(high));
                }
            }
            Quantity::Tool { .. }
            | Quantity::Published { .. }
            | Quantity::PublishedAlong { .. }
            | Quantity::Finding { .. } => {}
        }
    }

    /// The other value of a figure; 0 has no larger multiple.
    fn other(&self, value: f64) -> f64 {
        match (self.is_larger, value) {
            (true, 0.0) => FACTOR,
            (true, value) => value * FACTOR,
            (false, value) => value / FACTOR,
        }
    }
}

impl fmt::Display for Change<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.is_larger { "more" } else { "less" };
        let place = &self.link.cell;
        write!(f, "{} were {FACTOR} times {how} in {place}", self.quantity)
    }
}

/// How many times more or less.
const FACTOR: f64 = 1000.0;
