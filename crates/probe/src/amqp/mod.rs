//! Probes a broker of AMQP 0-9-1: what it announces in `connection.start` and `connection.tune`,
//! and what its queues do when they are asked. What a confirmation means for the disk cannot be
//! asked for. Queues have names that are used nowhere else; those that outlive a connection are
//! deleted.

mod session;

use std::sync::Arc;
use std::time::{Duration, Instant};

use weigh_protocols::amqp::codec::{Method, Short, Table, TableWriter, bits};

use crate::abilities::{Ability, How};
use crate::finding::{Asking, Found, Question, ask_all, question};
use crate::mqtt::Bounds;
use crate::reach::{Reach, Trouble, unused_name};
use crate::search::largest_passing;
use session::{CHANNEL, Confirmed, Draft, Event, Greeting, HEADER, Session};

/// Asks everything.
///
/// # Errors
/// If it is not a broker of AMQP 0-9-1, or refuses every client.
pub(crate) fn probe(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let session = Session::open(reach)?;
    let greeting = session.greeting.clone();
    session.leave();
    let mut scene =
        Scene { reach: reach.clone(), bounds, greeting, left: Vec::new(), found: Vec::new() };
    ask_all(&mut scene, QUESTIONS, tell);
    scene.tidy();
    Ok(scene.found)
}

const QUESTIONS: &[Question<Scene>] = &[
    question("product", product),
    question("capabilities", capabilities),
    question("mechanisms", mechanisms),
    question("frame_bytes", |scene| limit(scene.greeting.frame_max, "bytes", "frame-max")),
    question("channels", |scene| {
        limit(scene.greeting.channel_max.into(), "channels", "channel-max")
    }),
    question("heartbeat", heartbeat),
    question("publisher_confirms", publisher_confirms),
    question("mandatory_return", mandatory_return),
    question("transactions", transactions),
    question("headers", headers),
    question("prefetch", prefetch),
    question("redelivery", redelivery),
    question("durable_queues", durable_queues),
    question("quorum_queues", |scene| queue_type(scene, "quorum")),
    question("stream_queues", |scene| queue_type(scene, "stream")),
    question("max_length", max_length),
    question("reject_publish", reject_publish),
    question("message_ttl", message_ttl),
    question("message_bytes", message_bytes),
];

/// A broker that is asked.
struct Scene {
    reach: Reach,
    bounds: Bounds,
    greeting: Greeting,
    /// Queues that outlive their connection.
    left: Vec<String>,
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
    /// A session, and a queue of its own that ends with it.
    fn with_queue(&self, arguments: Table<'_>) -> Result<(Session, String), Trouble> {
        let mut session = Session::open(&self.reach)?;
        let queue = new_name();
        session.declare(&queue, bits::EXCLUSIVE, arguments)?;
        Ok((session, queue))
    }

    /// Declares a queue that outlives its connection, and deletes it.
    fn lasting(&mut self, bits: u8, arguments: Table<'_>) -> Result<(), Trouble> {
        let (mut session, queue) = (Session::open(&self.reach)?, new_name());
        self.left.push(queue.clone());
        let declared = session.declare(&queue, bits, arguments);
        if let Err(refused @ Trouble::Refused(_)) = declared {
            self.left.pop();
            return Err(refused);
        }
        declared?;
        session.delete(&queue)?;
        self.left.pop();
        session.leave();
        Ok(())
    }

    /// Deletes what an interrupted question left.
    fn tidy(&mut self) {
        if self.left.is_empty() {
            return;
        }
        // The time of the questions may be over; that of putting things away begins.
        self.reach.end = self.reach.end.max(Instant::now() + 2 * self.reach.patience);
        self.reach.stop = Arc::default();
        for queue in std::mem::take(&mut self.left) {
            // A queue that was never made closes the channel, or counts as deleted.
            let _ = Session::open(&self.reach).and_then(|mut session| session.delete(&queue));
        }
    }
}

fn new_name() -> String {
    format!("weigh-probe-{}", unused_name())
}

fn product(scene: &mut Scene) -> Result<Found, Trouble> {
    let product = scene.greeting.product.clone();
    Ok(match product.is_empty() {
        true => Found::flag(false, "connection.start has no product").by(How::Announced),
        false => {
            Found::words(product, "product and version of connection.start").by(How::Announced)
        }
    })
}

fn capabilities(scene: &mut Scene) -> Result<Found, Trouble> {
    let names = scene.greeting.capabilities.clone();
    Ok(match names.is_empty() {
        true => Found::flag(false, "connection.start names none").by(How::Announced),
        false => Found::words(names, "capabilities of connection.start").by(How::Announced),
    })
}

fn mechanisms(scene: &mut Scene) -> Result<Found, Trouble> {
    let names = scene.greeting.mechanisms.split(' ').collect::<Vec<_>>().join(", ");
    Ok(Found::words(names, "connection.start lists them").by(How::Announced))
}

