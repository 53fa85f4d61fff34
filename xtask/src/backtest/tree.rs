//! A decision tree on the same cells: the adviser that must be beaten without any model.
//!
//! The tree is that of L. Breiman and others (1984), without pruning: at every node the split of
//! one feature that lowers the Gini impurity most, until a node is pure, has fewer than four
//! examples, or is at a depth of four. Equal splits are decided by the order of the features, then
//! by the lower threshold, so that the tree depends on the cells alone.
//!
//! An example is a load at which a calibration measured several options: its features are the
//! logarithms of rate, connections and size, TLS, whether messages are confirmed, and whether
//! memory or processor time counts; its label is the option that cost least there.

use std::collections::BTreeMap;

use weigh_advice::Criterion;
use weigh_advice::cells::{Cell, Cells};
use weigh_advice::situation::{Situation, TlsWish};
use weigh_model::protocol::Guarantee;

/// Rate, connections, size, TLS, confirmed, memory.
type Features = [f64; 6];

/// A load with the option that costs least.
#[derive(Clone, Debug, PartialEq)]
struct Example {
    features: Features,
    label: String,
}

/// A fitted tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    /// The option to advise.
    Leaf(String),
    /// One of two trees, by a feature.
    Split {
        /// Which feature.
        feature: usize,
        /// Up to here the lower one counts.
        threshold: f64,
        /// Up to the threshold.
        low: Box<Tree>,
        /// Above it.
        high: Box<Tree>,
    },
}

impl Tree {
    /// Fits a tree to the cells of a calibration.
    pub(crate) fn of(cells: &Cells) -> Tree {
        let examples = examples(cells);
        grown(&examples.iter().collect::<Vec<_>>(), 0)
    }

    /// The option that it advises in a situation, without its TLS.
    pub(crate) fn option(&self, situation: &Situation) -> &str {
        let features = features(
            (situation.rate_per_s(), situation.traffic.devices as f64),
            situation.traffic.size.0 as f64,
            situation.network.tls == TlsWish::On,
            situation.guarantee() > Guarantee::AtMostOnce,
            situation.matters[0] == Criterion::Memory,
        );
        self.label(&features)
    }

    fn label(&self, features: &Features) -> &str {
        match self {
            Tree::Leaf(label) => label,
            Tree::Split { feature, threshold, low, high } => {
                let side = if features[*feature] <= *threshold { low } else { high };
                side.label(features)
            }
        }
    }

    /// The tree in words, a line each.
    pub(crate) fn words(&self, depth: usize) -> String {
        let space = "  ".repeat(depth);
        match self {
            Tree::Leaf(label) => format!("{space}{label}\n"),
            Tree::Split { feature, threshold, low, high } => {
                let name = NAMES[*feature];
                let bound = match feature {
                    0..=2 => format!("{name} at most {:.0}", threshold.exp()),
                    _ => format!("without {name}"),
                };
                let (low, high) = (low.words(depth + 1), high.words(depth + 1));
                format!("{space}{bound}:\n{low}{space}else:\n{high}")
            }
        }
    }
}

fn features(
    (rate, connections): (f64, f64),
    size: f64,
    is_tls: bool,
    is_confirmed: bool,
    is_memory: bool,
) -> Features {
    let flag = |is: bool| f64::from(u8::from(is));
    let log = |value: f64| value.max(1.0).ln();
    [log(rate), log(connections), log(size), flag(is_tls), flag(is_confirmed), flag(is_memory)]
}

/// Every load at which two options or more were measured, for every wish.
fn examples(cells: &Cells) -> Vec<Example> {
    let mut loads: BTreeMap<(u64, u64, bool), Vec<&Cell>> = BTreeMap::new();
    for cell in cells.cells.iter().filter(|cell| cell.size_bytes > 0.0) {
        let rate = two_digits(cell.rate_per_s());
        loads.entry((rate, cell.size_bytes as u64, cell.is_tls)).or_default().push(cell);
    }
    let mut found = Vec::new();
    for ((rate, size, is_tls), cells) in &loads {
        for is_confirmed in [false, true] {
            for is_memory in [false, true] {
                let can = cells.iter().filter(|cell| !is_confirmed || is_confirming(cell));
                let costs: Vec<(f64, String)> =
                    can.filter_map(|cell| Some((cost(cell, is_memory)?, name(cell)))).collect();
                let least = costs.iter().min_by(|a, b| a.0.total_cmp(&b.0));
                let Some((_, label)) = least.filter(|_| costs.len() > 1) else { continue };
                let most = cells.iter().map(|cell| cell.connections).fold(0.0, f64::max);
                let load = (*rate as f64, most);
                let features = features(load, *size as f64, *is_tls, is_confirmed, is_memory);
                found.push(Example { features, label: label.clone() });
            }
        }
    }
    found
}

/// A rate to two digits: the same load is never offered exactly twice.
fn two_digits(rate: f64) -> u64 {
    format!("{rate:.1e}").parse::<f64>().unwrap_or(rate).round() as u64
}

fn is_confirming(cell: &Cell) -> bool {
    cell.protocol != "mqtt" || !cell.variant.contains("qos=0")
}

fn cost(cell: &Cell, is_memory: bool) -> Option<f64> {
    match is_memory {
        false => Some(cell.mean(|own| own.cores)),
        true => {
            let all = cell.repetitions.iter().map(|own| own.memory_bytes);
            let all: Option<Vec<f64>> = all.collect();
            let all = all.filter(|all| !all.is_empty())?;
            Some(all.iter().sum::<f64>() / all.len() as f64)
        }
    }
}

