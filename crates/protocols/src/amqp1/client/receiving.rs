//! The link of a consumer: the message that is arriving, what is to be settled, and the credit.

use weigh_model::connection::{Emit, Fault, Outbox, Signal};

use super::super::codec::{Disposition, Flow, Message, Performative, Role, State, Transfer};
use super::super::plan::{CHANNEL, HANDLE, Plan};
use super::super::window::Windows;

/// State of the link.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    /// Address of the link, as the topic of its messages.
    pub(super) address: Box<str>,
    /// Deliveries so far, as the server counts them.
    count: u32,
    /// Deliveries that may come.
    credit: u32,
    /// Deliveries since the credit was renewed.
    since: u32,
    /// Delivery that is arriving.
    current: Option<Current>,
    /// Its bytes so far, where it does not come in one transfer.
    parts: Vec<u8>,
    /// Bodies in several sections.
    body: Vec<u8>,
    owed: Option<Owed>,
    /// Count at which the current request ends.
    asked: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    id: u32,
    is_settled: bool,
}

/// Deliveries that are not settled: a range.
#[derive(Clone, Copy, Debug)]
struct Owed {
    first: u32,
    last: u32,
}

/// What a transfer brought.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrived {
    /// A part of a message, of this many bytes.
    Part(usize),
    /// The last part, after this many bytes of earlier ones.
    Whole(usize),
}

impl Receiving {
    /// The link is attached: the count of the server.
    pub(super) fn attached(&mut self, count: u32) {
        self.count = count;
    }

    /// Gives all of the credit anew.
    pub(super) fn renew(&mut self, credit: u32, session: &Windows, out: &mut Outbox) {
        (self.credit, self.since) = (credit, 0);
        self.put_flow(false, session, out);
    }

    fn put_flow(&self, drain: bool, session: &Windows, out: &mut Outbox) {
        let flow = Flow {
            handle: Some(HANDLE),
            delivery_count: Some(self.count),
            link_credit: Some(self.credit),
            drain,
            ..session.state()
        };
        Performative::Flow(flow).put(CHANNEL, out.buffer());
    }

    /// Asks for at most `limit` messages that are there (part 2, section 2.6.10).
    pub(super) fn ask(&mut self, limit: u32, session: &Windows, out: &mut Outbox) {
        self.credit = limit;
        self.asked = Some(self.count.wrapping_add(limit));
        self.put_flow(true, session, out);
    }

    /// The state of the sender: the answer to a request, where it used up the credit.
    pub(super) fn heard(
        &mut self,
        flow: &Flow,
        session: &Windows,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) {
        if self.asked.is_some() && flow.delivery_count == self.asked {
            self.count = self.asked.unwrap_or(self.count);
            self.credit = 0;
            self.answered(out, emit);
        }
        if flow.echo {
            self.put_flow(false, session, out);
        }
    }

    fn answered(&mut self, out: &mut Outbox, emit: Emit<'_>) {
        self.asked = None;
        self.settle(out);
        emit(Signal::Answered(Ok(())));
    }

    /// Takes a transfer.
    pub(super) fn take(
        &mut self,
        transfer: &Transfer<'_>,
        payload: &[u8],
        plan: &Plan,
    ) -> Result<Arrived, Fault> {
        let wrong = |what: &str| Err(Fault::Malformed(what.to_owned()));
        if transfer.handle != HANDLE {
            return wrong("a transfer of a link that is not attached");
        }
        match (&mut self.current, transfer.delivery_id) {
            (None, None) => return wrong("a delivery without a number"),
            (None, Some(id)) => {
                let Some(credit) = self.credit.checked_sub(1) else {
                    return wrong("a delivery without credit for it");
                };
                self.credit = credit;
                self.count = self.count.wrapping_add(1);
                let is_settled = transfer.settled || plan.consuming.is_settled;
                self.current = Some(Current { id, is_settled });
            }
            (Some(current), id) => {
                if id.is_some_and(|id| id != current.id) {
                    return wrong("a delivery inside another one");
                }
                current.is_settled |= transfer.settled;
            }
        }
        if transfer.aborted {
            (self.current, self.parts) = (None, Vec::new());
            return Ok(Arrived::Part(0));
        }
        if self.parts.len() + payload.len() > MESSAGE_BYTES_MAX as usize {
            return wrong("a message that is larger than max-message-size");
        }
        let earlier = self.parts.len();
        if transfer.more || earlier > 0 {
            self.parts.extend_from_slice(payload);
        }
        Ok(match transfer.more {
            true => Arrived::Part(payload.len()),
            false => Arrived::Whole(earlier),
        })
    }

    /// Passes on a message that is whole, and settles it; `last` is its last part. Returns the
    /// bytes of its body.
    pub(super) fn arrived(
        &mut self,
        last: &[u8],
        plan: &Plan,
        session: &Windows,
        out: &mut Outbox,
        emit: Emit<'_>,
    ) -> Result<usize, Fault> {
        let parts = std::mem::take(&mut self.parts);
        let bytes = if parts.is_empty() { last } else { &parts };
        let mut room = std::mem::take(&mut self.body);
        let message = Message::read(bytes).map_err(|flaw| Fault::Malformed(flaw.to_string()))?;
        let body = message.body.bytes(&message, &mut room);
        let body_bytes = body.len();
        emit(Signal::Message { topic: self.address.as_bytes(), body });
        self.body = kept(room);
        self.parts = kept(parts);
        if let Some(Current { id, is_settled: false }) = self.current.take() {
            self.owe(id, plan.consuming.settle_every, out);
        }
        match plan.consuming.asks_for {
            Some(_) if self.asked == Some(self.count) => self.answered(out, emit),
            Some(_) => {}
            None => {
                self.since += 1;
                if self.since >= plan.consuming.credit_every {
                    self.renew(plan.consuming.credit, session, out);
                }
            }
        }
        Ok(body_bytes)
    }

    fn owe(&mut self, id: u32, settle_every: u32, out: &mut Outbox) {
        let owed = match self.owed {
            Some(owed) => Owed { last: id, ..owed },
            None => Owed { first: id, last: id },
        };
        self.owed = Some(owed);
        if owed.last.wrapping_sub(owed.first).wrapping_add(1) >= settle_every {
            self.settle(out);
        }
    }

    /// Accepts what is owed.
    pub(super) fn settle(&mut self, out: &mut Outbox) {
        let Some(Owed { first, last }) = self.owed.take() else { return };
        let disposition = Disposition {
            role: Role::Receiver,
            first,
            last: (last != first).then_some(last),
            settled: true,
            state: Some(State::Accepted),
        };
        Performative::Disposition(disposition).put(CHANNEL, out.buffer());
    }
}

/// Memory for the next message, if it is not large.
fn kept(mut memory: Vec<u8>) -> Vec<u8> {
    memory.clear();
    if memory.capacity() <= KEPT { memory } else { Vec::new() }
}

/// Largest message that consumers take; they say so when they attach.
pub(super) const MESSAGE_BYTES_MAX: u64 = 1 << 27;

/// Room for a message that is kept.
const KEPT: usize = 1 << 20;
