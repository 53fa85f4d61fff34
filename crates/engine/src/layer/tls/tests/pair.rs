//! An echo of frames inside TLS: both ends, and the transport between them.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Emit, Fault, Op, Outbox, Reply, Signal, Ticket};
use weigh_model::protocol::{Dial, Host, Lifetime, Role, Seat, Transport};
use weigh_model::server::{ConnectionId, Outboxes, Record, Server, ServerReport};

use crate::layer::tls::{
    Certificates, ClientChoice, Identity, MadeFor, ServerChoice, Tally, TlsError, Versions,
    secure_dial, secure_host,
};

/// Setting of both ends.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) versions: Versions,
    pub(super) server_versions: Option<Versions>,
    pub(super) mutual: bool,
    pub(super) shows_itself: bool,
    pub(super) resumes: bool,
    pub(super) verifies: bool,
    pub(super) name: &'static str,
    pub(super) offered: &'static str,
    pub(super) taken: &'static str,
    pub(super) authority: Option<PathBuf>,
    pub(super) identity: Option<Identity>,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting {
            versions: Versions::Both,
            server_versions: None,
            mutual: false,
            shows_itself: true,
            resumes: true,
            verifies: true,
            name: "localhost",
            offered: "",
            taken: "",
            authority: None,
            identity: None,
        }
    }
}

/// Both ends, to make connections of.
pub(super) struct Made {
    pub(super) dial: Dial,
    pub(super) host: Host,
    pub(super) client_tally: Arc<Tally>,
    _folder: Folder,
}

impl Setting {
    pub(super) fn made(&self) -> Made {
        self.try_made().unwrap()
    }

    pub(super) fn try_made(&self) -> Result<Made, TlsError> {
        let folder = Folder::new();
        let certificates = Certificates::make(&folder.0)?;
        let identity = |whom| {
            let (certificate, key) = certificates.of(whom);
            Identity { certificate, key }
        };
        let words = |text: &str| -> Vec<Vec<u8>> {
            text.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
        };
        let client = ClientChoice {
            versions: self.versions,
            authority: Some(self.authority.clone().unwrap_or_else(|| certificates.authority())),
            identity: (self.mutual && self.shows_itself).then(|| identity(MadeFor::Client)),
            name: self.name.to_owned(),
            alpn: words(self.offered),
            resumes: self.resumes,
            verifies: self.verifies,
        };
        let server = ServerChoice {
            versions: self.server_versions.unwrap_or(self.versions),
            identity: self.identity.clone().unwrap_or_else(|| identity(MadeFor::Server)),
            clients: self.mutual.then(|| certificates.authority()),
            alpn: words(self.taken),
            resumes: self.resumes,
        };
        let client_tally = Arc::default();
        Ok(Made {
            dial: secure_dial(plain_dial(), &client, &client_tally)?,
            host: secure_host(plain_host(), &server, &Arc::default())?,
            client_tally,
            _folder: folder,
        })
    }
}

/// A folder of one test, gone after it.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("weigh-tls-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One connection, both its ends and what is under way.
pub(super) struct Pair {
    connection: Option<Box<dyn Connection>>,
    server: Box<dyn Server>,
    out: Outbox,
    outboxes: Staged,
    pieces: Vec<usize>,
    next_piece: usize,
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    now: Nanos,
    is_ready: bool,
    corrupts: bool,
    answers: Vec<Vec<u8>>,
    pub(super) fault: Option<Fault>,
    pub(super) server_fault: Option<Fault>,
}

impl Pair {
    /// A connection whose bytes travel in pieces of these lengths, over and over.
    pub(super) fn new(made: &Made, pieces: Vec<usize>) -> Pair {
        let mut pair = Pair {
            connection: Some((made.dial.make)(Seat { index: 0, role: Role::Producer })),
            server: (made.host.make)(0),
            out: Outbox::default(),
            outboxes: Staged::default(),
            pieces,
            next_piece: 0,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            now: Nanos(0),
            is_ready: false,
            corrupts: false,
            answers: Vec::new(),
            fault: None,
            server_fault: None,
        };
        pair.server.accepted(LINE, pair.now, &mut pair.outboxes);
        let mut is_ready = false;
        if let Some(connection) = &mut pair.connection {
            connection
                .open(pair.now, &mut pair.out, &mut |signal| is_ready |= signal == Signal::Ready);
        }
        assert!(!is_ready, "nothing is ready before the handshake");
        pair
    }

