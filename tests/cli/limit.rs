//! `weigh limit`: bounds around a limit that is known, what is kept of a search, and what it
//! refuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::rig::{Ended, Place, in_one_of_three, signal};
use crate::stored::{copy, stored};

/// What a server of so many requests a second does with those that come too early.
#[derive(Clone, Copy)]
enum Beyond {
    /// A queue of fifty: 17 ms, so that a pause of the machine does not fill it. What finds it
    /// full is refused at once (503).
    Refuses,
    /// They wait for their turn, however many.
    Waits,
}

/// A server over HTTP that answers [`CAPACITY`] requests a second, and its URL. A token bucket
/// (the generic cell rate algorithm of ITU-T I.371, annex A): each answer has a slot of its own.
fn server(beyond: Beyond) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let next = Arc::new(Mutex::new(Instant::now()));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let next = Arc::clone(&next);
            std::thread::spawn(move || serve(stream, beyond, &next));
        }
    });
    format!("http://127.0.0.1:{port}")
}

fn serve(stream: TcpStream, beyond: Beyond, next: &Mutex<Instant>) {
    let _ = stream.set_nodelay(true);
    let Ok(mut answers) = stream.try_clone() else { return };
    let mut requests = BufReader::new(stream);
    while read_request(&mut requests).is_some() {
        let answer = match turn(beyond, next) {
            Some(at) => {
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
            }
            None => "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
        };
        if answers.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// When the request is answered; `None` if never. What the queue holds is answered at once: only
/// what is refused depends on it.
fn turn(beyond: Beyond, next: &Mutex<Instant>) -> Option<Instant> {
    let mut next = next.lock().expect("nobody panics here");
    let now = Instant::now();
    let slot = (*next).max(now);
    let queue = slot.duration_since(now).as_secs_f64() * CAPACITY;
    if matches!(beyond, Beyond::Refuses) && queue > QUEUE {
        return None;
    }
    *next = slot + Duration::from_secs_f64(1.0 / CAPACITY);
    Some(if matches!(beyond, Beyond::Waits) { slot } else { now })
}

fn read_request(requests: &mut BufReader<TcpStream>) -> Option<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if requests.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            let mut body = vec![0; length];
            return requests.read_exact(&mut body).ok();
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
}

/// What pauses of a busy machine may take from a bound.
const WITH_OTHER_LOAD: f64 = 0.8;

const CAPACITY: f64 = 3_000.0;
const QUEUE: f64 = 50.0;

/// Searches with short trials; the answer of the only goal.
fn search(place: &Place, url: &str, more: &[&str]) -> Value {
    let mut words = vec!["limit", url, "--from", "500/s", "--to", "30000/s", "--json", "-Q"];
    words.extend(["--goal", "loss <= 1%", "--width", "5%", "--warmup", "200ms"]);
    words.extend(["--trial", "400ms", "--sum", "2s"]);
    words.extend(more);
    let ended = place.weigh(&words);
    let limit = ended.json()["limits"][0].clone();
    assert_eq!(limit["stop"], "complete", "{}", limit["stopped"]);
    // On a machine that is busy with other tests these may be what ended it.
    let is_proven = limit["goals"][0]["unproven"].is_null();
    drop(ended.with(if is_proven { 0 } else { 98 }));
    limit
}

/// Fails unless the bounds are as close as asked and lie around what the server can do. They may
/// lie lower by this share: beside other tests server and generator pause, and a search finds that
/// too.
#[track_caller]
fn holds_the_truth(limit: &Value, slack: f64) {
    let goal = &limit["goals"][0];
    let bound = |name: &str| goal[name].as_f64().unwrap_or_else(|| panic!("{name}: {goal}"));
    let (lower, upper) = (bound("lower"), bound("upper"));
    assert_eq!(goal["outcome"], "decided", "{goal}");
    assert!((upper - lower) / upper <= 0.05, "{lower} … {upper}");
    // A hundredth may be lost, and what the queue takes at the beginning is answered too: one
    // trial of 0.4 s and its warm-up of 0.2 s can take 50 messages more.
    let most = CAPACITY * 1.01 + QUEUE / 0.6;
    assert!(lower <= most && upper >= CAPACITY * (1.0 - slack), "{}", goal["sentence"]);
    let capacity = &goal["metrics"]["capacity_per_s"];
    assert_eq!((&capacity["value"], &capacity["low"]), (&goal["lower"], &goal["lower"]));
    assert_eq!(capacity["high"], goal["upper"]);
}

#[test]
fn the_bounds_lie_around_a_limit_that_is_known() {
    in_one_of_three(bounds_around_a_known_limit);
}

fn bounds_around_a_known_limit() {
    let place = Place::new("bucket");
    let url = server(Beyond::Refuses);
    let limit = search(&place, &url, &[]);
    holds_the_truth(&limit, WITH_OTHER_LOAD);
    assert_eq!(limit["point"]["target"], url.as_str());
    let ended = limit["goals"][0]["ended_by"]["sentence"].as_str().unwrap();
    assert!(ended.contains("the target sets itself: messages answered with errors"), "{ended}");
    let evidence = &limit["goals"][0]["ended_by"]["evidence"];
    assert!(evidence["descriptors"]["available"].as_u64() > Some(0), "{evidence}");
    assert!(evidence["ports"]["used"].as_u64() >= Some(2), "{evidence}");
    assert!(evidence["path_drops"].is_u64() && evidence["target_cpu_percent"].is_null());
    let page = std::fs::read_to_string(place.run().join("report.html")).unwrap();
    assert!(page.contains("The limit of ") && page.contains("search-1-1"));
    assert!(page.contains("Throughput by load") && page.contains("loads-1"));
    // The answer is that of the journal alone.
    let again = place.weigh(&["report", "latest", "--json"]).with(0).json();
    assert_eq!(again["limits"][0], limit);
    let journal = place.journal();
    let told = journal.iter().filter(|event| event["event"] == "search_told").count();
    assert_eq!(limit["trials"].as_array().unwrap().len(), told);
    let finished = journal.iter().filter(|event| event["event"] == "trial_finished").count();
    assert_eq!(finished, told, "every trial is recorded as any other");
    let text = place.weigh(&["report", "latest"]).with(0).stdout;
    for part in ["lower bound", "upper bound", "● a trial met the goal", "the search is complete"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

/// At each load that missed the goal the last reason is given, in a line that fits.
#[test]
fn a_missed_load_has_its_reason() {
    let place = Place::new("limit-reason");
    copy(&stored("limit"), &place.folder().join("runs"));
    let mut command = place.command(&["report", "latest"]);
    let ended = Ended::from(command.env("COLUMNS", "80").output().expect("a report")).with(0);
    let line = "         8,000     0.6 s  ●×  lower bound  backlog 1.9 %\n";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);
}

/// A server that only queues loses nothing in a short trial: what piles up gives it away.
#[test]
fn a_queue_without_end_is_no_capacity() {
    in_one_of_three(queue_without_end);
}

fn queue_without_end() {
    let place = Place::new("queue");
    let url = server(Beyond::Waits);
    let limit = search(&place, &url, &[]);
    holds_the_truth(&limit, WITH_OTHER_LOAD);
    let missed =
        limit["trials"].as_array().unwrap().iter().filter_map(|trial| trial["missed"][0].as_str());
    assert!(missed.into_iter().all(|why| why.contains("backlog_ratio")), "{limit}");
    let ended = limit["goals"][0]["ended_by"]["sentence"].as_str().unwrap();
    // Two connections with one request each hold up what comes later: before the server, not in it.
    assert!(ended.contains("what may be in flight"), "{ended}");
    assert!(ended.contains("were still waiting when the window ended"), "{ended}");
}

#[test]
#[ignore = "takes six minutes: cargo test --test cli -- --ignored twenty"]
fn twenty_of_twenty_searches_hold_the_truth() {
    let place = Place::new("twenty");
    for number in 0..20 {
        let beyond = if number % 2 == 0 { Beyond::Refuses } else { Beyond::Waits };
        let limit = search(&place, &server(beyond), &["--seed", &number.to_string()]);
        let goal = &limit["goals"][0];
        println!("{number}: {} {} trials", goal["sentence"], goal["trials"]);
        holds_the_truth(&limit, 0.0);
    }
}

#[test]
fn a_goal_that_is_never_met_is_said_after_the_smallest_load() {
    let place = Place::new("never");
    let url = server(Beyond::Refuses);
    let words = ["limit", &*url, "--from", "9000/s", "--to", "30000/s", "--warmup", "100ms", "-Q"];
    let more = ["--trial", "300ms", "--sum", "900ms", "--goal", "loss == 0"];
    let said = place.weigh(&[&words[..], &more].concat()).with(0).stdout;
    assert!(said.contains("not met even at the smallest load, 9,000/s"), "{said}");
    assert!(!said.contains("lower bound"), "{said}");
    for event in place.of_kind("search_told") {
        assert_eq!(event["request"]["load"], 9000.0, "nothing larger was tried");
    }
}

/// At the default flags a server of known limit has an answer after a minute, and the exit code
/// says whether it is proven.
#[test]
fn a_minute_is_enough_for_an_answer() {
    let place = Place::new("minute");
    let ended = place.weigh(&["limit", &*server(Beyond::Refuses), "--json", "-Q"]);
    let limit = ended.json()["limits"][0].clone();
    let goal = &limit["goals"][0];
    assert_eq!((&goal["name"], &goal["asked"]["width"]), (&"minute".into(), &0.05.into()));
    let passed = goal["passed"].as_f64().expect("some load passed");
    // Single trials of half a second take what the queue holds at the beginning, too.
    assert!(passed <= CAPACITY * 1.005 + 2.0 * QUEUE, "{goal}");
    assert!(goal["failed"].as_f64() > Some(passed), "{goal}");
    match goal["unproven"].as_str() {
        None => drop(ended.with(0)),
        Some(why) => drop(ended.with(98).saying(&["undecided (exit code 98): http1 against", why])),
    }
}

/// A closed loop has as many messages as it has: where a quantile needs more, trials are longer.
#[test]
fn a_quantile_lengthens_trials_and_does_not_end_the_search() {
    let place = Place::new("lengthened");
    let words = ["limit", "tcp", "--axis", "connections", "--to", "2", "--think", "20ms"];
    let short = ["--trial", "500ms", "--sum", "500ms", "--warmup", "0s", "--width", "40%"];
    let goal = ["--goal", "p99 < 2s", "--json"];
    let ended = place.weigh(&[&words[..], &short, &goal].concat()).with(0);
    let document = ended.json();
    ended.saying(&["response_time_ns.p99 needs 368 messages", "the next trial at this load is"]);
    let limit = &document["limits"][0];
    assert_eq!(limit["goals"][0]["outcome"], "holds-at-max", "{limit}");
    let trials = limit["trials"].as_array().unwrap();
    assert!(trials.iter().any(|trial| trial["end"] == "too-few"), "{limit}");
    let longest = trials.iter().filter_map(|trial| trial["duration_s"].as_f64());
    assert!(longest.fold(0.0, f64::max) > 2.0, "{limit}");
}

/// Two lanes that take turns, two goals that share trials, a budget that ends both.
#[test]
fn a_budget_leaves_bounds_so_far() {
    let place = Place::new("budget");
    let words = [
        "limit", "tcp", "http", "--budget", "8s", "--trial", "200ms", "--sum", "2m", "--warmup",
        "0s", "--to", "2000/s",
    ];
    let goals = ["--goal", "quick", "--goal", "errors == 0, p99 < 10s", "--from", "500/s"];
    let ended = place.weigh(&[&words[..], &goals, &["--json"]].concat()).with(98);
    let document = ended.json();
    ended.saying(&["undecided (exit code 98): ", "is not proven: ", "more trials (about "]);
    let limits = document["limits"].as_array().unwrap();
    assert_eq!(limits.len(), 2);
    for limit in limits {
        assert_eq!((&limit["stop"], &limit["axis"]), (&"budget".into(), &"rate".into()));
        let goals = limit["goals"].as_array().unwrap();
        let names: Vec<&str> = goals.iter().filter_map(|goal| goal["name"].as_str()).collect();
        assert_eq!(names, ["quick", "errors == 0, p99 < 10s"]);
        assert!(goals.iter().all(|goal| goal["outcome"] == "undecided"), "{limit}");
        for goal in goals {
            assert!(goal["passed"].is_number() || goal["failed"].is_number(), "{goal}");
            assert!(goal["sentence"].as_str().unwrap().contains("not proven: "), "{goal}");
            assert!(goal["trials_missing"].as_u64() > Some(0), "{goal}");
        }
    }
    let begun: Vec<String> = place
        .journal()
        .iter()
        .filter(|event| event["event"] == "trial_started")
        .map(|event| event["point"]["protocol"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(begun[..4], ["tcp", "http1", "tcp", "http1"], "lanes take turns");
    assert_eq!(document, place.summary(), "--json prints summary.json");
    place.nobody_is_left();
}

#[test]
fn every_axis_is_searched_on_its_own() {
    let place = Place::new("axes");
    let short = ["--trial", "200ms", "--sum", "200ms", "--warmup", "0s", "--width", "40%", "-Q"];
    for (line, metric, highest) in [
        (&["tcp", "--axis", "connections", "--to", "4"][..], "capacity_connections", 4.0),
        (&["tcp", "--axis", "burst", "--to", "40"], "capacity_burst", 40.0),
        (&["http", "--axis", "size", "--to", "1KiB"], "capacity_bytes", 1024.0),
        (&["mqtt", "-q", "1", "--axis", "subscribers", "--to", "3"], "capacity_subscribers", 3.0),
        (
            &["mqtt", "-q", "0", "--axis", "connections", "--pattern", "hold", "--to", "8"],
            "capacity_connections",
            8.0,
        ),
    ] {
        let words = [&["limit", "--json"], line, &short].concat();
        let document = place.weigh(&words).with(0).json();
        let goal = &document["limits"][0]["goals"][0];
        assert_eq!(goal["outcome"], "holds-at-max", "{line:?}: {goal}");
        assert_eq!(goal["metrics"][metric]["low"], highest, "{line:?}: {goal}");
        assert!(goal["metrics"][metric]["high"].is_null(), "{line:?}: {goal}");
        let drain = goal["burst"]["drain_per_s"].as_f64();
        assert_eq!(drain.is_some_and(|rate| rate > 0.0), metric == "capacity_burst", "{goal}");
    }
    place.nobody_is_left();
}

#[test]
fn ctrl_c_keeps_the_bounds_so_far() {
    let place = Place::new("stopped");
    let child =
        place.spawn(&["limit", "http", "--preset", "rfc2544", "--goal", "loss <= 90%", "--json"]);
    let asked = Instant::now();
    let has_told = || {
        let text = place.runs().first().map(|run| run.join("journal.jsonl"));
        let text = text.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        text.contains("search_told")
    };
    while !has_told() {
        assert!(asked.elapsed() < Duration::from_secs(60), "no trial was told");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal("INT", child.id());
    let ended = Ended::from(child.wait_with_output().unwrap()).with(130);
    let document = ended.json();
    assert_eq!(document["run"]["outcome"], "interrupted");
    let limit = &document["limits"][0];
    assert_eq!(
        (&limit["stop"], &limit["goals"][0]["outcome"]),
        (&"running".into(), &"undecided".into())
    );
    assert!(!limit["trials"].as_array().unwrap().is_empty());
    place.nobody_is_left();
}

/// A search that was killed goes on: no trial that was told is done again, and the answer is that
/// of all of them.
#[test]
fn a_search_that_was_killed_goes_on_from_its_journal() {
    let place = Place::new("limit-resumed");
    let words = ["limit", "http", "--from", "100/s", "--to", "1600/s", "--trial", "1s", "-Q"];
    // A machine that is busy with other tests loses less than that.
    let easy = ["--sum", "1s", "--warmup", "0s", "--goal", "loss <= 90%"];
    let child = place.spawn(&[&words[..], &easy].concat());
    let told = || -> Vec<String> {
        let text = place.runs().first().map(|run| run.join("journal.jsonl"));
        let text = text.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let told = text.lines().filter(|line| line.contains("\"search_told\""));
        told.map(str::to_owned).collect()
    };
    let asked = Instant::now();
    while told().len() < 2 {
        assert!(asked.elapsed() < Duration::from_secs(60), "no trial was told");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal("KILL", child.id());
    drop(child.wait_with_output());
    let before = told();
    let resumed = place.weigh(&["run", "--resume", "latest", "--json", "-Q"]).with(0).json();
    let after = told();
    assert!(after.len() > before.len() && after.starts_with(&before), "{after:?}");
    let limit = &resumed["limits"][0];
    assert_eq!((&limit["stop"], &resumed["run"]["outcome"]), (&"complete".into(), &"done".into()));
    assert_eq!(limit["goals"][0]["outcome"], "holds-at-max", "{limit}");
    assert_eq!(limit["trials"].as_array().unwrap().len(), after.len());
    let ended = place.weigh(&["run", "--resume", "latest"]).with(0);
    ended.saying(&["nothing is left to do"]);
    assert_eq!(told(), after, "what is done is not done again");
    place.nobody_is_left();
}

/// The plateau of a server of known rate is not moved by a second process.
#[test]
fn a_second_generator_does_not_move_the_plateau_of_a_target() {
    let place = Place::new("limit-second");
    let limit = search(&place, &server(Beyond::Refuses), &["--second-generator"]);
    let moved = &limit["second_generator"];
    assert_ne!(moved["verdict"], "rises", "{moved}");
    assert_eq!(moved["shares_core"].as_bool(), Some(cores() < 3), "{moved}");
    for which in ["one_per_s", "two_per_s"] {
        let outs: Vec<f64> =
            moved[which].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
        assert_eq!(outs.len(), 3, "{moved}");
        // Offered is half as much again as missed the goal; answered is what the bucket has.
        assert!(outs.iter().all(|out| (1.0..3_400.0).contains(out)), "{moved}");
    }
    let sentence = moved["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("from one generator and") && sentence.contains("from two"),
        "{sentence}"
    );
    let again = place.weigh(&["report", "latest"]).with(0).stdout;
    assert!(again.contains(sentence), "{again}");
    let refused = place.weigh(&["limit", "tcp", "--axis", "burst", "--second-generator"]).with(2);
    refused.saying(&["--second-generator", "--axis rate"]);
    place.nobody_is_left();
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Step and hold: a curve with what came out of each step, and no average.
#[test]
fn a_load_in_steps_is_a_curve() {
    in_one_of_three(load_in_steps);
}

fn load_in_steps() {
    let place = Place::new("limit-steps");
    let steps: Vec<String> = (1..=6).map(|step| format!("{step}000/s@1s")).collect();
    let arrival = format!("steps:{}", steps.join(","));
    let url = server(Beyond::Refuses);
    let words = ["compare", &*url, "--arrival", &*arrival, "--reps", "1", "--warmup", "200ms"];
    let document = place.weigh(&[&words[..], &["--json", "-Q"]].concat()).with(0).json();
    let ladder = &document["ladders"][0];
    let holds = ladder["holds"].as_array().unwrap();
    let offered: Vec<f64> = holds.iter().filter_map(|hold| hold["offered"].as_f64()).collect();
    assert_eq!(offered, [1e3, 2e3, 3e3, 4e3, 5e3, 6e3], "{ladder}");
    let out = |hold: &Value| hold["output_per_s"].as_f64().unwrap();
    assert!((700.0..1_100.0).contains(&out(&holds[0])), "{ladder}");
    assert!(out(&holds[5]) < 3_400.0, "{ladder}");
    assert!(holds[5]["errors_ratio"].as_f64() > Some(0.2), "{ladder}");
    let text = place.weigh(&["report", "latest"]).with(0).stdout;
    assert!(text.contains("step by step") && text.contains("offered/s"), "{text}");
    assert!(text.contains("plateau"), "there is one, or the reason why none is shown: {text}");
}

#[test]
fn a_target_that_dies_is_a_result() {
    let place = Place::new("died");
    let words = ["limit", "http", "--warmup", "1s", "--trial", "2s", "--sum", "2s", "--json"];
    let child = place.spawn(&words);
    let asked = Instant::now();
    let target = loop {
        let processes = place.processes();
        if let Some((pid, _)) = processes.into_iter().find(|(_, line)| line.contains(" http1 ")) {
            break pid;
        }
        assert!(asked.elapsed() < Duration::from_secs(60), "no target was started");
        std::thread::sleep(Duration::from_millis(10));
    };
    // The trial takes three seconds: it is under way for most of them.
    std::thread::sleep(Duration::from_millis(800));
    signal("KILL", target);
    let document = Ended::from(child.wait_with_output().unwrap()).with(0).json();
    let goal = &document["limits"][0]["goals"][0];
    assert_eq!((&goal["outcome"], &goal["upper"]), (&"never-met".into(), &100.0.into()), "{goal}");
    assert!(goal["sentence"].as_str().unwrap().contains("the target died"), "{goal}");
    assert_eq!(
        document["limits"][0]["trials"].as_array().unwrap().len(),
        1,
        "it is not tried again"
    );
    place.nobody_is_left();
}

#[test]
fn nobody_there_ends_the_search() {
    let place = Place::new("limit-nobody");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    let ended = place.weigh(&["limit", &format!("http://{free}"), "--trial", "200ms"]).with(3);
    ended.saying(&["refused", "check host and port"]);
    assert!(place.runs().is_empty(), "a search began");
}

#[test]
fn what_cannot_be_searched_is_refused_with_the_fix() {
    let place = Place::new("limit-refusals");
    for (line, parts) in [
        (&["tcp", "--goal", "rfc2455"][..], &["--goal", "rfc2544", "quick", "conditions"][..]),
        (&["tcp", "--preset", "fast"], &["--preset", "quick"]),
        (&["tcp", "--goal", "respons_time p(99) < 5ms"], &["--goal", "did you mean response_time"]),
        (&["tcp", "--goal", "p99 < 5"], &["--goal", "5ms"]),
        (
            &["tcp", "--axis", "connections", "-R", "1/60s/client", "--goal", "p99 < 500ms"],
            &["--budget 1m", "p99 < 500ms", "needs 368 messages", "--from 3680", "--budget 6h"],
        ),
        (&["tcp", "--axis", "burst", "--goal", "p99 < 5ms"], &["--goal", "--from 368"]),
        (&["tcp", "--width", "1"], &["--width", "1%"]),
        (&["tcp", "--width", "0%"], &["--width", "1%"]),
        (&["tcp", "--axis", "rates"], &["rate, connections, burst, subscribers or size"]),
        (&["tcp", "--from", "1000"], &["--from", "1000/s"]),
        (&["tcp", "--from", "10/s", "--to", "5/s"], &["--from 10/s", "larger --to"]),
        (&["tcp", "--from", "2/s", "--trial", "200ms"], &["--from 2/s", "no message is due"]),
        (&["tcp", "--trial", "1ms"], &["--trial", "too short"]),
        (&["tcp", "--budget", "900ms"], &["--budget", "not even the first trial", "--budget 1s"]),
        (&["tcp", "-R", "10/s"], &["-R", "--from and --to"]),
        (&["tcp", "-d", "10s"], &["-d", "--trial"]),
        (&["tcp", "-n", "10"], &["-n", "--axis burst"]),
        (&["tcp", "--arrival", "closed"], &["--arrival closed", "constant"]),
        (&["tcp", "--axis", "connections", "-c", "3"], &["-c", "--from and --to"]),
        (&["http", "--axis", "subscribers"], &["--axis subscribers", "--pattern deliver"]),
        (&["mqtt", "--pattern", "hold"], &["hold", "--axis connections"]),
        (&["tcp", "--relay", "--second-generator"], &["--second-generator", "leave out --relay"]),
        (&["tcp", "--save-plan", "p.toml"], &["--save-plan", "leave it out"]),
        (&["tcp", "-q", "1"], &["-q", "belongs to mqtt", "leave it out"]),
    ] {
        let words = [&["limit"], line].concat();
        drop(place.weigh(&words).with(2).saying(parts));
    }
    assert!(place.runs().is_empty(), "nothing was started");
    let dry = place.weigh(&["limit", "tcp", "--dry"]).with(0).stdout;
    assert!(dry.contains("rate from 100 to 1,000,000/s") && dry.contains("--budget"), "{dry}");
    assert!(dry.contains("needs ") && dry.contains(" trials, "), "{dry}");
    let words = ["limit", "tcp", "--goal", "p99 < 5ms", "--trial", "200ms", "--dry"];
    let dry = place.weigh(&words).with(0).stdout;
    assert!(
        dry.contains("368 messages in a trial: at 100/s a trial lasts at least 3.764 s"),
        "{dry}"
    );
    let dry = place.weigh(&["limit", "mqtt", "--dry", "--json"]).with(0).json();
    assert_eq!(dry["lanes"].as_array().unwrap().len(), 3);
}
