//! Plain English: the words that STYLE.md tells to avoid stay out of what users read, which is
//! Markdown, data with texts, and the string literals and doc comments of the code.

use std::collections::BTreeMap;

use crate::files::{Source, files, has_extension, read, relative, root};
use crate::standing::WORDS;
use crate::tokens::{Prose, prose, test_lines};

#[test]
fn words_to_avoid_are_avoided() {
    let rules = rules(&read(&root().join("STYLE.md")).text);
    assert!(rules.len() > 20, "STYLE.md has no table below {MARKER}");
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in files() {
        let path = relative(&file.path);
        let Some(passages) = passages(&file) else { continue };
        for Hit { line, phrase, better } in hits(&passages, &rules) {
            let text = format!("{path}:{}: {phrase:?}: use {better}", line + 1);
            found.entry(folder_of(&path)).or_default().push(text);
        }
    }
    let mut findings = Vec::new();
    for (folder, texts) in &found {
        let most = WORDS.iter().find(|(name, _)| name == folder).map_or(0, |(_, most)| *most);
        if texts.len() > most {
            findings.extend(texts.iter().cloned());
            findings.push(format!("{folder:?}: {} words to avoid, at most {most}", texts.len()));
        }
    }
    for (folder, _) in WORDS.iter().filter(|(folder, _)| !found.contains_key(folder)) {
        findings.push(format!("{folder} has none: delete it from WORDS in tests/tidy/standing.rs"));
    }
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

/// Docstrings that need their neighbour, or the name that they stand at, to say anything.
#[test]
fn docstrings_say_something() {
    let mut found = Vec::new();
    for file in files().into_iter().filter(|file| has_extension(&file.path, "rs")) {
        let path = relative(&file.path);
        for doc in prose(&file.text).into_iter().filter(|prose| prose.is_doc) {
            let text = doc.text.trim();
            if EMPTY_DOCS.contains(&text) && is_read_code(&path) {
                found.push(format!("{path}:{}: {text:?}: name the thing", doc.line + 1));
            }
        }
    }
    assert!(found.is_empty(), "\n{}\n{} docstrings", found.join("\n"), found.len());
}

/// A phrase to avoid, as its words.
struct Rule {
    words: Vec<String>,
    better: String,
    /// Longer phrases with it that are right.
    allowed: Vec<Vec<String>>,
}

/// The rows of the table: phrases to avoid, what to use, longer phrases that are right.
fn rules(style: &str) -> Vec<Rule> {
    let Some((_, table)) = style.split_once(MARKER) else { return Vec::new() };
    let rows = table.lines().skip_while(|line| !line.starts_with("|--")).skip(1);
    let mut found = Vec::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, avoided, better, allowed, ..] = columns[..] else { continue };
        let phrases = |list: &str| -> Vec<Vec<String>> {
            let words_of = |phrase: &str| phrase.split_whitespace().map(str::to_owned).collect();
            list.split(", ").filter(|phrase| !phrase.is_empty()).map(words_of).collect()
        };
        for words in phrases(avoided) {
            let (better, allowed) = (better.to_owned(), phrases(allowed));
            found.push(Rule { words, better, allowed });
        }
    }
    found
}

struct Hit {
    line: usize,
    phrase: String,
    better: String,
}

fn hits(passages: &[Prose], rules: &[Rule]) -> Vec<Hit> {
    let mut found = Vec::new();
    for passage in passages {
        let words = words(passage);
        for (at, word) in words.iter().enumerate() {
            for rule in rules {
                let is_right = |phrase: &Vec<String>| {
                    (0..phrase.len()).any(|before| {
                        before <= at
                            && before + rule.words.len() <= phrase.len()
                            && is_at(&words, at - before, phrase)
                    })
                };
                if is_at(&words, at, &rule.words) && !rule.allowed.iter().any(is_right) {
                    let (phrase, better) = (rule.words.join(" "), rule.better.clone());
                    found.push(Hit { line: word.line, phrase, better });
                }
            }
        }
    }
    found
}

fn is_at(words: &[Word], at: usize, phrase: &[String]) -> bool {
    words.len() >= at + phrase.len()
        && words[at..].iter().zip(phrase).all(|(word, due)| word.text == *due)
        && words[at + 1..at + phrase.len()].iter().all(|word| word.follows)
}

struct Word {
    text: String,
    line: usize,
    /// Only space lies between the word before and this one.
    follows: bool,
}

/// The words of a passage in lower case. Names are none: code in backquotes, places to fill in
/// braces, targets of links, and what has a slash, a dot, a line or an equals sign in it.
fn words(passage: &Prose) -> Vec<Word> {
    let mut found = Vec::new();
    let (mut line, mut follows) = (passage.line, false);
    let mut rest = passage.text.as_str();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '`' | '{' => length_of_name(rest, if first == '`' { '`' } else { '}' }),
            '(' if rest.starts_with("(http") => length_of_name(rest, ')'),
            ']' if rest.starts_with("](") => length_of_name(rest, ')'),
            _ if is_in_word(first) => rest.find(|c| !is_in_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let text = &rest[..length];
        if is_in_word(first) {
            let text = text.trim_end_matches(['.', '\'', '-', '/']);
            found.push(Word { text: text.to_lowercase(), line, follows });
        }
        let is_space = first.is_whitespace() || first == '\\' || first == '>';
        follows = if is_in_word(first) { !text.ends_with('.') } else { follows && is_space };
        line += text.matches('\n').count();
        rest = &rest[length..];
    }
    found
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || "_-./='".contains(c)
}

