//! Less evidence never gives a stronger answer: whatever is taken away from runs, or said against
//! them, an answer stays as it is or moves towards undecided.

use proptest::prelude::*;
use weigh_model::warnings::{Severity, WarningRecord};
use weigh_study::outcome::ClaimOutcome;
use weigh_study::{Outcome, Printed, Replayed, RunState, Runs, Scale, Why};

use crate::fixture::{outcome, runs, study};

/// What is taken away, or said against a run.
#[derive(Clone, Debug)]
enum Loss {
    /// A run is not there.
    Run(usize),
    /// A cell is not there.
    Cell(usize, usize),
    /// Only so many repetitions are left of every cell of a run.
    Repetitions(usize, usize),
    /// A cell carries this warning.
    Warning(usize, usize, &'static str),
    /// Every repetition lies this many times farther from the mean.
    Wider(usize, f64),
    /// The machine has one core.
    OneCore,
}

fn loss() -> impl Strategy<Value = Loss> {
    let warning = prop::sample::select(vec!["disturbed", "background-shares-core", "shared-cores"]);
    prop_oneof![
        (0_usize..5).prop_map(Loss::Run),
        (0_usize..5, 0_usize..4).prop_map(|(run, cell)| Loss::Cell(run, cell)),
        (0_usize..5, 1_usize..5).prop_map(|(run, left)| Loss::Repetitions(run, left)),
        (0_usize..5, 0_usize..4, warning)
            .prop_map(|(run, cell, code)| Loss::Warning(run, cell, code)),
        (0_usize..5, 1.0_f64..30.0).prop_map(|(run, times)| Loss::Wider(run, times)),
        Just(Loss::OneCore),
    ]
}

fn apply(runs: &mut Runs, loss: &Loss) {
    let names: Vec<String> = runs.keys().cloned().collect();
    let name = |at: usize| &names[at % names.len()];
    if let Loss::Run(at) = loss {
        if !names.is_empty() {
            runs.remove(name(*at));
        }
        return;
    }
    for (at, own) in names.iter().enumerate() {
        let Some(RunState::Made(made)) = runs.get_mut(own) else { continue };
        let cells = &mut made.summary.cells;
        match loss {
            Loss::Cell(run, cell) if *run % names.len() == at && !cells.is_empty() => {
                let place = cell % cells.len();
                cells.remove(place);
            }
            Loss::Repetitions(run, left) if *run % names.len() == at => {
                for cell in cells {
                    cell.repetitions = cell.repetitions.min(*left as u32);
                    cell.metrics.values_mut().for_each(|metric| metric.values.truncate(*left));
                }
            }
            Loss::Warning(run, cell, code) if *run % names.len() == at && !cells.is_empty() => {
                let place = cell % cells.len();
                cells[place].warnings.push(warning(code));
            }
            Loss::Wider(run, times) if *run % names.len() == at => {
                for metric in cells.iter_mut().flat_map(|cell| cell.metrics.values_mut()) {
                    widen(&mut metric.values, *times);
                }
            }
            Loss::OneCore => made.summary.run.host.cores = 1,
            _ => {}
        }
    }
}

fn warning(code: &str) -> WarningRecord {
    let (code, text) = (code.to_owned(), format!("a test says {code}"));
    WarningRecord { code, severity: Severity::Warning, text, advice: String::new() }
}

/// The same mean, every value farther from it.
fn widen(values: &mut [Option<f64>], times: f64) {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    values.iter_mut().flatten().for_each(|value| *value = mean + (*value - mean) * times);
}

fn is_no_stronger(full: &ClaimOutcome, less: &ClaimOutcome) -> bool {
    let replays = full.replays.iter().zip(&less.replays).all(|(full, less)| {
        less.answer == full.answer || matches!(less.answer, Replayed::Undecided | Replayed::NotRun)
    });
    let why = less.why == full.why || less.why == Why::CausePossible;
    // No run has a part in what is printed.
    replays
        && why
        && less.printed == full.printed
        && (full.is_contradicted || !less.is_contradicted)
}

fn check(full: &Outcome, less: &Outcome, lost: &[Loss]) {
    for (full, less) in full.claims.iter().zip(&less.claims) {
        assert!(
            is_no_stronger(full, less),
            "{}: {:?} became {:?} by {lost:?}: {}",
            full.id,
            full.words(),
            less.words(),
            less.sentence
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn less_evidence_never_gives_a_stronger_answer(
        losses in prop::collection::vec(loss(), 1..4),
    ) {
        let study = study();
        let full = outcome(&study, &runs(), Scale::Full);
        let mut left = runs();
        losses.iter().for_each(|loss| apply(&mut left, loss));
        check(&full, &outcome(&study, &left, Scale::Full), &losses);
    }
}

/// The property is not true of everything: there are answers to lose, and each kind of loss takes
/// one.
#[test]
fn every_loss_takes_an_answer() {
    let study = study();
    let full = outcome(&study, &runs(), Scale::Full);
    let words = |outcome: &Outcome| -> Vec<_> {
        outcome.claims.iter().map(|claim| claim.words()).collect()
    };
    let decided = |one: &(Printed, Vec<Replayed>, Why)| {
        matches!(one.1[0], Replayed::Reproduced | Replayed::NotReproduced)
    };
    assert!(words(&full).iter().filter(|one| decided(one)).count() >= 4, "{:?}", words(&full));
    for loss in [
        Loss::Run(0),
        Loss::Repetitions(1, 4),
        Loss::Warning(0, 0, "disturbed"),
        Loss::Wider(1, 30.0),
    ] {
        let mut left = runs();
        apply(&mut left, &loss);
        let less = outcome(&study, &left, Scale::Full);
        assert_ne!(words(&full), words(&less), "{loss:?} takes nothing");
        check(&full, &less, std::slice::from_ref(&loss));
    }
}
