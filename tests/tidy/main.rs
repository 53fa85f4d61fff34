//! The house rules, as far as a program can check them. Every finding names file and line.

mod citation;
mod dependencies;
mod documents;
mod files;
mod lists;
mod modules;
mod rings;
mod rooms;
mod scanner;
mod shapes;
mod standing;
mod tokens;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use files::{
    Findings, entries, files, folders, has_extension, name_of, read, relative, root, sources,
    sources_below,
};
use lists::{
    ABSENT, ARROWS, FILE_LINES_MAX, FUNCTION_LINES_MAX, LINE_COLUMNS_MAX, PLACES, TABLES,
    UNFINISHED,
};
use scanner::{code_lines, declared_name, empty_word, functions, has_word, links, words_after};

#[test]
fn lines_and_files_and_functions_are_short() {
    let mut findings = Findings::default();
    for file in sources() {
        let lines: Vec<&str> = file.text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let columns = line.chars().count();
            if columns > LINE_COLUMNS_MAX {
                findings.add(&file, index, format!("{columns} columns, at most 100"));
            }
        }
        if lines.len() > FILE_LINES_MAX {
            findings.add(&file, 0, format!("{} lines, at most {FILE_LINES_MAX}", lines.len()));
        }
        for function in functions(&lines) {
            let is_table = TABLES.contains(&(&*relative(&file.path), &*function.name));
            if function.lines > FUNCTION_LINES_MAX && !is_table {
                let text = format!("fn {} has {} lines, at most 70", function.name, function.lines);
                findings.add(&file, function.at, text);
            }
        }
    }
    findings.check();
}

/// Names that say nothing: everything could stand under them.
#[test]
fn no_empty_word_is_a_name() {
    let mut findings = Findings::default();
    for file in sources() {
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(word) = empty_word(&stem) {
            findings.add(&file, 0, format!("the file's name has the word {word:?}"));
        }
        for (index, line) in file.text.lines().enumerate() {
            let Some(name) = declared_name(line) else { continue };
            if let Some(word) = empty_word(name) {
                findings.add(&file, index, format!("the name {name} has the word {word:?}"));
            }
        }
    }
    findings.check();
}

/// Cargo enforces the arrows that a manifest has; this enforces that a manifest has no others.
#[test]
fn crates_import_only_what_stands_below_them() {
    let mut findings = Findings::default();
    for (name, allowed) in ARROWS {
        let file = read(&root().join(format!("crates/{name}/Cargo.toml")));
        let mut section = "";
        for (index, line) in file.text.lines().enumerate() {
            if line.starts_with('[') {
                section = line;
            }
            let Some(import) = line.strip_prefix("weigh-").filter(|_| section == "[dependencies]")
            else {
                continue;
            };
            let import = import.split(['.', ' ', '=']).next().unwrap_or_default();
            if !allowed.contains(&import) {
                findings.add(&file, index, format!("{name} must not import {import}"));
            }
        }
    }
    for folder in folders(&root().join("crates")) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !ARROWS.iter().any(|(known, _)| *known == name) {
            let rule = format!("crates/{name}: say in tests/tidy/lists.rs what it may import");
            findings.0.push(rule);
        }
    }
    findings.check();
}

/// What a manifest cannot say: words that must be absent from a crate's code. Tests and comments
/// may use them.
#[test]
fn layers_keep_to_their_work() {
    let mut findings = Findings::default();
    for (folder, words, why) in ABSENT {
        for file in sources_below(folder) {
            for (index, line) in code_lines(&file.text) {
                for word in *words {
                    if has_word(line, word) {
                        findings.add(&file, index, format!("{word}: {why}"));
                    }
                }
            }
        }
    }
    findings.check();
}