/// A limit of `connection.tune`; 0 stands for none (section 1.4 of the reference).
fn limit(most: u32, unit: &'static str, name: &str) -> Result<Found, Trouble> {
    let evidence = format!("{name} of connection.tune is {most}");
    Ok(match most {
        0 => Found::words("no limit", evidence).by(How::Announced),
        most => Found::number(most.into(), unit, How::Announced, evidence),
    })
}

fn heartbeat(scene: &mut Scene) -> Result<Found, Trouble> {
    let (seconds, evidence) = (scene.greeting.heartbeat_s, "heartbeat of connection.tune");
    Ok(match seconds {
        0 => Found::flag(false, format!("{evidence} is 0")).by(How::Announced),
        seconds => Found::number(seconds.into(), "s", How::Announced, evidence),
    })
}

/// Tests whether a message in a queue is confirmed (an extension of RabbitMQ).
fn publisher_confirms(scene: &mut Scene) -> Result<Found, Trouble> {
    let (mut session, queue) = scene.with_queue(Table::EMPTY)?;
    session.confirm()?;
    let confirmed = session.confirmed(Draft { queue: &queue, body: BODY, ..Draft::default() })?;
    session.leave();
    let evidence = match confirmed {
        Confirmed::Acked => "after confirm.select a message was answered with basic.ack",
        Confirmed::Nacked => "after confirm.select a message was answered with basic.nack",
        Confirmed::Returned(_) => "a message to a queue that exists came back",
    };
    Ok(Found::flag(confirmed == Confirmed::Acked, evidence))
}

/// Tests whether a mandatory message that no queue takes comes back (section 1.8.3.3 of the
/// reference).
fn mandatory_return(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut session = Session::open(&scene.reach)?;
    session.publish(Draft {
        queue: &new_name(),
        bits: bits::MANDATORY,
        body: BODY,
        ..Draft::default()
    })?;
    let code = session.event(|event| match event {
        Event::Method(Method::Return { reply_code, .. }) => Some(*reply_code),
        _ => None,
    });
    Ok(match code {
        Ok(code) => {
            session.leave();
            Found::flag(true, format!("a message without a queue came back with {code}"))
        }
        Err(Trouble::Silent(_)) => {
            Found::flag(false, "a message without a queue did not come back")
        }
        Err(other) => return Err(other),
    })
}

/// Tests whether a channel has transactions (the class `tx`).
fn transactions(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut session = Session::open(&scene.reach)?;
    session.say(CHANNEL, &Method::TxSelect {})?;
    session.event(|event| matches!(event, Event::Other(90, 11)).then_some(()))?;
    session.leave();
    Ok(Found::flag(true, "tx.select was answered with tx.select-ok"))
}

/// Tests whether the headers of a message arrive.
fn headers(scene: &mut Scene) -> Result<Found, Trouble> {
    let (mut session, queue) = scene.with_queue(Table::EMPTY)?;
    let (mut table, value) = (TableWriter::default(), unused_name());
    table.text(HEADER, &value);
    let headers = Some(table.as_table());
    session.publish(Draft { queue: &queue, headers, body: BODY, ..Draft::default() })?;
    let got = session.get(&queue)?;
    session.leave();
    Ok(match got {
        None => Found::flag(false, "a message was published, and the queue is empty"),
        Some(got) => {
            let arrived = got.header.as_deref() == Some(&value) && got.body == BODY;
            let words = if arrived { "came as it was" } else { "did not come as it was" };
            Found::flag(arrived, format!("a message with a header {words}"))
        }
    })
}

/// Tests whether a consumer of prefetch 1 gets one of three messages (`basic.qos`).
fn prefetch(scene: &mut Scene) -> Result<Found, Trouble> {
    let (mut session, queue) = scene.with_queue(Table::EMPTY)?;
    for _ in 0..3 {
        session.publish(Draft { queue: &queue, body: BODY, ..Draft::default() })?;
    }
    let qos = Method::Qos { prefetch_size: 0, prefetch_count: 1, bits: 0 };
    session.ask(CHANNEL, &qos, |own| matches!(own, Method::QosOk {}).then_some(()))?;
    let consume = Method::Consume {
        reserved_1: 0,
        queue: Short(&queue),
        consumer_tag: Short(""),
        bits: 0,
        arguments: Table::EMPTY,
    };
    session.say(CHANNEL, &consume)?;
    let mut came = 0;
    while came < 3 {
        let is_it = |event: &Event<'_>| {
            matches!(event, Event::Method(Method::Deliver { .. })).then_some(())
        };
        match session.event(is_it) {
            Ok(()) => came += 1,
            Err(Trouble::Silent(_)) => break,
            Err(other) => return Err(other),
        }
    }
    session.leave();
    let evidence = format!("a consumer of prefetch 1 that acknowledges nothing got {came} of 3");
    Ok(Found::flag(came == 1, evidence))
}

