//! `weigh seal inspect`: prints what a sealed object reveals without a key, or the name of a key.

use std::path::PathBuf;

use clap::Args;
use weigh_seal::{KeyFile, inspect};

use crate::sealing::{files, text};
use crate::show::output;
use weigh_runner::exit::{Exit, Stop};

/// Flags of `weigh seal inspect`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Inspect {
    /// Sealed object, or - for standard input
    #[arg(required_unless_present = "key")]
    file: Option<PathBuf>,
    /// Print the name of this key instead, as policies use it
    #[arg(long, value_name = "KEY", conflicts_with = "file")]
    key: Option<PathBuf>,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

impl Inspect {
    /// Prints what is visible.
    ///
    /// # Errors
    /// A file that cannot be read, or is neither a sealed object nor a key.
    pub fn run(self) -> Result<Exit, Stop> {
        match (&self.file, &self.key) {
            (_, Some(path)) => {
                let place = path.display().to_string();
                let key = KeyFile::from_pem(&files::key(path)?, &place).map_err(files::stop)?;
                output::put_document(&self.key_text(&key)?)?;
            }
            (Some(path), None) => {
                let object = inspect(&files::bytes(path)?).map_err(files::stop_at(path))?;
                match self.json {
                    true => output::put_document(&json(&object)?)?,
                    false => output::put(&text::render(&object))?,
                }
            }
            (None, None) => {
                return Err(Stop::usage(
                    "the file is missing: name a sealed object, or a key with --key",
                ));
            }
        }
        Ok(Exit::Done)
    }

    fn key_text(&self, key: &KeyFile) -> Result<String, Stop> {
        if !self.json {
            return Ok(format!("{}\n", key.id));
        }
        json(&serde_json::json!({
            "key": key.id.to_string(),
            "private": key.is_private,
            "signs": key.signs,
        }))
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, Stop> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| Stop::new(Exit::Internal, error))
}

const AFTER_HELP: &str = "\
Nothing is verified here: this part is readable without a key, and only opening proves it.

Without an online key service no sealed object can:
  - be revoked: a recipient can open it as long as the policy allows, and with another program for
    ever
  - count how often it was opened, or report it
  - protect its content once it is open: a recipient can copy it
  - hide its size, the keys of its recipients, and its policy";
