//! Studies on the command line: listed, shown, replayed, ended early and gone on with. The study is
//! a tiny one of the tests' own, given by `--data`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::rig::{Ended, Place, signal, until, wait};

/// The files of the tiny study.
pub(crate) const FILES: [(&str, &str); 5] = [
    ("study.toml", include_str!("tiny-study/study.toml")),
    ("plan-published.toml", include_str!("tiny-study/plan-published.toml")),
    ("plan-right.toml", include_str!("tiny-study/plan-right.toml")),
    ("published.csv", include_str!("tiny-study/published.csv")),
    ("README.md", include_str!("tiny-study/README.md")),
];

/// What names the tiny study and nothing else.
pub(crate) const TINY: [&str; 3] = ["tiny", "--data", "data"];

impl Place {
    /// A place with the tiny study, whose files are changed first.
    pub(crate) fn with_study(name: &str, change: impl Fn(&str, &str) -> String) -> Place {
        let place = Place::new(name);
        fs::create_dir_all(place.folder().join("data/studies/tiny")).expect("a folder");
        for (file, text) in FILES {
            place.write(&format!("data/studies/tiny/{file}"), &change(file, text));
        }
        place
    }

    /// A place with the tiny study, whose server is `target` in place of mosquitto: a target of the
    /// user's own, which starts `program`.
    pub(crate) fn with_target(name: &str, target: &str, program: &str) -> Place {
        let place = Place::with_study(name, |file, text| match file {
            "plan-published.toml" => text.replace("\"mosquitto\"", &format!("{target:?}")),
            _ => text.to_owned(),
        });
        fs::create_dir_all(place.folder().join("data/targets")).expect("a folder");
        let own = include_str!("../../targets/mosquitto.toml")
            .replace("name = \"mosquitto\"", &format!("name = {target:?}"))
            .replace("binaries = [\"mosquitto\"]", &format!("binaries = [{program:?}]"));
        place.write(&format!("data/targets/{target}.toml"), &own);
        place
    }

    pub(crate) fn tiny(name: &str) -> Place {
        Place::with_study(name, |_, text| text.to_owned())
    }

    pub(crate) fn study(&self, action: &str, more: &[&str]) -> Ended {
        self.weigh(&[&["study", action], &TINY[..], more].concat())
    }

    pub(crate) fn document(&self) -> Value {
        let text = fs::read_to_string(self.run().join("study.json")).expect("study.json");
        serde_json::from_str(&text).expect("study.json is JSON")
    }
}

/// How often each trial of a run has a result.
pub(crate) fn results(run: &Path) -> Vec<u32> {
    let text = fs::read_to_string(run.join("journal.jsonl")).expect("a journal");
    let mut counts = std::collections::BTreeMap::new();
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).expect("a line is JSON");
        // One that Ctrl-C cut short is kept, and done again.
        let mut warnings = event["doubts"].as_array().into_iter().flatten();
        let is_cut_short = warnings.any(|warning| warning["code"] == "interrupted");
        if event["event"] == "trial_finished" && !is_cut_short {
            *counts.entry(event["trial"].to_string()).or_insert(0) += 1;
        }
    }
    counts.into_values().collect()
}

/// The run of a plan in the only run of a study.
pub(crate) fn part(place: &Place, name: &str) -> PathBuf {
    place.run().join(name)
}

fn claim<'d>(document: &'d Value, id: &str) -> &'d Value {
    let claims = document["claims"].as_array().expect("claims");
    claims.iter().find(|claim| claim["id"] == id).unwrap_or_else(|| panic!("no {id}"))
}

/// What the replay of a claim says, and why.
pub(crate) fn replayed<'d>(document: &'d Value, id: &str) -> (&'d str, String) {
    let replay = &claim(document, id)["replays"][0];
    (replay["answer"].as_str().expect("an answer"), replay["reasons"].to_string())
}

/// A claim that holds is reproduced. Beside other tests the machine may be disturbed: then it is
/// undecided, for that reason and no other.
pub(crate) fn holds(document: &Value, id: &str) {
    let (answer, reasons) = replayed(document, id);
    let is_disturbed = answer == "undecided" && reasons.contains("other programs used");
    assert!(answer == "reproduced" || is_disturbed, "{id}: {answer}: {reasons}");
}

