//! Times that hold lateness of the generator, at everything that shows or compares them; and with
//! them what else must not be put in a ratio, or makes one say too much.

use weigh_model::event::{Event, TrialFinished};
use weigh_model::ledger::Cause;
use weigh_model::warnings::{Severity, WarningRecord};
use weigh_report::summary::reading::Reading;
use weigh_report::summary::{Comparison, Verdict};
use weigh_report::table::render;
use weigh_report::{Style, Summary};

use crate::story::along;

/// What a trial says of its times in ns: response time, how much of it is lateness, service time.
fn late(events: &mut [Event], of: impl Fn(&TrialFinished) -> [f64; 3]) {
    for event in events {
        if let Event::TrialFinished(trial) = event {
            let spread = 1.0 + 0.001 * (f64::from(trial.repetition) - 2.0);
            let [response, lag, service] = of(trial).map(|value| value * spread);
            for part in ["p50", "p99", "max"] {
                trial.metrics.insert(format!("response_time_ns.{part}"), response);
                trial.metrics.insert(format!("response_time_lag_ns.{part}"), lag);
                trial.metrics.insert(format!("service_time_ns.{part}"), service);
            }
            trial.metrics.insert("target_cpu_us_per_message".into(), response / 1e3);
        }
    }
}

fn is_http(trial: &TrialFinished) -> bool {
    trial.point["protocol"] == "http1"
}

fn verdict_on<'a>(summary: &'a Summary, metric: &str) -> Option<&'a Comparison> {
    summary.comparisons.iter().find(|comparison| comparison.metric == metric)
}

