//! `weigh clock`: measures the clock offset between two hosts, and one-way delays.

use std::fs::File;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weigh_model::units::parse_duration;
use weigh_model::{Nanos, refusal};
use weigh_observe::clocks::one_way::ClockReport;
use weigh_observe::clocks::pair::Exchange;
use weigh_observe::clocks::records::{ExchangeFile, read_exchanges, read_messages};
use weigh_observe::clocks::{
    Asked, Asker, Direction, OneWay, OneWayRefusal, RecordsError, Responder,
};

use crate::numbers::clocks as clock_text;
use crate::show::output;
use crate::show::terminal::Lines;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::interrupts::Interrupts;
use weigh_runner::preflight;

/// Flags of `weigh clock`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct Clock {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    watch: Option<Watch>,
}

#[derive(Subcommand)]
enum What {
    /// Answer questions about the clock of this host until Ctrl-C
    Serve(Serve),
    /// Compute one-way delays of messages between two hosts
    OneWay(OneWayFile),
}

/// Flags of `weigh clock serve`.
#[derive(Args)]
struct Serve {
    /// Address to listen on (UDP); port 0 takes a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// Flags of `weigh clock HOST:PORT`.
#[derive(Args)]
struct Watch {
    /// Address where `weigh clock serve` listens on the other host
    #[arg(value_name = "HOST:PORT")]
    host: String,
    /// Time between two questions
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "200ms")]
    every: Nanos,
    /// Stop after this time [default: on Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    lasts: Option<Nanos>,
    /// File for the exchanges, for `weigh clock one-way`
    #[arg(long, short, value_name = "FILE.csv")]
    output: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    /// Confirm that you are authorised to send to remote hosts
    #[arg(long)]
    i_may_load_this: bool,
}

/// Flags of `weigh clock one-way`.
#[derive(Args)]
struct OneWayFile {
    /// CSV file of messages with the columns sent_ns and received_ns
    file: PathBuf,
    /// File that `weigh clock HOST:PORT -o` wrote meanwhile
    #[arg(long, value_name = "FILE.csv")]
    exchanges: Option<PathBuf>,
    /// Take the messages as sent by the host that answered
    #[arg(long)]
    back: bool,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

impl Clock {
    /// Runs the command: answers questions, asks them, or reads a file.
    ///
    /// # Errors
    /// A command without a host, a host that does not answer, and a file that cannot be read.
    pub fn run(self) -> Result<Exit, Stop> {
        match (self.what, self.watch) {
            (Some(What::Serve(serve)), _) => serve.run(),
            (Some(What::OneWay(file)), _) => file.run(),
            (None, Some(watch)) => watch.run(),
            (None, None) => Err(Stop::usage(
                "the host is missing\nhelp: type weigh clock HOST:PORT with the address of weigh \
                 clock serve",
            )),
        }
    }
}

impl Serve {
    fn run(self) -> Result<Exit, Stop> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let responder = Responder::by_wall_clock(self.listen).map_err(|error| {
            let text = format!(
                "cannot listen on {}: {error}; choose another address or port",
                self.listen
            );
            Stop::new(Exit::Target, text)
        })?;
        output::put_document(&format!("listening on udp://{}\n", responder.address()))?;
        signals.forever().next();
        output::put(&format!("answered {} questions\n", responder.answered()))?;
        Ok(Exit::Done)
    }
}

/// Settings of the measurement, and the estimate of the clocks.
#[derive(Serialize)]
struct Watched {
    schema: &'static str,
    asked: u64,
    answered: usize,
    clocks: Option<ClockReport>,
    refused: Option<String>,
}

impl Watch {
    fn run(self) -> Result<Exit, Stop> {
        let address = self.address()?;
        if self.every < EVERY_MIN {
            return Err(Stop::usage(format!(
                "--every {}: the time between two questions is too short\nhelp: type at least {}",
                self.every.typed(),
                EVERY_MIN.typed()
            )));
        }
        let mut file = self.output.as_deref().map(create).transpose()?;
        let interrupts = Interrupts::listen(Box::new(Lines))?;
        let unreached = |error| Stop::new(Exit::Target, format!("{}: {error}", self.host));
        let mut asker = Asker::new(address).map_err(unreached)?;
        let (mut exchanges, mut asked) = (Vec::<Exchange>::new(), 0u64);
        let began = Instant::now();
        let every = Duration::from_nanos(self.every.0);
        let is_over = || {
            let gone = Nanos(began.elapsed().as_nanos() as u64);
            self.lasts.is_some_and(|lasts| gone >= lasts)
        };
        while interrupts.exit().is_none() && (asked == 0 || !is_over()) {
            let next = Instant::now() + every;
            asked += 1;
            if let Asked::Answered(exchange) = asker.ask(PATIENCE).map_err(unreached)? {
                if let (Some(file), Some(path)) = (&mut file, &self.output) {
                    file.put(&exchange).map_err(|error| unwritten(path, &error))?;
                }
                exchanges.push(exchange);
            } else if exchanges.is_empty() && asked == QUESTIONS_UNANSWERED_MAX {
                break;
            }
            while Instant::now() < next && interrupts.exit().is_none() && !is_over() {
                let left = next.saturating_duration_since(Instant::now());
                std::thread::sleep(left.min(Duration::from_millis(50)));
            }
        }
        if exchanges.is_empty() {
            let text = format!(
                "{}: answered none of {asked} questions: start weigh clock serve --listen \
                 ADDR:PORT there, and let UDP through",
                self.host
            );
            return Err(Stop::new(Exit::Target, text));
        }
        self.tell(asked, &exchanges)
    }

