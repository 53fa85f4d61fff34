//! Judges the runs of a study: every run, the three answers to every claim, every picture.

use crate::agreement::{self, occasion_shown};
use crate::answer_words::{self, Answers};
use crate::answers::{Printed, Replayed, Why};
use crate::break_even;
use crate::carry;
use crate::compared;
use crate::conditions;
use crate::drawing;
use crate::evidence::Evidence;
use crate::measuring::Measuring;
use crate::occasion::{Occasion, longest};
use crate::occasions::Widening;
use crate::outcome::{
    Answer, CellShown, Certainty, ClaimOutcome, ExperimentOutcome, FlagShown, Judged, Outcome,
    PaperShown, Replay, Role, RunOutcome, STUDY_SCHEMA, WarningShown,
};
use crate::runs::{NOT_ASKED, RunState, Runs};
use crate::scale::{Scale, Way};
use crate::study::{About, Claim, Experiment, Paper, ReplayAsked, Study};
use crate::tools::{self, ToolShown};

/// All of it.
pub(crate) fn outcome(study: &Study, about: &About, occasions: &[Occasion]) -> Outcome {
    let main = longest(occasions);
    let evidence = Evidence::new(study, occasions);
    let of_claim = |claim| {
        let own = judge(claim, study, &evidence, about.scale);
        evidence.forget();
        let agreement =
            agreement::of_runs(study, &own, occasions, |evidence| answers(claim, evidence).words());
        ClaimOutcome { agreement, ..own }
    };
    let claims: Vec<ClaimOutcome> = study.claims.iter().map(of_claim).collect();
    let pictured = Measuring::new(study, main, Widening::ALL[0]);
    Outcome {
        certainty: Certainty::of(&claims),
        claims,
        warnings: agreement::warnings(study, occasions),
        occasions: occasions.iter().map(|own| occasion_shown(own, &study.hash)).collect(),
        carry: study.carry.iter().map(|asked| carry::answer(asked, &main.runs)).collect(),
        figures: study.figures.iter().map(|one| drawing::draw(one, study, &pictured)).collect(),
        tools: tools(study, &main.runs, Some(&evidence)),
        ..progress(study, about, main)
    }
}

/// What was run so far, and nothing that takes time to work out.
pub(crate) fn progress(study: &Study, about: &About, occasion: &Occasion) -> Outcome {
    let shown = occasion_shown(occasion, &study.hash);
    let runs = &occasion.runs;
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
        host: shown.host.clone(),
        state: about.state.clone(),
        experiments: study.experiments.iter().map(|one| experiment(one, runs)).collect(),
        occasions: vec![shown],
        paper: paper(&study.paper),
        judged_hash: study.hash.clone(),
        warnings: Vec::new(),
        claims: Vec::new(),
        certainty: Certainty::default(),
        figures: Vec::new(),
        carry: Vec::new(),
        tools: tools(study, runs, None),
    }
}

/// The real programs of the study.
fn tools(study: &Study, runs: &Runs, evidence: Option<&Evidence<'_>>) -> Vec<ToolShown> {
    study.tools.iter().map(|tool| tools::shown(tool, runs, evidence)).collect()
}

fn paper(paper: &Paper) -> PaperShown {
    PaperShown {
        title: paper.title.clone(),
        authors: paper.authors.clone(),
        institution: paper.institution.clone(),
        date: paper.date.clone(),
        venue: paper.venue.clone(),
        link: paper.link.clone(),
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
        warnings: Vec::new(),
    };
    match runs.get(name) {
        Some(RunState::Made(made)) => {
            let cells = &made.summary.cells;
            outcome.folder = Some(made.folder.clone());
            outcome.id = Some(made.summary.run.id.clone());
            outcome.warnings = WarningShown::of(&made.summary);
            outcome.outcome = Some(made.summary.run.outcome.clone());
            outcome.cells = cells.len();
            outcome.invalid_cells = cells.iter().filter(|cell| !cell.valid).count();
        }
        Some(RunState::Skipped(reason)) => outcome.skipped = Some(reason.clone()),
        Some(RunState::Tool(_)) | None => outcome.skipped = Some(NOT_ASKED.to_owned()),
    }
    outcome
}

