//! The scores: whether the advised set holds the best option, how large it is, what following it
//! costs, whether it refuses what it should, and whether simpler advisers do as well.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::freeze::Frozen;
use super::measure::{is_answered, read};

/// A situation with its prediction and its measurement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Situation {
    /// `inside`, `outside` and so on.
    pub(crate) kind: String,
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
    /// True if figures are compared as they are, and not only by ratio.
    pub(crate) is_absolute: bool,
}

/// Scores of an adviser.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scores {
    /// Situations that were measured.
    pub(crate) measured: usize,
    /// Of these, with an advised option among the best.
    pub(crate) covered: usize,
    /// Mean size of the advised set.
    pub(crate) set_size: f64,
    /// Situations with one advised option.
    pub(crate) singles: usize,
    /// Cost of the first advised option over that of the best, sorted.
    pub(crate) regrets: Vec<f64>,
    /// Closed gap between the single best option and the best of every situation.
    pub(crate) closed_gap: f64,
    /// Refused of those that should be, and of those that should not.
    pub(crate) refusals: [usize; 2],
    /// Share of measured figures within their predicted interval.
    pub(crate) held: f64,
    /// Brier score of the probabilities.
    pub(crate) brier: f64,
}

/// Reads all situations with their predictions and measurements.
pub(crate) fn of(folder: &Path, frozen: &Frozen) -> anyhow::Result<Vec<Situation>> {
    frozen.numbers().iter().map(|number| one(folder, number)).collect()
}

fn one(folder: &Path, number: &str) -> anyhow::Result<Situation> {
    let toml = fs::read_to_string(folder.join(format!("{number}.toml")))?;
    let kind = toml.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
    let predicted = read(&folder.join(format!("{number}.json")))?;
    let measured = read(&folder.join("measured").join(format!("{number}.json"))).ok();
    let name = |own: &Value| own["name"].as_str().unwrap_or_default().to_owned();
    let criterion = predicted["criterion"].as_str().unwrap_or_default();
    let mut situation = Situation {
        kind,
        is_answered: is_answered(&predicted),
        is_absolute: ["server-cpu", "memory", "latency"].contains(&criterion),
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
        let values = own["values"].as_array().into_iter().flatten().filter_map(Value::as_f64);
        let values: Vec<f64> = values.collect();
        if !values.is_empty() {
            situation.measured.insert(name(own), values);
        }
    }
    Ok(situation)
}

