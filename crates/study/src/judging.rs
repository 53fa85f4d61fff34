//! What came of a study: every run, every claim with its verdict, every picture.

use crate::carry;
use crate::conditions;
use crate::drawing;
use crate::measuring::Measuring;
use crate::outcome::{
    Answer, CellShown, Certainty, ClaimOutcome, DoubtShown, ExperimentOutcome, FlagShown, Judged,
    Outcome, Role, RunOutcome, STUDY_SCHEMA,
};
use crate::runs::{NOT_ASKED, RunState, Runs};
use crate::scale::{Scale, Way};
use crate::study::{About, Claim, Experiment, Study};
use crate::verdict::Verdict;
use crate::verdict_words::{self, Told};

/// All of it.
pub(crate) fn outcome(study: &Study, about: &About, runs: &Runs) -> Outcome {
    let measuring = Measuring::new(study, runs, about.scale);
    let of_claim = |claim| judge(claim, study, &measuring, about.scale);
    let claims: Vec<ClaimOutcome> = study.claims.iter().map(of_claim).collect();
    Outcome {
        certainty: Certainty::of(&claims),
        claims,
        carry: study.carry.iter().map(|asked| carry::answer(asked, runs)).collect(),
        figures: study.figures.iter().map(|one| drawing::draw(one, study, &measuring)).collect(),
        ..progress(study, about, runs)
    }
}

/// What was run so far, and nothing that takes time to work out.
pub(crate) fn progress(study: &Study, about: &About, runs: &Runs) -> Outcome {
    let made = runs.values().find_map(|state| match state {
        RunState::Made(made) => Some(made),
        RunState::Skipped(_) => None,
    });
    let host = made.and_then(|made| serde_json::to_value(&made.summary.run.host).ok());
    Outcome {
        schema: STUDY_SCHEMA.to_owned(),
        study: study.name.clone(),
        question: study.question.clone(),
        scale: about.scale,
        ways: about.ways.clone(),
        only: about.only.clone(),
        data: about.data.clone(),
        runs: about.runs.clone(),
        id: about.id.clone(),
        started: about.started.clone(),
        version: about.version.clone(),
        host,
        state: about.state.clone(),
        experiments: study.experiments.iter().map(|one| experiment(one, runs)).collect(),
        claims: Vec::new(),
        certainty: Certainty::default(),
        figures: Vec::new(),
        carry: Vec::new(),
    }
}

fn experiment(experiment: &Experiment, runs: &Runs) -> ExperimentOutcome {
    let named = |names: &[String], way| {
        names.iter().map(|name| run(name, way, runs)).collect::<Vec<RunOutcome>>()
    };
    let mut all = named(&experiment.published, Way::Published);
    all.extend(named(&experiment.right, Way::Right));
    ExperimentOutcome {
        id: experiment.id.clone(),
        title: experiment.title.clone(),
        not_run: experiment.not_run.clone(),
        runs: all,
    }
}

fn run(name: &str, way: Way, runs: &Runs) -> RunOutcome {
    let mut outcome = RunOutcome {
        name: name.to_owned(),
        way,
        folder: None,
        id: None,
        outcome: None,
        cells: 0,
        invalid_cells: 0,
        skipped: None,
        doubts: Vec::new(),
    };
    match runs.get(name) {
        Some(RunState::Made(made)) => {
            let cells = &made.summary.cells;
            outcome.folder = Some(made.folder.clone());
            outcome.id = Some(made.summary.run.id.clone());
            outcome.doubts = DoubtShown::of(&made.summary);
            outcome.outcome = Some(made.summary.run.outcome.clone());
            outcome.cells = cells.len();
            outcome.invalid_cells = cells.iter().filter(|cell| !cell.valid).count();
        }
        Some(RunState::Skipped(reason)) => outcome.skipped = Some(reason.clone()),
        None => outcome.skipped = Some(NOT_ASKED.to_owned()),
    }
    outcome
}

