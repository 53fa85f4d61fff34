//! `weigh like k6`: the load flags of `k6 run`, with a URL instead of a script.

use weigh_model::Arrival;
use weigh_runner::exit::Stop;

use super::http;
use super::tool::{Account, Asked, Given, Tool};

/// The tool.
pub const TOOL: Tool = Tool {
    command: "weigh like k6",
    about: "Run a load with the options and defaults of k6 run, for a URL instead of a script",
    serves: "http",
    has_one_dash: false,
    skips: "run",
    flags: "
URL | required | URL of the server, or `reference` for one that weigh starts
-u --vus N | load connections, default 1 | Virtual users, each with a connection
-i --iterations N | number 1.. | Number of requests of all users together [default: 1 without -d]
-d --duration TIME | time, default 0s | Send for this long, such as 30s or 5m
--no-connection-reuse |  | Open a connection for each request
--no-vu-connection-reuse | refused | every user keeps its connection: leave it out
--user-agent NAME |  | Value of the header field user-agent
--insecure-skip-tls-verify |  | Accept every certificate
-q |  | Suppress progress output, as --quiet does
-s --stage | refused | type weigh compare URL --arrival steps:100/s@30s,200/s@30s for stages of a
    rate
--rps | refused | k6 only limits the rate by it: type weigh compare URL -c VUS -R 100/s
-e --env | refused | leave it out; scripts are not supported
-o --out | refused | type weigh export latest --format csv
--summary-export | refused | type --json for the summary of weigh
--summary-mode | refused | type weigh report latest
--summary-trend-stats | refused | all times are recorded: type weigh report latest
--http-debug | refused | type weigh report latest --html for the packets of one session (--wire)
--max-redirects | refused | redirects are not followed: type the URL that they lead to
--tag | refused | runs have names: leave it out
--no-thresholds | refused | type --fail-if CONDITION where a run is to fail: leave it out
--no-summary | refused | the table is the result: leave it out
",
    load: &[
        ("pattern", "request"),
        ("warmup", "0s"),
        ("window", "1"),
        ("timeout", "60s"),
        ("body", "text:"),
        ("size", "0B"),
    ],
    emulate: &[],
    decide,
    account: Account::Measured(
        "These are the figures of weigh: what k6 would have printed is not emulated. Its \
         http_req_duration begins when a request is sent, as service times do here, and leaves out \
         the time to connect.",
    ),
};

fn decide(given: &Given, asked: &mut Asked) -> Result<(), Stop> {
    let url = given.text("URL");
    if url == "-" || [".js", ".ts", ".tar"].iter().any(|end| url.ends_with(end)) {
        return Err(Stop::usage(format!(
            "{url}: scripts are not supported\nhelp: type the URL that the script requests, or \
             write its requests as cases of a plan (weigh run)"
        )));
    }
    http::ask(given, asked, "GET");
    http::check_certificate(asked, given.0.get_flag("insecure-skip-tls-verify"));
    if given.0.get_flag("no-connection-reuse") {
        asked.sets.push("http1.keep_alive=false".to_owned());
    }
    if !given.text("user-agent").is_empty() {
        asked.headers.push(format!("user-agent: {}", given.text("user-agent")));
    }
    asked.is_quiet = given.0.get_flag("-q");
    let (duration, iterations) = (given.time("duration"), given.number("iterations"));
    let words = &mut asked.words;
    words.arrival = Some(Arrival::Closed);
    match (duration.0, iterations) {
        (0, all) => words.messages = Some(all.max(1)),
        (_, 0) => words.duration = Some(duration),
        (_, all) => {
            return Err(Stop::usage(format!(
                "-d {} -i {all}: a load has a duration or a number of messages, not both\n\
                 help: leave -d or -i out",
                duration.typed()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::asked;
    use super::*;
    use weigh_model::Nanos;

    #[test]
    fn the_defaults_are_those_of_the_tool_and_the_word_run_may_stand_first() {
        for words in [&["http://h:1/"][..], &["run", "http://h:1/"]] {
            let words = asked(&TOOL, words).unwrap().words;
            assert_eq!((words.messages, words.connections), (Some(1), Some(1)));
        }
        let words = asked(&TOOL, &["run", "--vus", "10", "-d", "30s", "h:1"]).unwrap().words;
        assert_eq!((words.connections, words.duration), (Some(10), Some(Nanos::from_secs(30))));
        assert_eq!(words.messages, None);
    }

    #[test]
    fn scripts_and_two_ends_are_refused() {
        let said = |words: &[&str]| asked(&TOOL, words).err().unwrap().to_string();
        assert!(said(&["run", "script.js"]).contains("type the URL"));
        assert!(said(&["-d", "1s", "-i", "5", "h:1"]).contains("leave -d or -i out"));
    }
}
