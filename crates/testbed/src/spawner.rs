//! The thread that starts every child. The kernel sends the parent-death signal when the
//! *thread* that forked ends (prctl(2), PR_SET_PDEATHSIG), so children are forked by one that
//! lives as long as the program.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A command to start, and where to send the result.
type Birth = (Command, Sender<io::Result<Child>>);

static NURSERY: OnceLock<Mutex<Sender<Birth>>> = OnceLock::new();

/// Starts the command from the thread that never ends.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    let gone = || io::Error::other("the thread that starts processes has ended");
    let (reply, answer) = channel();
    nursery()?
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send((command, reply))
        .map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

fn nursery() -> io::Result<&'static Mutex<Sender<Birth>>> {
    if let Some(nursery) = NURSERY.get() {
        return Ok(nursery);
    }
    let (births, to_start) = channel::<Birth>();
    std::thread::Builder::new().name("weigh-nursery".to_owned()).spawn(move || {
        for (mut command, reply) in to_start {
            if let Err(unheard) = reply.send(command.spawn())
                && let Ok(mut child) = unheard.0
            {
                // The caller has gone; the child must not outlive the request.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    })?;
    // A thread started by a caller that lost this race ends with its channel.
    Ok(NURSERY.get_or_init(|| Mutex::new(births)))
}
