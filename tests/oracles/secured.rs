//! Whole trials inside TLS on virtual time. The ledger must come out as without TLS: encryption
//! changes bytes and times, and never what arrives.

use std::sync::Arc;

use weigh_engine::io::sim::Cut;
#[cfg(feature = "dtls")]
use weigh_engine::layer::dtls;
#[cfg(feature = "quic")]
use weigh_engine::layer::quic;
use weigh_engine::layer::tls::{
    Certificates, ClientChoice, Identity, MadeFor, ServerChoice, Tally, Versions, secure_dial,
    secure_host, upgrade_dial, upgrade_host,
};
#[cfg(feature = "dtls")]
use weigh_model::protocol::Transport;
use weigh_model::protocol::{Dial, Host};
use weigh_model::{Nanos, Pattern};

use crate::overload::Folder;
use crate::rig::{Setup, simulated_address};

/// Both ends inside TLS, with certificates of their own.
pub struct Secured {
    client: ClientChoice,
    server: ServerChoice,
    /// What clients counted.
    pub tally: Arc<Tally>,
    _folder: Folder,
}

impl Secured {
    /// Certificates in a folder of this name.
    pub fn new(versions: Versions, resumes: bool, name: &str) -> Arc<Secured> {
        let folder = Folder::new(name);
        let made = Certificates::make(&folder.0).unwrap();
        let (certificate, key) = made.of(MadeFor::Server);
        let client = ClientChoice {
            versions,
            authority: Some(made.authority()),
            identity: None,
            name: "localhost".to_owned(),
            alpn: Vec::new(),
            resumes,
            verifies: true,
        };
        let identity = Identity { certificate, key };
        let server = ServerChoice { versions, identity, clients: None, alpn: Vec::new(), resumes };
        Arc::new(Secured { client, server, tally: Arc::default(), _folder: folder })
    }

    /// The clients of a trial.
    pub fn dial(&self, dial: Dial, upgrades: bool) -> Dial {
        #[cfg(feature = "dtls")]
        if dial.transport == Transport::Datagram {
            let proof = dtls::ClientProof::Certificate(self.client.clone());
            return dtls::secure_dial(dial, &proof, &self.tally).unwrap();
        }
        let secure = if upgrades { upgrade_dial } else { secure_dial };
        secure(dial, &self.client, &self.tally).unwrap()
    }

    /// Its server.
    pub fn host(&self, host: Host, upgrades: bool) -> Host {
        #[cfg(feature = "dtls")]
        if host.transport == Transport::Datagram {
            let proof = dtls::ServerProof::Certificate(self.server.clone());
            return dtls::secure_host(host, &proof, &Arc::default()).unwrap();
        }
        let secure = if upgrades { upgrade_host } else { secure_host };
        secure(host, &self.server, &Arc::default()).unwrap()
    }

    /// The clients of a trial inside QUIC.
    #[cfg(feature = "quic")]
    pub fn dial_in_quic(&self, dial: Dial, settings: &weigh_model::trial::Settings) -> Dial {
        let choice = ClientChoice { alpn: alpn(), ..self.client.clone() };
        quic::secure_dial(dial, &choice, &tuning(settings), &self.tally).unwrap()
    }

    /// Their server.
    #[cfg(feature = "quic")]
    pub fn host_in_quic(&self, host: Host, settings: &weigh_model::trial::Settings) -> Host {
        let choice = ServerChoice { alpn: alpn(), ..self.server.clone() };
        quic::secure_host(host, &choice, &tuning(settings), &Arc::default()).unwrap()
    }
}

/// Protocols over QUIC are never without it: certificates for all of them.
#[cfg(feature = "quic")]
pub fn of_quic() -> Arc<Secured> {
    static OF_ALL: std::sync::OnceLock<Arc<Secured>> = std::sync::OnceLock::new();
    Arc::clone(OF_ALL.get_or_init(|| Secured::new(Versions::Tls13, false, "secured-quic")))
}

#[cfg(feature = "quic")]
fn alpn() -> Vec<Vec<u8>> {
    vec![b"oracle".to_vec()]
}

#[cfg(feature = "quic")]
fn tuning(settings: &weigh_model::trial::Settings) -> quic::Tuning {
    quic::Tuning {
        congestion: quic::Congestion::Cubic,
        datagram_bytes: 1_200,
        is_cut_by_kernel: weigh_model::quic::is_cut_by_kernel(settings),
    }
}

