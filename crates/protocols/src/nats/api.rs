//! JetStream's API: requests and answers as JSON, on subjects below `$JS.API`
//! (<https://docs.nats.io/reference/reference-protocols/nats_api_reference>).

use serde::{Deserialize, Serialize};

/// Configuration of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StreamConfig {
    pub(super) name: String,
    pub(super) subjects: Vec<String>,
    pub(super) retention: String,
    pub(super) max_consumers: i64,
    pub(super) max_msgs: i64,
    pub(super) max_bytes: i64,
    /// Nanoseconds; 0 for no limit.
    pub(super) max_age: u64,
    pub(super) max_msgs_per_subject: i64,
    pub(super) max_msg_size: i64,
    pub(super) discard: String,
    pub(super) storage: String,
    pub(super) num_replicas: u32,
    /// Nanoseconds.
    pub(super) duplicate_window: u64,
}

impl Default for StreamConfig {
    fn default() -> StreamConfig {
        StreamConfig {
            name: String::new(),
            subjects: Vec::new(),
            retention: "limits".to_owned(),
            max_consumers: -1,
            max_msgs: -1,
            max_bytes: -1,
            max_age: 0,
            max_msgs_per_subject: -1,
            max_msg_size: -1,
            discard: "old".to_owned(),
            storage: "file".to_owned(),
            num_replicas: 1,
            duplicate_window: 120_000_000_000,
        }
    }
}

/// Configuration of a consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ConsumerConfig {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) durable_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    pub(super) deliver_policy: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) opt_start_seq: u64,
    pub(super) ack_policy: String,
    /// Nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) ack_wait: u64,
    pub(super) max_deliver: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) filter_subject: String,
    pub(super) replay_policy: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) max_waiting: u64,
    pub(super) max_ack_pending: i64,
    /// Nanoseconds; 0 for none.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) idle_heartbeat: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) deliver_subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) deliver_group: String,
    /// Nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) inactive_threshold: u64,
    pub(super) num_replicas: u32,
}

impl Default for ConsumerConfig {
    fn default() -> ConsumerConfig {
        ConsumerConfig {
            durable_name: String::new(),
            name: String::new(),
            deliver_policy: "all".to_owned(),
            opt_start_seq: 0,
            ack_policy: "none".to_owned(),
            ack_wait: 0,
            max_deliver: -1,
            filter_subject: String::new(),
            replay_policy: "instant".to_owned(),
            max_waiting: 0,
            max_ack_pending: 0,
            idle_heartbeat: 0,
            deliver_subject: String::new(),
            deliver_group: String::new(),
            inactive_threshold: 0,
            num_replicas: 0,
        }
    }
}

/// Request for a consumer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CreateConsumer {
    pub(super) stream_name: String,
    pub(super) config: ConsumerConfig,
}

/// Request for the next messages of a pull consumer; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Next {
    pub(super) batch: u64,
    pub(super) expires: u64,
    pub(super) no_wait: bool,
}

/// Error in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ApiError {
    /// Class, as in HTTP.
    pub(super) code: u16,
    pub(super) err_code: u16,
    pub(super) description: String,
}

impl ApiError {
    /// The more exact of its two numbers.
    pub(super) fn number(&self) -> u16 {
        if self.err_code == 0 { self.code } else { self.err_code }
    }
}

/// An answer, of which only whether it is an error matters here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Answer {
    pub(super) error: Option<ApiError>,
}

/// Error in an answer, if it is one.
///
/// # Errors
/// If it is not an answer of the API.
pub(super) fn error_of(body: &[u8]) -> Result<Option<ApiError>, String> {
    // An answer without an error is the usual case, and names its stream first.
    if body.starts_with(br#"{"stream":"#) && !has(body, br#""error""#) {
        return Ok(None);
    }
    let answer: Result<Answer, _> = serde_json::from_slice(body);
    answer.map(|answer| answer.error).map_err(|error| error.to_string())
}

fn has(body: &[u8], word: &[u8]) -> bool {
    body.windows(word.len()).any(|window| window == word)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Subject below which the API is.
pub(super) const API: &str = "$JS.API.";
/// Subject below which consumers are answered.
pub(super) const ACK: &str = "$JS.ACK.";
/// Subject below which clients wait for answers.
pub(super) const INBOX: &str = "_INBOX.";

/// Error numbers of JetStream (`server/errors.json` of nats-server).
pub(super) mod number {
    pub(crate) const BAD_REQUEST: u16 = 10_003;
    pub(crate) const CONSUMER_CREATE: u16 = 10_012;
    pub(crate) const CONSUMER_NOT_FOUND: u16 = 10_014;
    pub(crate) const INVALID_JSON: u16 = 10_025;
    pub(crate) const STREAM_NAME_IN_USE: u16 = 10_058;
    pub(crate) const STREAM_NOT_FOUND: u16 = 10_059;
    pub(crate) const SUBJECTS_OVERLAP: u16 = 10_065;
    pub(crate) const MESSAGE_TOO_LARGE: u16 = 10_054;
    pub(crate) const INSUFFICIENT_RESOURCES: u16 = 10_023;
    pub(crate) const STORAGE_EXCEEDED: u16 = 10_047;
}
