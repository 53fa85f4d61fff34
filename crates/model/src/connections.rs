//! Bytes of single connections of a trial on the wire.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::Role;

/// The connections of a trial with packet capture, in the order in which they opened: at most the
/// first hundred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// The trial's id.
    pub trial: String,
    /// One row per connection.
    pub rows: Vec<ConnectionRow>,
    /// Number of connections without a row.
    pub untold: u64,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRow {
    /// The generator's end, `ADDRESS:PORT`.
    pub local: String,
    /// The target's end.
    pub remote: String,
    /// `publishers` for the hop to the target, `subscribers` for the hop from a broker to
    /// subscribers; absent if no codec identified the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hop: Option<String>,
    /// The index of its publisher or subscriber.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<u32>,
    /// Figures by the names of the metrics `wire.*` without `wire.`, in packets and bytes; zeros
    /// are left out.
    pub figures: BTreeMap<String, u64>,
}

/// The name of the hop that connections of this role make up.
pub fn hop_name(role: Role) -> &'static str {
    match role {
        Role::Producer => "publishers",
        Role::Consumer => "subscribers",
    }
}
