//! Reads the quantities of claims: what of a run, of a search, of a tool, of published figures or
//! of the audit each name stands for.

use weigh_model::Rule;
use weigh_model::ledger::Ledger;
use weigh_plan::kind::nearest;

use crate::expression::Bound;
use crate::quantity::{Along, Quantity, Source, Statistic};
use crate::run_checks::Meant;
use crate::scale::Scale;
use crate::slips::{Around, Slip, no_cell};
use crate::tools::no_figure;
use crate::written::{FindingFile, FitFile, QuantityFile, StatisticFile, text_of};

/// Reads the kind of a quantity from its keys.
pub(crate) fn read(
    written: &QuantityFile,
    around: &Around<'_>,
    needs_full: bool,
) -> Result<Quantity, Slip> {
    check_keys(written)?;
    if let Some(finding) = &written.audit {
        return finding_of(finding, around);
    }
    if let (Some(table), Some(series)) = (&written.table, &written.series) {
        return published(written, table, series, around);
    }
    let Some(run) = &written.run else {
        let fix = "add run and metric, table and series, or audit".to_owned();
        return Err(("it has no source".to_owned(), fix));
    };
    if let Some(name) = &written.limit {
        return limit(run, name, written, around);
    }
    if let Some(figure) = &written.tool {
        return tool(run, figure, around);
    }
    let plan = around.matrix(run)?;
    let (run, at) = (run.clone(), around.selector(plan, &written.at)?);
    if let Some(metric) = &written.interference {
        around.metric(metric)?;
        let mut with = at.clone();
        with.0.insert(weigh_plan::background::STATE.to_owned(), weigh_plan::background::ON.into());
        around.check_cells(plan, &with, Meant::One, needs_full)?;
        return Ok(Quantity::Interference { run, metric: metric.clone(), at: with });
    }
    let source = match (&written.metric, &written.ledger) {
        (Some(metric), None) => {
            around.metric(metric)?;
            Source::Metric(metric.clone())
        }
        (None, Some(name)) => Source::Ledger(ledger(name)?),
        _ => {
            let fix = "add one of metric, ledger, limit, interference".to_owned();
            return Err((format!("it does not name a figure of {run}"), fix));
        }
    };
    let Some(over) = &written.over else {
        around.check_cells(plan, &at, Meant::One, needs_full)?;
        let (statistic, even_limited) = (statistic(written.statistic), written.even_limited);
        return Ok(Quantity::Cell { run, source, at, statistic, even_limited });
    };
    let over = around.axis(plan, over)?;
    let what = along(written)?;
    around.check_cells(plan, &at, Meant::Along(&over, cells_needed(what)), needs_full)?;
    Ok(Quantity::Along { run, source, at, over, what })
}

/// A figure of a tool.
fn tool(run: &str, figure: &str, around: &Around<'_>) -> Result<Quantity, Slip> {
    let Some(tool) = around.tools.iter().find(|tool| tool.name == run) else {
        let names = around.tools.iter().map(|tool| tool.name.as_str());
        let fix = nearest(run, names).map(|near| format!("did you mean {near}?"));
        let fix = fix.unwrap_or_else(|| "write tools/NAME with a name of tools.toml".to_owned());
        return Err((format!("tools.toml has no tool {run:?}"), fix));
    };
    if !tool.figures().iter().any(|known| known == figure) {
        return Err(no_figure(tool, figure));
    }
    Ok(Quantity::Tool { run: run.to_owned(), figure: figure.to_owned() })
}

