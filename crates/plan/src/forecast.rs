//! How long a plan will take, as far as the plan tells.

use weigh_model::arrival::Arrival;
use weigh_model::plan::Plan;
use weigh_model::{Emulation, Load, Nanos};

/// How many trials a plan has, and how long they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// Trials if every case is precise at once.
    pub trials_least: u64,
    /// Trials if no case ever is.
    pub trials_most: u64,
    /// The least time, starting included.
    pub time_least: Nanos,
    /// The most: every trial waits for messages that never come, and none is left out.
    pub time_most: Nanos,
    /// Cases whose trials last as long as their messages take, which nobody knows; they count
    /// with their start alone.
    pub unknown: u64,
}

/// What a plan takes with cases of these loads, each with the time that starting and stopping its
/// target takes.
pub fn forecast(plan: &Plan, cases: &[(&Load, Nanos)]) -> Forecast {
    let repeat = &plan.repeat;
    let own =
        |(load, start): &(&Load, Nanos)| measured(load).unwrap_or(Nanos(0)) + load.warmup + *start;
    let round_least = cases.iter().fold(Nanos(0), |sum, case| sum + own(case));
    let waits =
        |load: &Load| Nanos(load.timeout.0.saturating_mul(1 + u64::from(load.warmup.0 > 0)));
    let round_most = cases.iter().fold(round_least, |sum, (load, _)| sum + waits(load));
    let number = cases.len() as u64;
    let times = |round: Nanos, repetitions: u32| {
        let idle = plan.observe.idle_each();
        let is_looked_at = plan.observe.emulate.contains(&Emulation::Htop);
        let looks = if is_looked_at { HTOP_LOOKS } else { Nanos(0) };
        let pause = repeat.cool_down + idle + idle + looks;
        let round = round + Nanos(pause.0.saturating_mul(number));
        Nanos(round.0.saturating_mul(u64::from(repetitions)))
    };
    let longest = cases.iter().map(|case| own(case) + waits(case.0)).max().unwrap_or_default();
    // No trial begins after the budget; the one that runs then is finished.
    let within = |time: Nanos| repeat.budget.map_or(time, |budget| time.min(budget + longest));
    Forecast {
        trials_least: number * u64::from(repeat.at_least),
        trials_most: number * u64::from(repeat.most()),
        time_least: within(times(round_least, repeat.at_least)),
        time_most: within(times(round_most, repeat.most())),
        unknown: cases.iter().filter(|(load, _)| measured(load).is_none()).count() as u64,
    }
}

/// How long a trial of this load sends, warm-up apart; `None` where that depends on the target.
pub fn measured(load: &Load) -> Option<Nanos> {
    if let Some(duration) = load.duration {
        return Some(duration);
    }
    if let Arrival::Steps(steps) = &load.arrival {
        return Some(steps.iter().fold(Nanos(0), |sum, step| sum + step.hold));
    }
    let rate = load.rate.filter(|_| load.arrival.is_open())?;
    let messages = load.split.total(load.messages?, load.connections) as f64;
    let joining = load.join.map_or(Nanos(0), |join| join.last_turn(load.connections));
    let sending = Nanos::from_secs_f64(messages / rate.total_per_second(load.connections));
    Some(joining + sending)
}

/// What looking at a target as htop does adds to a trial: on average half a window of 1.5 s before
/// the load, and half of one after it.
const HTOP_LOOKS: Nanos = Nanos::from_millis(1_500);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LoadWords;
    use weigh_model::plan::Repeat;
    use weigh_model::{Pattern, Rate};

    const START: Nanos = Nanos::from_millis(300);

    fn plan(load: &Load, repeat: Repeat) -> Plan {
        let cases = vec![Default::default(); 2];
        let load = load.clone();
        Plan {
            name: String::new(),
            question: None,
            seed: 1,
            thresholds: Vec::new(),
            load,
            repeat,
            stop: Default::default(),
            observe: Default::default(),
            energy: None,
            background: None,
            cases,
        }
    }

    fn load(words: LoadWords) -> Load {
        words.decide("any", &[Pattern::Publish]).unwrap()
    }

    #[test]
    fn least_and_most_are_sums_over_trials() {
        let load = load(LoadWords::default());
        let repeat =
            Repeat { at_most: Some(10), cool_down: Nanos::from_secs(1), ..Repeat::exactly(5) };
        let seen = forecast(&plan(&load, repeat), &[(&load, START), (&load, START)]);
        assert_eq!((seen.trials_least, seen.trials_most), (10, 20));
        // 2 s, 500 ms of warm-up, 300 ms to start, 1 s of pause; at most 5 s more for each end.
        assert_eq!(seen.time_least, Nanos::from_millis(38_000));
        assert_eq!(seen.time_most, Nanos::from_millis(20 * 13_800));
        assert_eq!(seen.unknown, 0);
        let repeat = Repeat { budget: Some(Nanos::from_secs(10)), ..Repeat::exactly(5) };
        let seen = forecast(&plan(&load, repeat), &[(&load, START), (&load, START)]);
        assert_eq!(seen.time_least, Nanos::from_millis(22_800), "the last trial may end later");
        let mut looked_at = plan(&load, Repeat::exactly(5));
        let plain = forecast(&looked_at, &[(&load, START)]).time_least;
        looked_at.observe.emulate = vec![Emulation::Htop];
        let seen = forecast(&looked_at, &[(&load, START)]);
        assert_eq!(seen.time_least, plain + Nanos::from_millis(5 * 1_500));
    }

    #[test]
    fn a_total_at_a_rate_has_a_length_and_one_without_has_none() {
        let rate = Some(Rate { per_second: 10.0, per_client: true });
        let words = LoadWords { messages: Some(200), connections: Some(4), ..LoadWords::default() };
        let paced = load(LoadWords { rate, ..words.clone() });
        assert_eq!(measured(&paced), Some(Nanos::from_secs(5)));
        assert_eq!(measured(&load(words)), None);
    }
}
