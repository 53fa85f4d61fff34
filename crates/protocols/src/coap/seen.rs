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
    code: Code,
    at: Nanos,
}

impl Seen {
    /// Returns the code with which a message with this ID was answered within `lifetime`; `None` if
    /// there was none. A message with another token is another message: its sender has lost its
    /// memory, or reuses IDs early.
    pub(super) fn answer(
        &self,
        id: u16,
        token: Token,
        now: Nanos,
        lifetime: Nanos,
    ) -> Option<Code> {
        let entry = self.young.get(&id).or_else(|| self.old.get(&id))?;
        (entry.token == token && now.since(entry.at) < lifetime).then_some(entry.code)
    }

    /// Remembers a message and its answer.
    pub(super) fn note(&mut self, id: u16, token: Token, code: Code, now: Nanos, lifetime: Nanos) {
        if now.since(self.born) >= lifetime {
            self.old = std::mem::take(&mut self.young);
            self.born = now;
        }
        self.young.insert(id, Entry { token, code, at: now });
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
        for second in 0..100u64 {
            let now = Nanos::from_secs(second);
            let id = second as u16;
            assert_eq!(seen.answer(id, token, now, lifetime), None);
            seen.note(id, token, code::CHANGED, now, lifetime);
            for age in 0..20.min(second) {
                let known = seen.answer(id - age as u16, token, now, lifetime);
                assert_eq!(known.is_some(), age < 10, "{second} {age}");
            }
            assert_eq!(seen.answer(id, Token::of(b"other"), now, lifetime), None);
        }
        assert!(seen.young.len() + seen.old.len() <= 20);
    }
}
