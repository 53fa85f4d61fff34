//! State of messages on a connection: what is in flight, and which answer ends it.

use std::collections::VecDeque;

use weigh_model::connection::Ticket;

/// State of messages, and names of this connection.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Subject of this producer.
    pub(super) subject: Box<[u8]>,
    /// Prefix of the subjects of its answers.
    pub(super) inbox: Box<[u8]>,
    /// What each `+OK` answers: a message, or another line.
    pub(super) okays: VecDeque<Option<Ticket>>,
    /// What each PONG answers.
    pub(super) pongs: VecDeque<Pong>,
    /// Messages that a PONG will confirm, in their order.
    pub(super) flushed: VecDeque<Ticket>,
    /// Messages that an answer in the inbox will confirm.
    pub(super) numbered: Numbered,
    /// Operations that could not be sent, or were refused, with the reason.
    pub(super) unsendable: Vec<(Ticket, u16)>,
    /// Messages that a pull consumer has requested and not yet got.
    pub(super) requested: u64,
    /// Number of messages published, for Nats-Msg-Id.
    pub(super) published: u64,
    /// Scratch space for subjects and headers.
    pub(super) reply: Vec<u8>,
    pub(super) headers: Vec<u8>,
}

/// What a PONG answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pong {
    /// The PING behind CONNECT.
    Greeting,
    /// A keep-alive.
    Alive,
    /// The PING behind messages. Some of them may have been refused meanwhile; which, the server
    /// does not say, so they are taken to be the first.
    Flush { messages: u32, refused: u32, code: u16 },
}

impl Pong {
    pub(super) fn flush(messages: u32) -> Pong {
        Pong::Flush { messages, refused: 0, code: 0 }
    }

    pub(super) fn is_flush(&self) -> bool {
        matches!(self, Pong::Flush { messages, refused, .. } if refused < messages)
    }

    /// One of its messages was refused.
    pub(super) fn refuse(&mut self, with: u16) {
        if let Pong::Flush { refused, code, .. } = self {
            *refused += 1;
            *code = with;
        }
    }
}

impl Flow {
    /// Once for each client, apart from what every message goes through.
    #[cold]
    pub(super) fn made() -> Box<Flow> {
        Box::default()
    }

    /// Messages that await an answer.
    pub(super) fn in_flight(&self) -> usize {
        self.okays.len() + self.flushed.len() + self.numbered.live
    }
}

/// Messages by a number that each gets once: answers may come in any order, and one that comes
/// late is not taken for that of another message.
#[derive(Debug, Default)]
pub(super) struct Numbered {
    /// Number of the first entry.
    base: u64,
    entries: VecDeque<Option<Ticket>>,
    live: usize,
}

impl Numbered {
    pub(super) fn insert(&mut self, ticket: Ticket) -> u64 {
        let number = self.base + self.entries.len() as u64;
        self.entries.push_back(Some(ticket));
        self.live += 1;
        number
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Ticket> {
        let at = usize::try_from(number.checked_sub(self.base)?).ok()?;
        let ticket = self.entries.get_mut(at)?.take()?;
        self.live -= 1;
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.base += 1;
        }
        Some(ticket)
    }
}

/// Subscription to the answers.
pub(super) const INBOX_SID: &[u8] = b"1";
/// Subscription of a consumer.
pub(super) const INTEREST_SID: &[u8] = b"2";
/// Subscription of the responder.
pub(super) const SERVICE_SID: &[u8] = b"3";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_any_order_find_their_message_once() {
        let mut numbered = Numbered::default();
        let numbers: Vec<u64> = (0..4).map(|id| numbered.insert(Ticket(id))).collect();
        assert_eq!(numbered.remove(numbers[2]), Some(Ticket(2)));
        assert_eq!(numbered.remove(numbers[2]), None);
        assert_eq!(numbered.remove(numbers[0]), Some(Ticket(0)));
        assert_eq!(numbered.remove(numbers[1]), Some(Ticket(1)));
        assert_eq!((numbered.live, numbered.entries.len()), (1, 1));
        assert_eq!(numbered.insert(Ticket(0)), 4, "a number is not used again");
        assert_eq!(numbered.remove(1), None);
        assert_eq!(numbered.remove(9), None);
    }
}
