//! A `nats-server` of a test's own: a free port, JetStream in a temporary folder.

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weigh_fleet::BusOptions;

/// A running server. Dropping it stops it.
pub struct Nats {
    child: Child,
    pub folder: TempDir,
    pub address: SocketAddr,
}

impl Nats {
    /// Starts a server with JetStream; `None`, with a word about it, where none is installed.
    pub fn start(test: &str) -> Option<Nats> {
        Nats::with(test, "jetstream { store_dir: \"STORE\" }")
    }

    /// Starts a server with this configuration; `STORE` in it is a folder.
    pub fn with(test: &str, configuration: &str) -> Option<Nats> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let store = path("store").display().to_string();
        let text = configuration.replace("STORE", &store);
        fs::write(path("nats.conf"), format!("listen: 127.0.0.1:-1\n{text}\n")).unwrap();
        let spawned = ["nats-server", "/usr/sbin/nats-server"].iter().find_map(|program| {
            Command::new(program)
                .arg("-c")
                .arg(path("nats.conf"))
                .args(["-l", &path("log").display().to_string()])
                .args(["--ports_file_dir", &folder.path().display().to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .ok()
        });
        let Some(child) = spawned else {
            let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!is_ci, "nats-server is not installed: apt-get install nats-server");
            eprintln!("SKIPPED {test}: nats-server is not installed");
            return None;
        };
        let ports = path(&format!("nats-server_{}.ports", child.id()));
        let mut nats = Nats { child, folder, address: ([127, 0, 0, 1], 0).into() };
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let text = fs::read_to_string(&ports).unwrap_or_default();
            if let Some(at) = text.find("://127.0.0.1:") {
                let rest = &text[at + "://".len()..];
                let end = rest.find('"').unwrap();
                nats.address = rest[..end].parse().unwrap();
                return Some(nats);
            }
            if Instant::now() > until || nats.child.try_wait().unwrap().is_some() {
                let log = fs::read_to_string(nats.folder.path().join("log")).unwrap_or_default();
                panic!("nats-server does not start: {log}");
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn bus(&self) -> BusOptions {
        bus(self.address)
    }
}

/// The bus at this address.
pub fn bus(address: SocketAddr) -> BusOptions {
    BusOptions { url: format!("nats://{address}"), ..BusOptions::default() }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
