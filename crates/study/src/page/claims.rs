//! Every claim: what is said and where, what the paper prints, what our runs say to it, and the
//! verdict that follows.

use std::fmt::Write as _;

use weigh_report::figures::count;
use weigh_report::page::document::escape;

use super::numbers::{printed, with_interval};
use super::opening::mark;
use super::prose::{prose, series, shorter};
use crate::figures::number;
use crate::judging::together;
use crate::outcome::{
    Answer, CellShown, ClaimOutcome, FlagShown, Judged, Link, Outcome, QuantityShown, Role,
};

/// A table of all claims, then each with all that its verdict rests on.
pub(super) fn section(outcome: &Outcome) -> String {
    if outcome.claims.is_empty() {
        return String::new();
    }
    let mut html = "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"All claims\">\
                    <table class=\"study\">\n<thead><tr><th scope=\"col\">claim</th><th \
                    scope=\"col\" class=\"text\">verdict</th><th scope=\"col\" class=\"text\">why\
                    </th></tr></thead>\n<tbody>\n"
        .to_owned();
    for claim in &outcome.claims {
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\"><a href=\"#claim-{0}\">{0}</a> {1}</th><td class=\"text\">{2}\
             </td><td class=\"text\">{3}</td></tr>",
            escape(&claim.id),
            prose(&claim.says),
            mark(claim.verdict),
            prose(&claim.sentence),
        );
    }
    html += "</tbody></table></div>\n";
    html.extend(outcome.claims.iter().map(claim));
    html
}

fn claim(claim: &ClaimOutcome) -> String {
    let id = escape(&claim.id);
    let mut html = format!(
        "<article class=\"claim\" aria-labelledby=\"claim-{id}\">\n<h3 id=\"claim-{id}\">{id} {}\
         </h3>\n<p>“{}” <span class=\"note\">{}</span></p>\n",
        mark(claim.verdict),
        prose(&claim.says),
        escape(&claim.source),
    );
    html += &cells(&claim.cells);
    let _ = writeln!(html, "<p><b>{}</b></p>", prose(&claim.sentence));
    html += &because(claim);
    html += &conditions(claim);
    html + "</article>\n"
}

/// The study's own explanation: a fact where this run shows the cause, else what it is, a text that
/// was written beforehand; where no cause was asked for, an argument that no condition tests.
fn because(claim: &ClaimOutcome) -> String {
    let Some(because) = &claim.because else { return String::new() };
    let supposed = match together(&claim.conditions, Role::Cause) {
        Some(Answer::Yes) => "",
        None => "<span class=\"note\">The replay's remark:</span> ",
        _ => "<span class=\"note\">The replay supposed (and this run does not show it):</span> ",
    };
    format!("<p>{supposed}{}</p>\n", prose(because))
}

/// The published figures, then what is doubtful about them.
fn cells(cells: &[CellShown]) -> String {
    if cells.is_empty() {
        return String::new();
    }
    let mut html = "<ul class=\"cells\">\n".to_owned();
    for cell in cells {
        let x = match (cell.x.as_str(), cell.x_unit.as_str()) {
            ("", _) => String::new(),
            (x, unit) => format!(", {}", format!("{} {unit}", whole(x)).trim()),
        };
        let _ = write!(
            html,
            "<li><b title=\"{}\">{}</b> {}: {}{}",
            escape(&cell.printed),
            escape(&as_printed(cell)),
            escape(&cell.table),
            escape(&series(&cell.series)),
            escape(&x),
        );
        html += "</li>\n";
    }
    html + &flags(cells) + "</ul>\n"
}

