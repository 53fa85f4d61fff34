//! The MQTT client alone, against bytes written by hand.

use crate::mqtt_world::{Said, dial, keep, trial};
use weigh_model::connection::{Connection, Fault, Op, Outbox, Ticket};
use weigh_model::protocol::{Protocol, Role, Seat};
use weigh_model::trial::Settings;
use weigh_model::{Nanos, Pattern};
use weigh_protocols::mqtt::Mqtt;
use weigh_stats::random::Random;

/// A connection that has heard `greeting` (CONNACK, and SUBACK for a consumer).
fn ready(given: &[(&str, &str)], role: Role, greeting: &[u8]) -> (Box<dyn Connection>, Vec<Said>) {
    let mut connection = (dial(&trial(given, 1, 1)).make)(Seat { index: 0, role });
    connection.open(Nanos(0), &mut Outbox::default(), &mut |_| {});
    let (said, _) = hear(&mut connection, greeting);
    assert_eq!(said.last(), Some(&Said::Ready));
    (connection, said)
}

/// What the connection says and answers to `bytes`.
fn hear(connection: &mut Box<dyn Connection>, bytes: &[u8]) -> (Vec<Said>, Vec<u8>) {
    let mut said = Vec::new();
    let mut out = Outbox::default();
    let result =
        connection.receive(bytes, Nanos(1), &mut out, &mut |signal| keep(&mut said, signal));
    assert_eq!(result, Ok(bytes.len()));
    (said, out.bytes().to_vec())
}

fn send(connection: &mut Box<dyn Connection>, ticket: u32) -> Vec<u8> {
    let mut out = Outbox::default();
    connection.send(&Op { ticket: Ticket(ticket), body: b"x" }, Nanos(1), &mut out);
    out.bytes().to_vec()
}

const CONNACK: [u8; 4] = [0x20, 2, 0, 0];
const CONNACK_5: [u8; 5] = [0x20, 3, 0, 0, 0];
const TOPIC: &[u8] = b"weigh/beef/0";

#[test]
fn connect_and_publish_are_byte_exact() {
    let mut connection =
        (dial(&trial(&[("qos", "1")], 1, 0)).make)(Seat { index: 0, role: Role::Producer });
    let mut out = Outbox::default();
    connection.open(Nanos(0), &mut out, &mut |_| {});
    let client_id = b"weigh-beef-p0";
    let head = [&[0x10, 25, 0, 4][..], b"MQTT", &[4, 2, 0, 60, 0, 13]].concat();
    assert_eq!(out.bytes(), [&head, &client_id[..]].concat());
    hear(&mut connection, &CONNACK);
    let expected = [&[0x32, 17, 0, 12][..], TOPIC, &[0, 1], b"x"].concat();
    assert_eq!(send(&mut connection, 0), expected);
}

#[test]
fn a_will_and_credentials_go_into_connect() {
    let mut trial = trial(&[("will_topic", "w/%r%i"), ("will_body", "bye"), ("qos", "2")], 1, 0);
    let url = "mqtt://me:secret@127.0.0.1";
    trial.endpoint = Some(weigh_protocols::urls::endpoint(url).unwrap());
    let mut connection = (dial(&trial).make)(Seat { index: 0, role: Role::Producer });
    let mut out = Outbox::default();
    connection.open(Nanos(0), &mut out, &mut |_| {});
    let fields = b"\0\x04w/p0\0\x03bye\0\x02me\0\x06secret";
    assert!(out.bytes().ends_with(fields), "{:?}", out.bytes().escape_ascii().to_string());
    assert_eq!(out.bytes()[9], 0b1101_0110, "user, password, will at QoS 2, clean");
}

