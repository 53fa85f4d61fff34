//! Licences, sources and duplicates of all dependencies, by the rules of `deny.toml`: what
//! `cargo deny check` does, without it and offline.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::process::Command;

use serde_json::Value;

use crate::files::{Findings, read, root};

#[test]
fn dependencies_are_as_deny_toml_says() {
    let manifest = read(&root().join("deny.toml"));
    let rules: toml::Value = toml::from_str(&manifest.text).expect("deny.toml is TOML");
    let texts = |table: &str, key: &str| -> Vec<String> {
        let list = rules[table][key].as_array().expect("a list of deny.toml");
        list.iter().map(|value| text_of(value).to_owned()).collect()
    };
    let allowed = texts("licenses", "allow");
    let registries = texts("sources", "allow-registry");
    let mut skipped = texts("bans", "skip");
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut findings = Findings::default();
    for package in packages() {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let (name, version) = (text("name"), text("version"));
        if !is_allowed(&text("license"), &allowed) {
            let licence = text("license");
            findings.add(&manifest, 0, format!("{name} {version} has the licence {licence:?}"));
        }
        let source = text("source");
        let known = registries.iter().any(|own| source == format!("registry+{own}"));
        if !source.is_empty() && !known {
            findings.add(&manifest, 0, format!("{name} {version} is from {source}"));
        }
        versions.entry(name).or_default().push(version);
    }
    let doubled = versions.iter().filter(|(_, own)| own.len() > 1);
    for (name, own) in doubled {
        let before = skipped.len();
        skipped.retain(|skip| skip != name);
        if skipped.len() == before {
            findings.add(&manifest, 0, format!("{name} has the versions {}", own.join(" and ")));
        }
    }
    for name in skipped {
        findings.add(&manifest, 0, format!("{name} has one version: remove it from bans.skip"));
    }
    findings.check();
}

#[test]
fn expressions_of_licences_are_read() {
    let allowed = ["MIT", "ISC"].map(str::to_owned);
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("MIT AND GPL-3.0", false),
        ("MIT AND ISC", true),
        ("(GPL-3.0 OR MIT) AND ISC", true),
        ("(GPL-3.0 OR MIT) AND BSL-1.0", false),
        ("MIT WITH LLVM-exception", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}

/// Every package of a build with all features, of the project and of others.
fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = ["metadata", "--format-version", "1", "--locked", "--all-features"];
    let output = Command::new(cargo).args(words).current_dir(root()).output();
    let output = output.expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// A string, or the name in `{ crate = "NAME" }`.
fn text_of(value: &toml::Value) -> &str {
    value.as_str().or_else(|| value.get("crate")?.as_str()).expect("a name in deny.toml")
}

/// True if the licences of an SPDX expression permit the use. A slash is an old form of OR.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ").replace('(', "( ").replace(')', " )");
    let mut words = expression.split_whitespace().peekable();
    any_of(&mut words, allowed)
}

fn any_of<'w, I: Iterator<Item = &'w str>>(words: &mut Peekable<I>, allowed: &[String]) -> bool {
    let mut is_allowed = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        is_allowed |= all_of(words, allowed);
    }
    is_allowed
}

fn all_of<'w, I: Iterator<Item = &'w str>>(words: &mut Peekable<I>, allowed: &[String]) -> bool {
    let mut is_allowed = one_of(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        is_allowed &= one_of(words, allowed);
    }
    is_allowed
}

fn one_of<'w, I: Iterator<Item = &'w str>>(words: &mut Peekable<I>, allowed: &[String]) -> bool {
    if words.next_if_eq(&"(").is_some() {
        let is_allowed = any_of(words, allowed);
        return words.next_if_eq(&")").is_some() && is_allowed;
    }
    let licence = words.next().unwrap_or_default();
    // An exception makes another licence of it.
    if words.next_if_eq(&"WITH").is_some() {
        words.next();
        return false;
    }
    allowed.iter().any(|own| own == licence)
}
