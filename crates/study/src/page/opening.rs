//! The first screen: the question, and how many claims came out how; then what those who made the
//! replay wrote beforehand, which no run has computed.

use std::fmt::Write as _;

use weigh_report::page::document::escape;

use super::prose::prose;
use crate::outcome::Outcome;
use crate::study::Study;
use crate::verdict::Verdict;

/// Title, the counts of the verdicts, and the replayers' summary.
pub(super) fn header(study: &Study, outcome: &Outcome) -> String {
    let warning = match outcome.state.as_str() {
        "done" => String::new(),
        state => format!(
            "<p class=\"warning\" role=\"note\">The run of this study is {}: this is what was \
             measured until then.</p>\n",
            escape(state)
        ),
    };
    format!(
        "<a class=\"skip\" href=\"#main\">Skip to the paper</a>\n<header>\n\
         <p class=\"run\"><b>Weighbridge</b> {} · study {} · {} · scale {} · {}</p>\n\
         <h1>{}</h1>\n{warning}</header>\n\
         <section class=\"short\" aria-labelledby=\"short-title\">\n\
         <h2 id=\"short-title\">{}</h2>\n{}</section>\n{}",
        escape(&outcome.version),
        escape(&study.name),
        escape(&outcome.started),
        outcome.scale,
        ways(outcome),
        escape(&study.question),
        claims(outcome.claims.len()),
        counts(outcome),
        beforehand(study),
    )
}

/// What those who made the replay take from it. It is a text of the study, as `because` is: where
/// the verdicts of a run say otherwise, the verdicts count.
fn beforehand(study: &Study) -> String {
    if study.finding.is_empty() {
        return String::new();
    }
    let findings = study.finding.iter().map(|text| format!("<li>{}</li>\n", prose(text)));
    format!(
        "<section class=\"short\" aria-labelledby=\"beforehand-title\">\n\
         <h2 id=\"beforehand-title\">What those who made the replay expect it to show</h2>\n\
         <p class=\"note\">Written beforehand, and not computed from this run: where a verdict \
         says otherwise, the verdict counts.</p>\n<ul>\n{}</ul>\n</section>\n",
        findings.collect::<String>()
    )
}

fn claims(number: usize) -> String {
    match number {
        1 => "One claim".to_owned(),
        number => format!("{number} claims"),
    }
}

/// In whose way it was run.
pub(super) fn ways(outcome: &Outcome) -> String {
    let names = outcome.ways.iter().map(|way| match way.name() {
        "published" => "as published",
        _ => "done right",
    });
    names.collect::<Vec<_>>().join(" and ")
}

/// Every verdict with its claims, which lead to where they stand.
fn counts(outcome: &Outcome) -> String {
    let mut html = "<ul class=\"verdicts\">\n".to_owned();
    for verdict in Verdict::ALL {
        let of = || outcome.claims.iter().filter(move |claim| claim.verdict == verdict);
        let links: Vec<String> = of()
            .map(|claim| format!("<a href=\"#claim-{0}\">{0}</a>", escape(&claim.id)))
            .collect();
        let _ = writeln!(
            html,
            "<li><b>{} {}</b> <span>{}</span></li>",
            of().count(),
            mark(verdict),
            links.join(" "),
        );
    }
    let meaning = Verdict::ALL.map(|verdict| format!("<b>{verdict}</b>: {}", means(verdict)));
    html += &format!("</ul>\n<p class=\"note\">{}.</p>\n", meaning.join("; "));
    // Nothing was answered: there is nothing to be wrong about.
    if outcome.certainty.judged > 0 {
        let _ = writeln!(html, "<p class=\"note\">{}</p>", outcome.certainty.sentence());
    }
    html
}

/// The word of a verdict, in its own colour.
pub(super) fn mark(verdict: Verdict) -> String {
    let class = verdict.name().split(' ').next().unwrap_or_default();
    format!("<span class=\"verdict {class}\">{verdict}</span>")
}

fn means(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "measured right, the sentence holds",
        Verdict::Explained => "done their way our run shows their picture and its cause",
        Verdict::Contradicted => "measured right it does not hold, or the picture does not appear",
        Verdict::NotTestableHere => "it takes what is not here, or the runs leave it open",
    }
}
