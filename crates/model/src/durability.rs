//! What a confirmation means on the server: what happens to a confirmed message if the server's
//! process, its machine or its disk is lost. The guarantee says how often a message may arrive;
//! this says where it is when its sender gets the confirmation.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{Nanos, parse_duration};

/// Place of a message when the server confirms it. Only figures of equal durability are compared
/// (rule L21), unless durability is the one thing in which two cases differ.
///
/// | value | a confirmed message survives |
/// |---|---|
/// | `none` | nothing: no message is confirmed |
/// | `memory` | nothing: it is lost if the server's process ends, or it was discarded |
/// | `page-cache` | the end of the process, not a power cut: write(2) has returned |
/// | `fsync=T` | a power cut, except for messages of the last T: synced every T |
/// | `fsync` | a power cut: fdatasync(2) or fsync(2) returned before the confirmation |
/// | `replicated=N` | the loss of N - 1 servers; what each of the N does with it is not said |
/// | `unknown` | unknown: it is not stated anywhere |
///
/// Sources: write(2) ("A successful return from write() does not make any guarantee that data has
/// been committed to disk") and fsync(2) of the Linux manual pages.
///
/// # Examples
///
/// ```
/// use weigh_model::Durability;
///
/// let each: Durability = "fsync".parse()?;
/// let every: Durability = "fsync=100ms".parse()?;
/// assert!(Durability::Memory < Durability::PageCache && every < each);
/// assert_eq!(every.to_string(), "fsync=100ms");
/// assert_eq!(Durability::Unknown.is_at_least(each), None);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// It is not known.
    Unknown,
    /// No message is confirmed.
    Nothing,
    /// In the memory of the server's process, or already discarded.
    Memory,
    /// Written to a file and not synced: in the memory of the kernel.
    PageCache,
    /// Written to a file that is synced at this interval.
    SyncedEvery(Nanos),
    /// Written to a file and synced, alone or together with other messages.
    Synced,
    /// Taken by this number of servers, 2 or more.
    Replicated(u32),
}

impl Durability {
    /// Returns whether a confirmed message survives at least what it survives with `other`; `None`
    /// if that is unknown: for `unknown`, and between replication and a synced file, which survive
    /// different losses.
    pub fn is_at_least(self, other: Durability) -> Option<bool> {
        let is_copy = |own: Durability| matches!(own, Durability::Replicated(_));
        match (self, other) {
            (Durability::Unknown, _) | (_, Durability::Unknown) => None,
            _ if is_copy(self) != is_copy(other) => {
                let file = if is_copy(self) { other } else { self };
                let is_weaker = matches!(file, Durability::Nothing | Durability::Memory);
                is_weaker.then_some(is_copy(self))
            }
            _ => Some(self >= other),
        }
    }

    /// True if it is known.
    pub fn is_known(self) -> bool {
        self != Durability::Unknown
    }

    /// True if a confirmed message is in more than the memory of one process.
    pub fn is_more_than_memory(self) -> bool {
        self > Durability::Memory
    }

    /// Words for a sentence or the title of a table: `written, not synced`.
    pub fn words(self) -> String {
        match self {
            Durability::Unknown => "durability unknown".to_owned(),
            Durability::Nothing => "not confirmed".to_owned(),
            Durability::Memory => "memory".to_owned(),
            Durability::PageCache => "page cache".to_owned(),
            Durability::SyncedEvery(time) => format!("fsync every {time}"),
            Durability::Synced => "fsync of each".to_owned(),
            Durability::Replicated(number) => format!("replicated to {number}"),
        }
    }

    /// What a confirmed message survives, as a sentence without its end.
    pub fn meaning(self) -> &'static str {
        match self {
            Durability::Unknown => "what a confirmation means is unknown",
            Durability::Nothing => "no message is confirmed",
            Durability::Memory => "a confirmed message is lost if the server's process ends",
            Durability::PageCache => {
                "a confirmed message survives the end of the process, not a power cut"
            }
            Durability::SyncedEvery(_) => {
                "a confirmed message survives a power cut if it is older than the interval"
            }
            Durability::Synced => "a confirmed message survives a power cut",
            Durability::Replicated(_) => {
                "a confirmed message survives the loss of all these servers but one"
            }
        }
    }

    /// Order of the kinds, from the weakest to the strongest.
    fn rank(self) -> u8 {
        match self {
            Durability::Unknown => 0,
            Durability::Nothing => 1,
            Durability::Memory => 2,
            Durability::PageCache => 3,
            Durability::SyncedEvery(_) => 4,
            Durability::Synced => 5,
            Durability::Replicated(_) => 6,
        }
    }
}

