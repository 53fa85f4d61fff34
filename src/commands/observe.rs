//! `weigh observe`: reports the resource use of a process, container or control group to weigh on
//! another host.

use std::net::SocketAddr;
use std::path::PathBuf;
use weigh_model::numbers::{count, time};

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weigh_model::lookout::Vantage;
use weigh_observe::ObserveError;
use weigh_observe::process::ProcessStat;

use crate::planning::counts::counts;
use crate::show::output;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::targets::agents::HostAgent;
use weigh_runner::targets::observers;

/// Flags of `weigh observe`.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub struct Observe {
    #[command(flatten)]
    subject: Subject,
    /// Address to listen on (TCP with TLS); port 0 takes a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// File whose first line is the token, at least 16 characters [default: a new token, printed]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Observed process: exactly one of these flags.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Subject {
    /// Process, and all its descendants
    #[arg(long, value_name = "N", value_parser = counts(1..=u32::MAX))]
    pid: Option<u32>,
    /// Process that listens on this TCP port, and all its descendants
    #[arg(long, value_name = "PORT", value_parser = counts(1..=u16::MAX))]
    port: Option<u16>,
    /// Container of Docker or Podman, by name or ID
    #[arg(long, value_name = "NAME")]
    container: Option<String>,
    /// Control group: a folder, or its name under /sys/fs/cgroup
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,
}

impl Subject {
    /// Returns what to observe.
    fn vantage(&self) -> Result<Vantage, Stop> {
        let of = |kind: &str, value: &Option<String>| {
            value.as_ref().map(|value| (format!("--{kind} {value}"), format!("{kind}:{value}")))
        };
        let named = of("pid", &self.pid.map(|pid| pid.to_string()))
            .or_else(|| of("port", &self.port.map(|port| port.to_string())))
            .or_else(|| of("container", &self.container))
            .or_else(|| of("cgroup", &self.cgroup));
        let (flag, text) = named.ok_or_else(|| {
            Stop::usage("no process is named: type --port, --pid, --container or --cgroup")
        })?;
        text.parse().map_err(|said: String| Stop::usage(format!("{flag}: {said}")))
    }
}

impl Observe {
    /// Answers until SIGINT or SIGTERM.
    ///
    /// # Errors
    /// A subject that does not exist, a token that cannot be read, and an address that cannot be
    /// listened on.
    pub fn run(self) -> Result<Exit, Stop> {
        let at = self.subject.vantage()?;
        let refused = |error| Stop::usage(format!("{}: {error}", flag_of(&at)));
        let (_, what) = observers::subject(&at).map_err(refused)?;
        let token = self.token_file.as_ref().map(read_token).transpose()?;
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let known = Known::of(&at).map_err(refused)?;
        let own = at.clone();
        let begin = move || {
            let (subject, _) = observers::subject(&own)?;
            known.is_still_there()?;
            Ok(subject)
        };
        let outpost = HostAgent::start(self.listen, token.as_deref(), what.clone(), begin)?;
        let address = outpost.address();
        let shown = match token {
            // The user who wrote the file knows the token.
            Some(_) => address.to_string(),
            None => address.with_token(),
        };
        output::put_document(&format!("listening on {shown}\nwatching {what}\n"))?;
        signals.forever().next();
        let (looks, refused) = outpost.counted();
        let (looks, own) = (count(looks), time(weigh_observe::cpu::own_process_ns() as f64, false));
        output::put(&format!(
            "answered {looks} requests, refused {refused} connections, used {own} of CPU \
             time\n"
        ))?;
        Ok(Exit::Done)
    }
}

/// Identity of a named process, because process IDs are used again.
struct Known(Option<ProcessStat>);

impl Known {
    fn of(at: &Vantage) -> Result<Known, ObserveError> {
        match at {
            Vantage::Process(pid) => ProcessStat::read(*pid).map(|stat| Known(Some(stat))),
            _ => Ok(Known(None)),
        }
    }

    /// Refuses another process that has the same ID now.
    fn is_still_there(&self) -> Result<(), ObserveError> {
        let Some(ProcessStat { pid, started_ticks, .. }) = self.0 else { return Ok(()) };
        match ProcessStat::read(pid)?.started_ticks == started_ticks {
            true => Ok(()),
            false => Err(ObserveError::NoProcess(pid)),
        }
    }
}

/// Returns the flag of what is observed.
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
Copy the address that it prints after `listening on` to the other host, and pass it there in
quotation marks:
  weigh compare mqtt://THIS_HOST:1883 --observe 'weigh-observe://...'
If it listens on 0.0.0.0, replace 0.0.0.0 by the name of this host. It only answers questions;
docs/guide/observe.md explains its cost and its protection.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_of_the_same_number_is_not_the_one_that_was_named() {
        let pid = std::process::id();
        let mut known = Known::of(&Vantage::Process(pid)).unwrap();
        assert!(known.is_still_there().is_ok());
        // As if this process had started later, with the ID of one that has ended.
        known.0.as_mut().unwrap().started_ticks -= 1;
        assert!(matches!(known.is_still_there(), Err(ObserveError::NoProcess(own)) if own == pid));
    }
}
