//! A server in its own process, whose memory and open files show what watching costs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use weigh_model::live::{SLOT_BYTES, Second};
use weigh_watch::process::Resources;

use crate::client::{copied, request, stored};

/// A server that ends with the test.
struct Server {
    child: Child,
    address: SocketAddr,
    /// Stays open: a process that cannot print ends.
    _output: BufReader<ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// This test binary again, as a server of `folder`.
    fn start(folder: &Path) -> Server {
        let own = std::env::current_exe().unwrap();
        let mut child = Command::new(own)
            .args(["--exact", "large::serve_in_this_process", "--nocapture", "--ignored"])
            .env("WEIGH_WATCH_SERVED", folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let url = output.by_ref().lines().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("http://")?;
            rest.split('/').next()?.parse().ok()
        });
        Server { child, address: url.expect("a URL"), _output: output }
    }

    fn resources(&self) -> Resources {
        Resources::of(self.child.id())
    }
}

/// Started by the others in a process of its own.
#[test]
#[ignore = "a server, which does not end"]
fn serve_in_this_process() {
    let Some(folder) = std::env::var_os("WEIGH_WATCH_SERVED") else { return };
    let serving = weigh_watch::web::Serving {
        page: Some("127.0.0.1:0".parse().unwrap()),
        ..Default::default()
    };
    weigh_watch::web::serve(Path::new(&folder), serving, &|text| println!("{text}")).unwrap();
}

#[test]
fn a_browser_that_leaves_gives_its_files_back() {
    let folder = copied();
    let server = Server::start(folder.path());
    let files = || server.resources().open_files.unwrap();
    let before = files();
    let mut streams: Vec<_> = (0..8).map(|_| request(server.address, "/events", &[])).collect();
    streams.iter_mut().for_each(|stream| drop(stream.until("ended")));
    let during = files();
    assert!(during >= before + 16, "a socket and a journal each: {before} then {during}");
    drop(streams);
    let begun = Instant::now();
    while files() > before {
        assert!(begun.elapsed() < Duration::from_secs(60), "{before} then {}", files());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A run that is recorded, and a browser that watches it: at most 1 % of a core.
#[test]
fn watching_costs_next_to_nothing() {
    let folder = copied();
    let journal = File::open(folder.path().join("journal.jsonl")).unwrap();
    journal.lock().unwrap();
    let second = Second { number: 1, pid: std::process::id(), end: 1, ..Second::default() };
    let slots = [vec![0; SLOT_BYTES], second.to_slot().unwrap()].concat();
    fs::write(folder.path().join("live.jsonl"), slots).unwrap();
    let server = Server::start(folder.path());
    let mut stream = request(server.address, "/events", &[]);
    stream.until("resources");
    let before = server.resources().cpu_s.unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        stream.until("resources");
    }
    let used = server.resources().cpu_s.unwrap() - before;
    let share = used / begun.elapsed().as_secs_f64();
    assert!(share < 0.01, "{} % of a core", 100.0 * share);
}

/// Two browsers, of which one reads nothing: the journal must not come into memory for it.
#[test]
fn a_journal_of_80_megabytes_passes_through_flat_memory() {
    let folder = tempfile::tempdir().unwrap();
    let journal = File::create(folder.path().join("journal.jsonl")).unwrap();
    let mut journal = BufWriter::new(journal);
    let stored = fs::read_to_string(stored().join("journal.jsonl")).unwrap();
    let interval = stored.lines().find(|line| line.contains("\"interval\"")).unwrap();
    for line in stored.lines().take(3) {
        writeln!(journal, "{line}").unwrap();
    }
    for _ in 0..INTERVALS {
        writeln!(journal, "{interval}").unwrap();
    }
    journal.flush().unwrap();
    let bytes = journal.get_ref().metadata().unwrap().len();
    let server = Server::start(folder.path());
    let memory = || server.resources().memory_bytes.unwrap();
    request(server.address, "/", &[]).text();
    let before = memory();
    let _idle = request(server.address, "/events", &[]);
    let mut stream = request(server.address, "/events", &[]);
    let (mut count, mut last, mut most) = (0u64, 0, before);
    while let Some(event) = stream.event() {
        if event.name == "ended" {
            break;
        }
        (count, last) = (count + 1, event.id.unwrap());
        if count % 20_000 == 0 {
            most = most.max(memory());
        }
    }
    assert_eq!((count, last), (INTERVALS + 3, bytes));
    let grown = most.max(memory()) - before;
    assert!(grown < 20 << 20, "{} KiB before, {} KiB more", before >> 10, grown >> 10);
}

/// Some 80 MB: four times what the server may grow by.
const INTERVALS: u64 = 250_000;