#[test]
fn qos_2_in_both_directions() {
    let (mut producer, _) = ready(&[("qos", "2")], Role::Producer, &CONNACK);
    send(&mut producer, 5);
    assert_eq!(hear(&mut producer, &[0x50, 2, 0, 1]), (vec![], vec![0x62, 2, 0, 1]));
    assert_eq!(hear(&mut producer, &[0x50, 2, 0, 1]).1, [0x62, 2, 0, 1], "asked again");
    assert_eq!(hear(&mut producer, &[0x70, 2, 0, 1]), (vec![Said::Done(5)], vec![]));
    assert_eq!(hear(&mut producer, &[0x70, 2, 0, 1]), (vec![], vec![]), "nothing is done twice");

    let greeting = [&CONNACK[..], &[0x90, 3, 0, 1, 2]].concat();
    let (mut consumer, said) = ready(&[("qos", "2")], Role::Consumer, &greeting);
    assert_eq!(said, [Said::Granted("granted_qos", 2), Said::Ready]);
    let first = [0x34, 6, 0, 1, b't', 0, 9, b'x'];
    let again = [0x3C, 6, 0, 1, b't', 0, 9, b'x'];
    let message = Said::Message("t".to_owned(), b"x".to_vec());
    assert_eq!(hear(&mut consumer, &first), (vec![message.clone()], vec![0x50, 2, 0, 9]));
    assert_eq!(hear(&mut consumer, &again), (vec![], vec![0x50, 2, 0, 9]));
    assert_eq!(hear(&mut consumer, &[0x62, 2, 0, 9]), (vec![], vec![0x70, 2, 0, 9]));
    assert_eq!(hear(&mut consumer, &first).0, [message]);
}

#[test]
fn reason_codes_become_refusals() {
    let (mut connection, _) = ready(&[("qos", "1"), ("version", "5")], Role::Producer, &CONNACK_5);
    send(&mut connection, 5);
    assert_eq!(hear(&mut connection, &[0x40, 3, 0, 1, 0x97]).0, [Said::Refused(5, 0x97)]);
    let (mut connection, _) = ready(&[("qos", "2"), ("version", "5")], Role::Producer, &CONNACK_5);
    send(&mut connection, 5);
    assert_eq!(
        hear(&mut connection, &[0x50, 3, 0, 1, 0x87]),
        (vec![Said::Refused(5, 0x87)], vec![])
    );
    assert_eq!(hear(&mut connection, &[0x50, 2, 0, 1]).1, [0x62, 3, 0, 1, 0x92], "it is not known");
    send(&mut connection, 6);
    hear(&mut connection, &[0x50, 3, 0, 2, 0x10]);
    assert_eq!(hear(&mut connection, &[0x70, 2, 0, 2]).0, [Said::NoSubscriber(6)]);
}

#[test]
fn a_server_that_answers_qos_2_as_qos_1_is_recorded() {
    let (mut connection, _) = ready(&[("qos", "2")], Role::Producer, &CONNACK);
    send(&mut connection, 5);
    let expected = [Said::Granted("maximum_qos", 1), Said::Done(5)];
    assert_eq!(hear(&mut connection, &[0x40, 2, 0, 1]).0, expected);
    send(&mut connection, 6);
    assert_eq!(hear(&mut connection, &[0x40, 2, 0, 2]).0, [Said::Done(6)]);
}

#[test]
fn the_window_is_what_the_server_takes() {
    let connack = [0x20, 6, 0, 0, 3, 0x21, 0, 10];
    let (mut connection, said) = ready(&[("qos", "1"), ("version", "5")], Role::Producer, &connack);
    assert_eq!(said[0], Said::Granted("receive_maximum", 10));
    for left in (0..10).rev() {
        send(&mut connection, left);
        assert_eq!(connection.room(), left);
    }
    hear(&mut connection, &[0x40, 2, 0, 4]);
    assert_eq!(connection.room(), 1);
    let (connection, _) = ready(&[("qos", "1")], Role::Producer, &CONNACK);
    assert_eq!(connection.room(), 65_535, "3.1.1 has no receive maximum");
    let (connection, said) = ready(&[("qos", "2")], Role::Producer, &CONNACK);
    assert_eq!((connection.room(), &said[0]), (20, &Said::Granted("receive_maximum_assumed", 20)));
    let mut asked = trial(&[("qos", "2")], 1, 0);
    asked.load.window = Some(64);
    let mut connection = (dial(&asked).make)(Seat { index: 0, role: Role::Producer });
    connection.open(Nanos(0), &mut Outbox::default(), &mut |_| {});
    hear(&mut connection, &CONNACK);
    assert!(connection.room() >= 64, "what the user asks for is done");
    let (connection, _) = ready(&[], Role::Producer, &CONNACK);
    assert_eq!(connection.room(), u32::MAX);
}

