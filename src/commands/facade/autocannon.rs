//! `weigh like autocannon`: the flags of autocannon and its load.

use weigh_model::body::BodySource;
use weigh_model::{Arrival, Emulation, Nanos, Rate};
use weigh_runner::emulate::autocannon;
use weigh_runner::exit::Stop;

use super::http;
use super::tool::{Account, Asked, Given, Tool};

/// The tool.
pub const TOOL: Tool = Tool {
    command: "weigh like autocannon",
    about: "Run a load with the options and defaults of autocannon; print its figures and the \
            exact ones",
    serves: "http",
    has_one_dash: false,
    skips: "",
    flags: "
URL | required | The server: a URL, or reference for one that weigh starts
-c --connections NUM | load connections, default 10 | Number of connections
-p --pipelining NUM | load window, set http1.pipeline, default 1 | Requests in flight on each
    connection
-d --duration SEC | seconds, default 10 | Duration in seconds, or with a unit
-a --amount NUM | load messages | Number of requests; the duration is then ignored
-m --method METHOD | default GET | Method of every request
-t --timeout SEC | load timeout, seconds, default 10 | Seconds after which a request counts as lost
-b --body BODY | excludes input | Body of every request
-i --input FILE |  | File with the body
-H --headers --header K=V | many | Header field of every request, NAME=VALUE or NAME:VALUE
-R --overallRate NUM | number 0.. | Requests per second of all connections together: each sends its
    share from the beginning of a second on, one after the other; with fewer than connections, there
    are fewer connections
-r --connectionRate NUM | number 0.. | Requests per second of each connection; -R is then ignored
-w --workers NUM | number 0..64, excludes shards | Threads of the generator: each gets the same
    whole number of connections and requests, and the whole of -R
-n --no-progress |  | Suppress progress output
-j | refused | type --json for the summary of weigh
-L --sampleInt | refused | leave it out; observe.every in a plan sets the interval of weigh
-S --socketPath | refused | let the server listen on 127.0.0.1, and type that URL
-W --warmup | refused | type weigh compare URL --warmup 3s, which excludes it from the results
--on-port | refused | start the server yourself, or name one that weigh starts (weigh targets list)
-T --title | refused | leave it out; runs have folders of their own
-F --form | refused | make the multipart body yourself: -i FILE and its Content-Type with -H
--har | refused | write the requests as cases of a plan (weigh run)
-B --bailout | refused | leave it out; every failure is counted with its cause
-M --maxConnectionRequests | refused | type -a with the sum of all
-O --maxOverallRequests | refused | type -a instead of it
-C --ignoreCoordinatedOmission | refused | leave it out; the result has both columns,
    corrected and not
-D --reconnectRate | refused | type weigh compare URL --set http1.keep_alive=false for a connection
    each
-l --latency | refused | leave it out; weigh export has all recorded times
-I --idReplacement | refused | type weigh compare URL --body 'template:{seq}' for bodies that differ
-f --forever | refused | give an end, such as -d 1h
-s --servername | refused | type the URL with this name as its host
-x --excludeErrorStats | refused | leave it out; the times of weigh exclude errors, and the column
    of autocannon has them
-E --expectBody | refused | type weigh compare URL --status 200 to say which answers count
--renderStatusCodes | refused | leave it out; errors_ratio and the warnings of the run report them
--cert | refused | type weigh compare URL --cert FILE --key FILE --cacert FILE
--key | refused | type weigh compare URL --cert FILE --key FILE
--ca | refused | type weigh compare URL --cacert FILE
--debug | refused | leave it out; the warnings of the run have the first failure
",
    load: &[("pattern", "request"), ("warmup", "0s")],
    emulate: &[Emulation::Autocannon],
    decide,
    account: Account::Emulated(|left, _| autocannon::compare(left)),
};

