//! Answers by recorded runs: each word, and every kind of quantity.

use weigh_model::Warning;
use weigh_study::outcome::{Answer, ClaimOutcome, Judged};
use weigh_study::{Outcome, Printed, Replayed, RunState, Runs, Scale, Study, Why};

use crate::fixture::{outcome, runs, study};

fn judged(change: impl FnOnce(&mut Runs)) -> Outcome {
    let mut runs = runs();
    change(&mut runs);
    outcome(&study(), &runs, Scale::Full)
}

fn claim<'o>(outcome: &'o Outcome, id: &str) -> &'o ClaimOutcome {
    outcome.claims.iter().find(|claim| claim.id == id).unwrap()
}

fn condition<'c>(claim: &'c ClaimOutcome, begins: &str) -> &'c Judged {
    claim.conditions.iter().find(|judged| judged.text.starts_with(begins)).unwrap()
}

#[test]
fn a_claim_that_holds_in_the_replay_is_reproduced() {
    let outcome = judged(|_| ());
    let claim = claim(&outcome, "C01");
    assert_eq!(claim.replays[0].answer, Replayed::Reproduced, "{claim:#?}");
    assert_eq!((claim.printed, claim.why), (Printed::NothingToCheck, Why::NotAsked));
    let begin = "Reproduced with a stand-in: capacity is 1,440 (";
    assert!(claim.sentence.starts_with(begin), "{}", claim.sentence);
    assert!(claim.replays[0].host.contains(" core"), "{:?}", claim.replays[0]);
    // The bounds of the search, and all that lies between them.
    let capacity = condition(claim, "capacity");
    assert_eq!((capacity.estimate, capacity.n), (Some(1440.0), None));
    assert_eq!(capacity.reasons, ["capacity: found between 1,280 and 1,600"]);
    let (low, high) = (capacity.low.unwrap(), capacity.high.unwrap());
    // One run: twice as far from the middle as the search itself says.
    assert!((low - 1136.0).abs() < 1.0 && (high - 1744.0).abs() < 1.0, "{low} {high}");
    let cell = &claim.cells[0];
    assert_eq!((cell.value, cell.unit.as_str(), cell.flags.len()), (7.5, "percent", 1));
}

/// Words before a condition stand in the sentence, and change nothing else.
#[test]
fn a_sentence_says_what_the_words_of_a_condition_say() {
    let mut texts = crate::fixture::texts();
    crate::fixture::replace(&mut texts.study, "[\"capacity ", "[\"rate, without loss: capacity ");
    let study = Study::read(&texts, &crate::fixture::TestWorld)
        .unwrap_or_else(|wrong| panic!("{}", wrong.render(&texts, false)));
    let (told, plain) = (outcome(&study, &runs(), Scale::Full), judged(|_| ()));
    let (told, plain) = (claim(&told, "C01"), claim(&plain, "C01"));
    let begin = "Reproduced with a stand-in: rate, without loss, is 1,440 (";
    assert!(told.sentence.starts_with(begin), "{}", told.sentence);
    assert_eq!(told.sentence.replace("rate, without loss,", "capacity"), plain.sentence);
    let (own, other) = (condition(told, "capacity"), condition(plain, "capacity"));
    assert_eq!((own.words.as_str(), other.words.as_str()), ("rate, without loss", ""));
    assert_eq!((&own.text, own.answer, own.estimate), (&other.text, other.answer, other.estimate));
}

#[test]
fn a_cause_is_shown_with_the_claim() {
    let outcome = judged(|_| ());
    let claim = claim(&outcome, "C02");
    assert_eq!((claim.replays[0].answer, claim.why), (Replayed::Reproduced, Why::CauseShown));
    for part in ["Reproduced with a stand-in: ", "Cause shown: "] {
        assert!(claim.sentence.contains(part), "{part}: {}", claim.sentence);
    }
    // Counts are exact: 56,700 of 56,700, and 4,300 over 3,300.
    let lost = condition(claim, "disconnected");
    assert_eq!((lost.estimate, lost.low, lost.n), (Some(1.0), Some(1.0), None));
    let received = condition(claim, "received_more").estimate.unwrap();
    assert!((received - 4300.0 / 3300.0).abs() < 1e-12, "{received}");
    let starts = condition(claim, "starts");
    // At 500 all are accepted and at 20,000 not: it begins somewhere between the two, no more is
    // known. (The value 20,000 itself, as it once stood here, is where it was first seen.)
    assert_eq!((starts.estimate, starts.answer), (Some(10_250.0), Answer::Yes));
    let (low, high) = (starts.low.unwrap(), starts.high.unwrap());
    let tail = 0.025 * 19_500.0;
    assert!((low - (500.0 + tail)).abs() < 20.0, "{low}");
    assert!((high - (20_000.0 - tail)).abs() < 20.0, "{high}");
    assert_eq!(starts.reasons, ["starts: it becomes < 1 between 500 and 20,000"]);
}