/// Order in lists: `unknown` first, then by what is survived. A shorter interval is the stronger
/// one. Whether one durability is sufficient for another is [`Durability::is_at_least`].
impl Ord for Durability {
    fn cmp(&self, other: &Durability) -> Ordering {
        match (self, other) {
            (Durability::SyncedEvery(own), Durability::SyncedEvery(other)) => other.cmp(own),
            (Durability::Replicated(own), Durability::Replicated(other)) => own.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Durability {
    fn partial_cmp(&self, other: &Durability) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Durability::Unknown => f.write_str("unknown"),
            Durability::Nothing => f.write_str("none"),
            Durability::Memory => f.write_str("memory"),
            Durability::PageCache => f.write_str("page-cache"),
            Durability::SyncedEvery(time) => write!(f, "fsync={}", time.typed()),
            Durability::Synced => f.write_str("fsync"),
            Durability::Replicated(number) => write!(f, "replicated={number}"),
        }
    }
}

impl FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Durability, String> {
        let (name, argument) = match text.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        match (name, argument) {
            ("unknown", None) => Ok(Durability::Unknown),
            ("none", None) => Ok(Durability::Nothing),
            ("memory", None) => Ok(Durability::Memory),
            ("page-cache", None) => Ok(Durability::PageCache),
            ("fsync", None) => Ok(Durability::Synced),
            ("fsync", Some(time)) => match parse_duration(time)? {
                Nanos(0) => Err("an interval of 0: type fsync for a sync of each".to_owned()),
                time => Ok(Durability::SyncedEvery(time)),
            },
            ("replicated", Some(number)) => {
                let read = number.parse().ok().filter(|number| *number >= 2);
                let wrong = || format!("{number:?} is not a number of servers: type replicated=3");
                read.map(Durability::Replicated).ok_or_else(wrong)
            }
            _ => Err(format!(
                "unknown durability {text:?}: type memory, page-cache, fsync, fsync=100ms, \
                 replicated=3, none or unknown"
            )),
        }
    }
}

impl Serialize for Durability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Durability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Durability, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Values as they are written, for messages and schemas.
pub const DURABILITY_WORDS: &str =
    "memory, page-cache, fsync, fsync=100ms, replicated=3, none, unknown";

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [&str; 9] = [
        "unknown",
        "none",
        "memory",
        "page-cache",
        "fsync=1s",
        "fsync=100ms",
        "fsync",
        "replicated=2",
        "replicated=3",
    ];

    fn read(text: &str) -> Durability {
        text.parse().unwrap()
    }

    #[test]
    fn every_value_is_written_as_it_is_read_and_they_are_in_order() {
        let all = WORDS.map(read);
        for (own, word) in all.iter().zip(WORDS) {
            assert_eq!(own.to_string(), word);
            assert_eq!(serde_json::to_value(own).unwrap(), word);
            assert_eq!(serde_json::from_value::<Durability>(word.into()).unwrap(), *own);
        }
        assert!(all.is_sorted_by(|left, right| left < right));
        assert_eq!(read("fsync=120s"), Durability::SyncedEvery(Nanos::from_secs(120)));
    }

    #[test]
    fn invalid_values_name_what_to_type() {
        for text in ["", "disk", "fsync=0s", "fsync=", "replicated", "replicated=1", "memory=2"] {
            let error = text.parse::<Durability>().unwrap_err();
            assert!(error.contains("type "), "{text}: {error}");
        }
    }

    #[test]
    fn what_survives_more_is_sufficient_and_the_unknown_never_is() {
        assert_eq!(read("fsync").is_at_least(read("page-cache")), Some(true));
        assert_eq!(read("fsync=1s").is_at_least(read("fsync=100ms")), Some(false));
        assert_eq!(read("replicated=3").is_at_least(read("replicated=2")), Some(true));
        assert_eq!(read("replicated=3").is_at_least(read("fsync")), None);
        assert_eq!(read("fsync").is_at_least(read("replicated=3")), None);
        assert_eq!(read("replicated=2").is_at_least(read("memory")), Some(true));
        assert_eq!(read("memory").is_at_least(read("replicated=2")), Some(false));
        for word in WORDS {
            assert_eq!(read(word).is_at_least(Durability::Unknown), None);
            assert_eq!(Durability::Unknown.is_at_least(read(word)), None);
        }
    }

    #[test]
    fn more_than_memory_begins_with_the_page_cache() {
        let more = WORDS.map(|word| read(word).is_more_than_memory());
        assert_eq!(more, [false, false, false, true, true, true, true, true, true]);
    }
}
