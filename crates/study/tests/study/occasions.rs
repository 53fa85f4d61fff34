//! Several runs of a study judged together: intervals that hold what changes between runs.

use weigh_stats::estimate::Sample;
use weigh_stats::propagation::{Known, interval};
use weigh_stats::random::Random;
use weigh_study::occasions::{BETWEEN_RUNS, OneRun, Together, Widening, together, widened};
use weigh_study::outcome::{ClaimOutcome, Judged};
use weigh_study::study::About;
use weigh_study::{Occasion, Outcome, Replayed, RunState, Runs, Scale, Study, Way};

use crate::fixture::{self, occasion, runs, study};

/// What a run says whose mean of three repetitions is known so well.
fn run(mean: f64, deviation: f64, seed: u64, runs: usize) -> OneRun {
    let factor = Widening::ALL[Widening::index(runs)].repeated;
    let draws = Known::MeanOf { mean, deviation, n: 3 }.draws(seed).into_iter();
    OneRun { estimate: mean, draws: Some(draws.map(|draw| widened(draw, mean, factor)).collect()) }
}

fn exact(estimate: f64) -> OneRun {
    OneRun { estimate, draws: None }
}

fn half(of: Together) -> f64 {
    (of.high - of.low) / 2.0
}

fn near(got: f64, expected: f64, share: f64) {
    assert!((got - expected).abs() <= share * expected.abs(), "{got} is not {expected}");
}

/// t(0.975) of two degrees of freedom over the root of three: the half width of a mean of three.
const THREE: f64 = 4.302_652_73 / 1.732_050_81;

#[test]
fn one_run_is_known_half_as_well_between_runs_as_within() {
    let of = together(vec![run(10.0, 1.0, 1, 1)], false);
    assert_eq!(of.estimate, 10.0);
    near(half(of), BETWEEN_RUNS * THREE, 0.03);
    let exactly = together(vec![exact(7.0)], false);
    assert_eq!((exactly.low, exactly.high), (7.0, 7.0));
}

#[test]
fn two_and_three_runs_narrow_it_unless_they_are_far_apart() {
    for runs in [2, 3] {
        let all = (0..runs).map(|seed| run(10.0, 1.0, seed as u64, runs)).collect();
        let of = together(all, false);
        // A sum of t draws of two degrees has no variance; it narrows by a little less.
        let least = BETWEEN_RUNS * THREE / (runs as f64).sqrt();
        assert!(half(of) > 0.9 * least && half(of) < BETWEEN_RUNS * THREE, "{runs}: {of:?}");
    }
    // Two runs that differ by 8 with small intervals: mean +- t(3) 8 / 2.
    let far = together(vec![run(6.0, 0.01, 1, 2), run(14.0, 0.01, 2, 2)], false);
    assert_eq!(far.estimate, 10.0);
    near(half(far), 3.182_446_305 * 4.0, 1e-6);
}

/// Students's interval over the means of the runs, and never less than the runs themselves demand.
#[test]
fn many_runs_say_how_far_they_are_apart() {
    let means = [9.0, 10.0, 10.5, 11.5, 9.5];
    let all = means.iter().enumerate().map(|(at, mean)| run(*mean, 0.01, at as u64, 5)).collect();
    let of = together(all, false);
    let sample = Sample::of(&means).unwrap();
    near(of.estimate, sample.mean, 1e-12);
    near(half(of), 2.776_445_105 * sample.variance_of_mean().sqrt(), 1e-6);
    let equal: Vec<OneRun> = (0..5).map(|seed| run(10.0, 1.0, seed, 5)).collect();
    let within = half(together(equal, false));
    assert!(within > 0.9 * THREE / 5f64.sqrt(), "{within}");
}

#[test]
fn exact_figures_that_differ_are_uncertain() {
    let same = together(vec![exact(0.1); 3], false);
    assert_eq!((same.estimate, same.low, same.high), (0.1, 0.1, 0.1));
    let differing = together(vec![exact(100.0), exact(104.0)], false);
    assert_eq!(differing.estimate, 102.0);
    near(half(differing), 3.182_446_305 * 2.0, 1e-6);
}

