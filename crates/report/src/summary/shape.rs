//! What the model's types look like in JSON, for the schema of the summary: the model itself
//! knows no schemas. The tests hold every shape against what the model really writes.

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
    /// Frequency governor; empty where the kernel tells none.
    governor: String,
    /// Clock source of the kernel.
    clock_source: String,
    /// TCP congestion control.
    congestion_control: String,
    /// `kvm`, `none` and so on; empty where it cannot be told.
    virtualisation: String,
}

/// The meter of energy of a run.
#[derive(JsonSchema)]
#[schemars(rename = "Meter")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct MeterShape {
    /// What was asked for, as after `--meter`.
    asked: String,
    /// The meter; absent where there is none.
    meter: Option<String>,
    /// What it measures.
    covers: Option<String>,
    /// Why there is none.
    absent: Option<String>,
    /// True if somebody asked for energy.
    is_asked: bool,
}

/// Where every message went; all but `messages` counts pairs of message and subscriber.
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
    /// Arrived whole and in time; null where nobody could know.
    delivered: Option<u64>,
    /// First arrived after the timeout.
    late: u64,
    /// Never arrived; null where nobody could know.
    lost: Option<u64>,
    /// Arrivals of messages that were there before.
    duplicates: u64,
    /// Arrived after a later one of the same producer.
    reordered: u64,
    /// Arrivals with our mark and a failing check.
    corrupt: u64,
    /// Arrivals without our mark.
    foreign: u64,
    /// Confirmed by the server, and nobody got it.
    acked_not_delivered: u64,
    /// The server said that nobody subscribes to it.
    no_subscriber: u64,
    /// All arrivals.
    received: u64,
    /// The lost ones by cause.
    causes: BTreeMap<CauseShape, u64>,
    /// The unsent ones by cause.
    not_sent_causes: BTreeMap<NotSentCauseShape, u64>,
    /// Where the lost ones were seen last, by stage; absent where there are no stages.
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

/// What makes a result doubtful.
#[derive(JsonSchema)]
#[schemars(rename = "Doubt")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) struct DoubtShape {
    /// The rule's code or a kebab-case name.
    code: String,
    /// How much it takes away.
    severity: SeverityShape,
    /// What was seen.
    text: String,
    /// What to do about it.
    advice: String,
}

/// How much a doubt takes away.
#[derive(JsonSchema)]
#[schemars(rename = "Severity", rename_all = "kebab-case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(crate) enum SeverityShape {
    Doubt,
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

/// Holds what the types say against what lies in `schemas/`, or writes it there.
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
        let last_seen = [("broker".to_owned(), 1)].into();
        let ledger = serde_json::to_value(Ledger { last_seen, ..Ledger::zero() }).unwrap();
        let doubt = serde_json::to_value(Warning::Interrupted.record()).unwrap();
        for (schema, value) in [
            (schemars::schema_for!(HostShape), host),
            (schemars::schema_for!(LedgerShape), ledger),
            (schemars::schema_for!(DoubtShape), doubt),
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
