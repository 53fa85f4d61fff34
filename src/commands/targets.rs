//! `weigh targets`: the real servers that can be started and weighed.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use weigh_protocols as registry;
use weigh_stage::catalogue::Catalogue;
use weigh_stage::find;
use weigh_stage::managed::ManagedServer;
use weigh_stage::pinning::{CoreSet, Pinning};

use crate::exit::{Exit, Stop};
use crate::output;

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
                let mut text = list(&catalogue);
                if settings {
                    text += &self::settings();
                }
                output::put(&text)?;
                Ok(Exit::Done)
            }
            Action::Start { name } => start(&catalogue, &name),
            Action::Install { name, yes } => install(&catalogue, &name, yes),
        }
    }
}

fn list(catalogue: &Catalogue) -> String {
    let mut text = String::new();
    for protocol in registry::PROTOCOLS {
        text += &format!("{:<12} reference server of Weighbridge\n", protocol.name());
    }
    for target in catalogue.targets() {
        let state = match find::find(target) {
            Some(found) => format!("{} {}", target.title, found.version),
            None => format!("{}, not installed: {}", target.title, target.find.install),
        };
        text += &format!("{:<12} {state}\n", target.name);
        for profile in &target.profiles {
            text += &format!("{:<12}   {}@{}: {}\n", "", target.name, profile.name, profile.about);
        }
    }
    text
}

fn settings() -> String {
    let mut text = String::new();
    for protocol in registry::PROTOCOLS {
        text.push('\n');
        for setting in protocol.settings() {
            let key = format!("{}.{}", protocol.name(), setting.key);
            text += &format!("{key:<32} [{}] {}\n", setting.default, setting.doc);
        }
    }
    text
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
    let who = format!("{} ({}) pid {}", server.title(), server.profile(), server.pid());
    output::put(&format!("{who}\nlistening on {}\n", server.endpoint()))?;
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
        output::put(&format!("{} {} is installed: {place}\n", target.title, found.version))?;
        return Ok(Exit::Done);
    }
    let command = &target.find.install;
    output::put(&format!("{command}\n"))?;
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