/// The name of its option, without TLS.
fn name(cell: &Cell) -> String {
    let variant = cell.variant.replace(['=', ','], " ");
    let space = if variant.is_empty() { "" } else { " " };
    let way = if cell.is_per_connection { "one each" } else { "kept" };
    format!("{}{space}{variant}, {way}", cell.protocol)
}

fn grown(examples: &[&Example], depth: usize) -> Tree {
    let impurity = gini(examples);
    let best = match impurity > 0.0 && depth < DEPTH_MAX && examples.len() >= SPLIT_MIN {
        true => split(examples),
        false => None,
    };
    let Some((feature, threshold, _)) = best.filter(|own| own.2 < impurity - LEAST_GAIN) else {
        return Tree::Leaf(most_frequent(examples));
    };
    let (low, high): (Vec<&Example>, Vec<&Example>) =
        examples.iter().copied().partition(|own| own.features[feature] <= threshold);
    Tree::Split {
        feature,
        threshold,
        low: Box::new(grown(&low, depth + 1)),
        high: Box::new(grown(&high, depth + 1)),
    }
}

/// The split after which the mean impurity is least: feature, threshold, and that impurity.
fn split(examples: &[&Example]) -> Option<(usize, f64, f64)> {
    let mut best: Option<(usize, f64, f64)> = None;
    for feature in 0..NAMES.len() {
        let mut values: Vec<f64> = examples.iter().map(|own| own.features[feature]).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        for two in values.windows(2) {
            let threshold = (two[0] + two[1]) / 2.0;
            let (low, high): (Vec<&Example>, Vec<&Example>) =
                examples.iter().copied().partition(|own| own.features[feature] <= threshold);
            let part = |own: &[&Example]| gini(own) * own.len() as f64 / examples.len() as f64;
            let impurity = part(&low) + part(&high);
            if best.is_none_or(|(_, _, least)| impurity < least - LEAST_GAIN) {
                best = Some((feature, threshold, impurity));
            }
        }
    }
    best
}

fn counts<'e>(examples: &[&'e Example]) -> BTreeMap<&'e str, usize> {
    let mut counts = BTreeMap::new();
    for own in examples {
        *counts.entry(own.label.as_str()).or_insert(0) += 1;
    }
    counts
}

/// Probability that two examples have different labels.
fn gini(examples: &[&Example]) -> f64 {
    let n = examples.len().max(1) as f64;
    1.0 - counts(examples).values().map(|own| (*own as f64 / n).powi(2)).sum::<f64>()
}

fn most_frequent(examples: &[&Example]) -> String {
    let counts = counts(examples);
    let most = counts.values().max().copied().unwrap_or(0);
    let first = counts.iter().find(|(_, count)| **count == most);
    first.map_or(String::new(), |(label, _)| (*label).to_owned())
}

const NAMES: [&str; 6] = ["messages/s", "connections", "bytes", "TLS", "confirmation", "memory"];

const DEPTH_MAX: usize = 4;

/// Fewer examples are not split.
const SPLIT_MIN: usize = 4;

/// Smaller gains are errors of rounding.
const LEAST_GAIN: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use weigh_model::Nanos;
    use weigh_model::units::Bytes;

    use super::*;

    fn example(rate: f64, is_tls: bool, label: &str) -> Example {
        let features = features((rate, 10.0), 64.0, is_tls, true, false);
        Example { features, label: label.to_owned() }
    }

    /// A rule of two splits is found again.
    #[test]
    fn a_planted_rule_is_found() {
        let rule = |rate: f64, is_tls: bool| match (is_tls, rate < 500.0) {
            (true, _) => "http1, kept",
            (false, true) => "mqtt qos 1, one each",
            (false, false) => "mqtt qos 1, kept",
        };
        let rates = [10.0, 50.0, 100.0, 400.0, 700.0, 1_000.0, 4_000.0, 9_000.0];
        let all: Vec<Example> = rates
            .iter()
            .flat_map(|rate| [false, true].map(|tls| example(*rate, tls, rule(*rate, tls))))
            .collect();
        let tree = grown(&all.iter().collect::<Vec<_>>(), 0);
        for own in &all {
            assert_eq!(tree.label(&own.features), own.label, "{}", tree.words(0));
        }
        let mut situation = Situation::new(2_000, Nanos::from_secs(1), Bytes(64));
        assert_eq!(tree.option(&situation), "mqtt qos 1, kept");
        situation.network.tls = TlsWish::On;
        assert_eq!(tree.option(&situation), "http1, kept");
        assert!(tree.words(0).contains("without TLS:"), "{}", tree.words(0));
    }

    #[test]
    fn the_impurity_is_the_probability_of_two_labels() {
        let all = [example(1.0, false, "a"), example(2.0, false, "a"), example(3.0, false, "b")];
        let found = gini(&all.iter().collect::<Vec<_>>());
        assert!((found - (1.0 - 4.0 / 9.0 - 1.0 / 9.0)).abs() < 1e-12);
        assert_eq!(grown(&all.iter().take(2).collect::<Vec<_>>(), 0), Tree::Leaf("a".to_owned()));
    }

    /// On the committed calibration the tree advises options that were measured.
    #[test]
    fn the_committed_cells_make_a_tree() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let cells = super::super::cells::cells(&folder.join(super::super::FOLDER)).expect("cells");
        let all = examples(&cells);
        assert!(all.len() >= 40, "{}", all.len());
        let tree = Tree::of(&cells);
        let right = all.iter().filter(|own| tree.label(&own.features) == own.label).count();
        assert!(right * 10 >= all.len() * 7, "{right} of {}:\n{}", all.len(), tree.words(0));
    }
}
