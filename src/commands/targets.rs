//! `weigh targets`: the real servers that can be started and weighed.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use weigh_protocols as registry;
use weigh_stage::catalogue::Catalogue;
use weigh_stage::find;
use weigh_stage::managed::ManagedServer;
use weigh_stage::pinning::{CoreSet, Pinning};

use crate::exit::{Exit, Stop};

/// The flags of `weigh targets`.
#[derive(Args)]
pub struct Targets {
    #[command(subcommand)]
    action: Option<Action>,
    /// A folder whose targets/*.toml come before those built in
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Action {
    /// What there is, and what is installed.
    List {
        /// Also the keys of every protocol that --set takes
        #[arg(long)]
        settings: bool,
    },
    /// Starts one and keeps it running until Ctrl-C.
    Start {
        /// mosquitto, mosquitto@no-limits, nginx
        name: String,
    },
    /// Says how to install one, and with --yes does it.
    Install {
        /// mosquitto, nginx
        name: String,
        /// Runs the command instead of printing it
        #[arg(long)]
        yes: bool,
    },
}

impl Targets {
    /// Lists or starts.
    pub fn run(self) -> Result<Exit, Stop> {
        let catalogue = Catalogue::load(self.data.as_deref()).map_err(Stop::usage)?;
        match self.action.unwrap_or(Action::List { settings: false }) {
            Action::List { settings } => {
                list(&catalogue);
                if settings {
                    list_settings();
                }
                Ok(Exit::Done)
            }
            Action::Start { name } => start(&catalogue, &name),
            Action::Install { name, yes } => install(&catalogue, &name, yes),
        }
    }
}

fn list(catalogue: &Catalogue) {
    for protocol in registry::PROTOCOLS {
        println!("{:<12} reference server of Weighbridge", protocol.name());
    }
    for target in catalogue.targets() {
        let state = match find::find(target) {
            Some(found) => format!("{} {}", target.title, found.version),
            None => format!("{}, not installed: {}", target.title, target.find.install),
        };
        println!("{:<12} {state}", target.name);
        for profile in &target.profiles {
            println!("{:<12}   {}@{}: {}", "", target.name, profile.name, profile.about);
        }
    }
}

fn list_settings() {
    for protocol in registry::PROTOCOLS {
        println!();
        for setting in protocol.settings() {
            let key = format!("{}.{}", protocol.name(), setting.key);
            println!("{key:<32} [{}] {}", setting.default, setting.doc);
        }
    }
}

fn start(catalogue: &Catalogue, name: &str) -> Result<Exit, Stop> {
    let choice = catalogue.choose(name).map_err(Stop::usage)?;
    let folder = std::env::temp_dir().join(format!("weigh-target-{}", std::process::id()));
    let pinning = Pinning::divide(&CoreSet::allowed()?, 1, 1);
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
    ])?;
    let server = ManagedServer::start(choice, None, &folder, Some(&pinning.target))
        .map_err(|error| Stop::new(Exit::Target, error))?;
    println!("{} ({}) pid {}", server.title(), server.profile(), server.pid());
    println!("listening on {}", server.endpoint());
    signals.forever().next();
    server.stop();
    let _ = std::fs::remove_dir_all(&folder);
    Ok(Exit::Done)
}

/// What changes the machine is run only when it was asked for by name and by flag.
fn install(catalogue: &Catalogue, name: &str, is_wanted: bool) -> Result<Exit, Stop> {
    let target = catalogue.choose(name).map_err(Stop::usage)?.target;
    if let Some(found) = find::find(target) {
        let place = found.path.display();
        println!("{} {} is installed: {place}", target.title, found.version);
        return Ok(Exit::Done);
    }
    let command = &target.find.install;
    println!("{command}");
    if !is_wanted {
        return Ok(Exit::Done);
    }
    let ended = std::process::Command::new("sh").args(["-c", command]).status()?;
    if ended.success() && find::find(target).is_some() {
        return Ok(Exit::Done);
    }
    Err(Stop::new(
        Exit::Target,
        format!("{} is still not there: {ended}; run `{command}` as root", target.title),
    ))
}