#[test]
fn a_session_that_goes_on_uses_other_packet_identifiers() {
    let dial = dial(&trial(&[("qos", "2"), ("clean", "false")], 1, 0));
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut connection = (dial.make)(Seat { index: 0, role: Role::Producer });
        connection.open(Nanos(0), &mut Outbox::default(), &mut |_| {});
        let (said, _) = hear(&mut connection, &[0x20, 2, 1, 0]);
        assert_eq!(said[0], Said::Granted("session_present", 1));
        let publish = send(&mut connection, 1);
        let id: [u8; 2] = publish[publish.len() - 3..publish.len() - 1].try_into().unwrap();
        assert!(!seen.contains(&id), "{seen:?}");
        seen.push(id);
        let pubcomp = [0x70, 2, id[0], id[1]];
        hear(&mut connection, &[0x50, 2, id[0], id[1]]);
        assert_eq!(hear(&mut connection, &pubcomp).0, [Said::Done(1)]);
    }
}

#[test]
fn a_refused_subscription_is_a_refusal() {
    let mut connection = (dial(&trial(&[], 1, 1)).make)(Seat { index: 0, role: Role::Consumer });
    let mut out = Outbox::default();
    connection.open(Nanos(0), &mut out, &mut |_| {});
    let bytes = [&CONNACK[..], &[0x90, 3, 0, 1, 0x80]].concat();
    let fault = connection.receive(&bytes, Nanos(1), &mut out, &mut |_| {}).unwrap_err();
    assert!(fault.to_string().contains("weigh/beef/+"), "{fault}");
    assert!(matches!(fault, Fault::Refused { code: 0x80, .. }));
}

#[test]
fn foreign_servers_are_recognised() {
    let start = |version: &str| {
        let mut connection = (dial(&trial(&[("version", version)], 1, 0)).make)(Seat {
            index: 0,
            role: Role::Producer,
        });
        connection.open(Nanos(0), &mut Outbox::default(), &mut |_| {});
        connection
    };
    let hear = |version: &str, bytes: &[u8]| {
        start(version).receive(bytes, Nanos(1), &mut Outbox::default(), &mut |_| {}).unwrap_err()
    };
    let fault = hear("3.1.1", b"HTTP/1.1 400 Bad Request\r\n");
    assert!(matches!(&fault, Fault::OtherProtocol(saw) if saw.contains("HTTP/1.1 400")), "{fault}");
    assert!(matches!(hear("5", b"\x30\x03\0\x01t"), Fault::OtherProtocol(_)));
    assert!(matches!(hear("5", &[0x20, 3, 2, 0, 0]), Fault::Malformed(_)));
    let fault = hear("5", &[0x20, 2, 0, 1]);
    assert!(matches!(&fault, Fault::Refused { code: 1, reason } if reason.contains("3.1.1")));
    let fault = hear("5", &[0x20, 3, 0, 0x88, 0]);
    assert!(matches!(&fault, Fault::Refused { code: 0x88, .. }), "{fault}");
    let fault = start("5").end(&[], &mut |_| {}).unwrap_err();
    assert!(fault.to_string().contains("mqtt.version to 3.1.1"), "{fault}");
    let mut connection = start("5");
    let bytes = [&[0x20, 3, 0, 0, 0][..], &[0xE0, 1, 0x8B]].concat();
    let fault =
        connection.receive(&bytes, Nanos(1), &mut Outbox::default(), &mut |_| {}).unwrap_err();
    assert_eq!(fault, Fault::Ended("server shutting down".to_owned()));
}

