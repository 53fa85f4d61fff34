//! Endpoints that are not a server of the protocol, or refuse every client: they are named, without
//! a panic or a hang.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::rig::{SMALL, asked, reach, saying, serve, stranger};
use weigh_probe::{Trouble, Unusable};

/// Short: here nothing ever comes.
const PATIENCE: Duration = Duration::from_millis(300);

#[track_caller]
fn told(scheme: &str, address: SocketAddr) -> Unusable {
    match asked(&reach(&format!("{scheme}://{address}"), address, PATIENCE), SMALL) {
        Err(error) => error,
        Ok(_) => panic!("{scheme}://{address} was let be asked"),
    }
}

#[track_caller]
fn is_named(error: &Unusable, parts: &[&str]) {
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is not in {error}");
    }
}

#[test]
fn nobody_there() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|own| own.local_addr()).unwrap();
    for scheme in SCHEMES {
        let error = told(scheme, free);
        assert!(matches!(error, Unusable::Unreachable(_)), "{error}");
        is_named(&error, &[&free.to_string(), "no process listens", "check host and port"]);
    }
}

#[test]
fn whoever_answers_instead_is_named_with_what_to_type() {
    let (http, mqtt) = (serve("http1", &[]), serve("mqtt", &[]));
    let (grpc, port) = (serve("grpc", &[]), |address: SocketAddr| address.port().to_string());
    let (http, mqtt, grpc) = (http.address(), mqtt.address(), grpc.address());
    let (amqp1, nats, redis) = (serve("amqp1", &[]), serve("nats", &[]), serve("redis", &[]));
    let (amqp1, nats, redis) = (amqp1.address(), nats.address(), redis.address());
    let tls = saying(&[0x15, 3, 3, 0, 2, 2, 40]);
    for (scheme, address, words) in [
        ("mqtt", http, "server of HTTP/1 answers: type http://"),
        ("mqtt", grpc, "server of HTTP/2 answers: type h2c://"),
        ("mqtt", tls, "it speaks TLS: type mqtts://"),
        ("http", mqtt, "broker of MQTT answers: type mqtt://"),
        ("http", tls, "it speaks TLS"),
        ("grpc", mqtt, "broker of MQTT answers"),
        ("grpc", http, "server of HTTP/1 answers"),
        ("h2c", http, "server of HTTP/1 answers"),
        ("kafka", http, "server of HTTP/1 answers"),
        ("redis", http, "server of HTTP/1 answers"),
        ("amqp1", mqtt, "broker of MQTT answers"),
        ("kafka", amqp1, "broker of AMQP 1.0 answers: type amqp1://"),
        ("redis", nats, "server of NATS answers: type nats://"),
        ("kafka", redis, "server of Redis answers: type redis://"),
        ("amqp1", redis, "server of Redis answers"),
        ("amqp1", saying(b"AMQP\x00\x00\x09\x01"), "AMQP 0-9-1 answers"),
        ("mqtt", saying(b"SSH-2.0-OpenSSH_9.2p1\r\n"), "begins with \"SSH-2.0-Open"),
        ("http", saying(b"220 mail.example ESMTP\r\n"), "begins with \"220 mail"),
        ("mqtt", saying(b""), "takes connections and says nothing"),
        ("grpc", saying(b""), "takes connections and says nothing"),
        ("mqtt", stranger(drop), "closes them at once"),
        ("http", stranger(drop), "closes them at once"),
    ] {
        let error = told(scheme, address);
        assert!(matches!(error, Unusable::Stranger(_)), "{error}");
        is_named(&error, &[&port(address), words]);
    }
}

#[test]
fn noise_is_no_panic() {
    let noise = stranger(|mut stream| {
        let noise: Vec<u8> = (0..=255).rev().cycle().take(4096).collect();
        let _ = stream.write_all(&noise);
    });
    for scheme in SCHEMES {
        let error = told(scheme, noise);
        assert!(matches!(error, Unusable::Stranger(_)), "{error}");
    }
}

