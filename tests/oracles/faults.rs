//! The ledger against a connection that does wrong by a list: every term must be what the list
//! says, and every loss must have its cause.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use weigh_model::ledger::Cause;
use weigh_model::load::Topology;
use weigh_model::{Ledger, Nanos, Pattern};
use weigh_stats::random::Random;

use crate::fault_connection::{Action, CONFIRMS, Programme, Side, name, wrap};
use crate::rig::{Seen, Setup};

/// How a protocol is used in a trial of faults.
#[derive(Clone, Copy, Debug)]
struct Way {
    protocol: &'static str,
    settings: &'static [(&'static str, &'static str)],
    pattern: Pattern,
    confirms: bool,
    /// The server says so when nobody subscribes.
    tells_no_subscriber: bool,
}

const fn way(
    protocol: &'static str,
    settings: &'static [(&'static str, &'static str)],
    pattern: Pattern,
    confirms: bool,
    tells_no_subscriber: bool,
) -> Way {
    Way { protocol, settings, pattern, confirms, tells_no_subscriber }
}

/// Transfers of AMQP 1.0 that nothing confirms.
const SETTLED: &[(&str, &str)] = &[("transfers", "settled"), ("deliveries", "settled")];

const WAYS: &[Way] = &[
    way("tcp", &[], Pattern::Request, true, false),
    way("tcp", &[], Pattern::Deliver, true, true),
    way("tcp", &[("acknowledge", "false")], Pattern::Deliver, false, false),
    way("http1", &[], Pattern::Request, true, false),
    way("http1", &[("pipeline", "8")], Pattern::Publish, true, false),
    way("mqtt", &[("qos", "0")], Pattern::Deliver, false, false),
    way("mqtt", &[("qos", "1")], Pattern::Deliver, true, false),
    way("mqtt", &[("qos", "2")], Pattern::Deliver, true, false),
    way("mqtt", &[("qos", "1")], Pattern::Publish, true, false),
    way("mqtt", &[("qos", "2")], Pattern::Publish, true, false),
    way("mqtt", &[("qos", "0"), ("version", "5")], Pattern::Deliver, false, false),
    way("mqtt", &[("qos", "1"), ("version", "5")], Pattern::Deliver, true, true),
    way("mqtt", &[("qos", "2"), ("version", "5")], Pattern::Deliver, true, true),
    way("mqtt", &[("qos", "1"), ("version", "5")], Pattern::Publish, true, false),
    way("mqtt", &[("qos", "2"), ("version", "5")], Pattern::Publish, true, false),
    way("tcp", &[], Pattern::Transfer, true, false),
    way("http1", &[], Pattern::Transfer, true, false),
    way("http1", &[("pipeline", "8"), ("chunked", "true")], Pattern::Transfer, true, false),
    way("mqtt", &[("qos", "0")], Pattern::Transfer, false, false),
    way("mqtt", &[("qos", "1")], Pattern::Transfer, true, false),
    way("mqtt", &[("qos", "2")], Pattern::Transfer, true, false),
    way("mqtt", &[("qos", "2"), ("version", "5")], Pattern::Transfer, true, true),
    way("http2", &[("streams", "8")], Pattern::Publish, true, false),
    #[cfg(feature = "quic")]
    way("http3", &[("streams", "8")], Pattern::Publish, true, false),
    #[cfg(feature = "quic")]
    way("mqtt", &[("qos", "0"), ("quic", "true")], Pattern::Deliver, false, false),
    #[cfg(feature = "quic")]
    way("mqtt", &[("qos", "1"), ("quic", "true")], Pattern::Deliver, true, false),
    #[cfg(feature = "quic")]
    way("mqtt", &[("qos", "2"), ("quic", "true")], Pattern::Publish, true, false),
    way("grpc", &[], Pattern::Request, true, false),
    way("nats", &[("confirm", "none")], Pattern::Deliver, false, false),
    way("nats", &[("confirm", "none")], Pattern::Request, true, false),
    way("nats", &[("confirm", "ok")], Pattern::Publish, true, false),
    way("nats", &[("confirm", "flush")], Pattern::Deliver, true, false),
    way("nats", &[("confirm", "jetstream")], Pattern::Publish, true, false),
    way("nats", &[("confirm", "jetstream")], Pattern::Deliver, true, false),
    way("redis", &[("command", "publish")], Pattern::Deliver, true, true),
    way("redis", &[("command", "publish"), ("resp", "3")], Pattern::Deliver, true, true),
    way("redis", &[("command", "xadd")], Pattern::Deliver, true, false),
    way("redis", &[("command", "xadd"), ("read", "plain")], Pattern::Deliver, true, false),
    way("redis", &[("command", "xadd"), ("resp", "3")], Pattern::Publish, true, false),
    way("amqp", &[], Pattern::Deliver, true, false),
    way("amqp", &[("ack_every", "5"), ("queue_type", "quorum")], Pattern::Deliver, true, false),
    way("amqp", &[("confirms", "false"), ("acks", "auto")], Pattern::Deliver, false, false),
    way("amqp", &[("delivery_mode", "transient")], Pattern::Publish, true, false),
    way("amqp", &[], Pattern::Transfer, true, false),
    way("amqp1", &[], Pattern::Deliver, true, false),
    way("amqp1", &[("settle_every", "5"), ("credit", "20")], Pattern::Deliver, true, false),
    way("amqp1", SETTLED, Pattern::Deliver, false, false),
    way("amqp1", &[("durable", "false")], Pattern::Publish, true, false),
    way("websocket", &[], Pattern::Request, true, false),
    way("websocket", &[], Pattern::Deliver, true, true),
    way("websocket", &[("confirm", "none")], Pattern::Deliver, false, false),
    way("websocket", &[("confirm", "echo")], Pattern::Publish, true, false),
    way("websocket", &[("confirm", "pong")], Pattern::Deliver, true, false),
    way("sse", &[], Pattern::Publish, true, false),
    way("sse", &[], Pattern::Deliver, true, false),
    way("kafka", &[], Pattern::Deliver, true, false),
    way("kafka", &[("acks", "idempotent")], Pattern::Publish, true, false),
    way("kafka", &[("acks", "0")], Pattern::Deliver, false, false),
    way("kafka", &[("linger", "3ms")], Pattern::Deliver, true, false),
    way("coap", &[], Pattern::Publish, true, false),
    way("coap", &[("nstart", "8")], Pattern::Request, true, false),
    way("coap", &[("type", "non")], Pattern::Publish, true, false),
    way("coap", &[("notify_queue", "100000")], Pattern::Deliver, true, false),
    way("coap", &[("type", "non")], Pattern::Deliver, true, false),
    way("coap", &[], Pattern::Transfer, true, false),
    way("coap", &[("oscore", "on")], Pattern::Publish, true, false),
    way("coap", &[("oscore", "on"), ("notify_queue", "100000")], Pattern::Deliver, true, false),
];

