//! Clients that join in groups: N connect and begin, and a while later the next N.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::{Nanos, parse_duration};

/// Pace at which clients join a load: `100 every 500ms`.
///
/// # Examples
///
/// ```
/// use weigh_model::{Join, Nanos};
///
/// let join: Join = "100 every 500ms".parse()?;
/// assert_eq!(join.last_turn(250), Nanos::from_secs(1));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join {
    /// Clients of a group; at least 1.
    pub clients: u32,
    /// From one group to the next; longer than 0.
    pub every: Nanos,
}

impl Join {
    /// Returns the time at which the client of this index joins, counted from the start of the
    /// load: the first group at once.
    pub fn turn(self, index: u32) -> Nanos {
        Nanos(self.every.0.saturating_mul(u64::from(index / self.clients.max(1))))
    }

    /// Returns the time at which the last of this number of clients joins.
    pub fn last_turn(self, clients: u32) -> Nanos {
        self.turn(clients.saturating_sub(1))
    }
}

impl fmt::Display for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} every {}", self.clients, self.every.recorded())
    }
}

impl FromStr for Join {
    type Err = String;

    fn from_str(text: &str) -> Result<Join, String> {
        let wrong = || format!("cannot read {text:?} as groups of clients: type 100 every 500ms");
        let (clients, every) = text.split_once(" every ").ok_or_else(wrong)?;
        let clients = clients.trim().parse().map_err(|_| wrong())?;
        let every = parse_duration(every.trim())?;
        if clients == 0 || every.0 == 0 {
            return Err(wrong());
        }
        Ok(Join { clients, every })
    }
}

impl Serialize for Join {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Join {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Join, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,500 clients by 100 each 500 ms: the first at once, the last after 14 pauses.
    #[test]
    fn the_first_group_comes_at_once_and_each_other_after_a_pause() {
        let join: Join = "100 every 500ms".parse().unwrap();
        assert_eq!((join.turn(0), join.turn(99)), (Nanos(0), Nanos(0)));
        assert_eq!((join.turn(100), join.turn(250)), (join.every, Nanos::from_secs(1)));
        assert_eq!(join.last_turn(1_500), Nanos::from_secs(7));
        assert_eq!(join.to_string().parse(), Ok(join));
    }

    #[test]
    fn what_is_no_way_to_join_is_told_one() {
        for text in ["100", "0 every 500ms", "100 every 0s", "every 1s", "x every 1s"] {
            let said = text.parse::<Join>().unwrap_err();
            assert!(said.contains("type 100 every 500ms"), "{said}");
        }
        assert!("100 every soon".parse::<Join>().is_err());
    }
}
