//! Information that a broker gives about itself: the versions that it supports, and what its
//! CONNACK of MQTT 5 announces.

use weigh_protocols::mqtt::codec::{Id, Publish, Qos, Section, Version};
use weigh_protocols::urls;

use super::client::{Client, Hello, draft};
use super::question;
use super::scene::Scene;
use crate::abilities::{How, Status, Value};
use crate::finding::{Found, Question};
use crate::reach::Trouble;
use crate::stranger;

/// Asked first.
pub(super) const QUESTIONS: &[Question<Scene>] = &[
    question("version_3_1", |scene| let_in(scene.v31.clone())),
    question("version_3_1_1", |scene| let_in(scene.v311.clone().map(|_| ()))),
    question("version_5", |scene| let_in(scene.v5.clone().map(|_| ()))),
    question("client_id_empty", client_id_empty),
    question("keep_alive", keep_alive),
    question("session_expiry", session_expiry),
    question("receive_maximum", receive_maximum),
    question("topic_alias_maximum", topic_alias_maximum),
    question("packet_bytes", packet_bytes),
];

/// Asked last: what else the port speaks.
pub(super) const OTHER_QUESTIONS: &[Question<Scene>] = &[
    question("websocket_on_port", websocket_on_port),
    question("tls_on_port", |scene| stranger::tls_on_port(&scene.reach)),
];

/// Asked inside QUIC only.
#[cfg(feature = "quic")]
pub(super) const OF_QUIC: &[Question<Scene>] =
    &[question("quic", quic), question("quic_streams", quic_streams)];

/// Versions of QUIC and TLS, and ALPN.
#[cfg(feature = "quic")]
fn quic(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut client = scene.client()?;
    // They are known once the first bytes of the broker have been answered.
    client.ping()?;
    let agreed = client.negotiated().unwrap_or_default();
    client.leave();
    Ok(Found::words(agreed, "versions of QUIC and TLS, and ALPN").by(How::Announced))
}

/// Streams that a client may open beside the first (RFC 9000, section 4.6): whether topics have
/// streams of their own cannot be concluded from it.
#[cfg(feature = "quic")]
fn quic_streams(scene: &mut Scene) -> Result<Found, Trouble> {
    let many = crate::quic_line::QuicLine::open(&scene.reach, b"mqtt")?.allowed();
    let evidence = "initial_max_streams_bidi; a session was carried by the first";
    let found = Found::number(many, "streams", How::Announced, evidence);
    Ok(match many {
        OPENED_AHEAD.. => {
            let evidence = format!("at least this number; {evidence}");
            Found { evidence, ..found }
        }
        _ => found,
    })
}

/// Streams that the layer opens before they are used.
#[cfg(feature = "quic")]
const OPENED_AHEAD: u64 = 64;

fn let_in(outcome: Result<(), Trouble>) -> Result<Found, Trouble> {
    match outcome {
        Ok(()) => Ok(Found::flag(true, "CONNACK 0x00")),
        Err(Trouble::Closed(text)) => {
            Ok(Found::flag(false, format!("{text} after the CONNECT")).with(Status::Refused))
        }
        Err(other) => Err(other),
    }
}

/// An empty identifier asks the broker for one (section 3.1.3.1).
fn client_id_empty(scene: &mut Scene) -> Result<Found, Trouble> {
    let client = Client::open(&scene.reach, &Hello::new(scene.version, ""))?;
    let evidence = match &client.granted.client_id {
        Some(assigned) => format!("it assigned one of {} bytes", assigned.len()),
        None => "it was accepted, and its name was not returned".to_owned(),
    };
    client.leave();
    Ok(Found::flag(true, evidence))
}

/// Server Keep Alive (section 3.2.2.3.14), asked for with the longest there is.
fn keep_alive(scene: &mut Scene) -> Result<Found, Trouble> {
    let longest = u64::from(u16::MAX);
    if scene.v5.is_ok() {
        return Ok(match scene.announced(Id::ServerKeepAlive) {
            Some(seconds) => {
                let evidence =
                    format!("{longest} s were asked for; Server Keep Alive is {seconds}");
                let found = Found::number(seconds.into(), "s", How::Announced, evidence);
                found.with(Status::Less)
            }
            None => {
                let evidence = format!("{longest} s were asked for, and nothing less was said");
                Found::number(longest, "s", How::Announced, evidence)
            }
        });
    }
    let client_id = scene.client_id();
    let hello = Hello { keep_alive_s: u16::MAX, ..Hello::new(scene.version, &client_id) };
    Client::open(&scene.reach, &hello)?.leave();
    let evidence = format!("a client with {longest} s was let in; 3.1.1 has no word for less");
    Ok(Found::number(longest, "s", How::Tried, evidence))
}