impl Way {
    /// Whether there are subscribers.
    fn delivers(self) -> bool {
        match self.pattern {
            Pattern::Transfer => self.protocol == "mqtt",
            pattern => pattern == Pattern::Deliver,
        }
    }
}

/// One trial with a programme.
struct Case {
    way: Way,
    side: Side,
    actions: Vec<((u32, u64), Action)>,
    messages: u64,
    topology: Topology,
    copies: u32,
    timeout: Nanos,
    seed: u64,
}

impl Case {
    fn setup(&self) -> (Setup, Arc<Mutex<Programme>>) {
        let Way { protocol, settings, pattern, confirms, .. } = self.way;
        let mut programme = Programme::new(self.side, self.actions.iter().copied());
        if confirms {
            programme.done.insert(CONFIRMS, 1);
        }
        let programme = Arc::new(Mutex::new(programme));
        let mut setup = Setup::new(protocol, settings, pattern, self.messages)
            .open("constant", "1000/s")
            .seed(self.seed);
        if self.way.delivers() {
            setup.load.subscribers = self.copies;
            setup.load.topology = self.topology;
        }
        setup.load.timeout = self.timeout;
        setup.wrap = Some(wrap(&programme));
        (setup, programme)
    }

    /// What the ledger must be after this programme.
    fn expected(&self, done: &Programme, exact_no_subscriber: bool) -> Ledger {
        match (self.side, self.way.delivers()) {
            (Side::Sender, true) => self.after_sender(done),
            (Side::Sender, _) => self.after_sender_alone(done),
            (Side::Receiver, _) => self.after_receiver(done, exact_no_subscriber),
        }
    }

