//! `weigh targets install`: prints how a server is installed; with --yes installs and tests it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use weigh_model::numbers::seconds;

use signal_hook::consts::{SIGINT, SIGTERM};
use weigh_runner::exit::{Exit, Stop};
use weigh_testbed::catalogue::{Catalogue, Choice};
use weigh_testbed::find;
use weigh_testbed::install::{InstallError, Installation};
use weigh_testbed::managed::ManagedServer;
use weigh_testbed::process::ProcessError;

use crate::commands::started::temporary_folder;
use crate::show::output;

/// Prints the commands, and runs them only with `--yes`, because they change the machine.
///
/// # Errors
/// If the target or its installation is unknown, or if a command fails.
pub fn install(catalogue: &Catalogue, name: &str, is_wanted: bool) -> Result<Exit, Stop> {
    let choice = catalogue.choose(name).map_err(Stop::usage)?;
    let target = choice.target;
    if let Some(found) = find::find(target) {
        let place = found.package.as_ref().unwrap_or(&found.path).display();
        output::put(&format!("{} {} is installed: {place}\n", target.title, found.version))?;
        return Ok(Exit::Done);
    }
    let installation = match Installation::of(target) {
        Ok(installation) => installation,
        // Manual steps answer the question, but an order to install cannot run them.
        Err(InstallError::NoPackage { fix, .. }) if !is_wanted => {
            output::put(&format!("{fix}\n"))?;
            return Ok(Exit::Done);
        }
        Err(error) => return Err(failed(&error)),
    };
    for line in installation.words().split_inclusive('\n') {
        // Commands are copied: they stay whole.
        let put = if line.starts_with("  ") { output::put_document } else { output::put };
        put(line)?;
    }
    if !is_wanted {
        output::put(&format!("type weigh targets install {name} --yes to run these commands\n"))?;
        return Ok(Exit::Done);
    }
    let mut unsaid = None;
    let signal = Arc::new(AtomicUsize::new(0));
    for one in [SIGINT, SIGTERM] {
        let number = one.unsigned_abs() as usize;
        signal_hook::flag::register_usize(one, Arc::clone(&signal), number)?;
    }
    let say = |command: &str| unsaid = output::put_document(&format!("> {command}\n")).err();
    let done = installation.run(say, &|| signal.load(Ordering::SeqCst) != 0);
    if let Err(error @ InstallError::GivenUp(_)) = done {
        let terminated = signal.load(Ordering::SeqCst) == SIGTERM.unsigned_abs() as usize;
        let exit = if terminated { Exit::Terminated } else { Exit::Interrupted };
        return Err(Stop::new(exit, error));
    }
    done.map_err(|error| failed(&error))?;
    unsaid.map_or(Ok(()), Err)?;
    tried(choice)
}

/// Starts the server once, because only a server that starts is installed.
fn tried(choice: Choice<'_>) -> Result<Exit, Stop> {
    let folder = temporary_folder("weigh-install-")?;
    let began = Instant::now();
    let started = ManagedServer::start(choice, None, folder.path(), None);
    let ready = seconds(began.elapsed().as_secs_f64());
    let result = match started {
        Ok(server) => {
            let said = format!("{} starts: ready after {ready}\n", server.title());
            server.stop();
            output::put(&said)
        }
        Err(error) => {
            let said = format!("it is installed but does not start: {error}");
            Err(Stop::new(Exit::Target, said))
        }
    };
    result.map(|()| Exit::Done)
}

fn failed(error: &InstallError) -> Stop {
    let exit = match error {
        InstallError::DiskFull { .. }
        | InstallError::Unwritable { .. }
        | InstallError::Process(ProcessError::Unwritable { .. }) => Exit::Record,
        InstallError::NoPackage { .. } | InstallError::NoCache => Exit::Usage,
        _ => Exit::Target,
    };
    Stop::new(exit, error)
}
