//! `weigh run`: an experiment that was written down.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

use clap::Args;
use weigh_plan::Problems;

use crate::conduct::Manner;
use crate::exit::{Exit, Stop};
use crate::known::Known;

/// The flags of `weigh run`.
#[derive(Args)]
pub struct Run {
    /// The plan: a TOML file, see docs/guide/first-plan.md and examples/
    #[arg(value_name = "PLAN.toml")]
    plan: PathBuf,
    /// Starts a plan of more than 10,000 trials without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    manner: Manner,
}

impl Run {
    /// Reads, weighs and shows.
    pub fn run(self) -> Result<Exit, Stop> {
        let catalogue = self.manner.catalogue()?;
        let file = self.plan.display().to_string();
        let bytes = std::fs::read(&self.plan).map_err(|error| {
            Stop::usage(format!("{file}: cannot be read: {error}; name a plan, such as plan.toml"))
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Stop::usage(format!("{file}: is no text in UTF-8; name a plan")))?;
        let told = |problems: Problems| tell(&problems, &file, &text);
        let known = Known::new(&catalogue);
        let draft = weigh_plan::read(&text, &known).map_err(told)?;
        if !self.manner.is_dry() {
            self.ask(draft.trials_max())?;
        }
        let stem = self.plan.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let resolved = draft.resolve(&stem).map_err(told)?;
        let secrets = self.manner.secrets(known.into_credentials(), resolved.secrets);
        self.manner.conduct(&catalogue, resolved.plan, &secrets)
    }

    /// A million trials are a slip more often than a wish.
    fn ask(&self, trials: u64) -> Result<(), Stop> {
        if trials <= TRIALS_UNASKED_MAX || self.yes {
            return Ok(());
        }
        let no = || {
            Stop::usage(format!(
                "the plan has {trials} trials: nothing was started; see what they are with --dry, \
                 and type --yes if you mean it"
            ))
        };
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(no());
        }
        eprint!("weigh: the plan has {trials} trials; start? [y/N] ");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(no()) }
    }
}

/// Everything that is wrong with a plan, as compilers say it.
fn tell(problems: &Problems, file: &str, text: &str) -> Stop {
    let has_colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let count = problems.len();
    let errors = if count == 1 { "1 error".to_owned() } else { format!("{count} errors") };
    let rendered = problems.render(file, text, has_colour);
    Stop::usage(format!("{file}: {errors}; nothing was started\n\n{rendered}"))
}

/// Trials that are started without asking.
const TRIALS_UNASKED_MAX: u64 = 10_000;
