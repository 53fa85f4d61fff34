//! Reasons why a condition stays open although its interval would decide it: the evidence was
//! disturbed, too thin, or made on too small a machine (decision 43).

use weigh_model::event::HostFacts;
use weigh_report::summary::Cell;

/// Why the figures of a cell must not decide; empty where they may. `even_limited` lets a limited
/// generator pass, for claims about just that.
pub(crate) fn of_cell(
    place: &str,
    cell: &Cell,
    repetitions: usize,
    even_limited: bool,
) -> Vec<String> {
    let is_open =
        |code: &str| OPENING.contains(&code) || (LIMITED.contains(&code) && !even_limited);
    let opening = cell.warnings.iter().filter(|warning| is_open(&warning.code));
    let mut reasons: Vec<String> =
        opening.map(|warning| format!("{place}: {}", warning.text)).collect();
    if repetitions < REPETITIONS_MIN {
        let plural = if repetitions == 1 { "" } else { "s" };
        reasons.push(format!(
            "{place} has {repetitions} repetition{plural}; an answer needs {REPETITIONS_MIN}"
        ));
    }
    reasons
}

/// Why a run on this machine must not decide a condition that needs `cores_min` cores.
pub(crate) fn of_host(host: &HostFacts, cores_min: u32) -> Option<String> {
    let cores = host.cores;
    (cores < cores_min).then(|| {
        format!("it needs a machine with at least {cores_min} cores, and this one has {cores}")
    })
}

/// Why a modelled figure must not decide.
pub(crate) const MODELLED: &str = "it is modelled and not measured";

/// Warnings that weaken every figure of a cell.
const OPENING: [&str; 4] =
    ["disturbed", "background-shares-core", "background-troubled", "shared-cores"];

/// Warnings that the generator was the limit.
const LIMITED: [&str; 1] = ["generator-limited"];

/// Repetitions behind an answer, at least: rule L13.
pub(crate) const REPETITIONS_MIN: usize = 5;
