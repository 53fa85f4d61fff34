//! Messages in flight of one link, by ticket and by number, and the exchanges that they share.

use weigh_model::Nanos;
use weigh_model::connection::Ticket;
use weigh_model::mark::Mark;

use crate::recorder::Sending;

/// A message that was handed to the transport and has not ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// Due time.
    pub due: Nanos,
    /// Time at which it was handed to the transport.
    pub sent: Nanos,
    /// Part of the time between the two that was the generator's own lateness; for the remainder
    /// the message waited for the window or for a connection.
    pub own_lag: Nanos,
    /// Its number at its producer, of the measured or of the warm-up messages.
    pub number: u64,
    /// Deliveries that end it; 0 where an answer does, or nothing.
    pub copies: u32,
    /// The exchange that it shares with others; [`NO_BATCH`] where it is by itself.
    pub batch: u32,
    /// True before the measured window.
    pub warmup: bool,
    /// True once it is past Tmax; it no longer counts against the window.
    pub is_expired: bool,
}

impl Flight {
    /// The message of `mark`, handed over at `sent`, which ends after this many deliveries.
    #[inline]
    pub(crate) fn of(mark: &Mark, sent: Nanos, copies: u32, batch: u32) -> Flight {
        let Mark { due, own_lag, sequence: number, warmup, .. } = *mark;
        Flight { due, sent, own_lag, number, copies, batch, warmup, is_expired: false }
    }

    /// Returns the send time, and the causes of a delay.
    pub(crate) fn sending(&self) -> Sending {
        Sending { due: self.due, sent: self.sent, own_lag: self.own_lag }
    }
}

/// The messages in flight of one link.
#[derive(Default)]
pub(crate) struct Flights {
    slots: Vec<Option<Flight>>,
    free: Vec<u32>,
    live: u32,
    expired: u32,
    /// Slots of the flights that end by delivery; made with the first of them.
    by_number: Option<Box<SlotsByNumber>>,
}

impl Flights {
    /// No flights.
    pub(crate) const NONE: Flights =
        Flights { slots: Vec::new(), free: Vec::new(), live: 0, expired: 0, by_number: None };

    /// Adds a flight and returns its ticket. Inlined, as [`Flights::end`]: calls and copies of a
    /// flight took a tenth of the time of a message at QoS 0.
    #[inline(always)]
    pub(crate) fn start(&mut self, flight: Flight) -> Ticket {
        self.live += 1;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(flight);
                slot
            }
            None => {
                self.slots.push(Some(flight));
                self.slots.len() as u32 - 1
            }
        };
        if flight.copies > 0 {
            self.enter(slot, flight.number);
        }
        Ticket(slot)
    }

    #[inline(never)]
    fn enter(&mut self, slot: u32, number: u64) {
        self.by_number.get_or_insert_default().insert(slot, number, &self.slots);
    }

    #[inline(never)]
    fn leave(&mut self, slot: u32, number: u64) {
        if let Some(by_number) = &mut self.by_number {
            by_number.remove(slot, number);
        }
    }

    /// Ends a flight; `None` if the ticket names none.
    #[inline(always)]
    pub(crate) fn end(&mut self, ticket: Ticket) -> Option<Flight> {
        let flight = self.slots.get_mut(ticket.0 as usize)?.take()?;
        if flight.copies > 0 {
            self.leave(ticket.0, flight.number);
        }
        self.free.push(ticket.0);
        self.live -= 1;
        self.expired -= u32::from(flight.is_expired);
        Some(flight)
    }

    /// The flight of a ticket.
    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Flight> {
        self.slots.get(ticket.0 as usize)?.as_ref()
    }

    /// Ends all flights but those of `kept`.
    pub(crate) fn take_others(&mut self, kept: &[Ticket]) -> Vec<Flight> {
        let others = (0..self.slots.len() as u32).map(Ticket).filter(|own| !kept.contains(own));
        others.collect::<Vec<_>>().into_iter().filter_map(|ticket| self.end(ticket)).collect()
    }

    /// Counts the delivery of one copy of message `number`; returns the flight once all copies
    /// were delivered.
    pub(crate) fn deliver(&mut self, number: u64, warmup: bool) -> Option<Flight> {
        let slot = self.by_number.as_ref()?.find(number, |slot| {
            let flight = self.slots[slot as usize].as_ref();
            flight.is_some_and(|flight| flight.number == number && flight.warmup == warmup)
        })?;
        let flight = self.slots[slot as usize].as_mut()?;
        if flight.copies == 1 {
            return self.end(Ticket(slot));
        }
        flight.copies -= 1;
        None
    }

    /// Marks what was handed over before `before` as expired and calls `each` for it.
    pub(crate) fn expire(&mut self, before: Nanos, mut each: impl FnMut(&Flight)) {
        for flight in self.slots.iter_mut().flatten() {
            if !flight.is_expired && flight.sent < before {
                flight.is_expired = true;
                self.expired += 1;
                each(flight);
            }
        }
    }

    /// Ends all flights.
    pub(crate) fn take_all(&mut self) -> Vec<Flight> {
        std::mem::take(self).slots.into_iter().flatten().collect()
    }

    /// Number of flights that count against the window.
    pub(crate) fn awaited(&self) -> u32 {
        self.live - self.expired
    }

    /// Number of flights, expired ones included.
    pub(crate) fn live(&self) -> u32 {
        self.live
    }
}

/// Slots by the number of their message: chains of slots whose numbers share their lowest bits.
/// Numbers in flight follow one another, so a chain is short; memory grows with the slots, not with
/// the messages.
#[derive(Default)]
struct SlotsByNumber {
    /// The first slot of each chain; their count is a power of two.
    heads: Vec<u32>,
    /// The slot that follows each slot in its chain.
    next: Vec<u32>,
}

