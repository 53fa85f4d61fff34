//! `weigh completions`: prints the completions of a shell.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::help::with_every_command;
use crate::show::output;
use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh completions`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Completions {
    /// Shell: bash, elvish, fish, powershell or zsh
    shell: Shell,
}

impl Completions {
    /// Prints a script that completes the commands and options of `program`.
    ///
    /// # Errors
    /// Those of [`output::put_document`].
    pub fn run(self, program: Command) -> Result<Exit, Stop> {
        output::put_document(&script(self.shell, program))?;
        Ok(Exit::Done)
    }
}

/// The script, as text: the generator itself would panic if standard output is closed.
fn script(shell: Shell, program: Command) -> String {
    let mut bytes = Vec::new();
    generate(shell, &mut with_every_command(&program), "weigh", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

const AFTER_HELP: &str = "\
Examples:
  weigh completions bash > ~/.local/share/bash-completion/completions/weigh
  weigh completions zsh > ~/.zfunc/_weigh
  weigh completions fish > ~/.config/fish/completions/weigh.fish";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};

    use super::*;
    use crate::help::arranged;

    #[test]
    fn every_shell_knows_every_command_and_option() {
        let program = arranged(crate::Arguments::command());
        for shell in Shell::value_variants() {
            let script = script(*shell, program.clone());
            for own in program.get_subcommands() {
                let name = own.get_name();
                let is_internal = ["background", "programs"].contains(&name);
                // Words of help may name them.
                assert!(is_internal || script.contains(name), "{shell}: {name}");
            }
            for option in ["--fail-if", "--save-plan", "--i-may-load-this"] {
                let typed = option.trim_start_matches('-');
                assert!(script.contains(typed), "{shell}: {option}");
            }
        }
    }
}
