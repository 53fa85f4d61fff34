//! The ledger: where every message ended. All terms are counted by identity, exactly, never
//! sampled:
//!
//! ```text
//! scheduled = not_sent + sent
//! sent      = delivered + late + lost
//! received  = delivered + late + duplicates + corrupt + foreign
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Cause for which a message was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The producer dropped it after it was handed over.
    ProducerDropped,
    /// The connection closed with it in flight.
    ConnectionClosed,
    /// The server's own counter reports that it dropped it.
    ServerDropped,
    /// The subscriber was disconnected.
    SubscriberDisconnected,
    /// The server answered with an error.
    ErrorAnswer,
    /// The kernel dropped it, or the answer to it, because the receive queue of a datagram socket
    /// was full.
    ReceiveQueueFull,
    /// No answer, or no delivery, within Tmax on a connection that stayed open.
    Timeout,
    /// It arrived damaged.
    Corrupt,
    /// No other cause could be shown.
    Unknown,
}

/// Cause for which a message that was due was never handed to the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotSentCause {
    /// Every connection had its window full until the end.
    WindowFull,
    /// There was no connection left.
    ConnectionClosed,
    /// The run was interrupted.
    Interrupted,
}

impl Cause {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Cause::ProducerDropped => "producer_dropped",
            Cause::ConnectionClosed => "connection_closed",
            Cause::ServerDropped => "server_dropped",
            Cause::SubscriberDisconnected => "subscriber_disconnected",
            Cause::ErrorAnswer => "error_answer",
            Cause::ReceiveQueueFull => "receive_queue_full",
            Cause::Timeout => "timeout",
            Cause::Corrupt => "corrupt",
            Cause::Unknown => "unknown",
        }
    }

    /// The name in texts: `connection closed`.
    pub fn words(self) -> String {
        self.name().replace('_', " ")
    }
}

impl NotSentCause {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            NotSentCause::WindowFull => "window_full",
            NotSentCause::ConnectionClosed => "connection_closed",
            NotSentCause::Interrupted => "interrupted",
        }
    }

    /// The name in texts: `window full`.
    pub fn words(self) -> String {
        self.name().replace('_', " ")
    }
}

/// The ledger of a trial, or the sum over the trials of a cell. In patterns with consumers
/// everything except `messages` counts pairs of message and subscriber.
///
/// # Examples
///
/// Three messages, one of which was not answered in time:
///
/// ```
/// use weigh_model::Ledger;
/// use weigh_model::ledger::Cause;
///
/// let mut ledger = Ledger { scheduled: 3, sent: 3, received: 2, ..Ledger::default() };
/// (ledger.delivered, ledger.lost) = (Some(2), Some(1));
/// assert!(ledger.contradiction().is_some(), "the loss has no cause");
/// ledger.causes.insert(Cause::Timeout, 1);
/// assert_eq!(ledger.contradiction(), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// Different messages, however many subscribers each had.
    pub messages: u64,
    /// Messages that were due in the measured window.
    pub scheduled: u64,
    /// Messages due but never handed to the transport.
    pub not_sent: u64,
    /// Messages handed to the transport.
    pub sent: u64,
    /// Messages the server confirmed.
    pub acknowledged: u64,
    /// Messages that arrived whole within Tmax; unknown for unconfirmed messages without a
    /// subscriber.
    pub delivered: Option<u64>,
    /// Messages that first arrived after Tmax.
    pub late: u64,
    /// Messages that never arrived; unknown where `delivered` is.
    pub lost: Option<u64>,
    /// Further arrivals of messages that had arrived before.
    pub duplicates: u64,
    /// Messages that arrived after a later one of the same producer (RFC 4737).
    pub reordered: u64,
    /// Arrivals with a Weighbridge mark whose check fails.
    pub corrupt: u64,
    /// Arrivals without a Weighbridge mark.
    pub foreign: u64,
    /// Messages that the server confirmed and that did not arrive.
    pub acked_not_delivered: u64,
    /// Messages for which the server reported no subscribers (MQTT 5 reason 0x10).
    pub no_subscriber: u64,
    /// All arrivals.
    pub received: u64,
    /// Lost messages by cause; they add up to `lost`.
    pub causes: BTreeMap<Cause, u64>,
    /// Unsent messages by cause; they add up to `not_sent`.
    pub not_sent_causes: BTreeMap<NotSentCause, u64>,
    /// Lost messages by the stage that saw them last, if there are several stages; they add up to
    /// `lost`. Absent elsewhere.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub last_seen: BTreeMap<String, u64>,
}

