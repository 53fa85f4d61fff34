//! Every command that the README and the guide show, as it stands there; where it would take
//! long, flags after it make it short.

use std::fs;
use std::path::Path;

use crate::rig::{Place, has};
use crate::serving::Server;

#[test]
fn every_command_of_the_readme_and_the_guide_works() {
    let commands = commands();
    assert!(commands.len() >= 10, "{commands:?}");
    let place = Place::new("readme");
    let http = Server::start(&place, &["http"]);
    let mqtt = Server::start(&place, &["mqtt"]);
    let with_mosquitto = has("mosquitto");
    for line in commands {
        let line = line
            .replace("http://127.0.0.1:8080", &http.url)
            .replace("mqtt://127.0.0.1:1883", &mqtt.url);
        let words = words(&line);
        if words.contains(&"mosquitto") && !with_mosquitto {
            continue;
        }
        match words[1] {
            // Minutes, however short: the path is slow.
            "compare" if words.contains(&"nb-iot") => {
                let dry: Vec<&str> = words[1..].iter().copied().chain(["--dry"]).collect();
                drop(place.weigh(&dry).with(0));
            }
            // A default build has no pictures.
            "report" if words.contains(&"--plots") && !cfg!(feature = "plots") => {}
            "compare" => weigh(&place, &words[1..]),
            "serve" => serve(&place, &words[1..]),
            // It would take long; the tests of plans show what it does.
            "run" => {
                let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(words[2]);
                drop(place.weigh(&["run", path.to_str().unwrap(), "--dry"]).with(0));
            }
            // So would this; studies have tests of their own.
            "study" if words[2] == "run" => {
                let dry: Vec<&str> = words[1..].iter().copied().chain(["--dry"]).collect();
                drop(place.weigh(&dry).with(0));
            }
            // In place of RUN: two runs of a study that takes seconds.
            "study" if words[2] == "judge" => {
                let (place, runs) = Place::two_runs("readme-judged");
                drop(place.judge(&runs, &[]).with(0));
            }
            "limit" => {
                let dry: Vec<&str> = words[1..].iter().copied().chain(["--dry"]).collect();
                drop(place.weigh(&dry).with(0));
            }
            // It draws in a terminal, in which the tests of watching show it.
            "watch" => {
                let ended = place.weigh(&words[1..]).with(2);
                assert!(ended.stderr.contains("--web") || !cfg!(feature = "watch"));
            }
            "audit" => {
                place.write(words[2], WRK);
                drop(place.weigh(&words[1..]).with(99));
            }
            _ => drop(place.weigh(&words[1..]).with(0)),
        }
    }
    http.end("TERM");
    mqtt.end("TERM");
    place.nobody_is_left();
}

/// A flag that is not there, or a value that it does not take, is an error before help is shown.
#[test]
fn every_command_of_the_documents_is_understood() {
    let place = Place::new("documents");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/guide"] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        pages.extend(entries.map(|entry| entry.unwrap().path()));
    }
    let mut count = 0;
    for page in pages.iter().filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(page).unwrap();
        for line in shell_lines(&text).into_iter().chain(inline_lines(&text)) {
            let mut words = words(&line);
            words.push("--help");
            let ended = place.weigh(&words[1..]);
            let name = page.display();
            assert_eq!(ended.code, Some(0), "{name}: {line}\n{}", ended.stderr);
            count += 1;
        }
    }
    assert!(count >= 200, "{count} commands");
}

/// The words of a line up to `>` or `|`, as a shell splits them: what stands in quotes is one.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let quote = ['"', '\''].contains(&first).then_some(first);
        let body = &rest[usize::from(quote.is_some())..];
        let is_end = |c: char| quote.map_or(c.is_whitespace(), |quote| c == quote);
        let end = body.find(is_end).unwrap_or(body.len());
        if [">", "|"].contains(&&body[..end]) && quote.is_none() {
            break;
        }
        words.push(&body[..end]);
        rest = body.get(end + 1..).unwrap_or_default().trim_start();
    }
    words
}

/// The same comparison with less of everything.
fn weigh(place: &Place, words: &[&str]) {
    let mut short: Vec<String> = Vec::new();
    let mut words = words.iter().peekable();
    let mut is_counted = false;
    while let Some(word) = words.next() {
        let less = match *word {
            "-c" | "-x" => Some("4"),
            "-n" => {
                is_counted = true;
                Some("100")
            }
            "-d" | "--reps" => Some(""),
            _ => None,
        };
        match less {
            Some(less) => {
                words.next();
                if !less.is_empty() {
                    short.extend([(*word).to_owned(), less.to_owned()]);
                }
            }
            None => short.push((*word).to_owned()),
        }
    }
    short.extend(["--reps", "1"].map(str::to_owned));
    if !is_counted {
        short.extend(["-d", "200ms"].map(str::to_owned));
    }
    // So short a load has too few messages for a p99, and at a low rate none at all.
    short.extend(["--undecided", "pass"].map(str::to_owned));
    if !short.iter().any(|word| word == "burst") {
        short.extend(["--warmup", "0s"].map(str::to_owned));
    }
    let words: Vec<&str> = short.iter().map(String::as_str).collect();
    let ended = place.weigh(&words);
    assert_eq!(ended.code, Some(0), "{words:?}: {}{}", ended.stdout, ended.stderr);
}

fn serve(place: &Place, words: &[&str]) {
    // The port it names may be taken on this machine; a free one is as good.
    let words: Vec<&str> = words
        .iter()
        .map(|word| if word.starts_with("127.0.0.1:") { "127.0.0.1:0" } else { word })
        .collect();
    let server = Server::start(place, &words[1..]);
    assert_eq!(server.end("TERM").0, Some(0), "{words:?}");
}

/// The lines of shell blocks that start with `weigh` or `cargo run --release --`.
fn commands() -> Vec<String> {
    let texts = [
        include_str!("../../README.md"),
        include_str!("../../docs/guide/choosing-a-load.md"),
        include_str!("../../docs/guide/capacity.md"),
        include_str!("../../docs/guide/reading-the-table.md"),
        include_str!("../../docs/guide/targets.md"),
    ];
    texts.into_iter().flat_map(shell_lines).collect()
}

fn shell_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_shell = false;
    for line in text.replace("\\\n", "").lines() {
        if line.starts_with("```") {
            is_shell = line == "```sh";
        } else if is_shell {
            let line = line.replace("cargo run --release --", "weigh");
            let line = line.split(" #").next().unwrap_or_default().trim_end();
            let line = line.strip_suffix(" &").unwrap_or(line).to_owned();
            lines.extend(line.starts_with("weigh ").then_some(line));
        }
    }
    lines
}

/// The commands in backquotes, in prose and in tables.
fn inline_lines(text: &str) -> Vec<String> {
    let mut is_code = false;
    let prose = text.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    let prose = prose.collect::<Vec<_>>().join(" ");
    let quoted = prose.split('`').skip(1).step_by(2);
    quoted.filter(|code| code.starts_with("weigh ")).map(str::to_owned).collect()
}

/// What wrk prints, for commands that audit it.
const WRK: &str = include_str!("../../crates/study/tests/samples/wrk.txt");
