//! State shared by the shards of the reference broker: sessions, subscriptions, retained messages,
//! wills, and the count of everything. A shard locks it once per call from the engine; what is
//! for a connection of another shard waits here until that shard is poked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weigh_model::Nanos;
use weigh_model::server::{ConnectionId, SUBSCRIBER_DISCONNECTED, ServerReport};

use super::codec::{Ack, Connect, Disconnect, Filter, Id, Options, Qos, Section, Version};
use super::message::{Message, Publication, forwarded_properties};
use super::session::{
    Counts, Outcome, Replies, Session, SessionLimits, SessionOptions, StoredWill,
};
use super::settings::BrokerRules;
use super::topic;
use super::trie::{Route, Routes, Trie};
use crate::broker_core::{Mailboxes, Place, Turn};
use crate::server_counts::ServerCounts;

/// The common part of all shards.
pub(super) struct BrokerState {
    pub(super) rules: BrokerRules,
    pub(super) census: ServerCounts,
    sessions: Vec<Option<Box<Session>>>,
    free: Vec<u32>,
    by_client: HashMap<Box<str>, u32>,
    trie: Trie,
    /// Routes by topic; discarded when any subscription changes.
    routes: HashMap<Box<str>, Arc<Routes>>,
    retained: BTreeMap<Box<str>, Arc<Message>>,
    /// When to look at which session without a connection.
    timers: BTreeSet<(Nanos, u32)>,
    pub(super) mail: Mailboxes<Mail>,
    /// Subscribers that must go, and wills that must be published, at the end of this call.
    overloaded: Vec<u32>,
    wills: Vec<StoredWill>,
    counts: Counts,
    scratch: Section,
    assigned: u64,
}

/// Work that one shard leaves for another.
#[derive(Debug)]
pub(super) enum Mail {
    /// Look at the queue of this session.
    Pump(u32),
    /// This connection's session was taken over.
    TakenOver(ConnectionId, u32, Version),
}

impl BrokerState {
    pub(super) fn new(rules: BrokerRules) -> BrokerState {
        BrokerState {
            rules,
            census: ServerCounts::default(),
            sessions: Vec::new(),
            free: Vec::new(),
            by_client: HashMap::new(),
            trie: Trie::default(),
            routes: HashMap::new(),
            retained: BTreeMap::new(),
            timers: BTreeSet::new(),
            mail: Mailboxes::new(),
            overloaded: Vec::new(),
            wills: Vec::new(),
            counts: Counts::default(),
            scratch: Section::default(),
            assigned: 0,
        }
    }

    /// The session `key`, if `attached` is the connection it has.
    pub(super) fn session_of(&mut self, key: u32, attached: Place) -> Option<&mut Session> {
        let session = self.sessions.get_mut(key as usize)?.as_deref_mut()?;
        (session.attached == Some(attached)).then_some(session)
    }

    /// A client identifier for a client that has none.
    pub(super) fn assign_client_id(&mut self) -> String {
        loop {
            self.assigned += 1;
            let client_id = format!("assigned-{}", self.assigned);
            if !self.by_client.contains_key(client_id.as_str()) {
                return client_id;
            }
        }
    }

    /// Gives a client its session, an old one or a new one, and takes it from its current
    /// connection
    /// (MQTT 5.0, section 3.1.4). Returns its key and whether there was one.
    pub(super) fn attach(
        &mut self,
        client_id: &str,
        connect: &Connect<'_>,
        attached: Place,
        turn: &mut Turn<'_>,
    ) -> (u32, bool) {
        let old = self.by_client.get(client_id).copied();
        if let Some(key) = old {
            self.take_over(key, connect.clean, turn);
        }
        let kept = self.by_client.get(client_id).copied();
        let key = kept.unwrap_or_else(|| self.begin_session(client_id));
        self.forget_timer(key);
        let properties = &connect.properties;
        let number = |id: Id| properties.number(id);
        let limits = SessionLimits {
            receive_maximum: number(Id::ReceiveMaximum).map_or(u16::MAX, |most| most as u16),
            packet_bytes_max: number(Id::MaximumPacketSize)
                .unwrap_or(SessionLimits::default().packet_bytes_max),
            topic_alias_maximum: number(Id::TopicAliasMaximum).unwrap_or(0) as u16,
        };
        let expiry_s = match connect.version {
            Version::V311 if connect.clean => 0,
            Version::V311 => u32::MAX,
            Version::V5 => number(Id::SessionExpiryInterval).unwrap_or(0),
        };
        if let Some(Some(session)) = self.sessions.get_mut(key as usize) {
            session.attach(attached, connect.version, limits);
            session.expiry_s = expiry_s;
            session.will = connect.will.as_ref().map(store_will);
        }
        (key, kept.is_some())
    }

