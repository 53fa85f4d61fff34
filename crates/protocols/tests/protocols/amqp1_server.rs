//! The reference server of AMQP 1.0 against clients that are not Weighbridge's: logins, links,
//! sessions, outcomes of consumers, and what it refuses.

use crate::amqp1_world::{TOPIC, attach, names, node, opened, put, said};
use crate::rig::Shard;
use weigh_model::Nanos;
use weigh_model::protocol::Protocol;
use weigh_model::trial::Settings;
use weigh_protocols::amqp1::Amqp1;
use weigh_protocols::amqp1::codec::{
    AMQP_HEADER, Begin, Detach, Disposition, Flow, Performative, Role, SASL_HEADER, Sasl, State,
    Terminus, Transfer, put_data_head,
};

fn message(id: u32, settled: bool, body: &[u8]) -> Vec<u8> {
    let own = Transfer {
        delivery_id: Some(id),
        delivery_tag: Some(b"t"),
        message_format: Some(0),
        settled,
        ..Transfer::default()
    };
    let mut payload = Vec::new();
    put_data_head(body.len() as u32, &mut payload);
    payload.extend_from_slice(body);
    transfer(own, &payload)
}

fn transfer(own: Transfer<'_>, payload: &[u8]) -> Vec<u8> {
    let mut bytes = put(&[Performative::Transfer(own)]);
    bytes.extend_from_slice(payload);
    let size = (bytes.len() as u32).to_be_bytes();
    bytes[..4].copy_from_slice(&size);
    bytes
}

fn credit(handle: u32, count: u32, credit: u32) -> Performative<'static> {
    Performative::Flow(Flow {
        next_incoming_id: Some(0),
        incoming_window: 1000,
        handle: Some(handle),
        delivery_count: Some(count),
        link_credit: Some(credit),
        ..Flow::default()
    })
}

