//! The keys of the table `kafka` in a plan.

use weigh_model::protocol::{Guarantee, Setting, SettingKind};
use weigh_model::tls;
use weigh_model::trial::Settings;

const OWN: &[Setting] = &[
    Setting {
        key: "acks",
        kind: SettingKind::Choice(&["0", "1", "all", "idempotent"]),
        default: "all",
        doc: "What confirms a message: nothing, the leader, all replicas in sync, or those with \
              numbers by which the broker finds duplicates.",
    },
    Setting::duration("linger", "0s", "How long a producer waits for more messages of a batch."),
    Setting::integer(
        "batch_size",
        (64, 64 << 20),
        "16384",
        "Bytes of a batch at which a producer sends it, whatever linger says.",
    ),
    Setting::integer(
        "max_in_flight",
        (1, 100_000),
        "5",
        "Requests of a producer without an answer; messages that come meanwhile share a batch.",
    ),
    Setting::text("topic", "weigh-{trial}", "Topic; {trial} or %t is the trial."),
    Setting::flag("create", "true", "Create the topic if it is not there."),
    Setting::integer(
        "partitions",
        (0, 10_000),
        "0",
        "Partitions of a topic that is created. 0: one; in pairs one a pair, in shared one a \
         consumer.",
    ),
    Setting::integer("replicas", (1, 100), "1", "Replicas of a topic that is created."),
    Setting {
        key: "partitioner",
        kind: SettingKind::Choice(&["client", "round-robin"]),
        default: "client",
        doc: "Partition of a message: one for each producer, in order; or the next for each batch.",
    },
    Setting::duration(
        "fetch_wait",
        "500ms",
        "How long the broker holds a fetch until fetch_min is there (fetch.max.wait.ms).",
    ),
    Setting::integer(
        "fetch_min",
        (1, 1 << 30),
        "1",
        "Bytes below which the broker holds a fetch (fetch.min.bytes).",
    ),
    Setting::integer(
        "fetch_bytes",
        (1024, FETCH_BYTES_MAX),
        "52428800",
        "Most bytes in one answer to a consumer (fetch.max.bytes).",
    ),
    Setting::integer(
        "fetch_partition_bytes",
        (1024, FETCH_BYTES_MAX),
        "1048576",
        "Most bytes of one partition in it (max.partition.fetch.bytes).",
    ),
    Setting::text(
        "group",
        "",
        "Group in which consumers share the partitions, with {trial} or %t for the trial. Empty: \
         each is assigned its own.",
    ),
    Setting::duration(
        "session_timeout",
        "45s",
        "How long a consumer of a group may be silent until the broker removes it \
         (session.timeout.ms).",
    ),
    Setting::duration(
        "heartbeat",
        "3s",
        "Interval of the heartbeats of a consumer of a group (heartbeat.interval.ms).",
    ),
    Setting::duration(
        "commit",
        "5s",
        "Interval at which a consumer of a group commits what it read (auto.commit.interval.ms). \
         0s: only at the end.",
    ),
    Setting::text(
        "server_advertised",
        "127.0.0.1:9092",
        "Reference server: host and port that it gives to clients.",
    ),
    Setting::integer(
        "server_partitions",
        (1, 10_000),
        "1",
        "Reference server: partitions of a topic that it creates by itself.",
    ),
    Setting::integer(
        "server_message_max_bytes",
        (64, 64 << 20),
        "1048588",
        "Reference server: largest batch (message.max.bytes).",
    ),
    Setting::integer(
        "server_log_bytes",
        (1 << 16, 1 << 40),
        "1073741824",
        "Reference server: bytes of all logs in memory; a full one loses its oldest batches.",
    ),
];

/// The keys of Kafka, and those of TLS. Kafka has no name in ALPN.
pub(super) static SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "");

/// Most bytes in one answer to a fetch.
const FETCH_BYTES_MAX: u64 = 64 << 20;

/// What confirms a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acks {
    Nothing,
    Leader,
    All {
        /// True if batches are numbered.
        is_idempotent: bool,
    },
}

impl Acks {
    pub(super) fn read(settings: &Settings) -> Acks {
        match settings.text("acks") {
            "0" => Acks::Nothing,
            "1" => Acks::Leader,
            "idempotent" => Acks::All { is_idempotent: true },
            _ => Acks::All { is_idempotent: false },
        }
    }

    /// Its number in a request.
    pub(super) fn number(self) -> i16 {
        match self {
            Acks::Nothing => 0,
            Acks::Leader => 1,
            Acks::All { .. } => -1,
        }
    }

    pub(super) fn is_idempotent(self) -> bool {
        self == Acks::All { is_idempotent: true }
    }
}

/// Without an answer at most once. Numbered batches are not exactly once: a consumer may read a
/// message again, and the engine repeats nothing that the numbers could recognise.
pub(super) fn guarantee(settings: &Settings) -> Guarantee {
    match Acks::read(settings) {
        Acks::Nothing => Guarantee::AtMostOnce,
        Acks::Leader | Acks::All { .. } => Guarantee::AtLeastOnce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_decide_the_guarantee() {
        for (acks, number, expected) in [
            ("0", 0, Guarantee::AtMostOnce),
            ("1", 1, Guarantee::AtLeastOnce),
            ("all", -1, Guarantee::AtLeastOnce),
            ("idempotent", -1, Guarantee::AtLeastOnce),
        ] {
            let settings = Settings::new("kafka", SETTINGS, [("acks", acks)]).unwrap();
            assert_eq!(Acks::read(&settings).number(), number);
            assert_eq!(guarantee(&settings), expected);
            assert_eq!(Acks::read(&settings).is_idempotent(), acks == "idempotent");
        }
    }
}
