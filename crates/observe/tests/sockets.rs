//! Exchanges over real sockets with a clock that is wrong in a known way.

use std::time::Duration;

use weigh_observe::clocks::one_way::ClockReport;
use weigh_observe::clocks::packet::{BYTES, Packet};
use weigh_observe::clocks::pair::Exchange;
use weigh_observe::clocks::{Asked, Asker, Responder, wall_ns};

/// A responder whose clock is ahead by so much at `began`, and gains so much.
fn responder(began: i64, offset_ns: i64, per_million: i64) -> Responder {
    let clock = move || {
        let now = wall_ns();
        now + offset_ns + (now - began) * per_million / 1_000_000
    };
    Responder::start(([127, 0, 0, 1], 0).into(), clock).expect("a socket")
}

fn exchanges(responder: &Responder, count: usize) -> Vec<Exchange> {
    let mut asker = Asker::new(responder.address()).expect("a socket");
    let mut ask = || match asker.ask(Duration::from_secs(20)).expect("a socket that works") {
        Asked::Answered(exchange) => exchange,
        Asked::Silent => panic!("no answer on loopback in twenty seconds"),
    };
    (0..count).map(|_| ask()).collect()
}

#[test]
fn an_injected_offset_lies_within_the_bound() {
    for (offset_ns, per_million) in [(50_000_000, 100), (-50_000_000, -100), (0, 0)] {
        let began = wall_ns();
        let responder = responder(began, offset_ns, per_million);
        let exchanges = exchanges(&responder, 200);
        let (report, clocks) = ClockReport::of(&exchanges).expect("steady clocks");
        for exchange in &exchanges {
            let own = exchange.sent;
            let truth = offset_ns as f64 + (own - began) as f64 * per_million as f64 / 1e6;
            let told = clocks.offset(own);
            // The steps of the clocks beside.
            assert!((told.value - truth).abs() <= told.bound + 200.0, "{truth}: {told:?}");
        }
        let error = (report.drift_ppm - per_million as f64).abs();
        assert!(error <= report.drift_bound_ppm, "{report:?}");
        // The last one is counted after it was sent.
        assert!(responder.answered() >= 199);
    }
}

/// What is no question is not answered, so that two responders never talk to each other.
#[test]
fn only_questions_are_answered() {
    let responder = responder(wall_ns(), 0, 0);
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(responder.address()).expect("an address");
    let question = Packet { number: 7, sent_ns: 1, answer: None };
    let answer = Packet { answer: Some((2, 3)), ..question };
    let longer = [&question.encode()[..], &[0]].concat();
    for bytes in [&answer.encode()[..], &longer, b"hello", &[0; BYTES]] {
        socket.send(bytes).expect("sent");
    }
    socket.send(&question.encode()).expect("sent");
    let mut bytes = [0; 100];
    let length = socket.recv(&mut bytes).expect("the one answer");
    let told = Packet::decode(&bytes[..length]).expect("a packet");
    assert_eq!((length, told.number, told.sent_ns), (BYTES, 7, 1));
    assert!(told.answer.is_some());
}
