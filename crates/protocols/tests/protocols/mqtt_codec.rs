//! The MQTT codec against the standard: sizes byte by byte, borders, malformed input, round
//! trips, and another codec as an oracle.

use crate::mqtt_packets::{KINDS, sorted, with_packet};
use bytes::BytesMut;
use proptest::prelude::*;
use weigh_protocols::mqtt::codec::{
    Ack, AckKind, Connack, Connect, Disconnect, Fault, Filter, Id, Limits, Options,
    PACKET_BYTES_MAX, Packet, Properties, Publish, Qos, Section, Suback, Subscribe, Version,
    decode, varint_size,
};
use weigh_stats::random::Random;

fn encoded(packet: &Packet<'_>, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    packet.encode(version, &mut out);
    out
}

fn read(input: &[u8], version: Version) -> Result<Option<(Packet<'_>, usize)>, Fault> {
    decode(input, version, &Limits::default())
}

fn connect(version: Version, client_id: &str) -> Packet<'_> {
    Packet::Connect(Connect {
        version,
        clean: true,
        keep_alive_s: 60,
        properties: Properties::NONE,
        client_id,
        will: None,
        user: None,
        password: None,
    })
}

fn publish<'a>(qos: Qos, topic: &'a str, body: &'a [u8]) -> Packet<'a> {
    let packet_id = if qos == Qos::AtMostOnce { 0 } else { 10 };
    let properties = Properties::NONE;
    Packet::Publish(Publish { dup: false, qos, retain: false, topic, packet_id, properties, body })
}

/// Sizes of all packets for client id n, topic t, body p (bytes), remaining length below 128.
#[test]
fn every_packet_has_the_size_of_the_standard() {
    let (n, t, p) = (4, 3, 16);
    let (client_id, topic, body) = ("mqtt", "a/b", [7u8; 16]);
    let mut filters = Vec::new();
    Filter { filter: topic, options: Options::plain(Qos::AtLeastOnce) }.put(&mut filters);
    let none = Properties::NONE;
    let connack = Packet::Connack(Connack { session_present: false, code: 0, properties: none });
    let subscribe =
        Packet::Subscribe(Subscribe { packet_id: 1, properties: none, raw_filters: &filters });
    let suback = Packet::Suback(Suback { packet_id: 1, properties: none, codes: &[1] });
    let leave = Packet::Disconnect(Disconnect::new(0));
    let mut table = vec![
        (connack, 4, 5),
        (publish(Qos::AtMostOnce, topic, &body), 4 + t + p, 5 + t + p),
        (publish(Qos::AtLeastOnce, topic, &body), 6 + t + p, 7 + t + p),
        (publish(Qos::ExactlyOnce, topic, &body), 6 + t + p, 7 + t + p),
        (subscribe, 7 + t, 8 + t),
        (suback, 5, 6),
        (Packet::Pingreq, 2, 2),
        (Packet::Pingresp, 2, 2),
        (leave, 2, 2),
    ];
    for kind in [AckKind::Puback, AckKind::Pubrec, AckKind::Pubrel, AckKind::Pubcomp] {
        table.push((Packet::Ack(Ack::new(kind, 10, 0)), 4, 4));
    }
    for (packet, in_311, in_5) in table {
        assert_eq!(encoded(&packet, Version::V311).len(), in_311, "{packet:?}");
        assert_eq!(encoded(&packet, Version::V5).len(), in_5, "{packet:?}");
    }
    assert_eq!(encoded(&connect(Version::V311, client_id), Version::V311).len(), 14 + n);
    assert_eq!(encoded(&connect(Version::V5, client_id), Version::V5).len(), 15 + n);
    let no_subscriber = Packet::Ack(Ack::new(AckKind::Puback, 10, 0x10));
    assert_eq!(encoded(&no_subscriber, Version::V5), [0x40, 3, 0, 10, 0x10]);
}