/// Session Expiry Interval (section 3.2.2.3.2), asked for with thirty days.
fn session_expiry(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs_v5()?;
    let client_id = scene.client_id();
    let session_expiry_s = ASKED_EXPIRY_S;
    let hello = Hello { session_expiry_s, ..Hello::new(scene.version, &client_id) };
    let client = Client::open(&scene.reach, &hello)?;
    let granted = client.granted.number(Id::SessionExpiryInterval);
    client.leave();
    // The same client again, whose session now ends with it.
    Client::open(&scene.reach, &Hello::new(scene.version, &client_id))?.leave();
    let evidence = format!("{ASKED_EXPIRY_S} s were asked for");
    Ok(match granted {
        Some(seconds) if seconds < ASKED_EXPIRY_S => {
            let evidence = format!("{evidence}; Session Expiry Interval is {seconds}");
            Found::number(seconds.into(), "s", How::Announced, evidence).with(Status::Less)
        }
        _ => {
            let evidence = format!("{evidence}, and nothing less was said");
            Found::number(ASKED_EXPIRY_S.into(), "s", How::Announced, evidence)
        }
    })
}

/// Receive Maximum (section 3.2.2.3.3): 65,535 where nothing is said.
fn receive_maximum(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs_v5()?;
    Ok(match scene.announced(Id::ReceiveMaximum) {
        Some(most) => {
            Found::number(most.into(), "messages", How::Announced, "Receive Maximum of the CONNACK")
        }
        None => {
            let evidence = "nothing was said, which stands for 65535";
            Found::number(u16::MAX.into(), "messages", How::Announced, evidence)
        }
    })
}

/// Topic Alias Maximum (section 3.2.2.3.8), and whether an alias is understood.
fn topic_alias_maximum(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs_v5()?;
    let most = scene.announced(Id::TopicAliasMaximum).unwrap_or(0);
    if most == 0 {
        let found = Found::number(0, "aliases", How::Announced, "no alias is allowed");
        return Ok(found.with(Status::No));
    }
    let topic = scene.topic();
    let mut listener = scene.client()?;
    listener.subscribed(&topic, Qos::AtLeastOnce)?;
    let mut sender = scene.client()?;
    let mut alias = Section::default();
    alias.number(Id::TopicAlias, 1);
    let properties = alias.properties();
    for name in [topic.as_str(), ""] {
        let message = draft(name, b"by alias", Qos::AtLeastOnce);
        sender.publish(&Publish { properties, ..message })?;
    }
    sender.leave();
    let came = scene.heard(&mut listener, &topic)?.len();
    listener.leave();
    let evidence = format!("{most} were announced; {came} of 2 messages with alias 1 came");
    let found = Found::number(most.into(), "aliases", How::Announced, evidence);
    Ok(if came == 2 { found } else { found.with(Status::No) })
}

/// Maximum Packet Size (section 3.2.2.3.6): no limit where nothing is said.
fn packet_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs_v5()?;
    Ok(match scene.announced(Id::MaximumPacketSize) {
        Some(most) => {
            let evidence = "Maximum Packet Size of the CONNACK";
            Found::number(most.into(), "bytes", How::Announced, evidence)
        }
        None => {
            let found = Found::words("no limit", "nothing was said, which stands for no limit");
            found.by(How::Announced)
        }
    })
}

/// Tests whether this port accepts WebSocket, too (section 6).
fn websocket_on_port(scene: &mut Scene) -> Result<Found, Trouble> {
    if urls::is_websocket(&scene.reach.endpoint) {
        return Ok(Found::flag(true, "the whole probe was made inside WebSocket"));
    }
    if urls::is_quic(&scene.reach.endpoint) {
        return Err(Trouble::Inapplicable("a port of QUIC is one of UDP".to_owned()));
    }
    if urls::is_secure(&scene.reach.endpoint) {
        return Err(Trouble::Inapplicable("not tried inside TLS: type wss://".to_owned()));
    }
    Ok(match stranger::speaks_websocket(&scene.reach) {
        Ok(Ok(())) => Found::flag(true, "an upgrade on path /mqtt was answered 101"),
        Ok(Err(said)) => Found::flag(false, format!("an upgrade was tried, and {said}")),
        Err(Trouble::Closed(text)) => Found::flag(false, format!("an upgrade was tried; {text}")),
        Err(other) => return Err(other),
    })
}

/// The highest QoS of those that passed as they were published.
pub(super) fn qos_max(scene: &mut Scene) -> Result<Found, Trouble> {
    let passes = |level: u64| {
        let name = format!("qos_{level}");
        let own = scene.found.iter().find(|ability| ability.name == name);
        own.is_some_and(|own| own.status == Status::Yes)
    };
    let highest = (0..=2).rev().find(|level| passes(*level));
    let said = match scene.announced(Id::MaximumQos) {
        Some(qos) => format!("; Maximum QoS of the CONNACK is {qos}"),
        None if scene.version == Version::V5 => "; no Maximum QoS was announced".to_owned(),
        None => String::new(),
    };
    Ok(match highest {
        Some(level) => {
            let evidence = format!("arrives as it was published{said}");
            let found = Found::number(level, "", How::Tried, evidence);
            if level < 2 { found.with(Status::Less) } else { found }
        }
        None => {
            let found = Found::flag(false, format!("no QoS arrives as it was published{said}"));
            Found { value: Some(Value::Text("none".to_owned())), ..found }
        }
    })
}

/// Requested time that a session outlives its connection, seconds: thirty days.
const ASKED_EXPIRY_S: u32 = 30 * 24 * 3600;
