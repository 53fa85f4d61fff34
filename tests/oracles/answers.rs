//! Error answers: lost by `error_answer`, their times apart, and never among response times.

use weigh_model::connection::Fault;
use weigh_model::ledger::Cause;
use weigh_model::server::{ConnectionId, Outboxes, Server, ServerReport};
use weigh_model::{Nanos, Pattern};

use crate::rig::{Seen, Setup};

const MESSAGES: u64 = 300;

/// Answers one of three requests with 404, one with 503, one with 201.
struct MoodyHttp(u64);

impl Server for MoodyHttp {
    fn accepted(&mut self, _: ConnectionId, _: Nanos, _: &mut dyn Outboxes) {}

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let Some(head) = input.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Ok(0);
        };
        let whole = head + 4 + BODY_BYTES;
        if input.len() < whole {
            return Ok(0);
        }
        let status = ["201 Created", "404 Not Found", "503 Service Unavailable"];
        let line =
            format!("HTTP/1.1 {}\r\nContent-Length: 5\r\n\r\nmoody", status[(self.0 % 3) as usize]);
        self.0 += 1;
        out.stage(connection).extend_from_slice(line.as_bytes());
        Ok(whole)
    }

    fn closed(&mut self, _: ConnectionId, _: Nanos, _: &mut dyn Outboxes) {}

    fn report(&self) -> ServerReport {
        ServerReport::default()
    }
}

const BODY_BYTES: usize = 64;

/// An MQTT 5 broker that answers by turns 0x00, 0x10, 0x87 and 0x97 (MQTT 5.0, section 2.4).
struct MoodyBroker(u64);

impl MoodyBroker {
    fn answer(&mut self, packet: &[u8], out: &mut Vec<u8>) {
        match packet[0] {
            0x10 => out.extend_from_slice(&[0x20, 3, 0, 0, 0]),
            publish @ (0x32 | 0x34) => {
                let topic = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
                let id = [packet[4 + topic], packet[5 + topic]];
                let reason = [0x00, 0x10, 0x87, 0x97][(self.0 % 4) as usize];
                self.0 += 1;
                let answer = if publish == 0x32 { 0x40 } else { 0x50 };
                out.extend_from_slice(&[answer, 3, id[0], id[1], reason]);
            }
            0x62 => out.extend_from_slice(&[0x70, 2, packet[2], packet[3]]),
            _ => {}
        }
    }
}

impl Server for MoodyBroker {
    fn accepted(&mut self, _: ConnectionId, _: Nanos, _: &mut dyn Outboxes) {}

    fn receive(
        &mut self,
        connection: ConnectionId,
        input: &[u8],
        _: Nanos,
        out: &mut dyn Outboxes,
    ) -> Result<usize, Fault> {
        let mut taken = 0;
        while let Some(length) = input.get(taken + 1) {
            let whole = 2 + usize::from(*length);
            let Some(packet) = input.get(taken..taken + whole) else { break };
            taken += whole;
            self.answer(packet, out.stage(connection));
        }
        Ok(taken)
    }

    fn closed(&mut self, _: ConnectionId, _: Nanos, _: &mut dyn Outboxes) {}

    fn report(&self) -> ServerReport {
        ServerReport::default()
    }
}

fn check(seen: &Seen, refused: u64, no_subscriber: u64) {
    let ledger = seen.ledger();
    assert_eq!(ledger.sent, MESSAGES);
    assert_eq!(ledger.delivered, Some(MESSAGES - refused));
    assert_eq!(ledger.acknowledged, MESSAGES - refused);
    assert_eq!(ledger.lost, Some(refused));
    assert_eq!(ledger.causes.get(&Cause::ErrorAnswer).copied().unwrap_or(0), refused);
    assert_eq!(ledger.no_subscriber, no_subscriber);
    let recorder = &seen.outcome.shards.recorder;
    assert_eq!(recorder.error.count(), refused);
    assert_eq!(recorder.response.count(), MESSAGES - refused);
    assert_eq!(recorder.service.count(), MESSAGES - refused);
}

fn both(setup: &Setup, refused: u64, no_subscriber: u64) {
    check(&setup.on_virtual_time(), refused, no_subscriber);
    check(&setup.on_sockets(), refused, no_subscriber);
}

#[test]
fn http_errors_are_losses_by_error_answer() {
    let mut closed = Setup::new("http1", &[], Pattern::Request, MESSAGES);
    closed.server = Some(|| Box::new(MoodyHttp(0)));
    both(&closed, MESSAGES / 3 * 2, 0);
    both(&closed.connections(20).open("constant", "2000/s"), MESSAGES / 3 * 2, 0);
    // A reference server whose path was set does not know another.
    let given = [("path", "/nowhere")];
    let mut missing = Setup::new("http1", &given, Pattern::Request, MESSAGES);
    missing.server_settings = vec![("path".to_owned(), "/elsewhere".to_owned())];
    both(&missing, MESSAGES, 0);
}

#[test]
fn mqtt_reasons_are_told_apart() {
    for qos in ["1", "2"] {
        let given = [("qos", qos), ("version", "5"), ("topic", "moods")];
        let mut setup = Setup::new("mqtt", &given, Pattern::Publish, MESSAGES);
        setup.server = Some(|| Box::new(MoodyBroker(0)));
        both(&setup, MESSAGES / 2, MESSAGES / 4);
        both(&setup.open("poisson", "2000/s"), MESSAGES / 2, MESSAGES / 4);
    }
}

/// The reference broker itself: a topic that nobody subscribes to.
#[test]
fn nobody_subscribes() {
    let given = [("qos", "1"), ("version", "5")];
    both(&Setup::new("mqtt", &given, Pattern::Publish, MESSAGES), 0, MESSAGES);
    let old = Setup::new("mqtt", &[("qos", "1")], Pattern::Publish, MESSAGES);
    both(&old, 0, 0);
}
