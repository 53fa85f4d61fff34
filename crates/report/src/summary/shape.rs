//! The JSON form of the model's types, for the schema of the summary: the model itself has no
//! schemas. The tests compare every form with the model's output.

use std::collections::BTreeMap;

use schemars::JsonSchema;

/// A machine.
#[derive(JsonSchema)]
#[schemars(rename = "Host")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct HostShape {
    /// Kernel release.
    kernel: String,
    /// Model name of the processor.
    cpu: String,
    /// Cores the program may use.
    cores: u32,
    /// Memory in bytes.
    memory_bytes: u64,
    /// Frequency governor; empty if the kernel does not report it.
    governor: String,
    /// Clock source of the kernel.
    clock_source: String,
    /// TCP congestion control.
    congestion_control: String,
    /// `kvm`, `none` and so on; empty if it is unknown.
    virtualisation: String,
}

/// A host of a fleet.
#[derive(JsonSchema)]
#[schemars(rename = "FleetHost")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct FleetHostShape {
    /// Its number in the fleet.
    rank: u32,
    /// Its name.
    name: String,
    /// The first of its shards, which have consecutive numbers.
    first_shard: u32,
    /// Number of its shards.
    shards: u32,
    /// Cores that its agent may use.
    cores: u32,
    /// Kernel release.
    kernel: String,
    /// Model name of the processor.
    cpu: String,
    /// Clock source of the kernel; empty if it does not report it.
    clock_source: String,
    /// The version of Weighbridge on it.
    version: String,
    /// Its baseline: requests per second over TCP to the built-in server on it; absent if it could
    /// not be measured, and in records before this key.
    baseline_per_s: Option<f64>,
    /// What disturbs load on it, as `weigh doctor` found when its agent started, one sentence each.
    #[schemars(default)]
    findings: Vec<String>,
    /// Its memory in bytes; absent if it is not known, and in records before this key.
    memory_bytes: Option<u64>,
    /// Files that its agent may have open, connections among them; absent without a limit, and in
    /// records before this key.
    descriptors: Option<u64>,
    /// Its local ports for connections to one address; absent if they are not known, and in records
    /// before this key.
    ports: Option<u32>,
}

/// The energy meter of a run.
#[derive(JsonSchema)]
#[schemars(rename = "Meter")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct MeterShape {
    /// The value of `--meter`.
    asked: String,
    /// The meter; absent if there is none.
    meter: Option<String>,
    /// What it measures.
    covers: Option<String>,
    /// Why there is none.
    absent: Option<String>,
    /// True if the plan asks for energy.
    is_asked: bool,
}

/// The ledger; everything except `messages` counts pairs of message and subscriber.
#[derive(JsonSchema)]
#[schemars(rename = "Ledger")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct LedgerShape {
    /// Different messages, however many subscribers each had.
    messages: u64,
    /// Due in the measured window.
    scheduled: u64,
    /// Due but never handed to the transport.
    not_sent: u64,
    /// Handed to the transport.
    sent: u64,
    /// Confirmed by the server.
    acknowledged: u64,
    /// Arrived whole and in time; null if arrivals are not observed.
    delivered: Option<u64>,
    /// First arrived after the timeout.
    late: u64,
    /// Never arrived; null if arrivals are not observed.
    lost: Option<u64>,
    /// Further arrivals of messages that had arrived before.
    duplicates: u64,
    /// Arrived after a later one of the same producer.
    reordered: u64,
    /// Arrivals with a Weighbridge mark whose check fails.
    corrupt: u64,
    /// Arrivals without a Weighbridge mark.
    foreign: u64,
    /// Confirmed by the server, but not delivered.
    acked_not_delivered: u64,
    /// The server reported no subscribers.
    no_subscriber: u64,
    /// All arrivals.
    received: u64,
    /// Lost messages by cause.
    causes: BTreeMap<CauseShape, u64>,
    /// Unsent messages by cause.
    not_sent_causes: BTreeMap<NotSentCauseShape, u64>,
    /// Lost messages by the stage that saw them last; absent without stages.
    last_seen: Option<BTreeMap<String, u64>>,
}

