//! Server-sent events: both ends together, and each against what it must not accept.

use proptest::collection::vec;
use proptest::prelude::*;
use weigh_model::Nanos;
use weigh_model::connection::Fault;
use weigh_model::load::{Pattern, Topology};
use weigh_model::protocol::{Dial, Protocol, Role, Seat};
use weigh_model::trial::Settings;
use weigh_protocols::sse::Sse;

use crate::rig::{Client, Heard, Shard, exchange, trial};

const URL: &str = "sse://h:80";

fn dial(topology: Topology, given: &[(&str, &str)]) -> Dial {
    let mut trial = trial(&Sse, Pattern::Deliver, topology, URL, given).unwrap();
    trial.load.subscribers = 1;
    Sse.dial(&trial).unwrap()
}

fn seat(index: u32, role: Role) -> Seat {
    Seat { index, role }
}

fn subscriber(given: &[(&str, &str)]) -> Client {
    Client::new((dial(Topology::FanIn, given).make)(seat(0, Role::Consumer)))
}

/// A subscriber whose answer has begun with this head.
fn answered(head: &str) -> Result<Client, Fault> {
    let mut own = subscriber(&[]);
    own.sent();
    own.feed(head.as_bytes()).map(|()| own)
}

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const UNTIL_CLOSE: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n";

fn message(body: &str) -> Heard {
    Heard::Message(vec![], body.as_bytes().to_vec())
}

/// A subscriber or a producer at a connection of the server.
fn joined(shard: &mut Shard, connection: u32, mut client: Client) -> Client {
    shard.accept(connection);
    exchange(&mut client, shard, connection, &[]);
    assert!(client.heard.contains(&Heard::Ready), "{:?}", client.heard);
    client.heard.clear();
    client
}

