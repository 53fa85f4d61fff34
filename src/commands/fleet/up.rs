//! `weigh fleet up`: a bus for coordinator and agents, in the foreground.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weigh_runner::exit::{Exit, Stop};
use weigh_testbed::bus::ManagedBus;
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::find::{self, Found};

use crate::commands::serve_words::address;
use crate::commands::started::{Home, sweep};
use crate::show::output;

/// Flags of `weigh fleet up`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Up {
    /// Address to listen on; port 0 takes a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4222", value_parser = address)]
    listen: SocketAddr,
    /// File whose first line is the token that clients need, at least 16 characters [default: a new
    /// token, printed; none on loopback]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Up {
    /// Runs a bus until SIGINT or SIGTERM, and removes its store.
    ///
    /// # Errors
    /// A server that is not installed, does not start or ends early, and a token that cannot be
    /// read.
    pub fn run(self) -> Result<Exit, Stop> {
        let token = match &self.token_file {
            Some(path) => Some(read_token(path)?),
            None if self.listen.ip().is_loopback() => None,
            None => Some(new_token()?),
        };
        let found = nats_server()?;
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        sweep();
        let home = Home::make()?;
        let bus = ManagedBus::start(&found.path, home.path(), self.listen, token.as_deref());
        let mut bus = bus.map_err(|error| {
            Stop::new(Exit::Target, format!("the bus on {}: {error}", self.listen))
        })?;
        // The user who wrote the file knows the token.
        let shown = token.filter(|_| self.token_file.is_none());
        let (address, pid) = (bus.address(), bus.pid());
        output::put_document(&started(address, shown.as_deref(), &found.version, pid))?;
        while signals.pending().next().is_none() {
            if let Some(ended) = bus.ended() {
                let log = bus.log_tail(LOG_LINES);
                let text = format!(
                    "the bus ended with {ended}; the end of its log:\n{log}\nhelp: correct what \
                     the log reports, and start it again"
                );
                return Err(Stop::new(Exit::Target, text));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        bus.stop();
        Ok(Exit::Done)
    }
}

/// What the user gives to the agents and to the coordinator.
fn started(address: SocketAddr, token: Option<&str>, version: &str, pid: u32) -> String {
    let host = match address.ip() {
        ip if ip.is_unspecified() => host_name(),
        ip if ip.is_ipv6() => format!("[{ip}]"),
        ip => ip.to_string(),
    };
    let port = address.port();
    let mut text = format!("listening on nats://{host}:{port}\n");
    if let Some(token) = token {
        // In the environment: process lists show the words of a command to all users.
        let _ = writeln!(text, "export WEIGH_BUS_TOKEN={token}");
    }
    let _ = writeln!(text, "NATS {version} with JetStream, pid {pid}");
    if address.ip().is_unspecified() {
        let _ = writeln!(text, "if other hosts do not know {host}, type an address of this host");
    }
    text
}

/// Finds the server as `weigh targets start nats-server` does.
fn nats_server() -> Result<Found, Stop> {
    let catalogue = Catalogue::load(None).map_err(Stop::usage)?;
    let target = catalogue.choose("nats-server").map_err(Stop::usage)?.target;
    find::find(target).ok_or_else(|| {
        let text = format!(
            "nats-server, which is the bus of a fleet, is not installed\nhelp: type {}, or name \
             another bus with --bus and --fleet",
            find::fix(target)
        );
        Stop::new(Exit::Target, text)
    })
}

/// Makes a token of 128 random bits.
fn new_token() -> Result<String, Stop> {
    let mut bytes = [0u8; 16];
    let given = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    given.map_err(|error| Stop::new(Exit::Internal, error))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Reads the token: characters that a shell and a URL take as they are.
fn read_token(path: &Path) -> Result<String, Stop> {
    let wrong = |problem: &dyn std::fmt::Display| {
        let file = path.display();
        Stop::usage(format!(
            "--token-file {file}: {problem}\nhelp: name a file whose first line has 16 to 128 \
             letters, digits, - or _"
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let token = text.lines().next().unwrap_or_default().trim();
    let is_plain = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !is_plain || !(16..=128).contains(&token.len()) {
        return Err(wrong(&"its first line is not a token"));
    }
    Ok(token.to_owned())
}

/// Name of this host.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Lines of the log shown in an error.
const LOG_LINES: usize = 12;

/// Time between two looks at the server and the signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

const AFTER_HELP: &str = "\
Give the URL after `listening on` to the agents (--bus) and to the coordinator (--fleet), and type
the line with WEIGH_BUS_TOKEN on their hosts first. The bus is not encrypted, so the token protects
it only in a network that you trust; docs/guide/fleet.md describes a bus with TLS. The store is
removed at the end.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_hosts_get_url_and_token() {
        let at = |address: &str, token| started(address.parse().unwrap(), token, "2.9.10", 7);
        let nats = "NATS 2.9.10 with JetStream, pid 7\n";
        let local = format!("listening on nats://127.0.0.1:4222\n{nats}");
        assert_eq!(at("127.0.0.1:4222", None), local);
        let token = "listening on nats://[::1]:99\nexport WEIGH_BUS_TOKEN=abc\n";
        assert_eq!(at("[::1]:99", Some("abc")), format!("{token}{nats}"));
        let everywhere = at("0.0.0.0:4222", Some("abc"));
        assert!(everywhere.contains(&host_name()) && everywhere.lines().count() == 4);
    }

    #[test]
    fn tokens_are_new_and_long() {
        let (one, other) = (new_token().unwrap(), new_token().unwrap());
        assert!(one != other && one.len() == 32, "{one} {other}");
    }
}
