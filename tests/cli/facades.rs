//! The commands that are called like other tools: their flags make the load that they say, the run
//! is an ordinary one, the figures of the tool follow from the exact ones, and what is not taken
//! over is refused with what to type. And figures of other tools in plans.

use serde_json::Value;

use crate::rig::Place;
use crate::serving::Server;

fn metric(summary: &Value, name: &str) -> f64 {
    summary["cells"][0]["metrics"][name]["value"].as_f64().unwrap_or_else(|| panic!("no {name}"))
}

/// 200 requests take milliseconds, and the tool would tell of a second; the exact time stands
/// beside.
#[test]
fn autocannon_reports_its_own_second_and_the_exact_time() {
    let place = Place::new("autocannon");
    let server = Server::start(&place, &["http"]);
    let words = [
        "like",
        "autocannon",
        "-c",
        "4",
        "-a",
        "200",
        "-m",
        "POST",
        "-b",
        "{\"ph\":6}",
        "-H",
        "X-A=b",
    ];
    let mut all = words.to_vec();
    let url = format!("{}/messages", server.url);
    all.push(&url);
    let ended = place.weigh(&all).with(0);
    let text = &ended.stdout;
    for line in
        ["as autocannon would print it", "exact", "Latency 50%", "Req/Sec Avg", "run: runs/"]
    {
        assert!(text.contains(line), "{text}");
    }
    let summary = place.summary();
    let (told, exact) =
        (metric(&summary, "autocannon_time_s"), metric(&summary, "transfer_time_s"));
    assert_eq!(told.fract(), 0.0, "a whole number of its seconds");
    assert!(told >= 1.0 && exact < told, "{exact} s are within {told} s");
    let per_s = metric(&summary, "autocannon_per_s");
    assert!((per_s * told - 200.0).abs() < 1e-6, "{per_s}");
    assert_eq!(summary["cells"][0]["ledger"]["delivered"], 200);
    let load = &summary["run"]["plan"]["load"];
    assert_eq!((&load["connections"], &load["arrival"]), (&4.into(), &"closed".into()));
    assert_eq!((&load["body"], &load["size"]), (&"text:{\"ph\":6}".into(), &"8B".into()));
    server.end("TERM");
    place.nobody_is_left();
}

#[test]
fn wrk_makes_a_closed_loop_of_a_time_and_wrk2_a_rate() {
    let place = Place::new("wrk");
    let server = Server::start(&place, &["http"]);
    let url = &format!("{}/messages", server.url);
    let wrk = place
        .weigh(&["like", "wrk", "-t2", "-c5", "-d1s", "--latency", url, "--runs", "a"])
        .with(0);
    for line in ["as wrk would print it", "Latency 99%", "Requests/sec", "Req/Sec Avg"] {
        assert!(wrk.stdout.contains(line), "{}", wrk.stdout);
    }
    let words = ["like", "wrk", "-t2", "-c4", "-d1s", "-R", "200", "--json", url, "--runs", "b"];
    let summary: Value = place.weigh(&words).with(0).json();
    let load = &summary["run"]["plan"]["load"];
    assert_eq!((&load["arrival"], &load["rate"]), (&"constant".into(), &"200/s".into()));
    assert_eq!(load["connections"], 4);
    server.end("TERM");
    place.nobody_is_left();
}

/// What oha and k6 would have printed is not emulated: the table is the measured one, and a
/// sentence says so.
#[test]
fn oha_and_k6_make_their_load_and_the_table_is_the_measured_one() {
    let place = Place::new("oha-k6");
    let server = Server::start(&place, &["http"]);
    let url = &format!("{}/messages", server.url);
    let oha = place.weigh(&["like", "oha", "-n", "300", "-c", "5", url, "--runs", "a"]).with(0);
    for part in ["what oha would have printed is not emulated", "http1 method=GET"] {
        assert!(oha.stdout.contains(part), "{}", oha.stdout);
    }
    let words = ["like", "k6", "run", "--vus", "3", "--iterations", "30", "--json", url];
    let summary: Value = place.weigh(&words).with(0).json();
    let load = &summary["run"]["plan"]["load"];
    assert_eq!((&load["connections"], &load["messages"]), (&3.into(), &30.into()));
    assert_eq!(summary["cells"][0]["ledger"]["delivered"], 30);
    server.end("TERM");
    place.nobody_is_left();
}

