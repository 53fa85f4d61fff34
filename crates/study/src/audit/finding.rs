//! What an audit found, as text and as JSON.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::json;
use weigh_model::Rule;
use weigh_model::warnings::Severity;

use crate::audit::figure::{Fact, Figure, Place};
use crate::audit::rules::needed::needs;

/// The name and version of the JSON document.
pub const AUDIT_SCHEMA: &str = "weigh/audit/1";

/// A broken rule in one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The study whose figures break it.
    pub study: String,
    /// The rule.
    pub rule: Rule,
    /// How much it takes away: as a rule what its rule does, less where something is not stated
    /// that might explain it.
    pub severity: Severity,
    /// Place of the first finding.
    pub place: Place,
    /// Description of the finding, with the arithmetic.
    pub seen: String,
    /// Further findings in the same table.
    pub also: Vec<String>,
}

/// Result of an audit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audit {
    /// Files that were read, with their formats.
    pub read: Vec<(String, String)>,
    /// Findings, rule by rule.
    pub findings: Vec<Finding>,
    /// Rules that could be asked of nothing.
    pub unasked: Vec<Rule>,
    /// The studies, in the order of the files.
    pub studies: Vec<Body>,
}

/// A study of an audit: what could not be asked of it, and what its figures give when they are
/// worked out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// The study, or the file.
    pub name: String,
    /// Its figures, as they were read.
    pub figures: Vec<Figure>,
    /// Further facts about them.
    pub facts: Vec<Fact>,
    /// Rules that none of its figures carries enough for.
    pub unasked: Vec<Rule>,
    /// Arithmetic on its figures that breaks no rule.
    pub worked: Vec<Worked>,
}

/// Figures worked out: a check that holds, or what follows from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worked {
    /// The first figure that went in.
    pub place: Place,
    /// The arithmetic.
    pub said: String,
    /// `false` where the figures do not give what they are said to give; `None` where nothing is
    /// checked and something only follows.
    pub holds: Option<bool>,
}

impl Audit {
    /// The rules that are broken.
    pub fn rules(&self) -> BTreeSet<Rule> {
        self.findings.iter().map(|finding| finding.rule).collect()
    }

    /// Takes in another audit, of other studies.
    pub fn add(&mut self, other: Audit) {
        self.unasked = match self.studies.is_empty() {
            true => other.unasked,
            false => {
                let both = |rule: &Rule| other.unasked.contains(rule);
                self.unasked.iter().copied().filter(both).collect()
            }
        };
        self.read.extend(other.read);
        self.findings.extend(other.findings);
        self.findings.sort_by_key(|finding| finding.rule);
        self.studies.extend(other.studies);
    }

    /// Leaves only what is about `rules`; all of it if there are none.
    pub fn keep(&mut self, rules: &[Rule]) {
        if !rules.is_empty() {
            self.findings.retain(|finding| rules.contains(&finding.rule));
            self.unasked.retain(|rule| rules.contains(rule));
            for study in &mut self.studies {
                study.worked.clear();
            }
        }
    }

    /// The findings for people, grouped by rule.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (file, format) in &self.read {
            let _ = writeln!(text, "{file}: {format}");
        }
        for rule in self.rules() {
            let of_rule: Vec<&Finding> =
                self.findings.iter().filter(|finding| finding.rule == rule).collect();
            let count: usize = of_rule.iter().map(|finding| 1 + finding.also.len()).sum();
            let is_invalid = |finding: &&Finding| finding.severity == Severity::Invalid;
            let kind = if of_rule.iter().any(is_invalid) { "INVALID " } else { "" };
            let _ = writeln!(text, "\n{kind}{rule} {} ({count})", rule.title());
            for finding in of_rule {
                let _ = writeln!(text, "  {}: {}", finding.place, finding.seen);
                for seen in finding.also.iter().take(ALSO_MAX) {
                    let _ = writeln!(text, "    {seen}");
                }
                if finding.also.len() > ALSO_MAX {
                    let more = finding.also.len() - ALSO_MAX;
                    let _ = writeln!(text, "    and {more} more like these (--json has all)");
                }
            }
            let _ = writeln!(text, "  means: {}", rule.means());
            let _ = writeln!(text, "  instead: {}", rule.instead());
        }
        if self.findings.is_empty() {
            text += "\nno finding\n";
        }
        let worked: Vec<&Worked> = self.studies.iter().flat_map(|study| &study.worked).collect();
        if !worked.is_empty() {
            text += "\nworked out:\n";
            for one in worked {
                let _ = writeln!(text, "  {}: {}", one.place, one.said);
            }
        }
        if !self.unasked.is_empty() {
            text += "\nnot checked, because figures that the rule needs are missing:\n";
            for rule in &self.unasked {
                let _ = writeln!(text, "  {rule} {}: {}", rule.title(), needs(*rule));
            }
        }
        text
    }

    /// The findings as one JSON document, with a line break at its end.
    pub fn to_json(&self) -> String {
        let findings: Vec<serde_json::Value> = self
            .findings
            .iter()
            .map(|finding| {
                json!({
                    "study": finding.study,
                    "code": finding.rule,
                    "severity": finding.severity,
                    "title": finding.rule.title(),
                    "place": finding.place,
                    "seen": finding.seen,
                    "also": finding.also,
                    "means": finding.rule.means(),
                    "instead": finding.rule.instead(),
                })
            })
            .collect();
        let files: Vec<serde_json::Value> = self
            .read
            .iter()
            .map(|(file, format)| json!({ "file": file, "format": format }))
            .collect();
        let unasked: Vec<serde_json::Value> = self
            .unasked
            .iter()
            .map(|rule| json!({ "code": rule, "needs": needs(*rule) }))
            .collect();
        let worked: Vec<serde_json::Value> = self
            .studies
            .iter()
            .flat_map(|study| study.worked.iter().map(move |one| (&study.name, one)))
            .map(|(study, one)| {
                json!({ "study": study, "place": one.place, "said": one.said, "holds": one.holds })
            })
            .collect();
        let document = json!({
            "schema": AUDIT_SCHEMA,
            "files": files,
            "findings": findings,
            "worked": worked,
            "not_asked": unasked,
        });
        let text = serde_json::to_string_pretty(&document);
        text.expect("an audit has only text keys") + "\n"
    }
}

/// Further places that are shown for a finding.
const ALSO_MAX: usize = 3;
