//! Compares several runs of a study: which of them give the same answers alone, and what weakens
//! them.

use crate::answers::{Replayed, Why};
use crate::claim_outcome::{Agreement, ClaimOutcome, RunAnswers};
use crate::evidence::Evidence;
use crate::occasion::{DONE, Occasion, is_same_machine, machine};
use crate::outcome::OccasionShown;
use crate::runs::RunState;
use crate::study::Study;

/// How many runs give the same answers alone as all together; `None` for one run, and for a claim
/// that was not run.
pub(crate) fn of_runs(
    study: &Study,
    together: &ClaimOutcome,
    occasions: &[Occasion],
    judge: impl Fn(&Evidence<'_>) -> (Vec<Replayed>, Why),
) -> Option<Agreement> {
    let (_, all, why) = together.words();
    let has_no_run = all.iter().all(|one| *one == Replayed::NotRun) && why == Why::NotAsked;
    if occasions.len() < 2 || has_no_run {
        return None;
    }
    let alone = |own: &Occasion| {
        let (replays, why) = judge(&Evidence::new(study, std::slice::from_ref(own)));
        RunAnswers { run: own.run.clone(), replays, why }
    };
    let answers: Vec<RunAnswers> = occasions.iter().map(alone).collect();
    let is_same = |own: &&RunAnswers| own.replays == all && own.why == why;
    let same = answers.iter().filter(is_same).count();
    Some(Agreement { same, of: occasions.len(), answers })
}

/// An occasion as an outcome has it that was judged by the study of this hash.
pub(crate) fn occasion_shown(own: &Occasion, judged_hash: &str) -> OccasionShown {
    let host = own.runs.values().find_map(RunState::host);
    OccasionShown {
        run: own.run.clone(),
        scale: own.scale,
        started: own.started.clone(),
        version: own.version.clone(),
        host: host.and_then(|host| serde_json::to_value(host).ok()),
        state: own.state.clone(),
        study_hash: own.study_hash.clone(),
        is_same_study: own.study_hash.as_ref().map(|hash| hash == judged_hash),
        boot: own.boot.clone(),
        warnings: of_occasion(own, judged_hash),
    }
}

/// What weakens one run as evidence, as sentences.
pub(crate) fn of_occasion(own: &Occasion, judged_hash: &str) -> Vec<String> {
    let run = &own.run;
    let mut warnings = Vec::new();
    match &own.study_hash {
        None => warnings.push(format!(
            "{run} does not record the conditions it was started with: they may be newer than \
             the run."
        )),
        Some(hash) if hash != judged_hash => warnings.push(format!(
            "These conditions are newer than the run {run}: it was started with another \
             study.toml."
        )),
        Some(_) => {}
    }
    if own.state != DONE {
        warnings.push(format!(
            "{run} is not complete ({}): claims that need the rest stay open.",
            own.state
        ));
    }
    let machines = own.machines();
    if machines.len() > 1 {
        let words: Vec<String> = machines.into_iter().map(machine).collect();
        warnings.push(format!("{run} was made on several machines: {}.", words.join("; ")));
    }
    let cells = || own.made().flat_map(|made| &made.summary.cells);
    let is_disturbed = |code: &str| code == "disturbed";
    let disturbed = cells().filter(|cell| cell.warnings.iter().any(|one| is_disturbed(&one.code)));
    match (disturbed.count(), cells().count()) {
        (0, _) => {}
        (some, all) => warnings.push(format!(
            "Other programs disturbed {some} of {all} cells of {run}: these cells alone \
             decide no answer."
        )),
    }
    warnings
}

/// What weakens all of them together, as sentences.
pub(crate) fn warnings(study: &Study, occasions: &[Occasion]) -> Vec<String> {
    let mut warnings: Vec<String> =
        occasions.iter().flat_map(|own| of_occasion(own, &study.hash)).collect();
    let [first, others @ ..] = occasions else { return warnings };
    if others.is_empty() {
        return warnings;
    }
    let machines: Vec<_> = occasions.iter().flat_map(Occasion::machines).collect();
    if machines.iter().any(|own| !is_same_machine(own, machines[0])) {
        warnings.push(
            "The runs were made on different machines: their differences are part of every \
             interval."
                .to_owned(),
        );
    }
    if others.iter().any(|own| own.version != first.version) {
        warnings.push("The runs were made by different versions of Weighbridge.".to_owned());
    }
    if first.boot.is_some() && others.iter().all(|own| own.boot == first.boot) {
        warnings.push(format!(
            "The {} runs were made in one boot of the machine: the intervals do not include \
             variation between boots.",
            occasions.len()
        ));
    }
    warnings
}

impl ClaimOutcome {
    /// How many runs agree, as a sentence: `The same answer in 2 of 3 runs; the other alone leaves
    /// it open.` `None` where one run was judged.
    pub fn agreement_sentence(&self) -> Option<String> {
        let Agreement { same, of, answers } = self.agreement.as_ref()?;
        let (_, replays, why) = self.words();
        let differs = |own: &&RunAnswers| own.replays != replays || own.why != why;
        let others: Vec<&RunAnswers> = answers.iter().filter(differs).collect();
        let firm: Vec<String> = others
            .iter()
            .filter(|own| !own.is_weaker(&replays, why))
            .map(|own| format!("{} alone gives {}", own.run, own.words()))
            .collect();
        let rest = match (others.len(), firm.is_empty()) {
            (0, _) => String::new(),
            _ if *same == 0 && firm.is_empty() => {
                return Some(format!("No run decides it alone; the {of} together do."));
            }
            (1, true) => "; the other alone leaves it open".to_owned(),
            (_, true) => "; the others alone leave it open".to_owned(),
            _ => format!("; {}", firm.join("; ")),
        };
        Some(format!("The same answer in {same} of {of} runs{rest}."))
    }
}

impl RunAnswers {
    /// Whether every answer is the one of these or an open one.
    fn is_weaker(&self, replays: &[Replayed], why: Why) -> bool {
        let is_open = |one: &Replayed| matches!(one, Replayed::Undecided | Replayed::NotRun);
        self.replays.iter().zip(replays).all(|(own, all)| own == all || is_open(own))
            && (self.why == why || self.why == Why::CausePossible)
    }

    fn words(&self) -> String {
        let replays = self.replays.iter().map(|one| one.name());
        let why = (self.why != Why::NotAsked).then_some(self.why.name());
        replays.chain(why).collect::<Vec<_>>().join(", ")
    }
}
