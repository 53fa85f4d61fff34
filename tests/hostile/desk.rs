//! Takes what a server stages and asks for, so that something else can be done with it.

use std::collections::BTreeMap;

use weigh_model::connection::end_frame;
use weigh_model::server::{ConnectionId, Outboxes, Record};

/// Outboxes that keep what is staged for each connection, in frames; everything else is passed to
/// the real ones.
pub struct Desk<'o> {
    pub real: &'o mut dyn Outboxes,
    staged: BTreeMap<u32, Staged>,
    /// Connections that are to be closed, and whether at once.
    pub closes: Vec<(ConnectionId, bool)>,
}

#[derive(Default)]
struct Staged {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl<'o> Desk<'o> {
    pub fn new(real: &'o mut dyn Outboxes) -> Desk<'o> {
        Desk { real, staged: BTreeMap::new(), closes: Vec::new() }
    }

    /// What was staged: for each connection its frames, or its bytes as one.
    pub fn take(&mut self) -> Vec<(ConnectionId, Vec<Vec<u8>>)> {
        let staged = std::mem::take(&mut self.staged).into_iter();
        let cut = |(to, Staged { bytes, mut ends }): (u32, Staged)| {
            end_frame(&bytes, &mut ends);
            let mut start = 0;
            let frames = ends.into_iter().map(|end| {
                let frame = bytes[start..end as usize].to_vec();
                start = end as usize;
                frame
            });
            (ConnectionId(to), frames.collect())
        };
        staged.map(cut).collect()
    }
}

impl Outboxes for Desk<'_> {
    fn stage(&mut self, to: ConnectionId) -> &mut Vec<u8> {
        &mut self.staged.entry(to.0).or_default().bytes
    }

    fn frame(&mut self, to: ConnectionId) {
        let Staged { bytes, ends } = self.staged.entry(to.0).or_default();
        end_frame(bytes, ends);
    }

    fn pending_bytes(&self, of: ConnectionId) -> usize {
        let here = self.staged.get(&of.0).map_or(0, |staged| staged.bytes.len());
        here + self.real.pending_bytes(of)
    }

    fn notify_drained(&mut self, of: ConnectionId) {
        self.real.notify_drained(of);
    }

    fn hold(&mut self, which: ConnectionId) {
        self.real.hold(which);
    }

    fn release(&mut self, which: ConnectionId) {
        self.real.release(which);
    }

    fn close(&mut self, which: ConnectionId) {
        self.closes.push((which, false));
    }

    fn abort(&mut self, which: ConnectionId) {
        self.closes.push((which, true));
    }

    fn notify_shard(&mut self, shard: u16) {
        self.real.notify_shard(shard);
    }

    fn store(&mut self, record: Record<'_>) {
        self.real.store(record);
    }

    fn stores(&self) -> bool {
        self.real.stores()
    }
}
