//! Real programs of a study on the command line: run beside its plans, missing, failing, ended
//! early and resumed; and named servers that do not start or run elsewhere.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use serde_json::Value;

use crate::rig::{Ended, Place, has, signal, until, wait};

/// A tool of the tiny study: these lines, and what all of them have.
fn tool(name: &str, lines: &str) -> String {
    let (before, tables) = lines.split_once("\n[").unwrap_or((lines, ""));
    let tables = if tables.is_empty() { String::new() } else { format!("\n[{tables}") };
    format!(
        "[[tool]]\nname = \"{name}\"\nabout = \"a test\"\nexperiments = [\"E1\"]\n\
         install = \"apt-get install it\"\n{before}\n{tables}\n"
    )
}

/// The tiny study with these tools, and this at the end of its study.toml.
fn place(test: &str, tools: &str, more: &str) -> Place {
    let place = Place::with_study(test, |file, text| match file {
        "study.toml" => format!("{text}\n{more}"),
        _ => text.to_owned(),
    });
    place.write("data/studies/tiny/tools.toml", tools);
    place
}

fn shown<'d>(document: &'d Value, name: &str) -> &'d Value {
    let tools = document["tools"].as_array().expect("tools");
    let found = tools.iter().find(|tool| tool["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {tools:?}"))
}

fn figure(tool: &Value, name: &str) -> f64 {
    let figures = tool["figures"].as_array().expect("figures");
    let found = figures.iter().find(|figure| figure["name"] == name);
    found.and_then(|own| own["mean"].as_f64()).unwrap_or_else(|| panic!("no {name} in {tool}"))
}

fn journal(place: &Place, name: &str) -> PathBuf {
    place.run().join(format!("tools-{name}/repetitions.jsonl"))
}

fn lines(place: &Place, name: &str, event: &str) -> Vec<String> {
    let text = std::fs::read_to_string(journal(place, name)).expect("a journal");
    let mark = format!("\"event\":\"{event}\"");
    text.lines().filter(|line| line.contains(&mark)).map(str::to_owned).collect()
}

fn tools_alone(place: &Place, more: &[&str]) -> Ended {
    place.study("run", &[&["--as", "tools", "--json"], more].concat())
}

/// curl against the reference server: what it used is counted, a claim may rest on it, and its
/// packets are on the page.
#[test]
fn a_real_program_is_run_with_the_plans() {
    if !has("curl") {
        return;
    }
    let curl = tool(
        "curl",
        "program = \"curl\"\n\
         version = { arguments = [\"--version\"], after = \"curl \" }\n\
         arguments = [\"--silent\", \"--fail\", \"--output\", \"answer\", \"--data-raw\", \
         '{\"test\":1234}', \"{url}/messages\"]\nstarts = \"message\"\nmessages = 3\n\
         repetitions = 6\nplan = { protocol = \"http\" }\nmini = { messages = 2, repetitions = 5 }",
    );
    let claim = "[[claim]]\nid = \"C6\"\nsection = \"Section 4\"\nsays = \"A start costs time.\"\n\
                 experiments = [\"E1\"]\nsame = \"curl\"\nreplayed = [\"time: cpu > 0\"]\n\
                 [claim.let]\ncpu = { run = \"tools/curl\", tool = \"cpu_s_per_message\" }\n";
    let place = place("tools-curl", &curl, claim);
    let ended = tools_alone(&place, &["--scale", "mini"]).with(0);
    let document = ended.json();
    assert_eq!(document, place.document());
    let shown = shown(&document, "tools/curl");
    assert_eq!((&shown["repetitions"], &shown["skipped"]), (&5.into(), &Value::Null), "{shown}");
    assert!(shown["version"].as_str().is_some_and(|version| version.contains('.')), "{shown}");
    assert!(shown["target"].as_str().is_some_and(|target| target.contains("http1")), "{shown}");
    assert_eq!(figure(shown, "messages"), 2.0);
    assert!(figure(shown, "cpu_s_per_message") > 0.0 && figure(shown, "wall_s") > 0.0);
    assert!(figure(shown, "max_rss_bytes") > 1e6);
    let claims = document["claims"].as_array().expect("claims");
    let own = claims.iter().find(|claim| claim["id"] == "C6").expect("C6");
    let judged = &own["conditions"][0];
    assert!(judged["estimate"].as_f64().is_some_and(|time| time > 0.0), "{own}");
    assert_eq!(judged["n"], 5);
    let page = std::fs::read_to_string(place.run().join("report.html")).expect("a page");
    assert!(page.contains("curl"), "the page does not name the program");
    // What is done is not done again.
    let before = std::fs::read(journal(&place, "curl")).expect("a journal");
    place.weigh(&["study", "run", "--resume", "latest"]).with(0);
    assert_eq!(std::fs::read(journal(&place, "curl")).expect("a journal"), before);
    let again = place.weigh(&["report", "latest", "--json"]).with(0).json();
    assert_eq!(again["tools"], document["tools"]);
    place.nobody_is_left();
}

