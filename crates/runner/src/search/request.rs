//! Goals and axis of a search, from the flags of `weigh limit` or the keys of a study's plan.

use weigh_limit::{AxisKind, Search};
use weigh_model::Nanos;
use weigh_study::search::SearchAsked;

use crate::case::Case;
use crate::exit::Stop;
use crate::search::axis_load;
use crate::search::goals::GoalsAsked;
use crate::search::length::check_length;

/// The searches of a study's plan, one for each of its cases, in order.
///
/// # Errors
/// A case without the axis; a goal that cannot be parsed; trials that are too short.
pub fn of_plan(asked: &SearchAsked, cases: &[Case]) -> Result<Vec<Search>, Stop> {
    let share = asked.budget.map(|budget| share(budget, cases.len()));
    let goals = GoalsAsked::from(asked);
    let search = |case: &Case| {
        let (load, kind) = (&case.load, asked.kind());
        let protocol = case.lane.protocol.name();
        axis_load::check(kind, protocol, load.pattern, Some(load.topology))?;
        axis_load::check_free(kind, load)?;
        let mut search = Search::new(asked.axis, goals.goals(load)?);
        search.budget = share;
        check_length(&search, load, asked.budget)?;
        Ok(search)
    };
    cases.iter().map(search).collect()
}

/// Each lane's share of the time of all.
pub fn share(budget: Nanos, lanes: usize) -> Nanos {
    Nanos(budget.0 / lanes.max(1) as u64)
}

/// The cases with the most connections that their searches may need, for checks of the machine.
/// Rates are not checked in advance.
pub fn largest(cases: &[Case], searches: &[Search]) -> Vec<Case> {
    let at_end = |(case, search): (&Case, &Search)| {
        let kind = search.axis.kind();
        match kind {
            AxisKind::Connections | AxisKind::Subscribers => {
                let longest = search.goals.iter().map(|goal| goal.final_trial_duration).max();
                let longest = longest.unwrap_or_default();
                let load = axis_load::at(kind, &case.load, search.axis.max(), longest);
                Case { load, ..case.clone() }
            }
            _ => case.clone(),
        }
    };
    cases.iter().zip(searches).map(at_end).collect()
}
