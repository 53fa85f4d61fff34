//! A situation: who sends what over which network, what must hold, and what matters most. Every
//! quantity has its unit; what is left out has a default, which the answer states.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weigh_model::battery::Battery;
use weigh_model::path::Share;
use weigh_model::protocol::Guarantee;
use weigh_model::units::Bytes;
use weigh_model::{Durability, Nanos};

use crate::criterion::Criterion;
use crate::refusal::Wrong;

/// The name of the format.
pub const SCHEMA: &str = "weigh/situation/1";

/// A situation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("$id" = "urn:weigh:schema:situation:1"))]
pub struct Situation {
    /// `weigh/situation/1`.
    pub schema: String,
    /// A name for titles.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Protocols and servers to choose from, such as `mqtt`, `http`, `mosquitto`; empty for all
    /// built-in ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What matters, the most important first.
    #[serde(default = "usual_order")]
    pub matters: Vec<Criterion>,
    /// What devices send.
    pub traffic: Traffic,
    /// What is between devices and server.
    #[serde(default)]
    pub network: Network,
    /// What an option must be able to do.
    #[serde(default)]
    pub needs: Needs,
    /// The device, for energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
    /// The server.
    #[serde(default)]
    pub server: Server,
}

/// What devices send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Number of devices.
    pub devices: u64,
    /// Time between two messages of a device: `1m`.
    #[schemars(with = "String")]
    pub every: Nanos,
    /// Size of a body: `125B`.
    #[schemars(with = "String")]
    pub size: Bytes,
    /// Subscribers that get every message; 0 if only the server gets it.
    #[serde(default)]
    pub subscribers: u64,
}

/// What is between devices and server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// A path as `--path` takes it: a name of `paths/` such as `lte`, numbers such as
    /// `delay=30ms,loss=5%`, or a file; none for a local network without delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `on`, `off`, or `either`.
    #[serde(default)]
    pub tls: TlsWish,
    /// Silence after which the network forgets a connection: a kept one sends something before.
    #[schemars(with = "String")]
    #[serde(default = "usual_idle_limit")]
    pub idle_limit: Nanos,
    /// A kept connection breaks and is opened again once in this time; never if left out.
    #[schemars(with = "Option<String>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnect: Option<Nanos>,
    /// True if the device sleeps between messages and cannot answer or ping meanwhile.
    #[serde(default)]
    pub sleeps: bool,
}

/// TLS or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TlsWish {
    /// Only options inside TLS.
    On,
    /// Only options without TLS.
    Off,
    /// Both.
    #[default]
    Either,
}

/// What an option must be able to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// `at most once`, `at least once` or `exactly once`.
    #[schemars(with = "String")]
    #[serde(default = "usual_guarantee")]
    pub guarantee: Guarantee,
    /// What a confirmed message must survive: `memory`, `page-cache`, `fsync`, ...; left out if it
    /// does not matter.
    #[schemars(with = "Option<String>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// Share of messages that may be lost: `0%` demands a confirmation of each.
    #[schemars(with = "Option<String>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<ShareWord>,
    /// Longest time to a confirmation at the 99th percentile: `2s`.
    #[schemars(with = "Option<String>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Nanos>,
    /// Abilities that a probe must have found: `retain`, `session`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abilities: Vec<String>,
}

/// The device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// A device of `devices/`: `nrf9160`.
    pub model: String,
    /// A radio of `radios/`: `nb-iot`.
    pub radio: String,
    /// `3000mAh@3.7V`.
    #[schemars(with = "Option<String>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub battery: Option<Battery>,
    /// How long a charge must last: `2years`.
    #[schemars(with = "Option<String>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Nanos>,
}

/// The server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Cores.
    #[serde(default = "usual_cores")]
    pub cores: f64,
    /// Memory.
    #[schemars(with = "String")]
    #[serde(default = "usual_memory")]
    pub memory: Bytes,
    /// Share of cores and memory that may be used: `75%`.
    #[schemars(with = "String")]
    #[serde(default = "usual_headroom")]
    pub headroom: ShareWord,
}

