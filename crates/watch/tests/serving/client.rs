//! A server of a folder, and a client that reads HTTP/1.1 without a library.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use weigh_watch::web::{Serving, serve};

/// The stored run: 12 trials of 60 messages.
pub fn stored() -> PathBuf {
    let place = "../../tests/stored/compare/2026-11-23T03-55-39-compare";
    Path::new(env!("CARGO_MANIFEST_DIR")).join(place)
}

/// A folder with a copy of the stored journal.
pub fn copied() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(stored().join("journal.jsonl"), folder.path().join("journal.jsonl")).unwrap();
    folder
}

/// Serves `folder` in a thread that lives as long as the test, and returns the address and the
/// query of the URL.
pub fn served(folder: &Path, bound: &str) -> (SocketAddr, String) {
    serving_at(folder, Serving { page: Some(bound.parse().unwrap()), ..Serving::default() })
}

/// Serves what is asked for, at one address.
pub fn serving_at(folder: &Path, serving: Serving) -> (SocketAddr, String) {
    let folder = folder.to_owned();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let said = |text: &str| sender.send(text.to_owned()).unwrap();
        serve(&folder, serving, &said).unwrap();
    });
    let said = receiver.recv_timeout(Duration::from_secs(120)).unwrap();
    let (_, url) = said.split_once("http://").expect("a URL");
    let (address, rest) = url.split_once('/').unwrap();
    let mut address: SocketAddr = address.parse().unwrap();
    if address.ip().is_unspecified() {
        address.set_ip([127, 0, 0, 1].into());
    }
    (address, rest.to_owned())
}

/// An answer, whose body may still come.
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its headers, in lower case.
    pub headers: String,
    body: BufReader<TcpStream>,
    /// Bytes of the body that are read, of which those from `at` on are not taken.
    rest: Vec<u8>,
    at: usize,
    is_chunked: bool,
}

/// Sends a request with further header lines.
pub fn request(server: SocketAddr, path: &str, headers: &[&str]) -> Answer {
    let host = format!("Host: {server}");
    let has_host = headers.iter().any(|line| line.starts_with("Host:"));
    let mut lines = vec![format!("GET {path} HTTP/1.1")];
    lines.extend((!has_host).then_some(host));
    lines.extend(headers.iter().map(|line| (*line).to_owned()));
    send(server, &format!("{}\r\n\r\n", lines.join("\r\n")))
}

/// Sends the text of a request.
pub fn send(server: SocketAddr, text: &str) -> Answer {
    let mut stream = TcpStream::connect(server).unwrap();
    // The server runs only when a core is idle.
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut body = BufReader::new(stream);
    let mut headers = String::new();
    while !headers.ends_with("\r\n\r\n") {
        assert!(body.read_line(&mut headers).unwrap() > 0, "{headers}");
    }
    let headers = headers.to_ascii_lowercase();
    let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
    let is_chunked = headers.contains("transfer-encoding: chunked");
    Answer { status, headers, body, rest: Vec::new(), at: 0, is_chunked }
}

impl Answer {
    /// All of the body, of an answer with a length.
    pub fn text(mut self) -> String {
        let find = |line: &str| line.strip_prefix("content-length: ")?.trim().parse().ok();
        let length: usize = self.headers.lines().find_map(find).expect(&self.headers);
        let mut body = vec![0; length];
        self.body.read_exact(&mut body).unwrap();
        String::from_utf8(body).unwrap()
    }

    /// The next event of a stream; `None` at its end.
    pub fn event(&mut self) -> Option<Sent> {
        loop {
            let rest = &self.rest[self.at..];
            if let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
                let block = std::str::from_utf8(&rest[..end]).unwrap();
                self.at += end + 2;
                let field = |name: &str| {
                    let found = block.lines().find_map(|line| line.strip_prefix(name));
                    found.map(str::to_owned)
                };
                let Some(name) = field("event: ") else { continue };
                let id = field("id: ");
                // The id of a run of a study begins with its name.
                let (run, id) = match id.as_deref().and_then(|id| id.rsplit_once(':')) {
                    Some((run, id)) => (Some(run.to_owned()), Some(id.to_owned())),
                    None => (None, id),
                };
                let id = id.map(|id| id.parse().unwrap());
                return Some(Sent { name, run, id, data: field("data: ").unwrap() });
            }
            self.chunk()?;
        }
    }

    /// Events up to the first of this name, which is the last.
    pub fn until(&mut self, name: &str) -> Vec<Sent> {
        let mut events = Vec::new();
        loop {
            let event = self.event().unwrap_or_else(|| panic!("{name} after {events:?}"));
            let is_last = event.name == name;
            events.push(event);
            if is_last {
                return events;
            }
        }
    }

    /// Reads a chunk (RFC 9112, section 7.1).
    fn chunk(&mut self) -> Option<()> {
        assert!(self.is_chunked, "{}", self.headers);
        let mut size = String::new();
        self.body.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        self.body.read_exact(&mut chunk).unwrap();
        self.rest.drain(..std::mem::take(&mut self.at));
        self.rest.extend_from_slice(&chunk[..size]);
        (size > 0).then_some(())
    }
}

/// A server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// Its name.
    pub name: String,
    /// The run that its id names; `None` where a single run is watched.
    pub run: Option<String>,
    /// Its id: the end of a line of the journal.
    pub id: Option<u64>,
    /// Its data.
    pub data: String,
}
