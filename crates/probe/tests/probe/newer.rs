//! Brokers of AMQP 1.0 and Kafka, and servers of Redis and HTTP/3.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weigh_probe::Bounds;
use weigh_probe::abilities::{Status, Value};

use crate::rig::{Found, PATIENCE, SMALL, ask, asked, reach, serve};

#[track_caller]
fn says(found: &Found, name: &str, text: &str) {
    let ability = found.ability(name);
    assert_eq!(ability.value, Some(Value::Text(text.to_owned())), "{ability:?}");
}

#[test]
fn a_broker_of_kafka_is_asked() {
    let broker = serve("kafka", &[]);
    let found = ask("kafka", broker.address(), SMALL);
    found.is("apis", Status::Yes, 14).is("brokers", Status::Yes, 1);
    for name in ["versions", "topic_creation", "idempotent_producers", "consumer_groups"] {
        found.stands(name, Status::Yes);
    }
    // The reference broker shows no settings.
    found.stands("durability", Status::Untried).saw("durability", "DescribeConfigs");
}

#[test]
fn a_broker_of_amqp1_is_asked() {
    let limits = [("broker_max_frame_size", "4096"), ("broker_message_bytes_max", "5000")];
    let broker = serve("amqp1", &limits);
    let found = ask("amqp1", broker.address(), SMALL);
    says(&found, "sasl", "PLAIN, ANONYMOUS");
    found.is("frame_bytes", Status::Yes, 4_096).is("message_bytes", Status::Yes, 5_000);
    found.stands("without_sasl", Status::Yes).stands("link_credit", Status::Yes);
    found.stands("settled_second", Status::No);
    found.stands("anonymous_target", Status::Refused).stands("dynamic_node", Status::Refused);
    found.saw("dynamic_node", "amqp:not-");
}

#[test]
fn a_user_is_asked_for_once() {
    let of_amqp1 = [("broker_user", "ada"), ("broker_password", "secret")];
    let of_redis = [("server_user", "ada"), ("server_password", "secret")];
    for (scheme, login) in [("amqp1", of_amqp1), ("redis", of_redis)] {
        let broker = serve(scheme, &login);
        let address = broker.address();
        let own = |user: &str| {
            let url = format!("{scheme}://{user}{address}");
            asked(&reach(&url, address, PATIENCE), SMALL)
        };
        let error = own("").err().unwrap().to_string();
        assert!(error.contains("refused us") && error.contains("WEIGH_PASSWORD"), "{error}");
        let error = own("ada:wrong@").err().unwrap().to_string();
        assert!(error.contains("check user and password"), "{error}");
        assert!(own("ada:secret@").is_ok());
    }
}

#[test]
fn a_server_of_redis_is_asked() {
    let server = serve("redis", &[("bulk_bytes_max", "5000")]);
    let found = ask("redis", server.address(), SMALL);
    for name in ["resp3", "publish", "set", "streams", "consumer_groups"] {
        found.stands(name, Status::Yes);
    }
    says(&found, "durability", "memory");
    says(&found, "mode", "standalone");
    found.is("value_bytes", Status::Less, 5_000);
}

/// A redis-server with these options; it ends with this.
struct Redis {
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// `None`, and said, where there is none; in continuous integration there must be one.
fn redis(test: &str, options: &[&str]) -> Option<Redis> {
    let folders = std::env::var("PATH").unwrap_or_default();
    let places = folders.split(':').map(|folder| Path::new(folder).join("redis-server"));
    let Some(program) = places.into_iter().find(|place| place.is_file()) else {
        let must = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!must, "redis-server is not installed, and CI=true");
        eprintln!("SKIPPED {test}: redis-server is not installed");
        return None;
    };
    let folder = std::env::temp_dir().join(format!("weigh-probe-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let address = TcpListener::bind("127.0.0.1:0").and_then(|own| own.local_addr()).unwrap();
    let child = Command::new(program)
        .args(["--bind", "127.0.0.1", "--save", "", "--port", &address.port().to_string()])
        .args(options)
        .current_dir(&folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let redis = Redis { child, folder, address };
    let asked = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(asked.elapsed() < Duration::from_secs(30), "redis-server does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(redis)
}

/// What redis.conf says is found, and nothing is left.
#[test]
fn the_real_redis_says_what_its_configuration_says() {
    let limits = ["--maxclients", "77", "--client-output-buffer-limit", "pubsub", "9000", "0", "0"];
    for (more, durability) in [
        (&["--appendonly", "no"][..], "memory"),
        (&["--appendonly", "yes", "--appendfsync", "no"], "page-cache"),
        (&["--appendonly", "yes", "--appendfsync", "everysec"], "fsync=1s"),
        (&["--appendonly", "yes", "--appendfsync", "always"], "fsync"),
    ] {
        let Some(server) = redis("redis", &[&limits[..], more].concat()) else { return };
        let found = ask("redis", server.address, Bounds { payload_bytes: 100_000, ..SMALL });
        says(&found, "durability", durability);
        found.is("clients", Status::Yes, 77).is("subscriber_buffer", Status::Yes, 9_000);
        found.is("value_bytes", Status::Yes, 100_000).stands("streams", Status::Yes);
        says(&found, "memory_bytes", "no limit");
        says(&found, "eviction", "noeviction");
        let left = Command::new("redis-cli")
            .args(["-p", &server.address.port().to_string(), "DBSIZE"])
            .output();
        if let Ok(left) = left {
            assert_eq!(String::from_utf8_lossy(&left.stdout).trim(), "0");
        }
    }
}

/// A managed service may forbid CONFIG: INFO says at least whether there is a file.
#[test]
fn a_redis_without_config_says_less() {
    let forbids = ["--rename-command", "CONFIG", ""];
    let Some(server) = redis("redis-managed", &forbids) else { return };
    let found = ask("redis", server.address, SMALL);
    says(&found, "durability", "memory");
    found.stands("clients", Status::Refused).stands("memory_bytes", Status::Yes);
}

#[cfg(feature = "quic")]
#[test]
fn a_server_of_http3_is_asked() {
    use crate::rig::inside_quic;

    let limits = [("body_bytes_max", "12345")];
    let (_server, mut inside, folder) =
        inside_quic(("http3", &limits), "h3", "h3://ADDRESS/messages");
    let bounds = Bounds { payload_bytes: 100_000, ..SMALL };
    let found = asked(&inside, bounds).unwrap();
    found.is("body_bytes", Status::Less, 12_345).saw("body_bytes", "12346 did not: 413");
    found.is("qpack_table_bytes", Status::Yes, 0).is("field_section_bytes", Status::Yes, 16_384);
    found.is("concurrent_streams", Status::Yes, 64).is("method_get", Status::Refused, 405);
    found.stands("extended_connect", Status::No);
    says(&found, "quic", "QUICv1 TLSv1_3 h3");
    inside.tls.iter_mut().for_each(|own| own.name = "another.example".to_owned());
    let error = asked(&inside, bounds).err().unwrap().to_string();
    assert!(error.contains("QUIC did not come about"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
