use std::collections::BTreeMap;

use serde_json::json;
use weigh_model::event::{Event, HostFacts, JOURNAL_SCHEMA, RunStarted, Setup};
use weigh_model::ledger::{Cause, Ledger};
use weigh_model::plan::Plan;
use weigh_model::{Guarantee, Warning};

use super::*;
use crate::summary::pairs::LANE;
use crate::summary::{Cell, Comparison, Failure, Judged, Metric, Ratio, Threshold, Verdict};

const CPU: &str = "target_cpu_us_per_message";
const P99: &str = "response_time_ns.p99";

/// A summary without cells.
fn empty() -> Summary {
    let plan = "name = \"compare\"\nseed = 7\n[load]\npattern = \"deliver\"\nconnections = 60\n\
                subscribers = 1\ntopology = \"fan-in\"\nmessages = 10000\nwarmup = \"0s\"\n\
                arrival = \"constant\"\nrate = \"1000/s\"\nthink = \"0s\"\nsplit = \"exact\"\n\
                body = \"readings\"\ntimeout = \"5s\"\n[repeat]\ncount = 5\ncool_down = \"0s\"\n\
                [[case]]\nprotocol = \"mqtt\"\n";
    let plan: Plan = toml::from_str(plan).unwrap();
    let started = RunStarted {
        schema: JOURNAL_SCHEMA.to_owned(),
        id: "2026-11-21T01-02-03-compare".to_owned(),
        started: "2026-11-21T01:02:03Z".to_owned(),
        version: "0.1.0".to_owned(),
        host: HostFacts::default(),
        plan,
        setup: Setup::default(),
        baseline: Vec::new(),
        energy: None,
    };
    let finished = Event::RunFinished { outcome: "done".to_owned() };
    Summary::from_events(&[Event::RunStarted(Box::new(started)), finished]).unwrap()
}

fn cell(name: &str, figures: &[(&str, f64)]) -> Cell {
    let metric = |(name, value): &(&str, f64)| {
        let values = [0.99, 1.0, 1.01, 1.0, 1.0].map(|factor| factor * value);
        ((*name).to_owned(), Metric::new(name, &values))
    };
    Cell {
        name: name.to_owned(),
        point: BTreeMap::from([("protocol".to_owned(), json!(name))]),
        guarantee: Guarantee::AtLeastOnce,
        durability: None,
        target: String::new(),
        repetitions: 5,
        valid: true,
        metrics: figures.iter().map(metric).collect(),
        samples: BTreeMap::new(),
        ledger: Ledger { sent: 1_000, lost: Some(0), ..Ledger::zero() },
        warnings: Vec::new(),
        granted: BTreeMap::new(),
        steady_state: BTreeMap::new(),
        scene: BTreeMap::new(),
    }
}

/// Left over right in `metric`, with the verdict that follows, significant among all or not.
fn compared(metric: &str, [left, right]: [&str; 2], ratio: f64, stands: bool) -> Comparison {
    let verdict = match ratio {
        low if low < 0.95 => Verdict::Lower,
        high if high > 1.05 => Verdict::Higher,
        _ => Verdict::TooClose,
    };
    Comparison {
        metric: metric.to_owned(),
        left: left.to_owned(),
        right: right.to_owned(),
        factor: LANE.to_owned(),
        ratio: Some(Ratio { value: ratio, low: Some(ratio - 0.01), high: Some(ratio + 0.01) }),
        verdict,
        reason: None,
        p: Some(0.01),
        rank_p: None,
        shift: None,
        difference: None,
        stands,
    }
}

fn refused(metric: &str, pair: [&str; 2], reason: &str) -> Comparison {
    Comparison {
        verdict: Verdict::Refused,
        ratio: None,
        reason: Some(reason.to_owned()),
        ..compared(metric, pair, 1.0, false)
    }
}

fn with(cells: &[Cell], comparisons: &[Comparison]) -> Summary {
    Summary { cells: cells.to_vec(), comparisons: comparisons.to_vec(), ..empty() }
}

fn text(summary: &Summary, kind: AnswerKind) -> String {
    let lines = lines(summary);
    assert!(lines.len() <= LINES_MAX, "{lines:?}");
    let found = lines.into_iter().find(|line| line.kind == kind);
    found.map_or(String::new(), |line| line.text)
}