/// Keys that mean nothing beside each other.
fn check_keys(written: &QuantityFile) -> Result<(), Slip> {
    let own = written;
    let (is_audit, is_limit) = (own.audit.is_some(), own.limit.is_some());
    let is_published = own.table.is_some() || own.series.is_some();
    let said = [
        ("run", own.run.is_some()),
        ("metric", own.metric.is_some()),
        ("ledger", own.ledger.is_some()),
        ("limit", is_limit),
        ("goal", own.goal.is_some()),
        ("interference", own.interference.is_some()),
        ("at", !own.at.is_empty()),
        ("over", own.over.is_some()),
        ("fit", own.fit.is_some()),
        ("first", own.first.is_some()),
        ("statistic", own.statistic.is_some()),
        ("even_limited", own.even_limited),
        ("table", own.table.is_some()),
        ("series", own.series.is_some()),
        ("x", own.x.is_some()),
        ("audit", is_audit),
        ("tool", own.tool.is_some()),
    ];
    let allowed: &[&str] = if is_audit {
        &["audit"]
    } else if is_published {
        &["table", "series", "x", "over", "fit", "first", "statistic"]
    } else if is_limit {
        &["run", "limit", "goal", "at"]
    } else if own.tool.is_some() {
        &["run", "tool"]
    } else if own.interference.is_some() {
        &["run", "interference", "at"]
    } else if own.over.is_some() {
        &["run", "metric", "ledger", "at", "over", "fit", "first", "statistic"]
    } else {
        &["run", "metric", "ledger", "at", "statistic", "even_limited"]
    };
    let stray = said.iter().find(|(key, is_said)| *is_said && !allowed.contains(key));
    match stray {
        Some((key, _)) => Err((
            format!("{key} cannot be combined with the other keys"),
            format!("possible keys: {}", allowed.join(", ")),
        )),
        None => Ok(()),
    }
}

fn statistic(written: Option<StatisticFile>) -> Statistic {
    match written {
        None | Some(StatisticFile::Mean) => Statistic::Mean,
        Some(StatisticFile::Cv) => Statistic::Variation,
        Some(StatisticFile::Min) => Statistic::Least,
        Some(StatisticFile::Max) => Statistic::Most,
        Some(StatisticFile::Sd) => Statistic::Deviation,
    }
}

/// What is taken along an axis: one thing.
fn along(written: &QuantityFile) -> Result<Along, Slip> {
    let fix = || "add one of fit, first".to_owned();
    match (written.fit, &written.first, written.statistic) {
        (Some(fit), None, None) => Ok(match fit {
            FitFile::Slope => Along::Slope,
            FitFile::Intercept => Along::Intercept,
            FitFile::Correlation => Along::Correlation,
        }),
        (None, Some(text), None) => {
            let said = |said: String| {
                let (text, fix) = said.split_once(": ").unwrap_or((&said, ""));
                (format!("first: {text}"), fix.to_owned())
            };
            Bound::read(text).map(Along::First).map_err(said)
        }
        (None, None, Some(_)) if written.run.is_none() => {
            Ok(Along::Over(statistic(written.statistic)))
        }
        _ => Err(("it does not name what is computed over the axis".to_owned(), fix())),
    }
}

/// Number of points needed.
fn cells_needed(what: Along) -> usize {
    match what {
        Along::First(_) => 1,
        Along::Slope | Along::Intercept | Along::Over(_) => 2,
        Along::Correlation => 3,
    }
}

fn published(
    written: &QuantityFile,
    table: &str,
    series: &str,
    around: &Around<'_>,
) -> Result<Quantity, Slip> {
    let Some(over) = &written.over else {
        if written.fit.is_some() || written.first.is_some() || written.statistic.is_some() {
            let text = "one published figure has no line and no spread".to_owned();
            return Err((text, "add over = \"x\"".to_owned()));
        }
        let x = text_of(written.x.as_ref());
        let found = around.published.find(table, series, &x);
        return found
            .map(|cell| Quantity::Published { cell })
            .ok_or_else(|| no_cell(table, series, &x));
    };
    if over != "x" || written.x.is_some() {
        let text = "published figures are taken over x, all of a series".to_owned();
        return Err((text, "write over = \"x\", and remove x".to_owned()));
    }
    let what = along(written)?;
    let cells = around.published.along(table, series);
    if cells.is_empty() {
        return Err(no_cell(table, series, ""));
    }
    if cells.len() < cells_needed(what) {
        let text = format!(
            "the series has {} figures; at least {} are needed",
            cells.len(),
            cells_needed(what)
        );
        return Err((text, "use another series".to_owned()));
    }
    Ok(Quantity::PublishedAlong { cells, what })
}

