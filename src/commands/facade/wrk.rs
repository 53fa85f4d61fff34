//! `weigh like wrk`: the flags of wrk, and of wrk2 if a rate is given, and their load.

use weigh_model::{Arrival, Rate};
use weigh_runner::emulate::wrk;
use weigh_runner::exit::Stop;

use super::http;
use super::tool::{Account, Asked, Given, Tool};

/// The tool.
pub const TOOL: Tool = Tool {
    command: "weigh like wrk",
    about: "Run a load with the options and defaults of wrk (of wrk2 with -R); print its figures \
            and the exact ones",
    serves: "http",
    has_one_dash: false,
    skips: "",
    flags: "
URL | required | The server: a URL, or reference for one that weigh starts
-c --connections N | load connections, default 10 | Connections, such as 10 or 1k: rounded down to a
    multiple of the threads
-d --duration T | load duration, seconds, default 10s | Duration, such as 10s or 2m
-t --threads N | number 0.., default 2 | Threads that the connections are shared among in the tool;
    its figures are of one. The generator has as many as it needs (--shards)
-H --header H | many | Header field of every request, \"NAME: VALUE\"
-L --latency |  | Print the distribution of latencies
-T --timeout T | load timeout, seconds, default 2s | Time after which a request counts as lost
-R --rate N | number 0.. | wrk2: requests per second of all connections together
-s --script | refused | type weigh compare URL with --method, --body template:... or -H instead of
    Lua, or write different requests as cases of a plan
-U --u_latency | refused | type weigh report latest, which has the service times
-B --batch_latency | refused | type weigh compare URL --pattern batch
-v --version | refused | type weigh --version
",
    load: &[
        ("pattern", "request"),
        ("warmup", "0s"),
        ("window", "1"),
        ("body", "text:"),
        ("size", "0B"),
    ],
    emulate: &[],
    decide,
    account: Account::Emulated(|left, given| {
        let asked = wrk::Asked {
            threads: given.count("threads"),
            is_detailed: given.0.get_flag("latency"),
        };
        wrk::compare(left, asked)
    }),
};

fn decide(given: &Given, asked: &mut Asked) -> Result<(), Stop> {
    let (connections, threads) = (given.count("connections"), given.count("threads"));
    if threads == 0 || connections < threads {
        return Err(Stop::usage(format!(
            "-t {threads} -c {connections}: wrk needs a connection for each thread\nhelp: type \
             at least -c {}",
            threads.max(1)
        )));
    }
    if given.time("duration").0 == 0 {
        return Err(Stop::usage("-d 0: the duration must be above 0\nhelp: type -d 10s"));
    }
    http::ask(given, asked, "GET");
    asked.headers = given.texts("header").map(str::to_owned).collect();
    let words = &mut asked.words;
    words.connections = Some(connections / threads * threads);
    words.arrival = Some(Arrival::Closed);
    if given.number("rate") > 0 {
        asked.name = "wrk2";
        words.arrival = Some(Arrival::Constant);
        let per_second = given.number("rate") as f64;
        words.rate = Some(Rate { per_second, per_client: false });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::reading::tests::asked;
    use super::*;
    use weigh_model::Nanos;

    #[test]
    fn flags_are_read_as_the_tool_reads_them() {
        let all = ["-t4", "-c1k", "-d2m", "--latency", "-R", "5k", "http://h:1/"];
        let asked = asked(&TOOL, &all).unwrap();
        assert_eq!((asked.name, asked.words.connections), ("wrk2", Some(1_000)));
        assert_eq!(asked.words.duration, Some(Nanos::from_secs(120)));
        assert_eq!(asked.words.rate.unwrap().per_second, 5_000.0);
    }

    #[test]
    fn connections_are_shared_evenly_among_threads() {
        let words = |all: &[&str]| asked(&TOOL, all).map(|own| own.words);
        let defaults = words(&["http://h:1/"]).unwrap();
        assert_eq!((defaults.connections, defaults.timeout), (Some(10), Some(Nanos::from_secs(2))));
        assert_eq!(words(&["-t", "3", "http://h:1/"]).unwrap().connections, Some(9));
        let said = words(&["-t", "11", "http://h:1/"]).unwrap_err().to_string();
        assert!(said.contains("at least -c 11"), "{said}");
    }
}
