//! `weigh`: one workload over every messaging protocol, every message accounted for.

/// Every line on standard error has control characters made visible: names, file names and the
/// reasons of a target may hold what a terminal obeys. The name shadows that of the standard
/// library, so that no line can go another way by mistake.
macro_rules! eprintln {
    ($($part:tt)*) => {
        std::eprintln!("{}", weigh_model::visible::visible(&format!($($part)*)))
    };
}

mod commands;
mod numbers;
mod output_file;
mod planning;
mod sealing;
mod show;

use clap::{Parser, Subcommand};

use weigh_runner::exit::Exit;

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
    /// An experiment that was written down in a file: a whole matrix, repeated; or the rest of a
    /// run that ended early.
    Run(Box<commands::run::Run>),
    /// A battery run down by sessions until the power goes, and what came of it.
    Rundown(Box<commands::rundown::Rundown>),
    /// How far the clocks of two hosts are apart, and delays from one to the other.
    Clock(commands::clock::Clock),
    /// Published studies, replayed: as their authors did it and done right, with a verdict on every
    /// claim.
    Study(commands::study::Study),
    /// Where a target's limit lies: two bounds for every goal, and what ended it.
    Limit(Box<commands::limit::Limit>),
    /// autocannon's flags and its load: what it would have printed, beside what is so.
    #[command(disable_help_flag = true)]
    Autocannon(commands::autocannon::Autocannon),
    /// mqtt-stresser's flags and its load: what it would have printed, beside what is so.
    #[command(disable_help_flag = true)]
    MqttStresser(commands::mqtt_stresser::MqttStresser),
    /// The flags of wrk and wrk2 and their load: what they would have printed, beside what is so.
    #[command(disable_help_flag = true)]
    Wrk(commands::wrk::Wrk),
    /// A reference server in the foreground.
    Serve(Box<commands::serve::Serve>),
    /// What a process, container or control group of this host uses, for a weigh on another one.
    Observe(commands::observe::Observe),
    /// The real servers that can be started and weighed.
    Targets(commands::targets::Targets),
    /// What there is to measure energy with, and what each of it needs.
    Meters(commands::meters::Meters),
    /// The devices and radios that energy can be modelled for, with their sources.
    Devices(commands::devices::Devices),
    /// Looks whether this machine can do what a load asks of it.
    Doctor(commands::doctor::Doctor),
    /// Broken rules in published figures, in the output of other tools, or in a run.
    Audit(commands::audit::Audit),
    /// The table of a run that is over, from its journal.
    Report(commands::report::Report),
    /// A run in the formats of other tools: CSV, OpenMetrics, JMeter.
    Export(commands::export::Export),
    /// Two runs, cell by cell: what became faster, slower, or is too close to call.
    Diff(commands::diff::Diff),
    /// What has been weighed and kept.
    Runs(commands::runs::Runs),
    /// Mean, interval and verdict for a file of numbers.
    Stats(commands::stats::Stats),
    /// Files into an object that protects itself: for several participants, under a policy, signed.
    Seal(commands::seal::Seal),
    /// A part of a sealed object, for whoever has the key.
    Open(commands::open::Open),
    /// What a sealed object shows without a key, and what it cannot do.
    Inspect(commands::inspect::Inspect),
    /// The generator of a background; weigh starts it itself.
    #[command(hide = true)]
    Background(commands::background::Background),
    /// Start a client program and report what it used; weigh starts this itself.
    #[command(hide = true)]
    Programs(commands::programs::Programs),
}

fn main() -> std::process::ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are no errors: clap knows, and prints them to stdout.
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let words: Vec<_> = std::env::args_os().collect();
            if let Some(stop) = commands::negative::value(&error, &words) {
                return show::terminal::stopped(stop).into();
            }
            let _ = error.print();
            return code.into();
        }
    };
    let result = match arguments.command {
        Command::Compare(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Rundown(command) => command.run(),
        Command::Clock(command) => command.run(),
        Command::Study(command) => command.run(),
        Command::Limit(command) => command.run(),
        Command::Autocannon(command) => command.run(),
        Command::MqttStresser(command) => command.run(),
        Command::Wrk(command) => command.run(),
        Command::Serve(command) => command.run(),
        Command::Observe(command) => command.run(),
        Command::Targets(command) => command.run(),
        Command::Meters(command) => command.run(),
        Command::Devices(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Audit(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Export(command) => command.run(),
        Command::Diff(command) => command.run(),
        Command::Runs(command) => command.run(),
        Command::Stats(command) => command.run(),
        Command::Seal(command) => command.run(),
        Command::Open(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Background(command) => command.run(),
        Command::Programs(command) => command.run(),
    };
    result.unwrap_or_else(show::terminal::stopped).into()
}