/// The same command line made by the real program and by weigh, in every repetition.
#[test]
fn a_real_tool_is_compared_with_its_emulation() {
    if !has("autocannon") {
        return;
    }
    let words = "\"-n\", \"-c\", \"{clients}\", \"-a\", \"{messages}\", \"{url}/messages\"";
    let tools = tool(
        "autocannon",
        &format!(
            "program = \"autocannon\"\narguments = [\"--json\", {words}]\n\
             prints = \"autocannon\"\nmessages = 40\nclients = 2\nrepetitions = 2\n\
             emulation = [\"autocannon\", {words}]\nplan = {{ protocol = \"http\" }}\n\
             mini = {{ repetitions = 2 }}",
        ),
    );
    let place = place("tools-autocannon", &tools, "");
    let ended = place.study("run", &["--as", "tools", "--scale", "mini"]).with(0);
    assert!(ended.stdout.contains("weigh like autocannon: "), "{}", ended.stdout);
    assert!(ended.stdout.contains("difference"), "{}", ended.stdout);
    let document = place.document();
    let shown = shown(&document, "tools/autocannon");
    assert_eq!(figure(shown, "reported_messages"), 40.0);
    let figures = shown["figures"].as_array().expect("figures");
    let messages = figures.iter().find(|own| own["name"] == "reported_messages").expect("it");
    assert_eq!(messages["beside"][0]["value"], 40.0, "{messages}");
    assert_eq!(messages["beside"][0]["difference"], 0.0, "{messages}");
    place.nobody_is_left();
}

/// One that is not installed is left out and said with what to type; all else is judged.
#[test]
fn a_program_that_is_missing_is_skipped() {
    let lines = "program = \"nobody-has-it\"\nmessages = 1\nrepetitions = 5";
    let place = place("tools-missing", &tool("absent", lines), "");
    let ended = place.study("run", &["--scale", "mini", "--only", "E1", "--json"]).with(0);
    let told = ["tools/absent is not run", "nobody-has-it is not on PATH", "apt-get install it"];
    let document = ended.saying(&told).json();
    let shown = shown(&document, "tools/absent");
    assert!(shown["skipped"].as_str().is_some_and(|why| why.contains("apt-get")), "{shown}");
    assert_eq!(document["state"], "done");
    assert!(!place.run().join("tools-absent").exists());
    let told = place.study("run", &["--dry"]).with(0);
    assert!(told.stdout.contains("tools/absent"), "{}", told.stdout);
}