#[test]
fn what_the_named_software_excludes_is_contradicted() {
    let outcome = judged(|_| ());
    let claim = claim(&outcome, "C03");
    assert!(claim.is_contradicted, "{claim:#?}");
    assert_eq!(claim.replays[0].answer, Replayed::NotReproduced);
    let begin =
        "Contradicted by the software that it names: lost is 0, not more than 0; slower is ";
    assert!(claim.sentence.starts_with(begin), "{}", claim.sentence);
    // Pair by pair of repetitions, from the recorded values.
    let with = [206_920.88, 163_968.72, 462_290.8];
    let without = [155_315.92, 230_031.84, 236_747.68];
    let ratios = with.iter().zip(without).map(|(with, without)| with / without);
    let mean = ratios.sum::<f64>() / 3.0;
    let slower = condition(claim, "slower");
    assert!((slower.estimate.unwrap() - mean).abs() < 1e-4, "{slower:?} {mean}");
    assert_eq!(slower.quantities[0].links.len(), 2);
}

/// The same runs on a stand-in contradict nobody.
#[test]
fn a_stand_in_yields_not_reproduced_at_most() {
    let mut texts = crate::fixture::texts();
    crate::fixture::replace(&mut texts.study, "same = \"the reference", "stand_in = \"a");
    let read = Study::read(&texts, &crate::fixture::TestWorld);
    let study = read.unwrap_or_else(|wrong| panic!("{}", wrong.render(&texts, false)));
    let outcome = outcome(&study, &runs(), Scale::Full);
    let claim = claim(&outcome, "C03");
    assert_eq!(claim.replays[0].answer, Replayed::NotReproduced);
    assert!(!claim.is_contradicted && !claim.sentence.contains("ontradicted"), "{claim:#?}");
}

/// Arithmetic forbids a claim without a run.
#[test]
fn what_arithmetic_forbids_is_impossible() {
    let mut texts = crate::fixture::texts();
    crate::fixture::replace(&mut texts.study, "longest / 111.343 in 1..1", "longest < 1");
    let read = Study::read(&texts, &crate::fixture::TestWorld);
    let study = read.unwrap_or_else(|wrong| panic!("{}", wrong.render(&texts, false)));
    let outcome = outcome(&study, &Runs::new(), Scale::Full);
    let claim = claim(&outcome, "C06");
    assert_eq!((claim.printed, claim.is_contradicted), (Printed::Impossible, true));
    assert!(claim.sentence.starts_with("Contradicted: arithmetic forbids it: longest is 111, not"));
}

/// A row of the table: 30 percent printed, and the measured share with its interval and ratio.
#[test]
fn printed_and_measured_values_stand_side_by_side() {
    let outcome = judged(|_| ());
    let [row] = &claim(&outcome, "C02").compared[..] else { panic!() };
    let (theirs, here) = (row.theirs.unwrap(), row.here.unwrap());
    assert_eq!((row.unit.as_str(), row.theirs_printed.as_str()), ("percent", "7.5"));
    assert_eq!(theirs, 7.5);
    assert!((row.ratio.unwrap() - here / theirs).abs() < 1e-12, "{row:?}");
    assert!(row.ratio_low <= row.ratio && row.ratio <= row.ratio_high, "{row:?}");
    assert!(row.reason.is_empty() && !row.links.is_empty(), "{row:?}");
}

/// The value at which `(http + more) / mqtt > 10` turns is 10 mqtt - http.
#[test]
fn the_value_at_which_an_answer_turns_is_solved() {
    let outcome = judged(|_| ());
    let claim = claim(&outcome, "C05");
    let [found] = &claim.break_even[..] else { panic!() };
    let of = |name: &str| {
        let quantities = &claim.conditions[0].quantities;
        quantities.iter().find(|own| own.name == name).and_then(|own| own.value).unwrap()
    };
    let exact = 10.0 * of("mqtt") - of("http");
    assert!((found.value.unwrap() - exact).abs() < 1e-3 * exact, "{found:?} {exact}");
    assert!(found.low < found.value && found.value < found.high, "{found:?}");
    assert!(found.sentence.contains(" us of work for each HTTP message (95 % CI "), "{found:?}");
}