    fn after_sender(&self, done: &Programme) -> Ledger {
        let copies = u64::from(self.copies);
        let (n, swallowed) = (self.messages * copies, done.swallowed * copies);
        let count = |name| done.count(name) * copies;
        let corrupt = count("corrupt") + count("corrupt mark");
        let (dropped, late) = (count("drop"), count("delay"));
        let unheard = if self.way.confirms { Cause::Timeout } else { Cause::Unknown };
        let acknowledged = if self.way.confirms { n - dropped - swallowed } else { 0 };
        let mut ledger = Ledger {
            messages: self.messages,
            scheduled: n,
            sent: n,
            acknowledged,
            late,
            duplicates: count("duplicate"),
            reordered: count("reorder") + late,
            corrupt,
            acked_not_delivered: if self.way.confirms { corrupt } else { 0 },
            ..Ledger::zero()
        };
        ledger.lost = Some(dropped + corrupt + swallowed);
        let losses =
            [(Cause::Corrupt, corrupt), (unheard, dropped), (Cause::ConnectionClosed, swallowed)];
        finish(ledger, &losses)
    }

    fn after_sender_alone(&self, done: &Programme) -> Ledger {
        let n = self.messages;
        let (dropped, late, swallowed) = (done.count("drop"), done.count("delay"), done.swallowed);
        let mut ledger = Ledger {
            messages: n,
            scheduled: n,
            sent: n,
            acknowledged: n - dropped - swallowed,
            late,
            ..Ledger::zero()
        };
        ledger.lost = Some(dropped + swallowed);
        finish(ledger, &[(Cause::Timeout, dropped), (Cause::ConnectionClosed, swallowed)])
    }

    fn after_receiver(&self, done: &Programme, exact_no_subscriber: bool) -> Ledger {
        let n = self.messages * u64::from(self.copies);
        let corrupt = done.count("corrupt") + done.count("corrupt mark");
        let (dropped, late) = (done.count("drop"), done.count("delay"));
        let has_closed = done.count("close") > 0;
        let unheard = if has_closed { self.messages - done.passed } else { 0 };
        let lost = dropped + corrupt + unheard;
        let mut ledger = Ledger {
            messages: self.messages,
            scheduled: n,
            sent: n,
            acknowledged: if self.way.confirms { n } else { 0 },
            late,
            duplicates: done.count("duplicate"),
            reordered: done.count("reorder") + late,
            corrupt,
            foreign: done.count("foreign"),
            acked_not_delivered: if self.way.confirms { lost } else { 0 },
            ..Ledger::zero()
        };
        if has_closed && self.way.tells_no_subscriber && exact_no_subscriber {
            ledger.no_subscriber = unheard - 1;
        }
        ledger.lost = Some(lost);
        let causes = [
            (Cause::Corrupt, corrupt),
            (Cause::Unknown, dropped),
            (Cause::SubscriberDisconnected, unheard),
        ];
        finish(ledger, &causes)
    }

    fn check(&self, seen: &Seen, done: &Programme, is_exact: bool) {
        let name = format!("{:?} {:?} seed {}: {:?}", self.way, self.side, self.seed, self.actions);
        assert_eq!(done.actions.len(), 0, "{name}: not carried out: {:?}", done.actions);
        let mut ledger = seen.ledger().clone();
        if !self.way.delivers() || !is_exact {
            // Nobody subscribes to what is only handed over, and some servers say so.
            ledger.no_subscriber = 0;
        }
        assert_eq!(ledger, self.expected(done, is_exact), "{name}");
        if self.side == Side::Sender {
            let corrupt = done.count("corrupt") + done.count("corrupt mark");
            let arrived = self.messages - done.count("drop") - done.swallowed - corrupt;
            assert_eq!(seen.server.unique, arrived, "{name}: the server's own count");
            assert_eq!(seen.server.duplicates, done.count("duplicate"), "{name}");
            assert_eq!(seen.server.corrupt, corrupt, "{name}");
        }
        assert_eq!(seen.outcome.shards.recorder.error.count(), 0, "{name}");
    }

    fn on_virtual_time(&self) {
        let (setup, programme) = self.setup();
        let seen = setup.on_virtual_time();
        self.check(&seen, &programme.lock().unwrap(), true);
    }

    fn on_sockets(&self) {
        let (setup, programme) = self.setup();
        let seen = setup.on_sockets();
        self.check(&seen, &programme.lock().unwrap(), false);
    }
}

/// Sets what follows from the other terms.
fn finish(mut ledger: Ledger, losses: &[(Cause, u64)]) -> Ledger {
    let lost = ledger.lost.unwrap_or(0);
    let delivered = ledger.sent - ledger.late - lost;
    ledger.delivered = Some(delivered);
    ledger.received = delivered + ledger.late + ledger.duplicates + ledger.corrupt + ledger.foreign;
    for (cause, count) in losses.iter().filter(|(_, count)| *count > 0) {
        *ledger.causes.entry(*cause).or_default() += count;
    }
    ledger
}