/// What a failing program printed is in the error; it is given up after two repetitions, and does
/// not end what comes after it.
#[test]
fn a_program_that_fails_is_said_with_what_it_printed() {
    let failing = "program = \"sh\"\n\
                   arguments = [\"-c\", \"echo asked; echo refused >&2; exit 7\"]\n\
                   messages = 1\nrepetitions = 4";
    let slow = "program = \"sh\"\narguments = [\"-c\", \"echo begun; sleep 50\"]\n\
                messages = 1\nrepetitions = 1\nwithin = \"300ms\"";
    let silent = "program = \"sh\"\narguments = [\"-c\", \"echo Usage: x\"]\nprints = \"jmeter\"\n\
                  messages = 1\nrepetitions = 1";
    let fine = "program = \"sh\"\narguments = [\"-c\", \"test $(wc -l) = {messages}\"]\n\
                line = \"{ {messages} }\"\nmessages = 3\nrepetitions = 2";
    let all = [("failing", failing), ("slow", slow), ("silent", silent), ("fine", fine)];
    let all: String = all.iter().map(|(name, lines)| tool(name, lines)).collect();
    let place = place("tools-failing", &all, "");
    let document = tools_alone(&place, &[])
        .with(3)
        .saying(&["exit status 7", "asked\nrefused", "did not end within", "is stopped"])
        .json();
    let failures = |name: &str| shown(&document, name)["failures"].to_string();
    assert!(failures("tools/failing").contains("refused"));
    assert!(failures("tools/slow").contains("begun"));
    let silent = failures("tools/silent");
    assert!(silent.contains("summary =") && silent.contains("Usage: x"), "{silent}");
    assert_eq!(shown(&document, "tools/fine")["repetitions"], 2);
    assert_eq!(lines(&place, "failing", "repetition_failed").len(), 2);
    assert_eq!(document["state"], "done");
    place.nobody_is_left();
}

/// Ctrl-C ends the program that runs; a later sitting makes what is left, and touches nothing that
/// was measured.
#[test]
fn what_was_measured_stays_when_it_ends_early() {
    let lines_of = "program = \"sh\"\narguments = [\"-c\", \"test -e ../../../go || sleep 50\"]\n\
                    messages = 1\nrepetitions = 3";
    let place = place("tools-early", &tool("slow", lines_of), "");
    let words = ["study", "run", "tiny", "--data", "data", "--as", "tools"];
    let program = place.spawn(&words);
    until("the program runs", || place.processes().iter().any(|(_, line)| line.contains("sleep")));
    signal("INT", program.id());
    wait(program).with(130).saying(&["--resume"]);
    place.nobody_is_left();
    assert_eq!(place.document()["state"], "interrupted");
    assert!(lines(&place, "slow", "repetition_finished").is_empty());
    // The program's folder is below that of the tool, below that of the study's run.
    std::fs::write(place.run().join("go"), "").expect("a file");
    place.weigh(&["study", "run", "--resume", "latest"]).with(0);
    let all = lines(&place, "slow", "repetition_finished");
    assert_eq!(all.len(), 3);
    // As if it had been killed while it wrote the third.
    let text = std::fs::read_to_string(journal(&place, "slow")).expect("a journal");
    let third = text.find(&all[2]).expect("the third");
    std::fs::write(journal(&place, "slow"), &text[..third + 20]).expect("a journal");
    place.weigh(&["study", "run", "--resume", "latest"]).with(0);
    let again = lines(&place, "slow", "repetition_finished");
    assert_eq!((again.len(), &again[..2]), (3, &all[..2]));
    assert_eq!(shown(&place.document(), "tools/slow")["repetitions"], 3);
}