/// Whole sessions of one publisher, as measured of mosquitto_pub with n = 4, t = 3, p = 16.
#[test]
fn whole_sessions_have_the_measured_bytes() {
    let up = |qos, extra: usize| {
        let packets = [
            connect(Version::V311, "mqtt"),
            publish(qos, "a/b", &[7; 16]),
            Packet::Disconnect(Disconnect::new(0)),
        ];
        packets.iter().map(|packet| encoded(packet, Version::V311).len()).sum::<usize>() + extra
    };
    assert_eq!(up(Qos::AtMostOnce, 0), 43);
    assert_eq!(up(Qos::AtLeastOnce, 0), 45);
    assert_eq!(up(Qos::ExactlyOnce, 4), 49, "with PUBREL");
}

/// The remaining length grows by a byte after 127, 16,383 and 2,097,151 (section 1.5.5).
#[test]
fn the_remaining_length_grows_at_its_borders() {
    for (remaining, header) in
        [(127, 2), (128, 3), (16_383, 3), (16_384, 4), (2_097_151, 4), (2_097_152, 5)]
    {
        let body = vec![0u8; remaining - 3];
        let bytes = encoded(&publish(Qos::AtMostOnce, "t", &body), Version::V311);
        assert_eq!(bytes.len(), header + remaining);
        let (packet, size) = read(&bytes, Version::V311).unwrap().unwrap();
        assert_eq!(size, bytes.len());
        assert_eq!(packet, publish(Qos::AtMostOnce, "t", &body));
        assert!(matches!(read(&bytes[..bytes.len() - 1], Version::V311), Ok(None)));
    }
    for (value, size) in
        [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (2_097_151, 3), (268_435_455, 4)]
    {
        assert_eq!(varint_size(value), size);
    }
    assert_eq!(PACKET_BYTES_MAX, 268_435_460);
}

#[test]
fn what_is_larger_than_the_limit_is_refused_before_it_has_come() {
    let limits = Limits { packet_bytes_max: 100 };
    let fault = decode(&[0x30, 99], Version::V5, &limits).unwrap_err();
    assert_eq!(fault.reason, 0x95);
    assert_eq!(decode(&[0x30, 98], Version::V5, &limits), Ok(None));
}

