//! Audits foreign figures: published tables and the output of other tools go in, broken rules
//! (L01 to L21 of `docs/methodology.md`) come out, each with its place and its arithmetic. Knows
//! no study and no product by name: only what the figures say decides.

mod circle;
pub mod facts;
pub mod figure;
mod finding;
pub mod formats;
mod rules;
mod series_csv;
mod source;
mod vocabulary;
pub mod words;
mod worked;

pub use finding::{AUDIT_SCHEMA, Audit, Body, Finding, Worked};
pub use rules::needed::needs;
pub use series_csv::COLUMNS;
pub use source::{Source, Unreadable};

use figure::{Evidence, Fact};

/// Audits files together: studies of the same name, or of a name that begins with it, are one body
/// of evidence; `facts` is what is known of them from elsewhere.
///
/// # Errors
/// If a file has no figures, an unknown format, or is damaged.
pub fn audit(sources: &[Source], facts: &[Fact]) -> Result<Audit, Unreadable> {
    let mut audit = Audit::default();
    let mut bodies: Vec<Evidence> = Vec::new();
    for source in sources {
        let (format, studies) = formats::read(source)?;
        if studies.iter().all(|study| study.figures.is_empty()) {
            let problem = format!("this {format} has no figures");
            return Err(Unreadable::new(&source.name, problem, "give a file with results"));
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
        body.facts.extend_from_slice(facts);
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
