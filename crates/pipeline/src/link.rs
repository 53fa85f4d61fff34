//! The gateway's connection to the broker. The library rumqttc connects, reads and writes packets;
//! this file decides which ones to acknowledge, and when. The library's own loop would acknowledge
//! every message itself, and close a connection on an unknown PUBREL, which comes after a restart.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rumqttc::{
    ConnectReturnCode, ConnectionError, Event, EventLoop, MqttOptions, Packet, PubAck, PubComp,
    PubRec, Publish, QoS, Subscribe, SubscribeReasonCode,
};
use tokio::sync::mpsc::{Sender, UnboundedReceiver};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};

use crate::clock;
use crate::failed::Failed;
use crate::gateway_settings::GatewaySettings;
use crate::next::chain;
use crate::queue::{Parcel, Piece};
use crate::running::Count;
use crate::running::{GRACE, Stop};

/// Counts of messages.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Messages of the broker.
    pub(crate) received: Count,
    /// Of those, marked by the broker as sent before (MQTT 3.1.1, section 3.3.1.1).
    pub(crate) redelivered: Count,
    /// Of those, already in progress and not forwarded again.
    pub(crate) known: Count,
    /// Confirmed by the next stage.
    pub(crate) forwarded: Count,
    /// Messages for an API that are not readings, and were discarded.
    pub(crate) refused: Count,
    /// Acknowledgements to the broker.
    pub(crate) acknowledged: Count,
    /// Calls that the next stage confirmed.
    pub(crate) batches: Count,
    /// Calls to it that failed and were repeated.
    pub(crate) retries: Count,
    /// Connections to the broker after the first.
    pub(crate) reconnects: Count,
}

/// Identifies a message until it is acknowledged; one of QoS 0 needs none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    packet: u16,
    /// Distinguishes messages with the same packet identifier.
    serial: u64,
}

/// The connection, reopened whenever it breaks.
pub(crate) struct Link {
    library: EventLoop,
    broker: String,
    filter: String,
    qos: QoS,
    queue: Option<Sender<Parcel<Ticket>>>,
    confirmed: UnboundedReceiver<Vec<Ticket>>,
    counts: Arc<Counts>,
    inbound: Inbound,
    /// A message that waits for room in the queue; meanwhile nothing is read.
    held: Option<Parcel<Ticket>>,
    /// The QoS of the subscription.
    granted: Option<QoS>,
    has_written: bool,
}

/// The reason why a connection ended.
type Broken = String;

/// The next event of a connection.
enum Turn {
    Stop,
    Confirmed(Option<Vec<Ticket>>),
    Room,
    Came(Result<Packet, rumqttc::StateError>),
    Ping,
}

impl Link {
    pub(crate) fn new(
        settings: &GatewaySettings,
        queue: Sender<Parcel<Ticket>>,
        confirmed: UnboundedReceiver<Vec<Ticket>>,
        counts: Arc<Counts>,
    ) -> Link {
        let broker = &settings.broker;
        let mut options = MqttOptions::new(&settings.client_id, broker.url_host(), broker.port);
        options.set_keep_alive(KEEP_ALIVE);
        options.set_clean_session(false);
        options.set_max_packet_size(PACKET_BYTES_MAX, PACKET_BYTES_MAX);
        if let Some(who) = &broker.credentials {
            options.set_credentials(&who.user, &who.password);
        }
        let mut library = EventLoop::new(options, 1);
        library.network_options.set_tcp_nodelay(true);
        let qos = match settings.qos {
            0 => QoS::AtMostOnce,
            1 => QoS::AtLeastOnce,
            _ => QoS::ExactlyOnce,
        };
        Link {
            library,
            broker: broker.to_string(),
            filter: settings.filter.clone(),
            qos,
            queue: Some(queue),
            confirmed,
            counts,
            inbound: Inbound::default(),
            held: None,
            granted: None,
            has_written: false,
        }
    }

