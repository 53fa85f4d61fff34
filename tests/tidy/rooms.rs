//! Rooms of a crate that stand for themselves: they use nothing of the crate around them, as if
//! they were crates of their own.

use crate::files::{Findings, sources_below};
use crate::scanner::code_lines;

#[test]
fn rooms_that_stand_for_themselves_use_nothing_around_them() {
    let mut findings = Findings::default();
    for folder in ROOMS {
        let (_, room) = folder.rsplit_once('/').expect("a folder of a crate");
        let files = sources_below(folder);
        assert!(!files.is_empty(), "{folder} is not there");
        for file in files {
            for (index, line) in code_lines(&file.text) {
                for (at, _) in line.match_indices("crate::") {
                    let used = &line[at + "crate::".len()..];
                    if !used.starts_with(&format!("{room}::")) {
                        let path: String = used.chars().take_while(|c| is_of_path(*c)).collect();
                        findings.add(&file, index, format!("{room} must not use {path}"));
                    }
                }
            }
        }
    }
    findings.check();
}

fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':'
}

/// The folders.
const ROOMS: &[&str] = &[
    "crates/observe/src/clocks",
    "crates/protocols/src/adapter",
    "crates/report/src/charts",
    "crates/runner/src/discharges",
    "crates/runner/src/emulate",
    "crates/runner/src/scheduler",
    "crates/study/src/audit",
    "crates/testbed/src/link",
];
