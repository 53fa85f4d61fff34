//! `CITATION.cff` agrees with `Cargo.toml` and `CHANGELOG.md`, and invents nothing.

use crate::files::{Findings, Source, read, root};

#[test]
fn the_citation_agrees_with_the_manifest_and_the_changelog() {
    let [citation, manifest, changes] =
        ["CITATION.cff", "Cargo.toml", "CHANGELOG.md"].map(|name| read(&root().join(name)));
    let mut findings = Findings::default();
    for key in ["cff-version", "message", "type", "title", "abstract", "version", "license"] {
        if value(&citation, key, ':').is_none() {
            findings.add(&citation, 0, format!("{key} is missing"));
        }
    }
    let of_manifest = |key: &str| value(&manifest, key, '=');
    let version = of_manifest("version").expect("Cargo.toml has a version");
    for (own, other, place) in [
        ("version", Some(version.clone()), "Cargo.toml"),
        ("title", of_manifest("description"), "Cargo.toml"),
        ("repository-code", of_manifest("repository"), "Cargo.toml"),
        ("date-released", released(&changes.text, &version), "CHANGELOG.md"),
    ] {
        let found = value(&citation, own, ':');
        if found != other {
            findings.add(&citation, 0, format!("{own} is {found:?}, and {other:?} in {place}"));
        }
    }
    findings.check();
}

/// The value of `key` at the beginning of a line.
fn value(file: &Source, key: &str, sign: char) -> Option<String> {
    let of = |line: &str| {
        let value = line.strip_prefix(key)?.trim_start().strip_prefix(sign)?;
        Some(value.trim().trim_matches('"').to_owned())
    };
    file.text.lines().find_map(of)
}

/// The date of a version in the headings of the changes: `## 0.1.0, 2026-12-01`.
fn released(changes: &str, version: &str) -> Option<String> {
    let heading = format!("## {version}, ");
    let date = changes.lines().find_map(|line| line.strip_prefix(&heading))?.trim();
    date.starts_with(|c: char| c.is_ascii_digit()).then(|| date.to_owned())
}
