//! `weigh fleet`: starts a bus for agents on other hosts, and prints what starts the agents.

mod print;
mod up;

use clap::{Args, Subcommand};

use weigh_runner::exit::{Exit, Stop};

/// Commands of `weigh fleet`.
#[derive(Args)]
pub struct Fleet {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a bus (nats-server with JetStream) for coordinator and agents, until Ctrl-C
    Up(up::Up),
    /// Print what starts the agents: for Kubernetes, Slurm, ssh or compose
    Print(Box<print::Print>),
}

impl Fleet {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the command.
    pub fn run(self) -> Result<Exit, Stop> {
        match self.command {
            Command::Up(command) => command.run(),
            Command::Print(command) => command.run(),
        }
    }
}