fn post(body: &str) -> String {
    format!("POST /events HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn every_subscriber_gets_every_event_in_either_framing() {
    for framing in ["chunked", "close"] {
        let given = [("server_framing", framing), ("server_event", "reading")];
        let mut shard = Shard::of(&Sse, &given);
        let mut first = joined(&mut shard, 0, subscriber(&given));
        let mut second = joined(&mut shard, 1, subscriber(&given));
        let make = dial(Topology::FanIn, &given).make;
        let mut own = joined(&mut shard, 2, Client::new(make(seat(0, Role::Producer))));
        own.send(7, b"{\"a\":1}\n{\"b\":2}");
        exchange(&mut own, &mut shard, 2, &[5, 60]);
        assert_eq!(own.heard, [Heard::Done(7)]);
        for (connection, one) in [(0, &mut first), (1, &mut second)] {
            exchange(one, &mut shard, connection, &[1, 9, 30]);
            assert_eq!(one.heard, [message("{\"a\":1}\n{\"b\":2}")], "{framing}");
        }
        let report = shard.server.report();
        assert_eq!((report.received, report.forwarded), (1, 2));
        assert_eq!(shard.desk.stored, [b"{\"a\":1}\n{\"b\":2}"]);
    }
}

#[test]
fn the_answer_is_a_stream_with_ids_a_type_and_a_reconnection_time() {
    let given = [("server_retry", "3s"), ("server_event", "reading")];
    let mut shard = Shard::of(&Sse, &given);
    shard.accept(0);
    shard.feed(0, b"GET /events HTTP/1.0\r\n\r\n").unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
                Connection: close\r\n\r\nretry: 3000\n\n";
    assert_eq!(String::from_utf8(shard.staged(0)).unwrap(), head, "HTTP/1.0 has no chunks");
    shard.accept(1);
    shard.feed(1, post("21.5").as_bytes()).unwrap();
    assert!(shard.staged(1).starts_with(b"HTTP/1.1 201 Created\r\n"));
    assert_eq!(shard.staged(0), b"id: 1\nevent: reading\ndata: 21.5\n\n");
    shard.accept(2);
    shard.feed(2, b"GET /events HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    assert!(shard.staged(2).ends_with(b"\r\n\r\nd\r\nretry: 3000\n\n\r\n"));
    shard.feed(1, post("x").as_bytes()).unwrap();
    assert_eq!(shard.staged(2), b"1e\r\nid: 2\nevent: reading\ndata: x\n\n\r\n".to_vec());
    let mut own = answered(CHUNKED).unwrap();
    own.feed(b"d\r\nretry: 3000\n\n\r\n").unwrap();
    assert_eq!(own.heard, [Heard::Ready, Heard::Granted("retry_ms", 3000)]);
}

#[test]
fn a_subscriber_that_comes_back_gets_what_it_missed() {
    let make = dial(Topology::FanIn, &[("server_history", "3")]).make;
    let mut shard = Shard::of(&Sse, &[("server_history", "3")]);
    shard.accept(9);
    let put = |shard: &mut Shard, body: &str| shard.feed(9, post(body).as_bytes()).unwrap();
    let mut own = joined(&mut shard, 0, Client::new(make(seat(0, Role::Consumer))));
    put(&mut shard, "one");
    exchange(&mut own, &mut shard, 0, &[]);
    assert_eq!(own.heard, [message("one")]);
    shard.close(0);
    drop(own);
    ["two", "three"].iter().for_each(|body| put(&mut shard, body));
    let mut own = Client::new(make(seat(0, Role::Consumer)));
    let asked = String::from_utf8(own.out.bytes().to_vec()).unwrap();
    assert!(asked.contains("Last-Event-ID: 1\r\n"), "{asked}");
    shard.accept(0);
    exchange(&mut own, &mut shard, 0, &[]);
    assert_eq!(own.heard, [Heard::Ready, message("two"), message("three")]);
    shard.close(0);
    drop(own);
    (4..9).for_each(|number| put(&mut shard, &format!("{number}")));
    let mut own = joined(&mut shard, 0, Client::new(make(seat(0, Role::Consumer))));
    exchange(&mut own, &mut shard, 0, &[]);
    assert_eq!(shard.server.report().dropped["history_overflow"], 2, "4 and 5");
    // Another seat begins with the next event, and so does one that does not resume.
    let other = Client::new(make(seat(1, Role::Consumer)));
    assert!(!String::from_utf8_lossy(other.out.bytes()).contains("Last-Event-ID"));
}

#[test]
fn idle_subscribers_get_comments_and_busy_ones_do_not() {
    let mut shard = Shard::of(&Sse, &[("server_keep_alive", "10s")]);
    let mut own = joined(&mut shard, 0, subscriber(&[]));
    shard.accept(1);
    let second = 1_000_000_000;
    shard.pass(Nanos(10 * second));
    assert_eq!(shard.staged(0), b"", "it has just heard the head");
    shard.pass(Nanos(20 * second));
    let comment = shard.staged(0);
    assert_eq!(comment, b"2\r\n:\n\r\n");
    own.feed(&comment).unwrap();
    assert_eq!(own.heard, []);
    shard.feed(1, post("x").as_bytes()).unwrap();
    shard.staged(0);
    shard.pass(Nanos(30 * second));
    assert_eq!(shard.staged(0), b"");
    shard.close(0);
    shard.pass(Nanos(40 * second));
    assert_eq!(shard.server.next_wake(), None);
    let shard = Shard::of(&Sse, &[("server_keep_alive", "0s")]);
    assert_eq!(shard.server.next_wake(), None);
}

#[test]
fn pairs_have_a_path_of_their_own() {
    let mut trial = trial(&Sse, Pattern::Deliver, Topology::Pairs, URL, &[]).unwrap();
    (trial.load.subscribers, trial.load.connections) = (2, 2);
    let own = Sse.dial(&trial).unwrap();
    assert_eq!(own.producer_of.as_ref().unwrap()(b"1"), Some(1));
    let mut shard = Shard::of(&Sse, &[]);
    let mut zero = joined(&mut shard, 0, Client::new((own.make)(seat(0, Role::Consumer))));
    let mut one = joined(&mut shard, 1, Client::new((own.make)(seat(1, Role::Consumer))));
    let mut producer = joined(&mut shard, 2, Client::new((own.make)(seat(1, Role::Producer))));
    producer.send(0, b"x");
    exchange(&mut producer, &mut shard, 2, &[]);
    exchange(&mut zero, &mut shard, 0, &[]);
    exchange(&mut one, &mut shard, 1, &[]);
    assert_eq!(one.heard, [Heard::Message(b"1".to_vec(), b"x".to_vec())]);
    assert_eq!(zero.heard, []);
}

#[test]
fn the_end_of_a_stream_asks_for_a_new_connection() {
    let mut own = answered(CHUNKED).unwrap();
    own.feed(b"9\r\ndata: x\n\n\r\n0\r\n\r\n").unwrap();
    assert_eq!(own.heard, [Heard::Ready, message("x"), Heard::Closing]);
    assert_eq!(own.end(), Ok(()));
    let mut own = answered(UNTIL_CLOSE).unwrap();
    own.feed(b"data: x\n\n").unwrap();
    assert_eq!((own.end(), own.heard.last()), (Ok(()), Some(&Heard::Closing)));
    let length = UNTIL_CLOSE.replace("\r\n\r\n", "\r\nContent-Length: 9\r\n\r\n");
    let mut own = answered(&length).unwrap();
    own.feed(b"data: x\n\n").unwrap();
    assert_eq!(own.heard, [Heard::Ready, message("x"), Heard::Closing]);
    for (head, rest, said) in [
        (CHUNKED, "9\r\ndata: x\n\n\r\n", "in the middle of an answer"),
        (UNTIL_CLOSE, "data: x\n", "in the middle of an event"),
        ("", "", "without an answer"),
    ] {
        let mut own = answered(head).unwrap();
        own.feed(rest.as_bytes()).unwrap();
        let fault = own.end().unwrap_err().to_string();
        assert!(fault.contains(said), "{fault}");
    }
}

#[test]
fn a_subscriber_names_what_is_no_event_stream() {
    for (head, said) in [
        ("\u{10}\0", "it starts with"),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "check the path of the URL"),
        ("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "not followed"),
        ("HTTP/1.1 204 No Content\r\n\r\n", "no more events"),
        ("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", "--user"),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", "\"text/html\" and not text/event"),
        ("HTTP/1.1 200 OK\r\n\r\n", "\"\" and not text/event-stream"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "Content-Length"),
    ] {
        let fault = answered(head).err().expect(head).to_string();
        assert!(fault.contains(said), "{fault} says not {said}");
    }
    let mut own = Client::new((dial(Topology::FanIn, &[("event_bytes_max", "64")]).make)(seat(
        0,
        Role::Consumer,
    )));
    own.feed(UNTIL_CLOSE.as_bytes()).unwrap();
    let fault = own.feed(&[b'x'; 65]).unwrap_err().to_string();
    assert!(fault.contains("raise sse.event_bytes_max"), "{fault}");
    let fault = answered(CHUNKED).unwrap().feed(b"z\r\n").unwrap_err().to_string();
    assert!(fault.contains("chunk size"), "{fault}");
}

#[test]
fn the_server_refuses_what_it_cannot_carry_or_serve() {
    let given = [("event_bytes_max", "64")];
    let mut shard = Shard::of(&Sse, &given);
    let long = "x".repeat(65);
    for (request, status, said) in [
        (post("a\rb"), 400, "carriage returns"),
        (post(&long), 413, "longer than allowed"),
        ("POST /events HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 411, "Content-Length"),
        ("GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(), 404, "not found"),
        (
            "PUT /events HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".to_owned(),
            405,
            "GET, POST",
        ),
        ("GET /events HTTP/1.1\r\n\r\n".to_owned(), 400, "Host"),
        ("\u{10}\u{e}\0\u{4}MQTT".to_owned(), 400, "malformed"),
        (
            format!(
                "POST /events HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n41\r\n{long}"
            ),
            413,
            "longer than allowed",
        ),
        (
            "POST /events HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n"
                .to_owned(),
            400,
            "chunked body",
        ),
    ] {
        let answer = String::from_utf8(shard.answer(request.as_bytes())).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        assert!(answer.contains(said), "{answer} says not {said}");
    }
    assert_eq!(shard.server.report().received, 0);
    let chunked = "POST /events HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
                   2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
    assert!(shard.answer(chunked.as_bytes()).starts_with(b"HTTP/1.1 201 "));
    let expects = post("abc").replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    let answer = String::from_utf8(shard.answer(expects.as_bytes())).unwrap();
    assert!(answer.starts_with("HTTP/1.1 100 ") && answer.contains(" 201 "), "{answer}");
    assert_eq!(shard.server.report().received, 2);
}

#[test]
fn a_slow_subscriber_is_cut_off_and_comes_back_for_the_rest() {
    let given = [("server_queue_bytes_max", "1024")];
    let mut shard = Shard::of(&Sse, &given);
    let mut own = joined(&mut shard, 0, subscriber(&given));
    shard.accept(1);
    let body = "x".repeat(400);
    (0..4).for_each(|_| shard.feed(1, post(&body).as_bytes()).unwrap());
    assert_eq!(shard.desk.closed, [0]);
    let report = shard.server.report();
    assert_eq!((report.forwarded, report.disconnects), (2, 1));
    own.feed(&shard.staged(0)).unwrap();
    assert_eq!(own.heard.len(), 2);
}

#[test]
fn trials_that_cannot_work_are_refused_with_what_to_type() {
    for (pattern, topology, given, said) in [
        (Pattern::Deliver, Topology::Shared, &[][..], "shared subscriptions"),
        (Pattern::Deliver, Topology::FanIn, &[("path", "nowhere")], "is not a path"),
        (Pattern::Deliver, Topology::FanIn, &[("publish_path", "a b")], "%20"),
        (Pattern::Deliver, Topology::FanIn, &[("status", "ok")], "sse.status"),
        (Pattern::Deliver, Topology::FanIn, &[("headers", "Accept: */*")], "event streams only"),
        (Pattern::Request, Topology::FanIn, &[], "a pattern of http"),
    ] {
        let trial = trial(&Sse, pattern, topology, URL, given).unwrap();
        let found = Sse.dial(&trial).err().unwrap().to_string();
        assert!(found.contains(said), "{found} says not {said}");
    }
    for given in [[("path", "nowhere")], [("server_event", "a\nb")]] {
        let settings = Settings::new("sse", Sse.settings(), given).unwrap();
        assert!(Sse.host(&settings).is_err(), "{given:?}");
    }
}

proptest! {
    /// Whatever the bodies and the cuts, in either framing: every event arrives once, as it was.
    #[test]
    fn events_survive_cuts_in_either_framing(
        bodies in vec("[ -~\n\u{e4}]{1,80}", 1..5),
        is_chunked: bool,
        cuts in vec(0usize..1500, 0..8),
    ) {
        let given = [("server_framing", if is_chunked { "chunked" } else { "close" })];
        let mut shard = Shard::of(&Sse, &given);
        let mut own = joined(&mut shard, 0, subscriber(&given));
        let make = dial(Topology::FanIn, &given).make;
        let mut producer = joined(&mut shard, 1, Client::new(make(seat(0, Role::Producer))));
        for (ticket, body) in bodies.iter().enumerate() {
            producer.send(ticket as u32, body.as_bytes());
            exchange(&mut producer, &mut shard, 1, &cuts);
        }
        exchange(&mut own, &mut shard, 0, &cuts);
        let messages: Vec<Heard> = bodies.iter().map(|body| message(body)).collect();
        prop_assert_eq!(&own.heard, &messages);
        let done: Vec<Heard> = (0..bodies.len() as u32).map(Heard::Done).collect();
        prop_assert_eq!(&producer.heard, &done);
    }

    #[test]
    fn no_bytes_make_either_end_panic(
        input in vec(any::<u8>(), 0..300),
        cuts in vec(0usize..300, 0..6),
        head in prop_oneof![Just(""), Just(CHUNKED), Just(UNTIL_CLOSE)],
    ) {
        if let Ok(mut own) = answered(head) {
            let _ = own.feed_cut(&input, &cuts);
        }
        let mut shard = Shard::of(&Sse, &[]);
        shard.accept(0);
        let _ = shard.feed_cut(0, &input, &cuts);
    }
}