    /// Carries bytes to and fro until both are silent.
    pub(super) fn run(&mut self) {
        loop {
            self.collect();
            let piece = self.pieces[self.next_piece % self.pieces.len()];
            self.next_piece += 1;
            if !self.to_server.is_empty() {
                self.now = self.now + Nanos::from_millis(1);
                let bytes = piece_of(&mut self.to_server, piece);
                if self.server_fault.is_none() {
                    let result = self.server.receive(LINE, &bytes, self.now, &mut self.outboxes);
                    self.server_fault = result.err();
                }
            } else if !self.to_client.is_empty() {
                self.now = self.now + Nanos::from_millis(1);
                let bytes = piece_of(&mut self.to_client, piece);
                self.deliver(&bytes);
            } else {
                return;
            }
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    pub(super) fn answers(&self) -> Vec<Vec<u8>> {
        self.answers.clone()
    }

    pub(super) fn send(&mut self, body: &[u8]) {
        let Some(connection) = &mut self.connection else { return };
        assert!(connection.room() > 0, "not ready");
        let op = Op { ticket: Ticket(0), body };
        assert_eq!(connection.send(&op, self.now, &mut self.out), Reply::Awaited);
    }

    /// Turns over a bit of the last byte that is under way to the server.
    pub(super) fn corrupt_next(&mut self) {
        self.corrupts = true;
    }

    /// The server closes the session.
    pub(super) fn close(&mut self) {
        self.send(CLOSE);
    }

    /// Returns the client's reaction to the end of the transport.
    pub(super) fn ended(&mut self) -> Result<(), Fault> {
        let connection = self.connection.as_mut().unwrap();
        connection.end(&[], &mut |_| {})
    }

    pub(super) fn drop_client(&mut self) {
        self.connection = None;
    }

    /// Hands the client bytes that the server of this test did not send.
    pub(super) fn deliver(&mut self, bytes: &[u8]) {
        let Pair { connection, out, is_ready, answers, .. } = self;
        let Some(connection) = connection else { return };
        if self.fault.is_some() {
            return;
        }
        let result = connection.receive(bytes, self.now, out, &mut |signal| match signal {
            Signal::Ready => *is_ready = true,
            Signal::Message { body, .. } => answers.push(body.to_vec()),
            _ => {}
        });
        match result {
            Ok(taken) => assert_eq!(taken, bytes.len(), "the layer keeps what is half received"),
            Err(fault) => self.fault = Some(fault),
        }
    }

    fn collect(&mut self) {
        self.to_server.extend(self.out.bytes());
        self.out.clear();
        if std::mem::take(&mut self.corrupts)
            && let Some(last) = self.to_server.back_mut()
        {
            *last ^= 1;
        }
        self.to_client.extend(self.outboxes.staged.drain(..));
    }
}

fn piece_of(bytes: &mut VecDeque<u8>, length: usize) -> Vec<u8> {
    bytes.drain(..length.min(bytes.len())).collect()
}

const LINE: ConnectionId = ConnectionId(3);
const CLOSE: &[u8] = b"please close";

#[derive(Default)]
struct Staged {
    staged: Vec<u8>,
}

impl Outboxes for Staged {
    fn stage(&mut self, to: ConnectionId) -> &mut Vec<u8> {
        assert_eq!(to, LINE);
        &mut self.staged
    }

    fn frame(&mut self, _to: ConnectionId) {}

    fn pending_bytes(&self, _of: ConnectionId) -> usize {
        self.staged.len()
    }

    fn notify_drained(&mut self, _of: ConnectionId) {}

    fn hold(&mut self, _which: ConnectionId) {}

    fn release(&mut self, _which: ConnectionId) {}

    fn close(&mut self, _which: ConnectionId) {}

    fn abort(&mut self, _which: ConnectionId) {}

    fn notify_shard(&mut self, _shard: u16) {}

    fn store(&mut self, _record: Record<'_>) {}

    fn stores(&self) -> bool {
        false
    }
}

fn plain_dial() -> Dial {
    Dial {
        transport: Transport::Stream,
        lifetime: Lifetime::Kept,
        confirms: true,
        is_answered: false,
        producer_of: None,
        make: Box::new(|_| Box::new(Frames)),
    }
}

fn plain_host() -> Host {
    Host { transport: Transport::Stream, make: Box::new(|_| Box::new(Echo::default())) }
}

/// A length of 4 bytes, then the body.
struct Frames;

impl Connection for Frames {
    fn open(&mut self, _now: Nanos, _out: &mut Outbox, emit: Emit<'_>) {
        emit(Signal::Ready);
    }

    fn room(&self) -> u32 {
        u32::MAX
    }

    fn send(&mut self, op: &Op<'_>, _now: Nanos, out: &mut Outbox) -> Reply {
        out.put(&(op.body.len() as u32).to_be_bytes());
        out.put(op.body);
        Reply::Awaited
    }

    fn receive(
        &mut self,
        input: &[u8],
        _now: Nanos,
        _out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while let Some(body) = frame(&input[taken..]) {
            emit(Signal::Message { topic: &[], body });
            taken += 4 + body.len();
        }
        Ok(taken)
    }
}

fn frame(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32::from_be_bytes(*bytes.first_chunk::<4>()?) as usize;
    bytes.get(4..4 + length)
}

#[derive(Default)]
struct Echo {
    report: ServerReport,
}

impl Server for Echo {
    fn accepted(&mut self, _connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {
        self.report.connections += 1;
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _now: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        assert_eq!(self.report.connections, 1, "accepted comes first, once");
        let mut taken = 0;
        while let Some(body) = frame(&input[taken..]) {
            taken += 4 + body.len();
            if body == CLOSE {
                out.close(connection);
                continue;
            }
            out.stage(connection).extend_from_slice(&(body.len() as u32).to_be_bytes());
            out.stage(connection).extend_from_slice(body);
        }
        Ok(taken)
    }

    fn closed(&mut self, _connection: ConnectionId, _now: Nanos, _out: &mut dyn Outboxes) {}

    fn report(&self) -> ServerReport {
        self.report.clone()
    }
}