#[test]
fn what_takes_something_else_is_not_run_and_what_is_open_is_undecided() {
    let outcome = judged(|_| ());
    let battery = claim(&outcome, "C04");
    assert_eq!(battery.replays[0].answer, Replayed::NotRun);
    assert_eq!(battery.sentence, "Not replayed: It takes a battery.");
    // Three repetitions on a busy machine leave a ratio open, and say so.
    let open = claim(&outcome, "C05");
    assert_eq!(open.replays[0].answer, Replayed::Undecided, "{open:#?}");
    assert!(open.sentence.contains("lies partly outside 0.99 to 1.01"), "{}", open.sentence);
    assert_eq!(open.conditions[0].n, Some(6));
    let invalid = claim(&outcome, "C08");
    assert_eq!(invalid.replays[0].answer, Replayed::Undecided);
    assert!(invalid.sentence.contains("is not valid"), "{}", invalid.sentence);
}

/// Where the generator was the limit a figure says nothing of the target: it decides a claim that
/// is about just this and says so, and no other.
#[test]
fn a_cell_that_the_generator_limited_decides_only_what_is_about_that() {
    let mut runs = runs();
    let Some(RunState::Made(made)) = runs.get_mut("right/cost") else { panic!() };
    for cell in &mut made.summary.cells {
        cell.warnings.push(Warning::generator_limited(99.0).record());
    }
    let plain = outcome(&study(), &runs, Scale::Full);
    let open = claim(&plain, "C05");
    assert_eq!(open.replays[0].answer, Replayed::Undecided);
    assert!(open.sentence.contains("is not valid: the generator used 99 %"), "{}", open.sentence);
    let mut texts = crate::fixture::texts();
    for figure in ["target_cpu_us_per_message", "response_time_ns.mean"] {
        for protocol in ["http", "mqtt"] {
            let at = format!("metric = \"{figure}\", at = {{ protocol = \"{protocol}\" }}");
            texts.study = texts.study.replace(&at, &format!("{at}, even_limited = true"));
        }
    }
    let read = Study::read(&texts, &crate::fixture::TestWorld);
    let study = read.unwrap_or_else(|wrong| panic!("{}", wrong.render(&texts, false)));
    let about = outcome(&study, &runs, Scale::Full);
    let told = condition(claim(&about, "C05"), "http / mqtt");
    assert!(told.estimate.is_some(), "{told:?}");
    let reason = "http: the generator used 99 % of its core: it was the limit";
    assert!(told.reasons.iter().any(|own| own == reason), "{told:?}");
    assert!(told.quantities[0].text.ends_with(", even if the generator was the limit"));
    // Other causes still make a figure invalid.
    let late = claim(&about, "C08");
    assert_eq!(late.replays[0].answer, Replayed::Undecided);
    assert!(late.sentence.contains("is not valid: send lag"), "{}", late.sentence);
}

#[test]
fn published_figures_are_exact_and_the_audit_is_asked() {
    let outcome = judged(|_| ());
    let claim = claim(&outcome, "C06");
    assert_eq!((claim.printed, claim.why), (Printed::Consistent, Why::CauseShown));
    assert_eq!(claim.replays[0].answer, Replayed::NotRun);
    let slope = condition(claim, "cost");
    assert_eq!((slope.low, slope.n), (slope.estimate, None));
    assert!(claim.sentence.starts_with("The printed figures agree with it: "), "{claim:#?}");
    let grid = condition(claim, "grid");
    assert_eq!((grid.estimate, condition(claim, "absent").estimate), (Some(1.0), Some(0.0)));
}

#[test]
fn lines_and_spreads_over_repetitions_have_intervals() {
    let outcome = judged(|_| ());
    let claim = claim(&outcome, "C07");
    let slope = condition(claim, "slope");
    // The slope of the means is the mean of the slopes.
    let means = [(2.0, 22.667), (4.0, 13.199), (8.0, 5.768), (16.0, 5.254)];
    let x = means.iter().map(|point| point.0).sum::<f64>() / 4.0;
    let y = means.iter().map(|point| point.1).sum::<f64>() / 4.0;
    let both: f64 = means.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let squares: f64 = means.iter().map(|point| (point.0 - x).powi(2)).sum();
    assert!((slope.estimate.unwrap() - both / squares).abs() < 1e-3, "{slope:?}");
    assert!(slope.low.unwrap() < slope.estimate.unwrap());
    let spread = condition(claim, "spread");
    assert!(spread.low.unwrap() > 0.0 && spread.high.unwrap() > 2.0 * spread.estimate.unwrap());
    let quantity = &condition(claim, "sixteen").quantities[0];
    assert_eq!(quantity.links[0].folder, "published-clients");
    assert_eq!(quantity.n, Some(6));
}