fn three() -> [Cell; 3] {
    [("a", 10.0), ("b", 20.0), ("c", 40.0)].map(|(name, cpu)| cell(name, &[(CPU, cpu)]))
}

/// Repeating does not decide what may be the generator's own delay.
#[test]
fn a_difference_that_may_be_lag_is_not_to_be_repeated() {
    let lag = Comparison {
        reason: Some("up to 5 µs of b is generator lag".to_owned()),
        ..compared("response_time_ns.p99", ["a", "b"], 1.0, false)
    };
    let said = |own: &[Comparison]| text(&with(&three(), own), AnswerKind::Undecided);
    assert_eq!(
        said(std::slice::from_ref(&lag)),
        "Too close to call: 1 of 1 comparison of two cases by time; generator lag may be the cause."
    );
    assert_eq!(
        said(&[lag, compared(CPU, ["a", "b"], 1.0, false)]),
        "Too close to call: 2 of 2 comparisons of two cases by CPU and time; --reps 10 may decide \
         one, but not the 1 where the generator may have sent too late."
    );
}

#[test]
fn a_clear_winner_is_named_with_its_figure_and_the_next() {
    let summary = with(
        &three(),
        &[
            compared(CPU, ["a", "b"], 0.5, true),
            compared(CPU, ["a", "c"], 0.25, true),
            compared(CPU, ["b", "c"], 1.0, false),
        ],
    );
    assert_eq!(
        text(&summary, AnswerKind::Cpu),
        "Least server CPU per message: a (10.0 µs, 50 % less than b)."
    );
    assert_eq!(
        text(&summary, AnswerKind::Undecided),
        "Too close to call: 1 of 3 comparisons of two cases by CPU; --reps 10 may decide."
    );
    // The same from the other side of every pair.
    let turned = with(
        &three(),
        &[
            compared(CPU, ["b", "a"], 2.0, true),
            compared(CPU, ["c", "a"], 4.0, true),
            compared(CPU, ["c", "b"], 2.0, true),
        ],
    );
    assert_eq!(text(&turned, AnswerKind::Cpu), text(&summary, AnswerKind::Cpu));
    assert_eq!(text(&turned, AnswerKind::Undecided), "");
}

/// Every way in which one verdict of the lowest is missing: nobody is called lowest.
#[test]
fn no_case_is_named_lowest_over_a_verdict_that_is_missing() {
    let sure = compared(CPU, ["a", "c"], 0.25, true);
    let others = compared(CPU, ["b", "c"], 0.5, true);
    for (open, said) in [
        (compared(CPU, ["a", "b"], 0.5, false), "too close to call between a and b; c is higher."),
        (compared(CPU, ["a", "b"], 1.0, false), "too close to call between a and b; c is higher."),
        (compared(CPU, ["b", "a"], 2.0, false), "too close to call between a and b; c is higher."),
        (refused(CPU, ["a", "b"], "x"), "too close to call, or not compared, between a and b."),
    ] {
        let summary = with(&three(), &[open, sure.clone(), others.clone()]);
        let said = format!("Least server CPU per message: {said}");
        assert_eq!(text(&summary, AnswerKind::Cpu), said);
    }
    let all_open = ["a b", "a c", "b c"].map(|pair| {
        let (left, right) = pair.split_once(' ').unwrap();
        compared(CPU, [left, right], 0.5, false)
    });
    let said = text(&with(&three(), &all_open), AnswerKind::Cpu);
    assert_eq!(said, "Least server CPU per message: too close to call among a, b and c.");
}

#[test]
fn cases_within_one_percent_are_practically_equal() {
    let equal = Comparison {
        verdict: Verdict::PracticallyEqual,
        ..compared(CPU, ["a", "b"], 1.001, false)
    };
    let below = ["a", "b"].map(|one| compared(CPU, [one, "c"], 0.5, true));
    let summary = with(&three(), &[vec![equal], below.to_vec()].concat());
    assert_eq!(
        text(&summary, AnswerKind::Cpu),
        "Least server CPU per message: a and b are practically equal."
    );
}

