//! Records the live view of a run as one SVG with several screens, for the README: a real run in a
//! real terminal (tmux), its characters and colours as they are, from its start to its table.

mod picture;
mod screen;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use picture::Picture;
use screen::{Row, rows};

/// Options of `cargo xtask recording`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The file [default: docs/guide/images/watch.svg].
    #[arg(long)]
    output: Option<PathBuf>,
    /// The program, with `--features full` [default: target/release/weigh].
    #[arg(long)]
    weigh: Option<PathBuf>,
    /// Arguments of the command that is shown.
    #[arg(default_value = "compare mqtt http --pattern publish -q 1 -c 50 -R 5k/s -d 10s --live")]
    command: String,
}

/// Runs the command and writes the recording.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let weigh = options.weigh.clone().unwrap_or_else(|| root.join("target/release/weigh"));
    ensure!(weigh.is_file(), "{} is not there: build it first", weigh.display());
    let weigh = std::path::absolute(weigh)?;
    let folder = root.join("target/recording");
    std::fs::create_dir_all(&folder)?;
    let captures = Terminal::start(&folder, &weigh, &options.command)?.captures()?;
    let screens = chosen(&captures);
    let of_view = screens.iter().rposition(|capture| capture.contains(MEASURING));
    let still = of_view.context("no screen shows a trial that is measured")?;
    let screens: Vec<Vec<Row>> = screens.into_iter().map(screen_of).collect();
    let label = format!("weigh {} in a terminal: load, times, charts and ledger", options.command);
    let picture = Picture { screens: &screens, still, size: (COLUMNS, ROWS), label: &label };
    let output = options.output.clone();
    let output = output.unwrap_or_else(|| root.join("docs/guide/images/watch.svg"));
    let svg = picture.svg();
    ensure!(svg.len() <= BYTES_MAX, "{} bytes are too many for the README", svg.len());
    std::fs::write(&output, &svg)?;
    println!("wrote {}: {} screens, {} bytes", output.display(), screens.len(), svg.len());
    Ok(())
}

/// The rows of a capture that fit on the screen.
fn screen_of(capture: &str) -> Vec<Row> {
    let mut screen = rows(capture);
    screen.truncate(ROWS);
    screen
}

/// A terminal of its own in which the command runs.
struct Terminal {
    socket: String,
    /// Exists once the command has ended.
    ended: PathBuf,
}

impl Terminal {
    fn start(folder: &Path, weigh: &Path, command: &str) -> anyhow::Result<Terminal> {
        let socket = format!("weigh-recording-{}", std::process::id());
        let terminal = Terminal { socket, ended: folder.join("ended") };
        let _ = std::fs::remove_file(&terminal.ended);
        let line = format!(
            "cd '{}' && printf '$ weigh {command}\\n' && '{}' {command}; touch ended; sleep 60",
            folder.display(),
            weigh.display()
        );
        let (columns, rows) = (COLUMNS.to_string(), ROWS.to_string());
        terminal.tmux(&["new-session", "-d", "-x", &columns, "-y", &rows, &line])?;
        Ok(terminal)
    }

    /// The screens of the whole run, and at the end all lines of its results.
    fn captures(&self) -> anyhow::Result<Vec<String>> {
        let began = Instant::now();
        let mut captures: Vec<String> = Vec::new();
        loop {
            let is_over = self.ended.exists();
            // The terminal shows what was written before the file was made.
            std::thread::sleep(EVERY);
            // The results are longer than the screen: shown is their beginning, the answer.
            let all: &[&str] = if is_over { &["-S", "-"] } else { &[] };
            let capture = self.tmux(&[&["capture-pane", "-p", "-e"], all].concat())?;
            ensure!(!capture.is_empty(), "the terminal ended before the command");
            if captures.last() != Some(&capture) {
                captures.push(capture);
            }
            if is_over {
                return Ok(captures);
            }
            ensure!(began.elapsed() < LONGEST, "the command did not end in {LONGEST:?}");
        }
    }

    fn tmux(&self, words: &[&str]) -> anyhow::Result<String> {
        let mut tmux = Command::new("tmux");
        tmux.args(["-L", &self.socket, "-f", "/dev/null"]).args(words).stdin(Stdio::null());
        tmux.env("TERM", "xterm-256color").env_remove("NO_COLOR").env_remove("TMUX");
        let output = tmux.output().context("starting tmux")?;
        Ok(String::from_utf8(output.stdout)?)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

/// At most [`SCREENS_MAX`] of the captures, at equal distances, with the first and the last.
fn chosen(captures: &[String]) -> Vec<&str> {
    let last = captures.len().saturating_sub(1);
    let number = captures.len().min(SCREENS_MAX);
    let place = |number_of: usize| number_of * last / (number - 1).max(1);
    (0..number).map(|number_of| captures[place(number_of)].as_str()).collect()
}

/// What the view shows while a trial is measured.
const MEASURING: &str = "· measuring";

/// Size of the terminal, characters.
const COLUMNS: usize = 100;
const ROWS: usize = 26;

/// Time between two screens: the view draws one a second.
const EVERY: Duration = Duration::from_millis(900);

/// The longest run that is recorded.
const LONGEST: Duration = Duration::from_secs(300);

/// Screens of the recording: more make it long and large.
const SCREENS_MAX: usize = 40;

/// Size of the file, bytes: it is loaded with the README.
const BYTES_MAX: usize = 150_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_screens_of_a_long_run_are_taken_from_all_of_it() {
        let captures: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let all = chosen(&captures);
        assert_eq!((all.len(), all[0], all[SCREENS_MAX - 1]), (SCREENS_MAX, "0", "99"));
        assert_eq!(chosen(&captures[..3]), ["0", "1", "2"]);
        assert_eq!(chosen(&captures[..1]), ["0"]);
    }
}
