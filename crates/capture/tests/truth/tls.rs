//! TLS 1.2 and 1.3, new and resumed, with and without a certificate of the client: every byte
//! against the sizes that the specifications give, the plaintext that went in, and tshark with the
//! keys.

use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rcgen::{CertifiedKey, KeyPair};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, KeyLog, RootCertStore, ServerConfig, ServerConnection, Stream,
    SupportedCipherSuite,
};
use weigh_capture::account::{Account, CodecCount, ContentBytes, Notes, Phase, StreamCounts};
use weigh_capture::files::{account_of, with_secrets};
use weigh_capture::{Capture, Counting, Filter, Options, Settings, Warning};

use crate::tshark;
use crate::world::{Offload, Scratch, has, inside};

/// A cipher suite and what it adds: nonce and trailer within the record, from RFC 8446, 5288, 7905.
pub struct Suite {
    pub suite: SupportedCipherSuite,
    pub version: u16,
    pub added: u64,
}

pub const SUITES: [Suite; 5] = [
    Suite { suite: cipher_suite::TLS13_AES_128_GCM_SHA256, version: 0x0304, added: 17 },
    Suite { suite: cipher_suite::TLS13_AES_256_GCM_SHA384, version: 0x0304, added: 17 },
    Suite { suite: cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, version: 0x0304, added: 17 },
    Suite {
        suite: cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        version: 0x0303,
        added: 24,
    },
    Suite {
        suite: cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        version: 0x0303,
        added: 16,
    },
];

const SIZES: [(usize, usize); 4] = [(1, 1), (1000, 3000), (100_000, 10), (10, 1_000_000)];

#[test]
fn sessions_over_tls_agree_with_formulas_and_tshark() {
    inside("tls::sessions_over_tls_agree_with_formulas_and_tshark", Offload::Off, || {
        let mut port = 7200;
        for suite in &SUITES {
            for mutual in [false, true] {
                let keys = Arc::new(Keys::default());
                let (client, server) = configs(suite, mutual, keys.clone());
                // A client's certificate changes the handshake, not what comes after.
                let sizes = if mutual { &SIZES[..2] } else { &SIZES };
                for (at, size) in sizes.iter().copied().enumerate() {
                    port += 1;
                    // The server learns to know the client in the first session.
                    let resumed = at > 0;
                    one_session(suite, port, size, [&client, &server], &keys, resumed);
                }
            }
        }
    });
}

fn one_session(
    suite: &Suite,
    port: u16,
    (request, answer): (usize, usize),
    [client, server]: [&Config; 2],
    keys: &Keys,
    resumed: bool,
) {
    let file = Scratch::new(&format!("{port}.pcapng"));
    let opened = Scratch::new(&format!("{port}.keys.pcapng"));
    let notes = Notes { connections: 1, packets: usize::MAX };
    let settings = Settings { filter: Filter::port(port), notes, ..Settings::default() };
    let options = Options { file: Some(file.0.clone()), ..Options::new("lo", settings.clone()) };
    let capture = Capture::start(options).unwrap();
    talk(port, request, answer, client, server);
    let mut account = capture.stop().unwrap();
    let tls = account.connections[0].tls.expect("TLS was spoken");
    assert_eq!(tls.version, Some(suite.version));
    assert_eq!(tls.suite, Some(u16::from(suite.suite.suite())));
    assert_eq!((tls.resumed, tls.overhead_exact, tls.lost), (resumed, true, false));
    let is_new = suite.version == 0x0304;
    let tickets: &[Warning] =
        if is_new { &[Warning::TlsTicketsHidden { connections: 1 }] } else { &[] };
    assert_eq!(account.warnings(), tickets);

    // The file tells the same as the ring.
    let as_captured = Settings { counting: Counting::AsCaptured, ..settings };
    let stored = account_of(&file.0, as_captured).unwrap();
    assert_eq!((stored.sent, stored.received), (account.sent, account.received));

    // Packet by packet it adds up to the same.
    let notes = &account.connections[0].notes;
    let both = account.sent.total() + account.received.total();
    assert_eq!(notes.iter().map(|note| note.packets).sum::<u64>(), both.packets);
    assert_eq!(notes.iter().map(|note| note.bytes).sum::<u64>(), both.bytes());
    let handshake: u64 = notes.iter().map(|note| note.tls_handshake_bytes).sum();
    assert!(handshake >= both.layers.tls_handshake, "{handshake}");

    let total = account.received.total().bytes();
    let hidden = account.received.total().layers.application - answer as u64;
    let count = |bytes: usize| {
        let (protocol, payload) = (0, bytes as u64);
        CodecCount { messages: ContentBytes { protocol, payload }, ..CodecCount::default() }
    };
    let counts = StreamCounts { sent: count(request), received: count(answer) };
    assert_eq!(account.attribute(&|_| Some(counts)), []);
    assert_eq!(account.warnings(), []);
    assert_eq!(account.received.total().bytes(), total, "attributing moves bytes, it adds none");
    eprintln!("{:?}, {request} B out, {answer} B in: {tls:?}", suite.suite.suite());

    check_sizes(&account, suite, (request, answer), hidden);
    if has("tshark") {
        with_secrets(&file.0, &opened.0, &keys.take()).unwrap();
        check_tshark(&account, &opened.0, port, suite, (request, answer));
    }
}

