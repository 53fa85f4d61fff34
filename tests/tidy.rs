//! The house rules, as far as a program can check them. Every finding names file and line.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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
            let rule = format!("crates/{name}: say in tests/tidy.rs what it may import");
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
                    if has_word(line, word) && !is_borrowed(&file.path, word) {
                        findings.add(&file, index, format!("{word}: {why}"));
                    }
                }
            }
        }
    }
    findings.check();
}

/// The upgrade of WebSocket begins in words of HTTP/1.1 (RFC 6455, section 4), and is still none of
/// the protocols that are weighed.
fn is_borrowed(path: &Path, word: &str) -> bool {
    word == "HTTP" && path.to_string_lossy().contains("layer/websocket/")
}

#[test]
fn every_protocol_is_complete_and_knows_no_other() {
    let mut findings = Findings::default();
    let registry = root().join("crates/protocols/src");
    let folders: Vec<PathBuf> = folders(&registry).collect();
    let names: Vec<String> = folders.iter().map(|folder| name_of(folder)).collect();
    for (folder, name) in folders.iter().zip(&names) {
        // Data beside the code, such as interface definitions, has no mod.rs.
        if sources_below(folder).is_empty() {
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
                for other in names.iter().filter(|other| *other != name) {
                    if line.contains(&format!("crate::{other}::")) {
                        findings.add(&file, index, format!("{name} must not know {other}"));
                    }
                }
            }
        }
    }
    findings.check();
}

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
            if !word.starts_with('-') && !commands.join(format!("{word}.rs")).is_file() {
                findings.add(&readme, index, format!("`weigh {word}` is no command"));
            }
        }
    }
    findings.check();
}

#[test]
fn nothing_unfinished_and_no_place_of_one_machine() {
    let mut findings = Findings::default();
    let this = Path::new("tests/tidy.rs");
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

/// The scanner below is good enough for code in rustfmt's form; here is what it must see.
#[test]
fn the_scanner_sees_functions_and_names() {
    let lines = [
        "impl A {",
        "    pub fn one() {",
        "        2",
        "    }",
        "    fn two(",
        "        a: u8,",
        "    ) -> u8 {",
        "        a",
        "    }",
        "    fn three();",
        "    fn four() -> u8 { 4 }",
        "}",
    ];
    let found: Vec<(String, usize)> =
        functions(&lines).into_iter().map(|function| (function.name, function.lines)).collect();
    assert_eq!(found, [("one".to_owned(), 3), ("two".to_owned(), 5), ("four".to_owned(), 1)]);
    assert_eq!(declared_name("    pub(crate) async fn read_it<T>("), Some("read_it"));
    assert_eq!(declared_name("let common = 1;"), None);
    assert_eq!(empty_word("HttpHelper"), Some("helper".to_owned()));
    assert_eq!(empty_word("commonly"), None);
    assert!(has_word("use std::net::TcpStream;", "std::net"));
    assert!(!has_word("let tokios = 1;", "tokio"));
}

/// What breaks a rule, one line each.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn add(&mut self, file: &Source, index: usize, text: impl Into<String>) {
        self.0.push(format!("{}:{}: {}", relative(&file.path), index + 1, text.into()));
    }

    fn check(&self) {
        assert!(self.0.is_empty(), "\n{}\n", self.0.join("\n"));
    }
}

struct Source {
    path: PathBuf,
    text: String,
}

struct Function {
    name: String,
    at: usize,
    lines: usize,
}

/// All functions with a body, in rustfmt's form: a body ends at the first closing brace that
/// stands as far in as the function does.
fn functions(lines: &[&str]) -> Vec<Function> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let Some(name) = declared_name(line).filter(|_| is_function(trimmed)) else { continue };
        let indent = &line[..line.len() - trimmed.len()];
        let head = lines[at..].iter().position(|line| line.ends_with(['{', ';', '}']));
        let Some(head) = head.map(|offset| at + offset) else { continue };
        let end = match lines[head].chars().last() {
            Some('{') => {
                let close = format!("{indent}}}");
                let rest = lines[head..].iter().position(|line| **line == *close);
                rest.map_or(lines.len() - 1, |offset| head + offset)
            }
            Some('}') => head,
            _ => continue,
        };
        found.push(Function { name: name.to_owned(), at, lines: end - at + 1 });
    }
    found
}

