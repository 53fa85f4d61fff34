//! The answer as a small table of plain text.

use weigh_model::numbers::{bytes, count, exact, percent, seconds, three_digits};

use weigh_report::terminal::columns;

use super::outcome::{Carried, CarryOutcome, FamilyShown, LaneShown, Reach};

/// The answer for a terminal of this `width`: what was asked, a line a lane, and what to know
/// about it.
pub fn table(outcome: &CarryOutcome, width: usize) -> String {
    let mut rows = vec![header(outcome)];
    let count = rows[0].len();
    rows.extend(outcome.lanes.iter().map(|lane| row(lane, outcome, count)));
    let mut text = format!("{}\n{}\n\n", outcome.question, terms(outcome));
    text += &columns(&rows, &(1..=count), width);
    for note in notes(outcome) {
        text += &format!("\n{note}");
    }
    text + "\n"
}

/// What one unit is, and what the server has.
fn terms(outcome: &CarryOutcome) -> String {
    format!(
        "A {} is {} devices, each with a message every {}; the server has {} and {} of memory.",
        outcome.unit,
        exact(outcome.sensors as f64),
        seconds(outcome.interval_s),
        outcome.cores_in_words(),
        bytes(outcome.memory_bytes),
    )
}

fn header(outcome: &CarryOutcome) -> Vec<String> {
    let mut row = vec![String::new(), format!("measured {}s", outcome.unit)];
    for headroom in outcome.headrooms() {
        row.push(format!("at {} of the cores", percent(headroom * 100.0)));
        row.push("95 % interval".to_owned());
        row.push("ends at".to_owned());
    }
    row
}

fn row(lane: &LaneShown, outcome: &CarryOutcome, columns: usize) -> Vec<String> {
    let warning = if outcome.predicts(lane) { "" } else { " ?" };
    let floor = lane.floor.as_ref();
    let mut row = vec![
        lane.label.clone(),
        floor.map_or("-".to_owned(), |floor| {
            let mark = if is_by_turns(lane) { " ~" } else { "" };
            let but = if floor.reservations.is_empty() { "" } else { " !" };
            format!("at least {}{mark}{but}", count(floor.units as u64))
        }),
    ];
    for carried in &lane.carried {
        let Carried { units, units_low, units_high, .. } = carried;
        let mark = match carried.reach {
            Reach::Measured => "",
            Reach::Composed => " +",
            Reach::Beyond => " *",
        };
        row.push(format!("{}{mark}{warning}", rounded(*units)));
        row.push(format!("{} to {}", rounded(*units_low), rounded(*units_high)));
        row.push(carried.binds.clone());
    }
    row.resize(columns.max(row.len()), "-".to_owned());
    row
}

/// True if fewer devices took turns than have the rate that was carried.
fn is_by_turns(lane: &LaneShown) -> bool {
    let floor = lane.floor.as_ref();
    lane.is_per_connection && floor.is_some_and(|floor| floor.clients < floor.devices)
}

/// A number of units with as many digits as it deserves.
fn rounded(units: Option<f64>) -> String {
    match units {
        None => "no upper bound".to_owned(),
        Some(units) if units < 1000.0 => count(units as u64),
        Some(units) => three_digits(units),
    }
}

fn notes(outcome: &CarryOutcome) -> Vec<String> {
    let mut notes = of_lanes(outcome);
    notes.extend(outcome.families.iter().map(prediction_error));
    notes.extend(outcome.missing.iter().map(|why| format!("missing: {why}")));
    notes
}

/// What the marks stand for, and what is to be known of a line.
fn of_lanes(outcome: &CarryOutcome) -> Vec<String> {
    let reaches = outcome.lanes.iter().flat_map(|lane| &lane.carried).map(|carried| carried.reach);
    let reaches: Vec<Reach> = reaches.collect();
    let mut notes = Vec::new();
    if reaches.contains(&Reach::Composed) {
        notes.push("+ that many connections and that rate were measured separately".to_owned());
    }
    if reaches.contains(&Reach::Beyond) {
        notes.push("* beyond what was measured: the cost model alone".to_owned());
    }
    for lane in &outcome.lanes {
        if let Some(floor) = lane.floor.as_ref().filter(|_| is_by_turns(lane)) {
            notes.push(format!("~ {}: {}", lane.label, floor.in_words(lane)));
        }
    }
    let is_shown = |lane: &&LaneShown| !lane.carried.is_empty();
    if outcome.lanes.iter().filter(is_shown).any(|lane| !outcome.predicts(lane)) {
        notes.push("? not reliable: the model does not predict other cells well enough".to_owned());
    }
    let of_floors = outcome.reservations().into_iter();
    notes.extend(of_floors.map(|(why, lanes)| format!("! {}: {why}", lanes.join("; "))));
    for lane in &outcome.lanes {
        let lag = lane.floor.as_ref().filter(|floor| floor.p99_has_lag);
        notes.extend(lag.map(|floor| format!("{}: {}", lane.label, floor.p99_in_words())));
    }
    notes.extend(outcome.of_turns().map(str::to_owned));
    let is_unsearched = |lane: &&LaneShown| lane.search.is_none();
    let unsearched: Vec<&str> =
        outcome.lanes.iter().filter(is_unsearched).map(|lane| lane.label.as_str()).collect();
    if !unsearched.is_empty() {
        notes.push(format!("highest rate not searched: {}", unsearched.join("; ")));
    }
    let refused = outcome.lanes.iter().filter_map(|lane| Some((lane, lane.refused.as_ref()?)));
    notes.extend(refused.map(|(lane, why)| format!("{}: {why}", lane.label)));
    notes
}

/// How well a family's costs predict.
fn prediction_error(family: &FamilyShown) -> String {
    let label = &family.label;
    match (family.held_out_error, &family.refused) {
        (_, Some(why)) => format!("{label}: {why}"),
        (None, None) => format!("{label}: too few cells to hold some out"),
        (Some(error), None) => {
            let checked = family.checked_error.map_or(String::new(), |checked| {
                format!(", cells of other runs to {}", percent(checked * 100.0))
            });
            let beyond = match family.is_predictive {
                true => String::new(),
                false => {
                    let most = percent(family.error_max * 100.0);
                    format!(", more than {most}: do not rely on it")
                }
            };
            let error = percent(error * 100.0);
            format!("{label}: held-out cells predicted to {error}{checked}{beyond}")
        }
    }
}