/// Records of content have the sizes that the specifications give them.
pub fn check_sizes(
    account: &Account,
    suite: &Suite,
    (request, answer): (usize, usize),
    hidden: u64,
) {
    let record = |bytes: usize| bytes.div_ceil(1 << 14) as u64 * (5 + suite.added);
    let (sent, received) = (&account.sent, &account.received);
    assert_eq!(sent.total().layers.payload, request as u64);
    assert_eq!(received.total().layers.payload, answer as u64);
    assert_eq!(sent.messages.layers.tls_record, record(request));
    // Tickets come in records of their own, or in one.
    let tickets = received.messages.layers.tls_record - record(answer);
    let most = if hidden > 0 { 2 * (5 + suite.added) } else { 0 };
    assert!(tickets <= most && tickets.is_multiple_of(5 + suite.added), "{tickets}");
    assert_eq!(tickets == 0, hidden == 0);
    for direction in [sent, received] {
        // The closing alert: two bytes.
        assert_eq!(direction.tear_down.layers.tls_record, 5 + suite.added + 2);
        assert_eq!(direction[Phase::Messages].layers.tls_handshake, 0);
    }
}

/// The sum of all records, by what is in them once they are decrypted.
pub fn check_tshark(
    account: &Account,
    file: &Path,
    port: u16,
    suite: &Suite,
    (request, answer): (usize, usize),
) {
    let fields = ["tcp.srcport", "tls.record.content_type", "tls.record.length", "frame.number"];
    let mut handshake = [0_u64; 2];
    let mut content = [0_u64; 2];
    let filter = format!("tls.record && tcp.port=={port}");
    // Between two cores the loopback interface now and then delivers out of order.
    let decode = format!("tcp.port=={port},tls");
    let more = ["-o", "tcp.reassemble_out_of_order:TRUE", "-d", &decode];
    for row in tshark::rows(file, &filter, &fields, &more) {
        let side = usize::from(row[0] == port.to_string());
        let kinds: Vec<&str> = row[1].split(',').collect();
        let lengths: Vec<u64> = row[2].split(',').map(|word| word.parse().unwrap()).collect();
        assert_eq!(kinds.len(), lengths.len(), "{row:?}");
        for (kind, length) in kinds.iter().zip(lengths) {
            match *kind {
                "20" | "22" => handshake[side] += 5 + length,
                "23" => content[side] += length - suite.added,
                "21" => assert_eq!(length, 2 + suite.added),
                other => panic!("a record of type {other:?}: {row:?}"),
            }
        }
    }
    assert_eq!(content, [request as u64, answer as u64], "decrypted by tshark");
    for (direction, seen) in [&account.sent, &account.received].iter().zip(handshake) {
        let layers = direction.total().layers;
        let record = |bytes: u64| bytes.div_ceil(1 << 14) * (5 + suite.added);
        // Of tickets the messages are handshake, and the records that carry them are records.
        let tickets = direction.messages.layers.tls_record - record(layers.payload);
        assert_eq!(layers.tls_handshake + tickets, seen);
    }
}

fn talk(port: u16, request: usize, answer: usize, client: &Config, server: &Config) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let Config::Server(server) = server.clone() else { panic!("a server's settings") };
    let Config::Client(client) = client.clone() else { panic!("a client's settings") };
    let thread = std::thread::spawn(move || {
        let mut session = ServerConnection::new(server).unwrap();
        let (mut socket, _) = listener.accept().unwrap();
        let mut stream = Stream::new(&mut session, &mut socket);
        let mut bytes = vec![0; request];
        stream.read_exact(&mut bytes).unwrap();
        stream.write_all(&vec![8; answer]).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
        session.send_close_notify();
        session.write_tls(&mut socket).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        while socket.read(&mut [0; 64]).unwrap() > 0 {}
    });
    let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut session = ClientConnection::new(client, name).unwrap();
    let mut stream = Stream::new(&mut session, &mut socket);
    stream.write_all(&vec![7; request]).unwrap();
    stream.read_exact(&mut vec![0; answer]).unwrap();
    stream.conn.send_close_notify();
    stream.conn.write_tls(stream.sock).unwrap();
    stream.sock.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    thread.join().unwrap();
}

#[derive(Clone)]
pub enum Config {
    Client(Arc<ClientConfig>),
    Server(Arc<ServerConfig>),
}

/// A self-signed certificate for both ends.
pub fn certificate() -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap()
}

fn configs(suite: &Suite, mutual: bool, keys: Arc<Keys>) -> (Config, Config) {
    configs_with(&certificate(), suite, mutual, keys)
}

pub fn configs_with(
    made: &CertifiedKey<KeyPair>,
    suite: &Suite,
    mutual: bool,
    keys: Arc<Keys>,
) -> (Config, Config) {
    let certificate = made.cert.der().clone();
    let key = || PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let roots = Arc::new(roots);
    let provider =
        Arc::new(CryptoProvider { cipher_suites: vec![suite.suite], ..default_provider() });
    let versions = [suite.suite.version()];
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)
        .unwrap();
    let server = if mutual {
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
        server.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        server.with_no_client_auth()
    };
    let mut server = server.with_single_cert(vec![certificate.clone()], key()).unwrap();
    server.key_log = keys.clone();
    let client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .unwrap()
        .with_root_certificates(roots);
    let mut client = if mutual {
        client.with_client_auth_cert(vec![certificate], key()).unwrap()
    } else {
        client.with_no_client_auth()
    };
    client.key_log = keys;
    (Config::Client(Arc::new(client)), Config::Server(Arc::new(server)))
}

/// Secrets in the form of SSLKEYLOGFILE.
#[derive(Default)]
pub struct Keys(Mutex<Vec<u8>>);

impl Keys {
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Keys")
    }
}

impl KeyLog for Keys {
    // Both ends log; readers do not mind a line that comes twice.
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        self.0.lock().unwrap().extend_from_slice(line.as_bytes());
    }
}