fn limit(
    run: &str,
    name: &str,
    written: &QuantityFile,
    around: &Around<'_>,
) -> Result<Quantity, Slip> {
    let plan = around.run(run)?;
    let Some(search) = &plan.at(Scale::Full).search else {
        let fix = format!("write [{}.limit] in {}, or use a metric", plan.table, plan.way.file());
        return Err((format!("{run} searches no limit"), fix));
    };
    let found = search.limit_name();
    if found != name {
        let text = format!("the search of {run} does not find {name:?}");
        return Err((text, format!("it finds {found}")));
    }
    if let Some(goal) = written.goal.as_ref().filter(|goal| !search.goals.contains(goal)) {
        let goals: Vec<String> = search.goals.iter().map(|goal| format!("{goal:?}")).collect();
        let text = format!("the search of {run} has no goal {goal:?}");
        return Err((text, format!("expected one of {}", goals.join(", "))));
    }
    let at = around.selector(plan, &written.at)?;
    if at.0.contains_key(search.key()) {
        let text = format!("{} is varied by the search", search.key());
        return Err((text, "remove it from at".to_owned()));
    }
    around.check_cells(plan, &at, Meant::One, false)?;
    Ok(Quantity::Limit {
        run: run.to_owned(),
        name: name.to_owned(),
        goal: written.goal.clone(),
        at,
    })
}

/// The name of a count in a ledger.
fn ledger(name: &str) -> Result<String, Slip> {
    let ledger = serde_json::to_value(Ledger::zero()).unwrap_or_default();
    let plain = ledger.as_object().into_iter().flatten();
    let mut names: Vec<String> =
        plain.filter(|(_, count)| !count.is_object()).map(|(name, _)| name.clone()).collect();
    names.extend(CAUSES.map(|cause| format!("causes.{cause}")));
    names.extend(NOT_SENT.map(|cause| format!("not_sent_causes.{cause}")));
    if names.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let text = format!("unknown count {name:?} of the ledger");
    let fix = match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("expected one of {}", names.join(", ")),
    };
    Err((text, fix))
}

fn finding_of(written: &FindingFile, around: &Around<'_>) -> Result<Quantity, Slip> {
    let FindingFile { finding, series } = written;
    let rule: Rule = finding.parse().map_err(|_| {
        (format!("{finding:?} is not a rule of the audit"), "type one of L01 to L21".to_owned())
    })?;
    let cells = &around.published.cells;
    if !cells.iter().any(|cell| has_words(&cell.table, series) || has_words(&cell.series, series)) {
        let text = format!("no published table or series contains {series:?}");
        return Err((text, "write whole words of a table's or a series' name".to_owned()));
    }
    let is_it = |place: &str| has_words(place, series);
    let is_found = around.audit.findings.iter().any(|found| {
        let places = [&found.place.table, &found.place.series];
        let is_there = places.into_iter().chain(&found.also).any(|place| is_it(place));
        found.rule == rule && (is_there || is_it(&found.seen))
    });
    Ok(Quantity::Finding { rule: rule.code().to_owned(), place: series.clone(), is_found })
}

/// Whether `text` has these words in it, whole: `Table 1` is not in `Table 10`.
fn has_words(text: &str, words: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let parts = |left: Option<char>, right: Option<char>| {
        !(left.is_some_and(is_word) && right.is_some_and(is_word))
    };
    let mut found = text.match_indices(words);
    !words.is_empty()
        && found.any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + words.len()..]);
            parts(before.chars().next_back(), words.chars().next())
                && parts(words.chars().next_back(), after.chars().next())
        })
}

/// Why messages are lost, as ledgers name it.
const CAUSES: [&str; 9] = [
    "producer_dropped",
    "connection_closed",
    "server_dropped",
    "subscriber_disconnected",
    "error_answer",
    "receive_queue_full",
    "timeout",
    "corrupt",
    "unknown",
];

/// Why messages are not sent, as ledgers name it.
const NOT_SENT: [&str; 3] = ["window_full", "connection_closed", "interrupted"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whole() {
        for (text, words, is_there) in [
            ("Table 1", "Table 1", true),
            ("Table 10", "Table 1", false),
            ("see Table 10 and Table 1.", "Table 1", true),
            ("protocol=HTTP;stat=total", "stat=total", true),
            ("protocol=HTTP;stat=total_time", "stat=total", false),
            ("protocol=HTTP;stat=total", "HTTP;", true),
            ("Über 5", "ber 5", false),
            ("Table 1", "", false),
        ] {
            assert_eq!(has_words(text, words), is_there, "{words:?} in {text:?}");
        }
    }
}
