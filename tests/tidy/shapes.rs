//! Parts of a function's work and of a type have names: no parameter is a tuple of more than two,
//! and no struct has more than twenty fields.

use std::collections::BTreeSet;

use crate::files::{Findings, Source, relative, sources};
use crate::lists::{FIELDS_MAX, RECORDS};
use crate::tokens::{Token, behind_bracket, production};

#[test]
fn no_parameter_is_a_tuple_of_more_than_two() {
    let mut findings = Findings::default();
    for file in production_files() {
        for (function, line) in bundled(&production(&file.text)) {
            let text = format!("fn {function} has a tuple of more than two as a parameter");
            findings.add(&file, line, text);
        }
    }
    findings.check();
}

#[test]
fn structs_have_few_fields() {
    let mut findings = Findings::default();
    let mut seen = BTreeSet::new();
    for file in production_files() {
        let path = relative(&file.path);
        for Wide { name, line, fields } in wide(&production(&file.text)) {
            seen.insert((path.clone(), name.to_owned()));
            let is_record = RECORDS.iter().any(|(at, own, _)| (*at, *own) == (&*path, name));
            if !is_record {
                let text = format!("struct {name} has {fields} fields, at most {FIELDS_MAX}");
                findings.add(&file, line, text);
            }
        }
    }
    for (path, name, of) in RECORDS {
        if !seen.contains(&((*path).to_owned(), (*name).to_owned())) {
            let text = format!("{path}: struct {name} ({of}) is not wide");
            findings.0.push(format!("{text}: delete it from RECORDS"));
        }
    }
    findings.check();
}

fn production_files() -> impl Iterator<Item = Source> {
    let is_test = |path: &str| {
        let of_tests = ["tests/", "benches/", "fuzz/", "examples/"];
        let name = path.rsplit('/').next().unwrap_or_default();
        path.contains("/tests/")
            || name == "tests.rs"
            || of_tests.iter().any(|at| path.starts_with(at))
    };
    sources().into_iter().filter(move |file| !is_test(&relative(&file.path)))
}

/// Functions with a parameter that is a tuple of more than two, and their lines. Two tuples in a
/// tuple are as many as they hold.
fn bundled<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        if pair[0].text != "fn" || !pair[1].is_word() {
            continue;
        }
        let open = behind_generics(tokens, at + 2);
        if tokens.get(open).is_none_or(|token| token.text != "(") {
            continue;
        }
        let parameters = &tokens[open + 1..behind_bracket(tokens, open) - 1];
        if split(parameters).into_iter().any(|parameter| values(type_of(parameter)) > 2) {
            found.push((pair[1].text, pair[1].line));
        }
    }
    found
}

/// A struct with too many fields.
struct Wide<'a> {
    name: &'a str,
    line: usize,
    fields: usize,
}

fn wide<'a>(tokens: &[Token<'a>]) -> Vec<Wide<'a>> {
    let mut found = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        if pair[0].text != "struct" || !pair[1].is_word() {
            continue;
        }
        let open = tokens[at..].iter().position(|token| ["{", ";", "("].contains(&token.text));
        let Some(open) = open.map(|offset| at + offset) else { continue };
        let body = &tokens[open + 1..behind_bracket(tokens, open).max(open + 2) - 1];
        let fields = if tokens[open].text == ";" { 0 } else { split(body).len() };
        if fields > FIELDS_MAX {
            found.push(Wide { name: pair[1].text, line: pair[1].line, fields });
        }
    }
    found
}

/// How many values a type bundles: those of a tuple, also behind a reference; else one.
fn values(mut kind: &[Token]) -> usize {
    while let Some((first, rest)) = kind.split_first() {
        let is_reference = first.text == "&" || first.text == "mut" || first.text.starts_with('\'');
        if !is_reference {
            break;
        }
        kind = rest;
    }
    if kind.first().is_none_or(|first| first.text != "(") {
        return 1;
    }
    split(&kind[1..behind_bracket(kind, 0) - 1]).into_iter().map(values).sum()
}

/// What stands behind the colon of a parameter.
fn type_of<'a, 'b>(parameter: &'a [Token<'b>]) -> &'a [Token<'b>] {
    let mut depth = 0;
    for (at, token) in parameter.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            ":" if depth == 0 => return &parameter[at + 1..],
            _ => {}
        }
    }
    &[]
}

/// The parts between outer commas; commas between angle brackets are inner ones.
fn split<'a, 'b>(tokens: &'a [Token<'b>]) -> Vec<&'a [Token<'b>]> {
    let mut found = Vec::new();
    let (mut from, mut depth) = (0, 0);
    for (at, token) in tokens.iter().enumerate() {
        let is_arrow = at > 0 && tokens[at - 1].text == "-";
        match token.text {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            ">" if !is_arrow => depth -= 1,
            "," if depth == 0 => {
                found.push(&tokens[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if from < tokens.len() {
        found.push(&tokens[from..]);
    }
    found
}

fn behind_generics(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        let is_arrow = tokens[index - 1].text == "-";
        match token.text {
            "<" => depth += 1,
            ">" if !is_arrow => depth -= 1,
            "(" if depth == 0 => return index,
            _ => {}
        }
    }
    tokens.len()
}

#[test]
fn tuples_are_seen_behind_references_and_in_tuples() {
    let code = "
        fn one((a, b): (u8, &str), c: Vec<(u8, u8, u8)>) {}
        fn two<F: Fn(u8) -> u8>(&self, (a, b, c): &mut (u8, u8, u8)) {}
        fn three(((a, b), c): ((u8, u8), u8)) -> (u8, u8, u8) {}
        fn four(f: impl Fn(u8, u8, u8) -> u8) {}
        struct Small<T> { a: (u8, u8), b: BTreeMap<u8, T> }
        struct None;
    ";
    let tokens = production(code);
    let names: Vec<&str> = bundled(&tokens).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["two", "three"]);
    assert!(wide(&tokens).is_empty());
}