fn decide(given: &Given, asked: &mut Asked) -> Result<(), Stop> {
    let (amount, pipelining) = (given.number("amount"), given.number("pipelining"));
    let workers = given.count("workers").max(1);
    let own = (given.count("connections") / workers).max(1);
    let (overall, each) = (given.count("overallRate"), given.count("connectionRate"));
    // Each worker gets the whole rate, and has no more connections than that.
    let own = if overall > 0 { own.min(overall) } else { own };
    let connections = own.saturating_mul(workers);
    let rate = match (overall, each) {
        (0, 0) => None,
        (all, 0) => {
            Some(Rate { per_second: f64::from(all) * f64::from(workers), per_client: false })
        }
        (_, each) => Some(Rate { per_second: f64::from(each), per_client: true }),
    };
    let workers = u64::from(workers);
    let messages = (amount > 0).then_some((amount / workers).max(1) * workers);
    if let Some(amount) = messages.filter(|amount| *amount < u64::from(connections)) {
        return Err(Stop::usage(format!(
            "-a {amount}: {connections} connections need one request each\nhelp: type at most -c \
             {amount}"
        )));
    }
    if rate.is_some() && pipelining > 1 {
        return Err(Stop::usage(format!(
            "-p {pipelining}: with a rate, autocannon has this number in flight only in its first \
             second, and then one\nhelp: leave -p out"
        )));
    }
    if amount == 0 && given.time("duration").0 == 0 {
        return Err(Stop::usage("-d 0: the duration must be above 0\nhelp: type -d 10"));
    }
    if amount > 0 && pipelining > 1 {
        return Err(Stop::usage(format!(
            "-p {pipelining}: with -a, autocannon closes each connection while its last requests \
             are in flight, and does not count them\nhelp: leave -p out, or give -d instead of -a"
        )));
    }
    http::ask(given, asked, &given.text("method").to_ascii_uppercase());
    asked.headers = given.texts("headers").map(field).collect::<Result<_, _>>()?;
    asked.shards = Some(given.count("workers")).filter(|workers| *workers > 0);
    asked.is_quiet = given.0.get_flag("no-progress");
    let words = &mut asked.words;
    (words.connections, words.messages, words.rate) = (Some(connections), messages, rate);
    words.arrival = Some(if rate.is_some() { Arrival::EachSecond } else { Arrival::Closed });
    if amount == 0 {
        // The load lasts until the next check of the tool, once per second.
        let looks = autocannon::ticks(given.time("duration"));
        words.duration = Some(Nanos(looks * autocannon::TICK.0));
    }
    match given.text("input") {
        "" => {
            let body = given.text("body");
            asked.send(BodySource::Text(body.to_owned()), body.len() as u64);
            Ok(())
        }
        file => asked.send_file(&format!("-i {file}"), file),
    }
}

/// Returns a header field as HTTP writes it.
fn field(text: &str) -> Result<String, Stop> {
    let wrong = || {
        Stop::usage(format!(
            "-H {text}: not a header field\nhelp: type NAME=VALUE, such as -H accept=text/html"
        ))
    };
    let at = text.find([':', '=']).filter(|at| *at > 0).ok_or_else(wrong)?;
    Ok(format!("{}: {}", &text[..at], text[at + 1..].trim()))
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::asked;
    use super::*;
    use weigh_model::units::Bytes;
    use weigh_plan::LoadWords;

    #[test]
    fn the_defaults_are_those_of_the_tool() {
        let asked = asked(&TOOL, &["localhost:3000"]).unwrap();
        let words = asked.words;
        assert_eq!((words.connections, words.window), (Some(10), Some(1)));
        assert_eq!((words.duration, words.timeout), (Some(Nanos::from_secs(10)), words.duration));
        assert_eq!((words.arrival, words.messages), (Some(Arrival::Closed), None));
        assert!(asked.sets.contains(&"http1.method=GET".to_owned()));
    }

    #[test]
    fn flags_are_heard_in_all_their_forms() {
        let all = ["-c5", "-a", "100", "-m", "post", "-b", "{}", "-H", "a=b", "-p=1", "h:1"];
        let own = asked(&TOOL, &all).unwrap();
        assert_eq!(own.headers, ["a: b"]);
        assert_eq!((own.words.messages, own.words.duration), (Some(100), None));
        assert_eq!((own.words.window, own.words.size), (Some(1), Some(Bytes(2))));
        assert!(own.sets.contains(&"http1.method=POST".to_owned()));
        let words = asked(&TOOL, &["-d", "1.5", "-R", "50", "h:1"]).unwrap().words;
        assert_eq!(words.duration, Some(Nanos::from_secs(2)), "to its next look");
        assert_eq!(words.rate, Some(Rate { per_second: 50.0, per_client: false }));
        assert_eq!(words.arrival, Some(Arrival::EachSecond));
    }

    /// Ten connections for four workers are two for each; 1,001 requests for three are 333 each.
    /// The rate is that of each worker. Fewer requests per second than connections mean fewer
    /// connections.
    #[test]
    fn workers_and_rates_are_shared_as_the_tool_does() {
        let words = |all: &[&str]| asked(&TOOL, &[&["h:1"], all].concat()).unwrap().words;
        assert_eq!(words(&["-w", "4"]).connections, Some(8));
        assert_eq!(words(&["-w", "0"]).connections, Some(10));
        assert_eq!(words(&["-w", "3", "-a", "1001"]).messages, Some(999));
        let rate = |words: &LoadWords| words.rate.map(|rate| (rate.per_second, rate.per_client));
        let both = words(&["-w", "2", "-R", "100"]);
        assert_eq!((both.connections, rate(&both)), (Some(10), Some((200.0, false))));
        let few = words(&["-R", "3"]);
        assert_eq!((few.connections, rate(&few)), (Some(3), Some((3.0, false))));
        let each = words(&["-r", "5", "-R", "100"]);
        assert_eq!((each.connections, rate(&each)), (Some(10), Some((5.0, true))));
    }

    #[test]
    fn what_the_tool_does_no_load_of_is_refused() {
        for (words, said) in [
            (&["-p", "4", "-R", "50", "h:1"][..], "leave -p out"),
            (&["-p", "4", "-a", "400", "h:1"], "-d instead of -a"),
            (&["-a", "5", "h:1"], "at most -c 5"),
        ] {
            let told = asked(&TOOL, words).err().unwrap().to_string();
            assert!(told.contains(said), "{told}");
        }
    }
}