#[test]
fn bounds_of_searches_are_the_hull_of_all() {
    let search = |low: f64, high: f64, seed| {
        let known = Known::Between(low, high);
        OneRun { estimate: known.estimate(), draws: Some(known.draws(seed)) }
    };
    let of = together(vec![search(1280.0, 1600.0, 1), search(1400.0, 2000.0, 2)], true);
    assert!(of.low < 1280.0 + 0.03 * 320.0 && of.high > 2000.0 - 0.03 * 600.0, "{of:?}");
    let open = together(vec![search(5.0, f64::INFINITY, 1), search(7.0, 9.0, 2)], true);
    assert!(open.low < 5.1 && open.high == f64::INFINITY, "{open:?}");
    let never = together(vec![exact(f64::INFINITY), exact(3.0)], true);
    assert_eq!((never.low, never.high), (3.0, f64::INFINITY));
    let nothing = together(vec![exact(f64::NAN), exact(3.0)], false);
    assert!(nothing.estimate.is_nan() && nothing.low == f64::NEG_INFINITY);
}

/// Copies of a run are no more evidence than the run itself.
#[test]
fn copies_of_a_run_never_narrow_it_below_what_it_says() {
    let within = {
        let (low, high) = interval(run(10.0, 1.0, 9, 4).draws.unwrap());
        (high - low) / 2.0
    };
    for copies in 1..=6 {
        let of = together((0..copies).map(|_| run(10.0, 1.0, 9, copies)).collect(), false);
        let factor = Widening::ALL[Widening::index(copies)].repeated;
        near(half(of), factor * within, 1e-9);
    }
}

/// Fewer runs of equal estimates never say more, and wider ones never do.
#[test]
fn less_evidence_is_never_narrower() {
    let mut random = Random::new(4);
    for seed in 0..12 {
        let mean = 20.0 * random.next_f64() - 10.0;
        let of = |runs: usize, spread: f64| {
            let all = (0..runs as u64).map(|at| run(mean, spread, 100 * seed + at, runs)).collect();
            half(together(all, false))
        };
        let by_number: Vec<f64> = (1..=6).map(|runs| of(runs, 1.0)).collect();
        assert!(by_number.windows(2).all(|pair| pair[0] >= 0.99 * pair[1]), "{by_number:?}");
        for runs in 1..=5 {
            assert!(of(runs, 1.5) >= of(runs, 1.0), "{runs} wider runs");
        }
    }
}

/// Of 1,000 simulated groups of runs whose means scatter as they were measured to, the true mean
/// is in at least 93 % of the intervals.
#[test]
fn the_interval_covers_what_all_runs_are_about() {
    let mut random = Random::new(17);
    let student = |seed| {
        let known = Known::MeanOf { mean: 0.0, deviation: 5f64.sqrt(), n: 5 };
        known.draws(seed).into_iter().step_by(50).collect::<Vec<f64>>()
    };
    let tables: Vec<Vec<f64>> = (0..6).map(student).collect();
    for runs in [1, 2, 3, 4, 6] {
        let factor = Widening::ALL[Widening::index(runs)].repeated;
        let mut held = 0;
        const TRIES: usize = 1_000;
        for _ in 0..TRIES {
            let all = tables[..runs].iter().map(|table| {
                // With this between runs 95 % of pairs are within 1.7 half widths, as measured.
                let between = BETWEEN * random.normal();
                let values: Vec<f64> = (0..5).map(|_| between + random.normal()).collect();
                let sample = Sample::of(&values).unwrap();
                let scale = factor * sample.variance_of_mean().sqrt();
                let draws = table.iter().map(|draw| sample.mean + scale * draw).collect();
                OneRun { estimate: sample.mean, draws: Some(draws) }
            });
            let of = together(all.collect(), false);
            held += usize::from((of.low..=of.high).contains(&0.0));
        }
        let share = held as f64 / TRIES as f64;
        assert!(share >= 0.93, "{runs} runs: {share}");
    }
}

/// Standard deviation between runs, in those within a run of five repetitions.
const BETWEEN: f64 = 0.8;

