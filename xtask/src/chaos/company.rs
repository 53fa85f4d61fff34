//! Programs that run beside the one of an episode: who watches it, or makes its load.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::journals::below;
use super::kind::Kind;
use super::place::{Place, ends_within};
use crate::guarded::Guarded;

/// The other programs of an episode.
#[derive(Default)]
pub(super) struct Company {
    /// By name.
    programs: Vec<(&'static str, Guarded)>,
    /// Words that the program needs to use them.
    pub(super) words: Vec<String>,
    readers: Vec<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

impl Company {
    /// Starts those that must be there before the program.
    pub(super) fn before(kind: Kind, place: &Place) -> anyhow::Result<Company> {
        let mut company = Company::default();
        if kind != Kind::Fleet {
            return Ok(company);
        }
        let mut bus = place.weigh(&["fleet", "up", "--listen", "127.0.0.1:0"]);
        let mut bus = Guarded(bus.stdout(Stdio::piped()).spawn()?);
        let mut lines = BufReader::new(bus.stdout.take().context("its stdout")?).lines();
        let line = lines.next().context("the bus printed no address: is nats-server there?")??;
        let url = line.strip_prefix("listening on ").with_context(|| line.clone())?.to_owned();
        company.programs.push(("the bus", bus));
        for rank in ["0", "1"] {
            let words = ["agent", "--bus", &url, "--may-load", "127.0.0.1:*", "--rank", rank];
            company.programs.push(("an agent", Guarded(place.weigh(&words).spawn()?)));
        }
        let words = ["--fleet", &url, "--agents", "2", "--fleet-wait", "10s"];
        company.words = words.map(str::to_owned).to_vec();
        Ok(company)
    }

    /// Starts those that need the program to have begun.
    pub(super) fn after(
        &mut self,
        kind: Kind,
        place: &Place,
        program: &mut Child,
    ) -> anyhow::Result<()> {
        if kind != Kind::Watch {
            return Ok(());
        }
        let begun = Instant::now();
        while below(&place.folder.join("runs"), "journal.jsonl").is_empty() {
            if program.try_wait()?.is_some() {
                return Ok(());
            }
            if begun.elapsed() > BEGINS_WITHIN {
                bail!("no run began within {BEGINS_WITHIN:?}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut watch = place.weigh(&["watch", "--web", "127.0.0.1:0"]);
        let mut watch = Guarded(watch.stderr(Stdio::piped()).spawn()?);
        let mut lines = BufReader::new(watch.stderr.take().context("its stderr")?).lines();
        let line = lines.next().context("the watcher printed no address")??;
        let (_, url) = line.split_once("http://").with_context(|| line.clone())?;
        let address = url.trim_end_matches('/').to_owned();
        self.programs.push(("the watcher", watch));
        let is_over = Arc::clone(&self.is_over);
        self.readers.push(std::thread::spawn(move || read(&address, &is_over)));
        // A program that cannot write to its stderr would end by that.
        self.readers.push(std::thread::spawn(move || lines.for_each(drop)));
        Ok(())
    }

    /// Asks all of them to end, and says which did not.
    pub(super) fn end(mut self) -> anyhow::Result<Vec<String>> {
        let mut faults = Vec::new();
        self.is_over.store(true, Ordering::Relaxed);
        // Agents and watchers first: they are not to report a bus that is gone.
        for (name, child) in self.programs.iter_mut().rev() {
            if child.try_wait()?.is_none()
                && let Some(pid) = Pid::from_raw(i32::try_from(child.id())?)
            {
                let _ = kill_process(pid, Signal::TERM);
            }
            if !ends_within(child, PATIENCE)? {
                faults.push(format!("{name} did not end within {PATIENCE:?} of SIGTERM"));
                child.kill()?;
                child.wait()?;
            }
        }
        for reader in self.readers {
            let _ = reader.join();
        }
        Ok(faults)
    }
}

/// Reads the events of a watcher until it is gone or the episode is over.
fn read(address: &str, is_over: &AtomicBool) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let _ = write!(stream, "GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut block = [0; 4096];
    while !is_over.load(Ordering::Relaxed) {
        match stream.read(&mut block) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// Time in which a run makes its journal: the baseline may be measured first.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);

/// Longest time for a program to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(20);
