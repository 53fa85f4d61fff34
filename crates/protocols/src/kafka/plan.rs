//! Common settings of all clients of a trial, read once from its plan.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use weigh_model::mark::MARK_BYTES;
use weigh_model::protocol::{Invalid, Role, Seat};
use weigh_model::trial::{Settings, Trial};
use weigh_model::units::Nanos;
use weigh_model::{Pattern, Topology};

use super::codec::requests::FetchLimits;
use super::group_plan::GroupPlan;
use super::settings::Acks;

/// Everything about clients that does not differ between connections.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) acks: Acks,
    pub(super) linger: Nanos,
    pub(super) batch_bytes: usize,
    pub(super) in_flight_max: u32,
    pub(super) topic: String,
    pub(super) creates: bool,
    /// Partitions of a topic that is created.
    pub(super) partitions: i32,
    pub(super) replicas: i16,
    pub(super) takes_turns: bool,
    pub(super) fetch: FetchLimits,
    /// Host and port as the user wrote them, by which a broker of several is recognised.
    pub(super) address: Option<(String, u16)>,
    /// The group of the consumers; `None` if they are assigned their partitions.
    pub(super) group: Option<GroupPlan>,
    topology: Topology,
    pairs: i32,
    consumers: i32,
    /// A client of this process has seen that the topic is there, and that the partitions of this
    /// client have leaders.
    is_topic_ready: AtomicBool,
    /// Next offsets of consumers whose connections have ended, by seat.
    cursors: Mutex<HashMap<u32, Vec<i64>>>,
}

impl Plan {
    /// # Errors
    /// A trial that Kafka cannot do.
    pub(super) fn read(trial: &Trial) -> Result<Plan, Invalid> {
        let (settings, load) = (&trial.settings, &trial.load);
        let partitions = check(trial)?;
        let tag = format!("{:04x}", trial.tag());
        let whole = |key: &str| settings.integer(key).max(1).min(i32::MAX as u64) as i32;
        Ok(Plan {
            acks: Acks::read(settings),
            linger: settings.duration("linger"),
            batch_bytes: settings.integer("batch_size").max(1) as usize,
            in_flight_max: whole("max_in_flight") as u32,
            topic: settings.text("topic").replace("{trial}", &tag).replace("%t", &tag),
            creates: settings.flag("create"),
            partitions,
            replicas: whole("replicas").min(i32::from(i16::MAX)) as i16,
            takes_turns: settings.text("partitioner") == "round-robin",
            fetch: FetchLimits {
                wait_ms: (settings.duration("fetch_wait").0.div_ceil(1_000_000))
                    .min(i32::MAX as u64) as i32,
                bytes_min: whole("fetch_min"),
                bytes_max: whole("fetch_bytes"),
                partition_bytes_max: whole("fetch_partition_bytes"),
            },
            address: trial.endpoint.as_ref().map(|own| (own.host.clone(), own.port)),
            group: GroupPlan::read(trial)?,
            topology: if load.delivers() { load.topology } else { Topology::FanIn },
            pairs: load.connections as i32,
            consumers: load.subscribers.max(1) as i32,
            is_topic_ready: AtomicBool::new(false),
            cursors: Mutex::default(),
        })
    }

    /// The partitions of a seat among those of the topic that the broker leads; the first one is
    /// where a producer begins.
    pub(super) fn partitions_of(&self, seat: Seat, led: &[i32]) -> Vec<i32> {
        let index = seat.index as usize;
        match (seat.role, self.topology) {
            (Role::Producer, Topology::Pairs) | (Role::Consumer, Topology::Pairs) => {
                led.iter().copied().filter(|own| *own as usize == index).collect()
            }
            (Role::Producer, _) => {
                let turns = if self.takes_turns { led.len() } else { led.len().min(1) };
                (0..turns).map(|turn| led[(index + turn) % led.len()]).collect()
            }
            (Role::Consumer, Topology::Shared) => {
                led.iter().copied().filter(|own| own % self.consumers == index as i32).collect()
            }
            (Role::Consumer, _) => led.to_vec(),
        }
    }

    /// Partitions that the topic must have for every seat to have one.
    pub(super) fn partitions_least(&self) -> i32 {
        match self.topology {
            Topology::Pairs => self.pairs,
            Topology::Shared => self.consumers,
            Topology::FanIn | Topology::FanOut => 1,
        }
    }

