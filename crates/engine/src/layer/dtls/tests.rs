//! Both ends in memory on virtual time: what is lost, doubled, late or foreign changes nothing but
//! the time, and refusals have a cause.

use std::path::PathBuf;
use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::{Fault, Outbox};

use super::choice::{self, ClientProof, PresharedKey, ServerProof};
use super::session::{Session, Wrong};
use crate::layer::datagrams::DatagramSession;
use crate::layer::tls::{
    Certificates, ClientChoice, Identity, MadeFor, ServerChoice, Tally, Versions,
};

/// Both ends and what is between them.
struct Pair {
    client: Session,
    server: Session,
    now: Nanos,
    /// Datagrams sent so far, by either end.
    sent: u64,
    heard: [Vec<Vec<u8>>; 2],
    fault: Option<Fault>,
    tally: Arc<Tally>,
}

struct Made {
    folder: PathBuf,
    made: Certificates,
}

impl Made {
    fn new(name: &str) -> Made {
        let folder = std::env::temp_dir().join(format!("weigh-dtls-{name}-{}", std::process::id()));
        let made = Certificates::make(&folder).unwrap();
        Made { folder, made }
    }

    fn identity(&self, whom: MadeFor) -> Identity {
        let (certificate, key) = self.made.of(whom);
        Identity { certificate, key }
    }

    fn client(&self, versions: Versions, is_mutual: bool) -> ClientChoice {
        ClientChoice {
            versions,
            authority: Some(self.made.authority()),
            identity: is_mutual.then(|| self.identity(MadeFor::Client)),
            name: "localhost".to_owned(),
            alpn: Vec::new(),
            resumes: false,
            verifies: true,
        }
    }

    fn server(&self, versions: Versions, is_mutual: bool) -> ServerChoice {
        ServerChoice {
            versions,
            identity: self.identity(MadeFor::Server),
            clients: is_mutual.then(|| self.made.authority()),
            alpn: Vec::new(),
            resumes: false,
        }
    }

