//! `weigh serve`: runs a reference server or a service of the storage pipeline in the foreground.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weigh_engine::relay::Relaying;
use weigh_engine::serving::{Serving, listen_fix};
use weigh_engine::storage::{StorePolicy, StoreSpec};
use weigh_model::layers::scheme;
use weigh_model::trial::Settings;
use weigh_model::{Durability, Endpoint, Protocol, quic};
use weigh_protocols as registry;
use weigh_testbed::serve_lines::{listening_line, report_line};

#[cfg(feature = "pipeline")]
use super::serve_stage::Stage;
use super::serve_words::{address, answer, say};
use crate::planning::counts::counts;
use weigh_runner::case::lanes::Given;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::targets::layers;

/// Flags of `weigh serve`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Serve {
    #[cfg(feature = "pipeline")]
    #[command(subcommand)]
    stage: Option<Stage>,
    /// Protocol: mqtt, http1 (or http), http2, http3, grpc, tcp; or relay, which copies to --to
    #[arg(required = true)]
    protocol: Option<String>,
    /// Address that a relay connects to, once per accepted connection
    #[arg(long, value_name = "ADDR:PORT", value_parser = address)]
    to: Option<SocketAddr>,
    /// Address to listen on; port 0 takes a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,
    /// Policy of the MQTT broker for slow subscribers: unlimited, drop-newest:N, drop-oldest:N or
    /// disconnect:N
    #[arg(long, value_name = "POLICY")]
    overload: Option<String>,
    /// Store each message before it is confirmed: memory (store nothing), page-cache (written),
    /// fsync (synced; one sync for what arrived together) or fsync=100ms (written, synced every
    /// 100 ms)
    #[arg(long, value_name = "DURABILITY", default_value = "memory")]
    durability: Durability,
    /// Folder of the stored messages, which stay there [default: weigh-store]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Set a key of the protocol, such as mqtt.broker_receive_maximum=10
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Number of threads, each with its own limit of open files
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = counts(1..=64_u16)
    )]
    shards: u16,
    /// Folder with ca.pem, server.pem and server.key for TLS (--set PROTOCOL.tls=on); they are made
    /// there if absent
    #[arg(long, value_name = "DIR")]
    certificates: Option<PathBuf>,
    /// Take requests on standard input, and end when it ends
    #[arg(long, hide = true)]
    control: bool,
}

impl Serve {
    /// Serves until SIGINT, SIGTERM or, when controlled, the end of stdin.
    ///
    /// # Errors
    /// An unknown protocol or setting, a certificate that cannot be read, and an address that
    /// cannot be listened on.
    pub fn run(self) -> Result<Exit, Stop> {
        #[cfg(feature = "pipeline")]
        if let Some(stage) = self.stage {
            return stage.run();
        }
        let named = self.protocol.clone().unwrap_or_default();
        #[cfg(not(feature = "pipeline"))]
        if ["store", "api", "gateway", "pipeline"].contains(&named.as_str()) {
            return Err(Stop::unbuilt(&format!("services of the storage pipeline ({named})")));
        }
        if named == RELAY {
            return self.relay();
        }
        if let Some(to) = self.to {
            return Err(Stop::usage(format!(
                "--to {to}: only a relay connects to a server\nhelp: type weigh serve relay --to \
                 {to}"
            )));
        }
        let protocol = registry::find(&named)?;
        let mut sets = self.sets.clone();
        sets.extend(self.overload.as_ref().map(|policy| format!("target.overload={policy}")));
        let given = Given::parse(&sets)?;
        if let Some(other) = given.others(protocol) {
            return Err(Stop::usage(format!(
                "{other}: not a key of {}\nhelp: leave it out, or serve the other protocol",
                protocol.name()
            )));
        }
        let mut settings = settings(protocol, &given)?;
        let is_advertised = given.of(protocol).iter().any(|(key, _)| *key == ADVERTISED);
        if protocol.has_setting(ADVERTISED) && !is_advertised && self.listen.port() != 0 {
            settings.0.insert(ADVERTISED.to_owned(), reachable(self.listen).to_string());
        }
        let host = protocol.host(&settings)?;
        let folder = self.certificates.as_deref();
        let host = layers::host(host, &protocol.properties(), &settings, folder)?;
        let store = self.store_spec()?;
        // Raised before threads copy the table of descriptors. If that fails, the server reports
        // how often it had to pause.
        let _ = weigh_engine::io::descriptors::raise();
        // The parent of a controlled server ends it by its stdin, or by a signal that kills. In the
        // foreground, a signal asks for the counts.
        let signals = (!self.control).then(|| Signals::new([SIGINT, SIGTERM])).transpose()?;
        let serving = Serving::start_storing(&host, self.listen, self.shards, store.as_ref())
            .map_err(|error| Stop::new(Exit::Target, error))?;
        let scheme = scheme(protocol, &settings);
        let endpoint = Endpoint::at(scheme, serving.address());
        say(&listening_line(&endpoint))?;
        match signals {
            Some(mut signals) => {
                signals.forever().next();
                last_words(&serving)?;
            }
            None => obey(|| report_line(&serving.report().server)),
        }
        Ok(Exit::Done)
    }