/// Gives every trial these figures.
fn insert(events: &mut [Event], figures: &[(&str, f64)]) {
    for event in events {
        if let Event::TrialFinished(trial) = event {
            trial.metrics.extend(figures.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        }
    }
}

/// Shares of lateness are differences of two statistics: the largest response may hold none, and
/// the median some. That is no contradiction among quantiles (L07).
#[test]
fn shares_of_lateness_have_no_order() {
    let mut events = along(&["http1"], &[20]);
    late(&mut events, |_| [1e6, 4e3, 996e3]);
    insert(&mut events, &[("response_time_lag_ns.max", 0.0), ("response_time_lag_ns.mean", 9e3)]);
    let summary = Summary::from_events(&events).unwrap();
    assert!(summary.cells[0].valid, "{:#?}", summary.cells[0].warnings);
}

/// Conditions may ask for a quantile that no trial keeps: its lateness is that of its neighbours.
#[test]
fn a_quantile_between_the_kept_ones_has_their_lateness() {
    let mut events = along(&["http1"], &[20]);
    late(&mut events, |_| [1e6, 2e5, 8e5]);
    insert(&mut events, &[("response_time_ns.p75", 1e6), ("response_time_ns.p9999", 3e5)]);
    let summary = Summary::from_events(&events).unwrap();
    let of = |metric: &str| Reading::of(&summary.cells[0], metric);
    let Reading::Known(figure) = of("response_time_ns.p75") else { panic!() };
    assert!((figure.lag - 2e5).abs() < 1e3, "{figure:?}");
    assert!(matches!(of("response_time_ns.p9999"), Reading::Withheld(_)), "more than half of it");
}

/// More than half of a response time is the generator's: it is withheld, in the table, in ratios
/// and at the one door; the rest of the result stands.
#[test]
fn a_time_that_is_mostly_lateness_is_withheld_and_nothing_else() {
    let mut events = along(&["http1", "tcp"], &[20]);
    late(&mut events, |trial| if is_http(trial) { [1e6, 4e3, 996e3] } else { [3e5, 1.6e5, 1.4e5] });
    let summary = Summary::from_events(&events).unwrap();
    assert!(summary.cells.iter().all(|cell| cell.valid));
    let verdict = |metric: &str| verdict_on(&summary, metric).map(|found| found.verdict);
    assert_eq!(verdict("response_time_ns.p99"), Some(Verdict::Refused));
    assert_eq!(verdict("service_time_ns.p99"), Some(Verdict::Higher));
    assert_eq!(verdict("target_cpu_us_per_message"), Some(Verdict::Higher));
    for (cell, is_known) in summary.cells.iter().zip([true, false]) {
        let reading = Reading::of(cell, "response_time_ns.p99");
        assert_eq!(matches!(reading, Reading::Known(figure) if figure.lag == 0.0), is_known);
        assert_eq!(matches!(reading, Reading::Withheld(_)), !is_known);
        assert!(matches!(Reading::of(cell, "service_time_ns.p99"), Reading::Known(_)));
    }
    let text = render(&summary, Style::plain(160));
    assert!(text.contains(" µs s ") && text.contains("s  service time"), "{text}");
    assert!(text.contains("1.00") && !text.contains("INVALID"), "{text}");
    assert!(text.contains("generator-lag [tcp on reference]"), "{text}");
}

/// A part of the figures is the generator's: each stands with its share.
#[test]
fn a_time_that_is_partly_lateness_stands_with_its_share() {
    let mut events = along(&["http1", "tcp"], &[20]);
    late(
        &mut events,
        |trial| {
            if is_http(trial) { [260e3, 46e3, 214e3] } else { [230e3, 1e3, 229e3] }
        },
    );
    let summary = Summary::from_events(&events).unwrap();
    let Reading::Known(figure) = Reading::of(&summary.cells[0], "response_time_ns.p99") else {
        panic!("{:#?}", summary.cells[0].warnings);
    };
    assert!((figure.lag - 46e3).abs() < 100.0, "{figure:?}");
    let found = verdict_on(&summary, "response_time_ns.p99").unwrap();
    assert_eq!(found.verdict, Verdict::TooClose, "{found:#?}");
    assert!(found.reason.as_deref().unwrap().contains("is generator lag"));
    assert!(!found.stands && found.ratio.unwrap().low.unwrap() > 1.0);
    let text = render(&summary, Style::plain(160));
    assert!(text.contains(" µs l "), "{text}");
    let long = "http1 on reference: up to 46.0 µs of p50: the true p50 is between 214 and 260 µs";
    assert!(text.contains(long), "{text}");
    assert!(!text.contains("not compared") && !text.contains("generator-lag"), "{text}");
    let page = render(&summary, Style::markdown());
    assert!(page.contains(" µs (up to 46.0 µs is generator lag) |"), "{page}");

    // A difference that lateness cannot explain is called.
    late(
        &mut events,
        |trial| {
            if is_http(trial) { [460e3, 46e3, 414e3] } else { [230e3, 1e3, 229e3] }
        },
    );
    let summary = Summary::from_events(&events).unwrap();
    let found = verdict_on(&summary, "response_time_ns.p99").unwrap();
    assert_eq!((found.verdict, found.reason.as_deref()), (Verdict::Higher, None));
}

/// A record of an earlier version has one warning for all of its times. If nothing waited for the
/// window, each figure is judged by itself; else the warning decides as it did.
#[test]
fn the_lag_gate_of_old_records_gives_way_to_the_figures() {
    for (held_up, is_known) in [(0.0, true), (0.2, false)] {
        let mut events = along(&["http1", "tcp"], &[20]);
        late(&mut events, |_| [260e3, 0.0, 214e3]);
        for event in &mut events {
            if let Event::TrialFinished(trial) = event {
                trial.metrics.retain(|name, _| !name.contains("_lag_ns"));
                trial.metrics.insert("held_up_ratio".into(), held_up);
                trial.warnings.push(WarningRecord {
                    code: "lag-gate".into(),
                    severity: Severity::InvalidTimes,
                    text: "send lag p99.9 is 60us, against a mean response time of 100us".into(),
                    advice: "read service times".into(),
                });
            }
        }
        let summary = Summary::from_events(&events).unwrap();
        let text = render(&summary, Style::plain(160));
        assert_eq!(text.contains("RESPONSE TIMES INVALID lag-gate"), !is_known, "{text}");
        match Reading::of(&summary.cells[0], "response_time_ns.p50") {
            Reading::Known(figure) if is_known => assert!((figure.lag - 46e3).abs() < 100.0),
            Reading::Withheld(why) if !is_known => assert!(why.contains("lag-gate"), "{why}"),
            other => panic!("held up {held_up}: {other:?}"),
        }
    }
}

/// 97.5 % of one side never arrived: what its target took for each of the others is no cost of a
/// message, and is not compared.
#[test]
fn costs_of_delivered_messages_need_equal_losses() {
    for (delivered, is_refused) in [(25, true), (985, true), (990, false), (1000, false)] {
        let mut events = along(&["http1", "tcp"], &[20]);
        late(&mut events, |trial| if is_http(trial) { [2e5, 0.0, 2e5] } else { [1e5, 0.0, 1e5] });
        for event in &mut events {
            if let Event::TrialFinished(trial) = event {
                let arrived = if is_http(trial) { delivered } else { 1000 };
                let (ledger, lost) = (&mut trial.ledger, 1000 - arrived);
                (ledger.messages, ledger.scheduled, ledger.sent) = (1000, 1000, 1000);
                (ledger.acknowledged, ledger.received) = (arrived, arrived);
                (ledger.delivered, ledger.lost) = (Some(arrived), Some(lost));
                ledger.causes = [(Cause::ServerDropped, lost)].into();
            }
        }
        let summary = Summary::from_events(&events).unwrap();
        let found = verdict_on(&summary, "target_cpu_us_per_message").unwrap();
        assert_eq!(found.verdict == Verdict::Refused, is_refused, "{found:#?}");
        let reason = found.reason.as_deref().unwrap_or_default();
        let says = reason.contains("% of http1 on reference, 0 % of tcp on reference");
        assert_eq!(says, is_refused, "{reason}");
        let text = render(&summary, Style::plain(160));
        assert_eq!(text.contains("did not arrive in time"), is_refused, "{text}");
        assert_eq!(verdict_on(&summary, "response_time_ns.p50").unwrap().verdict, Verdict::Higher);
    }
}

/// A difference that is certain and below 1 % is none in practice.
#[test]
fn a_certain_difference_below_one_percent_is_practically_equal() {
    for (share, verdict) in [
        (1.0, Verdict::PracticallyEqual),
        (1.005, Verdict::PracticallyEqual),
        (0.994, Verdict::PracticallyEqual),
        (1.012, Verdict::Higher),
        (0.985, Verdict::Lower),
    ] {
        let mut events = along(&["http1", "tcp"], &[20]);
        late(&mut events, |trial| [if is_http(trial) { share * 1e6 } else { 1e6 }, 0.0, 1e6]);
        let summary = Summary::from_events(&events).unwrap();
        let found = verdict_on(&summary, "response_time_ns.p50").unwrap();
        assert_eq!(found.verdict, verdict, "{share}: {found:#?}");
        let json = serde_json::to_value(found.verdict).unwrap();
        assert_eq!(json == "practically equal", verdict == Verdict::PracticallyEqual);
        let is_equal = verdict == Verdict::PracticallyEqual;
        assert_eq!((found.stands, summary.multiplicity.called == 0), (!is_equal, is_equal));
        let text = render(&summary, Style::plain(160));
        assert_eq!(text.contains("are practically equal"), is_equal, "{text}");
    }
}