    /// Ends the connection that session `key` may have, and the session with it if it is not
    /// to continue.
    fn take_over(&mut self, key: u32, is_clean: bool, turn: &mut Turn<'_>) {
        let Some(Some(session)) = self.sessions.get_mut(key as usize) else { return };
        let is_over = is_clean || session.expiry_s == 0;
        let had_connection = session.attached.take();
        if let Some(old) = had_connection {
            let (connection, version) = (old.connection, session.version);
            if old.shard == turn.shard {
                say_goodbye(connection, version, SESSION_TAKEN_OVER, turn);
            } else {
                let mail = Mail::TakenOver(connection, old.serial, version);
                self.mail.post(old.shard, mail, turn.out);
            }
        }
        let Some(Some(session)) = self.sessions.get_mut(key as usize) else { return };
        // A will with a delay is not sent if the session continues in time (section 3.1.3.2.2).
        let is_due = is_over || session.will.as_ref().is_some_and(|will| will.delay_s == 0);
        match session.will.take() {
            Some(will) if is_due => self.wills.push(*will),
            _ => {}
        }
        if is_over {
            self.end_session(key);
        }
    }

    /// Handles the end of the connection of session `key`. Without a DISCONNECT its will is due.
    pub(super) fn detach(&mut self, key: u32, now: Nanos) {
        let Some(Some(session)) = self.sessions.get_mut(key as usize) else { return };
        session.attached = None;
        session.aliases_in = Vec::new();
        let expiry = match session.expiry_s {
            u32::MAX => Nanos::NEVER,
            seconds => Nanos::from_secs(u64::from(seconds)),
        };
        session.ends_at = now + expiry;
        let delay_s = session.will.as_ref().map(|will| will.delay_s.min(session.expiry_s));
        match delay_s {
            Some(0) => self.wills.extend(session.will.take().map(|will| *will)),
            Some(seconds) => session.will_due = now + Nanos::from_secs(u64::from(seconds)),
            None => {}
        }
        if session.expiry_s == 0 {
            self.end_session(key);
        } else {
            let due = session.ends_at.min(session.will_due);
            if due != Nanos::NEVER {
                self.timers.insert((due, key));
            }
        }
    }

    fn begin_session(&mut self, client_id: &str) -> u32 {
        let session = Some(Box::new(Session::new(client_id)));
        let key = match self.free.pop() {
            Some(key) => {
                self.sessions[key as usize] = session;
                key
            }
            None => {
                self.sessions.push(session);
                self.sessions.len() as u32 - 1
            }
        };
        self.by_client.insert(client_id.into(), key);
        key
    }

    fn end_session(&mut self, key: u32) {
        self.forget_timer(key);
        let Some(mut session) = self.sessions.get_mut(key as usize).and_then(Option::take) else {
            return;
        };
        for filter in &session.filters {
            self.trie.remove(filter, key);
        }
        if !session.filters.is_empty() {
            self.routes.clear();
        }
        self.by_client.remove(&session.client_id);
        self.free.push(key);
        self.wills.extend(session.will.take().map(|will| *will));
        session.drop_queue(SUBSCRIBER_DISCONNECTED, &mut self.counts);
    }

    fn forget_timer(&mut self, key: u32) {
        if let Some(Some(session)) = self.sessions.get(key as usize) {
            self.timers.remove(&(session.ends_at.min(session.will_due), key));
        }
    }

