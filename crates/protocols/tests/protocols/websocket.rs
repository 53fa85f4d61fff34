//! WebSocket by itself: both ends together, and each against what it must not accept.

use proptest::collection::vec;
use proptest::prelude::*;
use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Guarantee, Protocol, Role, Seat};
use weigh_model::server::ConnectionId;
use weigh_model::trial::Settings;
use weigh_protocols::websocket::WebSocket;
use weigh_websocket::frame::apply_mask;
use weigh_websocket::upgrade::{Upgrade, read_any_request};
use weigh_websocket::{Opcode, close, put_frame};

use crate::rig::{Client, Heard, Shard, exchange, kind, trial};

const URL: &str = "websocket://h:80";

fn client(pattern: Pattern, role: Role, given: &[(&str, &str)]) -> Client {
    client_at(pattern, Topology::FanIn, Seat { index: 0, role }, given)
}

fn client_at(pattern: Pattern, topology: Topology, seat: Seat, given: &[(&str, &str)]) -> Client {
    let mut trial = trial(&WebSocket, pattern, topology, URL, given).unwrap();
    if pattern == Pattern::Deliver {
        trial.load.subscribers = 1;
    }
    Client::new((WebSocket.dial(&trial).unwrap().make)(seat))
}

/// A client that has been upgraded, at connection `connection` of the server.
fn joined(shard: &mut Shard, connection: u32, mut client: Client) -> Client {
    shard.accept(connection);
    exchange(&mut client, shard, connection, &[]);
    assert_eq!(client.heard, [Heard::Ready]);
    client.heard.clear();
    client
}

/// A frame of a client.
fn masked(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame(&mut out, opcode, Some([1, 2, 3, 4]), payload);
    out
}

/// A frame of a server.
fn plain(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame(&mut out, opcode, None, payload);
    out
}

/// A producer that was upgraded by nobody but the test.
fn alone(given: &[(&str, &str)]) -> Client {
    let mut own = client(Pattern::Publish, Role::Producer, given);
    let asked = own.sent();
    let Ok(Upgrade::Done(_, asked)) = read_any_request(&asked) else { panic!("{asked:?}") };
    own.feed(asked.accepted("").as_bytes()).unwrap();
    assert_eq!(std::mem::take(&mut own.heard), [Heard::Ready]);
    own
}

#[test]
fn messages_are_answered_echoed_or_followed_by_a_pong() {
    for (confirm, awaits, frames) in
        [("reply", true, 1), ("echo", true, 1), ("pong", true, 2), ("none", false, 1)]
    {
        let given = [("confirm", confirm), ("kind", "text")];
        let mut shard = Shard::of(&WebSocket, &given);
        let mut own = joined(&mut shard, 0, client(Pattern::Publish, Role::Producer, &given));
        let expected = match awaits {
            true => vec![Heard::Done(0), Heard::Done(1)],
            false => Vec::new(),
        };
        own.send(0, b"{\"n\":0}");
        own.send(1, b"{\"n\":1}");
        let head = if frames == 2 { 6 + 6 + 4 } else { 6 };
        assert_eq!(own.out.len(), 2 * (head + 7), "{confirm}");
        exchange(&mut own, &mut shard, 0, &[3, 9, 20]);
        assert_eq!(own.heard, expected, "{confirm}");
        let report = shard.server.report();
        assert_eq!((report.received, report.connections), (2, 1), "{confirm}");
        assert_eq!(shard.desk.stored.len(), if awaits { 2 } else { 0 }, "{confirm}");
    }
}

