//! The start of a connection at the reference server: version, credentials, limits, virtual host.

use weigh_model::Nanos;
use weigh_model::server::ConnectionId;

use super::super::codec::{FRAME_MIN, Long, Method, Short, TableWriter, code};
use super::super::hub::Hub;
use super::super::peer::Stage;
use super::super::refusal::Refusal;
use super::Broker;
use crate::broker_core::Turn;

impl Broker {
    /// Answers the protocol header.
    pub(super) fn start(&mut self, id: ConnectionId, turn: &mut Turn<'_>) {
        let mut capabilities = TableWriter::default();
        for name in CAPABILITIES {
            capabilities.flag(name, true);
        }
        let mut properties = TableWriter::default();
        properties.text("product", "weigh").text("version", env!("CARGO_PKG_VERSION"));
        properties.table("capabilities", capabilities.as_table());
        let start = Method::Start {
            major: 0,
            minor: 9,
            server_properties: properties.as_table(),
            mechanisms: Long(b"PLAIN"),
            locales: Long(b"en_US"),
        };
        self.say(id, 0, &start, turn);
        self.enter(id, Stage::Start);
    }

    fn enter(&mut self, id: ConnectionId, stage: Stage) {
        if let Some(peer) = self.peer(id) {
            peer.stage = stage;
        }
    }

    /// Takes a method of the connection itself.
    pub(super) fn greet(
        &mut self,
        id: ConnectionId,
        method: &Method<'_>,
        hub: &mut Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Some(peer) = self.peer(id) else { return Ok(()) };
        match (peer.stage, *method) {
            (Stage::Start, Method::StartOk { client_properties, mechanism, response, .. }) => {
                let hears = |name| client_properties.has_capability("capabilities", name);
                peer.hears_blocked = hears("connection.blocked");
                peer.hears_cancelled = hears("consumer_cancel_notify");
                check_login(mechanism.0, response.0, hub)?;
                let (channel_max, frame_max) = (hub.rules.channel_max, hub.rules.frame_max);
                let heartbeat_s = hub.rules.heartbeat_s;
                self.say(id, 0, &Method::Tune { channel_max, frame_max, heartbeat_s }, turn);
                self.enter(id, Stage::Tune);
                Ok(())
            }
            (Stage::Tune, Method::TuneOk { frame_max, heartbeat_s, .. }) => {
                let most = hub.rules.frame_max;
                let asked = if frame_max == 0 { most } else { frame_max };
                if !(FRAME_MIN..=most).contains(&asked) {
                    let text = format!("a frame-max of {frame_max}; {FRAME_MIN} to {most} is due");
                    return Err(Refusal::connection(code::NOT_ALLOWED, text));
                }
                peer.frame_max = asked;
                peer.beat = Nanos(u64::from(heartbeat_s) * 500_000_000);
                self.enter(id, Stage::Tuned);
                Ok(())
            }
            (Stage::Tuned, Method::Open { virtual_host, .. }) => {
                if virtual_host.0 != hub.rules.vhost {
                    let text = format!("vhost {} not found", virtual_host.0);
                    return Err(Refusal::connection(code::NOT_ALLOWED, text));
                }
                self.say(id, 0, &Method::OpenOk { reserved_1: Short("") }, turn);
                self.enter(id, Stage::Open);
                Ok(())
            }
            _ => {
                let text = format!("{} at this moment", method.name());
                Err(Refusal::connection(code::COMMAND_INVALID, text))
            }
        }
    }
}

/// RFC 4616: an identity, the user and the password, with zero bytes between them.
fn check_login(mechanism: &str, response: &[u8], hub: &Hub) -> Result<(), Refusal> {
    if mechanism != "PLAIN" {
        let text = format!("unknown mechanism {mechanism}; PLAIN is known");
        return Err(Refusal::connection(code::ACCESS_REFUSED, text));
    }
    let parts: Vec<&[u8]> = response.split(|byte| *byte == 0).collect();
    let [_, user, password] = parts[..] else {
        return Err(Refusal::connection(code::ACCESS_REFUSED, "a response that is not PLAIN"));
    };
    match &hub.rules.login {
        Some((own, _)) if own.as_bytes() != user => Err(wrong_login()),
        Some((_, own)) if own.as_bytes() != password => Err(wrong_login()),
        _ => Ok(()),
    }
}

fn wrong_login() -> Refusal {
    Refusal::connection(code::ACCESS_REFUSED, "the user or the password is wrong")
}

const CAPABILITIES: [&str; 5] = [
    "publisher_confirms",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "authentication_failure_close",
];
