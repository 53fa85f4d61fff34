//! Random but right packets of every type, for round trips and for comparison with another
//! codec.

use weigh_protocols::mqtt::codec::{
    Ack, AckKind, Auth, Connack, Connect, Disconnect, Filter, Id, Options, Packet, Properties,
    Publish, Qos, Section, Suback, Subscribe, Unsuback, Unsubscribe, Version, Will,
};
use weigh_stats::random::Random;

/// The kinds of packet that [`with_packet`] makes.
pub(crate) const KINDS: u64 = 15;

/// Makes a packet of kind `kind` and shows it to `see`.
pub(crate) fn with_packet(
    kind: u64,
    version: Version,
    random: &mut Random,
    see: impl FnOnce(Packet<'_>),
) {
    let id = 1 + random.below(65_535) as u16;
    match kind {
        0 => connect(version, random, see),
        1 => {
            let section = section(version, random, CONNACK);
            let code = if version == Version::V5 { pick(random, &[0, 0x80, 0x87]) } else { 5 };
            let code = if random.below(2) == 0 { 0 } else { code };
            let session_present = code == 0 && random.below(2) == 0;
            see(Packet::Connack(Connack {
                session_present,
                code,
                properties: section.properties(),
            }));
        }
        2 => publish(version, random, see),
        3..=6 => {
            let kinds = [AckKind::Puback, AckKind::Pubrec, AckKind::Pubrel, AckKind::Pubcomp];
            let kind = kinds[kind as usize - 3];
            let is_first = matches!(kind, AckKind::Puback | AckKind::Pubrec);
            let reasons: &[u8] = if is_first { &[0, 0x10, 0x87, 0x97] } else { &[0, 0x92] };
            let reason = if version == Version::V5 { pick(random, reasons) } else { 0 };
            let section = section(version, random, ANSWER);
            let properties = section.properties();
            see(Packet::Ack(Ack { kind, packet_id: id, reason, properties }));
        }
        7..=10 => list(kind, id, version, random, see),
        11 => see(Packet::Pingreq),
        12 => see(Packet::Pingresp),
        13 => {
            let reason = if version == Version::V5 { pick(random, &[0, 4, 0x8E]) } else { 0 };
            let section = section(version, random, DISCONNECT);
            see(Packet::Disconnect(Disconnect { reason, properties: section.properties() }));
        }
        _ if version == Version::V5 => {
            let mut section = Section::default();
            section.text(Id::AuthenticationMethod, "m").binary(Id::AuthenticationData, b"d");
            let reason = pick(random, &[0, 0x18, 0x19]);
            see(Packet::Auth(Auth { reason, properties: section.properties() }));
        }
        _ => see(Packet::Pingreq),
    }
}

/// SUBSCRIBE, SUBACK, UNSUBSCRIBE or UNSUBACK.
fn list(kind: u64, id: u16, version: Version, random: &mut Random, see: impl FnOnce(Packet<'_>)) {
    match kind {
        7 => {
            let mut raw = Vec::new();
            for _ in 0..1 + random.below(3) {
                let filter = text(random, true);
                Filter { filter: &filter, options: options(version, random) }.put(&mut raw);
            }
            let section = section(version, random, &[Id::SubscriptionIdentifier, Id::UserProperty]);
            let properties = section.properties();
            see(Packet::Subscribe(Subscribe { packet_id: id, properties, raw_filters: &raw }));
        }
        8 => {
            let known: &[u8] = match version {
                Version::V311 => &[0, 1, 2, 0x80],
                Version::V5 => &[0, 1, 2, 0x80, 0x87, 0x8F, 0x9E, 0xA2],
            };
            let codes: Vec<u8> = (0..1 + random.below(4)).map(|_| pick(random, known)).collect();
            let section = section(version, random, ANSWER);
            let properties = section.properties();
            see(Packet::Suback(Suback { packet_id: id, properties, codes: &codes }));
        }
        9 => {
            let mut raw = Vec::new();
            for _ in 0..1 + random.below(3) {
                Unsubscribe::put(&text(random, true), &mut raw);
            }
            let section = section(version, random, &[Id::UserProperty]);
            let properties = section.properties();
            see(Packet::Unsubscribe(Unsubscribe { packet_id: id, properties, raw_filters: &raw }));
        }
        _ => {
            let count = if version == Version::V5 { 1 + random.below(4) } else { 0 };
            let codes: Vec<u8> = (0..count).map(|_| pick(random, &[0, 0x11, 0x8F])).collect();
            let section = section(version, random, ANSWER);
            let properties = section.properties();
            see(Packet::Unsuback(Unsuback { packet_id: id, properties, codes: &codes }));
        }
    }
}

fn connect(version: Version, random: &mut Random, see: impl FnOnce(Packet<'_>)) {
    let (client_id, user, password) = (text(random, false), text(random, true), text(random, true));
    let (topic, body) = (text(random, true), bytes(random, 60));
    let (section, will_section) =
        (section(version, random, CONNECT), section(version, random, WILL));
    let will = Will {
        properties: will_section.properties(),
        topic: &topic,
        body: &body,
        qos: qos(random),
        retain: random.below(2) == 0,
    };
    let has_user = random.below(2) == 0;
    let has_password = has_user && random.below(2) == 0;
    see(Packet::Connect(Connect {
        version,
        clean: random.below(2) == 0,
        keep_alive_s: random.below(65_536) as u16,
        properties: section.properties(),
        client_id: &client_id,
        will: (random.below(2) == 0).then_some(will),
        user: has_user.then_some(user.as_str()),
        password: has_password.then_some(password.as_bytes()),
    }));
}

fn publish(version: Version, random: &mut Random, see: impl FnOnce(Packet<'_>)) {
    let (topic, body) = (text(random, true), bytes(random, 20_000));
    let qos = qos(random);
    let section = section(version, random, PUBLISH);
    see(Packet::Publish(Publish {
        dup: qos > Qos::AtMostOnce && random.below(2) == 0,
        qos,
        retain: random.below(2) == 0,
        topic: &topic,
        packet_id: if qos == Qos::AtMostOnce { 0 } else { 1 + random.below(65_535) as u16 },
        properties: section.properties(),
        body: &body,
    }));
}

fn options(version: Version, random: &mut Random) -> Options {
    let plain = Options::plain(qos(random));
    match version {
        Version::V311 => plain,
        Version::V5 => Options {
            no_local: random.below(2) == 0,
            retain_as_published: random.below(2) == 0,
            retain_handling: random.below(3) as u8,
            ..plain
        },
    }
}

/// Some of the properties `ids`, in a random order, with right values.
fn section(version: Version, random: &mut Random, ids: &[Id]) -> Section {
    let mut section = Section::default();
    if version == Version::V311 || random.below(4) == 0 {
        return section;
    }
    let first = random.below(ids.len() as u64) as usize;
    for at in 0..ids.len() {
        if random.below(2) == 0 {
            add(&mut section, ids[(first + at) % ids.len()], random);
        }
    }
    section
}

fn add(section: &mut Section, id: Id, random: &mut Random) {
    match id {
        Id::PayloadFormatIndicator
        | Id::RequestProblemInformation
        | Id::RequestResponseInformation
        | Id::MaximumQos
        | Id::RetainAvailable
        | Id::WildcardSubscriptionAvailable
        | Id::SubscriptionIdentifierAvailable
        | Id::SharedSubscriptionAvailable => section.number(id, random.below(2) as u32),
        Id::UserProperty => {
            let (name, value) = (text(random, false), text(random, false));
            section.pair(&name, &value)
        }
        Id::SubscriptionIdentifier => section.number(id, 1 + random.below(268_435_455) as u32),
        Id::CorrelationData => section.binary(id, &bytes(random, 40)),
        Id::AuthenticationMethod => {
            let method = text(random, true);
            section.text(id, &method).binary(Id::AuthenticationData, &bytes(random, 40))
        }
        Id::ContentType
        | Id::ResponseTopic
        | Id::AssignedClientIdentifier
        | Id::ResponseInformation
        | Id::ServerReference
        | Id::ReasonString => section.text(id, &text(random, true)),
        _ => section.number(id, 1 + random.below(65_535) as u32),
    };
}

/// The properties of a packet in an order that does not depend on how they were written.
pub(crate) fn sorted(properties: &Properties<'_>) -> Vec<String> {
    let mut items: Vec<String> =
        properties.iter().map(|(id, value)| format!("{id:?}={value:?}")).collect();
    items.sort();
    items
}

fn qos(random: &mut Random) -> Qos {
    Qos::from_bits(random.below(3) as u8).unwrap()
}

fn pick(random: &mut Random, from: &[u8]) -> u8 {
    from[random.below(from.len() as u64) as usize]
}

fn text(random: &mut Random, is_filled: bool) -> String {
    let letters: Vec<char> = "abc/xyz 09é漢🌱".chars().collect();
    let length = random.below(12) + u64::from(is_filled);
    (0..length).map(|_| letters[random.below(letters.len() as u64) as usize]).collect()
}

fn bytes(random: &mut Random, below: u64) -> Vec<u8> {
    let length = random.below(below);
    (0..length).map(|_| random.next_u64() as u8).collect()
}

const ANSWER: &[Id] = &[Id::ReasonString, Id::UserProperty];
const DISCONNECT: &[Id] =
    &[Id::SessionExpiryInterval, Id::ReasonString, Id::UserProperty, Id::ServerReference];
const WILL: &[Id] = &[
    Id::WillDelayInterval,
    Id::PayloadFormatIndicator,
    Id::MessageExpiryInterval,
    Id::ContentType,
    Id::ResponseTopic,
    Id::CorrelationData,
    Id::UserProperty,
];
const CONNECT: &[Id] = &[
    Id::SessionExpiryInterval,
    Id::ReceiveMaximum,
    Id::MaximumPacketSize,
    Id::TopicAliasMaximum,
    Id::RequestResponseInformation,
    Id::RequestProblemInformation,
    Id::UserProperty,
    Id::AuthenticationMethod,
];
const CONNACK: &[Id] = &[
    Id::SessionExpiryInterval,
    Id::ReceiveMaximum,
    Id::MaximumQos,
    Id::RetainAvailable,
    Id::MaximumPacketSize,
    Id::AssignedClientIdentifier,
    Id::TopicAliasMaximum,
    Id::ReasonString,
    Id::UserProperty,
    Id::WildcardSubscriptionAvailable,
    Id::SubscriptionIdentifierAvailable,
    Id::SharedSubscriptionAvailable,
    Id::ServerKeepAlive,
    Id::ResponseInformation,
    Id::ServerReference,
    Id::AuthenticationMethod,
];
const PUBLISH: &[Id] = &[
    Id::PayloadFormatIndicator,
    Id::MessageExpiryInterval,
    Id::TopicAlias,
    Id::ResponseTopic,
    Id::CorrelationData,
    Id::UserProperty,
    Id::UserProperty,
    Id::SubscriptionIdentifier,
    Id::SubscriptionIdentifier,
    Id::ContentType,
];
