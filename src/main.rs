//! `weigh` measures messaging protocols and servers under the same load, message by message.

/// Prints a line on standard error that fits the terminal, with visible control characters: names,
/// file names and reasons of a target may contain control sequences. The name shadows the macro of
/// the standard library, so that no line bypasses it by mistake.
macro_rules! eprintln {
    ($($part:tt)*) => {
        crate::show::terminal::to_stderr(&format!($($part)*))
    };
}

/// Prints a text on standard error as it is. The name shadows the macro of the standard library,
/// which panics if the pipe was closed.
macro_rules! eprint {
    ($($part:tt)*) => {
        crate::show::terminal::put(&format!($($part)*))
    };
}

mod commands;
mod help;
mod numbers;
mod output_file;
mod planning;
mod sealing;
mod show;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use commands::facade;
use weigh_runner::exit::Exit;

/// Measure messaging protocols and servers under the same load, and account for every message
#[derive(Parser)]
#[command(name = "weigh", version = help::VERSION, long_version = help::LONG_VERSION,
    max_term_width = 100, after_help = help::MORE)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare protocols or servers under the same load
    Compare(Box<commands::compare::Compare>),
    /// Run an experiment from a plan file, or resume an interrupted run
    Run(Box<commands::run::Run>),
    /// Find the highest load at which a target meets a goal
    Limit(Box<commands::limit::Limit>),
    /// Replay published studies and check their claims
    Study(commands::study::Study),
    /// Show a run while it runs: in the terminal, in a browser, for Prometheus
    Watch(commands::watch::Watch),
    /// Show the table of a finished run
    Report(commands::report::Report),
    /// Compare two runs, case by case
    Diff(commands::diff::Diff),
    /// List past runs, or one metric of all runs; print a citation; remove runs
    Runs(commands::runs::Runs),
    /// Export a run as CSV, LaTeX, OpenMetrics or JMeter results
    Export(commands::export::Export),
    /// Check figures, output of other tools, or a run by the rules of sound measurement
    Audit(commands::audit::Audit),
    /// Run a reference server in the foreground
    Serve(Box<commands::serve::Serve>),
    /// List, start or install the real servers that can be measured
    Targets(commands::targets::Targets),
    /// Find out what a server supports: versions, guarantees, limits
    Probe(Box<commands::probe::Probe>),
    /// Check that this machine can generate a given load
    Doctor(commands::doctor::Doctor),
    /// Run a load with the options of another load generator
    #[command(hide = true)]
    Like(facade::Like),
    /// List energy meters and device models, or run a battery down
    #[command(hide = true)]
    Energy(commands::energy::Energy),
    /// Compute mean, interval and verdict for a file of numbers
    #[command(hide = true)]
    Stats(commands::stats::Stats),
    /// Serve CPU and memory figures of a local process to a remote `weigh`
    #[command(hide = true)]
    Observe(commands::observe::Observe),
    /// Generate a part of the load of a fleet on this host
    #[command(hide = true)]
    Agent(commands::agent::Agent),
    /// Measure the clock offset between two hosts, and one-way delays
    #[command(hide = true)]
    Clock(commands::clock::Clock),
    /// Make one load from several hosts: start and connect the agents
    #[command(hide = true)]
    Fleet(commands::fleet::Fleet),
    /// Encrypt, sign, open or inspect messages (COSE, RFC 9052)
    #[command(hide = true)]
    Seal(commands::seal::Seal),
    /// Print the completions of a shell
    #[command(hide = true)]
    Completions(commands::completions::Completions),
    /// Print a manual page, or write all of them
    #[command(hide = true)]
    Man(commands::man::Manual),
    /// Generate a background load; started by weigh itself
    #[command(hide = true)]
    Background(commands::background::Background),
    /// Start a client program and report what it used; started by weigh itself
    #[command(hide = true)]
    Programs(commands::programs::Programs),
}

fn main() -> std::process::ExitCode {
    let command = help::arranged(Arguments::command());
    let matches = command.clone().try_get_matches();
    let arguments = match matches.and_then(|given| Arguments::from_arg_matches(&given)) {
        Ok(arguments) => arguments,
        Err(error) => return refused(&error, &command).into(),
    };
    let result = match arguments.command {
        Command::Compare(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Limit(command) => command.run(),
        Command::Study(command) => command.run(),
        Command::Watch(command) => command.run(),
        Command::Report(command) => command.run(),
        Command::Diff(command) => command.run(),
        Command::Runs(command) => command.run(),
        Command::Export(command) => command.run(),
        Command::Audit(command) => command.run(),
        Command::Serve(command) => command.run(),
        Command::Targets(command) => command.run(),
        Command::Probe(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Like(command) => command.run(),
        Command::Energy(command) => command.run(),
        Command::Stats(command) => command.run(),
        Command::Observe(command) => command.run(),
        Command::Agent(command) => command.run(),
        Command::Clock(command) => command.run(),
        Command::Fleet(command) => command.run(),
        Command::Seal(command) => command.run(),
        Command::Completions(own) => own.run(command),
        Command::Man(own) => own.run(command),
        Command::Background(command) => command.run(),
        Command::Programs(command) => command.run(),
    };
    result.unwrap_or_else(show::terminal::stopped).into()
}

/// Prints the error of the command line, or the help or version that the user asked for.
fn refused(error: &clap::Error, command: &clap::Command) -> Exit {
    let words: Vec<_> = std::env::args_os().collect();
    let own = commands::negative::value(error, &words)
        .or_else(|| commands::moved::command(error, &words))
        .or_else(|| commands::refused::stop(error, &words, command));
    if let Some(stop) = own {
        return show::terminal::stopped(stop);
    }
    // clap prints help and version to stdout: they are not errors.
    if !error.use_stderr() {
        let _ = error.print();
        return Exit::Done;
    }
    show::terminal::styled_to_stderr(&error.render().ansi().to_string());
    Exit::Usage
}