#[test]
fn refusals_are_told_with_the_fix() {
    let broker = serve("mqtt", &[("broker_user", "ada"), ("broker_password", "secret")]);
    let error = told("mqtt", broker.address());
    assert!(matches!(error, Unusable::Refused(_)), "{error}");
    is_named(&error, &["not authorized", "--user NAME", "WEIGH_PASSWORD"]);
    let address = broker.address();
    let url = format!("mqtt://ada:wrong@{address}");
    let error = asked(&reach(&url, address, PATIENCE), SMALL).err().unwrap();
    is_named(&error, &["bad user name or password", "check user and password"]);
    assert!(!error.to_string().contains("wrong"), "{error}");

    let answer = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    is_named(&told("http", saying(answer)), &["401", "--user NAME"]);
    // It knows nothing of 3.1.1, and gives a reason for 5.
    let error = told("mqtt", saying(&[0x20, 2, 0, 3]));
    is_named(&error, &["server unavailable"]);
}

#[test]
fn the_end_of_the_time_ends_it() {
    let broker = serve("mqtt", &[]);
    let mut over = reach(&format!("mqtt://{}", broker.address()), broker.address(), PATIENCE);
    over.end = Instant::now();
    let error = asked(&over, SMALL).err().unwrap();
    is_named(&error, &["the time of the probe was over", "--within"]);
}

#[test]
fn what_has_no_abilities_is_said() {
    let server = serve("tcp", &[]);
    let error = told("tcp", server.address());
    assert!(matches!(error, Unusable::NoQuestions(_)), "{error}");
}

/// The end of a wait is reported by its cause, and only a server that was waited for is silent.
#[test]
fn the_end_and_a_stop_are_no_silence() {
    const LONG: Duration = Duration::from_secs(200);
    let quiet = saying(b"");
    let url = format!("http://{quiet}");
    let waited = |reach: &weigh_probe::Reach| {
        reach.open().and_then(|mut link| link.read(reach.until()?)).err().unwrap()
    };
    assert_eq!(waited(&reach(&url, quiet, PATIENCE)), Trouble::Silent(PATIENCE));
    let mut short = reach(&url, quiet, LONG);
    short.end = Instant::now() + PATIENCE;
    assert_eq!(waited(&short), Trouble::OutOfTime);
    let stopped = reach(&url, quiet, LONG);
    let stop = stopped.stop.clone();
    std::thread::spawn(move || {
        std::thread::sleep(PATIENCE);
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(waited(&stopped), Trouble::OutOfTime);
}

/// Sends one byte after the other of a record that does not end while a client waits.
#[cfg(feature = "tls")]
#[test]
fn who_trickles_a_handshake_holds_nobody() {
    use weigh_engine::layer::tls::{ClientChoice, Versions};
    let trickling = stranger(|mut stream: TcpStream| {
        for byte in [0x16, 3, 3, 0x40, 0].into_iter().chain(std::iter::repeat_n(2, 1 << 14)) {
            if stream.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(PATIENCE / 10);
        }
    });
    let mut inside = reach(&format!("mqtts://{trickling}"), trickling, PATIENCE);
    inside.tls = Some(ClientChoice {
        versions: Versions::Both,
        authority: None,
        identity: None,
        name: "127.0.0.1".to_owned(),
        alpn: Vec::new(),
        resumes: false,
        verifies: false,
    });
    assert_eq!(inside.open().err(), Some(Trouble::Silent(PATIENCE)));
    (inside.patience, inside.end) = (Duration::from_secs(200), Instant::now() + PATIENCE);
    assert_eq!(inside.open().err(), Some(Trouble::OutOfTime));
}

/// Every protocol that is asked over TCP.
const SCHEMES: [&str; 11] =
    ["mqtt", "http", "h2c", "grpc", "amqp", "amqp1", "nats", "kafka", "redis", "websocket", "sse"];
