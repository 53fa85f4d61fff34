//! Output as a terminal shows it: lists, tables, messages and help fit the width, nothing is cut
//! within a word, and a run says what begins before it starts a target.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::rig::{Ended, Place, signal, until, wait};

/// A place with one stored run of every kind, and files to list.
fn with_runs(name: &str) -> Place {
    let place = Place::new(name);
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored");
    for kind in ["compare", "limit", "study"] {
        copy(&stored.join(kind), &place.folder().join("runs"));
    }
    copy(&stored.join("rundown/rundown"), &place.folder().join("rundown"));
    place.write("numbers.csv", "a,51200\na,51300\na,51250\nb,61434\nb,61500\nb,61466\n");
    place.write("plan.toml", PLAN);
    place
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &to),
            false => drop(fs::copy(&path, &to).expect("a copy")),
        }
    }
}

fn shown(place: &Place, line: &str, columns: Option<&str>) -> Ended {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = place.command(&words);
    match columns {
        Some(columns) => command.env("COLUMNS", columns),
        None => command.env_remove("COLUMNS"),
    };
    Ended::from(command.output().expect("the program starts"))
}

/// Fails if a line is wider, unless one of its words alone is too long to be folded.
#[track_caller]
fn assert_fits(text: &str, columns: usize, line: &str) {
    for own in text.lines() {
        let is_long = |word: &str| word.chars().count() > columns / 2;
        let width = own.chars().count();
        assert!(width <= columns || own.split(' ').any(is_long), "{line}: {width}\n{own}");
    }
}

#[test]
fn every_list_and_message_fits_the_width() {
    let place = with_runs("fits");
    for line in LISTS.lines().chain(MESSAGES.lines()) {
        for (columns, width) in [(Some("80"), 80), (Some("200"), 200), (None, 100)] {
            let ended = shown(&place, line, columns);
            assert!(!(ended.stdout.is_empty() && ended.stderr.is_empty()), "{line}");
            assert_fits(&ended.stdout, width, line);
            assert_fits(&ended.stderr, width, line);
        }
    }
    for line in LISTS.lines() {
        let ended = shown(&place, line, Some("80"));
        assert!(matches!(ended.code, Some(0 | 98 | 99)), "{line}: {}", ended.stderr);
    }
}

#[test]
fn help_fits_the_width() {
    let place = Place::new("help-fits");
    for command in ["", "compare ", "run ", "limit ", "study run ", "energy rundown ", "like "] {
        for flag in ["-h", "--help"] {
            let line = format!("{command}{flag}");
            assert_fits(&shown(&place, &line, Some("80")).with(0).stdout, 80, &line);
        }
    }
}

/// Folding moves words to the next line and nothing else.
#[test]
fn a_folded_list_has_all_words_of_the_wide_one() {
    let place = with_runs("folded");
    for line in
        ["targets", "doctor -c 1k", "energy devices", "study list", "study show hydroponics"]
    {
        let words = |columns| -> Vec<String> {
            let text = shown(&place, line, Some(columns)).with(0).stdout;
            text.split_whitespace().map(str::to_owned).collect()
        };
        // The load of the machine is another a moment later.
        let steady = |words: Vec<String>| -> Vec<String> {
            words.into_iter().filter(|word| word.replace(',', "").parse::<f64>().is_err()).collect()
        };
        assert_eq!(steady(words("80")), steady(words("1000")), "{line}");
    }
}

/// What a target finds on the standard error of the program at the moment it is started.
fn seen_by_a_target(place: &Place, words: &[&str]) -> String {
    let (from, to) = (place.folder().join("stderr.txt"), place.folder().join("seen.txt"));
    let _ = fs::remove_file(&to);
    let stderr = File::create(&from).expect("a file");
    let mut command = place.command(words);
    command.env("FROM", &from).env("TO", &to).stderr(stderr);
    command.output().expect("the program starts");
    fs::read_to_string(&to).unwrap_or_else(|_| {
        panic!("{words:?} started no target:\n{}", fs::read_to_string(&from).unwrap_or_default())
    })
}

