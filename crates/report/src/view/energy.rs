//! Notes on measured energy: the meter, and the largest part of its uncertainty.

use crate::summary::{Cell, Summary};
use weigh_model::numbers::percent;

/// Notes below a table of energies that were measured, or requested and not measured; `has_sign` if
/// the table has a "±".
pub(crate) fn notes(summary: &Summary, has_sign: bool) -> Vec<String> {
    let Some(meter) = &summary.run.meter else { return Vec::new() };
    let has = |cell: &Cell| cell.metrics.contains_key("energy_j");
    if let Some(reason) = meter.absent.as_ref().filter(|_| meter.is_asked) {
        return vec![format!("energy: not measured: {reason}")];
    }
    if !summary.cells.iter().any(has) {
        return Vec::new();
    }
    let name = meter.meter.as_deref().unwrap_or_default();
    let covers = meter.covers.as_deref().map_or(String::new(), |covers| format!(" ({covers})"));
    let idle = summary.run.plan.observe.idle_each();
    let idle = match idle.0 {
        0 => "; above idle it is unknown without idle phases: --meter and --idle 60s".to_owned(),
        _ => format!("; idling was measured for {idle} before and after each trial"),
    };
    let mut lines = vec![format!("energy: measured by {name}{covers}{idle}")];
    let charged = |cell: &&Cell| cell.metrics.contains_key("energy_mah_per_session");
    let charged = summary.cells.iter().find(charged);
    let voltage = charged.and_then(|cell| cell.metrics.get("energy_voltage_v")?.value);
    lines.extend(voltage.map(|volts| format!("mAh: charge that was drawn at {volts:.2} V")));
    lines.extend(largest(summary, has_sign));
    lines
}

/// The largest line of the first budget.
fn largest(summary: &Summary, has_sign: bool) -> Option<String> {
    let per_message = |cell: &&Cell| cell.metrics.contains_key("energy_j_per_message");
    let cell = summary.cells.iter().find(per_message)?;
    let metric = &cell.metrics["energy_j_per_message"];
    let (value, line) = (metric.value?, metric.budget.first()?);
    let meter = if has_sign { "the meter's is part of ±; " } else { "" };
    Some(format!(
        "uncertainty of energy: {meter}the largest line of {} is {}, {} ({})",
        cell.name,
        line.source,
        percent(100.0 * line.standard_uncertainty / value.abs()),
        line.basis
    ))
}
