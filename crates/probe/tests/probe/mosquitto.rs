//! Mosquitto with limits that were written into its configuration (mosquitto.conf(5)): each is
//! found exactly.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::rig::ask;
use weigh_probe::Bounds;
use weigh_probe::abilities::Status;

/// A Mosquitto of this configuration; it ends with this.
struct Mosquitto {
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// `None`, and said, where there is none; in continuous integration there must be one.
fn mosquitto(test: &str, configuration: &str) -> Option<Mosquitto> {
    let folders = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
    let places = folders.split(':').map(|folder| Path::new(folder).join("mosquitto"));
    let Some(program) = places.into_iter().find(|place| place.is_file()) else {
        let must = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!must, "mosquitto is not installed, and CI=true");
        eprintln!("SKIPPED {test}: mosquitto is not installed");
        return None;
    };
    let folder = std::env::temp_dir().join(format!("weigh-probe-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let address = TcpListener::bind("127.0.0.1:0").and_then(|own| own.local_addr()).unwrap();
    let common = format!("listener {} 127.0.0.1\nallow_anonymous true\n", address.port());
    let file = folder.join("mosquitto.conf");
    std::fs::write(&file, common + configuration).unwrap();
    let child = Command::new(program).arg("-c").arg(&file).stderr(Stdio::null()).spawn().unwrap();
    let mosquitto = Mosquitto { child, folder, address };
    let asked = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(asked.elapsed() < Duration::from_secs(30), "mosquitto does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(mosquitto)
}

#[test]
fn limits_in_its_configuration_are_found_exactly() {
    let configuration = "max_packet_size 5000\nmax_inflight_messages 7\nmax_queued_messages 40\n\
                         retain_available false\nmax_keepalive 45\nmax_qos 1\nmax_topic_alias 5\n";
    let Some(broker) = mosquitto("limits", configuration) else { return };
    let found = ask(
        "mqtt",
        broker.address,
        Bounds { payload_bytes: 10_000, name_bytes: 65_535, queue_messages: 200 },
    );
    found.is("packet_bytes", Status::Yes, 5_000).is("receive_maximum", Status::Yes, 7);
    found.is("keep_alive", Status::Less, 45).is("topic_alias_maximum", Status::Yes, 5);
    found.is("unacknowledged", Status::Less, 7).is("qos_max", Status::Less, 1);
    found.is("queue_offline", Status::Less, 40).is("queue_stalled", Status::Less, 47);
    found.stands("retain", Status::Refused);
    // The packet's limit, found by payloads. Mosquitto compares it with the remaining length and
    // one byte (lib/packet_mosq.c), and so lets two more bytes of the length itself pass.
    found.stands("payload_bytes", Status::Less).saw("payload_bytes", "(PUBLISH of 5002 bytes)");
}

#[test]
fn one_without_limits_of_its_own() {
    let Some(broker) = mosquitto("usual", "message_size_limit 3000\nsys_interval 1\n") else {
        return;
    };
    let found = ask(
        "mqtt",
        broker.address,
        Bounds { payload_bytes: 10_000, name_bytes: 65_535, queue_messages: 50 },
    );
    found.is("payload_bytes", Status::Less, 3_000).is("qos_max", Status::Yes, 2);
    for name in [
        "version_3_1",
        "version_3_1_1",
        "version_5",
        "shared_subscriptions",
        "no_local",
        "subscription_identifiers",
        "retain",
        "retain_wildcard",
        "retain_clear",
        "session",
        "message_expiry",
        "will",
        "sys_topics",
    ] {
        found.stands(name, Status::Yes);
    }
    // TOPIC_HIERARCHY_LIMIT of its source is 200 slashes.
    found.is("topic_levels", Status::Less, 201);
}
