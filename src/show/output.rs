//! Standard output, where it may be a full disk or a pipe that nobody reads any more.

use std::io::{ErrorKind, Write};

use weigh_model::visible::visible;

use weigh_runner::exit::{Exit, Stop};

/// Writes `text` to standard output. Whoever closed the pipe (`| head`) has read what he wanted.
/// Control characters are made visible, since what is shown was named by others: runs, targets,
/// questions.
pub fn put(text: &str) -> Result<(), Stop> {
    put_bytes(visible(text).as_bytes())
}

/// The same of what may be no text.
pub fn put_bytes(bytes: &[u8]) -> Result<(), Stop> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Stop::new(
            Exit::Record,
            format!("standard output cannot be written: {error}; send it elsewhere"),
        )),
        _ => Ok(()),
    }
}
