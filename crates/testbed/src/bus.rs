//! A bus for a fleet: nats-server with JetStream, in its own folder, on an address of the caller's
//! choice. As a target (`targets/nats-server.toml`) the same server is measured on loopback.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::managed::made_absolute;
use crate::process::{Ended, ManagedProcess, ProcessError, Start};

/// A running bus; dropping it stops it.
#[derive(Debug)]
pub struct ManagedBus {
    process: ManagedProcess,
    address: SocketAddr,
}

impl ManagedBus {
    /// Starts nats-server with its configuration, log and store in `folder`, and waits until it is
    /// ready. Port 0 of `listen` takes a free port. Clients need `token`, if there is one: it is in
    /// a file that only this user can read, and not in the server's arguments.
    ///
    /// # Errors
    /// A program that does not start or ends early, and a folder that cannot be written.
    pub fn start(
        program: &Path,
        folder: &Path,
        listen: SocketAddr,
        token: Option<&str>,
    ) -> Result<ManagedBus, ProcessError> {
        let folder = made_absolute(folder)?;
        let path = folder.join("bus.conf");
        let (store, ports) = (folder.join("store"), folder.join("ports"));
        let made = [&store, &ports].into_iter().try_for_each(|own| made_private(own));
        let text = configuration(listen, token, &store, &ports);
        made.and_then(|()| write_private(&path, &text))
            .map_err(|error| ProcessError::Unwritable { path: path.clone(), error })?;
        let start = Start {
            program: program.to_owned(),
            arguments: vec!["--config".into(), path.into()],
            environment: Vec::new(),
            folder: folder.clone(),
            log: Some(folder.join("bus.log")),
            cores: None,
            piped: false,
            door: None,
            enclosure: None,
        };
        let mut process = ManagedProcess::start(&start)?;
        let pid = process.pid();
        let mut port = None;
        let awaited = format!("listen and log {READY_LINE:?}");
        process.wait_ready(&awaited, READY_WITHIN, |process| {
            port = port.or_else(|| port_of(&ports, pid));
            port.is_some() && process.log_holds(READY_LINE)
        })?;
        let address = SocketAddr::new(listen.ip(), port.unwrap_or(listen.port()));
        Ok(ManagedBus { process, address })
    }

    /// Address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// How it ended; `None` while it runs.
    pub fn ended(&mut self) -> Option<Ended> {
        self.process.ended()
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        self.process.log_tail(lines)
    }

    /// Stops it; its folder stays.
    pub fn stop(self) -> Ended {
        self.process.stop(Signal::TERM, GRACE)
    }
}

/// The server's configuration. Strings of JSON are strings of its language too.
fn configuration(listen: SocketAddr, token: Option<&str>, store: &Path, ports: &Path) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let path = |path: &Path| quoted(&path.display().to_string());
    // For the server 0 is its usual port, and -1 a free one.
    let port = if listen.port() == 0 { -1 } else { i32::from(listen.port()) };
    let mut text = format!("host: {}\nport: {port}\n", quoted(&listen.ip().to_string()));
    text += &format!("ports_file_dir: {}\n", path(ports));
    text += &format!("jetstream {{ store_dir: {} }}\n", path(store));
    if let Some(token) = token {
        text += &format!("authorization {{ token: {} }}\n", quoted(token));
    }
    text
}

/// Makes a folder that only this user can enter: messages of a fleet are stored there.
fn made_private(folder: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file: File =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// The port in the file that the server writes when it listens: `{"nats":["nats://HOST:PORT"]}`.
fn port_of(folder: &Path, pid: u32) -> Option<u16> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    let end = format!("_{pid}.ports");
    let is_own = |path: &PathBuf| path.to_string_lossy().ends_with(&end);
    let text = fs::read_to_string(entries.map(|entry| entry.path()).find(is_own)?).ok()?;
    let ports: serde_json::Value = serde_json::from_str(&text).ok()?;
    ports["nats"][0].as_str()?.rsplit_once(':')?.1.parse().ok()
}

/// Time for the server to start; it takes 0.1 s.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// What the server logs once it is ready.
const READY_LINE: &str = "Server is ready";

/// Time for the server to write its store before it is killed.
const GRACE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotation_marks_in_a_token_end_nothing() {
        let listen = "[::1]:0".parse().unwrap();
        let text = configuration(listen, Some("a\" }\nb"), Path::new("/s p"), Path::new("/p"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "host: \"::1\"",
                "port: -1",
                "ports_file_dir: \"/p\"",
                "jetstream { store_dir: \"/s p\" }",
                "authorization { token: \"a\\\" }\\nb\" }",
            ]
        );
    }

    #[test]
    fn a_port_is_read_from_the_file_of_this_process_alone() {
        let folder = std::env::temp_dir().join(format!("weigh-bus-ports-{}", std::process::id()));
        made_private(&folder).unwrap();
        let file = folder.join("nats-server_17.ports");
        fs::write(&file, "{\"nats\":[\"nats://127.0.0.1:4711\"],\"monitoring\":[]}").unwrap();
        assert_eq!((port_of(&folder, 17), port_of(&folder, 7)), (Some(4711), None));
        fs::remove_dir_all(&folder).unwrap();
    }
}