    /// Connects and subscribes for the first time; returns the granted QoS. Messages of the session
    /// may come before the answer, and are forwarded at once.
    ///
    /// # Errors
    /// A broker that cannot be reached, or that refuses.
    pub(crate) async fn subscribe(&mut self) -> Result<u8, Failed> {
        let broker = self.broker.clone();
        let failed = |reason: String| Failed::Found(format!("{broker}: {reason}"));
        self.connect(true).await.map_err(failed)?;
        let (_nobody, mut stop) = tokio::sync::oneshot::channel();
        let silent = |_| format!("it answers no SUBSCRIBE within {} s", GRANT_WITHIN.as_secs());
        let answered = timeout(GRANT_WITHIN, self.work(&mut stop, true)).await;
        answered.map_err(silent).and_then(|worked| worked).map_err(failed)?;
        self.granted.map(|qos| qos as u8).ok_or_else(|| failed("no answer to SUBSCRIBE".to_owned()))
    }

    /// Runs until it is stopped; then `over` stops the forwarder.
    pub(crate) async fn run(mut self, mut stop: Stop, over: watch::Sender<bool>) {
        let mut pause = PAUSE_MIN;
        loop {
            let began = Instant::now();
            let broken = match self.work(&mut stop, false).await {
                Ok(()) => break,
                Err(broken) => broken,
            };
            eprintln!("weigh serve gateway: {}: {broken}; it connects again", self.broker);
            if self.queue.as_ref().is_none_or(Sender::is_closed) {
                // Without the forwarder, another connection is useless.
                break;
            }
            pause = pause_after(pause, began.elapsed());
            if !self.connect_again(&mut stop, &mut pause).await {
                let _ = over.send(true);
                return;
            }
            self.counts.reconnects.add(1);
        }
        // Calls in progress are still confirmed and acknowledged; other messages stay with the
        // broker.
        (self.queue, self.held) = (None, None);
        if timeout(GRACE, self.acknowledge_the_rest()).await.is_err() {
            eprintln!("weigh serve gateway: the next stage has not confirmed everything");
        }
        let _ = over.send(true);
    }

    /// Connects, with a pause before each attempt, until it succeeds; false if it was stopped
    /// before.
    async fn connect_again(&mut self, stop: &mut Stop, pause: &mut Duration) -> bool {
        loop {
            let connect = async {
                sleep(*pause).await;
                self.connect(false).await
            };
            let connected = tokio::select! {
                _ = &mut *stop => return false,
                connected = connect => connected,
            };
            let Err(broken) = connected else { return true };
            if *pause == PAUSE_MAX {
                eprintln!("weigh serve gateway: {}: {broken}", self.broker);
            }
            *pause = pause_after(*pause, Duration::ZERO);
        }
    }

    /// Sends CONNECT; and SUBSCRIBE if the session is new, because every SUBSCRIBE makes the broker
    /// send its retained messages again.
    async fn connect(&mut self, is_first: bool) -> Result<(), Broken> {
        self.library.network = None;
        let session_present = match self.library.poll().await {
            Ok(Event::Incoming(Packet::ConnAck(connack))) => connack.session_present,
            Ok(other) => return Err(format!("it sent {other:?} before CONNACK")),
            Err(error) => return Err(unconnected(&error)),
        };
        self.inbound.begin(session_present);
        if is_first || !session_present {
            let mut subscribe = Subscribe::new(&*self.filter, self.qos);
            subscribe.pkid = SUBSCRIBE;
            self.write(Packet::Subscribe(subscribe)).await?;
        }
        self.flush().await
    }

