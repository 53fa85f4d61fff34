//! The conditions of a claim and the quantities in them, as a table and a list with links to the
//! runs that they are from.

use std::fmt::Write as _;

use weigh_report::page::document::escape;

use super::numbers::{between, printed, with_interval};
use super::prose::{prose, series, shorter};
use crate::figures::number;
use crate::outcome::{Answer, ClaimOutcome, Judged, Link, QuantityShown, Role};

/// The conditions with what the evidence says, then what they are made of.
pub(super) fn table(claim: &ClaimOutcome) -> String {
    let conditions = &claim.conditions;
    if conditions.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Conditions of {}\">\
         <table>\n<thead><tr><th scope=\"col\" class=\"text\">condition</th><th scope=\"col\" \
         class=\"text\">for</th><th scope=\"col\">value</th><th scope=\"col\">95 % interval</th>\
         <th scope=\"col\">n</th><th scope=\"col\" class=\"text\">holds</th></tr></thead>\n<tbody>\
         \n",
        escape(&claim.id)
    );
    for judged in conditions {
        let is_exact = judged.n.is_none() && judged.low == judged.high;
        let interval =
            if is_exact { "–".to_owned() } else { between((judged.low, judged.high), "1") };
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\">{}<code>{}</code></th><td class=\"text\">{}</td><td>{}</td><td>\
             {interval}</td><td>{}</td><td class=\"text\">{}{}</td></tr>",
            in_words(&judged.words),
            escape(&judged.text),
            escape(&role(judged.role, judged.lane, claim)),
            judged.estimate.map_or("–".to_owned(), number),
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
    html + &super::parts::list(quantities.into_iter().map(quantity_item))
}

fn in_words(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("{}<br>", prose(words)) }
}

/// Number of repetitions, or the kind of evidence.
fn rests_on(judged: &Judged, is_exact: bool) -> String {
    match judged.n {
        Some(n) => n.to_string(),
        None if judged.estimate.is_none() => "–".to_owned(),
        None if is_exact => "exact".to_owned(),
        None => "a search".to_owned(),
    }
}

fn reasons(reasons: &[String]) -> String {
    match reasons {
        [] => String::new(),
        reasons => format!("<br><span class=\"muted\">{}</span>", escape(&reasons.join("; "))),
    }
}

fn quantity_item(quantity: &QuantityShown) -> String {
    let is_exact = quantity.n.is_none() && quantity.low.is_none() && quantity.high.is_none();
    let shown = |value| match is_exact {
        true => printed(value, &quantity.unit),
        false => with_interval(value, (quantity.low, quantity.high), &quantity.unit),
    };
    let value = quantity.value.map_or("–".to_owned(), shown);
    let n = quantity.n.map_or(String::new(), |n| format!(", n = {n}"));
    let links: Vec<String> = quantity.links.iter().map(link).collect();
    format!(
        "<code>{}</code> = {}{n}: {} {}",
        escape(&quantity.name),
        escape(&value),
        escape(&series(&quantity.text)),
        links.join(", ")
    )
}

/// Source of a figure: the report of its run, or its place in the paper.
fn link(link: &Link) -> String {
    if link.folder.is_empty() {
        let (table, own) = link.cell.rsplit_once(", ").unwrap_or(("", &link.cell));
        let place = format!("{table}, {}", series(own));
        let place = place.trim_start_matches(", ");
        return format!("<span class=\"muted\">({})</span>", escape(place));
    }
    let trials = match &link.trials[..] {
        [] => String::new(),
        trials => format!(" title=\"trials {}\"", escape(&trials.join(", "))),
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

/// Purpose of a condition, in words.
pub(super) fn role(role: Role, lane: usize, claim: &ClaimOutcome) -> String {
    let what = match role {
        Role::Printed => "as printed".to_owned(),
        Role::Possible => "possible as printed".to_owned(),
        Role::Replayed => "replayed".to_owned(),
        Role::Named => {
            let on = claim.replays.get(lane).map_or("", |replay| replay.on.as_str());
            format!("replayed on {on}")
        }
        Role::Why => "why".to_owned(),
    };
    match claim.by_model.contains(&role) {
        true => format!("{what}, in part modelled"),
        false => what,
    }
}

/// What the evidence says to a condition.
pub(super) fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::Undecided => "undecided",
    }
}
