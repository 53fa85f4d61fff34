//! `weigh targets`: lists, starts and installs the real servers that can be measured.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use weigh_protocols as registry;
use weigh_runner::exit::{Exit, Stop};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::find;

use super::started::Started;
use crate::commands::install::install;
use crate::show::output;

/// Flags of `weigh targets`.
#[derive(Args)]
pub struct Targets {
    #[command(subcommand)]
    action: Option<Action>,
    /// Folder whose targets/*.toml replace built-in targets of the same name
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Action {
    /// List targets and what is installed
    List {
        /// Also list the keys of every protocol that --set takes
        #[arg(long)]
        settings: bool,
    },
    /// Start a target and keep it running until Ctrl-C
    Start {
        /// Name of the target, such as mosquitto, mosquitto@no-limits or nginx
        name: String,
    },
    /// Show how to install a target, with size and place; with --yes install it
    Install {
        /// Name of the target, such as mosquitto, mosquitto@no-limits or nginx
        name: String,
        /// Run the commands, and start the target once to check that it works
        #[arg(long)]
        yes: bool,
    },
}

impl Targets {
    /// Runs the command.
    ///
    /// # Errors
    /// An unknown target, a target that cannot be installed or started, and a folder of `--data`
    /// that cannot be read.
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
            None => format!("{}, not installed: {}", target.title, find::fix(target)),
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
    let mut signals = signal_hook::iterator::Signals::new([
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
    ])?;
    let started = Started::start(choice)?;
    let server = started.server();
    let who = format!("{} ({}) pid {}", server.title(), server.profile(), server.pid());
    output::put_document(&format!("{who}\nlistening on {}\n", server.endpoint()))?;
    signals.forever().next();
    started.stop();
    Ok(Exit::Done)
}
