//! Messages that wait for their confirmation. The server counts messages of a channel from 1 and
//! confirms by that number, one by one or all up to it (`multiple`), in any order.

use std::collections::VecDeque;

use weigh_model::connection::{Emit, Fault, Signal, Ticket};
use weigh_model::mark::MARK_BYTES;

/// What is sent and not confirmed.
#[derive(Debug)]
pub(super) struct Confirms {
    sent: VecDeque<Sent>,
    /// Delivery tag of the first one.
    first: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    ticket: Ticket,
    /// Recognises the message if it comes back.
    check: u32,
    is_returned: bool,
    is_open: bool,
}

impl Default for Confirms {
    fn default() -> Confirms {
        Confirms { sent: VecDeque::new(), first: 1 }
    }
}

impl Confirms {
    /// Notes a message that was sent.
    #[inline]
    pub(super) fn sent(&mut self, ticket: Ticket, check: u32) {
        self.sent.push_back(Sent { ticket, check, is_returned: false, is_open: true });
    }

    /// The server returned a message: its confirmation will follow. Without a check it is the first
    /// one that has not come back.
    pub(super) fn returned(&mut self, check: Option<u32>) {
        let is_it = |sent: &&mut Sent| {
            sent.is_open && !sent.is_returned && check.is_none_or(|check| check == sent.check)
        };
        if let Some(sent) = self.sent.iter_mut().find(is_it) {
            sent.is_returned = true;
        }
    }

    /// The server confirmed messages, or said that it did not take them.
    ///
    /// # Errors
    /// A number that no message has.
    pub(super) fn end(
        &mut self,
        tag: u64,
        is_multiple: bool,
        is_taken: bool,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let after = self.first + self.sent.len() as u64;
        let is_all = tag == 0 && is_multiple;
        if !is_all && (tag == 0 || tag >= after) {
            let what = format!("it confirms message {tag} of {}", after - 1);
            return Err(Fault::Malformed(what));
        }
        let end = if is_all { after } else { tag + 1 };
        let count = end.saturating_sub(self.first) as usize;
        let from = if is_multiple { 0 } else { count.saturating_sub(1) };
        for sent in self.sent.range_mut(from..count) {
            if std::mem::replace(&mut sent.is_open, false) {
                emit(match (is_taken, sent.is_returned) {
                    (false, _) => Signal::Refused(sent.ticket, NACKED),
                    (true, true) => Signal::NoSubscriber(sent.ticket),
                    (true, false) => Signal::Done(sent.ticket),
                });
            }
        }
        while self.sent.front().is_some_and(|sent| !sent.is_open) {
            self.sent.pop_front();
            self.first += 1;
        }
        Ok(())
    }
}

/// Recognises a message by its end, where its mark is.
pub(super) fn check_of(body: &[u8]) -> u32 {
    crc32fast::hash(&body[body.len().saturating_sub(END_BYTES)..])
}

/// Code of [`Signal::Refused`] for basic.nack, which has none of its own.
pub(crate) const NACKED: u16 = 0;

/// The mark, and what may follow it.
const END_BYTES: usize = MARK_BYTES + 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(confirms: &mut Confirms, tag: u64, is_multiple: bool, is_taken: bool) -> Vec<String> {
        let mut heard = Vec::new();
        confirms
            .end(tag, is_multiple, is_taken, &mut |signal| heard.push(format!("{signal:?}")))
            .unwrap();
        heard
    }

    #[test]
    fn confirmations_end_one_or_all_up_to_one_in_any_order() {
        let mut confirms = Confirms::default();
        (0..5).for_each(|number| confirms.sent(Ticket(number), number));
        assert_eq!(ends(&mut confirms, 2, false, true), ["Done(Ticket(1))"]);
        assert_eq!(ends(&mut confirms, 2, false, true), [""; 0], "it came before");
        assert_eq!(ends(&mut confirms, 3, true, true), ["Done(Ticket(0))", "Done(Ticket(2))"]);
        assert_eq!(ends(&mut confirms, 1, false, true), [""; 0]);
        assert_eq!(ends(&mut confirms, 5, false, false), ["Refused(Ticket(4), 0)"]);
        confirms.returned(Some(9));
        confirms.returned(Some(3));
        assert_eq!(ends(&mut confirms, 0, true, true), ["NoSubscriber(Ticket(3))"]);
        for tag in [0, 6, u64::MAX] {
            assert!(confirms.end(tag, false, true, &mut |_| {}).is_err(), "{tag}");
        }
        confirms.sent(Ticket(9), 9);
        confirms.returned(None);
        assert_eq!(ends(&mut confirms, 6, true, true), ["NoSubscriber(Ticket(9))"]);
    }
}