    fn address(&self) -> Result<SocketAddr, Stop> {
        let (host, _) = self.host.rsplit_once(':').ok_or_else(|| {
            Stop::usage(format!("{}: has no port\nhelp: type {}:PORT", self.host, self.host))
        })?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let unknown =
            |said| Stop::new(Exit::Target, format!("{}: {said}\nhelp: check its name", self.host));
        if !self.i_may_load_this && preflight::beyond(host).map_err(unknown)?.is_some() {
            return Err(Stop::usage(format!(
                "{}: the host is not this machine\nhelp: add --i-may-load-this if you are \
                 authorised to send there",
                self.host
            )));
        }
        let found = self.host.to_socket_addrs().map_err(|error| {
            let text = format!("{}: unknown host: {error}\nhelp: check name and port", self.host);
            Stop::new(Exit::Target, text)
        })?;
        let mut found: Vec<SocketAddr> = found.collect();
        found.sort_by_key(SocketAddr::is_ipv6);
        let text = format!("{}: the host has no address\nhelp: check its name", self.host);
        found.first().copied().ok_or_else(|| Stop::new(Exit::Target, text))
    }

    fn tell(&self, asked: u64, exchanges: &[Exchange]) -> Result<Exit, Stop> {
        let (clocks, refused) = match ClockReport::of(exchanges) {
            Ok((report, _)) => (Some(report), None),
            Err(refusal) => (None, Some(refusal.to_string())),
        };
        let answered = exchanges.len();
        let watched = Watched { schema: SCHEMA, asked, answered, clocks, refused };
        if self.json {
            put_json(&watched)?;
        } else {
            let head = format!("{answered} of {asked} questions were answered\n");
            let clocks = watched.clocks.as_ref().map_or(String::new(), clock_text::clocks);
            output::put(&(head + &clocks))?;
        }
        match watched.refused {
            Some(reason) if !self.json => Err(Stop::new(Exit::Finding, reason)),
            Some(_) => Ok(Exit::Finding),
            None => Ok(Exit::Done),
        }
    }
}

impl OneWayFile {
    fn run(self) -> Result<Exit, Stop> {
        let messages = read(&self.file, read_messages)?;
        let path = self.exchanges.as_deref().ok_or_else(|| {
            let text = "L20: a one-way figure needs a bound on the clocks\nhelp: run weigh clock \
                        HOST:PORT -o exchanges.csv while the messages are sent, and add \
                        --exchanges exchanges.csv";
            Stop::new(Exit::Finding, text)
        })?;
        let exchanges = read(path, read_exchanges)?;
        let direction = if self.back { Direction::Back } else { Direction::There };
        let one_way =
            OneWay::of(&messages, &exchanges, direction).map_err(|error| match error {
                OneWayRefusal::NothingArrived => Stop::usage(error),
                _ => Stop::new(Exit::Finding, error),
            })?;
        if self.json {
            put_json(&one_way)?;
        } else {
            output::put(&clock_text::one_way(&one_way))?;
        }
        let is_refused = one_way.delays.iter().any(|delay| delay.refused.is_some());
        Ok(if is_refused { Exit::Finding } else { Exit::Done })
    }
}

fn read<T>(
    path: &Path,
    parse: impl FnOnce(File) -> Result<Vec<T>, RecordsError>,
) -> Result<Vec<T>, Stop> {
    let at = |problem: String| {
        let path = path.display();
        Stop::usage(refusal::with_fix(&format!("{path}: {problem}"), "correct it, or name another"))
    };
    let file = File::open(path).map_err(|error| at(error.to_string()))?;
    parse(file).map_err(|error| at(error.to_string()))
}

fn create(path: &Path) -> Result<ExchangeFile<File>, Stop> {
    File::create(path).map(ExchangeFile::new).map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> Stop {
    let text = format!("{}: cannot be written: {error}; name another file", path.display());
    Stop::new(Exit::Record, text)
}

fn put_json(document: &impl Serialize) -> Result<(), Stop> {
    let text = serde_json::to_string_pretty(document);
    output::put_document(&(text.map_err(|error| Stop::new(Exit::Internal, error))? + "\n"))
}

/// Name and version of the JSON document.
const SCHEMA: &str = "weigh/clock/1";

/// Longest wait for an answer. The bound of an answer is half of its delay, so a later one would
/// say nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shortest time between two questions: a hundred questions per second are a negligible load.
const EVERY_MIN: Nanos = Nanos::from_millis(10);

/// Number of unanswered questions after which the host counts as absent.
const QUESTIONS_UNANSWERED_MAX: u64 = 5;

const AFTER_HELP: &str = "\
Within one host this is not needed: weigh takes all times from one monotonic clock. Between two
hosts, run `weigh clock serve` on one and `weigh clock HOST:PORT -o exchanges.csv` on the other,
from before the first message until after the last. docs/guide/clocks.md explains the error bound.";
