//! Further results of a search: the effect of a second generator on the output, and the queue that
//! a burst's bounds imply.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_limit::AxisKind;
use weigh_limit::burst::Rates;
use weigh_limit::second_generator::Movement;
use weigh_model::binding::GENERATOR_FULL_PERCENT;
use weigh_model::event::{Event, SecondGenerator, TrialFinished};
use weigh_model::numbers::{count, exact, rate};
use weigh_model::trial::Point;
use weigh_stats::Ratio;

/// The effect of a second generator on the output, at a load above the limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// `stays`: the plateau is not the generator's. `rises`: it was. `falls`, or `cannot-tell`.
    pub verdict: String,
    /// The verdict in a sentence, with its figures.
    pub sentence: String,
    /// Offered load of each trial, in the unit of the axis.
    pub load: f64,
    /// Messages per second of output with one generator, trial by trial.
    pub one_per_s: Vec<f64>,
    /// Messages per second of output with two generators together.
    pub two_per_s: Vec<f64>,
    /// Output with two over output with one: low, value, high at 95 %.
    pub ratio: Option<(f64, f64, f64)>,
    /// The largest share of a core that a thread of the one used, percent.
    pub one_cpu_percent: Option<f64>,
    /// The largest share of a core that a thread of the two used, percent.
    pub two_cpu_percent: Option<f64>,
    /// True if both had to share a core.
    pub shares_core: bool,
}

/// The result of a second generator in this lane; `None` if none was tried.
pub(crate) fn moved(lane: &Point, axis: AxisKind, events: &[Event]) -> Option<Moved> {
    let asked = events.iter().find_map(|event| match event {
        Event::SecondGenerator(asked) if asked.lane == *lane => Some(&**asked),
        _ => None,
    })?;
    let movement = Movement::of(&asked.one_per_s, &asked.two_per_s);
    let (verdict, said) = judged(asked, &movement);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let sentence = match &asked.error {
        Some(error) => format!("a second generator was given up: {error}"),
        None => format!(
            "{said}: offered {}{}, {} arrived from one generator and {} from two{}",
            exact(asked.load),
            axis.unit(),
            rate(mean(&asked.one_per_s)),
            rate(mean(&asked.two_per_s)),
            shares(&movement)
        ),
    };
    let ratio = ratio(&movement).and_then(|of| Some((of.low?, of.value, of.high?)));
    Some(Moved {
        verdict: verdict.to_owned(),
        sentence,
        load: asked.load,
        one_per_s: asked.one_per_s.clone(),
        two_per_s: asked.two_per_s.clone(),
        ratio,
        one_cpu_percent: asked.one_cpu_percent,
        two_cpu_percent: asked.two_cpu_percent,
        shares_core: asked.shares_core,
    })
}

/// Two generators on one full core do not offer more than one.
fn judged(asked: &SecondGenerator, movement: &Movement) -> (&'static str, &'static str) {
    let is_full = asked.one_cpu_percent.is_some_and(|percent| percent >= GENERATOR_FULL_PERCENT);
    match movement {
        Movement::Stays(_) if asked.shares_core && is_full => {
            ("cannot-tell", "a second generator on the same full core shows nothing")
        }
        Movement::Stays(_) => (
            "stays",
            "a second generator does not change the output, so the plateau is not the \
                       generator's",
        ),
        Movement::Rises(_) => {
            ("rises", "with a second generator more arrives: the limit was the generator's")
        }
        Movement::Falls(_) => (
            "falls",
            "with a second generator less arrives: the additional load slows the \
                       target down",
        ),
        Movement::CannotTell(_) => {
            ("cannot-tell", "it is undecided whether a second generator changes the output")
        }
    }
}

fn ratio(movement: &Movement) -> Option<&Ratio> {
    match movement {
        Movement::Rises(ratio) | Movement::Stays(ratio) | Movement::Falls(ratio) => Some(ratio),
        Movement::CannotTell(ratio) => ratio.as_ref(),
    }
}

fn shares(movement: &Movement) -> String {
    match ratio(movement).and_then(|of| Some((of.low?, of.high?))) {
        Some((low, high)) => format!(" (ratio {low:.3} to {high:.3})"),
        None => String::new(),
    }
}

/// Rates of a burst with the size of the bounds, and the queue that they imply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BurstShown {
    /// Arrival rate, messages per second; null if all of it was due at once.
    pub arrival_per_s: Option<f64>,
    /// Rate at which the consumer drained it, messages per second, from its beginning to the last
    /// message that arrived.
    pub drain_per_s: f64,
    /// The queue that the bounds imply, messages: it takes the lower one and not the upper one.
    pub queue: (u64, Option<u64>),
    /// The implied queue in a sentence.
    pub sentence: String,
}

/// Rates of the burst in a trial at one of the bounds.
pub(crate) fn burst(
    trial: &TrialFinished,
    is_at_once: bool,
    (lower, upper): (Option<f64>, Option<f64>),
) -> Option<BurstShown> {
    let figure = |name: &str| trial.metrics.get(name).copied().filter(|value| value.is_finite());
    let drained = trial.ledger.delivered? as f64 / figure("transfer_time_s")?;
    let arrival = figure("throughput_in_per_s").filter(|_| !is_at_once);
    let rates = Rates::new(arrival.unwrap_or(AT_ONCE_PER_S), drained).ok()?;
    let queue = rates.implied_queue(lower? as u64, upper.map(|upper| upper as u64));
    let came = match arrival {
        Some(arrival) => format!("arriving at {}", rate(arrival)),
        None => "arriving at once".to_owned(),
    };
    let sentence = match (rates.waiting_share() > 0.0, queue.1) {
        (false, _) => format!("{came}, drained at the same rate: no queue is needed"),
        (true, Some(most)) => format!(
            "{came}, drained at {}: consistent with a queue of {} to {} messages",
            rate(drained),
            count(queue.0),
            count(most)
        ),
        (true, None) => format!(
            "{came}, drained at {}: a queue would have to hold {} messages",
            rate(drained),
            count(queue.0)
        ),
    };
    Some(BurstShown { arrival_per_s: arrival, drain_per_s: drained, queue, sentence })
}

/// Faster than any memory: nothing is drained while the burst arrives.
const AT_ONCE_PER_S: f64 = 1e12;

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(two: [f64; 3], one_cpu: f64, shares_core: bool) -> Moved {
        let asked = SecondGenerator {
            load: 4500.0,
            one_per_s: vec![3000.0, 3010.0, 2990.0],
            two_per_s: two.to_vec(),
            one_cpu_percent: Some(one_cpu),
            shares_core,
            ..SecondGenerator::default()
        };
        let events = [Event::SecondGenerator(Box::new(asked))];
        assert_eq!(moved(&Point::from([("a".into(), 1.into())]), AxisKind::Rate, &events), None);
        moved(&Point::new(), AxisKind::Rate, &events).unwrap()
    }

    #[test]
    fn a_plateau_that_stays_is_acquitted_only_by_a_core_with_room() {
        let same = [3005.0, 3000.0, 2998.0];
        let stays = asked(same, 40.0, true);
        assert_eq!(stays.verdict, "stays");
        assert!(stays.sentence.contains("offered 4,500/s, 3,000/s arrived"), "{}", stays.sentence);
        assert_eq!(asked(same, 99.0, false).verdict, "stays");
        assert_eq!(asked(same, 99.0, true).verdict, "cannot-tell");
        assert_eq!(asked([4500.0, 4490.0, 4499.0], 99.0, true).verdict, "rises");
        assert_eq!(asked([1500.0, 1490.0, 1499.0], 50.0, false).verdict, "falls");
    }
}