#[test]
fn guarantees_are_answered_one_by_one_and_never_together() {
    let mut cells = three().to_vec();
    cells.push(cell("d", &[(CPU, 80.0)]));
    for cell in &mut cells[..2] {
        cell.guarantee = Guarantee::AtMostOnce;
    }
    let apart = "guarantees differ: at most once and at least once (L08)";
    let summary = with(
        &cells,
        &[
            compared(CPU, ["a", "b"], 0.5, true),
            compared(CPU, ["c", "d"], 1.0, false),
            refused(CPU, ["a", "c"], apart),
            refused(CPU, ["b", "d"], apart),
        ],
    );
    assert_eq!(
        text(&summary, AnswerKind::Cpu),
        "Least server CPU per message, guarantee at most once: a (10.0 µs, 50 % less than b). \
         Guarantee at least once: too close to call between c and d."
    );
    assert_eq!(
        text(&summary, AnswerKind::Undecided),
        "Too close to call: 1 of 2 comparisons of two cases by CPU; --reps 10 may decide. Not \
         compared: cases with different guarantees."
    );
}

#[test]
fn a_refused_pair_says_why_and_what_to_type() {
    let patterns = "patterns differ: deliver and request (L18)";
    let few = "fewer than 3 repetitions: no interval, so no verdict";
    let summary = with(
        &three(),
        &[
            refused(CPU, ["a", "b"], patterns),
            refused(CPU, ["a", "c"], few),
            refused(CPU, ["b", "c"], "an own reason"),
        ],
    );
    assert_eq!(text(&summary, AnswerKind::Cpu), "", "nothing was compared");
    assert_eq!(
        text(&summary, AnswerKind::Undecided),
        "Not compared: pairs of the patterns deliver and request, which do different work (type \
         --pattern publish); too few repetitions (type --reps 5); b and c: an own reason."
    );
    let compared =
        with(&three(), &[compared(CPU, ["a", "b"], 0.5, true), refused(CPU, ["a", "c"], patterns)]);
    assert_eq!(
        text(&compared, AnswerKind::Cpu),
        "Least server CPU per message: a (10.0 µs, 50 % less than b); c was not compared."
    );
}

/// A case is called higher only if it is above each of those that may be the lowest.
#[test]
fn what_is_above_all_that_are_close_is_named() {
    let mut cells = three().to_vec();
    cells.push(cell("d", &[(CPU, 80.0)]));
    let close = compared(CPU, ["a", "b"], 1.0, false);
    let above = |cell: &'static str| ["a", "b"].map(|one| compared(CPU, [one, cell], 0.5, true));
    let half = [compared(CPU, ["a", "d"], 0.5, true), compared(CPU, ["b", "d"], 0.9, false)];
    for (others, said) in [
        ([above("c"), above("d")].concat(), "; 2 others are higher."),
        ([above("c"), half].concat(), "; c is higher."),
    ] {
        let summary = with(&cells, &[vec![close.clone()], others].concat());
        let said = format!("Least server CPU per message: too close to call between a and b{said}");
        assert_eq!(text(&summary, AnswerKind::Cpu), said);
    }
}

/// Two places of an axis, at which another lane is lowest.
#[test]
fn places_are_counted_where_the_lowest_differs() {
    let at = |name: &str, place: u32| {
        let mut cell = cell(&format!("{name} connections={place}"), &[(P99, 1e6)]);
        cell.point = BTreeMap::from([
            ("protocol".to_owned(), json!(name)),
            ("load.connections".to_owned(), json!(place)),
        ]);
        cell
    };
    let cells = [at("a", 1), at("b", 1), at("a", 2), at("b", 2)];
    let pair = |place: u32, ratio: f64, stands: bool| {
        let [left, right] = ["a", "b"].map(|name| format!("{name} connections={place}"));
        compared(P99, [&left, &right], ratio, stands)
    };
    let time = |pairs: [Comparison; 2]| text(&with(&cells, &pairs), AnswerKind::Time);
    assert_eq!(
        time([pair(1, 0.5, true), pair(2, 0.75, true)]),
        "Fastest at p99 (response time): a at both places (25 to 50 % less than b)."
    );
    assert_eq!(
        time([pair(1, 0.5, true), pair(2, 2.0, true)]),
        "Fastest at p99 (response time): a at 1 of 2 places, b at 1."
    );
    assert_eq!(
        time([pair(1, 0.5, true), pair(2, 0.5, false)]),
        "Fastest at p99 (response time): a at 1 of 2 places, too close to call at 1."
    );
    assert_eq!(
        time([pair(1, 1.0, false), pair(2, 0.5, false)]),
        "Fastest at p99 (response time): too close to call between a and b at both places."
    );
}

