use std::sync::Arc;

use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_stats::random::Random;
use weigh_websocket::upgrade::request;
use weigh_websocket::{Broken, Control, Decoder, Opcode, put_frame};

use super::session::{Session, Side};
use super::tally::Tally;
use super::{ClientChoice, Figures};
use crate::layer::session::Session as Layer;

fn decoded(expects_mask: bool, bytes: &[u8]) -> Result<(Vec<u8>, Vec<String>), Broken> {
    let (mut plain, mut told) = (Vec::new(), Vec::new());
    let mut decoder = Decoder::new(expects_mask);
    decoder.take(bytes, &mut plain, &mut |control| told.push(format!("{control:?}")))?;
    Ok((plain, told))
}

/// Both ends, and what is under way between them.
struct Pair {
    client: Session,
    server: Session,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl Pair {
    fn new(tally: &Arc<Tally>) -> Pair {
        let choice = ClientChoice {
            host: "h".into(),
            path: "/parcel".into(),
            subprotocol: "parcel".into(),
            seed: 1,
        };
        let side = Side::client(&choice, Random::new(1));
        let client = Session::new(side, Nanos(0), Arc::clone(tally));
        let server = Session::new(Side::server("parcel"), Nanos(0), Arc::default());
        Pair { client, server, to_server: Vec::new(), to_client: Vec::new() }
    }

    /// Both stand.
    fn upgraded(tally: &Arc<Tally>) -> Pair {
        let mut pair = Pair::new(tally);
        let mut nothing = Vec::new();
        let started = pair.client.feed(&[], Nanos(0), &mut nothing, &mut pair.to_server);
        assert_eq!((started, pair.client.stands()), (Ok(false), false));
        assert_eq!(pair.at_server(), Ok((true, Vec::new())));
        assert_eq!(pair.at_client(), Ok((true, Vec::new())));
        pair
    }

    fn at_server(&mut self) -> Result<(bool, Vec<u8>), Fault> {
        let (input, mut plain) = (std::mem::take(&mut self.to_server), Vec::new());
        let began = self.server.feed(&input, Nanos(0), &mut plain, &mut self.to_client)?;
        Ok((began, plain))
    }

    fn at_client(&mut self) -> Result<(bool, Vec<u8>), Fault> {
        let (input, mut plain) = (std::mem::take(&mut self.to_client), Vec::new());
        let began = self.client.feed(&input, Nanos(0), &mut plain, &mut self.to_server)?;
        Ok((began, plain))
    }
}

#[test]
fn a_session_carries_both_ways_and_counts_what_it_adds() {
    let tally = Arc::new(Tally::default());
    let mut pair = Pair::upgraded(&tally);
    pair.client.say(&[9; 200], &mut pair.to_server).unwrap();
    assert_eq!(pair.to_server.len(), 200 + 8);
    assert_eq!(pair.at_server(), Ok((false, vec![9; 200])));
    pair.server.say(&[7; 100], &mut pair.to_client).unwrap();
    assert_eq!(pair.to_client.len(), 100 + 2);
    assert_eq!(pair.at_client(), Ok((false, vec![7; 100])));
    pair.client.goodbye(&mut pair.to_server);
    assert_eq!(pair.to_server.len(), 8, "header, mask and code");
    assert_eq!(pair.at_server(), Ok((false, Vec::new())));
    assert!(pair.server.has_peer_closed());
    assert_eq!(pair.to_client, b"\x88\x02\x03\xe8");
    assert_eq!(pair.at_client(), Ok((false, Vec::new())));
    assert!(pair.client.has_peer_closed() && pair.to_server.is_empty());
    drop(pair);
    let figures = tally.figures();
    let Figures { frame_sent_bytes, frame_received_bytes, upgrades, .. } = figures;
    assert_eq!((frame_sent_bytes, frame_received_bytes, upgrades), (16, 6, 1));
    let sent = request("h", "/parcel", "parcel", [0; 16]).len() as u64;
    assert_eq!(figures.upgrade_sent_bytes, sent);
}

#[test]
fn pings_are_answered_and_a_bad_end_has_its_reason() {
    let mut pair = Pair::upgraded(&Arc::default());
    put_frame(&mut pair.to_client, Opcode::Ping, None, b"are you there");
    pair.at_client().unwrap();
    let mut told = Vec::new();
    let mut server = Decoder::new(true);
    let pong = std::mem::take(&mut pair.to_server);
    let answered = server.take(&pong, &mut Vec::new(), &mut |control| match control {
        Control::Pong(payload) => told.extend_from_slice(payload),
        other => panic!("{other:?}"),
    });
    assert_eq!((answered, told.as_slice()), (Ok(()), &b"are you there"[..]));
    put_frame(&mut pair.to_client, Opcode::Close, None, b"\x03\xf3too busy");
    let fault = pair.at_client().unwrap_err().to_string();
    assert!(fault.contains("close code 1011 (internal error): too busy"), "{fault}");
}

#[test]
fn a_broken_frame_is_answered_by_its_code() {
    let mut pair = Pair::upgraded(&Arc::default());
    pair.to_client.extend_from_slice(b"\x81\x02hi");
    let fault = pair.at_client().unwrap_err().to_string();
    assert!(fault.contains("WebSocket: text came"), "{fault}");
    let seen = decoded(true, &pair.to_server).unwrap().1;
    assert_eq!(seen, ["Close(Some(1003), \"\")"]);
    assert_eq!(pair.at_client(), Ok((false, Vec::new())), "nothing is read after that");
}