impl Situation {
    /// The cheapest measured cost.
    fn least(&self) -> f64 {
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
}

/// Scores of the advice; `pick` replaces the advised set of a situation by another adviser's.
pub(crate) fn scores(all: &[Situation], pick: impl Fn(&Situation) -> Vec<String>) -> Scores {
    let mut scores = Scores::default();
    for own in all {
        let place = usize::from(own.kind != "outside");
        scores.refusals[place] += usize::from(!own.is_answered);
    }
    let done: Vec<&Situation> =
        all.iter().filter(|own| own.is_answered && !own.measured.is_empty()).collect();
    scores.measured = done.len();
    let n = done.len().max(1) as f64;
    let (mut within, mut figures) = (0.0, 0.0_f64);
    let (mut squares, mut pairs) = (0.0, 0.0_f64);
    for own in &done {
        let set = pick(own);
        let best = own.best();
        scores.covered += usize::from(set.iter().any(|name| best.contains(name)));
        scores.set_size += set.len() as f64 / n;
        scores.singles += usize::from(set.len() == 1);
        let first = set.first().and_then(|first| own.regret(first));
        scores.regrets.push(first.unwrap_or(REGRET_OF_NONE));
        for (name, values) in own.measured.iter().filter(|_| own.is_absolute) {
            let Some([low, high]) = own.predicted.get(name) else { continue };
            figures += 1.0;
            within += f64::from(u8::from((*low..=*high).contains(&mean(values))));
        }
        for ((a, b), share) in &own.beats {
            let (Some(a), Some(b)) = (own.measured.get(a), own.measured.get(b)) else { continue };
            pairs += 1.0;
            squares += (share - f64::from(u8::from(mean(a) < mean(b)))).powi(2);
        }
    }
    scores.regrets.sort_by(f64::total_cmp);
    scores.held = within / figures.max(1.0);
    scores.brier = squares / pairs.max(1.0);
    let single = single_best(&done);
    let mean_regret = mean(&scores.regrets);
    scores.closed_gap = if single > 1.0 { (single - mean_regret) / (single - 1.0) } else { 1.0 };
    scores
}

/// Mean regret of the one option that is best for all situations together.
fn single_best(done: &[&Situation]) -> f64 {
    let plain = |name: &String| name.replace(", TLS", "");
    let names: Vec<String> = done.iter().flat_map(|own| own.measured.keys().map(plain)).collect();
    let of = |name: &String| {
        let regrets: Vec<f64> = done
            .iter()
            .map(|own| {
                let found = own.measured.keys().find(|other| plain(other) == *name);
                found.and_then(|found| own.regret(found)).unwrap_or(REGRET_OF_NONE)
            })
            .collect();
        mean(&regrets)
    };
    names.iter().map(of).fold(f64::INFINITY, f64::min)
}

/// The goals that are missed.
pub(crate) fn missed(scores: &Scores) -> Vec<&'static str> {
    let at = |share: f64| {
        let last = scores.regrets.len().saturating_sub(1) as f64;
        scores.regrets.get((share * last).round() as usize).copied().unwrap_or(f64::INFINITY)
    };
    let n = scores.measured as f64;
    let goals = [
        (scores.measured > 0 && scores.covered as f64 >= 24.0 / 26.0 * n, "coverage"),
        (scores.set_size <= 1.7, "size of the set"),
        (scores.singles as f64 >= n / 2.0, "single options"),
        (at(0.5) <= 1.02, "median regret"),
        (at(0.95) <= 1.15, "regret at 95 %"),
        (scores.closed_gap >= 0.8, "closed gap"),
        (scores.refusals[1] == 0, "refusals of others"),
        ((0.88..=0.98).contains(&scores.held), "intervals"),
        (scores.brier < 0.25, "Brier score"),
    ];
    goals.into_iter().filter(|(holds, _)| !holds).map(|(_, name)| name).collect()
}