    /// Runs one connection until it breaks or the gateway is stopped, or, with `until_granted`,
    /// until the subscription is granted.
    async fn work(&mut self, stop: &mut Stop, until_granted: bool) -> Result<(), Broken> {
        let first = Instant::now() + PING_EVERY;
        let mut ping = interval_at(first, PING_EVERY);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last_heard = Instant::now();
        while !(until_granted && self.granted.is_some()) {
            let network = self.library.network.as_mut().ok_or("the connection is gone")?;
            let queue = self.queue.as_ref().ok_or("the next stage is gone")?;
            let turn = tokio::select! {
                biased;
                _ = &mut *stop => Turn::Stop,
                tickets = self.confirmed.recv() => Turn::Confirmed(tickets),
                _ = ping.tick() => Turn::Ping,
                _ = queue.reserve(), if self.held.is_some() => Turn::Room,
                packet = network.read(), if self.held.is_none() => Turn::Came(packet),
            };
            match turn {
                Turn::Stop => return Ok(()),
                Turn::Confirmed(None) => return Err("the next stage is gone".to_owned()),
                Turn::Confirmed(Some(tickets)) => self.acknowledge(&tickets).await?,
                Turn::Room => self.put_held(),
                Turn::Ping => {
                    // A connection that is not read does not show whether the broker is alive.
                    if self.held.is_some() {
                        last_heard = Instant::now();
                    }
                    if last_heard.elapsed() > KEEP_ALIVE {
                        return Err(format!("silent for {} s", KEEP_ALIVE.as_secs()));
                    }
                    self.write(Packet::PingReq).await?;
                }
                Turn::Came(packet) => {
                    last_heard = Instant::now();
                    let packet = packet.map_err(|error| chain(&error))?;
                    self.handle(packet).await?;
                    self.handle_the_rest().await?;
                }
            }
            self.flush().await?;
        }
        Ok(())
    }

    /// Handles packets that have already arrived, while there is room.
    async fn handle_the_rest(&mut self) -> Result<(), Broken> {
        for _ in 0..PACKETS_PER_TURN {
            if self.held.is_some() {
                break;
            }
            let network = self.library.network.as_mut().ok_or("the connection is gone")?;
            let Some(packet) = network.read().now_or_never() else { break };
            self.handle(packet.map_err(|error| chain(&error))?).await?;
        }
        Ok(())
    }

    async fn handle(&mut self, packet: Packet) -> Result<(), Broken> {
        match packet {
            Packet::Publish(publish) => self.take(publish).await,
            // Also for an unknown one, which an earlier gateway process received (MQTT 3.1.1,
            // section 4.4).
            Packet::PubRel(release) => {
                self.inbound.open.remove(&release.pkid);
                self.write(Packet::PubComp(PubComp::new(release.pkid))).await
            }
            Packet::SubAck(suback) => match suback.return_codes.first() {
                Some(SubscribeReasonCode::Success(qos)) => {
                    self.granted = Some(*qos);
                    Ok(())
                }
                _ => Err(format!(
                    "it refuses a subscription to {:?}: type another --filter, or a user with \
                     permission",
                    self.filter
                )),
            },
            Packet::PingResp => Ok(()),
            other => Err(format!("it sent an unexpected {other:?}")),
        }
    }

    async fn take(&mut self, publish: Publish) -> Result<(), Broken> {
        let arrived = clock::now();
        self.counts.received.add(1);
        self.counts.redelivered.add(u64::from(publish.dup));
        let ticket = match self.inbound.come(&publish) {
            Coming::New(ticket) => ticket,
            Coming::Known => {
                self.counts.known.add(1);
                return Ok(());
            }
            Coming::Confirmed(ticket) => {
                self.counts.known.add(1);
                return self.acknowledge(&[ticket]).await;
            }
        };
        let piece = Piece { body: publish.payload, arrived };
        self.held = Some(Parcel { pieces: vec![piece], ticket });
        self.put_held();
        Ok(())
    }

    /// Moves the waiting message to the queue, if there is room.
    fn put_held(&mut self) {
        if let (Some(queue), Some(parcel)) = (&self.queue, self.held.take())
            && let Err(error) = queue.try_send(parcel)
        {
            self.held = Some(error.into_inner());
        }
    }

    async fn acknowledge(&mut self, tickets: &[Ticket]) -> Result<(), Broken> {
        for ticket in tickets {
            let packet = match self.inbound.confirm(*ticket) {
                Some(QoS::AtLeastOnce) => Packet::PubAck(PubAck::new(ticket.packet)),
                Some(QoS::ExactlyOnce) => Packet::PubRec(PubRec::new(ticket.packet)),
                _ => continue,
            };
            self.counts.acknowledged.add(1);
            self.write(packet).await?;
        }
        Ok(())
    }