/// Malformed input, with the section that says so.
#[test]
fn malformed_packets_are_refused_with_their_section() {
    use Version::{V5, V311};
    let table: &[(&[u8], Version, &str)] = &[
        (&[0x00, 0], V311, "2.1.2"),
        (&[0xF0, 0], V311, "2.1.2"),
        (&[0x11], V311, "2.1.3"),
        (&[0x21], V311, "2.1.3"),
        (&[0x60], V311, "2.1.3"),
        (&[0x80], V311, "2.1.3"),
        (&[0xA0], V311, "2.1.3"),
        (&[0xC1], V311, "2.1.3"),
        (&[0x30, 0xFF, 0xFF, 0xFF, 0xFF], V311, "1.5.5"),
        (&[0x30, 0x85, 0x00], V5, "1.5.5"),
        (&[0xC0, 1, 0], V311, "2.1.4"),
        (&[0x40, 3, 0, 1, 0], V311, "2.1.4"),
        (&[0x40, 1, 0], V311, "2.1.4"),
        (&[0x40, 2, 0, 0], V311, "2.2.1"),
        (&[0x40, 3, 0, 1, 0x77], V5, "2.4"),
        (&[0x36, 5, 0, 1, b't', 0, 1], V311, "3.3.1.2"),
        (&[0x38, 3, 0, 1, b't'], V311, "3.3.1.1"),
        (&[0x32, 5, 0, 1, b't', 0, 0], V311, "2.2.1"),
        (&[0x30, 3, 0, 1, b'#'], V311, "3.3.2.1"),
        (&[0x30, 3, 0, 1, b'+'], V311, "3.3.2.1"),
        (&[0x30, 2, 0, 0], V311, "3.3.2.1"),
        (&[0x30, 3, 0, 0, 0], V5, "3.3.2.1"),
        (&[0x30, 3, 0, 1, 0xFF], V311, "1.5.4"),
        (&[0x30, 5, 0, 3, 0xED, 0xA0, 0x80], V311, "1.5.4"),
        (&[0x30, 3, 0, 1, 0], V311, "1.5.4"),
        (&[0x30, 3, 0, 9, b't'], V311, "2.1.4"),
        (&[0x20, 2, 2, 0], V311, "3.2.2.1"),
        (&[0x20, 2, 0, 6], V311, "3.2.2.2"),
        (&[0x20, 2, 1, 1], V311, "3.2.2.1.1"),
        (&[0x20, 3, 0, 0x42, 0], V5, "3.2.2.2"),
        (&[0x82, 2, 0, 1], V311, "3.8.3"),
        (&[0x82, 6, 0, 1, 0, 1, b'a', 3], V311, "3.8.3.1"),
        (&[0x82, 6, 0, 1, 0, 1, b'a', 4], V311, "3.8.3.1"),
        (&[0x82, 7, 0, 1, 0, 0, 1, b'a', 0x30], V5, "3.8.3.1"),
        (&[0x82, 7, 0, 1, 0, 0, 1, b'a', 0x40], V5, "3.8.3.1"),
        (&[0x82, 5, 0, 1, 0, 0, 0], V311, "4.7.3"),
        (&[0x90, 2, 0, 1], V311, "3.9.3"),
        (&[0x90, 3, 0, 1, 3], V311, "3.9.3"),
        (&[0xA2, 2, 0, 1], V311, "3.10.3"),
        (&[0xB0, 3, 0, 1, 0], V5, "3.11.3"),
        (&[0xE0, 1, 0], V311, "2.1.4"),
        (&[0xE0, 1, 0x42], V5, "3.14.2.1"),
        (&[0xF0, 1, 0x42], V5, "3.15.2.1"),
    ];
    for (input, version, section) in table {
        let fault = read(input, *version).expect_err(&format!("{input:02X?} {version:?}"));
        assert_eq!(fault.section, *section, "{input:02X?} {fault}");
        assert!(fault.reason >= 0x80);
    }
}

/// The same for CONNECT, made from a right one by changing one thing.
#[test]
fn malformed_connects_are_refused_with_their_section() {
    let right = encoded(&connect(Version::V311, "id"), Version::V311);
    assert_eq!(right[9], 0x02, "the flags are byte 9");
    for (at, value, section) in [
        (4, b'X', "3.1.2.1"),
        (8, 3, "3.1.2.2"),
        (8, 6, "3.1.2.2"),
        (9, 0x03, "3.1.2.3"),
        (9, 0x0A, "3.1.2.5"),
        (9, 0x22, "3.1.2.5"),
        (9, 0x1E, "3.1.2.6"),
        (9, 0x42, "3.1.2.9 of 3.1.1"),
        (9, 0x82, "2.1.4"),
    ] {
        let mut wrong = right.clone();
        wrong[at] = value;
        let fault = read(&wrong, Version::V311).unwrap_err();
        assert_eq!(fault.section, section, "{at} {value:#x} {fault}");
    }
    let unsupported = [&right[..8], &[6], &right[9..]].concat();
    assert_eq!(read(&unsupported, Version::V311).unwrap_err().reason, 0x84);
}