/// The conditions of a claim, and the answers that follow from them.
struct Judgement {
    conditions: Vec<Judged>,
    printed: Printed,
    replays: Vec<Replay>,
    why: Why,
}

impl Judgement {
    fn words(&self) -> (Vec<Replayed>, Why) {
        (self.replays.iter().map(|one| one.answer).collect(), self.why)
    }
}

fn answers(claim: &Claim, evidence: &Evidence<'_>) -> Judgement {
    let conditions: Vec<Judged> =
        claim.conditions.iter().map(|asked| conditions::judge(asked, claim, evidence)).collect();
    let replay = |lane| replay(claim, lane, &conditions, evidence);
    let replays = (0..claim.replays.len()).map(replay).collect();
    Judgement { printed: printed(&conditions), replays, why: why(&conditions), conditions }
}

fn judge(claim: &Claim, study: &Study, evidence: &Evidence<'_>, scale: Scale) -> ClaimOutcome {
    let Judgement { conditions, printed, replays, why } = answers(claim, evidence);
    let is_excluded = |one: &Replay| one.is_same && one.answer == Replayed::NotReproduced;
    let is_contradicted = printed == Printed::Impossible || replays.iter().any(is_excluded);
    let answers = Answers { printed, replays: &replays, why, conditions: &conditions };
    let sentence = answer_words::sentence(claim, &answers, scale);
    ClaimOutcome {
        id: claim.id.clone(),
        says: claim.says.clone(),
        section: claim.section.clone(),
        is_finding: claim.is_finding,
        experiments: claim.experiments.clone(),
        cells: claim.cells.iter().map(|at| cell(study, *at)).collect(),
        printed,
        why,
        is_contradicted,
        sentence,
        because: claim.because.clone(),
        remark: claim.remark.clone(),
        compared: claim
            .compares
            .iter()
            .map(|row| compared::row(row, claim, study, evidence))
            .collect(),
        break_even: claim
            .break_even
            .iter()
            .map(|one| break_even::solve(one, claim, evidence))
            .collect(),
        agreement: None,
        by_model: by_model(claim),
        replays,
        conditions,
    }
}

/// The roles in which a figure is modelled.
fn by_model(claim: &Claim) -> Vec<Role> {
    let is_by_model = |role: &Role| {
        let own = claim.conditions.iter().filter(|asked| asked.role == *role);
        let mut names = own.flat_map(|asked| asked.condition.names());
        names.any(|name| claim.quantities[name].is_modelled())
    };
    Role::ALL.into_iter().filter(is_by_model).collect()
}

/// What arithmetic says to the published figures.
fn printed(conditions: &[Judged]) -> Printed {
    let (possible, printed) =
        (together(conditions, Role::Possible, 0), together(conditions, Role::Printed, 0));
    match (possible, printed) {
        (Some(Answer::No), _) => Printed::Impossible,
        (_, Some(Answer::No)) => Printed::Inconsistent,
        (Some(Answer::Yes), None | Some(Answer::Yes)) | (None, Some(Answer::Yes)) => {
            Printed::Consistent
        }
        _ => Printed::NothingToCheck,
    }
}