/// Tests whether a message that was rejected into its queue is marked as redelivered.
fn redelivery(scene: &mut Scene) -> Result<Found, Trouble> {
    let (mut session, queue) = scene.with_queue(Table::EMPTY)?;
    session.publish(Draft { queue: &queue, body: BODY, ..Draft::default() })?;
    let Some(first) = session.get(&queue)? else {
        return Ok(Found::flag(false, "a message was published, and the queue is empty"));
    };
    session.say(CHANNEL, &Method::Reject { delivery_tag: first.tag, bits: bits::REQUEUE })?;
    let second = session.get(&queue)?;
    session.leave();
    Ok(match second {
        Some(second) => {
            let marked = second.is_redelivered && !first.is_redelivered;
            let words = if marked { "with the mark" } else { "without the mark" };
            Found::flag(marked, format!("a rejected message came again, {words} of a redelivery"))
        }
        None => Found::flag(false, "a rejected message did not come again"),
    })
}

fn durable_queues(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.lasting(bits::DURABLE, expiring(&mut TableWriter::default()).as_table())?;
    Ok(Found::flag(true, "one was declared and deleted"))
}

/// Tests whether there are queues of a type that are always durable. A broker that does not know
/// the argument ignores it, and takes a transient queue of the type too.
fn queue_type(scene: &mut Scene, kind: &str) -> Result<Found, Trouble> {
    let mut arguments = TableWriter::default();
    arguments.text("x-queue-type", kind);
    if kind != "stream" {
        expiring(&mut arguments);
    }
    scene.lasting(bits::DURABLE, arguments.as_table())?;
    let transient = scene.lasting(0, arguments.as_table());
    Ok(match transient {
        Err(Trouble::Refused(text)) => {
            let evidence = format!("one was declared, and a transient one refused: {text}");
            Found::flag(true, evidence)
        }
        Ok(()) => {
            let evidence = format!("x-queue-type {kind} had no effect: a transient one was taken");
            Found::flag(false, evidence)
        }
        Err(other) => return Err(other),
    })
}

/// The broker deletes the queue by itself if the probe is killed.
fn expiring(arguments: &mut TableWriter) -> &mut TableWriter {
    arguments.number("x-expires", QUEUE_LIFE_MS)
}

/// Tests whether a queue that is full drops its oldest message.
fn max_length(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut arguments = TableWriter::default();
    arguments.number("x-max-length", 1);
    let (mut session, queue) = scene.with_queue(arguments.as_table())?;
    for body in [&b"old"[..], b"new"] {
        session.publish(Draft { queue: &queue, body, ..Draft::default() })?;
    }
    let (first, second) = (session.get(&queue)?, session.get(&queue)?);
    session.leave();
    let is_kept = first.as_ref().is_some_and(|own| own.body == b"new") && second.is_none();
    let came = u8::from(first.is_some()) + u8::from(second.is_some());
    let evidence = format!("of a queue with x-max-length 1 came {came} of 2 messages");
    Ok(Found::flag(is_kept, evidence))
}

/// Tests whether a queue that is full refuses further messages.
fn reject_publish(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut arguments = TableWriter::default();
    arguments.number("x-max-length", 1).text("x-overflow", "reject-publish");
    let (mut session, queue) = scene.with_queue(arguments.as_table())?;
    session.confirm()?;
    let mut nacked = 0;
    for _ in 0..3 {
        let draft = Draft { queue: &queue, body: BODY, ..Draft::default() };
        nacked += u8::from(session.confirmed(draft)? == Confirmed::Nacked);
    }
    session.leave();
    let evidence = format!("a full queue with reject-publish refused {nacked} of 3 messages");
    Ok(Found::flag(nacked > 0, evidence))
}

/// Tests whether a message that waited longer than its queue allows is gone.
fn message_ttl(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut arguments = TableWriter::default();
    arguments.number("x-message-ttl", 1);
    let (mut session, queue) = scene.with_queue(arguments.as_table())?;
    session.publish(Draft { queue: &queue, body: BODY, ..Draft::default() })?;
    scene.reach.pause(TTL_PAUSE)?;
    let got = session.get(&queue)?;
    session.leave();
    let words = if got.is_some() { "was still there" } else { "was gone" };
    Ok(Found::flag(got.is_none(), format!("after x-message-ttl a message {words}")))
}

/// The largest body that is confirmed.
fn message_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let most = scene.bounds.payload_bytes;
    let body = vec![b'x'; usize::try_from(most).unwrap_or(usize::MAX)];
    let (edge, why) = largest_passing((1, most), |size| {
        let (mut session, queue) = scene.with_queue(Table::EMPTY)?;
        session.confirm()?;
        let body = &body[..size as usize];
        match session.confirmed(Draft { queue: &queue, body, ..Draft::default() })? {
            Confirmed::Acked => {
                session.leave();
                Ok(())
            }
            other => Err(Trouble::Refused(format!("{other:?}").to_lowercase())),
        }
    })?;
    Ok(Found::edge(edge, "bytes", " bytes", why.as_ref()))
}

const BODY: &[u8] = b"{}";

/// Life of an unused queue that outlives a probe, ms.
const QUEUE_LIFE_MS: i64 = 60_000;

const TTL_PAUSE: Duration = Duration::from_millis(100);
