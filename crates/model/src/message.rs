//! One message of the measured window in the optional record of single messages: when it was due,
//! sent, confirmed, delivered, and how it ended. `docs/guide/exports.md` describes the file of
//! these rows.

use crate::ledger::{Cause, NotSentCause};

/// A row of the record: a message, or a pair of message and subscriber if there are subscribers.
/// Times are nanoseconds on the trial's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// The producing client, from 0; unknown for what was never sent.
    pub producer: Option<u32>,
    /// Number of the message at its producer, from 0; unknown for what was never sent.
    pub sequence: Option<u64>,
    /// Number of connections that its producer had opened before the one that carried it.
    pub connection: Option<u32>,
    /// The subscriber of this pair, from 0; absent where there are none.
    pub consumer: Option<u32>,
    /// Due time; unknown for a message that was never sent.
    pub due_ns: Option<u64>,
    /// Time at which it was handed to the transport.
    pub sent_ns: Option<u64>,
    /// Time at which the server confirmed it, or answered it with an error.
    pub confirmed_ns: Option<u64>,
    /// Time at which the subscriber received it.
    pub delivered_ns: Option<u64>,
    /// Its end.
    pub state: MessageState,
    /// Cause for which it was lost or never sent.
    pub cause: Option<LossCause>,
    /// Bytes of its body.
    pub body_bytes: Option<u32>,
}

/// End of a message. The rows of a trial by state add up to its ledger: `error` and `lost` together
/// are the ledger's `lost`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageState {
    /// Delivered in time; without subscribers, confirmed in time.
    Delivered,
    /// Delivered or confirmed after the timeout.
    Late,
    /// It never arrived.
    Lost,
    /// The server answered it with an error.
    Error,
    /// Due and never handed to the transport.
    NotSent,
    /// Sent without confirmation or subscriber: its fate is unknown.
    Sent,
    /// Outstanding for too long for the record to wait for it.
    Unsettled,
}

/// Cause for which a message was lost or never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LossCause {
    /// It was sent and lost.
    Lost(Cause),
    /// It was never sent.
    NotSent(NotSentCause),
}

impl MessageState {
    /// All states.
    pub const ALL: [MessageState; 7] = [
        MessageState::Delivered,
        MessageState::Late,
        MessageState::Lost,
        MessageState::Error,
        MessageState::NotSent,
        MessageState::Sent,
        MessageState::Unsettled,
    ];

    /// The word in files.
    pub fn name(self) -> &'static str {
        match self {
            MessageState::Delivered => "delivered",
            MessageState::Late => "late",
            MessageState::Lost => "lost",
            MessageState::Error => "error",
            MessageState::NotSent => "not_sent",
            MessageState::Sent => "sent",
            MessageState::Unsettled => "unsettled",
        }
    }

    /// The state of a word; `None` if there is no such state.
    pub fn from_name(name: &str) -> Option<MessageState> {
        MessageState::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl LossCause {
    /// All causes.
    pub const ALL: [LossCause; 12] = [
        LossCause::Lost(Cause::ProducerDropped),
        LossCause::Lost(Cause::ConnectionClosed),
        LossCause::Lost(Cause::ServerDropped),
        LossCause::Lost(Cause::SubscriberDisconnected),
        LossCause::Lost(Cause::ErrorAnswer),
        LossCause::Lost(Cause::ReceiveQueueFull),
        LossCause::Lost(Cause::Timeout),
        LossCause::Lost(Cause::Corrupt),
        LossCause::Lost(Cause::Unknown),
        LossCause::NotSent(NotSentCause::WindowFull),
        LossCause::NotSent(NotSentCause::ConnectionClosed),
        LossCause::NotSent(NotSentCause::Interrupted),
    ];

    /// The word in files: the one that the ledger uses.
    pub fn name(self) -> &'static str {
        match self {
            LossCause::Lost(cause) => cause.name(),
            LossCause::NotSent(cause) => cause.name(),
        }
    }

    /// The cause of a word next to this state; `None` if there is no such cause.
    pub fn from_name(name: &str, state: MessageState) -> Option<LossCause> {
        let is_unsent = state == MessageState::NotSent;
        LossCause::ALL.into_iter().find(|cause| {
            cause.name() == name && matches!(cause, LossCause::NotSent(_)) == is_unsent
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_ledger_and_lead_back() {
        for cause in LossCause::ALL {
            let (word, state) = match cause {
                LossCause::Lost(cause) => (serde_json::to_value(cause), MessageState::Lost),
                LossCause::NotSent(cause) => (serde_json::to_value(cause), MessageState::NotSent),
            };
            assert_eq!(word.unwrap(), cause.name());
            assert_eq!(LossCause::from_name(cause.name(), state), Some(cause));
        }
        for state in MessageState::ALL {
            assert_eq!(MessageState::from_name(state.name()), Some(state));
        }
        assert_eq!(LossCause::from_name("window_full", MessageState::Lost), None);
    }
}
