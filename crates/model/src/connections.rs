//! What single connections of a trial cost on the wire, for whoever wants more than sums.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::Role;

/// The connections of a trial whose wire was listened on, in the order in which they opened: at
/// most the first hundred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// The trial's id.
    pub trial: String,
    /// Them.
    pub rows: Vec<ConnectionRow>,
    /// How many more there were.
    pub untold: u64,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRow {
    /// The generator's end, `ADDRESS:PORT`.
    pub local: String,
    /// The target's end.
    pub remote: String,
    /// `publishers` for the hop to the target, `subscribers` for the hop from a broker on; absent
    /// where no codec said whose connection it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<String>,
    /// The index of its publisher or subscriber.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<u32>,
    /// Its figures by the names of the metrics `wire.*` without `wire.`, in packets and bytes;
    /// those that are zero are absent.
    pub figures: BTreeMap<String, u64>,
}

/// The name of the hop that connections of this role make up.
pub fn hop_name(role: Role) -> &'static str {
    match role {
        Role::Producer => "publishers",
        Role::Consumer => "subscribers",
    }
}
