//! The start of a connection at the reference server: protocol headers, SASL, `open`.

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::server::ConnectionId;

use super::super::codec::{
    AMQP_HEADER, FRAME_MIN, Frame, MECHANISMS, Open, Outcome, Performative, SASL_HEADER, Sasl,
    Symbols,
};
use super::super::hub::Hub;
use super::super::peer::Stage;
use super::super::refusal::Refusal;
use super::super::settings::announced_ms;
use super::{Broker, CHANNEL_MAX};
use crate::broker_core::Turn;

impl Broker {
    /// Takes a protocol header and returns its bytes; 0 if it is not whole yet.
    ///
    /// # Errors
    /// It is another one: the answer says what the server has (part 2, section 2.2).
    pub(super) fn take_header(
        &mut self,
        id: ConnectionId,
        input: &[u8],
        hub: &Hub,
        turn: &mut Turn<'_>,
    ) -> Result<usize, Fault> {
        let needs_login = hub.rules.login.is_some();
        let Some(peer) = self.peer(id) else { return Ok(0) };
        let is_first = peer.stage == Stage::Header;
        let seen = &input[..input.len().min(AMQP_HEADER.len())];
        let takes = |header: [u8; 8]| header.starts_with(seen);
        let takes_amqp = takes(AMQP_HEADER) && !(is_first && needs_login && seen.len() > 4);
        let takes_sasl = is_first && takes(SASL_HEADER);
        if !(takes_amqp || takes_sasl) {
            peer.stage = Stage::Over;
            let own = if is_first { SASL_HEADER } else { AMQP_HEADER };
            turn.out.stage(id).extend_from_slice(&own);
            let what = "it does not begin with a header of AMQP 1.0 that is taken now".to_owned();
            return Err(Fault::OtherProtocol(what));
        }
        if seen.len() < AMQP_HEADER.len() {
            return Ok(0);
        }
        peer.last_sent = turn.now;
        if takes_amqp {
            peer.stage = Stage::Greeted;
            turn.out.stage(id).extend_from_slice(&AMQP_HEADER);
        } else {
            peer.stage = Stage::Mechanisms;
            let out = turn.out.stage(id);
            out.extend_from_slice(&SASL_HEADER);
            let own = if needs_login { Symbols::One("PLAIN") } else { MECHANISMS };
            Sasl::Mechanisms(own).put(out);
        }
        Ok(AMQP_HEADER.len())
    }

    pub(super) fn log_in(
        &mut self,
        id: ConnectionId,
        frame: &Frame<'_>,
        hub: &Hub,
        turn: &mut Turn<'_>,
    ) -> Result<(), Refusal> {
        let Sasl::Init { mechanism, response, .. } = Sasl::read(frame.body)? else {
            return Err(Refusal::unexpected("another frame of SASL"));
        };
        let is_right = is_login(mechanism, response.unwrap_or_default(), hub);
        let code = if is_right { Outcome::OK } else { Outcome::AUTH };
        Sasl::Outcome(code).put(turn.out.stage(id));
        if let Some(peer) = self.peer(id) {
            peer.last_sent = turn.now;
            peer.stage = Stage::LoggedIn;
        }
        if !is_right {
            self.end(id, turn);
        }
        Ok(())
    }

    /// Answers `open`.
    pub(super) fn opened(
        &mut self,
        id: ConnectionId,
        open: &Open<'_>,
        hub: &Hub,
        turn: &mut Turn<'_>,
    ) {
        if let Some(peer) = self.peer(id) {
            peer.frame_max = open.max_frame_size.clamp(FRAME_MIN, hub.rules.frame_max);
            // Half of what the client misses it after.
            let beat = Nanos(u64::from(open.idle_time_out_ms.unwrap_or(0)) * 500_000);
            peer.beat = beat;
            peer.stage = Stage::Open;
            self.keep_pace(beat);
        }
        self.put_open(id, hub, turn);
    }

    pub(super) fn put_open(&mut self, id: ConnectionId, hub: &Hub, turn: &mut Turn<'_>) {
        let open = Open {
            container_id: "weigh",
            hostname: None,
            max_frame_size: hub.rules.frame_max,
            channel_max: CHANNEL_MAX,
            idle_time_out_ms: announced_ms(hub.rules.idle),
        };
        self.say(id, 0, &Performative::Open(open), turn);
    }
}

/// RFC 4616: an identity, the user and the password, with zero bytes between them; RFC 4505:
/// anything.
fn is_login(mechanism: &str, response: &[u8], hub: &Hub) -> bool {
    let login = hub.rules.login.as_ref();
    match mechanism {
        "ANONYMOUS" => login.is_none(),
        "PLAIN" => {
            let parts: Vec<&[u8]> = response.split(|byte| *byte == 0).collect();
            let [_, user, password] = parts[..] else { return false };
            login.is_none_or(|(own_user, own_password)| {
                own_user.as_bytes() == user && own_password.as_bytes() == password
            })
        }
        _ => false,
    }
}
