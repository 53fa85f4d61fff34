//! `weigh observe`: what a process, container or control group of this host uses, for a weigh on
//! another one.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weigh_model::lookout::Vantage;
use weigh_observe::ObserveError;
use weigh_observe::process::ProcessStat;

use crate::show::output;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::targets::agents::Outpost;
use weigh_runner::targets::watching;

/// The flags of `weigh observe`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Observe {
    #[command(flatten)]
    subject: Subject,
    /// Where to listen (TCP, inside TLS); port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// A file whose first line is the token, at least 16 characters [default: one is made and
    /// printed]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// One of these.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Subject {
    /// A process and all that descends from it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// The process that listens on this TCP port, and all that descends from it
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// A container of Docker or Podman, by its name or id
    #[arg(long, value_name = "NAME")]
    container: Option<String>,
    /// A control group: a folder, or its name below /sys/fs/cgroup
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,
}

impl Subject {
    /// What is to be watched.
    fn vantage(&self) -> Result<Vantage, Stop> {
        let of = |kind: &str, value: &Option<String>| {
            value.as_ref().map(|value| (format!("--{kind} {value}"), format!("{kind}:{value}")))
        };
        let named = of("pid", &self.pid.map(|pid| pid.to_string()))
            .or_else(|| of("port", &self.port.map(|port| port.to_string())))
            .or_else(|| of("container", &self.container))
            .or_else(|| of("cgroup", &self.cgroup));
        let (flag, text) = named.ok_or_else(|| Stop::usage("nothing to watch is named"))?;
        text.parse().map_err(|said: String| Stop::usage(format!("{flag}: {said}")))
    }
}

impl Observe {
    /// Answers until SIGINT or SIGTERM.
    pub fn run(self) -> Result<Exit, Stop> {
        let at = self.subject.vantage()?;
        let refused = |error| Stop::usage(format!("{}: {error}", flag_of(&at)));
        let (_, what) = watching::subject(&at).map_err(refused)?;
        let token = self.token_file.as_ref().map(read_token).transpose()?;
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let known = Known::of(&at).map_err(refused)?;
        let own = at.clone();
        let begin = move || {
            let (subject, _) = watching::subject(&own)?;
            known.is_still_there()?;
            Ok(subject)
        };
        let outpost = Outpost::start(self.listen, token.as_deref(), what.clone(), begin)?;
        let address = outpost.address();
        let shown = match token {
            // Whoever wrote the file knows it.
            Some(_) => address.to_string(),
            None => address.with_token(),
        };
        output::put(&format!("listening on {shown}\nwatching {what}\n"))?;
        signals.forever().next();
        let (looks, refused) = outpost.counted();
        let own_ms = weigh_observe::cpu::own_process_ns() as f64 / 1e6;
        output::put(&format!(
            "answered {looks} looks, turned {refused} visitors away, used {own_ms:.0} ms of a \
             processor\n"
        ))?;
        Ok(Exit::Done)
    }
}

/// The process that was named, where one was: numbers of processes are used again.
struct Known(Option<ProcessStat>);

impl Known {
    fn of(at: &Vantage) -> Result<Known, ObserveError> {
        match at {
            Vantage::Process(pid) => ProcessStat::read(*pid).map(|stat| Known(Some(stat))),
            _ => Ok(Known(None)),
        }
    }

    /// Refuses another process that has its number now.
    fn is_still_there(&self) -> Result<(), ObserveError> {
        let Some(ProcessStat { pid, started_ticks, .. }) = self.0 else { return Ok(()) };
        match ProcessStat::read(pid)?.started_ticks == started_ticks {
            true => Ok(()),
            false => Err(ObserveError::NoProcess(pid)),
        }
    }
}

/// The flag that names what is watched.
fn flag_of(at: &Vantage) -> String {
    let text = at.to_string();
    text.split_once(':').map_or(text.clone(), |(kind, value)| format!("--{kind} {value}"))
}

fn read_token(path: &PathBuf) -> Result<String, Stop> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Stop::usage(format!("--token-file {shown}: {error}")))?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

const AFTER_HELP: &str = "\
Copy the first line that it prints, behind `listening on`, to the other host and put it, in
quotation marks, behind --observe there:
  weigh compare mqtt://THIS_HOST:1883 --observe 'weigh-observe://...'
Where it listens on 0.0.0.0, put this host's name in the place of 0.0.0.0. It answers looks and can
do nothing else; docs/guide/observe.md says what it costs and what protects it.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_of_the_same_number_is_not_the_one_that_was_named() {
        let pid = std::process::id();
        let mut known = Known::of(&Vantage::Process(pid)).unwrap();
        assert!(known.is_still_there().is_ok());
        // As if ours had started later, with the number of one that has ended.
        known.0.as_mut().unwrap().started_ticks -= 1;
        assert!(matches!(known.is_still_there(), Err(ObserveError::NoProcess(own)) if own == pid));
    }
}
