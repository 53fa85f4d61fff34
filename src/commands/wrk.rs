//! `weigh wrk`: the flags of wrk, and of wrk2 where a rate is set, their load, and what they would
//! have printed beside what is so.

use clap::{Args, Parser};
use weigh_emulate::wrk::{self, Asked as Printed};
use weigh_model::body::BodySource;
use weigh_model::units::Bytes;
use weigh_model::{Arrival, Nanos, Pattern, Rate};
use weigh_plan::LoadWords;

use crate::commands::facade::{self, Asked, Refused, http_url, path_of, seconds};
use crate::planning::conduct::RunOptions;
use weigh_runner::exit::{Exit, Stop};

/// The words behind the command, which are that tool's.
#[derive(Args)]
pub struct Wrk {
    /// As wrk and wrk2 take them: weigh wrk --help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// The load of wrk (and of wrk2, with -R), with its flags and defaults: what it would have printed,
/// beside the exact figures.
#[derive(Parser)]
#[command(name = "weigh wrk", max_term_width = 100)]
struct Flags {
    /// The server: a URL, or reference for one that weigh starts
    #[arg(value_name = "URL")]
    url: String,
    /// Connections, such as 10 or 1k: rounded down to a multiple of the threads
    #[arg(short = 'c', long, value_name = "N", default_value = "10", value_parser = metric)]
    connections: u32,
    /// How long, such as 10s or 2m
    #[arg(short = 'd', long, value_name = "T", default_value = "10s", value_parser = seconds)]
    duration: Nanos,
    /// Threads that the connections are shared among in the tool; its figures are of one. The
    /// generator has as many as it needs (--shards)
    #[arg(short = 't', long, value_name = "N", default_value = "2", value_parser = metric)]
    threads: u32,
    /// A header field of every request, "NAME: VALUE"
    #[arg(short = 'H', long = "header", value_name = "H")]
    headers: Vec<String>,
    /// Tells the distribution of latencies
    #[arg(short = 'L', long)]
    latency: bool,
    /// After so long a request is given up
    #[arg(short = 'T', long, value_name = "T", default_value = "2s", value_parser = seconds)]
    timeout: Nanos,
    /// wrk2: requests per second of all connections together
    #[arg(short = 'R', long, value_name = "N", value_parser = metric)]
    rate: Option<u32>,
    #[command(flatten)]
    run_options: RunOptions,
}

impl Wrk {
    /// Makes the load, and tells both accounts of it.
    pub fn run(self) -> Result<Exit, Stop> {
        let flags: Flags = match facade::read("weigh wrk", &self.words, REFUSED) {
            Ok(flags) => flags,
            Err(exit) => return Ok(exit),
        };
        let asked = flags.asked()?;
        let printed = Printed { threads: flags.threads, is_detailed: flags.latency };
        facade::weigh(&asked, &flags.run_options, |left| wrk::beside(left, printed))
    }
}

impl Flags {
    fn asked(&self) -> Result<Asked, Stop> {
        let Flags { connections, threads, duration, .. } = *self;
        if threads == 0 || connections < threads {
            return Err(Stop::usage(format!(
                "-t {threads} -c {connections}: wrk needs a connection for each thread: type at \
                 least -c {}",
                threads.max(1)
            )));
        }
        if duration.0 == 0 {
            return Err(Stop::usage("-d 0: there must be some time to measure in: type -d 10s"));
        }
        let url = http_url(&self.url);
        let mut sets = vec!["http1.method=GET".to_owned()];
        sets.extend(path_of(&url));
        if url.starts_with("https://") {
            // The tool accepts every certificate.
            sets.push("http1.tls_verify=false".to_owned());
        }
        let rate = self.rate.filter(|rate| *rate > 0);
        let rate = rate.map(|rate| Rate { per_second: f64::from(rate), per_client: false });
        Ok(Asked {
            name: if rate.is_some() { "wrk2" } else { "wrk" },
            word: url,
            sets,
            headers: self.headers.clone(),
            words: LoadWords {
                pattern: Some(Pattern::Request),
                connections: Some(connections / threads * threads),
                duration: Some(duration),
                warmup: Some(Nanos(0)),
                arrival: Some(if rate.is_some() { Arrival::Constant } else { Arrival::Closed }),
                rate,
                window: Some(1),
                body: Some(BodySource::Text(String::new())),
                size: Some(Bytes(0)),
                timeout: Some(self.timeout),
                ..LoadWords::default()
            },
            emulate: Vec::new(),
            user: None,
        })
    }
}

/// A whole number that may be told in thousands, as 1k or 1M.
fn metric(text: &str) -> Result<u32, String> {
    let wrong = || format!("{text:?} is no number: type 10, 1k or 1M");
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let number: u32 = digits.parse().map_err(|_| wrong())?;
    number.checked_mul(factor).ok_or_else(wrong)
}

/// Flags of wrk and wrk2 that nothing here would heed.
const REFUSED: &[Refused] = &[
    Refused {
        short: "s",
        long: "script",
        mend: "no Lua is run here; method, bodies and fields are flags of weigh compare (--method, \
               --body template:..., -H), and what differs from request to request is a plan's case",
    },
    Refused {
        short: "U",
        long: "u_latency",
        mend: "service times, which it prints, are in every run: weigh report latest",
    },
    Refused { short: "B", long: "batch_latency", mend: "type weigh compare URL --pattern batch" },
    Refused { short: "v", long: "version", mend: "weigh --version tells ours" },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_as_the_tool_reads_them() {
        let all = ["x", "-t4", "-c1k", "-d2m", "--latency", "-R", "5k", "http://h:1/"];
        let flags = Flags::try_parse_from(all).unwrap();
        let asked = flags.asked().unwrap();
        assert_eq!((asked.name, flags.latency), ("wrk2", true));
        assert_eq!(asked.words.connections, Some(1_000));
        assert_eq!(asked.words.duration, Some(Nanos::from_secs(120)));
        assert_eq!(asked.words.rate.unwrap().per_second, 5_000.0);
    }

    #[test]
    fn connections_are_shared_evenly_among_threads() {
        let words = |all: &[&str]| Flags::try_parse_from(all).unwrap().asked().map(|own| own.words);
        let defaults = words(&["x", "http://h:1/"]).unwrap();
        assert_eq!((defaults.connections, defaults.timeout), (Some(10), Some(Nanos::from_secs(2))));
        assert_eq!(words(&["x", "-t", "3", "http://h:1/"]).unwrap().connections, Some(9));
        let said = words(&["x", "-t", "11", "http://h:1/"]).unwrap_err().to_string();
        assert!(said.contains("at least -c 11"), "{said}");
    }

    #[test]
    fn numbers_may_be_told_in_thousands() {
        assert_eq!((metric("10"), metric("2k"), metric("1M")), (Ok(10), Ok(2_000), Ok(1_000_000)));
        assert!(metric("k").is_err() && metric("5G").is_err() && metric("").is_err());
    }
}