#[test]
fn studies_are_listed_and_shown() {
    let place = Place::tiny("study-shown");
    let listed = place.weigh(&["study", "list", "--data", "data"]).with(0);
    for part in ["tiny", "Do twice as many messages", "3 experiments, 5 claims", "quick "] {
        assert!(listed.stdout.contains(part), "{part:?} is not in:\n{}", listed.stdout);
    }
    let all = place.weigh(&["study", "list", "--data", "data", "--json"]).with(0).json();
    let tiny = all.as_array().and_then(|all| all.iter().find(|own| own["name"] == "tiny"));
    let tiny = tiny.expect("it is listed");
    let time = |scale: &str| tiny["time_s"][scale].as_f64().expect("a time");
    assert!(time("quick") > 0.0 && time("full") > time("quick"), "{tiny}");
    let shown = place.study("show", &[]).with(0).stdout;
    for part in
        ["One client and a server", "a desk", "message size", "published: 100 count", "[L03]"]
    {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
    assert!(place.runs().is_empty());
}

/// The built-in studies are listed and shown in every build; what it lacks is a reason of the plans
/// that need it.
#[test]
fn a_study_is_described_by_builds_that_cannot_run_all_of_it() {
    let place = Place::new("study-built-in");
    place.weigh(&["study", "list"]).with(0);
    place.weigh(&["study", "show", "hydroponics"]).with(0);
    let words = ["study", "run", "hydroponics", "--only", "farms", "--dry"];
    let farms = place.weigh(&words).with(0).stdout;
    assert!(farms.contains("right/farms-idle") && !farms.contains("--features full"), "{farms}");
    let all = place.weigh(&["study", "run", "hydroponics", "--dry"]).with(0).stdout;
    let is_skipped = all.contains("not run: this build of weigh has no services of the pipeline");
    assert_eq!(is_skipped, !cfg!(feature = "pipeline"), "{all}");
    assert_eq!(all.contains("--features full"), is_skipped, "{all}");
    assert!(place.runs().is_empty());
}

/// What is shown of an experiment is a plan that `weigh run` takes.
#[test]
fn a_plan_that_is_shown_can_be_run() {
    let place = Place::tiny("study-plan");
    let shown = place.study("show", &["--experiment", "E1", "--scale", "mini"]).with(0).stdout;
    let at = shown.find("# ---- right/cost").expect("the plan done right");
    place.write("mine.toml", &shown[at..]);
    let dry = place.weigh(&["run", "mine.toml", "--dry", "--json"]).with(0).json();
    assert_eq!(dry["trials"]["least"], 2);
}

#[test]
fn what_is_wrong_is_named_and_nothing_starts() {
    let place = Place::tiny("study-wrong");
    for (line, parts) in [
        ("run --data data", &["the study is missing", "tiny", "--all"][..]),
        ("run tinny --data data", &["study \"tinny\": unknown study", "did you mean tiny?"]),
        ("run tiny --data data --only E9", &["E9", "no experiment", "E1 or E2 or E3"]),
        ("run tiny --data data --as wrong", &["wrong", "published, right or tools"]),
        ("run tiny --data data --scale huge", &["huge", "quick or full"]),
        ("run tiny --all", &["--all"]),
        ("run --resume latest", &["study"]),
        ("run --resume latest --scale full", &["--resume", "--scale"]),
        ("show tiny --data data --experiment E9", &["E9", "E1 or E2 or E3"]),
        ("list --data nowhere", &["nowhere"]),
    ] {
        let words: Vec<&str> = ["study"].into_iter().chain(line.split(' ')).collect();
        place.weigh(&words).with(2).saying(parts);
    }
    assert!(place.runs().is_empty());
}

/// Every error has its place in the file, and nothing starts.
#[test]
fn a_study_that_contradicts_itself_is_refused() {
    for (changed, from, to, said) in [
        ("study.toml", "published/E2\"", "published/E7\"", "published/E7"),
        ("study.toml", "two / one", "two / three", "three"),
        ("published.csv", "100,count", "100,", "no unit"),
        ("plan-right.toml", "rate =", "ratte =", "ratte"),
        ("plan-published.toml", "needs = [\"mosquitto\"]", "needs = [\"a-probe\"]", "a-probe"),
    ] {
        let place = Place::with_study("study-broken", |file, text| match file == changed {
            true => text.replace(from, to),
            false => text.to_owned(),
        });
        place.study("run", &[]).with(2).saying(&[changed, said, "nothing was started"]);
        assert!(place.runs().is_empty());
    }
}

#[test]
fn dry_tells_the_plans_and_starts_nothing() {
    let place = Place::tiny("study-dry");
    let told = place.study("run", &["--dry"]).with(0).stdout;
    for part in ["published/E1", "12 trials", "right/cost", "in all (an estimate)"] {
        assert!(told.contains(part), "{part:?} is not in:\n{told}");
    }
    let right = place.study("run", &["--dry", "--json", "--as", "right"]).with(0).json();
    let plans = right["studies"][0]["plans"].as_array().expect("plans");
    assert_eq!(plans.iter().map(|own| &own["plan"]).collect::<Vec<_>>(), ["right/cost"]);
    assert!(place.runs().is_empty());
}

/// What a study answers beside its claims is asked for by its own id: its plans, and no others.
#[test]
fn a_question_of_how_many_can_be_asked_for_alone() {
    let place = Place::new("study-how-many");
    let words = ["study", "run", "hydroponics", "--only", "farms", "--dry", "--json"];
    let dry = place.weigh(&words).with(0).json();
    let plans = dry["studies"][0]["plans"].as_array().expect("plans");
    let names: Vec<&str> = plans.iter().filter_map(|own| own["plan"].as_str()).collect();
    assert!(names.contains(&"right/farms-many") && names.len() > 3, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("right/farms-")), "{names:?}");
    let shown = place.weigh(&["study", "show", "hydroponics", "--experiment", "farms"]).with(0);
    for part in ["# farms: How many farms", "right/farms-idle: ", "pattern = \"hold\""] {
        assert!(shown.stdout.contains(part), "{part:?} is not in:\n{}", shown.stdout);
    }
    let words = ["study", "run", "hydroponics", "--only", "farm", "--dry"];
    place.weigh(&words).with(2).saying(&["farm: ", "or E7 or farms"]);
    assert!(place.runs().is_empty());
}

