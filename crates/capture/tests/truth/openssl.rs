//! A client by somebody else: OpenSSL sends certificate, verification and Finished in records of
//! their own, where rustls sends one.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::{ServerConnection, Stream};
use weigh_capture::account::{CodecCount, ContentBytes, StreamCounts};
use weigh_capture::files::with_secrets;
use weigh_capture::{Capture, Filter, Options, Settings};

use crate::tls::configs_with;
use crate::tls::{Config, Keys, SUITES, Suite, certificate, check_sizes, check_tshark};
use crate::world::{Offload, Scratch, has, inside};

const REQUEST: usize = 3000;
const ANSWER: usize = 20_000;

#[test]
fn a_client_of_openssl_with_a_certificate_of_its_own() {
    inside("openssl::a_client_of_openssl_with_a_certificate_of_its_own", Offload::Off, || {
        if !has("openssl") {
            return;
        }
        for (at, suite) in SUITES.iter().enumerate() {
            for (more, mutual) in [false, true].into_iter().enumerate() {
                one_session(suite, 7500 + 2 * at as u16 + more as u16, mutual);
            }
        }
    });
}

fn one_session(suite: &Suite, port: u16, mutual: bool) {
    let [file, opened] = ["", "keys."].map(|kind| Scratch::new(&format!("{port}.{kind}pcapng")));
    let keys = Arc::new(Keys::default());
    let made = certificate();
    let [certificate, key] = ["certificate", "key"].map(Scratch::new);
    std::fs::write(&certificate.0, made.cert.der()).unwrap();
    std::fs::write(&key.0, made.signing_key.serialize_der()).unwrap();
    let (_, Config::Server(server)) = configs_with(&made, suite, mutual, keys.clone()) else {
        panic!("a server's settings");
    };
    let settings = Settings { filter: Filter::port(port), ..Settings::default() };
    let options = Options { file: Some(file.0.clone()), ..Options::new("lo", settings) };
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let capture = Capture::start(options).unwrap();

    let mut client = Command::new("openssl");
    client.args(["s_client", "-quiet", "-connect", &format!("127.0.0.1:{port}")]);
    if mutual {
        client.args(["-certform", "DER", "-keyform", "DER", "-cert"]).arg(&certificate.0);
        client.arg("-key").arg(&key.0);
    }
    let mut client =
        client.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut words = client.stdin.take().unwrap();
    words.write_all(&[b'x'; REQUEST]).unwrap();
    let mut session = ServerConnection::new(server).unwrap();
    let (mut socket, _) = listener.accept().unwrap();
    let mut stream = Stream::new(&mut session, &mut socket);
    stream.read_exact(&mut [0; REQUEST]).unwrap();
    stream.write_all(&[8; ANSWER]).unwrap();
    stream.conn.send_close_notify();
    stream.conn.write_tls(stream.sock).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    while socket.read(&mut [0; 1000]).is_ok_and(|count| count > 0) {}
    drop(words);
    client.wait().unwrap();

    let mut account = capture.stop().unwrap();
    let tls = account.connections[0].tls.unwrap();
    assert_eq!(tls.suite, Some(u16::from(suite.suite.suite())));
    let hidden = account.received.total().layers.application - ANSWER as u64;
    let count = |bytes: usize| {
        let (protocol, payload) = (0, bytes as u64);
        CodecCount { messages: ContentBytes { protocol, payload }, ..CodecCount::default() }
    };
    // The client's content is found without anybody's count.
    assert_eq!(account.sent.total().layers.application, REQUEST as u64);
    let counts = StreamCounts { sent: count(REQUEST), received: count(ANSWER) };
    assert_eq!(account.attribute(&|_| Some(counts)), []);
    check_sizes(&account, suite, (REQUEST, ANSWER), hidden);
    if has("tshark") {
        with_secrets(&file.0, &opened.0, &keys.take()).unwrap();
        check_tshark(&account, &opened.0, port, suite, (REQUEST, ANSWER));
    }
}