/// The advisers that must be beaten, and the control that must fail.
fn advisers() -> [(&'static str, Adviser); 7] {
    [
        ("weigh advise", |own| own.advised.clone()),
        ("always MQTT QoS 1", |own| first(own, &["mqtt qos 1, kept"])),
        ("fewest bytes", fewest_bytes),
        ("order by Naik", |own| first(own, &["coap", "mqtt qos 0", "mqtt qos 1, kept", "http1"])),
        ("EMQX's rule", |own| first(own, &["mqtt qos 0, kept", "mqtt qos 1, kept", "mqtt qos 2"])),
        ("tree: kept, then HTTP at TLS", tree),
        ("shuffled labels", shuffled),
    ]
}

/// Returns the options that it would advise.
type Adviser = fn(&Situation) -> Vec<String>;

/// The first option of this order that was measured.
fn first(own: &Situation, order: &[&str]) -> Vec<String> {
    let named = |start: &&str| own.measured.keys().find(|name| name.starts_with(*start)).cloned();
    order.iter().find_map(named).into_iter().collect()
}

fn fewest_bytes(own: &Situation) -> Vec<String> {
    let known = own.bytes.iter().filter(|(name, _)| own.measured.contains_key(*name));
    let least = known.min_by(|a, b| a.1.total_cmp(b.1));
    least.map(|(name, _)| name.clone()).into_iter().collect()
}

/// Two splits that fit the shipped cells: a kept connection costs less, and inside TLS HTTP does.
fn tree(own: &Situation) -> Vec<String> {
    let is_tls = own.measured.keys().any(|name| name.ends_with("TLS"));
    first(own, if is_tls { &["http1, kept"] } else { &["mqtt qos 1, kept"] })
}

/// Advice for the option behind the one that is meant.
fn shuffled(own: &Situation) -> Vec<String> {
    let names: Vec<&String> = own.measured.keys().collect();
    let next = |name: &String| {
        let at = names.iter().position(|own| *own == name)?;
        Some(names[(at + 1) % names.len()].clone())
    };
    own.advised.iter().filter_map(next).collect()
}

/// The table of all advisers.
pub(crate) fn table(all: &[Situation]) -> String {
    let mut text =
        "| adviser | covered | set | single | regret 50 % | 95 % | closed gap | missed |\n\
                    |---|---|---|---|---|---|---|---|\n"
            .to_owned();
    for (name, pick) in advisers() {
        let own = scores(all, pick);
        let at = |share: f64| {
            let last = own.regrets.len().saturating_sub(1) as f64;
            own.regrets.get((share * last).round() as usize).map_or(f64::NAN, |own| *own)
        };
        text += &format!(
            "| {name} | {} of {} | {:.2} | {} | {:.3} | {:.3} | {:.2} | {} |\n",
            own.covered,
            own.measured,
            own.set_size,
            own.singles,
            at(0.5),
            at(0.95),
            own.closed_gap,
            missed(&own).join(", "),
        );
    }
    let own = scores(all, |own| own.advised.clone());
    let outside = all.iter().filter(|own| own.kind == "outside").count();
    text + &format!(
        "\nrefused: {} of {outside} outside, {} others; intervals hold {:.0} %; Brier {:.3}\n",
        own.refusals[0],
        own.refusals[1],
        own.held * 100.0,
        own.brier
    )
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Standard error of the mean.
fn error(values: &[f64]) -> f64 {
    let (n, mean) = (values.len() as f64, mean(values));
    if n < 2.0 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|own| (own - mean).powi(2)).sum();
    (squares / (n - 1.0) / n).sqrt()
}

/// Ratio to the cheapest up to which options are equally good.
const ZONE: f64 = 1.05;

/// What it costs to advise something that cannot do it.
const REGRET_OF_NONE: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty situations of four options with costs 1, 1.5, 2 and 3, which change places.
    fn made() -> Vec<Situation> {
        let names = ["a, kept", "b, kept", "c, kept", "d, kept"];
        let one = |number: usize| {
            let cost = |at: usize| [1.0, 1.5, 2.0, 3.0][(at + number) % 4];
            let mut own = Situation {
                kind: "inside".to_owned(),
                is_answered: true,
                is_absolute: true,
                ..Situation::default()
            };
            for (at, name) in names.iter().enumerate() {
                // One interval in twenty misses.
                let off = if number == 3 && at < 3 { 2.0 } else { 1.0 };
                own.predicted
                    .insert((*name).to_owned(), [0.9 * off * cost(at), 1.1 * off * cost(at)]);
                own.measured.insert((*name).to_owned(), vec![cost(at); 5]);
                for (other_at, other) in names.iter().enumerate().filter(|(other, _)| *other != at)
                {
                    let share = if cost(at) < cost(other_at) { 0.95 } else { 0.05 };
                    own.beats.insert(((*name).to_owned(), (*other).to_owned()), share);
                }
            }
            own.advised = own.best();
            own
        };
        let refused =
            Situation { kind: "outside".to_owned(), is_answered: false, ..Situation::default() };
        (0..20).map(one).chain([refused]).collect()
    }

    #[test]
    fn good_advice_meets_every_goal_and_shuffled_labels_fail() {
        let all = made();
        let own = scores(&all, |own| own.advised.clone());
        assert_eq!((own.covered, own.measured, own.singles), (20, 20, 20));
        assert_eq!(own.refusals, [1, 0]);
        assert!((own.closed_gap - 1.0).abs() < 1e-9 && own.brier < 0.01, "{own:?}");
        assert!((own.held - 77.0 / 80.0).abs() < 1e-9);
        assert_eq!(missed(&own), [""; 0]);
        let control = missed(&scores(&all, shuffled));
        for goal in ["coverage", "median regret", "regret at 95 %", "closed gap"] {
            assert!(control.contains(&goal), "{goal}: {control:?}");
        }
    }

    /// Naming everything covers everything and is worth nothing.
    #[test]
    fn advising_everything_is_no_advice() {
        let everything = |own: &Situation| own.measured.keys().cloned().collect();
        let found = missed(&scores(&made(), everything));
        assert!(found.contains(&"size of the set") && found.contains(&"single options"));
    }

    #[test]
    fn nothing_measured_meets_no_goal() {
        let mut all = made();
        all.iter_mut().for_each(|own| own.measured.clear());
        assert!(missed(&scores(&all, |own| own.advised.clone())).contains(&"coverage"));
        assert!(table(&all).contains("0 of 0"));
    }
}
