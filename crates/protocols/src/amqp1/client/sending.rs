//! The link of a producer: its credit, what is not settled, and what waits for the window.

use std::collections::VecDeque;

use weigh_model::connection::{Emit, Fault, Op, Outbox, Signal, Ticket};

use super::super::codec::{
    Delivery, Disposition, Flow, Performative, Role, State, distance, put_data_head, put_delivery,
};
use super::super::errors;
use super::super::plan::{CHANNEL, HANDLE, Plan};
use super::super::window::Windows;

/// State of the link.
#[derive(Debug, Default)]
pub(super) struct Sending {
    /// Number of the next delivery in the session.
    next_id: u32,
    /// Count of the link. A drain advances it alone: the session has no gaps.
    count: u32,
    /// Deliveries that may leave now.
    credit: u32,
    /// Deliveries without an outcome, by number.
    open: VecDeque<Option<Ticket>>,
    /// Number of the first one.
    first: u32,
    /// What comes before the body of a message.
    head: Vec<u8>,
    /// A message of which a part waits for the window of the session.
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    id: u32,
    is_settled: bool,
    message: Vec<u8>,
    sent: usize,
}

impl Sending {
    /// Messages that may leave now.
    pub(super) fn room(&self, session: &Windows) -> u32 {
        match self.held.is_some() || session.window() == 0 {
            true => 0,
            false => self.credit,
        }
    }

    /// True once the server gave credit.
    pub(super) fn has_credit(&self) -> bool {
        self.credit > 0
    }

    /// Deliveries that the server takes now.
    pub(super) fn credit(&self) -> u32 {
        self.credit
    }

    /// Sends a message; returns the bytes of its body that left.
    pub(super) fn send(
        &mut self,
        op: &Op<'_>,
        plan: &Plan,
        session: &mut Windows,
        frame_max: u32,
        out: &mut Outbox,
    ) -> usize {
        self.head.clear();
        self.head.extend_from_slice(&plan.header);
        put_data_head(op.body.len() as u32, &mut self.head);
        let (id, is_settled) = (self.next_id, plan.is_settled);
        let parts = [&self.head[..], op.body];
        let delivery = Delivery { handle: HANDLE, id, is_settled, parts };
        let window = session.window();
        let progress = put_delivery(&delivery, 0, CHANNEL, frame_max, window, out.buffer());
        session.sent(progress.transfers);
        if !progress.is_whole {
            self.held =
                Some(Held { id, is_settled, message: parts.concat(), sent: progress.bytes });
        }
        self.next_id = self.next_id.wrapping_add(1);
        self.count = self.count.wrapping_add(1);
        self.credit = self.credit.saturating_sub(1);
        if !is_settled {
            self.open.push_back(Some(op.ticket));
        }
        progress.bytes.saturating_sub(self.head.len())
    }

    /// Sends what waited for the window; returns the bytes of bodies that left.
    pub(super) fn resume(
        &mut self,
        session: &mut Windows,
        frame_max: u32,
        out: &mut Outbox,
    ) -> usize {
        let Some(held) = &mut self.held else { return 0 };
        let Held { id, is_settled, .. } = *held;
        let parts = [&held.message[..], &[]];
        let delivery = Delivery { handle: HANDLE, id, is_settled, parts };
        let (from, window) = (held.sent, session.window());
        let progress = put_delivery(&delivery, from, CHANNEL, frame_max, window, out.buffer());
        session.sent(progress.transfers);
        held.sent = progress.bytes;
        if progress.is_whole {
            self.held = None;
        }
        progress.bytes - from
    }

    /// Credit, counted from what the server has seen (part 2, section 2.6.7).
    pub(super) fn heard(&mut self, flow: &Flow, session: &Windows, out: &mut Outbox) {
        let unseen = distance(flow.delivery_count.unwrap_or(0), self.count);
        self.credit = flow.link_credit.unwrap_or(0).saturating_sub(unseen);
        if flow.drain {
            // Nothing waits here, so all credit is used up.
            self.count = self.count.wrapping_add(self.credit);
            self.credit = 0;
        }
        if flow.drain || flow.echo {
            let answer = Flow {
                handle: Some(HANDLE),
                delivery_count: Some(self.count),
                link_credit: Some(self.credit),
                available: Some(0),
                drain: flow.drain,
                ..session.state()
            };
            Performative::Flow(answer).put(CHANNEL, out.buffer());
        }
    }

