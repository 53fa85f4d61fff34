//! How many units, such as farms full of sensors, a server carries: costs that a designed
//! experiment has separated, fitted, compared with cells that were not fitted, and combined
//! for a load that is larger or slower than any trial here could be.
//!
//! `[[carry]]` of a study says what is asked ([`Asked`]); the runs of its plans are the evidence
//! ([`answer`]); [`CarryOutcome`] is the answer, with what was measured apart from what was not.

mod asked;
mod break_even;
mod family;
mod lane;
mod observed;
mod outcome;
mod plainly;

use toml::Table;

use crate::runs::{RunState, Runs};

pub use asked::{Asked, AskedWrong, FamilyAsked, LaneAsked};
pub use outcome::{
    AnchorShown, BreakEvenShown, Carried, CarryOutcome, FamilyShown, Floor, HeldOutShown,
    LanePoint, LaneShown, MemoryShown, Reach, SearchShown, Term,
};
pub use plainly::table;

use family::Family;
use observed::Observed;

/// Reads one `[[carry]]`. `is_plan` returns whether the study has a plan of this name
/// (`right/farms-cost`).
///
/// # Errors
/// The error, and what to type instead.
pub fn read(table: &Table, is_plan: &dyn Fn(&str) -> bool) -> Result<Asked, AskedWrong> {
    Asked::read(table, is_plan)
}

/// The answer, as far as there are runs.
pub fn answer(asked: &Asked, runs: &Runs) -> CarryOutcome {
    let mut missing: Vec<String> = Vec::new();
    let mut observed = |names: &[String]| {
        let mut all: Vec<Observed> = Vec::new();
        for name in names {
            match runs.get(name) {
                Some(RunState::Made(made)) => {
                    let cells = made.summary.cells.iter();
                    let of = |cell| Observed::of(cell, (name, made), asked);
                    for read in cells.map(of) {
                        match read {
                            Ok(cell) => all.push(cell),
                            Err(why) => missing.push(why),
                        }
                    }
                }
                Some(RunState::Skipped(why)) => missing.push(format!("{name}: {why}")),
                _ => missing.push(format!("{name} was not run")),
            }
        }
        all
    };
    let fitted = observed(&asked.fit);
    let checked = observed(&asked.check);
    let families: Vec<(Family, FamilyShown)> =
        asked.family.iter().map(|family| family::weigh(family, asked, &fitted, &checked)).collect();
    let lanes = asked.lane.iter().filter_map(|lane| {
        let at = asked.family.iter().position(|family| family.name == lane.family)?;
        let cells: Vec<&Observed> = fitted.iter().chain(&checked).collect();
        Some(lane::weigh(lane, asked, &families[at].0, &cells, runs))
    });
    CarryOutcome {
        id: asked.id.clone(),
        question: asked.question.clone(),
        unit: asked.unit.clone(),
        sensors: asked.sensors,
        interval_s: asked.interval.as_secs_f64(),
        cores: asked.server.cores,
        memory_bytes: asked.server.memory.0 as f64,
        kernel_bytes_per_connection: asked.server.kernel_bytes_per_connection,
        kernel_bytes_source: asked.server.kernel_bytes_source.clone(),
        p99_limit_ns: asked.p99.0 as f64,
        lanes: lanes.collect(),
        break_even: break_even::all(asked, &families),
        anchors: break_even::anchors(asked, &families),
        families: families.into_iter().map(|(_, shown)| shown).collect(),
        missing,
    }
}
