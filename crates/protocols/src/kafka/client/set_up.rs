//! The start of a session: the versions of the broker, the topic and its leaders, offsets of a
//! consumer, the number of an idempotent producer.

use weigh_model::Nanos;
use weigh_model::connection::{Emit, Fault, Outbox, Signal};
use weigh_model::protocol::Role;

use super::super::codec::answers::{self, Metadata, Versions};
use super::super::codec::frame::{
    Api, CREATE_TOPICS, FETCH, FIND_COORDINATOR, HEARTBEAT, INIT_PRODUCER_ID, JOIN_GROUP,
    LEAVE_GROUP, LIST_OFFSETS, METADATA, OFFSET_COMMIT, OFFSET_FETCH, PRODUCE, SYNC_GROUP,
};
use super::super::codec::requests;
use super::super::errors;
use super::{Awaited, Client, Stage};

impl Client {
    /// Sends a request whose answer is awaited, and goes to this stage.
    pub(super) fn request(
        &mut self,
        what: Awaited,
        stage: Stage,
        out: &mut Outbox,
        put: impl FnOnce(&Client, &mut Vec<u8>, i32),
    ) {
        let before = out.len();
        let number = self.number(what);
        self.stage = stage;
        put(self, out.buffer(), number);
        self.meter.wrote(self.phase(), out.len() - before, 0);
    }

    /// Sends a request of the set-up.
    pub(super) fn ask(&mut self, what: Awaited, out: &mut Outbox) {
        let stage = match what {
            Awaited::Versions => Stage::Versions,
            Awaited::Creation => Stage::Creation,
            Awaited::Offsets => Stage::Offsets,
            Awaited::ProducerId => Stage::ProducerId,
            _ => Stage::Metadata,
        };
        self.request(what, stage, out, |own, buffer, number| {
            let (plan, topic) = (&own.plan, own.plan.topic.as_bytes());
            match stage {
                Stage::Versions => requests::put_api_versions(buffer, number),
                Stage::Creation => {
                    let (partitions, replicas) = (plan.partitions, plan.replicas);
                    requests::put_create_topic(buffer, number, topic, partitions, replicas);
                }
                Stage::Offsets => {
                    requests::put_list_offsets(buffer, number, topic, &own.partitions());
                }
                Stage::ProducerId => requests::put_init_producer_id(buffer, number),
                _ => requests::put_metadata(buffer, number, topic),
            }
        });
    }

    /// Repeats a request of the set-up.
    pub(super) fn ask_again(&mut self, what: Awaited, out: &mut Outbox) -> Result<(), Fault> {
        self.ask(what, out);
        Ok(())
    }

    /// Waits before a request is repeated, since its error passes: a topic that was created a
    /// moment ago has no leader yet.
    pub(super) fn wait(&mut self, error: i16, now: Nanos) {
        self.state.passing = error;
        self.wake_at = now + RETRY_AFTER;
    }

    fn partitions(&self) -> Vec<i32> {
        match self.seat.role {
            Role::Producer => self.state.producing.partitions(),
            Role::Consumer => self.state.consuming.partitions(),
        }
    }

    /// Takes an answer of the set-up.
    pub(super) fn set_up(
        &mut self,
        what: Awaited,
        fields: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        match what {
            Awaited::Versions => self.versions(fields, out),
            Awaited::Creation => self.created(fields, now, out),
            Awaited::Metadata => self.informed(fields, now, out, emit),
            Awaited::Offsets => self.placed(fields, now, out, emit),
            _ => self.identified(fields, now, out, emit),
        }
    }

    /// True for a consumer that is to be a member of a group.
    fn is_grouped(&self) -> bool {
        self.seat.role == Role::Consumer && self.plan.group.is_some()
    }

    fn versions(&mut self, fields: &[u8], out: &mut Outbox) -> Result<(), Fault> {
        let (error, all) = answers::read_api_versions(fields)
            .map_err(|flaw| Fault::OtherProtocol(format!("{flaw} in its ApiVersions")))?;
        if error != errors::NONE {
            return Err(errors::refused(error, "ApiVersions"));
        }
        let creates = self.plan.creates && !self.plan.is_topic_ready();
        let needed: &[(Api, bool)] = &[
            (METADATA, true),
            (LIST_OFFSETS, true),
            (PRODUCE, self.seat.role == Role::Producer),
            (FETCH, self.seat.role == Role::Consumer),
            (CREATE_TOPICS, creates),
            (INIT_PRODUCER_ID, self.plan.acks.is_idempotent()),
        ];
        for (api, _) in needed.iter().filter(|(_, is_needed)| *is_needed) {
            check_version(*api, &all)?;
        }
        if self.is_grouped() {
            GROUP_APIS.iter().try_for_each(|api| check_version(*api, &all))?;
        }
        self.ask(if creates { Awaited::Creation } else { Awaited::Metadata }, out);
        Ok(())
    }