/// The length of what ends with `end`, or of its first character if it does not end.
fn length_of_name(rest: &str, end: char) -> usize {
    let close = rest.char_indices().skip(1).find(|(_, c)| *c == end);
    close.map_or(1, |(at, _)| at + end.len_utf8())
}

/// What users read in a file; nothing of files that they do not read.
fn passages(file: &Source) -> Option<Vec<Prose>> {
    let path = relative(&file.path);
    if has_extension(&file.path, "rs") {
        return is_read_code(&path).then(|| of_code(&file.text));
    }
    let text = match path.as_str() {
        "STYLE.md" => return None,
        "CHANGELOG.md" => newest_section(&file.text),
        _ if has_extension(&file.path, "md") => file.text.clone(),
        _ if has_extension(&file.path, "toml") && DATA.iter().any(|at| path.starts_with(at)) => {
            without_keys(&file.text)
        }
        _ => return None,
    };
    Some(vec![Prose { text: without_blocks(&text), line: 0, is_doc: false }])
}

fn is_read_code(path: &str) -> bool {
    let is_of_crate = path.starts_with("crates/") && path.contains("/src/");
    (is_of_crate || path.starts_with("src/")) && !path.ends_with("/tests.rs")
}

/// Literals that are one name, such as a key of JSON, are left out, and so is what only tests see.
fn of_code(code: &str) -> Vec<Prose> {
    let tests = test_lines(code);
    let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    let is_read = |prose: &Prose| {
        !tests.iter().any(|lines| lines.contains(&prose.line))
            && (prose.is_doc || !is_name(&prose.text))
    };
    prose(code).into_iter().filter(is_read).collect()
}

/// Without the lines of code blocks, which stay empty so that lines keep their numbers.
fn without_blocks(text: &str) -> String {
    let mut is_in_block = false;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !is_in_block && !is_fence {
            kept.push_str(line);
        }
        is_in_block ^= is_fence;
        kept.push('\n');
    }
    kept
}

/// TOML without the names of its keys and tables.
fn without_keys(text: &str) -> String {
    let is_name =
        |text: &str| text.trim().chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        match line.split_once('=') {
            _ if line.starts_with('[') => {}
            Some((key, value)) if is_name(key) => kept.push_str(value),
            _ => kept.push_str(line),
        }
        kept.push('\n');
    }
    kept
}

fn newest_section(changelog: &str) -> String {
    let end = changelog.match_indices("\n## ").nth(1).map_or(changelog.len(), |(at, _)| at);
    changelog[..end].to_owned()
}

/// The folder whose words are counted together: the entry of `WORDS` with the longest name that
/// the path begins with, or none.
fn folder_of(path: &str) -> &'static str {
    let is_above = |folder: &str| {
        path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let folders = WORDS.iter().map(|(folder, _)| *folder).filter(|folder| is_above(folder));
    folders.max_by_key(|folder| folder.len()).unwrap_or_default()
}

const MARKER: &str = "<!-- words to avoid -->";

/// Whole docstrings that name nothing.
const EMPTY_DOCS: &[&str] = &[
    "The same.",
    "How.",
    "How many.",
    "How much.",
    "How long.",
    "How often.",
    "What.",
    "When.",
    "Where.",
    "Which.",
    "Who.",
    "Why.",
];

/// Folders whose TOML files are read by users, or shown in reports.
const DATA: &[&str] =
    &["data/", "devices/", "examples/", "paths/", "radios/", "studies/", "targets/"];

#[test]
fn the_matcher_sees_phrases_and_no_names() {
    let rows = "| a | b | c |\n|---|---|---|\n| mend, is no | x | there is no |\n";
    let table = format!("{MARKER}\n{rows}");
    let count = |text: &str| {
        let passage = Prose { text: text.to_owned(), line: 0, is_doc: false };
        hits(&[passage], &rules(&table)).len()
    };
    assert_eq!(count("Mend: a slip is no\n fault."), 2);
    assert_eq!(count("mended `mend` {mend} a-mend mend.md [x](mend) mend=1 amend"), 0);
    assert_eq!(count("there is no lock; that is. No"), 0);
    assert_eq!(newest_section("# C\n\n## 2\nb\n## 1\na"), "# C\n\n## 2\nb");
    assert_eq!(without_blocks("a\n```sh\nb\n```\nc\n"), "a\n\n\n\nc\n");
    assert_eq!(without_keys("[a]\nours = \"b\"\n# c = d"), "\n \"b\"\n# c = d\n");
    let code = "fn f() { g(\"doubts\", \"doubts: {n}\") }\n#[cfg(test)]\nmod t { g(\"b c\"); }";
    assert_eq!(of_code(code).len(), 1);
}