    /// Ends sessions and sends wills whose time has come; returns when to come again.
    pub(super) fn wake(&mut self, turn: &mut Turn<'_>) -> Nanos {
        while let Some(&(due, key)) = self.timers.first() {
            if due > turn.now {
                break;
            }
            self.timers.pop_first();
            let Some(Some(session)) = self.sessions.get_mut(key as usize) else { continue };
            if session.will_due <= turn.now {
                session.will_due = Nanos::NEVER;
                self.wills.extend(session.will.take().map(|will| *will));
            }
            if session.ends_at <= turn.now {
                self.end_session(key);
            } else if session.ends_at != Nanos::NEVER {
                self.timers.insert((session.ends_at, key));
            }
        }
        self.settle(turn);
        self.timers.first().map_or(Nanos::NEVER, |(due, _)| *due)
    }

    /// Does what had to wait while messages were being distributed.
    pub(super) fn settle(&mut self, turn: &mut Turn<'_>) {
        loop {
            if let Some(key) = self.overloaded.pop() {
                self.disconnect_overloaded(key, turn);
            } else if let Some(will) = self.wills.pop() {
                let expires = will.expiry_s.map_or(Nanos::NEVER, |seconds| {
                    turn.now + Nanos::from_secs(u64::from(seconds))
                });
                let (topic, properties) = (&will.topic, &will.properties);
                let mut publication =
                    Publication::new(topic, properties, &will.body, will.qos, will.retain, expires);
                self.publish(&mut publication, None, turn);
            } else {
                return;
            }
        }
    }

    fn disconnect_overloaded(&mut self, key: u32, turn: &mut Turn<'_>) {
        let Some(Some(session)) = self.sessions.get_mut(key as usize) else { return };
        let Some(attached) = session.attached else { return };
        session.drop_queue(SUBSCRIBER_DISCONNECTED, &mut self.counts);
        self.counts.disconnects += 1;
        say_goodbye(attached.connection, session.version, QUOTA_EXCEEDED, turn);
        self.detach(key, turn.now);
    }

    /// Takes a message in: keeps it if it is to be retained, and brings it to all who want it.
    /// False if there is no subscriber.
    pub(super) fn publish(
        &mut self,
        publication: &mut Publication<'_>,
        from: Option<u32>,
        turn: &mut Turn<'_>,
    ) -> bool {
        if publication.retain {
            if publication.body.is_empty() {
                self.retained.remove(publication.topic);
            } else {
                self.retained.insert(publication.topic.into(), publication.keep());
            }
        }
        let routes = self.routes_of(publication.topic);
        let mut is_wanted = false;
        for route in &routes.direct {
            if route.no_local && from == Some(route.session) {
                continue;
            }
            is_wanted = true;
            self.deliver(route, publication, turn);
        }
        for group in &routes.shared {
            let count = group.members.len();
            let first = group.turn.fetch_add(1, Ordering::Relaxed);
            let in_turn = (0..count).map(|step| &group.members[first.wrapping_add(step) % count]);
            let chosen = in_turn.clone().find(|route| self.is_attached(route.session));
            if let Some(route) = chosen.or_else(|| in_turn.clone().next()) {
                is_wanted = true;
                self.deliver(route, publication, turn);
            }
        }
        is_wanted
    }

    /// Connections that a message of this topic would go to now.
    pub(super) fn listeners(&mut self, topic: &str, from: u32) -> Vec<ConnectionId> {
        let routes = self.routes_of(topic);
        let shared = routes.shared.iter().flat_map(|group| &group.members);
        let all = routes.direct.iter().filter(|route| !(route.no_local && route.session == from));
        all.chain(shared)
            .filter_map(|route| self.sessions.get(route.session as usize)?.as_deref()?.attached)
            .map(|attached| attached.connection)
            .collect()
    }

