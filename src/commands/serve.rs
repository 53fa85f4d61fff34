//! `weigh serve`: a reference server in the foreground.

use std::io::BufRead;
use std::net::SocketAddr;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weigh_engine::serving::Serving;
use weigh_model::Endpoint;
use weigh_model::trial::Settings;
use weigh_protocols as registry;
use weigh_stage::serve_lines::{Request, error_line, listening_line, report_line};

use crate::exit::{Exit, Stop};
use crate::planning::lanes::Given;
use crate::show::output;

/// The flags of `weigh serve`.
#[derive(Args)]
pub struct Serve {
    /// mqtt, http1 (or http) or tcp
    protocol: String,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,
    /// What the MQTT broker does when a subscriber is too slow: unlimited, drop-newest:N,
    /// drop-oldest:N or disconnect:N
    #[arg(long, value_name = "POLICY")]
    overload: Option<String>,
    /// Sets a key of the protocol, such as mqtt.broker_receive_maximum=10
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Threads, each with its own limit of open files
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    shards: u16,
    /// Takes requests on stdin and ends when it ends: for whoever started this server
    #[arg(long, hide = true)]
    control: bool,
}

impl Serve {
    /// Serves until SIGINT, SIGTERM or, when controlled, the end of stdin.
    pub fn run(self) -> Result<Exit, Stop> {
        let protocol = registry::find(&self.protocol)?;
        let mut sets = self.sets.clone();
        sets.extend(self.overload.as_ref().map(|policy| format!("target.overload={policy}")));
        let given = Given::parse(&sets)?;
        if let Some(other) = given.others(protocol) {
            return Err(Stop::usage(format!(
                "{other}: not a key of {}; leave it out or serve the other protocol",
                protocol.name()
            )));
        }
        let settings = Settings::new(protocol.name(), protocol.settings(), given.of(protocol))?;
        let host = protocol.host(&settings)?;
        // The limit of open files is raised before threads copy the table; where it cannot be,
        // the server says how often it had to pause.
        let _ = weigh_engine::io::descriptors::raise();
        // Whoever starts a controlled server ends it by its stdin or by a signal that kills; one
        // in the foreground takes the signal as the wish to see what it counted.
        let signals = (!self.control).then(|| Signals::new([SIGINT, SIGTERM])).transpose()?;
        let serving = Serving::start(&host, self.listen, self.shards)
            .map_err(|error| Stop::new(Exit::Target, error))?;
        let endpoint = Endpoint::at(protocol.scheme(), serving.address());
        say(&listening_line(&endpoint))?;
        match signals {
            Some(mut signals) => {
                signals.forever().next();
                last_words(&serving)?;
            }
            None => obey(&serving),
        }
        Ok(Exit::Done)
    }
}

/// What the server counted, for whoever ended it.
fn last_words(serving: &Serving) -> Result<(), Stop> {
    let report = serving.report();
    for reason in &report.fault_reasons {
        eprintln!("weigh serve: closed a connection: {reason}");
    }
    if report.accept_pauses > 0 {
        eprintln!(
            "weigh serve: paused accepting {} times for want of descriptors: raise ulimit -Hn, \
             or type --shards {}",
            report.accept_pauses,
            report.shared_tables.max(1) + 1
        );
    }
    let line = report_line(&report.server).map_err(|error| Stop::new(Exit::Internal, error))?;
    say(&line)
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "no address with a port: type 127.0.0.1:1883, [::1]:1883, or 127.0.0.1:0 for a free port"
            .to_owned()
    })
}

/// Answers requests until stdin ends.
fn obey(serving: &Serving) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let answer = match Request::parse(&line) {
            Ok(Request::Report) => {
                report_line(&serving.report().server).unwrap_or_else(|error| error_line(&error))
            }
            Err(error) => error_line(&error),
        };
        if say(&answer).is_err() {
            return;
        }
    }
}

/// Whoever started us may read line by line, so every line is flushed.
fn say(line: &str) -> Result<(), Stop> {
    output::put(&format!("{line}\n"))
}