/// A plan whose server is not there is left out and said, before anything starts and in the result;
/// its claims are not run, with what to type; the others have answers.
#[test]
fn a_server_that_is_missing_costs_only_its_own_claims() {
    let place = Place::with_target("study-missing", "nobody-has-it", "nobody-has-it");
    let ended = place.study("run", &["--json"]).with(0);
    let ended = ended.saying(&["published/E2 is not run", "nobody-has-it is not installed"]);
    let document = place.document();
    assert_eq!(ended.json(), document, "--json is study.json");
    assert_eq!(document["schema"], "weigh/study/1");
    assert_eq!(document["state"], "done");
    holds(&document, "C1");
    assert_eq!(claim(&document, "C2")["printed"], "consistent");
    assert_eq!(replayed(&document, "C3").0, "not run");
    assert_eq!(replayed(&document, "C4").0, "not run");
    holds(&document, "C5");
    let third = &document["claims"][2];
    assert!(third.to_string().contains("nobody-has-it"), "{third}");
    assert!(place.run().join("report.html").is_file());
    assert!(!part(&place, "published-E2").exists());
    place.nobody_is_left();
}

/// The claims stand on the terminal with the figure that decided; reports, lists and comparisons
/// know the run of a study and the runs in it.
#[test]
fn what_came_of_it_is_shown_and_can_be_shown_again() {
    let place = Place::tiny("study-again");
    let ended = place.study("run", &["--scale", "mini", "--only", "E1"]).with(0);
    for part in ["C1", "as printed", "two / one is 2", "report.html", "plan 1 of 2"] {
        let all = format!("{}{}", ended.stdout, ended.stderr);
        assert!(all.contains(part), "{part:?} is not in:\n{all}");
    }
    let before = place.document();
    assert!(Path::new(before["data"].as_str().expect("--data")).is_absolute(), "{before}");
    fs::remove_file(place.run().join("report.html")).expect("it was there");
    // Whoever goes on with the run holds its folder: then it is shown, and nothing is written.
    let folder = fs::File::open(place.run()).expect("the run's folder");
    folder.try_lock().expect("nobody goes on with it");
    let meanwhile = place.weigh(&["report", "latest"]).with(0).saying(&["no file was written"]);
    assert_eq!(meanwhile.stdout, ended.stdout);
    assert!(!place.run().join("report.html").exists());
    drop(folder);
    let again = place.weigh(&["report", "latest"]).with(0);
    assert_eq!(again.stdout, ended.stdout);
    assert_eq!(place.document(), before);
    assert!(place.run().join("report.html").is_file());
    assert_eq!(place.weigh(&["report", "latest", "--json"]).with(0).json(), before);
    #[cfg(feature = "plots")]
    drawn(&place);
    let listed = place.weigh(&["runs"]).with(0).stdout;
    assert!(listed.contains("study run") && listed.contains("mini"), "{listed}");
    let own = part(&place, "published-E1");
    let own = own.to_str().expect("a path");
    place.weigh(&["report", own]).with(0);
    place.weigh(&["diff", own, own]).with(0);
    let folder = place.run();
    place.weigh(&["diff", folder.to_str().expect("a path"), own]).with(2).saying(&["study"]);
}