    fn created(&mut self, fields: &[u8], now: Nanos, out: &mut Outbox) -> Result<(), Fault> {
        let (error, words) = answers::read_create_topic(fields)?;
        match error {
            errors::NONE | errors::TOPIC_ALREADY_EXISTS => self.ask(Awaited::Metadata, out),
            error if errors::is_passing(error) => self.wait(error, now),
            error => {
                let about = match &*words {
                    "" => format!("creating the topic {}", self.plan.topic),
                    words => format!("creating the topic {}: {words}", self.plan.topic),
                };
                return Err(errors::refused(error, &about));
            }
        }
        Ok(())
    }

    /// Metadata: the partitions of this seat, as far as this broker leads them.
    fn informed(
        &mut self,
        fields: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let metadata = answers::read_metadata(fields)?;
        let all = metadata.partitions.iter();
        let error = all
            .map(|partition| match partition.leader {
                -1 if partition.error == errors::NONE => errors::LEADER_NOT_AVAILABLE,
                _ => partition.error,
            })
            .chain([metadata.error])
            .find(|error| *error != errors::NONE && *error != REPLICA_NOT_AVAILABLE);
        match error {
            Some(error) if errors::is_passing(error) => {
                self.wait(error, now);
                return Ok(());
            }
            Some(error) => {
                return Err(errors::refused(error, &format!("topic {}", self.plan.topic)));
            }
            None => {}
        }
        let broker = self.broker_of(&metadata)?;
        let led = metadata.partitions.iter().filter(|partition| partition.leader == broker);
        let led: Vec<i32> = led.map(|partition| partition.index).collect();
        let own = match self.is_grouped() {
            true if led.len() < self.plan.partitions_least() as usize => Vec::new(),
            true => led.clone(),
            false => self.plan.partitions_of(self.seat, &led),
        };
        if own.is_empty() {
            return Err(self.without_partition(&metadata, led.len()));
        }
        if let Some(first) = metadata.partitions.first() {
            emit(Signal::Granted("partitions", metadata.partitions.len() as u64));
            emit(Signal::Granted("replicas", first.replicas.into()));
        }
        match self.seat.role {
            Role::Producer => {
                self.state.producing.start(&own);
                // What another client saw of its partition says nothing about those of this one.
                let is_only = metadata.partitions.len() == 1;
                match is_only && self.plan.is_topic_ready() {
                    true => self.with_leader(out, emit),
                    false => self.ask(Awaited::Offsets, out),
                }
            }
            Role::Consumer if self.plan.group.is_some() => self.enter(broker, led, now, out),
            Role::Consumer => {
                let cursor = self.plan.take_cursor(self.seat.index);
                match self.state.consuming.start(&self.plan.topic, &own, cursor) {
                    true => self.ready(out, emit),
                    false => self.ask(Awaited::Offsets, out),
                }
            }
        }
        Ok(())
    }

    /// The number of this broker. A broker does not say which of several it is, so it is the one
    /// whose address the user typed.
    fn broker_of(&self, metadata: &Metadata) -> Result<i32, Fault> {
        match &*metadata.brokers {
            [only] => Ok(only.id),
            several => {
                let is_own = |host: &str, port: i32| {
                    let address = self.plan.address.as_ref();
                    address.is_some_and(|own| own.0 == host && i32::from(own.1) == port)
                };
                match several.iter().find(|broker| is_own(&broker.host, broker.port)) {
                    Some(own) => Ok(own.id),
                    None => Err(Fault::Refused { code: 0, reason: unknown(metadata) }),
                }
            }
        }
    }

