//! A case with a background and without: the difference over pairs of repetitions, what lay
//! beneath it, and how table and page say so.

use weigh_model::background::BackgroundRan;
use weigh_model::event::Event;
use weigh_report::page::{Provenance, page};
use weigh_report::summary::{Comparison, Verdict};
use weigh_report::table::render;
use weigh_report::{Style, Summary};

use crate::story::{Told, started, whole};

/// Five rounds on a machine that becomes slower by 200 us a round; the background costs 50 us, and
/// covered all of every window but the last.
fn run() -> Vec<Event> {
    let mut events = vec![started("constant")];
    for repetition in 0..5 {
        for state in ["off", "on"] {
            let told = Told { repetition, ..Told::new("http1", None, "reference") };
            let id = format!("{state}-{repetition}");
            let is_on = state == "on";
            let wobble = if repetition % 2 == 0 { 1.0 } else { -1.0 };
            let value = 300_000.0 + 200_000.0 * f64::from(repetition);
            let value = if is_on { value + 50_000.0 + wobble * 2_000.0 } else { value };
            for event in told.events() {
                if let Event::TrialFinished(mut trial) = event {
                    trial.trial.clone_from(&id);
                    trial.point.insert("background".to_owned(), state.into());
                    trial.metrics.insert("response_time_ns.p50".to_owned(), value);
                    trial.samples.insert("response_time_ns".to_owned(), 1_000);
                    if is_on {
                        let ran = BackgroundRan {
                            trial: id.clone(),
                            point: trial.point.clone(),
                            words: "mqtt qos=0 at reference, publish, 10 connections".to_owned(),
                            target: "weigh 0 reference mqtt".to_owned(),
                            overlap_ratio: if repetition == 4 { 0.75 } else { 1.0 },
                            window_ns: 1_000_000_000,
                            offered_per_s: Some(1_000.0),
                            sent_per_s: 1_000.0 - f64::from(repetition),
                            shares_core: false,
                            ledger: whole(2_000),
                            metrics: Default::default(),
                            intervals: Vec::new(),
                        };
                        events.push(Event::BackgroundRan(Box::new(ran)));
                    }
                    events.push(Event::TrialFinished(trial));
                }
            }
        }
    }
    events
}

fn paired(summary: &Summary) -> &Comparison {
    let mut all = summary.comparisons.iter().filter(|own| own.factor == "background");
    all.find(|own| own.metric == "response_time_ns.p50").unwrap()
}

/// By independent samples 50 us would drown in rounds that differ by 200; the ends are those of
/// Student's t with 4 degrees of freedom over 52, 48, 52, 48 and 52 us.
#[test]
fn the_difference_is_over_pairs_of_one_round() {
    let summary = Summary::from_events(&run()).unwrap();
    let found = paired(&summary);
    let difference = found.difference.unwrap();
    assert!((difference.value - 50_400.0).abs() < 1e-6, "{difference:?}");
    let half = 2.776_445_105_197_794 * (4_800_000.0_f64 / 5.0).sqrt();
    assert!((difference.high.unwrap() - difference.value - half).abs() < 1e-3, "{difference:?}");
    assert_eq!((difference.pairs, found.verdict), (5, Verdict::Higher));
    assert!(found.left.contains("background=on") && found.right.contains("background=off"));
    assert!(found.ratio.unwrap().low.unwrap() > 1.0);
    let unpaired = summary.comparisons.iter().filter(|own| own.difference.is_none());
    assert_eq!(unpaired.filter(|own| own.verdict != Verdict::Refused).count(), 0);
}

#[test]
fn a_background_is_reported_with_its_case() {
    let summary = Summary::from_events(&run()).unwrap();
    let [told] = &summary.interference[..] else { panic!("{:?}", summary.interference) };
    assert_eq!(told.overlap_ratio, 0.75, "the least of all repetitions");
    assert_eq!((told.sent_per_s, told.ledger.sent), (998.0, 10_000));
    assert_eq!(told.baseline.as_ref(), Some(&paired(&summary).right));
    let text = render(&summary, Style::plain(240));
    for part in [
        "with a background, minus the baseline without it",
        "background mqtt qos=0 at reference, publish, 10 connections",
        "998/s sent, 75 % of the window covered, 0 lost",
        "median response time +50.4 ± 2.7 µs",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    let html = page(&summary, &run(), &Provenance { journal_sha256: None });
    assert!(html.contains("Under a background") && html.contains("+50.4 ± 2.7 µs"));
}

/// A journal of which only the loaded trials are left says so, and compares nothing.
#[test]
fn without_its_baseline_there_is_no_difference() {
    let is_left = |event: &Event| match event {
        Event::TrialFinished(trial) => trial.trial.starts_with("on-"),
        _ => true,
    };
    let events: Vec<Event> = run().into_iter().filter(is_left).collect();
    let summary = Summary::from_events(&events).unwrap();
    assert_eq!(summary.interference[0].baseline, None);
    assert!(summary.comparisons.is_empty());
    assert!(render(&summary, Style::plain(240)).contains("no baseline was measured"));
}
