//! The watchers of a run: a terminal, a page that a client reads, and metrics that are scraped once
//! a second, all at the same time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

/// Watchers that run beside a trial.
pub(crate) struct Watchers {
    server: Child,
    socket: String,
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
    read: Arc<AtomicU64>,
}

impl Watchers {
    /// Starts them for the newest run below `runs`, as soon as there is one.
    pub(crate) fn start(weigh: &Path, runs: &Path) -> anyhow::Result<Watchers> {
        let until = Instant::now() + BEGINS_WITHIN;
        while !has_run(runs) {
            ensure!(Instant::now() < until, "no run began below {}", runs.display());
            std::thread::sleep(Duration::from_millis(10));
        }
        let socket = format!("weigh-watch-{}", std::process::id());
        let command = format!("{} watch --runs {}", weigh.display(), runs.display());
        let size = ["-x", "80", "-y", "24"];
        let status = tmux(&socket).args(["new-session", "-d"]).args(size).arg(&command).status();
        ensure!(status.context("starting tmux")?.success(), "tmux did not start");
        let mut server = Command::new(weigh)
            .args(["watch", "--web", "127.0.0.1:0", "--runs"])
            .arg(runs)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(server.stderr.take().context("its stderr")?).lines();
        let line = lines.next().context("the watcher printed no address")??;
        let (_, url) = line.split_once("http://").with_context(|| line.clone())?;
        let address = url.trim_end_matches('/').to_owned();
        let is_over = Arc::new(AtomicBool::new(false));
        let read = Arc::new(AtomicU64::new(0));
        let clients = vec![
            client(address.clone(), "/events", None, (&is_over, &read)),
            client(address, "/metrics", Some(Duration::from_secs(1)), (&is_over, &read)),
        ];
        Ok(Watchers { server, socket, is_over, clients, read })
    }

    /// Ends them, and returns the bytes that their clients have read.
    pub(crate) fn end(mut self) -> anyhow::Result<u64> {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = tmux(&self.socket).arg("kill-server").stderr(Stdio::null()).status();
        self.server.kill()?;
        self.server.wait()?;
        for client in self.clients {
            let _ = client.join();
        }
        Ok(self.read.load(Ordering::Relaxed))
    }
}

fn tmux(socket: &str) -> Command {
    let mut tmux = Command::new("tmux");
    tmux.args(["-L", socket, "-f", "/dev/null"]).stdin(Stdio::null());
    tmux
}

fn has_run(runs: &Path) -> bool {
    let folders = std::fs::read_dir(runs).into_iter().flatten().flatten();
    folders.into_iter().any(|folder| folder.path().join("journal.jsonl").is_file())
}

/// A client that reads one path, once or again after each pause.
fn client(
    address: String,
    path: &'static str,
    pause: Option<Duration>,
    (is_over, read): (&Arc<AtomicBool>, &Arc<AtomicU64>),
) -> JoinHandle<()> {
    let (is_over, read) = (Arc::clone(is_over), Arc::clone(read));
    std::thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            let _ = answer(&address, path, &is_over, &read);
            std::thread::sleep(pause.unwrap_or(Duration::from_millis(100)));
        }
    })
}

fn answer(
    address: &str,
    path: &str,
    is_over: &AtomicBool,
    read: &AtomicU64,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut block = vec![0; 1 << 16];
    while !is_over.load(Ordering::Relaxed) {
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(bytes) => {
                read.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Time in which a run makes its folder: the baseline may be measured first.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);