/// Every client has a topic and a subscriber of its own, and all that is published comes back.
#[test]
fn mqtt_stresser_counts_what_comes_back_to_each_client() {
    let place = Place::new("stresser");
    let server = Server::start(&place, &["mqtt"]);
    let broker = server.url.replace("mqtt://", "tcp://");
    let words =
        ["like", "mqtt-stresser", "-broker", &broker, "-num-clients", "5", "-num-messages", "40"];
    let ended = place.weigh(&words).with(0);
    for line in
        ["200 (100%)", "Received Messages", "Receiving, median msg/sec", "mqtt-stresser divides"]
    {
        assert!(ended.stdout.contains(line), "{}", ended.stdout);
    }
    let summary = place.summary();
    assert_eq!(metric(&summary, "mqtt_stresser_receive_ratio"), 1.0);
    assert_eq!(metric(&summary, "mqtt_stresser_completed_clients"), 5.0);
    let (slow, fast) = ("slowest_per_s", "fastest_per_s");
    for verb in ["publish", "receive"] {
        let of = |which: &str| metric(&summary, &format!("mqtt_stresser_{verb}_{which}"));
        assert!(of(slow) > 0.0 && of(slow) <= of(fast), "{verb}");
    }
    let load = &summary["run"]["plan"]["load"];
    assert_eq!((&load["topology"], &load["arrival"]), (&"pairs".into(), &"burst".into()));
    assert_eq!((&load["subscribers"], &load["messages"]), (&5.into(), &200.into()));
    server.end("TERM");
    place.nobody_is_left();
}

/// 250 clients by 100 each 200 ms: three groups, 400 ms from the first to the last, and nothing
/// is lost; what each group sends is due at its turn.
#[test]
fn mqtt_stresser_starts_its_clients_group_by_group() {
    let place = Place::new("stresser-groups");
    let server = Server::start(&place, &["mqtt"]);
    let broker = server.url.replace("mqtt://", "tcp://");
    let mut words = vec!["like", "mqtt-stresser", "-broker", &broker, "-num-clients", "250"];
    words.extend(["-num-messages", "4", "-rampup-delay", "200ms"]);
    let ended = place.weigh(&words).with(0);
    assert!(ended.stdout.contains("1,000 (100%)"), "{}", ended.stdout);
    let summary = place.summary();
    assert_eq!(summary["run"]["plan"]["load"]["join"], "100 every 200ms");
    assert_eq!(summary["cells"][0]["ledger"]["delivered"], 1_000);
    assert_eq!(metric(&summary, "mqtt_stresser_completed_clients"), 250.0);
    let took_s = metric(&summary, "transfer_time_s");
    assert!(took_s > 0.2, "{took_s} s: the last group is due 0.4 s after the first");
    server.end("TERM");
    place.nobody_is_left();
}

/// 20 a second over 4 connections: five of each at once, and then nothing for the rest of the
/// second.
#[test]
fn autocannon_sends_a_rate_at_the_beginning_of_each_second() {
    let place = Place::new("autocannon-rate");
    let server = Server::start(&place, &["http"]);
    let url = format!("{}/messages", server.url);
    place.weigh(&["like", "autocannon", "-c", "4", "-d", "2", "-R", "20", &url]).with(0);
    let summary = place.summary();
    let load = &summary["run"]["plan"]["load"];
    assert_eq!((&load["arrival"], &load["rate"]), (&"each-second".into(), &"20/s".into()));
    assert_eq!(summary["cells"][0]["ledger"]["delivered"], 40);
    assert_eq!(metric(&summary, "autocannon_per_s"), 20.0);
    server.end("TERM");
    place.nobody_is_left();
}

/// A password of the tool's own flag opens the broker and is written down nowhere.
#[test]
fn a_password_of_a_tools_flag_is_never_recorded() {
    let place = Place::new("stresser-secret");
    let secret = "open-sesame-0815";
    let password = format!("mqtt.broker_password={secret}");
    let server =
        Server::start(&place, &["mqtt", "--set", "mqtt.broker_user=ada", "--set", &password]);
    let broker = server.url.replace("mqtt://", "tcp://");
    let words =
        ["like", "mqtt-stresser", "-broker", &broker, "-username", "ada", "-password", secret];
    let ended = place.weigh(&words).with(0);
    assert!(!ended.stdout.contains(secret) && !ended.stderr.contains(secret));
    for file in place.files_of_the_run() {
        let text = std::fs::read(&file).expect("a file of the run");
        assert!(!String::from_utf8_lossy(&text).contains(secret), "{}", file.display());
    }
    server.end("TERM");
    place.nobody_is_left();
}