    pub(super) fn is_topic_ready(&self) -> bool {
        self.is_topic_ready.load(Ordering::Relaxed)
    }

    pub(super) fn note_topic_ready(&self) {
        self.is_topic_ready.store(true, Ordering::Relaxed);
    }

    /// Takes the offsets that the last connection of a seat left.
    pub(super) fn take_cursor(&self, seat: u32) -> Option<Vec<i64>> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner).remove(&seat)
    }

    /// Leaves offsets for the next connection of a seat.
    pub(super) fn leave_cursor(&self, seat: u32, offsets: Vec<i64>) {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner).insert(seat, offsets);
    }
}

/// Refuses what cannot work; returns the partitions of a topic that is created.
fn check(trial: &Trial) -> Result<i32, Invalid> {
    let (settings, load) = (&trial.settings, &trial.load);
    check_topic(settings)?;
    let acks = Acks::read(settings);
    let in_flight = settings.integer("max_in_flight");
    if acks.is_idempotent() && in_flight > IDEMPOTENT_IN_FLIGHT_MAX {
        return Err(Invalid::new(
            "kafka.max_in_flight",
            format!(
                "a broker remembers {IDEMPOTENT_IN_FLIGHT_MAX} batches of an idempotent producer"
            ),
            format!("type at most {IDEMPOTENT_IN_FLIGHT_MAX}, or kafka.acks=all"),
        ));
    }
    let is_in_pairs = load.delivers() && load.topology == Topology::Pairs;
    let is_shared = load.delivers() && load.topology == Topology::Shared;
    let least = match (is_in_pairs, is_shared) {
        (true, _) => load.connections,
        (_, true) => load.subscribers,
        _ => 1,
    };
    let given = settings.integer("partitions") as u32;
    let partitions = if given == 0 { least } else { given };
    if partitions < least || least > PARTITIONS_MAX {
        let (who, many) = if is_in_pairs { ("pair", "pairs") } else { ("consumer", "consumers") };
        return Err(Invalid::new(
            "kafka.partitions",
            format!("each {who} reads a partition of its own, and there are {least} {many}"),
            match least > PARTITIONS_MAX {
                true => format!("type at most {PARTITIONS_MAX} of them"),
                false => format!("type at least {least}, or leave it at 0"),
            },
        ));
    }
    if is_in_pairs && settings.text("partitioner") == "round-robin" {
        return Err(Invalid::new(
            "kafka.partitioner",
            "in pairs each producer has one partition",
            "leave it at client, or type --topology fan-in",
        ));
    }
    if load.delivers()
        && load.connections > 1
        && !is_in_pairs
        && load.size.is_some_and(|size| size.0 < MARK_BYTES as u64)
    {
        return Err(Invalid::new(
            "load.size",
            "bodies without room for a mark cannot be distinguished where producers share a topic",
            format!("type at least {MARK_BYTES}B, one producer (-c 1), or --topology pairs"),
        ));
    }
    let fetch_wait = settings.duration("fetch_wait");
    if fetch_wait.0 == 0 && load.pattern == Pattern::Deliver {
        return Err(Invalid::new(
            "kafka.fetch_wait",
            "without a wait consumers would ask without a pause",
            "type at least 1ms",
        ));
    }
    Ok(partitions as i32)
}

/// Characters and length of a topic's name (`org.apache.kafka.common.internals.Topic`).
fn check_topic(settings: &Settings) -> Result<(), Invalid> {
    let topic = settings.text("topic").replace("{trial}", "0000").replace("%t", "0000");
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_name = !topic.is_empty()
        && topic.len() <= TOPIC_BYTES_MAX
        && !matches!(&*topic, "." | "..")
        && topic.chars().all(is_legal);
    match is_name {
        true => Ok(()),
        false => Err(Invalid::new(
            "kafka.topic",
            format!("{topic:?} cannot name a topic"),
            "type up to 249 letters, digits, '.', '_' and '-', and {trial}",
        )),
    }
}

/// Batches whose numbers a broker remembers for each producer
/// (`ProducerStateEntry.NUM_BATCHES_TO_RETAIN`).
const IDEMPOTENT_IN_FLIGHT_MAX: u64 = 5;

/// `Topic.MAX_NAME_LENGTH`.
const TOPIC_BYTES_MAX: usize = 249;

const PARTITIONS_MAX: u32 = 10_000;
