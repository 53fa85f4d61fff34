//! Audits foreign figures: published tables and the output of other tools go in, broken rules
//! (L01 to L20 of `docs/methodology.md`) come out, each with its place and its arithmetic. Knows
//! no study and no product by name: only what the figures say decides.

mod circle;
pub mod facts;
pub mod figure;
mod finding;
pub mod formats;
mod rules;
mod series_csv;
mod vocabulary;
pub mod words;
mod worked;

use std::fmt;

pub use finding::{AUDIT_SCHEMA, Audit, Body, Finding, Worked};
pub use rules::needs;
pub use series_csv::COLUMNS;

use figure::{Evidence, Fact};

/// A file to audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name, for the places of findings.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

/// A file that cannot be read: where, what, and the mend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unreadable {
    place: String,
    problem: String,
    mend: String,
}

impl Unreadable {
    /// A problem with a file as a whole.
    pub fn new(place: &str, problem: impl Into<String>, mend: impl Into<String>) -> Unreadable {
        Unreadable { place: place.to_owned(), problem: problem.into(), mend: mend.into() }
    }

    /// A problem in one line of it, from 1.
    pub fn at(
        place: &str,
        line: u64,
        problem: impl Into<String>,
        mend: impl Into<String>,
    ) -> Unreadable {
        Unreadable::new(&format!("{place}, line {line}"), problem, mend)
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unreadable { place, problem, mend } = self;
        write!(f, "{place}: {problem}; {mend}")
    }
}

/// Audits files together: studies of the same name, or of a name that begins with it, are one body
/// of evidence; `beside` is what is known of them from elsewhere.
pub fn audit(sources: &[Source], beside: &[Fact]) -> Result<Audit, Unreadable> {
    let mut audit = Audit::default();
    let mut bodies: Vec<Evidence> = Vec::new();
    for source in sources {
        let (format, studies) = formats::read(source)?;
        if studies.iter().all(|study| study.figures.is_empty()) {
            let problem = format!("there is no figure in this {format}");
            return Err(Unreadable::new(&source.name, problem, "give one that holds results"));
        }
        audit.read.push((source.name.clone(), format.to_owned()));
        for study in studies {
            let is_kin = |body: &&mut Evidence| {
                study.name.starts_with(&body.name) || body.name.starts_with(&study.name)
            };
            match bodies.iter_mut().find(is_kin) {
                Some(body) => {
                    body.figures.extend(study.figures);
                    body.facts.extend(study.facts);
                }
                None => bodies.push(study),
            }
        }
    }
    let mut unasked: Option<Vec<_>> = None;
    for mut body in bodies {
        body.facts.extend_from_slice(beside);
        body.sort_into_cells();
        let (findings, not) = rules::check(&body);
        audit.findings.extend(findings);
        audit.studies.push(Body {
            name: body.name.clone(),
            unasked: not.clone(),
            worked: worked::out(&body),
            figures: body.figures,
            facts: body.facts,
        });
        unasked = Some(match unasked {
            Some(others) => others.into_iter().filter(|rule| not.contains(rule)).collect(),
            None => not,
        });
    }
    audit.unasked = unasked.unwrap_or_default();
    audit.findings.sort_by_key(|finding| finding.rule);
    Ok(audit)
}