#[test]
fn a_run_that_was_not_made_leaves_its_claims_open_and_no_others() {
    let outcome = judged(|runs| {
        let reason = "mosquitto is not here: weigh targets install mosquitto".to_owned();
        runs.insert("published/burst".to_owned(), RunState::Skipped(reason));
        runs.remove("right/cost");
    });
    let open = claim(&outcome, "C02");
    assert_eq!(open.replays[0].answer, Replayed::NotRun);
    let open = claim(&outcome, "C01");
    assert_eq!(open.replays[0].answer, Replayed::Undecided);
    assert!(open.sentence.contains("weigh targets install mosquitto"), "{}", open.sentence);
    let open = claim(&outcome, "C05");
    assert!(open.sentence.contains("right/cost was not run"), "{}", open.sentence);
    assert_eq!(claim(&outcome, "C06").printed, Printed::Consistent);
    let run = &outcome.experiments[1].runs[0];
    assert!(run.skipped.is_some() && run.folder.is_none());
}

#[test]
fn a_cell_that_is_missing_says_why() {
    let outcome = judged(|runs| {
        let Some(RunState::Made(made)) = runs.get_mut("published/clients") else { panic!() };
        made.summary.cells.retain(|cell| cell.point["load.connections"] != 16);
    });
    let text = &claim(&outcome, "C07").sentence;
    assert!(text.contains("left out, by a stop rule"), "{text}");
    let mut runs = runs();
    let Some(RunState::Made(made)) = runs.get_mut("published/clients") else { panic!() };
    made.summary.cells.retain(|cell| cell.point["load.connections"] != 16);
    let quick = crate::fixture::outcome(&study(), &runs, Scale::Quick);
    let text = &claim(&quick, "C07").sentence;
    assert!(
        text.contains("--scale full only") && text.ends_with("It takes --scale full."),
        "{text}"
    );
}

#[test]
fn one_repetition_tells_no_interval() {
    let outcome = judged(|runs| {
        let Some(RunState::Made(made)) = runs.get_mut("published/clients") else { panic!() };
        for cell in &mut made.summary.cells {
            cell.metrics.values_mut().for_each(|metric| metric.values.truncate(1));
        }
    });
    let claim = claim(&outcome, "C07");
    assert!(claim.conditions.iter().all(|judged| judged.answer == Answer::Undecided));
    assert!(claim.sentence.contains("one repetition"), "{}", claim.sentence);
}

/// A figure and its double, of the same trials: their ratio is the same in every repetition,
/// though each spreads. Taken apart it would have an interval.
#[test]
fn figures_of_the_same_trials_go_together() {
    let mut texts = crate::fixture::texts();
    let (old, new) = ("[\"http / mqtt in 0.99..1.01\"]", "[\"http / mqtt in 2..2\"]");
    crate::fixture::replace(&mut texts.study, old, new);
    let mqtt = |metric: &str, protocol: &str| {
        let at = format!("at = {{ protocol = \"{protocol}\" }}");
        format!("mqtt = {{ run = \"right/cost\", metric = \"{metric}\", {at} }}")
    };
    let other = mqtt("target_cpu_us_per_message", "mqtt");
    let half = mqtt("service_time_ns.mean", "http");
    crate::fixture::replace(&mut texts.study, &other, &half);
    let read = Study::read(&texts, &crate::fixture::TestWorld);
    let study = read.unwrap_or_else(|wrong| panic!("{}", wrong.render(&texts, false)));
    let mut runs = runs();
    let Some(RunState::Made(made)) = runs.get_mut("right/cost") else { panic!() };
    for cell in &mut made.summary.cells {
        let mut double = cell.metrics["target_cpu_us_per_message"].clone();
        double.values.iter_mut().flatten().for_each(|value| *value /= 2.0);
        cell.metrics.insert("service_time_ns.mean".to_owned(), double);
    }
    let outcome = outcome(&study, &runs, Scale::Full);
    let judged = condition(claim(&outcome, "C05"), "http / mqtt");
    assert_eq!((judged.estimate, judged.low, judged.high), (Some(2.0), Some(2.0), Some(2.0)));
    let apart = &judged.quantities[0];
    assert!(apart.low.unwrap() < apart.high.unwrap(), "each of them spreads: {apart:?}");
}