fn judged(study: &Study, occasions: &[Occasion]) -> Outcome {
    let last = occasions.last().unwrap();
    let about = About {
        scale: last.scale,
        ways: Way::ALL.to_vec(),
        only: Vec::new(),
        data: None,
        runs: None,
        id: last.run.clone(),
        started: last.started.clone(),
        version: last.version.clone(),
        state: last.state.clone(),
    };
    study.outcome(&about, occasions)
}

/// The recorded runs under another id, after a change.
fn named(id: &str, change: impl FnOnce(&mut Runs)) -> Occasion {
    let mut runs = runs();
    change(&mut runs);
    Occasion { run: id.to_owned(), scale: Scale::Full, ..occasion(&runs) }
}

/// All figures of cells and searches of a run so many times as large.
fn scaled(runs: &mut Runs, factor: f64) {
    for state in runs.values_mut() {
        let RunState::Made(made) = state else { continue };
        let metrics = made.summary.cells.iter_mut().flat_map(|cell| cell.metrics.values_mut());
        for value in metrics.flat_map(|metric| metric.values.iter_mut().flatten()) {
            *value *= factor;
        }
    }
}

fn claim<'o>(outcome: &'o Outcome, id: &str) -> &'o ClaimOutcome {
    outcome.claims.iter().find(|claim| claim.id == id).unwrap()
}

fn condition<'c>(claim: &'c ClaimOutcome, begins: &str) -> &'c Judged {
    claim.conditions.iter().find(|judged| judged.text.starts_with(begins)).unwrap()
}

#[test]
fn runs_that_agree_are_counted() {
    let study = study();
    let three = ["a", "b", "c"].map(|id| named(id, |_| ()));
    let together = judged(&study, &three);
    let one = judged(&study, &three[..1]);
    assert!(one.claims.iter().all(|claim| claim.agreement.is_none()));
    for (all, alone) in together.claims.iter().zip(&one.claims) {
        let Some(agreement) = &all.agreement else { continue };
        assert_eq!((agreement.of, agreement.answers.len()), (3, 3));
        let is_same = all.words() == alone.words();
        assert_eq!(agreement.same, if is_same { 3 } else { 0 }, "{}", all.id);
    }
    let first = claim(&together, "C01");
    let sentence = first.agreement_sentence().unwrap();
    assert_eq!(sentence, "The same answer in 3 of 3 runs.");
    assert_eq!(together.occasions.len(), 3);
    // What rests on the paper alone has no runs to agree.
    assert!(together.claims.iter().any(|claim| claim.agreement.is_none()));
}

/// What changes all figures of a run alike drops out of their ratio.
#[test]
fn a_ratio_is_taken_run_by_run() {
    let study = study();
    let factors = [1.0, 1.3, 0.8, 1.1];
    let all: Vec<Occasion> = factors
        .iter()
        .enumerate()
        .map(|(at, factor)| named(&format!("run-{at}"), |runs| scaled(runs, *factor)))
        .collect();
    let outcome = judged(&study, &all);
    let ratio = condition(claim(&outcome, "C05"), "http / mqtt");
    let part = &ratio.quantities[0];
    let share = |low: Option<f64>, high: Option<f64>, value: Option<f64>| {
        (high.unwrap() - low.unwrap()) / value.unwrap()
    };
    let of_part = share(part.low, part.high, part.value);
    let alone = judged(&study, &all[..1]);
    let alone = condition(claim(&alone, "C05"), "http / mqtt");
    assert!(of_part > 0.5, "{of_part}: the runs differ by a factor of 1.6");
    let width = |judged: &Judged| judged.high.unwrap() - judged.low.unwrap();
    assert!(width(ratio) < width(alone), "{ratio:?}");
    assert_eq!(part.links.len(), 4);
}

#[test]
fn a_run_that_lacks_a_plan_leaves_the_others_to_decide() {
    let study = study();
    let lacking = named("lacking", |runs| {
        let why = "the broker did not start".to_owned();
        runs.insert("right/cost".to_owned(), RunState::Skipped(why));
    });
    let outcome = judged(&study, &[named("whole", |_| ()), lacking]);
    let ratio = condition(claim(&outcome, "C05"), "http / mqtt");
    assert!(ratio.estimate.is_some(), "{ratio:?}");
    let reason = "left out: lacking: right/cost: the broker did not start";
    assert!(ratio.reasons.iter().any(|own| own == reason), "{:?}", ratio.reasons);
}