/// Every picture of the study's page is written as SVG and as PNG.
#[cfg(feature = "plots")]
fn drawn(place: &Place) {
    let arguments = ["report", "latest", "--plots", "plots"];
    place.weigh(&arguments).with(0).saying(&["wrote 1 picture to plots"]);
    let plots = place.folder().join("plots");
    let svg = fs::read_to_string(plots.join("figure-table-1.svg")).expect("an SVG");
    let png = fs::read(plots.join("figure-table-1.png")).expect("a PNG");
    assert!(svg.starts_with("<svg") && svg.contains("as published"), "{svg}");
    assert!(png.starts_with(b"\x89PNG"));
    place.weigh(&["report", "latest", "--plots", "/proc/plots"]).with(4).saying(&["--plots DIR"]);
}

/// Nothing is lost by kill -9, and nothing is done twice, whichever plan it hits.
#[test]
fn a_killed_study_goes_on() {
    for wait_ms in [150, 700, 1500] {
        let place = Place::tiny("study-killed");
        let arguments = [&["study", "run"], &TINY[..], &["--only", "E1", "--quiet"]].concat();
        let child = place.spawn(&arguments);
        let begun = || place.runs().iter().any(|run| run.join("study.json").is_file());
        until("the study's document", begun);
        std::thread::sleep(Duration::from_millis(wait_ms));
        // It may have ended by now: then there is nothing left to do, and that must hold as well.
        let _ = std::process::Command::new("sh")
            .args(["-c", &format!("kill -KILL {} 2>/dev/null", child.id())])
            .status();
        wait(child);
        let ended = place.weigh(&["study", "run", "--resume", "latest", "--json"]).with(0);
        let document = place.document();
        assert_eq!(ended.json(), document);
        assert_eq!(document["state"], "done");
        assert_eq!(results(&part(&place, "published-E1")), [1; 12]);
        assert_eq!(results(&part(&place, "right-cost")), [1; 5]);
        holds(&document, "C1");
        place.nobody_is_left();
        place
            .weigh(&["study", "run", "--resume", "latest"])
            .with(0)
            .saying(&["no plan is left to run"]);
    }
}

/// Ctrl-C keeps what was measured, says how to go on, and the code is 130.
#[test]
fn an_interrupted_study_keeps_what_it_has() {
    let place = Place::tiny("study-interrupted");
    let arguments = [&["study", "run"], &TINY[..], &["--only", "E1"]].concat();
    let child = place.spawn(&arguments);
    let has_result = || {
        let journal = place.runs().first().map(|run| run.join("published-E1/journal.jsonl"));
        let text = journal.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        text.contains("trial_finished")
    };
    until("a result", has_result);
    signal("INT", child.id());
    wait(child).with(130).saying(&["to continue, type weigh study run --resume"]);
    let document = place.document();
    assert_eq!(document["state"], "interrupted");
    assert_eq!(replayed(&document, "C5").0, "not run", "its plan was not begun");
    place.weigh(&["study", "run", "--resume", "latest", "--quiet"]).with(0);
    assert_eq!(results(&part(&place, "published-E1")), [1; 12]);
    assert_eq!(place.document()["state"], "done");
    place.nobody_is_left();
}