impl Ledger {
    /// Adds `other`; what is unknown in either is unknown in the sum.
    pub fn add(&mut self, other: &Ledger) {
        self.messages += other.messages;
        self.scheduled += other.scheduled;
        self.not_sent += other.not_sent;
        self.sent += other.sent;
        self.acknowledged += other.acknowledged;
        self.delivered = self.delivered.zip(other.delivered).map(|(a, b)| a + b);
        self.late += other.late;
        self.lost = self.lost.zip(other.lost).map(|(a, b)| a + b);
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.corrupt += other.corrupt;
        self.foreign += other.foreign;
        self.acked_not_delivered += other.acked_not_delivered;
        self.no_subscriber += other.no_subscriber;
        self.received += other.received;
        for (cause, count) in &other.causes {
            *self.causes.entry(*cause).or_default() += count;
        }
        for (cause, count) in &other.not_sent_causes {
            *self.not_sent_causes.entry(*cause).or_default() += count;
        }
        for (stage, count) in &other.last_seen {
            *self.last_seen.entry(stage.clone()).or_default() += count;
        }
    }

    /// Messages that were due and never sent because of the target: until the end it had not
    /// answered what was in flight, or no connection to it was left. They are never answered, so
    /// times from the due time count them as infinite.
    pub fn held_back(&self) -> u64 {
        let held = [NotSentCause::WindowFull, NotSentCause::ConnectionClosed];
        held.iter().filter_map(|cause| self.not_sent_causes.get(cause)).sum()
    }

    /// Messages whose time of this name is infinite: those that were lost, and in times from the
    /// due time also [`Ledger::held_back`]. Error answers are in neither response nor service
    /// times. `delivers` is true in patterns with consumers, where the ledger counts pairs:
    /// `copies` of each message, and a response is one for each message.
    pub fn infinite(&self, time: &str, delivers: bool, copies: u64) -> u64 {
        let errors = self.causes.get(&Cause::ErrorAnswer).copied().unwrap_or(0);
        let (lost, unsent, copies) = (self.lost.unwrap_or(0), self.held_back(), copies.max(1));
        let unanswered = match delivers {
            true => self.sent.saturating_sub(self.acknowledged + errors) / copies,
            false => lost.saturating_sub(errors),
        };
        match time {
            "delivery_time_ns" => lost + unsent,
            "one_way_time_ns" => lost,
            "response_time_ns" => unanswered + unsent / copies,
            "service_time_ns" => unanswered,
            _ => 0,
        }
    }

    /// Returns an empty ledger to add others to.
    pub fn zero() -> Ledger {
        Ledger { delivered: Some(0), lost: Some(0), ..Ledger::default() }
    }

    /// Returns the first identity that does not hold, in words; `None` if all hold.
    pub fn contradiction(&self) -> Option<String> {
        let lost_by_cause: u64 = self.causes.values().sum();
        let unsent_by_cause: u64 = self.not_sent_causes.values().sum();
        let differs = |name: &str, left: u64, right: u64| {
            (left != right).then(|| format!("{name}: {left} is not {right}"))
        };
        let known = self.delivered.zip(self.lost).and_then(|(delivered, lost)| {
            differs("sent = delivered + late + lost", self.sent, delivered + self.late + lost)
                .or_else(|| differs("lost = sum of causes", lost, lost_by_cause))
                .or_else(|| {
                    differs(
                        "received = delivered + late + duplicates + corrupt + foreign",
                        self.received,
                        delivered + self.late + self.duplicates + self.corrupt + self.foreign,
                    )
                })
        });
        differs("scheduled = not_sent + sent", self.scheduled, self.not_sent + self.sent)
            .or_else(|| differs("not_sent = sum of causes", self.not_sent, unsent_by_cause))
            .or(known)
    }
}

crate::portable_choice!(Cause {
    ProducerDropped = 0,
    ConnectionClosed = 1,
    ServerDropped = 2,
    SubscriberDisconnected = 3,
    ErrorAnswer = 4,
    ReceiveQueueFull = 5,
    Timeout = 6,
    Corrupt = 7,
    Unknown = 8,
});
crate::portable_choice!(NotSentCause { WindowFull = 0, ConnectionClosed = 1, Interrupted = 2 });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_that_does_not_add_up_says_where() {
        let mut ledger = Ledger { scheduled: 3, sent: 3, received: 2, ..Ledger::zero() };
        ledger.delivered = Some(2);
        assert!(ledger.contradiction().unwrap().starts_with("sent ="));
        ledger.lost = Some(1);
        assert!(ledger.contradiction().unwrap().starts_with("lost ="));
        ledger.causes.insert(Cause::Timeout, 1);
        assert_eq!(ledger.contradiction(), None);
        let mut sum = Ledger::zero();
        sum.add(&ledger);
        sum.add(&ledger);
        assert_eq!((sum.sent, sum.lost, sum.causes[&Cause::Timeout]), (6, Some(2), 2));
        assert_eq!(sum.contradiction(), None);
    }
}
