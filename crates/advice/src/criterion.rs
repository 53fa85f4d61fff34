//! What can matter most.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::nearest::nearest;

/// A figure by which options are ordered. Less is better for all of them.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// Cores of the server that are in use.
    ServerCpu,
    /// Bytes that a device sends and receives in 30 days, from IP up.
    Bytes,
    /// Joules that a device needs each day above its sleep.
    Energy,
    /// Time until a message is confirmed, or delivered where nothing confirms it: the 99th
    /// percentile, seconds.
    Latency,
    /// Memory of the server, bytes.
    Memory,
}

impl Criterion {
    /// All of them, in the order of tables.
    pub const ALL: [Criterion; 5] = [
        Criterion::ServerCpu,
        Criterion::Memory,
        Criterion::Bytes,
        Criterion::Energy,
        Criterion::Latency,
    ];

    /// Its name in a situation: `server-cpu`.
    pub fn name(self) -> &'static str {
        match self {
            Criterion::ServerCpu => "server-cpu",
            Criterion::Bytes => "bytes",
            Criterion::Energy => "energy",
            Criterion::Latency => "latency",
            Criterion::Memory => "memory",
        }
    }

    /// Its name under a picture, with the unit.
    pub fn heading(self) -> &'static str {
        match self {
            Criterion::ServerCpu => "server CPU",
            Criterion::Bytes => "data of a device in 30 days",
            Criterion::Energy => "energy a day",
            Criterion::Latency => "p99",
            Criterion::Memory => "server memory",
        }
    }

    /// Columns of a table: the heading, and what a value is multiplied by there.
    pub fn columns(self) -> &'static [(&'static str, f64)] {
        match self {
            Criterion::ServerCpu => &[("server CPU", 1.0)],
            Criterion::Bytes => &[("data/device/day", 1.0 / 30.0), ("in 30 days", 1.0)],
            Criterion::Energy => &[("energy a day", 1.0)],
            Criterion::Latency => &[("p99", 1.0)],
            Criterion::Memory => &[("server memory", 1.0)],
        }
    }

    /// Words behind "costs less".
    pub fn words(self) -> &'static str {
        match self {
            Criterion::ServerCpu => "of the server's processor",
            Criterion::Bytes => "bytes",
            Criterion::Energy => "energy",
            Criterion::Latency => "time (p99)",
            Criterion::Memory => "of the server's memory",
        }
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Criterion {
    type Err = String;

    fn from_str(text: &str) -> Result<Criterion, String> {
        let names = || Criterion::ALL.iter().map(|own| own.name());
        let found = Criterion::ALL.into_iter().find(|own| own.name() == text);
        found.ok_or_else(|| {
            let all: Vec<&str> = names().collect();
            match nearest(text, names()) {
                Some(name) => format!("unknown criterion {text:?}: did you mean {name}?"),
                None => format!("unknown criterion {text:?}: type one of {}", all.join(", ")),
            }
        })
    }
}
