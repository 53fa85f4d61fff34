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
    pub doubts: Vec<(WarningRecord, Vec<String>)>,
}

/// The warnings of a run; with `rules`, only those about one of them.
pub fn of(summary: &Summary, rules: &[Rule]) -> RunVerdict {
    let mut doubts: Vec<(WarningRecord, Vec<String>)> = Vec::new();
    for cell in &summary.cells {
        for doubt in &cell.doubts {
            let is_asked = doubt.rule().is_some_and(|rule| rules.contains(&rule));
            if !rules.is_empty() && !is_asked {
                continue;
            }
            match doubts.iter_mut().find(|(known, _)| known == doubt) {
                Some((_, cells)) => cells.push(cell.name.clone()),
                None => doubts.push((doubt.clone(), vec![cell.name.clone()])),
            }
        }
    }
    doubts.sort_by_key(|(doubt, _)| (!is_finding(doubt), doubt.code.clone()));
    RunVerdict { run: summary.run.id.clone(), doubts }
}

impl RunVerdict {
    /// True if no rule is broken and nothing is invalid; other warnings are advice.
    pub fn is_clean(&self) -> bool {
        !self.doubts.iter().any(|(doubt, _)| is_finding(doubt))
    }

    /// The warnings for people.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}: a run of weigh\n", self.run);
        if self.doubts.is_empty() {
            text += "\nno finding\n";
        }
        for (doubt, cells) in &self.doubts {
            let kind = doubt.severity.prefix();
            let _ = writeln!(text, "\n{kind}{} [{}]", doubt.code, cells.join("; "));
            let _ = writeln!(text, "  found: {}", doubt.text);
            if let Some(rule) = doubt.rule() {
                let _ = writeln!(text, "  means: {}", rule.means());
            }
            let _ = writeln!(text, "  instead: {}", doubt.advice);
        }
        text
    }

    /// The warnings as one JSON document of the same form as an audit of published figures.
    pub fn to_json(&self) -> String {
        let (mut findings, mut others) = (Vec::new(), Vec::new());
        for (doubt, cells) in &self.doubts {
            let entry: Value = json!({
                "code": doubt.code,
                "severity": doubt.severity,
                "title": doubt.rule().map(Rule::title),
                "place": { "file": self.run, "cells": cells },
                "seen": doubt.text,
                "means": doubt.rule().map(Rule::means),
                "instead": doubt.advice,
            });
            if is_finding(doubt) { findings.push(entry) } else { others.push(entry) }
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

fn is_finding(doubt: &WarningRecord) -> bool {
    doubt.rule().is_some() || doubt.severity != Severity::Warning
}