    fn pair(&self, client: Versions, server: Versions, is_mutual: bool) -> Pair {
        Pair::new(
            &ClientProof::Certificate(self.client(client, is_mutual)),
            &ServerProof::Certificate(self.server(server, is_mutual)),
        )
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn known(key: &[u8]) -> PresharedKey {
    PresharedKey { identity: b"device-7".to_vec(), key: key.to_vec() }
}

fn with_psk() -> Pair {
    let key = known(b"a key of sixteen");
    Pair::new(&ClientProof::Preshared(key.clone()), &ServerProof::Preshared(key))
}

/// All ways to prove an identity, with the bytes that a datagram has more (RFC 6347, section 4.1,
/// RFC 6655 and RFC 5288: header 13, nonce 8, tag 8 or 16; RFC 9147, section 4: header 5, type 1,
/// tag 16).
fn ways(made: &Made) -> Vec<(&'static str, Pair, u64)> {
    use Versions::{Both, Tls12, Tls13};
    vec![
        ("key", with_psk(), 29),
        ("1.2", made.pair(Tls12, Tls12, false), 37),
        ("1.2 mutual", made.pair(Tls12, Tls12, true), 37),
        ("1.2 to both", made.pair(Tls12, Both, false), 37),
        ("both to 1.2", made.pair(Both, Tls12, false), 37),
        ("1.3", made.pair(Tls13, Tls13, false), 22),
        ("1.3 mutual", made.pair(Tls13, Tls13, true), 22),
        ("both", made.pair(Both, Both, false), 22),
    ]
}

impl Pair {
    fn new(client: &ClientProof, server: &ServerProof) -> Pair {
        let tally = Arc::default();
        let now = Nanos::from_secs(1);
        Pair {
            client: choice::client(client, &tally).unwrap()(now),
            server: choice::server(server, &Arc::default()).unwrap()(now),
            now,
            sent: 0,
            heard: [Vec::new(), Vec::new()],
            fault: None,
            tally,
        }
    }

    /// Carries datagrams until nothing more is under way and no timer is left within two minutes.
    /// `fate` says how often each datagram arrives.
    fn run(&mut self, fate: &mut dyn FnMut(u64) -> usize) {
        let until = self.now + Nanos::from_secs(120);
        let mut wire = [Outbox::default(), Outbox::default()];
        self.call(0, &mut wire, |own, now, plain, out| own.wake(now, plain, out));
        while self.fault.is_none() {
            for side in [0, 1] {
                let datagrams: Vec<Vec<u8>> =
                    wire[side].frames().after(0).map(<[u8]>::to_vec).collect();
                wire[side].clear();
                for datagram in datagrams {
                    let copies = fate(self.sent);
                    self.sent += 1;
                    for _ in 0..copies {
                        self.call(1 - side, &mut wire, |own, now, plain, out| {
                            own.feed(&datagram, now, plain, out)
                        });
                    }
                }
            }
            if wire.iter().any(|wire| !wire.is_empty()) {
                continue;
            }
            let next = self.client.next_wake().into_iter().chain(self.server.next_wake()).min();
            let stands = self.client.stands() && self.server.stands();
            let Some(at) = next.filter(|at| *at < until && !stands) else { return };
            self.now = self.now.max(at);
            for side in [0, 1] {
                let own = if side == 0 { &self.client } else { &self.server };
                if own.next_wake().is_some_and(|at| at <= self.now) {
                    self.call(side, &mut wire, |own, now, plain, out| own.wake(now, plain, out));
                }
            }
        }
    }

    fn call(
        &mut self,
        side: usize,
        wire: &mut [Outbox; 2],
        call: impl FnOnce(&mut Session, Nanos, &mut Outbox, &mut Outbox) -> Result<bool, Wrong>,
    ) {
        let own = if side == 0 { &mut self.client } else { &mut self.server };
        let mut plain = Outbox::default();
        if let Err(wrong) = call(own, self.now, &mut plain, &mut wire[side]) {
            let of = if side == 0 { Session::fault_of_client } else { Session::fault_of_server };
            let fault = of(wrong);
            self.fault.get_or_insert(fault);
        }
        self.heard[side].extend(plain.frames().after(0).map(<[u8]>::to_vec));
    }

    /// Sends a datagram of one side to the other; returns its bytes on the wire.
    fn say(&mut self, side: usize, plain: &[u8]) -> u64 {
        let (own, now) = (if side == 0 { &mut self.client } else { &mut self.server }, self.now);
        let mut wire = Outbox::default();
        assert!(own.say(plain, now, &mut wire).is_ok());
        let datagrams: Vec<Vec<u8>> = wire.frames().after(0).map(<[u8]>::to_vec).collect();
        assert_eq!(datagrams.len(), 1, "one datagram each");
        let mut back = [Outbox::default(), Outbox::default()];
        self.call(1 - side, &mut back, |own, now, plain, out| {
            own.feed(&datagrams[0], now, plain, out)
        });
        datagrams[0].len() as u64
    }

    fn check_data(&mut self, name: &str, added: u64) {
        for (side, body) in [(0, &b"there"[..]), (1, b"and back"), (0, &[7; 1_100])] {
            let bytes = self.say(side, body);
            assert_eq!(bytes, body.len() as u64 + added, "{name}");
            assert_eq!(self.heard[1 - side].pop().as_deref(), Some(body), "{name}");
        }
    }

    fn stands(&self) -> bool {
        self.client.stands() && self.server.stands()
    }
}

#[test]
fn datagrams_arrive_whole_and_cost_what_the_standard_says() {
    let made = Made::new("whole");
    for (name, mut pair, added) in ways(&made) {
        pair.run(&mut |_| 1);
        assert_eq!((pair.stands(), &pair.fault), (true, &None), "{name}");
        pair.check_data(name, added);
        let figures = pair.tally.figures();
        assert_eq!((figures.full, figures.resumed), (1, 0), "{name}");
        assert!(figures.handshake_sent_bytes > 100, "{name}: {figures:?}");
        let version = if added == 22 { "DTLSv1_3" } else { "DTLSv1_2" };
        assert!(figures.negotiated.is_some_and(|own| own.starts_with(version)), "{name}");
        // The close notice ends the other side's session.
        let (mut wire, mut plain) = (Outbox::default(), Outbox::default());
        pair.client.goodbye(pair.now, &mut wire);
        let notice: Vec<Vec<u8>> = wire.frames().after(0).map(<[u8]>::to_vec).collect();
        assert_eq!(notice.len(), 1, "{name}");
        let now = pair.now;
        assert!(pair.server.feed(&notice[0], now, &mut plain, &mut Outbox::default()).is_ok());
        assert!(pair.server.peer_closed().is_some(), "{name}");
    }
}

/// Any one datagram of the handshake may be lost or doubled.
#[test]
fn the_handshake_survives_a_loss_anywhere() {
    let made = Made::new("loss");
    for copies in [0, 2] {
        for which in 0..8 {
            for (name, mut pair, added) in ways(&made) {
                pair.run(&mut |number| if number == which { copies } else { 1 });
                let name = format!("{name}: datagram {which} {copies} times");
                assert_eq!((pair.stands(), &pair.fault), (true, &None), "{name}");
                pair.check_data(&name, added);
            }
        }
    }
}

#[test]
fn a_silent_peer_is_given_up() {
    for (name, mut pair, _) in ways(&Made::new("silent")) {
        pair.run(&mut |_| 0);
        let fault = pair.fault.expect(name).to_string();
        assert!(fault.contains("did not answer the DTLS handshake"), "{name}: {fault}");
        let waited = pair.now - Nanos::from_secs(1);
        assert!(waited > Nanos::from_secs(10) && waited < Nanos::from_secs(60), "{waited}");
    }
}

/// Anyone may send anything to a socket.
#[test]
fn foreign_datagrams_are_ignored() {
    let made = Made::new("foreign");
    let mut random = weigh_stats::random::Random::new(9);
    for (name, mut pair, added) in ways(&made) {
        let mut noise = |pair: &mut Pair| {
            let mut wire = [Outbox::default(), Outbox::default()];
            for round in 0..60 {
                let mut bytes: Vec<u8> =
                    (0..random.below(80)).map(|_| random.below(256) as u8).collect();
                if round % 2 == 0 && bytes.len() > 12 {
                    // The head of a record of DTLS 1.2 in a later epoch.
                    bytes[..5].copy_from_slice(&[23, 254, 253, 0, 1]);
                }
                pair.call(1, &mut wire, |own, now, plain, out| own.feed(&bytes, now, plain, out));
            }
            assert_eq!(pair.fault, None, "{name}");
        };
        noise(&mut pair);
        pair.run(&mut |_| 1);
        assert!(pair.stands(), "{name}");
        noise(&mut pair);
        pair.check_data(name, added);
    }
}

/// A copy of a record is dropped (RFC 6347, section 4.1.2.6), a changed one too.
#[test]
fn copies_and_changed_records_are_dropped() {
    for (name, mut pair, _) in ways(&Made::new("copies")) {
        pair.run(&mut |_| 1);
        let (mut wire, now) = (Outbox::default(), pair.now);
        assert!(pair.client.say(b"once", now, &mut wire).is_ok());
        let datagram = wire.frames().after(0).next().unwrap().to_vec();
        let mut changed = datagram.clone();
        *changed.last_mut().unwrap() ^= 1;
        let mut back = [Outbox::default(), Outbox::default()];
        for copy in [&changed, &datagram, &datagram] {
            pair.call(1, &mut back, |own, now, plain, out| own.feed(copy, now, plain, out));
        }
        assert_eq!((pair.heard[1].len(), &pair.fault), (1, &None), "{name}");
    }
}

fn refusal(mut pair: Pair) -> String {
    pair.run(&mut |_| 1);
    assert!(!pair.stands());
    pair.fault.expect("a fault").to_string()
}

#[test]
fn who_is_not_who_he_says_is_refused() {
    let (made, other) = (Made::new("refused"), Made::new("other"));
    let versions = Versions::Both;
    let pair = |client: ClientChoice, server: ServerChoice| {
        Pair::new(&ClientProof::Certificate(client), &ServerProof::Certificate(server))
    };
    let said = refusal(pair(made.client(versions, false), other.server(versions, false)));
    assert!(said.contains("authority is not known"), "{said}");
    let named = ClientChoice { name: "elsewhere".to_owned(), ..made.client(versions, false) };
    let said = refusal(pair(named, made.server(versions, false)));
    assert!(said.contains("is not for elsewhere"), "{said}");
    // A client without a certificate, where one is asked for.
    let said = refusal(pair(made.client(versions, false), made.server(versions, true)));
    assert!(said.contains("certificate"), "{said}");
    // Unchecked, it is accepted, and what was wrong is recorded.
    let blind = ClientChoice { verifies: false, ..made.client(versions, false) };
    let mut accepted = pair(blind, other.server(versions, false));
    accepted.run(&mut |_| 1);
    assert!(accepted.stands());
    assert!(accepted.tally.figures().unchecked.is_some());
    // Versions without overlap, and keys that differ.
    let apart = pair(made.client(Versions::Tls13, false), made.server(Versions::Tls12, false));
    refusal(apart);
    let keys = |client: &[u8], server: PresharedKey| {
        Pair::new(&ClientProof::Preshared(known(client)), &ServerProof::Preshared(server))
    };
    refusal(keys(b"one key", known(b"another key")));
    let stranger = PresharedKey { identity: b"device-8".to_vec(), key: b"one key".to_vec() };
    refusal(keys(b"one key", stranger));
}

#[test]
fn keys_that_cannot_be_used_are_named() {
    let made = Made::new("keys");
    let mixed = Identity {
        certificate: made.identity(MadeFor::Server).certificate,
        key: made.identity(MadeFor::Client).key,
    };
    let server = ServerChoice { identity: mixed, ..made.server(Versions::Both, false) };
    let said = choice::server(&ServerProof::Certificate(server), &Arc::default()).err().unwrap();
    assert!(said.to_string().contains("is not the certificate of the key"), "{said}");
    let known = format!("{:?}", known(b"secret"));
    assert!(!known.contains("secret"), "{known}");
}
