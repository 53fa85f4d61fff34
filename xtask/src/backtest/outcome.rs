//! A situation with what was predicted of it and what was measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use weigh_stats::estimate::Sample;

use super::freeze::Frozen;
use super::measure::{is_answered, read, values};
use super::tree::Tree;

/// A situation with its prediction and its measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Situation {
    /// Its number.
    pub(crate) number: String,
    /// `inside`, `outside` and so on.
    pub(crate) kind: String,
    /// What matters most in it.
    pub(crate) criterion: String,
    /// What was asked; `None` in tests.
    pub(crate) asked: Option<weigh_advice::Situation>,
    /// False if the prediction is a refusal.
    pub(crate) is_answered: bool,
    /// The advised set, the first option first.
    pub(crate) advised: Vec<String>,
    /// Predicted intervals by option.
    pub(crate) predicted: BTreeMap<String, [f64; 2]>,
    /// Predicted probabilities that the first costs less than the second.
    pub(crate) beats: BTreeMap<(String, String), f64>,
    /// Predicted bytes by option.
    pub(crate) bytes: BTreeMap<String, f64>,
    /// Measured values by option; empty if it was not measured.
    pub(crate) measured: BTreeMap<String, Vec<f64>>,
    /// Options that were tried and not measured, with the reason.
    pub(crate) left_out: BTreeMap<String, String>,
}

/// Reads all situations with their predictions and measurements.
pub(crate) fn of(folder: &Path, frozen: &Frozen) -> anyhow::Result<Vec<Situation>> {
    frozen.numbers().iter().map(|number| one(folder, number)).collect()
}

fn one(folder: &Path, number: &str) -> anyhow::Result<Situation> {
    let file = format!("{number}.toml");
    let toml = fs::read_to_string(folder.join(&file))?;
    let kind = toml.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
    let predicted = read(&folder.join(format!("{number}.json")))?;
    let measured = folder.join("measured").join(format!("{number}.json"));
    let measured = if measured.exists() { Some(read(&measured)?) } else { None };
    let name = |own: &Value| own["name"].as_str().unwrap_or_default().to_owned();
    let mut situation = Situation {
        number: number.to_owned(),
        kind,
        criterion: predicted["criterion"].as_str().unwrap_or_default().to_owned(),
        asked: Some(weigh_advice::Situation::read(&file, &toml)?),
        is_answered: is_answered(&predicted),
        ..Situation::default()
    };
    for own in predicted["advised"].as_array().into_iter().flatten() {
        situation.advised.push(own.as_str().unwrap_or_default().to_owned());
    }
    for own in predicted["options"].as_array().into_iter().flatten() {
        if let (Some(low), Some(high)) =
            (own["figure"]["low"].as_f64(), own["figure"]["high"].as_f64())
        {
            situation.predicted.insert(name(own), [low, high]);
        }
        if let Some(bytes) = own["bytes"].as_f64() {
            situation.bytes.insert(name(own), bytes);
        }
        for (other, share) in own["beats"].as_object().into_iter().flatten() {
            let share = share.as_f64().unwrap_or(0.5);
            situation.beats.insert((name(own), other.clone()), share);
        }
    }
    for own in measured.iter().flat_map(|own| own["options"].as_array()).flatten() {
        let values = values(&own["values"]);
        if !values.is_empty() {
            situation.measured.insert(name(own), values);
        } else if let Some(why) = own["left_out"].as_str() {
            situation.left_out.insert(name(own), why.to_owned());
        }
    }
    Ok(situation)
}

impl Situation {
    /// True if it counts: it was measured, and it is not one to refuse.
    pub(crate) fn is_scored(&self) -> bool {
        self.kind != "outside" && !self.measured.is_empty()
    }

    /// The cheapest measured cost.
    pub(crate) fn least(&self) -> f64 {
        self.measured.values().map(|own| mean(own)).fold(f64::INFINITY, f64::min)
    }

    /// Cost of an option over that of the cheapest; `None` if it was not measured.
    pub(crate) fn regret(&self, option: &str) -> Option<f64> {
        Some(mean(self.measured.get(option)?) / self.least())
    }

    /// Options that cannot be distinguished from the cheapest: within 5 %, or within the scatter of
    /// both.
    pub(crate) fn best(&self) -> Vec<String> {
        let least = self.least();
        let cheapest = self.measured.values().find(|own| mean(own) == least);
        let is_best = |own: &[f64]| {
            let error =
                (error(own).powi(2) + cheapest.map_or(0.0, |own| error(own)).powi(2)).sqrt();
            mean(own) / least <= ZONE || mean(own) - 1.96 * error <= least
        };
        let all = self.measured.iter().filter(|(_, own)| is_best(own));
        all.map(|(name, _)| name.clone()).collect()
    }

    /// True if an advised option is among the best.
    pub(crate) fn is_covered(&self, advised: &[String]) -> bool {
        let best = self.best();
        advised.iter().any(|own| best.contains(own))
    }

    /// The option of a tree, as it is called here.
    pub(crate) fn tree_option(&self, tree: &Tree) -> String {
        self.asked.as_ref().map_or("http1, kept", |asked| tree.option(asked)).to_owned()
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    Sample::of(values).map_or(0.0, |own| own.mean)
}

/// Standard error of the mean.
fn error(values: &[f64]) -> f64 {
    Sample::of(values).map_or(0.0, |own| own.variance_of_mean().sqrt())
}

/// Ratio to the cheapest up to which options are equally good.
const ZONE: f64 = 1.05;
