//! Work that one shard leaves for another, which is notified.

use weigh_model::server::Outboxes;

/// A mailbox for each shard.
#[derive(Debug)]
pub(crate) struct Mailboxes<M> {
    each: Vec<Vec<M>>,
}

impl<M> Mailboxes<M> {
    pub(crate) fn new() -> Mailboxes<M> {
        Mailboxes { each: Vec::new() }
    }

    /// Leaves work for a shard.
    pub(crate) fn post(&mut self, shard: u16, mail: M, out: &mut dyn Outboxes) {
        let place = usize::from(shard);
        if self.each.len() <= place {
            self.each.resize_with(place + 1, Vec::new);
        }
        self.each[place].push(mail);
        out.notify_shard(shard);
    }

    /// Takes the work that other shards left for this one.
    pub(crate) fn take(&mut self, shard: u16) -> Vec<M> {
        self.each.get_mut(usize::from(shard)).map(std::mem::take).unwrap_or_default()
    }
}