#[test]
fn every_subscriber_gets_every_message_and_a_pair_its_own() {
    let mut shard = Shard::of(&WebSocket, &[]);
    let subscriber = || client(Pattern::Deliver, Role::Consumer, &[]);
    let mut first = joined(&mut shard, 0, subscriber());
    let mut second = joined(&mut shard, 1, subscriber());
    let mut own = joined(&mut shard, 2, client(Pattern::Deliver, Role::Producer, &[]));
    own.send(7, b"hello");
    exchange(&mut own, &mut shard, 2, &[]);
    assert_eq!(own.heard, [Heard::Done(7)]);
    for (connection, one) in [(0, &mut first), (1, &mut second)] {
        exchange(one, &mut shard, connection, &[1]);
        assert_eq!(one.heard, [Heard::Message(vec![], b"hello".to_vec())]);
    }
    assert_eq!(shard.server.report().forwarded, 2);

    let seat = |index, role| Seat { index, role };
    let pair = |seat| client_at(Pattern::Deliver, Topology::Pairs, seat, &[]);
    let mut shard = Shard::of(&WebSocket, &[]);
    let mut zero = joined(&mut shard, 0, pair(seat(0, Role::Consumer)));
    let mut one = joined(&mut shard, 1, pair(seat(1, Role::Consumer)));
    let mut own = joined(&mut shard, 2, pair(seat(1, Role::Producer)));
    own.send(0, b"to one");
    exchange(&mut own, &mut shard, 2, &[]);
    exchange(&mut zero, &mut shard, 0, &[]);
    exchange(&mut one, &mut shard, 1, &[]);
    assert_eq!(one.heard, [Heard::Message(b"1".to_vec(), b"to one".to_vec())]);
    assert_eq!(zero.heard, []);
}

/// Two shards of one server: a message reaches the subscribers of both, and the answer counts them.
#[test]
fn shards_pass_messages_to_each_other() {
    let settings = Settings::new("websocket", WebSocket.settings(), []).unwrap();
    let host = WebSocket.host(&settings).unwrap();
    let (mut here, mut there) = (Shard::new((host.make)(0)), Shard::new((host.make)(1)));
    let mut away = joined(&mut there, 0, client(Pattern::Deliver, Role::Consumer, &[]));
    let mut own = joined(&mut here, 0, client(Pattern::Deliver, Role::Producer, &[]));
    own.send(0, b"far");
    own.send(1, b"farther");
    exchange(&mut own, &mut here, 0, &[]);
    assert_eq!(own.heard, [Heard::Done(0), Heard::Done(1)]);
    assert_eq!(here.desk.notified, [1], "once for both");
    there.server.notified(Nanos(0), &mut there.desk);
    exchange(&mut away, &mut there, 0, &[]);
    let message = |body: &[u8]| Heard::Message(vec![], body.to_vec());
    assert_eq!(away.heard, [message(b"far"), message(b"farther")]);
    there.close(0);
    own.heard.clear();
    own.send(2, b"unheard");
    exchange(&mut own, &mut here, 0, &[]);
    assert_eq!(own.heard, [Heard::NoSubscriber(2)]);
}

#[test]
fn answers_that_answer_nothing_are_refused_with_what_to_type() {
    let fault = |given: &[(&str, &str)], sends: bool, frame: &[u8]| {
        let mut own = alone(given);
        if sends {
            own.send(0, b"abc");
            own.sent();
        }
        own.feed(frame).unwrap_err().to_string()
    };
    let said = fault(&[], false, &plain(Opcode::Text, b"hello"));
    assert!(said.contains("answers none") && said.contains("confirm=pong"), "{said}");
    let said = fault(&[("confirm", "echo")], true, &plain(Opcode::Binary, b"abd"));
    assert!(said.contains("not what was sent") && said.contains("confirm=reply"), "{said}");
    // What a server sends to everybody is no answer where none is awaited.
    for confirm in ["none", "pong"] {
        let mut own = alone(&[("confirm", confirm)]);
        own.send(0, b"abc");
        own.feed(&plain(Opcode::Text, b"for everybody")).unwrap();
        own.feed(&plain(Opcode::Pong, b"unasked")).unwrap();
        own.feed(&plain(Opcode::Pong, b"")).unwrap();
        assert_eq!(own.heard, [], "{confirm}");
    }
    // A pong may answer several pings (RFC 6455, section 5.5.3).
    let mut own = alone(&[("confirm", "pong")]);
    for ticket in 0..3 {
        own.send(ticket, b"abc");
    }
    own.feed(&plain(Opcode::Pong, &1u32.to_be_bytes())).unwrap();
    assert_eq!(own.heard, [Heard::Done(0), Heard::Done(1)]);
}

