//! `weigh like oha`: the flags of oha and its load.

use weigh_model::body::BodySource;
use weigh_model::{Arrival, Rate};
use weigh_runner::exit::Stop;

use super::http;
use super::tool::{Account, Asked, Given, Tool};

/// The tool.
pub const TOOL: Tool = Tool {
    command: "weigh like oha",
    about: "Run a load with the options and defaults of oha",
    serves: "http",
    has_one_dash: false,
    skips: "",
    flags: "
URL | required | URL of the server, or `reference` for one that weigh starts
-n --requests N | load messages, default 200 | Number of requests; -z overrides it
-c --connections N | load connections, default 50 | Number of connections
-z --duration TIME | time, default 0s | Send for this long, such as 10s or 2m
-q --query-per-second N | number 0.., default 0 | Requests per second of all connections together
-m --method METHOD | default GET | Method of every request
-H --header FIELD | many | Header field of every request, \"NAME: VALUE\"
-A --accept TYPE |  | Value of the header field accept
-T --content-type TYPE |  | Value of the header field content-type
-d --body BODY | excludes body-path | Body of every request
-D --body-path FILE |  | File with the body of every request
-t --timeout TIME | load timeout, seconds, default 60s | Give up a request after this time; oha has
    no limit
--disable-keepalive |  | Open a connection for each request
--insecure |  | Accept every certificate
--no-tui |  | Suppress progress output
-p | refused | type weigh compare h2c://HOST:PORT/ --window N for parallel requests over HTTP/2
-w --wait-ongoing-requests-after-deadline | refused | requests in flight are always awaited: leave
    it out
-r --redirect | refused | redirects are not followed: type the URL that they lead to
-a --basic-auth | refused | type the URL with it: http://USER:PASSWORD@HOST/
-x --proxy | refused | type weigh compare URL --path NAME for an emulated link
-Z --body-path-lines | refused | type weigh compare URL --body lines:FILE
-F --form | refused | make the body yourself: -D FILE and -T TYPE
-o --output | refused | type weigh export latest --format csv
-j --json-output | refused | type --json for the summary of weigh
-u --time-unit | refused | times have the unit that fits: leave it out
--http2 | refused | type weigh compare h2c://HOST:PORT/
--http-version | refused | type weigh compare http:// or h2c://HOST:PORT/
--latency-correction | refused | response times count from the due time: leave it out
--burst-delay | refused | type weigh compare URL --arrival steps:... for bursts
--burst-rate | refused | type weigh compare URL --arrival steps:... for bursts
--rand-regex-url | refused | write the URLs as cases of a plan (weigh run)
--urls-from-file | refused | write the URLs as cases of a plan (weigh run)
--cacert | refused | type weigh compare URL --cacert FILE
--cert | refused | type weigh compare URL --cert FILE --key FILE
--key | refused | type weigh compare URL --cert FILE --key FILE
--unix-socket | refused | let the server listen on 127.0.0.1 and type that URL
--no-color | refused | set NO_COLOR=1 in the environment
",
    load: &[("pattern", "request"), ("warmup", "0s"), ("window", "1")],
    emulate: &[],
    decide,
    account: Account::Measured(
        "These are the figures of weigh: what oha would have printed is not emulated. Latencies of \
         oha begin when a request is sent, as service times do here; with --latency-correction \
         they begin when it is due, as response times do here.",
    ),
};

fn decide(given: &Given, asked: &mut Asked) -> Result<(), Stop> {
    http::ask(given, asked, &given.text("method").to_ascii_uppercase());
    http::check_certificate(asked, given.0.get_flag("insecure"));
    asked.headers = given.texts("header").map(str::to_owned).collect();
    for (flag, name) in [("accept", "accept"), ("content-type", "content-type")] {
        if !given.text(flag).is_empty() {
            asked.headers.push(format!("{name}: {}", given.text(flag)));
        }
    }
    if given.0.get_flag("disable-keepalive") {
        asked.sets.push("http1.keep_alive=false".to_owned());
    }
    asked.is_quiet = given.0.get_flag("no-tui");
    let words = &mut asked.words;
    words.arrival = Some(Arrival::Closed);
    if given.time("duration").0 > 0 {
        (words.duration, words.messages) = (Some(given.time("duration")), None);
    }
    if given.number("query-per-second") > 0 {
        let per_second = given.number("query-per-second") as f64;
        words.arrival = Some(Arrival::Constant);
        words.rate = Some(Rate { per_second, per_client: false });
    }
    match given.text("body-path") {
        "" => {
            let body = given.text("body");
            asked.send(BodySource::Text(body.to_owned()), body.len() as u64);
            Ok(())
        }
        file => asked.send_file(&format!("-D {file}"), file),
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::asked;
    use super::*;
    use weigh_model::Nanos;

    #[test]
    fn the_defaults_are_those_of_the_tool() {
        let words = asked(&TOOL, &["http://h:1/"]).unwrap().words;
        assert_eq!((words.messages, words.connections), (Some(200), Some(50)));
        assert_eq!((words.arrival, words.duration), (Some(Arrival::Closed), None));
    }

    #[test]
    fn a_duration_replaces_the_number_and_a_rate_makes_an_open_loop() {
        let own = asked(&TOOL, &["-z", "30s", "-q", "100", "-n", "10k", "https://h:1/"]).unwrap();
        let words = own.words;
        assert_eq!((words.duration, words.messages), (Some(Nanos::from_secs(30)), None));
        assert_eq!(
            (words.rate.unwrap().per_second, words.arrival),
            (100.0, Some(Arrival::Constant))
        );
        assert!(!own.sets.iter().any(|set| set.contains("tls_verify")), "{:?}", own.sets);
        let all = asked(&TOOL, &["--insecure", "-A", "text/html", "https://h:1/"]).unwrap();
        assert!(all.sets.contains(&"http1.tls_verify=false".to_owned()), "{:?}", all.sets);
        assert_eq!(all.headers, ["accept: text/html"]);
    }
}