fn is_function(trimmed: &str) -> bool {
    trimmed.split(['(', '<']).next().is_some_and(|head| head.split(' ').any(|word| word == "fn"))
}

/// The name that a line declares: of a function, a type, a trait, a module, a macro.
fn declared_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| {
        word.starts_with("pub") || ["const", "async", "unsafe", "extern", "default"].contains(word)
    });
    let kind = words.next()?;
    if !["fn", "struct", "enum", "trait", "type", "mod", "union", "macro_rules!"].contains(&kind) {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end]).filter(|name| !name.is_empty())
}

/// The first banned word in a name, which may be in snake, kebab or camel case.
fn empty_word(name: &str) -> Option<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c == '-' || c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.into_iter().find(|word| EMPTY_WORDS.contains(&word.as_str()))
}

/// Lines of code with their index: no comments, and nothing from the tests at the bottom.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// True if `word` stands in `line` on its own, not as a part of a longer name.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_some_and(is_part);
        let after = line[at + word.len()..].chars().next().is_some_and(is_part);
        !before && !after
    })
}

/// Targets of links to files, without their anchors.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', '#']).next()?;
        let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
        (!is_elsewhere && !target.is_empty()).then_some(target)
    })
}

fn words_after<'a>(line: &'a str, marker: &'a str) -> impl Iterator<Item = String> + 'a {
    line.split(marker).skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
        (end > 0).then(|| rest[..end].to_owned())
    })
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

fn read(path: &Path) -> Source {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    Source { path: path.to_path_buf(), text }
}

/// All text files of the repository; folders that a build or a run makes are left out.
fn files() -> Vec<Source> {
    let mut pending = vec![root()];
    let mut found = BTreeSet::new();
    while let Some(folder) = pending.pop() {
        for path in entries(&folder) {
            let name = name_of(&path);
            if path.is_dir() && !MADE.contains(&name.as_str()) {
                pending.push(path);
            } else if path.is_file() && name != ".git" {
                found.insert(path);
            }
        }
    }
    let text_of = |path: PathBuf| Some(Source { text: fs::read_to_string(&path).ok()?, path });
    found.into_iter().filter_map(text_of).collect()
}

fn sources() -> Vec<Source> {
    files().into_iter().filter(|file| has_extension(&file.path, "rs")).collect()
}

fn sources_below(folder: impl AsRef<Path>) -> Vec<Source> {
    let folder = root().join(folder);
    sources().into_iter().filter(|file| file.path.starts_with(&folder)).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    entries(folder).filter(|path| path.is_dir())
}

const LINE_COLUMNS_MAX: usize = 100;
const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that are one table, an entry for each variant: in pieces they would be harder to
/// read, and the compiler could no longer tell that an entry is missing.
const TABLES: &[(&str, &str)] = &[
    ("crates/model/src/doubt.rs", "words"),
    ("crates/plan/src/contradiction.rs", "in_plan"),
    ("src/planning/options.rs", "in_flags"),
];

const EMPTY_WORDS: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "manager", "managers"];

/// What builds and runs leave behind.
const MADE: &[&str] =
    &[".git", "target", "runs", "bench-results", "corpus", "artifacts", "coverage", "node_modules"];

const UNFINISHED: &[&str] = &["TODO", "FIXME", "todo!", "unimplemented!"];

const PLACES: &[&str] = &["/work/", "/root/", "/tmp/bash", "/home/"];

