//! A bus that delays messages, copies them and is cut.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use super::item::Item;

/// What the bus does to messages.
#[derive(Clone, Debug, Default)]
pub struct Weather {
    /// Every message comes twice, the second time later.
    pub is_doubled: bool,
    /// While it lasts, no message of every third agent passes; nanoseconds.
    pub cut: Option<Range<u64>>,
    /// No request reaches this agent.
    pub is_deaf: Option<u32>,
}

/// Messages that are under way, and moments that come.
pub struct Bus {
    weather: Weather,
    random: Random,
    /// The shortest delays to each agent, and back.
    ways: Vec<(u64, u64)>,
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    items: BTreeMap<u64, (u32, Item)>,
    number: u64,
    answered: Vec<bool>,
    /// Messages so far; one that many get is one for each of them.
    pub sent: u64,
}

impl Bus {
    pub fn new(agents: u32, seed: u64, weather: Weather) -> Bus {
        let mut random = Random(seed | 1);
        let ways = (0..agents).map(|_| {
            // One of ten is far away, and all of them are nearer in one direction.
            let far = if random.below(10) == 0 { 20_000_000 } else { 500_000 };
            (50_000 + random.below(far), 50_000 + random.below(far))
        });
        let ways = ways.collect();
        let (heap, items) = <(BinaryHeap<_>, BTreeMap<_, _>)>::default();
        let answered = vec![false; agents as usize];
        Bus { weather, random, ways, heap, items, number: 0, answered, sent: 0 }
    }

    /// A number below `most`.
    pub fn below(&mut self, most: u64) -> u64 {
        self.random.below(most)
    }

    /// This happens then. That an agent has not answered to a start happens only if it has not.
    pub fn later(&mut self, at: u64, rank: u32, item: Item) {
        self.number += 1;
        self.heap.push(Reverse((at, self.number)));
        self.items.insert(self.number, (rank, item));
    }

    /// Sends a message to or from an agent.
    pub fn send(&mut self, now: u64, rank: u32, item: Item) {
        self.sent += 1;
        let is_cut = self.weather.cut.as_ref().is_some_and(|cut| cut.contains(&now));
        let is_request = matches!(item, Item::Named(_) | Item::Confirmed(_));
        if (is_cut && rank.is_multiple_of(3)) || (is_request && self.weather.is_deaf == Some(rank))
        {
            return;
        }
        if matches!(item, Item::NameAnswered(_)) {
            self.answered[rank as usize] = true;
        }
        let (there, back) = self.ways[rank as usize];
        let shortest = if goes_there(&item) { there } else { back };
        let mut delay = shortest + self.random.below(300_000);
        if self.random.below(100) == 0 {
            delay += self.random.below(30_000_000);
        }
        if self.weather.is_doubled {
            let late = delay + self.random.below(200_000_000);
            self.sent += 1;
            self.later(now + late, rank, item.clone());
        }
        self.later(now + delay, rank, item);
    }

    /// The next that happens before this time.
    pub fn next(&mut self, until: u64) -> Option<(u64, u32, Item)> {
        loop {
            let Reverse((at, number)) = *self.heap.peek().filter(|first| first.0.0 < until)?;
            self.heap.pop();
            let (rank, item) = self.items.remove(&number)?;
            // The answer came before its time was over.
            let is_late = matches!(item, Item::NameAnswered(Err(_)));
            if !(is_late && self.answered[rank as usize]) {
                return Some((at, rank, item));
            }
        }
    }
}

fn goes_there(item: &Item) -> bool {
    matches!(item, Item::ClockAsked(_) | Item::Whole(_) | Item::Named(_) | Item::Confirmed(_))
}

/// Random numbers from a seed: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most.max(1)
    }
}
