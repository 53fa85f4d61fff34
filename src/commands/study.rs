//! `weigh study`: published studies, replayed.

mod judge;
mod list;
mod run;
mod show;

use clap::{Args, Subcommand};

use weigh_runner::exit::{Exit, Stop};

/// The flags of `weigh study`.
#[derive(Args)]
pub struct Study {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// The studies there are: what each asks, and how long it takes
    List(list::List),
    /// A study: the paper, its experiments, its claims, and the plans that replay it
    Show(show::Show),
    /// Replays studies, the authors' way and the right way, and says what holds of every claim
    Run(Box<run::Run>),
    /// Judge several runs of one study together
    Judge(judge::Judge),
}

impl Study {
    /// Lists, shows, replays or judges.
    pub fn run(self) -> Result<Exit, Stop> {
        match self.action {
            Action::List(command) => command.run(),
            Action::Show(command) => command.run(),
            Action::Run(command) => command.run(),
            Action::Judge(command) => command.run(),
        }
    }
}