/// A share, written as `75%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareWord(pub f64);

impl Serialize for ShareWord {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}%", weigh_model::numbers::exact(self.0 * 100.0)))
    }
}

impl<'de> Deserialize<'de> for ShareWord {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ShareWord, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl std::str::FromStr for ShareWord {
    type Err = String;

    fn from_str(text: &str) -> Result<ShareWord, String> {
        weigh_model::path::parse_share(text).map(|Share(share)| ShareWord(share))
    }
}

impl Default for Network {
    fn default() -> Network {
        Network {
            path: None,
            tls: TlsWish::default(),
            idle_limit: usual_idle_limit(),
            reconnect: None,
            sleeps: false,
        }
    }
}

impl Default for Needs {
    fn default() -> Needs {
        Needs {
            guarantee: usual_guarantee(),
            durability: None,
            loss: None,
            latency: None,
            abilities: Vec::new(),
        }
    }
}

impl Default for Server {
    fn default() -> Server {
        Server { cores: usual_cores(), memory: usual_memory(), headroom: usual_headroom() }
    }
}

impl Situation {
    /// Devices with a message of this size once in this time; everything else as usual.
    pub fn new(devices: u64, every: Nanos, size: Bytes) -> Situation {
        Situation {
            schema: SCHEMA.to_owned(),
            name: String::new(),
            options: Vec::new(),
            traffic: Traffic { devices, every, size, subscribers: 0 },
            network: Network::default(),
            needs: Needs::default(),
            device: None,
            server: Server::default(),
            matters: usual_order(),
        }
    }

    /// Reads a file in TOML, and checks it. `file` is named in errors.
    ///
    /// # Errors
    /// Text that is not a situation, with the line; and wishes that contradict each other.
    pub fn read(file: &str, text: &str) -> Result<Situation, Wrong> {
        let read: Situation = toml::from_str(text).map_err(|error| {
            let fix = "docs/guide/advice.md has an example; weigh advise --save FILE writes one";
            Wrong::new(file, error.to_string().trim_end(), fix)
        })?;
        if read.schema != SCHEMA {
            let problem = format!("its schema is {:?} and not {SCHEMA:?}", read.schema);
            return Err(Wrong::new(file, problem, format!("type schema = {SCHEMA:?}")));
        }
        read.check()?;
        Ok(read)
    }

    /// The text of a file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Messages of all devices together, per second.
    pub fn rate_per_s(&self) -> f64 {
        self.traffic.devices as f64 / self.traffic.every.as_secs_f64()
    }

    /// The guarantee that is needed: a loss of 0 % demands a confirmation.
    pub fn guarantee(&self) -> Guarantee {
        match self.needs.loss {
            Some(ShareWord(share)) if share <= 0.0 => {
                self.needs.guarantee.max(Guarantee::AtLeastOnce)
            }
            _ => self.needs.guarantee,
        }
    }

    /// Checks that the wishes do not contradict each other.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), Wrong> {
        let wrong = |place: &str, problem: String, fix: &str| Err(Wrong::new(place, problem, fix));
        let Traffic { devices, every, size, .. } = self.traffic;
        if devices == 0 {
            return wrong("traffic.devices", "no device sends anything".into(), "give at least 1");
        }
        if devices > DEVICES_MAX {
            let problem = format!("{devices} devices are more than there are people");
            return wrong("traffic.devices", problem, "give at most 10,000,000,000");
        }
        if every.0 == 0 {
            return wrong(
                "traffic.every",
                "0 s between messages".into(),
                "type a time, such as 1m",
            );
        }
        if every > EVERY_MAX {
            let problem = format!("{every} between two messages is more than a year");
            return wrong("traffic.every", problem, "type a time up to 365days");
        }
        if size.0 > BODY_BYTES_MAX {
            let problem = format!("a message of {size} cannot be sent whole");
            return wrong("traffic.size", problem, "type at most 256MiB");
        }
        self.check_server()?;
        self.check_needs()
    }

