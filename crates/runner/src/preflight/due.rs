//! Checks before a run how many messages its cases send: none is an error, and too few for the
//! quantile of a condition a warning.

use std::collections::BTreeSet;

use weigh_engine::schedule::Schedule;
use weigh_model::condition::{HEADLINE, quantile_of, quantile_word};
use weigh_model::plan::Plan;
use weigh_model::{Arrival, Condition, Load, Nanos, Pattern};
use weigh_report::figures::count;
use weigh_stats::quantile::values_needed;

use crate::case::Case;
use crate::exit::Stop;
use crate::watcher::Watcher;

/// Rejects cases in which certainly no message is due in the measured window.
///
/// # Errors
/// The case, and what to type instead.
pub fn check(cases: &[Case]) -> Result<(), Stop> {
    for case in cases {
        let Some(why) = none_due(&case.load, &case.material.trace) else { continue };
        return Err(Stop::usage(format!("{}: {why}", case.title())));
    }
    Ok(())
}

/// Returns the reason for which no message is due in the window; `None` if some are, or if it is
/// unknown.
fn none_due(load: &Load, trace: &[Nanos]) -> Option<String> {
    if !load.arrival.is_open() || load.pattern == Pattern::Hold {
        return None;
    }
    let window = load.duration.map_or(String::new(), |duration| format!(" of {duration}"));
    let after = match load.warmup {
        Nanos(0) => String::new(),
        warmup => format!(", after a warm-up of {warmup}"),
    };
    let none = format!("no message is due in the measured window{window}{after}");
    match &load.arrival {
        Arrival::Steps(_) if !has_any(Schedule::shared(load, trace, 0, 0, 1)?) => {
            Some(format!("{none}: make a step longer or its rate higher (--arrival, load.arrival)"))
        }
        Arrival::Trace(_) if !has_any(Schedule::shared(load, trace, 0, 0, 1)?) => Some(format!(
            "{none}: the trace has no time in it; type a longer -d (load.duration), or \
             another trace"
        )),
        Arrival::Constant | Arrival::Poisson | Arrival::Periodic => {
            let (rate, duration) = (load.rate?, load.duration?);
            let expected = rate.total_per_second(load.connections) * duration.as_secs_f64();
            let is_none = match load.arrival {
                Arrival::Constant if !rate.per_client && expected < 2.0 => {
                    !has_any(Schedule::shared(load, trace, 0, 0, 1)?)
                }
                _ => expected < EXPECTED_MIN,
            };
            is_none.then(|| {
                format!(
                    "{none} at {rate}: type a higher rate (-R, load.rate) or a longer duration \
                     (-d, load.duration)"
                )
            })
        }
        _ => None,
    }
}

/// True if a due time is in the measured window.
fn has_any(mut schedule: Schedule) -> bool {
    let mut looks = 0;
    while let Some(due) = schedule.next_due() {
        looks += 1;
        if !due.warmup || looks > LOOKS_MAX {
            return true;
        }
    }
    false
}

/// Warns of thresholds that cannot be decided because a repetition sends too few messages for their
/// quantile.
pub fn warn_of_few(plan: &Plan, cases: &[Case], watcher: &dyn Watcher) {
    let mut said = BTreeSet::new();
    for condition in &plan.thresholds {
        let fewest = cases.iter().filter_map(|case| Some((messages(&case.load)?, case)));
        let fewest = fewest.min_by(|left, right| left.0.cmp(&right.0));
        let Some((messages, case)) = fewest else { continue };
        if let Some(text) = too_few(condition, messages)
            && said.insert(condition.metric.clone())
        {
            watcher.say(&format!("{}: {text}", case.title()));
        }
    }
}

/// The warning for a condition whose quantile needs more than `messages` messages.
fn too_few(condition: &Condition, messages: u64) -> Option<String> {
    let is_of_messages = OF_MESSAGES.iter().any(|time| condition.metric.starts_with(time));
    let (q, word) = (quantile_of(&condition.metric)?, quantile_word(&condition.metric)?);
    let needed = values_needed(q);
    (is_of_messages && messages < needed).then(|| {
        format!(
            "\"{condition}\" cannot be decided: {word} needs {} messages in each repetition, but \
             only {} are sent; type -n {needed} or a longer -d",
            count(needed),
            count(messages)
        )
    })
}

/// Messages of one repetition, if known.
fn messages(load: &Load) -> Option<u64> {
    if let Some(messages) = load.messages {
        return Some(load.split.total(messages, load.connections) * load.copies());
    }
    let (rate, duration) = (load.rate.filter(|_| load.arrival.is_open())?, load.duration?);
    let each = rate.total_per_second(load.connections) * duration.as_secs_f64();
    Some(each.round() as u64 * load.copies())
}

/// Recorded times that have one value per message.
const OF_MESSAGES: [&str; 5] =
    [HEADLINE, "response_time_ns", "delivery_time_ns", "service_time_ns", "one_way_time_ns"];

/// With fewer expected messages than this, practically never is one due.
const EXPECTED_MIN: f64 = 0.01;

/// With more due times in its warm-up than this, a schedule is assumed to continue after it.
const LOOKS_MAX: u32 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::units::{parse_duration, parse_rate};

    fn load(arrival: &str, rate: Option<&str>, warmup: &str) -> Load {
        Load {
            duration: Some(Nanos::from_secs(2)),
            warmup: parse_duration(warmup).unwrap(),
            arrival: arrival.parse().unwrap(),
            rate: rate.map(|rate| parse_rate(rate).unwrap()),
            ..Load::closed(Pattern::Request, 2)
        }
    }

    #[test]
    fn loads_that_send_nothing_are_known_before() {
        for (arrival, rate, warmup, part) in [
            ("constant", Some("0.0000001/s"), "1s", Some("-R")),
            ("constant", Some("0.0000001/s"), "0s", None),
            ("poisson", Some("0.0000001/s"), "0s", Some("-R")),
            ("steps:1/s@0s", None, "0s", Some("step longer")),
            ("steps:1/s@2s", None, "0s", None),
            ("constant", Some("100/s"), "1s", None),
            ("closed", None, "1s", None),
        ] {
            let said = none_due(&load(arrival, rate, warmup), &[]);
            match part {
                Some(part) => assert!(said.as_ref().is_some_and(|s| s.contains(part)), "{said:?}"),
                None => assert_eq!(said, None, "{arrival} {rate:?}"),
            }
        }
        let trace = load("trace:times.txt", None, "0s");
        assert_eq!(none_due(&trace, &[Nanos::from_secs(1)]), None);
        let late = none_due(&trace, &[Nanos::from_secs(3)]).expect("it is later");
        assert!(late.contains("trace"), "{late}");
    }

    #[test]
    fn a_quantile_says_before_the_run_what_it_needs() {
        let condition = |text: &str| text.parse::<Condition>().expect(text);
        let said = too_few(&condition("p99.9 < 50ms"), 500).expect("too few");
        assert!(said.contains("p99.9 needs 3,688 messages") && said.contains("500"), "{said}");
        assert_eq!(too_few(&condition("p99 < 50ms"), 500), None);
        assert_eq!(too_few(&condition("connect_time p(99) < 50ms"), 5), None);
    }
}
