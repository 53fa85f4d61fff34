//! Servers of our own, whose limits are known because they were set.

use crate::rig::{SMALL, ask, ask_at, serve};
use weigh_probe::Bounds;
use weigh_probe::abilities::{Status, Value};

#[test]
fn a_broker_without_limits_can_do_everything() {
    let broker = serve("mqtt", &[]);
    let found = ask("mqtt", broker.address(), SMALL);
    for name in [
        "version_3_1_1",
        "version_5",
        "client_id_empty",
        "order_qos_0",
        "order_qos_1",
        "order_qos_2",
        "wildcard_one_level",
        "wildcard_many_levels",
        "shared_subscriptions",
        "no_local",
        "subscription_identifiers",
        "retain",
        "retain_wildcard",
        "retain_clear",
        "session",
        "message_expiry",
        "will",
    ] {
        found.stands(name, Status::Yes);
    }
    found.is("qos_0", Status::Yes, 0).is("qos_1", Status::Yes, 1).is("qos_2", Status::Yes, 2);
    found.is("qos_max", Status::Yes, 2).is("receive_maximum", Status::Yes, 65_535);
    found.is("topic_alias_maximum", Status::Yes, 16).is("keep_alive", Status::Yes, 65_535);
    found.is("payload_bytes", Status::Yes, SMALL.payload_bytes);
    found.is("topic_bytes", Status::Yes, 65_535).is("topic_levels", Status::Yes, 1_000);
    found.is("queue_offline", Status::Yes, SMALL.queue_messages);
    found.is("queue_stalled", Status::Yes, SMALL.queue_messages);
    found.stands("version_3_1", Status::Refused).stands("beyond_receive_maximum", Status::Untried);
    found.stands("websocket_on_port", Status::No).stands("tls_on_port", Status::No);
    found.stands("sys_topics", Status::No);
}

#[test]
fn limits_that_a_broker_was_given_are_found() {
    let broker = serve(
        "mqtt",
        &[
            ("broker_maximum_qos", "1"),
            ("broker_receive_maximum", "7"),
            ("broker_topic_alias_maximum", "3"),
            ("broker_keep_alive", "20s"),
            ("overload", "drop-newest:50"),
        ],
    );
    let found = ask("mqtt", broker.address(), SMALL);
    found.stands("qos_2", Status::Refused).saw("qos_2", "QoS not supported");
    found.is("qos_max", Status::Less, 1).saw("qos_max", "Maximum QoS of the CONNACK is 1");
    found.is("receive_maximum", Status::Yes, 7).is("topic_alias_maximum", Status::Yes, 3);
    found.is("keep_alive", Status::Less, 20).is("queue_offline", Status::Less, 50);
    found.saw("queue_offline", "0 to 49");
}

#[cfg(feature = "library")]
#[test]
fn the_largest_body_and_message_are_found_to_the_byte() {
    let bounds = Bounds { payload_bytes: 100_000, ..SMALL };
    let server = serve("http1", &[("body_bytes_max", "12345")]);
    let found = ask_at("http", server.address(), "/messages", bounds);
    found.is("body_bytes", Status::Less, 12_345).saw("body_bytes", "12346 did not: 413");
    for name in ["keep_alive", "pipelining", "chunked_request", "continue_100"] {
        found.stands(name, Status::Yes);
    }
    found.is("method_get", Status::Yes, 200).stands("http2_prior_knowledge", Status::No);

    let server = serve("grpc", &[("message_bytes_max", "54321")]);
    let found = ask("grpc", server.address(), bounds);
    found.is("message_bytes", Status::Less, 54_321);
    found.stands("service", Status::Yes).stands("health", Status::No);
    found.is("concurrent_streams", Status::Yes, 65_535);

    let server = serve("http2", &[]);
    let found = ask_at("h2c", server.address(), "/messages", bounds);
    found.is("body_bytes", Status::Yes, 100_000);
    let streams = found.ability("concurrent_streams").value.clone();
    assert_eq!(streams, Some(Value::Number(65_535)));
}