#[test]
fn another_time_is_named_where_nothing_is_confirmed() {
    let delivery = "delivery_time_ns.p99";
    let cells = ["a", "b"].map(|name| cell(name, &[(delivery, 2e6)]));
    let summary = with(&cells, &[compared(delivery, ["a", "b"], 0.5, true)]);
    assert_eq!(
        text(&summary, AnswerKind::Time),
        "Fastest at p99 (delivery time): a (2.00 ms, 50 % less than b)."
    );
}

#[test]
fn losses_have_their_case_their_share_and_their_cause() {
    let none = text(&with(&three(), &[]), AnswerKind::Loss);
    assert_eq!(none, "No message was lost of 3,000 sent.");
    let mut cells = three();
    cells[1].ledger.lost = Some(28);
    cells[1].ledger.causes = BTreeMap::from([(Cause::Timeout, 8), (Cause::ServerDropped, 20)]);
    assert_eq!(
        text(&with(&cells, &[]), AnswerKind::Loss),
        "Only b lost messages: 28 of 1,000 messages (2.80 %: 20 server dropped, 8 timeout)."
    );
    cells[0].ledger.lost = Some(1);
    cells[2].ledger.lost = None;
    cells[2].ledger.late = 3;
    assert_eq!(
        text(&with(&cells, &[]), AnswerKind::Loss),
        "2 of 3 cases lost messages, the largest share in b: 28 of 1,000 messages (2.80 %: 20 \
         server dropped, 8 timeout); 3 arrived after the timeout."
    );
    for cell in &mut cells {
        cell.ledger.lost = None;
    }
    let unknown = text(&with(&cells, &[]), AnswerKind::Loss);
    assert!(unknown.starts_with("Arrivals were not observed"), "{unknown}");
}

#[test]
fn an_invalid_case_is_said_first_with_what_to_type() {
    let mut cells = three();
    cells[0].valid = false;
    cells[0].warnings = vec![Warning::generator_limited(99.0).record()];
    let advice = cells[0].warnings[0].advice.clone();
    let some = lines(&with(&cells, &[]));
    assert_eq!(some[0].kind, AnswerKind::Validity);
    let said = format!("1 of 3 cases is invalid and not compared (generator-limited): {advice}.");
    assert_eq!(some[0].text, said);
    for cell in &mut cells {
        cell.valid = false;
    }
    let all = text(&with(&cells, &[]), AnswerKind::Validity);
    assert!(all.starts_with("Do not use this result: all 3 cases are invalid"), "{all}");
    let usable = text(&with(&three(), &[]), AnswerKind::Validity);
    assert_eq!(usable, "All 3 cases are valid.");
}

#[test]
fn a_run_that_ended_early_or_lacks_trials_says_so() {
    let failure = Failure {
        trial: "x".to_owned(),
        point: BTreeMap::from([("protocol".to_owned(), json!("tcp"))]),
        error: "the port 1883 is in use\nhelp: stop it".to_owned(),
    };
    let mut summary = Summary { failures: vec![failure], ..with(&three(), &[]) };
    summary.run.outcome = "interrupted".to_owned();
    assert_eq!(
        text(&summary, AnswerKind::Validity),
        "The run is interrupted: these are its results so far. 1 trial could not be done, tcp on \
         reference: the port 1883 is in use."
    );
    assert_eq!(text(&empty(), AnswerKind::Validity), "Nothing was measured.");
}

