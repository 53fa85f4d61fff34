//! `weigh`: one workload over every messaging protocol, every message accounted for.

mod commands;
mod counters;
mod exit;
mod experiment;
mod interrupts;
mod lanes;
mod material;
mod options;
mod output;
#[cfg(feature = "plots")]
mod plots;
mod record;
mod target;
mod terminal;
mod trial_run;

use clap::{Parser, Subcommand};

use crate::exit::Exit;

/// One workload over every messaging protocol, every message accounted for.
#[derive(Parser)]
#[command(name = "weigh", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// One load over several protocols or targets, one table.
    Compare(Box<commands::compare::Compare>),
    /// A reference server in the foreground.
    Serve(commands::serve::Serve),
    /// The real servers that can be started and weighed.
    Targets(commands::targets::Targets),
    /// Looks whether this machine can do what a load asks of it.
    Doctor(commands::doctor::Doctor),
    /// The table of a run that is over, from its journal.
    Report(commands::report::Report),
    /// What has been weighed and kept.
    Runs(commands::runs::Runs),
}

fn main() -> std::process::ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors: clap knows, and prints them to stdout.
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let _ = error.print();
            return code.into();
        }
    };
    let result = match arguments.command {
        Command::Compare(command) => command.run(),
        Command::Serve(command) => command.run(),
        Command::Targets(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Runs(command) => command.run(),
    };
    result.unwrap_or_else(exit::Stop::tell).into()
}
