//! `weigh autocannon`: that tool's flags, its load, and what it would have printed beside what is
//! so.

use clap::{Args, Parser};
use weigh_emulate::autocannon;
use weigh_model::body::BodySource;
use weigh_model::units::Bytes;
use weigh_model::{Arrival, Emulation, Nanos, Pattern, Rate};
use weigh_plan::LoadWords;

use crate::commands::facade::{self, Asked, Refused, http_url, path_of, seconds};
use crate::planning::conduct::RunOptions;
use weigh_runner::exit::{Exit, Stop};

/// The words behind the command, which are that tool's.
#[derive(Args)]
pub struct Autocannon {
    /// As autocannon takes them: weigh autocannon --help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The load of autocannon, with its flags and defaults: what it would have printed, beside the
/// exact figures.
#[derive(Parser)]
#[command(name = "weigh autocannon", max_term_width = 100)]
struct Flags {
    /// The server: a URL, or reference for one that weigh starts
    #[arg(value_name = "URL")]
    url: String,
    /// Connections
    #[arg(short = 'c', long, value_name = "NUM", default_value_t = 10)]
    connections: u32,
    /// Requests in flight on each connection
    #[arg(short = 'p', long, value_name = "NUM", default_value_t = 1)]
    pipelining: u32,
    /// How long, in seconds or with a unit
    #[arg(short = 'd', long, value_name = "SEC", default_value = "10", value_parser = seconds)]
    duration: Nanos,
    /// Requests in all; the duration then says nothing
    #[arg(short = 'a', long, value_name = "NUM",
        value_parser = clap::value_parser!(u64).range(1..))]
    amount: Option<u64>,
    /// Method of every request
    #[arg(short = 'm', long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// After so many seconds a request is given up
    #[arg(short = 't', long, value_name = "SEC", default_value = "10", value_parser = seconds)]
    timeout: Nanos,
    /// Body of every request
    #[arg(short = 'b', long, value_name = "BODY", conflicts_with = "input")]
    body: Option<String>,
    /// A file with it
    #[arg(short = 'i', long, value_name = "FILE")]
    input: Option<String>,
    /// A header field of every request, NAME=VALUE or NAME:VALUE
    #[arg(short = 'H', long = "headers", visible_alias = "header", value_name = "K=V")]
    headers: Vec<String>,
    /// Requests per second of all connections together: each sends its share from the beginning of
    /// a second on, one after the other; with fewer than connections, there are fewer connections
    #[arg(short = 'R', long = "overallRate", value_name = "NUM")]
    overall_rate: Option<u32>,
    /// Requests per second of each connection; -R then says nothing
    #[arg(short = 'r', long = "connectionRate", value_name = "NUM")]
    connection_rate: Option<u32>,
    /// Threads of the generator: each gets the same whole number of connections and requests, and
    /// the whole of -R
    #[arg(short = 'w', long, value_name = "NUM", conflicts_with = "shards",
        value_parser = clap::value_parser!(u32).range(..=64))]
    workers: Option<u32>,
    /// Says nothing on the way
    #[arg(short = 'n', long = "no-progress")]
    no_progress: bool,
    #[command(flatten)]
    run_options: RunOptions,
}

impl Autocannon {
    /// Makes the load, and tells both accounts of it.
    pub fn run(self) -> Result<Exit, Stop> {
        let flags: Flags = match facade::read("weigh autocannon", &self.words, REFUSED) {
            Ok(flags) => flags,
            Err(exit) => return Ok(exit),
        };
        let asked = flags.asked()?;
        let Flags { workers, no_progress, run_options, .. } = flags;
        let run_options =
            run_options.with_shards(workers.filter(|own| *own > 0)).quieter(no_progress);
        facade::weigh(&asked, &run_options, autocannon::beside)
    }
}

impl Flags {
    fn asked(&self) -> Result<Asked, Stop> {
        self.check()?;
        let url = http_url(&self.url);
        let mut sets = vec![
            format!("http1.method={}", self.method.to_ascii_uppercase()),
            format!("http1.pipeline={}", self.pipelining),
        ];
        sets.extend(path_of(&url));
        if url.starts_with("https://") {
            // The tool accepts every certificate.
            sets.push("http1.tls_verify=false".to_owned());
        }
        Ok(Asked {
            name: "autocannon",
            word: url,
            sets,
            headers: self.headers.iter().map(|text| field(text)).collect::<Result<_, _>>()?,
            words: self.words()?,
            emulate: vec![Emulation::Autocannon],
            user: None,
        })
    }