#[test]
fn random_bytes_never_panic_a_client() {
    let dial = dial(&trial(&[("version", "5"), ("qos", "2"), ("topic_alias", "true")], 1, 1));
    let random = &mut Random::new(3);
    for round in 0..3_000 {
        let role = if round % 2 == 0 { Role::Consumer } else { Role::Producer };
        let mut connection = (dial.make)(Seat { index: 0, role });
        let mut out = Outbox::default();
        connection.open(Nanos(0), &mut out, &mut |_| {});
        let mut input = vec![0x20, 3, 0, 0, 0];
        if role == Role::Consumer {
            input.extend([0x90, 4, 0, 1, 0, 2]);
        }
        for _ in 0..random.below(60) {
            let likely = [0x30, 0x32, 0x34, 0x40, 0x50, 0x62, 0x70, 0xD0, 0, 1, 2, 3, 4, 0x23];
            input.push(likely[random.below(likely.len() as u64) as usize]);
        }
        let _ = connection.receive(&input, Nanos(1), &mut out, &mut |_| {});
    }
}

#[test]
fn a_message_too_large_for_the_server_is_refused() {
    let dial = dial(&trial(&[("version", "5")], 1, 0));
    let mut connection = (dial.make)(Seat { index: 0, role: Role::Producer });
    let mut out = Outbox::default();
    connection.open(Nanos(0), &mut out, &mut |_| {});
    let connack = [0x20, 8, 0, 0, 5, 0x27, 0, 0, 0, 50];
    assert_eq!(connection.receive(&connack, Nanos(1), &mut out, &mut |_| {}), Ok(10));
    out.clear();
    let reply = connection.send(&Op { ticket: Ticket(3), body: &[0; 60] }, Nanos(2), &mut out);
    assert_eq!((reply, out.bytes()), (weigh_model::connection::Reply::Awaited, &[0xC0, 0][..]));
    let mut said = Vec::new();
    connection
        .receive(&[0xD0, 0], Nanos(3), &mut out, &mut |signal| keep(&mut said, signal))
        .unwrap();
    assert_eq!(said, [Said::Refused(3, 0x95), Said::Alive]);
}

#[test]
fn what_cannot_work_is_refused_with_the_fix() {
    for (given, place, fix) in [
        (&[("client_id", "me")][..], "mqtt.client_id", "%i"),
        (&[("topic", "a/%x")], "mqtt.topic", "%c"),
        (&[("topic", "a/+")], "mqtt.topic", "without +"),
        (&[("filter", "a/#/b")], "mqtt.filter", "last level"),
        (&[("share", "a/b#")], "mqtt.share", "group"),
        (&[("will_topic", "#")], "mqtt.will_topic", "without +"),
        (&[("topic_alias", "true")], "mqtt.topic_alias", "mqtt.version to 5"),
        (&[("session_expiry", "10s")], "mqtt.session_expiry", "mqtt.version to 5"),
        (&[("user_property", "a=b")], "mqtt.user_property", "mqtt.version to 5"),
        (&[("version", "5"), ("user_property", "a")], "mqtt.user_property", "name=value"),
        (&[("keep_alive", "100000s")], "mqtt.keep_alive", "65535s"),
    ] {
        let error = Mqtt.dial(&trial(given, 2, 1)).map(|_| ()).unwrap_err();
        assert_eq!(error.place, place, "{error}");
        assert!(error.fix.contains(fix), "{error}");
    }
    let mut request = trial(&[], 1, 0);
    request.load.pattern = Pattern::Request;
    assert!(Mqtt.dial(&request).map(|_| ()).unwrap_err().fix.contains("deliver"));
    for overload in ["drop-newest", "drop-newest:0", "sometimes"] {
        let given = [("overload", overload)];
        let settings = Settings::new("mqtt", Mqtt.settings(), given).unwrap();
        let error = Mqtt.host(&settings).map(|_| ()).unwrap_err();
        assert!(error.place == "mqtt.overload" && error.fix.contains("drop-newest:N"), "{error}");
    }
}