    /// How messages are stored; `None` for the durability `memory`.
    ///
    /// # Errors
    /// A durability that a reference server does not have, and a folder without one.
    fn store_spec(&self) -> Result<Option<StoreSpec>, Stop> {
        let policy = StorePolicy::of(self.durability).map_err(|said| {
            let (problem, fix) = said.split_once(": ").unwrap_or((&said, ""));
            Stop::usage(format!("--durability {problem}\nhelp: {fix}"))
        })?;
        match (policy, &self.store) {
            (None, None) => Ok(None),
            (None, Some(folder)) => Err(Stop::usage(format!(
                "--store {}: nothing is stored in memory\nhelp: add --durability page-cache or \
                 fsync, or leave --store out",
                folder.display()
            ))),
            (Some(policy), folder) => {
                let folder = folder.clone().unwrap_or_else(|| STORE.into());
                Ok(Some(StoreSpec { folder, policy, on_failure: Arc::new(end_without_store) }))
            }
        }
    }

    /// Relays until SIGINT, SIGTERM or, when controlled, the end of stdin.
    fn relay(self) -> Result<Exit, Stop> {
        let to = self.to.ok_or_else(|| {
            Stop::usage("relay: the address to connect to is missing\nhelp: type --to ADDR:PORT")
        })?;
        let of_servers = [
            ("--set", !self.sets.is_empty()),
            ("--overload", self.overload.is_some()),
            ("--shards", self.shards > 1),
            ("--certificates", self.certificates.is_some()),
            ("--durability", self.durability != Durability::Memory),
            ("--store", self.store.is_some()),
        ];
        if let Some((flag, _)) = of_servers.iter().find(|(_, is_given)| *is_given) {
            return Err(Stop::usage(format!(
                "{flag}: a relay has no protocol\nhelp: leave it out"
            )));
        }
        let _ = weigh_engine::io::descriptors::raise();
        let signals = (!self.control).then(|| Signals::new([SIGINT, SIGTERM])).transpose()?;
        let relaying = Relaying::start(self.listen, to).map_err(|fault| {
            let fix = listen_fix(&self.listen, fault);
            let text = format!("cannot listen on {}: {fault}; {fix}", self.listen);
            Stop::new(Exit::Target, text)
        })?;
        say(&listening_line(&Endpoint::at("tcp", relaying.address())))?;
        let counts = || report_line(&relaying.counts());
        match signals {
            Some(mut signals) => {
                signals.forever().next();
                say(&counts().map_err(|error| Stop::new(Exit::Internal, error))?)?;
            }
            None => obey(counts),
        }
        Ok(Exit::Done)
    }
}

/// The settings of a server, with TLS if it is inside QUIC.
///
/// # Errors
/// Keys and values that the protocol or QUIC does not have.
fn settings(protocol: &dyn Protocol, given: &Given) -> Result<Settings, Stop> {
    let pairs = given.of(protocol).into_iter();
    let mut own: BTreeMap<String, String> =
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    quic::settle(protocol, &mut own)?;
    let pairs = own.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    Ok(Settings::new(protocol.name(), protocol.settings(), pairs)?)
}

/// The address at which clients on this host reach a server that listens there.
fn reachable(listen: SocketAddr) -> SocketAddr {
    match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, listen.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, listen.port()).into(),
        _ => listen,
    }
}

/// Ends the program: nothing that is not stored may be confirmed, and after a failed sync nothing
/// is known to be stored.
fn end_without_store(said: &str) {
    eprintln!("weigh serve: {said}");
    std::process::exit(TARGET_FAILED);
}

/// Prints the counts of the server at its end.
fn last_words(serving: &Serving) -> Result<(), Stop> {
    let report = serving.report();
    for reason in &report.fault_reasons {
        eprintln!("weigh serve: closed a connection: {reason}");
    }
    if report.accept_pauses > 0 {
        eprintln!(
            "weigh serve: paused accepting {} times because it had no free descriptors; raise \
             ulimit -Hn, or type --shards {}",
            report.accept_pauses,
            report.shared_tables.max(1) + 1
        );
    }
    let line = report_line(&report.server).map_err(|error| Stop::new(Exit::Internal, error))?;
    say(&line)
}

/// Answers requests until stdin ends.
fn obey(count: impl Fn() -> Result<String, String>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        if say(&answer(&line, &count)).is_err() {
            return;
        }
    }
}

/// [`Exit::Target`] as a number.
const TARGET_FAILED: i32 = 3;

/// Folder of stored messages, if none is given.
const STORE: &str = "weigh-store";

/// The key of a server that gives its address to clients, as Kafka's does.
const ADVERTISED: &str = "server_advertised";

/// Word for a relay in the place of a protocol.
const RELAY: &str = "relay";
