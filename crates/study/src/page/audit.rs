//! What the printed figures show without a run: the rules that they break, each once, with the
//! arithmetic of its first finding and the others behind a fold.

use std::fmt::Write as _;

use crate::audit::Finding;
use weigh_model::Rule;
use weigh_report::page::document::escape;

use super::parts::{fold, list};
use super::prose::{and, counted};
use crate::study::Study;

/// The rules that the paper's figures break.
pub(super) fn section(study: &Study) -> String {
    if study.audit.findings.is_empty() {
        return String::new();
    }
    let mut html = "<dl class=\"rules\">\n".to_owned();
    for rule in study.audit.rules() {
        let found = study.audit.findings.iter().filter(|finding| finding.rule == rule);
        html += &of_rule(rule, &found.collect::<Vec<_>>());
    }
    let name = escape(&study.name);
    html + &format!(
        "</dl>\n<p class=\"note\"><code>weigh audit --study {name} --page audit.html</code> shows \
         what each rule asks and every figure.</p>\n"
    )
}

fn of_rule(rule: Rule, found: &[&Finding]) -> String {
    let mut tables: Vec<&str> = Vec::new();
    for finding in found {
        if !tables.contains(&finding.place.table.as_str()) {
            tables.push(&finding.place.table);
        }
    }
    let number: usize = found.iter().map(|finding| 1 + finding.also.len()).sum();
    let first = found.first().map_or(String::new(), |finding| escape(&finding.seen));
    let mut html = String::new();
    let _ = write!(
        html,
        "<div><dt id=\"rule-{rule}\">{rule} {}</dt><dd><p>{first} <span class=\"muted\">({} in \
         {})</span></p>",
        escape(rule.title()),
        counted(number, "finding", "findings"),
        escape(&and(&tables)),
    );
    let rest = found.iter().enumerate().flat_map(|(nth, finding)| {
        let own = (nth > 0).then_some(finding.seen.as_str());
        let place = escape(&finding.place.table);
        own.into_iter()
            .chain(finding.also.iter().map(String::as_str))
            .map(move |seen| format!("{} <span class=\"muted\">({place})</span>", escape(seen)))
            .collect::<Vec<_>>()
    });
    html += &fold(&counted(number - 1, "more", "more"), &list(rest));
    html + "</dd></div>\n"
}
