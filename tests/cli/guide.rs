//! `docs/guide/first-plan.md`, line by line: every plan resolves, every command works, and what it
//! is said to print is what it prints.

use crate::rig::{Place, has};

#[test]
fn the_first_plan_is_as_the_guide_says() {
    let place = Place::new("first-plan");
    let blocks = blocks(GUIDE);
    let mut plans = 0;
    let mut printed = String::new();
    for (language, text) in &blocks {
        match language.as_str() {
            "toml" => {
                let name = text.lines().next().unwrap().trim_start_matches("# ");
                place.write(name, text);
                plans += 1;
                place.weigh(&["run", name, "--dry"]).with(0);
            }
            "sh" => {
                for line in text.lines() {
                    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
                    let ended = place.weigh(&words).with(0);
                    printed = format!("{}{}", ended.stdout, ended.stderr);
                }
            }
            "text" if text.starts_with("error") => {
                place.write("wrong.toml", WRONG);
                let ended = place.weigh(&["run", "wrong.toml"]).with(2);
                assert!(ended.stderr.contains(text.trim_end()), "{}", ended.stderr);
            }
            "text" => assert_eq!(&printed, text),
            other => panic!("a block of {other}"),
        }
    }
    assert!(plans >= 5, "{plans} plans");
    assert_eq!(place.summary()["cells"].as_array().map(Vec::len), Some(6));
    if has("mosquitto") && has("nginx") {
        let dry = place.weigh(&["run", "servers.toml", "--dry"]).with(0);
        assert!(!dry.stdout.contains("not installed"), "{}", dry.stdout);
    }
    place.nobody_is_left();
}

#[test]
fn every_example_is_dry_run() {
    let place = Place::new("examples");
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        place.weigh(&["run", path.to_str().unwrap(), "--dry"]).with(0);
    }
}

/// The blocks of code, with their languages.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, text)), None) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    blocks
}

const GUIDE: &str = include_str!("../../docs/guide/first-plan.md");

const WRONG: &str = "protocol = \"mqtt\"\n[load]\nsize = 64\nconections = 5\n";
