//! `weigh seal`: makes, opens and inspects sealed objects.

mod inspect;
mod make;
mod open;

use clap::{Args, Subcommand};

use weigh_runner::exit::{Exit, Stop};

/// Commands of `weigh seal`.
#[derive(Args)]
pub struct Seal {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Encrypt and sign files for several recipients (COSE)
    Make(make::Make),
    /// Decrypt one part of a sealed object
    Open(open::Open),
    /// Show what a sealed object reveals without a key
    Inspect(inspect::Inspect),
}

impl Seal {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the command.
    pub fn run(self) -> Result<Exit, Stop> {
        match self.command {
            Command::Make(command) => command.run(),
            Command::Open(command) => command.run(),
            Command::Inspect(command) => command.run(),
        }
    }
}
