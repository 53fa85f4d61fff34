//! Servers of WebSocket and of server-sent events, and brokers of MQTT on a stream of QUIC.

use weigh_probe::Bounds;
use weigh_probe::abilities::{Status, Value};

use crate::rig::{PATIENCE, SMALL, ask_at, asked, reach, serve};

#[test]
fn a_server_of_websocket_is_asked() {
    let server = serve("websocket", &[("message_bytes_max", "5000")]);
    let found = ask_at("websocket", server.address(), "/messages/echo", SMALL);
    for name in [
        "upgrade",
        "without_subprotocol",
        "any_origin",
        "ping",
        "binary",
        "text",
        "fragments",
        "checks_utf8",
        "close",
    ] {
        found.stands(name, Status::Yes);
    }
    found.saw("binary", "it came back").saw("checks_utf8", "1007").saw("close", "1000");
    found.stands("subprotocols", Status::No).stands("compression", Status::No);
    found.is("message_bytes", Status::Less, 5_000).saw("message_bytes", "1009");
    let silent = ask_at("websocket", server.address(), "/messages/none", SMALL);
    silent.stands("binary", Status::Yes).saw("binary", "nothing came");
}

#[test]
fn a_subprotocol_that_is_needed_is_found() {
    let server = serve("websocket", &[("subprotocol", "v12.stomp")]);
    let found = ask_at("websocket", server.address(), "/messages/echo", SMALL);
    found.stands("without_subprotocol", Status::Refused).stands("ping", Status::Yes);
    let taken = found.ability("subprotocols");
    assert_eq!(taken.value, Some(Value::Text("v12.stomp".to_owned())), "{taken:?}");
    let address = server.address();
    let wrong = asked(&reach(&format!("websocket://{address}/"), address, PATIENCE), SMALL);
    let error = wrong.err().unwrap().to_string();
    assert!(error.contains("check the path"), "{error}");
}

#[test]
fn a_server_of_events_is_asked() {
    let limits = [("event_bytes_max", "5000"), ("server_retry", "750ms")];
    let server = serve("sse", &limits);
    let bounds = Bounds { payload_bytes: 10_000, ..SMALL };
    let found = ask_at("sse", server.address(), "/events", bounds);
    for name in ["stream", "publish", "events", "event_ids", "last_event_id"] {
        found.stands(name, Status::Yes);
    }
    let framing = found.ability("framing");
    assert_eq!(framing.value, Some(Value::Text("chunked".to_owned())), "{framing:?}");
    found.is("retry", Status::Yes, 750).is("event_bytes", Status::Less, 5_000);
    found.stands("compression", Status::No).stands("any_origin", Status::No);
}

/// Without a history there are no ids, and a stream that ends with its connection has no chunks.
#[test]
fn what_a_server_of_events_does_not_have_is_found_missing() {
    let server = serve("sse", &[("server_history", "0"), ("server_framing", "close")]);
    let found = ask_at("sse", server.address(), "/events", SMALL);
    let framing = found.ability("framing");
    assert_eq!(framing.value, Some(Value::Text("close".to_owned())), "{framing:?}");
    found.stands("event_ids", Status::No).stands("last_event_id", Status::No);
    found.stands("retry", Status::No).stands("event_bytes", Status::Yes);
    let address = server.address();
    let wrong = asked(&reach(&format!("sse://{address}/other"), address, PATIENCE), SMALL);
    let error = wrong.err().unwrap().to_string();
    assert!(error.contains("404") && error.contains("check the path"), "{error}");
}

/// The same broker, asked over TCP and over QUIC, has the same abilities.
#[cfg(feature = "quic")]
#[test]
fn a_broker_of_mqtt_is_asked_on_a_stream_of_quic() {
    use crate::rig::{ask, inside_quic};

    let limits = [("broker_maximum_qos", "1"), ("overload", "drop-newest:50")];
    let (_server, inside, folder) = inside_quic(("mqtt", &limits), "mqtt", "mqtt-quic://ADDRESS");
    let bounds = Bounds { payload_bytes: 6 << 20, name_bytes: 4_096, ..SMALL };
    let found = asked(&inside, bounds).unwrap();
    let own = serve("mqtt", &limits);
    let over_tcp = ask("mqtt", own.address(), bounds);
    let quic = found.ability("quic");
    assert_eq!(quic.value, Some(Value::Text("QUICv1 TLSv1_3 mqtt".to_owned())), "{quic:?}");
    found.stands("quic_streams", Status::Yes);
    for name in [
        "version_3_1_1",
        "version_5",
        "order_qos_1",
        "shared_subscriptions",
        "retain",
        "retain_clear",
        "session",
        "message_expiry",
        "will",
        "qos_max",
        "receive_maximum",
        "topic_alias_maximum",
        "payload_bytes",
        "topic_bytes",
        "topic_levels",
        "queue_offline",
    ] {
        let (own, other) = (found.ability(name), over_tcp.ability(name));
        assert_eq!((&own.status, &own.value), (&other.status, &other.value), "{own:?} {other:?}");
    }
    found.is("queue_offline", Status::Less, 50).is("qos_max", Status::Less, 1);
    found.is("payload_bytes", Status::Yes, 6 << 20);
    for name in ["queue_stalled", "websocket_on_port"] {
        found.stands(name, Status::Untried);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
