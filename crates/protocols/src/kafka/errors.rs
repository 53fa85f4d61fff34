//! Error codes of Kafka: the name of each that clients meet, and what to do about it.

use weigh_model::connection::Fault;
use weigh_model::protocol::ErrorWords;

/// An error of the protocol guide.
struct Known {
    code: i16,
    name: &'static str,
    advice: &'static str,
}

const fn known(code: i16, name: &'static str, advice: &'static str) -> Known {
    Known { code, name, advice }
}

const KNOWN: &[Known] = &[
    known(
        UNKNOWN_SERVER_ERROR,
        "UNKNOWN_SERVER_ERROR",
        "the broker failed and says no more: read its log",
    ),
    known(
        OFFSET_OUT_OF_RANGE,
        "OFFSET_OUT_OF_RANGE",
        "the log was trimmed before the consumer had read it: raise retention.bytes of the topic",
    ),
    known(CORRUPT_MESSAGE, "CORRUPT_MESSAGE", "the batch was damaged: look for a faulty proxy"),
    known(
        UNKNOWN_TOPIC_OR_PARTITION,
        "UNKNOWN_TOPIC_OR_PARTITION",
        "there is no such topic: set kafka.create to true, or create it with kafka-topics.sh",
    ),
    known(
        LEADER_NOT_AVAILABLE,
        "LEADER_NOT_AVAILABLE",
        "the partition has no leader: an election is under way, or its brokers are down",
    ),
    known(
        NOT_LEADER,
        "NOT_LEADER_OR_FOLLOWER",
        "the leader of the partition moved to another broker: type the URL of the new leader \
         (kafka-topics.sh --describe), or load a cluster that is stable",
    ),
    known(
        7,
        "REQUEST_TIMED_OUT",
        "the replicas did not confirm within 30 s: look at the followers, or type kafka.acks=1",
    ),
    known(
        MESSAGE_TOO_LARGE,
        "MESSAGE_TOO_LARGE",
        "a batch is larger than max.message.bytes: lower --size or kafka.batch_size, or raise the \
         limit",
    ),
    known(
        COORDINATOR_LOAD_IN_PROGRESS,
        "COORDINATOR_LOAD_IN_PROGRESS",
        "the broker has just started and is not ready for idempotent producers or groups: try \
         again",
    ),
    known(
        COORDINATOR_NOT_AVAILABLE,
        "COORDINATOR_NOT_AVAILABLE",
        "the cluster cannot create its internal topics: look at their replication factor",
    ),
    known(
        NOT_COORDINATOR,
        "NOT_COORDINATOR",
        "the group moved to another broker: type the URL of its coordinator \
         (kafka-consumer-groups.sh --describe --state)",
    ),
    known(17, "INVALID_TOPIC_EXCEPTION", "type letters, digits, '.', '_' and '-' as kafka.topic"),
    known(
        19,
        "NOT_ENOUGH_REPLICAS",
        "fewer replicas are in sync than min.insync.replicas: start them, or type kafka.acks=1",
    ),
    known(
        20,
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "fewer replicas are in sync than min.insync.replicas: start them, or type kafka.acks=1",
    ),
    known(
        ILLEGAL_GENERATION,
        "ILLEGAL_GENERATION",
        "the group was rebalanced without the consumer: look for what kept it from answering",
    ),
    known(
        INCONSISTENT_GROUP_PROTOCOL,
        "INCONSISTENT_GROUP_PROTOCOL",
        "members of the group divide partitions by another strategy: type another kafka.group",
    ),
    known(INVALID_GROUP_ID, "INVALID_GROUP_ID", "type another kafka.group"),
    known(
        UNKNOWN_MEMBER_ID,
        "UNKNOWN_MEMBER_ID",
        "the broker removed the consumer from its group: raise kafka.session_timeout",
    ),
    known(
        26,
        "INVALID_SESSION_TIMEOUT",
        "type a kafka.session_timeout between group.min.session.timeout.ms (6 s) and \
         group.max.session.timeout.ms (30 min) of the broker",
    ),
    known(
        REBALANCE_IN_PROGRESS,
        "REBALANCE_IN_PROGRESS",
        "members of the group come and go: look for other programs that use its name",
    ),
    known(29, "TOPIC_AUTHORIZATION_FAILED", "the user may not do this: kafka-acls.sh allows it"),
    known(30, "GROUP_AUTHORIZATION_FAILED", "the user may not do this: kafka-acls.sh allows it"),
    known(31, "CLUSTER_AUTHORIZATION_FAILED", "the user may not do this: kafka-acls.sh allows it"),
    known(
        32,
        "INVALID_TIMESTAMP",
        "the topic requires timestamps, which Weighbridge does not send",
    ),
    known(
        UNSUPPORTED_VERSION,
        "UNSUPPORTED_VERSION",
        "the broker is older than Kafka 1.0, or newer than this client",
    ),
    known(TOPIC_ALREADY_EXISTS, "TOPIC_ALREADY_EXISTS", "the topic is there: nothing to do"),
    known(INVALID_PARTITIONS, "INVALID_PARTITIONS", "type another number as kafka.partitions"),
    known(
        38,
        "INVALID_REPLICATION_FACTOR",
        "the cluster has fewer brokers than kafka.replicas: lower it",
    ),
    known(
        NOT_CONTROLLER,
        "NOT_CONTROLLER",
        "type the URL of the controller, or wait for an election",
    ),
    known(INVALID_REQUEST, "INVALID_REQUEST", "the broker does not accept what a key asks for"),
    known(44, "POLICY_VIOLATION", "a policy of the cluster forbids the topic: create it yourself"),
    known(
        OUT_OF_ORDER_SEQUENCE_NUMBER,
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "an earlier batch of the producer failed, and idempotence forbids a gap: see its error",
    ),
    known(46, "DUPLICATE_SEQUENCE_NUMBER", "the broker had the batch before"),
    known(47, "INVALID_PRODUCER_EPOCH", "a newer producer has the same number"),
    known(
        KAFKA_STORAGE_ERROR,
        "KAFKA_STORAGE_ERROR",
        "the broker cannot write its log: free its disk (of the reference server: raise \
         kafka.server_log_bytes)",
    ),
    known(59, "UNKNOWN_PRODUCER_ID", "the broker forgot the producer: its log was trimmed"),
    known(FENCED_LEADER_EPOCH, "FENCED_LEADER_EPOCH", "the leader of the partition changed"),
    known(UNKNOWN_LEADER_EPOCH, "UNKNOWN_LEADER_EPOCH", "the leader of the partition changed"),
    known(
        UNSUPPORTED_COMPRESSION_TYPE,
        "UNSUPPORTED_COMPRESSION_TYPE",
        "the reference server reads no compressed batches: set compression.type to none",
    ),
    known(MEMBER_ID_REQUIRED, "MEMBER_ID_REQUIRED", "the broker gives a member no id"),
    known(
        GROUP_MAX_SIZE_REACHED,
        "GROUP_MAX_SIZE_REACHED",
        "the group may have no more members: lower -y, or raise group.max.size of the broker",
    ),
    known(INVALID_RECORD, "INVALID_RECORD", "the topic requires keys (cleanup.policy=compact)"),
];

