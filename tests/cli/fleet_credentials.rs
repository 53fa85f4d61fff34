//! How agents and coordinator show a bus who they are, and the bus them: TLS with certificates of
//! both sides, nkeys, credentials files; and what does not go over a bus that others can read.

use std::path::Path;

use weigh_engine::layer::tls::{Certificates, MadeFor};

use crate::fleet::{Agent, Bus, fleet, is_exact};
use crate::rig::{Place, cells};

/// The options of `weigh agent` that make it one of this bus.
fn agent<'w>(url: &'w str, more: &[&'w str]) -> Vec<&'w str> {
    [&["agent", "--bus", url, "--may-load", "127.0.0.1:*"][..], more].concat()
}

/// The options of `weigh compare` for two agents of this bus.
fn run<'w>(url: &'w str, more: &[&'w str]) -> Vec<&'w str> {
    let load = ["tcp", "--fleet", url, "--agents", "2", "-R", "400/s", "-n", "200"];
    [&load[..], more].concat()
}

/// Two agents with these options, and a run over them with those: it must be exact.
fn works(place: &Place, bus: &Bus, agents: &[&str], coordinator: &[&str]) {
    let agent = |rank| Agent::with(place, bus, rank, "127.0.0.1:*", agents);
    let _agents = [agent(0), agent(1)];
    place.compare(&run(&bus.url, coordinator)).with(0);
    is_exact(&cells(&place.summary())[0], 200);
}

fn shown(path: impl AsRef<Path>) -> String {
    path.as_ref().display().to_string()
}

#[test]
fn a_bus_with_tls_and_its_clients_know_each_other_by_certificates() {
    let place = Place::new("fleet-tls");
    let made = Certificates::make(place.folder()).expect("certificates");
    let (own, own_key) = made.of(MadeFor::Server);
    let ca = shown(made.authority());
    let lines = format!(
        "tls {{ cert_file: {own:?}, key_file: {own_key:?}, ca_file: {ca:?}, verify: true }}"
    );
    let Some(mut bus) = Bus::with(&place, &lines) else { return };
    let address = bus.url.split("://").nth(1).expect("an address");
    bus.url = format!("tls://{address}");
    let url = &*bus.url;
    let (cert, key) = made.of(MadeFor::Client);
    let (cert, key) = (shown(cert), shown(key));

    let unknown = ["cannot be trusted", "help: name the authority", "--bus-ca", "--fleet-ca"];
    place.weigh(&agent(url, &[])).with(5).saying(&unknown);
    place.compare(&run(url, &[])).with(5).saying(&unknown);
    let refused =
        ["by TLS", "help: give the certificate and the key", "--bus-cert", "--fleet-cert"];
    place.weigh(&agent(url, &["--bus-ca", &ca])).with(5).saying(&refused);
    place.compare(&run(url, &["--fleet-ca", &ca])).with(5).saying(&refused);

    let half = agent(url, &["--bus-ca", &ca, "--bus-cert", &cert]);
    place.weigh(&half).with(2).saying(&["--bus-key"]);
    let half = run(url, &["--fleet-ca", &ca, "--fleet-key", &key]);
    place.compare(&half).with(2).saying(&["--fleet-cert"]);
    let missing = agent(url, &["--bus-ca", &ca, "--bus-cert", "gone.pem", "--bus-key", &key]);
    let said = ["cannot read the client certificate of the bus from gone.pem", "\nhelp: "];
    place.weigh(&missing).with(2).saying(&said);
    let other = agent(url, &["--bus-ca", &ca, "--bus-cert", &cert, "--bus-key", &cert]);
    let said = ["is not a client key in PEM: it has no PRIVATE KEY", "\nhelp: "];
    place.weigh(&other).with(2).saying(&said);
    let own_key = shown(own_key);
    let another = ["--fleet-ca", &*ca, "--fleet-cert", &cert, "--fleet-key", &own_key];
    let another = run(url, &another);
    place.compare(&another).with(5).saying(&["do not belong together", "\nhelp: "]);
    assert!(place.runs().is_empty());

    let agents = ["--bus-ca", &*ca, "--bus-cert", &cert, "--bus-key", &key];
    let coordinator = ["--fleet-ca", &*ca, "--fleet-cert", &cert, "--fleet-key", &key];
    works(&place, &bus, &agents, &coordinator);
}

/// A user who names an authority does not want to speak in the clear.
#[test]
fn certificates_are_not_ignored_by_a_bus_without_tls() {
    let place = Place::new("fleet-no-tls");
    let made = Certificates::make(place.folder()).expect("certificates");
    let Some(bus) = Bus::start(&place) else { return };
    let ca = shown(made.authority());
    for url in [bus.url.clone(), bus.url.replace("nats://", "tls://")] {
        let ended = place.compare(&run(&url, &["--fleet-ca", &ca])).with(5);
        ended.saying(&["has no TLS", "\nhelp: "]);
    }
}

/// A key pair that is used nowhere else.
const SEED: &str = "SUAPHMUU4KZJ2D24HHKGHSG6PBXWA5HUSAUTCX4F367WC4A2JMSS6PEOB4";
const PUBLIC: &str = "UAW6ROV2WM7Z2YD2S54XDH3H5YAMKKUKD6O2LFD7M3AU7FHS5Y367OET";

#[test]
fn agents_and_coordinator_show_their_nkeys() {
    let place = Place::new("fleet-nkey");
    let lines = format!("authorization {{ users: [{{ nkey: {PUBLIC} }}] }}");
    let Some(bus) = Bus::with(&place, &lines) else { return };
    place.write("own.nk", &format!("{SEED}\n"));
    place.write("other.nk", "SUAPHMUU4KZJ2D24\n");
    let refused = ["refuses the credentials", "\nhelp: "];
    place.weigh(&agent(&bus.url, &[])).with(5).saying(&refused);
    place.compare(&run(&bus.url, &[])).with(5).saying(&refused);
    let wrong = ["other.nk is not the seed of a user's nkey", "\nhelp: "];
    place.weigh(&agent(&bus.url, &["--nkey", "other.nk"])).with(2).saying(&wrong);
    place.compare(&run(&bus.url, &["--fleet-nkey", "other.nk"])).with(2).saying(&wrong);
    assert!(place.runs().is_empty());
    works(&place, &bus, &["--nkey", "own.nk"], &["--fleet-nkey", "own.nk"]);
}

/// A server in operator mode: it knows accounts and users by what their issuers signed.
#[test]
fn agents_and_coordinator_show_their_credentials_files() {
    let place = Place::new("fleet-creds");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fleet/operator");
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).expect(name);
    let Some(bus) = Bus::with(&place, &read("bus.conf")) else { return };
    let own = read("user.creds");
    place.write("own.creds", &own);
    let (jwt, _) = own.split_once("-----BEGIN USER NKEY SEED").expect("a JWT and a seed");
    place.write("unsigned.creds", jwt);
    place.write("notes.creds", "ask the operator\n");
    let refused = ["refuses the credentials", "\nhelp: "];
    place.weigh(&agent(&bus.url, &[])).with(5).saying(&refused);
    for name in ["notes.creds", "unsigned.creds"] {
        let wrong = [name, "is not a credentials file of NATS", "\nhelp: "];
        place.weigh(&agent(&bus.url, &["--creds", name])).with(2).saying(&wrong);
        place.compare(&run(&bus.url, &["--fleet-creds", name])).with(2).saying(&wrong);
    }
    assert!(place.runs().is_empty());
    works(&place, &bus, &["--creds", "own.creds"], &["--fleet-creds", "own.creds"]);
}

/// The bus is on this host, by an address that is not one of loopback.
#[test]
fn secrets_are_refused_over_a_bus_that_others_can_read() {
    let place = Place::new("fleet-public");
    let Some((bus, _agents)) = fleet(&place, 1) else { return };
    let made = Certificates::make(place.folder()).expect("certificates");
    let (cert, key) = made.of(MadeFor::Client);
    let (cert, key) = (shown(cert), shown(key));
    let url = bus.url.replace("127.0.0.1", "0.0.0.0");
    let fleet = ["--fleet", &url, "--agents", "1", "-n", "10"];
    for (target, more) in [
        ("http://127.0.0.1:9/", &["--secret-header", "X-Token: hush-4711"][..]),
        ("mqtt://ann:hush-4711@127.0.0.1:9", &[]),
        ("mqtts://127.0.0.1:9", &["--cert", &cert, "--key", &key]),
    ] {
        let ended = place.compare(&[&[target], more, &fleet].concat()).with(2);
        let ended = ended.saying(&["which others could read on the bus", "--fleet-ca FILE"]);
        assert!(!ended.stderr.contains("hush-4711"), "{}", ended.stderr);
    }
    assert!(place.runs().is_empty());
    place.compare(&[&["tcp"], &fleet[..]].concat()).with(0);
}
