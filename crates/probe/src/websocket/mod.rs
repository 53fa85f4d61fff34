//! Probes a server of WebSocket at the path of its URL (RFC 6455): its upgrade, and what it does
//! with frames. The application behind it gets the messages; what it makes of them is not claimed.

mod line;

use weigh_engine::layer::websocket::{Opcode, close};

use crate::abilities::{Ability, How, Status};
use crate::finding::{Asking, Found, Question, ask_all, question};
use crate::http::UNAUTHORIZED;
use crate::mqtt::Bounds;
use crate::reach::{Reach, Trouble};
use crate::search::largest_passing;
use crate::stranger;
use line::{Came, Line};

/// Asks everything.
///
/// # Errors
/// If it upgrades no client at this path.
pub(crate) fn probe(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let mut scene =
        Scene { reach: reach.clone(), bounds, subprotocol: String::new(), found: Vec::new() };
    let offers = OFFERED.iter().copied();
    let first = std::iter::once("").chain(offers).map(|own| (own, scene.open_as(own, "")));
    // A server of MQTT, for example, upgrades only clients that offer its subprotocol.
    let mut last = None;
    for (own, opened) in first {
        match opened {
            Ok(_) => {
                own.clone_into(&mut scene.subprotocol);
                ask_all(&mut scene, QUESTIONS, tell);
                return Ok(scene.found);
            }
            Err(Trouble::Refused(text)) if last.is_none() => {
                let is_login = text.contains(&UNAUTHORIZED.to_string());
                last = Some(Trouble::Refused(text));
                if is_login {
                    break;
                }
            }
            Err(Trouble::Refused(_)) => {}
            Err(other) => return Err(other),
        }
    }
    Err(match last {
        Some(Trouble::Refused(text)) if !text.contains(&UNAUTHORIZED.to_string()) => {
            Trouble::Foreign(text)
        }
        Some(other) => other,
        None => Trouble::OutOfTime,
    })
}

const QUESTIONS: &[Question<Scene>] = &[
    question("upgrade", upgrade),
    question("without_subprotocol", without_subprotocol),
    question("subprotocols", subprotocols),
    question("compression", compression),
    question("any_origin", any_origin),
    question("ping", ping),
    question("binary", |scene| message(scene, Opcode::Binary)),
    question("text", |scene| message(scene, Opcode::Text)),
    question("fragments", fragments),
    question("checks_utf8", checks_utf8),
    question("close", closing),
    question("message_bytes", message_bytes),
    question("tls_on_port", |scene| stranger::tls_on_port(&scene.reach)),
];

/// A server that is asked.
struct Scene {
    reach: Reach,
    bounds: Bounds,
    /// The subprotocol with which it upgrades; empty for none.
    subprotocol: String,
    found: Vec<Ability>,
}

impl Asking for Scene {
    fn found(&mut self) -> &mut Vec<Ability> {
        &mut self.found
    }

    fn is_over(&self) -> bool {
        self.reach.until().is_err()
    }
}

impl Scene {
    fn open(&self) -> Result<Line, Trouble> {
        self.open_as(&self.subprotocol, "")
    }

    /// A connection on which silence is short.
    fn open_briefly(&self) -> Result<Line, Trouble> {
        let reach = Reach { patience: self.reach.patience / 4, ..self.reach.clone() };
        Line::open(&reach, &self.subprotocol, "")
    }

    fn open_as(&self, subprotocol: &str, fields: &str) -> Result<Line, Trouble> {
        Line::open(&self.reach, subprotocol, fields)
    }
}

fn upgrade(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut line = scene.open()?;
    let server = line.head.field("server").map_or(String::new(), |own| format!("; Server: {own}"));
    let _ = line.close(NORMAL);
    Ok(Found::flag(true, format!("{} was answered 101{server}", scene.reach.path())))
}

/// Tests whether clients that offer no subprotocol are upgraded.
fn without_subprotocol(scene: &mut Scene) -> Result<Found, Trouble> {
    Ok(match scene.open_as("", "") {
        Ok(_) => Found::flag(true, "an upgrade without a subprotocol was answered 101"),
        Err(Trouble::Refused(text)) => Found::flag(false, text).with(Status::Refused),
        Err(other) => return Err(other),
    })
}

/// The subprotocols that it takes, of those that are widely used; each is offered alone.
fn subprotocols(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut taken = Vec::new();
    for own in OFFERED {
        match scene.open_as(own, "") {
            Ok(line) if line.head.field("sec-websocket-protocol") == Some(own) => taken.push(*own),
            Ok(_) | Err(Trouble::Refused(_)) => {}
            Err(other) => return Err(other),
        }
    }
    let evidence = format!("each of these was offered alone: {}", OFFERED.join(", "));
    Ok(match taken.is_empty() {
        true => Found::flag(false, evidence),
        false => Found::words(taken.join(", "), evidence),
    })
}