fn judge(claim: &Claim, study: &Study, measuring: &Measuring<'_>, scale: Scale) -> ClaimOutcome {
    let conditions: Vec<Judged> = claim
        .conditions
        .iter()
        .map(|(role, condition)| conditions::judge(*role, condition, claim, measuring))
        .collect();
    let verdict = verdict(claim, &conditions);
    let (by_paper, by_model) = (by_paper(claim), by_model(claim));
    let told = Told { conditions: &conditions, by_paper: &by_paper, by_model: &by_model };
    let sentence = verdict_words::sentence(claim, verdict, &told, scale);
    ClaimOutcome {
        id: claim.id.clone(),
        source: claim.source.clone(),
        says: claim.says.clone(),
        experiments: claim.experiments.clone(),
        cells: claim.cells.iter().map(|at| cell(study, *at)).collect(),
        verdict,
        sentence,
        because: claim.because.clone(),
        conditions,
        by_paper,
        by_model,
    }
}

/// The roles whose conditions rest on what was published alone.
fn by_paper(claim: &Claim) -> Vec<Role> {
    let is_by_paper = |role: &Role| {
        let own = claim.conditions.iter().filter(|(of, _)| of == role);
        let mut names = own.flat_map(|(_, condition)| condition.names()).peekable();
        names.peek().is_some() && names.all(|name| claim.quantities[name].run().is_none())
    };
    Role::ALL.into_iter().filter(is_by_paper).collect()
}

/// The roles in which a figure is modelled.
fn by_model(claim: &Claim) -> Vec<Role> {
    let is_by_model = |role: &Role| {
        let own = claim.conditions.iter().filter(|(of, _)| of == role);
        let mut names = own.flat_map(|(_, condition)| condition.names());
        names.any(|name| claim.quantities[name].is_modelled())
    };
    Role::ALL.into_iter().filter(is_by_model).collect()
}

/// The verdict, from the conditions alone (decision 35).
fn verdict(claim: &Claim, conditions: &[Judged]) -> Verdict {
    let of = |role| together(conditions, role);
    let (picture, cause, truth) = (of(Role::Picture), of(Role::Cause), of(Role::Truth));
    match () {
        () if claim.not_testable.is_some() => Verdict::NotTestableHere,
        () if truth == Some(Answer::Yes) => Verdict::Reproduced,
        () if picture == Some(Answer::Yes) && cause == Some(Answer::Yes) => Verdict::Explained,
        () if truth == Some(Answer::No) || picture == Some(Answer::No) => Verdict::Contradicted,
        () => Verdict::NotTestableHere,
    }
}

/// All conditions of a role together: yes if all are, no if one is; `None` where there is none.
pub(crate) fn together(conditions: &[Judged], role: Role) -> Option<Answer> {
    let mut answers =
        conditions.iter().filter(|judged| judged.role == role).map(|judged| judged.answer);
    let first = answers.next()?;
    Some(answers.fold(first, |all, one| match (all, one) {
        (Answer::No, _) | (_, Answer::No) => Answer::No,
        (Answer::Yes, Answer::Yes) => Answer::Yes,
        _ => Answer::Undecided,
    }))
}