/// An error of Kafka as the end of a session, with what it was about.
pub(super) fn refused(code: i16, about: &str) -> Fault {
    let words = words(code as u16);
    let name = words.name;
    Fault::Refused { code: code as u16, reason: format!("{about}: {name}: {}", words.advice) }
}

/// Name and advice of a code, which is Kafka's as unsigned number.
pub(super) fn words(code: u16) -> ErrorWords {
    match KNOWN.iter().find(|known| known.code == code as i16) {
        Some(known) => ErrorWords { name: known.name.to_owned(), advice: known.advice },
        None => ErrorWords { name: format!("error {}", code as i16), advice: ErrorWords::ADVICE },
    }
}

/// True if the error passes by itself: a topic that was just created has no leader yet, and a
/// broker that was just started no numbers for producers and no groups.
pub(super) fn is_passing(code: i16) -> bool {
    matches!(
        code,
        UNKNOWN_TOPIC_OR_PARTITION
            | LEADER_NOT_AVAILABLE
            | NOT_LEADER
            | COORDINATOR_LOAD_IN_PROGRESS
            | COORDINATOR_NOT_AVAILABLE
            | NOT_COORDINATOR
            | NOT_CONTROLLER
            | FENCED_LEADER_EPOCH
            | UNKNOWN_LEADER_EPOCH
    )
}

pub(super) const UNKNOWN_SERVER_ERROR: i16 = -1;
pub(super) const NONE: i16 = 0;
pub(super) const OFFSET_OUT_OF_RANGE: i16 = 1;
pub(super) const CORRUPT_MESSAGE: i16 = 2;
pub(super) const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
pub(super) const LEADER_NOT_AVAILABLE: i16 = 5;
pub(super) const NOT_LEADER: i16 = 6;
pub(super) const MESSAGE_TOO_LARGE: i16 = 10;
pub(super) const COORDINATOR_LOAD_IN_PROGRESS: i16 = 14;
pub(super) const COORDINATOR_NOT_AVAILABLE: i16 = 15;
pub(super) const NOT_COORDINATOR: i16 = 16;
pub(super) const INVALID_TOPIC: i16 = 17;
pub(super) const ILLEGAL_GENERATION: i16 = 22;
pub(super) const INCONSISTENT_GROUP_PROTOCOL: i16 = 23;
pub(super) const INVALID_GROUP_ID: i16 = 24;
pub(super) const UNKNOWN_MEMBER_ID: i16 = 25;
pub(super) const REBALANCE_IN_PROGRESS: i16 = 27;
pub(super) const UNSUPPORTED_VERSION: i16 = 35;
pub(super) const TOPIC_ALREADY_EXISTS: i16 = 36;
pub(super) const INVALID_PARTITIONS: i16 = 37;
pub(super) const INVALID_REPLICATION_FACTOR: i16 = 38;
pub(super) const NOT_CONTROLLER: i16 = 41;
pub(super) const INVALID_REQUEST: i16 = 42;
pub(super) const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
pub(super) const KAFKA_STORAGE_ERROR: i16 = 56;
pub(super) const FENCED_LEADER_EPOCH: i16 = 74;
pub(super) const UNKNOWN_LEADER_EPOCH: i16 = 75;
pub(super) const UNSUPPORTED_COMPRESSION_TYPE: i16 = 76;
pub(super) const MEMBER_ID_REQUIRED: i16 = 79;
pub(super) const GROUP_MAX_SIZE_REACHED: i16 = 81;
pub(super) const INVALID_RECORD: i16 = 87;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names_once() {
        assert_eq!(words(6).name, "NOT_LEADER_OR_FOLLOWER");
        assert!(words(6).advice.contains("new leader"));
        assert_eq!(words(u16::MAX).name, "UNKNOWN_SERVER_ERROR");
        assert_eq!(words(999).name, "error 999");
        for (index, known) in KNOWN.iter().enumerate() {
            assert!(KNOWN[..index].iter().all(|other| other.code < known.code), "{}", known.name);
        }
        let text = refused(NOT_LEADER, "partition 3").to_string();
        assert!(text.contains("partition 3: NOT_LEADER_OR_FOLLOWER: the leader"), "{text}");
    }
}