/// Two lanes of a search that differ in their load alone are two quantities, and have draws of
/// their own: with the same bounds neither is known to be the larger one.
#[test]
fn lanes_of_one_title_are_drawn_apart() {
    let mut texts = crate::fixture::texts();
    let lanes = "[[burst-limit.case]]\nload.connections = 20\n[[burst-limit.case]]\n\
                 load.connections = 10\n[burst-limit.limit]";
    let searched = "load.connections = 20\nload.timeout = \"1s\"";
    crate::fixture::replace(&mut texts.plan_right, searched, "load.timeout = \"1s\"");
    crate::fixture::replace(&mut texts.plan_right, "[burst-limit.limit]", lanes);
    let found = "{ run = \"right/burst-limit\", limit = \"capacity_burst\"";
    let of = |connections| format!("{found}, at = {{ \"load.connections\" = {connections} }} }}");
    let old = "replayed = [\"capacity < 20000\", \"accepted in 0..0.5\"]";
    crate::fixture::replace(&mut texts.study, old, "replayed = [\"capacity / other > 1\"]");
    let own = format!("capacity = {}", of(20));
    crate::fixture::replace(&mut texts.study, &format!("capacity = {found} }}"), &own);
    let accepted = "accepted = { run = \"published/burst\", metric = \"acceptance_ratio\", \
                    at = { \"load.messages\" = 20000 } }";
    crate::fixture::replace(&mut texts.study, accepted, &format!("other = {}", of(10)));
    let goal = "goal = \"loss <= 0\" }";
    let at = "goal = \"loss <= 0\", at = { \"load.connections\" = 20 } }";
    crate::fixture::replace(&mut texts.study, goal, at);
    let read = Study::read(&texts, &crate::fixture::TestWorld);
    let study = read.unwrap_or_else(|wrong| panic!("{}", wrong.render(&texts, false)));
    let mut runs = runs();
    let Some(RunState::Made(made)) = runs.get_mut("right/burst-limit") else { panic!() };
    let mut other = made.summary.limits[0].clone();
    other.point.insert("load.connections".to_owned(), 10.into());
    made.summary.limits.push(other);
    let outcome = outcome(&study, &runs, Scale::Full);
    let judged = condition(claim(&outcome, "C01"), "capacity / other");
    assert_eq!(judged.answer, Answer::Undecided, "{judged:?}");
    assert!(judged.low.unwrap() < 0.9 && judged.high.unwrap() > 1.1, "{judged:?}");
}

/// A picture whose run is there and whose cells are not says why.
#[test]
fn a_series_without_cells_says_why() {
    let outcome = judged(|runs| {
        let Some(RunState::Made(made)) = runs.get_mut("published/clients") else { panic!() };
        made.summary.cells.clear();
    });
    let series = &outcome.figures[0].series[1];
    let missing = series.missing.as_deref().unwrap_or_default();
    assert!(missing.contains("left out, by a stop rule"), "{missing}");
    assert!(series.points.is_empty());
}

/// Of all conditions those that rest on intervals may be false by chance.
#[test]
fn how_many_answers_may_be_false_is_counted() {
    let outcome = judged(|_| ());
    let certainty = outcome.certainty;
    assert!(certainty.uncertain > 0 && certainty.uncertain < certainty.judged, "{certainty:?}");
    assert!((certainty.false_max - 0.05 * certainty.uncertain as f64).abs() < 1e-12);
}

#[test]
fn pictures_have_both_sides_on_one_axis() {
    let outcome = judged(|_| ());
    let figure = &outcome.figures[0];
    let [theirs, ours] = &figure.series[..] else { panic!("{figure:?}") };
    let xs = |series: &weigh_study::outcome::Series| -> Vec<f64> {
        series.points.iter().map(|point| point.x).collect()
    };
    assert_eq!((xs(theirs), xs(ours)), (vec![2.0, 4.0, 8.0], vec![2.0, 4.0, 8.0, 16.0]));
    assert!(theirs.is_theirs && theirs.points[2].y == 70.0);
    let trend = theirs.trend.unwrap();
    assert!((trend.slope - 8.75).abs() < 1e-12 && trend.intercept.abs() < 1e-9, "{trend:?}");
    assert!(ours.trend.unwrap().slope < 0.0 && ours.links.len() == 4);
}

#[test]
fn the_document_is_the_same_every_time_and_can_be_read_back() {
    let (first, second) = (judged(|_| ()), judged(|_| ()));
    assert_eq!(first.to_json(), second.to_json());
    let back: Outcome = serde_json::from_str(&first.to_json()).unwrap();
    assert_eq!(back, first);
    assert_eq!(first.schema, "weigh/study/1");
}
