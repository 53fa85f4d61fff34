//! `weigh programs`: starts a client program N times, as ordered on standard input, and reports
//! what the starts used. `weigh study run` starts it itself.

use clap::Args;
use weigh_testbed::programs::ProgramOrder;

use crate::show::output;
use weigh_runner::exit::{Exit, Stop};

/// No flags.
#[derive(Args)]
pub struct Programs {}

impl Programs {
    /// Carries out the order.
    ///
    /// # Errors
    /// An order that cannot be read, and a program that cannot be run.
    pub fn run(self) -> Result<Exit, Stop> {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        let order: ProgramOrder = serde_json::from_str(&line).map_err(Stop::usage)?;
        let used = order.carry_out().map_err(|error| {
            Stop::new(
                Exit::Target,
                format!("{}: {error}; check the path of the program", order.program.display()),
            )
        })?;
        let json = serde_json::to_string(&used);
        let json = json.map_err(|error| Stop::new(Exit::Internal, error))?;
        output::put_document(&format!("{json}\n")).map(|()| Exit::Done)
    }
}
