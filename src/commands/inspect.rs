//! `weigh inspect`: what a sealed object shows without a key, or the name of a key.

use std::path::PathBuf;

use clap::Args;
use weigh_seal::{KeyFile, inspect};

use crate::sealing::{files, text};
use crate::show::output;
use weigh_runner::exit::{Exit, Stop};

/// The flags of `weigh inspect`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Inspect {
    /// The sealed object, or - for standard input
    #[arg(required_unless_present = "key")]
    file: Option<PathBuf>,
    /// Prints the name of this key instead, as policies have it
    #[arg(long, value_name = "KEY", conflicts_with = "file")]
    key: Option<PathBuf>,
    /// Prints a JSON document
    #[arg(long)]
    json: bool,
}

impl Inspect {
    /// Prints what can be seen.
    pub fn run(self) -> Result<Exit, Stop> {
        match (&self.file, &self.key) {
            (_, Some(path)) => {
                let place = path.display().to_string();
                let key = KeyFile::from_pem(&files::key(path)?, &place).map_err(files::stop)?;
                output::put(&self.key_text(&key)?)?;
            }
            (Some(path), None) => {
                let object = inspect(&files::bytes(path)?).map_err(files::stop_at(path))?;
                let shown = if self.json { json(&object)? } else { text::render(&object) };
                output::put(&shown)?;
            }
            (None, None) => return Err(Stop::usage("name a sealed object, or a key with --key")),
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
Nothing is checked here: everybody can read this, and only opening tells whether it is true.

What a sealed object cannot do, this one and any other without a key service that is online:
  - be revoked: whoever has the object and a key can open it as long as the policy allows, and
    with a program of his own for ever
  - count how often it was opened, or tell that it was
  - protect its content once it is open: a participant can copy it, and hand on what he read
  - hide how large it is, for which keys it is, and what its policy says";