    /// Begins to bring a message whose body is not here to all who want it and can take it now:
    /// their connections, and whether there is a subscriber.
    pub(super) fn pass(
        &mut self,
        publication: &Publication<'_>,
        from: Option<u32>,
        body_bytes: usize,
        turn: &mut Turn<'_>,
    ) -> (Vec<ConnectionId>, bool) {
        let routes = self.routes_of(publication.topic);
        let mut chosen: Vec<&Route> = routes.direct.iter().collect();
        chosen.retain(|route| !(route.no_local && from == Some(route.session)));
        for group in &routes.shared {
            group.turn.fetch_add(1, Ordering::Relaxed);
            let attached = group.members.iter().find(|route| self.is_attached(route.session));
            chosen.extend(attached.or(group.members.first()));
        }
        let mut to = Vec::new();
        for route in &chosen {
            let manner = SessionOptions {
                qos: publication.qos.min(route.qos),
                retain: publication.retain && route.retain_as_published,
                ids: route.ids.clone(),
            };
            let mut passes = None;
            self.with_session(route.session, turn, |session, turn, desk| {
                let is_passed = session.pass(publication, &manner, body_bytes, turn, desk);
                passes = session.attached.filter(|_| is_passed);
                Outcome::Settled
            });
            to.extend(passes.map(|attached| attached.connection));
        }
        (to, !chosen.is_empty())
    }

    /// Counts copies of messages that passed.
    pub(super) fn note_forwarded(&mut self, copies: u64) {
        self.counts.forwarded += copies;
    }

    /// A QoS 2 message that was lost in transit may come again under its identifier.
    pub(super) fn forget_unreleased(&mut self, key: u32, packet_id: u16) {
        if let Some(Some(session)) = self.sessions.get_mut(key as usize) {
            session.unreleased.remove(packet_id);
        }
    }

    fn routes_of(&mut self, topic: &str) -> Arc<Routes> {
        if let Some(routes) = self.routes.get(topic) {
            return Arc::clone(routes);
        }
        if self.routes.len() >= ROUTES_KEPT {
            self.routes.clear();
        }
        let routes = Arc::new(self.trie.routes(topic));
        self.routes.insert(topic.into(), Arc::clone(&routes));
        routes
    }

    fn is_attached(&self, key: u32) -> bool {
        let session = self.sessions.get(key as usize).and_then(Option::as_deref);
        session.is_some_and(|session| session.attached.is_some())
    }

    fn deliver(&mut self, route: &Route, publication: &mut Publication<'_>, turn: &mut Turn<'_>) {
        let manner = SessionOptions {
            qos: publication.qos.min(route.qos),
            retain: publication.retain && route.retain_as_published,
            ids: route.ids.clone(),
        };
        self.with_session(route.session, turn, |session, turn, desk| {
            session.deliver(publication, manner, turn, desk)
        });
    }

    /// Runs `action` on a session and handles its outcome.
    fn with_session(
        &mut self,
        key: u32,
        turn: &mut Turn<'_>,
        action: impl FnOnce(&mut Session, &mut Turn<'_>, &mut Replies<'_>) -> Outcome,
    ) {
        let Some(Some(session)) = self.sessions.get_mut(key as usize) else { return };
        let mut desk = Replies {
            counts: &mut self.counts,
            scratch: &mut self.scratch,
            overload: self.rules.overload,
        };
        match action(session, turn, &mut desk) {
            Outcome::Settled => {}
            Outcome::Overloaded => self.overloaded.push(key),
            Outcome::ForShard(shard) => {
                if !std::mem::replace(&mut session.is_mailed, true) {
                    self.mail.post(shard, Mail::Pump(key), turn.out);
                }
            }
        }
    }

    /// Sends what waits for a session that another shard has put messages into.
    pub(super) fn pump(&mut self, key: u32, turn: &mut Turn<'_>) {
        if let Some(Some(session)) = self.sessions.get_mut(key as usize) {
            session.is_mailed = false;
        }
        self.with_session(key, turn, Session::pump);
        self.settle(turn);
    }

    /// The socket of a session's connection took everything.
    pub(super) fn drained(&mut self, key: u32, turn: &mut Turn<'_>) {
        self.with_session(key, turn, Session::drained);
        self.settle(turn);
    }

