//! The audit of a run of Weighbridge: its warnings, and whether a rule is broken.

use std::fmt::Write as _;

use serde_json::{Value, json};
use weigh_model::Rule;
use weigh_model::warnings::{Severity, WarningRecord};

use crate::summary::Summary;

/// The result of an audit of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunVerdict {
    /// The run's id.
    pub run: String,
    /// Every warning once, with the names of the cells that have it.
    pub warnings: Vec<(WarningRecord, Vec<String>)>,
}

/// The warnings of a run; with `rules`, only those about one of them.
pub fn of(summary: &Summary, rules: &[Rule]) -> RunVerdict {
    let mut warnings: Vec<(WarningRecord, Vec<String>)> = Vec::new();
    for cell in &summary.cells {
        for warning in &cell.warnings {
            let is_asked = warning.rule().is_some_and(|rule| rules.contains(&rule));
            if !rules.is_empty() && !is_asked {
                continue;
            }
            match warnings.iter_mut().find(|(known, _)| known == warning) {
                Some((_, cells)) => cells.push(cell.name.clone()),
                None => warnings.push((warning.clone(), vec![cell.name.clone()])),
            }
        }
    }
    warnings.sort_by_key(|(warning, _)| (!is_finding(warning), warning.code.clone()));
    RunVerdict { run: summary.run.id.clone(), warnings }
}

impl RunVerdict {
    /// True if no rule is broken and nothing is invalid; other warnings are advice.
    pub fn is_clean(&self) -> bool {
        !self.warnings.iter().any(|(warning, _)| is_finding(warning))
    }

    /// The warnings for people.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: a run of weigh\n", self.run);
        if self.warnings.is_empty() {
            text += "\nno finding\n";
        }
        for (warning, cells) in &self.warnings {
            let kind = warning.severity.prefix();
            let _ = writeln!(text, "\n{kind}{} [{}]", warning.code, cells.join("; "));
            let _ = writeln!(text, "  found: {}", warning.text);
            if let Some(rule) = warning.rule() {
                let _ = writeln!(text, "  means: {}", rule.means());
            }
            let _ = writeln!(text, "  instead: {}", warning.advice);
        }
        text
    }

    /// The warnings as one JSON document of the same form as an audit of published figures.
    pub fn to_json(&self) -> String {
        let (mut findings, mut others) = (Vec::new(), Vec::new());
        for (warning, cells) in &self.warnings {
            let entry: Value = json!({
                "code": warning.code,
                "severity": warning.severity,
                "title": warning.rule().map(Rule::title),
                "place": { "file": self.run, "cells": cells },
                "seen": warning.text,
                "means": warning.rule().map(Rule::means),
                "instead": warning.advice,
            });
            if is_finding(warning) { findings.push(entry) } else { others.push(entry) }
        }
        let document = json!({
            "schema": "weigh/audit/1",
            "files": [{ "file": self.run, "format": "run of weigh" }],
            "findings": findings,
            "doubts": others,
        });
        let text = serde_json::to_string_pretty(&document);
        text.expect("a verdict has only text keys") + "\n"
    }
}

fn is_finding(warning: &WarningRecord) -> bool {
    warning.rule().is_some() || warning.severity != Severity::Warning
}