/// Every property rule of section 2.2.2.2: place, repetition, value.
#[test]
fn wrong_properties_are_refused() {
    let with = |section: &[u8]| {
        let remaining = 3 + 1 + section.len();
        [&[0x30, remaining as u8, 0, 1, b't', section.len() as u8], section].concat()
    };
    for (section, wrong) in [
        (&[0x01, 2][..], "3.3.2.3.2"),
        (&[0x01, 0, 0x01, 0], "2.2.2.2"),
        (&[0x23, 0, 0], "3.3.2.3.4"),
        (&[0x0B, 0], "3.8.2.1.2"),
        (&[0x0B, 0x81, 0], "1.5.5"),
        (&[0x08, 0, 1, b'#'], "3.3.2.3.5"),
        (&[0x21, 0, 1], "2.2.2.2"),
        (&[0x11, 0, 0, 0, 1], "2.2.2.2"),
        (&[0x7F, 0], "2.2.2.2"),
        (&[0x80, 0x01], "2.2.2.2"),
        (&[0x02, 0, 0], "2.1.4"),
        (&[0x26, 0, 1, b'a'], "2.1.4"),
        (&[0x03, 0, 1, 0xC0], "1.5.4"),
    ] {
        let input = with(section);
        let fault = read(&input, Version::V5).expect_err(&format!("{section:02X?}"));
        assert_eq!(fault.section, wrong, "{section:02X?} {fault}");
    }
    let twice = with(&[0x26, 0, 1, b'a', 0, 0, 0x26, 0, 1, b'a', 0, 0, 0x0B, 1, 0x0B, 2]);
    assert!(read(&twice, Version::V5).is_ok(), "these two may repeat");
    let mut section = Section::default();
    section.binary(Id::AuthenticationData, b"x");
    let Packet::Connect(lonely) = connect(Version::V5, "id") else { unreachable!() };
    let with = |section: &Section| {
        let connect = Connect { properties: section.properties(), ..lonely };
        encoded(&Packet::Connect(connect), Version::V5)
    };
    let input = with(&section);
    assert_eq!(read(&input, Version::V5).unwrap_err().section, "3.1.2.11.10");
    for (id, value) in [(Id::ReceiveMaximum, 0), (Id::MaximumPacketSize, 0)] {
        let mut section = Section::default();
        section.number(id, value);
        assert_eq!(read(&with(&section), Version::V5).unwrap_err().reason, 0x82);
    }
}