    fn check(&self) -> Result<(), Stop> {
        let Shared { connections, amount, rate } = self.shared();
        if let Some(amount) = amount.filter(|amount| *amount < u64::from(connections)) {
            return Err(Stop::usage(format!(
                "-a {amount}: {connections} connections have no request each: type at most -c \
                 {amount}",
            )));
        }
        if rate.is_some() && self.pipelining > 1 {
            return Err(Stop::usage(format!(
                "-p {}: with a rate the tool has as many under way in its first second only, and \
                 one in each other: leave -p out",
                self.pipelining
            )));
        }
        if amount.is_some() && self.pipelining > 1 {
            return Err(Stop::usage(format!(
                "-p {}: with -a the tool closes each connection while its last requests are under \
                 way, and counts none of them: leave -p out, or give -d instead of -a",
                self.pipelining
            )));
        }
        Ok(())
    }

    /// What there is of everything once workers have shared it.
    fn shared(&self) -> Shared {
        let workers = self.workers.unwrap_or(0).max(1);
        let own = (self.connections / workers).max(1);
        let amount = self.amount.map(|all| (all / u64::from(workers)).max(1) * u64::from(workers));
        let of = |rate: Option<u32>| rate.filter(|rate| *rate > 0);
        let (own, rate) = match (of(self.overall_rate), of(self.connection_rate)) {
            // Each worker is told the whole rate, and has no more connections than that.
            (Some(overall), None) => {
                let per_second = f64::from(overall) * f64::from(workers);
                (own.min(overall), Some(Rate { per_second, per_client: false }))
            }
            (overall, Some(each)) => {
                let rate = Rate { per_second: f64::from(each), per_client: true };
                (own.min(overall.unwrap_or(own)), Some(rate))
            }
            (None, None) => (own, None),
        };
        Shared { connections: own.saturating_mul(workers), amount, rate }
    }

    fn words(&self) -> Result<LoadWords, Stop> {
        let Shared { connections, amount, rate } = self.shared();
        let has_end = self.amount.is_some();
        // It goes on to its next look, once a second.
        let duration = Nanos(autocannon::ticks(self.duration) * autocannon::TICK.0);
        if !has_end && self.duration.0 == 0 {
            return Err(Stop::usage("-d 0: there must be some time to measure in: type -d 10"));
        }
        let (body, size) = self.body()?;
        Ok(LoadWords {
            pattern: Some(Pattern::Request),
            connections: Some(connections),
            messages: amount,
            duration: (!has_end).then_some(duration),
            warmup: Some(Nanos(0)),
            arrival: Some(if rate.is_some() { Arrival::EachSecond } else { Arrival::Closed }),
            rate,
            window: Some(self.pipelining),
            body: Some(body),
            size: Some(Bytes(size)),
            timeout: Some(self.timeout),
            ..LoadWords::default()
        })
    }

    /// Exactly what was given: nothing is added that would tell messages apart.
    fn body(&self) -> Result<(BodySource, u64), Stop> {
        if let Some(file) = &self.input {
            let found = std::fs::metadata(file)
                .map_err(|error| Stop::usage(format!("-i {file}: cannot be read: {error}")))?;
            return Ok((BodySource::File(file.clone()), found.len()));
        }
        let body = self.body.clone().unwrap_or_default();
        let size = body.len() as u64;
        Ok((BodySource::Text(body), size))
    }
}

/// What all workers have together.
struct Shared {
    connections: u32,
    amount: Option<u64>,
    rate: Option<Rate>,
}

/// A header field as HTTP writes it.
fn field(text: &str) -> Result<String, Stop> {
    let wrong = || Stop::usage(format!("-H {text}: type NAME=VALUE, such as -H accept=text/html"));
    let at = text.find([':', '=']).filter(|at| *at > 0).ok_or_else(wrong)?;
    Ok(format!("{}: {}", &text[..at], text[at + 1..].trim()))
}

