//! The page of a study's run, laid out as a paper on the web: what was replayed and its results
//! on the first screen, then the paper, the method, figures, claims, the audit of the printed
//! figures, limits, and how to repeat it. Text has a column with notes beside it; tables and
//! figures have the whole width. It needs no script and no network.

mod abstract_text;
mod audit;
mod axis;
mod carry;
mod carry_charts;
mod chart;
mod claims;
mod compared;
mod conditions;
mod front;
mod index;
mod limits;
mod method;
mod numbers;
mod parts;
mod pictures;
mod plan_words;
mod prose;
mod repeat;
mod tools;

use weigh_report::page::document::{escape, still};

use crate::outcome::Outcome;
use crate::study::Study;

pub use index::{Entry, index};
pub use pictures::{Drawn, drawn};

/// The page of `outcome`, of `study`. Links to runs are relative to the page: it is in the folder
/// of the study's run.
pub fn page(study: &Study, outcome: &Outcome) -> String {
    let mut body = front::banner(outcome) + &front::header(study, outcome);
    body += "<main id=\"main\">\n";
    body += &numbered("abstract", "Abstract", &abstract_text::section(outcome));
    body += &numbered("compared", "Paper and replay", &compared::section(outcome));
    for (id, title, content) in sections(study, outcome) {
        body += &numbered(id, title, &content);
    }
    body += "</main>\n";
    still(&study.question, &body, STYLE)
}

/// The sections after the first screen: id, title and content; what is empty is left out.
fn sections(study: &Study, outcome: &Outcome) -> Vec<(&'static str, &'static str, String)> {
    vec![
        ("paper", "The paper", method::paper(study)),
        ("method", "The replay", method::method(study, outcome)),
        ("figures", "Figures", pictures::section(outcome)),
        ("carry", "How many devices a server carries", carry::section(outcome)),
        ("tools", "Real programs compared with the replay", tools::section(outcome)),
        ("claims", "Claims", claims::claims(outcome)),
        ("findings", "Findings of the audit that no author claims", claims::findings(outcome)),
        ("audit", "What the printed figures show without a run", audit::section(study)),
        ("limits", "Limits and warnings", limits::section(study, outcome)),
        ("repeat", "How to repeat it", repeat::section(study, outcome)),
    ]
}

/// A section with its heading; nothing where it has no content.
fn numbered(id: &str, title: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{}</h2>\n\
         {content}</section>\n",
        escape(title)
    )
}

const STYLE: &str = include_str!("paper.css");
