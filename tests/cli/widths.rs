//! What is printed of a run fits the terminal: every line of every stored run, at 80 and at 100
//! columns.

use std::fs;

use weigh_report::terminal::fold::shown_width;

use crate::rig::Place;
use crate::stored::{copy, stored};

#[test]
fn every_stored_run_fits_80_and_100_columns() {
    let mut shown = 0;
    for kind in ["compare", "limit", "study"] {
        for run in fs::read_dir(stored(kind)).expect("stored runs").flatten() {
            let place = Place::new(&format!("widths-{kind}"));
            copy(&run.path(), &place.folder().join("runs").join(run.file_name()));
            let whole = run.file_name().to_string_lossy().into_owned();
            let mut names = vec![whole.clone()];
            // The run of a study has runs of its own.
            let parts = fs::read_dir(run.path()).expect("a run").flatten();
            let parts = parts.filter(|part| part.path().join("journal.jsonl").is_file());
            let part = |part: fs::DirEntry| part.file_name().to_string_lossy().into_owned();
            names.extend(parts.map(part).map(|part| format!("runs/{whole}/{part}")));
            for name in names {
                fits(&place, &["report", &name], &[]);
                shown += 1;
            }
        }
    }
    let place = Place::new("widths-rundown");
    copy(&stored("rundown").join("rundown"), &place.folder().join("rundown"));
    fits(&place, &["energy", "rundown", "--read"], &[]);
    assert!(shown >= 6, "{shown}");
}

/// Every column is there with `--wide`, in one table, which no line of the terminal limits.
#[test]
fn all_columns_are_one_table_with_wide() {
    let place = Place::new("wide");
    place.compare(&["mqtt", "tcp"]).with(0);
    let narrow = report(&place, &["report", "latest"], 80);
    assert!(!narrow.contains("send lag"), "{narrow}");
    assert!(narrow.contains("all columns: weigh report "), "{narrow}");
    let wide = report(&place, &["report", "latest", "--wide"], 80);
    let headings = ["response", "in/s", "send lag", "scheduled", "delivered", "dup", "gen."];
    let is_heading = |line: &&str| line.starts_with("protocol, target");
    let first = wide.lines().find(is_heading).expect("headings");
    for heading in headings {
        assert!(first.contains(heading), "{heading} is not in {first}");
    }
    let refused = place.weigh(&["report", "latest", "--wide", "--json"]);
    refused.with(2).saying(&["--wide"]);
}

/// Fails if a line is wider than the terminal, or if one of these names is not whole.
pub fn fits(place: &Place, words: &[&str], names: &[String]) {
    for columns in [80, 100] {
        let shown = report(place, words, columns);
        assert!(!shown.is_empty());
        for line in shown.lines() {
            let width = shown_width(line);
            // A path or a command is one word, which does not end anywhere earlier.
            let is_word = line.split_whitespace().any(|word| shown_width(word) > columns);
            assert!(width <= columns || is_word, "{width} of {columns} columns: {line}");
        }
        for name in names {
            assert!(shown.contains(name.as_str()), "{name:?} is broken:\n{shown}");
        }
    }
}

fn report(place: &Place, words: &[&str], columns: usize) -> String {
    let mut command = place.command(words);
    let output = command.env("COLUMNS", columns.to_string()).output().expect("the program starts");
    String::from_utf8(output.stdout).expect("text")
}