/// A server of CoAP, of which every answer is known.
#[test]
fn a_server_of_coap_is_asked() {
    let server = serve("coap", &[("body_bytes_max", "5000")]);
    let bounds = Bounds { payload_bytes: 20_000, ..SMALL };
    let found = ask_at("coap", server.address(), "/messages", bounds);
    for name in ["ping", "observe", "block1", "block2", "no_response"] {
        found.stands(name, Status::Yes);
    }
    found.is("method_get", Status::Yes, 205).is("method_post", Status::Yes, 204);
    found.is("method_put", Status::Yes, 204).is("method_put_new", Status::No, 404);
    found.is("method_fetch", Status::Refused, 405);
    found.is("block1_bytes", Status::Yes, 1_024);
    found.is("body_bytes", Status::Less, 5_000).saw("body_bytes", "5001 did not: 4.13");
    found.is("well_known_core", Status::Yes, 2).stands("etag", Status::No);
    let words = |name: &str| found.ability(name).value.clone();
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    assert_eq!(words("con_response"), text("piggybacked"));
    assert_eq!(words("non_response"), text("NON"));
    assert_eq!(words("notification"), text("CON"));
    assert_eq!(words("unknown_critical_option"), text("4.02"));
    let separate = serve("coap", &[("response", "separate"), ("type", "non")]);
    let found = ask_at("coap", separate.address(), "/messages", bounds);
    assert_eq!(found.ability("con_response").value, text("separate"));
    assert_eq!(found.ability("notification").value, text("NON"));
    found.is("body_bytes", Status::Yes, 20_000);
}

/// The layers of a URL are put around every connection: WebSocket, and that inside TLS.
#[cfg(feature = "tls")]
#[test]
fn inside_websocket_and_tls_it_is_the_same_broker() {
    use crate::rig::{PATIENCE, asked, reach, serve_as};
    use weigh_engine::layer::tls::{
        Certificates, ClientChoice, Identity, MadeFor, ServerChoice, Versions, secure_host,
    };
    use weigh_engine::layer::websocket::wrap_host;

    let folder = std::env::temp_dir().join(format!("weigh-probe-tls-{}", std::process::id()));
    let made = Certificates::make(&folder).unwrap();
    let (certificate, key) = made.of(MadeFor::Server);
    let choice = ServerChoice {
        versions: Versions::Both,
        identity: Identity { certificate, key },
        clients: None,
        alpn: Vec::new(),
        resumes: false,
    };
    let few = Bounds { payload_bytes: 100_000, name_bytes: 65_535, queue_messages: 20 };
    let broker = serve_as("mqtt", &[], |host| wrap_host(host, "mqtt", &Default::default()));
    let found = ask_at("ws", broker.address(), "/mqtt", few);
    found.is("qos_max", Status::Yes, 2).stands("websocket_on_port", Status::Yes);
    found.is("payload_bytes", Status::Yes, 100_000);

    let broker = serve_as("mqtt", &[], |host| {
        let host = wrap_host(host, "mqtt", &Default::default());
        secure_host(host, &choice, &Default::default()).unwrap()
    });
    let address = broker.address();
    let mut inside = reach(&format!("wss://{address}/mqtt"), address, PATIENCE);
    let client = ClientChoice {
        versions: Versions::Both,
        authority: Some(made.authority()),
        identity: None,
        name: "localhost".to_owned(),
        alpn: Vec::new(),
        resumes: false,
        verifies: true,
    };
    inside.tls = Some(client.clone());
    let found = asked(&inside, few).unwrap();
    found.is("qos_max", Status::Yes, 2).stands("tls_on_port", Status::Yes);
    inside.tls = Some(ClientChoice { name: "another.example".to_owned(), ..client });
    let error = asked(&inside, few).err().unwrap().to_string();
    assert!(error.contains("TLS did not come about"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