#[test]
fn every_packet_survives_a_round_trip_and_waits_for_its_last_byte() {
    let mut random = Random::new(1);
    for round in 0..4_000 {
        for version in [Version::V311, Version::V5] {
            with_packet(round % KINDS, version, &mut random, |packet| {
                let bytes = encoded(&packet, version);
                assert_eq!(read(&bytes, version), Ok(Some((packet, bytes.len()))));
                for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
                    assert_eq!(read(&bytes[..cut], version), Ok(None), "{packet:?}");
                }
                if let Packet::Publish(publish) = packet {
                    assert_eq!(publish.size(version), bytes.len());
                }
            });
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(input in proptest::collection::vec(any::<u8>(), 0..80)) {
        for version in [Version::V311, Version::V5] {
            if let Ok(Some((packet, size))) = read(&input, version) {
                prop_assert!(size <= input.len());
                walk(&packet);
            }
        }
    }

    /// One byte of a right packet changed: refused, waited for, or another right packet.
    #[test]
    fn damaged_packets_never_panic(seed: u64, kind in 0..KINDS, at: usize, value: u8) {
        for version in [Version::V311, Version::V5] {
            with_packet(kind, version, &mut Random::new(seed), |packet| {
                let mut bytes = encoded(&packet, version);
                let at = at % bytes.len();
                bytes[at] = value;
                if let Ok(Some((packet, _))) = read(&bytes, version) {
                    walk(&packet);
                    let again = encoded(&packet, version);
                    assert!(read(&again, version).is_ok_and(|read| read.is_some()));
                }
            });
        }
    }

    #[test]
    fn published_messages_come_back(
        topic in "[a-z/é]{1,40}",
        body in proptest::collection::vec(any::<u8>(), 0..600),
        qos in 0u8..3,
        dup: bool,
        retain: bool,
        packet_id in 1u16..,
        name in "[a-z]{0,9}",
        expiry: u32,
    ) {
        let qos = Qos::from_bits(qos).unwrap();
        let mut section = Section::default();
        section.number(Id::MessageExpiryInterval, expiry).pair(&name, &topic);
        let properties = section.properties();
        let packet_id = if qos == Qos::AtMostOnce { 0 } else { packet_id };
        let dup = dup && qos > Qos::AtMostOnce;
        let publish =
            Publish { dup, qos, retain, topic: &topic, packet_id, properties, body: &body };
        let bytes = encoded(&Packet::Publish(publish), Version::V5);
        let (packet, size) = read(&bytes, Version::V5).unwrap().unwrap();
        prop_assert_eq!(size, bytes.len());
        prop_assert_eq!(packet, Packet::Publish(publish));
        prop_assert_eq!(publish.properties.number(Id::MessageExpiryInterval), Some(expiry));
    }
}

/// Looks at everything in a packet that is read lazily.
fn walk(packet: &Packet<'_>) {
    match packet {
        Packet::Publish(publish) => assert!(publish.properties.raw_items().count() < 80),
        Packet::Subscribe(subscribe) => assert!(subscribe.filters().count() > 0),
        Packet::Unsubscribe(unsubscribe) => assert!(unsubscribe.filters().count() > 0),
        _ => {}
    }
}

/// What we encode, mqttbytes decodes; what it then encodes, we decode to the same.
#[test]
fn an_established_codec_agrees_on_3_1_1() {
    let mut random = Random::new(311);
    for round in 0..3_000 {
        with_packet(round % KINDS, Version::V311, &mut random, |packet| {
            let bytes = encoded(&packet, Version::V311);
            let mut stream = BytesMut::from(&bytes[..]);
            let theirs = mqttbytes::v4::read(&mut stream, 1 << 20);
            let theirs = theirs.unwrap_or_else(|error| panic!("{packet:?}: {error:?}"));
            assert!(stream.is_empty());
            check_fields(&packet, &theirs);
            let mut back = BytesMut::new();
            use mqttbytes::v4::Packet as Theirs;
            match &theirs {
                Theirs::Connect(packet) => packet.write(&mut back),
                Theirs::ConnAck(packet) => packet.write(&mut back),
                Theirs::Publish(packet) => packet.write(&mut back),
                Theirs::PubAck(packet) => packet.write(&mut back),
                Theirs::PubRec(packet) => packet.write(&mut back),
                Theirs::PubRel(packet) => packet.write(&mut back),
                Theirs::PubComp(packet) => packet.write(&mut back),
                Theirs::Subscribe(packet) => packet.write(&mut back),
                Theirs::SubAck(packet) => packet.write(&mut back),
                Theirs::Unsubscribe(packet) => packet.write(&mut back),
                Theirs::UnsubAck(packet) => packet.write(&mut back),
                Theirs::PingReq => mqttbytes::v4::PingReq.write(&mut back),
                Theirs::PingResp => mqttbytes::v4::PingResp.write(&mut back),
                Theirs::Disconnect => mqttbytes::v4::Disconnect.write(&mut back),
            }
            .unwrap();
            assert_eq!(back, bytes, "{packet:?}");
        });
    }
}

fn check_fields(ours: &Packet<'_>, theirs: &mqttbytes::v4::Packet) {
    use mqttbytes::v4::Packet as Theirs;
    match (ours, theirs) {
        (Packet::Publish(ours), Theirs::Publish(theirs)) => {
            assert_eq!((ours.topic, ours.body), (theirs.topic.as_str(), &theirs.payload[..]));
            assert_eq!((ours.dup, ours.retain), (theirs.dup, theirs.retain));
            assert_eq!((ours.qos as u8, ours.packet_id), (theirs.qos as u8, theirs.pkid));
        }
        (Packet::Connect(ours), Theirs::Connect(theirs)) => {
            assert_eq!(ours.client_id, theirs.client_id);
            assert_eq!((ours.clean, ours.keep_alive_s), (theirs.clean_session, theirs.keep_alive));
            let user = theirs.login.as_ref().map(|login| login.username.as_str());
            assert_eq!(ours.user, user);
            let will = theirs.last_will.as_ref().map(|will| (will.topic.as_str(), will.retain));
            assert_eq!(ours.will.map(|will| (will.topic, will.retain)), will);
        }
        _ => {}
    }
}

/// The same for MQTT 5. Left out is what mqttbytes 0.6 itself gets wrong: it has no AUTH, wants
/// properties in every DISCONNECT, writes a CONNACK without properties one byte short, and counts
/// a byte too many for every subscription identifier.
#[test]
fn an_established_codec_agrees_on_5() {
    let mut random = Random::new(5);
    let mut compared = 0;
    for round in 0..3_000 {
        with_packet(round % (KINDS - 1), Version::V5, &mut random, |packet| {
            let is_beyond_it = match &packet {
                Packet::Disconnect(packet) => packet.properties.is_empty(),
                Packet::Connack(packet) => packet.properties.is_empty(),
                Packet::Publish(packet) => packet.properties.has(Id::SubscriptionIdentifier),
                Packet::Subscribe(packet) => packet.properties.has(Id::SubscriptionIdentifier),
                _ => false,
            };
            if is_beyond_it {
                return;
            }
            let bytes = encoded(&packet, Version::V5);
            let mut stream = BytesMut::from(&bytes[..]);
            let theirs = mqttbytes::v5::read(&mut stream, 1 << 20);
            let theirs = theirs.unwrap_or_else(|error| panic!("{packet:?}: {error:?}"));
            assert!(stream.is_empty());
            let mut back = BytesMut::new();
            use mqttbytes::v5::Packet as Theirs;
            match &theirs {
                Theirs::Connect(packet) => packet.write(&mut back),
                Theirs::ConnAck(packet) => packet.write(&mut back),
                Theirs::Publish(packet) => packet.write(&mut back),
                Theirs::PubAck(packet) => packet.write(&mut back),
                Theirs::PubRec(packet) => packet.write(&mut back),
                Theirs::PubRel(packet) => packet.write(&mut back),
                Theirs::PubComp(packet) => packet.write(&mut back),
                Theirs::Subscribe(packet) => packet.write(&mut back),
                Theirs::SubAck(packet) => packet.write(&mut back),
                Theirs::Unsubscribe(packet) => packet.write(&mut back),
                Theirs::UnsubAck(packet) => packet.write(&mut back),
                Theirs::PingReq => mqttbytes::v5::PingReq.write(&mut back),
                Theirs::PingResp => mqttbytes::v5::PingResp.write(&mut back),
                Theirs::Disconnect(packet) => packet.write(&mut back),
            }
            .unwrap();
            let (again, size) = read(&back, Version::V5).unwrap().unwrap();
            assert_eq!((size, size), (back.len(), bytes.len()), "{:.400}", format!("{packet:?}"));
            assert!(plain(&again) == plain(&packet), "{:.400}", format!("{packet:?}"));
            compared += 1;
        });
    }
    assert!(compared > 2_300, "{compared}");
}

/// A packet without its properties, and its properties in a fixed order.
fn plain(packet: &Packet<'_>) -> (String, Vec<Vec<String>>) {
    let mut plain = *packet;
    let mut all = Vec::new();
    let mut strip = |properties: &mut Properties<'_>| {
        all.push(sorted(properties));
        *properties = Properties::NONE;
    };
    match &mut plain {
        Packet::Connect(packet) => {
            strip(&mut packet.properties);
            if let Some(will) = &mut packet.will {
                strip(&mut will.properties);
            }
        }
        Packet::Connack(packet) => strip(&mut packet.properties),
        Packet::Publish(packet) => strip(&mut packet.properties),
        Packet::Ack(packet) => strip(&mut packet.properties),
        Packet::Subscribe(packet) => strip(&mut packet.properties),
        Packet::Suback(packet) => strip(&mut packet.properties),
        Packet::Unsubscribe(packet) => strip(&mut packet.properties),
        Packet::Unsuback(packet) => strip(&mut packet.properties),
        Packet::Disconnect(packet) => strip(&mut packet.properties),
        _ => {}
    }
    (format!("{plain:?}"), all)
}
