//! Mosquitto as it is installed: an independent subscriber counts what the ledger counts, and
//! the broker's own drop counter what the ledger misses.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weigh_engine::accounts::attribute_server_drops;
use weigh_model::ledger::Cause;
use weigh_model::units::Bytes;
use weigh_model::{Arrival, Nanos, Pattern};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::find::find;
use weigh_testbed::managed::ManagedServer;

use crate::overload::Folder;
use crate::proxy::Proxy;
use crate::rig::Setup;

/// Mosquitto with its defaults, or nothing where it is not installed.
fn mosquitto(name: &str) -> Option<(ManagedServer, Folder)> {
    let catalogue = Catalogue::load(None).unwrap();
    let choice = catalogue.choose("mosquitto@defaults").unwrap();
    let has_clients =
        Command::new("mosquitto_sub").arg("--help").stdout(Stdio::null()).status().is_ok();
    if find(choice.target).is_none() || !has_clients {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "Mosquitto is missing in CI");
        println!("SKIPPED: Mosquitto and its clients are not installed");
        return None;
    }
    let folder = Folder::new(name);
    let server = ManagedServer::start(choice, Some("mqtt"), &folder.0, None).unwrap();
    Some((server, folder))
}

#[test]
fn an_independent_subscriber_counts_the_same() {
    let Some((server, _folder)) = mosquitto("sub") else { return };
    let address = server.endpoint().address.unwrap();
    for (qos, protocol) in [("0", "mqttv311"), ("1", "mqttv5"), ("2", "mqttv311")] {
        let messages = 1500;
        let topic = format!("oracle/{qos}");
        let mut independent = Command::new("mosquitto_sub")
            .args(["-h", "127.0.0.1", "-p", &address.port().to_string(), "-V", protocol])
            .args(["-q", qos, "-t", &topic, "-F", "%p", "-W", "6"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_subscriber(address, &topic);
        let version = if protocol == "mqttv5" { "5" } else { "3.1.1" };
        let given = [("qos", qos), ("version", version), ("topic", topic.as_str())];
        let setup =
            Setup::new("mqtt", &given, Pattern::Deliver, messages).open("constant", "1500/s");
        let outcome = setup.against(address);
        let ledger = &outcome.ledger;
        assert_eq!(ledger.contradiction(), None);
        assert_eq!((ledger.sent, ledger.lost), (messages, Some(0)), "QoS {qos}: {ledger:?}");
        let mut text = String::new();
        independent.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        independent.wait().unwrap();
        let heard = text.lines().filter(|line| line.contains("WB1.")).count() as u64;
        println!("QoS {qos}: the ledger has {:?}, mosquitto_sub {heard}", ledger.delivered);
        assert_eq!(Some(heard), ledger.delivered, "QoS {qos}");
    }
    server.stop();
}

/// Sends to the topic until somebody subscribes to it: MQTT 5 tells by reason code 0x10.
fn wait_for_subscriber(address: SocketAddr, topic: &str) {
    let given = Instant::now();
    loop {
        let settings = [("qos", "1"), ("version", "5"), ("topic", topic)];
        let mut setup = Setup::new("mqtt", &settings, Pattern::Publish, 1);
        setup.load.body = weigh_model::body::BodySource::Text("anybody there?".to_owned());
        setup.load.size = Some(Bytes(20));
        if setup.against(address).ledger.no_subscriber == 0 {
            return;
        }
        assert!(given.elapsed() < Duration::from_secs(5), "mosquitto_sub does not subscribe");
    }
}

/// The consumer reads nothing while the load lasts. What the broker says it dropped is what the
/// ledger says was lost.
#[test]
fn the_brokers_drop_counter_is_our_loss() {
    let Some((server, _folder)) = mosquitto("stalled") else { return };
    let address = server.endpoint().address.unwrap();
    let before = settled_drops(address);
    let messages = 20_000;
    let mut setup = Setup::new("mqtt", &[("qos", "0")], Pattern::Deliver, messages);
    setup.load.arrival = Arrival::Burst;
    setup.load.size = Some(Bytes(1000));
    setup.load.timeout = Nanos::from_secs(5);
    // CONNACK and SUBACK come through, nothing after them until the burst is over.
    let proxy = Proxy::start(address, true, 9);
    let stalls = proxy.stalls.clone();
    let up = proxy.up.clone();
    let reader = std::thread::spawn(move || {
        let all = messages * 1000;
        let started = Instant::now();
        while up.load(Ordering::SeqCst) < all && started.elapsed() < Duration::from_secs(3) {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(300));
        stalls.store(false, Ordering::SeqCst);
    });
    let outcome = setup.against(proxy.address);
    reader.join().unwrap();
    let dropped = settled_drops(address) - before;
    let mut ledger = outcome.ledger.clone();
    assert_eq!(ledger.contradiction(), None);
    println!("{:?} of {messages} lost, the broker says {dropped} dropped", ledger.lost);
    assert!(dropped > 0, "the subscriber was not slow enough");
    assert_eq!(ledger.lost, Some(dropped));
    assert_eq!((ledger.sent, ledger.not_sent, ledger.reordered), (messages, 0, 0));
    attribute_server_drops(&mut ledger, dropped);
    assert_eq!(ledger.causes.get(&Cause::ServerDropped), Some(&dropped));
    server.stop();
}

/// `$SYS/broker/publish/messages/dropped`, once it has stood still for longer than the second
/// between two reports; a counter lags by up to three.
fn settled_drops(address: SocketAddr) -> u64 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let topic = b"$SYS/broker/publish/messages/dropped";
    let mut subscribe = vec![0x82, (topic.len() + 5) as u8, 0, 1, 0, topic.len() as u8];
    subscribe.extend_from_slice(topic);
    subscribe.push(0);
    stream.write_all(b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04drop").unwrap();
    stream.write_all(&subscribe).unwrap();
    let (mut input, mut last, mut moved) = (Vec::new(), 0, Instant::now());
    let mut buffer = [0; 1024];
    while moved.elapsed() < Duration::from_millis(3200) {
        match stream.read(&mut buffer) {
            Ok(0) => panic!("Mosquitto closed the connection"),
            Ok(count) => input.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => panic!("{error}"),
        }
        while input.len() >= 2 && input.len() >= 2 + usize::from(input[1]) {
            let packet: Vec<u8> = input.drain(..2 + usize::from(input[1])).collect();
            if packet[0] & 0xF0 == 0x30 {
                let value = std::str::from_utf8(&packet[4 + topic.len()..]).unwrap();
                let value = value.trim().parse().unwrap();
                if value != last {
                    (last, moved) = (value, Instant::now());
                }
            }
        }
    }
    last
}
