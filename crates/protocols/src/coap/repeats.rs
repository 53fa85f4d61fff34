//! Confirmable messages that are not acknowledged yet, and when each is repeated (RFC 7252, section
//! 4.2): after a time between ACK_TIMEOUT and ACK_RANDOM_FACTOR times that, doubled with each
//! repetition.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use weigh_model::Nanos;

use super::codec::Token;
use super::parameters::Parameters;
use crate::chance::Chance;

/// The unacknowledged messages to one peer or several.
#[derive(Debug)]
pub(super) struct Repeats {
    parameters: Parameters,
    chance: Chance,
    /// By peer and message IDs of this end, so that a peer cannot choose colliding keys.
    pending: FxHashMap<Key, Pending>,
    times: BTreeSet<(Nanos, Key)>,
    /// Buffers of messages that were acknowledged.
    spare: Vec<Vec<u8>>,
}

/// Peer and message ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) peer: u32,
    pub(super) id: u16,
}

#[derive(Debug)]
struct Pending {
    token: Token,
    message: Vec<u8>,
    at: Nanos,
    wait: Nanos,
    left: u32,
}

/// A message whose time has come.
pub(super) enum Due<'m> {
    /// Its bytes are to be sent again.
    Again { key: Key, token: Token, message: &'m [u8] },
    /// It was repeated as often as it may be; its token.
    GivenUp(Key, Token),
}

impl Repeats {
    pub(super) fn new(parameters: Parameters, chance: Chance) -> Repeats {
        Repeats {
            parameters,
            chance,
            pending: FxHashMap::default(),
            times: BTreeSet::new(),
            spare: Vec::new(),
        }
    }

    /// A confirmable message was sent now.
    pub(super) fn hold(&mut self, key: Key, token: Token, message: &[u8], now: Nanos) {
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(message);
        let factor = 1.0 + self.chance.share() * (self.parameters.ack_random_factor - 1.0);
        let wait = Nanos((self.parameters.ack_timeout.0 as f64 * factor) as u64);
        let left = self.parameters.max_retransmit;
        let pending = Pending { token, message: kept, at: now + wait, wait, left };
        self.times.insert((pending.at, key));
        if let Some(old) = self.pending.insert(key, pending) {
            self.times.remove(&(old.at, key));
        }
    }

    /// The message was acknowledged or rejected; its token, or `None` if it is not pending.
    pub(super) fn take(&mut self, key: Key) -> Option<Token> {
        let pending = self.pending.remove(&key)?;
        self.times.remove(&(pending.at, key));
        if self.spare.len() < SPARE_MAX {
            self.spare.push(pending.message);
        }
        Some(pending.token)
    }

    /// Forgets the messages to a peer that is gone.
    pub(super) fn forget(&mut self, peer: u32) {
        if self.pending.is_empty() {
            return;
        }
        self.pending.retain(|key, _| key.peer != peer);
        self.times.retain(|(_, key)| key.peer != peer);
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.times.first().map(|(at, _)| *at)
    }

    /// Takes the next one that is due.
    pub(super) fn due(&mut self, now: Nanos) -> Option<Due<'_>> {
        let (_, key) = self.times.first().copied().filter(|(at, _)| *at <= now)?;
        self.times.pop_first();
        if self.pending.get(&key).is_none_or(|pending| pending.left == 0) {
            let token = self.pending.remove(&key).map(|pending| pending.token);
            return Some(Due::GivenUp(key, token.unwrap_or_default()));
        }
        let pending = self.pending.get_mut(&key)?;
        pending.left -= 1;
        pending.wait = Nanos(pending.wait.0.saturating_mul(2));
        // From the time at which it was due, so that being woken late does not add up.
        pending.at = pending.at + pending.wait;
        self.times.insert((pending.at, key));
        Some(Due::Again { key, token: pending.token, message: &pending.message })
    }
}

/// Buffers that are kept for reuse.
const SPARE_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use weigh_model::trial::Settings;

    use super::*;

    fn repeats(seed: u64) -> Repeats {
        let settings = Settings::new("coap", super::super::settings::SETTINGS, None).unwrap();
        Repeats::new(Parameters::read(&settings).unwrap(), Chance::new(seed, 0))
    }

    /// Sent at 0, repeated four times, and given up after twice the last wait: between 62 and 93 s.
    #[test]
    fn waits_double_from_a_random_first_one() {
        let mut firsts = Vec::new();
        for seed in 0..200 {
            let mut repeats = repeats(seed);
            let key = Key { peer: 3, id: 9 };
            repeats.hold(key, Token::of(b"t"), b"message", Nanos(0));
            let mut times = Vec::new();
            while let Some(at) = repeats.next() {
                times.push(at);
                match repeats.due(at) {
                    Some(Due::Again { key: of, token, message }) => {
                        assert_eq!((of, token), (key, Token::of(b"t")));
                        assert_eq!(message, b"message");
                    }
                    Some(Due::GivenUp(of, token)) => {
                        assert_eq!((of, token), (key, Token::of(b"t")));
                    }
                    None => panic!("nothing is due at its time"),
                }
            }
            assert_eq!((times.len(), repeats.pending.len()), (5, 0));
            let first = times[0].0;
            assert!((2_000_000_000..3_000_000_000).contains(&first), "{first}");
            let shares = times.iter().map(|at| at.0 / first).collect::<Vec<_>>();
            assert_eq!(shares, [1, 3, 7, 15, 31]);
            firsts.push(first);
        }
        let mean = firsts.iter().sum::<u64>() / 200;
        assert!((2_450_000_000..2_550_000_000).contains(&mean), "{mean}");
    }

    #[test]
    fn what_is_acknowledged_is_not_repeated() {
        let mut repeats = repeats(1);
        let [one, two] = [Key { peer: 0, id: 1 }, Key { peer: 7, id: 1 }];
        repeats.hold(one, Token::of(b"1"), b"a", Nanos(0));
        repeats.hold(two, Token::of(b"2"), b"b", Nanos(0));
        assert_eq!((repeats.take(one), repeats.take(one)), (Some(Token::of(b"1")), None));
        repeats.forget(7);
        assert_eq!((repeats.next(), repeats.pending.len()), (None, 0));
    }
}
