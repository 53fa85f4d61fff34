//! Closed loops that send a share of their rate in each second: who has sent it waits for the next
//! one to begin.

use weigh_model::Nanos;

use super::Shard;
use super::parts::Share;

impl Shard {
    /// When this link may send again, if its share of the second that `since` lies in is spent;
    /// else so many messages are taken from the share.
    pub(super) fn next_second(&mut self, link: u32, since: Nanos, messages: u64) -> Option<Nanos> {
        let whole = self.job.load().share_of_second(self.links[link as usize].state.index)?;
        let place = link as usize - self.desk.left.accounts.consumers.len();
        let share = self.source.shares.get_mut(place)?;
        let second = since.since(self.clock.start).0 / SECOND.0;
        if second > share.second {
            *share = Share { second, spent: 0 };
        }
        if share.spent < whole {
            share.spent += messages;
            return None;
        }
        Some(self.clock.start + Nanos((share.second + 1) * SECOND.0))
    }
}

/// How long a share lasts.
const SECOND: Nanos = Nanos::from_secs(1);