#[test]
fn silence_is_broken_by_a_ping_and_ends_without_a_pong() {
    let second = Nanos::from_secs(1);
    let mut own = alone(&[("keep_alive", "10s")]);
    own.pass(Nanos(9 * second.0)).unwrap();
    assert_eq!(own.sent(), b"");
    own.pass(Nanos(10 * second.0)).unwrap();
    let ping = own.sent();
    assert_eq!((ping.len(), ping[0], ping[1]), (6, 0x89, 0x80));
    own.feed(&plain(Opcode::Pong, b"")).unwrap();
    assert_eq!(own.heard, [Heard::Alive]);
    own.pass(Nanos(20 * second.0)).unwrap();
    assert_eq!(own.sent().len(), 6);
    let fault = own.pass(Nanos(40 * second.0)).unwrap_err().to_string();
    assert!(fault.contains("answered no WebSocket ping"), "{fault}");
    let mut own = alone(&[("keep_alive", "0s")]);
    own.pass(Nanos(3600 * second.0)).unwrap();
    assert_eq!(own.sent(), b"");
    // The other end's pings are answered with their payload.
    own.feed(&plain(Opcode::Ping, b"there?")).unwrap();
    let mut pong = own.sent();
    assert_eq!((pong[0], pong[1]), (0x8a, 0x80 | 6));
    let key = [pong[2], pong[3], pong[4], pong[5]];
    apply_mask(&mut pong[6..], key, 0);
    assert_eq!(&pong[6..], b"there?");
}

#[test]
fn a_close_frame_is_named_and_answered() {
    for (code, why, said) in [
        (1000, "", "1000 (normal closure)"),
        (1001, "restart", "1001 (going away): restart"),
        (1013, "too slow", "1013 (try again later): too slow"),
        (4001, "", "4001 (a private code)"),
    ] {
        let mut own = alone(&[]);
        let fault = own.feed(&plain(Opcode::Close, &close::payload(code, why))).unwrap_err();
        assert!(matches!(fault, Fault::Ended(_)) && fault.to_string().contains(said), "{fault}");
        let answer = own.sent();
        assert_eq!((answer.len(), answer[0]), (8, 0x88));
    }
    let mut own = alone(&[]);
    own.connection.close(&mut own.out);
    assert_eq!(own.sent().len(), 8);
    own.feed(&plain(Opcode::Close, &close::payload(1000, ""))).unwrap();
    assert_eq!((own.end(), own.sent().len()), (Ok(()), 0));
    let mut own = alone(&[]);
    let fault = own.end().unwrap_err().to_string();
    assert!(fault.contains("without a WebSocket close frame"), "{fault}");
    let mut own = alone(&[]);
    own.feed(b"\x82\x05He").unwrap();
    assert!(own.end().unwrap_err().to_string().contains("in the middle"));
}

