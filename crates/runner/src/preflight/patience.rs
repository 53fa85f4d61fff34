//! Compares timeouts with what messages need on their path: the default follows from it, and a
//! shorter timeout of the user causes a warning.

use weigh_model::Pattern;
use weigh_plan::load::TIMEOUT;
use weigh_plan::patience::Patience;

use crate::case::{Case, patience};

/// Time that the messages of a case need on its path; `None` without a path.
pub fn of_case(case: &Case) -> Option<Patience> {
    let body = case.load.size.map_or(case.material.object_bytes, |size| size.0);
    Some(patience::of(&case.lane, &case.load, case.path.as_ref()?, body.max(BODY_BYTES)))
}

/// Lines of `--dry` on the timeouts of these cases; none without paths.
pub fn lines(cases: &[Case]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for case in cases.iter().filter(|case| case.load.pattern != Pattern::Hold) {
        let Some(patience) = of_case(case) else { continue };
        // A path on which the usual default suffices is not mentioned.
        if patience.timeout <= TIMEOUT || case.load.timeout < patience.timeout {
            continue;
        }
        let line = format!(
            "timeout {}: {} needs {} on its path ({})",
            case.load.timeout,
            case.lane.protocol.name(),
            patience.timeout,
            patience.words()
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Warnings on timeouts that the user gave, one a line.
pub fn warnings(cases: &[Case]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for case in cases.iter().filter(|case| case.load.pattern != Pattern::Hold) {
        let Some(patience) = of_case(case) else { continue };
        if case.load.timeout >= patience.timeout {
            continue;
        }
        let line = format!(
            "warning: --timeout {} is shorter than {} needs on its path ({}), so that slow \
             messages count as late or lost: type --timeout {}, or leave it out",
            case.load.timeout.typed(),
            case.lane.protocol.name(),
            patience.words(),
            to_type(patience.timeout)
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// What to type for at least this time.
fn to_type(time: weigh_model::Nanos) -> String {
    match time.0 % 1_000_000_000 {
        0 => format!("{}s", time.0 / 1_000_000_000),
        _ => format!("{}ms", time.0.div_ceil(1_000_000)),
    }
}

/// A reading with its mark.
const BODY_BYTES: u64 = 100;
