//! Message IDs of one endpoint. There are 65,536, and none may be used again within the lifetime of
//! its exchange (RFC 7252, section 4.4): in 247 s that is 265 confirmable messages a second.

use std::collections::VecDeque;

use weigh_model::Nanos;

/// The IDs of messages to one peer, in rising order from a random first.
#[derive(Debug)]
pub(super) struct MessageIds {
    next: u16,
    /// IDs that may not be used again yet.
    used: u32,
    lifetime: Nanos,
    /// Groups of IDs given out: when they are free again, and how many they are.
    groups: VecDeque<(Nanos, u32)>,
}

impl MessageIds {
    /// All IDs are free, and `first` is given out first.
    pub(super) fn new(first: u16, lifetime: Nanos) -> MessageIds {
        MessageIds { next: first, used: 0, lifetime, groups: VecDeque::new() }
    }

    /// IDs that may be given out.
    pub(super) fn free(&self) -> u32 {
        IDS - self.used
    }

    /// Gives out an ID; `None` if all are in use.
    pub(super) fn take(&mut self, now: Nanos) -> Option<u16> {
        self.release(now);
        if self.free() == 0 {
            return None;
        }
        let width = Nanos(self.lifetime.0 / GROUPS + 1);
        // The newest ID of a group decides when all of the group are free.
        let until = now + self.lifetime + width;
        match self.groups.back_mut() {
            Some((end, count)) if *end + width > until => *count += 1,
            _ => self.groups.push_back((until, 1)),
        }
        self.used += 1;
        let id = self.next;
        self.next = id.wrapping_add(1);
        Some(id)
    }

    /// Frees the IDs whose exchanges are over.
    pub(super) fn release(&mut self, now: Nanos) {
        while let Some((end, count)) = self.groups.front().copied()
            && end <= now
        {
            self.groups.pop_front();
            self.used -= count;
        }
    }
}

/// Number of message IDs.
pub(super) const IDS: u32 = 1 << 16;

/// Number of groups in one lifetime: IDs are free up to 1/64 later than the specification allows.
const GROUPS: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_comes_back_within_its_lifetime() {
        let lifetime = Nanos::from_secs(247);
        let mut ids = MessageIds::new(65_000, lifetime);
        let mut given = std::collections::HashMap::new();
        let mut refused = 0;
        // 400 a second are more than there are IDs for.
        for step in 0..400 * 600u64 {
            let now = Nanos(step * 2_500_000);
            match ids.take(now) {
                Some(id) => {
                    let before = given.insert(id, now);
                    assert!(before.is_none_or(|before| now - before >= lifetime), "{id}");
                }
                None => refused += 1,
            }
        }
        // Of 240,000 tries in 600 s, IDs suffice for about 65,536 in each 247 to 251 s.
        let taken = 400 * 600 - refused;
        assert!((2 * 65_536..=3 * 65_536).contains(&taken), "{taken}");
    }

    #[test]
    fn all_ids_can_be_in_use_at_once() {
        let mut ids = MessageIds::new(7, Nanos::from_secs(10));
        for number in 0..IDS {
            assert_eq!(ids.take(Nanos(0)), Some(7u16.wrapping_add(number as u16)));
        }
        assert_eq!((ids.free(), ids.take(Nanos::from_secs(10))), (0, None));
        assert!(ids.take(Nanos::from_secs(11)).is_some());
    }
}