/// A place with the target `mute`, which copies what it finds to a file, and is no server.
fn with_mute_target(name: &str) -> Place {
    let place = Place::with_target(name, "mute", "/nowhere");
    let program = place.folder().join("mute");
    place.write("mute", MUTE);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    let path = place.folder().join("data/targets/mute.toml");
    let text = fs::read_to_string(&path).expect("the target");
    fs::write(&path, text.replace("/nowhere", &program.to_string_lossy())).expect("the target");
    place.write("plan.toml", &PLAN.replace("protocol = \"tcp\"", "target.name = \"mute\""));
    place
}

#[test]
fn the_first_line_comes_before_a_target_starts() {
    let place = with_mute_target("first-line-first");
    for (line, first) in [
        ("compare mute -n 5 --reps 1 --data data", "weigh: 3 cases, 3 trials, at least "),
        ("run plan.toml --data data", "weigh: 1 case, 1 trial, at least "),
        ("limit mute --data data", "weigh: 3 searches; checking the machine first"),
        ("study run tiny --only E2 --data data", "weigh: 1 study; reading the plans and "),
        (
            "energy rundown plan.toml --no-gauge --for 1s --data data",
            "weigh: plan.toml; checking the battery and the machine first",
        ),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let seen = seen_by_a_target(&place, &words);
        assert!(seen.starts_with(first), "{line}: {seen}");
    }
}

#[test]
fn a_resumed_run_says_so_before_its_target_starts() {
    let place = with_mute_target("resumed-first-line");
    let started = place.folder().join("started");
    let mut command = place.command(&["run", "plan.toml", "--data", "data"]);
    // Here the target waits, until the program is interrupted.
    command.env("WAITS", &started);
    let child = command.spawn().expect("the program starts");
    until("the target was started", || started.exists());
    signal("INT", child.id());
    wait(child).with(130);
    let seen = seen_by_a_target(&place, &["run", "--resume", "latest"]);
    assert!(seen.starts_with("weigh: resuming latest; reading its journal"), "{seen}");
    place.nobody_is_left();
}

/// Asked for its version it answers; started, it leaves what it finds, and ends.
const MUTE: &str = "#!/bin/sh
[ \"$1\" = -h ] && { echo 'mosquitto version 2.0.18'; exit 0; }
[ -n \"$WAITS\" ] && { touch \"$WAITS\"; exec sleep 60; }
[ -e \"$TO\" ] || cat \"$FROM\" > \"$TO\"
exit 1
";

const PLAN: &str = "question = \"How long does a request take over one connection, and over many?\"
protocol = \"tcp\"
load.messages = 5
load.connections = 1
load.warmup = \"0s\"
repeat.at_least = 1
";

/// Commands that list or show something.
const LISTS: &str = "\
runs
runs --metric response_time_ns.p99
targets
targets list --settings
targets install mosquitto
doctor
doctor -c 1k
report 2026-11-23T03-55-39-compare
report 2026-11-23T03-55-44-limit
report 2026-11-23T03-55-57-study-tiny
diff 2026-11-23T03-55-39-compare 2026-11-23T03-55-39-compare
compare --dry
compare mqtt tcp -c 100 -R 500/s -d 10s --path lte --dry
run plan.toml --dry
limit --dry
limit mqtt http --goal p99<50ms --dry
energy devices
energy devices nrf9160
energy meters
energy rundown --read
stats numbers.csv
study list
study show hydroponics
study run hydroponics --dry
audit --study hydroponics
audit 2026-11-23T03-55-39-compare";

/// Commands that are refused, with messages on standard error.
const MESSAGES: &str = "\
compare nothing
compare mqtt --path nowhere
compare mqtt -x 0
compare mqtt://broker.example:1883
limit tcp --trial 1ms
limit tcp --from 1/s --trial 500ms
study run nothing
runs --metric nothing
report nothing
run nothing.toml
like wrk
energy devices nothing
energy rundown";