#[test]
fn a_client_names_what_is_not_websocket() {
    let fault = |answer: &[u8]| {
        let mut own = client(Pattern::Request, Role::Producer, &[]);
        own.feed(answer).unwrap_err().to_string()
    };
    for (answer, said) in [
        (&b"\x20\x02\x00\x00"[..], "the answer to the WebSocket upgrade starts with"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "type the URL with TLS"),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "check the path of the URL"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "subprotocol"),
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", "--user"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "whether it speaks WebSocket there"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "does not say Upgrade"),
    ] {
        let found = fault(answer);
        assert!(found.contains(said), "{found} says not {said}");
    }
    let mut own = client(Pattern::Request, Role::Producer, &[]);
    own.feed(b"HTTP/1.1 1").unwrap();
    assert!(own.end().unwrap_err().to_string().contains("without an answer"));
    for (frame, said) in [
        (&b"\xc1\x05Hello"[..], "reserved bits"),
        (b"\x83\x00", "no opcode 3"),
        (b"\x80\x00", "continuation of nothing"),
        (&masked(Opcode::Text, b"hi"), "a server's frame is masked"),
        (&plain(Opcode::Text, b"\xff"), "not UTF-8"),
        (b"\x82\x7f\0\0\0\x01\0\0\0\0", "raise websocket.message_bytes_max"),
    ] {
        let mut own = alone(&[]);
        own.send(0, b"abc");
        own.sent();
        let found = own.feed(frame).unwrap_err();
        assert!(
            matches!(found, Fault::Malformed(_)) && found.to_string().contains(said),
            "{found}"
        );
        assert_eq!(own.sent()[0], 0x88, "the violated rule is sent");
    }
}

/// The answer of the server to a client that was upgraded at this path.
fn answered(given: &[(&str, &str)], path: &str, frame: &[u8]) -> (Result<(), Fault>, Vec<u8>) {
    let mut shard = Shard::of(&WebSocket, given);
    shard.accept(0);
    shard.feed(0, upgrade(path).as_bytes()).unwrap();
    assert!(shard.staged(0).starts_with(b"HTTP/1.1 101 "));
    let result = shard.feed(0, frame);
    (result, shard.staged(0))
}

fn upgrade(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n"
    )
}

#[test]
fn the_server_answers_violations_with_their_code() {
    let small = [("message_bytes_max", "64")];
    for (given, path, frame, code) in [
        (&[][..], "/messages/reply", plain(Opcode::Text, b"hi"), 1002u16),
        (&[], "/messages/reply", masked(Opcode::Text, b"\xff"), 1007),
        (&[], "/messages/reply", masked(Opcode::Continuation, b"hi"), 1002),
        (&[], "/messages/reply", masked(Opcode::Close, b"\x03"), 1002),
        (&[], "/subscribe", masked(Opcode::Text, b"hi"), 1008),
        (&small, "/messages/reply", masked(Opcode::Binary, &[0; 65]), 1009),
        (&small, "/messages/reply", b"\x82\xff\0\0\0\0\x7f\xff\xff\xff\0\0\0\0".to_vec(), 1009),
    ] {
        let (result, answer) = answered(given, path, &frame);
        assert_eq!(kind(&result), "malformed", "{frame:?}");
        assert_eq!((answer[0], &answer[2..4]), (0x88, &code.to_be_bytes()[..]), "{frame:?}");
    }
    let (result, answer) = answered(&[], "/messages/echo", &masked(Opcode::Text, b"hi"));
    assert_eq!((result, &*answer), (Ok(()), &b"\x81\x02hi"[..]));
    let (result, answer) = answered(&[], "/messages/reply", &masked(Opcode::Ping, b"hi"));
    assert_eq!((result, &*answer), (Ok(()), &b"\x8a\x02hi"[..]));
    let closing = masked(Opcode::Close, &close::payload(1001, "bye"));
    let (result, answer) = answered(&[], "/subscribe", &closing);
    assert_eq!((result, &*answer), (Ok(()), &b"\x88\x02\x03\xe9"[..]));
}