/// What one replay of a claim shows.
fn replay(claim: &Claim, lane: usize, conditions: &[Judged], evidence: &Evidence<'_>) -> Replay {
    let role = if lane == 0 { Role::Replayed } else { Role::Named };
    let mut own = conditions.iter().filter(|one| one.role == role && one.lane == lane);
    let is_without_runs = own.clone().count() == 0 || own.all(|one| one.is_without_runs);
    let answer = match together(conditions, role, lane) {
        _ if is_without_runs => Replayed::NotRun,
        Some(Answer::Yes) => Replayed::Reproduced,
        Some(Answer::No) => Replayed::NotReproduced,
        _ => Replayed::Undecided,
    };
    let reasons = match (answer, &claim.not_replayed) {
        (Replayed::Reproduced | Replayed::NotReproduced, _) => Vec::new(),
        (Replayed::NotRun, Some(reason)) if lane == 0 => vec![reason.clone()],
        _ => answer_words::open(conditions, role, lane),
    };
    let ReplayAsked { on, is_same } = claim.replays[lane].clone();
    let host = if answer == Replayed::NotRun { String::new() } else { evidence.hosts() };
    Replay { answer, on, is_same, host, reasons }
}

/// Whether the cause was shown.
fn why(conditions: &[Judged]) -> Why {
    match together(conditions, Role::Why, 0) {
        None => Why::NotAsked,
        Some(Answer::Yes) => Why::CauseShown,
        Some(Answer::No) => Why::CauseNotFound,
        Some(Answer::Undecided) => Why::CausePossible,
    }
}

/// All conditions of a role and a replay together: yes if all are, no if one is; `None` where there
/// is none.
fn together(conditions: &[Judged], role: Role, lane: usize) -> Option<Answer> {
    let own = conditions.iter().filter(|judged| judged.role == role && judged.lane == lane);
    own.map(|judged| judged.answer).reduce(|all, one| match (all, one) {
        (Answer::No, _) | (_, Answer::No) => Answer::No,
        (Answer::Yes, Answer::Yes) => Answer::Yes,
        _ => Answer::Undecided,
    })
}

/// A published figure with a remark on its printed form, or on its table as a whole.
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
            lane: 0,
            text: String::new(),
            words: String::new(),
            estimate: None,
            low: None,
            high: None,
            n: None,
            shown: String::new(),
            answer,
            is_without_runs: false,
            reasons: Vec::new(),
            quantities: Vec::new(),
        }
    }

    /// All of decision 43's first answer: what `possible` and `printed` say, and what follows.
    #[test]
    fn what_is_printed_is_impossible_inconsistent_or_consistent() {
        use Answer::{No, Undecided, Yes};
        let all = [None, Some(Yes), Some(No), Some(Undecided)];
        for possible in all {
            for plain in all {
                let roles = [(Role::Possible, possible), (Role::Printed, plain)];
                let conditions: Vec<Judged> =
                    roles.into_iter().filter_map(|(role, one)| Some(judged(role, one?))).collect();
                let expected = match (possible, plain) {
                    (Some(No), _) => Printed::Impossible,
                    (_, Some(No)) => Printed::Inconsistent,
                    (None, None) => Printed::NothingToCheck,
                    (Some(Undecided), _) | (_, Some(Undecided)) => Printed::NothingToCheck,
                    _ => Printed::Consistent,
                };
                assert_eq!(printed(&conditions), expected, "{possible:?} {plain:?}");
            }
        }
    }

    #[test]
    fn a_list_is_no_if_one_is_and_yes_if_all_are() {
        use Answer::{No, Undecided, Yes};
        for (answers, expected, cause) in [
            (&[Yes, Yes][..], Some(Yes), Why::CauseShown),
            (&[Yes, Undecided], Some(Undecided), Why::CausePossible),
            (&[Undecided, No, Yes], Some(No), Why::CauseNotFound),
            (&[], None, Why::NotAsked),
        ] {
            let conditions: Vec<Judged> =
                answers.iter().map(|answer| judged(Role::Why, *answer)).collect();
            assert_eq!(together(&conditions, Role::Why, 0), expected, "{answers:?}");
            assert_eq!(why(&conditions), cause);
            assert_eq!(together(&conditions, Role::Why, 1), None);
            assert_eq!(together(&conditions, Role::Replayed, 0), None);
        }
    }
}