/// Flags of autocannon that nothing here would heed.
const REFUSED: &[Refused] = &[
    Refused {
        short: "j",
        long: "",
        mend: "its JSON is not made here; --json prints our own summary",
    },
    Refused {
        short: "L",
        long: "sampleInt",
        mend: "its second is what makes its figures its own; observe.every of a plan is ours",
    },
    Refused {
        short: "S",
        long: "socketPath",
        mend: "a load goes over TCP: let the server listen on 127.0.0.1 and give that URL",
    },
    Refused {
        short: "W",
        long: "warmup",
        mend: "type weigh compare URL --warmup 3s, which leaves it out of every figure",
    },
    Refused {
        short: "",
        long: "on-port",
        mend: "start the server yourself, or name one that weigh starts (weigh targets list)",
    },
    Refused {
        short: "T",
        long: "title",
        mend: "runs are told apart by their folders: leave it out",
    },
    Refused {
        short: "F",
        long: "form",
        mend: "make the multipart body yourself: -i FILE and its Content-Type with -H",
    },
    Refused { short: "", long: "har", mend: "write the requests as cases of a plan (weigh run)" },
    Refused {
        short: "B",
        long: "bailout",
        mend: "every failure is counted and told by its cause: leave it out",
    },
    Refused { short: "M", long: "maxConnectionRequests", mend: "type -a with the sum of all" },
    Refused { short: "O", long: "maxOverallRequests", mend: "type -a instead of it" },
    Refused {
        short: "C",
        long: "ignoreCoordinatedOmission",
        mend: "both columns stand in the result, corrected or not: leave it out",
    },
    Refused {
        short: "D",
        long: "reconnectRate",
        mend: "type weigh compare URL --set http1.keep_alive=false for a connection each",
    },
    Refused {
        short: "l",
        long: "latency",
        mend: "all recorded times are in the run's folder (weigh export): leave it out",
    },
    Refused {
        short: "I",
        long: "idReplacement",
        mend: "type weigh compare URL --body 'template:{seq}' for bodies that differ",
    },
    Refused { short: "f", long: "forever", mend: "give it an end: -d 1h" },
    Refused {
        short: "s",
        long: "servername",
        mend: "the URL's host is what is asked for: give the URL with the name",
    },
    Refused {
        short: "x",
        long: "excludeErrorStats",
        mend: "errors are never among our times; the tool's column has them as it would",
    },
    Refused {
        short: "E",
        long: "expectBody",
        mend: "type weigh compare URL --status 200 to say which answers count",
    },
    Refused {
        short: "",
        long: "renderStatusCodes",
        mend: "errors_ratio and the doubts of the run tell of them: leave it out",
    },
    Refused {
        short: "",
        long: "cert",
        mend: "type weigh compare URL --cert FILE --key FILE --cacert FILE",
    },
    Refused { short: "", long: "key", mend: "type weigh compare URL --cert FILE --key FILE" },
    Refused { short: "", long: "ca", mend: "type weigh compare URL --cacert FILE" },
    Refused { short: "", long: "debug", mend: "the run's doubts tell the first failure" },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_tool() {
        let flags = Flags::try_parse_from(["x", "localhost:3000"]).unwrap();
        let words = flags.words().unwrap();
        assert_eq!((words.connections, words.window), (Some(10), Some(1)));
        assert_eq!((words.duration, words.timeout), (Some(Nanos::from_secs(10)), words.duration));
        assert_eq!((words.arrival, words.messages), (Some(Arrival::Closed), None));
        assert!(flags.asked().unwrap().sets.contains(&"http1.method=GET".to_owned()));
    }

    #[test]
    fn flags_are_heard_in_all_their_forms() {
        let all = ["x", "-c5", "-a", "100", "-m", "post", "-b", "{}", "-H", "a=b", "-p=1", "h:1"];
        let flags = Flags::try_parse_from(all).unwrap();
        let asked = flags.asked().unwrap();
        assert_eq!(asked.headers, ["a: b"]);
        assert_eq!((asked.words.messages, asked.words.duration), (Some(100), None));
        assert_eq!((asked.words.window, asked.words.size), (Some(1), Some(Bytes(2))));
        assert!(asked.sets.contains(&"http1.method=POST".to_owned()));
        let flags = Flags::try_parse_from(["x", "-d", "1.5", "-R", "50", "h:1"]).unwrap();
        let words = flags.words().unwrap();
        assert_eq!(words.duration, Some(Nanos::from_secs(2)), "to its next look");
        assert_eq!(words.rate, Some(Rate { per_second: 50.0, per_client: false }));
        assert_eq!(words.arrival, Some(Arrival::EachSecond));
    }

    /// Ten connections for four workers are two for each; 1,001 requests for three are 333 each; a
    /// rate is each worker's, and fewer requests a second than connections are fewer connections.
    #[test]
    fn workers_and_rates_are_shared_as_the_tool_does() {
        let words = |all: &[&str]| {
            let all: Vec<&str> = [&["x", "h:1"], all].concat();
            Flags::try_parse_from(all).unwrap().words().unwrap()
        };
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
            (["x", "-p", "4", "-R", "50", "h:1"], "leave -p out"),
            (["x", "-p", "4", "-a", "400", "h:1"], "-d instead of -a"),
        ] {
            let flags = Flags::try_parse_from(words).unwrap();
            let told = flags.asked().err().unwrap().to_string();
            assert!(told.contains(said), "{told}");
        }
    }

    #[test]
    fn every_flag_that_is_refused_is_none_that_is_taken() {
        let command = <Flags as clap::CommandFactory>::command();
        for own in REFUSED {
            let is_taken = command.get_arguments().any(|taken| {
                let short = taken.get_short().is_some_and(|short| own.short == short.to_string());
                short || (!own.long.is_empty() && taken.get_long() == Some(own.long))
            });
            assert!(!is_taken, "-{} --{}", own.short, own.long);
        }
    }

    #[test]
    fn fewer_requests_than_connections_are_refused() {
        let flags = Flags::try_parse_from(["x", "-a", "5", "h:1"]).unwrap();
        let said = flags.asked().err().unwrap().to_string();
        assert!(said.contains("at most -c 5"), "{said}");
    }
}
