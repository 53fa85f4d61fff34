//! Flow control of a session: a window of transfers in each direction (part 2, section 2.5.6).

use super::codec::{Flow, distance};
use super::plan::WINDOW;

/// The windows of a session, at either end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Windows {
    /// Number of the next transfer that leaves.
    next_outgoing_id: u32,
    /// Number of the transfer that is due from the other end.
    next_incoming_id: u32,
    /// Transfers that the other end takes.
    window: u32,
}

impl Windows {
    /// The session stands: what the `begin` of the other end says.
    pub(super) fn began(&mut self, next_incoming_id: u32, window: u32) {
        (self.next_incoming_id, self.window) = (next_incoming_id, window);
    }

    /// Transfers that may leave now.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// Transfers left.
    pub(super) fn sent(&mut self, transfers: u32) {
        self.next_outgoing_id = self.next_outgoing_id.wrapping_add(transfers);
        self.window = self.window.saturating_sub(transfers);
    }

    /// A transfer came.
    pub(super) fn received(&mut self) {
        self.next_incoming_id = self.next_incoming_id.wrapping_add(1);
    }

    /// The window of the other end, counted from what it has seen.
    pub(super) fn heard(&mut self, flow: &Flow) {
        let unseen = distance(flow.next_incoming_id.unwrap_or(0), self.next_outgoing_id);
        self.window = flow.incoming_window.saturating_sub(unseen);
    }

    /// The fields of the session in a flow.
    pub(super) fn state(&self) -> Flow {
        Flow {
            next_incoming_id: Some(self.next_incoming_id),
            incoming_window: WINDOW,
            next_outgoing_id: self.next_outgoing_id,
            outgoing_window: WINDOW,
            ..Flow::default()
        }
    }
}