/// Which crates of ours each crate may import.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("stats", &[]),
    ("emulate", &["model", "stats"]),
    ("energy", &["model", "stats"]),
    ("engine", &["model", "stats"]),
    ("protocols", &["model", "door"]),
    ("door", &["model"]),
    ("path", &["model"]),
    ("stage", &["model", "path"]),
    ("observe", &["model"]),
    ("charts", &[]),
    ("report", &["model", "stats", "charts", "limit", "energy"]),
    ("audit", &["model", "stats"]),
    ("limit", &["model", "stats"]),
    ("history", &["model", "report"]),
    ("sequence", &["model", "stats"]),
    ("plan", &["model"]),
    ("probe", &["model", "protocols", "engine"]),
    ("wire", &["model"]),
    ("rundown", &["model", "stats"]),
    ("clocks", &["stats"]),
    ("outpost", &["model", "observe", "stats"]),
    ("seal", &["model"]),
    ("pipeline", &["model", "protocols"]),
    ("study", &["model", "stats", "plan", "limit", "audit", "report", "charts"]),
    (
        "runner",
        &[
            "model",
            "stats",
            "emulate",
            "energy",
            "engine",
            "protocols",
            "path",
            "pipeline",
            "stage",
            "observe",
            "outpost",
            "report",
            "audit",
            "plan",
            "probe",
            "study",
            "limit",
            "seal",
            "sequence",
            "wire",
            "rundown",
        ],
    ),
];

/// Words that must be absent from the code below a folder, and why.
const ABSENT: &[(&str, &[&str], &str)] = &[
    (
        "crates/model/src",
        &["std::fs", "std::process", "std::thread", "TcpStream", "TcpListener", "UdpSocket"],
        "the model does no I/O",
    ),
    ("crates/model/src", &["Instant::now", "SystemTime::now"], "the model reads no clock"),
    (
        "crates/stats/src",
        &["std::fs", "std::net", "std::process", "std::thread", "Instant::now", "SystemTime::now"],
        "numbers in, numbers out",
    ),
    (
        "crates/limit/src",
        &["std::fs", "std::net", "std::process", "std::thread", "Instant::now", "SystemTime::now"],
        "a search asks for trials and is told what came of them",
    ),
    (
        "crates/emulate/src",
        &["std::fs", "std::net", "std::process", "std::thread", "Instant::now", "SystemTime::now"],
        "an exact record goes in, what a tool would have made of it comes out",
    ),
    (
        "crates/energy/src",
        &["std::fs", "std::net", "std::process", "std::thread", "Instant::now", "SystemTime::now"],
        "coefficients and work go in, joules come out",
    ),
    (
        "crates/sequence/src",
        &["std::fs", "std::net", "std::process", "std::thread", "Instant::now", "SystemTime::now"],
        "plan and events go in, the next trial comes out",
    ),
    (
        "crates/protocols/src",
        &["std::net", "std::fs", "std::thread", "tokio", "rustix"],
        "the engine owns the sockets",
    ),
    (
        "crates/protocols/src",
        &["Instant", "SystemTime"],
        "a protocol gets time as an argument, so that trials can run on virtual time",
    ),
    (
        "crates/door/src",
        &["std::net", "std::fs", "std::thread", "tokio", "rustix", "Instant", "SystemTime"],
        "a library gets bytes when the engine has them, on whatever time the engine runs",
    ),
    (
        "crates/engine/src",
        &["mqtt", "Mqtt", "MQTT", "http", "http1", "Http", "HTTP", "weigh_protocols"],
        "the engine knows no protocol by name",
    ),
    (
        "crates/plan/src",
        &["std::fs", "std::net", "std::process", "Instant::now", "SystemTime::now"],
        "text in, a plan or errors out",
    ),
    (
        "crates/report/src",
        &["std::net", "std::process", "Instant::now", "SystemTime::now"],
        "a report is a function of journals alone",
    ),
    (
        "crates/seal/src",
        &["std::fs", "std::net", "std::process", "Instant::now", "SystemTime::now"],
        "bytes and keys in, bytes out",
    ),
    (
        "crates/observe/src",
        &["fs::write", "File::create", "Command", "kill_process"],
        "observing changes nothing",
    ),
];