    fn check_server(&self) -> Result<(), Wrong> {
        let wrong = |place: &str, problem: String, fix: &str| Err(Wrong::new(place, problem, fix));
        let ShareWord(headroom) = self.server.headroom;
        if !(self.server.cores > 0.0 && self.server.cores <= CORES_MAX) {
            let problem = format!("{} cores", self.server.cores);
            return wrong("server.cores", problem, "give a number above 0, such as 2");
        }
        if self.server.memory.0 == 0 {
            return wrong("server.memory", "no memory".into(), "type a size, such as 4GiB");
        }
        if !(headroom > 0.0 && headroom <= 1.0) {
            let problem = format!("{} % may be used", headroom * 100.0);
            return wrong("server.headroom", problem, "type a share above 0%, such as 75%");
        }
        if self.network.idle_limit.0 == 0 {
            let problem = "a network that forgets every connection at once";
            return wrong("network.idle_limit", problem.into(), "type a time, such as 5m");
        }
        Ok(())
    }

    fn check_needs(&self) -> Result<(), Wrong> {
        let wrong = |place: &str, problem: String, fix: &str| Err(Wrong::new(place, problem, fix));
        if self.matters.is_empty() {
            return wrong("matters", "nothing matters".into(), "name one, such as server-cpu");
        }
        for (at, own) in self.matters.iter().enumerate() {
            if self.matters[..at].contains(own) {
                return wrong("matters", format!("{own} is there twice"), "name it once");
            }
        }
        if self.matters.contains(&Criterion::Energy) && self.device.is_none() {
            let problem = "energy matters, and no device is given";
            return wrong("matters", problem.into(), "add device and radio, or leave energy out");
        }
        let Needs { guarantee, durability, loss, latency, .. } = &self.needs;
        if let (Some(durability), Guarantee::AtMostOnce) = (durability, guarantee)
            && *durability != Durability::Nothing
        {
            let problem =
                format!("`at most once` confirms nothing, so nothing is kept ({durability})");
            return wrong("needs.durability", problem, "need `at least once`, or leave it out");
        }
        if loss.is_some_and(|ShareWord(share)| share == 0.0)
            && *guarantee == Guarantee::AtMostOnce
            && self.needs_says_guarantee()
        {
            let problem = "nothing may be lost, and `at most once` is enough";
            return wrong("needs.loss", problem.into(), "need `at least once`, or allow a loss");
        }
        if latency.is_some_and(|latency| latency.0 == 0) {
            return wrong("needs.latency", "0 s are allowed".into(), "type a time, such as 1s");
        }
        if let Some(Device { battery: None, lifetime: Some(_), .. }) = &self.device {
            let problem = "a lifetime is asked for, and no battery is given";
            return wrong("device.lifetime", problem.into(), "add battery = \"3000mAh@3.7V\"");
        }
        Ok(())
    }

    /// True: a guarantee below the usual one was typed.
    fn needs_says_guarantee(&self) -> bool {
        self.needs.guarantee != usual_guarantee()
    }

    /// The JSON Schema of situations.
    pub fn schema() -> String {
        let schema = schemars::schema_for!(Situation);
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn usual_order() -> Vec<Criterion> {
    vec![Criterion::ServerCpu, Criterion::Bytes]
}

/// Gateways forget connections after minutes to hours; RFC 5382, REQ-5, asks for 2 h 4 min and
/// most give less.
fn usual_idle_limit() -> Nanos {
    Nanos::from_secs(300)
}

fn usual_guarantee() -> Guarantee {
    Guarantee::AtLeastOnce
}

fn usual_cores() -> f64 {
    1.0
}

fn usual_memory() -> Bytes {
    Bytes(2 << 30)
}

fn usual_headroom() -> ShareWord {
    ShareWord(0.75)
}

/// The largest MQTT packet; a larger object is moved piece by piece.
const BODY_BYTES_MAX: u64 = 1 << 28;

const DEVICES_MAX: u64 = 10_000_000_000;
const EVERY_MAX: Nanos = Nanos::from_secs(366 * 86_400);
const CORES_MAX: f64 = 100_000.0;