    async fn acknowledge_the_rest(&mut self) {
        while let Some(tickets) = self.confirmed.recv().await {
            if self.acknowledge(&tickets).await.is_err() || self.flush().await.is_err() {
                return;
            }
        }
        if self.write(Packet::Disconnect).await.is_ok() {
            let _ = self.flush().await;
        }
    }

    async fn write(&mut self, packet: Packet) -> Result<(), Broken> {
        self.has_written = true;
        let network = self.library.network.as_mut().ok_or("the connection is gone")?;
        network.write(packet).await.map_err(|error| chain(&error))
    }

    async fn flush(&mut self) -> Result<(), Broken> {
        if !std::mem::take(&mut self.has_written) {
            return Ok(());
        }
        let network = self.library.network.as_mut().ok_or("the connection is gone")?;
        network.flush().await.map_err(|error| chain(&error))
    }
}

/// The pause before the next connection, by the previous one and the duration of the last
/// connection, so that a broker that closes connections at once is not asked endlessly.
fn pause_after(pause: Duration, lasted: Duration) -> Duration {
    if lasted >= LASTING { PAUSE_MIN } else { (2 * pause).min(PAUSE_MAX) }
}

/// Why there is no session, and what to do.
fn unconnected(error: &ConnectionError) -> String {
    use ConnectReturnCode::{BadUserNamePassword, NotAuthorized};
    match error {
        ConnectionError::ConnectionRefused(code @ (BadUserNamePassword | NotAuthorized)) => {
            format!(
                "it refused the session ({code:?}): type valid credentials, \
                 mqtt://USER@HOST:PORT with WEIGH_PASSWORD"
            )
        }
        ConnectionError::ConnectionRefused(code) => format!("it refused the session ({code:?})"),
        ConnectionError::NetworkTimeout => "no CONNACK in time; check that it is a \
                                            broker"
            .to_owned(),
        other => format!("no session: {}; check that the broker runs", chain(other)),
    }
}

/// Messages of the session that are not fully acknowledged.
#[derive(Debug, Default)]
struct Inbound {
    open: HashMap<u16, Open>,
    /// Number of connections so far.
    connection: u64,
    serial: u64,
}

#[derive(Debug)]
struct Open {
    serial: u64,
    qos: QoS,
    /// The connection on which the broker sent it last: it must be acknowledged there.
    connection: u64,
    is_confirmed: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Coming {
    /// A new message, to be forwarded.
    New(Ticket),
    /// A message in progress.
    Known,
    /// The next stage has confirmed it; only the acknowledgement is missing.
    Confirmed(Ticket),
}

impl Inbound {
    /// Starts a connection; without a session the broker has forgotten open messages.
    fn begin(&mut self, session_present: bool) {
        self.connection += 1;
        if !session_present {
            self.open.clear();
        }
    }

    fn come(&mut self, publish: &Publish) -> Coming {
        let packet = publish.pkid;
        if publish.qos != QoS::AtMostOnce
            && publish.dup
            && let Some(open) = self.open.get_mut(&packet)
        {
            open.connection = self.connection;
            let ticket = Ticket { packet, serial: open.serial };
            return if open.is_confirmed { Coming::Confirmed(ticket) } else { Coming::Known };
        }
        self.serial += 1;
        let (serial, connection) = (self.serial, self.connection);
        if publish.qos != QoS::AtMostOnce {
            let open = Open { serial, qos: publish.qos, connection, is_confirmed: false };
            self.open.insert(packet, open);
        }
        Coming::New(Ticket { packet, serial })
    }

