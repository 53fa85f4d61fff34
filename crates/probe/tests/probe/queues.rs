//! Brokers of AMQP 0-9-1, and servers of NATS.

use weigh_probe::abilities::{Status, Value};

use crate::rig::{Found, PATIENCE, SMALL, ask, asked, reach, serve};

#[track_caller]
fn says(found: &Found, name: &str, text: &str) {
    let ability = found.ability(name);
    assert_eq!(ability.value, Some(Value::Text(text.to_owned())), "{ability:?}");
}

#[test]
fn a_broker_of_amqp_is_asked() {
    let limits = [("broker_message_bytes_max", "5000"), ("broker_frame_max", "8192")];
    let broker = serve("amqp", &limits);
    let found = ask("amqp", broker.address(), SMALL);
    for name in [
        "publisher_confirms",
        "mandatory_return",
        "headers",
        "prefetch",
        "redelivery",
        "durable_queues",
        "quorum_queues",
        "max_length",
        "reject_publish",
    ] {
        found.stands(name, Status::Yes);
    }
    found.is("frame_bytes", Status::Yes, 8_192).is("channels", Status::Yes, 2_047);
    found.is("message_bytes", Status::Less, 5_000).is("heartbeat", Status::Yes, 60);
    found.saw("message_bytes", "5001 did not").saw("mandatory_return", "312");
    found.saw("quorum_queues", "a transient one refused");
    says(&found, "mechanisms", "PLAIN");
    // What the reference broker does not have, it refuses.
    for name in ["transactions", "stream_queues", "message_ttl"] {
        found.stands(name, Status::Refused);
    }
}

#[test]
fn a_broker_of_amqp_is_asked_as_its_user_at_its_virtual_host() {
    let login = [("broker_user", "ada"), ("broker_password", "secret"), ("vhost", "a/b")];
    let broker = serve("amqp", &login);
    let address = broker.address();
    let own = |user: &str, path: &str| {
        asked(&reach(&format!("amqp://{user}{address}{path}"), address, PATIENCE), SMALL)
    };
    let error = own("", "/a%2Fb").err().unwrap().to_string();
    assert!(error.contains("refused us") && error.contains("WEIGH_PASSWORD"), "{error}");
    let error = own("ada:wrong@", "/a%2Fb").err().unwrap().to_string();
    assert!(error.contains("check user and password"), "{error}");
    let error = own("ada:secret@", "/other").err().unwrap().to_string();
    assert!(error.contains("refused us"), "{error}");
    assert!(own("ada:secret@", "/a%2Fb").is_ok());
}

/// Each broker says which of the two AMQP it speaks.
#[test]
fn the_other_amqp_is_named() {
    for (scheme, other) in [("amqp", "amqp1"), ("amqp1", "amqp")] {
        let broker = serve(other, &[]);
        let address = broker.address();
        let asked = asked(&reach(&format!("{scheme}://{address}"), address, PATIENCE), SMALL);
        let error = asked.err().unwrap().to_string();
        assert!(error.contains(&format!("type {other}://{address}")), "{error}");
    }
}

#[test]
fn a_server_of_nats_is_asked() {
    let server = serve("nats", &[("server_max_payload", "65536")]);
    let found = ask("nats", server.address(), SMALL);
    for name in [
        "publish",
        "wildcard_one_level",
        "wildcard_many_levels",
        "queue_groups",
        "headers",
        "no_responders",
        "verbose",
        "no_echo",
        "jetstream",
        "storage_file",
        "storage_memory",
        "deduplication",
        "pull_consumers",
    ] {
        found.stands(name, Status::Yes);
    }
    found.is("payload_bytes", Status::Yes, 65_536).stands("tls", Status::No);
    // The reference server ignores what it does not have, and says so by what it answers.
    found.stands("compression", Status::No).stands("replicas", Status::No);
    // Its account counts the messages in memory, whatever storage the stream says.
    found.stands("durability", Status::Untried).saw("durability", "0 more in files");
    assert_eq!(found.ability("subject_bytes").status, Status::Less);
}

#[test]
fn a_server_of_nats_is_asked_with_its_token() {
    let server = serve("nats", &[("server_token", "secret")]);
    let address = server.address();
    let own =
        |user: &str| asked(&reach(&format!("nats://{user}{address}"), address, PATIENCE), SMALL);
    let error = own("").err().unwrap().to_string();
    assert!(error.contains("Authorization Violation"), "{error}");
    assert!(own("secret@").is_ok());
}