    /// The client acknowledged something.
    pub(super) fn acknowledged(&mut self, key: u32, ack: &Ack<'_>, turn: &mut Turn<'_>) {
        self.with_session(key, turn, |session, turn, desk| session.acknowledged(ack, turn, desk));
        self.settle(turn);
    }

    /// Continues a session after its CONNACK.
    pub(super) fn resume(&mut self, key: u32, turn: &mut Turn<'_>) {
        self.with_session(key, turn, Session::resume);
        self.settle(turn);
    }

    /// Adds a subscription; true if the session did not have it.
    pub(super) fn subscribe(&mut self, key: u32, filter: &Filter<'_>, qos: Qos, id: u32) -> bool {
        let Some(Some(session)) = self.sessions.get_mut(key as usize) else { return false };
        let options = Options { qos, ..filter.options };
        let is_new = self.trie.insert(filter.filter, key, options, id);
        if is_new {
            session.filters.push(filter.filter.into());
        }
        self.routes.clear();
        is_new
    }

    /// Takes a subscription away; false if there was none.
    pub(super) fn unsubscribe(&mut self, key: u32, filter: &str) -> bool {
        let Some(Some(session)) = self.sessions.get_mut(key as usize) else { return false };
        session.filters.retain(|known| &**known != filter);
        self.routes.clear();
        self.trie.remove(filter, key)
    }

    /// Sends the retained messages that match a new subscription (section 3.3.1.3).
    pub(super) fn send_retained(
        &mut self,
        key: u32,
        filter: &str,
        qos: Qos,
        id: u32,
        turn: &mut Turn<'_>,
    ) {
        let now = turn.now;
        let found: Vec<Arc<Message>> = if filter.contains(['+', '#']) {
            self.retained.retain(|_, message| message.expires > now);
            let matching = self.retained.iter().filter(|(name, _)| topic::matches(filter, name));
            matching.map(|(_, message)| Arc::clone(message)).collect()
        } else {
            let kept = self.retained.get(filter).filter(|message| message.expires > now);
            kept.cloned().into_iter().collect()
        };
        for message in found {
            let mut publication = Publication::of(&message, true);
            let qos = publication.qos.min(qos);
            let ids = if id == 0 { Box::default() } else { Box::from([id]) };
            let manner = SessionOptions { qos, retain: true, ids };
            self.with_session(key, turn, |session, turn, desk| {
                session.deliver(&mut publication, manner, turn, desk)
            });
        }
    }

    /// Adds the broker's counts to `report`.
    pub(super) fn add_to(&self, report: &mut ServerReport) {
        report.add(&self.census.report());
        report.forwarded += self.counts.forwarded;
        report.disconnects += self.counts.disconnects;
        report.queued += self.counts.queued;
        report.queued_bytes += self.counts.queued_bytes;
        for (cause, count) in &self.counts.dropped {
            *report.dropped.entry((*cause).to_owned()).or_default() += count;
        }
    }
}

/// Ends a connection from the server's side; MQTT 5 clients get a reason (section 3.14).
pub(super) fn say_goodbye(
    connection: ConnectionId,
    version: Version,
    reason: u8,
    turn: &mut Turn<'_>,
) {
    if version == Version::V5 {
        Disconnect::new(reason).encode(version, turn.out.stage(connection));
    }
    turn.out.close(connection);
}

fn store_will(will: &super::codec::Will<'_>) -> Box<StoredWill> {
    let mut properties = Vec::new();
    forwarded_properties(&will.properties, Nanos(0), &mut properties);
    Box::new(StoredWill {
        topic: will.topic.into(),
        properties: properties.into(),
        body: will.body.into(),
        qos: will.qos,
        retain: will.retain,
        delay_s: will.properties.number(Id::WillDelayInterval).unwrap_or(0),
        expiry_s: will.properties.number(Id::MessageExpiryInterval),
    })
}

/// Topics whose routes are remembered; more topics than this are looked up anew.
const ROUTES_KEPT: usize = 1 << 16;

const SESSION_TAKEN_OVER: u8 = 0x8E;
const QUOTA_EXCEEDED: u8 = 0x97;