/// A run under another load measured something else: the larger group is taken.
#[test]
fn runs_under_another_load_are_not_put_together() {
    let study = study();
    let other = named("other", |runs| {
        let Some(RunState::Made(made)) = runs.get_mut("right/cost") else { panic!() };
        made.summary.run.plan.load.connections += 1;
    });
    let outcome = judged(&study, &[named("a", |_| ()), other, named("b", |_| ())]);
    let ratio = condition(claim(&outcome, "C05"), "http / mqtt");
    let reason = "left out: other: another load or another plan";
    assert!(ratio.reasons.iter().any(|own| own == reason), "{:?}", ratio.reasons);
}

/// A run with a warning never narrows what the others say, and alone decides nothing.
#[test]
fn a_disturbed_run_decides_nothing_and_narrows_nothing() {
    let study = study();
    let disturbed = |id: &str, factor: f64| {
        named(id, |runs| {
            scaled(runs, factor);
            for state in runs.values_mut() {
                let RunState::Made(made) = state else { continue };
                for cell in &mut made.summary.cells {
                    cell.warnings.push(weigh_model::Warning::Disturbed(1.4).record());
                }
            }
        })
    };
    let clean = judged(&study, &[named("clean", |_| ())]);
    let both = judged(&study, &[named("clean", |_| ()), disturbed("noisy", 1.0)]);
    let neither = judged(&study, &[disturbed("x", 1.0), disturbed("y", 1.0)]);
    for ((clean, both), neither) in clean.claims.iter().zip(&both.claims).zip(&neither.claims) {
        for (own, all) in clean.conditions.iter().zip(&both.conditions) {
            // Searches have warnings of their own.
            let is_of_cells = own.n.is_some();
            if let (Some(low), Some(wide), true) = (own.low, all.low, is_of_cells) {
                assert!(wide <= low + 1e-9 * low.abs(), "{}: {own:?} {all:?}", clean.id);
            }
        }
        let is_decided = |one: &weigh_study::outcome::Replay| {
            matches!(one.answer, Replayed::Reproduced | Replayed::NotReproduced)
        };
        assert!(!neither.replays.iter().any(is_decided), "{}", neither.sentence);
    }
    assert!(both.warnings.iter().any(|own| own.contains("of noisy: these cells alone")));
}

#[test]
fn what_weakens_runs_is_said_at_the_top() {
    let study = study();
    let hash = Some(study.hash.clone());
    let own = |id: &str, boot: &str| Occasion {
        study_hash: hash.clone(),
        boot: Some(boot.to_owned()),
        ..named(id, |_| ())
    };
    let same = judged(&study, &[own("a", "one"), own("b", "one")]);
    assert!(same.warnings.iter().any(|one| one.starts_with("The 2 runs were made in one boot")));
    assert_eq!(same.occasions[0].is_same_study, Some(true));
    let older = Occasion { study_hash: Some("0".repeat(64)), ..own("older", "two") };
    let elsewhere = own("elsewhere", "three");
    let elsewhere = Occasion {
        runs: {
            let mut runs = elsewhere.runs.clone();
            for state in runs.values_mut() {
                let RunState::Made(made) = state else { continue };
                made.summary.run.host.cores += 6;
            }
            runs
        },
        ..elsewhere
    };
    let stopped = Occasion { state: "interrupted".to_owned(), ..own("stopped", "four") };
    let outcome = judged(&study, &[older, elsewhere, stopped]);
    for part in [
        "These conditions are newer than the run older",
        "different machines",
        "stopped is not complete (interrupted)",
    ] {
        assert!(outcome.warnings.iter().any(|own| own.contains(part)), "{part}: {outcome:?}");
    }
    assert_eq!(outcome.occasions[0].is_same_study, Some(false));
    assert!(!outcome.warnings.iter().any(|own| own.contains("one boot")));
    // Pictures and links are of the run that is done.
    assert_eq!(outcome.experiments.len(), fixture::study().experiments.len());
}
