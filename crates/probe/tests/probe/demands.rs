//! Trials that a target cannot carry are refused at the key that asks for it, and no others are.

use serde_json::{Value as Json, json};
use weigh_model::trial::Settings;
use weigh_model::{Load, Nanos, Pattern, Topology, Trial};
use weigh_probe::abilities::{Abilities, Ability, How, SCHEMA, Status, Value};
use weigh_probe::demands::refusal;
use weigh_protocols as registry;

fn trial(protocol: &str, given: &[(&str, &str)], load: &[(&str, Json)]) -> Trial {
    let protocol = registry::find(protocol).unwrap();
    let given = given.iter().copied();
    let settings = Settings::new(protocol.name(), protocol.settings(), given).unwrap();
    let mut whole = json!(Load {
        subscribers: 2,
        topology: Topology::Pairs,
        duration: Some(Nanos::from_secs(1)),
        ..Load::closed(Pattern::Deliver, 2)
    });
    for (key, value) in load {
        whole[*key] = value.clone();
    }
    Trial {
        id: String::new(),
        point: Default::default(),
        repetition: 0,
        seed: 0,
        protocol: protocol.name().to_owned(),
        target: "reference".to_owned(),
        endpoint: None,
        load: serde_json::from_value(whole).unwrap(),
        settings,
    }
}

fn known(protocol: &str, name: &str, status: Status, number: Option<u64>) -> Abilities {
    let ability = Ability {
        name: name.to_owned(),
        status,
        value: number.map(Value::Number),
        unit: None,
        how: How::Tried,
        evidence: "it was seen".to_owned(),
    };
    Abilities {
        schema: SCHEMA.to_owned(),
        target: "some".to_owned(),
        title: Some("Some 1.0".to_owned()),
        protocol: protocol.to_owned(),
        probed_at: "2026-11-21T12:00:00Z".to_owned(),
        weigh: "0.1.0".to_owned(),
        abilities: vec![ability],
    }
}

#[test]
fn what_is_missing_is_refused_where_it_is_asked_for() {
    let size = |bytes: &str| [("size", json!(bytes))];
    let (shared, no) = ([("topology", json!("shared"))], Status::Refused);
    for (protocol, name, status, number, given, load, place) in [
        ("mqtt", "qos_max", Status::Less, Some(1), &[("qos", "2")][..], &[][..], "mqtt.qos"),
        ("mqtt", "version_5", no, None, &[("version", "5")], &[], "mqtt.version"),
        ("mqtt", "version_3_1_1", no, None, &[], &[], "mqtt.version"),
        ("mqtt", "retain", Status::No, None, &[("retain", "true")], &[], "mqtt.retain"),
        ("mqtt", "shared_subscriptions", no, None, &[], &shared[..], "load.topology"),
        (
            "mqtt",
            "topic_alias_maximum",
            Status::No,
            Some(0),
            &[("topic_alias", "true")],
            &[],
            "mqtt.topic_alias",
        ),
        ("mqtt", "session", Status::No, None, &[("clean", "false")], &[], "mqtt.clean"),
        (
            "mqtt",
            "message_expiry",
            Status::NoAnswer,
            None,
            &[("message_expiry", "5s")],
            &[],
            "mqtt.message_expiry",
        ),
        ("mqtt", "will", Status::No, None, &[("will_topic", "a")], &[], "mqtt.will_topic"),
        ("mqtt", "topic_levels", Status::Less, Some(2), &[("topic", "a/b/%i")], &[], "mqtt.topic"),
        ("mqtt", "payload_bytes", Status::Less, Some(99), &[], &size("100B")[..], "load.size"),
        ("http1", "method_post", no, None, &[], &[], "http1.method"),
        ("http1", "keep_alive", Status::No, None, &[], &[], "http1.keep_alive"),
        ("http1", "pipelining", Status::No, None, &[("pipeline", "4")], &[], "http1.pipeline"),
        (
            "http1",
            "chunked_request",
            Status::No,
            None,
            &[("chunked", "true")],
            &[],
            "http1.chunked",
        ),
        ("http1", "continue_100", Status::No, None, &[("expect", "true")], &[], "http1.expect"),
        ("http1", "body_bytes", Status::Less, Some(99), &[], &size("100B")[..], "load.size"),
        ("grpc", "service", Status::No, None, &[], &[], "target"),
        ("grpc", "message_bytes", Status::Less, Some(99), &[], &size("100B")[..], "load.size"),
        ("http2", "body_bytes", Status::Less, Some(99), &[], &size("100B")[..], "load.size"),
        ("http3", "body_bytes", Status::Less, Some(99), &[], &size("100B")[..], "load.size"),
        ("kafka", "idempotent_producers", no, None, &[("acks", "idempotent")], &[], "kafka.acks"),
        ("kafka", "consumer_groups", no, None, &[("group", "one")], &[], "kafka.group"),
        ("kafka", "topic_creation", no, None, &[], &[], "kafka.create"),
        ("redis", "streams", no, None, &[("command", "xadd")], &[], "redis.command"),
        ("redis", "resp3", no, None, &[("resp", "3")], &[], "redis.resp"),
        ("redis", "value_bytes", Status::Less, Some(99), &[], &size("100B")[..], "load.size"),
    ] {
        let asked = trial(protocol, given, load);
        let refused = refusal(&known(protocol, name, status, number), &asked);
        let refused = refused.unwrap_or_else(|| panic!("{protocol} without {name} is let go on"));
        assert_eq!(refused.place, place, "{name}");
        assert!(refused.problem.contains("Some 1.0"), "{refused}");
        assert!(refused.problem.contains("probed 2026-11-21"), "{refused}");
        assert!(!refused.fix.is_empty(), "{refused}");
        // The plan is accepted if the ability is there, and if it has not been tested.
        for status in [Status::Yes, Status::Untried] {
            let known = known(protocol, name, status, number.filter(|_| name != "qos_max"));
            assert_eq!(refusal(&known, &asked), None, "{name} {status:?}");
        }
    }
}

/// What a server announces is a limit, without a search for one.
#[test]
fn an_announced_limit_counts() {
    for (protocol, name) in [("amqp1", "message_bytes"), ("kafka", "batch_bytes")] {
        let known = known(protocol, name, Status::Yes, Some(99));
        let of = |size: &str| refusal(&known, &trial(protocol, &[], &[("size", json!(size))]));
        assert_eq!(of("99B"), None);
        let refused = of("100B").unwrap();
        assert_eq!(refused.place, "load.size");
        assert!(refused.problem.contains(name) && refused.fix.contains("99B"), "{refused}");
    }
}

#[test]
fn what_is_not_asked_for_is_not_missed() {
    for name in ["retain", "shared_subscriptions", "session", "will", "message_expiry"] {
        let known = known("mqtt", name, Status::No, None);
        assert_eq!(refusal(&known, &trial("mqtt", &[], &[])), None, "{name}");
        assert_eq!(refusal(&known, &trial("http1", &[], &[])), None, "of another protocol");
    }
    let limit = known("mqtt", "payload_bytes", Status::Less, Some(100));
    let fits = trial("mqtt", &[], &[("size", json!("100B"))]);
    assert_eq!(refusal(&limit, &fits), None);
    // A path that answers 404 may still take what is sent.
    let odd = known("http1", "method_post", Status::No, Some(404));
    assert_eq!(refusal(&odd, &trial("http1", &[], &[])), None);
}
