//! Brokers that do something odd, as real ones do: the reference broker with packets changed on
//! their way.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::rig::{Found, asked, reach, serve, stranger};
use weigh_probe::Bounds;
use weigh_probe::abilities::{Status, Value};
use weigh_protocols::mqtt::codec::{
    Ack, AckKind, Connack, Limits, Packet, Publish, Qos, Suback, Version, decode,
};

/// Changes a packet on its way to the client; `None` keeps it from it.
type Change = for<'p> fn(Packet<'p>) -> Option<Packet<'p>>;

/// A relay to `broker` that speaks 3.1.1 only, as most odd brokers do.
fn odd(broker: SocketAddr, change: Change) -> SocketAddr {
    stranger(move |client| {
        let server = TcpStream::connect(broker).unwrap();
        let (up_from, up_to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let upward = std::thread::spawn(move || carry_up(up_from, up_to));
        carry_down(server, client, change);
        let _ = upward.join();
    })
}

/// A CONNECT of MQTT 5 is answered as one who knows 3.1.1 does.
fn carry_up(mut from: TcpStream, mut to: TcpStream) {
    let mut chunk = vec![0; 65_536];
    let mut is_first = true;
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        if std::mem::take(&mut is_first) && is_v5(&chunk[..count]) {
            let _ = from.write_all(&[0x20, 2, 0, 1]);
            break;
        }
        if to.write_all(&chunk[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

/// The protocol's name, and its level behind it (section 3.1.2.2).
fn is_v5(connect: &[u8]) -> bool {
    connect.windows(5).any(|window| window == b"MQTT\x05")
}

fn carry_down(mut from: TcpStream, mut to: TcpStream, change: Change) {
    let (mut waiting, mut chunk) = (Vec::new(), vec![0; 65_536]);
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        waiting.extend_from_slice(&chunk[..count]);
        let mut changed = Vec::new();
        while let Ok(Some((packet, size))) = decode(&waiting, Version::V311, &Limits::default()) {
            if let Some(packet) = change(packet) {
                packet.encode(Version::V311, &mut changed);
            }
            waiting.drain(..size);
        }
        if to.write_all(&changed).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

fn ask(change: Change) -> Found {
    let broker = serve("mqtt", &[]);
    let address = odd(broker.address(), change);
    let bounds = Bounds { payload_bytes: 1_000, name_bytes: 65_535, queue_messages: 50 };
    let url = format!("mqtt://{address}");
    asked(&reach(&url, address, Duration::from_millis(500)), bounds).unwrap()
}

/// RabbitMQ 3.10 grants QoS 1 where 2 is asked for, and sends no QoS 2.
#[test]
fn one_that_makes_2_into_1() {
    let found = ask(|packet| match packet {
        Packet::Suback(suback) if suback.codes == [2] => {
            Some(Packet::Suback(Suback { codes: &[1], ..suback }))
        }
        Packet::Publish(publish) if publish.qos == Qos::ExactlyOnce => {
            Some(Packet::Publish(Publish { qos: Qos::AtLeastOnce, ..publish }))
        }
        other => Some(other),
    });
    found.is("qos_2", Status::Less, 1).is("qos_max", Status::Less, 1);
    found.stands("version_5", Status::Refused).saw("version_5", "unacceptable protocol version");
    found.stands("no_local", Status::Untried).saw("no_local", "only MQTT 5");
}

/// NATS 2.9 never answers a PUBLISH of QoS 2; Moquette 0.17 hands retained messages on without the
/// mark.
#[test]
fn one_that_never_answers_and_forgets_the_mark() {
    let found = ask(|packet| match packet {
        Packet::Ack(Ack { kind: AckKind::Pubrec, .. }) => None,
        Packet::Publish(publish) => Some(Packet::Publish(Publish { retain: false, ..publish })),
        other => Some(other),
    });
    found.stands("qos_2", Status::NoAnswer).is("qos_max", Status::Less, 1);
    found.stands("order_qos_2", Status::NoAnswer).stands("order_qos_1", Status::Yes);
    found.stands("retain", Status::Less).saw("retain", "without the mark RETAIN");
}

/// It hands over what came meanwhile, and denies that there was a session.
#[test]
fn one_that_denies_its_sessions() {
    let found = ask(|packet| match packet {
        Packet::Connack(connack) => {
            Some(Packet::Connack(Connack { session_present: false, ..connack }))
        }
        other => Some(other),
    });
    found.stands("session", Status::Less).saw("session", "session present was not said");
    assert_eq!(found.ability("session").value, Some(Value::Flag(true)));
}