/// Every `step`th message meets the same fate, the last ones none.
fn every(step: u64, messages: u64, action: Action) -> Vec<((u32, u64), Action)> {
    (2..messages.saturating_sub(60)).step_by(step as usize).map(|n| ((0, n), action)).collect()
}

fn programmes(messages: u64, timeout: Nanos) -> Vec<Vec<((u32, u64), Action)>> {
    let late = timeout + Nanos::from_millis(20);
    let mut mixed = Vec::new();
    for (place, action) in [
        Action::Drop,
        Action::Duplicate,
        Action::Reorder,
        Action::Corrupt,
        Action::CorruptMark,
        Action::Delay(late),
    ]
    .into_iter()
    .enumerate()
    {
        mixed.extend((0..4).map(|turn| ((0, 3 + 3 * place as u64 + 20 * turn), action)));
    }
    vec![
        every(7, messages, Action::Drop),
        every(7, messages, Action::Duplicate),
        every(7, messages, Action::Reorder),
        every(7, messages, Action::Corrupt),
        every(7, messages, Action::CorruptMark),
        vec![((0, messages / 2), Action::Close)],
        every(messages / 8, messages / 2, Action::Delay(late)),
        mixed,
    ]
}

fn cases(way: Way, messages: u64, timeout: Nanos) -> Vec<Case> {
    let mut cases = Vec::new();
    for side in [Side::Sender, Side::Receiver] {
        if side == Side::Receiver && !way.delivers() {
            continue;
        }
        let mut all = programmes(messages, timeout);
        if side == Side::Receiver {
            all.push(every(9, messages, Action::Foreign));
        }
        cases.extend(all.into_iter().map(|actions| Case {
            way,
            side,
            actions,
            messages,
            topology: Topology::FanIn,
            copies: 1,
            timeout,
            seed: 3,
        }));
    }
    cases
}

#[test]
fn the_ledger_is_what_the_programme_says_on_virtual_time() {
    let mut trials = 0;
    for &way in WAYS {
        for case in cases(way, 600, Nanos::from_millis(200)) {
            case.on_virtual_time();
            trials += 1;
        }
    }
    println!("{trials} programmes: the ledger differs by 0 in every term");
}

/// The mixture and the closed connection, side by side on all cores: Tmax is a second, so that
/// only a machine that stalls for that long can make another message late. A consumer lets go of
/// what it held back with the next message, so messages go on for longer than that.
#[test]
fn the_ledger_is_what_the_programme_says_on_sockets() {
    for ways in WAYS.chunks(4) {
        let all: Vec<Case> = ways
            .iter()
            .flat_map(|way| cases(*way, 1300, Nanos::from_millis(1000)))
            .filter(|case| {
                let kinds: BTreeSet<&'static str> =
                    case.actions.iter().map(|(_, action)| name(*action)).collect();
                kinds.len() > 1 || kinds.contains("close")
            })
            .collect();
        std::thread::scope(|scope| {
            for case in &all {
                scope.spawn(|| case.on_sockets());
            }
        });
    }
}

/// Programmes from seeds: any protocol, either side, any mixture, several consumers.
#[test]
fn two_hundred_programmes_from_seeds() {
    for seed in 0..200 {
        random_case(seed).on_virtual_time();
    }
}

fn random_case(seed: u64) -> Case {
    let mut random = Random::stream(seed, 5);
    let way = WAYS[random.below(WAYS.len() as u64) as usize];
    let is_deliver = way.delivers();
    let side = if is_deliver && random.below(2) == 0 { Side::Receiver } else { Side::Sender };
    let messages = 150 + random.below(300);
    let timeout = Nanos::from_millis(60 + random.below(200));
    let copies = if is_deliver { 1 + random.below(3) as u32 } else { 1 };
    let late = timeout + Nanos::from_millis(15);
    let mut actions = Vec::new();
    let mut number = random.below(10);
    while number + 60 < messages {
        let action = match random.below(7) {
            0 => Action::Drop,
            1 => Action::Duplicate,
            2 => Action::Reorder,
            3 => Action::Corrupt,
            4 => Action::CorruptMark,
            // A receiver passes on what it holds back with the next message that comes.
            5 if number + late.0 / 1_000_000 + 20 < messages => Action::Delay(late),
            _ if side == Side::Receiver => Action::Foreign,
            _ => Action::Duplicate,
        };
        actions.push(((0, number), action));
        number += 2 + random.below(25);
    }
    let topology = if copies > 1 { Topology::FanOut } else { Topology::FanIn };
    Case { way, side, actions, messages, topology, copies, timeout, seed }
}