    fn without_partition(&self, metadata: &Metadata, led: usize) -> Fault {
        let (topic, all) = (&self.plan.topic, metadata.partitions.len());
        let least = self.plan.partitions_least();
        let reason = if all < least as usize {
            format!(
                "the topic {topic} has {all} partitions, and this load needs {least}: type another \
                 kafka.topic, or add partitions with kafka-topics.sh --alter"
            )
        } else {
            format!(
                "this broker leads {led} of the {all} partitions of the topic {topic}, and none of \
                 them is for client {}: type the URL of their leader (kafka-topics.sh --describe)",
                self.seat.index
            )
        };
        Fault::Refused { code: errors::NOT_LEADER as u16, reason }
    }

    /// ListOffsets: where a consumer begins, and for a producer a sign that its leader is one.
    fn placed(
        &mut self,
        fields: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let offsets = answers::read_list_offsets(fields)?;
        if let Some(failed) = offsets.iter().find(|own| own.error != errors::NONE) {
            if errors::is_passing(failed.error) {
                self.wait(failed.error, now);
                return Ok(());
            }
            let about = format!("partition {} of {}", failed.partition, self.plan.topic);
            return Err(errors::refused(failed.error, &about));
        }
        if offsets.len() != self.partitions().len() {
            let text =
                format!("offsets of {} partitions instead of those asked for", offsets.len());
            return Err(Fault::Malformed(text));
        }
        self.plan.note_topic_ready();
        match self.seat.role {
            Role::Producer => self.with_leader(out, emit),
            Role::Consumer if self.plan.group.is_some() => {
                for own in &offsets {
                    self.state.consuming.place_new(own.partition, own.offset);
                }
                self.begun(now, out, emit);
            }
            Role::Consumer => {
                for own in &offsets {
                    self.state.consuming.place(own.partition, own.offset);
                }
                self.ready(out, emit);
            }
        }
        Ok(())
    }

    fn with_leader(&mut self, out: &mut Outbox, emit: Emit<'_>) {
        match self.plan.acks.is_idempotent() {
            true => self.ask(Awaited::ProducerId, out),
            false => self.ready(out, emit),
        }
    }

    fn identified(
        &mut self,
        fields: &[u8],
        now: Nanos,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let (error, id, epoch) = answers::read_init_producer_id(fields)?;
        match error {
            errors::NONE => {
                self.state.producing.identify(id, epoch);
                self.ready(out, emit);
                Ok(())
            }
            error if errors::is_passing(error) => {
                self.wait(error, now);
                Ok(())
            }
            error => Err(errors::refused(error, "InitProducerId")),
        }
    }

    fn ready(&mut self, out: &mut Outbox, emit: Emit<'_>) {
        self.stage = Stage::Ready;
        emit(Signal::Ready);
        if self.seat.role == Role::Consumer {
            self.fetch(out);
        }
    }
}

fn check_version(api: Api, all: &[Versions]) -> Result<(), Fault> {
    let Api { key, name, version, .. } = api;
    let since = if GROUP_APIS.contains(&api) { "2.2" } else { "1.0" };
    let reason = match all.iter().find(|own| own.key == key) {
        Some(own) if (own.lowest..=own.highest).contains(&version) => return Ok(()),
        Some(own) => format!(
            "the broker supports {name} in versions {} to {}, and version {version} is needed: \
             use Kafka {since} to 4.x",
            own.lowest, own.highest
        ),
        None => format!("the broker does not support {name}: use Kafka {since} to 4.x"),
    };
    Err(Fault::Refused { code: errors::UNSUPPORTED_VERSION as u16, reason })
}

fn unknown(metadata: &Metadata) -> String {
    let shown = metadata.brokers.iter().take(SHOWN_MAX);
    let listed: Vec<String> =
        shown.map(|own| format!("kafka://{}:{}", own.host, own.port)).collect();
    format!(
        "the cluster has {} brokers, and none of them calls itself by the address of the target: \
         type one of {}",
        metadata.brokers.len(),
        listed.join(", ")
    )
}

/// What a member of a group needs.
const GROUP_APIS: [Api; 7] =
    [FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP, HEARTBEAT, OFFSET_FETCH, OFFSET_COMMIT, LEAVE_GROUP];

/// `retry.backoff.ms` of Kafka's clients.
const RETRY_AFTER: Nanos = Nanos::from_millis(100);

/// A replica is down and the leader is there: the partition can be used.
const REPLICA_NOT_AVAILABLE: i16 = 9;

const SHOWN_MAX: usize = 5;