fn feed(shard: &mut Shard, performatives: &[Performative<'_>]) -> Vec<String> {
    shard.feed(0, &put(performatives)).unwrap();
    said(&shard.staged(0))
}

/// A shard with a producer on handle 0 and a consumer with credit 2 on handle 1 of the queue q.
fn linked() -> Shard {
    let mut shard = Shard::of(&Amqp1, &[]);
    opened(&mut shard, 0);
    let (producer, consumer) = (attach(0, Role::Sender, "q"), attach(1, Role::Receiver, "q"));
    let own = [Performative::Attach(producer), Performative::Attach(consumer), credit(1, 0, 2)];
    let heard = feed(&mut shard, &own);
    assert_eq!(heard.len(), 3, "two links and the credit of one: {heard:?}");
    shard
}

fn outcome(first: u32, state: Option<State<'static>>, settled: bool) -> Performative<'static> {
    let role = Role::Receiver;
    Performative::Disposition(Disposition { role, first, last: None, settled, state })
}

#[test]
fn logins_are_checked() {
    let login = [("broker_user", "ann"), ("broker_password", "secret")];
    let init = |mechanism, response: &'static [u8]| {
        let mut bytes = SASL_HEADER.to_vec();
        Sasl::Init { mechanism, response: Some(response), hostname: None }.put(&mut bytes);
        bytes
    };
    for (given, mechanism, response, is_taken) in [
        (&login[..], "PLAIN", &b"\0ann\0secret"[..], true),
        (&login, "PLAIN", b"id\0ann\0secret", true),
        (&login, "PLAIN", b"\0ann\0wrong", false),
        (&login, "PLAIN", b"nonsense", false),
        (&login, "ANONYMOUS", b"", false),
        (&[], "ANONYMOUS", b"", true),
        (&[], "PLAIN", b"\0any\0body", true),
        (&[], "EXTERNAL", b"", false),
    ] {
        let mut shard = Shard::of(&Amqp1, given);
        shard.accept(0);
        shard.feed(0, &init(mechanism, response)).unwrap();
        assert_eq!(names(&shard.staged(0)), ["SASL", "sasl-mechanisms", "sasl-outcome"]);
        assert_eq!(shard.desk.closed.is_empty(), is_taken, "{mechanism} {response:?}");
    }
    let mut shard = Shard::of(&Amqp1, &login);
    shard.accept(0);
    assert!(shard.feed(0, &AMQP_HEADER).is_err(), "a login cannot be left out");
    assert_eq!(shard.staged(0), SASL_HEADER, "what it has instead");
    shard.accept(1);
    assert!(shard.feed(1, b"AMQP\0\0\x09\x01").is_err(), "AMQP 0-9-1 is another protocol");
}

#[test]
fn outcomes_of_consumers_are_followed() {
    let modified = State::Modified { failed: true, undeliverable: false };
    for (state, settled, again, left) in [
        (Some(State::Accepted), true, false, 0),
        (Some(State::Accepted), false, false, 0),
        (Some(State::Released), true, true, 1),
        (Some(modified), true, true, 1),
        (None, true, true, 1),
        (Some(State::Rejected(None)), true, false, 0),
        (Some(State::Received), false, false, 1),
    ] {
        let mut shard = linked();
        shard.feed(0, &message(0, true, b"x")).unwrap();
        let delivered = said(&shard.staged(0));
        assert!(delivered.len() == 1 && delivered[0].contains("delivery_id: Some(0)"));
        let heard = feed(&mut shard, &[outcome(0, state, settled)]);
        let is_again = heard.iter().any(|own| own.contains("delivery_id: Some(1)"));
        assert_eq!(is_again, again, "{state:?}: {heard:?}");
        let answers = heard.iter().filter(|own| own.contains("role: Sender")).count();
        let is_outcome = state.is_some_and(|state| state.is_outcome());
        assert_eq!(answers, usize::from(!settled && is_outcome), "{heard:?}");
        let report = shard.server.report();
        assert_eq!(report.queued_bytes > 0, left > 0, "{state:?}");
        let rejected = report.dropped.get("rejected").copied().unwrap_or(0);
        assert_eq!(rejected, u64::from(matches!(state, Some(State::Rejected(_)))));
    }
}

/// A message that comes back because a delivery failed says how often.
#[test]
fn failed_deliveries_are_counted_in_the_header() {
    let mut shard = linked();
    shard.feed(0, &message(0, true, b"x")).unwrap();
    let first = shard.staged(0);
    let failed = State::Modified { failed: true, undeliverable: false };
    shard.feed(0, &put(&[outcome(0, Some(failed), true)])).unwrap();
    let second = shard.staged(0);
    // A header of one list: four nulls, and a number of two bytes.
    let header = b"\0\x53\x70\xc0\x07\x05\x40\x40\x40\x40\x52\x01";
    assert!(!first.windows(12).any(|bytes| bytes == header));
    assert!(second.windows(12).any(|bytes| bytes == header), "{second:02x?}");
}

/// The window of a session holds deliveries back, also in the middle of one.
#[test]
fn windows_of_clients_are_kept() {
    let mut shard = linked();
    let mut window = Flow { next_incoming_id: Some(0), incoming_window: 1, ..Flow::default() };
    feed(&mut shard, &[Performative::Flow(window)]);
    shard.feed(0, &message(0, true, &[b'x'; 1000])).unwrap();
    shard.feed(0, &message(1, true, &[b'y'; 1000])).unwrap();
    assert_eq!(names(&shard.staged(0)), ["transfer"]);
    (window.next_incoming_id, window.incoming_window) = (Some(1), 1);
    assert_eq!(feed(&mut shard, &[Performative::Flow(window)]).len(), 1, "the second of three");
    (window.next_incoming_id, window.incoming_window) = (Some(2), 10);
    let heard = feed(&mut shard, &[Performative::Flow(window)]);
    assert_eq!(heard.len(), 4, "the third, and the next message: {heard:?}");
    assert_eq!(shard.server.report().forwarded, 2);
}

#[test]
fn echoes_and_drains_are_answered() {
    let mut shard = linked();
    let own = Flow { incoming_window: 10, echo: true, ..Flow::default() };
    assert!(feed(&mut shard, &[Performative::Flow(own)])[0].contains("handle: None"));
    let link = Flow { handle: Some(1), delivery_count: Some(0), link_credit: Some(5), ..own };
    assert!(feed(&mut shard, &[Performative::Flow(link)])[0].contains("link_credit: Some(5)"));
    let drain = Flow { drain: true, echo: false, ..link };
    let heard = feed(&mut shard, &[Performative::Flow(drain)]);
    assert!(heard[0].contains("delivery_count: Some(5), link_credit: Some(0)"), "{heard:?}");
}

/// What is refused ends the link, the session or the connection, with a condition.
#[test]
fn what_is_refused_is_named() {
    let producer = attach(0, Role::Sender, "q");
    let consumer = attach(0, Role::Receiver, "q");
    let (aborted, many) =
        (Transfer { handle: 9, ..Transfer::default() }, attach(256, Role::Sender, "q"));
    let begin = Begin {
        remote_channel: None,
        next_outgoing_id: 0,
        incoming_window: 1,
        outgoing_window: 1,
        handle_max: 1,
    };
    let detach = Detach { handle: 3, closed: true, error: None };
    for (own, what) in [
        (vec![Performative::Attach(node(consumer, |own| own.dynamic = true))], "not-implemented"),
        (vec![Performative::Attach(node(producer, |own| own.address = None))], "not-implemented"),
        (
            vec![Performative::Attach(node(producer, |own| own.is_coordinator = true))],
            "transactions",
        ),
        (
            vec![
                Performative::Attach(producer),
                Performative::Attach(node(
                    attach(1, Role::Receiver, "q"),
                    |own: &mut Terminus<'_>| own.capabilities = TOPIC,
                )),
            ],
            "q is a queue",
        ),
        (vec![Performative::Attach(producer), Performative::Attach(producer)], "handle-in-use"),
        (vec![Performative::Attach(many)], "handle 256 is above 255"),
        (vec![Performative::Transfer(aborted)], "unattached-handle"),
        (vec![Performative::Detach(detach)], "unattached-handle"),
        (vec![Performative::Begin(begin)], "channel 0 has a session"),
        (vec![Performative::End(None), Performative::End(None)], "without a session"),
    ] {
        let mut shard = Shard::of(&Amqp1, &[]);
        opened(&mut shard, 0);
        let heard = feed(&mut shard, &own);
        assert!(heard.last().is_some_and(|last| last.contains(what)), "{what}: {heard:?}");
    }
    let mut shard = Shard::of(&Amqp1, &[("broker_credit", "1")]);
    opened(&mut shard, 0);
    feed(&mut shard, &[Performative::Attach(attach(0, Role::Sender, "q"))]);
    let mut part = Transfer { delivery_id: Some(0), more: true, ..Transfer::default() };
    let aborted = Transfer { aborted: true, ..Transfer::default() };
    feed(&mut shard, &[Performative::Transfer(part), Performative::Transfer(aborted)]);
    part.delivery_id = Some(1);
    let heard = feed(&mut shard, &[Performative::Transfer(part)]);
    assert!(heard[0].contains("transfer-limit-exceeded"), "{heard:?}");
    assert!(feed(&mut shard, &[Performative::Transfer(part)]).is_empty(), "it was on its way");
}

/// A queue without links is deleted after its time, with its messages.
#[test]
fn unused_queues_expire() {
    let mut shard = Shard::of(&Amqp1, &[("broker_queue_expires", "30s")]);
    opened(&mut shard, 0);
    feed(&mut shard, &[Performative::Attach(attach(0, Role::Sender, "q"))]);
    shard.feed(0, &message(0, true, b"x")).unwrap();
    let mut wake = |seconds| {
        shard.server.wake(Nanos::from_secs(seconds), &mut shard.desk);
        shard.server.report().queued
    };
    assert_eq!(wake(29), 1, "a link is there");
    shard.close(0);
    let mut wake = |seconds| {
        shard.server.wake(Nanos::from_secs(seconds), &mut shard.desk);
        shard.server.report().queued
    };
    assert_eq!((wake(29), wake(31)), (1, 0));
}

/// Parts of a message fill the memory, too. A connection is held only between two messages, so that
/// what has begun can end.
#[test]
fn parts_of_messages_count_in_the_memory() {
    let mut shard = Shard::of(&Amqp1, &[("broker_memory", "1000")]);
    for connection in [0, 1] {
        opened(&mut shard, connection);
        let link = Performative::Attach(attach(0, Role::Sender, "q"));
        shard.feed(connection, &put(&[link])).unwrap();
    }
    let mut payload = Vec::new();
    put_data_head(1300, &mut payload);
    payload.extend_from_slice(&[b'x'; 1300]);
    let (first, last) = payload.split_at(1200);
    let part = Transfer { delivery_id: Some(0), more: true, ..Transfer::default() };
    shard.feed(0, &transfer(part, first)).unwrap();
    assert_eq!(shard.server.report().queued_bytes, 1200);
    assert!(shard.desk.held.is_empty(), "in the middle of a message");
    shard.feed(1, &message(0, true, b"y")).unwrap();
    let held = |shard: &Shard| shard.desk.held.iter().copied().collect::<Vec<u32>>();
    assert_eq!(held(&shard), [1]);
    shard.feed(0, &transfer(Transfer::default(), last)).unwrap();
    assert_eq!(held(&shard), [0, 1]);
    // An idle limit of 60 s does not end what is not read.
    shard.server.wake(Nanos::from_secs(100), &mut shard.desk);
    assert!(shard.desk.closed.is_empty());
    shard.now = Nanos::from_secs(100);
    opened(&mut shard, 2);
    let link = Performative::Attach(attach(1, Role::Receiver, "q"));
    shard.feed(2, &put(&[link, credit(1, 0, 2)])).unwrap();
    let accepted = |first| outcome(first, Some(State::Accepted), true);
    shard.feed(2, &put(&[accepted(0)])).unwrap();
    assert_eq!(held(&shard), [0, 1], "most of it is left");
    shard.feed(2, &put(&[accepted(1)])).unwrap();
    assert!(shard.desk.held.is_empty());
    assert_eq!(shard.server.report().queued_bytes, 0);
}

/// A connection that consumes, too, is always read: its settlements free the memory. What is left
/// of a message ends with its connection.
#[test]
fn consumers_are_read_while_memory_is_full() {
    let given = [("broker_memory", "1000")];
    let mut shard = Shard::of(&Amqp1, &given);
    opened(&mut shard, 0);
    let (producer, consumer) = (attach(0, Role::Sender, "q"), attach(1, Role::Receiver, "q"));
    feed(&mut shard, &[Performative::Attach(producer), Performative::Attach(consumer)]);
    shard.feed(0, &message(0, true, &[b'x'; 1200])).unwrap();
    assert!(shard.server.report().queued_bytes > 1000 && shard.desk.held.is_empty());
    let mut shard = Shard::of(&Amqp1, &given);
    opened(&mut shard, 0);
    feed(&mut shard, &[Performative::Attach(producer)]);
    let part = Transfer { delivery_id: Some(0), more: true, ..Transfer::default() };
    shard.feed(0, &transfer(part, &[0; 1200])).unwrap();
    shard.close(0);
    assert_eq!(shard.server.report().queued_bytes, 0);
}

/// What one shard leaves for another is sent by that one, before it says that a link is drained.
#[test]
fn shards_hand_over_messages_and_drains() {
    let settings = Settings::new("amqp1", Amqp1.settings(), []).unwrap();
    let host = Amqp1.host(&settings).unwrap();
    let (mut one, mut other) = (Shard::new((host.make)(0)), Shard::new((host.make)(1)));
    opened(&mut one, 0);
    opened(&mut other, 0);
    feed(&mut one, &[Performative::Attach(attach(0, Role::Sender, "q"))]);
    let consumer = Performative::Attach(attach(1, Role::Receiver, "q"));
    feed(&mut other, &[consumer, credit(1, 0, 2)]);
    one.feed(0, &message(0, true, b"x")).unwrap();
    assert_eq!(one.desk.notified, [1]);
    other.server.notified(Nanos(0), &mut other.desk);
    assert_eq!(names(&other.staged(0)), ["transfer"]);
    one.feed(0, &message(1, true, b"y")).unwrap();
    let drain = Flow {
        next_incoming_id: Some(1),
        incoming_window: 10,
        handle: Some(1),
        delivery_count: Some(1),
        link_credit: Some(3),
        drain: true,
        ..Flow::default()
    };
    let heard = feed(&mut other, &[Performative::Flow(drain)]);
    assert!(heard.len() == 2 && heard[0].starts_with("Transfer"), "{heard:?}");
    assert!(heard[1].contains("delivery_count: Some(4), link_credit: Some(0)"), "{heard:?}");
    let mut shard = one;
    shard.close(0);
    assert_eq!(shard.server.report().forwarded, 2);
}