#[test]
fn flags_that_nothing_would_heed_are_refused_with_what_to_type() {
    let place = Place::new("facade-refusals");
    for (words, said) in [
        (&["like", "wrk", "-s", "post.lua", "http://127.0.0.1:1/"][..], "instead of"),
        (&["like", "autocannon", "--har", "a.har", "127.0.0.1:1"], "cases of a plan"),
        (&["like", "autocannon", "-l", "127.0.0.1:1"], "weigh export"),
        (
            &["like", "autocannon", "--frobnicate", "127.0.0.1:1"],
            "weigh like autocannon has no such option",
        ),
        (&["like", "autocannon", "-a", "5", "127.0.0.1:1"], "at most -c 5"),
        (&["like", "autocannon", "-d", "0", "127.0.0.1:1"], "type -d 10"),
        (&["like", "autocannon", "-R", "50", "-p", "2", "127.0.0.1:1"], "leave -p out"),
        (&["like", "mqtt-stresser", "-log-level", "3"], "leave it out"),
        (&["like", "oha", "-p", "4", "http://127.0.0.1:1/"], "h2c://HOST:PORT/"),
        (&["like", "k6", "run", "script.js"], "scripts are not supported"),
        (&["like", "wrk", "-t8", "-c4", "http://127.0.0.1:1/"], "at least -c 8"),
        (&["like", "autocannon", "mqtt://127.0.0.1:1"], "http1"),
        (&["like", "wrk", "http://example.invalid/"], "example.invalid"),
    ] {
        let ended = place.weigh(words);
        let code = if words.contains(&"http://example.invalid/") { 3 } else { 2 };
        ended.with(code).saying(&[said]);
    }
    assert!(place.runs().is_empty(), "nothing was started");
    place.nobody_is_left();
}

/// A load beyond this machine needs leave here as elsewhere; without a server one is told how to
/// get one.
#[test]
fn nobody_is_loaded_without_leave_and_whoever_has_no_server_is_helped() {
    let place = Place::new("facade-leave");
    place.weigh(&["like", "wrk", "http://192.0.2.1/"]).with(2).saying(&["--i-may-load-this"]);
    let ended = place.weigh(&["like", "autocannon", "-d", "1", "http://127.0.0.1:9/"]).with(3);
    ended.saying(&["weigh serve http"]);
    place.weigh(&["like", "autocannon", "--help"]).with(0);
    place.nobody_is_left();
}

/// A target that weigh starts has cores that can be looked at: a short run is shown as part of a
/// window, and the record says what that rests on.
#[test]
fn figures_of_other_tools_are_compared_with_the_exact_ones_of_a_plan() {
    let place = Place::new("emulate");
    place.write(
        "burst.toml",
        "protocol = \"http\"\nload.pattern = \"request\"\nload.messages = 300\nload.connections = \
         10\n load.warmup = \"0s\"\nrepeat.at_least = 1\n\
         observe.emulate = [\"htop\", \"autocannon\", \"sum-of-times\", \"ramp-average\"]\n",
    );
    let ended = place.weigh(&["run", "burst.toml"]).with(0);
    for line in ["emulated, not measured", "as a person reads it off htop", "cpu_percent.mean"] {
        assert!(ended.stdout.contains(line), "{}", ended.stdout);
    }
    let summary = place.summary();
    let (mean, max) =
        (metric(&summary, "htop_cpu_percent.mean"), metric(&summary, "htop_cpu_percent.max"));
    assert!((0.0..=100.0).contains(&mean) && mean <= max && max <= 100.0, "{mean} {max}");
    let rests = summary["cells"][0]["scene"]["htop.figures"].as_str().expect("what it rests on");
    assert!(rests.contains("1.5 s") && rests.contains("/proc/stat"), "{rests}");
    let sum = metric(&summary, "sum_of_times_per_s");
    let mean_ns = metric(&summary, "service_time_ns.mean");
    assert!((sum * mean_ns / 1e9 - 1.0).abs() < 1e-6, "{sum}");
    assert_eq!(metric(&summary, "autocannon_time_s").fract(), 0.0);
    assert!(metric(&summary, "ramp_average_per_s") > 0.0);
    place.nobody_is_left();
}

#[test]
fn htop_of_a_server_that_somebody_else_runs_is_refused() {
    let place = Place::new("emulate-foreign");
    place.write("foreign.toml", "target = \"http://127.0.0.1:9\"\nobserve.emulate = [\"htop\"]\n");
    let ended = place.weigh(&["run", "foreign.toml"]).with(2);
    ended.saying(&["htop", "leave htop out"]);
    assert!(place.runs().is_empty(), "nothing was started");
}