/// A study that cannot be begun takes nothing from the one that was done before it.
#[test]
fn a_later_study_that_fails_leaves_the_finished_one() {
    let place = Place::tiny("study-later");
    fs::create_dir_all(place.folder().join("data/studies/tiny-two")).expect("a folder");
    for (file, text) in FILES {
        // Too large a file for the disk that the limit stands for.
        let text = match file {
            "study.toml" => text.replace("name = \"tiny\"", "name = \"tiny-two\""),
            "README.md" => "much ".repeat(4 << 20),
            _ => text.to_owned(),
        };
        place.write(&format!("data/studies/tiny-two/{file}"), &text);
    }
    let words = "study run tiny tiny-two --data data --only E1 --scale mini --quiet --json";
    let script = format!("trap '' XFSZ; ulimit -f 16384; exec \"$WEIGH\" {words}");
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]).current_dir(place.folder());
    command.env("WEIGH", env!("CARGO_BIN_EXE_weigh")).env("WEIGH_CLI_TEST", place.mark());
    let ended = Ended::from(command.output().expect("bash starts")).with(4);
    let ended = ended.saying(&["tiny-two could not be started", "README.md"]);
    let document = ended.json();
    let studies = document["studies"].as_array().expect("several were asked for");
    assert_eq!(studies.len(), 1, "{document}");
    assert_eq!((&studies[0]["study"], &studies[0]["state"]), (&"tiny".into(), &"done".into()));
    // The index page links what there is.
    // The folder of the study that could not be begun is there, and is the run of none.
    let done = place.runs().into_iter().find(|run| run.join("study.json").is_file());
    let name = done.expect("the finished one").file_name().expect("a name").display().to_string();
    let page = format!("{name}/report.html");
    let index = fs::read_to_string(place.folder().join("runs/studies.html")).expect("an index");
    assert!(index.contains(&format!("href=\"{page}\"")), "{index}");
    assert!(place.folder().join("runs").join(page).is_file());
    place.nobody_is_left();
}

/// Where a disk is full nothing that was measured is lost, and room lets it go on. A limit on the
/// size of files fills up like a disk.
#[test]
fn a_full_disk_ends_a_study_and_room_lets_it_go_on() {
    let place = Place::tiny("study-filled");
    let words = "study run tiny --data data --only E1 --quiet --json";
    let script = format!("trap '' XFSZ; ulimit -f 128; exec \"$WEIGH\" {words}");
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &script]).current_dir(place.folder());
    command.env("WEIGH", env!("CARGO_BIN_EXE_weigh")).env("WEIGH_CLI_TEST", place.mark());
    let ended = Ended::from(command.output().expect("bash starts")).with(4);
    let ended = ended.saying(&["the measured results are above", "weigh study run --resume"]);
    assert_eq!(ended.json()["state"], "failed");
    let resumed = place.weigh(&["study", "run", "--resume", "latest", "--quiet", "--json"]).with(0);
    assert_eq!(resumed.json()["state"], "done");
    assert_eq!(results(&part(&place, "published-E1")), [1; 12]);
    place.nobody_is_left();
}

/// A share that no control group enforces is said before anything starts, with what stands in for
/// it and the fix; the plan is run all the same.
#[test]
fn a_share_that_cannot_be_enforced_is_said_at_once() {
    let place = Place::with_study("study-no-groups", |file, text| match file {
        "plan-right.toml" => {
            text.replace("protocol = \"tcp\"", "protocol = \"tcp\"\ntarget.memory = \"512MiB\"")
        }
        _ => text.to_owned(),
    });
    // A folder that has no control groups.
    fs::create_dir(place.folder().join("sys")).expect("a folder");
    let words = [&["study", "run"], &TINY[..], &["--dry"]].concat();
    let dry = |more: &[&str]| {
        let mut command = place.command(&[&words[..], more].concat());
        Ended::from(command.env("WEIGH_SYSFS", "sys").output().expect("the program starts"))
    };
    let told = dry(&[]).with(0).stdout;
    for part in ["right/cost: memory is limited by RLIMIT_DATA", "run it as root"] {
        assert!(told.contains(part), "{part:?} is not in:\n{told}");
    }
    let plans = dry(&["--json"]).with(0).json()["studies"][0]["plans"].clone();
    let plans = plans.as_array().expect("plans");
    let remark = |name: &str| &plans.iter().find(|own| own["plan"] == name).expect(name)["remark"];
    assert!(remark("right/cost").as_str().is_some_and(|text| text.contains("RLIMIT_DATA")));
    assert!(remark("published/E1").is_null(), "it asks for no share");
    assert!(plans.iter().all(|own| own["plan"] != "right/cost" || own["not_run"].is_null()));
}
