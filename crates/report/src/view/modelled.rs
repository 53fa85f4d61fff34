//! Columns and sentences of modelled energy.

use weigh_energy::answer::RUNS;

use crate::figures::{between, percent, three_digits};
use crate::summary::metric::ends;
use crate::summary::modelled::{Contribution, Modelled, ModelledRatio};
use crate::summary::{Cell, Verdict};

/// Headings of the table, and the metric of each.
pub(crate) fn columns(modelled: &Modelled) -> Vec<(String, &'static str)> {
    let every = span(modelled.every_s);
    let duty = |what: &str| format!("{what},\nevery {every}");
    vec![
        ("J/message,\nno pause".to_owned(), "modelled_energy_j_per_message"),
        ("mAh/session,\nno pause".to_owned(), "modelled_energy_mah_per_session"),
        ("sessions\nper battery".to_owned(), "modelled_sessions_per_charge"),
        ("messages\nper battery".to_owned(), MESSAGES),
        ("battery life,\nno pause".to_owned(), LIFETIME),
        (duty("J/message"), "modelled_wake_j_per_message"),
        (duty("battery days"), "modelled_days_per_charge"),
    ]
}

/// The text of a figure in the table.
pub(crate) fn shown(cell: &Cell, metric: &str) -> Option<String> {
    let own = cell.metrics.get(metric)?;
    let value = own.value?;
    if metric != LIFETIME {
        return Some(between(value, ends(own)));
    }
    let (divisor, unit) = unit(value);
    let ends = ends(own).map(|(low, high)| (low / divisor, high / divisor));
    Some(format!("{} {unit}", between(value / divisor, ends)))
}

/// Basis and main sources of uncertainty of the figures, line by line.
pub(crate) fn lines(modelled: &Modelled) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(modelled.battery.iter().map(|battery| format!("  battery: {battery}")));
    lines.push(
        "  no pause: the device sends as the trial did, until the battery is empty: who sends \
         faster empties it sooner. Time for a message: from the trial's first packet to its \
         last one, divided by the number of messages"
            .to_owned(),
    );
    lines.push(format!(
        "  every {}: the device sleeps, sends one message, and sleeps again. J/message \
         leaves out sleeping; `battery days` includes it, and also the keep-alives of a connection \
         that stays open. Devices that receive (subscribers) are not modelled",
        span(modelled.every_s)
    ));
    lines.push(format!(
        "  \u{b1}: 95 % interval from {} random draws of the model's coefficients (seed {}) and \
         the differences between repetitions. Both sides of a ratio share the model's errors, so \
         the ratio is more certain than either. Effects missing from the model are not covered. \
         For the sources type weigh energy devices",
        crate::figures::count(modelled.draws),
        modelled.seed
    ));
    let budget = |title: &str, cell: &str, shares: &[Contribution]| {
        let first: Vec<String> = shares
            .iter()
            .filter(|own| own.share >= SHARE_MIN)
            .take(NAMED)
            .map(contribution)
            .collect();
        let from = first.join(", ");
        (!first.is_empty())
            .then(|| format!("  {cell}, {title}: main sources of the uncertainty: {from}"))
    };
    for cell in &modelled.cells {
        lines.extend(cell.keep_alives.iter().map(|text| format!("  {}: {text}", cell.cell)));
        if let Some(reason) = &cell.absent {
            lines.push(format!("  {}: not modelled: {reason}", cell.cell));
        }
        lines.extend(budget("no pause", &cell.cell, &cell.weighed_budget));
        lines.extend(budget(
            &format!("every {}", span(modelled.every_s)),
            &cell.cell,
            &cell.duty_budget,
        ));
    }
    let headings = columns(modelled);
    let shown = modelled.comparisons.iter().take(LINES_MAX).map(|own| ratio(own, &headings));
    lines.extend(shown);
    let rest = modelled.comparisons.len().saturating_sub(LINES_MAX);
    if rest > 0 {
        lines.push(format!("  {rest} more ratios: summary.json has them"));
    }
    lines
}

/// A ratio in a line, under the heading of its column; if the model cannot distinguish the sides,
/// only the interval.
fn ratio(own: &ModelledRatio, headings: &[(String, &str)]) -> String {
    let ModelledRatio { metric, left, right, ratio, verdict } = own;
    let heading = headings.iter().find(|(_, known)| known == metric);
    let what = heading.map_or_else(|| metric.clone(), |(text, _)| text.replace('\n', " "));
    match (verdict, ratio.low.zip(ratio.high)) {
        (_, None) => format!("  {what}: {left} and {right}: fewer than 3 repetitions, no ratio"),
        (Verdict::Lower | Verdict::Higher, Some((low, high))) => format!(
            "  {what}: {left} has {:.2} times ({low:.2} to {high:.2}) the value of {right}",
            ratio.value
        ),
        (_, Some((low, high))) => format!(
            "  {what}: the model cannot distinguish {left} and {right}: the ratio is {low:.2} to \
             {high:.2}"
        ),
    }
}

fn contribution(own: &Contribution) -> String {
    let key = own.name.rsplit(' ').next().unwrap_or_default();
    let words = match &own.name {
        runs if runs == RUNS => Some("repetitions"),
        _ => COEFFICIENTS.iter().find(|(known, _)| *known == key).map(|(_, words)| *words),
    };
    format!("{} ({})", words.unwrap_or(&own.name), percent(own.share * 100.0))
}

/// A span as people say it: `1 min`, `12.9 h`.
pub(crate) fn span(seconds: f64) -> String {
    let (divisor, unit) = unit(seconds);
    let number = three_digits(seconds / divisor);
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => &number,
    };
    format!("{number} {unit}")
}

fn unit(seconds: f64) -> (f64, &'static str) {
    match seconds {
        short if short < 60.0 => (1.0, "s"),
        medium if medium < 3_600.0 => (60.0, "min"),
        long if long < 3.0 * 86_400.0 => (3600.0, "h"),
        _ => (86_400.0, "days"),
    }
}

/// Coefficients that often decide, in words.
const COEFFICIENTS: [(&str, &str); 5] = [
    ("connected", "power while connected"),
    ("connect", "energy to connect"),
    ("connect_time", "time to connect"),
    ("message", "energy of a message"),
    ("tail_power", "power after the last packet"),
];

const LIFETIME: &str = "modelled_lifetime_s";

pub(crate) const MESSAGES: &str = "modelled_messages_per_charge";

/// Sources of variance that are named.
const NAMED: usize = 3;

/// A smaller share would be printed as 0 %.
const SHARE_MIN: f64 = 0.005;

/// Maximum number of ratios.
const LINES_MAX: usize = 12;
