//! The report of a study's run as a short paper: what was asked and found, how it was done again,
//! pictures with their figures and ours, every claim with its verdict, the doubts, and how to
//! repeat it. One file, without a network, in the clothes of a run's report.

mod carry;
mod claims;
mod doubts;
mod method;
mod numbers;
mod opening;
mod pictures;
mod plan_words;
mod prose;
mod repeat;
mod results;

use weigh_report::page::document::{Document, data_of, section};
use weigh_report::pictures::{Gallery, Picture};

use crate::outcome::Outcome;
use crate::study::Study;

pub use pictures::pictures;

pub(crate) use numbers::in_unit;

/// The page of what came of `study`. Links to runs are relative to the page: it stands in the
/// folder of the study's run.
pub fn page(study: &Study, outcome: &Outcome) -> String {
    let pictures = gallery(outcome).pictures;
    let mut body = opening::header(study, outcome);
    body += "<main id=\"main\">\n";
    for (id, title, content) in sections(study, outcome, &pictures) {
        if !content.is_empty() {
            body += &section(id, title, &content);
        }
    }
    body += "</main>\n";
    let data = data_of(&pictures.iter().collect::<Vec<_>>());
    Document { title: &study.question, body: &body, without_scripts: WITHOUT_SCRIPTS, data }
        .to_html()
}

/// All pictures of the page, as files of their own are made of them.
pub fn gallery(outcome: &Outcome) -> Gallery {
    // They share nothing: each has its own data.
    Gallery::of(data_of(&[])["shared"].take(), pictures(outcome))
}

/// The sections in the order of a paper: id, title and content; what is empty is left out.
fn sections(
    study: &Study,
    outcome: &Outcome,
    pictures: &[Picture],
) -> Vec<(&'static str, &'static str, String)> {
    vec![
        ("paper", "The paper", method::paper(study)),
        ("method", "How it was done again", method::method(study, outcome)),
        ("results", "Results", results::section(study, outcome, pictures)),
        ("carry", "How many a server carries", carry::section(outcome, pictures)),
        ("claims", "Claims and verdicts", claims::section(outcome)),
        ("figures-alone", "What the figures say without a run", doubts::audit(study)),
        ("doubts", "Doubts", doubts::section(study, outcome)),
        ("repeat", "How to repeat it", repeat::section(study, outcome)),
    ]
}

const WITHOUT_SCRIPTS: &str = "Without scripts the pictures are not shown; the figures in them \
    stand in the tables beneath, and in study.json.";
