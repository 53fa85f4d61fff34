//! `weigh energy`: lists meters and device models, and runs batteries down.

mod devices;
mod meters;
mod rundown;

use clap::{Args, Subcommand};

use weigh_runner::exit::{Exit, Stop};

/// Commands of `weigh energy`.
#[derive(Args)]
pub struct Energy {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the energy meters of this machine and what each needs
    Meters(meters::Meters),
    /// List the devices and radios that energy can be modelled for
    Devices(devices::Devices),
    /// Measure battery life by running sessions until shutdown
    Rundown(Box<rundown::Rundown>),
}

impl Energy {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the command.
    pub fn run(self) -> Result<Exit, Stop> {
        match self.command {
            Command::Meters(command) => command.run(),
            Command::Devices(command) => command.run(),
            Command::Rundown(command) => command.run(),
        }
    }
}