impl SlotsByNumber {
    /// Adds a slot; `slots` holds it and those that are here.
    fn insert(&mut self, slot: u32, number: u64, slots: &[Option<Flight>]) {
        if slots.len() <= self.heads.len() {
            return self.link(slot, number);
        }
        let room = slots.len().next_power_of_two().max(CHAINS_MIN);
        self.heads = vec![NO_SLOT; room];
        self.next = vec![NO_SLOT; room];
        for (slot, flight) in slots.iter().enumerate() {
            if let Some(flight) = flight.filter(|flight| flight.copies > 0) {
                self.link(slot as u32, flight.number);
            }
        }
    }

    fn link(&mut self, slot: u32, number: u64) {
        let chain = self.chain(number);
        self.next[slot as usize] = std::mem::replace(&mut self.heads[chain], slot);
    }

    fn remove(&mut self, slot: u32, number: u64) {
        let (chain, after) = (self.chain(number), self.next[slot as usize]);
        if self.heads[chain] == slot {
            self.heads[chain] = after;
            return;
        }
        let mut before = self.heads[chain];
        while before != NO_SLOT {
            let next = &mut self.next[before as usize];
            if *next == slot {
                *next = after;
                return;
            }
            before = *next;
        }
    }

    fn find(&self, number: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut slot = *self.heads.get(self.chain(number))?;
        while slot != NO_SLOT && !is_it(slot) {
            slot = self.next[slot as usize];
        }
        (slot != NO_SLOT).then_some(slot)
    }

    fn chain(&self, number: u64) -> usize {
        number as usize & self.heads.len().wrapping_sub(1)
    }
}

/// An exchange of several messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// Due time of the first of them.
    pub due: Nanos,
    /// Number of them that have not ended.
    pub left: u32,
    /// Number of those that ended without a confirmation.
    pub failed: u32,
    /// True if a message of the warm-up is among them.
    pub warmup: bool,
}

/// The exchanges of several messages of one link, by number.
#[derive(Default)]
pub(crate) struct Batches {
    slots: Vec<Batch>,
    free: Vec<u32>,
}

impl Batches {
    /// No exchanges.
    pub(crate) const NONE: Batches = Batches { slots: Vec::new(), free: Vec::new() };

    /// Begins an exchange and returns its number.
    pub(crate) fn begin(&mut self, batch: Batch) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = batch;
                slot
            }
            None => {
                self.slots.push(batch);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Counts the end of one message of exchange `number`; returns the exchange once all ended.
    pub(crate) fn end_one(&mut self, number: u32, is_confirmed: bool) -> Option<Batch> {
        let batch = self.slots.get_mut(number as usize).filter(|batch| batch.left > 0)?;
        batch.left -= 1;
        batch.failed += u32::from(!is_confirmed);
        if batch.left > 0 {
            return None;
        }
        self.free.push(number);
        Some(*batch)
    }

    /// Number of exchanges that are not over.
    pub(crate) fn open(&self) -> u32 {
        (self.slots.len() - self.free.len()) as u32
    }
}

/// The batch number of a message that shares its exchange with no other.
pub(crate) const NO_BATCH: u32 = u32::MAX;

/// The end of a chain.
const NO_SLOT: u32 = u32::MAX;

/// Chains that are made first.
const CHAINS_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(number: u64, copies: u32, warmup: bool) -> Flight {
        let (due, sent, own_lag) = (Nanos(0), Nanos(number), Nanos(0));
        let (batch, is_expired) = (NO_BATCH, false);
        Flight { due, sent, own_lag, number, copies, batch, warmup, is_expired }
    }

    /// A thousand messages with a window of 100, delivered in another order than sent: each is
    /// found, once, by its number, and the slots of the first hundred serve all.
    #[test]
    fn deliveries_find_their_flights_in_any_order() {
        let mut flights = Flights::default();
        let mut waiting: Vec<u64> = Vec::new();
        for number in 0..1000 {
            flights.start(flight(number, 1, false));
            waiting.push(number);
            if waiting.len() == 100 {
                let one = waiting.remove((number as usize * 37) % 100);
                assert_eq!(flights.deliver(one, false).map(|f| f.number), Some(one));
                assert!(flights.deliver(one, false).is_none());
            }
        }
        assert_eq!((flights.live(), flights.slots.len()), (99, 100));
        waiting.iter().for_each(|one| assert!(flights.deliver(*one, false).is_some()));
        assert_eq!(flights.live(), 0);
    }

    #[test]
    fn copies_are_counted_and_warm_up_is_told_apart() {
        let mut flights = Flights::default();
        flights.start(flight(7, 2, true));
        flights.start(flight(7, 1, false));
        assert!(flights.deliver(7, true).is_none());
        assert!(flights.deliver(7, false).is_some_and(|flight| !flight.warmup));
        assert!(flights.deliver(7, true).is_some_and(|flight| flight.warmup));
        assert!(flights.deliver(7, true).is_none());
    }

    #[test]
    fn a_flight_that_ended_otherwise_is_not_found() {
        let mut flights = Flights::default();
        let ticket = flights.start(flight(3, 1, false));
        flights.start(flight(3 + CHAINS_MIN as u64, 1, false));
        assert!(flights.end(ticket).is_some());
        assert!(flights.deliver(3, false).is_none());
        assert!(flights.deliver(3 + CHAINS_MIN as u64, false).is_some());
        flights.start(flight(4, 1, false));
        assert_eq!(flights.take_all().len(), 1);
        assert!(flights.deliver(4, false).is_none());
    }
}