/// What is doubtful about their printed form, once where it is about several of them.
fn flags(cells: &[CellShown]) -> String {
    let mut flags: Vec<&FlagShown> = Vec::new();
    for flag in cells.iter().flat_map(|cell| &cell.flags) {
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    let item = |flag: &FlagShown| {
        let about = match flag.about.as_str() {
            "" => String::new(),
            about => format!("elsewhere in this table, {}: ", escape(&series(about))),
        };
        format!(
            "<li class=\"flag\">{about}printed {}, read as {}: {} ({})</li>\n",
            escape(&flag.printed),
            escape(&flag.used),
            escape(&flag.reason),
            escape(&flag.confidence),
        )
    };
    flags.into_iter().map(item).collect()
}

/// A whole number with separators, any other text as it is.
fn whole(text: &str) -> String {
    text.parse::<u64>().map_or_else(|_| text.to_owned(), count)
}

/// A printed figure with its unit, its digits as far as a reader takes them in.
fn as_printed(cell: &CellShown) -> String {
    match (cell.printed.parse::<f64>(), cell.unit.as_str()) {
        (Ok(value), "ratio" | "1" | "") => format!("{} (ratio)", printed(value, "")),
        (Ok(value), "us") => printed(value, "µs"),
        (Ok(value), unit) => printed(value, unit),
        (Err(_), unit) => format!("{} {unit}", cell.printed).trim().to_owned(),
    }
}

/// What was asked with what the runs say to it.
fn conditions(claim: &ClaimOutcome) -> String {
    let conditions = &claim.conditions;
    if conditions.is_empty() {
        return String::new();
    }
    let mut html = "<details class=\"paper\"><summary>What it was judged by</summary>\n<div \
                    class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Conditions\">\
                    <table class=\"study\">\n<thead><tr><th scope=\"col\">condition</th><th \
                    scope=\"col\" class=\"text\">asks for</th><th scope=\"col\">estimate</th>\
                    <th scope=\"col\">interval at 95 %</th><th scope=\"col\">n</th><th \
                    scope=\"col\" class=\"text\">holds</th></tr></thead>\n<tbody>\n"
        .to_owned();
    for judged in conditions {
        let is_exact = judged.n.is_none() && judged.low == judged.high;
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\">{}<code>{}</code></th><td class=\"text\">{}</td><td>{}</td>\
             <td>{}</td><td>{}</td><td class=\"text\">{}{}</td></tr>",
            in_words(&judged.words),
            escape(&judged.text),
            asks_for(judged.role, claim),
            judged.estimate.map_or("–".to_owned(), number),
            if is_exact { "–".to_owned() } else { between(judged) },
            rests_on(judged, is_exact),
            answer(judged.answer),
            reasons(&judged.reasons),
        );
    }
    html += "</tbody></table></div>\n";
    let mut quantities: Vec<&QuantityShown> = Vec::new();
    for quantity in conditions.iter().flat_map(|judged| &judged.quantities) {
        if !quantities.iter().any(|known| known.name == quantity.name) {
            quantities.push(quantity);
        }
    }
    let items: String = quantities.into_iter().map(quantity_item).collect();
    if !items.is_empty() {
        html += &format!("<ul>\n{items}</ul>\n");
    }
    html + "</details>\n"
}

fn in_words(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("{}<br>", prose(words)) }
}

/// The interval of a condition's value: `0.640 to 1.03`, `at least 0`.
fn between(judged: &Judged) -> String {
    match (judged.low, judged.high) {
        (Some(low), Some(high)) => format!("{} to {}", number(low), number(high)),
        (Some(low), None) => format!("at least {}", number(low)),
        (None, Some(high)) => format!("at most {}", number(high)),
        (None, None) => "–".to_owned(),
    }
}

/// How many repetitions, or what else it rests on.
fn rests_on(judged: &Judged, is_exact: bool) -> String {
    match judged.n {
        Some(n) => n.to_string(),
        None if judged.estimate.is_none() => "–".to_owned(),
        None if is_exact => "exact".to_owned(),
        None => "a search".to_owned(),
    }
}

fn quantity_item(quantity: &QuantityShown) -> String {
    let told = |value| with_interval(value, (quantity.low, quantity.high), &quantity.unit);
    let value = quantity.value.map_or("–".to_owned(), told);
    let n = quantity.n.map_or(String::new(), |n| format!(", n = {n}"));
    let links: Vec<String> = quantity.links.iter().map(link).collect();
    format!(
        "<li><code>{}</code> = {}{n}: {} {}</li>\n",
        escape(&quantity.name),
        escape(&value),
        escape(&series(&quantity.text)),
        links.join(", ")
    )
}

/// A run's report, at the table of its cells, with the cell and its trials by name.
fn link(link: &Link) -> String {
    if link.folder.is_empty() {
        return format!("<span class=\"note\">{}</span>", escape(&series(&link.cell)));
    }
    let trials = match link.trials.len() {
        0 => String::new(),
        _ => format!(" title=\"trials {}\"", escape(&link.trials.join(", "))),
    };
    let cell =
        if link.cell.is_empty() { String::new() } else { format!(": {}", shorter(&link.cell)) };
    format!(
        "<a href=\"{}/report.html#overview\"{trials}>{}{}</a>",
        escape(&link.folder),
        escape(&link.run),
        escape(&cell)
    )
}

fn reasons(reasons: &[String]) -> String {
    match reasons {
        [] => String::new(),
        reasons => format!("<br><span>{}</span>", escape(&reasons.join("; "))),
    }
}

fn asks_for(role: Role, claim: &ClaimOutcome) -> String {
    let by_paper = claim.by_paper.contains(&role);
    let by_model = claim.by_model.contains(&role);
    let (what, beside) = match role {
        Role::Picture => ("their picture", ""),
        Role::Cause => ("its cause", ""),
        Role::Truth => ("the sentence", ", measured right"),
    };
    match (by_paper, by_model) {
        (true, _) => format!("{what}, by their own figures"),
        (false, true) => format!("{what}, in part modelled"),
        (false, false) => format!("{what}{beside}"),
    }
}

fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Undecided => "undecided",
    }
}
