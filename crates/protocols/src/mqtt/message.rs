//! A message inside the reference broker: borrowed while it passes through, kept and
//! shared only where it has to wait.

use std::sync::Arc;

use weigh_model::Nanos;

use super::codec::{Id, Properties, Qos};

/// A message that is kept: in queues, in flight in a session that may be resumed, or retained.
#[derive(Debug)]
pub(super) struct Message {
    topic: Box<str>,
    properties: Box<[u8]>,
    body: Box<[u8]>,
    qos: Qos,
    /// Time at which it is discarded; [`Nanos::NEVER`] if it does not expire.
    pub(super) expires: Nanos,
}

impl Message {
    /// Bytes of memory it holds.
    pub(super) fn memory_bytes(&self) -> u64 {
        let held = self.topic.len() + self.properties.len() + self.body.len();
        (held + size_of::<Message>()) as u64
    }
}

/// A message on its way through the broker.
#[derive(Debug)]
pub(super) struct Publication<'a> {
    pub(super) topic: &'a str,
    /// What is forwarded: without topic alias, message expiry and subscription identifiers,
    /// which each hop sets anew.
    pub(super) properties: &'a [u8],
    pub(super) body: &'a [u8],
    /// As it was published.
    pub(super) qos: Qos,
    /// As it was published.
    pub(super) retain: bool,
    pub(super) expires: Nanos,
    /// Made at most once, however many queues it goes into.
    kept: Option<Arc<Message>>,
}

impl<'a> Publication<'a> {
    pub(super) fn new(
        topic: &'a str,
        properties: &'a [u8],
        body: &'a [u8],
        qos: Qos,
        retain: bool,
        expires: Nanos,
    ) -> Publication<'a> {
        Publication { topic, properties, body, qos, retain, expires, kept: None }
    }

    /// A kept message on its way again.
    pub(super) fn of(message: &'a Arc<Message>, retain: bool) -> Publication<'a> {
        Publication {
            topic: &message.topic,
            properties: &message.properties,
            body: &message.body,
            qos: message.qos,
            retain,
            expires: message.expires,
            kept: Some(Arc::clone(message)),
        }
    }

    /// The message to keep.
    pub(super) fn keep(&mut self) -> Arc<Message> {
        let kept = self.kept.get_or_insert_with(|| {
            Arc::new(Message {
                topic: self.topic.into(),
                properties: self.properties.into(),
                body: self.body.into(),
                qos: self.qos,
                expires: self.expires,
            })
        });
        Arc::clone(kept)
    }
}

/// Splits a received message: appends the properties that are forwarded to `forwarded`, and
/// returns when the message expires (MQTT 5.0, section 3.3.2.3).
pub(super) fn forwarded_properties(
    properties: &Properties<'_>,
    now: Nanos,
    forwarded: &mut Vec<u8>,
) -> Nanos {
    let mut expires = Nanos::NEVER;
    for (id, value, raw) in properties.raw_items() {
        match (id, value) {
            (Id::MessageExpiryInterval, super::codec::Value::Number(seconds)) => {
                expires = now + Nanos::from_secs(u64::from(seconds));
            }
            (Id::TopicAlias | Id::SubscriptionIdentifier | Id::WillDelayInterval, _) => {}
            _ => forwarded.extend_from_slice(raw),
        }
    }
    expires
}

/// Remaining life of a message in whole seconds, rounded up; `None` if it does not expire.
pub(super) fn seconds_left(expires: Nanos, now: Nanos) -> Option<u32> {
    (expires != Nanos::NEVER)
        .then(|| u32::try_from(expires.since(now).0.div_ceil(1_000_000_000)).unwrap_or(u32::MAX))
}
