//! The index page of several studies that were run together: each with its paper and the answers to
//! its claims, and a link to its own page.

use std::fmt::Write as _;

use weigh_report::page::document::{escape, still};

use super::front;
use super::prose::{counted, prose};
use crate::answers::{Printed, Replayed, Why};
use crate::outcome::{ClaimOutcome, Outcome};

/// A study on the index page.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'o> {
    /// Its outcome.
    pub outcome: &'o Outcome,
    /// Where its page is, relative to the index page.
    pub href: &'o str,
}

/// The index page of `entries`, in their order.
pub fn index(entries: &[Entry<'_>]) -> String {
    let number = counted(entries.len(), "published study", "published studies");
    let mut body = format!(
        "<a class=\"skip\" href=\"#main\">Skip to the studies</a>\n<header>\n<p class=\"kicker\">\
         Weighbridge {}</p>\n<h1>{number}, replayed</h1>\n<p class=\"note\">Each claim has three \
         answers: <b>as printed</b>, arithmetic on the paper's own figures; <b>replayed\
         </b>, what the experiment shows when it is repeated here; <b>why</b>, whether the cause \
         was shown. A link leads to the claim.</p>\n</header>\n<main id=\"main\">\n",
        entries.first().map_or(String::new(), |one| escape(&one.outcome.version)),
    );
    body.extend(entries.iter().enumerate().map(|(nth, entry)| study(nth, entry)));
    body += "</main>\n";
    still(&format!("{number}, replayed"), &body, super::STYLE)
}

fn study(nth: usize, entry: &Entry<'_>) -> String {
    let Entry { outcome, href } = entry;
    let mut html = format!(
        "<section class=\"entry\" aria-labelledby=\"study-{nth}\">\n<h2 id=\"study-{nth}\"><a \
         href=\"{}\">{}</a></h2>\n<p class=\"note\">{}: {}</p>\n",
        escape(href),
        prose(&outcome.question),
        escape(&outcome.study),
        front::citation(outcome),
    );
    let warnings = front::warnings(outcome);
    html.extend(warnings.iter().map(|text| format!("<p class=\"bad\">{}</p>\n", prose(text))));
    html += "<dl class=\"tally\">\n";
    let claims = &outcome.claims;
    let mut answer = |what: &str, groups: &[(&str, Vec<&ClaimOutcome>)]| {
        let groups = groups.iter().filter(|(_, claims)| !claims.is_empty());
        let groups: Vec<String> =
            groups.map(|(word, claims)| format!("<b>{word}</b> {}", links(claims, href))).collect();
        let _ = writeln!(html, "<div><dt>{what}</dt><dd>{}</dd></div>", groups.join(" · "));
    };
    let by = |is_meant: &dyn Fn(&ClaimOutcome) -> bool| -> Vec<&ClaimOutcome> {
        claims.iter().filter(|claim| is_meant(claim)).collect()
    };
    let printed = Printed::ALL.map(|own| (own.name(), by(&|claim| claim.printed == own)));
    answer("as printed", &printed);
    let is_same = |claim: &ClaimOutcome| claim.replays.first().is_some_and(|one| one.is_same);
    let own = |claim: &ClaimOutcome| claim.replays.first().map(|one| one.answer);
    let replayed = |answer, same| by(&|claim| own(claim) == Some(answer) && is_same(claim) == same);
    let (yes, no) = (Replayed::Reproduced, Replayed::NotReproduced);
    answer(
        "replayed",
        &[
            ("reproduced", replayed(yes, true)),
            ("reproduced with a stand-in", replayed(yes, false)),
            ("not reproduced", replayed(no, true)),
            ("not reproduced with a stand-in", replayed(no, false)),
            ("undecided", by(&|claim| own(claim) == Some(Replayed::Undecided))),
            ("not run", by(&|claim| own(claim).is_none_or(|own| own == Replayed::NotRun))),
        ],
    );
    answer("why", &Why::ALL.map(|own| (own.name(), by(&|claim| claim.why == own))));
    let contradicted = by(&|claim| claim.is_contradicted);
    if !contradicted.is_empty() {
        answer("in sum", &[("contradicted", contradicted)]);
    }
    html + "</dl>\n</section>\n"
}

fn links(claims: &[&ClaimOutcome], href: &str) -> String {
    let link = |claim: &&ClaimOutcome| {
        let title = escape(&claim.says);
        format!(
            "<a href=\"{}#claim-{1}\" title=\"{title}\">{1}</a>",
            escape(href),
            escape(&claim.id)
        )
    };
    claims.iter().map(link).collect::<Vec<_>>().join(" ")
}
