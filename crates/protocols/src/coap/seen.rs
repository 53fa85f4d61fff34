//! Messages that were received from one peer, by message ID: a duplicate within EXCHANGE_LIFETIME
//! is answered as before and not handled again (RFC 7252, section 4.5).

use std::collections::HashMap;

use weigh_model::Nanos;

use super::codec::{Code, Token};

/// The IDs received from one peer, in two generations: the older one is dropped whole.
#[derive(Debug, Default)]
pub(super) struct Seen {
    young: HashMap<u16, Entry>,
    old: HashMap<u16, Entry>,
    born: Nanos,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    token: Token,
    known: Known,
    at: Nanos,
}

/// A message that was received before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// The code with which it was answered.
    pub(super) code: Code,
    /// Its number under OSCORE, which a copy has too; 0 without.
    pub(super) partial_iv: u64,
}

impl Seen {
    /// Returns what is known of a message with this ID that came within `lifetime`; `None` if there
    /// was none. A message with another token is another message: its sender has lost its
    /// memory, or reuses IDs early.
    pub(super) fn known(
        &self,
        id: u16,
        token: Token,
        now: Nanos,
        lifetime: Nanos,
    ) -> Option<Known> {
        let entry = self.young.get(&id).or_else(|| self.old.get(&id))?;
        (entry.token == token && now.since(entry.at) < lifetime).then_some(entry.known)
    }

    /// Remembers a message and its answer.
    pub(super) fn note(
        &mut self,
        id: u16,
        token: Token,
        known: Known,
        now: Nanos,
        lifetime: Nanos,
    ) {
        if now.since(self.born) >= lifetime {
            self.old = std::mem::take(&mut self.young);
            self.born = now;
        }
        self.young.insert(id, Entry { token, known, at: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coap::codec::code;

    #[test]
    fn duplicates_are_known_for_a_lifetime_and_no_longer() {
        let (mut seen, lifetime) = (Seen::default(), Nanos::from_secs(10));
        let token = Token::of(b"ab");
        let known = Known { code: code::CHANGED, partial_iv: 0 };
        for second in 0..100u64 {
            let now = Nanos::from_secs(second);
            let id = second as u16;
            assert_eq!(seen.known(id, token, now, lifetime), None);
            seen.note(id, token, known, now, lifetime);
            for age in 0..20.min(second) {
                let found = seen.known(id - age as u16, token, now, lifetime);
                assert_eq!(found.is_some(), age < 10, "{second} {age}");
            }
            assert_eq!(seen.known(id, Token::of(b"other"), now, lifetime), None);
        }
        assert!(seen.young.len() + seen.old.len() <= 20);
    }
}