#[test]
fn every_protocol_is_complete_and_knows_no_other() {
    let mut findings = Findings::default();
    let registry = root().join("crates/protocols/src");
    let folders: Vec<PathBuf> = folders(&registry).collect();
    let names: Vec<String> = folders.iter().map(|folder| name_of(folder)).collect();
    for (folder, name) in folders.iter().zip(&names) {
        // Data beside the code, such as interface definitions, has no mod.rs.
        if sources_below(folder).is_empty() || SHARED.contains(&&**name) {
            continue;
        }
        for needed in ["mod.rs", "client.rs", "README.md"] {
            if !folder.join(needed).is_file() {
                findings.0.push(format!("{}: {needed} is missing", relative(folder)));
            }
        }
        for part in ["codec", "server"] {
            let as_file = entries(folder).any(|path| name_of(&path).starts_with(part));
            if !as_file {
                findings.0.push(format!("{}: {part}*.rs is missing", relative(folder)));
            }
        }
        for file in sources_below(folder) {
            for (index, line) in code_lines(&file.text) {
                for other in
                    names.iter().filter(|other| *other != name && !SHARED.contains(&&***other))
                {
                    if line.contains(&format!("crate::{other}::")) {
                        findings.add(&file, index, format!("{name} must not know {other}"));
                    }
                }
            }
        }
    }
    findings.check();
}

/// Folders beside the protocols that are none: the adapter hosts libraries, `http1_core` is what
/// `http1` and `sse` share, `http2_core` what `http2` and the protocols inside HTTP/2 share,
/// `push_core` the subscribers of `websocket` and `sse`, `broker_core` the connections, mailboxes
/// and queues of the brokers, and `readings_core` the lists that `http1` and `coap` are polled for.
const SHARED: [&str; 6] =
    ["adapter", "broker_core", "http1_core", "http2_core", "push_core", "readings_core"];

#[test]
fn decisions_are_numbered_without_gaps() {
    let mut names: Vec<String> = entries(&root().join("docs/decisions"))
        .map(|path| name_of(&path))
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "docs/decisions is empty");
    for (index, name) in names.iter().enumerate() {
        let number = format!("{:04}-", index + 1);
        assert!(name.starts_with(&number), "docs/decisions/{name}: should start with {number}");
    }
}

/// A page that names a file or a chore of this repository must name one that is there.
#[test]
fn pages_point_at_what_exists() {
    let mut findings = Findings::default();
    let chores = fs::read_to_string(root().join("xtask/src/main.rs")).unwrap_or_default();
    for file in files().into_iter().filter(|file| has_extension(&file.path, "md")) {
        for (index, line) in file.text.lines().enumerate() {
            for link in links(line) {
                let folder = file.path.parent().unwrap_or(Path::new("."));
                if !folder.join(link).exists() {
                    findings.add(&file, index, format!("the link {link} leads nowhere"));
                }
            }
            for word in words_after(line, "cargo xtask ") {
                if !chores.to_lowercase().contains(&format!("    {word}")) {
                    findings.add(&file, index, format!("there is no `cargo xtask {word}`"));
                }
            }
        }
    }
    findings.check();
}

/// The README's commands are the first thing that a stranger types.
#[test]
fn commands_of_the_readme_exist() {
    let mut findings = Findings::default();
    let commands = root().join("src/commands");
    let readme = read(&root().join("README.md"));
    for needed in ["cargo run --release -- compare", "cargo test"] {
        assert!(readme.text.contains(needed), "README.md does not show {needed:?}");
    }
    let mut in_block = false;
    for (index, line) in readme.text.lines().enumerate() {
        if line.starts_with("```") {
            in_block = !in_block && line != "```";
            continue;
        }
        if !in_block || !commands.is_dir() {
            continue;
        }
        for start in ["weigh ", "cargo run --release -- "] {
            let Some(rest) = line.trim_start().strip_prefix(start) else { continue };
            let word = rest.split_whitespace().next().unwrap_or_default();
            let is_command = |room: &str| commands.join(room).join(format!("{word}.rs")).is_file();
            if !word.starts_with('-') && !["", "facade"].into_iter().any(is_command) {
                findings.add(&readme, index, format!("`weigh {word}` is no command"));
            }
        }
    }
    findings.check();
}

#[test]
fn nothing_unfinished_and_no_place_of_one_machine() {
    let mut findings = Findings::default();
    let this = Path::new("tests/tidy/lists.rs");
    for file in files().into_iter().filter(|file| !file.path.ends_with(this)) {
        for (index, line) in file.text.lines().enumerate() {
            for word in UNFINISHED.iter().filter(|word| line.contains(**word)) {
                findings.add(&file, index, format!("{word} must be done or gone"));
            }
            for place in PLACES.iter().filter(|place| line.contains(**place)) {
                findings.add(&file, index, format!("{place} is a path of one machine"));
            }
        }
    }
    findings.check();
}