/// Every mistake has its place in the file, and nothing starts.
#[test]
fn what_is_wrong_with_a_tool_is_named() {
    let fine = "program = \"sh\"\nmessages = 1\nrepetitions = 5";
    for (tools, parts) in [
        (tool("x", "program = \"sh\"\nmesages = 1\nrepetitions = 1"), &["mesages"][..]),
        (tool("x", &format!("{fine}\narguments = [\"{{prt}}\"]")), &["{prt}", "{port}"]),
        (tool("x", fine).replace("E1", "E9"), &["unknown experiment \"E9\"", "E1"]),
        (tool("x", &format!("{fine}\nplan = {{ protocol = \"mqt\" }}")), &["mqt", "mqtt"]),
        (
            tool("x", &format!("{fine}\nplan = {{ target = \"mqtt://h:1\" }}")),
            &["mqtt://h:1", "on this machine"],
        ),
        (
            tool("x", &format!("{fine}\nplan = {{ protocol = \"tcp\", load.rate = \"1/s\" }}")),
            &["load", "is not allowed in the plan of a tool"],
        ),
        (tool("x", &format!("{fine}\nwithin = \"2h\"")), &["too long"]),
        (tool("x", &format!("{fine}\nemulation = [\"autocannon\"]")), &["prints"]),
        (
            tool("x", &format!("{fine}\nprints = \"jmeter\"\nemulation = [\"runs\"]")),
            &["weigh runs", "compare"],
        ),
        (format!("{}{}", tool("x", fine), tool("x", fine)), &["duplicate tool \"x\""]),
    ] {
        let place = place("tools-wrong", &tools, "");
        let ended = place.study("run", &[]).with(2);
        ended.saying(&["tools.toml"]).saying(parts);
        assert!(place.runs().is_empty());
    }
    for (quantity, parts) in [
        ("run = \"tools/y\", tool = \"cpu_s\"", &["tools/y"][..]),
        ("run = \"tools/x\", tool = \"cpus\"", &["no figure \"cpus\"", "cpu_s"]),
        ("run = \"tools/x\", tool = \"reported_per_s\"", &["no figure", "reported_per_s"]),
    ] {
        let claim = format!(
            "[[claim]]\nid = \"C6\"\nsection = \"4\"\nsays = \"x\"\nexperiments = []\n\
             same = \"sh\"\nreplayed = [\"a > 0\"]\n[claim.let]\na = {{ {quantity} }}\n"
        );
        let place = place("tools-asked", &tool("x", fine), &claim);
        place.study("run", &[]).with(2).saying(&["study.toml"]).saying(parts);
    }
}

/// A target of the user's own in the place of Mosquitto.
fn with_target(test: &str, name: &str, binary: &str) -> Place {
    let place = Place::with_study(test, |file, text| match file {
        "plan-published.toml" => text.replace("\"mosquitto\"", &format!("{name:?}")),
        _ => text.to_owned(),
    });
    std::fs::create_dir_all(place.folder().join("data/targets")).expect("a folder");
    let own = include_str!("../../targets/mosquitto.toml")
        .replace("name = \"mosquitto\"", &format!("name = {name:?}"))
        .replace("binaries = [\"mosquitto\"]", &format!("binaries = [{binary:?}]"))
        .replace("abilities = \"abilities/mosquitto.toml\"\n", "");
    place.write(&format!("data/targets/{name}.toml"), &own);
    place
}

fn replayed(document: &Value, id: &str) -> String {
    let claims = document["claims"].as_array().expect("claims");
    let claim = claims.iter().find(|claim| claim["id"] == id).expect("the claim");
    claim["replays"][0]["answer"].as_str().expect("an answer").to_owned()
}

/// A named server that is installed and does not start is tried once: its plan is left out with the
/// end of its log, its claims are open, and the others are judged.
#[test]
fn a_named_server_that_does_not_start_leaves_its_claims_open() {
    let place = with_target("study-no-start", "broken", "false");
    let ended = place.study("run", &["--scale", "mini", "--json"]).with(3);
    let ended = ended.saying(&["published/E2 is not run", "before it was ready"]);
    let document = ended.json();
    assert_eq!(document["state"], "done");
    assert_eq!(replayed(&document, "C3"), "not run");
    assert_ne!(replayed(&document, "C1"), "not run");
    assert!(!place.run().join("published-E2").exists());
    place.nobody_is_left();
}

/// A named server that runs elsewhere takes the place of the one that plans would start.
#[test]
fn a_named_server_can_run_elsewhere() {
    let place = with_target("study-elsewhere", "nobody-has-it", "nobody-has-it");
    let mut server = place.spawn(&["serve", "mqtt"]);
    let mut said = BufReader::new(server.stdout.take().expect("its stdout")).lines();
    let line = said.next().expect("a line").expect("a text");
    let url = line.split_whitespace().last().expect("a URL").to_owned();
    let server_word = format!("nobody-has-it={url}");
    let words = ["--scale", "mini", "--only", "E2", "--json", "--server", &server_word];
    let document = place.study("run", &words).with(0).json();
    assert_ne!(replayed(&document, "C3"), "not run");
    assert!(place.run().join("published-E2").is_dir());
    let words = ["--dry", "--server", "nobody-has-it"];
    place.study("run", &words).with(2).saying(&["NAME=URL"]);
    signal("TERM", server.id());
    wait(server);
    place.nobody_is_left();
}
