//! `weigh serve store`, `api`, `gateway` and `pipeline`: run the services of the storage pipeline.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use clap::Subcommand;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weigh_pipeline::{
    ApiSettings, Durability, Failed, GatewaySettings, Gathering, Holding, Place, Running,
    StoreSettings,
};
use weigh_runner::exit::{Exit, Stop};
use weigh_testbed::serve_lines::report_line;

use super::serve_flags::{
    ApiFlags, GatewayFlags, GatheringFlags, KEPT_MAX, KeepingFlags, LOOK_EVERY, MEMORY, PASSWORD,
    PipelineFlags, StoreFlags, SubscriptionFlags, Switch, endpoint,
};
use super::serve_words::{answer, say};
use crate::commands::serve_pipeline;

/// A stage of the storage pipeline, or all stages.
#[derive(Subcommand)]
pub enum Stage {
    /// Store readings: the service of store.proto, in memory or SQLite
    Store(StoreFlags),
    /// Accept readings over HTTP and JSON, and keep them or pass them to a store
    Api(ApiFlags),
    /// Forward messages from a broker to an api or a store
    Gateway(GatewayFlags),
    /// Run broker, gateway, api, store and database, each as its own process
    Pipeline(PipelineFlags),
}

impl Stage {
    /// Serves until SIGINT, SIGTERM or, when controlled, the end of stdin.
    ///
    /// # Errors
    /// An address that cannot be listened on, a database that cannot be opened, and a process of
    /// the pipeline that ended.
    pub fn run(self) -> Result<Exit, Stop> {
        // If the limit of open files cannot be raised, clients wait.
        let _ = weigh_engine::io::descriptors::raise();
        match self {
            Stage::Store(flags) => hold("store", flags.control, || flags.start()),
            Stage::Api(flags) => hold("api", flags.control, || flags.start()),
            Stage::Gateway(flags) => hold("gateway", flags.control, || flags.start()),
            Stage::Pipeline(flags) => serve_pipeline::run(&flags),
        }
    }
}

impl StoreFlags {
    fn start(self) -> Result<Running, Stop> {
        let StoreFlags { listen, keeping, gathering, hops, .. } = self;
        let (place, is_unique) = (keeping.place()?, keeping.unique);
        let gathering = gathering.into();
        StoreSettings { listen, place, is_unique, gathering, hops }.start().map_err(stop)
    }
}

impl KeepingFlags {
    /// Returns the place of the readings.
    ///
    /// # Errors
    /// If settings contradict each other.
    pub fn place(&self) -> Result<Place, Stop> {
        if self.database.as_os_str() == MEMORY {
            if self.durable.is_some() {
                return Err(Stop::usage(
                    "--durable: memory is not durable\nhelp: type --database PATH, or leave it out",
                ));
            }
            return Ok(Place::Memory { kept_max: self.keep });
        }
        if self.keep != KEPT_MAX {
            return Err(Stop::usage("--keep: a database keeps all readings\nhelp: leave it out"));
        }
        let durability = match self.durable {
            None | Some(Switch::On) => Durability::Durable,
            Some(Switch::Off) => Durability::Quick,
        };
        Ok(Place::Database { path: self.database.clone(), durability })
    }
}

impl ApiFlags {
    fn start(self) -> Result<Running, Stop> {
        let ApiFlags { listen, store, keep, gathering, hops, .. } = self;
        let holding = if store == MEMORY {
            Holding::Memory { kept_max: keep }
        } else if keep != KEPT_MAX {
            return Err(Stop::usage("--keep: the store keeps the readings\nhelp: leave it out"));
        } else {
            let endpoint = endpoint(&store, &["grpc"]);
            Holding::Store(endpoint.map_err(|text| Stop::usage(format!("--store: {text}")))?)
        };
        let gathering = gathering.into();
        ApiSettings { listen, holding, gathering, hops }.start().map_err(stop)
    }
}

impl GatewayFlags {
    fn start(self) -> Result<Running, Stop> {
        let GatewayFlags { mut broker, to, subscription, gathering, hops, .. } = self;
        let SubscriptionFlags { filter, qos, client_id } = subscription;
        // These are the defaults in the help.
        let filter = filter.unwrap_or_else(|| "#".to_owned());
        let client_id = client_id.unwrap_or_else(|| "weigh-gateway".to_owned());
        let qos = qos.unwrap_or(1);
        if client_id.is_empty() || filter.is_empty() {
            return Err(Stop::usage(
                "--client-id and --filter: a value is empty: give both a \
                                    value, or leave them out",
            ));
        }
        if let Some(who) = broker.credentials.as_mut().filter(|who| who.password.is_empty()) {
            who.password = std::env::var(PASSWORD).unwrap_or_default();
        }
        let gathering = gathering.into();
        let settings = GatewaySettings { broker, to, filter, qos, client_id, gathering, hops };
        settings.start().map_err(stop)
    }
}

impl From<GatheringFlags> for Gathering {
    fn from(flags: GatheringFlags) -> Gathering {
        Gathering { batch: flags.batch as usize, linger: flags.linger }
    }
}

/// Returns the end of the program for a stage that cannot run.
fn stop(failed: Failed) -> Stop {
    match failed {
        Failed::Typed(text) => Stop::usage(text),
        Failed::Found(text) => Stop::new(Exit::Target, text),
    }
}

/// Runs one stage in the foreground.
fn hold(
    name: &str,
    is_controlled: bool,
    start: impl FnOnce() -> Result<Running, Stop>,
) -> Result<Exit, Stop> {
    // Before anything is open, so that an early signal is not lost.
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let running = start()?;
    eprintln!("weigh serve {name}: {}", running.settings_line());
    let requests = is_controlled.then(requests).transpose()?;
    say(running.first_line())?;
    let is_told = loop {
        if signals.pending().next().is_some() {
            break true;
        }
        if running.is_over() {
            break false;
        }
        let Some(requests) = &requests else {
            std::thread::sleep(LOOK_EVERY);
            continue;
        };
        match requests.recv_timeout(LOOK_EVERY) {
            Ok(request) => say(&answer(&request, || report_line(&running.report())))?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break true,
        }
    };
    say(&running.finish().to_string())?;
    if is_told {
        return Ok(Exit::Done);
    }
    Err(Stop::new(Exit::Target, format!("{name}: the stage ended by itself; start it again")))
}

/// Returns the requests on stdin, until it ends.
fn requests() -> Result<Receiver<String>, Stop> {
    let (asked, requests) = channel();
    let read = move || {
        let lines = std::io::stdin().lock().lines();
        for line in lines.map_while(Result::ok) {
            if asked.send(line).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("requests".to_owned()).spawn(read)?;
    Ok(requests)
}