/// Tests whether messages can be compressed (RFC 7692).
fn compression(scene: &mut Scene) -> Result<Found, Trouble> {
    let offer = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
    let line = scene.open_as(&scene.subprotocol, offer)?;
    Ok(match line.head.field("sec-websocket-extensions") {
        Some(taken) if taken.contains("permessage-deflate") => {
            Found::words(taken, "permessage-deflate was offered").by(How::Announced)
        }
        _ => Found::flag(false, "permessage-deflate was offered, and not taken").by(How::Announced),
    })
}

/// Tests whether pages of other hosts may connect (section 10.2).
fn any_origin(scene: &mut Scene) -> Result<Found, Trouble> {
    let origin = "Origin: https://weigh-probe.invalid\r\n";
    Ok(match scene.open_as(&scene.subprotocol, origin) {
        Ok(_) => {
            Found::flag(true, "an upgrade with the origin weigh-probe.invalid was answered 101")
        }
        Err(Trouble::Refused(text)) => {
            Found::flag(false, format!("with another origin {text}")).with(Status::Refused)
        }
        Err(other) => return Err(other),
    })
}

/// Tests whether a ping is answered (section 5.5.3).
fn ping(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut line = scene.open()?;
    line.pinged()?;
    let _ = line.close(NORMAL);
    Ok(Found::flag(true, "a ping was answered with a pong of the same payload"))
}

/// Tests whether the connection survives a message of this kind.
fn message(scene: &mut Scene, kind: Opcode) -> Result<Found, Trouble> {
    let mut line = scene.open_briefly()?;
    line.send(kind, BODY)?;
    taken(&mut line, "a message of two bytes")
}

/// Says what came after a message.
fn taken(line: &mut Line, what: &str) -> Result<Found, Trouble> {
    let came = match line.settled() {
        Ok(came) => came,
        Err(Trouble::Refused(text) | Trouble::Closed(text)) => {
            return Ok(Found::flag(false, format!("{what}: {text}")).with(Status::Refused));
        }
        Err(other) => return Err(other),
    };
    let _ = line.close(NORMAL);
    let answer = match came.first() {
        None => "nothing came".to_owned(),
        Some(own) if own == BODY => "it came back".to_owned(),
        Some(own) => format!("a message of {} bytes came", own.len()),
    };
    Ok(Found::flag(true, format!("{what} was taken; {answer}")))
}

/// A message in two frames (section 5.4).
fn fragments(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut line = scene.open_briefly()?;
    line.send_in_two(scene.kind(), BODY)?;
    taken(&mut line, "a message in two frames")
}

/// Tests whether text that is not UTF-8 is refused (section 8.1).
fn checks_utf8(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut line = scene.open_briefly()?;
    line.send(Opcode::Text, b"\xff\xfe")?;
    Ok(match line.settled() {
        Ok(_) => Found::flag(false, "text that is not UTF-8 was taken"),
        Err(Trouble::Refused(text) | Trouble::Closed(text)) => {
            Found::flag(true, format!("text that is not UTF-8: {text}"))
        }
        Err(other) => return Err(other),
    })
}

/// Tests whether a close frame is answered by one (section 5.5.1).
fn closing(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut line = scene.open()?;
    line.send(Opcode::Close, &close::payload(NORMAL, ""))?;
    loop {
        return Ok(match line.next() {
            Ok(Came::Close(code, why)) => {
                let words = close::words(code, &why);
                Found::flag(true, format!("close code {NORMAL} was answered with {words}"))
            }
            Ok(_) => continue,
            Err(Trouble::Closed(text)) => Found::flag(false, format!("without a frame {text}")),
            Err(other) => return Err(other),
        });
    }
}

/// The largest message behind which a ping is answered.
fn message_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let (most, kind) = (scene.bounds.payload_bytes, scene.kind());
    let body = vec![b'x'; usize::try_from(most).unwrap_or(usize::MAX)];
    let (edge, why) = largest_passing((1, most), |size| {
        let mut line = scene.open()?;
        let sent = line.send(kind, &body[..size as usize]);
        // A server that refuses it says so before it has read all of it.
        match (sent, line.pinged()) {
            (_, Ok(_)) => {
                let _ = line.close(NORMAL);
                Ok(())
            }
            (_, Err(refused @ Trouble::Refused(_))) => Err(refused),
            (Err(trouble), Err(_)) | (Ok(()), Err(trouble)) => Err(trouble),
        }
    })?;
    Ok(Found::edge(edge, "bytes", " bytes", why.as_ref()))
}

impl Scene {
    /// The kind of messages that it takes: binary, unless only text was taken.
    fn kind(&self) -> Opcode {
        let status = |name: &str| {
            let own = self.found.iter().find(|own| own.name == name);
            own.map(|own| own.status)
        };
        match (status("binary"), status("text")) {
            (Some(Status::Refused), Some(Status::Yes)) => Opcode::Text,
            _ => Opcode::Binary,
        }
    }
}

/// Subprotocols of IANA's registry that servers take.
const OFFERED: &[&str] = &[
    "mqtt",
    "amqp",
    "v12.stomp",
    "wamp.2.json",
    "graphql-transport-ws",
    "graphql-ws",
    "xmpp",
    "ocpp1.6",
    "soap",
];

const BODY: &[u8] = b"{}";

/// Close code of a normal closure (section 7.4.1).
const NORMAL: u16 = 1000;