/// A published figure with what is doubtful about it, or about its table as a whole.
pub(crate) fn cell(study: &Study, at: usize) -> CellShown {
    let cell = &study.published.cells[at];
    let cells = &study.published.cells;
    let is_of_table = |series: &str| {
        !cells.iter().any(|other| other.table == cell.table && other.series == series)
    };
    let flags = study.flags.iter().filter(|flag| {
        let is_here = flag.series == cell.series && (flag.x.is_empty() || flag.x == cell.x);
        flag.table == cell.table && (is_here || is_of_table(&flag.series))
    });
    let shown = flags.map(|flag| FlagShown {
        about: if flag.series == cell.series { String::new() } else { flag.series.clone() },
        printed: flag.printed.clone(),
        used: flag.used.clone(),
        reason: flag.reason.clone(),
        confidence: flag.confidence.clone(),
    });
    CellShown {
        table: cell.table.clone(),
        series: cell.series.clone(),
        x: cell.x.clone(),
        x_unit: cell.x_unit.clone(),
        value: cell.value,
        printed: cell.printed.clone(),
        unit: cell.unit.clone(),
        flags: shown.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(role: Role, answer: Answer) -> Judged {
        Judged {
            role,
            text: String::new(),
            words: String::new(),
            estimate: None,
            low: None,
            high: None,
            n: None,
            shown: String::new(),
            answer,
            reasons: Vec::new(),
            quantities: Vec::new(),
        }
    }

    fn claim(not_testable: bool) -> Claim {
        Claim {
            id: "C".to_owned(),
            source: String::new(),
            says: String::new(),
            experiments: Vec::new(),
            cells: Vec::new(),
            not_testable: not_testable.then(|| "a path".to_owned()),
            because: None,
            needs_full: false,
            conditions: Vec::new(),
            quantities: Default::default(),
        }
    }

    /// The whole table of decision 35: picture, cause, truth, and what comes of them.
    #[test]
    fn the_verdict_follows_from_the_answers_alone() {
        use Answer::{No, Undecided, Yes};
        use Verdict::{Contradicted, Explained, NotTestableHere, Reproduced};
        let answers = [None, Some(Yes), Some(No), Some(Undecided)];
        let (mut seen, mut count) = (std::collections::BTreeSet::new(), 0);
        for picture in answers {
            for cause in answers {
                for truth in answers {
                    let roles =
                        [(Role::Picture, picture), (Role::Cause, cause), (Role::Truth, truth)];
                    let conditions: Vec<Judged> = roles
                        .into_iter()
                        .filter_map(|(role, answer)| Some(judged(role, answer?)))
                        .collect();
                    let expected = match (picture, cause, truth) {
                        (_, _, Some(Yes)) => Reproduced,
                        (Some(Yes), Some(Yes), _) => Explained,
                        (_, _, Some(No)) | (Some(No), _, None | Some(Undecided)) => Contradicted,
                        _ => NotTestableHere,
                    };
                    assert_eq!(verdict(&claim(false), &conditions), expected);
                    assert_eq!(verdict(&claim(true), &conditions), NotTestableHere);
                    seen.insert(expected);
                    count += 1;
                }
            }
        }
        assert_eq!((seen.len(), count), (4, 64));
    }

    #[test]
    fn a_list_is_no_if_one_is_and_yes_if_all_are() {
        use Answer::{No, Undecided, Yes};
        for (answers, expected) in [
            (&[Yes, Yes][..], Some(Yes)),
            (&[Yes, Undecided], Some(Undecided)),
            (&[Undecided, No, Yes], Some(No)),
            (&[], None),
        ] {
            let conditions: Vec<Judged> =
                answers.iter().map(|answer| judged(Role::Truth, *answer)).collect();
            assert_eq!(together(&conditions, Role::Truth), expected, "{answers:?}");
            assert_eq!(together(&conditions, Role::Picture), None);
        }
    }

    /// Of two intervals and an exact figure 5 % of two are false at most; what is open is not
    /// counted.
    #[test]
    fn what_is_answered_by_intervals_may_be_false_by_chance() {
        let one = |answer, low: Option<f64>, high: Option<f64>| Judged {
            low,
            high,
            ..judged(Role::Truth, answer)
        };
        let conditions = vec![
            one(Answer::Yes, Some(1.0), Some(2.0)),
            one(Answer::No, Some(1.0), None),
            one(Answer::Yes, Some(1.0), Some(1.0)),
            one(Answer::Undecided, Some(1.0), Some(2.0)),
        ];
        let outcome = ClaimOutcome {
            id: String::new(),
            source: String::new(),
            says: String::new(),
            experiments: Vec::new(),
            cells: Vec::new(),
            verdict: Verdict::Contradicted,
            sentence: String::new(),
            because: None,
            conditions,
            by_paper: Vec::new(),
            by_model: Vec::new(),
        };
        let certainty = Certainty::of(&[outcome]);
        assert_eq!((certainty.judged, certainty.uncertain), (3, 2));
        assert!((certainty.false_max - 0.1).abs() < 1e-12, "{certainty:?}");
        assert!(certainty.sentence().contains("up to 0.1 false answers"));
        assert!(Certainty::default().sentence().contains("all by exact figures"));
    }
}
