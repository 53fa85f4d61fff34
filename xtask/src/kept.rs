//! What earlier calls did: a line of JSON each, the seed among it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

/// The lines of a file, and what decides the next ones.
pub(crate) struct Kept {
    path: PathBuf,
    pub(crate) seed: u64,
    pub(crate) done: Vec<Value>,
}

impl Kept {
    /// Reads them; `seed` counts if there are none.
    pub(crate) fn open(path: &Path, seed: u64) -> anyhow::Result<Kept> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let done: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        let done = done.with_context(|| format!("{}: type --seed N", path.display()))?;
        let seed = done.first().and_then(|own| own["seed"].as_u64()).unwrap_or(seed);
        Ok(Kept { path: path.to_owned(), seed, done })
    }

    /// Adds one, and prints it.
    pub(crate) fn note(&mut self, said: Value) -> anyhow::Result<()> {
        println!("{said}");
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(format!("{said}\n").as_bytes())?;
        self.done.push(said);
        Ok(())
    }
}
