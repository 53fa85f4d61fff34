//! The answer as a small table of plain text.

use weigh_report::figures::{count, three_digits};

use super::outcome::{Carried, CarryOutcome, LaneShown, Reach};

/// The answer for a terminal: what was asked, a line a lane, and what to know beside it.
pub fn table(outcome: &CarryOutcome) -> String {
    let mut rows = vec![header(outcome)];
    let columns = rows[0].len();
    rows.extend(outcome.lanes.iter().map(|lane| row(lane, columns)));
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = format!("{}\n{}\n\n", outcome.question, terms(outcome));
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text += cells.collect::<Vec<String>>().join("  ").trim_end();
        text.push('\n');
    }
    for note in notes(outcome) {
        text += &format!("\n{note}");
    }
    text + "\n"
}

/// What one unit is, and what the server has.
fn terms(outcome: &CarryOutcome) -> String {
    format!(
        "A {} is {} devices, each with a message every {} s; the server has {} core{} and {} of \
         memory.",
        outcome.unit,
        outcome.sensors,
        three_digits(outcome.interval_s).trim_end_matches(".0"),
        outcome.cores,
        if outcome.cores == 1.0 { "" } else { "s" },
        weigh_report::figures::bytes(outcome.memory_bytes),
    )
}

fn header(outcome: &CarryOutcome) -> Vec<String> {
    let mut row = vec![String::new(), format!("measured {}s", outcome.unit)];
    for carried in headrooms(outcome) {
        row.push(format!("at {:.0} % of the cores", carried * 100.0));
        row.push("95 % interval".to_owned());
        row.push("ends at".to_owned());
    }
    row
}

fn headrooms(outcome: &CarryOutcome) -> Vec<f64> {
    let fullest = outcome.lanes.iter().max_by_key(|lane| lane.carried.len());
    fullest.map_or(Vec::new(), |lane| lane.carried.iter().map(|carried| carried.headroom).collect())
}

fn row(lane: &LaneShown, columns: usize) -> Vec<String> {
    let floor = lane.floor.as_ref();
    let mut row = vec![
        lane.label.clone(),
        floor.map_or("-".to_owned(), |floor| format!("at least {}", count(floor.units as u64))),
    ];
    for carried in &lane.carried {
        let Carried { units, units_low, units_high, .. } = carried;
        let mark = match carried.reach {
            Reach::Measured => "",
            Reach::Composed => " +",
            Reach::Beyond => " *",
        };
        row.push(format!("{}{mark}", rounded(*units)));
        row.push(format!("{} to {}", rounded(*units_low), rounded(*units_high)));
        row.push(carried.binds.clone());
    }
    row.resize(columns.max(row.len()), "-".to_owned());
    row
}

/// A number of units with as many digits as it deserves.
fn rounded(units: f64) -> String {
    if units < 1000.0 { count(units as u64) } else { three_digits(units) }
}

fn notes(outcome: &CarryOutcome) -> Vec<String> {
    let reaches = outcome.lanes.iter().flat_map(|lane| &lane.carried).map(|carried| carried.reach);
    let reaches: Vec<Reach> = reaches.collect();
    let mut notes = Vec::new();
    if reaches.contains(&Reach::Composed) {
        notes.push("+ as many connections and as high a rate were measured, but apart".to_owned());
    }
    if reaches.contains(&Reach::Beyond) {
        notes.push("* beyond what was measured: the cost model alone".to_owned());
    }
    for lane in outcome.lanes.iter().filter(|lane| lane.refused.is_some()) {
        notes.push(format!("{}: {}", lane.label, lane.refused.as_deref().unwrap_or_default()));
    }
    for family in &outcome.families {
        notes.push(match (family.held_out_error, &family.refused) {
            (_, Some(why)) => format!("{}: {why}", family.label),
            (Some(error), None) => format!(
                "{}: held-out cells foretold to {:.0} %{}{}",
                family.label,
                error * 100.0,
                family.checked_error.map_or(String::new(), |checked| format!(
                    ", cells of other runs to {:.0} %",
                    checked * 100.0
                )),
                if family.is_foretelling {
                    String::new()
                } else {
                    format!(", more than {:.0} %: do not rely on it", family.error_max * 100.0)
                },
            ),
            (None, None) => format!("{}: too few cells to hold any out", family.label),
        });
    }
    notes.extend(outcome.missing.iter().map(|why| format!("missing: {why}")));
    notes
}