/// In pieces of any size, over a slow link with little room: records are cut everywhere, and
/// neither end may run ahead.
#[test]
fn the_ledger_is_that_of_a_trial_without_tls() {
    for versions in [Versions::Tls12, Versions::Tls13] {
        for (protocol, pattern) in [
            ("tcp", Pattern::Request),
            ("http1", Pattern::Request),
            ("mqtt", Pattern::Deliver),
            ("nats", Pattern::Deliver),
            ("redis", Pattern::Deliver),
            ("websocket", Pattern::Deliver),
            ("sse", Pattern::Deliver),
            ("kafka", Pattern::Deliver),
            ("http2", Pattern::Request),
            ("grpc", Pattern::Request),
        ] {
            let given: &[_] = if protocol == "mqtt" { &[("qos", "1")] } else { &[] };
            let mut setup = Setup::new(protocol, given, pattern, 400).connections(3).seed(7);
            setup.load.size = Some(weigh_model::units::Bytes(20_000));
            setup.link.delay = Nanos::from_millis(2);
            setup.link.in_pieces = true;
            setup.link.buffer_bytes = 8_192;
            let plain = setup.on_virtual_time();
            let secured =
                Secured::new(versions, false, &format!("secured-{protocol}-{versions:?}"));
            setup.secured = Some(Arc::clone(&secured));
            let seen = setup.on_virtual_time();
            let (ledger, expected) = (seen.ledger(), plain.ledger());
            assert_eq!((ledger.sent, ledger.delivered), (expected.sent, expected.delivered));
            assert_eq!(seen.server.unique, plain.server.unique, "{protocol}");
            let figures = secured.tally.figures();
            assert!(figures.full >= 3, "{figures:?}");
            // A handshake takes one round trip in TLS 1.3 and two in 1.2 (RFC 8446, section 2;
            // RFC 5246, section 7.3), of 4 ms each; with pieces a little more.
            let trips = if versions == Versions::Tls13 { 1.0 } else { 2.0 };
            let fastest = figures.handshake_time_ns.iter().find(|(name, _)| *name == "p50");
            assert!(fastest.unwrap().1 >= trips * 4e6 * 0.999, "{versions:?}: {figures:?}");
        }
    }
}

/// Connections that are cut come back, by a resumed session, and no message is counted twice.
#[test]
fn what_is_cut_is_accounted_for_and_resumed() {
    let secured = Secured::new(Versions::Tls13, true, "secured-cut");
    let mut setup = Setup::new("mqtt", &[("qos", "1")], Pattern::Publish, 3_000)
        .connections(4)
        .open("constant", "1000/s");
    setup.link.delay = Nanos::from_millis(1);
    for connection in 0..4 {
        let to = simulated_address();
        setup.cuts.push(Cut { to, connection, from_listener: false, after_bytes: 20_000 });
    }
    setup.secured = Some(Arc::clone(&secured));
    let seen = setup.on_virtual_time();
    let ledger = seen.ledger();
    assert_eq!(ledger.sent + ledger.not_sent, 3_000);
    let figures = secured.tally.figures();
    assert!(figures.resumed >= 1, "{figures:?}");
}

/// Datagrams are lost, doubled and late: the handshake repeats them, and after it the protocol
/// does. The ledger is exact, and no client is given up.
#[cfg(feature = "dtls")]
#[test]
fn datagrams_are_lost_inside_dtls_as_outside() {
    use weigh_engine::io::sim::Impairments;

    for versions in [Versions::Tls12, Versions::Tls13] {
        for (kind, pattern) in
            [("con", Pattern::Publish), ("non", Pattern::Publish), ("con", Pattern::Session)]
        {
            let mut setup = Setup::new("coap", &[("type", kind)], pattern, 300).connections(5);
            setup.load.timeout = Nanos::from_secs(20);
            setup.link.delay = Nanos::from_millis(2);
            setup.link.impairments = Impairments {
                lost_ppm: 100_000,
                doubled_ppm: 100_000,
                late_ppm: 100_000,
                late_by: Nanos::from_millis(7),
            };
            let name = format!("secured-loss-{versions:?}-{kind}-{pattern}");
            let secured = Secured::new(versions, false, &name);
            setup.secured = Some(Arc::clone(&secured));
            let seen = setup.on_virtual_time();
            let ledger = seen.ledger();
            let arrived = ledger.delivered.unwrap();
            assert_eq!(ledger.sent + ledger.not_sent, 300, "{name}: {ledger:#?}");
            assert!(seen.server.unique >= arrived, "{name}: {ledger:#?}");
            // A fifth of the messages and answers together are lost, and none of what is repeated.
            let least = if kind == "con" { 280 } else { 200 };
            assert!(arrived >= least, "{name}: {ledger:#?}");
            let figures = secured.tally.figures();
            assert!(figures.full >= 5 && figures.record_sent_bytes > 0, "{name}: {figures:?}");
        }
    }
}