    /// Marks a message as confirmed by the next stage; returns how to acknowledge it now, if so.
    fn confirm(&mut self, ticket: Ticket) -> Option<QoS> {
        let open = self.open.get_mut(&ticket.packet)?;
        if open.serial != ticket.serial {
            return None;
        }
        open.is_confirmed = true;
        let qos = open.qos;
        if open.connection != self.connection {
            // The broker sends it again, and gets the acknowledgement then.
            return None;
        }
        if qos == QoS::AtLeastOnce {
            self.open.remove(&ticket.packet);
        }
        Some(qos)
    }
}

/// The packet identifier of SUBSCRIBE; the broker has its own for messages.
const SUBSCRIBE: u16 = 1;
const KEEP_ALIVE: Duration = Duration::from_secs(60);
const PING_EVERY: Duration = Duration::from_secs(20);
const GRANT_WITHIN: Duration = Duration::from_secs(10);
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A connection that lasted this long counts as stable.
const LASTING: Duration = Duration::from_secs(5);
/// Maximum packet size in both directions; a larger one closes the connection.
const PACKET_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Packets that are handled before acknowledgements are sent again.
const PACKETS_PER_TURN: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(pkid: u16, qos: QoS, dup: bool) -> Publish {
        let mut publish = Publish::new("t", qos, "x");
        (publish.pkid, publish.dup) = (pkid, dup);
        publish
    }

    fn new(inbound: &mut Inbound, pkid: u16, qos: QoS) -> Ticket {
        match inbound.come(&publish(pkid, qos, false)) {
            Coming::New(ticket) => ticket,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pauses_grow_until_a_connection_lasts() {
        let mut pause = PAUSE_MIN;
        let mut seen = Vec::new();
        for lasted in [0, 1, 4, 0, 0, 0, 5, 0] {
            pause = pause_after(pause, Duration::from_secs(lasted));
            seen.push(pause.as_millis());
        }
        assert_eq!(seen, [100, 200, 400, 800, 1000, 1000, 50, 100]);
    }

    #[test]
    fn a_message_is_acknowledged_once_it_is_confirmed() {
        let mut inbound = Inbound::default();
        inbound.begin(false);
        let never = new(&mut inbound, 0, QoS::AtMostOnce);
        let least = new(&mut inbound, 1, QoS::AtLeastOnce);
        let once = new(&mut inbound, 2, QoS::ExactlyOnce);
        assert_eq!(inbound.confirm(never), None);
        assert_eq!(inbound.confirm(least), Some(QoS::AtLeastOnce));
        assert_eq!(inbound.confirm(least), None, "it is over");
        assert_eq!(inbound.confirm(once), Some(QoS::ExactlyOnce));
        // Its identifier is taken until PUBREL; the other one's is free.
        assert_eq!(inbound.come(&publish(2, QoS::ExactlyOnce, true)), Coming::Confirmed(once));
        assert_ne!(new(&mut inbound, 1, QoS::AtLeastOnce), least);
    }

    /// The connection breaks while a message is on its way: it does not go twice, and is
    /// acknowledged on the connection on which it came again.
    #[test]
    fn what_comes_again_goes_on_once() {
        for qos in [QoS::AtLeastOnce, QoS::ExactlyOnce] {
            let mut inbound = Inbound::default();
            inbound.begin(false);
            let (early, late) = (new(&mut inbound, 1, qos), new(&mut inbound, 2, qos));
            inbound.begin(true);
            assert_eq!(inbound.confirm(early), None, "not on a connection that never sent it");
            assert_eq!(inbound.come(&publish(1, qos, true)), Coming::Confirmed(early));
            assert_eq!(inbound.confirm(early), Some(qos));
            assert_eq!(inbound.come(&publish(2, qos, true)), Coming::Known);
            assert_eq!(inbound.confirm(late), Some(qos));
        }
    }

    /// A broker without the session assigns its identifiers again.
    #[test]
    fn a_lost_session_forgets_what_was_open() {
        let mut inbound = Inbound::default();
        inbound.begin(false);
        let old = new(&mut inbound, 1, QoS::AtLeastOnce);
        inbound.begin(false);
        let fresh = new(&mut inbound, 1, QoS::AtLeastOnce);
        assert_eq!(inbound.confirm(old), None);
        assert_eq!(inbound.confirm(fresh), Some(QoS::AtLeastOnce));
    }
}
