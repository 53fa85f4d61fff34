//! `weigh watch`: shows a run while it runs, or a finished one again, in the terminal, as a page,
//! or as metrics for Prometheus.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use weigh_runner::exit::{Exit, Stop};

/// Options of `weigh watch`.
#[derive(Args)]
pub struct Watch {
    /// Run or study to show: its folder, its ID, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// Show it as a page for browsers [default address: 127.0.0.1:8650]
    ///
    /// Port 0 takes a free port. Any address except loopback needs a token, which is part of the
    /// printed URL.
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:8650",
        value_parser = address)]
    web: Option<SocketAddr>,
    /// Serve its figures to Prometheus, as OpenMetrics at http://ADDR/metrics
    #[arg(long, value_name = "ADDR", value_parser = address)]
    metrics: Option<SocketAddr>,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Close the view with the run of this process, and pass Ctrl-C to it; set by weigh itself
    #[arg(long, hide = true, value_name = "PID")]
    in_place: Option<u32>,
    /// Open the page in a browser; set by weigh itself
    #[arg(long, hide = true, requires = "web")]
    browser: bool,
}

impl Watch {
    /// Shows the run until the user ends it.
    ///
    /// # Errors
    /// A run that cannot be read, a terminal that cannot be drawn on, an address that is taken, and
    /// a build without this part.
    #[cfg(not(feature = "watch"))]
    pub fn run(self) -> Result<Exit, Stop> {
        let Watch { run: _, web: _, metrics: _, runs: _, in_place: _, browser: _ } = self;
        Err(Stop::unbuilt("live view (weigh watch)"))
    }

    /// Shows the run until the user ends it.
    ///
    /// # Errors
    /// A run that cannot be read, a terminal that cannot be drawn on, and an address that is taken.
    #[cfg(feature = "watch")]
    pub fn run(self) -> Result<Exit, Stop> {
        let folder = self.folder()?;
        if self.web.is_some() || self.metrics.is_some() {
            return self.serve(&folder);
        }
        self.draw(&folder)
    }

    /// The folder of the run, or of a study that has one.
    #[cfg(feature = "watch")]
    fn folder(&self) -> Result<PathBuf, Stop> {
        use weigh_report::RunFolder;
        use weigh_report::journal::{JOURNAL, StudyFolder};

        let Some(study) = StudyFolder::named(&self.runs, &self.run) else {
            let run = RunFolder::find(&self.runs, &self.run).map_err(Stop::usage)?;
            return Ok(run.path().to_owned());
        };
        let newest = weigh_watch::Subject::at(study.path()).newest();
        if !newest.join(JOURNAL).is_file() {
            let problem = format!("{}: the study has no run yet", study.path().display());
            return Err(Stop::usage(format!(
                "{problem}\nhelp: type it again once its first run began"
            )));
        }
        Ok(study.path().to_owned())
    }

    #[cfg(feature = "watch")]
    fn draw(&self, folder: &std::path::Path) -> Result<Exit, Stop> {
        use weigh_watch::terminal::{End, Look, Options, watch};

        let style = crate::show::terminal::style();
        let look = Look { has_colour: style.has_colour, is_ascii: style.is_ascii };
        let options = Options { look, ends_with_run: self.in_place.is_some() };
        match watch(folder, options).map_err(Stop::usage)? {
            End::Interrupted => {
                // The terminal sent the key to this process alone, because it draws.
                if let Some(run) = own_run(self.in_place, rustix::process::getppid()) {
                    let _ = rustix::process::kill_process(run, rustix::process::Signal::INT);
                }
                Ok(Exit::Done)
            }
            _ => Ok(Exit::Done),
        }
    }

    #[cfg(feature = "watch")]
    fn serve(&self, folder: &std::path::Path) -> Result<Exit, Stop> {
        use weigh_watch::web::{Serving, serve};

        let serving = Serving {
            page: self.web,
            metrics: self.metrics,
            ends_after_run: self.in_place.map(|_| STAYS),
        };
        let said = |text: &str| {
            eprintln!("weigh: {text}");
            if self.browser
                && let Some(url) = text.split_whitespace().find(|word| word.starts_with("http"))
            {
                open(url);
            }
        };
        serve(folder, serving, &said).map_err(Stop::usage)?;
        Ok(Exit::Done)
    }
}

/// The process that started the view, if it is still the one `above`. If it was killed, `above` is
/// the init process, which may restart the machine when it gets the signal of Ctrl-C.
#[cfg(feature = "watch")]
fn own_run(
    started_by: Option<u32>,
    above: Option<rustix::process::Pid>,
) -> Option<rustix::process::Pid> {
    above.filter(|above| started_by == u32::try_from(above.as_raw_nonzero().get()).ok())
}

/// Opens a page in the browser of the desktop, if there is one; the URL was printed.
#[cfg(feature = "watch")]
fn open(url: &str) {
    use std::process::{Command, Stdio};

    let quiet = |command: &mut Command| {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    let _ = quiet(Command::new("xdg-open").arg(url));
}

/// Reads `ADDR:PORT`, or a port of loopback.
fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    let of_name = || {
        let port = text.strip_prefix("localhost:")?.parse().ok()?;
        Some(loopback(port))
    };
    let port = || text.trim_start_matches(':').parse().ok().map(loopback);
    text.parse().ok().or_else(of_name).or_else(port).ok_or_else(|| {
        format!("\"{text}\" is not an address with a port\nhelp: type for example 127.0.0.1:8650")
    })
}

/// Time for which a page that `--open` started stays after the end of its run.
#[cfg(feature = "watch")]
const STAYS: std::time::Duration = std::time::Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "watch")]
    #[test]
    fn ctrl_c_goes_to_the_run_of_the_view_and_never_to_who_adopted_the_view() {
        use rustix::process::Pid;

        let pid = |raw: i32| Pid::from_raw(raw);
        assert_eq!(own_run(Some(77), pid(77)), pid(77));
        // In a container the run itself may be the first process.
        assert_eq!(own_run(Some(1), pid(1)), pid(1));
        for (started_by, above) in [(Some(77), pid(1)), (None, pid(77)), (Some(77), None)] {
            assert_eq!(own_run(started_by, above), None, "{started_by:?} {above:?}");
        }
    }

    #[test]
    fn an_address_may_be_a_port_alone() {
        for (text, read) in [
            ("127.0.0.1:9", "127.0.0.1:9"),
            ("9", "127.0.0.1:9"),
            (":9", "127.0.0.1:9"),
            ("localhost:9", "127.0.0.1:9"),
            ("[::1]:9", "[::1]:9"),
            ("0.0.0.0:9", "0.0.0.0:9"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), read);
        }
        for text in ["", "example", "1.2.3.4", "127.0.0.1:99999"] {
            assert!(address(text).unwrap_err().contains("help: "), "{text}");
        }
    }
}
