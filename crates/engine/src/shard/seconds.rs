//! Closed loops that send a share of their rate in each second: who has sent it waits for the next
//! one to begin.

use weigh_model::{Arrival, Load, Nanos};

use super::Shard;

/// What a producer has sent in the second that it is in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// The second, from the start of the load on.
    second: u64,
    /// Messages that were let go in it.
    spent: u64,
}

/// Those of so many producers; none where seconds have no shares.
pub(super) fn shares(load: &Load, producers: usize) -> Vec<Share> {
    let has_shares = load.arrival == Arrival::EachSecond;
    vec![Share::default(); if has_shares { producers } else { 0 }]
}

impl Shard {
    /// When this link may send again, if its share of the second that `since` lies in is spent;
    /// else so many messages are taken from the share.
    pub(super) fn next_second(&mut self, link: u32, since: Nanos, messages: u64) -> Option<Nanos> {
        let whole = self.job.load().share_of_second(self.links[link as usize].state.index)?;
        let place = link as usize - self.desk.accounts.consumers.len();
        let share = self.shares.get_mut(place)?;
        let second = since.since(self.start).0 / SECOND.0;
        if second > share.second {
            *share = Share { second, spent: 0 };
        }
        if share.spent < whole {
            share.spent += messages;
            return None;
        }
        Some(self.start + Nanos((share.second + 1) * SECOND.0))
    }
}

/// How long a share lasts.
const SECOND: Nanos = Nanos::from_secs(1);
