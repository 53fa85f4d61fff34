//! Settings of the consumer group of a trial, and what members leave for their next connections.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use weigh_model::protocol::Invalid;
use weigh_model::trial::{Settings, Trial};
use weigh_model::units::Nanos;
use weigh_model::{Load, Pattern, Topology};

use super::codec::requests::FetchFrom;

/// The group of all consumers of a trial.
#[derive(Debug)]
pub(super) struct GroupPlan {
    pub(super) name: String,
    /// Members that it has when it is complete.
    pub(super) members: u32,
    /// How long a member may be silent.
    pub(super) session: Nanos,
    pub(super) heartbeat: Nanos,
    /// Interval of commits; 0 for none before the end.
    pub(super) commit: Nanos,
    /// What connections that have ended left, by seat.
    left: Mutex<HashMap<u32, Left>>,
}

/// What a member needs on its next connection to be the same member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// Id that the coordinator gave it.
    pub(super) id: Vec<u8>,
    pub(super) generation: i32,
    /// Where it reads in its partitions; `None` if the assignment is not known.
    pub(super) places: Option<Vec<FetchFrom>>,
    /// True once it was ready: from then on it continues where the group has read to.
    pub(super) has_stood: bool,
}

impl GroupPlan {
    /// The group of a trial; `None` if partitions are assigned without one.
    ///
    /// # Errors
    /// A load that a group cannot carry.
    pub(super) fn read(trial: &Trial) -> Result<Option<GroupPlan>, Invalid> {
        let (settings, load) = (&trial.settings, &trial.load);
        if settings.text("group").is_empty() || !load.delivers() {
            return Ok(None);
        }
        check_topology(load)?;
        check_times(settings)?;
        let tag = format!("{:04x}", trial.tag());
        let name = settings.text("group").replace("{trial}", &tag).replace("%t", &tag);
        if name.len() > NAME_BYTES_MAX {
            return Err(Invalid::new(
                "kafka.group",
                format!("its {} bytes are too many", name.len()),
                format!("type at most {NAME_BYTES_MAX}"),
            ));
        }
        Ok(Some(GroupPlan {
            name,
            members: load.subscribers.max(1),
            session: settings.duration("session_timeout"),
            heartbeat: settings.duration("heartbeat"),
            commit: settings.duration("commit"),
            left: Mutex::default(),
        }))
    }

    /// Takes what the last connection of a seat left.
    pub(super) fn take(&self, seat: u32) -> Option<Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).remove(&seat)
    }

    /// Leaves this for the next connection of a seat.
    pub(super) fn leave(&self, seat: u32, left: Left) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).insert(seat, left);
    }
}

/// Every message goes to one member, so that the load must share them.
fn check_topology(load: &Load) -> Result<(), Invalid> {
    let consumers = load.subscribers;
    if consumers > MEMBERS_MAX {
        return Err(Invalid::new(
            "load.subscribers",
            format!("a group of {consumers} consumers would not be complete before the load"),
            format!("type at most {MEMBERS_MAX} (-y)"),
        ));
    }
    match load.topology {
        Topology::Shared => Ok(()),
        Topology::FanIn if consumers <= 1 && load.pattern == Pattern::Deliver => Ok(()),
        topology => Err(Invalid::new(
            "kafka.group",
            match topology {
                Topology::Pairs => "in pairs each consumer reads what its producer sends",
                _ => "consumers of a group share messages, and here each is to get all",
            },
            "type --topology shared, or leave kafka.group empty",
        )),
    }
}

/// A heartbeat waits behind a fetch, and both must be over before the session is.
fn check_times(settings: &Settings) -> Result<(), Invalid> {
    let (session, heartbeat) =
        (settings.duration("session_timeout"), settings.duration("heartbeat"));
    if heartbeat < HEARTBEAT_MIN {
        return Err(Invalid::new(
            "kafka.heartbeat",
            format!("consumers would send heartbeats more often than each {HEARTBEAT_MIN}"),
            format!("type at least {HEARTBEAT_MIN}"),
        ));
    }
    let silent = heartbeat + settings.duration("fetch_wait");
    match silent < session {
        true => Ok(()),
        false => Err(Invalid::new(
            "kafka.session_timeout",
            format!(
                "a heartbeat waits behind a fetch, so that a consumer may be silent for {silent}"
            ),
            "type more than kafka.heartbeat and kafka.fetch_wait together",
        )),
    }
}

/// Time for a group to be complete, from the answer to Metadata on. A broker waits for 3 s for more
/// members, and longer if some come (`group.initial.rebalance.delay.ms`).
pub(super) const GROUP_WITHIN: Nanos = Nanos::from_secs(20);

/// Connections of a shard that the engine opens at once: a member is ready with all others only.
const MEMBERS_MAX: u32 = 128;

const HEARTBEAT_MIN: Nanos = Nanos::from_millis(10);

/// A STRING has a length of 16 bits; the other fields of a commit need room as well.
const NAME_BYTES_MAX: usize = 1000;