#[test]
fn the_server_turns_away_what_it_cannot_serve_and_agrees_on_no_extension() {
    let mut shard = Shard::of(&WebSocket, &[]);
    let answer = |shard: &mut Shard, input: &str| {
        shard.desk.closed.clear();
        shard.accept(0);
        let result = shard.feed(0, input.as_bytes());
        let answer = String::from_utf8(shard.staged(0)).unwrap();
        shard.close(0);
        (kind(&result), answer)
    };
    let (result, text) = answer(&mut shard, &upgrade("/nowhere"));
    assert!(result == "malformed" && text.starts_with("HTTP/1.1 404 "), "{text}");
    assert!(text.contains("send at /messages/reply") && text.contains("/subscribe"), "{text}");
    let (_, text) = answer(&mut shard, "GET /subscribe HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(text.starts_with("HTTP/1.1 426 "), "{text}");
    let (_, text) = answer(&mut shard, "\x10\x0e\0\x04MQTT");
    assert!(text.starts_with("HTTP/1.1 400 "), "{text}");
    let (result, text) = answer(&mut shard, &upgrade("/subscribe/7"));
    assert!(result == "ok" && text.starts_with("HTTP/1.1 101 "), "{text}");
    assert!(!text.contains("Extensions"), "{text}");
    let mut shard = Shard::of(&WebSocket, &[("subprotocol", "weigh")]);
    let (_, text) = answer(&mut shard, &upgrade("/subscribe"));
    assert!(text.starts_with("HTTP/1.1 400 ") && text.contains("subprotocol weigh"), "{text}");
    let offers = "Version: 13\r\nSec-WebSocket-Protocol: other, weigh";
    let (_, text) = answer(&mut shard, &upgrade("/subscribe").replace("Version: 13", offers));
    assert!(text.contains("Sec-WebSocket-Protocol: weigh\r\n"), "{text}");
}

#[test]
fn a_subscriber_that_does_not_read_is_cut_off_or_misses_messages() {
    for (policy, is_cut) in [("disconnect", true), ("drop", false)] {
        let given = [("server_queue_bytes_max", "1024"), ("server_slow", policy)];
        let mut shard = Shard::of(&WebSocket, &given);
        for connection in [0, 1] {
            let path = ["/messages/none", "/subscribe"][connection as usize];
            shard.accept(connection);
            shard.feed(connection, upgrade(path).as_bytes()).unwrap();
            shard.staged(connection);
        }
        for _ in 0..6 {
            shard.feed(0, &masked(Opcode::Binary, &[7; 300])).unwrap();
        }
        let report = shard.server.report();
        assert_eq!(report.forwarded, 3, "{policy}: 304 bytes each");
        assert_eq!(shard.desk.closed, if is_cut { vec![1] } else { vec![] });
        assert_eq!(report.disconnects, u64::from(is_cut));
        assert_eq!(report.dropped["queue_full"], if is_cut { 1 } else { 3 });
        shard.server.closed(ConnectionId(1), Nanos(0), &mut shard.desk);
    }
}

#[test]
fn trials_that_cannot_work_are_refused_with_what_to_type() {
    let refusal = |pattern, topology, given: &[(&str, &str)]| {
        let trial = trial(&WebSocket, pattern, topology, URL, given).unwrap();
        WebSocket.dial(&trial).err().unwrap().to_string()
    };
    for (pattern, topology, given, said) in [
        (Pattern::Deliver, Topology::Shared, &[][..], "shared subscriptions"),
        (Pattern::Request, Topology::FanIn, &[("confirm", "none")], "confirm=reply"),
        (Pattern::Publish, Topology::FanIn, &[("path", "nowhere")], "is not a path"),
        (Pattern::Publish, Topology::FanIn, &[("subscribe_path", "a b")], "%20"),
        (Pattern::Publish, Topology::FanIn, &[("subprotocol", "a b")], "subprotocol"),
        (Pattern::Publish, Topology::FanIn, &[("headers", "Upgrade: h2c")], "every upgrade"),
        (
            Pattern::Publish,
            Topology::FanIn,
            &[("headers", "Sec-WebSocket-Extensions: permessage-deflate")],
            "no extension is supported",
        ),
        (Pattern::Poll, Topology::FanIn, &[], "does not support the pattern poll"),
    ] {
        let found = refusal(pattern, topology, given);
        assert!(found.contains(said), "{found} says not {said}");
    }
    let same = [("path", "/a"), ("subscribe_path", "/a")];
    let settings = Settings::new("websocket", WebSocket.settings(), same).unwrap();
    assert!(WebSocket.host(&settings).err().unwrap().to_string().contains("subscribe_path"));
    for (confirm, guarantee) in [
        ("reply", Guarantee::AtLeastOnce),
        ("echo", Guarantee::AtLeastOnce),
        ("pong", Guarantee::AtMostOnce),
        ("none", Guarantee::AtMostOnce),
    ] {
        let settings = Settings::new("websocket", WebSocket.settings(), [("confirm", confirm)]);
        assert_eq!(WebSocket.guarantee(&settings.unwrap()), guarantee, "{confirm}");
    }
}

#[test]
fn the_upgrade_has_the_fields_of_the_user() {
    let given = [("subprotocol", "chat"), ("headers", "X-Site: 7|Origin: http://h")];
    let mut trial = trial(
        &WebSocket,
        Pattern::Publish,
        Topology::FanIn,
        "websocket://u:p@h:8080/a?b=c",
        &given,
    )
    .unwrap();
    trial.load.messages = Some(1);
    let make = WebSocket.dial(&trial).unwrap().make;
    let mut own = Client::new(make(Seat { index: 0, role: Role::Producer }));
    let asked = String::from_utf8(own.sent()).unwrap();
    for line in [
        "GET /a?b=c HTTP/1.1\r\n",
        "Host: h:8080\r\n",
        "Sec-WebSocket-Protocol: chat\r\n",
        "Authorization: Basic dTpw\r\n",
        "X-Site: 7\r\n",
        "Origin: http://h\r\n",
    ] {
        assert!(asked.contains(line), "{asked}");
    }
    assert!(!asked.contains("Extensions"), "{asked}");
}

proptest! {
    /// Whatever the bodies, the fragments and the cuts: every message arrives once and as it was.
    #[test]
    fn messages_survive_fragments_and_cuts(
        bodies in vec(vec(any::<u8>(), 0..300), 1..5),
        fragment in 0usize..120,
        cuts in vec(0usize..2000, 0..8),
        seed: u64,
    ) {
        let fragment = fragment.to_string();
        let given = [("fragment_bytes", &*fragment), ("confirm", "echo")];
        let mut shard = Shard::of(&WebSocket, &given);
        let mut subscriber =
            joined(&mut shard, 0, client(Pattern::Deliver, Role::Consumer, &given));
        let mut trial = trial(&WebSocket, Pattern::Deliver, Topology::FanIn, URL, &given).unwrap();
        (trial.seed, trial.load.subscribers) = (seed, 1);
        let make = WebSocket.dial(&trial).unwrap().make;
        let producer = Client::new(make(Seat { index: 0, role: Role::Producer }));
        let mut own = joined(&mut shard, 1, producer);
        for (ticket, body) in bodies.iter().enumerate() {
            own.send(ticket as u32, body);
        }
        exchange(&mut own, &mut shard, 1, &cuts);
        exchange(&mut subscriber, &mut shard, 0, &cuts);
        let done: Vec<Heard> = (0..bodies.len() as u32).map(Heard::Done).collect();
        prop_assert_eq!(&own.heard, &done);
        let messages: Vec<Heard> =
            bodies.iter().map(|body| Heard::Message(vec![], body.clone())).collect();
        prop_assert_eq!(&subscriber.heard, &messages);
    }

    #[test]
    fn no_bytes_make_either_end_panic(
        input in vec(any::<u8>(), 0..300),
        cuts in vec(0usize..300, 0..6),
        is_upgraded: bool,
    ) {
        let mut own = if is_upgraded {
            alone(&[])
        } else {
            client(Pattern::Request, Role::Producer, &[])
        };
        let _ = own.feed_cut(&input, &cuts);
        let mut shard = Shard::of(&WebSocket, &[]);
        shard.accept(0);
        if is_upgraded {
            shard.feed(0, upgrade("/messages/echo").as_bytes()).unwrap();
        }
        let _ = shard.feed_cut(0, &input, &cuts);
    }
}
