//! What every trial of push to many must keep to.

use weigh_model::Topology;
use weigh_model::mark::MARK_BYTES;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Trial;

/// Refuses what no protocol of push can do.
pub(crate) fn check(trial: &Trial, protocol: &str) -> Result<(), Invalid> {
    let load = &trial.load;
    if load.topology == Topology::Shared {
        return Err(Invalid::new(
            "load.topology",
            format!("{protocol} does not support shared subscriptions"),
            "type --topology fan-in, fan-out or pairs",
        ));
    }
    let is_small = load.size.is_some_and(|size| size.0 < MARK_BYTES as u64);
    let share_channel = load.connections > 1 && load.topology != Topology::Pairs;
    if load.delivers() && share_channel && is_small {
        return Err(Invalid::new(
            "load.size",
            "bodies without room for a mark cannot be distinguished where producers share a path",
            format!("type at least {MARK_BYTES}B, one producer (-c 1), or --topology pairs"),
        ));
    }
    let key = format!("{protocol}.{}", super::slow::QUEUE.key);
    let queue = trial.settings.integer(super::slow::QUEUE.key);
    match load.size.filter(|size| load.delivers() && size.0 > queue && queue > 0) {
        Some(size) => Err(Invalid::new(
            key,
            format!("a message of {size} never fits into {queue} bytes that may wait"),
            "raise it, or type a smaller -s",
        )),
        None => Ok(()),
    }
}

/// The producer in the topic of a message in pairs: its index in decimal digits.
pub(crate) fn producer_of(topic: &[u8]) -> Option<u32> {
    std::str::from_utf8(topic).ok()?.parse().ok()
}

/// The channel that `place` names at `path`: 0, or one more than the index below it.
pub(crate) fn channel_below(place: &str, path: &str) -> Option<u32> {
    match place.strip_prefix(path)? {
        "" => Some(0),
        below => {
            let digits = below.strip_prefix('/')?;
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            let index: u32 = digits.parse().ok().filter(|_| is_number)?;
            (index < PRODUCERS_MAX).then_some(index + 1)
        }
    }
}

/// A mark has 24 bits for the index of its producer.
const PRODUCERS_MAX: u32 = 1 << 24;