/// Why a message was lost.
#[derive(JsonSchema, PartialEq, Eq, PartialOrd, Ord)]
#[schemars(rename = "Cause", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum CauseShape {
    ProducerDropped,
    ConnectionClosed,
    ServerDropped,
    SubscriberDisconnected,
    ErrorAnswer,
    ReceiveQueueFull,
    Timeout,
    Corrupt,
    Unknown,
}

/// Why a message was never handed to the transport.
#[derive(JsonSchema, PartialEq, Eq, PartialOrd, Ord)]
#[schemars(rename = "NotSentCause", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum NotSentCauseShape {
    WindowFull,
    ConnectionClosed,
    Interrupted,
}

/// A warning on a result.
#[derive(JsonSchema)]
#[schemars(rename = "Warning")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct WarningShape {
    /// The rule's code or a kebab-case name.
    code: String,
    /// Severity of the warning.
    severity: SeverityShape,
    /// What was found.
    text: String,
    /// What to do about it.
    advice: String,
}

/// Severity of a warning.
#[derive(JsonSchema)]
#[schemars(rename = "Severity", rename_all = "kebab-case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum SeverityShape {
    #[schemars(rename = "doubt")]
    Warning,
    InvalidTimes,
    Invalid,
}

/// How often a message may arrive.
#[derive(JsonSchema)]
#[schemars(rename = "Guarantee")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum GuaranteeShape {
    #[schemars(rename = "at most once")]
    AtMost,
    #[schemars(rename = "at least once")]
    AtLeast,
    #[schemars(rename = "exactly once")]
    Exactly,
}

/// Compares the types with the files in `schemas/`, or writes them there.
#[cfg(test)]
pub(crate) fn assert_stored(name: &str, current: &str) {
    let path = format!("{}/../../schemas/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("WEIGH_WRITE_SCHEMAS").is_some() {
        std::fs::write(&path, current).unwrap();
    }
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(read(&stored) == read(current), "run this test once with WEIGH_WRITE_SCHEMAS=1 set");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use weigh_model::event::HostFacts;
    use weigh_model::fleet::FleetHost;
    use weigh_model::ledger::Ledger;
    use weigh_model::{Guarantee, Warning};

    fn keys(value: &Value) -> Vec<&String> {
        let mut keys: Vec<&String> = value.as_object().unwrap().keys().collect();
        keys.sort();
        keys
    }

    #[test]
    fn shapes_have_the_keys_that_the_model_writes() {
        let host = serde_json::to_value(HostFacts::default()).unwrap();
        let fleet_host = serde_json::to_value(FleetHost::default()).unwrap();
        let last_seen = [("broker".to_owned(), 1)].into();
        let ledger = serde_json::to_value(Ledger { last_seen, ..Ledger::zero() }).unwrap();
        let warning = serde_json::to_value(Warning::Interrupted.record()).unwrap();
        for (schema, value) in [
            (schemars::schema_for!(HostShape), host),
            (schemars::schema_for!(FleetHostShape), fleet_host),
            (schemars::schema_for!(LedgerShape), ledger),
            (schemars::schema_for!(WarningShape), warning),
        ] {
            assert_eq!(keys(&schema.as_value()["properties"]), keys(&value));
        }
    }

    #[test]
    fn guarantees_have_the_words_that_the_model_writes() {
        let schema = schemars::schema_for!(GuaranteeShape).to_value().to_string();
        for guarantee in [Guarantee::AtMostOnce, Guarantee::AtLeastOnce, Guarantee::ExactlyOnce] {
            assert!(schema.contains(&serde_json::to_string(&guarantee).unwrap()));
        }
    }
}