#[test]
fn thresholds_come_before_everything() {
    let failed = |holds: bool| Threshold {
        condition: "loss == 0".to_owned(),
        metric: "loss".to_owned(),
        holds,
        reason: None,
        failed: if holds { Vec::new() } else { vec![Judged::without("a".to_owned(), "x")] },
        undecided: Vec::new(),
        close: Vec::new(),
    };
    let summary = Summary { thresholds: vec![failed(true), failed(false)], ..with(&three(), &[]) };
    let lines = lines(&summary);
    assert_eq!(lines[0].kind, AnswerKind::Thresholds);
    assert_eq!(lines[0].text, "1 of 2 thresholds failed: loss == 0.");
}

#[test]
fn a_single_case_has_figures_and_no_word_of_a_comparison() {
    let one = cell("a", &[(CPU, 10.0), (P99, 2e6), ("wire.bytes_per_message", 300.0)]);
    let lines: Vec<String> = lines(&with(&[one], &[])).into_iter().map(|line| line.text).collect();
    assert_eq!(
        lines,
        [
            "The result is valid.",
            "No message was lost of 1,000 sent.",
            "Server CPU per message: 10.00 ± 0.09 µs.",
            "Bytes on the wire per message: 300 ± 3 B.",
            "p99 of response time: 2.00 ± 0.02 ms.",
        ]
    );
}

#[test]
fn there_are_never_more_than_six_lines() {
    let mut all: Vec<AnswerLine> = Vec::new();
    for kind in [
        AnswerKind::Thresholds,
        AnswerKind::Validity,
        AnswerKind::Background,
        AnswerKind::Axis,
        AnswerKind::Loss,
        AnswerKind::Cpu,
        AnswerKind::Bytes,
        AnswerKind::Time,
        AnswerKind::Undecided,
    ] {
        all.push(AnswerLine { kind, text: String::new() });
    }
    let kept: Vec<AnswerKind> = limited(all).into_iter().map(|line| line.kind).collect();
    assert_eq!(
        kept,
        [
            AnswerKind::Thresholds,
            AnswerKind::Validity,
            AnswerKind::Background,
            AnswerKind::Loss,
            AnswerKind::Cpu,
            AnswerKind::Time,
        ]
    );
}

#[test]
fn a_title_reads_as_a_person_would_write_it() {
    let pair = compared(CPU, ["a", "b"], 0.5, true);
    let title = |cells: &[Cell]| question(&with(cells, std::slice::from_ref(&pair)));
    let own = |protocol: &str, target: &str| {
        let mut own = cell(&format!("{protocol} on {target}"), &[]);
        own.point = BTreeMap::from([
            ("protocol".to_owned(), json!(protocol)),
            ("target".to_owned(), json!(target)),
        ]);
        own
    };
    let load = "deliver, 60 connections, 1,000/s";
    let [mqtt, http] = ["mqtt", "http1"].map(|protocol| own(protocol, "reference"));
    let both = [mqtt.clone(), http];
    assert_eq!(title(&both), format!("MQTT and HTTP/1.1 compared: {load}"));
    assert_eq!(question(&with(&both, &[])), format!("MQTT and HTTP/1.1: {load}"));
    let one = with(&[own("mqtt", "mosquitto")], &[]);
    assert_eq!(question(&one), format!("MQTT on mosquitto: {load}"));
    assert_eq!(
        title(&[own("mqtt", "mosquitto"), mqtt]),
        format!("MQTT on mosquitto and reference compared: {load}")
    );
    let mut asked = empty();
    asked.run.plan.question = Some("Does it hold?".to_owned());
    assert_eq!(question(&asked), "Does it hold?");
}

/// The stored search met its goal at the largest load that it was allowed to try.
#[test]
fn a_search_is_answered_by_its_bounds() {
    let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/stored/limit");
    let run = crate::RunFolder::find(std::path::Path::new(runs), "latest").unwrap();
    let summary = Summary::from_events(&run.read_journal().unwrap().events).unwrap();
    assert_eq!(question(&summary), "The limit of TCP by rate");
    assert_eq!(
        lines(&summary),
        [AnswerLine {
            kind: AnswerKind::Limit,
            text: "tcp against reference: loss <= 1%: at least 8,000/s, the largest load allowed; \
                   no upper bound."
                .to_owned(),
        }]
    );
}
