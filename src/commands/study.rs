//! `weigh study`: replays published studies and checks their claims.

mod judge;
mod list;
mod run;
mod show;

use clap::{Args, Subcommand};

use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh study`.
#[derive(Args)]
pub struct Study {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List studies: their question, and how long they take
    List(list::List),
    /// Show a study: paper, experiments, claims, and the plans that replay it
    Show(show::Show),
    /// Replay studies, as their authors did it and done right, and judge every claim
    Run(Box<run::Run>),
    /// Judge several runs of one study together
    Judge(judge::Judge),
}

impl Study {
    /// Runs the command.
    ///
    /// # Errors
    /// Those of the chosen command.
    pub fn run(self) -> Result<Exit, Stop> {
        match self.action {
            Action::List(command) => command.run(),
            Action::Show(command) => command.run(),
            Action::Run(command) => command.run(),
            Action::Judge(command) => command.run(),
        }
    }
}
