//! The folder of an episode, and how programs are started in it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::left::{self, MARK};

/// A folder with runs in it. All processes that start there have one mark.
pub(super) struct Place {
    pub(super) binary: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) mark: String,
}

impl Place {
    /// An empty folder.
    pub(super) fn empty(binary: &Path, folder: &Path, mark: String) -> anyhow::Result<Place> {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder.join("tmp"))?;
        std::fs::create_dir_all(folder.join("runs"))?;
        Ok(Place { binary: binary.to_owned(), folder: folder.to_owned(), mark })
    }

    /// The program with these words.
    pub(super) fn weigh(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(words);
        self.settled(command)
    }

    /// The program with these words, started by lines of shell that end with `exec "$@"`.
    pub(super) fn through(&self, shell: &str, words: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", shell, "sh"]).arg(&self.binary).args(words);
        self.settled(command)
    }

    fn settled(&self, mut command: Command) -> Command {
        let place = self.folder.join("stderr");
        let stderr = std::fs::OpenOptions::new().create(true).append(true).open(place);
        command
            .current_dir(&self.folder)
            .env(MARK, &self.mark)
            .env("TMPDIR", self.folder.join("tmp"))
            .env("XDG_CACHE_HOME", self.folder.join("../cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr.map_or_else(|_| Stdio::null(), Into::into));
        command
    }

    /// Copies what a program prints to its stderr, which is a pipe: where files may not grow, it
    /// would end by its own messages.
    pub(super) fn log(&self, child: &mut Child) -> anyhow::Result<JoinHandle<()>> {
        let mut stderr = child.stderr.take().context("its stderr")?;
        let mut file = std::fs::File::create(self.folder.join("stderr"))?;
        Ok(std::thread::spawn(move || _ = std::io::copy(&mut stderr, &mut file)))
    }

    /// Waits for a program; what is wrong if it has to be killed.
    pub(super) fn await_end(
        &self,
        name: &str,
        child: &mut Child,
        patience: Duration,
    ) -> anyhow::Result<Vec<String>> {
        if ends_within(child, patience)? {
            return Ok(Vec::new());
        }
        child.kill()?;
        child.wait()?;
        Ok(vec![format!("{name} did not end within {patience:?}")])
    }

    /// Processes of the episode that still run.
    pub(super) fn leftovers(&self) -> Vec<String> {
        left::processes(&self.mark)
    }
}

/// True once the program has ended; it is reaped.
pub(super) fn ends_within(program: &mut Child, patience: Duration) -> anyhow::Result<bool> {
    let begun = Instant::now();
    while begun.elapsed() < patience {
        if program.try_wait()?.is_some() {
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}