    /// The server ended deliveries, or said something else about them.
    ///
    /// # Errors
    /// A number that no delivery has.
    pub(super) fn ended(
        &mut self,
        disposition: &Disposition<'_>,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<(), Fault> {
        let (first, last) = (disposition.first, disposition.last());
        let state = match disposition.state {
            Some(state) if state.is_outcome() => state,
            // Settled without an outcome: the server forgot it, and did not say that it took it.
            None if disposition.settled => State::Released,
            _ => return Ok(()),
        };
        let sent = self.open.len() as u32;
        let after = self.first.wrapping_add(sent);
        if distance(first, last) != last.wrapping_sub(first) || distance(last, after) == 0 {
            let what = format!("it settles deliveries {first} to {last} of {after}");
            return Err(Fault::Malformed(what));
        }
        let from = distance(self.first, first);
        let to = distance(self.first, last.wrapping_add(1));
        for ticket in self.open.range_mut(from as usize..to as usize) {
            if let Some(ticket) = ticket.take() {
                emit(match state {
                    State::Accepted => Signal::Done(ticket),
                    state => Signal::Refused(ticket, errors::code_of(&state)),
                });
            }
        }
        while self.open.front().is_some_and(Option::is_none) {
            self.open.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        if !disposition.settled {
            let state = Some(state);
            let role = Role::Sender;
            let settled = Disposition { role, first, last: Some(last), settled: true, state };
            Performative::Disposition(settled).put(CHANNEL, out.buffer());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(sending: &mut Sending, first: u32, last: Option<u32>, state: State<'_>) -> Vec<String> {
        let mut heard = Vec::new();
        let role = Role::Receiver;
        let disposition = Disposition { role, first, last, settled: true, state: Some(state) };
        sending
            .ended(&disposition, &mut Outbox::default(), &mut |signal| {
                heard.push(format!("{signal:?}"));
            })
            .unwrap();
        heard
    }

    #[test]
    fn deliveries_end_one_by_one_or_in_ranges_in_any_order_and_wrap() {
        let first = u32::MAX - 1;
        let mut sending = Sending { first, next_id: first.wrapping_add(5), ..Sending::default() };
        sending.open = (0..5).map(|ticket| Some(Ticket(ticket))).collect();
        assert_eq!(ends(&mut sending, u32::MAX, None, State::Accepted), ["Done(Ticket(1))"]);
        let none: [&str; 0] = [];
        assert_eq!(ends(&mut sending, u32::MAX, None, State::Accepted), none, "it ended before");
        assert_eq!(
            ends(&mut sending, first, Some(0), State::Accepted),
            ["Done(Ticket(0))", "Done(Ticket(2))"]
        );
        assert_eq!(sending.first, 1);
        assert_eq!(ends(&mut sending, first, None, State::Accepted), none, "long ago");
        assert_eq!(ends(&mut sending, 2, None, State::Released), ["Refused(Ticket(4), 2)"]);
        for (first, last) in [(3, None), (2, Some(3)), (2, Some(1)), (1, Some(1 << 31))] {
            let (role, settled) = (Role::Receiver, true);
            let state = Some(State::Accepted);
            let wrong = Disposition { role, first, last, settled, state };
            let ended = sending.ended(&wrong, &mut Outbox::default(), &mut |_| {});
            assert!(ended.is_err(), "{first} {last:?}");
        }
    }

    #[test]
    fn a_drain_uses_up_the_count_of_the_link_and_no_number_of_the_session() {
        let mut sending = Sending { next_id: 1, count: 1, ..Sending::default() };
        sending.open.push_back(Some(Ticket(0)));
        let flow = Flow {
            delivery_count: Some(0),
            link_credit: Some(u32::MAX),
            drain: true,
            ..Flow::default()
        };
        sending.heard(&flow, &Windows::default(), &mut Outbox::default());
        assert_eq!((sending.next_id, sending.count, sending.credit), (1, u32::MAX, 0));
        assert_eq!(sending.open.len(), 1, "nothing is kept for the credit");
        assert_eq!(ends(&mut sending, 0, None, State::Accepted), ["Done(Ticket(0))"]);
    }
}
