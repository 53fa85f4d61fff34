//! A bus with TLS: certificates of both sides are checked, and what is sent is private.

use std::sync::Arc;

use weigh_engine::generator::TrialObserver;
use weigh_engine::layer::tls::{Certificates, MadeFor};
use weigh_fleet::{Bus, BusOptions, Secrets};

use super::agents::{gather, now_ns, threads};
use super::nats::Nats;
use super::target::Target;
use super::workshop::{Watcher, merged, order};

#[test]
fn a_bus_with_tls_knows_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let made = Certificates::make(folder.path()).unwrap();
    let (certificate, key) = made.of(MadeFor::Server);
    let configuration = format!(
        "jetstream {{ store_dir: \"STORE\" }}\ntls {{ cert_file: {certificate:?}, key_file: \
         {key:?}, ca_file: {:?}, verify: true }}",
        made.authority()
    );
    let Some(nats) = Nats::with("a_bus_with_tls_knows_both_sides", &configuration) else { return };
    let bus = BusOptions {
        url: format!("tls://{}", nats.address),
        ca: Some(made.authority()),
        client_cert: Some(made.of(MadeFor::Client)),
        ..BusOptions::default()
    };
    assert!(Bus::connect(&bus).unwrap().is_private());

    let refused = |options: BusOptions| Bus::connect(&options).err().unwrap().to_string();
    let text = refused(BusOptions { client_cert: None, ..bus.clone() });
    assert!(text.contains("by TLS") && text.contains("give the certificate"), "{text}");
    let other = tempfile::tempdir().unwrap();
    let other = Certificates::make(other.path()).unwrap().authority();
    let text = refused(BusOptions { ca: Some(other), ..bus.clone() });
    assert!(text.contains("cannot be trusted") && text.contains("authority"), "{text}");

    let target = Target::start();
    let _agents = threads(&bus, 2);
    let fleet = gather(&bus, 2);
    let (order, secrets) = (order(target.address()), Secrets::default());
    let observer: Arc<dyn TrialObserver> = Arc::new(Watcher::default());
    let outcome = fleet.run(&order, Some(&secrets), now_ns(), &observer, &mut |_| {}).unwrap();
    assert_eq!(merged(&order, outcome).ledger.delivered, Some(10_000));
}
